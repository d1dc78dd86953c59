/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checks a sample of the store for broken invariants: an execution in neither or both of `live` and
 * `outcome`, epochs out of order, rows that belong to no execution.
 *
 * A pass reads the ends of each table, chooses a random place in each, and checks the rows from
 * there on with one statement, so in one snapshot. Every other pass continues among executions
 * where this process's last pass stopped: random places are uniform in time, so executions
 * submitted in bulk within a second would hardly ever be sampled. The cost depends on the batch,
 * not on the size of the store. Keys, and rows beside executions (core/tables.def), of executions
 * that do not exist are useless and are removed, the only repair (the statements say why it is
 * safe). Everything else is only reported: a person must find out which row is right, and `weft
 * doctor` checks all rows.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/log.h"
#include "engine/engine_state.h"
#include "engine/scan/scan.h"

#include <string.h>

enum {
    IDS_SHOWN = 5,      /* in one line of the log */
    LOOK_FILTERED = 10, /* so many times the batch is looked at when a filter leaves few */
};

/* The order of the table in pass.c. */
enum { SAMPLED, IN_NEITHER, IN_BOTH, EPOCH_DISORDER, ORPHANS, REPAIRED };

/* The problems that sample_check finds, by its words. */
static const struct {
    const char *problem;
    int counter;
    enum weft_stmt repair; /* WEFT_STMT_COUNT: none */
} kinds[] = {
    {"in neither live nor outcome", IN_NEITHER, WEFT_STMT_COUNT},
    {"in live and in outcome", IN_BOTH, WEFT_STMT_COUNT},
    {"attempt of an epoch that was never given", EPOCH_DISORDER, WEFT_STMT_COUNT},
    {"progress of an epoch that was never given", EPOCH_DISORDER, WEFT_STMT_COUNT},
    {"running under an epoch that has ended", EPOCH_DISORDER, WEFT_STMT_COUNT},
    {"two ends of one lease", EPOCH_DISORDER, WEFT_STMT_COUNT},
    {"live row without execution", ORPHANS, WEFT_STMT_COUNT},
    {"outcome without execution", ORPHANS, WEFT_STMT_COUNT},
#define SIDE(table, TABLE, bit) {#table " without execution", ORPHANS, WEFT_STMT_ORPHAN_ROWS},
#include "core/tables.def"
    {"key without its execution", ORPHANS, WEFT_STMT_ORPHAN_KEYS},
};

struct check {
    struct weft_pass *pass;
    bool goes_on;
    struct weft_id from; /* go on behind this execution; all 0: at a random place */
    struct weft_rows found;
    struct weft_rows removed[2]; /* by the statements of `repairs` */
};

static const enum weft_stmt repairs[] = {WEFT_STMT_ORPHAN_ROWS, WEFT_STMT_ORPHAN_KEYS};

/* ---- Where to look --------------------------------------------------------------------------- */

static uint64_t head_of(const struct weft_id *id)
{
    uint64_t head = 0;
    for (size_t i = 0; i < sizeof(head); i++)
        head = head << 8 | id->byte[i];
    return head;
}

static uint64_t random_up_to(uint64_t most)
{
    uint64_t number;
    weft_random(&number, sizeof(number));
    return most == UINT64_MAX ? number : number % (most + 1);
}

/* Ids begin with their time: a moment between the first and the last. */
static struct weft_id place_by_id(struct weft_opt_id first, struct weft_opt_id last)
{
    struct weft_id place = {{0}};
    if (first.set) {
        uint64_t low = head_of(&first.value), high = head_of(&last.value);
        uint64_t head = low + random_up_to(high > low ? high - low : 0);
        for (size_t i = sizeof(head); i-- > 0; head >>= 8)
            place.byte[i] = (uint8_t)head;
    }
    return place;
}

/*
 * Keys are often numbered: keeps their common beginning and draws two characters after it.
 * Any text will do, because the walk goes round.
 */
static const char *text_between(const char *from, const char *to, struct weft_arena *arena)
{
    size_t common = 0;
    while (from[common] && from[common] == to[common] && (unsigned char)from[common] < 0x80)
        common++;
    unsigned char low = (unsigned char)from[common], high = (unsigned char)to[common];
    if (low < ' ' || high > '~' || low > high) {
        low = ' ';
        high = '~';
    }
    char drawn[3] = {(char)(low + random_up_to((uint64_t)(high - low))),
                     (char)(' ' + random_up_to('~' - ' ')), '\0'};
    return weft_arena_printf(arena, "%.*s%s", (int)common, from, drawn);
}

static void place_by_key(struct weft_sample_check_in *in, const struct weft_sample_bounds_out *ends,
                         struct weft_arena *arena)
{
    in->key = "";
    if (!ends->first_namespace.set)
        return;
    int64_t from = ends->first_namespace.value, to = ends->last_namespace.value;
    bool same = from == to;
    in->key_namespace = from + (int64_t)random_up_to((uint64_t)(to - from));
    in->key = text_between(same ? ends->first_key : "", same ? ends->last_key : "", arena);
}

/* ---- The sample ------------------------------------------------------------------------------ */

static const struct weft_id none;

/* Every other pass continues where the last of these passes stopped. */
static void choose(struct check *check, struct weft_engine *engine)
{
    pthread_mutex_lock(&engine->sample_lock);
    check->goes_on = engine->sample_goes_on;
    engine->sample_goes_on = !check->goes_on;
    check->from = check->goes_on ? engine->sampled : none;
    pthread_mutex_unlock(&engine->sample_lock);
}

static void remember(const struct check *check, struct weft_engine *engine,
                     const struct weft_id *last)
{
    if (!check->goes_on)
        return;
    pthread_mutex_lock(&engine->sample_lock);
    engine->sampled = *last;
    pthread_mutex_unlock(&engine->sample_lock);
}

static bool is_empty(const struct weft_sample_bounds_out *ends)
{
    return !ends->first.set && !ends->first_live.set && !ends->first_outcome.set &&
#define SIDE(table, TABLE, bit) !ends->first_##table.set &&
#include "core/tables.def"
           !ends->first_namespace.set;
}

static enum weft_rc look(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct check *check = context;
    const struct weft_pass_config *config = check->pass->config;
    struct weft_call call;
    struct weft_rows rows;
    check->found = (struct weft_rows){0};
    weft_call_sample_bounds(&call, tx->arena)->namespace = weft_unless_zero(check->pass->ns);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &rows, err);
    const struct weft_sample_bounds_out *ends = rc ? NULL : weft_out_sample_bounds(&rows);
    if (rc || is_empty(ends))
        return rc;
    bool everywhere = config->partition_first == 0 && config->partition_last == 0;
    bool filtered = check->pass->ns || !everywhere;
    struct weft_sample_check_in *in = weft_call_sample_check(&call, tx->arena);
    in->execution = place_by_id(ends->first, ends->last);
    in->live = place_by_id(ends->first_live, ends->last_live);
    in->outcome = place_by_id(ends->first_outcome, ends->last_outcome);
#define SIDE(table, TABLE, bit) in->table = place_by_id(ends->first_##table, ends->last_##table);
#include "core/tables.def"
    if (weft_id_cmp(&check->from, &none) != 0)
        in->execution = check->from;
    place_by_key(in, ends, tx->arena);
    in->look = (int64_t)config->batch * (filtered ? LOOK_FILTERED : 1);
    in->batch = config->batch;
    in->namespace = weft_unless_zero(check->pass->ns);
    in->first = config->partition_first;
    in->last = everywhere ? WEFT_PARTITION_LAST : config->partition_last;
    return weft_tx_run(tx, &call, 1, &check->found, err);
}

/* The kind of a row that was found, -1 for the row that counts the sample. */
static int kind_of(const struct check *check, size_t row)
{
    const char *problem = weft_out_sample_check(&check->found)[row].problem;
    for (size_t i = 0; problem && i < WEFT_LEN(kinds); i++)
        if (strcmp(kinds[i].problem, problem) == 0)
            return (int)i;
    return -1;
}

/* Counts the rows found; returns the last execution of the sample. */
static struct weft_id count(struct check *check)
{
    struct weft_id last = none;
    for (size_t i = 0; i < check->found.count; i++) {
        int kind = kind_of(check, i);
        if (kind >= 0) {
            check->pass->count[kinds[kind].counter]++;
            continue;
        }
        const struct weft_sample_check_out *row = &weft_out_sample_check(&check->found)[i];
        check->pass->count[SAMPLED] = row->number;
        last = row->id.value;
    }
    return last;
}

/* ---- The repair ------------------------------------------------------------------------------ */

static void add_orphan(const struct check *check, size_t row, struct weft_call *call)
{
    const struct weft_sample_check_out *found = &weft_out_sample_check(&check->found)[row];
    size_t at = call->rows++;
    if (call->stmt == WEFT_STMT_ORPHAN_ROWS) {
        weft_in_orphan_rows(call)->row[at] =
            (struct weft_orphan_rows_item){.id = found->id.value, .side = found->number};
        return;
    }
    weft_in_orphan_keys(call)->row[at] = (struct weft_orphan_keys_item){
        .namespace = found->namespace, .key = found->key, .id = found->id.value};
}

static enum weft_rc repair(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct check *check = context;
    enum weft_rc rc = WEFT_OK;
    for (size_t r = 0; r < WEFT_LEN(repairs) && !rc; r++) {
        struct weft_call call;
        check->removed[r] = (struct weft_rows){0};
        weft_call_init(&call, tx->arena, repairs[r], check->found.count);
        call.rows = 0;
        for (size_t i = 0; i < check->found.count; i++) {
            int kind = kind_of(check, i);
            if (kind >= 0 && kinds[kind].repair == repairs[r])
                add_orphan(check, i, &call);
        }
        if (call.rows > 0)
            rc = weft_tx_run(tx, &call, 1, &check->removed[r], err);
    }
    return rc;
}

static bool has_repairable(const struct check *check)
{
    for (size_t i = 0; i < check->found.count; i++) {
        int kind = kind_of(check, i);
        if (kind >= 0 && kinds[kind].repair != WEFT_STMT_COUNT)
            return true;
    }
    return false;
}

/* ---- The report ------------------------------------------------------------------------------ */

/* True when the row was an orphan and is gone. */
static bool is_removed(const struct check *check, size_t row)
{
    int kind = kind_of(check, row);
    if (kind < 0)
        return false;
    for (size_t r = 0; r < WEFT_LEN(repairs); r++)
        for (size_t i = 0; repairs[r] == kinds[kind].repair && i < check->removed[r].count; i++) {
            if (weft_id_cmp(&weft_out_orphan_rows(&check->removed[r])[i].id,
                            &weft_out_sample_check(&check->found)[row].id.value) == 0)
                return true;
        }
    return false;
}

/* The first few, each with its problem: "ID problem; ID problem". */
static uint64_t list_rows(const struct check *check, bool removed, struct weft_buf *ret_text)
{
    uint64_t shown = 0;
    for (size_t i = 0; i < check->found.count; i++) {
        int kind = kind_of(check, i);
        if (kind < 0 || is_removed(check, i) != removed || shown++ >= IDS_SHOWN)
            continue;
        char text[WEFT_ID_TEXT] = "(no id)";
        const struct weft_sample_check_out *row = &weft_out_sample_check(&check->found)[i];
        if (row->id.set) {
            weft_id_print(&row->id.value, text);
        }
        weft_buf_printf(ret_text, "%s%s %s", shown > 1 ? "; " : "", text, kinds[kind].problem);
    }
    return shown;
}

static void report(const struct check *check)
{
    enum { TEXT_MAX = 1024 };
    struct weft_buf mended, broken;
    weft_buf_init(&mended, TEXT_MAX);
    weft_buf_init(&broken, TEXT_MAX);
    uint64_t mended_count = list_rows(check, true, &mended);
    uint64_t broken_count = list_rows(check, false, &broken);
    if (mended_count)
        weft_warn("rows that belonged to no execution were removed", F_U64("count", mended_count),
                  F_STR("rows", mended.data));
    if (broken_count)
        weft_error("the store holds what must not be: run `weft doctor`",
                   F_U64("in_neither", check->pass->count[IN_NEITHER]),
                   F_U64("in_both", check->pass->count[IN_BOTH]),
                   F_U64("epoch_disorder", check->pass->count[EPOCH_DISORDER]),
                   F_U64("orphans", check->pass->count[ORPHANS]), F_STR("rows", broken.data));
    weft_buf_done(&mended);
    weft_buf_done(&broken);
}

enum weft_rc weft_invariant_check_run(struct weft_pass *pass, struct weft_err *err)
{
    struct check check = {.pass = pass};
    struct weft_tx tx = {.engine = pass->engine, .arena = pass->arena};
    enum weft_rc rc = WEFT_OK;
    choose(&check, pass->engine);
    if (pass->ns >= 0)
        rc = weft_tx_do(&tx, WEFT_TX_READ, look, &check, err);
    if (!rc && has_repairable(&check))
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, repair, &check, err);
    if (rc)
        return rc;
    struct weft_id last = count(&check);
    remember(&check, pass->engine, &last);
    for (size_t r = 0; r < WEFT_LEN(repairs); r++)
        pass->count[REPAIRED] += check.removed[r].count;
    pass->report.handled = pass->count[REPAIRED];
    report(&check);
    return WEFT_OK;
}
