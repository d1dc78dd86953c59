/* SPDX-License-Identifier: Apache-2.0 */

/* Keys: two submitters in opposite order, and keys that an application holds. */

#include "direct.h"
#include "race.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "engine/job/submit.h"
#include "store/store.h"
#include "weft/weft.h"

enum { KEYS = 8, ROUNDS = 200, BATCH = 20 };

static const char *const letters[KEYS] = {"a", "b", "c", "d", "e", "f", "g", "h"};

/* ---- Opposite order -------------------------------------------------------------------------- */

struct submit_run {
    struct weft_engine *engine;
    bool backwards;
    int round;
    struct weft_submitted answer[KEYS];
    enum weft_rc rc;
    struct weft_err err;
};

static void run_submit(void *context)
{
    struct submit_run *run = context;
    struct weft_spec spec[KEYS];
    char key[KEYS][32];
    for (size_t i = 0; i < KEYS; i++) {
        size_t at = run->backwards ? KEYS - 1 - i : i;
        (void)snprintf(key[i], sizeof(key[i]), "%d-%s", run->round, letters[at]);
        spec[i] = (struct weft_spec){.kind = "job", .key = key[i]};
    }
    run->rc = engine_submit(run->engine, "default", spec, KEYS, run->answer, &run->err);
}

/* One of the two is accepted, the other is its duplicate; how many pairs are not so. */
static size_t count_bad(const struct submit_run *forth, const struct submit_run *back)
{
    size_t bad = forth->rc != WEFT_OK || back->rc != WEFT_OK;
    for (size_t i = 0; i < KEYS && !bad; i++) {
        const struct weft_submitted *one = &forth->answer[i], *two = &back->answer[KEYS - 1 - i];
        bad += one->err.rc || two->err.rc || one->duplicate == two->duplicate ||
               weft_id_cmp(&one->id, &two->id) != 0;
    }
    return bad;
}

/*
 * Forced: the first stops in its statement, at its third key, with the first two in hand; the
 * second has the keys in the opposite order. It must come to wait for the first at the first key,
 * holding nothing. If it took the last key instead, the two would wait for each other: in tests,
 * where lock_timeout does not cut that short, the server counts a deadlock.
 */
static void opposite_order_forced(struct race *race)
{
    const struct place *place = &race->place;
    PGconn *keeper = raw_open(place);
    struct submit_run forth = {.engine = race->a, .round = -1};
    struct submit_run back = {.engine = race->b, .round = -1, .backwards = true};
    struct task one = {.run = run_submit, .context = &forth};
    struct task two = {.run = run_submit, .context = &back};
    raw_run(place, race->raw,
            "CREATE FUNCTION weft.patience() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "PERFORM set_config('lock_timeout', '15s', true); RETURN NULL; END $$;"
            "CREATE TRIGGER patience BEFORE INSERT ON weft.key "
            "FOR EACH STATEMENT EXECUTE FUNCTION weft.patience();"
            "CREATE FUNCTION weft.gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF new.key = '-1-c' THEN PERFORM pg_advisory_xact_lock(1); END IF; RETURN new; END $$;"
            "CREATE TRIGGER gate BEFORE INSERT ON weft.key "
            "FOR EACH ROW EXECUTE FUNCTION weft.gate()");
    raw_run(place, keeper, "SELECT pg_advisory_lock(1)");
    task_start(&one);
    ok(raw_wait(place, race->raw,
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"),
       "the first call stands at its third key");
    task_start(&two);
    ok(raw_wait(place, race->raw,
                "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"),
       "the second call waits for the first");
    is_int(raw_int(place, race->raw,
                   "SELECT count(*) FROM pg_locks "
                   "WHERE locktype = 'advisory' AND NOT granted"),
           1, "the second call waits at a key in front of the third");
    raw_run(place, keeper, "SELECT pg_advisory_unlock(1)");
    task_join(&one);
    task_join(&two);
    is_int(count_bad(&forth, &back), 0, "each key is one execution");
    PQfinish(keeper);
}

struct rounds {
    struct submit_run run[ROUNDS];
};

static void run_rounds(void *context)
{
    struct rounds *rounds = context;
    for (int i = 0; i < ROUNDS; i++)
        run_submit(&rounds->run[i]);
}

RACE(keyed_submits_in_opposite_order)
{
    if (on_pg())
        opposite_order_forced(race);
    struct weft_arena *arena = weft_arena_new();
    struct rounds *forth = weft_new(arena, struct rounds), *back = weft_new(arena, struct rounds);
    for (int i = 0; i < ROUNDS; i++) {
        forth->run[i] = (struct submit_run){.engine = race->a, .round = i};
        back->run[i] = (struct submit_run){.engine = race->b, .round = i, .backwards = true};
    }
    struct task one = {.run = run_rounds, .context = forth};
    struct task two = {.run = run_rounds, .context = back};
    task_start(&one);
    task_start(&two);
    task_join(&one);
    task_join(&two);
    size_t bad = 0;
    for (int i = 0; i < ROUNDS; i++)
        bad += count_bad(&forth->run[i], &back->run[i]);
    is_int(bad, 0, "in %d rounds no call fails and each key is one execution", ROUNDS);
    weft_arena_free(arena);
    race_no_deadlock(race);
}

/* ---- Keys held by an application ------------------------------------------------------------- */

struct batch {
    struct weft_submitted answer[BATCH];
    weft_usec took_us;
};

static bool is_held(size_t i)
{
    return i == 3 || i == 11;
}

static void submit_batch(struct race *race, struct batch *batch)
{
    struct weft_spec spec[BATCH];
    char key[BATCH][16];
    struct weft_err err = {0};
    for (size_t i = 0; i < BATCH; i++) {
        (void)snprintf(key[i], sizeof(key[i]), "key-%zu", i);
        spec[i] = (struct weft_spec){.kind = "job", .key = key[i]};
    }
    weft_usec begun_us = weft_boot_us();
    enum weft_rc rc = engine_submit(race->a, "default", spec, BATCH, batch->answer, &err);
    batch->took_us = weft_boot_us() - begun_us;
    ok(rc == WEFT_OK, "the call is answered item by item%s%s", rc ? ": " : "", err.text);
}

static size_t count_rc(const struct batch *batch, bool held, enum weft_rc rc, bool duplicate)
{
    size_t count = 0;
    for (size_t i = 0; i < BATCH; i++)
        count += is_held(i) == held && batch->answer[i].err.rc == rc &&
                 batch->answer[i].duplicate == duplicate;
    return count;
}

/* An application's own transaction: it has put work in by its own hand, and stays open. */
static void hold_keys(struct race *race, PGconn *app, const struct weft_id *twin)
{
    char text[37];
    weft_id_print(twin, text);
    raw_run(&race->place, app, "BEGIN; CREATE TEMP TABLE made (n int, id uuid)");
    for (size_t i = 0; i < BATCH; i++) {
        if (!is_held(i))
            continue;
        raw_run(&race->place, app,
                "INSERT INTO made VALUES (%zu, gen_random_uuid());"
                "INSERT INTO weft.key SELECT namespace, 'key-%zu', made.id, fingerprint "
                "FROM weft.key k, made WHERE k.id = '%s' AND n = %zu;"
                "INSERT INTO weft.execution (id, created, queue, content_type, key, payload) "
                "SELECT made.id, created, queue, content_type, 'key-%zu', payload "
                "FROM weft.execution e, made WHERE e.id = '%s' AND n = %zu;"
                "INSERT INTO weft.span SELECT namespace, made.id, made.id, 1 "
                "FROM weft.key k, made WHERE k.id = '%s' AND n = %zu;"
                "INSERT INTO weft.live (id, ord, queue, lane, policy, epoch, attempt, forgiven, "
                "size, lost, replays, priority, state) SELECT made.id, ord, queue, lane, policy, "
                "0, 1, 0, 0, 0, 0, 0, state FROM weft.live l, made WHERE l.id = '%s' AND n = %zu",
                i, i, text, i, i, text, i, text, i, text, i);
    }
}

RACE(a_key_in_an_open_transaction_of_an_application)
{
    if (!on_pg()) {
        tap_skip("on SQLite an application holds the whole file: see the next case");
        return;
    }
    struct weft_id twin;
    struct batch batch;
    put_work(race->a, &(struct weft_spec){.kind = "job", .key = "twin"}, 1, &twin);
    PGconn *app = raw_open(&race->place);
    hold_keys(race, app, &twin);
    submit_batch(race, &batch);
    is_int(count_rc(&batch, true, WEFT_BUSY, false), 2, "the held keys answer busy");
    is_int(count_rc(&batch, false, WEFT_OK, false), BATCH - 2, "all others are accepted");
    ok(batch.took_us < 10 * WEFT_SECOND, "the call with held keys takes bounded time (%lld ms)",
       (long long)(batch.took_us / WEFT_MS));
    raw_run(&race->place, app, "ROLLBACK");
    submit_batch(race, &batch);
    is_int(count_rc(&batch, true, WEFT_OK, false), 2,
           "after a rollback the held keys are accepted");
    is_int(count_rc(&batch, false, WEFT_OK, true), BATCH - 2,
           "after a rollback the other keys are duplicates");
    PQfinish(app);
}

RACE(a_key_in_a_transaction_of_an_application_that_commits)
{
    if (!on_pg()) {
        tap_skip("on SQLite an application holds the whole file: see the next case");
        return;
    }
    struct weft_id twin;
    struct batch batch;
    put_work(race->a, &(struct weft_spec){.kind = "job", .key = "twin"}, 1, &twin);
    PGconn *app = raw_open(&race->place);
    hold_keys(race, app, &twin);
    submit_batch(race, &batch);
    is_int(count_rc(&batch, true, WEFT_BUSY, false), 2, "the held keys answer busy");
    raw_run(&race->place, app, "COMMIT");
    submit_batch(race, &batch);
    is_int(count_rc(&batch, true, WEFT_OK, true), 2, "after a commit the held keys are duplicates");
    is_int(count_rc(&batch, false, WEFT_OK, true), BATCH - 2,
           "after a commit the other keys are duplicates");
    PQfinish(app);
}

static void submit_one(void *context)
{
    struct submit_run *run = context;
    const struct weft_spec spec = {.kind = "job", .key = "key"};
    run->rc = engine_submit(run->engine, "default", &spec, 1, run->answer, &run->err);
}

RACE(a_writer_beside_the_engine_holds_the_file)
{
    if (on_pg()) {
        tap_skip("PostgreSQL has no lock on the whole store");
        return;
    }
    struct weft_conn *conn;
    struct weft_err err;
    struct weft_id id;
    put_work(race->a, &(struct weft_spec){.kind = "job"}, 1, &id); /* names are interned */
    const struct weft_driver *lite = &weft_driver_sqlite;
    if (lite->open(race->place.url, &conn, &err) || lite->begin(conn, WEFT_TX_WRITE, &err))
        bail_out("cannot hold the file: %s", err.text);
    struct submit_run run = {.engine = race->a};
    struct task task = {.run = submit_one, .context = &run};
    uint64_t calls = race_calls(race);
    task_start(&task);
    ok(race_begun(race, calls), "a submission comes");
    lite->rollback(conn);
    weft_conn_close(conn);
    task_join(&task);
    ok(run.rc == WEFT_OK && !run.answer[0].err.rc,
       "the call that waited succeeds when the file is free again");
}
