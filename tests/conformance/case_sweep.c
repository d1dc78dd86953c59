/* SPDX-License-Identifier: Apache-2.0 */

/* Cancel and replay by filter: matches alone are changed, a bounded number at a time. */

#include "conformance.h"

#include "base/arena.h"
#include "base/limits.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "weft/weft.h"

static struct weft_sweep sweep(struct fixture *f, const struct weft_steer_all *args)
{
    struct weft_sweep out = {0};
    struct weft_steer_all mine = *args;
    if (!mine.filter.ns)
        mine.filter.ns = "default";
    enum weft_rc rc = weft_engine_steer_all(f->b, &mine, &out, &f->err);
    if (rc)
        ok(false, "sweep: %s: %s", weft_rc_wire(rc), f->err.text);
    return out;
}

static size_t in_state(struct fixture *f, enum weft_state state)
{
    return count_rows(f, &(struct weft_filter){.state = state});
}

static const struct weft_tag red = {"color", "red"};

/* Ten of lane default, three of lane fast, four of kind mail, five red ones, two delayed. */
static void submit_groups(struct fixture *f)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 10);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .lane = "fast"}, 3);
    (void)submit_copies(f, &(struct weft_spec){.kind = "mail", .lane = "mails"}, 4);
    (void)submit_copies(
        f, &(struct weft_spec){.kind = "job", .lane = "reds", .tags = &red, .tag_count = 1}, 5);
    (void)submit_copies(
        f, &(struct weft_spec){.kind = "job", .lane = "late", .delay_ms = 1000, .tenant = "acme"},
        2);
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .ns = "other", .lane = "fast"}, 3);
}

CASE(sweep_cancel_by_filter)
{
    static const struct {
        const char *name;
        struct weft_filter filter;
        size_t fit;
    } row[] = {
        {"lane", {.lane = "fast"}, 3},
        {"kind", {.kind = "mail"}, 4},
        {"tag", {.tag = &red}, 5},
        {"state and tenant", {.state = WEFT_STATE_DELAYED, .tenant = "acme"}, 2},
        {"executions that are cancelled already", {.lane = "fast"}, 0},
        {"an unknown lane", {.lane = "nowhere"}, 0},
    };
    submit_groups(f);
    size_t left = 24;
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_sweep got = sweep(f, &(struct weft_steer_all){.kind = WEFT_STEER_CANCEL,
                                                                  .filter = row[i].filter,
                                                                  .reason = "not needed"});
        is_int(got.matched, row[i].fit, "%s: the matches", row[i].name);
        is_int(got.changed, row[i].fit, "%s: the matches are changed", row[i].name);
        ok(!got.more, "%s: one call changes all", row[i].name);
        left -= row[i].fit;
        is_int(in_state(f, WEFT_STATE_CANCELLED), 24 - left,
               "%s: the changed executions are cancelled", row[i].name);
    }
    is_int(in_state(f, WEFT_STATE_READY), 10, "the rest is as it was");
    is_int(count_rows(f, &(struct weft_filter){.ns = "other", .state = WEFT_STATE_READY}), 3,
           "another namespace too");
    struct weft_read_page page = list_page(f, &(struct weft_listing){.filter = {.lane = "fast"}});
    is_str(page.item[0].reason, "not needed", "the reason is stored");
    is_str(page.item[0].by, "operator", "the actor is stored");
}

/* Running ones are cancelled too, and their holders learn of it. */
CASE(sweep_cancel_running)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 3);
    struct weft_claimed lease = claim_one(f, f->a);
    struct weft_sweep got =
        sweep(f, &(struct weft_steer_all){.kind = WEFT_STEER_CANCEL,
                                          .filter = {.state = WEFT_STATE_RUNNING}});
    ok(got.matched == 1 && got.changed == 1, "the one that runs");
    expect_fenced(f, &lease, WEFT_FENCE_CANCELLED);
    is_int(in_state(f, WEFT_STATE_READY), 2, "the others wait on");
}

CASE(sweep_replay_failed)
{
    const struct weft_policy once = {.max_attempts = 1};
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .policy = &once}, 9);
    struct weft_claim_result got = claim(f, f->a, 9);
    for (size_t i = 0; i < 9; i++) {
        if (i % 3 == 0)
            (void)complete(f, f->a, &got.item[i], NULL);
        else if (i % 3 == 1)
            (void)fail(f, f->a, &got.item[i], "net");
        else
            (void)steer(f, WEFT_STEER_CANCEL, &(struct weft_steer){.id = got.item[i].id});
    }
    struct weft_sweep done = sweep(
        f, &(struct weft_steer_all){.kind = WEFT_STEER_REPLAY,
                                    .filter = {.state = WEFT_STATE_FAILED, .lane = "default"}});
    ok(done.matched == 3 && done.changed == 3 && !done.more, "the three that failed");
    is_int(in_state(f, WEFT_STATE_READY), 3, "the three that failed are ready again");
    ok(in_state(f, WEFT_STATE_SUCCEEDED) == 3 && in_state(f, WEFT_STATE_CANCELLED) == 3,
       "the others are as they were");
    is_int(claim(f, f->b, 10).count, 3, "the replayed ones can be claimed by the other process");
}

/* A sweep walks only where its kind of change can be made. */
CASE(sweep_of_the_wrong_kind)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 2);
    (void)complete(f, f->a, &(struct weft_claimed){.id = claim_one(f, f->a).id, .epoch = 1}, NULL);
    struct weft_sweep got =
        sweep(f, &(struct weft_steer_all){.kind = WEFT_STEER_REPLAY,
                                          .filter = {.state = WEFT_STATE_READY}});
    ok(got.matched == 0 && got.changed == 0, "replay finds nothing among the living");
    got = sweep(f, &(struct weft_steer_all){.kind = WEFT_STEER_CANCEL,
                                            .filter = {.state = WEFT_STATE_SUCCEEDED}});
    ok(got.matched == 0 && got.changed == 0, "cancel finds nothing among the ended");
    got = sweep(f,
                &(struct weft_steer_all){.kind = WEFT_STEER_CANCEL, .filter = {.lane = "default"}});
    ok(got.matched == 1 && got.changed == 1, "a cancel by lane takes only the living");
}

CASE(sweep_max_and_more)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 2500);
    struct weft_steer_all args = {
        .kind = WEFT_STEER_CANCEL, .filter = {.kind = "job"}, .max = 1100};
    struct weft_sweep got = sweep(f, &args);
    ok(got.matched == 1100 && got.changed == 1100 && got.more,
       "a sweep takes as many as allowed and reports more");
    is_int(in_state(f, WEFT_STATE_READY), 1400, "the rest waits");
    size_t changed = got.changed;
    for (int calls = 0; got.more && calls < 5; calls++) {
        got = sweep(f, &args);
        changed += got.changed;
    }
    is_int(changed, 2500, "calling again gets to the end");
    ok(!got.more, "the last call reports no more");
    args = (struct weft_steer_all){.kind = WEFT_STEER_REPLAY,
                                   .filter = {.state = WEFT_STATE_CANCELLED}};
    got = sweep(f, &args);
    ok(got.matched == 2500 && got.changed == 2500 && !got.more, "one replay takes 2,500");
    is_int(in_state(f, WEFT_STATE_READY), 2500, "all are ready again");
}

/* By cursor: calls follow each other to the end, however many matches cannot be changed. */
CASE(sweep_by_cursor)
{
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 1500);
    struct weft_steer_all args = {.kind = WEFT_STEER_CANCEL, .filter = {.kind = "job"}, .max = 700};
    struct weft_sweep got = sweep(f, &args);
    ok(got.changed == 700 && got.more && got.next[0], "the first call gives a cursor");
    forward_ms(f, 10);
    struct weft_id later = submit_job(f);
    size_t changed = got.changed, calls = 1;
    while (got.more && calls < 10) {
        char next[WEFT_CURSOR_TEXT];
        memcpy(next, got.next, sizeof(next));
        args.after = next;
        got = sweep(f, &args);
        changed += got.changed;
        calls++;
    }
    is_int(changed, 1500, "all that were there are cancelled");
    is_int(calls, 3, "in three calls");
    is_str(got.next, "", "the last one has no cursor");
    is_int(describe(f, &later).state, WEFT_STATE_READY,
           "an execution that was submitted meanwhile is not taken");
    args.after = "nonsense";
    args.filter.ns = "default";
    is_int(weft_engine_steer_all(f->b, &args, &got, &f->err), WEFT_INVALID_VALUE,
           "a cursor that is none");
    expect_err(&f->err, WEFT_INVALID_VALUE, "after", "a cursor that is none");
}

/* A replayed execution that fails again at once lies behind the cursor. */
CASE(sweep_replay_by_cursor)
{
    const struct weft_policy once = {.max_attempts = 1};
    (void)submit_copies(f, &(struct weft_spec){.kind = "job", .policy = &once}, 6);
    struct weft_claim_result got = claim(f, f->a, 6);
    for (size_t i = 0; i < got.count; i++)
        (void)fail(f, f->a, &got.item[i], i % 2 ? "net" : "disk");
    struct weft_steer_all args = {.kind = WEFT_STEER_REPLAY,
                                  .filter = {.error_class = "net", .finished_since_us = 1},
                                  .max = 1};
    struct weft_sweep done = {.more = true};
    size_t changed = 0, calls = 0;
    while (done.more && calls++ < 10) {
        char next[WEFT_CURSOR_TEXT];
        memcpy(next, done.next, sizeof(next));
        args.after = next[0] ? next : NULL;
        done = sweep(f, &args);
        changed += done.changed;
        struct weft_claim_result again = claim(f, f->a, 1);
        for (size_t i = 0; i < again.count; i++)
            (void)fail(f, f->a, &again.item[i], "net");
    }
    is_int(changed, 3, "each that failed so is replayed once");
    ok(!done.more, "the last call reports no more");
}

CASE(sweep_refused)
{
    static const struct weft_tag bad = {"a b", "v"};
    char reason[WEFT_REASON_MAX + 2];
    memset(reason, 'r', sizeof(reason));
    reason[WEFT_REASON_MAX + 1] = '\0';
    const struct {
        const char *name;
        struct weft_steer_all args;
        enum weft_rc rc;
        const char *field;
    } row[] = {
        {"an empty filter", {.kind = WEFT_STEER_CANCEL}, WEFT_INVALID_VALUE, "filter"},
        {"only a namespace",
         {.kind = WEFT_STEER_REPLAY, .filter = {.ns = "default"}},
         WEFT_INVALID_VALUE,
         "filter"},
        {"reprioritize",
         {.kind = WEFT_STEER_REPRIORITIZE, .filter = {.kind = "job"}},
         WEFT_INVALID_VALUE,
         "kind"},
        {"a short id", {.filter = {.id = "018bcfe5"}}, WEFT_INVALID_VALUE, "id"},
        {"a bad tag", {.filter = {.tag = &bad}}, WEFT_INVALID_VALUE, "tags"},
        {"a bad lane", {.filter = {.lane = ""}}, WEFT_INVALID_VALUE, "lane"},
        {"an unknown state", {.filter = {.state = WEFT_STATE_COUNT}}, WEFT_INVALID_VALUE, "state"},
        {"a bad reason",
         {.filter = {.kind = "job"}, .reason = "\xff"},
         WEFT_INVALID_VALUE,
         "reason"},
        {"a long reason", {.filter = {.kind = "job"}, .reason = reason}, WEFT_TOO_LARGE, "reason"},
    };
    (void)submit_copies(f, &(struct weft_spec){.kind = "job"}, 3);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_steer_all args = row[i].args;
        struct weft_sweep got;
        struct weft_err err = {0};
        if (!args.filter.ns)
            args.filter.ns = "default";
        is_int(weft_engine_steer_all(f->a, &args, &got, &err), row[i].rc, "%s: refused",
               row[i].name);
        expect_err(&err, row[i].rc, row[i].field, row[i].name);
    }
    is_int(in_state(f, WEFT_STATE_READY), 3, "no execution was changed");
}

/* Rows that fit lie thinly among many that do not: the sweep goes on from page to page. */
CASE(sweep_of_thin_rows)
{
    struct weft_spec *spec = weft_new_array(f->arena, struct weft_spec, 3000);
    for (size_t i = 0; i < 3000; i++)
        spec[i] = (struct weft_spec){
            .kind = "job", .tags = &red, .tag_count = i % 100 == 0, .delay_ms = i % 2 ? 1000 : 0};
    (void)submit_many(f, f->a, spec, 3000);
    struct weft_sweep got =
        sweep(f, &(struct weft_steer_all){.kind = WEFT_STEER_CANCEL, .filter = {.tag = &red}});
    ok(got.matched == 30 && got.changed == 30 && !got.more, "thirty of three thousand");
    is_int(count_rows(f, &(struct weft_filter){.tag = &red, .state = WEFT_STATE_CANCELLED}), 30,
           "the cancelled ones are red");
    is_int(in_state(f, WEFT_STATE_CANCELLED), 30, "no other execution is cancelled");
}
