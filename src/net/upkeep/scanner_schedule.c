/* SPDX-License-Identifier: Apache-2.0 */

#include "net/upkeep/scanner_schedule.h"

#include "base/arena.h"
#include "base/log.h"
#include "engine/ready/poll.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define LINGER_FIRST_US (4 * WEFT_MS)
#define SOON_US         WEFT_MS /* after a due time, so that it has passed for the store as well */

enum { PARTITION_LAST = 255 };

static const struct weft_scanner_info *info_of(size_t scanner)
{
    return weft_scanner_info((enum weft_scanner)scanner);
}

void weft_scanner_defaults(struct weft_scanner_setting ret_setting[WEFT_SCANNER_COUNT])
{
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++) {
        ret_setting[i] = (struct weft_scanner_setting){.interval_us = info_of(i)->interval_us,
                                                       .batch = info_of(i)->batch,
                                                       .pause_us = info_of(i)->pause_us,
                                                       .partition_last = PARTITION_LAST};
    }
}

/* A due time of the store in boot time. */
static weft_usec boot_of(weft_usec due_us, const struct weft_now *now)
{
    if (due_us == WEFT_NEVER)
        return WEFT_NEVER;
    weft_usec left_us = due_us - now->store_us;
    return now->boot_us + (left_us > 0 ? left_us + SOON_US : left_us);
}

/* ---- Settings -------------------------------------------------------------------------------- */

void weft_schedule_init(struct weft_scanner_schedule *schedule,
                        const struct weft_scanner_setting *setting, unsigned room,
                        const struct weft_now *now)
{
    *schedule = (struct weft_scanner_schedule){.room = room};
    memcpy(schedule->setting, setting, sizeof(schedule->setting));
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++) {
        weft_pace_init(&schedule->pace[i], setting[i].interval_us, now->boot_us);
        schedule->totals[i].due_us = WEFT_NEVER;
    }
}

static bool same(const struct weft_scanner_setting *a, const struct weft_scanner_setting *b)
{
    return a->interval_us == b->interval_us && a->batch == b->batch && a->pause_us == b->pause_us &&
           a->partition_first == b->partition_first && a->partition_last == b->partition_last &&
           strcmp(a->ns, b->ns) == 0;
}

size_t weft_schedule_set(struct weft_scanner_schedule *schedule,
                         const struct weft_scanner_setting *setting, const struct weft_now *now)
{
    size_t changed = 0;
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++) {
        if (same(&schedule->setting[i], &setting[i]))
            continue;
        changed++;
        schedule->setting[i] = setting[i];
        weft_pace_change(&schedule->pace[i], setting[i].interval_us, now->boot_us);
        weft_info("a scanner is set anew", F_STR("scanner", info_of(i)->name),
                  F_I64("interval_ms", setting[i].interval_us / WEFT_MS),
                  F_U64("batch", setting[i].batch),
                  F_STR("namespace", setting[i].ns[0] ? setting[i].ns : NULL),
                  F_U64("partition_first", setting[i].partition_first),
                  F_U64("partition_last", setting[i].partition_last));
    }
    return changed;
}

struct weft_pass_config weft_schedule_config(const struct weft_scanner_setting *setting)
{
    bool all = setting->partition_first == 0 && setting->partition_last == PARTITION_LAST;
    return (struct weft_pass_config){
        .batch = setting->batch,
        .ns = setting->ns[0] ? setting->ns : NULL,
        .partition_first = setting->partition_first,
        .partition_last = all ? 0 : setting->partition_last,
    };
}

/* ---- Time ------------------------------------------------------------------------------------ */

void weft_schedule_hold(struct weft_scanner_schedule *schedule, weft_usec until_us)
{
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        if (info_of(i)->takes_leases)
            schedule->pace[i].hold_us = until_us;
}

void weft_schedule_set_due(struct weft_scanner_schedule *schedule,
                           const weft_usec due_us[WEFT_SCANNER_COUNT], weft_usec period_us,
                           const struct weft_now *now)
{
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        if (info_of(i)->timed && due_us[i] != WEFT_UNTOLD) {
            schedule->totals[i].due_us = due_us[i];
            /* A pass would have found nothing, so this counts as one. */
            if (weft_pace_looked(&schedule->pace[i], boot_of(due_us[i], now), period_us,
                                 now->boot_us))
                schedule->totals[i].success_us = now->store_us;
        }
}

void weft_schedule_wake(struct weft_scanner_schedule *schedule, enum weft_scanner scanner,
                        const struct weft_now *now)
{
    schedule->notified_us[scanner] = now->boot_us;
    weft_pace_expect(&schedule->pace[scanner], now->boot_us);
}

/*
 * Each look after a notice waits about as long as the notice is old: four or five in all. A look
 * that found something counts as a notice: where one transaction was late, the next may be.
 */
static void linger(struct weft_scanner_schedule *schedule, enum weft_scanner scanner, bool handled,
                   const struct weft_now *now)
{
    weft_usec age_us = now->boot_us - schedule->notified_us[scanner];
    if (schedule->notified_us[scanner] == 0 || age_us > WEFT_SCHEDULE_LINGER_US)
        return;
    if (handled) {
        schedule->notified_us[scanner] = now->boot_us;
        age_us = 0;
    }
    weft_usec wait_us = age_us > LINGER_FIRST_US ? age_us : LINGER_FIRST_US;
    weft_pace_expect(&schedule->pace[scanner], now->boot_us + wait_us);
}

static void bar(const struct weft_scanner_schedule *schedule, bool ret_barred[WEFT_SCANNER_COUNT])
{
    unsigned heavy_room = schedule->room > 1 ? schedule->room - 1 : 1;
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        ret_barred[i] = schedule->running >= schedule->room ||
                        (info_of(i)->heavy && schedule->heavy >= heavy_room);
}

weft_usec weft_schedule_next(const struct weft_scanner_schedule *schedule)
{
    bool barred[WEFT_SCANNER_COUNT];
    weft_usec next_us = WEFT_NEVER;
    bar(schedule, barred);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        if (!barred[i] && weft_pace_next(&schedule->pace[i]) < next_us)
            next_us = weft_pace_next(&schedule->pace[i]);
    return next_us;
}

/* ---- Passes ---------------------------------------------------------------------------------- */

static void enter(struct weft_scanner_schedule *schedule, size_t scanner,
                  const struct weft_now *now)
{
    weft_pace_begin(&schedule->pace[scanner], now->boot_us);
    schedule->running++;
    schedule->heavy += info_of(scanner)->heavy;
}

enum weft_scanner weft_schedule_begin(struct weft_scanner_schedule *schedule,
                                      const struct weft_now *now)
{
    bool barred[WEFT_SCANNER_COUNT];
    bar(schedule, barred);
    size_t scanner = weft_pace_pick(schedule->pace, barred, WEFT_SCANNER_COUNT, now->boot_us);
    if (scanner < WEFT_SCANNER_COUNT)
        enter(schedule, scanner, now);
    return (enum weft_scanner)scanner;
}

bool weft_schedule_begin_now(struct weft_scanner_schedule *schedule, enum weft_scanner scanner,
                             const struct weft_now *now)
{
    if (schedule->pace[scanner].running)
        return false;
    enter(schedule, scanner, now);
    return true;
}

static void note_failure(struct weft_scanner_totals *totals, const struct weft_pass_end *end)
{
    totals->failures++;
    if (strcmp(totals->error, end->err->text) == 0)
        return;
    (void)snprintf(totals->error, sizeof(totals->error), "%s", end->err->text);
    weft_warn("a pass failed and is tried again", F_STR("scanner", info_of(end->scanner)->name),
              F_STR("error", totals->error));
}

static void note_success(struct weft_scanner_totals *totals, const struct weft_pass_end *end,
                         const struct weft_now *now)
{
    const struct weft_scanner_info *info = info_of(end->scanner);
    const struct weft_pass_report *report = end->report;
    for (size_t i = 0; i < report->counter_count; i++)
        for (size_t c = 0; c < WEFT_COUNTERS_MAX && info->counter[c]; c++)
            if (strcmp(info->counter[c], report->counter[i].name) == 0)
                totals->count[c] += report->counter[i].value;
    totals->success_us = now->store_us;
    /* A pass that left work did not look for the next due row: the known one holds. */
    if (!report->more || report->next_due_us != WEFT_NEVER)
        totals->due_us = report->next_due_us;
    if (totals->error[0])
        weft_info("a scanner works again", F_STR("scanner", info->name));
    totals->error[0] = '\0';
}

void weft_schedule_end(struct weft_scanner_schedule *schedule, const struct weft_pass_end *end,
                       const struct weft_now *now)
{
    struct weft_scanner_totals *totals = &schedule->totals[end->scanner];
    struct weft_pace *pace = &schedule->pace[end->scanner];
    totals->passes++;
    totals->took_us = end->took_us;
    if (end->rc)
        note_failure(totals, end);
    else
        note_success(totals, end, now);
    if (!end->paced)
        return;
    assert(pace->running);
    schedule->running--;
    schedule->heavy -= info_of(end->scanner)->heavy;
    if (end->rc) {
        weft_pace_fail(pace, now->boot_us, end->random);
        return;
    }
    const struct weft_pace_run run = {.handled = end->report->handled > 0,
                                      .more = end->report->more,
                                      .due_us = boot_of(end->report->next_due_us, now)};
    weft_pace_end(pace, &run, now->boot_us);
    if (run.more && schedule->setting[end->scanner].pause_us > 0)
        pace->hold_us = now->boot_us + schedule->setting[end->scanner].pause_us;
    linger(schedule, end->scanner, run.handled, now);
}

/* ---- What it shows --------------------------------------------------------------------------- */

static const struct weft_counter *counters_of(const struct weft_scanner_schedule *schedule,
                                              size_t scanner, struct weft_arena *arena,
                                              size_t *ret_count)
{
    const struct weft_scanner_info *info = info_of(scanner);
    struct weft_counter *counter = weft_new_array(arena, struct weft_counter, WEFT_COUNTERS_MAX);
    size_t count = 0;
    for (; count < WEFT_COUNTERS_MAX && info->counter[count]; count++)
        counter[count] = (struct weft_counter){.name = info->counter[count],
                                               .value = schedule->totals[scanner].count[count]};
    *ret_count = count;
    return counter;
}

struct weft_scanner_status weft_schedule_status(const struct weft_scanner_schedule *schedule,
                                                enum weft_scanner scanner,
                                                const struct weft_now *now,
                                                struct weft_arena *arena)
{
    const struct weft_scanner_setting *setting = &schedule->setting[scanner];
    const struct weft_scanner_totals *totals = &schedule->totals[scanner];
    const struct weft_pace *pace = &schedule->pace[scanner];
    weft_usec next_us = weft_pace_next(pace);
    struct weft_scanner_status status = {
        .name = info_of(scanner)->name,
        .enabled = setting->interval_us > 0,
        .interval_ms = setting->interval_us / WEFT_MS,
        .batch = setting->batch,
        .pause_ms = setting->pause_us / WEFT_MS,
        .ns = setting->ns[0] ? weft_arena_strdup(arena, setting->ns) : NULL,
        .partition_first = setting->partition_first,
        .partition_last = setting->partition_last,
        .passes = totals->passes,
        .failures = totals->failures,
        .last_pass_us = totals->success_us,
        .duration_us = totals->took_us,
        .lag_us = totals->due_us < now->store_us ? now->store_us - totals->due_us : 0,
        .last_error = totals->error[0] ? weft_arena_strdup(arena, totals->error) : NULL,
    };
    if (setting->interval_us > 0)
        status.next_us = next_us <= now->boot_us || pace->running
                             ? now->store_us
                             : now->store_us + (next_us - now->boot_us);
    status.counters = counters_of(schedule, scanner, arena, &status.counter_count);
    return status;
}

const char *weft_schedule_names(const struct weft_scanner_schedule *schedule, bool running,
                                struct weft_arena *arena)
{
    const char *names = NULL;
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++) {
        const struct weft_pace *pace = &schedule->pace[i];
        if (pace->running == running && (running || pace->more))
            names = names ? weft_arena_printf(arena, "%s, %s", names, info_of(i)->name)
                          : info_of(i)->name;
    }
    return names;
}
