/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_FLOWMODEL_FLOWMODEL_H
#define WEFT_TESTS_FLOWMODEL_FLOWMODEL_H

/*
 * Random flows against an evaluator that knows nothing of the engine's joins.
 *
 * A seed draws one or two small graphs and then steps: members are claimed, succeed, fail, are
 * retried, cancelled, replayed, expire; flows grow and are cancelled; cascades run late, twice,
 * broken off in the middle, on either of two engines over one store. The effect of a step on
 * its own member is known at once. The effect on the graph is known when a cascade has run dry:
 * then every join is judged by trying all ways in which its open upstreams could still end
 * (judge.c), and states, joins and flows of the store must be what that gives.
 *
 * One thing is not determined: whether a blocked member whose join is impossible was skipped, or
 * was cancelled as a sibling first. Both are right where both are allowed, and the store says
 * which.
 */

#include "dice.h"
#include "support.h"

#include "store/fault/fault.h"
#include "weft/weft.h"

enum {
    FLOWS_MAX = 2,
    DRAWN_MAX = 12, /* nodes that a flow begins with */
    NODES_MAX = 20, /* with what grows later */
    ENGINES = 2,
};

enum { OPEN_JOIN, SATISFIED, IMPOSSIBLE }; /* as the store numbers them */

struct member {
    /* As it was drawn. */
    char name[24], kind[48];
    uint32_t after; /* a bit per member */
    enum weft_join join;
    uint32_t k;
    enum weft_on_satisfied on_satisfied;
    bool cancels; /* what on_satisfied comes to */
    int64_t delay_ms;
    weft_usec deadline_us;
    /* As it must be. */
    struct weft_id id;
    enum weft_state state;
    int fired;
    int32_t attempts;          /* that failed in this life */
    int32_t epoch, done_epoch; /* of the last claim, and of the last that succeeded */
    weft_usec due_us;
    bool wants;    /* its join fired before all upstreams had ended, and cancels the others */
    int wish;      /* how it fired when it began to want that */
    bool maybe;    /* whether it still does depends on the order of what a replay set off */
    bool replayed; /* it lives again */
    bool again;    /* it was replayed since the last cancel, and waits for its join */
    bool unsure;   /* the same, for a moment in which it was skipped; its deadline may be gone */
    const char *reason;
};

struct flow {
    struct weft_id id;
    int32_t revision;
    struct member member[NODES_MAX];
    size_t count;
    enum weft_flow_cancel cancel;
    bool backlog;
    enum weft_flow_state state;
    bool dirty;          /* something ended and no cascade has run dry since */
    bool replay_pending; /* a member was replayed, the same: the order of its effects is open */
};

struct world {
    uint64_t random, seed;
    size_t step;
    weft_usec now_us;
    struct place place;
    struct weft_fault fault;
    struct weft_engine *engine[ENGINES];
    bool eager; /* cascades run at once, in the thread that committed */
    bool apart; /* steps are taken on either engine */
    struct flow flow[FLOWS_MAX];
    size_t flows;
    struct diary diary;
    bool failed;
    uint64_t seeds, steps, strikes; /* of all seeds */
};

/* draw.c: dice, graphs and the diary. */
size_t below(struct world *w, size_t bound); /* 0 .. bound - 1 */
bool chance(struct world *w, unsigned percent);
void draw_flow(struct world *w, struct flow *flow);
/* Draws `count` more members behind the present ones. */
void draw_members(struct world *w, struct flow *flow, size_t count);
/* The members from `first` on as they are submitted; the members own the name strings. */
struct weft_node *nodes_of(const struct flow *flow, size_t first, struct weft_arena *arena);
void note(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void print_story(const struct world *w);

/* judge.c: the expected state. */
#define EITHER_REASON "either" /* cancelled with its flow, or as a sibling: both are right */
bool lives(enum weft_state state);
void set_ended(struct flow *flow, struct member *member, enum weft_state state, const char *reason);
/* The verdict on the join of a member as its upstreams stand. */
int verdict(const struct flow *flow, const struct member *member);
/* What a cascade that has run dry makes of the flow; `got` are the states in the store. */
void settle(const struct world *w, struct flow *flow, const enum weft_state *got);

/* look.c: the state in the store. Marks the world as failed when it is not the expected one. */
void look(struct world *w, struct flow *flow, enum weft_state *ret_got);
void compare(struct world *w, struct flow *flow);
void wrong(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ops.c: one random step. */
void op_submit(struct world *w);
void op_claim(struct world *w);
void op_end(struct world *w);
void op_cancel(struct world *w);
void op_replay(struct world *w);
void op_replay_all(struct world *w);
void op_clock(struct world *w);
void op_grow(struct world *w);
void op_edge(struct world *w);
void op_cancel_flow(struct world *w);
void op_drain(struct world *w);
void op_cascade(struct world *w);
struct weft_engine *any_engine(struct world *w);
/* The cascade of flows until it has run dry. */
void cascade_whole(struct world *w, const struct weft_id *id, size_t count);
/* Runs all that can run until every flow has ended. */
void run_out(struct world *w);
/* All flows have ended: nothing may be left that a scanner would look for. */
void check_left(struct world *w);

#endif
