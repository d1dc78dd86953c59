/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client's retry folded into the same call as its original. The two must not meet in one
 * transaction: the second has to see what the first did, and be answered as a repeat.
 */

#include "direct.h"
#include "race.h"

#include "base/arena.h"
#include "base/id.h"
#include "engine/job/control.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"
#include "weft/weft.h"

RACE(the_same_key_twice_in_one_call)
{
    const struct weft_spec spec[] = {
        {.kind = "other"},
        {.kind = "job", .key = "key", .payload = "1", .payload_size = 1},
        {.kind = "job", .key = "key", .payload = "1", .payload_size = 1},
        {.kind = "job", .key = "key", .payload = "2", .payload_size = 1},
    };
    struct weft_submitted answer[WEFT_LEN(spec)];
    struct weft_err err;
    enum weft_rc rc = engine_submit(race->a, "default", spec, WEFT_LEN(spec), answer, &err);
    is_int(rc, WEFT_OK, "the call succeeds");
    ok(!answer[1].err.rc && !answer[1].duplicate, "the original is accepted");
    ok(!answer[2].err.rc && answer[2].duplicate, "its retry is a duplicate");
    ok(weft_id_cmp(&answer[1].id, &answer[2].id) == 0, "the duplicate has the id of the original");
    is_int(answer[2].state, WEFT_STATE_READY, "the state in the duplicate's answer is ready");
    is_int(answer[3].err.rc, WEFT_CONFLICT, "another payload under this key is a conflict");
    struct weft_claimed item[WEFT_LEN(spec)];
    is_int(take_work(race->b, "default", WEFT_LEN(spec), item), 2, "two executions in all");
}

RACE(the_same_lease_twice_in_one_call)
{
    enum { COMPLETE, FAIL, RELEASE, ROWS };
    /* Jitter, so that deciding twice cannot give the same answer by accident. */
    static const struct weft_policy policy = {.initial_ms = 50000000, .max_ms = 60000000};
    struct weft_id id[ROWS];
    struct weft_claimed lease[ROWS];
    struct weft_lease_answer answer[2];
    struct weft_err err;
    put_work(race->a, &(struct weft_spec){.kind = "job", .policy = &policy}, ROWS, id);
    is_int(take_work(race->a, "default", ROWS, lease), ROWS, "claimed");

    const struct weft_complete complete = {.id = lease[COMPLETE].id, .epoch = 1};
    is_int(engine_complete(race->a, (struct weft_complete[]){complete, complete}, 2, answer, &err),
           WEFT_OK, "complete twice");
    ok(!answer[0].err.rc && !answer[1].err.rc && answer[0].state == WEFT_STATE_SUCCEEDED &&
           answer[1].state == WEFT_STATE_SUCCEEDED,
       "both completions are answered succeeded");
    is_int(attempts_of(race->b, &lease[COMPLETE].id), 1, "the lease has one end");

    const struct weft_failure fail = {.id = lease[FAIL].id, .epoch = 1, .message = "broke"};
    is_int(engine_fail(race->a, (struct weft_failure[]){fail, fail}, 2, answer, &err), WEFT_OK,
           "fail twice");
    ok(!answer[0].err.rc && !answer[1].err.rc && answer[0].state == WEFT_STATE_DELAYED,
       "both failures are answered delayed");
    is_int(answer[1].run_at_us, answer[0].run_at_us, "both answers have the same retry time");
    struct weft_arena *arena = weft_arena_new();
    struct weft_execution now = look_at(race->b, &lease[FAIL].id, arena);
    is_int(now.run_at_us, answer[0].run_at_us, "the stored retry time is that of the answers");
    is_int(now.attempt, 2, "one attempt was spent");
    weft_arena_free(arena);

    const struct weft_put_back release = {.id = lease[RELEASE].id, .epoch = 1};
    is_int(engine_put_back(race->a, WEFT_PUT_BACK_RELEASE,
                           (struct weft_put_back[]){release, release}, 2, answer, &err),
           WEFT_OK, "release twice");
    ok(!answer[0].err.rc && !answer[1].err.rc, "both releases are answered ok");
    is_int(attempts_of(race->b, &lease[RELEASE].id), 1, "the released lease has one end");
}

RACE(the_same_steering_twice_in_one_call)
{
    struct weft_id id;
    struct weft_steered answer[2];
    struct weft_err err;
    put_work(race->a, &(struct weft_spec){.kind = "job"}, 1, &id);
    const struct weft_steer item[] = {{.id = id, .reason = "one"}, {.id = id, .reason = "two"}};
    struct weft_steering steering = {
        .kind = WEFT_STEER_CANCEL, .ns = "default", .item = item, .count = 2};
    is_int(engine_steer(race->a, &steering, answer, &err), WEFT_OK, "cancel twice");
    ok(answer[0].changed && !answer[1].changed && !answer[1].err.rc,
       "the second cancel succeeds and changes nothing");
    struct weft_arena *arena = weft_arena_new();
    is_str(look_at(race->b, &id, arena).reason, "one", "the first one's reason is kept");
    weft_arena_free(arena);
    steering.kind = WEFT_STEER_REPLAY;
    is_int(engine_steer(race->a, &steering, answer, &err), WEFT_OK, "replay twice");
    ok(answer[0].changed && !answer[0].err.rc, "the first replay changes the execution");
    is_int(answer[1].err.rc, WEFT_NOT_LIVE, "the second finds it living");
}
