/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parser keeps no state: after each read it starts at the first byte of the answer. Heads are
 * short, so that costs less than keeping a state.
 */

#include "cmd/bench/bench_http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    HEAD_MAX = 65536,
    BODY_MAX = 1 << 30,
    RETRY_AFTER_MAX_S = 3600,
};

struct head {
    int status;
    int64_t length; /* -1: no Content-Length */
    bool chunked, closes;
    int64_t retry_after_ms;
    size_t size;
};

static enum weft_bench_parsed bad(struct weft_err *err, const char *what)
{
    (void)weft_fail(err, WEFT_UNAVAILABLE, "the server's answer is not understood: %s", what);
    return WEFT_BENCH_BAD;
}

/* ---- The head -------------------------------------------------------------------------------- */

/* Digits and nothing else; -1 for what is none or too large. */
static int64_t read_digits(const char *text, size_t size, int64_t max)
{
    int64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = value * 10 + (text[i] - '0');
        if (value > max)
            return -1;
    }
    return size > 0 ? value : -1;
}

static bool is_word(const char *text, size_t size, const char *word)
{
    return size == strlen(word) && strncasecmp(text, word, size) == 0;
}

static bool read_status(const char *line, size_t size, struct head *head)
{
    if (size < 12 || memcmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') ||
        line[8] != ' ' || (size > 12 && line[12] != ' '))
        return false;
    head->status = (int)read_digits(line + 9, 3, 999);
    head->closes = line[7] == '0';
    return head->status >= 100;
}

static const char *read_field(const char *line, size_t size, struct head *head)
{
    const char *colon = memchr(line, ':', size);
    if (!colon || colon == line)
        return "a header line has no name";
    size_t name = (size_t)(colon - line);
    const char *value = colon + 1, *end = line + size;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    size_t length = (size_t)(end - value);
    if (is_word(line, name, "Content-Length")) {
        int64_t said = read_digits(value, length, BODY_MAX);
        if (said < 0 || (head->length >= 0 && head->length != said))
            return "its Content-Length is no number";
        head->length = said;
    } else if (is_word(line, name, "Transfer-Encoding")) {
        if (!is_word(value, length, "chunked"))
            return "its Transfer-Encoding is not chunked";
        head->chunked = true;
    } else if (is_word(line, name, "Connection")) {
        head->closes = is_word(value, length, "close");
    } else if (is_word(line, name, "Retry-After")) {
        int64_t seconds = read_digits(value, length, RETRY_AFTER_MAX_S);
        head->retry_after_ms = seconds < 0 ? -1 : seconds * 1000;
    }
    return NULL;
}

static enum weft_bench_parsed read_head(const char *data, size_t size, struct head *head,
                                        struct weft_err *err)
{
    const char *end = memmem(data, size, "\r\n\r\n", 4);
    if (!end)
        return size > HEAD_MAX ? bad(err, "its head does not end") : WEFT_BENCH_MORE;
    *head = (struct head){.length = -1, .retry_after_ms = -1, .size = (size_t)(end - data) + 4};
    const char *line = data;
    for (const char *next; line < end + 2; line = next + 2) {
        next = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
        size_t length = (size_t)(next - line);
        if (line == data) {
            if (!read_status(line, length, head))
                return bad(err, "it does not begin with an HTTP/1.1 status");
            continue;
        }
        const char *why = read_field(line, length, head);
        if (why)
            return bad(err, why);
    }
    if (head->chunked && head->length >= 0)
        return bad(err, "it is chunked and has a Content-Length");
    return WEFT_BENCH_WHOLE;
}

/* ---- The body -------------------------------------------------------------------------------- */

static int read_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20; /* small letters */
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The size of a chunk in hex, with extensions after it that mean nothing to us. */
static int64_t read_chunk_size(const char *line, size_t size)
{
    int64_t value = 0;
    size_t i = 0;
    for (; i < size && line[i] != ';' && line[i] != ' '; i++) {
        int digit = read_hex(line[i]);
        value = value * 16 + digit;
        if (digit < 0 || value > BODY_MAX)
            return -1;
    }
    return i > 0 ? value : -1;
}

/*
 * Walks over chunks. With `together` the data of all is moved to the front; that is done only after
 * a walk that found the end.
 */
static enum weft_bench_parsed walk_chunks(char *data, size_t size, bool together, size_t *ret_body,
                                          size_t *ret_total, struct weft_err *err)
{
    size_t at = 0, body = 0;
    for (;;) {
        const char *end = memmem(data + at, size - at, "\r\n", 2);
        if (!end)
            return WEFT_BENCH_MORE;
        size_t line = (size_t)(end - data) - at;
        int64_t chunk = read_chunk_size(data + at, line);
        if (chunk < 0)
            return bad(err, "the size of a chunk is no number");
        at += line + 2;
        if (chunk == 0)
            break;
        if (size - at < (size_t)chunk + 2)
            return WEFT_BENCH_MORE;
        if (memcmp(data + at + chunk, "\r\n", 2) != 0)
            return bad(err, "a chunk does not end where it should");
        if (together)
            memmove(data + body, data + at, (size_t)chunk);
        body += (size_t)chunk;
        at += (size_t)chunk + 2;
    }
    for (;;) { /* trailers, then an empty line */
        const char *end = memmem(data + at, size - at, "\r\n", 2);
        if (!end)
            return WEFT_BENCH_MORE;
        size_t line = (size_t)(end - data) - at;
        at += line + 2;
        if (line == 0)
            break;
    }
    *ret_body = body;
    *ret_total = at;
    return WEFT_BENCH_WHOLE;
}

static enum weft_bench_parsed read_body(const struct head *head, char *data, size_t size,
                                        bool ended, struct weft_bench_answer *answer,
                                        struct weft_err *err)
{
    answer->body = data;
    size_t total = 0;
    if (head->status == 204 || head->status == 304)
        return WEFT_BENCH_WHOLE;
    if (head->chunked) {
        enum weft_bench_parsed parsed =
            walk_chunks(data, size, false, &answer->body_size, &total, err);
        if (parsed == WEFT_BENCH_WHOLE)
            parsed = walk_chunks(data, size, true, &answer->body_size, &total, err);
        answer->total += total;
        return parsed;
    }
    if (head->length < 0) { /* the end of the connection is the end of the body */
        answer->body_size = size;
        answer->total += size;
        answer->closes = true;
        return ended ? WEFT_BENCH_WHOLE : WEFT_BENCH_MORE;
    }
    answer->body_size = (size_t)head->length;
    answer->total += (size_t)head->length;
    return size >= answer->body_size ? WEFT_BENCH_WHOLE : WEFT_BENCH_MORE;
}

enum weft_bench_parsed weft_bench_parse(char *data, size_t size, bool ended,
                                        struct weft_bench_answer *ret_answer, struct weft_err *err)
{
    struct head head;
    size_t at = 0;
    enum weft_bench_parsed parsed;
    do {
        parsed = read_head(data + at, size - at, &head, err);
        if (parsed == WEFT_BENCH_WHOLE)
            at += head.size;
    } while (parsed == WEFT_BENCH_WHOLE && head.status < 200 && head.status != 101);
    if (parsed == WEFT_BENCH_WHOLE && head.status == 101)
        return bad(err, "it switches to another protocol");
    struct weft_bench_answer answer = {0};
    if (parsed == WEFT_BENCH_WHOLE) {
        answer = (struct weft_bench_answer){.status = head.status,
                                            .total = at,
                                            .closes = head.closes,
                                            .retry_after_ms = head.retry_after_ms};
        parsed = read_body(&head, data + at, size - at, ended, &answer, err);
    }
    if (parsed == WEFT_BENCH_WHOLE)
        *ret_answer = answer;
    if (parsed == WEFT_BENCH_MORE && ended)
        return bad(err, size > 0 ? "it ends in the middle" : "there is none");
    return parsed;
}
