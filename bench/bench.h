/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BENCH_BENCH_H
#define WEFT_BENCH_BENCH_H

/*
 * The benchmark: submit + claim + complete through the engine, beside the raw floor.
 *
 * A load says what is done, a crew of threads does it for a while, a run is what came out. Runs of
 * the product and of the floor are interleaved by the cases, so that noise hits both, and become
 * rows of the report. Whatever fails is told on stderr where it happens; the functions here return
 * false then and the program ends.
 */

#include "engine/ops.h"

#include <stdio.h>

enum {
    BENCH_PAYLOAD = 200, /* bytes */
    BENCH_RESULT = 50,
    BENCH_QUEUES = 10,
    BENCH_CONNECTIONS_MAX = 64,
    BENCH_REPEATS_MAX = 15,
};

struct bench_options {
    const char *pg_url; /* NULL: no PostgreSQL */
    const char *dir;    /* of bench.json and the SQLite files */
    const char *only_case;
    const char *only_store;
    uint32_t only_batch; /* 0: all */
    uint32_t only_connections;
    uint32_t repeats;
    double seconds;  /* of one run */
    size_t backlog;  /* rows of the backlog */
    size_t leases;   /* rows of the expiry case */
    size_t ended;    /* rows of the retention case */
    size_t wide;     /* nodes in the middle of the flow case */
    size_t siblings; /* of its race */
    uint32_t races;
    size_t stairs;   /* siblings, and joins that share them */
    const char *ddl; /* or NULL */
    bool quick;
};

/* How the work of a load is spread. */
enum bench_spread { BENCH_ONE_QUEUE, BENCH_KINDS, BENCH_TENANTS, BENCH_LANES };

struct bench_load {
    uint32_t batch;
    uint32_t connections;
    double seconds; /* of one run, or */
    size_t turns;   /* this many batches per connection when it is not 0 */
    enum bench_spread spread;
    bool submit_only;
};

/* What one run gave. NAN: not applicable. */
struct bench_run {
    double per_s;
    double wal_bytes; /* per lifecycle */
    double commits;   /* write transactions per lifecycle */
};

/* ---- crew.c: threads that repeat a turn ------------------------------------------------------ */

struct bench_trade {
    /* Runs in the thread. NULL: it failed and said so. */
    void *(*open)(const void *job, const struct bench_load *load, unsigned index);
    long (*turn)(void *worker); /* lifecycles done, or -1 */
    void (*close)(void *worker);
};

struct bench_meter; /* reads WAL and transaction numbers of a server */

/* meter may be NULL. */
bool bench_crew_run(const struct bench_trade *trade, const void *job, const struct bench_load *load,
                    const struct bench_meter *meter, struct bench_run *ret_run);
void bench_fill_text(char *text, size_t size, unsigned seed); /* a JSON document of that size */

/* ---- product.c ------------------------------------------------------------------------------- */

bool bench_product_run(const char *url, const struct bench_load *load,
                       const struct bench_meter *meter, struct bench_run *ret_run);
bool bench_product_fail(enum weft_rc rc, const struct weft_err *err, const char *what); /* false */

/* ---- floor.c --------------------------------------------------------------------------------- */

/* A schema of the product's tables, and the interned ids that the rows need. */
struct bench_floor {
    const char *url;
    const char *schema;
    int queue, lane, policy;
};

bool bench_floor_run(const struct bench_floor *floor, const struct bench_load *load,
                     const struct bench_meter *meter, struct bench_run *ret_run);

/* ---- server.c: PostgreSQL around the runs ---------------------------------------------------- */

struct bench_reading {
    double wal_bytes;
    double transactions;
};

struct bench_server; /* opaque: a control connection and the schemas it made */

bool bench_server_open(const char *url, struct bench_server **ret_server);
void bench_server_close(struct bench_server *server); /* drops the schemas; NULL is fine */
/* Makes the schema anew with the product's migrations and gives back the URL of an engine. */
const char *bench_server_schema(struct bench_server *server, const char *schema);
/* Runs statements on the tables of a schema; NULL does nothing. */
bool bench_server_change(struct bench_server *server, const char *schema, const char *ddl);
bool bench_server_floor(struct bench_server *server, const char *schema,
                        struct bench_floor *ret_floor);
bool bench_server_clear(struct bench_server *server, const char *schema);
bool bench_server_settle(struct bench_server *server, const char *schema); /* vacuum, analyze */
bool bench_server_hold_snapshot(struct bench_server *server, bool hold);
const struct bench_meter *bench_server_meter(const struct bench_server *server);
bool bench_meter_read(const struct bench_meter *meter, struct bench_reading *ret_reading);

/* ---- report.c -------------------------------------------------------------------------------- */

/* The middle of several runs. */
struct bench_figure {
    double middle, low, high;
};

struct bench_row {
    const char *name; /* of the case; static */
    const char *store;
    uint32_t batch;
    uint32_t connections;
    struct bench_figure per_s;
    struct bench_figure floor; /* middle NAN: there is none */
    double wal_bytes;
    double commits;
};

/* How long something took, over several runs. */
struct bench_time {
    const char *name; /* of the case; static, as the next two */
    const char *store;
    const char *what;
    double p50_ms, p99_ms;
    uint64_t count;
    double must_ms; /* the p99 must be below that; 0: nothing is asked */
};

struct bench_report; /* opaque */

struct bench_report *bench_report_new(void);
void bench_report_free(struct bench_report *report);
void bench_report_add(struct bench_report *report, const struct bench_row *row);    /* prints it */
void bench_report_time(struct bench_report *report, const struct bench_time *time); /* prints it */
struct weft_hist;
void bench_time_of(const struct weft_hist *hist, struct bench_time *time); /* sets its figures */
bool bench_report_is_empty(const struct bench_report *report);
bool bench_report_json(const struct bench_report *report, const char *path);
void bench_report_checks(const struct bench_report *report, bool whole_size);
/* One line on a terminal that the next one replaces. */
void bench_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

struct bench_runs {
    struct bench_run run[BENCH_REPEATS_MAX];
    uint32_t count;
};
struct bench_figure bench_middle(const struct bench_runs *runs);
double bench_middle_wal(const struct bench_runs *runs);
double bench_middle_commits(const struct bench_runs *runs);

/* ---- cases.c, upkeep.c, retention.c, flow.c -------------------------------------------------- */

struct bench {
    struct bench_options options;
    struct bench_server *server; /* NULL: no PostgreSQL */
    struct bench_report *report;
    struct bench_floor floor;
    const char *product_url, *fresh_url;    /* PostgreSQL */
    char sqlite_path[256], fresh_path[256]; /* files */
    char sqlite_url[272], fresh_sqlite[272];
};

bool bench_wants(const struct bench *bench, const char *name, const char *store,
                 const struct bench_load *load);
bool bench_case_lifecycle(struct bench *bench);
bool bench_case_queues(struct bench *bench);
bool bench_case_backlog(struct bench *bench);
bool bench_case_expiry(struct bench *bench);
bool bench_case_retention(struct bench *bench);
bool bench_case_snapshot(struct bench *bench);
bool bench_case_flow(struct bench *bench);
void bench_remove_file(const char *path); /* with its log */

#endif
