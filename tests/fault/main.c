/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fault loop. Each sequence (tests/sequence.c) is struck at the first call it makes to the
 * store, at the second, the third, and so on until a run is over before the strike comes: by
 * contention, by a connection lost before or behind the call, by a full disk, and by the death of
 * the process before or behind the call. After each strike another process looks at the store.
 *
 * What must hold:
 *   - contention and connections lost are not noticed by the caller. SQLite cannot say what became
 *     of a commit that was not answered; then, and only then, the answer is outcome_unknown;
 *   - an answered call is in the store; an unanswered call is there wholly or not at all;
 *   - a repeat, where weft.h allows it, gets the right answer and doubles nothing;
 *   - epochs never go back, and the invariants of the whole store hold.
 *
 * A process that dies is a child, forked while its parent has nothing open. Most of the time goes
 * into waiting for connections, so several workers share the sequences out among themselves; what
 * they found lies in shared memory, and the points are given when all have ended.
 */

#include "budget.h"
#include "flow.h"
#include "sequence.h"
#include "wait.h"

#include "base/clock.h"
#include "base/id.h"
#include "engine/engine.h"
#include "engine/scan/pass.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const char *name;
    enum weft_fault_kind kind;
    bool kills;
} faults[] = {
    {"fail", WEFT_FAULT_FAIL, false},  {"lose", WEFT_FAULT_LOSE, false},
    {"full", WEFT_FAULT_FULL, false},  {"lose_reply", WEFT_FAULT_LOSE_REPLY, false},
    {"crash", WEFT_FAULT_CRASH, true}, {"crash_after", WEFT_FAULT_CRASH_AFTER, true},
};

enum { STRIKES_MAX = 200, WORKERS = 3, SEQUENCES_MAX = 32 };

struct finding {
    bool ran;
    uint64_t calls; /* how many there are to be struck */
    size_t bad;
};

/* Written by the workers. */
struct shared {
    size_t taken; /* how many sequences have been taken by workers */
    struct finding finding[SEQUENCES_MAX][WEFT_LEN(faults)];
    struct heard heard[WORKERS]; /* also by the children of each */
};

/* What the loop over one sequence works with. */
struct loop {
    const struct sequence *sequence;
    struct place place;
    struct weft_fault fault;
    const struct weft_driver *driver;
    struct weft_engine *clean;  /* NULL while a child is at work on SQLite */
    struct weft_engine *faulty; /* for the faults that leave the process alive */
    struct heard *heard;        /* shared with children */
    int number;                 /* of the run */
    PGconn *raw;                /* pg: looks whether the session of a dead child is gone */
};

static void report(const struct loop *loop, size_t fault, uint64_t at, const char *wrong)
{
    printf("# %s, %s at call %llu: %s (answered %d, %s %s)\n", loop->sequence->name,
           faults[fault].name, (unsigned long long)at, wrong, loop->heard->answered,
           weft_rc_wire(loop->heard->rc), loop->heard->text);
}

/* ---- What the caller may hear ---------------------------------------------------------------- */

static bool all_items_ok(const struct heard *heard)
{
    for (size_t i = 0; i < ITEMS; i++)
        if (heard->item[i])
            return false;
    return true;
}

static bool any_item_is(const struct heard *heard, enum weft_rc rc)
{
    for (size_t i = 0; i < ITEMS; i++)
        if (heard->item[i] == rc)
            return true;
    return false;
}

/* The mistake in the answer alone, given the fault; NULL when there is none. */
static const char *judge_answer(const struct loop *loop, enum weft_fault_kind kind)
{
    const struct heard *heard = loop->heard;
    bool good = heard->rc == WEFT_OK && all_items_ok(heard);
    if (!heard->answered)
        return "the call did not come back";
    if (good && loop->sequence->counts && heard->number != ITEMS)
        return "the number in the answer is wrong";
    if (good)
        return NULL; /* see look_after() for a full disk that was not reported */
    if (kind == WEFT_FAULT_FULL)
        return heard->rc == WEFT_STORAGE_FULL || any_item_is(heard, WEFT_STORAGE_FULL)
                   ? NULL
                   : "a full disk was not reported";
    bool may_be_unknown = !on_pg() && kind != WEFT_FAULT_FAIL;
    bool unknown = heard->unknown || any_item_is(heard, WEFT_UNAVAILABLE);
    return may_be_unknown && unknown ? NULL : "the caller got an error that could be retried";
}

/* ---- After the strike ------------------------------------------------------------------------ */

static const char *claim_again(struct run *run, struct weft_engine *clean)
{
    struct weft_claimed item[ITEMS];
    struct weft_pass_report pass;
    struct weft_err err;
    weft_clock_set(weft_engine_clock(clean), run_later(run));
    if (weft_engine_pass(clean, WEFT_SCANNER_LEASE_EXPIRY, NULL, &pass, &err))
        return "leases without a known holder cannot be expired";
    if (take_work(clean, run->lane, ITEMS, item) != ITEMS)
        return "executions without a holder cannot be claimed";
    for (size_t i = 0; i < ITEMS; i++)
        if (item[i].epoch < 1 + (pass.handled > 0))
            return "an epoch was given twice";
    return NULL;
}

/* What may not be repeated blindly is repeated after a look. */
static const char *go_on_after_a_look(struct run *run, struct weft_engine *clean)
{
    struct heard again = {0};
    if (run->sequence->stmt == WEFT_STMT_CLAIM)
        return claim_again(run, clean);
    if (run->sequence->stmt != WEFT_STMT_OUTCOME_BACK || run_done_count(run, clean, &again) > 0)
        return NULL;
    run->sequence->act(run, clean, &again);
    return again.rc == WEFT_OK && all_items_ok(&again) ? NULL : "it cannot be done any more";
}

static const char *repeat(struct run *run, struct weft_engine *clean, const struct heard *first)
{
    struct heard again = {0};
    run->sequence->act(run, clean, &again);
    weft_clock_set(weft_engine_clock(clean), run->now_us);
    if (again.rc)
        return "a repeat fails";
    for (size_t i = 0; i < ITEMS; i++) {
        if (again.item[i] && again.item[i] != run->sequence->repeat_rc)
            return "a repeat gets another answer";
        bool promised = first->answered && !first->rc && !first->item[i];
        if (promised && weft_id_cmp(&first->id[i], &again.id[i]) != 0)
            return "a repeat gets another id";
    }
    if (run_done_count(run, clean, &again) != ITEMS)
        return "it is not done after a repeat";
    return run_judge(run, clean, &again);
}

static const char *look_after(struct loop *loop, struct run *run, enum weft_fault_kind kind)
{
    const char *wrong = run_judge(run, loop->clean, loop->heard);
    if (!wrong && kind == WEFT_FAULT_FULL && !loop->sequence->full_may_be_done && loop->heard->rc &&
        run_done_count(run, loop->clean, loop->heard) > 0)
        wrong = "it failed for want of space and is there all the same";
    /* Behind the commit comes what is only a hint, like the name of a queue that is new here. */
    if (!wrong && kind == WEFT_FAULT_FULL && !loop->heard->rc && all_items_ok(loop->heard) &&
        run_done_count(run, loop->clean, loop->heard) != ITEMS)
        wrong = "a full disk was not reported";
    if (!wrong)
        wrong = loop->sequence->no_repeat ? go_on_after_a_look(run, loop->clean)
                                          : repeat(run, loop->clean, loop->heard);
    return wrong;
}

/* ---- Striking -------------------------------------------------------------------------------- */

/* In this process. Returns whether the plan struck before the call was over. */
static bool strike_here(struct loop *loop, struct run *run, enum weft_fault_kind kind, uint64_t at)
{
    weft_clock_set(weft_engine_clock(loop->faulty), run->now_us);
    loop->fault.kind = kind;
    loop->fault.struck = false;
    loop->fault.strike_at = at;
    run->sequence->act(run, loop->faulty, loop->heard);
    loop->fault.strike_at = 0;
    return loop->fault.struck;
}

static void act_and_die(struct loop *loop, struct run *run, enum weft_fault_kind kind, uint64_t at)
{
    struct place mine = loop->place;
    size_t used = strlen(mine.url);
    if (on_pg())
        (void)snprintf(mine.url + used, sizeof(mine.url) - used, "&application_name=child_%s",
                       mine.schema);
    struct weft_engine *engine = place_open(&mine, loop->driver, run->now_us);
    loop->fault.kind = kind;
    loop->fault.strike_at = at;
    run->sequence->act(run, engine, loop->heard);
    loop->fault.strike_at = 0;
    weft_engine_close(engine);
    _exit(0);
}

/* Until the server has noticed, the dead hold their locks and passes step around them. */
static void await_funeral(struct loop *loop)
{
    char sql[200];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT (count(*) = 0)::int FROM pg_stat_activity "
                   "WHERE application_name = 'child_%s'",
                   loop->place.schema);
    if (!raw_wait(&loop->place, loop->raw, sql))
        bail_out("the session of a dead process stays");
}

/* In a child. Everything of SQLite is closed first: its locks would not survive the fork. */
static bool strike_child(struct loop *loop, struct run *run, enum weft_fault_kind kind, uint64_t at)
{
    if (!on_pg()) {
        weft_engine_close(loop->clean);
        weft_engine_close(loop->faulty);
        loop->clean = loop->faulty = NULL;
    }
    (void)fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        bail_out("cannot fork");
    if (child == 0)
        act_and_die(loop, run, kind, at);
    int status = 0;
    (void)waitpid(child, &status, 0);
    if (!loop->clean)
        loop->clean = place_open(&loop->place, NULL, run->now_us);
    if (loop->raw)
        await_funeral(loop);
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (!killed && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        bail_out("a child ended in another way: status %d", status);
    return killed;
}

/* One strike; NULL when all is well. *ret_struck: the strike came before the end. */
static const char *strike_once(struct loop *loop, size_t fault, uint64_t at, bool *ret_struck)
{
    struct run run;
    run_init(&run, loop->sequence, &loop->place, ++loop->number);
    if (!loop->clean)
        loop->clean = place_open(&loop->place, NULL, run.now_us);
    weft_clock_set(weft_engine_clock(loop->clean), run.now_us);
    loop->sequence->prepare(&run, loop->clean);
    *loop->heard = (struct heard){0};
    const char *wrong = NULL;
    if (faults[fault].kills) {
        *ret_struck = strike_child(loop, &run, faults[fault].kind, at);
        if (*ret_struck && loop->heard->answered)
            wrong = "it answered and died in the call";
    } else {
        if (!loop->faulty)
            loop->faulty = place_open(&loop->place, loop->driver, run.now_us);
        *ret_struck = strike_here(loop, &run, faults[fault].kind, at);
    }
    enum weft_fault_kind kind = *ret_struck ? faults[fault].kind : WEFT_FAULT_NONE;
    if (!*ret_struck || !faults[fault].kills)
        wrong = judge_answer(loop, kind);
    if (!wrong)
        wrong = look_after(loop, &run, kind);
    run_done(&run, loop->clean);
    return wrong;
}

static void loop_fault(struct loop *loop, size_t fault, struct finding *finding)
{
    uint64_t at = 1;
    for (bool struck = true; struck && at <= STRIKES_MAX; at += struck) {
        const char *wrong = strike_once(loop, fault, at, &struck);
        finding->bad += wrong != NULL;
        if (wrong)
            report(loop, fault, at, wrong);
    }
    finding->calls = at - 1;
    finding->ran = true;
}

static void loop_sequence(const struct sequence *sequence, struct heard *heard,
                          struct finding *finding)
{
    struct loop loop = {.sequence = sequence, .heard = heard};
    weft_usec begun_us = weft_boot_us();
    loop.fault.inner = on_pg() ? &weft_driver_pg : &weft_driver_sqlite;
    loop.driver = weft_fault_install(&loop.fault);
    place_init(&loop.place, sequence->name);
    loop.raw = on_pg() ? raw_open(&loop.place) : NULL;
    for (size_t i = 0; i < WEFT_LEN(faults); i++)
        loop_fault(&loop, i, &finding[i]);
    weft_engine_close(loop.faulty);
    weft_engine_close(loop.clean);
    PQfinish(loop.raw);
    place_done(&loop.place);
    printf("# %s took %lld ms\n", sequence->name,
           (long long)((weft_boot_us() - begun_us) / WEFT_MS));
    (void)fflush(stdout);
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc < 2;
}

static bool runs(const struct sequence *sequence, int argc, char **argv)
{
    return wanted(sequence->name, argc, argv) && (on_pg() || !sequence->pg_only);
}

/*
 * The number of a sequence, counted from 1, for a worker that has nothing to do; 0: none is left.
 * The last of the list are the longest and go first, so that the workers end together.
 */
static size_t take_next(struct shared *shared)
{
    size_t taken = __atomic_fetch_add(&shared->taken, 1, __ATOMIC_RELAXED);
    return taken < sequence_count ? sequence_count - taken : 0;
}

static void run_workers(struct shared *shared, int argc, char **argv)
{
    pid_t worker[WORKERS];
    (void)fflush(stdout);
    for (size_t w = 0; w < WORKERS; w++) {
        worker[w] = fork();
        if (worker[w] < 0)
            bail_out("cannot fork");
        if (worker[w] > 0)
            continue;
        for (size_t i = take_next(shared); i > 0; i = take_next(shared))
            if (runs(&sequences[i - 1], argc, argv))
                loop_sequence(&sequences[i - 1], &shared->heard[w], shared->finding[i - 1]);
        _exit(0);
    }
    for (size_t w = 0; w < WORKERS; w++) {
        int status = 0;
        (void)waitpid(worker[w], &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            ok(false, "worker %zu ended with status %d", w, status);
    }
}

int main(int argc, char **argv)
{
    tests_begin("fault");
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || sequence_count > SEQUENCES_MAX)
        bail_out("no shared memory");
    run_workers(shared, argc, argv);
    for (size_t i = 0; i < sequence_count; i++)
        for (size_t k = 0; k < WEFT_LEN(faults) && runs(&sequences[i], argc, argv); k++) {
            const struct finding *found = &shared->finding[i][k];
            ok(found->ran && found->bad == 0 && found->calls > 1 && found->calls < STRIKES_MAX,
               "%s: %s at each of %llu calls", sequences[i].name, faults[k].name,
               (unsigned long long)found->calls);
        }
    (void)munmap(shared, sizeof(*shared));
    flow_faults(wanted, argc, argv);
    wait_faults(wanted, argc, argv);
    budget_faults(wanted, argc, argv);
    return tests_end();
}
