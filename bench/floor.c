/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The raw floor: what a patient person would write by hand for this one load.
 *
 * The same tables, columns and indexes as the product, the same durable writes: the fact and the
 * living row, the lease on it, and its end with the outcome. Claims take rows in order with SKIP
 * LOCKED, completions are fenced by epoch. One statement and one round trip per operation, in
 * autocommit, prepared, binary, with arrays; settings are made once for the session. A value
 * that is the same for all rows of a batch is a scalar, ids grow within a batch so that trees are
 * appended to, and nothing is validated, answered item by item, or tried again.
 */

#include "bench/bench.h"

#include "base/arena.h"
#include "base/clock.h"
#include "cmd/bench/bench.h"

#include <endian.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUBMIT, CLAIM, COMPLETE, STATEMENTS };
enum { OID_BYTEA = 17, OID_INT8 = 20, OID_INT4 = 23, OID_UUID = 2950 };
enum { LEASE_US = 30000000, ID = 16, PARAMS_MAX = 8, ARRAY_HEADER = 20 };

static const char *const names[STATEMENTS] = {"submit", "claim", "complete"};

/* @ is the schema. Two readings of the same parameters are cheaper than one that is kept for two
 * writers. */
static const char submit_text[] =
    "WITH fact AS (INSERT INTO @.execution (id, created, queue, payload)"
    " SELECT i.id, $1::bigint, $2::int, i.payload"
    " FROM unnest($3::uuid[], $4::bytea[]) AS i(id, payload))"
    " INSERT INTO @.live (id, ord, queue, lane, policy, epoch, attempt, forgiven, size, lost,"
    " replays, priority, state)"
    " SELECT i.id, i.ord, $2::int, $5::int, $6::int, 0, 1, 0, $7::int, 0, 0, 0, 1"
    " FROM unnest($3::uuid[], $8::bigint[]) AS i(id, ord)";

static const char claim_text[] =
    "UPDATE @.live l SET state = 4, epoch = l.epoch + 1, worker = $4::int, claimed = $1::bigint,"
    " due = $1::bigint + $5::bigint, started = coalesce(l.started, $1::bigint)"
    " FROM (SELECT r.id FROM @.live r WHERE r.queue = $2::int AND r.state = 1"
    " ORDER BY r.priority DESC, r.ord, r.id LIMIT $3::int FOR UPDATE SKIP LOCKED) p"
    " JOIN @.execution e ON e.id BETWEEN p.id AND p.id"
    " WHERE l.id BETWEEN p.id AND p.id"
    " RETURNING l.id, l.epoch, l.attempt, l.due, e.payload";

/*
 * `state + 0` keeps the planner from driving by the index of leases. BETWEEN instead of `=` keeps
 * it from walking the whole table in the order of ids and comparing each row with the whole batch,
 * which is what it does once the table was analyzed while it was empty: equality is something to
 * merge by, so the full walk is a candidate; a range is only good for looking up.
 */
static const char complete_text[] =
    "WITH gone AS (DELETE FROM @.live l"
    " USING unnest($2::uuid[], $3::int[], $4::bytea[]) AS i(id, epoch, result)"
    " WHERE l.id BETWEEN i.id AND i.id AND l.epoch = i.epoch AND l.state + 0 = 4"
    " RETURNING l.id, l.ord, l.deadline, l.started, l.claimed, l.queue, l.policy, l.worker,"
    " l.epoch, l.attempt, l.forgiven, l.lost, l.replays, l.priority, i.result)"
    " INSERT INTO @.outcome (id, finished, ord, deadline, started, claimed, queue, policy,"
    " worker, epoch, attempt, forgiven, lost, replays, priority, state, ended, held, result)"
    " SELECT id, $1::bigint, ord, deadline, started, claimed, queue, policy, worker, epoch,"
    " attempt, forgiven, lost, replays, priority, 7, 1, true, result FROM gone";

struct worker {
    const struct bench_floor *floor;
    const struct bench_load *load;
    struct weft_arena *memory;
    PGconn *pq;
    unsigned index;
    uint64_t minted;
    struct weft_buf text; /* the payloads of a batch, one behind the other, and a result */
    char *buffer;         /* encoded parameters */
    char *at;             /* the first free byte of it */
    const char *value[PARAMS_MAX];
    int size[PARAMS_MAX];
    int params;
};

static enum weft_rc failed(const struct worker *worker, const char *what, struct weft_err *err)
{
    return weft_fail(err, WEFT_UNAVAILABLE, "floor: %s: %s", what, PQerrorMessage(worker->pq));
}

/* ---- Parameters ------------------------------------------------------------------------------ */

static void put32(struct worker *worker, int32_t value)
{
    uint32_t wire = htobe32((uint32_t)value);
    worker->at = mempcpy(worker->at, &wire, sizeof(wire));
}

static void put64(struct worker *worker, int64_t value)
{
    uint64_t wire = htobe64((uint64_t)value);
    worker->at = mempcpy(worker->at, &wire, sizeof(wire));
}

static void begin_params(struct worker *worker)
{
    worker->at = worker->buffer;
    worker->params = 0;
}

static void begin_param(struct worker *worker)
{
    worker->value[worker->params] = worker->at;
}

static void end_param(struct worker *worker)
{
    worker->size[worker->params] = (int)(worker->at - worker->value[worker->params]);
    worker->params++;
}

static void begin_array(struct worker *worker, int32_t oid, size_t count)
{
    begin_param(worker);
    put32(worker, 1);
    put32(worker, 0);
    put32(worker, oid);
    put32(worker, (int32_t)count);
    put32(worker, 1);
}

static void put_bytes(struct worker *worker, const void *data, size_t size)
{
    put32(worker, (int32_t)size);
    worker->at = mempcpy(worker->at, data, size);
}

static void add32(struct worker *worker, int32_t value)
{
    begin_param(worker);
    put32(worker, value);
    end_param(worker);
}

static void add64(struct worker *worker, int64_t value)
{
    begin_param(worker);
    put64(worker, value);
    end_param(worker);
}

/* NULL: it failed. */
static PGresult *run(struct worker *worker, int statement, struct weft_err *err)
{
    static const int binary[PARAMS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
    PGresult *result = PQexecPrepared(worker->pq, names[statement], worker->params, worker->value,
                                      worker->size, binary, 1);
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return result;
    (void)failed(worker, names[statement], err);
    PQclear(result);
    return NULL;
}

/* ---- The loop -------------------------------------------------------------------------------- */

static weft_usec now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_REALTIME, &time);
    return (weft_usec)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/* A UUIDv7 whose random bits count up. */
static void put_id(struct worker *worker, weft_usec now_us)
{
    uint64_t ms = (uint64_t)now_us / 1000, count = worker->minted++;
    put32(worker, ID);
    put64(worker, (int64_t)(ms << 16 | 0x7000 | worker->index));
    put64(worker, (int64_t)(UINT64_C(1) << 63 | count));
}

static bool submit(struct worker *worker, struct weft_err *err)
{
    weft_usec now_us = now();
    const struct bench_floor *floor = worker->floor;
    size_t count = worker->load->batch;
    begin_params(worker);
    add64(worker, now_us);
    add32(worker, floor->queue);
    begin_array(worker, OID_UUID, count);
    for (size_t i = 0; i < count; i++)
        put_id(worker, now_us);
    end_param(worker);
    begin_array(worker, OID_BYTEA, count);
    for (size_t i = 0; i < count; i++)
        put_bytes(worker, worker->text.data + i * BENCH_PAYLOAD, BENCH_PAYLOAD);
    end_param(worker);
    add32(worker, floor->lane);
    add32(worker, floor->policy);
    add32(worker, BENCH_PAYLOAD);
    begin_array(worker, OID_INT8, count);
    for (size_t i = 0; i < count; i++) {
        put32(worker, sizeof(int64_t));
        put64(worker, now_us + (weft_usec)i);
    }
    end_param(worker);
    PGresult *result = run(worker, SUBMIT, err);
    PQclear(result);
    return result != NULL;
}

static PGresult *claim(struct worker *worker, struct weft_err *err)
{
    begin_params(worker);
    add64(worker, now());
    add32(worker, worker->floor->queue);
    add32(worker, (int32_t)worker->load->batch);
    add32(worker, 1);
    add64(worker, LEASE_US);
    return run(worker, CLAIM, err);
}

static enum weft_rc complete(struct worker *worker, const PGresult *claimed, size_t *ret_done,
                             struct weft_err *err)
{
    int count = PQntuples(claimed);
    begin_params(worker);
    add64(worker, now());
    begin_array(worker, OID_UUID, (size_t)count);
    for (int i = 0; i < count; i++)
        put_bytes(worker, PQgetvalue(claimed, i, 0), ID);
    end_param(worker);
    begin_array(worker, OID_INT4, (size_t)count);
    for (int i = 0; i < count; i++) /* it is in the right byte order already */
        put_bytes(worker, PQgetvalue(claimed, i, 1), sizeof(int32_t));
    end_param(worker);
    begin_array(worker, OID_BYTEA, (size_t)count);
    for (int i = 0; i < count; i++)
        put_bytes(worker, worker->text.data + (size_t)worker->load->batch * BENCH_PAYLOAD,
                  WEFT_BENCH_RESULT_SIZE);
    end_param(worker);
    PGresult *result = run(worker, COMPLETE, err);
    if (!result)
        return WEFT_UNAVAILABLE;
    long done = strtol(PQcmdTuples(result), NULL, 10);
    PQclear(result);
    *ret_done = (size_t)done;
    if (done == count)
        return WEFT_OK;
    return weft_fail(err, WEFT_INTERNAL, "floor: %ld of %d completions found their row", done,
                     count);
}

static enum weft_rc turn(void *arg, size_t *ret_done, struct weft_err *err)
{
    struct worker *worker = arg;
    *ret_done = worker->load->batch;
    if (!submit(worker, err))
        return WEFT_UNAVAILABLE;
    if (worker->load->submit_only)
        return WEFT_OK;
    PGresult *claimed = claim(worker, err);
    enum weft_rc rc =
        claimed ? complete(worker, claimed, ret_done, err) : (enum weft_rc)WEFT_UNAVAILABLE;
    PQclear(claimed);
    return rc;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static enum weft_rc connect_and_prepare(struct worker *worker, struct weft_err *err)
{
    static const char *const pins[] = {
        "SET plan_cache_mode = force_generic_plan",
        "SET enable_seqscan = off",
        "SET enable_hashjoin = off",
        "SET enable_mergejoin = off",
        "SET enable_bitmapscan = off",
        "SET jit = off",
    };
    static const char *const texts[STATEMENTS] = {submit_text, claim_text, complete_text};
    worker->pq = PQconnectdb(worker->floor->url);
    if (PQstatus(worker->pq) != CONNECTION_OK)
        return failed(worker, "connect", err);
    for (size_t i = 0; i < WEFT_LEN(pins); i++) {
        PGresult *result = PQexec(worker->pq, pins[i]);
        bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
        PQclear(result);
        if (!done)
            return failed(worker, pins[i], err);
    }
    for (int i = 0; i < STATEMENTS; i++) {
        char text[2048];
        const char *schema = worker->floor->schema;
        char *end = text;
        const char *from = texts[i];
        for (const char *mark; (mark = strchr(from, '@')) != NULL; from = mark + 1) {
            end = mempcpy(end, from, (size_t)(mark - from));
            end = mempcpy(end, schema, strlen(schema));
        }
        memcpy(end, from, strlen(from) + 1);
        PGresult *result = PQprepare(worker->pq, names[i], text, 0, NULL);
        bool prepared = PQresultStatus(result) == PGRES_COMMAND_OK;
        PQclear(result);
        if (!prepared)
            return failed(worker, names[i], err);
    }
    return WEFT_OK;
}

static void close_worker(void *arg)
{
    struct worker *worker = arg;
    PQfinish(worker->pq);
    weft_buf_done(&worker->text);
    weft_arena_free(worker->memory);
}

struct job {
    const struct bench_floor *floor;
    const struct bench_load *load;
};

static enum weft_rc open_worker(void *arg, uint32_t index, void **ret_worker, struct weft_err *err)
{
    const struct job *job = arg;
    uint32_t batch = job->load->batch;
    struct weft_arena *memory = weft_arena_new();
    struct worker *worker = weft_new(memory, struct worker);
    *worker =
        (struct worker){.floor = job->floor, .load = job->load, .memory = memory, .index = index};
    struct weft_buf *text = &worker->text;
    weft_buf_init(text, (size_t)batch * BENCH_PAYLOAD + WEFT_BENCH_RESULT_SIZE);
    for (uint32_t i = 0; i < batch; i++)
        weft_bench_document(text, BENCH_PAYLOAD, index * 1000 + i);
    weft_bench_document(text, WEFT_BENCH_RESULT_SIZE, index);
    size_t row = 4 + BENCH_PAYLOAD + 4 + ID + 4 + sizeof(int64_t);
    worker->buffer = weft_arena_alloc(memory, 1, batch * row + 256);
    enum weft_rc rc = connect_and_prepare(worker, err);
    if (rc)
        close_worker(worker);
    else
        *ret_worker = worker;
    return rc;
}

bool bench_floor_run(const struct bench_floor *floor, const struct bench_load *load,
                     const struct bench_meter *meter, struct bench_run *ret_run)
{
    static const struct weft_bench_trade trade = {open_worker, turn, close_worker};
    struct job job = {floor, load};
    const struct weft_bench_crew crew = {.trade = &trade,
                                         .job = &job,
                                         .threads = load->connections,
                                         .run_us = (weft_usec)(load->seconds * 1e6),
                                         .turns = load->turns};
    return bench_crew_run(&crew, meter, ret_run);
}
