/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Signals, timeouts, operators and cancels at many suspended executions, from several threads and
 * two replicas, in no order. Afterwards every answer must agree with the store: the kept
 * signals, the counted signals, and the end of each suspension.
 */

#include "race.h"
#include "waiting.h"

#include "engine/scan/pass.h"
#include "weft/weft.h"

enum { ROWS = 24, THREADS = 4, ROUNDS = 6, STEPS = 120, KEYS = 3, PLACES = 2, NEEDED = 4 };

/* One execution: the answers about it. Counters are shared by the threads. */
struct row {
    struct weft_claimed lease;
    struct wait_answer made;
    size_t kept[PLACES][KEYS]; /* signals that were answered as kept, by waitpoint and key */
    size_t by_signal, by_operator, cancels;
};

struct crew {
    struct weft_engine *engine;
    struct row *row;
    uint64_t seed;
    uint64_t timed_out;
    size_t wrong; /* answers that should not be */
};

/* NOLINTNEXTLINE(readability-non-const-parameter): the builtin writes it */
static void add_one(size_t *count)
{
    (void)__atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
}

static void send(struct crew *crew, struct row *row)
{
    static const char *const key[KEYS] = {"x", "y", "z"};
    size_t k = next_random(&crew->seed) % KEYS, place = next_random(&crew->seed) % PLACES;
    struct signal_answer sent = wait_signal(crew->engine, row->made.token[place], key[k]);
    bool kept = !sent.rc && sent.effect != WEFT_SIGNAL_DUPLICATE;
    crew->wrong += sent.rc && sent.rc != WEFT_NOT_LIVE;
    crew->wrong +=
        kept && sent.effect != WEFT_SIGNAL_RECORDED && sent.effect != WEFT_SIGNAL_RESUMED;
    if (kept)
        add_one(&row->kept[place][k]);
    if (kept && sent.effect == WEFT_SIGNAL_RESUMED)
        add_one(&row->by_signal);
}

static void steer(struct crew *crew, struct row *row, enum weft_steer_kind kind, size_t *count)
{
    struct weft_steered answer =
        steer_one(crew->engine, kind, &(struct weft_steer){.id = row->lease.id});
    crew->wrong += answer.err.rc && answer.err.rc != WEFT_NOT_LIVE;
    if (!answer.err.rc && answer.changed)
        add_one(count);
}

static void work(void *context)
{
    struct crew *crew = context;
    for (int step = 0; step < STEPS; step++) {
        struct row *row = &crew->row[next_random(&crew->seed) % ROWS];
        uint64_t what = next_random(&crew->seed) % 100, handled = 0;
        struct weft_err err;
        if (what < 90) {
            send(crew, row);
        } else if (what < 94) {
            steer(crew, row, WEFT_STEER_RESUME, &row->by_operator);
        } else if (what < 98) {
            steer(crew, row, WEFT_STEER_CANCEL, &row->cancels);
        } else {
            crew->wrong += wait_pass(crew->engine, WEFT_SCANNER_SUSPENSION_TIMEOUT, &handled, &err);
            crew->timed_out += handled;
        }
    }
}

/* Half of them with a timeout that has come. */
static void suspend_rows(struct race *race, int round, struct row *row)
{
    for (size_t i = 0; i < ROWS; i++) {
        char lane[32];
        (void)snprintf(lane, sizeof(lane), "lane-%d-%zu", round, i);
        row[i].lease = wait_lease(race->a, lane);
        row[i].made = wait_suspend_at(
            race->a, &row[i].lease, "ab",
            &(struct weft_suspend){.condition = "{\"count\":{\"n\":4,\"of\":\"signals\"}}",
                                   .timeout_ms = i % 2 ? 1000 : 0,
                                   .on_timeout = WEFT_ON_TIMEOUT_RESUME});
    }
    race_forward(race, 1000);
}

/* Mismatches of one execution; *timed_out counts the executions that the timeout resumed. */
static size_t judge_row(struct race *race, const struct row *row, uint64_t *timed_out)
{
    char text[WAIT_TEXT];
    size_t bad = 0, kept = 0, stored = 0;
    wait_describe(race->a, &row->lease.id, text);
    for (size_t place = 0; place < PLACES; place++)
        for (size_t k = 0; k < KEYS; k++) {
            bad += row->kept[place][k] > 1; /* a key counts once */
            kept += row->kept[place][k];
        }
    for (const char *at = text; (at = strstr(at, "; signal ")) != NULL; at++)
        stored++;
    bool by_timeout = strstr(text, "by 2") != NULL;
    size_t ends = row->by_signal + row->by_operator + by_timeout;
    *timed_out += by_timeout;
    bad += stored != kept;
    bad += ends > 1 || row->cancels > 1;
    bad += (row->by_signal > 0) != (strstr(text, "by 1") != NULL);
    bad += (row->by_operator > 0) != (strstr(text, "by 3") != NULL);
    bad += row->by_signal > 0 && kept != NEEDED;
    bad += row->by_signal == 0 && kept >= NEEDED;
    enum weft_state wanted = row->cancels ? WEFT_STATE_CANCELLED
                             : ends       ? WEFT_STATE_READY
                                          : WEFT_STATE_SUSPENDED;
    bad += state_at(race->b, &row->lease.id) != wanted;
    if (bad)
        printf("# %zu kept, signals %zu, operators %zu, cancels %zu: %s\n", kept, row->by_signal,
               row->by_operator, row->cancels, text);
    if (weft_state_living(wanted))
        (void)steer_one(race->a, WEFT_STEER_CANCEL, &(struct weft_steer){.id = row->lease.id});
    return bad;
}

RACE(all_that_ends_suspensions_at_once)
{
    uint64_t seed = 88172645463325252u;
    size_t bad = 0, resumed = 0;
    int rounds = soaking() ? ROUNDS * 20 : ROUNDS;
    for (int round = 0; round < rounds; round++) {
        struct row row[ROWS] = {{.cancels = 0}};
        struct crew crew[THREADS] = {{0}};
        struct task task[THREADS];
        uint64_t told = 0, timed_out = 0;
        suspend_rows(race, round, row);
        for (size_t t = 0; t < THREADS; t++) {
            crew[t] = (struct crew){
                .engine = t % 2 ? race->a : race->b, .row = row, .seed = next_random(&seed)};
            task[t] = (struct task){.run = work, .context = &crew[t]};
            task_start(&task[t]);
        }
        for (size_t t = 0; t < THREADS; t++) {
            task_join(&task[t]);
            told += crew[t].timed_out;
            bad += crew[t].wrong;
        }
        for (size_t i = 0; i < ROWS; i++) {
            bad += judge_row(race, &row[i], &timed_out);
            resumed += row[i].by_signal;
        }
        bad += told != timed_out;
    }
    is_int(bad, 0, "in %d rounds every answer agrees with the store", rounds);
    ok(resumed > 0, "%zu executions were resumed by signals", resumed);
    race_no_deadlock(race);
}
