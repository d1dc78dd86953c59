/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Retention: removes executions that ended long enough ago, with all rows that mention them.
 *
 * How long an outcome is kept (core/policy.c) follows from its policy, its lane and its state, so
 * outcomes form groups by these, and within a group the oldest are removed first. A pass reads the
 * groups with the time their oldest member ended, computes which are due, and removes from these,
 * batch by batch, each in its own transaction. Each pass reads the settings: a change takes effect
 * at once, also for executions that ended before.
 *
 * Removal is not urgent, so it yields: batches are small and bounded in bytes, because freeing
 * large payloads costs per page, and a pause between two batches lets other transactions use the
 * disk, a core or SQLite's one writer. A pass ends after a while and reports that there is more.
 * Members of flows are not removed here, but with their flow: a pass marks the flows that are past
 * their retention, and the scanner `purge` removes what is marked.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine_state.h"
#include "engine/scan/scan.h"

#define PASS_US (250 * WEFT_MS)
/* Removal need not be exact, and a steady trickle is cheaper to remove in batches. */
#define SOONEST_US WEFT_SECOND
enum {
    GROUPS_MOST = 256, /* one statement looks at */
    LEFT_MOST = 1000,
    BATCH_LEAST = 16,
    ALONE_MOST = 50, /* of a batch in SQLite, where all other writers wait for it */
};

#define REST_MAX_US (5 * WEFT_MS)

/* Outcomes that are due: they ended between row.oldest and until_us. */
struct group {
    struct weft_retention_groups_out row;
    weft_usec until_us;
};

struct removal {
    struct weft_pass *pass;
    weft_usec now_us;
    struct group *group; /* the due ones */
    size_t count, first; /* the ones before `first` are done */
    uint32_t most;       /* of one batch */
};

/* The order of the table in pass.c. */
enum { PROCESSED, ATTEMPTS, KEYS, SKIPPED_LOCKED, FLOWS };

/* ---- What is due ----------------------------------------------------------------------------- */

static enum weft_rc load_rules(struct removal *removal, const struct weft_rows *rows,
                               struct weft_err *err)
{
    struct weft_id_list policies = {
        .id = weft_new_array(removal->pass->arena, int32_t, rows->count + 1), .count = rows->count};
    for (size_t i = 0; i < rows->count; i++)
        policies.id[i] = weft_out_retention_groups(rows)[i].policy;
    return weft_load_policies(removal->pass->engine, &policies, err);
}

/* Finds the groups that are due, and when the first of the others will be. */
static enum weft_rc look(struct removal *removal, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_call_retention_groups(&call, removal->pass->arena)->namespace = removal->pass->ns;
    enum weft_rc rc =
        weft_tx_once(removal->pass->engine, WEFT_TX_READ, &call, removal->pass->arena, &rows, err);
    if (!rc)
        rc = load_rules(removal, &rows, err);
    if (rc)
        return rc;
    removal->group = weft_new_array(removal->pass->arena, struct group, rows.count + 1);
    removal->count = removal->first = 0;
    removal->pass->report.next_due_us = WEFT_NEVER;
    for (size_t i = 0; i < rows.count; i++) {
        const struct weft_retention_groups_out *row = &weft_out_retention_groups(&rows)[i];
        weft_usec kept_us = weft_policy_keeps(weft_find_rules(removal->pass->engine, row->policy),
                                              row->lane_us, (enum weft_state)row->state);
        struct group group = {.row = *row, .until_us = removal->now_us - kept_us};
        if (row->oldest <= group.until_us)
            removal->group[removal->count++] = group;
        else if (row->oldest + kept_us < removal->pass->report.next_due_us)
            removal->pass->report.next_due_us = row->oldest + kept_us;
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
    struct weft_retention_take_in *in = weft_call_retention_take(call, arena, window(removal));
    in->partition_first = removal->pass->config->partition_first;
    in->partition_last = removal->pass->config->partition_last;
    in->batch = most;
    for (size_t i = 0; i < call->rows; i++) {
        const struct group *group = &removal->group[removal->first + i];
        in->row[i].place = (int64_t)(removal->first + i);
        in->row[i].queue = group->row.queue;
        in->row[i].policy = group->row.policy;
        in->row[i].state = group->row.state;
        in->row[i].since = group->row.oldest;
        in->row[i].until = group->until_us;
    }
}

/* How many of the rows one transaction removes: one at least. */
static size_t within_bytes(const struct weft_rows *rows)
{
    int64_t bytes = 0;
    size_t count = 0;
    while (count < rows->count && bytes < WEFT_BATCH_BYTES)
        bytes += weft_out_retention_take(rows)[count++].bytes;
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
    struct weft_retention_remove_in *in = weft_call_retention_remove(&call, tx->arena, count);
    const struct weft_retention_take_out *out = weft_out_retention_take(&rows);
    for (size_t i = 0; i < count; i++) {
        batch->place = out[i].place;
        row[i] = (struct weft_span_row){.id = out[i].id,
                                        .ns = removal->group[batch->place].row.namespace};
        in->row[i].id = row[i].id;
        in->row[i].has = out[i].has;
        in->row[i].namespace = row[i].ns;
        in->row[i].key = out[i].key;
    }
    batch->finished_us = out[count - 1].finished;
    rc = weft_tx_run(tx, &call, 1, &gone, err);
    const struct weft_retention_remove_out *found = weft_out_retention_remove(&gone);
    for (size_t i = 0; i < gone.count && !rc; i++) {
        if (found[i].what == 0)
            batch->keys = found[i].removed;
        else if (found[i].what == WEFT_HAS_ATTEMPT)
            batch->attempts = found[i].removed;
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
        removal->group[batch->place].row.oldest = batch->finished_us;
    }
    uint32_t most = batch->most * 2;
    if (batch->removed <
        batch->taken) /* large payloads: rows that were not removed were locked in vain */
        most = batch->removed < BATCH_LEAST ? BATCH_LEAST : 2 * (uint32_t)batch->removed;
    batch->most = most < removal->most ? most : removal->most;
}

/* Removes due outcomes, for as long as a pass may take. */
static enum weft_rc remove_due(struct removal *removal, struct weft_err *err)
{
    uint64_t *count = removal->pass->count;
    struct batch batch = {.removal = removal, .most = removal->most};
    weft_usec began_us = weft_boot_us(), now_us = began_us;
    weft_usec most_us = removal->pass->config->most_us ? removal->pass->config->most_us : PASS_US;
    uint64_t waits = weft_pool_waits(removal->pass->engine);
    while (removal->first < removal->count && now_us - began_us < most_us) {
        struct weft_tx tx = {.engine = removal->pass->engine, .arena = weft_arena_new()};
        enum weft_rc rc = weft_tx_do(&tx, WEFT_TX_WRITE, remove_body, &batch, err);
        weft_arena_free(tx.arena);
        if (rc)
            return rc;
        advance(removal, &batch);
        count[PROCESSED] += batch.removed;
        count[ATTEMPTS] += batch.attempts;
        count[KEYS] += batch.keys;
        uint64_t waits_now = weft_pool_waits(removal->pass->engine);
        /* Pauses for as long as it worked; longer if a call waited for a connection meanwhile: that
         * caller will make more calls, which should not each wait for a removal. */
        if (removal->first < removal->count) {
            weft_usec rest_us = (weft_boot_us() - now_us) * (waits_now != waits ? 2 : 1);
            weft_pass_rest(rest_us < REST_MAX_US ? rest_us : REST_MAX_US);
        }
        waits = waits_now;
        now_us = weft_boot_us();
    }
    return WEFT_OK;
}

/* All groups were looked at: rows that are due still are locked by other transactions. */
static enum weft_rc count_left(struct removal *removal, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    struct weft_retention_left_in *in =
        weft_call_retention_left(&call, removal->pass->arena, window(removal));
    in->partition_first = removal->pass->config->partition_first;
    in->partition_last = removal->pass->config->partition_last;
    in->most = LEFT_MOST;
    for (size_t i = 0; i < call.rows; i++) {
        in->row[i].queue = removal->group[i].row.queue;
        in->row[i].policy = removal->group[i].row.policy;
        in->row[i].state = removal->group[i].row.state;
        in->row[i].until = removal->group[i].until_us;
    }
    enum weft_rc rc =
        weft_tx_once(removal->pass->engine, WEFT_TX_READ, &call, removal->pass->arena, &rows, err);
    if (!rc)
        removal->pass->count[SKIPPED_LOCKED] = weft_out_retention_left(&rows)->count;
    return rc;
}

static enum weft_rc run(struct removal *removal, struct weft_err *err)
{
    struct weft_pass_report *report = &removal->pass->report;
    enum weft_rc rc = look(removal, err);
    if (rc || removal->count == 0)
        return rc;
    rc = remove_due(removal, err);
    report->handled = removal->pass->count[PROCESSED];
    report->more = rc || removal->first < removal->count;
    if (!report->more)
        rc = look(removal, err);
    if (!rc && !report->more && removal->count > 0)
        rc = count_left(removal, err);
    return rc;
}

/* ---- Flows ----------------------------------------------------------------------------------- */

/* How long a flow is kept: as an execution with that end and default settings. */
static weft_usec keeps(enum weft_flow_state state)
{
    static const enum weft_state like[] = {
        [WEFT_FLOW_SUCCEEDED] = WEFT_STATE_SUCCEEDED,
        [WEFT_FLOW_FAILED] = WEFT_STATE_FAILED,
        [WEFT_FLOW_CANCELLED] = WEFT_STATE_CANCELLED,
    };
    const struct weft_rules none = {0};
    return weft_policy_keeps(&none, 0, like[state]);
}

/* Marks the flows that are past their retention; the scanner `purge` removes them. */
static enum weft_rc retire_flows(struct weft_pass *pass, struct weft_err *err)
{
    static const enum weft_flow_state ended[] = {WEFT_FLOW_SUCCEEDED, WEFT_FLOW_FAILED,
                                                 WEFT_FLOW_CANCELLED};
    struct weft_call call;
    struct weft_rows rows = {0};
    weft_usec now_us = weft_clock_now(pass->engine->clock);
    struct weft_flows_kept_in *kept = weft_call_flows_kept(&call, pass->arena, WEFT_LEN(ended));
    for (size_t i = 0; i < WEFT_LEN(ended); i++) {
        kept->row[i].state = ended[i];
        kept->row[i].until = now_us - keeps(ended[i]);
    }
    kept->scope = weft_pass_scope(pass);
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_WRITE, &call, pass->arena, &rows, err);
    pass->count[FLOWS] = rows.count;
    pass->report.handled += rows.count;
    pass->report.more |= rows.count >= pass->config->batch;
    return rc;
}

enum weft_rc weft_retention_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_clock *clock = pass->engine->clock;
    struct removal removal = {
        .pass = pass, .most = pass->config->batch, .now_us = weft_clock_now(clock)};
    if (weft_engine_writers(pass->engine) == 1 && removal.most > ALONE_MOST)
        removal.most = ALONE_MOST;
    enum weft_rc rc = run(&removal, err);
    if (!rc)
        rc = retire_flows(pass, err);
    weft_usec soonest_us = weft_clock_now(clock) + SOONEST_US;
    if (pass->report.next_due_us < soonest_us)
        pass->report.next_due_us = soonest_us;
    return rc;
}
