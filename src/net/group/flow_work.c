/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cascades follow the end of members; drains cancel members that a request did not wait for. A
 * request adds the flow here after its commit and goes on. For each of the two, one task at a time
 * works on all flows that were added since the last one: so flows that move at the same time share
 * transactions, and many large flows take one thread, not all. Each flow gets a bounded piece of
 * work (two hops, a chunk of members) and is added again if there is more; other flows join in
 * between, and other tasks take their turns. What fails is left to the scanners: dependency and
 * cancel_backlog.
 */

#include "net/group/flow_work.h"

#include "base/alloc.h"
#include "base/arena.h"
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
    weft_flow_work_fn *run;
    const char *failed;   /* static; what the log says when run fails */
    pthread_mutex_t lock; /* over all below; stands alone */
    struct weft_id *flow; /* owned; some perhaps twice */
    size_t count, room;
    bool running; /* a task is queued or under way */
    bool stopping;

    bool failing; /* the task's */
};

struct weft_flow_work *weft_flow_work_new(struct weft_server *server, weft_flow_work_fn *run,
                                          const char *failed)
{
    struct weft_flow_work *work = weft_alloc(1, sizeof(*work));
    work->server = server;
    work->run = run;
    work->failed = failed;
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

static int by_id(const void *left, const void *right)
{
    return weft_id_cmp(left, right);
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
        qsort(flow, added, sizeof(*flow), by_id);
    for (size_t i = 0; i < added; i++)
        if (count == 0 || weft_id_cmp(&flow[count - 1], &flow[i]) != 0)
            flow[count++] = flow[i];
    *ret_count = count;
    return flow;
}

static void note(struct weft_flow_work *work, enum weft_rc rc, const struct weft_err *err)
{
    if (rc && !work->failing)
        weft_warn(work->failed, F_STR("error", err->text));
    work->failing = rc != WEFT_OK;
}

/* Flows that are added meanwhile are for the next task, behind the requests that wait by then. */
static void run_task(struct weft_server *server, void *context)
{
    struct weft_flow_work *work = context;
    struct weft_err err = {0};
    size_t count;
    struct weft_id *flow = take(work, &count);
    if (count > 0)
        note(work, work->run(server, flow, count, &err), &err);
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
        struct weft_id *wider = realloc(work->flow, room * sizeof(*wider));
        if (!wider)
            weft_oom(room * sizeof(*wider));
        work->flow = wider;
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

/* ---- The two --------------------------------------------------------------------------------- */

enum weft_rc weft_flow_work_cascade(struct weft_server *server, const struct weft_id *flow,
                                    size_t count, struct weft_err *err)
{
    return weft_cascade_chunks(server->engine, flow, count, WEFT_CASCADE_ROUND, err);
}

/* A flow that another replica or the scanner has locked is drained by it. */
enum weft_rc weft_flow_work_drain(struct weft_server *server, const struct weft_id *flow,
                                  size_t count, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        struct weft_flow_drain drain = {.flow = flow[i]};
        rc = weft_engine_flow_drain(server->engine, &drain, err);
        if (!rc && drain.more && !drain.locked)
            weft_flow_work_add(server->drains, &flow[i], 1);
    }
    return rc;
}
