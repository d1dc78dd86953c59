/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Signal tokens and their keys. A token that is not good costs the store nothing, and a flood of
 * tokens of keys that no replica has made costs it a bounded number of reads; yet a token of a key
 * that another replica has just made is good at once, in the middle of that flood too.
 */

#include "race.h"
#include "waiting.h"

#include "base/arena.h"
#include "base/id.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/wait/keys.h"
#include "engine/wait/wait.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/weft.h"

enum { FLOOD_THREADS = 6, FLOOD_CALLS = 12, ROTATIONS = 5, LOOK_MS = 20 };

/* ---- Counting -------------------------------------------------------------------------------- */

/* Statements that were carried out by all engines of the race. */
struct counts {
    uint64_t all, keys_read;
};

static void count_statement(void *context, const struct weft_call *call,
                            const struct weft_rows *rows)
{
    struct counts *counts = context;
    (void)rows;
    (void)__atomic_add_fetch(&counts->all, 1, __ATOMIC_RELAXED);
    if (call->stmt == WEFT_STMT_KEYS_READ)
        (void)__atomic_add_fetch(&counts->keys_read, 1, __ATOMIC_RELAXED);
}

/* Counts from here on, or no more. */
static void count_in(struct race *race, struct counts *counts)
{
    if (counts)
        *counts = (struct counts){0};
    race->fault.context = counts;
    race->fault.watch = counts ? count_statement : NULL;
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

static struct wait_answer suspend_new(struct weft_engine *engine, const char *lane,
                                      struct weft_claimed *ret_lease)
{
    *ret_lease = wait_lease(engine, lane);
    struct wait_answer made = wait_suspend_at(engine, ret_lease, "a", NULL);
    if (made.rc)
        bail_out("the execution of lane %s cannot be suspended", lane);
    return made;
}

static size_t rotate(struct weft_engine *engine, int64_t grace_ms)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_signing_keys keys = {0};
    struct weft_err err = {0};
    const struct weft_key_rotation rotation = {.grace_ms = grace_ms};
    if (weft_engine_key_rotate(engine, &rotation, arena, &keys, &err))
        bail_out("rotate: %s", err.text);
    weft_arena_free(arena);
    return keys.count;
}

/* The answer to one token, as text: all refusals must be the same. */
static void answer_text(struct weft_engine *engine, const char *token, char *out, size_t size)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_signal_result got = {0};
    struct weft_err err = {0};
    const struct weft_signal signal = {.token = token, .key = "k"};
    enum weft_rc rc = weft_engine_signal(engine, &signal, 1, arena, &got, &err);
    (void)snprintf(out, size, "%s %s: %s (%s)", weft_rc_wire(rc), weft_rc_wire(got.rc),
                   got.err ? got.err->text : "", got.err && got.err->hint ? got.err->hint : "");
    weft_arena_free(arena);
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* The token with one bit of one of its letters turned over. */
static void flip_bit(const char *token, size_t letter, unsigned bit, char ret[])
{
    memcpy(ret, token, WEFT_SIGNAL_TOKEN_TEXT);
    char *at = &ret[strlen("signal_") + letter];
    *at = alphabet[(size_t)(strchr(alphabet, *at) - alphabet) ^ 1u << bit];
}

enum {
    FORMS = 16,
    FORM_TEXT = 2 * WEFT_SIGNAL_TOKEN_TEXT,
    KEY_LETTERS = 6, /* the first letters have bits of the key's number */
};

/* Tokens that are wrong in one way each; the parts of a good one, but for its signature. */
static size_t forge(const char *good, const char *other, char ret[FORMS][FORM_TEXT])
{
    static const uint8_t secret[WEFT_SIGNING_SECRET] = {1, 2, 3};
    struct weft_signal_token own, foreign, parts;
    uint8_t mac[WEFT_SIGNAL_MAC];
    size_t count = 0;
    if (!weft_signal_token_parse(good, &own, mac) || !weft_signal_token_parse(other, &foreign, mac))
        bail_out("a token is none");
    ret[count++][0] = '\0';
    (void)snprintf(ret[count++], FORM_TEXT, "signal_");
    (void)snprintf(ret[count++], FORM_TEXT, "signal_%0*d", (int)strlen(good) - 8,
                   0); /* a letter short */
    (void)snprintf(ret[count++], FORM_TEXT, "%.*s", (int)strlen(good) - 1, good);
    (void)snprintf(ret[count++], FORM_TEXT, "%sA", good);
    (void)snprintf(ret[count++], FORM_TEXT, "%.*s*", (int)strlen(good) - 1,
                   good); /* no letter of base64 */
    (void)snprintf(ret[count++], FORM_TEXT, "Signal%s", good + 6);
    (void)snprintf(ret[count++], FORM_TEXT, "%.*s%s", 60, good, other + 60);
    (void)snprintf(ret[count++], FORM_TEXT, "%.*s%s", 60, other, good + 60);
    weft_signal_token_print(&own, secret, ret[count++]); /* signed under another secret */
    parts = own;
    parts.key = 0;
    weft_signal_token_print(&parts, secret, ret[count++]);
    parts.key = -1;
    weft_signal_token_print(&parts, secret, ret[count++]);
    parts.key = 1; /* removed */
    weft_signal_token_print(&parts, secret, ret[count++]);
    parts = own;
    parts.execution = foreign.execution;
    weft_signal_token_print(&parts, secret, ret[count++]);
    parts = own;
    parts.waitpoint = foreign.waitpoint;
    weft_signal_token_print(&parts, secret, ret[count++]);
    parts = own;
    parts.epoch++;
    weft_signal_token_print(&parts, secret, ret[count++]);
    return count;
}

/* How many answers differ from the first; the texts of the parts stay under the good signature. */
static size_t send_changed(struct weft_engine *engine, const char *good, const char *refusal)
{
    char token[WEFT_SIGNAL_TOKEN_TEXT], text[400];
    size_t bad = 0;
    for (size_t letter = KEY_LETTERS; letter < WEFT_SIGNAL_TOKEN_TEXT - sizeof("signal_"); letter++)
        for (unsigned bit = 0; bit < 6; bit++) {
            flip_bit(good, letter, bit, token);
            answer_text(engine, token, text, sizeof(text));
            bad += strcmp(text, refusal) != 0;
        }
    return bad;
}

/* Over a key that is not the first, so that there is one that was removed. */
static struct wait_answer make_tokens(struct race *race, char ret_other[WEFT_SIGNAL_TOKEN_TEXT],
                                      struct weft_claimed *ret_lease)
{
    struct weft_claimed lease;
    (void)suspend_new(race->a, "first", &lease);
    (void)rotate(race->a, 0);
    race_forward(race, 5000);
    (void)rotate(race->a, 60000); /* removes the first */
    struct wait_answer other = suspend_new(race->a, "other", &lease);
    memcpy(ret_other, other.token[0], WEFT_SIGNAL_TOKEN_TEXT);
    return suspend_new(race->a, "lane", ret_lease);
}

RACE(tokens_that_are_not_good_ask_nothing_of_the_store)
{
    char other[WEFT_SIGNAL_TOKEN_TEXT], forged[FORMS][FORM_TEXT];
    char refusal[400], text[400];
    struct weft_claimed lease;
    struct counts counts;
    struct wait_answer made = make_tokens(race, other, &lease);
    size_t count = forge(made.token[0], other, forged), differ = 0;
    answer_text(race->b, forged[9], refusal, sizeof(refusal)); /* it reads the keys */
    uint64_t calls = race_calls(race);
    count_in(race, &counts);
    for (size_t i = 0; i < count; i++) {
        struct weft_signal_token parts;
        struct weft_err err;
        answer_text(race->b, forged[i], text, sizeof(text));
        is_str(text, refusal, "token %zu gets the answer of all others", i);
        differ += weft_keys_verify(race->b, forged[i], 0, &parts, &err) != WEFT_UNAUTHORIZED;
    }
    is_int(differ, 0, "all are refused without a thread that may wait");
    is_int(send_changed(race->b, made.token[0], refusal), 0,
           "the good token with any one bit turned over is refused");
    count_in(race, NULL);
    ok(counts.all == 0 && race_calls(race) == calls, "no statement and no transaction: %llu, %llu",
       (unsigned long long)counts.all, (unsigned long long)(race_calls(race) - calls));
    is_int(wait_signal(race->b, made.token[0], NULL).effect, WEFT_SIGNAL_RESUMED,
           "the good token is good");
}

RACE(a_fresh_process_reads_the_keys_once)
{
    char other[WEFT_SIGNAL_TOKEN_TEXT], forged[FORMS][FORM_TEXT], text[400];
    struct weft_claimed lease;
    struct counts counts;
    struct wait_answer made = make_tokens(race, other, &lease);
    size_t count = forge(made.token[0], other, forged);
    struct weft_engine *fresh = place_open(&race->place, race->driver, race->now_us);
    count_in(race, &counts);
    for (size_t i = 0; i < count; i++)
        answer_text(fresh, forged[i], text, sizeof(text));
    ok(counts.all == 1 && counts.keys_read == 1,
       "%zu bad tokens read the keys once, and that is all", count);
    count_in(race, NULL);
    weft_engine_close(fresh);
}

/* ---- A flood --------------------------------------------------------------------------------- */

/* A token of a key that no replica has made yet. */
static void invent(uint64_t *seed, char ret_token[WEFT_SIGNAL_TOKEN_TEXT])
{
    static const uint8_t secret[WEFT_SIGNING_SECRET] = {4, 5, 6};
    struct weft_signal_token parts = {.key = 1000 + (int32_t)(next_random(seed) % 1000000),
                                      .epoch = 1};
    weft_id_new(&parts.execution, START_US, 1);
    parts.waitpoint = parts.execution;
    weft_signal_token_print(&parts, secret, ret_token);
}

struct flood {
    struct weft_engine *engine;
    uint64_t seed;
    uint64_t calls, accepted;
    bool *over; /* NULL: after FLOOD_CALLS */
};

static void run_flood(void *context)
{
    struct flood *flood = context;
    char token[WEFT_SIGNAL_TOKEN_TEXT];
    while (flood->over ? !__atomic_load_n(flood->over, __ATOMIC_ACQUIRE)
                       : flood->calls < FLOOD_CALLS) {
        invent(&flood->seed, token);
        flood->accepted += wait_signal(flood->engine, token, NULL).rc != WEFT_UNAUTHORIZED;
        flood->calls++;
    }
}

RACE(a_flood_of_unknown_keys_reads_them_seldom)
{
    struct weft_claimed lease;
    struct counts counts;
    struct flood flood[FLOOD_THREADS] = {{0}};
    struct task task[FLOOD_THREADS];
    uint64_t calls = 0, accepted = 0;
    (void)suspend_new(race->a, "lane", &lease);
    count_in(race, &counts);
    weft_usec begun_us = weft_boot_us();
    for (size_t i = 0; i < FLOOD_THREADS; i++) {
        flood[i] = (struct flood){.engine = race->b, .seed = i + 1};
        task[i] = (struct task){.run = run_flood, .context = &flood[i]};
        task_start(&task[i]);
    }
    for (size_t i = 0; i < FLOOD_THREADS; i++) {
        task_join(&task[i]);
        calls += flood[i].calls;
        accepted += flood[i].accepted;
    }
    uint64_t most = (uint64_t)((weft_boot_us() - begun_us) / (LOOK_MS * WEFT_MS)) + 1;
    count_in(race, NULL);
    is_int(accepted, 0, "all of them are refused");
    ok(counts.keys_read >= 1 && counts.keys_read <= most && counts.all == counts.keys_read,
       "%llu calls read the keys %llu times, at most %llu are allowed, and ran no other statement",
       (unsigned long long)calls, (unsigned long long)counts.keys_read, (unsigned long long)most);
}

RACE(a_new_key_is_good_at_once_in_a_flood)
{
    struct weft_claimed lease;
    struct flood flood[FLOOD_THREADS] = {{0}};
    struct task task[FLOOD_THREADS];
    bool over = false;
    (void)suspend_new(race->a, "first", &lease);
    for (size_t i = 0; i < FLOOD_THREADS; i++) {
        flood[i] = (struct flood){.engine = race->b, .seed = i + 1, .over = &over};
        task[i] = (struct task){.run = run_flood, .context = &flood[i]};
        task_start(&task[i]);
    }
    for (size_t i = 0; i < ROTATIONS; i++) {
        char lane[32];
        (void)snprintf(lane, sizeof(lane), "lane-%zu", i);
        (void)rotate(race->a, 60000);
        struct wait_answer made = suspend_new(race->a, lane, &lease);
        is_int(wait_signal(race->b, made.token[0], NULL).effect, WEFT_SIGNAL_RESUMED,
               "the token of key %zu is good at another replica", i + 2);
    }
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    for (size_t i = 0; i < FLOOD_THREADS; i++) {
        task_join(&task[i]);
        ok(flood[i].accepted == 0 && flood[i].calls > 0, "thread %zu of the flood is refused", i);
    }
}

/* ---- Keys that are made ---------------------------------------------------------------------- */

/* One call, and its answer. */
struct doer {
    struct weft_engine *engine;
    enum { MAKE, ROTATE, SEND } deed;
    struct weft_claimed lease;
    const char *token;
    int64_t grace_ms;
    struct wait_answer made;
    struct signal_answer sent;
};

static void do_deed(void *context)
{
    struct doer *doer = context;
    if (doer->deed == MAKE)
        doer->made = wait_pending(doer->engine, &doer->lease, "a", 0);
    else if (doer->deed == ROTATE)
        (void)rotate(doer->engine, doer->grace_ms);
    else
        doer->sent = wait_signal(doer->engine, doer->token, NULL);
}

/* Two processes make the first waitpoints of a store. */
RACE(two_first_keys_are_one)
{
    static const struct {
        enum weft_fault_point point;
        enum weft_stmt stmt;
    } where[] = {{WEFT_FAULT_BEFORE_RUN, WEFT_STMT_KEY_LOCK},
                 {WEFT_FAULT_BEFORE_RUN, WEFT_STMT_KEY_ADD},
                 {WEFT_FAULT_BEFORE_COMMIT, WEFT_STMT_KEY_ADD}};
    for (size_t turn = 0; turn < WEFT_LEN(where); turn++) {
        struct place place; /* a store of its own: a first key is made once */
        place_init(&place, "keys");
        struct weft_engine *a = place_open(&place, race->driver, race->now_us);
        struct weft_engine *b = place_open(&place, race->driver, race->now_us);
        struct doer doer[2] = {{.engine = a, .deed = MAKE, .lease = wait_lease(a, "one")},
                               {.engine = b, .deed = MAKE, .lease = wait_lease(b, "two")}};
        race_meet(race, &(struct meeting){.run = do_deed,
                                          .slow = &doer[0],
                                          .fast = &doer[1],
                                          .point = where[turn].point,
                                          .stmt = where[turn].stmt});
        is_int(wait_keys(a, NULL), 1, "two processes make one first key");
        ok(wait_signal(b, doer[0].made.token[0], NULL).effect == WEFT_SIGNAL_BUFFERED &&
               wait_signal(a, doer[1].made.token[0], NULL).effect == WEFT_SIGNAL_BUFFERED,
           "the token of each is good at the other");
        weft_engine_close(b);
        weft_engine_close(a);
        place_check(&place, "keys");
        place_done(&place);
    }
}

/* (h) A replica rotates while another one checks and judges a signal under the old key. */
RACE(a_rotation_against_a_signal_under_the_old_key)
{
    static const struct {
        const char *name;
        bool rotate_first;
        int64_t grace_ms;
        enum weft_fault_point point;
        enum weft_stmt stmt;
    } row[] = {
        {"verified, then rotated", false, 60000, WEFT_FAULT_BEFORE_RUN, WEFT_STMT_LIVE_LOCK},
        {"verified, then retired at once", false, 0, WEFT_FAULT_BEFORE_RUN, WEFT_STMT_LIVE_LOCK},
        {"committing, then rotated", false, 60000, WEFT_FAULT_BEFORE_COMMIT, WEFT_STMT_LIVE_LOCK},
        {"rotation begins first", true, 60000, WEFT_FAULT_BEFORE_RUN, WEFT_STMT_KEY_LOCK},
        {"rotation commits", true, 60000, WEFT_FAULT_BEFORE_COMMIT, WEFT_STMT_KEY_ADD},
        {"rotation is committed", true, 60000, WEFT_FAULT_AFTER_COMMIT, WEFT_STMT_KEY_ADD},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_claimed lease;
        char lane[32];
        (void)snprintf(lane, sizeof(lane), "lane-%zu", i);
        struct wait_answer made = suspend_new(race->a, lane, &lease);
        struct doer rotation = {.deed = ROTATE, .grace_ms = row[i].grace_ms};
        struct doer signal = {.deed = SEND, .token = made.token[0]};
        struct doer *slow = row[i].rotate_first ? &rotation : &signal;
        struct doer *fast = row[i].rotate_first ? &signal : &rotation;
        rotation.engine = race->a;
        signal.engine = race->b;
        race_meet(race, &(struct meeting){.run = do_deed,
                                          .slow = slow,
                                          .fast = fast,
                                          .point = row[i].point,
                                          .stmt = row[i].stmt});
        is_int(signal.sent.effect, WEFT_SIGNAL_RESUMED, "%s: the signal resumes", row[i].name);
        is_int(wait_signal(race->a, made.token[0], NULL).rc,
               row[i].grace_ms ? WEFT_NOT_LIVE : WEFT_UNAUTHORIZED,
               "%s: the token is good within its grace, and only then", row[i].name);
        size_t current;
        (void)wait_keys(race->a, &current);
        is_int(current, 1, "%s: one key signs", row[i].name);
    }
}
