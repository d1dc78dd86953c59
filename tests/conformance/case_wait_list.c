/* SPDX-License-Identifier: Apache-2.0 */

/* Lists and filters of suspended executions. */

#include "conformance.h"

#include "base/id.h"
#include "engine/admin/tally.h"
#include "engine/job/control.h"
#include "engine/job/list.h"
#include "engine/wait/wait.h"

/* An execution that is suspended until an operator resumes it; timeout_ms 0: it has none. */
static struct weft_id suspended(struct fixture *f, int64_t timeout_ms)
{
    struct weft_claimed lease = start(f, NULL);
    const struct weft_suspend item = {.id = lease.id,
                                      .epoch = lease.epoch,
                                      .condition = "{\"operator\":true}",
                                      .timeout_ms = timeout_ms,
                                      .on_timeout = WEFT_ON_TIMEOUT_ESCALATE};
    struct weft_suspend_result answer = {0};
    is_int(weft_engine_suspend(f->a, &item, 1, f->arena, &answer, &f->err), WEFT_OK, "suspend");
    is_int(answer.state, WEFT_STATE_SUSPENDED, "the execution is suspended");
    return lease.id;
}

CASE(wait_list_by_state)
{
    (void)submit_job(f);
    struct weft_id without = suspended(f, 0);
    forward_ms(f, 10); /* ids of one millisecond have no order */
    struct weft_id with = suspended(f, 60000);
    struct weft_read_page page =
        list_page(f, &(struct weft_listing){.filter.state = WEFT_STATE_SUSPENDED});
    is_int(page.count, 2, "the list has the suspended executions with and without a timeout");
    ok(page.count == 2 && weft_id_cmp(&page.item[0].id, &with) == 0 &&
           weft_id_cmp(&page.item[1].id, &without) == 0,
       "the newest first");
}

/* A cancel by filter found ready, delayed, blocked and running executions alone. */
CASE(wait_cancel_by_filter)
{
    struct weft_id ready = submit_job(f);
    struct weft_id without = suspended(f, 0), with = suspended(f, 60000);
    const struct weft_steer_all args = {.kind = WEFT_STEER_CANCEL,
                                        .filter = {.ns = "default", .created_since_us = 1}};
    struct weft_sweep sweep = {0};
    is_int(weft_engine_steer_all(f->b, &args, &sweep, &f->err), WEFT_OK, "cancel by filter");
    is_int(state_of(f, &ready), WEFT_STATE_CANCELLED, "a ready execution is cancelled");
    is_int(state_of(f, &without), WEFT_STATE_CANCELLED, "a suspended one is cancelled");
    is_int(state_of(f, &with), WEFT_STATE_CANCELLED, "a suspended one with a timeout is cancelled");
}

/* Executions that a list of escalated ones finds. */
static struct weft_read_page escalated(struct fixture *f, struct weft_filter filter)
{
    filter.escalated = true;
    return list_page(f, &(struct weft_listing){.filter = filter});
}

CASE(wait_list_escalated)
{
    (void)submit_job(f);
    (void)suspended(f, 0);
    struct weft_id first = suspended(f, 1000);
    forward_ms(f, 10);
    struct weft_id second = suspended(f, 1000);
    is_int(escalated(f, (struct weft_filter){0}).count, 0, "before a timeout none is escalated");
    forward_ms(f, 1000);
    is_int(run_pass(f, f->a, WEFT_SCANNER_SUSPENSION_TIMEOUT).handled, 2, "two time out");
    struct weft_read_page page = escalated(f, (struct weft_filter){0});
    ok(page.count == 2 && weft_id_cmp(&page.item[0].id, &second) == 0 &&
           weft_id_cmp(&page.item[1].id, &first) == 0,
       "both are listed, the newest first");
    const char *lane = describe(f, &first).lane;
    is_int(escalated(f, (struct weft_filter){.lane = lane}).count, 1, "a lane has one of them");
    is_int(escalated(f, (struct weft_filter){.state = WEFT_STATE_READY}).count, 0,
           "none of them is ready");
    is_int(escalated(f, (struct weft_filter){.ns = "elsewhere"}).count, 0,
           "another namespace has none");
    page = list_page(f, &(struct weft_listing){.filter.escalated = true, .limit = 1});
    ok(page.count == 1 && page.next, "a page of one has a next one");
    struct weft_counts counts = {0};
    is_int(weft_engine_counts(f->b, "default", lane, f->arena, &counts, &f->err), WEFT_OK,
           "the lane is counted");
    ok(counts.count == 1 && counts.item[0].escalated == 1 &&
           counts.item[0].count[WEFT_STATE_SUSPENDED] == 1,
       "the lane has one escalated execution, and it is suspended");
    is_int(steer_id(f, WEFT_STEER_RESUME, &second).state, WEFT_STATE_READY, "one is resumed");
    page = escalated(f, (struct weft_filter){0});
    ok(page.count == 1 && weft_id_cmp(&page.item[0].id, &first) == 0,
       "a resumed one is listed no longer");
    const struct weft_steer_all args = {.kind = WEFT_STEER_CANCEL,
                                        .filter = {.ns = "default", .escalated = true}};
    struct weft_sweep sweep = {0};
    is_int(weft_engine_steer_all(f->b, &args, &sweep, &f->err), WEFT_OK, "cancel the escalated");
    is_int(sweep.changed, 1, "the cancel takes the one that is left");
    is_int(state_of(f, &first), WEFT_STATE_CANCELLED, "the one that was left is cancelled");
}
