/* SPDX-License-Identifier: Apache-2.0 */

/* Limits: concurrency, windows and rates, alone and against a simulation of workers. */

#include "core/limit.h"

#include "base/clock.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#define NOW_US ((weft_usec)1700000000 * WEFT_SECOND)

static const struct {
    const char *name;
    struct weft_limits limits;
    struct weft_limit_now now;
    int64_t room;
    enum weft_limit_kind by;
    weft_usec next_us; /* from now; 0: never */
} rooms[] = {
    {"no limit", {0}, {.ready = 5, .running = 5}, INT64_MAX, WEFT_LIMIT_NONE, 0},
    {"free slots", {.max_running = 5}, {.ready = 1, .running = 2}, 2, WEFT_LIMIT_RUNNING, 0},
    {"all slots taken", {.max_running = 3}, {.ready = 1, .running = 2}, 0, WEFT_LIMIT_RUNNING, 0},
    {"a limit that was lowered", {.max_running = 1}, {.running = 4}, 0, WEFT_LIMIT_RUNNING, 0},
    {"room in a window",
     {.window = {10, 1000}},
     {.ready = 2, .started = 3},
     5,
     WEFT_LIMIT_WINDOW,
     0},
    {"a full window opens when its oldest start leaves it",
     {.window = {3, 1000}},
     {.started = 3, .oldest_us = NOW_US - 100 * WEFT_MS},
     0,
     WEFT_LIMIT_WINDOW,
     910 * WEFT_MS},
    {"a full window gathers room for a hundredth of its span",
     {.window = {3, 1000}},
     {.started = 3, .oldest_us = NOW_US - 1009 * WEFT_MS},
     0,
     WEFT_LIMIT_WINDOW,
     10 * WEFT_MS},
    {"a window full of executions that wait for workers opens a span from now at the earliest",
     {.window = {3, 1000}},
     {.ready = 3},
     0,
     WEFT_LIMIT_WINDOW,
     1010 * WEFT_MS},
    {"a fresh bucket is full", {.rate = {10, 1000, 4}}, {0}, 4, WEFT_LIMIT_RATE, 0},
    {"burst is the limit if it is not given", {.rate = {10, 1000, 0}}, {0}, 10, WEFT_LIMIT_RATE, 0},
    {"an empty bucket has its next token after a tenth of a second",
     {.rate = {10, 1000, 4}},
     {.full_ns = (NOW_US + 400 * WEFT_MS) * 1000},
     0,
     WEFT_LIMIT_RATE,
     100 * WEFT_MS},
    {"ready executions are no second burst",
     {.rate = {10, 1000, 4}},
     {.ready = 3},
     1,
     WEFT_LIMIT_RATE,
     0},
    {"the lowest limit decides",
     {.max_running = 9, .window = {5, 1000}, .rate = {7, 1000, 0}},
     {0},
     5,
     WEFT_LIMIT_WINDOW,
     0},
};

static void test_room(void)
{
    for (size_t i = 0; i < WEFT_LEN(rooms); i++) {
        struct weft_limit_now now = rooms[i].now;
        now.now_us = NOW_US;
        struct weft_limit_room got = weft_limit_room(&rooms[i].limits, &now);
        ok(got.room == rooms[i].room && got.by == rooms[i].by, "%s: the room and its limit",
           rooms[i].name);
        ok(got.next_us == (rooms[i].next_us ? NOW_US + rooms[i].next_us : WEFT_NEVER),
           "%s: when time alone makes room", rooms[i].name);
    }
}

static void test_check(void)
{
    static const struct {
        const char *name;
        struct weft_limits limits;
        const char *field; /* NULL: allowed */
    } row[] = {
        {"none", {0}, NULL},
        {"all", {.max_running = 1, .window = {1, 1}, .rate = {1, 1, 1000}}, NULL},
        {"a negative number of slots", {.max_running = -1}, "max_running"},
        {"a window without a span", {.window = {5, 0}}, "window.per_ms"},
        {"a window without a limit", {.window = {0, 5}}, "window.limit"},
        {"a span of more than 30 days", {.window = {5, WEFT_LIMIT_PER_MAX + 1}}, "window.per_ms"},
        {"a rate without a span", {.rate = {5, 0, 0}}, "rate.per_ms"},
        {"a burst without a rate", {.rate = {0, 0, 5}}, "rate.limit"},
        {"a burst of more than 1,000 spans", {.rate = {1, 1, 1001}}, "rate.burst"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_err err = {0};
        enum weft_rc rc = weft_limits_check(&row[i].limits, &err);
        ok(row[i].field ? rc == WEFT_INVALID_VALUE && strcmp(err.field, row[i].field) == 0
                        : rc == WEFT_OK,
           "%s: %s", row[i].name, row[i].field ? "refused by its field" : "allowed");
    }
}

/* A gate with endless work and workers that start what is ready after a random time. */
struct world {
    struct weft_limits limits;
    struct weft_limit_now now;
    weft_usec start[20000], ready_until[20000]; /* when each admitted one starts */
    size_t starts, waiting;
    unsigned seed;
};

static void look(struct world *w, weft_usec now_us)
{
    weft_usec span_us = w->limits.window.per_ms * WEFT_MS;
    span_us += span_us / WEFT_WINDOW_SLACK;
    w->now.now_us = now_us;
    w->now.ready = (int64_t)w->waiting;
    w->now.started = w->now.oldest_us = 0;
    for (size_t i = w->starts; i > 0 && w->start[i - 1] > now_us - span_us; i--) {
        w->now.started++;
        w->now.oldest_us = w->start[i - 1];
    }
}

/* Runs for `for_us`, looking when the rules say so or something starts. */
static void simulate(struct world *w, weft_usec for_us, weft_usec late_us)
{
    weft_usec at_us = NOW_US, next_us = NOW_US;
    while (at_us < NOW_US + for_us) {
        size_t kept = 0;
        for (size_t i = 0; i < w->waiting; i++) {
            if (w->ready_until[i] > at_us)
                w->ready_until[kept++] = w->ready_until[i];
            else
                w->start[w->starts++] = at_us;
        }
        bool started = kept < w->waiting;
        w->waiting = kept;
        if (at_us >= next_us || started) {
            look(w, at_us);
            struct weft_limit_room room = weft_limit_room(&w->limits, &w->now);
            for (int64_t i = 0; i < room.room; i++)
                w->ready_until[w->waiting++] = at_us + rand_r(&w->seed) % (late_us + 1);
            if (w->limits.rate.limit && room.room > 0)
                w->now.full_ns = weft_rate_take(&w->limits.rate, w->now.full_ns, at_us, room.room);
            look(w, at_us);
            next_us = weft_limit_room(&w->limits, &w->now).next_us;
        }
        at_us += WEFT_MS;
    }
}

static size_t most_in_span(const struct world *w, weft_usec span_us)
{
    size_t most = 0, from = 0;
    for (size_t i = 0; i < w->starts; i++) {
        while (w->start[i] - w->start[from] >= span_us)
            from++;
        if (i - from + 1 > most)
            most = i - from + 1;
    }
    return most;
}

static void test_window_simulated(void)
{
    static const weft_usec late[] = {0, 3 * WEFT_MS, 700 * WEFT_MS};
    for (size_t i = 0; i < WEFT_LEN(late); i++) {
        struct world *w = calloc(1, sizeof(*w));
        w->limits.window = (struct weft_window){100, 1000};
        w->seed = (unsigned)i + 1;
        simulate(w, 60 * WEFT_SECOND, late[i]);
        ok(most_in_span(w, WEFT_SECOND) <= 100,
           "workers late by up to %d ms: no second has more than 100 starts (%zu)",
           (int)(late[i] / WEFT_MS), most_in_span(w, WEFT_SECOND));
        if (late[i] < 100 * WEFT_MS)
            ok(w->starts >= 5850, "60 seconds have at least 5,850 starts (%zu)", w->starts);
        free(w);
    }
}

static void test_rate_simulated(void)
{
    struct world *w = calloc(1, sizeof(*w));
    w->limits.rate = (struct weft_rate){50, 1000, 20};
    w->seed = 7;
    simulate(w, 60 * WEFT_SECOND, 2 * WEFT_MS);
    ok(w->starts >= 2940 && w->starts <= 3020 + 1, "60 s at 50 a second and a burst of 20: %zu",
       w->starts);
    ok(most_in_span(w, WEFT_SECOND) <= 71, "no second has more than the rate and the burst (%zu)",
       most_in_span(w, WEFT_SECOND));
    free(w);
}

int main(void)
{
    test_room();
    test_check();
    test_window_simulated();
    test_rate_simulated();
    return tap_done();
}
