/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Retention: executions that ended long enough ago are removed, with all rows that mention them
 * (core/tables.def).
 *
 * How long an outcome is kept (core/policy.c) follows from its policy, its lane and its state, so
 * outcomes fall into groups of these, and within a group the oldest go first. A pass finds the
 * groups with the moment their oldest ended, works out which are due, and removes from them, batch
 * by batch, each in a transaction of its own. Settings are read by each pass: a change holds at
 * once, also for what ended before.
 *
 * No caller waits for this, so it gives way: batches are small and bounded in bytes, because
 * freeing large payloads costs by the page, and between two of them the pass rests, so that calls
 * that need the disk, a core or SQLite's one writer have their turn. A pass ends after a while and
 * says that there is more. Members of flows are not looked at here: they go with their flow
 * (flow_removal.c).
 */

#include "engine/scan/flows.h"

#include "engine/job/span.h"

#include <string.h>
#include <time.h>

#define PASS_US       (250 * WEFT_MS)
#define PAUSE_MOST_US (5 * WEFT_MS)
/* No caller waits for it to the millisecond, and a steady trickle is better removed in batches. */
#define SOONEST_US WEFT_SECOND
enum {
    GROUPS_MOST = 256, /* one statement looks at */
    LEFT_MOST = 1000,
    BATCH_LEAST = 16,
    ALONE_MOST = 50, /* of a batch where all other writers wait for it */
};

struct group {
    int32_t queue, policy, ns;
    enum weft_state state;
    weft_usec since_us, until_us; /* of `finished`: what is left to remove */
};

struct removal {
    struct weft_engine *engine;
    const struct weft_pass_config *config;
    struct weft_arena *arena;
    int32_t ns; /* 0: all, -1: none */
    weft_usec now_us;
    struct group *group; /* the due ones */
    size_t count, first; /* the ones before `first` are done */
    uint32_t most;       /* of one batch */
    struct weft_pass_report report;
};

/* The order of the table in pass.c. */
enum { PROCESSED, ATTEMPTS, KEYS, SKIPPED_LOCKED, FLOWS };

/* ---- What is due ----------------------------------------------------------------------------- */

static enum weft_rc load_rules(struct removal *removal, const struct weft_rows *rows,
                               struct weft_err *err)
{
    struct weft_id_list policies = {.id = weft_new_array(removal->arena, int32_t, rows->count + 1),
                                    .count = rows->count};
    for (size_t i = 0; i < rows->count; i++)
        policies.id[i] = (int32_t)weft_get_i64(rows, i, RETENTION_GROUPS_OUT_POLICY);
    return weft_load_policies(removal->engine, &policies, err);
}

/* Finds the groups that are due, and when the first of the others will be. */
static enum weft_rc look(struct removal *removal, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, removal->arena, WEFT_STMT_RETENTION_GROUPS, 0);
    weft_set_i64(&call, 0, RETENTION_GROUPS_IN_NAMESPACE, removal->ns);
    enum weft_rc rc =
        weft_tx_once(removal->engine, WEFT_TX_READ, &call, removal->arena, &rows, err);
    if (!rc)
        rc = load_rules(removal, &rows, err);
    if (rc)
        return rc;
    removal->group = weft_new_array(removal->arena, struct group, rows.count + 1);
    removal->count = removal->first = 0;
    removal->report.next_due_us = WEFT_NEVER;
    for (size_t i = 0; i < rows.count; i++) {
        struct group group = {
            .queue = (int32_t)weft_get_i64(&rows, i, RETENTION_GROUPS_OUT_QUEUE),
            .policy = (int32_t)weft_get_i64(&rows, i, RETENTION_GROUPS_OUT_POLICY),
            .ns = (int32_t)weft_get_i64(&rows, i, RETENTION_GROUPS_OUT_NAMESPACE),
            .state = (enum weft_state)weft_get_i64(&rows, i, RETENTION_GROUPS_OUT_STATE),
        };
        weft_usec oldest_us = weft_get_i64(&rows, i, RETENTION_GROUPS_OUT_OLDEST);
        weft_usec kept_us =
            weft_policy_keeps(weft_find_rules(removal->engine, group.policy),
                              weft_get_i64(&rows, i, RETENTION_GROUPS_OUT_LANE_US), group.state);
        group.since_us = oldest_us;
        group.until_us = removal->now_us - kept_us;
        if (oldest_us <= group.until_us)
            removal->group[removal->count++] = group;
        else if (oldest_us + kept_us < removal->report.next_due_us)
            removal->report.next_due_us = oldest_us + kept_us;
    }
    return WEFT_OK;
}

/* ---- One batch ------------------------------------------------------------------------------- */

struct batch {
    struct removal *removal;
    uint32_t most;
    /* What the transaction did. */
    size_t taken, removed;
    size_t place; /* the group of the last one removed */
    weft_usec finished_us;
    uint64_t attempts, keys;
};

/* How many groups one statement looks at. */
static size_t window(const struct removal *removal)
{
    size_t left = removal->count - removal->first;
    return left < GROUPS_MOST ? left : GROUPS_MOST;
}

static void take_call(const struct removal *removal, uint32_t most, struct weft_arena *arena,
                      struct weft_call *call)
{
    weft_call_init(call, arena, WEFT_STMT_RETENTION_TAKE, window(removal));
    weft_set_i64(call, 0, RETENTION_TAKE_IN_PARTITION_FIRST, removal->config->partition_first);
    weft_set_i64(call, 0, RETENTION_TAKE_IN_PARTITION_LAST, removal->config->partition_last);
    weft_set_i64(call, 0, RETENTION_TAKE_IN_BATCH, most);
    for (size_t i = 0; i < call->rows; i++) {
        const struct group *group = &removal->group[removal->first + i];
        weft_set_i64(call, i, RETENTION_TAKE_IN_PLACE, (int64_t)(removal->first + i));
        weft_set_i64(call, i, RETENTION_TAKE_IN_QUEUE, group->queue);
        weft_set_i64(call, i, RETENTION_TAKE_IN_POLICY, group->policy);
        weft_set_i64(call, i, RETENTION_TAKE_IN_STATE, group->state);
        weft_set_i64(call, i, RETENTION_TAKE_IN_SINCE, group->since_us);
        weft_set_i64(call, i, RETENTION_TAKE_IN_UNTIL, group->until_us);
    }
}

/* How many of the rows one transaction removes: one at least. */
static size_t within_bytes(const struct weft_rows *rows)
{
    int64_t bytes = 0;
    size_t count = 0;
    while (count < rows->count && bytes < WEFT_BATCH_BYTES)
        bytes += weft_get_i64(rows, count++, RETENTION_TAKE_OUT_BYTES);
    return count;
}

static enum weft_rc remove_body(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct batch *batch = context;
    const struct removal *removal = batch->removal;
    struct weft_call call;
    struct weft_rows rows, gone;
    batch->removed = batch->attempts = batch->keys = 0;
    take_call(removal, batch->most, tx->arena, &call);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    batch->taken = rc ? 0 : rows.count;
    if (rc || rows.count == 0)
        return rc;
    size_t count = within_bytes(&rows);
    struct weft_span_row *row = weft_new_array(tx->arena, struct weft_span_row, count);
    weft_call_init(&call, tx->arena, WEFT_STMT_RETENTION_REMOVE, count);
    for (size_t i = 0; i < count; i++) {
        batch->place = (size_t)weft_get_i64(&rows, i, RETENTION_TAKE_OUT_PLACE);
        row[i] = (struct weft_span_row){.id = weft_get_id(&rows, i, RETENTION_TAKE_OUT_ID),
                                        .ns = removal->group[batch->place].ns};
        weft_set_id(&call, i, RETENTION_REMOVE_IN_ID, &row[i].id);
        weft_set_i64(&call, i, RETENTION_REMOVE_IN_HAS,
                     weft_get_i64(&rows, i, RETENTION_TAKE_OUT_HAS));
        weft_set_i64(&call, i, RETENTION_REMOVE_IN_NAMESPACE, row[i].ns);
        weft_set_text(&call, i, RETENTION_REMOVE_IN_KEY,
                      weft_get_text(&rows, i, RETENTION_TAKE_OUT_KEY));
    }
    batch->finished_us = weft_get_i64(&rows, count - 1, RETENTION_TAKE_OUT_FINISHED);
    rc = weft_tx_run(tx, &call, 1, &gone, err);
    for (size_t i = 0; i < gone.count && !rc; i++) {
        int64_t what = weft_get_i64(&gone, i, RETENTION_REMOVE_OUT_WHAT);
        uint64_t removed = (uint64_t)weft_get_i64(&gone, i, RETENTION_REMOVE_OUT_REMOVED);
        if (what == 0)
            batch->keys = removed;
        else if (what == WEFT_HAS_ATTEMPT)
            batch->attempts = removed;
    }
    batch->removed = count;
    return rc ? rc : weft_spans_remove(tx, row, count, err);
}

/* Where the next batch goes on, and how large it may be. */
static void advance(struct removal *removal, struct batch *batch)
{
    if (batch->removed == batch->taken && batch->taken < batch->most) {
        removal->first += window(removal);
    } else {
        removal->first = batch->place;
        removal->group[batch->place].since_us = batch->finished_us;
    }
    uint32_t most = batch->most * 2;
    if (batch->removed < batch->taken) /* large payloads: what is not removed was locked in vain */
        most = batch->removed < BATCH_LEAST ? BATCH_LEAST : 2 * (uint32_t)batch->removed;
    batch->most = most < removal->most ? most : removal->most;
}

/*
 * Rests for as long as it worked; longer, when a call waited for a connection meanwhile: its caller
 * will make more calls and should not wait at each of them.
 */
static void rest(weft_usec worked_us, bool in_the_way)
{
    weft_usec pause_us = in_the_way ? 2 * worked_us : worked_us;
    if (pause_us > PAUSE_MOST_US)
        pause_us = PAUSE_MOST_US;
    const struct timespec pause = {.tv_nsec = pause_us * 1000};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* Removes what is due, for as long as a pass may take. */
static enum weft_rc remove_due(struct removal *removal, struct weft_err *err)
{
    struct weft_counter *counter = removal->report.counter;
    struct batch batch = {.removal = removal, .most = removal->most};
    weft_usec began_us = weft_boot_us(), now_us = began_us;
    weft_usec most_us = removal->config->most_us ? removal->config->most_us : PASS_US;
    uint64_t waits = weft_pool_waits(removal->engine);
    while (removal->first < removal->count && now_us - began_us < most_us) {
        struct weft_tx tx = {.engine = removal->engine, .arena = weft_arena_new()};
        enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, remove_body, &batch, err);
        weft_arena_free(tx.arena);
        if (rc)
            return rc;
        advance(removal, &batch);
        counter[PROCESSED].value += batch.removed;
        counter[ATTEMPTS].value += batch.attempts;
        counter[KEYS].value += batch.keys;
        uint64_t waits_now = weft_pool_waits(removal->engine);
        if (removal->first < removal->count)
            rest(weft_boot_us() - now_us, waits_now != waits);
        waits = waits_now;
        now_us = weft_boot_us();
    }
    return WEFT_OK;
}

/* All groups were looked at: rows that are due still are locked by other transactions. */
static enum weft_rc count_left(struct removal *removal, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows;
    weft_call_init(&call, removal->arena, WEFT_STMT_RETENTION_LEFT, window(removal));
    weft_set_i64(&call, 0, RETENTION_LEFT_IN_PARTITION_FIRST, removal->config->partition_first);
    weft_set_i64(&call, 0, RETENTION_LEFT_IN_PARTITION_LAST, removal->config->partition_last);
    weft_set_i64(&call, 0, RETENTION_LEFT_IN_MOST, LEFT_MOST);
    for (size_t i = 0; i < call.rows; i++) {
        weft_set_i64(&call, i, RETENTION_LEFT_IN_QUEUE, removal->group[i].queue);
        weft_set_i64(&call, i, RETENTION_LEFT_IN_POLICY, removal->group[i].policy);
        weft_set_i64(&call, i, RETENTION_LEFT_IN_STATE, removal->group[i].state);
        weft_set_i64(&call, i, RETENTION_LEFT_IN_UNTIL, removal->group[i].until_us);
    }
    enum weft_rc rc =
        weft_tx_once(removal->engine, WEFT_TX_READ, &call, removal->arena, &rows, err);
    if (!rc)
        removal->report.counter[SKIPPED_LOCKED].value =
            (uint64_t)weft_get_i64(&rows, 0, RETENTION_LEFT_OUT_COUNT);
    return rc;
}

static enum weft_rc run(struct removal *removal, struct weft_err *err)
{
    struct weft_pass_report *report = &removal->report;
    enum weft_rc rc = look(removal, err);
    if (rc || removal->count == 0)
        return rc;
    rc = remove_due(removal, err);
    report->handled = report->counter[PROCESSED].value;
    report->more = rc || removal->first < removal->count;
    if (!report->more)
        rc = look(removal, err);
    if (!rc && !report->more && removal->count > 0)
        rc = count_left(removal, err);
    return rc;
}

/* Flows go whole, with their members. */
static enum weft_rc retire_flows(struct removal *removal, struct weft_err *err)
{
    struct weft_erased erased = {0};
    enum weft_rc rc = weft_flows_retire(removal->engine, removal->config, &erased, err);
    removal->report.counter[PROCESSED].value += erased.members;
    removal->report.counter[SKIPPED_LOCKED].value += erased.skipped_locked;
    removal->report.counter[FLOWS].value = erased.flows;
    removal->report.handled += erased.members + erased.flows;
    removal->report.more |= erased.more;
    return rc;
}

enum weft_rc weft_retention_run(struct weft_engine *engine, const struct weft_pass_config *config,
                                struct weft_pass_report *ret_report, struct weft_err *err)
{
    struct removal removal = {.engine = engine,
                              .config = config,
                              .arena = weft_arena_new(),
                              .most = config->batch,
                              .now_us = weft_clock_now(engine->clock),
                              .report = {.next_due_us = WEFT_NEVER}};
    static const uint64_t nothing[WEFT_COUNTERS_MAX];
    weft_pass_count(&removal.report, WEFT_SCANNER_RETENTION, nothing);
    if (weft_engine_writers(engine) == 1 && removal.most > ALONE_MOST)
        removal.most = ALONE_MOST;
    enum weft_rc rc = weft_pass_namespace(engine, config, &removal.ns, err);
    if (!rc)
        rc = run(&removal, err);
    if (!rc)
        rc = retire_flows(&removal, err);
    weft_usec soonest_us = weft_clock_now(engine->clock) + SOONEST_US;
    if (removal.report.next_due_us < soonest_us)
        removal.report.next_due_us = soonest_us;
    *ret_report =
        removal.report; /* also of a pass that failed: what it did before that stays done */
    weft_arena_free(removal.arena);
    return rc;
}
