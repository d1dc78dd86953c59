/* SPDX-License-Identifier: Apache-2.0 */

/* Submitting: everything a spec can say is kept and honoured, and the order of submission holds. */

#include "conformance.h"
#include "direct.h"

#include "base/id.h"
#include "engine/job/claim.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"
#include "weft/weft.h"

#include <stdlib.h>

CASE(submit_delay)
{
    struct weft_submitted answer =
        submit(f, f->a, &(struct weft_spec){.kind = "job", .delay_ms = 5000});
    is_int(answer.state, WEFT_STATE_DELAYED, "a delayed one answers delayed");
    is_int(describe(f, &answer.id).run_at_us, f->now_us + 5 * WEFT_SECOND,
           "a described delayed execution has its run time");
    is_int(claim(f, f->b, 1).count, 0, "a delayed execution cannot be claimed");
    forward_ms(f, 4999);
    is_int(run_pass(f, f->b, WEFT_SCANNER_DELAYED_PROMOTER).handled, 0, "a millisecond early: no");
    forward_ms(f, 1);
    is_int(run_pass(f, f->b, WEFT_SCANNER_DELAYED_PROMOTER).handled, 1, "on time: yes");
    struct weft_execution now = describe(f, &answer.id);
    is_int(now.state, WEFT_STATE_READY, "the promoted execution is ready");
    is_int(now.run_at_us, 0, "a ready execution has no run time");
    is_int(claim(f, f->a, 10).count, 1, "the promoted execution can be claimed");
}

CASE(submit_run_at)
{
    static const struct {
        const char *name;
        int64_t from_now_ms;
        enum weft_state state;
    } row[] = {
        {"an hour ago", -3600000, WEFT_STATE_READY},
        {"now", 0, WEFT_STATE_READY},
        {"in a millisecond", 1, WEFT_STATE_DELAYED},
        {"in nine years", (int64_t)9 * 365 * 86400 * 1000, WEFT_STATE_DELAYED},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        weft_usec at_us = f->now_us + row[i].from_now_ms * WEFT_MS;
        struct weft_submitted answer =
            submit(f, f->a, &(struct weft_spec){.kind = "job", .run_at_us = at_us});
        is_int(answer.state, row[i].state, "run_at %s: answered", row[i].name);
        struct weft_execution now = describe(f, &answer.id);
        is_int(now.state, row[i].state, "run_at %s: stored", row[i].name);
        is_int(now.run_at_us, row[i].state == WEFT_STATE_DELAYED ? at_us : 0, "run_at %s: the time",
               row[i].name);
    }
    is_int(claim(f, f->b, 10).count, 2, "only the due executions can be claimed");
}

CASE(submit_deadline)
{
    weft_usec deadline_us = f->now_us + 60 * WEFT_SECOND;
    struct weft_id id = submit_ok(
        f, &(struct weft_spec){.kind = "job", .delay_ms = 10, .deadline_us = deadline_us});
    is_int(describe(f, &id).deadline_us, deadline_us, "the deadline is kept");
    forward_ms(f, 10);
    (void)run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER);
    is_int(claim_one(f, f->a).deadline_us, deadline_us, "the claim has the deadline");
    forward_ms(f, 60000);
    (void)run_pass(f, f->b, WEFT_SCANNER_EXECUTION_DEADLINE);
    is_int(state_of(f, &id), WEFT_STATE_EXPIRED, "the execution expires at its deadline");
}

CASE(submit_priority)
{
    static const int32_t priority[] = {0, 5, INT16_MIN, INT16_MAX, 5, -1};
    static const size_t wanted[] = {3, 1, 4, 0, 5, 2};
    struct weft_spec spec[WEFT_LEN(priority)];
    for (size_t i = 0; i < WEFT_LEN(spec); i++)
        spec[i] = (struct weft_spec){.kind = "job", .priority = priority[i]};
    struct weft_submitted *answer = submit_many(f, f->a, spec, WEFT_LEN(spec));
    for (size_t i = 0; i < WEFT_LEN(wanted); i++) {
        struct weft_claimed lease = claim_one(f, f->b);
        ok(same_id(&lease.id, &answer[wanted[i]].id), "claim %zu: number %zu", i, wanted[i]);
        is_int(lease.priority, priority[wanted[i]], "claim %zu: its priority", i);
        is_int(describe(f, &lease.id).priority, priority[wanted[i]], "claim %zu: it reads so", i);
    }
}

static const char *const tokens[] = {"zone=eu", "gpu", "gpu"};
static const struct weft_tag tags[] = {{"z", "last"}, {"a.b-c_D9", "first"}};
static const struct weft_spec everything = {
    .lane = "lane/one:two",
    .kind = "resize.Image-2",
    .payload = "{}",
    .payload_size = 2,
    .priority = -7,
    .capabilities = tokens,
    .capability_count = WEFT_LEN(tokens),
    .tenant = "acme",
    .tags = tags,
    .tag_count = WEFT_LEN(tags),
    .key = "a key with spaces",
};

CASE(submit_everything_is_described)
{
    struct weft_id id = submit_ok(f, &everything);
    struct weft_execution now = describe(f, &id);
    ok(same_id(&now.id, &id), "the id");
    is_str(now.ns, "default", "the namespace");
    is_str(now.lane, "lane/one:two", "the lane");
    is_str(now.kind, "resize.Image-2", "the kind");
    is_int(now.state, WEFT_STATE_READY, "the state");
    is_int(now.priority, -7, "the priority");
    is_int(now.attempt, 1, "the next attempt is the first");
    is_int(now.epoch, 0, "there was no lease yet");
    is_str(now.tenant, "acme", "the tenant");
    is_str(now.key, "a key with spaces", "the key");
    is_int(now.tag_count, 2, "two tags");
    is_str(now.tags[0].key, "a.b-c_D9", "tags are sorted");
    is_str(now.tags[0].value, "first", "the first tag has its value");
    is_str(now.tags[1].value, "last", "the second tag has its value");
    is_int(now.capability_count, 2, "a repeated capability counts once");
    is_str(now.capabilities[0], "gpu", "capabilities are sorted");
    is_str(now.capabilities[1], "zone=eu", "the second capability is kept");
    is_int(now.created_us, f->now_us, "created at the store's time");
    is_int(now.percent, -1, "no progress");
    ok(!now.worker && !now.reason && !now.by && !now.error_class && !now.error_message && !now.note,
       "no story yet");
    ok(!now.started_us && !now.claimed_us && !now.finished_us && !now.run_at_us &&
           !now.deadline_us && !now.lease_expires_us,
       "no times yet");
}

CASE(submit_everything_is_claimed)
{
    static const char *const lanes[] = {"lane/one:two"};
    struct weft_id id = submit_ok(f, &everything);
    forward_ms(f, 7);
    struct weft_claim_result got = claim_with(f, f->b,
                                              &(struct weft_claim){.worker = "w",
                                                                   .lanes = lanes,
                                                                   .lane_count = 1,
                                                                   .capabilities = tokens,
                                                                   .capability_count = 2});
    is_int(got.count, 1, "a worker with the capabilities claims it");
    const struct weft_claimed *lease = got.item;
    ok(got.count && same_id(&lease->id, &id), "the claimed execution is the submitted one");
    is_str(lease->lane, "lane/one:two", "the lane");
    is_str(lease->kind, "resize.Image-2", "the kind");
    is_str(lease->tenant, "acme", "the tenant");
    is_int(lease->priority, -7, "the priority");
    is_int(lease->tag_count, 2, "the tags");
    is_str(lease->tags[1].key, "z", "the claim has the keys of the tags");
    is_int(lease->created_us, f->now_us - 7 * WEFT_MS, "when it was submitted");
    is_int(lease->deadline_us, 0, "no deadline");
    is_int(lease->lease_expires_us, f->now_us + 30 * WEFT_SECOND, "a lease lasts 30 s by default");
    is_int(lease->claim, 0, "the item belongs to the only claim");
}

CASE(submit_nothing_but_a_kind)
{
    struct weft_id id = submit_job(f);
    struct weft_execution now = describe(f, &id);
    is_str(now.lane, "default", "the default lane");
    ok(!now.tenant && !now.key && now.tag_count == 0 && now.capability_count == 0,
       "a plain execution has no tenant, key, tags and capabilities");
    struct weft_claimed lease = claim_one(f, f->b);
    ok(!lease.payload && lease.payload_size == 0, "no payload");
    ok(!lease.tenant && lease.tag_count == 0, "no frills for the worker either");
    struct weft_err err = {0};
    is_int(engine_submit(f->a, "default", NULL, 0, NULL, &err), WEFT_OK, "nothing is fine");
    is_int(count_rows(f, &(struct weft_filter){0}), 1, "an empty submit adds nothing");
}

CASE(submit_policy_lease)
{
    const struct weft_policy policy = {.lease_ms = 5000};
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .policy = &policy}, 2);
    is_int(claim_one(f, f->b).lease_expires_us, f->now_us + 5 * WEFT_SECOND, "the policy's lease");
    struct weft_claim_result got =
        claim_with(f, f->b, &(struct weft_claim){.worker = "w", .lease_ms = 86400000});
    is_int(got.item[0].lease_expires_us, f->now_us + 86400 * WEFT_SECOND,
           "the claim's is stronger");
}

CASE(submit_policy_retries)
{
    static const char *const final[] = {"no-such-user", "bad-input"};
    const struct weft_policy policy = {.max_attempts = 2,
                                       .backoff = WEFT_BACKOFF_FIXED,
                                       .initial_ms = 7000,
                                       .no_jitter = true,
                                       .no_retry = final,
                                       .no_retry_count = WEFT_LEN(final)};
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job", .policy = &policy});
    struct weft_claimed lease = claim_one(f, f->a);
    struct weft_lease_answer answer = fail(f, f->a, &lease, "net");
    is_int(answer.state, WEFT_STATE_DELAYED, "the first failure is retried");
    is_int(answer.run_at_us, f->now_us + 7 * WEFT_SECOND, "after the fixed wait");
    forward_ms(f, 7000);
    (void)run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER);
    lease = claim_one(f, f->b);
    is_int(lease.attempt, 2, "the second attempt");
    is_int(fail(f, f->b, &lease, "net").state, WEFT_STATE_FAILED,
           "the failure of the second attempt is final");
    is_int(state_of(f, &id), WEFT_STATE_FAILED, "the described state is failed");

    id = submit_ok(f, &(struct weft_spec){.kind = "job", .policy = &policy});
    lease = claim_one(f, f->a);
    is_int(fail(f, f->a, &lease, "bad-input").state, WEFT_STATE_FAILED, "a final class is final");
    is_str(describe(f, &id).error_class, "bad-input", "the final class is stored");
}

CASE(submit_policy_lost)
{
    const struct weft_policy policy = {.max_lost = 1, .lease_ms = 1000};
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job", .policy = &policy});
    for (int i = 0; i < 2; i++) {
        (void)claim_one(f, f->a);
        forward_ms(f, 1001);
        (void)run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
        is_int(state_of(f, &id), i == 0 ? WEFT_STATE_READY : WEFT_STATE_FAILED, "lost %d times",
               i + 1);
    }
}

CASE(submit_policy_timeout)
{
    const struct weft_policy policy = {.attempt_timeout_ms = 2000, .max_attempts = 1};
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job", .policy = &policy});
    (void)claim_one(f, f->a);
    forward_ms(f, 1999);
    (void)run_pass(f, f->b, WEFT_SCANNER_ATTEMPT_TIMEOUT);
    is_int(state_of(f, &id), WEFT_STATE_RUNNING, "the attempt runs for less than two seconds");
    forward_ms(f, 1);
    (void)run_pass(f, f->b, WEFT_SCANNER_ATTEMPT_TIMEOUT);
    is_int(state_of(f, &id), WEFT_STATE_FAILED, "the attempt times out after two seconds");
}

CASE(submit_ids)
{
    struct weft_spec spec[3] = {
        {.kind = "job"}, {.kind = "job", .key = "k1"}, {.kind = "job", .key = "k1", .ns = "other"}};
    struct weft_submitted *answer = submit_many(f, f->a, spec, 3);
    for (size_t i = 0; i < 3; i++) {
        const uint8_t *byte = answer[i].id.byte;
        is_int(byte[6] >> 4, 7, "id %zu is version 7", i);
        is_int(byte[8] >> 6, 2, "id %zu has the variant of RFC 9562", i);
        is_int(weft_id_time(&answer[i].id), f->now_us / 1000 * 1000, "id %zu: the store's time", i);
    }
    is_int(weft_id_partition(&answer[1].id), weft_id_key_partition("default", "k1"),
           "a key decides the partition");
    is_int(weft_id_partition(&answer[2].id), weft_id_key_partition("other", "k1"),
           "together with the namespace");
    bool seen[256] = {false};
    size_t partitions = 0;
    struct weft_id *id = submit_copies(f, &(struct weft_spec){.kind = "job"}, 200);
    for (size_t i = 0; i < 200; i++) {
        partitions += !seen[weft_id_partition(&id[i])];
        seen[weft_id_partition(&id[i])] = true;
    }
    /* Neighbours share a partition now and then, others never do. */
    ok(partitions > 100, "without a key they spread over the partitions: %zu", partitions);
    size_t after = 0;
    for (size_t i = 1; i < 200; i++)
        after += weft_id_cmp(&id[i - 1], &id[i]) < 0;
    is_int(after, 199, "ids without a key grow");
}

/* ---- Order ----------------------------------------------------------------------------------- */

CASE(submit_bulk_keeps_its_order)
{
    enum { MANY = 2500 };
    struct weft_id *id = submit_copies(f, &(struct weft_spec){.kind = "job"}, MANY);
    size_t at = 0, wrong = 0;
    for (size_t count = 1; count > 0;) {
        struct weft_claim_result got = claim(f, f->b, 1000);
        for (size_t i = 0; i < got.count && at < MANY; i++)
            wrong += !same_id(&got.item[i].id, &id[at++]);
        count = got.count;
    }
    is_int(at, MANY, "all of a bulk of 2,500 are there");
    is_int(wrong, 0, "in the order of the call");
}

CASE(submit_calls_keep_their_order)
{
    enum { CALLS = 6, EACH = 3 };
    struct weft_id wanted[CALLS * EACH];
    /* The clock stands still, so only the counter behind it can keep the order. */
    for (size_t c = 0; c < CALLS; c++)
        memcpy(&wanted[c * EACH], submit_copies(f, &(struct weft_spec){.kind = "job"}, EACH),
               EACH * sizeof(*wanted));
    struct weft_claim_result got = claim(f, f->b, CALLS * EACH);
    is_int(got.count, CALLS * EACH, "all calls are there");
    size_t wrong = 0;
    for (size_t i = 0; i < got.count; i++)
        wrong += !same_id(&got.item[i].id, &wanted[i]);
    is_int(wrong, 0, "in the order of the calls");
}

/* Keyed and plain items are written by different transactions; the order is that of the call. */
CASE(submit_mixed_bulk_keeps_its_order)
{
    struct weft_spec spec[20];
    char key[20][8];
    for (size_t i = 0; i < 20; i++) {
        (void)snprintf(key[i], sizeof(key[i]), "k%zu", 19 - i);
        spec[i] = (struct weft_spec){.kind = "job", .key = i % 3 ? key[i] : NULL};
    }
    struct weft_submitted *answer = submit_many(f, f->a, spec, 20);
    struct weft_claim_result got = claim(f, f->b, 20);
    is_int(got.count, 20, "all are there");
    size_t wrong = 0;
    for (size_t i = 0; i < got.count; i++)
        wrong += !same_id(&got.item[i].id, &answer[i].id);
    is_int(wrong, 0, "in the order of the call");
}

CASE(submit_a_retry_comes_back_to_its_place)
{
    const struct weft_policy at_once = {.initial_ms = -1};
    struct weft_id *id =
        submit_copies(f, &(struct weft_spec){.kind = "job", .policy = &at_once}, 3);
    struct weft_claimed first = claim_one(f, f->a);
    ok(same_id(&first.id, &id[0]), "the first is first");
    forward_ms(f, 5000);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 1);
    is_int(fail(f, f->a, &first, "net").state, WEFT_STATE_READY,
           "the failed execution is ready again");
    struct weft_claimed again = claim_one(f, f->b);
    ok(same_id(&again.id, &id[0]), "the retried execution is claimed before later work");
    (void)put_back(f, WEFT_PUT_BACK_RELEASE, &again, 0);
    again = claim_one(f, f->b);
    ok(same_id(&again.id, &id[0]), "the released execution is claimed before later work");
    again = claim_one(f, f->b);
    ok(same_id(&again.id, &id[1]), "the next in line is claimed next");
}
