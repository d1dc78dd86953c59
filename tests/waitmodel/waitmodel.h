/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_WAITMODEL_WAITMODEL_H
#define WEFT_TESTS_WAITMODEL_WAITMODEL_H

/*
 * Random waiting against a model in memory that knows nothing of the engine.
 *
 * A seed draws a few executions, some of them members of small flows, and then steps: they are
 * claimed, suspended at new and pending waitpoints, signalled, resumed, timed out, cancelled,
 * replayed; keys rotate and time goes on; on either of two engines over one store. The model does
 * each step first, from docs/waiting.md: a condition is a tree that is evaluated over plain sets
 * of signals. Then the answer of the engine, and what it shows of the executions afterwards, must
 * be what the model has.
 *
 * What the model takes from the engine: ids, tokens, and the numbers of signing keys.
 */

#include "dice.h"
#include "support.h"

#include "core/signal_token.h"
#include "weft/weft.h"

enum {
    ENGINES = 2,
    SINGLES_MAX = 3, /* executions without a flow */
    FLOWS_MAX = 2,
    EXECUTIONS_MAX = SINGLES_MAX + 2 * FLOWS_MAX,
    POINTS_MAX =
        60, /* waitpoints of one execution, and so on: a step that needs more is not taken */
    SIGNALS_MAX = 200,
    LEASES_MAX = 200,
    AT_MAX = 4,    /* waitpoints of one suspension */
    PARTS_MAX = 3, /* of all and any */
    NODES_MAX = 30,
    KEYS_MAX = 40,
    BATCH_MAX = 30, /* signals of one call */
    REQUESTS_MAX = 2,
};

/* The policy of every execution. */
enum { ATTEMPTS = 3, LOST_MAX = 4, LEASE_MS = 30000, BACKOFF_MS = 2000, ATTEMPT_MS = 20000 };

/* Texts are numbers here; 0: none. */
enum { NAMES = 3, SOURCES = 4, DEDUPES = 4, PAYLOADS = 5, POINT_NAMES = 4 };
extern const char *const name_text[NAMES],
    *const source_text[SOURCES], *const dedupe_text[DEDUPES], *const point_text[POINT_NAMES];
struct weft_bytes payload_of(size_t payload); /* data NULL: none */

/* ---- Conditions ------------------------------------------------------------------------------ */

enum node_kind { NODE_SIGNAL, NODE_ALL, NODE_ANY, NODE_COUNT, NODE_OPERATOR, NODE_TIMEOUT };
enum count_of { OF_WAITPOINTS, OF_SIGNALS, OF_SOURCES };

struct node {
    enum node_kind kind;
    unsigned places; /* SIGNAL, COUNT: a bit for each waitpoint of the suspension */
    size_t name;     /* of the signals; 0: any */
    enum count_of of;
    unsigned n;
    size_t part[PARTS_MAX], parts; /* ALL, ANY: places in the array of nodes */
};

struct condition {
    struct node node[NODES_MAX];
    size_t nodes; /* node[0] is the root; 0: a signal at every waitpoint */
    bool refused; /* it is no condition over these waitpoints */
    char text[6000];
};

/* A signal as a condition sees it. */
struct seen_signal {
    size_t place, name, source;
};

/* What a condition may speak of. */
struct scope {
    size_t name[AT_MAX]; /* of the waitpoints */
    size_t count;
    bool has_timeout;
};

/* ---- Executions ------------------------------------------------------------------------------ */

struct token {
    int32_t key;
    char text[WEFT_SIGNAL_TOKEN_TEXT];
};

struct point {
    struct weft_id id;
    size_t name;
    int32_t made;  /* the epoch of the lease that made it */
    int32_t taken; /* the epoch of the suspend that took it; 0: none */
    bool at_once;  /* that suspend was satisfied at once */
    bool over;     /* it cannot be named again */
    int32_t replays, key;
    weft_usec created_us, expires_us;
    bool counted;          /* the pass has seen that it expired */
    struct token token[2]; /* the last one, and one under another key */
};

struct sent {
    size_t point, name, source, dedupe, payload;
    int32_t n;
    weft_usec at_us;
    enum weft_signal_effect effect;
};

/* A lease that has ended, or an end that a replay took back. */
struct lease {
    int32_t epoch, attempt;
    bool held;
    enum weft_ended ended;
    enum weft_state answer;
    const char *error_class, *error_message;
    weft_usec claimed_us, ended_us, run_at_us;
};

/* A suspend call, kept for its repeat. */
struct request {
    int32_t epoch;
    size_t count;
    struct {
        size_t name;          /* of a new one */
        struct weft_id point; /* of a pending one: name is its own */
        bool fresh;
    } at[AT_MAX];
    bool has_condition;
    struct condition condition;
    int64_t timeout_ms, resume_delay_ms;
    weft_usec timeout_us;
    enum weft_on_timeout on_timeout;
    const char *reason;
};

struct suspension {
    struct condition condition;
    size_t point[AT_MAX], count;
    enum weft_on_timeout on_timeout;
    int64_t resume_delay_ms;
    weft_usec since_us;
    bool escalated;
    const char *reason;
};

struct resumption {
    enum weft_resumed_by by; /* NOT: there is none */
    weft_usec at_us;
    size_t point[AT_MAX], count; /* whose signals come along */
};

enum join { JOIN_OPEN, JOIN_SATISFIED, JOIN_IMPOSSIBLE };

struct execution {
    struct weft_id id;
    char kind[16];
    struct flow *flow;          /* NULL: none */
    struct execution *upstream; /* NULL: none */
    enum join join;
    int64_t attempt_timeout_ms;
    enum weft_state state;
    int32_t epoch, attempt, forgiven, lost, replays;
    weft_usec due_us, attempt_deadline_us, deadline_us;
    weft_usec created_us, started_us, claimed_us, finished_us;
    enum weft_ended ended; /* of one that is over */
    bool held;
    const char *by, *reason, *error_class, *error_message;
    struct point point[POINTS_MAX];
    size_t points;
    struct sent signal[SIGNALS_MAX];
    size_t signals;
    struct lease lease[LEASES_MAX];
    size_t leases;
    struct suspension suspension;
    struct resumption resumption;
    struct request request[REQUESTS_MAX];
    size_t requests;
    bool touched; /* by the step in hand */
};

struct flow {
    struct weft_id id;
    bool cancelled;
};

/* ---- The world ------------------------------------------------------------------------------- */

struct key {
    int32_t id;
    weft_usec retires_us; /* 0: it signs */
};

/* Signing keys: all of them, or the ones that an engine knows of. */
struct keys {
    struct key key[KEYS_MAX];
    size_t count;
};

struct world {
    uint64_t random, seed;
    size_t step;
    weft_usec now_us;
    struct weft_engine *engine[ENGINES];
    struct keys keys, known[ENGINES];
    bool read[ENGINES], stale[ENGINES];  /* keys were read; the poll has seen others since */
    uint64_t rotations, polled[ENGINES]; /* how many there were at the last poll */
    struct execution execution[EXECUTIONS_MAX];
    size_t executions;
    struct flow flow[FLOWS_MAX];
    size_t flows;
    struct weft_arena *arena; /* of the step in hand */
    struct diary diary;
    bool failed;
    /* Of all seeds: */
    uint64_t seeds, steps, at_once, resumed[WEFT_RESUMED_BY_OPERATOR + 1],
        effect[WEFT_SIGNAL_IGNORED + 1];
};

/* main.c: dice, the diary and the runner. */
/* What follows every step: the effects on flows, and a comparison of all that it touched. */
void end_step(struct world *w);
size_t below(struct world *w, size_t bound); /* 0 .. bound - 1 */
bool chance(struct world *w, unsigned percent);
size_t any_engine(struct world *w);
struct execution *pick(struct world *w, enum weft_state state); /* in that state, or any */
size_t number_of(const struct world *w, const struct execution *x);
void note(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void wrong(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void must_be(struct world *w, enum weft_rc rc, enum weft_rc want, const char *what);

/* condition.c: draws, writes and evaluates conditions. */
void draw_condition(struct world *w, const struct scope *scope, struct condition *ret_condition);
bool is_asked(const struct condition *condition, size_t places, const struct seen_signal *signal);
bool is_satisfied(const struct condition *condition, size_t places,
                  const struct seen_signal *signal, size_t count);

/* model.c: the expected state. */
struct change {
    enum weft_state to;
    enum weft_ended ended; /* of a lease that is held, or of the execution */
    weft_usec due_us;
    const char *by, *reason, *error_class, *error_message;
};
bool lives(enum weft_state state);
void change_state(struct world *w, struct execution *x, const struct change *change);
void fail_attempt(struct world *w, struct execution *x, const struct change *change,
                  bool permanent);
void resume(struct world *w, struct execution *x, enum weft_resumed_by by, int64_t delay_ms);
void replay(struct world *w, struct execution *x, enum weft_state to);
bool holds(const struct execution *x, int32_t epoch);
/* The answer to a caller that does not hold its lease. */
struct weft_lease_answer fate_of(const struct execution *x, int32_t epoch, enum weft_ended asked);
enum weft_waitpoint_state state_of_point(const struct world *w, const struct execution *x,
                                         const struct point *point);
/* The early and later signals of some waitpoints, as a condition sees them. */
size_t see_signals(const struct execution *x, const size_t *point, size_t count,
                   struct seen_signal *ret_signal);
/* What the join of the second member of a flow makes of the first one. */
enum join judge_join(const struct execution *x);
void settle_flows(struct world *w);

/* keys.c: the signing keys, and what an engine knows of them. */
void key_begin(struct world *w); /* one key, known to all */
int32_t key_current(struct world *w, size_t engine);
int32_t key_to_sign(struct world *w, size_t engine, int32_t key);
bool key_verifies(struct world *w, size_t engine, int32_t key);
/* A token that an answer brings: the same for the same key, another one for another. */
void check_token(struct world *w, struct point *point, int32_t key, const char *text);
void op_rotate(struct world *w);
void op_poll(struct world *w);
void op_token(struct world *w);

/* look.c: whether what is there is what must be. */
/* The signals of a resumption, as a claim or a suspend brings them. */
void check_signals(struct world *w, const struct execution *x, const struct resumption *resumption,
                   const struct weft_signal_info *got, size_t count, bool more);
void compare(struct world *w, bool all);

/* life.c: leases, operators and flows. */
void submit_all(struct world *w);
void op_claim(struct world *w);
void op_complete(struct world *w);
void op_fail(struct world *w);
void op_release(struct world *w);
void op_renew(struct world *w);
void op_steer(struct world *w);
void op_resume(struct world *w);
void op_replay(struct world *w);
void op_cancel_flow(struct world *w);

/* time.c: passes and the clock. */
void op_pass(struct world *w);
void op_clock(struct world *w);
/* Brings every execution to its end. */
void run_out(struct world *w);

/* wait.c, signal.c: waitpoints, suspending, signals. */
void op_waitpoint(struct world *w);
void op_suspend(struct world *w);
void op_signal(struct world *w);

#endif
