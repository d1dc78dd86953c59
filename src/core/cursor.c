/* SPDX-License-Identifier: Apache-2.0 */

/* A cursor is the base64url of a version, eight bytes of a SHA-256 and the place. */

#include "core/cursor.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <openssl/sha.h>
#include <string.h>

enum { VERSION = 1, CHECK_BYTES = 8, HEAD_BYTES = 1 + CHECK_BYTES };

const char *weft_cursor_filter(const char *const *text, size_t count, struct weft_arena *arena)
{
    struct weft_buf out;
    weft_buf_init(&out, 1 << 20);
    for (size_t i = 0; i < count; i++)
        if (text[i])
            weft_buf_printf(&out, "%zu=%zu:%s;", i, strlen(text[i]), text[i]);
    const char *filter = weft_arena_dup(arena, out.data, out.size + 1);
    weft_buf_done(&out);
    return filter;
}

/* Each part is hashed on its own first, so that no two lists give the same input. */
static void put_head(const struct weft_cursor_list *list, uint8_t ret_head[HEAD_BYTES])
{
    const char *const part[] = {list->name, list->ns, list->filter};
    uint8_t hash[WEFT_LEN(part)][SHA256_DIGEST_LENGTH], all[SHA256_DIGEST_LENGTH];
    for (size_t i = 0; i < WEFT_LEN(part); i++) {
        const char *text = part[i] ? part[i] : "";
        SHA256((const uint8_t *)text, strlen(text), hash[i]);
    }
    SHA256(hash[0], sizeof(hash), all);
    ret_head[0] = VERSION;
    memcpy(ret_head + 1, all, CHECK_BYTES);
}

const char *weft_cursor_write(const struct weft_cursor_list *list, const void *place, size_t size,
                              struct weft_arena *arena)
{
    uint8_t bytes[HEAD_BYTES + WEFT_CURSOR_PLACE_MAX];
    if (size > WEFT_CURSOR_PLACE_MAX)
        size = WEFT_CURSOR_PLACE_MAX; /* no name or number is longer */
    put_head(list, bytes);
    memcpy(bytes + HEAD_BYTES, place, size);
    char *text = weft_arena_alloc(arena, WEFT_BASE64_SIZE(HEAD_BYTES + size) + 1, 1);
    weft_base64url(bytes, HEAD_BYTES + size, text);
    return text;
}

enum weft_rc weft_cursor_refuse(struct weft_err *err)
{
    return weft_hint(err, weft_invalid(err, "after", "after is not a cursor that this list gave"),
                     "give the next of a page with the same filter and namespace; without after "
                     "the list starts from the beginning");
}

enum weft_rc weft_cursor_read(const struct weft_cursor_list *list, const char *text,
                              void *ret_place, size_t *ret_size, struct weft_err *err)
{
    uint8_t head[HEAD_BYTES], bytes[WEFT_CURSOR_TEXT_MAX + 4];
    size_t size = 0, length = strnlen(text, WEFT_CURSOR_TEXT_MAX);
    put_head(list, head);
    if (length == WEFT_CURSOR_TEXT_MAX || !weft_base64url_decode(text, length, bytes, &size) ||
        size < HEAD_BYTES || size - HEAD_BYTES > WEFT_CURSOR_PLACE_MAX ||
        memcmp(bytes, head, HEAD_BYTES) != 0)
        return weft_cursor_refuse(err);
    *ret_size = size - HEAD_BYTES;
    memcpy(ret_place, bytes + HEAD_BYTES, *ret_size);
    ((char *)ret_place)[*ret_size] = '\0';
    return WEFT_OK;
}

enum weft_rc weft_cursor_read_id(const struct weft_cursor_list *list, const char *after,
                                 struct weft_id *id, struct weft_err *err)
{
    uint8_t place[WEFT_CURSOR_PLACE_MAX + 1];
    size_t size = 0;
    enum weft_rc rc = after ? weft_cursor_read(list, after, place, &size, err) : WEFT_OK;
    if (rc || !after)
        return rc;
    if (size != sizeof(id->byte))
        return weft_cursor_refuse(err);
    memcpy(id->byte, place, sizeof(id->byte));
    return WEFT_OK;
}

const char *weft_cursor_write_id(const struct weft_cursor_list *list, const struct weft_id *id,
                                 struct weft_arena *arena)
{
    return weft_cursor_write(list, id->byte, sizeof(id->byte), arena);
}
