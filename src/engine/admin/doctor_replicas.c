/* SPDX-License-Identifier: Apache-2.0 */

/* What `weft doctor` finds in the rows of replicas: who died, and which scanner is not well. */

#include "engine/admin/doctor_replicas.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/admin/doctor.h"
#include "engine/admin/replicas.h"
#include "engine/engine_state.h"

enum { SHOWN_MAX = 5 }; /* names in one finding */

#define LAG_US (60 * WEFT_SECOND)

struct names {
    struct weft_arena *arena;
    const char *text;
    size_t count;
};

static void name_one(struct names *names, const char *text)
{
    if (names->count < SHOWN_MAX)
        names->text =
            names->count ? weft_arena_printf(names->arena, "%s; %s", names->text, text) : text;
    else if (names->count == SHOWN_MAX)
        names->text = weft_arena_printf(names->arena, "%s; ...", names->text);
    names->count++;
}

/* A finding that is well when nothing was named. */
static struct weft_finding judge(const char *what, const struct names *names, const char *good,
                                 const char *advice)
{
    bool well = names->count == 0;
    return (struct weft_finding){
        .level = well ? WEFT_FINDING_OK : WEFT_FINDING_WARN,
        .what = what,
        .detail = well ? good : names->text,
        .advice = well ? NULL : advice,
    };
}

static struct weft_finding find_dead(const struct weft_replica_rows *rows, weft_usec now_us,
                                     struct weft_arena *arena)
{
    struct names dead = {.arena = arena};
    for (size_t i = 0; i < rows->count; i++) {
        const struct weft_replica_row *row = &rows->item[i];
        if (!weft_replica_shown(row, now_us).alive)
            name_one(&dead, weft_arena_printf(arena, "%s pid %lld is dead, last seen %lld s ago",
                                              row->host, (long long)row->pid,
                                              (long long)((now_us - row->seen_us) / WEFT_SECOND)));
    }
    return judge("replicas", &dead,
                 rows->count ? weft_arena_printf(arena, "alive: %zu", rows->count)
                             : "no server uses the store now",
                 "look why it ended; the others do its work, so start it again when you know");
}

static struct weft_finding find_lag(const struct weft_scanners *scanners, struct weft_arena *arena)
{
    struct names late = {.arena = arena};
    for (size_t i = 0; i < scanners->count; i++) {
        const struct weft_scanner_status *one = &scanners->item[i];
        if (one->enabled && one->lag_us > LAG_US)
            name_one(&late, weft_arena_printf(arena, "%s on %s is %lld s behind", one->name,
                                              one->host, (long long)(one->lag_us / WEFT_SECOND)));
    }
    return judge("scanner_lag", &late, "no scanner is more than 60 s behind",
                 "`weft scanners` tells whether it fails or has too much to do; another replica, "
                 "or a larger batch, makes it faster");
}

static struct weft_finding find_failures(const struct weft_scanners *scanners,
                                         struct weft_arena *arena)
{
    struct names failing = {.arena = arena};
    for (size_t i = 0; i < scanners->count; i++) {
        const struct weft_scanner_status *one = &scanners->item[i];
        if (one->last_error)
            name_one(&failing, weft_arena_printf(arena, "%s on %s fails: %s", one->name, one->host,
                                                 one->last_error));
    }
    return judge("scanner_failures", &failing, "the last pass of each went well",
                 "it is tried again by itself; the log of that server tells since when");
}

static struct weft_finding find_uncovered(const struct weft_scanners *scanners,
                                          struct weft_arena *arena)
{
    const char *names = weft_scanners_uncovered(scanners, arena);
    if (!names)
        return (struct weft_finding){.level = WEFT_FINDING_OK,
                                     .what = "scanner_coverage",
                                     .detail = "every scanner runs for all there is"};
    return (struct weft_finding){
        .level = WEFT_FINDING_BAD,
        .what = "scanner_coverage",
        .detail =
            weft_arena_printf(arena, "no living replica runs this for all there is: %s", names),
        .advice = "start a server with --scanners all, or let those that run have it",
    };
}

enum weft_rc weft_doctor_replicas(struct weft_engine *engine, struct weft_arena *arena,
                                  struct weft_findings *ret_findings, struct weft_err *err)
{
    struct weft_replica_rows rows;
    enum weft_rc rc = weft_engine_replicas(engine, arena, &rows, err);
    if (rc)
        return rc;
    weft_usec now_us = weft_clock_now(engine->clock);
    bool any = false;
    for (size_t i = 0; i < rows.count; i++)
        any |= weft_replica_shown(&rows.item[i], now_us).alive;
    struct weft_finding *item = weft_new_array(arena, struct weft_finding, 4);
    *ret_findings = (struct weft_findings){.item = item, .count = any ? 4 : 1};
    item[0] = find_dead(&rows, now_us, arena);
    if (!any) /* there is nobody whose scanners could be looked at */
        return WEFT_OK;
    struct weft_scanners scanners = weft_replica_scanners(&rows, now_us, arena);
    item[1] = find_uncovered(&scanners, arena);
    item[2] = find_lag(&scanners, arena);
    item[3] = find_failures(&scanners, arena);
    return WEFT_OK;
}
