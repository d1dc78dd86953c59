/* SPDX-License-Identifier: Apache-2.0 */

#include "net/group/gate_work.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/log.h"
#include "engine/limit/admit.h"
#include "net/group/group.h"
#include "net/metrics.h"
#include "net/server.h"

#include <pthread.h>
#include <stdlib.h>

/* The gates of one task: their names are in the arena. */
struct load {
    struct weft_arena *arena;
    const char **gate; /* owned */
    size_t count, room;
};

struct weft_gate_work {
    struct weft_server *server;
    pthread_mutex_t lock; /* over all below; stands alone */
    struct load next;
    bool running; /* a task is queued or under way */
    bool stopping;

    bool failing; /* the task's */
};

struct weft_gate_work *weft_gate_work_new(struct weft_server *server)
{
    struct weft_gate_work *work = weft_alloc(1, sizeof(*work));
    work->server = server;
    pthread_mutex_init(&work->lock, NULL);
    return work;
}

void weft_gate_work_stop(struct weft_gate_work *work)
{
    if (!work)
        return;
    pthread_mutex_lock(&work->lock);
    work->stopping = true;
    pthread_mutex_unlock(&work->lock);
}

static void drop(struct load *load)
{
    weft_arena_free(load->arena);
    free((void *)load->gate);
}

void weft_gate_work_free(struct weft_gate_work *work)
{
    if (!work)
        return;
    pthread_mutex_destroy(&work->lock);
    drop(&work->next);
    free(work);
}

/* Gates that are added meanwhile are for the next task, behind the requests that wait by then. */
static void run_task(struct weft_server *server, void *context)
{
    struct weft_gate_work *work = context;
    struct weft_err err = {0};
    struct weft_admitted admitted = {0};
    pthread_mutex_lock(&work->lock);
    struct load load = work->next;
    work->next = (struct load){0};
    bool stopping = work->stopping;
    pthread_mutex_unlock(&work->lock);
    enum weft_rc rc = WEFT_OK;
    if (load.count > 0 && !stopping)
        rc = weft_engine_admit(server->engine, load.gate, load.count, &admitted, &err);
    weft_metric_add(server->metrics, WEFT_METRIC_GATE_ADMITTED, 0, admitted.admitted);
    drop(&load);
    if (rc && !work->failing)
        weft_warn("an admission failed; the unblock scanner makes up for it",
                  F_STR("error", err.text));
    work->failing = rc != WEFT_OK;
    pthread_mutex_lock(&work->lock);
    work->running = work->next.count > 0 && !work->stopping;
    bool again = work->running;
    pthread_mutex_unlock(&work->lock);
    if (again)
        weft_groups_do(server->groups, run_task, work);
}

void weft_gate_work_add(void *context, const char *const *gate, size_t count)
{
    struct weft_gate_work *work = context;
    pthread_mutex_lock(&work->lock);
    struct load *load = &work->next;
    if (!load->arena)
        load->arena = weft_arena_new();
    if (load->count + count > load->room) {
        load->room = 2 * load->room + count;
        load->gate = weft_realloc((void *)load->gate, load->room, sizeof(*load->gate));
    }
    for (size_t i = 0; i < count; i++)
        load->gate[load->count++] = weft_arena_strdup(load->arena, gate[i]);
    bool first = !work->running && !work->stopping;
    work->running |= first;
    pthread_mutex_unlock(&work->lock);
    if (first)
        weft_groups_do(work->server->groups, run_task, work);
}
