/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests to a server, and when they are sent again.
 *
 * A request is repeated, up to TRIES times within BUDGET_US, when that is harmless: when the server
 * cannot have seen all of it, when the server answers that nothing was done (busy, rate_limited,
 * unavailable before it was sent), and, for operations that may be repeated (wire/ops.def), when an
 * answer was lost. Another operation whose answer was lost fails with the hint outcome_unknown, as
 * a commit does. Pauses grow, have a random part, and are at least as long as Retry-After.
 *
 * A worker repeats calls at a pace of its own: its requests are tried once.
 */

#include "client/remote/remote.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "fetch/fetch.h"
#include "wire/wire.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUDGET_US      (10 * WEFT_SECOND)
#define PAUSE_FIRST_US (100 * WEFT_MS)
#define PAUSE_MOST_US  (2 * WEFT_SECOND)
#define PAUSE_SLICE_US (50 * WEFT_MS) /* how often a pause looks at `stop` */

enum { TRIES = 5, TIMEOUT_MS = 30000 };

/* ---- Errors ---------------------------------------------------------------------------------- */

/* The field as a static text, NULL when this version knows none of that name. */
static const char *known_field(const char *name)
{
    /* Fields of requests that are no messages. */
    static const char *const others[] = {"body", "count", "expires_ms", "file", "filter",
                                         "ids",  "items", "limit",      "pass", "X-Weft-Namespace"};
    for (size_t i = 0; name && i < WEFT_LEN(others); i++)
        if (strcmp(others[i], name) == 0)
            return others[i];
    return name ? weft_wire_field_name(name) : NULL;
}

/* Behind "nodes[3]." of a field that is about a node of a flow, whose story says which one it is;
 * *ret_node is 1 + its index. NULL: it is about no node. */
static const char *in_node(const char *field, size_t *ret_node)
{
    static const char nodes[] = "nodes[";
    if (!field || strncmp(field, nodes, sizeof(nodes) - 1) != 0 ||
        !isdigit((unsigned char)field[sizeof(nodes) - 1]))
        return NULL;
    char *end;
    *ret_node = strtoul(field + sizeof(nodes) - 1, &end, 10) + 1;
    return *end != ']' ? NULL : end[1] == '.' ? end + 2 : end + 1;
}

enum weft_rc weft_remote_error(const struct weft_json *value, struct weft_arena *arena,
                               struct weft_err *ret_error, struct weft_wire_detail *ret_detail,
                               struct weft_err *err)
{
    struct weft_err sent = {0};
    enum weft_rc rc = weft_wire_read_error(value, arena, &sent, ret_detail, err);
    if (rc)
        return rc;
    size_t node;
    const char *rest = in_node(sent.field, &node);
    const char *field = known_field(rest ? rest : sent.field);
    const char *hint = sent.hint ? weft_hint_find(sent.hint) : NULL;
    bool unknown = sent.field && !field && (!rest || *rest); /* else a node as a whole */
    const char *more = unknown ? sent.field : sent.hint && !hint ? sent.hint : NULL;
    if (more)
        (void)weft_fail(ret_error, sent.rc, "%s (%s)", sent.text, more);
    else
        *ret_error = sent;
    ret_error->field = field;
    ret_error->hint = hint;
    return WEFT_OK;
}

static enum weft_rc rc_of_status(int status)
{
    static const struct {
        int status;
        enum weft_rc rc;
    } row[] = {
        {400, WEFT_INVALID_VALUE},
        {401, WEFT_UNAUTHORIZED},
        {403, WEFT_FORBIDDEN},
        {404, WEFT_NOT_FOUND},
        {409, WEFT_CONFLICT},
        {413, WEFT_TOO_LARGE},
        {429, WEFT_RATE_LIMITED},
        {500, WEFT_INTERNAL},
        {507, WEFT_STORAGE_FULL},
        {405, WEFT_METHOD_NOT_ALLOWED},
        {415, WEFT_UNSUPPORTED_MEDIA_TYPE},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        if (row[i].status == status)
            return row[i].rc;
    return WEFT_UNAVAILABLE;
}

/* Of a refused flow: 1 + the index of the node that the error names; 0: it names none. */
static size_t find_node(const struct weft_json *error, struct weft_arena *arena)
{
    struct weft_json value;
    const char *field;
    size_t node;
    bool named = weft_wire_member(error, "field", &value) && value.kind == WEFT_JSON_STRING &&
                 !weft_json_string(&value, arena, &field, NULL) && in_node(field, &node);
    return named ? node : 0;
}

/* An answer that is no success. True: the server of weft explained it. */
static bool read_failure(const struct weft_fetch_answer *answer, size_t *ret_node,
                         struct weft_err *ret_error)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_json body, error;
    bool explained =
        weft_json_check(answer->body.data, answer->body.size, &body, NULL) == WEFT_OK &&
        body.kind == WEFT_JSON_OBJECT && weft_wire_member(&body, "error", &error) &&
        weft_remote_error(&error, arena, ret_error, NULL, NULL) == WEFT_OK;
    *ret_node = explained ? find_node(&error, arena) : 0;
    weft_arena_free(arena);
    if (!explained)
        (void)weft_fail(ret_error, rc_of_status(answer->status),
                        "the server answered with status %d", answer->status);
    return explained;
}

/* ---- Paths ----------------------------------------------------------------------------------- */

/* Adds text to a URL, percent-encoded. */
static void encode(struct weft_buf *url, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (isascii(*c) && (isalnum(*c) || strchr("-._~", *c)))
            weft_buf_add_char(url, (char)*c);
        else
            weft_buf_printf(url, "%%%02X", *c);
}

static void write_path(struct weft_buf *url, const struct weft_remote_request *request)
{
    const char *path = weft_ops[request->op].path, *brace = strchr(path, '{');
    if (brace) {
        weft_buf_add(url, path, (size_t)(brace - path));
        encode(url, request->place);
        path = strchr(brace, '}') + 1;
    }
    weft_buf_add_text(url, path);
    weft_buf_add_text(url, request->query ? request->query : "");
}

const char *weft_remote_query(struct weft_arena *arena, const char *const pair[][2], size_t count)
{
    struct weft_buf query;
    weft_buf_init(&query, SIZE_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!pair[i][1])
            continue;
        weft_buf_printf(&query, "%c%s=", query.size ? '&' : '?', pair[i][0]);
        encode(&query, pair[i][1]);
    }
    const char *text = weft_arena_strdup(arena, query.data);
    weft_buf_done(&query);
    return text;
}

const char *weft_remote_wait_query(struct weft_arena *arena, int64_t wait_ms)
{
    return wait_ms ? weft_arena_printf(arena, "?wait_ms=%lld", (long long)wait_ms) : NULL;
}

const char *weft_remote_id(struct weft_arena *arena, const struct weft_id *id)
{
    char text[WEFT_ID_TEXT];
    weft_id_print(id, text);
    return weft_arena_strdup(arena, text);
}

/* False: carried out a second time, the request would do something else. */
static bool is_repeatable(const struct weft_remote_request *request)
{
    switch (weft_ops[request->op].repeat) {
    case WEFT_REPEAT_SAFE:
        return true;
    case WEFT_REPEAT_ONCE:
        return false;
    case WEFT_REPEAT_KEYED:
        break;
    }
    return !request->keyless;
}

enum weft_rc weft_remote_garbled(const struct weft_remote_request *request, struct weft_err *err)
{
    struct weft_buf path;
    weft_buf_init(&path, SIZE_MAX);
    write_path(&path, request);
    enum weft_rc rc = weft_fail(err, WEFT_UNAVAILABLE,
                                "what answered %s %s is not a server of weft, or not this version",
                                weft_ops[request->op].method, path.data + strlen("/v1"));
    weft_buf_done(&path);
    return is_repeatable(request) ? rc : weft_hint(err, rc, weft_hint_outcome_unknown);
}

/* ---- One request ----------------------------------------------------------------------------- */

/* How a try that failed may be followed up. */
struct trial {
    bool again;
    weft_usec after_us; /* at the earliest */
};

/* Takes the answer over into the arena, or tells the failure that it is. */
static enum weft_rc take_answer(const struct weft_remote_request *request,
                                const struct weft_fetch_answer *answer, struct weft_arena *arena,
                                struct weft_remote_response *ret_response, struct trial *ret_trial,
                                struct weft_err *err)
{
    if (answer->status >= 200 && answer->status < 300) {
        *ret_response = (struct weft_remote_response){
            .body = weft_arena_dup(arena, answer->body.data, answer->body.size + 1),
            .size = answer->body.size,
            .content_type = weft_arena_strdup(arena, answer->content_type),
            .status = answer->status,
        };
        return WEFT_OK;
    }
    bool explained = read_failure(answer, &ret_response->node, err);
    bool passing =
        (explained || answer->status >= 429) &&
        (err->rc == WEFT_BUSY || err->rc == WEFT_RATE_LIMITED || err->rc == WEFT_UNAVAILABLE);
    bool undone = explained ? err->hint != weft_hint_outcome_unknown : err->rc == WEFT_RATE_LIMITED;
    if (!is_repeatable(request) && err->rc == WEFT_UNAVAILABLE && !undone)
        err->hint = weft_hint_outcome_unknown;
    ret_trial->again = passing && (undone || is_repeatable(request));
    ret_trial->after_us = answer->retry_after_ms > 0 ? answer->retry_after_ms * WEFT_MS : 0;
    return err->rc;
}

static enum weft_rc try_once(const struct weft_via *via, const struct weft_remote_request *request,
                             struct weft_arena *arena, struct weft_remote_response *ret_response,
                             struct trial *ret_trial, struct weft_err *err)
{
    const struct weft *weft = via->weft;
    const char *ns = request->ns && request->ns != weft->ns ? request->ns
                     : weft->ns_given                       ? weft->ns
                                                            : NULL;
    struct weft_buf path;
    weft_buf_init(&path, SIZE_MAX);
    write_path(&path, request);
    const struct weft_fetch_call call = {
        .method = weft_ops[request->op].method,
        .path = path.data,
        .header = ns ? weft_arena_printf(arena, "X-Weft-Namespace: %s", ns) : NULL,
        .body = request->body ? request->body->data : NULL,
        .body_size = request->body ? request->body->size : 0,
        .source = request->source,
        .sink = request->sink,
        .once = !is_repeatable(request),
        .timeout_ms = (via->timeout_ms ? via->timeout_ms : TIMEOUT_MS) + request->wait_ms,
        .stop = via->stop,
    };
    struct weft_fetch_answer answer = {0};
    struct weft_fetch_failure failure = {0};
    *ret_trial = (struct trial){0};
    enum weft_rc rc = weft_fetch_do(weft->fetch, &call, &answer, &failure, err);
    weft_buf_done(&path);
    if (rc) {
        bool unsure = failure.sent && !is_repeatable(request);
        if (unsure)
            err->hint = weft_hint_outcome_unknown;
        ret_trial->again =
            rc == WEFT_UNAVAILABLE && !unsure && !failure.stopped && !failure.permanent;
        return rc;
    }
    rc = take_answer(request, &answer, arena, ret_response, ret_trial, err);
    weft_fetch_answer_done(&answer);
    return rc;
}

/* Half of it for sure, the other half by chance. */
static weft_usec spread(weft_usec pause_us)
{
    uint32_t random;
    weft_random(&random, sizeof(random));
    return pause_us / 2 + (weft_usec)(random % (uint64_t)(pause_us / 2 + 1));
}

static bool is_stopped(const struct weft_via *via)
{
    return via->stop && atomic_load_explicit(via->stop, memory_order_relaxed);
}

static void pause_for(const struct weft_via *via, weft_usec pause_us)
{
    while (pause_us > 0 && !is_stopped(via)) {
        weft_usec slice_us = pause_us < PAUSE_SLICE_US ? pause_us : PAUSE_SLICE_US;
        const struct timespec slice = {.tv_nsec = slice_us * 1000};
        (void)nanosleep(&slice, NULL);
        pause_us -= slice_us;
    }
}

static enum weft_rc send_tries(const struct weft_via *via,
                               const struct weft_remote_request *request, struct weft_arena *arena,
                               struct weft_remote_response *ret_response, struct weft_err *err)
{
    weft_usec until_us = weft_mono_us() + BUDGET_US, most_us = PAUSE_FIRST_US;
    for (int tries = 1;; tries++) {
        struct trial trial;
        enum weft_rc rc = try_once(via, request, arena, ret_response, &trial, err);
        bool moved = request->moved && *request->moved; /* what it was made of is used up */
        if (!rc || !trial.again || via->one_try || tries == TRIES || moved)
            return rc;
        weft_usec pause_us = spread(most_us);
        if (pause_us < trial.after_us)
            pause_us = trial.after_us + spread(PAUSE_FIRST_US);
        most_us = 2 * most_us < PAUSE_MOST_US ? 2 * most_us : PAUSE_MOST_US;
        if (weft_mono_us() + pause_us > until_us)
            return rc;
        pause_for(via, pause_us);
        if (is_stopped(via))
            return rc;
    }
}

enum weft_rc weft_remote_send(const struct weft_via *via, const struct weft_remote_request *request,
                              struct weft_arena *arena, struct weft_remote_response *ret_response,
                              struct weft_err *err)
{
    if (!request->item)
        return send_tries(via, request, arena, ret_response, err);
    struct weft_remote_request mine = *request;
    struct weft_json_writer out;
    struct weft_buf body;
    weft_buf_init(&body, SIZE_MAX);
    weft_json_writer_init(&out, &body);
    weft_wire_write(weft_ops[request->op].takes, request->item, &out);
    mine.body = &body;
    enum weft_rc rc = send_tries(via, &mine, arena, ret_response, err);
    weft_buf_done(&body);
    return rc;
}

enum weft_rc weft_remote_ask(const struct weft_via *via, const struct weft_remote_request *request,
                             struct weft_arena *arena, struct weft_json *ret_object,
                             struct weft_err *err)
{
    struct weft_remote_response unkept = {0};
    struct weft_remote_response *response = request->response ? request->response : &unkept;
    enum weft_rc rc = weft_remote_send(via, request, arena, response, err);
    if (!rc && (weft_json_check(response->body, response->size, ret_object, NULL) ||
                ret_object->kind != WEFT_JSON_OBJECT))
        rc = weft_remote_garbled(request, err);
    return rc;
}

enum weft_rc weft_remote_one(const struct weft_via *via, const struct weft_remote_request *request,
                             struct weft_arena *arena, void *ret_answer, struct weft_err *err)
{
    const struct weft_wire_type *gives = weft_ops[request->op].gives;
    struct weft_json object;
    enum weft_rc rc = weft_remote_ask(via, request, arena, &object, err);
    if (!rc && gives && weft_wire_read_answer(gives, &object, arena, ret_answer, NULL))
        rc = weft_remote_garbled(request, err);
    return rc;
}

bool weft_remote_items(const struct weft_json *object, size_t count,
                       struct weft_json_iter *ret_iter)
{
    struct weft_json items;
    if (!weft_wire_member(object, "items", &items) || items.kind != WEFT_JSON_ARRAY)
        return false;
    size_t found = 0;
    weft_json_iter_init(ret_iter, &items);
    while (weft_json_next(ret_iter))
        found++;
    weft_json_iter_init(ret_iter, &items);
    return count == SIZE_MAX || found == count;
}

int64_t weft_remote_wait_slice(weft_usec until_us)
{
    int64_t left_ms = (until_us - weft_mono_us()) / WEFT_MS;
    return left_ms < 0 ? 0 : left_ms < WEFT_REMOTE_SLICE_MS ? left_ms : WEFT_REMOTE_SLICE_MS;
}
