/* SPDX-License-Identifier: Apache-2.0 */

/* See waiting.h. */

#include "waiting.h"

#include "base/arena.h"
#include "engine/job/claim.h"
#include "engine/job/execution_read.h"
#include "engine/scan/pass.h"
#include "engine/tx/tx.h"
#include "engine/wait/wait.h"
#include "store/store.h"
#include "weft/weft.h"

#include <stdlib.h>

static bool is_unknown(enum weft_rc rc, const struct weft_err *err)
{
    return rc && err && err->hint && strcmp(err->hint, "outcome_unknown") == 0;
}

struct weft_claimed wait_lease(struct weft_engine *engine, const char *lane)
{
    struct weft_id id;
    struct weft_claimed lease;
    put_work(engine, &(struct weft_spec){.kind = "job", .lane = lane}, 1, &id);
    if (take_work(engine, lane, 1, &lease) != 1)
        bail_out("the execution of lane %s cannot be claimed", lane);
    return lease;
}

static void take_waitpoint(struct wait_answer *answer, const struct weft_waitpoint *waitpoint)
{
    if (answer->count == WAIT_PLACES)
        return;
    answer->waitpoint[answer->count] = waitpoint->id;
    (void)snprintf(answer->token[answer->count], sizeof(answer->token[0]), "%s", waitpoint->token);
    answer->count++;
}

struct wait_answer wait_suspend(struct weft_engine *engine, const struct weft_suspend *item)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_suspend_result got = {0};
    struct weft_err err = {0};
    struct wait_answer answer = {0};
    enum weft_rc rc = weft_engine_suspend(engine, item, 1, arena, &got, &err);
    answer.rc = rc ? rc : got.rc;
    answer.unknown = is_unknown(answer.rc, rc ? &err : got.err);
    answer.state = got.state;
    answer.satisfied = got.satisfied;
    answer.signals = got.signal_count;
    for (size_t i = 0; i < got.waitpoint_count && !answer.rc; i++)
        take_waitpoint(&answer, &got.waitpoint[i]);
    weft_arena_free(arena);
    return answer;
}

/* "ab" -> "a", "b"; the texts stay. */
static const char *letter_name(char letter)
{
    static const char *const name[WAIT_PLACES] = {"a", "b", "c", "d"};
    return name[letter - 'a'];
}

struct wait_answer wait_suspend_at(struct weft_engine *engine, const struct weft_claimed *lease,
                                   const char *letters, const struct weft_suspend *how)
{
    struct weft_suspend item = how ? *how : (struct weft_suspend){0};
    struct weft_suspend_at at[WAIT_PLACES] = {0};
    item.id = lease->id;
    item.epoch = lease->epoch;
    item.waitpoint = at;
    for (; letters[item.waitpoint_count]; item.waitpoint_count++)
        at[item.waitpoint_count].name = letter_name(letters[item.waitpoint_count]);
    return wait_suspend(engine, &item);
}

struct wait_answer wait_pending(struct weft_engine *engine, const struct weft_claimed *lease,
                                const char *letters, int64_t expires_ms)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_waitpoint_new item[WAIT_PLACES];
    struct weft_waitpoint_result got[WAIT_PLACES] = {0};
    struct weft_err err = {0};
    struct wait_answer answer = {0};
    size_t count = strlen(letters);
    for (size_t i = 0; i < count; i++)
        item[i] = (struct weft_waitpoint_new){.id = lease->id,
                                              .epoch = lease->epoch,
                                              .name = letter_name(letters[i]),
                                              .expires_ms = expires_ms};
    answer.rc = weft_engine_waitpoints_new(engine, item, count, arena, got, &err);
    answer.unknown = is_unknown(answer.rc, &err);
    for (size_t i = 0; i < count; i++) {
        answer.unknown |= is_unknown(got[i].rc, got[i].err);
        answer.rc = answer.rc ? answer.rc : got[i].rc;
        if (!answer.rc)
            take_waitpoint(&answer, &got[i].waitpoint);
    }
    weft_arena_free(arena);
    return answer;
}

void wait_signals(struct weft_engine *engine, const struct weft_signal *item, size_t count,
                  struct signal_answer *ret_answer)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_signal_result *got = weft_new_array(arena, struct weft_signal_result, count);
    struct weft_err err = {0};
    enum weft_rc rc = weft_engine_signal(engine, item, count, arena, got, &err);
    for (size_t i = 0; i < count; i++)
        ret_answer[i] = (struct signal_answer){
            .rc = got[i].rc ? got[i].rc : rc,
            .unknown = got[i].rc ? is_unknown(got[i].rc, got[i].err) : is_unknown(rc, &err),
            .effect = got[i].effect,
            .first = got[i].first};
    weft_arena_free(arena);
}

struct signal_answer wait_signal(struct weft_engine *engine, const char *token, const char *key)
{
    struct signal_answer answer;
    wait_signals(engine, &(struct weft_signal){.token = token, .key = key}, 1, &answer);
    return answer;
}

struct wait_answer wait_claim(struct weft_engine *engine, const char *lane)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result got = {0};
    struct weft_err err = {0};
    struct wait_answer answer = {0};
    const struct weft_claim claim = {.worker = "worker", .lanes = &lane, .lane_count = 1, .max = 1};
    answer.rc = weft_engine_claim(engine, "default", &claim, 1, arena, &got, &err);
    answer.unknown = is_unknown(answer.rc, &err);
    answer.count = got.count;
    if (got.count > 0) {
        answer.by = got.item[0].resumed_by;
        answer.signals = got.item[0].signal_count;
        answer.epoch = got.item[0].epoch;
    }
    weft_arena_free(arena);
    return answer;
}

enum weft_rc wait_pass(struct weft_engine *engine, enum weft_scanner scanner, uint64_t *ret_handled,
                       struct weft_err *err)
{
    struct weft_pass_report report = {0};
    enum weft_rc rc = weft_engine_pass(engine, scanner, NULL, &report, err);
    *ret_handled = report.handled;
    return rc;
}

/* ---- What the store says --------------------------------------------------------------------- */

static struct weft_rows ask(struct weft_engine *engine, struct weft_call *call,
                            struct weft_arena *arena)
{
    struct weft_rows rows = {0};
    struct weft_err err = {0};
    if (weft_tx_once(engine, WEFT_TX_READ, call, arena, &rows, &err))
        bail_out("cannot read the waiting rows: %s", err.text);
    return rows;
}

struct text {
    char *out;
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int size = vsnprintf(text->out + text->used, WAIT_TEXT - text->used, fmt, args);
    va_end(args);
    if (size < 0 || text->used + (size_t)size >= WAIT_TEXT)
        bail_out("the description of an execution is too long");
    text->used += (size_t)size;
}

/* Ids of waitpoints are in no useful order: the names are. */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct weft_waitpoint_out *)a)->name,
                  ((const struct weft_waitpoint_out *)b)->name);
}

static void add_signals(struct text *text, const struct weft_rows *rows, const struct weft_id *of)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_signals_list_out *row = &weft_out_signals_list(rows)[i];
        if (weft_id_cmp(&row->waitpoint, of) == 0)
            add(text, "; signal %s#%d key %s %s", row->waitpoint_name, row->n,
                row->key ? row->key : "-",
                weft_signal_effect_name((enum weft_signal_effect)row->effect));
    }
}

static void add_waitpoints(struct text *text, struct weft_engine *engine, const struct weft_id *id,
                           struct weft_arena *arena)
{
    struct weft_call call;
    const struct weft_id first = {0};
    *weft_call_waitpoints_list(&call, arena) =
        (struct weft_waitpoints_list_in){.id = *id, .after = first, .most = 100};
    struct weft_rows rows = ask(engine, &call, arena);
    struct weft_waitpoint_out *row =
        weft_new_array(arena, struct weft_waitpoint_out, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++)
        row[i] = *weft_out_waitpoint(&rows, i);
    qsort(row, rows.count, sizeof(*row), by_name);
    *weft_call_signals_list(&call, arena) =
        (struct weft_signals_list_in){.id = *id, .after = first, .most = 100, .bytes = 1 << 20};
    struct weft_rows signals = ask(engine, &call, arena);
    for (size_t i = 0; i < rows.count; i++) {
        add(text, "; waitpoint %s of %d, bound %d%s, %d signals", row[i].name, row[i].epoch,
            row[i].bound, row[i].closed.set ? ", closed" : "", row[i].signals);
        add_signals(text, &signals, &row[i].waitpoint);
    }
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written through struct text */
void wait_describe(struct weft_engine *engine, const struct weft_id *id, char out[WAIT_TEXT])
{
    struct weft_arena *arena = weft_arena_new();
    struct text text = {.out = out};
    struct weft_call call;
    struct weft_execution now = look_at(engine, id, arena);
    add(&text, "%s%s, epoch %d, attempt %d, %zu leases, class %s", weft_state_name(now.state),
        now.timeout_us ? " with a timeout" : "", now.epoch, now.attempt, attempts_of(engine, id),
        now.error_class ? now.error_class : "-");
    weft_call_suspension_read(&call, arena, 1)->row[0].id = *id;
    struct weft_rows rows = ask(engine, &call, arena);
    if (rows.count > 0)
        add(&text, "; suspended under %d, %s, on timeout %d%s",
            weft_out_suspension_read(&rows)->epoch, weft_out_suspension_read(&rows)->condition,
            weft_out_suspension_read(&rows)->on_timeout,
            weft_out_suspension_read(&rows)->escalated.set ? ", escalated" : "");
    weft_call_signals_read(&call, arena, 1)->row[0].id = *id;
    rows = ask(engine, &call, arena);
    const struct weft_signals_read_out *resumption = weft_out_signals_read(&rows);
    if (resumption->resumed.set)
        add(&text, "; resumed from %d by %d", resumption->epoch.value, resumption->by.value);
    add_waitpoints(&text, engine, id, arena);
    weft_arena_free(arena);
}

size_t wait_keys(struct weft_engine *engine, size_t *ret_current)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call call;
    weft_call_init(&call, arena, WEFT_STMT_KEYS_READ, 0);
    struct weft_rows rows = ask(engine, &call, arena);
    size_t current = 0;
    for (size_t i = 0; i < rows.count; i++)
        current += !weft_out_keys_read(&rows)[i].retires.set;
    size_t count = rows.count;
    weft_arena_free(arena);
    if (ret_current)
        *ret_current = current;
    return count;
}
