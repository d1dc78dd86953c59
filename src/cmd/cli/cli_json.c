/* SPDX-License-Identifier: Apache-2.0 */

#include "cmd/cli/cli_json.h"

#include "base/arena.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

/* More than any answer: lists are printed page by page. */
static const size_t out_max = (size_t)1 << 30;

void weft_json_out_begin(struct weft_json_out *out)
{
    weft_buf_init(&out->buf, out_max);
    weft_json_writer_init(&out->json, &out->buf);
}

void weft_json_out_end(struct weft_json_out *out)
{
    weft_buf_add_char(&out->buf, '\n');
    (void)fwrite(out->buf.data, 1, out->buf.size, stdout);
    weft_buf_done(&out->buf);
}

void weft_json_out_begin_object(struct weft_json_out *out)
{
    weft_json_out_begin(out);
    weft_json_begin_object(&out->json);
}

void weft_json_out_end_object(struct weft_json_out *out)
{
    weft_json_end_object(&out->json);
    weft_json_out_end(out);
}

void weft_json_out_begin_items(struct weft_json_out *out)
{
    weft_json_out_begin_object(out);
    weft_json_key(&out->json, "items");
    weft_json_begin_array(&out->json);
}

void weft_json_out_end_items(struct weft_json_out *out)
{
    weft_json_end_array(&out->json);
    weft_json_out_end_object(out);
}

void weft_json_add_fixed(struct weft_json_writer *json, const char *key, double number, int digits)
{
    char text[352]; /* the largest double has 309 digits */
    int size = snprintf(text, sizeof(text), "%.*f", digits, number);
    weft_json_key(json, key);
    if (isnan(number))
        weft_json_put_null(json);
    else
        weft_json_put_raw(json, text, (size_t)size);
}

void weft_json_out_item(const struct weft_wire_type *type, const void *item)
{
    struct weft_json_out out;
    weft_json_out_begin(&out);
    weft_wire_write(type, item, &out.json);
    weft_json_out_end(&out);
}

void weft_json_out_items(const struct weft_wire_type *type, const void *item, size_t size,
                         size_t count)
{
    struct weft_json_out out;
    weft_json_out_begin_items(&out);
    for (size_t i = 0; i < count; i++)
        weft_wire_write(type, (const char *)item + i * size, &out.json);
    weft_json_out_end_items(&out);
}

void weft_json_out_bytes(struct weft_json_out *out, const char *name,
                         const struct weft_bytes *bytes)
{
    struct weft_json value;
    if (!bytes->arena)
        return;
    bool json = !bytes->content_type || strcmp(bytes->content_type, "application/json") == 0;
    if (json && weft_json_check(bytes->data, bytes->size, &value, NULL) == WEFT_OK) {
        weft_json_key(&out->json, name);
        weft_json_put_raw(&out->json, value.text, value.size);
        return;
    }
    struct weft_arena *arena = weft_arena_new();
    char *text = weft_arena_alloc(arena, WEFT_BASE64_SIZE(bytes->size) + 1, 1);
    weft_base64_encode(bytes->data, bytes->size, text);
    weft_json_key(&out->json, weft_arena_printf(arena, "%s_base64", name));
    weft_json_put_text(&out->json, text);
    weft_arena_free(arena);
}
