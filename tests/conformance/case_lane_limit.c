/* SPDX-License-Identifier: Apache-2.0 */

/* Windows and rates of lanes: how often their executions start, whatever process claims them. */

#include "conformance.h"

#include "base/arena.h"
#include "engine/admin/lanes.h"
#include "engine/job/claim.h"
#include "engine/limit/why.h"
#include "engine/wait/wait.h"
#include "weft/weft.h"

#include <string.h>

enum { TURNS = 400 };

static void submit_jobs(struct fixture *f, int count)
{
    for (int i = 0; i < count; i++)
        (void)submit_job(f);
}

/* Claims from one process and completes what it got. */
static size_t run_up_to(struct fixture *f, struct weft_engine *engine, uint32_t max)
{
    struct weft_claim_result got = claim(f, engine, max);
    for (size_t i = 0; i < got.count; i++)
        (void)complete(f, engine, &got.item[i], NULL);
    return got.count;
}

CASE(lane_window_is_kept_over_processes)
{
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .window = {10, 1000}});
    submit_jobs(f, 40);
    is_int(run_up_to(f, f->a, 7), 7, "seven of ten start");
    forward_ms(f, 500);
    is_int(run_up_to(f, f->b, 7), 3, "another process gets the rest of the window");
    struct weft_claim_result none = claim(f, f->a, 7);
    is_int(none.count, 0, "the window is full, although nothing runs");
    ok(none.opens_in_us > 400 * WEFT_MS && none.opens_in_us < 700 * WEFT_MS,
       "the window opens when the first seven leave it: in %lld us", (long long)none.opens_in_us);
    forward_ms(f, 530);
    is_int(run_up_to(f, f->a, 20), 7, "as many start again as have left the window");
    is_int(run_up_to(f, f->b, 20), 0, "no more start than have left the window");
}

/* Over many small steps of time: never one too many in any span, and hardly any too few. */
CASE(lane_window_loses_little)
{
    enum { LIMIT = 10, SPAN_MS = 1000, STEP_MS = 7 };
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .window = {LIMIT, SPAN_MS}});
    submit_jobs(f, 60);
    int64_t at[TURNS] = {0};
    int started = 0, most = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        size_t got = run_up_to(f, turn % 2 ? f->a : f->b, 3);
        for (size_t i = 0; i < got; i++)
            at[started++] = (int64_t)turn * STEP_MS;
        int within = 0;
        for (int i = 0; i < started; i++)
            within += at[i] > (int64_t)turn * STEP_MS - SPAN_MS;
        most = within > most ? within : most;
        forward_ms(f, STEP_MS);
    }
    is_int(most, LIMIT, "no span has more starts than the limit, and one has as many");
    ok(started >= TURNS * STEP_MS / SPAN_MS * LIMIT, "%d started", started);
}

CASE(lane_rate_is_a_bucket)
{
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .rate = {10, 1000, 3}});
    submit_jobs(f, 20);
    is_int(run_up_to(f, f->a, 10), 3, "a burst");
    struct weft_claim_result none = claim(f, f->b, 10);
    is_int(none.count, 0, "no token is left");
    ok(none.opens_in_us > 0 && none.opens_in_us <= 110 * WEFT_MS, "the next one comes in %lld us",
       (long long)none.opens_in_us);
    forward_ms(f, 101);
    is_int(run_up_to(f, f->b, 10), 1, "after a tenth of a second there is one");
    forward_ms(f, 10000);
    is_int(run_up_to(f, f->a, 10), 3, "no more are saved than a burst");
}

CASE(lane_limits_hold_together)
{
    put_lane(f, f->a,
             &(struct weft_lane){.name = "default", .max_running = 2, .window = {3, 60000}});
    submit_jobs(f, 5);
    struct weft_claim_result two = claim(f, f->a, 5);
    is_int(two.count, 2, "two run at once");
    is_int(claim(f, f->b, 5).opens_in_us, 0, "time alone makes no room");
    (void)complete(f, f->a, &two.item[0], NULL);
    (void)complete(f, f->a, &two.item[1], NULL);
    is_int(run_up_to(f, f->b, 5), 1, "the third start of the window");
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .max_running = 2});
    is_int(run_up_to(f, f->b, 5), 2, "without the window the others start");
}

CASE(lane_window_is_forgotten_with_its_setting)
{
    struct weft_lane had;
    struct weft_err err;
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .window = {1, 60000}});
    submit_jobs(f, 3);
    is_int(run_up_to(f, f->a, 3), 1, "one starts");
    is_int(weft_engine_lane_remove(f->b, "default", "default", f->arena, &had, &err), WEFT_OK,
           "the settings are removed");
    ok(had.window.limit == 1 && had.window.per_ms == 60000, "the answer has the removed settings");
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .window = {1, 60000}});
    is_int(run_up_to(f, f->b, 3), 1, "a new window begins empty");
}

CASE(lane_limits_refused)
{
    static const struct {
        struct weft_lane lane;
        const char *field;
    } bad[] = {
        {{.name = "x", .window = {1, 0}}, "window.per_ms"},
        {{.name = "x", .window = {0, 1000}}, "window.limit"},
        {{.name = "x", .rate = {1, -1, 0}}, "rate.per_ms"},
        {{.name = "x", .rate = {0, 0, 5}}, "rate.limit"},
    };
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        struct weft_err err = {0};
        is_int(weft_engine_lane_put(f->a, "default", &bad[i].lane, &err), WEFT_INVALID_VALUE,
               "%s is refused: %s", bad[i].field, err.text);
        is_str(err.field, bad[i].field, "the field is named");
    }
}

CASE(lane_rate_says_why)
{
    struct weft_why why;
    struct weft_err err;
    put_lane(f, f->a, &(struct weft_lane){.name = "default", .rate = {1, 60000, 1}});
    submit_jobs(f, 1);
    is_int(run_up_to(f, f->a, 1), 1, "one starts");
    const struct weft_wait_asking asking = {.ns = "default", .id = submit_job(f)};
    is_int(weft_engine_why(f->b, &asking, f->arena, &why, &err), WEFT_OK, "asked");
    is_str(why.why, "rate", "its lane has no token");
    ok(strstr(why.text, "lets 1 start each 60000 ms") && strstr(why.detail, "\"next_at\""),
       "the sentence says when: %s %s", why.text, why.detail);
}
