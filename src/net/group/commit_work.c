/* SPDX-License-Identifier: Apache-2.0 */

/* Each flow gets a bounded piece of work (two hops, a chunk of members) and is added again if there
 * is more, as is a budget that cancels; others join in between, and other tasks take their turns.
 */

#include "net/group/commit_work.h"

#include "base/alloc.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/batch/batch.h"
#include "engine/flow/cascade.h"
#include "engine/flow/flow.h"
#include "engine/limit/admit.h"
#include "net/group/group.h"
#include "net/metrics.h"
#include "net/server.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With more admissions waiting, a thread that adds some runs so many. */
enum { HELP_ABOVE = 500, HELP = 250 };

struct gate {
    char name[WEFT_GATE_KEY];
};

struct weft_commit_work {
    struct weft_server *server;
    enum weft_commit_work_kind kind;
    pthread_mutex_t lock; /* over all below; stands alone */
    void *item;           /* owned; some perhaps twice */
    size_t count, room;
    bool running; /* a task is queued or under way */
    bool stopping;
    bool failing; /* the last run failed */
};

static void add(struct weft_commit_work *work, const void *item, size_t count);

/* ---- What the kinds do ----------------------------------------------------------------------- */

static enum weft_rc cascade(struct weft_commit_work *work, void *item, size_t count,
                            struct weft_err *err)
{
    size_t flows = weft_ids_sort(item, count);
    return weft_cascade_chunks(work->server->engine, item, flows, WEFT_CASCADE_ROUND, err);
}

/* Drains a chunk of each. A flow that another replica or the scanner has locked is left to it. */
static enum weft_rc drain(struct weft_commit_work *work, void *item, size_t count,
                          struct weft_err *err)
{
    struct weft_id *flow = item;
    size_t flows = weft_ids_sort(flow, count);
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < flows && !rc; i++) {
        struct weft_flow_drain piece = {.flow = flow[i]};
        rc = weft_engine_flow_drain(work->server->engine, &piece, err);
        if (!rc && piece.more && !piece.locked)
            add(work, &flow[i], 1);
    }
    return rc;
}

static enum weft_rc admit(struct weft_commit_work *work, void *item, size_t count,
                          struct weft_err *err)
{
    const struct gate *gate = item;
    struct weft_admitted admitted = {0};
    const char **name = weft_alloc(count, sizeof(*name));
    for (size_t i = 0; i < count; i++)
        name[i] = gate[i].name;
    enum weft_rc rc = weft_engine_admit(work->server->engine, name, count, &admitted, err);
    weft_metric_add(work->server->metrics, WEFT_METRIC_GATE_ADMITTED, 0, admitted.admitted);
    free((void *)name);
    return rc;
}

static enum weft_rc settle(struct weft_commit_work *work, void *item, size_t count,
                           struct weft_err *err)
{
    uint64_t settled = 0;
    enum weft_rc rc = weft_engine_settle(work->server->engine, item, count, &settled, err);
    weft_metric_add(work->server->metrics, WEFT_METRIC_BUDGET_SETTLED, 0, settled);
    return rc;
}

/* The items say only that there is something to do: the budgets say so themselves. */
static enum weft_rc cancel(struct weft_commit_work *work, void *item, size_t count,
                           struct weft_err *err)
{
    struct weft_budget_cancelled cancelled = {0};
    (void)count;
    enum weft_rc rc =
        weft_engine_budget_cancel(work->server->engine, WEFT_BATCH_MAX, &cancelled, err);
    weft_metric_add(work->server->metrics, WEFT_METRIC_BUDGET_CANCELLED, 0, cancelled.cancelled);
    if (!rc && cancelled.more)
        add(work, item, 1);
    return rc;
}

/* One step of each, so that a large batch leaves room for others. */
static enum weft_rc step_batches(struct weft_commit_work *work, void *item, size_t count,
                                 struct weft_err *err)
{
    struct weft_id *batch = item;
    size_t batches = weft_ids_sort(batch, count);
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < batches; i++) {
        bool more = false;
        enum weft_rc one =
            weft_engine_batch_step(work->server->engine, &batch[i], &more, rc ? NULL : err);
        rc = rc ? rc : one;
        if (more)
            add(work, &batch[i], 1);
    }
    return rc;
}

static const struct kind {
    size_t item_size;
    enum weft_rc (*run)(struct weft_commit_work *work, void *item, size_t count,
                        struct weft_err *err);
    const char *failed; /* logged at the first failure */
} kinds[WEFT_WORK_KINDS] = {
    [WEFT_WORK_CASCADES] = {sizeof(struct weft_id), cascade,
                            "a cascade failed; the dependency scanner makes up for it"},
    [WEFT_WORK_DRAINS] = {sizeof(struct weft_id), drain,
                          "members of a cancelled flow are left to the cancel_backlog scanner"},
    [WEFT_WORK_ADMISSIONS] = {sizeof(struct gate), admit,
                              "an admission failed; the unblock scanner makes up for it"},
    [WEFT_WORK_SETTLEMENTS] = {sizeof(struct weft_lease_end), settle,
                               "leases under budgets are left to the budget_reset scanner"},
    [WEFT_WORK_BUDGET_CANCELS] = {1, cancel,
                                  "cancels of a budget are left to the budget_reset scanner"},
    [WEFT_WORK_BATCHES] = {sizeof(struct weft_id), step_batches,
                           "a batch is left to the batch_progress scanner"},
};

/* ---- Tasks ----------------------------------------------------------------------------------- */

struct weft_commit_work *weft_commit_work_new(struct weft_server *server,
                                              enum weft_commit_work_kind kind)
{
    struct weft_commit_work *work = weft_alloc(1, sizeof(*work));
    work->server = server;
    work->kind = kind;
    pthread_mutex_init(&work->lock, NULL);
    return work;
}

void weft_commit_work_stop(struct weft_commit_work *work)
{
    if (!work)
        return;
    pthread_mutex_lock(&work->lock);
    work->stopping = true;
    pthread_mutex_unlock(&work->lock);
}

void weft_commit_work_free(struct weft_commit_work *work)
{
    if (!work)
        return;
    pthread_mutex_destroy(&work->lock);
    free(work->item);
    free(work);
}

/* Takes what was added: the caller frees it. After a stop there is nothing, also for a task that
 * was queued before it. */
static void *take(struct weft_commit_work *work, size_t *ret_count)
{
    void *item = NULL;
    *ret_count = 0;
    pthread_mutex_lock(&work->lock);
    if (!work->stopping) {
        item = work->item;
        *ret_count = work->count;
        work->item = NULL;
        work->count = work->room = 0;
    }
    pthread_mutex_unlock(&work->lock);
    return item;
}

static void run(struct weft_commit_work *work, void *item, size_t count)
{
    const struct kind *kind = &kinds[work->kind];
    struct weft_err err = {0};
    enum weft_rc rc = kind->run(work, item, count, &err);
    pthread_mutex_lock(&work->lock);
    bool fresh = rc && !work->failing;
    work->failing = rc != WEFT_OK;
    pthread_mutex_unlock(&work->lock);
    if (fresh)
        weft_warn(kind->failed, F_STR("error", err.text));
}

static void run_task(struct weft_server *server, void *context)
{
    struct weft_commit_work *work = context;
    size_t count;
    void *item = take(work, &count);
    if (count > 0)
        run(work, item, count);
    free(item);
    pthread_mutex_lock(&work->lock);
    work->running = work->count > 0 && !work->stopping;
    bool again = work->running;
    pthread_mutex_unlock(&work->lock);
    if (again)
        weft_groups_do(server->groups, run_task, work);
}

static void add(struct weft_commit_work *work, const void *item, size_t count)
{
    size_t size = kinds[work->kind].item_size;
    pthread_mutex_lock(&work->lock);
    if (work->count + count > work->room) {
        work->room = 2 * work->room + count;
        work->item = weft_realloc(work->item, work->room, size);
    }
    memcpy((char *)work->item + work->count * size, item, count * size);
    work->count += count;
    bool first = !work->running && !work->stopping;
    work->running |= first;
    pthread_mutex_unlock(&work->lock);
    if (first)
        weft_groups_do(work->server->groups, run_task, work);
}

/*
 * Ends that come faster than their gates are admitted would leave more and more to the task, and to
 * the scanner when the process dies: a call that adds to a long list does some of it first, before
 * its requests are answered. With one writer nothing runs beside the task.
 */
static void help(struct weft_commit_work *work)
{
    struct gate item[HELP];
    bool much = false;
    if (weft_engine_writers(work->server->engine) == 1)
        return;
    pthread_mutex_lock(&work->lock);
    if (work->count > HELP_ABOVE && !work->stopping) {
        work->count -= HELP;
        memcpy(item, (struct gate *)work->item + work->count, sizeof(item));
        much = true;
    }
    pthread_mutex_unlock(&work->lock);
    if (much)
        run(work, item, HELP);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

void weft_add_cascades(void *context, const struct weft_id *flow, size_t count)
{
    struct weft_server *server = context;
    add(server->work[WEFT_WORK_CASCADES], flow, count);
}

void weft_add_drain(struct weft_server *server, const struct weft_id *flow)
{
    add(server->work[WEFT_WORK_DRAINS], flow, 1);
}

void weft_add_batch(struct weft_server *server, const struct weft_id *batch)
{
    add(server->work[WEFT_WORK_BATCHES], batch, 1);
}

void weft_add_admissions(void *context, const char *const *gate, size_t count)
{
    struct weft_server *server = context;
    for (size_t i = 0; i < count; i++) {
        struct gate item;
        (void)snprintf(item.name, sizeof(item.name), "%s", gate[i]);
        add(server->work[WEFT_WORK_ADMISSIONS], &item, 1);
    }
    help(server->work[WEFT_WORK_ADMISSIONS]);
}

void weft_add_budget_work(void *context, const struct weft_lease_end *ended, size_t count,
                          bool cancel_too)
{
    struct weft_server *server = context;
    if (count > 0)
        add(server->work[WEFT_WORK_SETTLEMENTS], ended, count);
    if (cancel_too)
        add(server->work[WEFT_WORK_BUDGET_CANCELS], "", 1);
}
