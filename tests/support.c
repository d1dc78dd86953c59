/* SPDX-License-Identifier: Apache-2.0 */

/* See support.h. */

#include "support.h"
#include "direct.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/admin/doctor.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/execution_read.h"
#include "engine/job/submit.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct {
    bool pg;
    const char *program;
    char database[64];
    char base_url[400]; /* pg: up to the database */
    int places;
} env;

void bail_out(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("Bail out! ");
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
    (void)fflush(stdout);
    _exit(1);
}

/* ---- The program ----------------------------------------------------------------------------- */

static void on_server(const char *verb, const char *how)
{
    PGconn *raw = PQconnectdb(getenv("WEFT_TEST_PG"));
    char sql[200];
    (void)snprintf(sql, sizeof(sql), "%s DATABASE %s %s", verb, env.database, how);
    PGresult *result = PQexec(raw, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        bail_out("%s: %s", sql, PQerrorMessage(raw));
    PQclear(result);
    PQfinish(raw);
}

void tests_begin(const char *program)
{
    const char *store = getenv("WEFT_TEST_STORE");
    env.program = program;
    env.pg = store && strcmp(store, "pg") == 0;
    if (!env.pg)
        return;
    const char *pg = getenv("WEFT_TEST_PG");
    if (!pg)
        bail_out("WEFT_TEST_PG must be the URL of a scratch PostgreSQL");
    (void)snprintf(env.database, sizeof(env.database), "weft_%s_%d", program, (int)getpid());
    (void)snprintf(env.base_url, sizeof(env.base_url), "%s%cdbname=%s", pg,
                   strchr(pg, '?') ? '&' : '?', env.database);
    on_server("CREATE", "");
}

int tests_end(void)
{
    if (env.pg)
        on_server("DROP", "WITH (FORCE)");
    return tap_done();
}

bool on_pg(void)
{
    return env.pg;
}

bool soaking(void)
{
    const char *soak = getenv("WEFT_SOAK");
    return soak && *soak && strcmp(soak, "0") != 0;
}

bool is_named(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc < 2;
}

/* ---- A store of its own ---------------------------------------------------------------------- */

static const char *file_of(const struct place *place)
{
    return place->url + strlen("sqlite:");
}

void place_init(struct place *place, const char *name)
{
    *place = (struct place){0};
    env.places++;
    if (env.pg) {
        (void)snprintf(place->schema, sizeof(place->schema), "%s_%d", name, env.places);
        (void)snprintf(place->url, sizeof(place->url), "%s&application_name=%s&weft_schema=%s",
                       env.base_url, place->schema, place->schema);
        return;
    }
    const char *folder = getenv("TMPDIR");
    (void)snprintf(place->url, sizeof(place->url), "sqlite:%s/%s-%d-%d.db",
                   folder ? folder : "/tmp", env.program, (int)getpid(), env.places);
}

void place_done(const struct place *place)
{
    static const char *const suffix[] = {"", "-wal", "-shm"};
    if (env.pg) {
        PGconn *raw = raw_open(place);
        raw_run(place, raw,
                "SET client_min_messages = warning; DROP SCHEMA IF EXISTS weft CASCADE");
        PQfinish(raw);
        return;
    }
    for (size_t i = 0; i < WEFT_LEN(suffix); i++) {
        char path[600];
        (void)snprintf(path, sizeof(path), "%s%s", file_of(place), suffix[i]);
        (void)unlink(path);
    }
}

struct weft_engine *place_open(const struct place *place, const struct weft_driver *driver,
                               weft_usec now_us)
{
    struct weft_engine *engine = NULL;
    struct weft_err err = {0};
    static atomic_bool statements_fit; /* a child inherits what its parent knows */
    const struct weft_engine_config config = {
        .url = place->url, .driver = driver, .statements_fit = statements_fit && !driver};
    if (weft_engine_open(&config, &engine, &err))
        bail_out("cannot open %s: %s", place->url, err.text);
    statements_fit = true;
    if (now_us)
        weft_clock_set(weft_engine_clock(engine), now_us);
    return engine;
}

void place_check(const struct place *place, const char *name)
{
    struct weft_err err = {0};
    struct weft_engine *engine = place_open(place, NULL, START_US);
    enum weft_rc rc = weft_engine_check(engine, &err);
    ok(rc == WEFT_OK, "%s: the invariants hold%s%s", name, rc ? ": " : "", err.text);
    weft_engine_close(engine);
}

/* ---- Raw sessions on PostgreSQL -------------------------------------------------------------- */

PGconn *raw_open(const struct place *place)
{
    (void)place;
    PGconn *raw = PQconnectdb(env.base_url);
    if (PQstatus(raw) != CONNECTION_OK)
        bail_out("raw session: %s", PQerrorMessage(raw));
    return raw;
}

/* Puts the name of the schema where the word weft stands alone. */
static void place_schema(const struct place *place, const char *sql, char *out, size_t size)
{
    size_t used = 0;
    while (*sql && used + sizeof(place->schema) < size) {
        bool word = strncmp(sql, "weft", 4) == 0 && sql[4] != '_';
        used += (size_t)snprintf(out + used, size - used, "%.*s",
                                 word ? (int)strlen(place->schema) : 1, word ? place->schema : sql);
        sql += word ? 4 : 1;
    }
    out[used] = '\0';
}

__attribute__((format(printf, 3, 0))) static PGresult *
raw_query(const struct place *place, PGconn *raw, const char *fmt, va_list args)
{
    char text[2000], sql[4000];
    (void)vsnprintf(text, sizeof(text), fmt, args);
    place_schema(place, text, sql, sizeof(sql));
    PGresult *result = PQexec(raw, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        bail_out("%s: %s", sql, PQerrorMessage(raw));
    return result;
}

void raw_run(const struct place *place, PGconn *raw, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    PQclear(raw_query(place, raw, fmt, args));
    va_end(args);
}

int64_t raw_int(const struct place *place, PGconn *raw, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    PGresult *result = raw_query(place, raw, fmt, args);
    va_end(args);
    int64_t number = PQntuples(result) ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    return number;
}

struct raw_question {
    const struct place *place;
    PGconn *raw;
    const char *sql;
};

static bool answers_yes(void *context)
{
    const struct raw_question *question = context;
    return raw_int(question->place, question->raw, "%s", question->sql) > 0;
}

bool raw_wait(const struct place *place, PGconn *raw, const char *sql)
{
    struct raw_question question = {.place = place, .raw = raw, .sql = sql};
    return wait_until(answers_yes, &question);
}

int64_t raw_deadlocks(const struct place *place, PGconn *raw)
{
    if (!raw_wait(place, raw,
                  "SELECT (count(*) = 0)::int FROM pg_stat_activity "
                  "WHERE datname = current_database() AND pid <> pg_backend_pid() "
                  "AND backend_type = 'client backend'"))
        bail_out("sessions that should be closed are still there");
    return raw_int(place, raw,
                   "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()");
}

/* ---- Waiting --------------------------------------------------------------------------------- */

bool wait_until(condition_fn *condition, void *context)
{
    weft_usec until = weft_boot_us() + PATIENCE_MS * WEFT_MS;
    while (!condition(context)) {
        if (weft_boot_us() > until)
            return false;
        const struct timespec turn = {.tv_nsec = 1000000};
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &turn, NULL);
    }
    return true;
}

void stop_init(struct stop *stop)
{
    *stop = (struct stop){0};
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&stop->lock, NULL);
    pthread_cond_init(&stop->changed, &attr);
    pthread_condattr_destroy(&attr);
}

static bool await_flag(struct stop *stop, const bool *flag)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_MS / 1000;
    int waited = 0;
    while (!*flag && waited == 0)
        waited = pthread_cond_timedwait(&stop->changed, &stop->lock, &until);
    return *flag;
}

void stop_here(struct stop *stop)
{
    pthread_mutex_lock(&stop->lock);
    stop->reached = true;
    pthread_cond_broadcast(&stop->changed);
    if (!await_flag(stop, &stop->released))
        bail_out("a thread that was stopped was never released");
    pthread_mutex_unlock(&stop->lock);
}

bool stop_reached(struct stop *stop)
{
    pthread_mutex_lock(&stop->lock);
    bool reached = await_flag(stop, &stop->reached);
    pthread_mutex_unlock(&stop->lock);
    return reached;
}

void stop_release(struct stop *stop)
{
    pthread_mutex_lock(&stop->lock);
    stop->released = true;
    pthread_cond_broadcast(&stop->changed);
    pthread_mutex_unlock(&stop->lock);
}

/* ---- Threads that meet an ambush ------------------------------------------------------------- */

static _Thread_local struct ambush *laid;

void ambush_lay(struct ambush *ambush)
{
    laid = ambush;
}

void ambush_hook(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    (void)context;
    if (!laid || laid->sprung)
        return;
    bool mine = stmt == laid->stmt;
    laid->seen |= mine;
    bool commit = point == WEFT_FAULT_BEFORE_COMMIT || point == WEFT_FAULT_AFTER_COMMIT;
    if (point != laid->point || (commit ? !laid->seen : !mine))
        return;
    laid->sprung = true;
    laid->act(laid->context);
}

void ambush_stop(void *context)
{
    stop_here(context);
}

static void *run_task(void *arg)
{
    struct task *task = arg;
    ambush_lay(task->ambush);
    task->run(task->context);
    ambush_lay(NULL);
    __atomic_store_n(&task->done, true, __ATOMIC_RELEASE);
    return NULL;
}

void task_start(struct task *task)
{
    if (pthread_create(&task->thread, NULL, run_task, task))
        bail_out("cannot start a thread");
}

bool task_done(void *context)
{
    return __atomic_load_n(&((struct task *)context)->done, __ATOMIC_ACQUIRE);
}

bool task_finishes(struct task *task)
{
    return wait_until(task_done, task);
}

void task_join(struct task *task)
{
    if (!task_finishes(task))
        bail_out("a thread does not come to its end");
    pthread_join(task->thread, NULL);
}

/* ---- Short forms ----------------------------------------------------------------------------- */

void put_work(struct weft_engine *engine, const struct weft_spec *spec, size_t count,
              struct weft_id *ret_id)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_spec *specs = weft_new_array(arena, struct weft_spec, count);
    struct weft_submitted *answer = weft_new_array(arena, struct weft_submitted, count);
    struct weft_err err = {0};
    for (size_t i = 0; i < count; i++)
        specs[i] = *spec;
    if (engine_submit(engine, "default", specs, count, answer, &err))
        bail_out("submit: %s", err.text);
    for (size_t i = 0; i < count; i++) {
        if (answer[i].err.rc)
            bail_out("submit: %s", answer[i].err.text);
        ret_id[i] = answer[i].id;
    }
    weft_arena_free(arena);
}

size_t take_work(struct weft_engine *engine, const char *lane, uint32_t max,
                 struct weft_claimed *ret_item)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result result = {0};
    struct weft_err err = {0};
    const struct weft_claim claim = {
        .worker = "worker", .lanes = &lane, .lane_count = 1, .max = max};
    if (weft_engine_claim(engine, "default", &claim, 1, arena, &result, &err))
        bail_out("claim: %s", err.text);
    for (size_t i = 0; i < result.count; i++)
        ret_item[i] = (struct weft_claimed){.id = result.item[i].id,
                                            .epoch = result.item[i].epoch,
                                            .attempt = result.item[i].attempt,
                                            .priority = result.item[i].priority,
                                            .lease_expires_us = result.item[i].lease_expires_us};
    size_t count = result.count;
    weft_arena_free(arena);
    return count;
}

struct weft_execution look_at(struct weft_engine *engine, const struct weft_id *id,
                              struct weft_arena *arena)
{
    struct weft_execution item = {0};
    struct weft_err err = {0};
    if (weft_engine_describe(engine, "default", id, 1, arena, &item, &err))
        bail_out("describe: %s", err.text);
    return item;
}

enum weft_state state_at(struct weft_engine *engine, const struct weft_id *id)
{
    struct weft_arena *arena = weft_arena_new();
    enum weft_state state = look_at(engine, id, arena).state;
    weft_arena_free(arena);
    return state;
}

size_t attempts_of(struct weft_engine *engine, const struct weft_id *id)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_attempts list = {0};
    struct weft_err err = {0};
    if (weft_engine_attempts(engine, "default", id, arena, &list, &err))
        bail_out("attempts: %s", err.text);
    weft_arena_free(arena);
    return list.count;
}

struct weft_steered steer_one(struct weft_engine *engine, enum weft_steer_kind kind,
                              const struct weft_steer *item)
{
    struct weft_steered answer = {0};
    struct weft_err err = {0};
    const struct weft_steering steering = {.kind = kind, .ns = "default", .item = item, .count = 1};
    if (engine_steer(engine, &steering, &answer, &err))
        bail_out("steer: %s", err.text);
    return answer;
}

uint64_t counter_of(const struct weft_pass_report *report, const char *name)
{
    for (size_t i = 0; i < report->counter_count; i++)
        if (strcmp(report->counter[i].name, name) == 0)
            return report->counter[i].value;
    ok(false, "the report counts %s", name);
    return UINT64_MAX;
}

uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
