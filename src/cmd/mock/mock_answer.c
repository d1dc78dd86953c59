/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers. Everything in them follows from the request; which requests fail, and how long each
 * takes, follows from their number. A token is a word.
 */

#include "base/json.h"
#include "base/str.h"
#include "cmd/mock/mock.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CREATED = 1767225600 /* a moment for all answers */, RETRY_AFTER_S = 1, ID_TEXT = 40 };

/* FNV-1a, then mixed so that neighbours differ in all bits. */
static uint64_t mix(uint64_t number)
{
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    number = (number ^ number >> 27) * 0x94d049bb133111eb;
    return number ^ number >> 31;
}

static uint64_t hash(const char *text, size_t size)
{
    uint64_t sum = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ (unsigned char)text[i]) * 0x100000001b3;
    return mix(sum);
}

/* From 0 up to 1. */
static double share_of(uint64_t number)
{
    return (double)(number >> 11) / (double)(1ull << 53);
}

struct mock_answer weft_mock_refuse(int status, const char *message, struct weft_buf *out)
{
    struct weft_json_writer json;
    weft_buf_clear(out);
    weft_json_writer_init(&json, out);
    weft_json_begin_object(&json);
    weft_json_add_object(&json, "error");
    weft_json_add_text(&json, "message", message);
    weft_json_add_text(&json, "type",
                       status == 429   ? "rate_limit_error"
                       : status >= 500 ? "server_error"
                                       : "invalid_request_error");
    weft_json_key(&json, "param");
    weft_json_put_null(&json);
    weft_json_add_text(&json, "code", status == 429 ? "rate_limit_exceeded" : NULL);
    weft_json_end_object(&json);
    weft_json_end_object(&json);
    return (struct mock_answer){.status = status,
                                .retry_after_s = status == 429 ? RETRY_AFTER_S : 0};
}

/* ---- What answers share ---------------------------------------------------------------------- */

struct reply {
    const struct mock_input *input;
    struct weft_json_writer json;
    const char *text; /* in arena */
    size_t words;     /* of it */
    char id[ID_TEXT];
    struct weft_buf *out;
};

/* The echo, or its words again and again until there are as many as wanted. */
static const char *make_text(const struct mock_settings *settings, const char *echo,
                             struct weft_arena *arena)
{
    if (settings->tokens == 0)
        return *echo ? echo : "(nothing)";
    struct weft_buf buf;
    const char *at = echo;
    weft_buf_init(&buf, SIZE_MAX);
    for (int64_t i = 0; i < settings->tokens; i++) {
        at += strspn(at, " \t\r\n");
        if (!*at)
            at = echo + strspn(echo, " \t\r\n");
        size_t size = strcspn(at, " \t\r\n");
        weft_buf_add(&buf, " ", i > 0);
        weft_buf_add(&buf, size ? at : "word", size ? size : 4);
        at += size;
    }
    const char *text = weft_arena_strdup(arena, buf.data);
    weft_buf_done(&buf);
    return text;
}

static void begin(struct reply *reply, const char *object)
{
    weft_json_writer_init(&reply->json, reply->out);
    weft_json_begin_object(&reply->json);
    weft_json_add_text(&reply->json, "id", reply->id);
    weft_json_add_text(&reply->json, "object", object);
    weft_json_add_i64(&reply->json, "created", CREATED);
    weft_json_add_text(&reply->json, "model", reply->input->model);
}

static void add_usage(struct reply *reply, const char *in, const char *out)
{
    struct weft_json_writer *json = &reply->json;
    weft_json_add_object(json, "usage");
    weft_json_add_i64(json, in, (int64_t)reply->input->words);
    if (out)
        weft_json_add_i64(json, out, (int64_t)reply->words);
    weft_json_add_i64(json, "total_tokens",
                      (int64_t)(reply->input->words + (out ? reply->words : 0)));
    weft_json_end_object(json);
}

static void begin_event(struct reply *reply, const char *name)
{
    if (name)
        weft_buf_printf(reply->out, "event: %s\n", name);
    weft_buf_add_text(reply->out, "data: ");
}

static void end_event(struct reply *reply)
{
    weft_json_end_object(&reply->json);
    weft_buf_add_text(reply->out, "\n\n");
}

/* The next word of a text with the blanks before it; false: there is none. */
static bool next_piece(const char **at, char *ret_piece, size_t max)
{
    size_t size = strspn(*at, " \t\r\n");
    size += strcspn(*at + size, " \t\r\n");
    size = weft_utf8_cut(*at, size, max - 1);
    memcpy(ret_piece, *at, size);
    ret_piece[size] = '\0';
    *at += size;
    return size > 0;
}

/* ---- Chats and completions ------------------------------------------------------------------- */

/* What a choice holds: a message or a delta of a chat, or the text of a completion. */
static void add_choice(struct reply *reply, bool chat, const char *role, const char *text,
                       const char *finish)
{
    struct weft_json_writer *json = &reply->json;
    weft_json_add_array(json, "choices");
    weft_json_begin_object(json);
    weft_json_add_i64(json, "index", 0);
    if (chat) {
        weft_json_add_object(json, reply->input->stream ? "delta" : "message");
        if (role)
            weft_json_add_text(json, "role", role);
        if (text)
            weft_json_add_text(json, "content", text);
        weft_json_end_object(json);
    } else {
        weft_json_add_text(json, "text", text ? text : "");
    }
    weft_json_key(json, "logprobs");
    weft_json_put_null(json);
    weft_json_add_text(json, "finish_reason", finish);
    weft_json_end_object(json);
    weft_json_end_array(json);
}

static void add_chunk(struct reply *reply, bool chat, const char *role, const char *text,
                      const char *finish)
{
    begin_event(reply, NULL);
    begin(reply, chat ? "chat.completion.chunk" : "text_completion");
    add_choice(reply, chat, role, text, finish);
    end_event(reply);
}

static void write_chunks(struct reply *reply, bool chat)
{
    char piece[256];
    if (chat)
        add_chunk(reply, chat, "assistant", "", NULL);
    for (const char *at = reply->text; next_piece(&at, piece, sizeof(piece));)
        add_chunk(reply, chat, NULL, piece, NULL);
    add_chunk(reply, chat, NULL, NULL, "stop");
    if (reply->input->stream_usage) {
        begin_event(reply, NULL);
        begin(reply, chat ? "chat.completion.chunk" : "text_completion");
        weft_json_add_array(&reply->json, "choices");
        weft_json_end_array(&reply->json);
        add_usage(reply, "prompt_tokens", "completion_tokens");
        end_event(reply);
    }
    weft_buf_add_text(reply->out, "data: [DONE]\n\n");
}

static void write_completion(struct reply *reply, bool chat)
{
    if (reply->input->stream) {
        write_chunks(reply, chat);
        return;
    }
    begin(reply, chat ? "chat.completion" : "text_completion");
    add_choice(reply, chat, "assistant", reply->text, "stop");
    add_usage(reply, "prompt_tokens", "completion_tokens");
    weft_json_end_object(&reply->json);
}

static void write_chat(struct reply *reply)
{
    write_completion(reply, true);
}

static void write_text(struct reply *reply)
{
    write_completion(reply, false);
}

/* ---- Responses ------------------------------------------------------------------------------- */

static void put_response(struct reply *reply, bool complete)
{
    struct weft_json_writer *json = &reply->json;
    weft_json_begin_object(json);
    weft_json_add_text(json, "id", reply->id);
    weft_json_add_text(json, "object", "response");
    weft_json_add_i64(json, "created_at", CREATED);
    weft_json_add_text(json, "status", complete ? "completed" : "in_progress");
    weft_json_add_text(json, "model", reply->input->model);
    weft_json_add_array(json, "output");
    if (complete) {
        weft_json_begin_object(json);
        weft_json_add_text(json, "type", "message");
        weft_json_add_text(json, "id", "msg_mock");
        weft_json_add_text(json, "status", "completed");
        weft_json_add_text(json, "role", "assistant");
        weft_json_add_array(json, "content");
        weft_json_begin_object(json);
        weft_json_add_text(json, "type", "output_text");
        weft_json_add_text(json, "text", reply->text);
        weft_json_add_array(json, "annotations");
        weft_json_end_array(json);
        weft_json_end_object(json);
        weft_json_end_array(json);
        weft_json_end_object(json);
    }
    weft_json_end_array(json);
    if (complete)
        add_usage(reply, "input_tokens", "output_tokens");
    weft_json_end_object(json);
}

static void begin_step(struct reply *reply, const char *type, int64_t sequence)
{
    begin_event(reply, type);
    weft_json_writer_init(&reply->json, reply->out);
    weft_json_begin_object(&reply->json);
    weft_json_add_text(&reply->json, "type", type);
    weft_json_add_i64(&reply->json, "sequence_number", sequence);
}

static void write_response(struct reply *reply)
{
    char piece[256];
    int64_t sequence = 0;
    if (!reply->input->stream) {
        weft_json_writer_init(&reply->json, reply->out);
        put_response(reply, true);
        return;
    }
    begin_step(reply, "response.created", sequence++);
    weft_json_key(&reply->json, "response");
    put_response(reply, false);
    end_event(reply);
    for (const char *at = reply->text; next_piece(&at, piece, sizeof(piece));) {
        begin_step(reply, "response.output_text.delta", sequence++);
        weft_json_add_text(&reply->json, "item_id", "msg_mock");
        weft_json_add_i64(&reply->json, "output_index", 0);
        weft_json_add_i64(&reply->json, "content_index", 0);
        weft_json_add_text(&reply->json, "delta", piece);
        end_event(reply);
    }
    begin_step(reply, "response.completed", sequence);
    weft_json_key(&reply->json, "response");
    put_response(reply, true);
    end_event(reply);
}

/* ---- Embeddings and models ------------------------------------------------------------------- */

/* Numbers from -1 to 1 that follow from the text, as floats in the order of little machines. */
static void put_embedding(struct reply *reply, const char *text)
{
    size_t count = reply->input->dimensions;
    uint64_t seed = hash(text, strlen(text));
    struct weft_buf bytes;
    if (!reply->input->base64) {
        weft_json_begin_array(&reply->json);
        for (size_t i = 0; i < count; i++)
            weft_json_put_double(&reply->json, (float)(share_of(mix(seed + i)) * 2 - 1));
        weft_json_end_array(&reply->json);
        return;
    }
    weft_buf_init(&bytes, SIZE_MAX);
    for (size_t i = 0; i < count; i++) {
        float number = (float)(share_of(mix(seed + i)) * 2 - 1);
        uint32_t bits;
        memcpy(&bits, &number, sizeof(bits));
        bits = htole32(bits);
        weft_buf_add(&bytes, &bits, sizeof(bits));
    }
    char *base64 = weft_alloc(WEFT_BASE64_SIZE(bytes.size) + 1, 1);
    (void)weft_base64_encode(bytes.data, bytes.size, base64);
    weft_json_put_text(&reply->json, base64);
    free(base64);
    weft_buf_done(&bytes);
}

static void write_embeddings(struct reply *reply)
{
    struct weft_json_writer *json = &reply->json;
    weft_json_writer_init(json, reply->out);
    weft_json_begin_object(json);
    weft_json_add_text(json, "object", "list");
    weft_json_add_array(json, "data");
    for (size_t i = 0; i < reply->input->count; i++) {
        weft_json_begin_object(json);
        weft_json_add_text(json, "object", "embedding");
        weft_json_add_i64(json, "index", (int64_t)i);
        weft_json_key(json, "embedding");
        put_embedding(reply, reply->input->each[i]);
        weft_json_end_object(json);
    }
    weft_json_end_array(json);
    weft_json_add_text(json, "model", reply->input->model);
    add_usage(reply, "prompt_tokens", NULL);
    weft_json_end_object(json);
}

static const char models[] =
    "{\"object\":\"list\",\"data\":[{\"id\":\"mock\",\"object\":\"model\","
    "\"created\":1767225600,\"owned_by\":\"weft\"}]}";

/* ---- Which answer ---------------------------------------------------------------------------- */

static const struct route {
    const char *path, *id;
    void (*write)(struct reply *reply);
    bool streams;
} routes[] = {
    {"/v1/chat/completions", "chatcmpl-", write_chat, true},
    {"/v1/completions", "cmpl-", write_text, true},
    {"/v1/responses", "resp_", write_response, true},
    {"/v1/embeddings", "", write_embeddings, false},
};

static const struct route *find_route(const char *path)
{
    for (size_t i = 0; i < WEFT_LEN(routes); i++)
        if (strcmp(routes[i].path, path) == 0)
            return &routes[i];
    return NULL;
}

static struct mock_answer answer_route(const struct mock_settings *settings,
                                       const struct mock_request *request,
                                       const struct route *route, struct weft_arena *arena,
                                       struct weft_buf *out)
{
    struct mock_input input;
    struct weft_err err;
    if (weft_mock_read(request, arena, &input, &err) != WEFT_OK)
        return weft_mock_refuse(400, err.text, out);
    input.stream = input.stream && route->streams;
    struct reply reply = {.input = &input, .out = out};
    reply.text = make_text(settings, input.text, arena);
    reply.words = weft_mock_words(reply.text);
    (void)snprintf(reply.id, sizeof(reply.id), "%s%016" PRIx64, route->id,
                   hash(request->body, request->body_size));
    route->write(&reply);
    return (struct mock_answer){.status = 200, .stream = input.stream};
}

/* Half of the failures say that there were too many requests. */
static struct mock_answer fail(uint64_t dice, struct weft_buf *out)
{
    if (dice & 1)
        return weft_mock_refuse(429, "too many requests (asked for by --fail-rate)", out);
    return weft_mock_refuse(500, "a failure (asked for by --fail-rate)", out);
}

struct mock_answer weft_mock_answer(const struct mock_settings *settings,
                                    const struct mock_request *request, struct weft_arena *arena,
                                    struct weft_buf *out)
{
    const struct route *route = find_route(request->path);
    uint64_t dice = mix(request->number * 2), other = mix(request->number * 2 + 1);
    struct mock_answer answer = {.status = 200};
    weft_buf_clear(out);
    if (strcmp(request->path, "/v1/models") == 0) {
        weft_buf_add_text(out, models);
        return answer;
    }
    if (!route)
        return weft_mock_refuse(404, "there is no such path here", out);
    if (strcmp(request->method, "POST") != 0)
        return weft_mock_refuse(405, "this takes a POST", out);
    if (share_of(dice) < settings->fail_rate)
        answer = fail(other, out);
    else
        answer = answer_route(settings, request, route, arena, out);
    answer.wait_ms =
        settings->latency_ms + (int64_t)(share_of(other) * (double)(settings->jitter_ms + 1));
    return answer;
}
