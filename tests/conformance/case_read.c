/* SPDX-License-Identifier: Apache-2.0 */

/* Reading one execution: describe, attempts, payload, result; and the counts of lanes. */

#include "conformance.h"
#include "direct.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/limits.h"
#include "engine/admin/tally.h"
#include "engine/job/claim.h"
#include "engine/job/execution_read.h"
#include "engine/job/leases.h"
#include "weft/weft.h"

static enum weft_rc read_bytes(struct fixture *f, enum weft_bytes_kind kind, const char *ns,
                               const struct weft_id *id, struct weft_bytes *ret_bytes)
{
    const struct weft_bytes_of of = {.kind = kind, .ns = ns, .id = *id};
    return weft_engine_bytes(f->b, &of, f->arena, ret_bytes, &f->err);
}

static struct weft_id unknown_id(struct fixture *f)
{
    struct weft_id id;
    weft_id_new(&id, f->now_us, -1);
    return id;
}

CASE(read_unknown)
{
    struct weft_id known = submit_job(f), unknown = unknown_id(f);
    const struct weft_id id[] = {unknown, known, unknown, {{0}}};
    struct weft_execution item[4];
    is_int(weft_engine_describe(f->b, "default", id, 4, f->arena, item, &f->err), WEFT_OK,
           "unknown ids are no failure");
    for (size_t i = 0; i < 4; i++) {
        ok(same_id(&item[i].id, &id[i]), "item %zu has its id", i);
        is_int(item[i].state, i == 1 ? WEFT_STATE_READY : WEFT_STATE_NONE, "item %zu: its state",
               i);
    }
    struct weft_attempts list;
    is_int(weft_engine_attempts(f->b, "default", &unknown, f->arena, &list, &f->err),
           WEFT_NOT_FOUND, "the attempts of an unknown id are not found");
    expect_err(&f->err, WEFT_NOT_FOUND, "id", "the story");
    struct weft_bytes bytes;
    is_int(read_bytes(f, WEFT_BYTES_PAYLOAD, "default", &unknown, &bytes), WEFT_NOT_FOUND,
           "the payload of an unknown id is not found");
    is_int(read_bytes(f, WEFT_BYTES_RESULT, "default", &unknown, &bytes), WEFT_NOT_FOUND,
           "the result of an unknown id is not found");
}

CASE(read_describes_in_the_order_asked)
{
    enum { MANY = 1500 };
    struct weft_id *id = submit_copies(f, &(struct weft_spec){.kind = "job"}, MANY);
    struct weft_id *asked = weft_new_array(f->arena, struct weft_id, MANY);
    for (size_t i = 0; i < MANY; i++)
        asked[i] = id[(i * 7) % MANY];
    struct weft_execution *item = weft_new_array(f->arena, struct weft_execution, MANY);
    is_int(weft_engine_describe(f->b, "default", asked, MANY, f->arena, item, &f->err), WEFT_OK,
           "1,500 in one call");
    size_t wrong = 0;
    for (size_t i = 0; i < MANY; i++)
        wrong += !same_id(&item[i].id, &asked[i]) || item[i].state != WEFT_STATE_READY;
    is_int(wrong, 0, "each answered in its place");
}

/* An id of another namespace is as good as unknown, for every way to look or touch. */
CASE(read_other_namespaces_are_invisible)
{
    struct weft_id id = submit_ok(
        f, &(struct weft_spec){.kind = "job", .ns = "other", .payload = "1", .payload_size = 1});
    struct weft_claim_result got =
        claim_with(f, f->a, &(struct weft_claim){.worker = "w", .ns = "other"});
    (void)complete(f, f->a, &got.item[0], "2");
    is_int(state_of(f, &id), WEFT_STATE_NONE, "another namespace cannot describe it");
    struct weft_attempts list;
    is_int(weft_engine_attempts(f->b, "default", &id, f->arena, &list, &f->err), WEFT_NOT_FOUND,
           "another namespace does not find its attempts");
    struct weft_bytes bytes;
    is_int(read_bytes(f, WEFT_BYTES_PAYLOAD, "default", &id, &bytes), WEFT_NOT_FOUND,
           "another namespace does not find its payload");
    is_int(read_bytes(f, WEFT_BYTES_RESULT, "default", &id, &bytes), WEFT_NOT_FOUND,
           "another namespace does not find its result");
    is_int(count_rows(f, &(struct weft_filter){0}), 0, "another namespace does not list it");
    is_int(steer(f, WEFT_STEER_REPLAY, &(struct weft_steer){.id = id}).err.rc, WEFT_NOT_FOUND,
           "another namespace cannot replay it");
    is_int(count_rows(f, &(struct weft_filter){.ns = "other"}), 1, "there it is listed");
    is_int(read_bytes(f, WEFT_BYTES_RESULT, "other", &id, &bytes), WEFT_OK,
           "the result is found in its own namespace");
    is_int(read_bytes(f, WEFT_BYTES_RESULT, "nowhere", &id, &bytes), WEFT_NOT_FOUND,
           "a namespace that does not exist has nothing");
}

CASE(read_attempts)
{
    const struct weft_policy policy = {.initial_ms = -1, .lease_ms = 1000};
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job", .policy = &policy});
    is_int(attempts(f, &id).count, 0, "a new execution has no attempts");
    weft_usec start_us = f->now_us;
    struct weft_claimed lease = claim_one(f, f->a);
    is_int(attempts(f, &id).count, 0, "a lease that is held is not an ended one");
    forward_ms(f, 10);
    (void)fail(f, f->a, &lease, "net");
    lease = claim_one(f, f->b);
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0);
    (void)claim_one(f, f->a);
    forward_ms(f, 1001);
    (void)run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
    lease = claim_one(f, f->b);
    (void)complete(f, f->b, &lease, NULL);
    static const struct {
        const char *ended, *worker, *error_class;
        int32_t attempt;
    } want[] = {
        {"failed", "worker-a", "net", 1},
        {"released", "worker-b", NULL, 2},
        {"lost", "worker-a", NULL, 2},
        {"completed", "worker-b", NULL, 2},
    };
    struct weft_attempts list = attempts(f, &id);
    is_int(list.count, WEFT_LEN(want), "four leases ended");
    for (size_t i = 0; i < list.count && i < WEFT_LEN(want); i++) {
        is_int(list.item[i].epoch, i + 1, "lease %zu: oldest first", i);
        is_str(list.item[i].ended, want[i].ended, "lease %zu: how it ended", i);
        is_str(list.item[i].worker, want[i].worker, "lease %zu: whose it was", i);
        is_str(list.item[i].error_class, want[i].error_class, "lease %zu: its error", i);
        is_int(list.item[i].attempt, want[i].attempt, "lease %zu: its attempt", i);
    }
    is_int(list.item[0].started_us, start_us, "when it began");
    is_int(list.item[0].ended_us, start_us + 10 * WEFT_MS, "when it ended");
    is_str(list.item[0].error_message, "it broke", "the attempt has its message");
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void expect_bytes(const struct weft_bytes *bytes, const void *data, size_t size,
                         const char *name)
{
    ok(bytes->data && bytes->size == size && memcmp(bytes->data, data, size) == 0,
       "%s: byte for byte", name);
}

CASE(read_payload_byte_for_byte)
{
    static const char json[] = "{ \"b\" : 1.0e0,\n\"a\":\"\\u00e9\" }",
                      text[] = "\xff\xfe not UTF-8";
    char binary[512];
    for (size_t i = 0; i < sizeof(binary); i++)
        binary[i] = (char)i;
    const struct {
        const char *name;
        const void *data;
        size_t size;
        const char *type;
    } row[] = {
        {"JSON as it was written", json, sizeof(json) - 1, NULL},
        {"every byte, NUL too", binary, sizeof(binary), "application/octet-stream"},
        {"text in no encoding", text, sizeof(text) - 1, "text/plain; charset=unknown"},
        {"one NUL", "", 1, NULL},
        {"empty", "", 0, "text/plain"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job",
                                                             .payload = row[i].data,
                                                             .payload_size = row[i].size,
                                                             .content_type = row[i].type});
        const char *type = row[i].type ? row[i].type : "application/json";
        struct weft_bytes bytes = {0};
        is_int(read_bytes(f, WEFT_BYTES_PAYLOAD, "default", &id, &bytes), WEFT_OK, "%s: is there",
               row[i].name);
        expect_bytes(&bytes, row[i].data, row[i].size, row[i].name);
        is_str(bytes.content_type, type, "%s: its type", row[i].name);
        struct weft_claimed lease = claim_one(f, f->a);
        const struct weft_bytes claimed = {.data = lease.payload, .size = lease.payload_size};
        expect_bytes(&claimed, row[i].data, row[i].size, "for the worker");
        is_str(lease.content_type, type, "%s: its type for the worker", row[i].name);
        (void)complete(f, f->a, &lease, NULL);
        is_int(read_bytes(f, WEFT_BYTES_PAYLOAD, "default", &id, &bytes), WEFT_OK,
               "%s: still there at the end", row[i].name);
    }
    struct weft_id none = submit_job(f);
    struct weft_bytes bytes;
    is_int(read_bytes(f, WEFT_BYTES_PAYLOAD, "default", &none, &bytes), WEFT_NOT_FOUND,
           "a missing payload is not found, not empty");
}

CASE(read_payload_limit)
{
    char *payload = weft_arena_alloc(f->arena, WEFT_PAYLOAD_MAX + 1, 1);
    for (size_t i = 0; i <= WEFT_PAYLOAD_MAX; i++)
        payload[i] = (char)(i * 31 >> 3);
    struct weft_spec spec = {
        .kind = "job", .payload = payload, .payload_size = WEFT_PAYLOAD_MAX + 1};
    struct weft_submitted answer = submit(f, f->a, &spec);
    expect_err(&answer.err, WEFT_TOO_LARGE, "payload", "a byte too many");
    spec.payload_size = WEFT_PAYLOAD_MAX;
    struct weft_id id = submit_ok(f, &spec);
    struct weft_bytes bytes = {0};
    is_int(read_bytes(f, WEFT_BYTES_PAYLOAD, "default", &id, &bytes), WEFT_OK, "1 MiB is accepted");
    expect_bytes(&bytes, payload, WEFT_PAYLOAD_MAX, "1 MiB");
    struct weft_claimed lease = claim_one(f, f->a);
    struct weft_complete item = {
        .id = id, .epoch = lease.epoch, .result = payload, .result_size = WEFT_PAYLOAD_MAX + 1};
    struct weft_lease_answer end;
    is_int(engine_complete(f->a, &item, 1, &end, &f->err), WEFT_OK, "the call succeeds");
    expect_err(&end.err, WEFT_TOO_LARGE, "result", "a result with a byte too many");
    is_int(state_of(f, &id), WEFT_STATE_RUNNING, "the refused result leaves the execution running");
    item.result_size = WEFT_PAYLOAD_MAX;
    is_int(engine_complete(f->a, &item, 1, &end, &f->err), WEFT_OK, "the call succeeds");
    is_int(end.err.rc, WEFT_OK, "a result of 1 MiB is accepted");
    is_int(read_bytes(f, WEFT_BYTES_RESULT, "default", &id, &bytes), WEFT_OK,
           "the result of 1 MiB can be read");
    expect_bytes(&bytes, payload, WEFT_PAYLOAD_MAX, "1 MiB of result");
}

CASE(read_result_before_and_after)
{
    static const char binary[] = {0, 1, 0, (char)0xff, '\n', 0};
    const struct weft_policy once = {.max_attempts = 1};
    struct weft_bytes bytes = {0};
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job", .policy = &once});
    is_int(read_bytes(f, WEFT_BYTES_RESULT, "default", &id, &bytes), WEFT_NOT_FOUND,
           "a ready execution has no result");
    expect_err(&f->err, WEFT_NOT_FOUND, "id", "the story");
    struct weft_claimed lease = claim_one(f, f->a);
    is_int(read_bytes(f, WEFT_BYTES_RESULT, "default", &id, &bytes), WEFT_NOT_FOUND,
           "a running execution has no result");
    (void)complete(f, f->a, &lease, "{ \"n\": 1.50 }");
    is_int(read_bytes(f, WEFT_BYTES_RESULT, "default", &id, &bytes), WEFT_OK, "after success");
    expect_bytes(&bytes, "{ \"n\": 1.50 }", 13, "JSON");
    is_str(bytes.content_type, "application/json", "JSON: its type");

    id = submit_job(f);
    lease = claim_one(f, f->a);
    (void)complete(f, f->a, &lease, NULL);
    is_int(read_bytes(f, WEFT_BYTES_RESULT, "default", &id, &bytes), WEFT_NOT_FOUND,
           "a success without a result has none");

    id = submit_job(f);
    lease = claim_one(f, f->a);
    const struct weft_complete item = {.id = id,
                                       .epoch = lease.epoch,
                                       .result = binary,
                                       .result_size = sizeof(binary),
                                       .content_type = "image/x-tiny"};
    struct weft_lease_answer end;
    is_int(engine_complete(f->b, &item, 1, &end, &f->err), WEFT_OK, "a binary result");
    is_int(read_bytes(f, WEFT_BYTES_RESULT, "default", &id, &bytes), WEFT_OK,
           "the binary result can be read");
    expect_bytes(&bytes, binary, sizeof(binary), "binary");
    is_str(bytes.content_type, "image/x-tiny", "the result has its content type");

    id = submit_ok(f, &(struct weft_spec){.kind = "job", .policy = &once});
    lease = claim_one(f, f->a);
    (void)fail(f, f->a, &lease, "net");
    is_int(read_bytes(f, WEFT_BYTES_RESULT, "default", &id, &bytes), WEFT_NOT_FOUND,
           "a failure has none");
}

/* ---- Counts ---------------------------------------------------------------------------------- */

static struct weft_counts counts(struct fixture *f, const char *ns, const char *lane)
{
    struct weft_counts out = {0};
    is_int(weft_engine_counts(f->b, ns, lane, f->arena, &out, &f->err), WEFT_OK, "counts");
    return out;
}

static uint64_t all_states(const struct weft_lane_count *item)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < WEFT_STATE_COUNT; i++)
        sum += item->count[i];
    return sum;
}

CASE(read_counts)
{
    struct weft_counts got = counts(f, "default", NULL);
    is_int(got.count, 0, "an empty store has no lanes");
    is_int(got.as_of_us, f->now_us, "the counts are as of now");
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .tenant = "a"}, 3);
    (void)submit_copies(f, &(struct weft_spec){.kind = "other"}, 4);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .delay_ms = 1000}, 2);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "a-lane"}, 1);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .ns = "other"}, 9);
    struct weft_claim_result leases = claim(f, f->a, 3);
    (void)complete(f, f->a, &leases.item[0], NULL);
    got = counts(f, "default", NULL);
    is_int(got.count, 2, "two lanes are counted");
    is_str(got.item[0].lane, "a-lane", "lanes are counted by name");
    is_int(got.item[0].count[WEFT_STATE_READY], 1, "ready in the one");
    is_int(got.item[1].count[WEFT_STATE_READY], 4, "ready in the other, over all its queues");
    is_int(got.item[1].count[WEFT_STATE_DELAYED], 2, "the delayed of the lane are counted");
    is_int(got.item[1].count[WEFT_STATE_RUNNING], 2, "the running of the lane are counted");
    is_int(all_states(&got.item[1]), 8, "executions that ended are not counted");
    got = counts(f, "default", "a-lane");
    ok(got.count == 1 && strcmp(got.item[0].lane, "a-lane") == 0, "one lane by name");
    is_int(counts(f, "default", "nowhere").count, 0, "an unknown lane has no counts");
    got = counts(f, "other", NULL);
    ok(got.count == 1 && got.item[0].count[WEFT_STATE_READY] == 9, "namespaces count apart");
    is_int(counts(f, "nowhere", NULL).count, 0, "an unknown namespace has none");
}
