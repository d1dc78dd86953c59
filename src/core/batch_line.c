/* SPDX-License-Identifier: Apache-2.0 */

#include "core/batch_line.h"

#include "base/arena.h"
#include "base/str.h"

#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLAWS_BYTES = 256 << 10, FIRST_ROOM = 1024 };

WEFT_PRINTF(4, 5)
static bool flawed(struct weft_batch_flaw *flaw, const char *code, const char *param,
                   const char *fmt, ...)
{
    va_list args;
    *flaw = (struct weft_batch_flaw){.code = code, .param = param};
    va_start(args, fmt);
    (void)vsnprintf(flaw->message, sizeof(flaw->message), fmt, args);
    va_end(args);
    return false;
}

/* ---- One line -------------------------------------------------------------------------------- */

bool weft_batch_line_blank(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return false;
    return true;
}

/* The members that count; a kind of NULL with no text: it is not there. */
struct members {
    struct weft_json custom_id, method, url, body, model;
};

static void find_members(const struct weft_json *object, struct members *ret_members)
{
    struct weft_json_iter iter;
    *ret_members = (struct members){0};
    weft_json_iter_init(&iter, object);
    while (weft_json_next(&iter)) {
        if (weft_json_is(&iter.key, "custom_id"))
            ret_members->custom_id = iter.value;
        else if (weft_json_is(&iter.key, "method"))
            ret_members->method = iter.value;
        else if (weft_json_is(&iter.key, "url"))
            ret_members->url = iter.value;
        else if (weft_json_is(&iter.key, "body"))
            ret_members->body = iter.value;
    }
    if (ret_members->body.kind != WEFT_JSON_OBJECT)
        return;
    weft_json_iter_init(&iter, &ret_members->body);
    while (weft_json_next(&iter))
        if (weft_json_is(&iter.key, "model"))
            ret_members->model = iter.value;
}

/* A text of 1 to `most` bytes without control characters. */
static bool read_text(const struct weft_json *value, const char *name, size_t most,
                      struct weft_arena *arena, const char **ret_text, struct weft_batch_flaw *flaw)
{
    *ret_text = "";
    if (!value->text)
        return flawed(flaw, "missing_required_parameter", name, "%s is missing.", name);
    if (weft_json_string(value, arena, ret_text, NULL) || !**ret_text || strlen(*ret_text) > most ||
        !weft_text_printable(*ret_text, strlen(*ret_text)))
        return flawed(flaw, "invalid_value", name,
                      "%s must be a string of 1 to %zu bytes without control characters.", name,
                      most);
    return true;
}

static bool check_url(const char *url, struct weft_batch_flaw *flaw)
{
    static const char base[] = "/v1/";
    bool plain = weft_word_size(url, "/_-.") == strlen(url) && !strstr(url, "..");
    if (strncmp(url, base, sizeof(base) - 1) == 0 && url[sizeof(base) - 1] && plain)
        return true;
    return flawed(flaw, "invalid_url", "url", "url must be a path like /v1/chat/completions.");
}

bool weft_batch_line_read(const char *text, size_t size, struct weft_arena *arena,
                          struct weft_batch_line *ret_line, struct weft_batch_flaw *ret_flaw)
{
    struct weft_json value;
    struct members members;
    if (size > WEFT_BATCH_LINE_MAX)
        return flawed(ret_flaw, "line_too_long", NULL, "This line is longer than %d bytes.",
                      WEFT_BATCH_LINE_MAX);
    /* The body is put into another object, and has room for that. */
    if (weft_json_check_inside(text, size, 1, &value, NULL))
        return flawed(ret_flaw, "invalid_json_line", NULL,
                      "This line is not parseable as valid JSON.");
    if (value.kind != WEFT_JSON_OBJECT)
        return flawed(ret_flaw, "invalid_json_line", NULL, "This line is not a JSON object.");
    find_members(&value, &members);
    if (!read_text(&members.custom_id, "custom_id", WEFT_BATCH_CUSTOM_ID_MAX, arena,
                   &ret_line->custom_id, ret_flaw))
        return false;
    if (!members.method.text)
        return flawed(ret_flaw, "missing_required_parameter", "method", "method is missing.");
    if (!weft_json_is(&members.method, "POST"))
        return flawed(ret_flaw, "invalid_method", "method", "method must be POST.");
    if (!read_text(&members.url, "url", WEFT_BATCH_URL_MAX, arena, &ret_line->url, ret_flaw) ||
        !check_url(ret_line->url, ret_flaw))
        return false;
    if (members.body.kind != WEFT_JSON_OBJECT)
        return flawed(ret_flaw, members.body.text ? "invalid_value" : "missing_required_parameter",
                      "body", "body must be a JSON object.");
    ret_line->body = members.body;
    return read_text(&members.model, "body.model", WEFT_BATCH_MODEL_MAX, arena, &ret_line->model,
                     ret_flaw);
}

/* Each text with its NUL, so that none can run into the next. */
void weft_batch_fingerprint(const char *const *text, size_t count, uint8_t ret_fingerprint[32])
{
    struct weft_buf all;
    weft_buf_init(&all, SIZE_MAX);
    for (size_t i = 0; i < count; i++)
        weft_buf_add(&all, text[i], strlen(text[i]) + 1);
    SHA256((const uint8_t *)all.data, all.size, ret_fingerprint);
    weft_buf_done(&all);
}

/* ---- Flaws ----------------------------------------------------------------------------------- */

void weft_batch_flaws_init(struct weft_batch_flaws *flaws)
{
    *flaws = (struct weft_batch_flaws){0};
    weft_buf_init(&flaws->text, FLAWS_BYTES);
}

void weft_batch_flaws_done(struct weft_batch_flaws *flaws)
{
    weft_buf_done(&flaws->text);
}

void weft_batch_flaws_add(struct weft_batch_flaws *flaws, const struct weft_batch_flaw *flaw,
                          uint64_t line)
{
    struct weft_json_writer out;
    if (flaws->count++ >= WEFT_BATCH_ERRORS_MAX)
        return;
    if (flaws->count > 1)
        weft_buf_add_char(&flaws->text, ',');
    weft_json_writer_init(&out, &flaws->text);
    weft_json_begin_object(&out);
    weft_json_add_text(&out, "code", flaw->code);
    weft_json_add_text(&out, "message", flaw->message);
    weft_json_add_text(&out, "param", flaw->param);
    weft_json_key(&out, "line");
    if (line > 0)
        weft_json_put_i64(&out, (int64_t)line);
    else
        weft_json_put_null(&out);
    weft_json_end_object(&out);
}

/* ---- Custom ids that were met ---------------------------------------------------------------- */

/* 128 bits of SHA-256: no two ids of a file share them by accident or design. */
struct weft_batch_hash {
    uint64_t part[2]; /* both 0: free */
};

static struct weft_batch_hash hash_of(const char *custom_id)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    struct weft_batch_hash hash;
    SHA256((const uint8_t *)custom_id, strlen(custom_id), digest);
    memcpy(&hash, digest, sizeof(hash));
    hash.part[0] |= hash.part[0] == 0 && hash.part[1] == 0;
    return hash;
}

/* Where a hash is in the table, or the free place where it goes. */
static struct weft_batch_hash *place_of(struct weft_batch_hash *seen, size_t room,
                                        const struct weft_batch_hash *hash)
{
    size_t at = hash->part[0] & (room - 1);
    while ((seen[at].part[0] != hash->part[0] || seen[at].part[1] != hash->part[1]) &&
           (seen[at].part[0] != 0 || seen[at].part[1] != 0))
        at = (at + 1) & (room - 1);
    return &seen[at];
}

static void grow(struct weft_batch_check *check)
{
    size_t room = check->room ? 2 * check->room : FIRST_ROOM;
    struct weft_batch_hash *seen = weft_alloc(room, sizeof(*seen));
    for (size_t i = 0; i < check->room; i++)
        if (check->seen[i].part[0] != 0 || check->seen[i].part[1] != 0)
            *place_of(seen, room, &check->seen[i]) = check->seen[i];
    free(check->seen);
    check->seen = seen;
    check->room = room;
}

/* False: it was met before. */
static bool meet(struct weft_batch_check *check, const char *custom_id)
{
    if (4 * (check->used + 1) > 3 * check->room)
        grow(check);
    struct weft_batch_hash hash = hash_of(custom_id);
    struct weft_batch_hash *place = place_of(check->seen, check->room, &hash);
    if (place->part[0] != 0 || place->part[1] != 0)
        return false;
    *place = hash;
    check->used++;
    return true;
}

/* ---- A whole file ---------------------------------------------------------------------------- */

void weft_batch_check_init(struct weft_batch_check *check, uint64_t requests_max)
{
    *check = (struct weft_batch_check){.requests_max = requests_max, .arena = weft_arena_new()};
    weft_batch_flaws_init(&check->flaws);
    weft_buf_init(&check->line, WEFT_BATCH_LINE_MAX + 1);
}

void weft_batch_check_done(struct weft_batch_check *check)
{
    weft_batch_flaws_done(&check->flaws);
    weft_buf_done(&check->line);
    weft_arena_free(check->arena);
    free(check->seen);
}

static void check_line(struct weft_batch_check *check, const char *text, size_t size)
{
    struct weft_batch_line line = {.custom_id = ""};
    struct weft_batch_flaw flaw;
    check->lines++;
    if (weft_batch_line_blank(text, size))
        return;
    check->requests++;
    if (check->requests > check->requests_max) {
        if (check->requests == check->requests_max + 1) {
            (void)flawed(&flaw, "too_many_tasks", NULL, "The file has more than %llu requests.",
                         (unsigned long long)check->requests_max);
            weft_batch_flaws_add(&check->flaws, &flaw, check->lines);
        }
        return;
    }
    bool good = weft_batch_line_read(text, size, check->arena, &line, &flaw);
    if (good && !meet(check, line.custom_id))
        good = flawed(&flaw, "duplicate_custom_id", "custom_id",
                      "The custom_id '%.128s' is used by an earlier line.", line.custom_id);
    if (!good)
        weft_batch_flaws_add(&check->flaws, &flaw, check->lines);
    weft_arena_reset(check->arena);
}

/* Ends the line that was kept. */
static void end_kept(struct weft_batch_check *check)
{
    check_line(check, check->line.data, check->line.size);
    weft_buf_clear(&check->line);
}

/* Keeps the beginning of a line; of one that is too long just enough to show that it is. */
static void keep(struct weft_batch_check *check, const char *text, size_t size)
{
    size_t room = check->line.max - check->line.size;
    weft_buf_add(&check->line, text, size < room ? size : room);
}

void weft_batch_check_add(struct weft_batch_check *check, const char *data, size_t size)
{
    check->bytes += size;
    while (size > 0) {
        const char *end = memchr(data, '\n', size);
        size_t part = end ? (size_t)(end - data) : size;
        if (!end || check->line.size > 0 || part > WEFT_BATCH_LINE_MAX)
            keep(check, data, part);
        if (end && check->line.size > 0)
            end_kept(check);
        else if (end)
            check_line(check, data, part);
        part += end != NULL;
        data += part;
        size -= part;
    }
}

void weft_batch_check_end(struct weft_batch_check *check)
{
    if (check->line.size > 0)
        end_kept(check);
}
