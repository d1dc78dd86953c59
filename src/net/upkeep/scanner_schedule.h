/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_UPKEEP_SCANNER_SCHEDULE_H
#define WEFT_NET_UPKEEP_SCANNER_SCHEDULE_H

/*
 * The schedule of the scanners of this replica: how each is set, when it runs and what it did.
 *
 * It has no thread, no lock and no clock: supervisor.c has these. It is given two times: boot time,
 * by which passes are paced, and the store's, in which due times are.
 *
 * At most `room` passes run at once, so that requests always find a thread. The last place is kept
 * for scanners with due times: the others (retention, checks) do the heavy work, and a crashed
 * worker's executions must not wait for it.
 */

#include "core/pace.h"
#include "engine/scan/pass.h"
#include "net/server.h"
#include "weft/admin.h"

struct weft_now {
    weft_usec boot_us;
    weft_usec store_us;
};

/* What a scanner did since the start. */
struct weft_scanner_totals {
    uint64_t passes, failures;
    uint64_t count[WEFT_COUNTERS_MAX]; /* as the scanner's table names them */
    weft_usec success_us;              /* the store's time; 0: none yet */
    weft_usec took_us;                 /* the last pass */
    weft_usec due_us;                  /* the store's time; the oldest row, as last known */
    char error[sizeof(((struct weft_err *)0)->text)]; /* "": the last pass went well */
};

struct weft_scanner_schedule {
    struct weft_scanner_setting setting[WEFT_SCANNER_COUNT];
    struct weft_pace pace[WEFT_SCANNER_COUNT]; /* boot time */
    struct weft_scanner_totals totals[WEFT_SCANNER_COUNT];
    unsigned room, running, heavy;             /* passes: at most, now, now without due times */
    weft_usec notified_us[WEFT_SCANNER_COUNT]; /* boot time of the last notice for it; 0: none */
};

void weft_schedule_init(struct weft_scanner_schedule *schedule,
                        const struct weft_scanner_setting *setting, unsigned room,
                        const struct weft_now *now);
/* Other settings hold at once; says in the log what changed, and how many did. */
size_t weft_schedule_set(struct weft_scanner_schedule *schedule,
                         const struct weft_scanner_setting *setting, const struct weft_now *now);
/* Until then (boot time) no lease is taken away. */
void weft_schedule_hold(struct weft_scanner_schedule *schedule, weft_usec until_us);
/* The slow poll found these due times, or WEFT_UNTOLD; it looks every period_us. */
void weft_schedule_set_due(struct weft_scanner_schedule *schedule,
                           const weft_usec due_us[WEFT_SCANNER_COUNT], weft_usec period_us,
                           const struct weft_now *now);

/*
 * A notice says that this scanner has work now. It runs at once, and a few times more within the
 * next WEFT_SCHEDULE_LINGER_US: of several transactions that commit at the same time only one sends
 * a notice, and the others may become visible a little later.
 */
#define WEFT_SCHEDULE_LINGER_US (40 * WEFT_MS)
void weft_schedule_wake(struct weft_scanner_schedule *schedule, enum weft_scanner scanner,
                        const struct weft_now *now);

/* When to call weft_schedule_begin() again, if nothing happens before. */
weft_usec weft_schedule_next(const struct weft_scanner_schedule *schedule);
/* The scanner whose pass begins now; WEFT_SCANNER_COUNT: none. */
enum weft_scanner weft_schedule_begin(struct weft_scanner_schedule *schedule,
                                      const struct weft_now *now);
/* A pass that an operator asked for. False: one is under way, so that this one is only counted. */
bool weft_schedule_begin_now(struct weft_scanner_schedule *schedule, enum weft_scanner scanner,
                             const struct weft_now *now);
/* How a pass is to run under this setting, which is borrowed. */
struct weft_pass_config weft_schedule_config(const struct weft_scanner_setting *setting);

/* How a pass went. */
struct weft_pass_end {
    enum weft_scanner scanner;
    bool paced; /* it was begun here */
    enum weft_rc rc;
    const struct weft_err *err;            /* of a failure */
    const struct weft_pass_report *report; /* otherwise */
    weft_usec took_us;
    uint64_t random;
};
/* Counts it and paces the next one. A failure is logged when it is not the one from before. */
void weft_schedule_end(struct weft_scanner_schedule *schedule, const struct weft_pass_end *end,
                       const struct weft_now *now);

/* All but replica and host; texts are in the arena. */
struct weft_scanner_status weft_schedule_status(const struct weft_scanner_schedule *schedule,
                                                enum weft_scanner scanner,
                                                const struct weft_now *now,
                                                struct weft_arena *arena);
/* The scanners in a pass, or with work left by their last one: "name, name"; NULL: none. */
const char *weft_schedule_names(const struct weft_scanner_schedule *schedule, bool running,
                                struct weft_arena *arena);

#endif
