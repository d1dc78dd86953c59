/* SPDX-License-Identifier: Apache-2.0 */

/* Signals: good tokens, old ones and broken ones, alone and many at once. */

#include "waitmodel.h"

#include "base/arena.h"
#include "base/id.h"
#include "core/result.h"
#include "engine/engine.h"
#include "engine/wait/wait.h"

enum { LARGE = 30000, KEY_LOW = 4 /* characters */ };

struct weft_bytes payload_of(size_t payload)
{
    static const char *const text[PAYLOADS] = {NULL, "1", "{\"x\":2}", ""};
    static char large[LARGE];
    memset(large, '7', sizeof(large));
    if (payload == PAYLOADS - 1)
        return (struct weft_bytes){.data = large, .size = sizeof(large)};
    return (struct weft_bytes){.data = text[payload],
                               .size = text[payload] ? strlen(text[payload]) : 0};
}

/* One signal of a call. */
struct sending {
    struct execution *x;
    size_t point;
    int32_t key; /* that signed the token, or that a broken one names; 0: it names none */
    bool broken;
    bool invalid; /* its name is not allowed */
    struct sent sent;
};

/*
 * Changes one character behind the prefix; not the low bits of the key's number, which may make it
 * the number of a key of another seed.
 */
static const char *break_token(struct world *w, const char *token)
{
    char *broken = weft_arena_strdup(w->arena, token);
    size_t prefix = strlen("signal_"), size = strlen(broken);
    size_t at = below(w, size - prefix - KEY_LOW);
    at += prefix + (at < 2 ? 0 : KEY_LOW);
    broken[at] = broken[at] == 'A' ? 'B' : 'A';
    if (chance(w, 20))
        broken[below(w, size)] = '\0';
    return broken;
}

/* A waitpoint that takes signals, if there is one. */
static size_t draw_point(struct world *w, const struct execution *x)
{
    size_t from = below(w, x->points);
    for (size_t i = 0; i < x->points; i++) {
        size_t at = (from + i) % x->points;
        if (state_of_point(w, x, &x->point[at]) != WEFT_WAITPOINT_CLOSED && chance(w, 95))
            return at;
    }
    return from;
}

static void draw_signal(struct world *w, struct execution *x, struct sending *sending,
                        struct weft_signal *item)
{
    size_t at = draw_point(w, x);
    const struct point *point = &x->point[at];
    const struct token *token = &point->token[point->token[1].key && chance(w, 40)];
    struct sent sent = {
        .point = at, .name = below(w, NAMES), .source = below(w, SOURCES), .at_us = w->now_us};
    if (chance(w, 50))
        sent.dedupe = below(w, DEDUPES);
    if (chance(w, 50))
        sent.payload = below(w, PAYLOADS - 1);
    else if (chance(w, 5))
        sent.payload = PAYLOADS - 1;
    *sending = (struct sending){.x = x, .point = at, .key = token->key, .sent = sent};
    struct weft_bytes payload = payload_of(sent.payload);
    *item = (struct weft_signal){.token = token->text,
                                 .name = name_text[sent.name],
                                 .source = source_text[sent.source],
                                 .key = dedupe_text[sent.dedupe],
                                 .payload = payload.data,
                                 .payload_size = payload.size};
    if (chance(w, 3)) {
        struct weft_signal_token parsed;
        uint8_t mac[WEFT_SIGNAL_MAC];
        item->token = break_token(w, token->text);
        sending->key = weft_signal_token_parse(item->token, &parsed, mac) ? parsed.key : 0;
        sending->broken = true;
    }
    sending->invalid = chance(w, 1);
    if (sending->invalid)
        item->name = "two words";
}

/* ---- What a signal must do ------------------------------------------------------------------- */

static const struct sent *find_dedupe(const struct execution *x, const struct sent *sent)
{
    for (size_t i = 0; i < x->signals; i++)
        if (sent->dedupe && x->signal[i].point == sent->point &&
            x->signal[i].dedupe == sent->dedupe)
            return &x->signal[i];
    return NULL;
}

static struct sent *keep_signal(struct execution *x, const struct sent *sent)
{
    int32_t n = 1;
    for (size_t i = 0; i < x->signals; i++)
        n += x->signal[i].point == sent->point;
    x->signal[x->signals] = *sent;
    x->signal[x->signals].n = n;
    x->touched = true;
    return &x->signal[x->signals++];
}

/* The effect of a signal to an open waitpoint. */
static enum weft_signal_effect judge(struct world *w, struct execution *x, const struct sent *sent)
{
    const struct suspension *suspension = &x->suspension;
    struct seen_signal seen[SIGNALS_MAX],
        now = {.place = 0, .name = sent->name, .source = sent->source};
    while (suspension->point[now.place] != sent->point)
        now.place++;
    if (!is_asked(&suspension->condition, suspension->count, &now))
        return WEFT_SIGNAL_IGNORED;
    size_t count = see_signals(x, suspension->point, suspension->count, seen);
    if (!is_satisfied(&suspension->condition, suspension->count, seen, count))
        return WEFT_SIGNAL_RECORDED;
    resume(w, x, WEFT_RESUMED_BY_SIGNALS, suspension->resume_delay_ms);
    return WEFT_SIGNAL_RESUMED;
}

static struct weft_signal_result expect(struct world *w, size_t engine,
                                        const struct sending *sending)
{
    struct execution *x = sending->x;
    struct weft_signal_result want = {.rc = WEFT_OK};
    /* Also a broken token makes the engine look for the key that it names. */
    bool good = sending->key && key_verifies(w, engine, sending->key);
    if (!good || sending->broken)
        want.rc = WEFT_UNAUTHORIZED;
    else if (sending->invalid)
        want.rc = WEFT_INVALID_VALUE;
    if (want.rc)
        return want;
    const struct sent *first = find_dedupe(x, &sending->sent);
    enum weft_waitpoint_state state = state_of_point(w, x, &x->point[sending->point]);
    want.waitpoint = x->point[sending->point].id;
    if (first) {
        want.effect = WEFT_SIGNAL_DUPLICATE;
        want.first = first->effect;
        return want;
    }
    if (state == WEFT_WAITPOINT_CLOSED)
        return (struct weft_signal_result){.rc = WEFT_NOT_LIVE};
    struct sent *kept = keep_signal(x, &sending->sent);
    want.effect = kept->effect =
        state == WEFT_WAITPOINT_PENDING ? WEFT_SIGNAL_BUFFERED : judge(w, x, kept);
    return want;
}

static void check_answer(struct world *w, size_t engine, const struct sending *sending,
                         const struct weft_signal_result *got)
{
    struct weft_signal_result want = expect(w, engine, sending);
    const struct sent *sent = &sending->sent;
    w->effect[want.effect]++;
    note(w, "engine %zu: signal to #%zu.%zu, name %zu, source %zu, key %zu, signed by %d: %s %s",
         engine, number_of(w, sending->x), sending->point, sent->name, sent->source, sent->dedupe,
         sending->key, weft_rc_wire(got->rc), weft_signal_effect_name(got->effect));
    if (got->rc != want.rc || got->effect != want.effect || got->first != want.first ||
        weft_id_cmp(&got->waitpoint, &want.waitpoint) != 0)
        wrong(w, "a signal is answered with %s %s (first %s), must be %s %s (first %s)",
              weft_rc_wire(got->rc), weft_signal_effect_name(got->effect),
              weft_signal_effect_name(got->first), weft_rc_wire(want.rc),
              weft_signal_effect_name(want.effect), weft_signal_effect_name(want.first));
}

void op_signal(struct world *w)
{
    struct sending sending[BATCH_MAX];
    struct weft_signal item[BATCH_MAX];
    struct weft_signal_result got[BATCH_MAX] = {0};
    struct weft_err err = {0};
    static const enum weft_state aim[] = {WEFT_STATE_SUSPENDED, WEFT_STATE_RUNNING};
    size_t engine = any_engine(w), dice = below(w, 100), count = 0;
    size_t most = dice < 60 ? 1 : dice < 95 ? 2 + below(w, 5) : BATCH_MAX;
    struct execution *one = dice < 85 ? NULL : pick(w, aim[chance(w, 25)]);
    for (size_t i = 0; i < most; i++) {
        struct execution *x = one ? one : pick(w, aim[chance(w, 35)]);
        bool open = false;
        for (size_t p = 0; p < x->points; p++)
            open |= state_of_point(w, x, &x->point[p]) != WEFT_WAITPOINT_CLOSED;
        if (x->points > 0 && x->signals + BATCH_MAX < SIGNALS_MAX && (open || chance(w, 10))) {
            draw_signal(w, x, &sending[count], &item[count]);
            count++;
        }
    }
    if (count == 0)
        return;
    enum weft_rc rc = weft_engine_signal(w->engine[engine], item, count, w->arena, got, &err);
    if (rc && (count > 1 || rc != got[0].rc))
        must_be(w, rc, WEFT_OK, "signal");
    for (size_t i = 0; i < count && !w->failed; i++)
        check_answer(w, engine, &sending[i], &got[i]);
}
