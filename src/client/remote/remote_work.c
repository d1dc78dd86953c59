/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submitting and working through a server. A call of many items is cut into requests that the
 * server takes; they go out one after the other. When the first fails, the call fails; when a later
 * one does, earlier items are done, so the failure is told in the answers of its items and of all
 * that come after it.
 */

#include "client/remote/remote.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "wire/wire.h"

#include <string.h>

/* ---- Many items ------------------------------------------------------------------------------ */

/* Items that go to one path. The answers begin with a struct weft_err. */
struct bulk {
    const char *path;
    const struct weft_wire_type *takes, *gives;
    const void *item;
    size_t item_size;
    size_t count;
    void *answer;
    size_t answer_size;
    size_t fence_at;      /* in an answer; 0: it has none */
    bool specs;           /* items are specs: each may name a namespace, and may be without a key */
    const char *bytes;    /* the field that holds bytes; NULL: none does */
    size_t bytes_size_at; /* where their size is in an item */
};

static const void *item_at(const struct bulk *bulk, size_t i)
{
    return (const char *)bulk->item + i * bulk->item_size;
}

static void *answer_at(const struct bulk *bulk, size_t i)
{
    return (char *)bulk->answer + i * bulk->answer_size;
}

static const char *ns_at(const struct bulk *bulk, size_t i)
{
    return bulk->specs ? ((const struct weft_spec *)item_at(bulk, i))->ns : NULL;
}

static bool same_ns(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_moment(weft_usec moment_us)
{
    return moment_us >= 0 && moment_us <= WEFT_MOMENT_MAX_US;
}

enum weft_rc weft_remote_check_spec(const struct weft_spec *spec, struct weft_err *err)
{
    if (!spec->payload && spec->payload_size > 0)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "payload",
                               "payload is NULL but has a size");
    for (size_t i = 0; i < spec->tag_count; i++)
        if (!spec->tags[i].key || !spec->tags[i].value)
            return weft_fail_field(err, WEFT_INVALID_VALUE, "tags", "a tag is NULL");
    if (spec->policy && (unsigned)spec->policy->backoff > WEFT_BACKOFF_FIXED)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "policy.backoff.kind",
                               "there is no such kind of backoff");
    if (!is_moment(spec->run_at_us))
        return weft_fail_field(err, WEFT_INVALID_VALUE, "run_at", "run_at is no moment");
    if (!is_moment(spec->deadline_us))
        return weft_fail_field(err, WEFT_INVALID_VALUE, "deadline_at", "deadline_at is no moment");
    return WEFT_OK;
}

/* What no request could carry is refused here; all else is for the server to judge. */
static enum weft_rc check_item(const struct bulk *bulk, size_t i, struct weft_err *err)
{
    size_t size = 0;
    if (bulk->bytes)
        memcpy(&size, (const char *)item_at(bulk, i) + bulk->bytes_size_at, sizeof(size));
    if (size > WEFT_PAYLOAD_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, bulk->bytes, "%s is larger than %d bytes",
                               bulk->bytes, WEFT_PAYLOAD_MAX);
    return bulk->specs ? weft_remote_check_spec(item_at(bulk, i), err) : WEFT_OK;
}

/* Writes as many items from `at` on as one request may hold; returns how many. */
static size_t write_part(const struct bulk *bulk, size_t at, struct weft_request *request,
                         struct weft_buf *body)
{
    struct weft_json_writer out;
    weft_json_writer_init(&out, body);
    weft_json_begin_object(&out);
    weft_json_key(&out, "items");
    weft_json_begin_array(&out);
    size_t i = at;
    request->ns = ns_at(bulk, at);
    while (i < bulk->count && i - at < WEFT_BATCH_MAX && body->size < WEFT_REMOTE_BODY &&
           same_ns(request->ns, ns_at(bulk, i)) && check_item(bulk, i, NULL) == WEFT_OK) {
        if (bulk->specs)
            request->once |= !((const struct weft_spec *)item_at(bulk, i))->key;
        weft_wire_write(bulk->takes, item_at(bulk, i++), &out);
    }
    weft_json_end_array(&out);
    weft_json_end_object(&out);
    return i - at;
}

/* One answer of a bulk request. False: it is not what a server says. */
static bool read_item(const struct bulk *bulk, size_t i, const struct weft_json *value,
                      struct weft_arena *arena)
{
    struct weft_json error;
    void *answer = answer_at(bulk, i);
    if (value->kind != WEFT_JSON_OBJECT)
        return false;
    if (!weft_wire_member(value, "error", &error) || error.kind == WEFT_JSON_NULL)
        return weft_wire_read_answer(bulk->gives, value, arena, answer, NULL) == WEFT_OK;
    enum weft_fence fence = WEFT_FENCE_NONE;
    memset(answer, 0, bulk->answer_size);
    if (weft_remote_error(&error, arena, answer, &fence, NULL))
        return false;
    if (bulk->fence_at)
        memcpy((char *)answer + bulk->fence_at, &fence, sizeof(fence));
    return true;
}

/* One request: items from `at` on. *ret_count: so many. */
static enum weft_rc send_part(const struct weft_via *via, const struct bulk *bulk, size_t at,
                              size_t *ret_count, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_buf body;
    weft_buf_init(&body, SIZE_MAX);
    struct weft_request request = {.method = "POST", .path = bulk->path, .body = &body};
    size_t count = write_part(bulk, at, &request, &body);
    struct weft_json object;
    struct weft_json_iter iter;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc && !weft_remote_items(&object, count, &iter))
        rc = weft_remote_garbled(&request, err);
    for (size_t i = 0; i < count && !rc; i++)
        if (!weft_json_next(&iter) || !read_item(bulk, at + i, &iter.value, arena))
            rc = weft_remote_garbled(&request, err);
    weft_buf_done(&body);
    weft_arena_free(arena);
    *ret_count = count;
    return rc;
}

/* The items from `at` on were not answered: the next `part` of them for sure, the rest not sent. */
static void tell_rest(const struct bulk *bulk, size_t at, size_t part, const struct weft_err *err)
{
    struct weft_err untried = *err;
    untried.hint = NULL;
    for (size_t i = at; i < bulk->count; i++) {
        memset(answer_at(bulk, i), 0, bulk->answer_size);
        memcpy(answer_at(bulk, i), i < at + part ? err : &untried, sizeof(*err));
    }
}

static enum weft_rc send_bulk(const struct weft_via *via, const struct bulk *bulk,
                              struct weft_err *err)
{
    bool any = false;
    size_t part = 1;
    for (size_t at = 0; at < bulk->count; at += part) {
        struct weft_err refused;
        if (check_item(bulk, at, &refused)) {
            part = 1;
            memset(answer_at(bulk, at), 0, bulk->answer_size);
            memcpy(answer_at(bulk, at), &refused, sizeof(refused));
            continue;
        }
        enum weft_rc rc = send_part(via, bulk, at, &part, err);
        if (rc && !any)
            return rc;
        any = true;
        if (rc) {
            tell_rest(bulk, at, part, err);
            break;
        }
    }
    return WEFT_OK;
}

/* ---- Submitting ------------------------------------------------------------------------------ */

enum weft_rc weft_remote_submit(const struct weft_via *via, const struct weft_spec *spec,
                                size_t count, struct weft_submitted *ret_answer,
                                struct weft_err *err)
{
    const struct bulk bulk = {
        .path = "/executions",
        .takes = &weft_wire_spec,
        .gives = &weft_wire_submitted,
        .item = spec,
        .item_size = sizeof(*spec),
        .count = count,
        .answer = ret_answer,
        .answer_size = sizeof(*ret_answer),
        .specs = true,
        .bytes = "payload",
        .bytes_size_at = offsetof(struct weft_spec, payload_size),
    };
    return send_bulk(via, &bulk, err);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

/* What differs between the words about leases. */
struct word {
    const char *path;
    const struct weft_wire_type *takes, *gives;
    size_t item_size;
    const char *bytes; /* as in struct bulk */
    size_t bytes_size_at;
};

static enum weft_rc send_word(const struct weft_via *via, const struct word *word, const void *item,
                              size_t count, struct weft_lease_answer *ret_answer,
                              struct weft_err *err)
{
    const struct bulk bulk = {
        .path = word->path,
        .takes = word->takes,
        .gives = word->gives,
        .item = item,
        .item_size = word->item_size,
        .count = count,
        .answer = ret_answer,
        .answer_size = sizeof(*ret_answer),
        .fence_at = offsetof(struct weft_lease_answer, fence),
        .bytes = word->bytes,
        .bytes_size_at = word->bytes_size_at,
    };
    return send_bulk(via, &bulk, err);
}

enum weft_rc weft_remote_renew(const struct weft_via *via, const struct weft_renew *item,
                               size_t count, struct weft_lease_answer *ret_answer,
                               struct weft_err *err)
{
    static const struct word word = {.path = "/leases/renew",
                                     .takes = &weft_wire_renew,
                                     .gives = &weft_wire_renewed,
                                     .item_size = sizeof(*item)};
    enum weft_rc rc = send_word(via, &word, item, count, ret_answer, err);
    for (size_t i = 0; i < count && !rc; i++)
        if (!ret_answer[i].err.rc)
            ret_answer[i].state = WEFT_STATE_RUNNING; /* which goes without saying */
    return rc;
}

enum weft_rc weft_remote_complete(const struct weft_via *via, const struct weft_complete *item,
                                  size_t count, struct weft_lease_answer *ret_answer,
                                  struct weft_err *err)
{
    static const struct word word = {.path = "/leases/complete",
                                     .takes = &weft_wire_complete,
                                     .gives = &weft_wire_finished,
                                     .item_size = sizeof(*item),
                                     .bytes = "result",
                                     .bytes_size_at = offsetof(struct weft_complete, result_size)};
    return send_word(via, &word, item, count, ret_answer, err);
}

enum weft_rc weft_remote_fail(const struct weft_via *via, const struct weft_failure *item,
                              size_t count, struct weft_lease_answer *ret_answer,
                              struct weft_err *err)
{
    static const struct word word = {.path = "/leases/fail",
                                     .takes = &weft_wire_failure,
                                     .gives = &weft_wire_finished,
                                     .item_size = sizeof(*item)};
    return send_word(via, &word, item, count, ret_answer, err);
}

enum weft_rc weft_remote_put_back(const struct weft_via *via, enum weft_put_back_kind kind,
                                  const struct weft_put_back *item, size_t count,
                                  struct weft_lease_answer *ret_answer, struct weft_err *err)
{
    static const struct word words[] = {
        [WEFT_PUT_BACK_DELAY] = {.path = "/leases/delay",
                                 .takes = &weft_wire_delay,
                                 .gives = &weft_wire_finished,
                                 .item_size = sizeof(*item)},
        [WEFT_PUT_BACK_RELEASE] = {.path = "/leases/release",
                                   .takes = &weft_wire_release,
                                   .gives = &weft_wire_finished,
                                   .item_size = sizeof(*item)},
    };
    return send_word(via, &words[kind], item, count, ret_answer, err);
}

/* ---- Claiming -------------------------------------------------------------------------------- */

/* What the claims of one call were given, in requests of one claim each. */
struct gains {
    struct weft_claimed *item; /* in the arena */
    size_t count, capacity;
};

static struct weft_claimed *add_gain(struct gains *gains, struct weft_arena *arena)
{
    if (gains->count == gains->capacity) {
        size_t capacity = gains->capacity ? 2 * gains->capacity : 16;
        struct weft_claimed *item = weft_new_array(arena, struct weft_claimed, capacity);
        if (gains->count)
            memcpy(item, gains->item, gains->count * sizeof(*item));
        gains->item = item;
        gains->capacity = capacity;
    }
    return &gains->item[gains->count++];
}

static enum weft_rc claim_one(const struct weft_via *via, const struct weft_claim *claim,
                              uint32_t index, struct weft_arena *arena, struct gains *gains,
                              struct weft_err *err)
{
    struct weft_buf body;
    weft_buf_init(&body, SIZE_MAX);
    struct weft_json_writer out;
    weft_json_writer_init(&out, &body);
    weft_wire_write(&weft_wire_claim, claim, &out);
    const struct weft_request request = {.method = "POST",
                                         .path = "/claims",
                                         .ns = claim->ns,
                                         .body = &body,
                                         .once = true,
                                         .wait_ms = claim->wait_ms};
    struct weft_json object;
    struct weft_json_iter iter;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc && !weft_remote_items(&object, SIZE_MAX, &iter))
        rc = weft_remote_garbled(&request, err);
    while (!rc && weft_json_next(&iter)) {
        struct weft_claimed *item = add_gain(gains, arena);
        if (weft_wire_read_answer(&weft_wire_claimed, &iter.value, arena, item, NULL))
            rc = weft_remote_garbled(&request, err);
        item->claim = index;
        if (item->lease_ms == 0) /* an older server; what is not known is taken to be short */
            item->lease_ms = claim->lease_ms ? claim->lease_ms : WEFT_LEASE_MIN_MS;
    }
    weft_buf_done(&body);
    return rc;
}

/* Asks for each claim in turn, without waiting. What was gained counts more than a failure. */
static enum weft_rc claim_all(const struct weft_via *via, const struct weft_claim *claim,
                              size_t count, struct weft_arena *arena, struct gains *gains,
                              struct weft_err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct weft_claim mine = claim[i];
        mine.wait_ms = 0;
        enum weft_rc rc = claim_one(via, &mine, (uint32_t)i, arena, gains, err);
        if (rc)
            return gains->count ? WEFT_OK : rc;
    }
    return WEFT_OK;
}

enum weft_rc weft_remote_claim(const struct weft_via *via, const struct weft_claim *claim,
                               size_t count, struct weft_arena *arena,
                               struct weft_claim_result *ret_result, struct weft_err *err)
{
    struct gains gains = {0};
    enum weft_rc rc;
    if (count == 1) {
        rc = claim_one(via, claim, 0, arena, &gains, err);
    } else {
        int64_t wait_ms = 0;
        for (size_t i = 0; i < count; i++)
            wait_ms = claim[i].wait_ms > wait_ms ? claim[i].wait_ms : wait_ms;
        struct weft_look look;
        weft_look_init(&look, via->weft, WEFT_CHANGE_READY, wait_ms);
        do
            rc = claim_all(via, claim, count, arena, &gains, err);
        while (!rc && gains.count == 0 && wait_ms > 0 && weft_look_again(&look, via));
    }
    if (!rc)
        *ret_result = (struct weft_claim_result){.item = gains.item, .count = gains.count};
    return rc;
}

/* ---- Watching -------------------------------------------------------------------------------- */

enum weft_rc weft_remote_watch(const struct weft_via *via, const struct weft_watch *watch,
                               struct weft_arena *arena, struct weft_watched *ret_watched,
                               struct weft_err *err)
{
    struct weft_buf body;
    weft_buf_init(&body, SIZE_MAX);
    struct weft_json_writer out;
    weft_json_writer_init(&out, &body);
    weft_wire_write(&weft_wire_watch, watch, &out);
    /* A second try would not tell again what the first did: renewals do. */
    const struct weft_request request = {.method = "POST",
                                         .path = "/leases/watch",
                                         .ns = watch->ns,
                                         .body = &body,
                                         .once = true,
                                         .wait_ms = watch->wait_ms};
    struct weft_json object;
    struct weft_json_iter iter;
    struct weft_ended_lease *item = weft_new_array(arena, struct weft_ended_lease, WEFT_BATCH_MAX);
    size_t count = 0;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc && !weft_remote_items(&object, SIZE_MAX, &iter))
        rc = weft_remote_garbled(&request, err);
    while (!rc && count < WEFT_BATCH_MAX && weft_json_next(&iter))
        if (weft_wire_read_answer(&weft_wire_ended_lease, &iter.value, arena, &item[count++], NULL))
            rc = weft_remote_garbled(&request, err);
    if (!rc)
        *ret_watched = (struct weft_watched){.item = item, .count = count};
    weft_buf_done(&body);
    return rc;
}
