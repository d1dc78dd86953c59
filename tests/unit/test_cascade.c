/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cascades of a server: engine threads take up the completions of members, for many flows
 * at once, and after a stop the completions stay in the store.
 */

#include "direct.h"
#include "tap.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"
#include "engine/admin/doctor.h"
#include "engine/engine.h"
#include "engine/flow/cascade.h"
#include "engine/flow/flow.h"
#include "engine/job/claim.h"
#include "engine/job/execution_read.h"
#include "engine/job/leases.h"
#include "engine/tx/commit_effects.h"
#include "net/group/commit_work.h"
#include "net/group/group.h"
#include "net/metrics.h"
#include "net/server.h"
#include "weft/weft.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_US (20 * WEFT_SECOND)
enum { FLOWS = 40, LENGTH = 5 };

struct stage {
    struct weft_server server;
    char file[256];
    struct weft_arena *arena;
    struct weft_flow_submitted flow[FLOWS];
    struct weft_id node[FLOWS][LENGTH];
    pthread_mutex_t lock; /* for waits */
    pthread_cond_t never;
};

static void open_stage(struct stage *stage)
{
    struct weft_err err = {0};
    *stage = (struct stage){.arena = weft_arena_new()};
    const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    (void)snprintf(stage->file, sizeof(stage->file), "sqlite:%s/weft-cascade-%d.db",
                   folder ? folder : "/tmp", (int)getpid());
    pthread_mutex_init(&stage->lock, NULL);
    pthread_cond_init(&stage->never, NULL);
    struct weft_server *server = &stage->server;
    const struct weft_engine_config config = {.url = stage->file};
    if (weft_engine_open(&config, &server->engine, &err)) {
        printf("Bail out! cannot open the store: %s\n", err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    server->config.threads = 3;
    server->work[WEFT_WORK_CASCADES] = weft_commit_work_new(server, WEFT_WORK_CASCADES);
    server->groups = weft_groups_new(server);
    weft_engine_on_flows(server->engine, weft_add_cascades, server);
}

static void close_stage(struct stage *stage)
{
    static const char *const suffix[] = {"", "-wal", "-shm"};
    weft_commit_work_free(stage->server.work[WEFT_WORK_CASCADES]);
    weft_engine_close(stage->server.engine);
    for (size_t i = 0; i < WEFT_LEN(suffix); i++) {
        char path[300];
        (void)snprintf(path, sizeof(path), "%s%s", stage->file + strlen("sqlite:"), suffix[i]);
        (void)unlink(path);
    }
    weft_arena_free(stage->arena);
}

/* Chains, all alike. */
static void submit(struct stage *stage)
{
    static const char *const name[LENGTH] = {"a", "b", "c", "d", "e"};
    struct weft_node node[LENGTH];
    struct weft_flow_spec spec[FLOWS];
    struct weft_err err = {0};
    for (size_t i = 0; i < LENGTH; i++)
        node[i] = (struct weft_node){.name = name[i],
                                     .spec = {.kind = "step"},
                                     .after = i ? &name[i - 1] : NULL,
                                     .after_count = i > 0};
    for (size_t i = 0; i < FLOWS; i++) {
        spec[i] = (struct weft_flow_spec){.nodes = node, .node_count = LENGTH};
        stage->flow[i].node = stage->node[i];
    }
    ok(engine_flow_submit(stage->server.engine, "default", spec, FLOWS, stage->flow, &err) ==
           WEFT_OK,
       "%d flows of %d nodes", FLOWS, LENGTH);
}

/* Claims and completes what is ready; how many that were. */
static size_t work(struct stage *stage)
{
    struct weft_engine *engine = stage->server.engine;
    const struct weft_claim claim = {.worker = "worker", .max = FLOWS, .lease_ms = 60000};
    struct weft_claim_result got = {0};
    struct weft_complete item[FLOWS];
    struct weft_lease_answer answer[FLOWS];
    struct weft_err err = {0};
    if (weft_engine_claim(engine, "default", &claim, 1, stage->arena, &got, &err))
        return 0;
    for (size_t i = 0; i < got.count; i++)
        item[i] = (struct weft_complete){.id = got.item[i].id, .epoch = got.item[i].epoch};
    size_t count = got.count;
    if (count && engine_complete(engine, item, count, answer, &err))
        return 0;
    return count;
}

static void pause_a_moment(struct stage *stage)
{
    pthread_mutex_lock(&stage->lock);
    weft_cond_until(&stage->never, &stage->lock, weft_boot_us() + 2 * WEFT_MS);
    pthread_mutex_unlock(&stage->lock);
}

static enum weft_state state_of(struct stage *stage, const struct weft_id *id)
{
    struct weft_execution item = {0};
    struct weft_err err = {0};
    struct weft_arena *arena = weft_arena_new();
    (void)!weft_engine_describe(stage->server.engine, "default", id, 1, arena, &item, &err);
    enum weft_state state = item.state;
    weft_arena_free(arena);
    return state;
}

int main(void)
{
    struct stage stage;
    open_stage(&stage);
    submit(&stage);
    size_t done = 0;
    weft_usec until_us = weft_boot_us() + PATIENCE_US;
    while (done < (size_t)FLOWS * LENGTH && weft_boot_us() < until_us) {
        size_t count = work(&stage);
        done += count;
        if (count == 0)
            pause_a_moment(&stage);
    }
    is_int(done, FLOWS * LENGTH, "every member runs without a call of the cascade");

    submit(&stage);
    weft_commit_work_stop(stage.server.work[WEFT_WORK_CASCADES]);
    is_int(work(&stage), FLOWS, "the roots run");
    weft_groups_free(stage.server.groups);
    is_int(state_of(&stage, &stage.node[0][1]), WEFT_STATE_BLOCKED,
           "after a stop nothing is taken up");
    struct weft_id flow[FLOWS];
    struct weft_err err = {0};
    for (size_t i = 0; i < FLOWS; i++)
        flow[i] = stage.flow[i].id;
    is_int(weft_engine_cascade(stage.server.engine, flow, FLOWS, &err), WEFT_OK,
           "a cascade of all flows finds nothing to do");
    is_int(state_of(&stage, &stage.node[FLOWS - 1][1]), WEFT_STATE_READY,
           "no cascade of a stopped server is lost");
    ok(weft_engine_check(stage.server.engine, &err) == WEFT_OK, "the invariants hold");
    close_stage(&stage);
    return tap_done();
}
