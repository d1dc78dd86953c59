/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pass invariant_check: every kind of damage, done behind the engine's back, is found and told;
 * what has a safe repair is repaired and nothing else is touched.
 */

#include "conformance.h"
#include "direct.h"

#include "base/arena.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/admin/doctor.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"
#include "engine/scan/pass.h"
#include "weft/weft.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static struct weft_pass_report check_with(struct fixture *f, const struct weft_pass_config *config)
{
    struct weft_pass_report report = {0};
    enum weft_rc rc =
        weft_engine_pass(f->b, WEFT_SCANNER_INVARIANT_CHECK, config, &report, &f->err);
    ok(rc == WEFT_OK, "invariant_check%s%s", rc ? ": " : "", rc ? f->err.text : "");
    return report;
}

/* What a pass counted of problems, as one number: 1 neither, 10 both, 100 epochs, 1000 orphans. */
static int64_t problems(const struct weft_pass_report *report)
{
    return (int64_t)(counter_of(report, "in_neither") + 10 * counter_of(report, "in_both") +
                     100 * counter_of(report, "epoch_disorder") +
                     1000 * counter_of(report, "orphans"));
}

/* An id as SQL says it. */
static const char *quoted(struct fixture *f, const struct weft_id *id)
{
    char text[WEFT_ID_TEXT], hex[WEFT_ID_TEXT];
    weft_id_print(id, text);
    size_t size = 0;
    for (const char *at = text; *at; at++)
        if (*at != '-')
            hex[size++] = *at;
    hex[size] = '\0';
    return weft_arena_printf(f->arena, "%s'%s'", is_pg(f) ? "" : "X", hex);
}

/* Runs SQL in which @ stands for the schema and # for the id. */
static void damage(struct fixture *f, const char *sql, const struct weft_id *id)
{
    const char *text = "";
    for (; *sql; sql++) {
        const char one[] = {*sql, '\0'};
        const char *part = one;
        if (*sql == '@')
            part = is_pg(f) ? "weft." : "";
        else if (*sql == '#')
            part = quoted(f, id);
        text = weft_arena_printf(f->arena, "%s%s", text, part);
    }
    run_sql(f, text);
}

/* The same for a row of live or outcome, which SQLite keys by number. */
static void damage_row(struct fixture *f, const char *before, const struct weft_id *id)
{
    const char *row = is_pg(f) ? "id = #" : "num = (SELECT num FROM execution WHERE id = #)";
    damage(f, weft_arena_printf(f->arena, "%s%s", before, row), id);
}

/* Takes an id out of every table: the end of what a case broke. */
static void wipe(struct fixture *f, const struct weft_id *id)
{
    damage_row(f, "DELETE FROM @live WHERE ", id);
    damage_row(f, "DELETE FROM @outcome WHERE ", id);
    damage(f, "DELETE FROM @attempt WHERE id = #", id);
    damage(f, "DELETE FROM @progress WHERE id = #", id);
    damage(f, "DELETE FROM @key WHERE id = #", id);
    damage(f, "DELETE FROM @execution WHERE id = #", id);
}

static const char add_attempt[] =
    "INSERT INTO @attempt (id, epoch, replay, attempt, ended, held, answer, ended_at) "
    "VALUES (#, 1, 0, 1, 4, true, 1, 1)";
static const char add_attempt_9[] =
    "INSERT INTO @attempt (id, epoch, replay, attempt, ended, held, answer, ended_at) "
    "VALUES (#, 9, 0, 1, 4, true, 1, 1)";
static const char add_progress[] =
    "INSERT INTO @progress (id, epoch, percent, at) VALUES (#, 9, 50, 1)";
static const char add_key[] =
    "INSERT INTO @key (namespace, key, id, fingerprint) "
    "SELECT id, 'lost', #, '' FROM @name WHERE sort = 1 AND text = 'default'";

/* ---- What was logged ------------------------------------------------------------------------- */

static FILE *begin_log(void)
{
    FILE *file = tmpfile();
    if (!file) {
        printf("Bail out! no temporary file\n");
        exit(1);
    }
    weft_log_init(WEFT_INFO, WEFT_LOGFMT, fileno(file));
    return file;
}

/* The lines that were written, in the arena. */
static const char *end_log(struct fixture *f, FILE *file)
{
    char text[8192];
    weft_log_init(WEFT_SILENT, WEFT_LOGFMT, STDERR_FILENO);
    ssize_t size = pread(fileno(file), text, sizeof(text) - 1, 0);
    (void)fclose(file);
    text[size > 0 ? size : 0] = '\0';
    return weft_arena_strdup(f->arena, text);
}

static size_t occurrences(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        count++;
    return count;
}

/* A pass, and what it must log: how many lines of each level, and the id in one of them. */
static struct weft_pass_report check_logged(struct fixture *f, size_t errors, size_t warnings,
                                            const struct weft_id *id)
{
    FILE *file = begin_log();
    struct weft_pass_report report = check_with(f, NULL);
    const char *text = end_log(f, file);
    bool good = ok(occurrences(text, "level=error") == errors, "%zu errors are logged", errors);
    good &= ok(occurrences(text, "level=warn") == warnings, "%zu warnings are logged", warnings);
    if (errors)
        good &= ok(strstr(text, "weft doctor") != NULL, "the log says to run weft doctor");
    if (id) {
        char word[WEFT_ID_TEXT];
        weft_id_print(id, word);
        good &= ok(strstr(text, word) != NULL, "the log has the id");
    }
    if (!good)
        printf("# %s\n", text);
    return report;
}

/* ---- Nothing broken -------------------------------------------------------------------------- */

CASE(invariant_of_an_empty_store)
{
    struct weft_pass_report report = check_logged(f, 0, 0, NULL);
    ok(report.handled == 0 && !report.more && report.next_due_us == WEFT_NEVER, "nothing to do");
    ok(counter_of(&report, "sampled") == 0 && problems(&report) == 0, "nothing to see");
    is_int(report.counter_count, 6, "all counters are there");
}

/* One execution in every state, with attempts, progress, a key and a replay. */
static void make_history(struct fixture *f)
{
    static const enum weft_state state[] = {
        WEFT_STATE_READY,  WEFT_STATE_DELAYED,   WEFT_STATE_RUNNING, WEFT_STATE_SUCCEEDED,
        WEFT_STATE_FAILED, WEFT_STATE_CANCELLED, WEFT_STATE_EXPIRED,
    };
    for (size_t i = 0; i < WEFT_LEN(state); i++)
        (void)bring(f, state[i], NULL);
    struct weft_claimed again = bring(f, WEFT_STATE_SUCCEEDED, &(struct weft_spec){.key = "a key"});
    (void)steer_id(f, WEFT_STEER_REPLAY, &again.id);
    (void)steer_id(f, WEFT_STEER_CANCEL, &again.id);
    (void)steer_id(f, WEFT_STEER_REPLAY, &again.id);
    struct weft_claimed busy = take(f, f->a, again.lane);
    const struct weft_renew beat = {.id = busy.id, .epoch = busy.epoch, .percent = 50};
    struct weft_lease_answer answer;
    is_int(engine_renew(f->a, &beat, 1, &answer, &f->err), WEFT_OK, "progress");
}

CASE(invariant_of_a_sound_store)
{
    make_history(f);
    for (int i = 0; i < 5; i++) {
        struct weft_pass_report report = check_logged(f, 0, 0, NULL);
        is_int(counter_of(&report, "sampled"), 8, "all of them, from wherever it begins");
        is_int(problems(&report), 0, "nothing is wrong");
    }
    struct weft_pass_report report = check_with(f, &(struct weft_pass_config){.batch = 3});
    ok(counter_of(&report, "sampled") == 3 && !report.more, "no more than a batch");
    is_int(weft_engine_pass(f->a, WEFT_SCANNER_INVARIANT_CHECK,
                            &(struct weft_pass_config){.batch = WEFT_BATCH_MAX + 1}, &report,
                            &f->err),
           WEFT_INVALID_VALUE, "a batch above the largest is refused");
}

CASE(invariant_every_other_pass_goes_on)
{
    enum { MANY = 40, BATCH = 4, ROUNDS = 2 * (MANY / (BATCH - 1) + 2) };
    /* All of one moment: a random place by time is always before them or behind. */
    struct weft_id *id = submit_copies(f, &(struct weft_spec){.kind = "job"}, MANY);
    const struct weft_id *broken = &id[MANY / 2 + 1];
    damage_row(f, "DELETE FROM @live WHERE ", broken);
    uint64_t found = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct weft_pass_report report = check_with(f, &(struct weft_pass_config){.batch = BATCH});
        found += counter_of(&report, "in_neither");
    }
    ok(found > 0, "a walk of so many passes meets every execution");
    wipe(f, broken);
}

/* ---- Damage that is reported ----------------------------------------------------------------- */

CASE(invariant_in_neither)
{
    (void)submit_job(f);
    struct weft_id id = submit_job(f);
    damage_row(f, "DELETE FROM @live WHERE ", &id);
    for (int i = 0; i < 2; i++) {
        struct weft_pass_report report = check_logged(f, 1, 0, &id);
        ok(problems(&report) == 1 && counter_of(&report, "repaired") == 0,
           "each pass reports the damage and repairs nothing");
        is_int(report.handled, 0, "nothing is changed");
    }
    wipe(f, &id);
}

CASE(invariant_in_both)
{
    struct weft_id id = submit_job(f);
    damage_row(f,
               is_pg(f) ? "INSERT INTO @outcome (id, finished, ord, queue, policy, epoch, attempt, "
                          "forgiven, lost, replays, priority, state, ended, held) SELECT id, 1, "
                          "ord, queue, policy, epoch, attempt, forgiven, lost, replays, priority, "
                          "7, 1, false FROM @live WHERE "
                        : "INSERT INTO @outcome (num, finished, ord, queue, policy, epoch, "
                          "attempt, forgiven, lost, replays, priority, state, ended, held) SELECT "
                          "num, 1, ord, queue, policy, epoch, attempt, forgiven, lost, replays, "
                          "priority, 7, 1, false FROM @live WHERE ",
               &id);
    struct weft_pass_report report = check_logged(f, 1, 0, &id);
    ok(problems(&report) == 10 && report.handled == 0, "the pass reports the damage and leaves it");
    wipe(f, &id);
}

CASE(invariant_epochs_out_of_order)
{
    const struct {
        const char *name;
        enum weft_state state;
        const char *sql;
    } row[] = {
        {"an attempt from the future, living", WEFT_STATE_READY, add_attempt_9},
        {"an attempt from the future, over", WEFT_STATE_SUCCEEDED, add_attempt_9},
        {"progress from the future", WEFT_STATE_RUNNING, add_progress},
        {"running under an epoch that has ended", WEFT_STATE_RUNNING, add_attempt},
        {"two ends of one lease", WEFT_STATE_SUCCEEDED, add_attempt},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_claimed lease = bring(f, row[i].state, NULL);
        is_int(weft_engine_check(f->a, &f->err), WEFT_OK, "%s: sound before", row[i].name);
        damage(f, row[i].sql, &lease.id);
        struct weft_pass_report report = check_logged(f, 1, 0, &lease.id);
        ok(problems(&report) == 100 && report.handled == 0, "%s: is reported", row[i].name);
        is_int(weft_engine_check(f->a, &f->err), WEFT_CORRUPT, "%s: the doctor reports it too",
               row[i].name);
        wipe(f, &lease.id);
    }
}

CASE(invariant_rows_without_their_execution)
{
    struct weft_claimed living = bring(f, WEFT_STATE_RUNNING, NULL);
    struct weft_claimed over = bring(f, WEFT_STATE_SUCCEEDED, NULL);
    damage(f, add_attempt_9, &living.id);
    if (!is_pg(f)) {
        /* The number is the only way to such rows: remember it by moving it out of the way. */
        damage(f,
               "UPDATE live SET num = 900001 WHERE num IN (SELECT num FROM execution WHERE id = #)",
               &living.id);
        damage(
            f,
            "UPDATE outcome SET num = 900002 WHERE num IN (SELECT num FROM execution WHERE id = #)",
            &over.id);
    }
    damage(f, "DELETE FROM @execution WHERE id = #", &living.id);
    damage(f, "DELETE FROM @execution WHERE id = #", &over.id);
    struct weft_pass_report report =
        check_logged(f, 1, is_pg(f) ? 0 : 1, is_pg(f) ? &over.id : NULL);
    is_int(problems(&report), 3000, "a living row, an outcome, and an attempt of the first");
    /* PostgreSQL sees that the attempt still has its execution; SQLite cannot. */
    is_int(counter_of(&report, "repaired"), is_pg(f) ? 0 : 1,
           "rows of a living execution are left alone");
    if (is_pg(f)) {
        wipe(f, &living.id);
        wipe(f, &over.id);
    } else {
        run_sql(f, "DELETE FROM live WHERE num = 900001; DELETE FROM outcome WHERE num = 900002");
    }
}

/* ---- Damage that is repaired ----------------------------------------------------------------- */

CASE(invariant_orphans_are_removed)
{
    struct weft_claimed kept = bring(f, WEFT_STATE_READY, &(struct weft_spec){.key = "kept"});
    static const char *const sql[] = {add_attempt, add_progress, add_key};
    for (size_t i = 0; i < WEFT_LEN(sql); i++) {
        struct weft_id id;
        weft_id_new(&id, f->now_us, -1);
        damage(f, sql[i], &id);
        is_int(weft_engine_check(f->a, &f->err), WEFT_CORRUPT, "orphan %zu is there", i);
        struct weft_pass_report report = check_logged(f, 0, 1, &id);
        ok(problems(&report) == 1000 && counter_of(&report, "repaired") == 1 && report.handled == 1,
           "orphan %zu is found and removed", i);
        is_int(weft_engine_check(f->a, &f->err), WEFT_OK,
               "the check passes when the orphan is removed");
        report = check_logged(f, 0, 0, NULL);
        is_int(problems(&report), 0, "a further pass finds no problem");
    }
    is_int(attempts(f, &kept.id).count, 1, "the attempts of others stay");
    struct weft_submitted again =
        submit(f, f->a, &(struct weft_spec){.kind = "job", .lane = kept.lane, .key = "kept"});
    ok(again.duplicate && same_id(&again.id, &kept.id), "the keys of other executions stay");
    ok(!submit(f, f->a, &(struct weft_spec){.kind = "job", .key = "lost"}).duplicate,
       "a key that was lost can be taken again");
}

CASE(invariant_logs_five_orphans_at_most)
{
    struct weft_id id;
    for (int i = 0; i < 12; i++) {
        weft_id_new(&id, f->now_us, -1);
        damage(f, add_progress, &id);
        weft_id_new(&id, f->now_us, -1);
        damage(f, add_attempt, &id);
    }
    FILE *file = begin_log();
    struct weft_pass_report report = check_with(f, NULL);
    const char *text = end_log(f, file);
    is_int(counter_of(&report, "repaired"), 24, "all are removed");
    is_int((int64_t)occurrences(text, "\n"), 1, "one line");
    is_int((int64_t)occurrences(text, "without execution"), 5, "the log line names five orphans");
    ok(strstr(text, "count=24") != NULL, "the log line gives the number of orphans");
}

/* A key that points at an execution which has another: it is unknown which of the two is right.
 */
CASE(invariant_a_key_of_another_is_left)
{
    struct weft_id id = submit_ok(f, &(struct weft_spec){.kind = "job", .key = "mine"});
    damage(f, add_key, &id);
    struct weft_pass_report report = check_logged(f, 1, 0, &id);
    ok(problems(&report) == 1000 && counter_of(&report, "repaired") == 0, "told, not removed");
    wipe(f, &id);
}

/* ---- Filters --------------------------------------------------------------------------------- */

CASE(invariant_filters)
{
    struct weft_id here = submit_job(f);
    struct weft_id there = submit_ok(f, &(struct weft_spec){.ns = "theirs", .kind = "job"});
    struct weft_id orphan;
    int part = weft_id_partition(&there);
    weft_id_new(&orphan, f->now_us, part);
    damage_row(f, "DELETE FROM @live WHERE ", &there);
    damage(f, add_progress, &orphan);

    struct weft_pass_report report = check_with(f, &(struct weft_pass_config){.ns = "nowhere"});
    ok(counter_of(&report, "sampled") == 0 && problems(&report) == 0,
       "a pass of an unknown namespace samples nothing");
    report = check_with(f, &(struct weft_pass_config){.ns = "default"});
    ok(counter_of(&report, "sampled") == 1 && problems(&report) == 0,
       "a pass of the sound namespace finds no problem");
    report = check_with(f, &(struct weft_pass_config){.ns = "theirs"});
    ok(counter_of(&report, "sampled") == 1 && problems(&report) == 1,
       "a pass of the broken namespace finds the problem");
    /* A range that cannot be taken for "all". */
    uint8_t first = part < 128 ? 128 : 1, last = part < 128 ? 255 : 127;
    report =
        check_with(f, &(struct weft_pass_config){.partition_first = first, .partition_last = last});
    is_int(problems(&report), 0, "a pass of other partitions finds no problem");
    report =
        check_with(f, &(struct weft_pass_config){.partition_first = (uint8_t)(part ? part : 0),
                                                 .partition_last = (uint8_t)(part ? part : 1)});
    ok(problems(&report) == 1001 && counter_of(&report, "repaired") == 1,
       "a pass of the partition repairs the row");
    wipe(f, &there);
    is_int(state_of(f, &here), WEFT_STATE_READY, "the sound one is as it was");
}

/* ---- No false reports ------------------------------------------------------------------------ */

enum { CREWS = 4, SOME = 5 };

struct crew {
    pthread_t thread;
    struct weft_engine *engine;
    const char *lane;
    int rounds;
    int failed; /* calls that failed as a whole */
};

struct crews {
    struct crew crew[CREWS];
    atomic_int working;
};

static struct crews crews;

static void submit_some(struct crew *crew, int round)
{
    char key[SOME][64];
    struct weft_spec spec[SOME];
    struct weft_submitted answer[SOME];
    for (int i = 0; i < SOME; i++) {
        (void)snprintf(key[i], sizeof(key[i]), "%s-%d-%d", crew->lane, round, i);
        spec[i] =
            (struct weft_spec){.kind = "job", .lane = crew->lane, .key = i % 2 ? key[i] : NULL};
    }
    crew->failed += engine_submit(crew->engine, "default", spec, SOME, answer, NULL) != 0;
}

static void finish_some(struct crew *crew, const struct weft_claim_result *got)
{
    for (size_t i = 0; i < got->count; i++) {
        const struct weft_claimed *lease = &got->item[i];
        const struct weft_renew beat = {.id = lease->id, .epoch = lease->epoch, .percent = 10};
        const struct weft_complete end = {.id = lease->id, .epoch = lease->epoch};
        const struct weft_failure bad = {.id = lease->id, .epoch = lease->epoch};
        const struct weft_steer item = {.id = lease->id};
        const struct weft_steering again = {
            .kind = WEFT_STEER_REPLAY, .ns = "default", .item = &item, .count = 1};
        struct weft_lease_answer answer;
        struct weft_steered steered;
        crew->failed += engine_renew(crew->engine, &beat, 1, &answer, NULL) != 0;
        if (i % 3 == 2)
            crew->failed += engine_fail(crew->engine, &bad, 1, &answer, NULL) != 0;
        else
            crew->failed += engine_complete(crew->engine, &end, 1, &answer, NULL) != 0;
        if (i % 3 == 1)
            crew->failed += engine_steer(crew->engine, &again, &steered, NULL) != 0;
    }
}

static void *work(void *context)
{
    struct crew *crew = context;
    struct weft_arena *arena = weft_arena_new();
    const struct weft_claim args = {
        .worker = crew->lane, .lanes = &crew->lane, .lane_count = 1, .max = SOME};
    for (int round = 0; round < crew->rounds; round++) {
        struct weft_claim_result got = {0};
        submit_some(crew, round);
        crew->failed +=
            weft_engine_claim(crew->engine, "default", &args, 1, arena, &got, NULL) != 0;
        finish_some(crew, &got);
    }
    weft_arena_free(arena);
    atomic_fetch_sub(&crews.working, 1);
    return NULL;
}

CASE(invariant_finds_nothing_beside_busy_workers)
{
    static const char *const lane[CREWS] = {"one", "two", "three", "four"};
    FILE *file = begin_log();
    uint64_t sampled = 0;
    int64_t wrong = 0;
    int passes = 0, failed = 0;
    atomic_store(&crews.working, CREWS);
    for (int i = 0; i < CREWS; i++) {
        crews.crew[i] = (struct crew){
            .engine = i % 2 ? f->a : f->b, .lane = lane[i], .rounds = is_pg(f) ? 60 : 30};
        if (pthread_create(&crews.crew[i].thread, NULL, work, &crews.crew[i])) {
            printf("Bail out! no thread\n");
            exit(1);
        }
    }
    while (atomic_load(&crews.working) > 0) {
        struct weft_pass_report report = {0};
        failed += weft_engine_pass(f->b, WEFT_SCANNER_INVARIANT_CHECK, NULL, &report, NULL) != 0;
        sampled += report.counter_count ? report.counter[0].value : 0;
        wrong += report.counter_count ? problems(&report) : 0;
        passes++;
    }
    for (int i = 0; i < CREWS; i++) {
        (void)pthread_join(crews.crew[i].thread, NULL);
        is_int(crews.crew[i].failed, 0, "crew %d did its work", i);
    }
    const char *text = end_log(f, file);
    printf("# %d passes, %llu looked at\n", passes, (unsigned long long)sampled);
    ok(failed == 0 && passes > 1 && sampled > 0, "passes ran beside it");
    ok(wrong == 0 && text[0] == '\0', "passes beside the writers find no problem");
    if (text[0])
        printf("# %s\n", text);
}
