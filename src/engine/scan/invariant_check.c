/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks at a sample of the store for what must never be: an execution in neither or both of `live`
 * and `outcome`, epochs out of order, rows that belong to no execution.
 *
 * A pass asks for the ends of each table, chooses a place in each at random, and has the rows from
 * there on checked by one statement, so in one snapshot. Every other pass goes on among executions
 * where the last one of this process stopped: places are random by time, and what was submitted in
 * bulk within a second would hardly ever be met. The cost follows the batch, whatever the size of
 * the store. Keys, and rows beside
 * executions (core/tables.def), whose execution does not exist mean nothing and are removed, which
 * is the one repair there is (see the statements on why that is safe). Everything else is only
 * logged: which row is the true one is for a person to find out, and `weft doctor` looks at all of
 * them.
 */

#include "engine/scan/scan.h"

#include "base/buf.h"
#include "base/id.h"
#include "base/log.h"

#include <string.h>

enum {
    IDS_LOGGED = 5,     /* in one line of the log */
    LOOK_FILTERED = 10, /* so many times the batch is looked at when a filter leaves few */
};

enum { SAMPLED, IN_NEITHER, IN_BOTH, EPOCH_DISORDER, ORPHANS, REPAIRED, COUNTERS };

/* What sample_check finds, as it says it. */
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
    const struct weft_pass_config *config;
    int32_t ns; /* 0: all */
    bool goes_on;
    struct weft_id from; /* go on behind this execution; all 0: at a random place */
    struct weft_rows found;
    struct weft_rows removed[2]; /* by the statements of `repairs` */
    uint64_t count[COUNTERS];
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
static const struct weft_id *place_by_id(const struct weft_rows *ends, size_t first,
                                         struct weft_arena *arena)
{
    struct weft_id *place = weft_new_array(arena, struct weft_id, 1);
    if (!weft_get(ends, 0, first)->null) {
        struct weft_id from = weft_get_id(ends, 0, first), to = weft_get_id(ends, 0, first + 1);
        uint64_t low = head_of(&from), high = head_of(&to);
        uint64_t head = low + random_up_to(high > low ? high - low : 0);
        for (size_t i = sizeof(head); i-- > 0; head >>= 8)
            place->byte[i] = (uint8_t)head;
    }
    return place;
}

/*
 * Keys are often numbered: what all have in common stays, and two characters after it are drawn.
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

static void place_by_key(struct weft_call *call, const struct weft_rows *ends,
                         struct weft_arena *arena)
{
    if (weft_get(ends, 0, SAMPLE_BOUNDS_OUT_FIRST_NAMESPACE)->null) {
        weft_set_i64(call, 0, SAMPLE_CHECK_IN_KEY_NAMESPACE, 0);
        weft_set_text(call, 0, SAMPLE_CHECK_IN_KEY, "");
        return;
    }
    int64_t from = weft_get_i64(ends, 0, SAMPLE_BOUNDS_OUT_FIRST_NAMESPACE);
    int64_t to = weft_get_i64(ends, 0, SAMPLE_BOUNDS_OUT_LAST_NAMESPACE);
    const char *first = "", *last = "";
    if (from == to) {
        first = weft_get_text(ends, 0, SAMPLE_BOUNDS_OUT_FIRST_KEY);
        last = weft_get_text(ends, 0, SAMPLE_BOUNDS_OUT_LAST_KEY);
    }
    weft_set_i64(call, 0, SAMPLE_CHECK_IN_KEY_NAMESPACE,
                 from + (int64_t)random_up_to((uint64_t)(to - from)));
    weft_set_text(call, 0, SAMPLE_CHECK_IN_KEY, text_between(first, last, arena));
}

/* ---- The sample ------------------------------------------------------------------------------ */

static const struct weft_id none;

/* Every other pass goes on where the one before the last ended. */
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

static bool is_empty(const struct weft_rows *ends)
{
    for (size_t i = 0; i < ends->width; i++)
        if (!weft_get(ends, 0, i)->null)
            return false;
    return true;
}

static enum weft_rc look(struct weft_tx *tx, void *context, struct weft_err *err)
{
    struct check *check = context;
    const struct weft_pass_config *config = check->config;
    struct weft_call call;
    struct weft_rows ends;
    check->found = (struct weft_rows){0};
    weft_call_init(&call, tx->arena, WEFT_STMT_SAMPLE_BOUNDS, 0);
    if (check->ns)
        weft_set_i64(&call, 0, SAMPLE_BOUNDS_IN_NAMESPACE, check->ns);
    enum weft_rc rc = weft_tx_run(tx, &call, 1, &ends, err);
    if (rc || is_empty(&ends))
        return rc;
    static const struct {
        size_t place, first;
    } table[] = {
        {SAMPLE_CHECK_IN_EXECUTION, SAMPLE_BOUNDS_OUT_FIRST},
        {SAMPLE_CHECK_IN_LIVE, SAMPLE_BOUNDS_OUT_FIRST_LIVE},
        {SAMPLE_CHECK_IN_OUTCOME, SAMPLE_BOUNDS_OUT_FIRST_OUTCOME},
#define SIDE(table, TABLE, bit) {SAMPLE_CHECK_IN_##TABLE, SAMPLE_BOUNDS_OUT_FIRST_##TABLE},
#include "core/tables.def"
    };
    bool everywhere = config->partition_first == 0 && config->partition_last == 0;
    bool filtered = check->ns || !everywhere;
    weft_call_init(&call, tx->arena, WEFT_STMT_SAMPLE_CHECK, 0);
    for (size_t i = 0; i < WEFT_LEN(table); i++)
        weft_set_id(&call, 0, table[i].place, place_by_id(&ends, table[i].first, tx->arena));
    if (weft_id_cmp(&check->from, &none) != 0)
        weft_set_id(&call, 0, SAMPLE_CHECK_IN_EXECUTION, &check->from);
    place_by_key(&call, &ends, tx->arena);
    weft_set_i64(&call, 0, SAMPLE_CHECK_IN_LOOK,
                 (int64_t)config->batch * (filtered ? LOOK_FILTERED : 1));
    weft_set_i64(&call, 0, SAMPLE_CHECK_IN_BATCH, config->batch);
    if (check->ns)
        weft_set_i64(&call, 0, SAMPLE_CHECK_IN_NAMESPACE, check->ns);
    weft_set_i64(&call, 0, SAMPLE_CHECK_IN_FIRST, config->partition_first);
    weft_set_i64(&call, 0, SAMPLE_CHECK_IN_LAST,
                 everywhere ? WEFT_PARTITION_LAST : config->partition_last);
    return weft_tx_run(tx, &call, 1, &check->found, err);
}

/* The kind of a row that was found, -1 for the row that counts the sample. */
static int kind_of(const struct check *check, size_t row)
{
    const char *problem = weft_get_text(&check->found, row, SAMPLE_CHECK_OUT_PROBLEM);
    for (size_t i = 0; problem && i < WEFT_LEN(kinds); i++)
        if (strcmp(kinds[i].problem, problem) == 0)
            return (int)i;
    return -1;
}

/* Counts what was found; gives back the last execution that was looked at. */
static struct weft_id count(struct check *check)
{
    struct weft_id last = none;
    for (size_t i = 0; i < check->found.count; i++) {
        int kind = kind_of(check, i);
        if (kind >= 0) {
            check->count[kinds[kind].counter]++;
            continue;
        }
        check->count[SAMPLED] = (uint64_t)weft_get_i64(&check->found, i, SAMPLE_CHECK_OUT_NUMBER);
        last = weft_get_id(&check->found, i, SAMPLE_CHECK_OUT_ID);
    }
    return last;
}

/* ---- The repair ------------------------------------------------------------------------------ */

static void add_orphan(const struct check *check, size_t row, struct weft_call *call)
{
    const struct weft_id *id = weft_get(&check->found, row, SAMPLE_CHECK_OUT_ID)->data;
    size_t at = call->rows++;
    if (call->stmt == WEFT_STMT_ORPHAN_ROWS) {
        weft_set_id(call, at, ORPHAN_ROWS_IN_ID, id);
        weft_set_i64(call, at, ORPHAN_ROWS_IN_SIDE,
                     weft_get_i64(&check->found, row, SAMPLE_CHECK_OUT_NUMBER));
        return;
    }
    weft_set_i64(call, at, ORPHAN_KEYS_IN_NAMESPACE,
                 weft_get_i64(&check->found, row, SAMPLE_CHECK_OUT_NAMESPACE));
    weft_set_text(call, at, ORPHAN_KEYS_IN_KEY,
                  weft_get_text(&check->found, row, SAMPLE_CHECK_OUT_KEY));
    weft_set_id(call, at, ORPHAN_KEYS_IN_ID, id);
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

/* ---- The log --------------------------------------------------------------------------------- */

/* True when the row was an orphan and is gone. */
static bool is_removed(const struct check *check, size_t row)
{
    int kind = kind_of(check, row);
    if (kind < 0)
        return false;
    struct weft_id id = weft_get_id(&check->found, row, SAMPLE_CHECK_OUT_ID);
    for (size_t r = 0; r < WEFT_LEN(repairs); r++)
        for (size_t i = 0; repairs[r] == kinds[kind].repair && i < check->removed[r].count; i++) {
            struct weft_id gone = weft_get_id(&check->removed[r], i, ORPHAN_ROWS_OUT_ID);
            if (weft_id_cmp(&gone, &id) == 0)
                return true;
        }
    return false;
}

/* The first few, with what is wrong with each: "ID problem; ID problem". */
static uint64_t list_rows(const struct check *check, bool removed, struct weft_buf *ret_text)
{
    uint64_t listed = 0;
    for (size_t i = 0; i < check->found.count; i++) {
        int kind = kind_of(check, i);
        if (kind < 0 || is_removed(check, i) != removed || listed++ >= IDS_LOGGED)
            continue;
        char text[WEFT_ID_TEXT] = "(no id)";
        if (!weft_get(&check->found, i, SAMPLE_CHECK_OUT_ID)->null) {
            struct weft_id id = weft_get_id(&check->found, i, SAMPLE_CHECK_OUT_ID);
            weft_id_print(&id, text);
        }
        weft_buf_printf(ret_text, "%s%s %s", listed > 1 ? "; " : "", text, kinds[kind].problem);
    }
    return listed;
}

static void log_findings(const struct check *check)
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
                   F_U64("in_neither", check->count[IN_NEITHER]),
                   F_U64("in_both", check->count[IN_BOTH]),
                   F_U64("epoch_disorder", check->count[EPOCH_DISORDER]),
                   F_U64("orphans", check->count[ORPHANS]), F_STR("rows", broken.data));
    weft_buf_done(&mended);
    weft_buf_done(&broken);
}

enum weft_rc weft_invariant_check_run(struct weft_engine *engine,
                                      const struct weft_pass_config *config,
                                      struct weft_pass_report *ret_report, struct weft_err *err)
{
    struct check check = {.config = config};
    struct weft_tx tx = {.engine = engine, .arena = weft_arena_new()};
    enum weft_rc rc = weft_pass_namespace(engine, config, &check.ns, err);
    choose(&check, engine);
    if (!rc && check.ns >= 0)
        rc = weft_tx_do(&tx, WEFT_TX_READ, look, &check, err);
    if (!rc && has_repairable(&check))
        rc = weft_tx_do(&tx, WEFT_TX_WRITE, repair, &check, err);
    if (!rc) {
        struct weft_id last = count(&check);
        remember(&check, engine, &last);
        for (size_t r = 0; r < WEFT_LEN(repairs); r++)
            check.count[REPAIRED] += check.removed[r].count;
        log_findings(&check);
        *ret_report =
            (struct weft_pass_report){.handled = check.count[REPAIRED], .next_due_us = WEFT_NEVER};
        weft_pass_count(ret_report, WEFT_SCANNER_INVARIANT_CHECK, check.count);
    }
    weft_arena_free(tx.arena);
    return rc;
}
