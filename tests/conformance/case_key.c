/* SPDX-License-Identifier: Apache-2.0 */

/* Idempotency keys: one execution per key and namespace, for as long as it exists. */

#include "conformance.h"

#include "base/arena.h"
#include "base/limits.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "weft/weft.h"

static const struct weft_spec keyed = {
    .kind = "pay", .payload = "{\"eur\":5}", .payload_size = 9, .key = "order-1"};

static void expect_duplicate(const struct weft_submitted *answer, const struct weft_id *first,
                             enum weft_state state, const char *name)
{
    is_int(answer->err.rc, WEFT_OK, "%s: accepted", name);
    ok(answer->duplicate, "%s: called a duplicate", name);
    ok(same_id(&answer->id, first), "%s: under the first id", name);
    is_int(answer->state, state, "%s: in its state", name);
}

CASE(key_repeat)
{
    struct weft_submitted first = submit(f, f->a, &keyed);
    ok(!first.err.rc && !first.duplicate, "the first is no duplicate");
    struct weft_submitted answer = submit(f, f->a, &keyed);
    expect_duplicate(&answer, &first.id, WEFT_STATE_READY, "same process");
    answer = submit(f, f->b, &keyed);
    expect_duplicate(&answer, &first.id, WEFT_STATE_READY, "other process");
    struct weft_claimed lease = claim_one(f, f->a);
    answer = submit(f, f->b, &keyed);
    expect_duplicate(&answer, &first.id, WEFT_STATE_RUNNING, "while it runs");
    (void)complete(f, f->a, &lease, "1");
    answer = submit(f, f->b, &keyed);
    expect_duplicate(&answer, &first.id, WEFT_STATE_SUCCEEDED, "after it ended");
    is_int(count_rows(f, &(struct weft_filter){0}), 1, "there is one execution");
    is_int(claim(f, f->a, 10).count, 0, "a duplicate of an ended execution gives no work");
}

/* What says how to run it is not what it is: a repeat may differ there and the first one stands. */
CASE(key_repeat_with_other_settings)
{
    struct weft_submitted first = submit(f, f->a, &keyed);
    const struct weft_tag tag = {"k", "v"};
    struct weft_spec other = keyed;
    other.priority = 9;
    other.delay_ms = 1000;
    other.tenant = "acme";
    other.tags = &tag;
    other.tag_count = 1;
    struct weft_submitted answer = submit(f, f->b, &other);
    expect_duplicate(&answer, &first.id, WEFT_STATE_READY, "other priority, delay, tenant, tags");
    struct weft_execution now = describe(f, &first.id);
    ok(now.priority == 0 && !now.tenant && now.tag_count == 0 && now.run_at_us == 0,
       "the first is as it was");
}

CASE(key_conflict)
{
    static const struct {
        const char *name;
        struct weft_spec spec;
    } row[] = {
        {"other payload", {.kind = "pay", .payload = "{\"eur\":6}", .payload_size = 9}},
        {"shorter payload", {.kind = "pay", .payload = "{\"eur\":5", .payload_size = 8}},
        {"no payload", {.kind = "pay"}},
        {"other kind", {.kind = "pay2", .payload = "{\"eur\":5}", .payload_size = 9}},
        {"other lane",
         {.lane = "fast", .kind = "pay", .payload = "{\"eur\":5}", .payload_size = 9}},
    };
    struct weft_id first = submit_ok(f, &keyed);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_spec spec = row[i].spec;
        spec.key = keyed.key;
        struct weft_submitted answer = submit(f, i % 2 ? f->a : f->b, &spec);
        expect_err(&answer.err, WEFT_CONFLICT, "key", row[i].name);
        ok(!answer.duplicate, "%s: not a duplicate", row[i].name);
    }
    is_int(count_rows(f, &(struct weft_filter){0}), 1, "nothing was added");
    struct weft_claimed lease = claim_one(f, f->a);
    ok(same_id(&lease.id, &first) && lease.payload_size == 9, "the first is as it was");
}

CASE(key_namespaces_are_independent)
{
    struct weft_spec spec = keyed;
    struct weft_submitted here = submit(f, f->a, &spec);
    spec.ns = "other";
    spec.payload = "1";
    spec.payload_size = 1;
    struct weft_submitted there = submit(f, f->a, &spec);
    is_int(there.err.rc, WEFT_OK, "the same key with other work in another namespace is accepted");
    ok(!there.duplicate && !same_id(&here.id, &there.id),
       "the other namespace gets an execution of its own");
    struct weft_submitted again = submit(f, f->b, &spec);
    expect_duplicate(&again, &there.id, WEFT_STATE_READY, "a repeat there");
}

CASE(key_same_key_in_one_call)
{
    struct weft_spec spec[5];
    for (size_t i = 0; i < 5; i++)
        spec[i] = keyed;
    struct weft_submitted *answer = submit_many(f, f->a, spec, 5);
    ok(!answer[0].err.rc && !answer[0].duplicate, "the first of the call is the execution");
    for (size_t i = 1; i < 5; i++)
        expect_duplicate(&answer[i], &answer[0].id, WEFT_STATE_READY, "a later one");
    is_int(count_rows(f, &(struct weft_filter){0}), 1, "there is one");
}

CASE(key_conflict_in_one_call)
{
    struct weft_spec spec[4] = {keyed, keyed, {.kind = "job"}, keyed};
    spec[1].payload = "2";
    spec[1].payload_size = 1;
    struct weft_submitted *answer = submit_many(f, f->a, spec, 4);
    is_int(answer[0].err.rc, WEFT_OK, "the first is accepted");
    expect_err(&answer[1].err, WEFT_CONFLICT, "key", "the second has another payload");
    is_int(answer[2].err.rc, WEFT_OK, "a neighbour is accepted");
    expect_duplicate(&answer[3], &answer[0].id, WEFT_STATE_READY, "the fourth is as the first");
    is_int(count_rows(f, &(struct weft_filter){0}), 2, "two are there");
}

/* The first item is refused, so that a later one takes the key; the items after it meet that one.
 */
CASE(key_after_a_refused_item)
{
    enum { MANY = 1000 };
    struct weft_spec *spec = weft_new_array(f->arena, struct weft_spec, MANY);
    for (size_t i = 0; i < MANY; i++)
        spec[i] = keyed;
    spec[0].kind = "not a kind";
    spec[500].payload = "2";
    spec[500].payload_size = 1;
    struct weft_submitted *answer = submit_many(f, f->a, spec, MANY);
    expect_err(&answer[0].err, WEFT_INVALID_VALUE, "kind", "the first is refused");
    ok(!answer[1].err.rc && !answer[1].duplicate, "the second is the execution");
    expect_err(&answer[500].err, WEFT_CONFLICT, "key", "one has another payload");
    size_t wrong = 0;
    for (size_t i = 2; i < MANY; i++)
        wrong += i != 500 && (!answer[i].duplicate || !same_id(&answer[i].id, &answer[1].id));
    is_int(wrong, 0, "all others are duplicates of the second");
    is_int(count_rows(f, &(struct weft_filter){0}), 1, "there is one");
}

/* Most items lose to an execution that was there before the call. */
CASE(key_taken_before_a_large_call)
{
    enum { MANY = 1000 };
    struct weft_submitted first = submit(f, f->b, &keyed);
    struct weft_spec *spec = weft_new_array(f->arena, struct weft_spec, MANY);
    for (size_t i = 0; i < MANY; i++) {
        spec[i] = keyed;
        spec[i].payload = weft_arena_printf(f->arena, "%zu", i);
        spec[i].payload_size = strlen(spec[i].payload);
    }
    spec[MANY - 1] = keyed;
    struct weft_submitted *answer = submit_many(f, f->a, spec, MANY);
    size_t conflicts = 0;
    for (size_t i = 0; i + 1 < MANY; i++)
        conflicts += answer[i].err.rc == WEFT_CONFLICT;
    ok(conflicts >= MANY - 2, "items with other payloads are refused (%zu)", conflicts);
    expect_duplicate(&answer[MANY - 1], &first.id, WEFT_STATE_READY, "the same item again");
}

CASE(key_mixed_bulk)
{
    enum { MANY = 2400, KEYS = 300 };
    struct weft_spec *spec = weft_new_array(f->arena, struct weft_spec, MANY);
    for (size_t i = 0; i < MANY; i++) {
        const char *key = weft_arena_printf(f->arena, "key-%zu", (i * 7) % KEYS);
        spec[i] = (struct weft_spec){.kind = "job", .key = i % 2 ? key : NULL};
    }
    struct weft_submitted *answer = submit_many(f, f->a, spec, MANY);
    size_t duplicates = 0, refused = 0, wrong = 0;
    struct weft_id first[KEYS];
    bool known[KEYS] = {false};
    for (size_t i = 0; i < MANY; i++) {
        size_t key = (i * 7) % KEYS;
        refused += answer[i].err.rc != WEFT_OK;
        duplicates += answer[i].duplicate;
        if (!spec[i].key)
            continue;
        if (!known[key])
            first[key] = answer[i].id;
        wrong += known[key] != answer[i].duplicate || !same_id(&answer[i].id, &first[key]);
        known[key] = true;
    }
    size_t distinct = 0;
    for (size_t i = 0; i < KEYS; i++)
        distinct += known[i];
    is_int(refused, 0, "all are accepted");
    is_int(wrong, 0, "each key belongs to the first of the call that has it");
    is_int(duplicates, MANY / 2 - distinct, "every later submission of a key is a duplicate");
    is_int(count_rows(f, &(struct weft_filter){0}), MANY / 2 + distinct,
           "there are as many rows as distinct submissions");
}

/* Collations must not fold keys together, and any printable text is a key. */
CASE(key_exact_text)
{
    static const char *const key[] = {"a",     "A",     "a ",   " a", "\xc3\xa9", "e\xcc\x81",
                                      "'; --", "\"q\"", "%_\\", "0",  "00"};
    struct weft_spec spec[WEFT_LEN(key)];
    for (size_t i = 0; i < WEFT_LEN(key); i++)
        spec[i] = (struct weft_spec){.kind = "job", .key = key[i]};
    struct weft_submitted *first = submit_many(f, f->a, spec, WEFT_LEN(key));
    struct weft_submitted *again = submit_many(f, f->b, spec, WEFT_LEN(key));
    for (size_t i = 0; i < WEFT_LEN(key); i++) {
        ok(!first[i].err.rc && !first[i].duplicate, "key %zu is its own", i);
        expect_duplicate(&again[i], &first[i].id, WEFT_STATE_READY, "its repeat");
        is_str(describe(f, &first[i].id).key, key[i], "key %zu reads as given", i);
        struct weft_read_page page =
            list_page(f, &(struct weft_listing){.filter = {.key = key[i]}});
        ok(page.count == 1 && same_id(&page.item[0].id, &first[i].id), "key %zu is found", i);
    }
}

CASE(key_limits)
{
    char key[WEFT_KEY_MAX + 2];
    memset(key, 'k', sizeof(key));
    key[WEFT_KEY_MAX + 1] = '\0';
    struct weft_submitted answer = submit(f, f->a, &(struct weft_spec){.kind = "job", .key = key});
    expect_err(&answer.err, WEFT_TOO_LARGE, "key", "a key that is too long");
    key[WEFT_KEY_MAX] = '\0';
    answer = submit(f, f->a, &(struct weft_spec){.kind = "job", .key = key});
    is_int(answer.err.rc, WEFT_OK, "the longest key is accepted");
    struct weft_submitted again = submit(f, f->b, &(struct weft_spec){.kind = "job", .key = key});
    expect_duplicate(&again, &answer.id, WEFT_STATE_READY, "the longest key again");
}

CASE(key_of_a_replayed_one)
{
    struct weft_submitted first = submit(f, f->a, &keyed);
    (void)steer(f, WEFT_STEER_CANCEL, &(struct weft_steer){.id = first.id});
    struct weft_submitted answer = submit(f, f->b, &keyed);
    expect_duplicate(&answer, &first.id, WEFT_STATE_CANCELLED, "after a cancel");
    (void)steer(f, WEFT_STEER_REPLAY, &(struct weft_steer){.id = first.id});
    answer = submit(f, f->b, &keyed);
    expect_duplicate(&answer, &first.id, WEFT_STATE_READY, "after a replay");
}
