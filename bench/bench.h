/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BENCH_BENCH_H
#define WEFT_BENCH_BENCH_H

/*
 * The benchmark: submit + claim + complete in this process beside the raw floor, and through a
 * server.
 *
 * A load says what is done, a crew of threads (cmd/bench/bench_crew.h) does it for a while, a run
 * holds the figures. Runs of the product and of the floor are interleaved by the cases, so that
 * noise hits both, and become rows of the report. A function that fails prints why on stderr and
 * returns false; then the program ends.
 */

#include "cmd/bench/bench.h"
#include "cmd/bench/bench_lifecycle.h"

#include <stdio.h>

enum { BENCH_PAYLOAD = 200 /* bytes */, BENCH_CONNECTIONS_MAX = 64, BENCH_REPEATS_MAX = 15 };

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

struct bench_load {
    uint32_t batch;
    uint32_t connections;
    double seconds; /* of one run, or */
    size_t turns;   /* this many batches per connection when it is not 0 */
    enum weft_bench_spread spread;
    bool submit_only;
};

/* The figures of one run. NAN: not applicable. */
struct bench_run {
    double per_s;
    double wal_bytes; /* per lifecycle */
    double commits;   /* write transactions per lifecycle */
};

/* ---- run.c: runs of a crew ------------------------------------------------------------------- */

struct bench_meter; /* reads WAL and transaction numbers of a server */

struct bench_reading {
    double wal_bytes;
    double transactions;
};

/* What a server wrote between two readings. */
struct bench_span {
    const struct bench_meter *meter; /* NULL: nothing is read */
    struct bench_reading before, after;
};
bool bench_span_begin(struct bench_span *span);
bool bench_span_end(struct bench_span *span);
/* The figures of `count` lifecycles. */
struct bench_run bench_span_run(const struct bench_span *span, double count, double seconds);

bool bench_crew_run(const struct weft_bench_crew *crew, const struct bench_meter *meter,
                    struct bench_run *ret_run);
/* One handle is shared by all threads and has a connection for each. */
bool bench_product_run(const char *url, const struct bench_load *load,
                       const struct bench_meter *meter, struct bench_run *ret_run);
bool bench_fail(enum weft_rc rc, const struct weft_err *err, const char *what); /* false */

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

struct bench_server; /* opaque: a control connection and the schemas it made */

bool bench_server_open(const char *url, struct bench_server **ret_server);
void bench_server_close(struct bench_server *server); /* drops the schemas; NULL is fine */
/* Creates the schema with the product's migrations and returns the URL of an engine. */
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

/* The median of several runs. */
struct bench_figure {
    double middle, low, high;
};

struct bench_runs {
    struct bench_run run[BENCH_REPEATS_MAX];
    uint32_t count;
};

struct bench_row {
    const char *name; /* of the case; static */
    const char *store;
    uint32_t batch;
    uint32_t connections;
    double must_per_s; /* 0: nothing is asked */
    /* Computed by bench_report_add(). */
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
    double must_ms;     /* the p99 must be below that; 0: nothing is asked */
    double must_p50_ms; /* the same for the median */
    /* Computed by bench_report_time(). */
    double p50_ms, p99_ms;
    uint64_t count;
};

struct bench_report; /* opaque */

struct bench_report *bench_report_new(void);
void bench_report_free(struct bench_report *report);
/* Both print what they add. floors: NULL or empty where there is no floor. */
void bench_report_add(struct bench_report *report, struct bench_row row,
                      const struct bench_runs *runs, const struct bench_runs *floors);
void bench_report_time(struct bench_report *report, struct bench_time time,
                       const struct weft_hist *hist);
bool bench_report_is_empty(const struct bench_report *report);
bool bench_report_json(const struct bench_report *report, const char *path);
/* Prints what must hold; false: something does not. */
bool bench_report_checks(const struct bench_report *report, bool whole_size);
/* One line on a terminal that the next one replaces. */
void bench_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- cases.c, upkeep.c, retention.c, flow.c, http.c ------------------------------------------ */

struct bench {
    struct bench_options options;
    struct bench_server *server; /* NULL: no PostgreSQL */
    struct bench_report *report;
    struct bench_floor floor;
    const char *product_url, *fresh_url;    /* PostgreSQL */
    char sqlite_path[256], fresh_path[256]; /* files */
    char sqlite_url[272], fresh_sqlite[272];
};

/* A store that a case runs on. */
struct bench_store {
    const char *name; /* pg, sqlite */
    const char *url;
    const struct bench_floor *floor; /* or NULL, as the next one */
    const struct bench_meter *meter;
};

bool bench_wants(const struct bench *bench, const char *name, const char *store,
                 const struct bench_load *load);
/* The store of that name with empty tables. */
bool bench_empty_store(struct bench *bench, const char *name, struct bench_store *ret_store);
/* Runs a case on each store that is wanted, from empty tables. */
bool bench_on_stores(struct bench *bench, const char *name, const struct bench_load *load,
                     bool (*run)(struct bench *bench, const struct bench_store *store));
bool bench_case_lifecycle(struct bench *bench);
bool bench_case_queues(struct bench *bench);
bool bench_case_backlog(struct bench *bench);
bool bench_case_expiry(struct bench *bench);
bool bench_case_retention(struct bench *bench);
bool bench_case_snapshot(struct bench *bench);
bool bench_case_flow(struct bench *bench);
bool bench_is_http(const struct bench *bench); /* --case names one of bench_case_http() */
bool bench_case_http(struct bench *bench);
void bench_remove_file(const char *path); /* with its log */

#endif
