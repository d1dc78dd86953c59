/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Passes over the same rows. A row that another session holds is skipped, counted and left to the
 * next pass; a pass never waits for a row; and several passes at once handle each row once.
 *
 * SQLite has one writer at a time: nothing can be held there while a pass runs.
 */

#include "race.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/scan/pass.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

#include <stdlib.h>

static const struct weft_policy leased = {.lease_ms = 5000};
static const struct weft_policy timed = {
    .attempt_timeout_ms = 5000, .lease_ms = 60000, .max_attempts = 1};

static const struct {
    enum weft_scanner scanner;
    struct weft_spec spec;
    bool claimed;
    enum weft_state after;
} kinds[] = {
    {WEFT_SCANNER_LEASE_EXPIRY, {.policy = &leased}, true, WEFT_STATE_READY},
    {WEFT_SCANNER_ATTEMPT_TIMEOUT, {.policy = &timed}, true, WEFT_STATE_FAILED},
    {WEFT_SCANNER_DELAYED_PROMOTER, {.delay_ms = 5000}, false, WEFT_STATE_READY},
    {WEFT_SCANNER_EXECUTION_DEADLINE, {.deadline_us = 5000}, false, WEFT_STATE_EXPIRED},
};

static struct weft_pass_report pass_over(struct weft_engine *engine, enum weft_scanner scanner)
{
    struct weft_pass_report report = {0};
    struct weft_err err = {0};
    enum weft_rc rc = weft_engine_pass(engine, scanner, NULL, &report, &err);
    if (rc)
        ok(false, "%s: %s", weft_scanner_name(scanner), err.text);
    return report;
}

/* Three of a kind, in a lane of their own, due at once. */
static void put_due(struct race *race, size_t kind, struct weft_id id[3])
{
    struct weft_spec spec = kinds[kind].spec;
    struct weft_claimed item[3];
    spec.kind = "job";
    spec.lane = weft_scanner_name(kinds[kind].scanner);
    if (spec.deadline_us)
        spec.deadline_us += race->now_us;
    put_work(race->a, &spec, 3, id);
    if (kinds[kind].claimed)
        is_int(take_work(race->a, spec.lane, 3, item), 3, "%s: claimed", spec.lane);
    race_forward(race, 5000);
}

RACE(a_locked_row_is_left_for_the_next_pass)
{
    if (!on_pg()) {
        tap_skip("SQLite has one writer: no other session can hold a row");
        return;
    }
    for (size_t i = 0; i < WEFT_LEN(kinds); i++) {
        const char *name = weft_scanner_name(kinds[i].scanner);
        struct weft_id id[3];
        char text[37];
        put_due(race, i, id);
        weft_id_print(&id[1], text);
        enum weft_state before = state_at(race->a, &id[1]);
        raw_run(&race->place, race->raw, "BEGIN");
        raw_run(&race->place, race->raw, "SELECT id FROM weft.live WHERE id = '%s' FOR UPDATE",
                text);
        struct weft_pass_report report = pass_over(race->a, kinds[i].scanner);
        is_int(report.handled, 2, "%s: the others are done", name);
        is_int(counter_of(&report, "skipped_locked"), 1, "%s: one row is skipped as locked", name);
        is_int(counter_of(&report, "rechecked_alive"), 0, "%s: no row is rechecked alive", name);
        ok(!report.more && report.next_due_us == race->now_us, "%s: the next pass is due at once",
           name);
        is_int(state_at(race->b, &id[1]), before, "%s: the locked row is unchanged", name);
        report = pass_over(race->b, kinds[i].scanner);
        ok(report.handled == 0 && counter_of(&report, "skipped_locked") == 1,
           "%s: the row is still skipped", name);
        raw_run(&race->place, race->raw, "COMMIT");
        report = pass_over(race->b, kinds[i].scanner);
        is_int(report.handled, 1, "%s: the next pass does the row", name);
        is_int(counter_of(&report, "skipped_locked"), 0, "%s: no row is locked now", name);
        ok(report.next_due_us == WEFT_NEVER, "%s: nothing is left", name);
        is_int(state_at(race->a, &id[1]), kinds[i].after, "%s: the row has its new state", name);
    }
}

/* ---- Several at once ------------------------------------------------------------------------- */

enum { ENGINES_MOST = 6, BATCH = 1000 };

/* Leases that have run out, in a lane of their own, made in large bites. */
static void make_leases(struct race *race, const char *lane, size_t count)
{
    struct weft_id *id = calloc(BATCH, sizeof(*id));
    struct weft_claimed *item = calloc(BATCH, sizeof(*item));
    if (!id || !item)
        bail_out("no memory");
    const struct weft_spec spec = {.kind = "job", .lane = lane, .policy = &leased};
    size_t claimed = 0;
    for (size_t done = 0; done < count; done += BATCH) {
        put_work(race->a, &spec, BATCH, id);
        claimed += take_work(race->a, lane, BATCH, item);
    }
    is_int(claimed, count, "%zu leases are out", count);
    race_forward(race, 5000);
    free(item);
    free(id);
}

/* An engine whose sessions have every wait for a lock that lasts a millisecond logged. */
static struct weft_engine *open_watched(struct race *race)
{
    struct place place = race->place;
    size_t used = strlen(place.url);
    if (on_pg())
        (void)snprintf(place.url + used, sizeof(place.url) - used,
                       "&options=-c%%20deadlock_timeout%%3D1ms%%20-c%%20log_lock_waits%%3Don");
    return place_open(&place, race->driver, race->now_us);
}

/* The log of the server is where its sessions write their errors. */
#define SERVER_LOG "/proc/self/fd/2"

static int64_t log_size(struct race *race)
{
    return raw_int(&race->place, race->raw, "SELECT (pg_stat_file('" SERVER_LOG "')).size");
}

/* How many waits for a row (which are waits for the transaction that holds it) were logged. */
static const char waits_sql[] =
    "SELECT count(*) FROM regexp_matches(encode(pg_read_binary_file('" SERVER_LOG
    "', %lld, 1 << 28), 'escape'), 'still waiting for [A-Za-z]+ on (transaction|tuple)', 'g')";

struct cancel {
    struct weft_engine *engine;
    struct weft_id id;
    struct weft_steered answer;
};

static void cancel_it(void *context)
{
    struct cancel *cancel = context;
    cancel->answer =
        steer_one(cancel->engine, WEFT_STEER_CANCEL, &(struct weft_steer){.id = cancel->id});
}

/* What the next race relies on when it sees nothing. */
RACE(a_wait_for_a_row_is_seen)
{
    if (!on_pg()) {
        tap_skip("SQLite locks no rows");
        return;
    }
    char text[37], sql[800];
    struct cancel cancel = {.engine = open_watched(race)};
    struct task task = {.run = cancel_it, .context = &cancel};
    put_work(race->a, &(struct weft_spec){.kind = "job"}, 1, &cancel.id);
    weft_id_print(&cancel.id, text);
    (void)snprintf(sql, sizeof(sql), waits_sql, (long long)log_size(race));
    raw_run(&race->place, race->raw, "BEGIN");
    raw_run(&race->place, race->raw, "SELECT id FROM weft.live WHERE id = '%s' FOR UPDATE", text);
    task_start(&task);
    ok(raw_wait(&race->place, race->raw, sql), "the log tells of a wait");
    raw_run(&race->place, race->raw, "COMMIT");
    task_join(&task);
    ok(cancel.answer.err.rc == WEFT_OK && cancel.answer.changed, "the cancel that waited succeeds");
    weft_engine_close(cancel.engine);
}

struct expiry {
    struct weft_engine *engine;
    pthread_barrier_t *start;
    const struct weft_pass_config *config;
    uint64_t handled, passes;
    bool failed;
};

static void expire_all(void *context)
{
    struct expiry *expiry = context;
    struct weft_pass_report report = {.more = true};
    struct weft_err err = {0};
    if (expiry->start)
        (void)pthread_barrier_wait(expiry->start);
    while (report.more && !expiry->failed) {
        expiry->failed = weft_engine_pass(expiry->engine, WEFT_SCANNER_LEASE_EXPIRY, expiry->config,
                                          &report, &err) != WEFT_OK;
        expiry->handled += report.handled;
        expiry->passes++;
    }
}

struct crowd {
    size_t engines, count;
    uint32_t batch;
};

/* Returns how many were handled by all of them together. */
static uint64_t expire_together(struct race *race, const struct crowd *crowd)
{
    const struct weft_pass_config config = {.batch = crowd->batch};
    struct expiry expiry[ENGINES_MOST] = {0};
    struct task task[ENGINES_MOST] = {{.done = false}};
    pthread_barrier_t start;
    uint64_t handled = 0;
    (void)pthread_barrier_init(&start, NULL, (unsigned)crowd->engines);
    for (size_t i = 0; i < crowd->engines; i++) {
        expiry[i] =
            (struct expiry){.engine = open_watched(race), .start = &start, .config = &config};
        task[i] = (struct task){.run = expire_all, .context = &expiry[i]};
    }
    weft_usec begun_us = weft_boot_us();
    for (size_t i = 0; i < crowd->engines; i++)
        task_start(&task[i]);
    for (size_t i = 0; i < crowd->engines; i++) {
        for (int patience = 0; patience < 5 && !task_done(&task[i]); patience++)
            (void)task_finishes(&task[i]);
        task_join(&task[i]);
        ok(!expiry[i].failed, "engine %zu comes to the end", i);
        printf("# engine %zu: %llu in %llu passes\n", i, (unsigned long long)expiry[i].handled,
               (unsigned long long)expiry[i].passes);
        handled += expiry[i].handled;
        weft_engine_close(expiry[i].engine);
    }
    printf("# %zu leases in %lld ms\n", crowd->count,
           (long long)((weft_boot_us() - begun_us) / WEFT_MS));
    (void)pthread_barrier_destroy(&start);
    return handled;
}

static void is_disjoint(struct race *race, const struct crowd *crowd)
{
    long long count = (long long)crowd->count;
    make_leases(race, "default", crowd->count);
    int64_t since = on_pg() ? log_size(race) : 0;
    is_int((long long)expire_together(race, crowd), count, "all leases expire, each counted once");
    if (!on_pg())
        return;
    is_int(raw_int(&race->place, race->raw, waits_sql, (long long)since), 0,
           "no pass waited for a row of another");
    is_int(raw_int(&race->place, race->raw,
                   "SELECT count(*) FROM weft.live WHERE state = 1 AND lost = 1 AND epoch = 1"),
           count, "each was lost once");
    is_int(raw_int(&race->place, race->raw, "SELECT count(*) FROM weft.attempt"), count,
           "each execution has one attempt");
}

RACE(three_expire_leases_at_once)
{
    is_disjoint(race, &(struct crowd){.engines = 3, .count = on_pg() ? 100000 : 10000});
}

/* They meet at the same rows far more often, with hundreds of commits to meet them in. */
RACE(six_expire_leases_in_small_bites)
{
    if (!on_pg()) {
        tap_skip("SQLite locks no rows");
        return;
    }
    is_disjoint(race, &(struct crowd){.engines = ENGINES_MOST, .count = 20000, .batch = 50});
}

/* One stands still with its rows in hand, at each step of its pass; the others go round it. */
RACE(a_pass_that_stands_still_holds_up_no_other)
{
    static const struct {
        const char *where;
        enum weft_fault_point point;
        enum weft_stmt stmt;
    } step[] = {
        {"with its rows locked", WEFT_FAULT_AFTER_RUN, WEFT_STMT_DUE_LEASES},
        {"with its rows written", WEFT_FAULT_AFTER_RUN, WEFT_STMT_LIVE_PUT},
        {"with its attempts written", WEFT_FAULT_AFTER_RUN, WEFT_STMT_ATTEMPT_ADD},
        {"before its commit", WEFT_FAULT_BEFORE_COMMIT, WEFT_STMT_NEXT_LEASE},
    };
    static const char *const lane[] = {"one", "two", "three", "four"};
    if (!on_pg()) {
        tap_skip("SQLite has one writer: a pass waits for another");
        return;
    }
    for (size_t i = 0; i < WEFT_LEN(step); i++) {
        struct stop stop;
        stop_init(&stop);
        struct ambush ambush = {
            .point = step[i].point, .stmt = step[i].stmt, .act = ambush_stop, .context = &stop};
        struct expiry slow = {.engine = race->a}, fast = {.engine = race->b};
        struct task first = {.run = expire_all, .context = &slow, .ambush = &ambush};
        struct task second = {.run = expire_all, .context = &fast};
        /* The one that stands still must not fill its batch, or it would not ask what is next. */
        bool last = step[i].stmt == WEFT_STMT_NEXT_LEASE;
        make_leases(race, lane[i], (last ? 1 : 3) * (size_t)BATCH);
        if (last) {
            const struct weft_pass_config half = {.batch = BATCH / 2};
            struct weft_pass_report report;
            struct weft_err err;
            ok(!weft_engine_pass(race->b, WEFT_SCANNER_LEASE_EXPIRY, &half, &report, &err),
               "half of them are done");
        }
        task_start(&first);
        ok(stop_reached(&stop), "the first pass stands %s", step[i].where);
        task_start(&second);
        ok(task_finishes(&second), "%s: another pass finishes meanwhile", step[i].where);
        task_join(&second);
        is_int((long long)fast.handled, last ? 0 : 2LL * BATCH,
               "%s: the other pass does the free rows", step[i].where);
        stop_release(&stop);
        task_join(&first);
        is_int((long long)slow.handled, last ? BATCH / 2 : BATCH,
               "%s: the first pass does its own rows", step[i].where);
    }
}
