/* SPDX-License-Identifier: Apache-2.0 */

/* The table for people, the JSON for programs, and what must hold. */

#include "bench/bench.h"

#include "base/arena.h"
#include "cmd/cli/output.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MAX = 256, TIMES_MAX = 32 };

struct bench_report {
    struct bench_row row[ROWS_MAX];
    size_t count;
    struct bench_time time[TIMES_MAX];
    size_t times;
};

struct bench_report *bench_report_new(void)
{
    struct bench_report *report = calloc(1, sizeof(*report));
    if (!report)
        weft_oom(sizeof(*report));
    return report;
}

void bench_report_free(struct bench_report *report)
{
    free(report);
}

bool bench_report_is_empty(const struct bench_report *report)
{
    return report->count == 0 && report->times == 0;
}

/* ---- The middle of several runs -------------------------------------------------------------- */

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static struct bench_figure middle_of(double *value, size_t count)
{
    qsort(value, count, sizeof(*value), by_size);
    double middle = count % 2 ? value[count / 2] : (value[count / 2 - 1] + value[count / 2]) / 2;
    return (struct bench_figure){.middle = middle, .low = value[0], .high = value[count - 1]};
}

/* Of one member of struct bench_run, which stands at `offset`. */
static struct bench_figure figure_of(const struct bench_runs *runs, size_t offset)
{
    double value[BENCH_REPEATS_MAX];
    for (uint32_t i = 0; runs && i < runs->count; i++)
        value[i] = *(const double *)((const char *)&runs->run[i] + offset);
    if (!runs || runs->count == 0 || isnan(value[0]))
        return (struct bench_figure){.middle = NAN, .low = NAN, .high = NAN};
    return middle_of(value, runs->count);
}

/* ---- The table ------------------------------------------------------------------------------- */

void bench_progress(const char *fmt, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    va_list args;
    va_start(args, fmt);
    (void)fputs("\r\033[K", stderr);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fflush(stderr);
}

static const char *number(char text[24], double value, int digits)
{
    if (isnan(value))
        return "-";
    (void)snprintf(text, 24, "%.*f", digits, value);
    return text;
}

static const char *range(char text[32], const struct bench_figure *figure)
{
    if (isnan(figure->middle))
        return "-";
    (void)snprintf(text, 32, "%.1f-%.1fk", figure->low / 1000, figure->high / 1000);
    return text;
}

static double ratio_of(const struct bench_row *row)
{
    return row->per_s.middle / row->floor.middle;
}

static void print_head(void)
{
    (void)printf("%-12s %-6s %5s %5s %8s %12s %8s %12s %5s %6s %7s\n", "case", "store", "batch",
                 "conns", "per s", "(spread)", "floor/s", "(spread)", "ratio", "WAL B", "commits");
}

void bench_report_add(struct bench_report *report, struct bench_row row,
                      const struct bench_runs *runs, const struct bench_runs *floors)
{
    char n[5][24], r[2][32];
    row.per_s = figure_of(runs, offsetof(struct bench_run, per_s));
    row.floor = figure_of(floors, offsetof(struct bench_run, per_s));
    row.wal_bytes = figure_of(runs, offsetof(struct bench_run, wal_bytes)).middle;
    row.commits = figure_of(runs, offsetof(struct bench_run, commits)).middle;
    bench_progress("%s", "");
    if (report->count == 0)
        print_head();
    (void)printf("%-12s %-6s %5u %5u %8s %12s %8s %12s %5s %6s %7s\n", row.name, row.store,
                 row.batch, row.connections, number(n[0], row.per_s.middle, 0),
                 range(r[0], &row.per_s), number(n[1], row.floor.middle, 0),
                 range(r[1], &row.floor), number(n[2], ratio_of(&row), 2),
                 number(n[3], row.wal_bytes, 0), number(n[4], row.commits, 3));
    (void)fflush(stdout);
    if (report->count < ROWS_MAX)
        report->row[report->count++] = row;
}

void bench_report_time(struct bench_report *report, struct bench_time time,
                       const struct weft_hist *hist)
{
    time.p50_ms = weft_hist_ms(hist, 0.5);
    time.p99_ms = weft_hist_ms(hist, 0.99);
    time.count = hist->count;
    bench_progress("%s", "");
    (void)printf("%-12s %-6s %-42s p50 %8.2f ms, p99 %8.2f ms, %llu runs\n", time.name, time.store,
                 time.what, time.p50_ms, time.p99_ms, (unsigned long long)time.count);
    (void)fflush(stdout);
    if (report->times < TIMES_MAX)
        report->time[report->times++] = time;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_row(struct weft_json_writer *json, const struct bench_row *row)
{
    weft_json_begin_object(json);
    weft_json_add_text(json, "case", row->name);
    weft_json_add_text(json, "store", row->store);
    weft_json_add_i64(json, "batch", row->batch);
    weft_json_add_i64(json, "connections", row->connections);
    weft_json_add_fixed(json, "per_s", row->per_s.middle, 1);
    weft_json_add_fixed(json, "floor_per_s", row->floor.middle, 1);
    weft_json_add_fixed(json, "floor_ratio", ratio_of(row), 3);
    weft_json_add_fixed(json, "wal_bytes", row->wal_bytes, 1);
    weft_json_add_fixed(json, "commits", row->commits, 4);
    weft_json_end_object(json);
}

static void put_time(struct weft_json_writer *json, const struct bench_time *time)
{
    weft_json_begin_object(json);
    weft_json_add_text(json, "case", time->name);
    weft_json_add_text(json, "store", time->store);
    weft_json_add_text(json, "what", time->what);
    weft_json_add_fixed(json, "p50_ms", time->p50_ms, 3);
    weft_json_add_fixed(json, "p99_ms", time->p99_ms, 3);
    weft_json_add_i64(json, "runs", (int64_t)time->count);
    weft_json_end_object(json);
}

bool bench_report_json(const struct bench_report *report, const char *path)
{
    struct weft_buf buf;
    struct weft_json_writer json;
    weft_buf_init(&buf, 1 << 20);
    weft_json_writer_init(&json, &buf);
    weft_json_begin_array(&json);
    for (size_t i = 0; i < report->count; i++)
        put_row(&json, &report->row[i]);
    for (size_t i = 0; i < report->times; i++)
        put_time(&json, &report->time[i]);
    weft_json_end_array(&json);
    weft_buf_add_char(&buf, '\n');
    FILE *file = fopen(path, "w");
    bool good = file && fwrite(buf.data, 1, buf.size, file) == buf.size;
    good = file && fclose(file) == 0 && good;
    if (!good)
        perror(path);
    weft_buf_done(&buf);
    return good;
}

/* ---- What must hold -------------------------------------------------------------------------- */

static bool check(bool holds, const char *what, const struct bench_row *row, double value)
{
    (void)printf("  %-6s %-44s %-6s batch %4u, %u conns: %.2f\n", holds ? "ok" : "MISSED", what,
                 row->store, row->batch, row->connections, value);
    return holds;
}

static bool check_backlog(const struct bench_report *report, const struct bench_row *row)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct bench_row *fresh = &report->row[i];
        double share = row->per_s.middle / fresh->per_s.middle;
        if (strcmp(fresh->name, "fresh") == 0 && strcmp(fresh->store, row->store) == 0 &&
            fresh->batch == row->batch && fresh->connections == row->connections)
            return check(share >= 0.85, "with a backlog >= 0.85 of fresh", row, share);
    }
    return true;
}

static bool check_time(const char *which, double value_ms, double must_ms,
                       const struct bench_time *time)
{
    if (must_ms > 0)
        (void)printf("  %-6s %-44s %-6s %s %.2f ms < %.0f ms\n",
                     value_ms < must_ms ? "ok" : "MISSED", time->what, time->store, which, value_ms,
                     must_ms);
    return must_ms <= 0 || value_ms < must_ms;
}

static bool check_row(const struct bench_report *report, const struct bench_row *row)
{
    double per_s = row->per_s.middle;
    bool lifecycle = strcmp(row->name, "lifecycle") == 0, pg = strcmp(row->store, "pg") == 0;
    bool good = true;
    if (lifecycle && pg && row->batch >= 100)
        good &= check(ratio_of(row) >= 0.7, "share of the floor >= 0.70", row, ratio_of(row));
    if (lifecycle && pg && row->batch == 100)
        good &= check(row->wal_bytes <= 1800, "WAL <= 1.80 KB per lifecycle", row,
                      row->wal_bytes / 1000);
    if (lifecycle && !pg && row->batch == 500)
        good &=
            check(per_s >= 50000, "SQLite >= 50 k lifecycles/s, in thousands", row, per_s / 1000);
    if (strcmp(row->name, "backlog") == 0)
        good &= check_backlog(report, row);
    if (strcmp(row->name, "expiry") == 0)
        good &= check(100000 / per_s < 3, "100,000 expired leases < 3 s, in seconds", row,
                      100000 / per_s);
    if (strcmp(row->name, "retention") == 0)
        good &=
            check(per_s >= 30000, ">= 30 k executions removed/s, in thousands", row, per_s / 1000);
    if (row->must_per_s > 0) {
        char what[64];
        (void)snprintf(what, sizeof(what), "%s >= %.0f/s", row->name, row->must_per_s);
        good &= check(per_s >= row->must_per_s, what, row, per_s);
    }
    return good;
}

bool bench_report_checks(const struct bench_report *report, bool whole_size)
{
    bool good = true;
    (void)printf("\nWhat must hold%s:\n", whole_size ? "" : " (a short run: take no figure of it)");
    for (size_t i = 0; i < report->count; i++)
        good &= check_row(report, &report->row[i]);
    for (size_t i = 0; i < report->times; i++) {
        const struct bench_time *time = &report->time[i];
        good &= check_time("p50", time->p50_ms, time->must_p50_ms, time);
        good &= check_time("p99", time->p99_ms, time->must_ms, time);
    }
    return good;
}
