/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fault loop over flows. Each sequence is run once in peace; then it is struck at each of its
 * calls to the store, like those of sequence.c, with the cascades that belong to it. Afterwards the
 * call is repeated, as a client would, and what the scanners do is done: cascade, dispatch, drain.
 * Whatever struck and wherever, every member, every join and the flow end up as they did in peace.
 */

#include "flow.h"
#include "direct.h"

#include "base/arena.h"
#include "engine/admin/doctor.h"
#include "engine/engine.h"
#include "engine/flow/cascade.h"
#include "engine/flow/flow.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/leases.h"
#include "engine/tx/tx.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NODES_MAX = 8, CALLS_MAX = 400, LETTERS = 26, TEXT_MAX = 400 };

/* One run: a flow of its own. */
struct play {
    const struct flow_play *of;
    char key[32];
    struct weft_id flow, id[NODES_MAX];
    struct weft_claimed lease; /* of the first node */
};

struct flow_play {
    const char *name;
    const char *graph; /* "a; b:a; c:a,b"; "!" behind the name: any of its upstreams */
    const char *ended; /* nodes that have succeeded before the call */
    void (*act)(struct play *play, struct weft_engine *engine);
};

/* To die before a call is to die behind the one before it. */
static const struct {
    const char *name;
    enum weft_fault_kind kind;
} faults[] = {
    {"fail", WEFT_FAULT_FAIL},         {"lose", WEFT_FAULT_LOSE},
    {"full", WEFT_FAULT_FULL},         {"lose_reply", WEFT_FAULT_LOSE_REPLY},
    {"crash", WEFT_FAULT_CRASH_AFTER},
};

/* ---- Graphs ---------------------------------------------------------------------------------- */

static void submit(struct play *play, struct weft_engine *engine)
{
    char text[128], *rest = text, *part;
    const char *after[NODES_MAX][NODES_MAX];
    struct weft_node node[NODES_MAX] = {{0}};
    struct weft_flow_submitted answer = {.node = play->id};
    struct weft_err err = {0};
    size_t count = 0;
    (void)snprintf(text, sizeof(text), "%s", play->of->graph);
    while ((part = strsep(&rest, ";")) != NULL) {
        struct weft_node *at = &node[count];
        char *names = part + strspn(part, " "), *name;
        char *own = strsep(&names, ":");
        at->join = own[1] == '!' ? WEFT_JOIN_ANY : WEFT_JOIN_ALL;
        own[1] = '\0';
        at->name = at->spec.kind = own;
        at->after = after[count];
        while (names && (name = strsep(&names, ",")) != NULL)
            after[count][at->after_count++] = name;
        count++;
    }
    const struct weft_flow_spec spec = {.key = play->key, .nodes = node, .node_count = count};
    if (!engine_flow_submit(engine, "default", &spec, 1, &answer, &err) && !answer.err.rc)
        play->flow = answer.id;
}

static struct weft_claimed take(struct weft_engine *engine, const char *kind)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_claim_result result = {0};
    struct weft_claimed lease = {0};
    struct weft_err err = {0};
    const struct weft_claim claim = {
        .worker = "worker", .kinds = &kind, .kind_count = 1, .max = 1, .lease_ms = 86400000};
    if (weft_engine_claim(engine, "default", &claim, 1, arena, &result, &err) || result.count != 1)
        bail_out("%s cannot be claimed", kind);
    lease.id = result.item[0].id;
    lease.epoch = result.item[0].epoch;
    weft_arena_free(arena);
    return lease;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void complete(struct play *play, struct weft_engine *engine)
{
    struct weft_lease_answer answer;
    struct weft_err err;
    const struct weft_complete item = {.id = play->lease.id, .epoch = play->lease.epoch};
    (void)!engine_complete(engine, &item, 1, &answer, &err);
}

static void fail(struct play *play, struct weft_engine *engine)
{
    struct weft_lease_answer answer;
    struct weft_err err;
    const struct weft_failure item = {
        .id = play->lease.id, .epoch = play->lease.epoch, .permanent = true};
    (void)!engine_fail(engine, &item, 1, &answer, &err);
}

static void cancel(struct play *play, struct weft_engine *engine)
{
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = play->flow, .how = WEFT_FLOW_CANCEL_PENDING, .reason = "enough"};
    enum weft_flow_state state;
    struct weft_err err;
    struct weft_flow_drain drain;
    (void)!weft_engine_flow_cancel(engine, &args, &state, &drain, &err);
}

/* Behind what has ended and what runs. A repeat is refused where the first was carried out. */
static void grow(struct play *play, struct weft_engine *engine)
{
    static const char *const after[] = {"a", "b"};
    static const struct weft_node node[] = {
        {.name = "x", .spec = {.kind = "x"}, .after = after + 1, .after_count = 1},
        {.name = "y", .spec = {.kind = "y"}, .after = after, .after_count = 2},
    };
    struct weft_id id[WEFT_LEN(node)];
    struct weft_flow_submitted answer = {.node = id};
    struct weft_err err;
    const struct weft_flow_growth growth = {.ns = "default",
                                            .flow = play->flow,
                                            .revision = 1,
                                            .nodes = node,
                                            .node_count = WEFT_LEN(node)};
    (void)!engine_flow_grow(engine, &growth, &answer, &err);
}

/* Not to be repeated blindly: who does not know looks first. */
static void replay(struct play *play, struct weft_engine *engine)
{
    struct weft_steered answer;
    struct weft_err err;
    const struct weft_steer item = {.id = play->lease.id};
    const struct weft_steering steering = {
        .kind = WEFT_STEER_REPLAY, .ns = "default", .item = &item, .count = 1};
    (void)!engine_steer(engine, &steering, &answer, &err);
}

static const struct flow_play plays[] = {
    {"flow_submit", "a; b:a; c:a,b", "", submit},
    {"flow_fan_out", "a; b:a; c:a; d:a; e:b,c", "", complete},
    {"flow_fan_in", "a; b; c:a,b; d:c", "b", complete},
    {"flow_skip_chain", "a; b:a; c:b; d:a", "", fail},
    {"flow_siblings", "a; b; c; d!:a,b,c; e:c", "", complete},
    {"flow_siblings_wait", "a; b; c; d!:b,c; e:a,b", "c", fail},
    {"flow_cancel", "a; b; c:a; d:c", "", cancel},
    {"flow_grow", "a; b; c:a", "b", grow},
    {"flow_replay", "a; b:a; c:b; d:a,b", "", replay},
};

/* ---- What came of it ------------------------------------------------------------------------- */

static void prepare(struct play *play, const struct flow_play *of, int number,
                    struct weft_engine *clean)
{
    *play = (struct play){.of = of};
    (void)snprintf(play->key, sizeof(play->key), "%s-%d", of->name, number);
    if (of->act == submit)
        return;
    submit(play, clean);
    for (const char *at = of->ended; *at; at++) {
        play->lease = take(clean, (const char[]){*at, '\0'});
        complete(play, clean);
    }
    play->lease = take(clean, "a");
    if (of->act == replay)
        fail(play, clean);
}

/* What the scanners find, done until there is nothing. */
static void scan(const struct play *play, struct weft_engine *clean)
{
    struct weft_err err = {0};
    struct weft_dispatched done = {0};
    struct weft_flow_drain drain = {.flow = play->flow};
    if (weft_engine_cascade(clean, &play->flow, 1, &err) ||
        weft_siblings_cancel(clean, &play->flow, 1, &done, &err) ||
        weft_engine_cascade(clean, &play->flow, 1, &err) ||
        weft_engine_flow_drain(clean, &drain, &err) ||
        weft_engine_cascade(clean, &play->flow, 1, &err))
        bail_out("%s: the scanners fail: %s", play->of->name, err.text);
}

/* Every member with its state and join, then the flow. */
static void describe(const struct play *play, struct weft_engine *clean, char *out, size_t size)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call page, read;
    struct weft_rows rows = {0}, flow = {0};
    struct weft_err err = {0};
    struct weft_id first = {0};
    size_t used = 0;
    *weft_call_flow_page(&page, arena) =
        (struct weft_flow_page_in){.flow = play->flow, .after = first, .batch = NODES_MAX};
    weft_call_flow_read(&read, arena)->id = play->flow;
    if (weft_tx_once(clean, WEFT_TX_READ, &page, arena, &rows, &err) ||
        weft_tx_once(clean, WEFT_TX_READ, &read, arena, &flow, &err))
        bail_out("cannot read a flow: %s", err.text);
    for (size_t at = 0; at < rows.count * LETTERS; at++) { /* in the order of their names */
        size_t row = at % rows.count;
        const struct weft_flow_page_out *found = &weft_out_flow_page(&rows)[row];
        if (found->name[0] != (char)('a' + at / rows.count))
            continue;
        const char *reason = found->reason;
        used +=
            (size_t)snprintf(out + used, size - used, "%s %s %d %s; ", found->name,
                             weft_state_name(found->state), found->fired, reason ? reason : "-");
    }
    const struct weft_flow_read_out *read_row = weft_out_flow_read(&flow);
    (void)snprintf(out + used, size - used, "flow %d, revision %d, cancel %d",
                   flow.count ? read_row->flow_head.state : -1,
                   flow.count ? read_row->flow_head.revision : -1,
                   flow.count ? read_row->flow_head.cancel : -1);
    weft_arena_free(arena);
}

/* Members that live are ended, so that claims of the next run are alone. */
static void clear(const struct play *play, struct weft_engine *clean)
{
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = play->flow, .how = WEFT_FLOW_CANCEL_ALL};
    enum weft_flow_state state;
    struct weft_err err;
    if (weft_engine_flow_cancel(clean, &args, &state, NULL, &err) == WEFT_OK)
        scan(play, clean);
}

/* ---- Striking -------------------------------------------------------------------------------- */

struct loop {
    struct place place;
    struct weft_fault fault;
    const struct weft_driver *driver;
    struct weft_engine *clean, *faulty; /* NULL: not open */
    PGconn *raw;                        /* pg: looks whether the session of a dead child is gone */
    int number;
};

static void act_in_child(struct loop *loop, struct play *play, enum weft_fault_kind kind,
                         uint64_t at)
{
    struct place mine = loop->place;
    size_t used = strlen(mine.url);
    if (on_pg())
        (void)snprintf(mine.url + used, sizeof(mine.url) - used, "&application_name=child_%s",
                       mine.schema);
    struct weft_engine *engine = place_open(&mine, loop->driver, START_US);
    loop->fault.kind = kind;
    loop->fault.strike_at = at;
    play->of->act(play, engine);
    loop->fault.strike_at = 0;
    weft_engine_close(engine);
    _exit(0);
}

static void close_engines(struct loop *loop)
{
    weft_engine_close(loop->clean);
    weft_engine_close(loop->faulty);
    loop->clean = loop->faulty = NULL;
}

static struct weft_engine *clean_of(struct loop *loop)
{
    if (!loop->clean)
        loop->clean = place_open(&loop->place, NULL, START_US);
    return loop->clean;
}

/* Locks of SQLite would not survive the fork. Returns whether the child was struck. */
static bool strike_child(struct loop *loop, struct play *play, enum weft_fault_kind kind,
                         uint64_t at)
{
    char sql[200];
    int status = 0;
    if (!on_pg())
        close_engines(loop);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        bail_out("cannot fork");
    if (child == 0)
        act_in_child(loop, play, kind, at);
    (void)waitpid(child, &status, 0);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT (count(*) = 0)::int FROM pg_stat_activity "
                   "WHERE application_name = 'child_%s'",
                   loop->place.schema);
    if (loop->raw && !raw_wait(&loop->place, loop->raw, sql))
        bail_out("the session of a dead process stays");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return false;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        bail_out("a child ended in another way: status %d", status);
    return true;
}

static bool strike(struct loop *loop, struct play *play, enum weft_fault_kind kind, uint64_t at)
{
    if (kind == WEFT_FAULT_CRASH_AFTER)
        return strike_child(loop, play, kind, at);
    if (!loop->faulty)
        loop->faulty = place_open(&loop->place, loop->driver, START_US);
    loop->fault.kind = kind;
    loop->fault.struck = false;
    loop->fault.strike_at = at;
    play->of->act(play, loop->faulty);
    loop->fault.strike_at = 0;
    return loop->fault.struck;
}

/* One strike and what follows; returns whether it came before the end. */
static bool strike_once(struct loop *loop, const struct flow_play *of, enum weft_fault_kind kind,
                        uint64_t at, char out[TEXT_MAX])
{
    struct play play;
    prepare(&play, of, ++loop->number, clean_of(loop));
    bool struck = strike(loop, &play, kind, at);
    if (struck)
        of->act(&play, clean_of(loop));
    if (of->act == submit)
        submit(&play, clean_of(loop)); /* the child took what it heard to its grave */
    scan(&play, clean_of(loop));
    describe(&play, clean_of(loop), out, TEXT_MAX);
    clear(&play, clean_of(loop));
    return struck;
}

/* Written by the workers. */
struct finding {
    size_t bad;
    uint64_t calls;
};

static void loop_play(struct loop *loop, const struct flow_play *of, struct finding *finding)
{
    char peace[TEXT_MAX], got[TEXT_MAX];
    (void)strike_once(loop, of, WEFT_FAULT_NONE, CALLS_MAX, peace);
    printf("# %s: %s\n", of->name, peace);
    for (size_t i = 0; i < WEFT_LEN(faults); i++) {
        uint64_t at = 1;
        for (; at < CALLS_MAX && strike_once(loop, of, faults[i].kind, at, got); at++)
            if (strcmp(peace, got) != 0 && finding[i].bad++ == 0)
                printf("# %s at call %llu: %s\n", faults[i].name, (unsigned long long)at, got);
        finding[i].calls = at - 1;
    }
}

static void work(const struct flow_play *of, struct finding *finding)
{
    struct loop loop = {.number = 0};
    loop.fault.inner = on_pg() ? &weft_driver_pg : &weft_driver_sqlite;
    loop.driver = weft_fault_install(&loop.fault);
    place_init(&loop.place, of->name);
    loop.raw = on_pg() ? raw_open(&loop.place) : NULL;
    loop_play(&loop, of, finding);
    struct weft_err err = {0};
    if (weft_engine_check(clean_of(&loop), &err))
        bail_out("%s: %s", of->name, err.text);
    close_engines(&loop);
    PQfinish(loop.raw);
    place_done(&loop.place);
    (void)fflush(stdout);
}

/* A worker per sequence: most of the time goes into waiting for connections. */
void flow_faults(bool (*wanted)(const char *name, int argc, char **argv), int argc, char **argv)
{
    struct finding(*found)[WEFT_LEN(faults)] =
        mmap(NULL, sizeof(*found) * WEFT_LEN(plays), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t worker[WEFT_LEN(plays)] = {0};
    if (found == MAP_FAILED)
        bail_out("no shared memory");
    (void)fflush(stdout);
    for (size_t p = 0; p < WEFT_LEN(plays); p++) {
        if (!wanted(plays[p].name, argc, argv))
            continue;
        worker[p] = fork();
        if (worker[p] < 0)
            bail_out("cannot fork");
        if (worker[p] == 0) {
            work(&plays[p], found[p]);
            _exit(0);
        }
    }
    for (size_t p = 0; p < WEFT_LEN(plays); p++) {
        int status = 0;
        if (worker[p] == 0)
            continue;
        (void)waitpid(worker[p], &status, 0);
        ok(status == 0, "%s: its worker comes through", plays[p].name);
        for (size_t i = 0; i < WEFT_LEN(faults); i++)
            ok(found[p][i].bad == 0 && found[p][i].calls >= 5 && found[p][i].calls < CALLS_MAX - 1,
               "%s: %s at each of %llu calls", plays[p].name, faults[i].name,
               (unsigned long long)found[p][i].calls);
    }
    (void)munmap(found, sizeof(*found) * WEFT_LEN(plays));
}
