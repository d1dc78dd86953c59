/* SPDX-License-Identifier: Apache-2.0 */

/* A line is put together on the stack and written at once; there is no lock and no allocation. */

#include "base/log.h"

#include "base/json.h"
#include "base/moment.h"
#include "base/str.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The rest is reserved for the end of a line: cut mark, closing brace, newline. */
enum { LINE_ROOM = WEFT_LOG_LINE_MAX - 16 };

struct line {
    enum weft_log_format format;
    size_t size;
    bool cut;
    char byte[WEFT_LOG_LINE_MAX];
};

static _Atomic int log_level = WEFT_SILENT;
static _Atomic int log_format = WEFT_LOGFMT;
static _Atomic int log_fd = -1;

static const char *const level_word[WEFT_LEVEL_COUNT] = {
    [WEFT_SILENT] = "silent", [WEFT_ERROR] = "error", [WEFT_WARN] = "warn",
    [WEFT_INFO] = "info",     [WEFT_DEBUG] = "debug",
};

void weft_log_init(enum weft_level level, enum weft_log_format format, int fd)
{
    atomic_store(&log_format, (int)format);
    atomic_store(&log_fd, fd);
    atomic_store(&log_level, (int)level);
}

bool weft_level_parse(const char *word, enum weft_level *ret_level)
{
    for (unsigned i = 0; i < WEFT_LEVEL_COUNT; i++) {
        if (strcmp(word, level_word[i]) == 0) {
            *ret_level = (enum weft_level)i;
            return true;
        }
    }
    return false;
}

/* Appends all of it or nothing, leaving `kept` bytes free. */
static bool add(struct line *line, const char *data, size_t size, size_t kept)
{
    if (size + kept > LINE_ROOM - line->size) {
        line->cut = true;
        return false;
    }
    memcpy(line->byte + line->size, data, size);
    line->size += size;
    return true;
}

/* True if logfmt needs no quotes around it. */
static bool is_bare(const char *text)
{
    return text[0] && text[weft_word_size(text, "_.:/+-")] == '\0';
}

static void add_text(struct line *line, const char *text)
{
    if (line->format == WEFT_LOGFMT && is_bare(text) && strlen(text) <= LINE_ROOM - line->size) {
        (void)add(line, text, strlen(text), 0);
        return;
    }
    const char *end = text + strlen(text);
    bool room = add(line, "\"", 1, 1);
    assert(room); /* add_key() kept it */
    while (room && text < end) {
        char out[WEFT_JSON_ESCAPE_MAX];
        size_t size;
        text += weft_json_escape(text, (size_t)(end - text), out, &size);
        room = add(line, out, size, 1);
    }
    (void)add(line, "\"", 1, 0);
}

/* The key with its separators; false when it and the shortest value do not fit. */
static bool add_key(struct line *line, const char *key)
{
    enum { LEAST = 40 }; /* an id with quotes, or any number, or an empty string */
    bool first = line->size == 0;
    size_t size = strlen(key);
    if (line->format == WEFT_LOG_JSON)
        return add(line, first ? "{\"" : ",\"", 2, size + 4 + LEAST) && add(line, key, size, 0) &&
               add(line, "\":", 2, 0);
    return add(line, " ", first ? 0 : 1, size + 2 + LEAST) && add(line, key, size, 0) &&
           add(line, "=", 1, 0);
}

static void add_field(struct line *line, const struct weft_field *field)
{
    if (!add_key(line, field->key))
        return;
    char number[WEFT_NUMBER_TEXT], id[WEFT_ID_TEXT];
    switch (field->kind) {
    case WEFT_F_STR:
        if (field->u.str)
            add_text(line, field->u.str);
        else
            (void)add(line, "null", 4, 0);
        return;
    case WEFT_F_I64:
        (void)add(line, number, weft_i64_print(field->u.i64, number), 0);
        return;
    case WEFT_F_U64:
        (void)add(line, number, weft_u64_print(field->u.u64, number), 0);
        return;
    case WEFT_F_BOOL:
        (void)add(line, field->u.boolean ? "true" : "false", field->u.boolean ? 4 : 5, 0);
        return;
    case WEFT_F_ID:
        weft_id_print(field->u.id, id);
        add_text(line, id);
        return;
    case WEFT_F_NONE:
        assert(field->kind != WEFT_F_NONE);
        return;
    }
}

static void add_time(struct line *line)
{
    struct timespec now;
    char text[WEFT_MOMENT_TEXT + 3], *end = text + WEFT_MOMENT_TEXT - 2;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    weft_moment_print(now.tv_sec * WEFT_SECOND + now.tv_nsec / 1000, text);
    for (long left = now.tv_nsec / 1000 % 1000, part = 100; part > 0; left %= part, part /= 10)
        *end++ = (char)('0' + left / part); /* microseconds order the lines of one millisecond */
    memcpy(end, "Z", 2);
    add_field(line, &F_STR("ts", text));
}

static void add_end(struct line *line)
{
    bool json = line->format == WEFT_LOG_JSON;
    const char *end = json ? "}\n" : "\n";
    if (line->cut)
        end = json ? ",\"cut\":true}\n" : " cut=true\n";
    memcpy(line->byte + line->size, end, strlen(end));
    line->size += strlen(end);
    assert(line->size <= sizeof(line->byte));
}

/* ---- Collecting ------------------------------------------------------------------------------ */

enum { COLLECT_BYTES = 64 << 10 };

static _Thread_local struct {
    char *data; /* owned; NULL: lines are written one by one */
    size_t size;
} collected;

/* A failed write of the log cannot be reported anywhere. */
static void put_out(const char *data, size_t size)
{
    ssize_t written = write(atomic_load(&log_fd), data, size);
    (void)written;
}

void weft_log_collect(void)
{
    collected.data = malloc(COLLECT_BYTES); /* without it lines are written one by one, as before */
    collected.size = 0;
}

void weft_log_flush(void)
{
    if (collected.size > 0)
        put_out(collected.data, collected.size);
    collected.size = 0;
}

void weft_log_collect_end(void)
{
    weft_log_flush();
    free(collected.data);
    collected.data = NULL;
}

void weft_log(enum weft_level level, const char *message, const struct weft_field field[])
{
    assert(level != WEFT_SILENT);
    if ((int)level > atomic_load_explicit(&log_level, memory_order_relaxed))
        return;
    struct line line; /* the bytes are not zeroed: only what was added is read */
    line.format = (enum weft_log_format)atomic_load(&log_format);
    line.size = 0;
    line.cut = false;
    add_time(&line);
    add_field(&line, &F_STR("level", level_word[level]));
    add_field(&line, &F_STR("msg", message));
    for (; field->key; field++)
        add_field(&line, field);
    add_end(&line);
    if (!collected.data || level < WEFT_INFO || line.size > COLLECT_BYTES - collected.size)
        weft_log_flush(); /* keeps the order of the lines of one thread */
    if (!collected.data || level < WEFT_INFO) {
        put_out(line.byte, line.size);
        return;
    }
    memcpy(collected.data + collected.size, line.byte, line.size);
    collected.size += line.size;
}
