/* SPDX-License-Identifier: Apache-2.0 */

/* The scanners of a replica with both clocks set by the test; and the grace, which is a sum. */

#include "tap.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "core/pace.h"
#include "engine/admin/replicas.h"
#include "engine/ready/poll.h"
#include "engine/scan/pass.h"
#include "net/upkeep/scanner_schedule.h"
#include "net/upkeep/upkeep.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define S          WEFT_SECOND
#define BOOT       (5000 * S)
#define STORE      (1700000000 * S)
#define EXPIRY     WEFT_SCANNER_LEASE_EXPIRY
#define PROMOTER   WEFT_SCANNER_DELAYED_PROMOTER
#define NO_SCANNER WEFT_SCANNER_COUNT

static struct weft_now at(weft_usec since_us)
{
    return (struct weft_now){BOOT + since_us, STORE + since_us};
}

static struct weft_scanner_schedule new_board(unsigned room)
{
    struct weft_scanner_schedule schedule;
    struct weft_scanner_setting setting[WEFT_SCANNER_COUNT];
    const struct weft_now now = at(0);
    weft_scanner_defaults(setting);
    weft_schedule_init(&schedule, setting, room, &now);
    return schedule;
}

/* One that has a due time, or one that has none; WEFT_SCANNER_COUNT: there is none such. */
static enum weft_scanner one_that_is(bool timed, size_t after)
{
    size_t i = after;
    while (i < WEFT_SCANNER_COUNT && weft_scanner_info((enum weft_scanner)i)->timed != timed)
        i++;
    return (enum weft_scanner)i;
}

static void end_well(struct weft_scanner_schedule *schedule, enum weft_scanner scanner,
                     const struct weft_pass_report *report, weft_usec since_us)
{
    const struct weft_now now = at(since_us);
    const struct weft_pass_end end = {
        .scanner = scanner, .paced = true, .report = report, .took_us = 7};
    weft_schedule_end(schedule, &end, &now);
}

static void end_badly(struct weft_scanner_schedule *schedule, enum weft_scanner scanner,
                      const char *text, weft_usec since_us)
{
    struct weft_err err = {0};
    const struct weft_now now = at(since_us);
    (void)weft_fail(&err, WEFT_UNAVAILABLE, "%s", text);
    const struct weft_pass_end end = {.scanner = scanner,
                                      .paced = true,
                                      .rc = WEFT_UNAVAILABLE,
                                      .err = &err,
                                      .random = (uint64_t)S / 2};
    weft_schedule_end(schedule, &end, &now);
}

static const struct weft_pass_report nothing = {.next_due_us = WEFT_NEVER};

static enum weft_scanner begin(struct weft_scanner_schedule *schedule, weft_usec since_us)
{
    const struct weft_now now = at(since_us);
    return weft_schedule_begin(schedule, &now);
}

/* A pass of each scanner that is due, each with nothing to do. */
static void run_all_at(struct weft_scanner_schedule *schedule, weft_usec since_us)
{
    enum weft_scanner scanner = begin(schedule, since_us);
    for (int i = 0; i < WEFT_SCANNER_COUNT && scanner != NO_SCANNER; i++) {
        end_well(schedule, scanner, &nothing, since_us);
        scanner = begin(schedule, since_us);
    }
}

static void run_all(struct weft_scanner_schedule *schedule)
{
    run_all_at(schedule, 0);
}

static void test_start(void)
{
    struct weft_scanner_schedule schedule = new_board(2);
    const struct weft_now now = at(0);
    is_int(begin(&schedule, 0), WEFT_SCANNER_INTAKE, "the first pass is at the start");
    is_int(begin(&schedule, 0), WEFT_SCANNER_LEASE_EXPIRY,
           "the second pass is at the start as well");
    is_int(begin(&schedule, 0), NO_SCANNER, "no third pass begins beside two");
    is_int(weft_schedule_next(&schedule), WEFT_NEVER,
           "there is no next time while all places are taken");
    end_well(&schedule, WEFT_SCANNER_INTAKE, &nothing, 0);
    is_int(begin(&schedule, 0), WEFT_SCANNER_ATTEMPT_TIMEOUT,
           "the next scanner begins when there is room");
    ok(!weft_schedule_begin_now(&schedule, EXPIRY, &now), "an operator cannot begin one that runs");
    ok(weft_schedule_begin_now(&schedule, PROMOTER, &now),
       "an operator can begin a scanner that does not run, without room");
    is_int(schedule.running, 3, "the operator's pass counts as running");
}

/* What has no due time does the heavy work: one of them at a time, so others find room. */
static void test_heavy(void)
{
    enum weft_scanner first = one_that_is(false, 0);
    enum weft_scanner second = one_that_is(false, (size_t)first + 1);
    if (!ok(second < NO_SCANNER, "there are two scanners without due times"))
        return;
    struct weft_scanner_schedule schedule = new_board(2);
    run_all(&schedule);
    struct weft_now now = at(0);
    ok(weft_schedule_begin_now(&schedule, first, &now), "a heavy one runs");
    weft_usec later_us = schedule.setting[second].interval_us;
    schedule.pace[second].look_us = BOOT; /* it has been due for longest */
    enum weft_scanner next = begin(&schedule, later_us);
    ok(next != NO_SCANNER && weft_scanner_info(next)->timed,
       "the other place is for one with times");
    end_well(&schedule, first, &nothing, later_us);
    is_int(begin(&schedule, later_us), second,
           "the second heavy scanner begins when the first has ended");
}

static void test_due(void)
{
    struct weft_scanner_schedule schedule = new_board(2);
    weft_usec due_us[WEFT_SCANNER_COUNT];
    struct weft_now now = at(300 * WEFT_MS);
    struct weft_arena *arena = weft_arena_new();
    run_all(&schedule);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        due_us[i] = WEFT_NEVER;
    weft_schedule_set_due(&schedule, due_us, S, &now);
    is_int(begin(&schedule, S), NO_SCANNER,
           "scanners are not due after a poll that looked for them");
    is_int(weft_schedule_status(&schedule, PROMOTER, &now, arena).last_pass_us, now.store_us,
           "the poll counts as their last pass");
    struct weft_scanner_schedule blind = new_board(2);
    run_all(&blind);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        due_us[i] = WEFT_UNTOLD;
    weft_usec next_us = weft_schedule_next(&blind);
    weft_schedule_set_due(&blind, due_us, S, &now);
    is_int(weft_schedule_next(&blind), next_us,
           "a poll that did not look for scanners does not change the next time");
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        due_us[i] = WEFT_NEVER;
    due_us[PROMOTER] = STORE + 700 * WEFT_MS;
    weft_schedule_set_due(&schedule, due_us, S, &now);
    is_int(weft_schedule_next(&schedule), BOOT + 701 * WEFT_MS,
           "a due time of the store in boot time");
    is_int(begin(&schedule, 700 * WEFT_MS), NO_SCANNER,
           "the scanner does not begin before the due time has passed");
    is_int(begin(&schedule, 701 * WEFT_MS), PROMOTER,
           "the scanner begins when the due time has passed");
    now = at(3 * S);
    is_int(weft_schedule_status(&schedule, PROMOTER, &now, arena).lag_us, 2300 * WEFT_MS,
           "the lag is the time since it was due");
    end_well(&schedule, PROMOTER,
             &(struct weft_pass_report){.handled = 9, .more = true, .next_due_us = WEFT_NEVER},
             3 * S);
    is_int(weft_schedule_status(&schedule, PROMOTER, &now, arena).lag_us, 2300 * WEFT_MS,
           "the lag lasts while there is more");
    is_str(weft_schedule_names(&schedule, false, arena), "delayed_promoter",
           "a scanner with more to do is unfinished");
    is_int(begin(&schedule, 3 * S), WEFT_SCANNER_INTAKE,
           "a scanner with more to do waits behind the others");
    weft_arena_free(arena);
}

static void test_hold(void)
{
    struct weft_scanner_schedule schedule = new_board(WEFT_SCANNER_COUNT);
    weft_schedule_hold(&schedule, BOOT + 10 * S);
    bool taken = false;
    for (enum weft_scanner s = begin(&schedule, 9 * S); s != NO_SCANNER;
         s = begin(&schedule, 9 * S)) {
        taken = taken || weft_scanner_info(s)->takes_leases;
        end_well(&schedule, s, &nothing, 10 * S);
    }
    ok(!taken, "in the grace no lease is taken away");
    is_int(begin(&schedule, 10 * S), EXPIRY, "after it they are");
}

static void test_settings(void)
{
    struct weft_scanner_schedule schedule = new_board(2);
    struct weft_scanner_setting setting[WEFT_SCANNER_COUNT];
    struct weft_arena *arena = weft_arena_new();
    struct weft_now now = at(S);
    run_all(&schedule);
    weft_scanner_defaults(setting);
    is_int((int64_t)weft_schedule_set(&schedule, setting, &now), 0, "the same again is no change");
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        setting[i].interval_us = 0;
    setting[EXPIRY] = (struct weft_scanner_setting){
        .interval_us = 500 * WEFT_MS, .batch = 5, .partition_first = 16, .partition_last = 31};
    (void)snprintf(setting[EXPIRY].ns, sizeof(setting[EXPIRY].ns), "acme");
    is_int((int64_t)weft_schedule_set(&schedule, setting, &now), WEFT_SCANNER_COUNT, "all change");
    is_int(weft_schedule_next(&schedule), BOOT + 500 * WEFT_MS, "the new settings hold at once");
    struct weft_pass_config config = weft_schedule_config(&schedule.setting[EXPIRY]);
    ok(config.batch == 5 && config.partition_first == 16 && config.partition_last == 31 &&
           strcmp(config.ns, "acme") == 0,
       "the config of a pass has the settings");
    config = weft_schedule_config(&schedule.setting[PROMOTER]);
    ok(!config.ns && config.partition_last == 0, "all partitions are no filter");
    struct weft_scanner_status status = weft_schedule_status(&schedule, PROMOTER, &now, arena);
    ok(!status.enabled && status.interval_ms == 0 && status.next_us == 0, "one that is off");
    status = weft_schedule_status(&schedule, EXPIRY, &now, arena);
    ok(status.enabled && status.batch == 5 && status.partition_last == 31, "one that is not");
    weft_arena_free(arena);
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* How often the log says it since the last time. */
static int logged(int fd, const char *text)
{
    char all[8192] = "";
    int count = 0;
    ssize_t size = pread(fd, all, sizeof(all) - 1, 0);
    all[size > 0 ? size : 0] = '\0';
    for (const char *found = strstr(all, text); found; found = strstr(found + 1, text))
        count++;
    return count;
}

static void test_failures(void)
{
    struct weft_scanner_schedule schedule = new_board(2);
    struct weft_arena *arena = weft_arena_new();
    int fd = memfd_create("log", MFD_CLOEXEC);
    weft_log_init(WEFT_INFO, WEFT_LOGFMT, fd);
    run_all(&schedule);
    weft_usec since_us = 0;
    bool others = true;
    for (int i = 0; i < 5; i++) {
        since_us = schedule.pace[EXPIRY].look_us - BOOT;
        for (enum weft_scanner s = begin(&schedule, since_us); s != NO_SCANNER;
             s = begin(&schedule, since_us)) {
            if (s == EXPIRY)
                end_badly(&schedule, s, i < 3 ? "first" : "second", since_us);
            else
                end_well(&schedule, s, &nothing, since_us);
        }
        for (size_t s = 0; s < WEFT_SCANNER_COUNT; s++)
            others =
                others && (s == EXPIRY || schedule.pace[s].look_us <=
                                              BOOT + since_us + schedule.setting[s].interval_us);
    }
    ok(others, "the others keep their pace");
    is_int((int64_t)schedule.totals[EXPIRY].failures, 5, "each failure counts");
    is_int(logged(fd, "a pass failed"), 2, "one line for each change of the error");
    is_int(logged(fd, "first"), 1, "a repeated error is logged once");
    struct weft_now now = at(since_us);
    is_str(weft_schedule_status(&schedule, EXPIRY, &now, arena).last_error, "second",
           "the last one");
    ok(schedule.pace[EXPIRY].look_us - now.boot_us > 8 * S, "a failing scanner has slowed down");
    weft_usec retry_us = schedule.pace[EXPIRY].look_us - BOOT;
    run_all_at(&schedule, retry_us);
    is_int(logged(fd, "works again"), 1, "one line is logged when the scanner works again");
    ok(!weft_schedule_status(&schedule, EXPIRY, &now, arena).last_error,
       "nothing is wrong any more");
    is_int(weft_pace_next(&schedule.pace[EXPIRY]), BOOT + retry_us + S,
           "the scanner has its usual pace again");
    weft_log_init(WEFT_SILENT, WEFT_LOGFMT, STDERR_FILENO);
    (void)close(fd);
    weft_arena_free(arena);
}

static void test_counters(void)
{
    struct weft_scanner_schedule schedule = new_board(2);
    struct weft_arena *arena = weft_arena_new();
    const char *name = weft_scanner_info(EXPIRY)->counter[1];
    const struct weft_pass_report report = {.handled = 3,
                                            .next_due_us = STORE + 90 * S,
                                            .counter = {{name, 3}, {"of another version", 5}},
                                            .counter_count = 2};
    struct weft_now now = at(0);
    for (int i = 0; i < 2; i++) {
        ok(weft_schedule_begin_now(&schedule, EXPIRY, &now), "an operator's pass");
        end_well(&schedule, EXPIRY, &report, 0);
    }
    const struct weft_pass_end beside = {.scanner = EXPIRY, .report = &report};
    weft_schedule_end(&schedule, &beside, &now);
    const struct weft_scanner_status status = weft_schedule_status(&schedule, EXPIRY, &now, arena);
    is_int((int64_t)status.passes, 3, "all passes count, also one beside another");
    is_int((int64_t)status.counters[1].value, 9, "the counters of all passes are added");
    is_int((int64_t)status.counters[0].value, 0, "a counter that was not reported is 0");
    is_int(status.last_pass_us, STORE, "when it went well");
    is_int(status.duration_us, 0, "how long it took");
    weft_arena_free(arena);
}

/* ---- The grace ------------------------------------------------------------------------------- */

static void test_grace(void)
{
    static const struct weft_id self = {{1}}, other = {{2}}, third = {{3}};
    const weft_usec up_us = STORE, grace_us = 10 * S;
    const struct {
        const char *name;
        struct weft_replica_row row[2];
        weft_usec want_us;
    } row[] = {
        {"alone", {{.id = self, .seen_us = STORE + 1, .up_since_us = STORE}}, up_us + grace_us},
        {"its own row from before an outage is no witness",
         {{.id = self, .seen_us = STORE + 1, .up_since_us = STORE - 100 * S}},
         up_us + grace_us},
        {"another one has served all the time",
         {{.id = other, .seen_us = STORE + 1, .up_since_us = STORE - 100 * S}},
         STORE - 100 * S + grace_us},
        {"another one was there, but has not been heard of since",
         {{.id = other, .seen_us = STORE - 1, .up_since_us = STORE - 100 * S}},
         up_us + grace_us},
        {"both came up together after an outage: the grace of the first one counts for both",
         {{.id = other, .seen_us = STORE + 1, .up_since_us = STORE - S}},
         STORE - S + grace_us},
        {"one that came later changes nothing",
         {{.id = other, .seen_us = STORE + 2 * S, .up_since_us = STORE + S}},
         up_us + grace_us},
        {"the longest of several counts",
         {{.id = other, .seen_us = STORE + 1, .up_since_us = STORE - 3 * S},
          {.id = third, .seen_us = STORE + 1, .up_since_us = STORE - 9 * S}},
         STORE - 9 * S + grace_us},
        {"but not when it is dead",
         {{.id = other, .seen_us = STORE + 1, .up_since_us = STORE - 3 * S},
          {.id = third, .seen_us = STORE - 60 * S, .up_since_us = STORE - 900 * S}},
         STORE - 3 * S + grace_us},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_replica_row item[2] = {row[i].row[0], row[i].row[1]};
        if (!item[1].seen_us)
            item[1] = item[0];
        const struct weft_replica_rows rows = {item, 2};
        is_int(weft_upkeep_grace(&rows, &self, up_us), row[i].want_us, "%s", row[i].name);
    }
}

static void heard_at(struct weft_scanner_schedule *schedule, weft_usec since_us)
{
    const struct weft_now now = at(since_us);
    weft_schedule_wake(schedule, WEFT_SCANNER_INTAKE, &now);
}

/* A notice that the inbox holds something: the intake looks at once and a few times more. */
static void test_heard(void)
{
    struct weft_scanner_schedule schedule = new_board(2);
    run_all_at(&schedule, 0);
    weft_usec clock = 10 * WEFT_MS;
    is_int(begin(&schedule, clock), NO_SCANNER, "before a notice the intake does not run");
    heard_at(&schedule, clock);
    is_int(weft_schedule_next(&schedule), BOOT + clock, "after a notice it is due at once");
    weft_usec last = 0;
    int looks = 0;
    for (; clock < 500 * WEFT_MS; clock += WEFT_MS)
        if (begin(&schedule, clock) == WEFT_SCANNER_INTAKE) {
            end_well(&schedule, WEFT_SCANNER_INTAKE, &nothing, clock);
            last = clock;
            looks++;
        }
    ok(looks >= 4 && looks <= 6, "the intake looks 4 to 6 times when it finds nothing: %d", looks);
    ok(last >= 30 * WEFT_MS && last <= 100 * WEFT_MS, "the last time 20 to 90 ms after: %d ms",
       (int)(last / WEFT_MS) - 10);

    heard_at(&schedule, clock);
    is_int(begin(&schedule, clock), WEFT_SCANNER_INTAKE, "a second notice starts a pass");
    heard_at(&schedule, clock + WEFT_MS);
    end_well(&schedule, WEFT_SCANNER_INTAKE, &nothing, clock + 2 * WEFT_MS);
    is_int(begin(&schedule, clock + 2 * WEFT_MS), WEFT_SCANNER_INTAKE,
           "a notice during a pass that found nothing makes it run again");

    const struct weft_pass_report some = {.handled = 1, .next_due_us = WEFT_NEVER};
    weft_usec found = clock + 35 * WEFT_MS;
    end_well(&schedule, WEFT_SCANNER_INTAKE, &some, found);
    is_int(weft_schedule_next(&schedule), BOOT + found + 4 * WEFT_MS,
           "a pass that found something counts as a notice");
}

int main(void)
{
    test_start();
    test_heard();
    test_heavy();
    test_due();
    test_hold();
    test_settings();
    test_failures();
    test_counters();
    test_grace();
    return tap_done();
}
