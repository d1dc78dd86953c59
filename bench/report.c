/* SPDX-License-Identifier: Apache-2.0 */

/* The table for people, the JSON for programs, and the promises with their figures. */

#include "bench/bench.h"

#include "base/arena.h"
#include "cmd/bench/hist.h"

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

struct bench_figure bench_middle(const struct bench_runs *runs)
{
    double value[BENCH_REPEATS_MAX];
    if (runs->count == 0)
        return (struct bench_figure){.middle = NAN, .low = NAN, .high = NAN};
    for (uint32_t i = 0; i < runs->count; i++)
        value[i] = runs->run[i].per_s;
    return middle_of(value, runs->count);
}

double bench_middle_wal(const struct bench_runs *runs)
{
    double value[BENCH_REPEATS_MAX];
    for (uint32_t i = 0; i < runs->count; i++)
        value[i] = runs->run[i].wal_bytes;
    return runs->count && !isnan(value[0]) ? middle_of(value, runs->count).middle : NAN;
}

double bench_middle_commits(const struct bench_runs *runs)
{
    double value[BENCH_REPEATS_MAX];
    for (uint32_t i = 0; i < runs->count; i++)
        value[i] = runs->run[i].commits;
    return runs->count && !isnan(value[0]) ? middle_of(value, runs->count).middle : NAN;
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
    (void)printf("%-10s %-6s %5s %5s %8s %12s %8s %12s %5s %6s %7s\n", "case", "store", "batch",
                 "conns", "per s", "(spread)", "floor/s", "(spread)", "ratio", "WAL B", "commits");
}

void bench_report_add(struct bench_report *report, const struct bench_row *row)
{
    char n[5][24], r[2][32];
    bench_progress("%s", "");
    if (report->count == 0)
        print_head();
    (void)printf("%-10s %-6s %5u %5u %8s %12s %8s %12s %5s %6s %7s\n", row->name, row->store,
                 row->batch, row->connections, number(n[0], row->per_s.middle, 0),
                 range(r[0], &row->per_s), number(n[1], row->floor.middle, 0),
                 range(r[1], &row->floor), number(n[2], ratio_of(row), 2),
                 number(n[3], row->wal_bytes, 0), number(n[4], row->commits, 3));
    (void)fflush(stdout);
    if (report->count < ROWS_MAX)
        report->row[report->count++] = *row;
}

void bench_time_of(const struct weft_hist *hist, struct bench_time *time)
{
    time->p50_ms = (double)weft_hist_at(hist, 0.5) / 1e3;
    time->p99_ms = (double)weft_hist_at(hist, 0.99) / 1e3;
    time->count = hist->count;
}

void bench_report_time(struct bench_report *report, const struct bench_time *time)
{
    bench_progress("%s", "");
    (void)printf("%-10s %-6s %-42s p50 %8.2f ms, p99 %8.2f ms, %llu runs\n", time->name,
                 time->store, time->what, time->p50_ms, time->p99_ms,
                 (unsigned long long)time->count);
    (void)fflush(stdout);
    if (report->times < TIMES_MAX)
        report->time[report->times++] = *time;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_number(FILE *file, const char *name, double value, int digits)
{
    char text[24];
    (void)fprintf(file, ", \"%s\": %s", name, isnan(value) ? "null" : number(text, value, digits));
}

bool bench_report_json(const struct bench_report *report, const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return false;
    }
    (void)fputs("[", file);
    for (size_t i = 0; i < report->count; i++) {
        const struct bench_row *row = &report->row[i];
        (void)fprintf(file,
                      "%s\n  {\"case\": \"%s\", \"store\": \"%s\", \"batch\": %u, "
                      "\"connections\": %u",
                      i ? "," : "", row->name, row->store, row->batch, row->connections);
        put_number(file, "per_s", row->per_s.middle, 1);
        put_number(file, "floor_per_s", row->floor.middle, 1);
        put_number(file, "floor_ratio", ratio_of(row), 3);
        put_number(file, "wal_bytes", row->wal_bytes, 1);
        put_number(file, "commits", row->commits, 4);
        (void)fputs("}", file);
    }
    for (size_t i = 0; i < report->times; i++) {
        const struct bench_time *time = &report->time[i];
        (void)fprintf(file, "%s\n  {\"case\": \"flow\", \"store\": \"%s\", \"what\": \"%s\"",
                      i + report->count ? "," : "", time->store, time->what);
        put_number(file, "p50_ms", time->p50_ms, 3);
        put_number(file, "p99_ms", time->p99_ms, 3);
        put_number(file, "runs", (double)time->count, 0);
        (void)fputs("}", file);
    }
    (void)fputs("\n]\n", file);
    if (fclose(file) == 0)
        return true;
    perror(path);
    return false;
}

/* ---- What must hold -------------------------------------------------------------------------- */

static void check(bool holds, const char *what, const struct bench_row *row, double value)
{
    (void)printf("  %-6s %-44s %-6s batch %4u, %u conns: %.2f\n", holds ? "ok" : "MISSED", what,
                 row->store, row->batch, row->connections, value);
}

static void check_backlog(const struct bench_report *report, const struct bench_row *row)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct bench_row *fresh = &report->row[i];
        if (strcmp(fresh->name, "fresh") == 0 && strcmp(fresh->store, row->store) == 0 &&
            fresh->batch == row->batch && fresh->connections == row->connections) {
            double share = row->per_s.middle / fresh->per_s.middle;
            check(share >= 0.85, "with a backlog >= 0.85 of fresh", row, share);
        }
    }
}

static void check_times(const struct bench_report *report)
{
    for (size_t i = 0; i < report->times; i++) {
        const struct bench_time *time = &report->time[i];
        if (time->must_ms > 0)
            (void)printf("  %-6s %-44s %-6s p99 %.2f ms < %.0f ms\n",
                         time->p99_ms < time->must_ms ? "ok" : "MISSED", time->what, time->store,
                         time->p99_ms, time->must_ms);
    }
}

void bench_report_checks(const struct bench_report *report, bool whole_size)
{
    (void)printf("\nWhat must hold%s:\n", whole_size ? "" : " (a short run: take no figure of it)");
    for (size_t i = 0; i < report->count; i++) {
        const struct bench_row *row = &report->row[i];
        bool lifecycle = strcmp(row->name, "lifecycle") == 0;
        bool pg = strcmp(row->store, "pg") == 0;
        if (lifecycle && pg && row->batch >= 100)
            check(ratio_of(row) >= 0.7, "share of the floor >= 0.70", row, ratio_of(row));
        if (lifecycle && pg && row->batch == 100)
            check(row->wal_bytes <= 1800, "WAL <= 1.80 KB per lifecycle", row,
                  row->wal_bytes / 1000);
        if (lifecycle && !pg && row->batch == 500)
            check(row->per_s.middle >= 50000, "SQLite >= 50 k lifecycles/s, in thousands", row,
                  row->per_s.middle / 1000);
        if (strcmp(row->name, "backlog") == 0)
            check_backlog(report, row);
        if (strcmp(row->name, "expiry") == 0)
            check(100000 / row->per_s.middle < 3, "100,000 expired leases < 3 s, in seconds", row,
                  100000 / row->per_s.middle);
        if (strcmp(row->name, "retention") == 0)
            check(row->per_s.middle >= 30000, ">= 30 k executions removed/s, in thousands", row,
                  row->per_s.middle / 1000);
    }
    check_times(report);
}
