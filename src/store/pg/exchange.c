/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One round trip with the server, in libpq's pipeline mode.
 *
 * Sending never blocks: bytes that the socket does not accept stay in libpq's buffer, and while
 * they drain the driver also reads, so two sides with full buffers cannot wait for each other.
 * Every wait has a deadline, after which the connection is closed: the state of the server is
 * unknown then.
 *
 * A Sync ends each exchange. After an error the server skips everything up to the Sync, so when its
 * answer has arrived both sides are synchronized again, whatever happened before.
 *
 * libpq's buffers grow to the largest exchange and never shrink. The connection records when it
 * last carried much, so that its owner can replace it some time later.
 */

#include "store/pg/pg.h"

#include "base/arena.h"
#include "base/clock.h"
#include "store/cell.h"

#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Values ---------------------------------------------------------------------------------- */

/*
 * Values in PostgreSQL's binary format. Columns become arrays of one dimension:
 *
 *     int32 dimensions (1), int32 has nulls, oid of the elements,
 *     int32 length, int32 lower bound (1), then per element int32 size (-1: null) and its bytes
 *
 * All parameters of a call are written into one piece of scratch memory that was measured first,
 * so encoding never allocates half-way. Results are copied into two pieces of the arena: the rows,
 * and the texts and bytes they point at.
 */
enum {
    PARAMS_MAX = 64,
    ARRAY_HEADER = 20,
    SCRATCH_MAX = 256 << 20,
};

/* The parameters of a call for libpq. Values lie in the scratch memory or are the caller's. */
struct params {
    int count;
    Oid type[PARAMS_MAX];
    const char *value[PARAMS_MAX];
    int size[PARAMS_MAX];
    int format[PARAMS_MAX];
};

/* Numbers from PostgreSQL's catalog of types; they never change. */
enum oid {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_NAME = 19,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_VARCHAR = 1043,
    OID_UUID = 2950,
    OID_XID8 = 5069,
};

static const struct {
    Oid one;
    Oid array;
    size_t size; /* of a number, 0 for what lies in data */
} types[] = {
    [WEFT_TYPE_BOOL] = {OID_BOOL, 1000, 1},   [WEFT_TYPE_I16] = {OID_INT2, 1005, 2},
    [WEFT_TYPE_I32] = {OID_INT4, 1007, 4},    [WEFT_TYPE_I64] = {OID_INT8, 1016, 8},
    [WEFT_TYPE_ID] = {OID_UUID, 2951, 0},     [WEFT_TYPE_TEXT] = {OID_TEXT, 1009, 0},
    [WEFT_TYPE_BYTES] = {OID_BYTEA, 1001, 0},
};

static void put_types(size_t stmt, struct params *ret_params)
{
    ret_params->count = 0;
    if (stmt == WEFT_PG_SETTLE)
        ret_params->type[ret_params->count++] = OID_TEXT;
    if (stmt >= WEFT_STMT_COUNT)
        return;
    const struct weft_stmt_info *info = &weft_stmts[stmt];
    for (size_t i = 0; i < info->param_count && i < PARAMS_MAX; i++)
        ret_params->type[ret_params->count++] = info->param[i].column
                                                    ? types[info->param[i].type].array
                                                    : types[info->param[i].type].one;
}

static char *put_i32(char *at, int32_t value)
{
    uint32_t wire = htobe32((uint32_t)value);
    return mempcpy(at, &wire, sizeof(wire));
}

static char *put_number(char *at, int64_t value, size_t size)
{
    uint64_t wire = htobe64((uint64_t)value);
    return mempcpy(at, (const char *)&wire + sizeof(wire) - size, size);
}

static size_t cell_size(const struct weft_cell *cell, enum weft_type type)
{
    return types[type].size > 0 ? types[type].size : cell->size;
}

static char *put_element(char *at, const struct weft_cell *cell, enum weft_type type)
{
    if (cell->null)
        return put_i32(at, -1);
    size_t size = cell_size(cell, type);
    at = put_i32(at, (int32_t)size);
    if (types[type].size > 0)
        return put_number(at, cell->num, size);
    return size > 0 ? mempcpy(at, cell->data, size) : at;
}

static char *put_array(char *at, const struct weft_call *call, const struct weft_stmt_field *param)
{
    int32_t has_null = 0;
    at = put_i32(at, 1);
    char *null_at = at;
    at = put_i32(at, has_null);
    at = put_i32(at, (int32_t)types[param->type].one);
    at = put_i32(at, (int32_t)call->rows);
    at = put_i32(at, 1);
    for (size_t row = 0; row < call->rows; row++) {
        struct weft_cell cell = weft_call_cell(call, param, row);
        has_null |= cell.null;
        at = put_element(at, &cell, param->type);
    }
    put_i32(null_at, has_null);
    return at;
}

static void put_param(char **at, const struct weft_call *call, size_t i, struct params *params)
{
    const struct weft_stmt_field *param = &weft_stmts[call->stmt].param[i];
    char *start = *at;
    params->format[i] = 1;
    params->value[i] = start;
    if (param->column) {
        *at = put_array(start, call, param);
        params->size[i] = (int)(*at - start);
        return;
    }
    struct weft_cell cell = weft_call_cell(call, param, 0);
    if (cell.null) {
        params->value[i] = NULL;
        params->size[i] = 0;
    } else if (types[param->type].size > 0) {
        *at = put_number(start, cell.num, types[param->type].size);
        params->size[i] = (int)types[param->type].size;
    } else {
        params->value[i] = cell.data;
        params->size[i] = (int)cell.size;
    }
}

/* Adds the bytes that a parameter needs in the scratch memory. False: a number is out of range. */
static bool measure(const struct weft_call *call, const struct weft_stmt_field *param,
                    size_t *bytes)
{
    if (param->column)
        *bytes += ARRAY_HEADER + call->rows * sizeof(int32_t);
    for (size_t row = 0; row < (param->column ? call->rows : 1); row++) {
        struct weft_cell cell = weft_call_cell(call, param, row);
        if (!cell.null && !weft_cell_fits(param->type, cell.num))
            return false;
        if (!cell.null && (param->column || weft_is_number(param)))
            *bytes += cell_size(&cell, param->type);
    }
    return true;
}

static enum weft_rc check_call(const struct weft_call *call, size_t *ret_bytes,
                               struct weft_err *err)
{
    const struct weft_stmt_info *info = &weft_stmts[call->stmt];
    size_t bytes = 0;
    if (info->param_count > PARAMS_MAX)
        return weft_fail(err, WEFT_INTERNAL, "statement %s has too many parameters", info->name);
    for (size_t i = 0; i < info->param_count; i++)
        if (!measure(call, &info->param[i], &bytes))
            return weft_fail(err, WEFT_INTERNAL, "statement %s: %s is out of range", info->name,
                             info->param[i].name);
    if (bytes > SCRATCH_MAX)
        return weft_fail(err, WEFT_TOO_LARGE, "statement %s: %zu bytes of parameters", info->name,
                         bytes);
    *ret_bytes = bytes;
    return WEFT_OK;
}

static enum weft_rc encode(struct weft_pg *pg, const struct weft_call *call,
                           struct params *ret_params, struct weft_err *err)
{
    size_t bytes = 0;
    enum weft_rc rc = check_call(call, &bytes, err);
    if (rc)
        return rc;
    if (bytes > pg->scratch_size) {
        free(pg->scratch);
        pg->scratch_size = bytes * 2;
        pg->scratch = weft_realloc(NULL, pg->scratch_size, 1);
    }
    put_types(call->stmt, ret_params);
    char *at = pg->scratch;
    for (size_t i = 0; i < weft_stmts[call->stmt].param_count; i++)
        put_param(&at, call, i, ret_params);
    return WEFT_OK;
}

/* Whether a column of the server's type can be read into a result that is declared so. */
static bool is_declared(const struct weft_stmt_field *result, Oid type)
{
    if (weft_is_number(result))
        return type == OID_BOOL || type == OID_INT2 || type == OID_INT4 || type == OID_INT8 ||
               type == OID_XID8;
    if (result->type == WEFT_TYPE_TEXT)
        return type == OID_TEXT || type == OID_VARCHAR || type == OID_NAME;
    return type == types[result->type].one;
}

int64_t weft_pg_get_i64(const PGresult *result, int row, int column)
{
    const char *data = PQgetvalue(result, row, column);
    uint64_t wire = 0;
    size_t size = (size_t)PQgetlength(result, row, column);
    if (size > sizeof(wire))
        return 0;
    memcpy((char *)&wire + sizeof(wire) - size, data, size);
    int64_t value = (int64_t)be64toh(wire);
    /* A shorter number was read without its sign. */
    if (size == 4)
        return (int32_t)value;
    return size == 2 ? (int16_t)value : value;
}

uint32_t weft_pg_get_timeline(const PGresult *result, int row, int column)
{
    enum { DIGITS = 8 };
    char text[DIGITS + 1] = "";
    if (PQgetlength(result, row, column) < DIGITS)
        return 0;
    memcpy(text, PQgetvalue(result, row, column), DIGITS);
    return (uint32_t)strtoul(text, NULL, 16);
}

static enum weft_rc check_shape(const PGresult *result, const struct weft_stmt_info *info,
                                struct weft_err *err)
{
    if ((size_t)PQnfields(result) != info->result_count)
        return weft_fail(err, WEFT_INTERNAL, "statement %s has %d result columns, %zu are declared",
                         info->name, PQnfields(result), info->result_count);
    for (int i = 0; i < PQnfields(result); i++) {
        Oid type = PQftype(result, i);
        if (!is_declared(&info->result[i], type))
            return weft_fail(err, WEFT_INTERNAL, "statement %s: result column %s has type %u",
                             info->name, PQfname(result, i), type);
    }
    return WEFT_OK;
}

/* What texts and bytes need, each with a NUL behind it. */
static size_t measure_result(const PGresult *result, const struct weft_stmt_field *field)
{
    size_t bytes = 0;
    for (int column = 0; column < PQnfields(result); column++) {
        if (field[column].type < WEFT_TYPE_TEXT)
            continue;
        for (int row = 0; row < PQntuples(result); row++)
            bytes += (size_t)PQgetlength(result, row, column) + 1;
    }
    return bytes;
}

/* Copies a text or bytes to *at, and moves that behind the copy. */
static const char *keep_bytes(char **at, const char *data, size_t size)
{
    const char *copy = *at;
    *at = mempcpy(*at, data, size);
    *(*at)++ = '\0';
    return copy;
}

enum weft_rc weft_pg_decode(const PGresult *result, enum weft_stmt stmt, struct weft_arena *arena,
                            struct weft_rows *ret_rows, struct weft_err *err)
{
    const struct weft_stmt_info *info = &weft_stmts[stmt];
    struct weft_rows rows = {.stmt = stmt};
    if (info->result_count == 0) {
        *ret_rows = rows;
        return WEFT_OK;
    }
    enum weft_rc rc = check_shape(result, info, err);
    if (rc)
        return rc;

    rows.count = (size_t)PQntuples(result);
    rows.row = weft_arena_alloc(arena, rows.count, info->out_size);
    char *at = weft_arena_alloc(arena, measure_result(result, info->result), 1);
    for (int column = 0; column < (int)info->result_count; column++) {
        const struct weft_stmt_field *field = &info->result[column];
        for (int row = 0; row < (int)rows.count; row++) {
            struct weft_cell cell = {.size = (size_t)PQgetlength(result, row, column)};
            if (PQgetisnull(result, row, column))
                continue;
            if (weft_is_number(field))
                cell.num = weft_pg_get_i64(result, row, column);
            else if (field->type == WEFT_TYPE_ID)
                cell.data = PQgetvalue(result, row, column);
            else
                cell.data = keep_bytes(&at, PQgetvalue(result, row, column), cell.size);
            if (!weft_row_put((char *)rows.row + (size_t)row * info->out_size, field, &cell))
                return weft_fail(err, WEFT_INTERNAL, "statement %s: %s is out of range", info->name,
                                 field->name);
        }
    }
    *ret_rows = rows;
    return WEFT_OK;
}

/* ---- The round trip -------------------------------------------------------------------------- */

#define SCRIPT_MAX_US (3600 * WEFT_SECOND) /* a migration may rewrite a large table */

enum { BINARY = 1, NAME_TEXT = 80 };

static void print_name(size_t stmt, char ret_name[NAME_TEXT])
{
    (void)snprintf(ret_name, NAME_TEXT, "weft_%zu_%s", stmt, weft_pg_stmt_name(stmt));
}

static int send_prepare(struct weft_pg *pg, const struct weft_pg_step *step)
{
    struct params params;
    char name[NAME_TEXT];
    put_types(step->stmt, &params);
    print_name(step->stmt, name);
    return PQsendPrepare(pg->pq, pg->named ? name : "", pg->text[step->stmt], params.count,
                         params.type);
}

static int send_execute(struct weft_pg *pg, const struct weft_pg_step *step,
                        const struct params *params)
{
    char name[NAME_TEXT];
    if (!pg->named || step->unnamed)
        return PQsendQueryParams(pg->pq, pg->text[step->stmt], params->count, params->type,
                                 params->value, params->size, params->format, BINARY);
    print_name(step->stmt, name);
    return PQsendQueryPrepared(pg->pq, name, params->count, params->value, params->size,
                               params->format, BINARY);
}

static enum weft_rc send_step(struct weft_pg *pg, const struct weft_pg_step *step,
                              struct weft_err *err)
{
    struct params params;
    params.count = 0;
    if (step->call && !step->prepares) {
        enum weft_rc rc = encode(pg, step->call, &params, err);
        if (rc)
            return rc;
        for (int i = 0; i < params.count; i++)
            /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): encode() set them */
            pg->carried += (size_t)params.size[i];
    } else if (step->text) {
        put_types(step->stmt, &params);
        params.value[0] = step->text;
        params.format[0] = 0;
    }
    if ((step->prepares ? send_prepare(pg, step) : send_execute(pg, step, &params)) &&
        (!step->leaves || PQsendFlushRequest(pg->pq)))
        return WEFT_OK;
    return weft_pg_lost(pg, weft_pg_stmt_name(step->stmt), PQerrorMessage(pg->pq), err);
}

/* Waits until the socket can be read, or written when there is something left to send. */
static bool wait_for_socket(struct weft_pg *pg, bool unsent, weft_usec deadline_us)
{
    weft_usec left_us = deadline_us - weft_boot_us();
    struct pollfd fd = {.fd = PQsocket(pg->pq), .events = (short)(POLLIN | (unsent ? POLLOUT : 0))};
    if (left_us <= 0)
        return false;
    return poll(&fd, 1, (int)(left_us / 1000) + 1) != 0 || weft_boot_us() < deadline_us;
}

/*
 * The next result, or NULL between two requests. False when the deadline passed. Once the
 * connection is bad, PQgetResult() does not wait: its result holds the reason.
 */
static bool next_result(struct weft_pg *pg, weft_usec deadline_us, PGresult **ret_result)
{
    for (;;) {
        int unsent = PQflush(pg->pq);
        if (unsent < 0 || !PQisBusy(pg->pq))
            break;
        if (!wait_for_socket(pg, unsent > 0, deadline_us))
            return false;
        if (!PQconsumeInput(pg->pq))
            break;
    }
    *ret_result = PQgetResult(pg->pq);
    return true;
}

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Gives a result to its step, or records the first failure of the exchange in *rc. */
static void take_result(struct weft_pg *pg, struct weft_pg_step *step, PGresult *result,
                        enum weft_rc *rc, struct weft_err *err)
{
    pg->carried += PQresultMemorySize(result);
    if (is_good(result) && !step->result) {
        step->result = result;
        if (step->prepares)
            pg->prepared[step->stmt] = true;
        return;
    }
    pg->terminated |= weft_pg_is_terminated(result);
    if (*rc == WEFT_OK && PQresultStatus(result) != PGRES_PIPELINE_ABORTED)
        *rc = weft_pg_fail(pg, result, weft_pg_stmt_name(step->stmt), err);
    PQclear(result);
}

/* A pooler may assign a session that once listened; libpq would keep its notices for ever. */
static void drop_notices(struct weft_pg *pg)
{
    PGnotify *notice;
    while ((notice = PQnotifies(pg->pq)) != NULL)
        PQfreemem(notice);
}

static enum weft_rc drain(struct weft_pg *pg, struct weft_pg_step *step, size_t count,
                          struct weft_err *err)
{
    weft_usec deadline_us = weft_boot_us() + pg->exchange_us;
    enum weft_rc rc = WEFT_OK;
    size_t at = 0;
    for (;;) {
        PGresult *result = NULL;
        const char *what = weft_pg_stmt_name(step[at < count ? at : count - 1].stmt);
        if (!next_result(pg, deadline_us, &result))
            return weft_pg_lost(pg, what, "the server did not answer in time", err);
        if (result && PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            PQclear(result);
            drop_notices(pg);
            pg->in_step = true;
            return rc;
        }
        if (result)
            take_result(pg, &step[at < count ? at : count - 1], result, &rc, err);
        else
            at++;
        if (PQstatus(pg->pq) == CONNECTION_BAD) {
            pg->conn.broken = true;
            return rc ? rc : weft_pg_lost(pg, what, PQerrorMessage(pg->pq), err);
        }
    }
}

enum weft_rc weft_pg_exchange(struct weft_pg *pg, struct weft_pg_step *step, size_t count,
                              struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    size_t sent = 0;
    pg->in_step = pg->terminated = false;
    if (pg->conn.broken)
        return weft_pg_lost(pg, weft_pg_stmt_name(step[0].stmt), "the connection is broken", err);
    pg->carried = 0;
    while (!rc && sent < count) {
        rc = send_step(pg, &step[sent], err);
        sent += !rc;
    }
    if (pg->conn.broken)
        return rc;
    if (!PQpipelineSync(pg->pq))
        return weft_pg_lost(pg, weft_pg_stmt_name(step[0].stmt), PQerrorMessage(pg->pq), err);
    /* A call that could not be encoded ends the exchange early; the steps sent are answered. */
    enum weft_rc drained = drain(pg, step, sent > 0 ? sent : 1, rc ? NULL : err);
    if (pg->carried > WEFT_PG_KEEP_BYTES)
        pg->conn.buffers_large_since_us = weft_boot_us();
    return rc ? rc : drained;
}

void weft_pg_clear(struct weft_pg_step *step, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        PQclear(step[i].result);
        step[i].result = NULL;
    }
}

enum weft_rc weft_pg_drain(struct weft_pg *pg, const char *what, weft_usec most_us,
                           struct weft_err *err)
{
    weft_usec deadline_us = weft_boot_us() + most_us;
    enum weft_rc rc = WEFT_OK;
    for (;;) {
        PGresult *result = NULL;
        if (!next_result(pg, deadline_us, &result))
            return weft_pg_lost(pg, what, "the server did not answer in time", err);
        if (!result)
            break;
        if (!rc && !is_good(result) && PQresultStatus(result) != PGRES_EMPTY_QUERY)
            rc = weft_pg_fail(pg, result, what, err);
        PQclear(result);
    }
    if (PQstatus(pg->pq) == CONNECTION_BAD) {
        pg->conn.broken = true;
        rc = rc ? rc : weft_pg_lost(pg, what, PQerrorMessage(pg->pq), err);
    }
    return rc;
}

enum weft_rc weft_pg_simple(struct weft_pg *pg, const char *sql, struct weft_err *err)
{
    /* Several statements in one text need the simple protocol, which pipelines do not support. */
    if (!PQexitPipelineMode(pg->pq) || !PQsendQuery(pg->pq, sql))
        return weft_pg_lost(pg, "script", PQerrorMessage(pg->pq), err);
    enum weft_rc rc = weft_pg_drain(pg, "script", SCRIPT_MAX_US, err);
    if (!pg->conn.broken && !PQenterPipelineMode(pg->pq))
        return weft_pg_lost(pg, "script", PQerrorMessage(pg->pq), err);
    return rc;
}

bool weft_pg_is_gone(struct weft_pg *pg)
{
    if (pg->conn.broken || !PQconsumeInput(pg->pq))
        return true;
    (void)PQisBusy(pg->pq); /* parses arrived data; a last message goes to on_notice() */
    return PQstatus(pg->pq) == CONNECTION_BAD || pg->fatal[0] != '\0';
}
