/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The fault loop over waiting: waitpoints, suspend, signals, resume, timeouts, signing keys. Each
 * sequence is run once in peace; then it is struck at each of its calls to the store: at BEGIN, at
 * every statement, at COMMIT, before the call reaches the store or after it. A process that is
 * struck by `crash` ends after the call: after each statement, between the last one and COMMIT, and
 * after COMMIT before its caller is answered.
 *
 * What must hold after each strike:
 *   - contention and lost connections are not noticed by the caller. SQLite cannot say what became
 *     of a commit that was not answered; then, and only then, the answer is outcome_unknown;
 *   - the store is as before the call or as after it, and as after it when the call was answered;
 *   - the invariants of the whole store hold;
 *   - the call again, as a client would send it, ends as the call ends without a fault: no signal
 *     is lost or counted twice, nothing is resumed twice, and the tokens are the same as in the
 *     first answer;
 *   - the tokens are good.
 */

#include "wait.h"
#include "direct.h"
#include "waiting.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/admin/doctor.h"
#include "engine/engine.h"
#include "engine/tx/tx.h"
#include "engine/wait/keys.h"
#include "store/store.h"
#include "weft/weft.h"

enum { CALLS_MAX = 200, SIGNALS = 7, TIMEOUT_MS = 60000, TRACE_MAX = 64 };

/* One run: an execution of its own. */
struct wait_run {
    const struct wait_play *of;
    struct striker *striker;
    char lane[32];
    struct weft_claimed lease;
    struct wait_answer made;  /* what prepare() got */
    struct wait_answer heard; /* of the call */
    struct signal_answer sent[SIGNALS];
    bool answered;
};

struct wait_play {
    const char *name; /* first: see struct loop_set */
    void (*prepare)(struct wait_run *run, struct weft_engine *clean);
    void (*act)(struct wait_run *run, struct weft_engine *engine);
    enum weft_stmt stmt; /* one that the call must have run */
    /* Appends to the text what the answers and tokens are good for. */
    void (*prove)(struct wait_run *run, struct weft_engine *clean, char *text, size_t size);
    /* The call again, when that is not just the call; only after a call without an answer. */
    void (*again)(struct wait_run *run, struct weft_engine *clean);
    int64_t later_ms;       /* the call comes so much later than prepare() */
    bool stages;            /* several transactions: the store may be in between */
    enum weft_rc repeat_rc; /* another word that a repeat of what is done may get */
    enum weft_on_timeout on_timeout;
};

/* ---- Getting ready --------------------------------------------------------------------------- */

static void prepare_running(struct wait_run *run, struct weft_engine *clean)
{
    run->lease = wait_lease(clean, run->lane);
}

static void prepare_pending(struct wait_run *run, struct weft_engine *clean)
{
    prepare_running(run, clean);
    run->made = wait_pending(clean, &run->lease, "a", TIMEOUT_MS);
}

/* With signals that satisfy at once. */
static void prepare_early(struct wait_run *run, struct weft_engine *clean)
{
    prepare_pending(run, clean);
    (void)wait_signal(clean, run->made.token[0], "early");
    (void)wait_signal(clean, run->made.token[0], "second");
}

static void prepare_suspended(struct wait_run *run, struct weft_engine *clean)
{
    const struct weft_suspend how = {.timeout_ms = TIMEOUT_MS, .on_timeout = run->of->on_timeout};
    prepare_running(run, clean);
    run->made = wait_suspend_at(clean, &run->lease, "ab", &how);
}

static void prepare_half(struct wait_run *run, struct weft_engine *clean)
{
    prepare_suspended(run, clean);
    (void)wait_signal(clean, run->made.token[0], "half");
}

static void prepare_count(struct wait_run *run, struct weft_engine *clean)
{
    const struct weft_suspend how = {.condition = "{\"count\":{\"n\":4,\"of\":\"signals\"}}"};
    prepare_running(run, clean);
    run->made = wait_suspend_at(clean, &run->lease, "a", &how);
}

static void prepare_resumed(struct wait_run *run, struct weft_engine *clean)
{
    prepare_half(run, clean);
    (void)wait_signal(clean, run->made.token[1], "other");
}

/* A store without keys, in which no process remembers any. */
static void prepare_no_keys(struct wait_run *run, struct weft_engine *clean)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_call retire, removal;
    struct weft_err err = {0};
    prepare_running(run, clean);
    *weft_call_key_retire(&retire, arena) =
        (struct weft_key_retire_in){.id = INT32_MAX, .retires = 1};
    *weft_call_keys_remove(&removal, arena) = (struct weft_keys_remove_in){.now = 2};
    if (weft_tx_once(clean, WEFT_TX_WRITE, &retire, arena, NULL, &err) ||
        weft_tx_once(clean, WEFT_TX_WRITE, &removal, arena, NULL, &err))
        bail_out("the keys cannot be removed: %s", err.text);
    weft_arena_free(arena);
    striker_close_engines(run->striker);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void make_one(struct wait_run *run, struct weft_engine *engine)
{
    run->heard = wait_pending(engine, &run->lease, "a", 0);
}

static void make_two(struct wait_run *run, struct weft_engine *engine)
{
    run->heard = wait_pending(engine, &run->lease, "ab", 0);
}

static void suspend_new(struct wait_run *run, struct weft_engine *engine)
{
    run->heard = wait_suspend_at(engine, &run->lease, "ab",
                                 &(struct weft_suspend){.timeout_ms = TIMEOUT_MS});
}

/* At a pending waitpoint and a new one. */
static void suspend_pending(struct wait_run *run, struct weft_engine *engine)
{
    const struct weft_suspend_at at[] = {{.id = run->made.waitpoint[0]}, {.name = "b"}};
    run->heard = wait_suspend(engine, &(struct weft_suspend){.id = run->lease.id,
                                                             .epoch = run->lease.epoch,
                                                             .waitpoint = at,
                                                             .waitpoint_count = WEFT_LEN(at)});
}

static void suspend_early(struct wait_run *run, struct weft_engine *engine)
{
    const struct weft_suspend_at at = {.id = run->made.waitpoint[0]};
    run->heard = wait_suspend(engine, &(struct weft_suspend){.id = run->lease.id,
                                                             .epoch = run->lease.epoch,
                                                             .waitpoint = &at,
                                                             .waitpoint_count = 1});
}

static void hear_signals(struct wait_run *run, size_t count)
{
    run->heard = (struct wait_answer){0};
    for (size_t i = 0; i < count; i++) {
        enum weft_rc rc = run->sent[i].rc == WEFT_NOT_LIVE ? WEFT_OK : run->sent[i].rc;
        run->heard.rc = run->heard.rc ? run->heard.rc : rc;
        run->heard.unknown |= run->sent[i].unknown;
    }
}

/* To the first waitpoint, or to the second if the first has its signal. */
static void send_one(struct wait_run *run, struct weft_engine *engine)
{
    size_t to = run->of->prepare == prepare_half;
    run->sent[0] = wait_signal(engine, run->made.token[to], "one");
    hear_signals(run, 1);
}

/* Four of them satisfy the condition; one is a duplicate, two come too late. */
static void send_many(struct wait_run *run, struct weft_engine *engine)
{
    static const char *const key[SIGNALS] = {"1", "2", "2", "3", "4", "5", "6"};
    struct weft_signal item[SIGNALS];
    for (size_t i = 0; i < SIGNALS; i++)
        item[i] = (struct weft_signal){
            .token = run->made.token[0], .key = key[i], .payload = "[1]", .payload_size = 3};
    wait_signals(engine, item, SIGNALS, run->sent);
    hear_signals(run, SIGNALS);
}

static void hear(struct wait_run *run, enum weft_rc rc, const struct weft_err *err)
{
    run->heard = (struct wait_answer){
        .rc = rc, .unknown = rc && err->hint && strcmp(err->hint, "outcome_unknown") == 0};
}

static void resume(struct wait_run *run, struct weft_engine *engine)
{
    struct weft_steered answer = {0};
    struct weft_err err = {0};
    const struct weft_steer item = {.id = run->lease.id};
    const struct weft_steering steering = {
        .kind = WEFT_STEER_RESUME, .ns = "default", .item = &item, .count = 1};
    enum weft_rc rc = engine_steer(engine, &steering, &answer, &err);
    hear(run, rc ? rc : answer.err.rc, rc ? &err : &answer.err);
}

static void run_pass(struct wait_run *run, struct weft_engine *engine, enum weft_scanner scanner)
{
    uint64_t handled = 0;
    struct weft_err err = {0};
    enum weft_rc rc = wait_pass(engine, scanner, &handled, &err);
    hear(run, rc, &err);
}

static void time_out(struct wait_run *run, struct weft_engine *engine)
{
    run_pass(run, engine, WEFT_SCANNER_SUSPENSION_TIMEOUT);
}

static void expire(struct wait_run *run, struct weft_engine *engine)
{
    run_pass(run, engine, WEFT_SCANNER_WAITPOINT_EXPIRY);
}

static void rotate(struct wait_run *run, struct weft_engine *engine)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_signing_keys keys;
    struct weft_err err = {0};
    const struct weft_key_rotation rotation = {.grace_ms = TIMEOUT_MS};
    enum weft_rc rc = weft_engine_key_rotate(engine, &rotation, arena, &keys, &err);
    hear(run, rc, &err);
    weft_arena_free(arena);
}

struct claiming {
    struct wait_run *run;
    struct weft_engine *engine;
};

static bool claims_or_fails(void *context)
{
    struct claiming *claiming = context;
    claiming->run->heard = wait_claim(claiming->engine, claiming->run->lane);
    return claiming->run->heard.rc || claiming->run->heard.count > 0;
}

/* An engine that has just looked which queues have work finds work of another one a moment later.
 */
static void claim(struct wait_run *run, struct weft_engine *engine)
{
    struct claiming claiming = {.run = run, .engine = engine};
    (void)wait_until(claims_or_fails, &claiming);
}

/* A claim may not be repeated blindly: the claimed items come back when their leases run out. */
static void claim_again(struct wait_run *run, struct weft_engine *clean)
{
    uint64_t lost;
    struct weft_err err = {0};
    weft_clock_set(weft_engine_clock(clean), run->striker->now_us + 600 * WEFT_SECOND);
    if (wait_pass(clean, WEFT_SCANNER_LEASE_EXPIRY, &lost, &err))
        bail_out("leases cannot be expired: %s", err.text);
    claim(run, clean);
}

/* ---- What answers and tokens are good for ---------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void add(char *text, size_t size, const char *fmt, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text + used, size - used, fmt, args);
    va_end(args);
}

static void prove_tokens(struct wait_run *run, struct weft_engine *clean, char *text, size_t size)
{
    add(text, size, "answer %s%s, %zu signals;", weft_state_name(run->heard.state),
        run->heard.satisfied ? ", satisfied" : "", run->heard.signals);
    for (size_t i = 0; i < run->heard.count; i++) {
        struct signal_answer sent = wait_signal(clean, run->heard.token[i], "proof");
        add(text, size, " token %zu: %s %s", i, weft_rc_wire(sent.rc),
            weft_signal_effect_name(sent.effect));
    }
}

/* A repeat gets the first answer; the first two words of an answer depend on the fault. */
static void prove_signals(struct wait_run *run, struct weft_engine *clean, char *text, size_t size)
{
    (void)clean;
    for (size_t i = 0; i < SIGNALS && (run->sent[i].rc || run->sent[i].effect); i++) {
        enum weft_signal_effect effect =
            run->sent[i].effect == WEFT_SIGNAL_DUPLICATE ? run->sent[i].first : run->sent[i].effect;
        add(text, size, " %s %s", weft_rc_wire(run->sent[i].rc), weft_signal_effect_name(effect));
    }
}

/* Which tokens are closed by what was done; it is claimed if it can be. */
static void prove_over(struct wait_run *run, struct weft_engine *clean, char *text, size_t size)
{
    for (size_t i = 0; i < run->made.count; i++)
        add(text, size, " token %zu: %s", i,
            weft_rc_wire(wait_signal(clean, run->made.token[i], "late").rc));
    struct wait_answer next = wait_claim(clean, run->lane);
    add(text, size, ", claimed %zu, by %d, epoch %d, %zu signals", next.count, (int)next.by,
        next.epoch, next.signals);
}

static void prove_keys(struct wait_run *run, struct weft_engine *clean, char *text, size_t size)
{
    size_t current, count = wait_keys(clean, &current);
    prove_tokens(run, clean, text, size);
    add(text, size, ", %zu keys, %zu current", count, current);
}

/* Old tokens are good, tokens that are made now are good, one key signs. */
static void prove_rotated(struct wait_run *run, struct weft_engine *clean, char *text, size_t size)
{
    size_t current, count = wait_keys(clean, &current);
    struct weft_claimed lease = wait_lease(clean, "beside");
    struct wait_answer made = wait_suspend_at(clean, &lease, "a", NULL);
    add(text, size, "%s keys, %zu current, old %s, new %s", count > 1 ? "several" : "one", current,
        weft_rc_wire(wait_signal(clean, run->made.token[0], "old").rc),
        weft_rc_wire(wait_signal(clean, made.token[0], "new").rc));
    (void)steer_one(clean, WEFT_STEER_CANCEL, &(struct weft_steer){.id = lease.id});
}

static void prove_claim(struct wait_run *run, struct weft_engine *clean, char *text, size_t size)
{
    enum weft_state state = state_at(clean, &run->lease.id);
    add(text, size, "%s, claimed %zu, by %d, %zu signals", weft_state_name(state), run->heard.count,
        (int)run->heard.by, run->heard.signals);
}

/* clang-format off */
#define PLAY(word, made, call, statement, proof, ...)                                              \
    {.name = word, .prepare = prepare_##made, .act = call, .stmt = WEFT_STMT_##statement,          \
     .prove = prove_##proof, __VA_ARGS__}
#define TIMEOUT(word, what, statement)                                                             \
    PLAY("wait_timeout_" word, half, time_out, statement, over, .later_ms = TIMEOUT_MS,            \
         .on_timeout = WEFT_ON_TIMEOUT_##what)

static const struct wait_play plays[] = {
    PLAY("wait_point", running, make_one, WAITPOINT_ADD, tokens, .stages = false),
    PLAY("wait_points", running, make_two, WAITPOINT_ADD, tokens, .stages = true),
    PLAY("wait_suspend_new", running, suspend_new, SUSPENSION_ADD, tokens, .stages = false),
    PLAY("wait_suspend_pending", pending, suspend_pending, WAITPOINT_BIND, tokens, .stages = false),
    PLAY("wait_suspend_early", early, suspend_early, RESUMPTION_PUT, tokens, .stages = false),
    PLAY("wait_signal", suspended, send_one, SIGNAL_ADD, signals, .stages = false),
    PLAY("wait_signal_resumes", half, send_one, SUSPENSION_RESUME, signals, .stages = false),
    PLAY("wait_signals", count, send_many, SUSPENSION_RESUME, signals, .stages = false),
    PLAY("wait_resume", half, resume, SUSPENSION_RESUME, over, .repeat_rc = WEFT_NOT_LIVE),
    TIMEOUT("fail", FAIL, SUSPENSION_DROP),
    TIMEOUT("cancel", CANCEL, SUSPENSION_DROP),
    TIMEOUT("expire", EXPIRE, SUSPENSION_DROP),
    TIMEOUT("resume", RESUME, SUSPENSION_RESUME),
    TIMEOUT("escalate", ESCALATE, SUSPENSION_ESCALATE),
    PLAY("wait_point_expiry", pending, expire, WAITPOINT_EXPIRE, over, .later_ms = TIMEOUT_MS),
    PLAY("wait_first_key", no_keys, make_one, KEY_ADD, keys, .stages = true),
    PLAY("wait_rotate", suspended, rotate, KEY_RETIRE, rotated, .stages = false),
    PLAY("wait_claim", resumed, claim, SIGNALS_READ, claim, .again = claim_again),
};
/* clang-format on */

/* ---- Judging --------------------------------------------------------------------------------- */

/* What the store says: before the call, after it, and when all was proven. */
struct texts {
    char before[WAIT_TEXT], after[WAIT_TEXT], proof[WAIT_TEXT];
};

static void act_on(void *context, struct weft_engine *engine)
{
    struct wait_run *run = context;
    run->of->act(run, engine);
    run->answered = true;
}

static const char *judge_answer(const struct wait_run *run, enum weft_fault_kind kind)
{
    const struct wait_answer *heard = &run->heard;
    if (!run->answered)
        return kind == WEFT_FAULT_CRASH_AFTER ? NULL : "the call did not come back";
    if (!heard->rc || (kind == WEFT_FAULT_FULL && heard->rc == WEFT_STORAGE_FULL))
        return NULL;
    bool may_be_unknown = !on_pg() && (kind == WEFT_FAULT_LOSE || kind == WEFT_FAULT_LOSE_REPLY);
    return may_be_unknown && heard->unknown ? NULL
                                            : "the caller got an error that could be retried";
}

/* After the strike and before the repeat. */
static const char *judge_store(const struct wait_run *run, const struct texts *peace,
                               const char *now)
{
    struct weft_err err;
    bool done = strcmp(now, peace->after) == 0;
    if (run->answered && !run->heard.rc && !done)
        return "it was answered and is not there";
    if (!done && strcmp(now, peace->before) != 0 && !run->of->stages)
        return "a part of it happened";
    size_t current, keys = wait_keys(run->striker->clean, &current);
    if (current != (keys > 0) || (keys == 0 && run->of->prepare != prepare_no_keys))
        return "there is not one key that signs";
    return weft_engine_check(run->striker->clean, &err) ? "the invariants are broken" : NULL;
}

static const char *repeat(struct wait_run *run, struct weft_engine *clean)
{
    const struct wait_answer first = run->heard;
    bool promised = run->answered && !first.rc;
    if (run->of->again) {
        if (!promised)
            run->of->again(run, clean);
        return run->heard.rc ? "a call after a look fails" : NULL;
    }
    run->of->act(run, clean);
    if (run->heard.rc && run->heard.rc != run->of->repeat_rc)
        return "a repeat fails";
    const struct wait_answer second = run->heard;
    const struct wait_answer *known = promised ? &first : &second;
    run->of->act(run, clean);
    for (size_t i = 0; i < known->count; i++)
        if (known->count != run->heard.count || strcmp(known->token[i], run->heard.token[i]) != 0 ||
            strcmp(second.token[i], run->heard.token[i]) != 0)
            return "a repeat gets other tokens";
    return NULL;
}

/* ---- Striking -------------------------------------------------------------------------------- */

static void begin_run(struct wait_run *run, struct striker *striker, const struct wait_play *of)
{
    static int number;
    *run = (struct wait_run){.of = of, .striker = striker};
    (void)snprintf(run->lane, sizeof(run->lane), "lane-%d", ++number);
    striker_set_time(striker, START_US + (weft_usec)number * 3600 * WEFT_SECOND);
    of->prepare(run, striker_clean(striker));
    striker_set_time(striker, striker->now_us + of->later_ms * WEFT_MS);
}

static void end_run(struct wait_run *run, struct weft_engine *clean, char *proof)
{
    *proof = '\0';
    run->of->prove(run, clean, proof, WAIT_TEXT);
    if (weft_state_living(state_at(clean, &run->lease.id)))
        (void)steer_one(clean, WEFT_STEER_CANCEL, &(struct weft_steer){.id = run->lease.id});
}

/* One strike; NULL when all is well. */
static const char *strike_once(struct striker *striker, const struct wait_play *of,
                               const struct strike_kind *with, uint64_t at,
                               const struct texts *peace, struct texts *ret_got, bool *ret_struck)
{
    struct wait_run run;
    begin_run(&run, striker, of);
    *ret_struck = strike(striker, with->kind, at, act_on, &run);
    if (!*ret_struck && with->kind == WEFT_FAULT_CRASH_AFTER)
        return NULL; /* the child was over before, and the next number of calls ends the loop */
    struct weft_engine *clean = striker_clean(striker);
    wait_describe(clean, &run.lease.id, ret_got->before);
    const char *wrong = judge_answer(&run, with->kind);
    if (!wrong)
        wrong = judge_store(&run, peace, ret_got->before);
    if (!wrong)
        wrong = repeat(&run, clean);
    wait_describe(clean, &run.lease.id, ret_got->after);
    if (!wrong && !of->again && strcmp(ret_got->after, peace->after) != 0)
        wrong = "after the repeat the store is not as it was in peace";
    end_run(&run, clean, ret_got->proof);
    if (!wrong && strcmp(ret_got->proof, peace->proof) != 0)
        wrong = "answers or tokens are not as in peace";
    return wrong;
}

/* The statements and commits of the call in peace. */
struct trace {
    size_t count;
    enum weft_stmt stmt[TRACE_MAX];
};

static void trace_hook(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    struct trace *trace = context;
    bool counts = point == WEFT_FAULT_BEFORE_RUN || point == WEFT_FAULT_BEFORE_COMMIT;
    if (counts && trace->count < TRACE_MAX)
        trace->stmt[trace->count++] = stmt;
}

static void run_in_peace(struct striker *striker, const struct wait_play *of,
                         struct trace *ret_trace, struct texts *ret_peace)
{
    struct wait_run run;
    *ret_trace = (struct trace){0};
    begin_run(&run, striker, of);
    wait_describe(striker_clean(striker), &run.lease.id, ret_peace->before);
    if (of->prepare == prepare_no_keys)
        striker_close_engines(striker);
    (void)striker_faulty(striker); /* opened before the trace begins */
    striker->fault.context = ret_trace;
    striker->fault.hook = trace_hook;
    (void)strike(striker, WEFT_FAULT_NONE, CALLS_MAX, act_on, &run);
    striker->fault.hook = NULL;
    wait_describe(striker_clean(striker), &run.lease.id, ret_peace->after);
    if (!of->again)
        of->act(&run, striker_clean(striker)); /* the answers of repeats are compared */
    end_run(&run, striker_clean(striker), ret_peace->proof);
}

static void print_peace(const struct wait_play *of, const struct trace *trace,
                        const struct texts *peace)
{
    bool found = false;
    printf("# %s, before: %s\n#   after: %s\n#   proof: %s\n#   statements:", of->name,
           peace->before, peace->after, peace->proof);
    for (size_t i = 0; i < trace->count; i++) {
        enum weft_stmt stmt = trace->stmt[i];
        found |= stmt == of->stmt;
        printf(" %s", stmt == WEFT_STMT_COUNT ? "COMMIT" : weft_stmts[stmt].name);
    }
    printf("\n");
    if (!found)
        bail_out("%s does not run %s", of->name, weft_stmts[of->stmt].name);
}

static void loop_play(const void *context, struct loop_finding finding[STRIKE_KINDS])
{
    const struct wait_play *of = context;
    struct striker striker;
    struct trace trace;
    struct texts peace, got;
    weft_usec begun_us = weft_boot_us();
    striker_init(&striker, of->name);
    run_in_peace(&striker, of, &trace, &peace);
    run_in_peace(&striker, of, &trace, &peace); /* now the engine has cached what it can */
    print_peace(of, &trace, &peace);
    for (size_t i = 0; i < STRIKE_KINDS; i++) {
        bool struck = true;
        uint64_t at = 0;
        while (struck && ++at < CALLS_MAX) {
            const char *wrong =
                strike_once(&striker, of, &strike_kinds[i], at, &peace, &got, &struck);
            if (wrong && finding[i].bad++ == 0)
                printf(
                    "# %s, %s at call %llu: %s\n#   struck: %s\n#   repeated: %s\n#   proof: "
                    "%s\n",
                    of->name, strike_kinds[i].name, (unsigned long long)at, wrong, got.before,
                    got.after, got.proof);
        }
        finding[i].calls = at - 1;
        finding[i].bad += at - 1 < trace.count; /* each of them, and BEGIN */
    }
    striker_done(&striker);
    printf("# %s took %lld ms\n", of->name, (long long)((weft_boot_us() - begun_us) / WEFT_MS));
}

void wait_faults(wanted_fn *wanted, int argc, char **argv)
{
    const struct loop_set set = {.run = loop_play,
                                 .first = plays,
                                 .size = sizeof(*plays),
                                 .count = WEFT_LEN(plays),
                                 .calls_min = 4,
                                 .calls_max = CALLS_MAX - 1};
    loop_set_run(&set, wanted, argc, argv);
}
