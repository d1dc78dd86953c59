/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cascades follow the end of members; drains cancel members that a request did not wait for. A
 * request adds the flow here after its commit and goes on. For each of the two, one task at a time
 * works on all flows that were added since the last one: so flows that move at the same time share
 * transactions, and many large flows take one thread, not all. Each flow gets a bounded piece of
 * work (two hops, a chunk of members) and is added again if there is more; other flows join in
 * between, and other tasks take their turns. A failure is left to the scanners: dependency and
 * cancel_backlog.
 */

#include "net/group/flow_work.h"

#include "base/alloc.h"
#include "base/id.h"
#include "base/log.h"
#include "engine/flow/cascade.h"
#include "engine/flow/flow.h"
#include "net/group/group.h"
#include "net/server.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct weft_flow_work {
    struct weft_server *server;
    enum weft_flow_work_kind kind;
    pthread_mutex_t lock; /* over all below; stands alone */
    struct weft_id *flow; /* owned; some perhaps twice */
    size_t count, room;
    bool running; /* a task is queued or under way */
    bool stopping;

    bool failing; /* the task's */
};

struct weft_flow_work *weft_flow_work_new(struct weft_server *server, enum weft_flow_work_kind kind)
{
    struct weft_flow_work *work = weft_alloc(1, sizeof(*work));
    work->server = server;
    work->kind = kind;
    pthread_mutex_init(&work->lock, NULL);
    return work;
}

void weft_flow_work_stop(struct weft_flow_work *work)
{
    if (!work)
        return;
    pthread_mutex_lock(&work->lock);
    work->stopping = true;
    pthread_mutex_unlock(&work->lock);
}

void weft_flow_work_free(struct weft_flow_work *work)
{
    if (!work)
        return;
    pthread_mutex_destroy(&work->lock);
    free(work->flow);
    free(work);
}

/*
 * Takes the flows that were added: the caller frees them. After a stop there are none, also for a
 * task that was queued before it.
 */
static struct weft_id *take(struct weft_flow_work *work, size_t *ret_count)
{
    struct weft_id *flow = NULL;
    size_t added = 0, count = 0;
    pthread_mutex_lock(&work->lock);
    if (!work->stopping) {
        flow = work->flow;
        added = work->count;
        work->flow = NULL;
        work->count = work->room = 0;
    }
    pthread_mutex_unlock(&work->lock);
    if (added > 1)
        qsort(flow, added, sizeof(*flow), weft_id_order);
    for (size_t i = 0; i < added; i++)
        if (count == 0 || weft_id_cmp(&flow[count - 1], &flow[i]) != 0)
            flow[count++] = flow[i];
    *ret_count = count;
    return flow;
}

/* Drains a chunk of each. A flow that another replica or the scanner has locked is left to it. */
static enum weft_rc drain(struct weft_flow_work *work, const struct weft_id *flow, size_t count,
                          struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        struct weft_flow_drain piece = {.flow = flow[i]};
        rc = weft_engine_flow_drain(work->server->engine, &piece, err);
        if (!rc && piece.more && !piece.locked)
            weft_flow_work_add(work, &flow[i], 1);
    }
    return rc;
}

/* Does a piece of the work of each flow; they are sorted, none is there twice. */
static void run_flows(struct weft_flow_work *work, const struct weft_id *flow, size_t count)
{
    static const char *const failed[] = {
        [WEFT_FLOW_CASCADES] = "a cascade failed; the dependency scanner makes up for it",
        [WEFT_FLOW_DRAINS] = "members of a cancelled flow are left to the cancel_backlog scanner",
    };
    struct weft_err err = {0};
    enum weft_rc rc =
        work->kind == WEFT_FLOW_DRAINS
            ? drain(work, flow, count, &err)
            : weft_cascade_chunks(work->server->engine, flow, count, WEFT_CASCADE_ROUND, &err);
    if (rc && !work->failing)
        weft_warn(failed[work->kind], F_STR("error", err.text));
    work->failing = rc != WEFT_OK;
}

/* Flows that are added meanwhile are for the next task, behind the requests that wait by then. */
static void run_task(struct weft_server *server, void *context)
{
    struct weft_flow_work *work = context;
    size_t count;
    struct weft_id *flow = take(work, &count);
    if (count > 0)
        run_flows(work, flow, count);
    free(flow);
    pthread_mutex_lock(&work->lock);
    work->running = work->count > 0 && !work->stopping;
    bool again = work->running;
    pthread_mutex_unlock(&work->lock);
    if (again)
        weft_groups_do(server->groups, run_task, work);
}

void weft_flow_work_add(void *context, const struct weft_id *flow, size_t count)
{
    struct weft_flow_work *work = context;
    pthread_mutex_lock(&work->lock);
    if (work->count + count > work->room) {
        size_t room = 2 * work->room + count;
        work->flow = weft_realloc(work->flow, room, sizeof(*work->flow));
        work->room = room;
    }
    memcpy(work->flow + work->count, flow, count * sizeof(*flow));
    work->count += count;
    bool first = !work->running && !work->stopping;
    work->running |= first;
    pthread_mutex_unlock(&work->lock);
    if (first)
        weft_groups_do(work->server->groups, run_task, work);
}
