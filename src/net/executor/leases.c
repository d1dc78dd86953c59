/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The leases of calls that are under way: renewed in bulk when a third of their time is over, and
 * watched: what another party ended is aborted at once, and then let go of.
 *
 * A call whose lease could not be renewed goes on. By then another worker may have the execution:
 * the end is fenced; and if the store was away from all servers, the lease may still be good.
 */

#include "net/executor/leases.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "engine/job/leases.h"

#define RENEW_US (WEFT_EXECUTOR_LEASE_MS * WEFT_MS / 3)
#define EARLY_US (RENEW_US / 4) /* due so soon: it goes along */

/* Another party has ended the lease. */
static void give_up(struct weft_outgoing *out)
{
    if (out->gone)
        return;
    out->gone = true;
    weft_outgoing_abort(out);
}

/* ---- Renewals -------------------------------------------------------------------------------- */

/* The calls under way stand in the order of their leases, and are renewed from the front on. */
weft_usec weft_executor_renew_us(const struct weft_executor *executor)
{
    const struct weft_outgoing *out = TAILQ_FIRST(&executor->running);
    if (!out)
        return WEFT_NEVER;
    weft_usec due_us = out->lease_us + RENEW_US;
    return due_us > executor->retry_us ? due_us : executor->retry_us;
}

/* One that could not be renewed for a moment has its turn again before its lease runs out. */
static void take_answers(struct weft_executor *executor, struct weft_outgoing *const *out,
                         const struct weft_lease_result *answer, size_t count, weft_usec asked_us)
{
    for (size_t i = 0; i < count; i++) {
        out[i]->lease_us = asked_us;
        TAILQ_REMOVE(&executor->running, out[i], link);
        TAILQ_INSERT_TAIL(&executor->running, out[i], link);
        if (answer[i].rc && !weft_rc_retryable(answer[i].rc))
            give_up(out[i]);
    }
}

enum weft_rc weft_executor_renew(struct weft_executor *executor, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    weft_usec now_us = weft_boot_us();
    struct weft_outgoing **due = weft_new_array(arena, struct weft_outgoing *, WEFT_BATCH_MAX);
    struct weft_renew *item = weft_new_array(arena, struct weft_renew, WEFT_BATCH_MAX);
    struct weft_lease_result *answer =
        weft_new_array(arena, struct weft_lease_result, WEFT_BATCH_MAX);
    struct weft_outgoing *out;
    size_t count = 0;
    TAILQ_FOREACH (out, &executor->running, link) {
        /* cppcheck-suppress uninitvar; the loop sets it */
        if (count == WEFT_BATCH_MAX || out->lease_us + RENEW_US - EARLY_US > now_us)
            break;
        item[count] = (struct weft_renew){
            .id = out->id, .epoch = out->epoch, .lease_ms = WEFT_EXECUTOR_LEASE_MS};
        due[count++] = out;
    }
    enum weft_rc rc =
        count ? weft_engine_renew(executor->engine, item, count, arena, answer, err) : WEFT_OK;
    if (!rc)
        take_answers(executor, due, answer, count, now_us);
    weft_arena_free(arena);
    return rc;
}

/* ---- Watches --------------------------------------------------------------------------------- */

static struct weft_outgoing *find(const struct weft_executor *executor,
                                  const struct weft_ended_lease *lease)
{
    struct weft_outgoing *out = weft_map_find(&executor->by_id, &lease->id, sizeof(lease->id));
    return out && out->epoch == lease->epoch ? out : NULL;
}

static void watch_spot(struct weft_executor *executor, const char *ns, struct weft_arena *arena)
{
    const struct weft_watch watch = {.ns = ns, .worker = executor->worker};
    struct weft_watched watched = {0};
    struct weft_err err = {0};
    if (weft_engine_watch(executor->engine, &watch, arena, &watched, &err)) {
        weft_debug("ended leases of HTTP calls were not read", F_STR("error", err.text));
        return; /* renewals tell it */
    }
    for (size_t i = 0; i < watched.count; i++) {
        struct weft_outgoing *out = find(executor, &watched.item[i]);
        if (out)
            give_up(out);
    }
}

void weft_executor_watch(struct weft_executor *executor)
{
    struct weft_arena *arena = weft_arena_new();
    pthread_mutex_lock(&executor->lock);
    const char **ns = weft_new_array(arena, const char *, executor->spots + 1);
    size_t count = 0;
    for (size_t i = 0; i < executor->spots; i++) {
        if (executor->spot[i].watch)
            ns[count++] = executor->spot[i].ns;
        executor->spot[i].watch = false;
    }
    executor->watches = false;
    pthread_mutex_unlock(&executor->lock);
    for (size_t i = 0; i < count; i++)
        watch_spot(executor, ns[i], arena);
    weft_arena_free(arena);
}
