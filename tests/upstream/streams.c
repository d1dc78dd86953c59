/* SPDX-License-Identifier: Apache-2.0 */

/* Paths in the form of OpenAI, whole and as streams of events, and compressed bodies. */

#include "upstream/upstream.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Streams of events ----------------------------------------------------------------------- */

/*
 * A stream is made whole in `more`, every event between EVENT_MARK bytes, and then said event by
 * event: most of what a client can get wrong depends on where the pieces end.
 */
enum { EVENT_MARK = 1, WORDS_MAX = 10000 };

static int64_t word_count(const struct request *request)
{
    int64_t count = query_number(request, "n", 5);
    return count < 0 ? 0 : count > WORDS_MAX ? WORDS_MAX : count;
}

static void add_words(struct bytes *text, int64_t count)
{
    for (int64_t i = 1; i <= count; i++)
        bytes_print(text, "%sword%" PRId64, i > 1 ? " " : "", i);
}

/* Adds an event with this data; kind: its "event:" line, or NULL. */
__attribute__((format(printf, 3, 4))) static void add_event(struct connection *connection,
                                                            const char *kind, const char *fmt, ...)
{
    const struct request *request = &connection->request;
    const char *end = query_number(request, "crlf", 0) ? "\r\n" : "\n";
    char data[16384];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(data, sizeof(data), fmt, args);
    va_end(args);
    if (query_number(request, "comment", 0))
        bytes_print(&connection->more, ": still here%s%s", end, end);
    if (kind)
        bytes_print(&connection->more, "event: %s%s", kind, end);
    bytes_print(&connection->more, "data: %s%s%s%c", data, end, end, EVENT_MARK);
}

#define CHAT_CHUNK                                                                                 \
    "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,"          \
    "\"model\":\"mock\",\"choices\":["

static void make_chat(struct connection *connection)
{
    int64_t count = word_count(&connection->request);
    add_event(connection, NULL,
              CHAT_CHUNK
              "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
              "\"finish_reason\":null}]}");
    for (int64_t i = 1; i <= count; i++)
        add_event(connection, NULL,
                  CHAT_CHUNK "{\"index\":0,\"delta\":{\"content\":\"%sword%" PRId64
                             "\"},"
                             "\"finish_reason\":null}]}",
                  i > 1 ? " " : "", i);
    add_event(connection, NULL,
              CHAT_CHUNK "{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}");
    add_event(connection, NULL,
              CHAT_CHUNK "],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":%" PRId64
                         ",\"total_tokens\":%" PRId64 "}}",
              count, count + 7);
    add_event(connection, NULL, "[DONE]");
}

/* The object that a stream tells about, when it has come so far. */
static void add_response(struct bytes *json, const char *status, int64_t count)
{
    bytes_print(json,
                "{\"id\":\"resp_1\",\"object\":\"response\",\"created_at\":1700000000,"
                "\"status\":\"%s\",\"model\":\"mock\",\"output\":[",
                status);
    if (count >= 0) {
        bytes_print(json,
                    "{\"id\":\"msg_1\",\"type\":\"message\",\"status\":\"completed\","
                    "\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\","
                    "\"text\":\"");
        add_words(json, count);
        bytes_print(json,
                    "\",\"annotations\":[]}]}],\"usage\":{\"input_tokens\":7,"
                    "\"output_tokens\":%" PRId64 ",\"total_tokens\":%" PRId64 "}}",
                    count, count + 7);
    } else {
        bytes_print(json, "],\"usage\":null}");
    }
    bytes_add(json, "", 1);
}

static void make_responses(struct connection *connection)
{
    static const char place[] = "\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0";
    int64_t count = word_count(&connection->request), number = 0;
    struct bytes json = {0}, text = {0};
    add_words(&text, count);
    bytes_add(&text, "", 1);
    add_response(&json, "in_progress", -1);
#define EVENT(kind, fmt, ...)                                                                      \
    add_event(connection, kind, "{\"type\":\"" kind "\",\"sequence_number\":%" PRId64 "," fmt "}", \
              number++, __VA_ARGS__)
    EVENT("response.created", "\"response\":%s", json.data);
    EVENT("response.output_item.added",
          "\"output_index\":%d,\"item\":{\"id\":\"msg_1\","
          "\"type\":\"message\",\"status\":\"in_progress\",\"role\":\"assistant\",\"content\":[]}",
          0);
    EVENT("response.content_part.added",
          "%s,\"part\":{\"type\":\"output_text\",\"text\":\"\",\"annotations\":[]}", place);
    for (int64_t i = 1; i <= count; i++)
        EVENT("response.output_text.delta", "%s,\"delta\":\"%sword%" PRId64 "\"", place,
              i > 1 ? " " : "", i);
    EVENT("response.output_text.done", "%s,\"text\":\"%s\"", place, text.data);
    json.size = 0;
    add_response(&json, "completed", count);
    EVENT("response.completed", "\"response\":%s", json.data);
#undef EVENT
    bytes_done(&json);
    bytes_done(&text);
}

/* An event, or a piece of ?bytes=K of it. */
static void say_event(struct connection *connection)
{
    const struct request *request = &connection->request;
    struct bytes *more = &connection->more;
    const char *at = more->data + connection->more_at;
    size_t left = more->size - connection->more_at;
    if (left == 0) {
        say(connection, "0\r\n\r\n");
        end_answer(connection, KEEP);
        return;
    }
    if (connection->count == query_number(request, "stop", -1)) {
        end_answer(connection, CLOSE);
        return;
    }
    if (connection->count == query_number(request, "stall", -1)) {
        hold(connection);
        return;
    }
    const char *mark = memchr(at, EVENT_MARK, left);
    size_t size = mark ? (size_t)(mark - at) : left;
    int64_t piece = query_number(request, "bytes", 0);
    if (piece > 0 && (size_t)piece < size)
        size = (size_t)piece;
    else
        connection->more_at++, connection->count++; /* past the mark */
    connection->more_at += size;
    say_chunk(connection, at, size);
    step_after(connection, query_number(request, "ms", 0), say_event);
}

static void begin_stream(struct connection *connection)
{
    const char *path = connection->request.path;
    if (strstr(path, "responses"))
        make_responses(connection);
    else
        make_chat(connection);
    say_head(connection, 200, "Content-Type: text/event-stream; charset=utf-8\r\n", IN_CHUNKS);
    step_after(connection, query_number(&connection->request, "ms", 0), say_event);
}

/* Asked for a stream or not, as the body says. */
static void answer_openai(struct connection *connection)
{
    const struct request *request = &connection->request;
    static const char wish[] = "\"stream\":true", wish_spaced[] = "\"stream\": true";
    const struct bytes *body = &request->body;
    if (body->size > 0 && (memmem(body->data, body->size, wish, sizeof(wish) - 1) ||
                           memmem(body->data, body->size, wish_spaced, sizeof(wish_spaced) - 1))) {
        begin_stream(connection);
        return;
    }
    int64_t count = word_count(request);
    struct bytes json = {0};
    if (strstr(request->path, "responses")) {
        add_response(&json, "completed", count);
    } else {
        bytes_print(&json,
                    "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\","
                    "\"created\":1700000000,\"model\":\"mock\",\"choices\":[{\"index\":0,"
                    "\"message\":{\"role\":\"assistant\",\"content\":\"");
        add_words(&json, count);
        bytes_print(&json,
                    "\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":7,"
                    "\"completion_tokens\":%" PRId64 ",\"total_tokens\":%" PRId64 "}}",
                    count, count + 7);
        bytes_add(&json, "", 1);
    }
    say_json(connection, 200, NULL, json.data);
    bytes_done(&json);
    end_answer(connection, KEEP);
}

/* ---- Compressed bodies, made by hand ----------------------------------------------------------
 */

static const char plain_text[] = "{\"ok\":true}";

static void add_number(struct bytes *bytes, uint32_t number, int count, bool high_first)
{
    for (int i = 0; i < count; i++) {
        char byte = (char)(number >> (8 * (high_first ? count - 1 - i : i)));
        bytes_add(bytes, &byte, 1);
    }
}

/* A block of deflate that is stored as it is. */
static void add_stored(struct bytes *bytes, const char *data, size_t size)
{
    bytes_add(bytes, "\1", 1);
    add_number(bytes, (uint32_t)size, 2, false);
    add_number(bytes, (uint32_t)~size, 2, false);
    bytes_add(bytes, data, size);
}

static uint32_t crc32_of(const char *data, size_t size)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned char)data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static uint32_t adler32_of(const char *data, size_t size)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < size; i++) {
        a = (a + (unsigned char)data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* Method 8, no flags, no time, no extra flags, made by Unix. */
static const char gzip_head[10] = "\x1f\x8b\x08\0\0\0\0\0\0\x03";

static void answer_gzip(struct connection *connection)
{
    bool cut = path_is(&connection->request, "/gzip-cut");
    struct bytes body = {0};
    bytes_add(&body, gzip_head, sizeof(gzip_head));
    add_stored(&body, plain_text, sizeof(plain_text) - 1);
    add_number(&body, crc32_of(plain_text, sizeof(plain_text) - 1), 4, false);
    add_number(&body, sizeof(plain_text) - 1, 4, false);
    body.size -= cut ? 12 : 0;
    say_head(connection, 200, "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
             (int64_t)body.size);
    bytes_add(&connection->out, body.data, body.size);
    bytes_done(&body);
    end_answer(connection, KEEP);
}

static void answer_deflate(struct connection *connection)
{
    struct bytes body = {0};
    bytes_add(&body, "\x78\x01", 2);
    add_stored(&body, plain_text, sizeof(plain_text) - 1);
    add_number(&body, adler32_of(plain_text, sizeof(plain_text) - 1), 4, true);
    say_head(connection, 200, "Content-Type: application/json\r\nContent-Encoding: deflate\r\n",
             (int64_t)body.size);
    bytes_add(&connection->out, body.data, body.size);
    bytes_done(&body);
    end_answer(connection, KEEP);
}

/*
 * With the fixed codes of deflate a block begins with 010 (not the last one, fixed codes), a zero
 * byte is 00110000, and "the last byte 258 times again" 1100010100000. Bits fill bytes from the
 * right. 8 of these 13 bits are 13 bytes, so 2064 zeros are the same 13 bytes each time.
 */
static const char bomb_begin[] = "01000110000", bomb_again[] = "1100010100000";
enum { BEGIN_BITS = sizeof(bomb_begin) - 1, AGAIN_BITS = sizeof(bomb_again) - 1 };

/* The bits of a bomb from the first-th on, 8 for each byte. */
static void add_bomb(struct bytes *bytes, int first, int count)
{
    for (int i = first; i < first + count * 8; i += 8) {
        unsigned char byte = 0;
        for (int bit = 0; bit < 8; bit++) {
            int at = i + bit;
            const char *code =
                at < BEGIN_BITS ? &bomb_begin[at] : &bomb_again[(at - BEGIN_BITS) % AGAIN_BITS];
            byte = (unsigned char)(byte | (*code == '1') << bit);
        }
        bytes_add(bytes, &byte, 1);
    }
}

static void say_bomb(struct connection *connection)
{
    enum { TIMES = 4096 };
    const struct bytes *again = &connection->more;
    for (int i = 0; i < TIMES; i++)
        bytes_add(&connection->out, again->data, again->size);
    step_after(connection, 0, say_bomb);
}

static void answer_bomb(struct connection *connection)
{
    say_head(connection, 200, "Content-Encoding: gzip\r\nConnection: close\r\n", NO_LENGTH);
    bytes_add(&connection->out, gzip_head, sizeof(gzip_head));
    add_bomb(&connection->out, 0, 2);
    add_bomb(&connection->more, 16, AGAIN_BITS);
    step_after(connection, 0, say_bomb);
}

const struct behaviour stream_behaviour[] = {
    {"/v1/chat/completions", answer_openai, false, false},
    {"/v1/responses", answer_openai, false, false},
    {"/sse/chat", begin_stream, false, false},
    {"/sse/responses", begin_stream, false, false},
    {"/gzip", answer_gzip, false, false},
    {"/gzip-cut", answer_gzip, false, false},
    {"/deflate", answer_deflate, false, false},
    {"/gzip-bomb", answer_bomb, false, false},
    {NULL, NULL, false, false},
};
