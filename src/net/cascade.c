/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cascades of this server. Whoever committed the end of a member tells the flow here and goes
 * on; one errand at a time runs a round of the cascade of all that have been told since the last
 * one. So flows that move at the same time share transactions, and no request waits for what its
 * completion sets off. A large flow takes many rounds, and others join in between. What fails is
 * left to the dependency scanner.
 */

#include "net/inside.h"

#include "base/id.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

struct weft_cascades {
    struct weft_server *server;
    pthread_mutex_t lock; /* over all below; stands alone */
    struct weft_id *flow; /* owned; told, some perhaps twice */
    size_t count, room;
    bool running; /* an errand is queued or under way */
    bool stopping;

    bool failing; /* the errand's */
};

struct weft_cascades *weft_cascades_new(struct weft_server *server)
{
    struct weft_cascades *cascades = calloc(1, sizeof(*cascades));
    if (!cascades)
        weft_oom(sizeof(*cascades));
    cascades->server = server;
    pthread_mutex_init(&cascades->lock, NULL);
    return cascades;
}

void weft_cascades_stop(struct weft_cascades *cascades)
{
    if (!cascades)
        return;
    pthread_mutex_lock(&cascades->lock);
    cascades->stopping = true;
    pthread_mutex_unlock(&cascades->lock);
}

void weft_cascades_free(struct weft_cascades *cascades)
{
    if (!cascades)
        return;
    pthread_mutex_destroy(&cascades->lock);
    free(cascades->flow);
    free(cascades);
}

static int by_id(const void *left, const void *right)
{
    return weft_id_cmp(left, right);
}

/*
 * Takes what has been told: the caller frees it. After a stop that is nothing, also for an errand
 * that was waiting for a thread when the stop came.
 */
static struct weft_id *take(struct weft_cascades *cascades, size_t *ret_count)
{
    struct weft_id *flow = NULL;
    size_t told = 0, count = 0;
    pthread_mutex_lock(&cascades->lock);
    if (!cascades->stopping) {
        flow = cascades->flow;
        told = cascades->count;
        cascades->flow = NULL;
        cascades->count = cascades->room = 0;
    }
    pthread_mutex_unlock(&cascades->lock);
    if (told > 1)
        qsort(flow, told, sizeof(*flow), by_id);
    for (size_t i = 0; i < told; i++)
        if (count == 0 || weft_id_cmp(&flow[count - 1], &flow[i]) != 0)
            flow[count++] = flow[i];
    *ret_count = count;
    return flow;
}

static void note(struct weft_cascades *cascades, enum weft_rc rc, const struct weft_err *err)
{
    if (rc && !cascades->failing)
        weft_warn("a cascade failed; the dependency scanner makes up for it",
                  F_STR("error", err->text));
    cascades->failing = rc != WEFT_OK;
}

/* One round. What was told meanwhile is for the next, behind the requests that wait by then. */
static void run_errand(struct weft_server *server, void *context)
{
    struct weft_cascades *cascades = context;
    struct weft_err err = {0};
    size_t count;
    struct weft_id *flow = take(cascades, &count);
    if (count > 0)
        note(cascades, weft_engine_cascade_round(server->engine, flow, count, &err), &err);
    free(flow);
    pthread_mutex_lock(&cascades->lock);
    cascades->running = cascades->count > 0 && !cascades->stopping;
    bool again = cascades->running;
    pthread_mutex_unlock(&cascades->lock);
    if (again)
        weft_groups_do(server->groups, run_errand, cascades);
}

void weft_cascades_tell(void *context, const struct weft_id *flow, size_t count)
{
    struct weft_cascades *cascades = context;
    pthread_mutex_lock(&cascades->lock);
    if (cascades->count + count > cascades->room) {
        size_t room = 2 * cascades->room + count;
        struct weft_id *wider = realloc(cascades->flow, room * sizeof(*wider));
        if (!wider)
            weft_oom(room * sizeof(*wider));
        cascades->flow = wider;
        cascades->room = room;
    }
    memcpy(cascades->flow + cascades->count, flow, count * sizeof(*flow));
    cascades->count += count;
    bool first = !cascades->running && !cascades->stopping;
    cascades->running |= first;
    pthread_mutex_unlock(&cascades->lock);
    if (first)
        weft_groups_do(cascades->server->groups, run_errand, cascades);
}
