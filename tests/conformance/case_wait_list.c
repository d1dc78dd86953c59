/* SPDX-License-Identifier: Apache-2.0 */

/* Lists and filters of suspended executions. */

#include "conformance.h"

#include "base/id.h"
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
    is_int(answer.state, WEFT_STATE_SUSPENDED, "it is suspended");
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
    is_int(page.count, 2, "a list of suspended executions has those with and without a timeout");
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
    is_int(state_of(f, &with), WEFT_STATE_CANCELLED, "so is one with a timeout");
}
