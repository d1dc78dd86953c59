/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fault loop over flows. Each sequence is run once in peace; then it is struck at each of its
 * calls to the store, like the ones of sequence.c, with the cascades that belong to it. Afterwards
 * the call is repeated, as a client would, and what the scanners do is done: cascade, dispatch,
 * drain. Whatever struck and wherever, every member, every join and the flow end up as they did in
 * peace.
 */

#include "flow.h"
#include "direct.h"

#include "base/arena.h"
#include "engine/engine.h"
#include "engine/erase/erase.h"
#include "engine/flow/cascade.h"
#include "engine/flow/flow.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/leases.h"
#include "engine/scan/pass.h"
#include "engine/tx/tx.h"
#include "store/store.h"
#include "weft/weft.h"

enum { NODES_MAX = 8, CALLS_MAX = 800, LETTERS = 26, TEXT_MAX = 400, ERASE_PASSES = 4 };

/* One run: a flow of its own. */
struct play {
    const struct flow_play *of;
    char key[32];
    struct weft_id flow, id[NODES_MAX];
    struct weft_claimed lease; /* of the first node */
    struct weft_id erasure;
    struct weft_tag tag; /* of what is to be erased; without a key: nothing is */
};

struct flow_play {
    const char *name;
    const char *graph; /* "a; b:a; c:a,b"; "!" behind the name: any of its upstreams */
    const char *ended; /* nodes that have succeeded before the call */
    void (*act)(struct play *play, struct weft_engine *engine);
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
        if (play->tag.key && (count == 0 || play->of->ended[0] == '\0')) {
            at->spec.tags = &play->tag;
            at->spec.tag_count = 1;
        }
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

/* Hides the flow, and removes it row by row, in several batches. */
static void purge(struct play *play, struct weft_engine *engine)
{
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = play->flow, .how = WEFT_FLOW_CANCEL_ALL, .remove = true};
    const struct weft_pass_config config = {.batch = 2};
    struct weft_pass_report report = {.more = true};
    enum weft_flow_state state;
    struct weft_flow_drain drain;
    struct weft_err err;
    (void)!weft_engine_flow_cancel(engine, &args, &state, &drain, &err);
    for (int pass = 0; pass < NODES_MAX && report.more; pass++)
        if (weft_engine_pass(engine, WEFT_SCANNER_PURGE, &config, &report, &err))
            break;
}

/* Makes the steps of an erasure that was asked for before, on a clock that does not stand still. */
static void erase(struct play *play, struct weft_engine *engine)
{
    static const enum weft_scanner scanner[] = {WEFT_SCANNER_ERASURE, WEFT_SCANNER_CANCEL_BACKLOG,
                                                WEFT_SCANNER_PURGE};
    struct weft_pass_report report = {0};
    struct weft_err err;
    (void)play;
    bool busy = true;
    for (int pass = 0; pass < ERASE_PASSES && busy; pass++) {
        busy = false;
        for (size_t i = 0; i < WEFT_LEN(scanner); i++) {
            if (weft_engine_pass(engine, scanner[i], NULL, &report, &err))
                return;
            busy |= report.handled > 0 || report.more;
        }
    }
}

static void ask_to_erase(struct play *play, struct weft_engine *clean)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_erasure erasure = {0};
    struct weft_err err = {0};
    const struct weft_erasure_spec spec = {
        .tag = weft_arena_printf(arena, "%s:%s", play->tag.key, play->tag.value),
        .reason = "fault"};
    if (weft_engine_erase(clean, "default", &spec, 0, arena, &erasure, &err))
        bail_out("no erasure: %s", err.text);
    play->erasure = erasure.id;
    weft_arena_free(arena);
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
    {"flow_purge", "a; b; c:a; d:c; e:b,c", "b", purge},
    {"flow_erase", "a; b:a; c", "", erase},
    {"flow_erase_member", "a; b:a; c", "c", erase},
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
    if (of->act == erase)
        play->tag = (struct weft_tag){.key = "play", .value = play->key};
    submit(play, clean);
    for (const char *at = of->ended; *at; at++) {
        play->lease = take(clean, (const char[]){*at, '\0'});
        complete(play, clean);
    }
    play->lease = take(clean, "a");
    if (of->act == replay)
        fail(play, clean);
    if (of->act == erase)
        ask_to_erase(play, clean);
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

static void act_on(void *context, struct weft_engine *engine)
{
    struct play *play = context;
    play->of->act(play, engine);
}

/* One strike and what follows; returns whether it came before the end. */
static bool strike_once(struct striker *striker, const struct flow_play *of, int number,
                        enum weft_fault_kind kind, uint64_t at, char out[TEXT_MAX])
{
    struct play play;
    prepare(&play, of, number, striker_clean(striker));
    bool struck = strike(striker, kind, at, act_on, &play);
    if (struck)
        of->act(&play, striker_clean(striker));
    if (of->act == submit)
        submit(&play, striker_clean(striker)); /* the child took what it heard to its grave */
    scan(&play, striker_clean(striker));
    if (of->act == purge || of->act == erase) /* the end of the flow was left to the scanners */
        of->act(&play, striker_clean(striker));
    describe(&play, striker_clean(striker), out, TEXT_MAX);
    clear(&play, striker_clean(striker));
    return struck;
}

static void loop_play(const void *context, struct loop_finding finding[STRIKE_KINDS])
{
    const struct flow_play *of = context;
    struct striker striker;
    char peace[TEXT_MAX], got[TEXT_MAX];
    int number = 0;
    striker_init(&striker, of->name);
    (void)strike_once(&striker, of, ++number, WEFT_FAULT_NONE, CALLS_MAX, peace);
    printf("# %s: %s\n", of->name, peace);
    for (size_t i = 0; i < STRIKE_KINDS; i++) {
        uint64_t at = 1;
        for (; at < CALLS_MAX && strike_once(&striker, of, ++number, strike_kinds[i].kind, at, got);
             at++)
            if (strcmp(peace, got) != 0 && finding[i].bad++ == 0)
                printf("# %s at call %llu: %s\n", strike_kinds[i].name, (unsigned long long)at,
                       got);
        finding[i].calls = at - 1;
    }
    striker_done(&striker);
}

void flow_faults(wanted_fn *wanted, int argc, char **argv)
{
    const struct loop_set set = {.run = loop_play,
                                 .first = plays,
                                 .size = sizeof(*plays),
                                 .count = WEFT_LEN(plays),
                                 .calls_min = 5,
                                 .calls_max = CALLS_MAX - 1};
    loop_set_run(&set, wanted, argc, argv);
}
