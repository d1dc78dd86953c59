/* SPDX-License-Identifier: Apache-2.0 */

#include "core/policy.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_ATTEMPTS = 25, /* with the waits below: tried for about 13 hours */
    DEFAULT_LOST = 10,
    DEFAULT_LEASE_MS = 30000,
    DEFAULT_INITIAL_MS = 1000,
    DEFAULT_MAX_MS = 3600000,
    FAILED_KEPT = 4, /* times as long */
    TEXT_MAX = 2400, /* fits an index entry */
};

#define DEFAULT_RETENTION_US ((weft_usec)7 * 86400 * WEFT_SECOND)

static enum weft_rc resolve_no_retry(const struct weft_policy *policy, struct weft_arena *arena,
                                     struct weft_rules *rules, struct weft_err *err)
{
    if (policy->no_retry_count > WEFT_NO_RETRY_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "policy.no_retry",
                               "no_retry has %zu classes, at most %d are allowed",
                               policy->no_retry_count, WEFT_NO_RETRY_MAX);
    const char **classes = weft_new_array(arena, const char *, policy->no_retry_count + 1);
    size_t count = 0;
    for (size_t i = 0; i < policy->no_retry_count; i++) {
        const char *word = policy->no_retry[i];
        if (!word || !*word || strlen(word) > WEFT_CLASS_MAX ||
            !weft_text_printable(word, strlen(word)))
            return weft_invalid(err, "policy.no_retry",
                                "error class %zu of no_retry must be 1 to %d printable bytes", i,
                                WEFT_CLASS_MAX);
        classes[count++] = weft_arena_strdup(arena, word);
    }
    qsort(classes, count, sizeof(*classes), weft_text_order);
    rules->no_retry = classes;
    for (size_t i = 0; i < count; i++) /* drops repeats: they do not make another policy */
        if (i == 0 || strcmp(classes[i], classes[i - 1]) != 0)
            classes[rules->no_retry_count++] = classes[i];
    return WEFT_OK;
}

struct bounds {
    const char *field;
    int64_t given, by_default, min, max;
    int64_t *result;
};

enum weft_rc weft_policy_resolve(const struct weft_policy *policy, struct weft_arena *arena,
                                 struct weft_rules *ret_rules, struct weft_err *err)
{
    static const struct weft_policy none = {0};
    const struct weft_policy *p = policy ? policy : &none;
    int64_t attempts, lost, initial, most, timeout, lease, retention;
    const struct bounds row[] = {
        {"policy.max_attempts", p->max_attempts, DEFAULT_ATTEMPTS, 1, WEFT_ATTEMPTS_MAX, &attempts},
        {"policy.max_lost", p->max_lost, DEFAULT_LOST, 1, WEFT_ATTEMPTS_MAX, &lost},
        {"policy.backoff.initial_ms", p->initial_ms == -1 ? 0 : p->initial_ms,
         p->initial_ms == -1 ? 0 : DEFAULT_INITIAL_MS, 0, WEFT_DELAY_MAX_MS, &initial},
        {"policy.backoff.max_ms", p->max_ms,
         p->initial_ms > DEFAULT_MAX_MS ? p->initial_ms : DEFAULT_MAX_MS, 1, WEFT_DELAY_MAX_MS,
         &most},
        {"policy.attempt_timeout_ms", p->attempt_timeout_ms, 0, 0, WEFT_DELAY_MAX_MS, &timeout},
        {"policy.lease_ms", p->lease_ms, DEFAULT_LEASE_MS, WEFT_LEASE_MIN_MS, WEFT_LEASE_MAX_MS,
         &lease},
        {"policy.retention_ms", p->retention_ms, 0, p->retention_ms ? 1 : 0, WEFT_DELAY_MAX_MS,
         &retention},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        *row[i].result = row[i].given ? row[i].given : row[i].by_default;
        if (*row[i].result < row[i].min || *row[i].result > row[i].max)
            return weft_invalid(err, row[i].field, "%s is %lld, allowed are %lld to %lld",
                                row[i].field, (long long)row[i].given, (long long)row[i].min,
                                (long long)row[i].max);
    }
    double factor = p->factor == 0 ? 2 : p->factor;
    if (!isfinite(factor) || factor < 1 || factor > 1000)
        return weft_invalid(err, "policy.backoff.factor", "backoff.factor must be 1 to 1000");
    if (p->backoff != WEFT_BACKOFF_EXPONENTIAL && p->backoff != WEFT_BACKOFF_FIXED)
        return weft_invalid(err, "policy.backoff.kind",
                            "backoff.kind must be exponential or fixed");

    struct weft_rules rules = {
        .max_attempts = (int32_t)attempts,
        .backoff = p->backoff,
        .initial_us = initial * WEFT_MS,
        .max_us = most * WEFT_MS,
        .factor = factor,
        .jitter = !p->no_jitter,
        .attempt_timeout_us = timeout * WEFT_MS,
        .lease_us = lease * WEFT_MS,
        .max_lost = (int32_t)lost,
        .retention_us = retention * WEFT_MS,
    };
    enum weft_rc rc = resolve_no_retry(p, arena, &rules, err);
    if (!rc)
        *ret_rules = rules;
    return rc;
}

struct weft_policy weft_policy_of(const struct weft_rules *rules)
{
    return (struct weft_policy){
        .max_attempts = rules->max_attempts,
        .backoff = rules->backoff,
        .initial_ms = rules->initial_us ? rules->initial_us / WEFT_MS : -1,
        .factor = rules->factor,
        .max_ms = rules->max_us / WEFT_MS,
        .no_jitter = !rules->jitter,
        .attempt_timeout_ms = rules->attempt_timeout_us / WEFT_MS,
        .lease_ms = rules->lease_us / WEFT_MS,
        .max_lost = rules->max_lost,
        .retention_ms = rules->retention_us / WEFT_MS,
        .no_retry = rules->no_retry,
        .no_retry_count = rules->no_retry_count,
    };
}

weft_usec weft_policy_keeps(const struct weft_rules *rules, weft_usec lane_us,
                            enum weft_state state)
{
    weft_usec kept_us = rules->retention_us ? rules->retention_us
                        : lane_us           ? lane_us
                                            : DEFAULT_RETENTION_US;
    bool failed = state == WEFT_STATE_FAILED || state == WEFT_STATE_EXPIRED;
    return failed ? FAILED_KEPT * kept_us : kept_us;
}

const char *weft_policy_text(const struct weft_rules *rules, struct weft_arena *arena)
{
    struct weft_buf buf;
    weft_buf_init(&buf, TEXT_MAX);
    struct weft_json_writer out;
    weft_json_writer_init(&out, &buf);
    weft_json_begin_object(&out);
    weft_json_add_i64(&out, "max_attempts", rules->max_attempts);
    weft_json_add_object(&out, "backoff");
    weft_json_add_text(&out, "kind",
                       rules->backoff == WEFT_BACKOFF_FIXED ? "fixed" : "exponential");
    weft_json_add_i64(&out, "initial_ms", rules->initial_us / WEFT_MS);
    weft_json_key(&out, "factor");
    weft_json_put_double(&out, rules->factor);
    weft_json_add_i64(&out, "max_ms", rules->max_us / WEFT_MS);
    weft_json_add_bool(&out, "jitter", rules->jitter);
    weft_json_end_object(&out);
    weft_json_add_i64(&out, "attempt_timeout_ms", rules->attempt_timeout_us / WEFT_MS);
    weft_json_add_i64(&out, "lease_ms", rules->lease_us / WEFT_MS);
    weft_json_add_array(&out, "no_retry");
    for (size_t i = 0; i < rules->no_retry_count; i++)
        weft_json_put_text(&out, rules->no_retry[i]);
    weft_json_end_array(&out);
    weft_json_add_i64(&out, "max_lost", rules->max_lost);
    if (rules->retention_us)
        weft_json_add_i64(&out, "retention_ms", rules->retention_us / WEFT_MS);
    weft_json_end_object(&out);
    const char *text = weft_arena_strdup(arena, buf.data);
    weft_buf_done(&buf);
    return text;
}

/* ---- From JSON ------------------------------------------------------------------------------- */

struct number_field {
    const char *name;
    const char *path;
    size_t offset;
    bool small; /* int32_t, else int64_t */
};

#define AT(field) offsetof(struct weft_policy, field)
static const struct number_field policy_number[] = {
    {"max_attempts", "policy.max_attempts", AT(max_attempts), true},
    {"max_lost", "policy.max_lost", AT(max_lost), true},
    {"attempt_timeout_ms", "policy.attempt_timeout_ms", AT(attempt_timeout_ms), false},
    {"lease_ms", "policy.lease_ms", AT(lease_ms), false},
    {"retention_ms", "policy.retention_ms", AT(retention_ms), false},
};
static const struct number_field backoff_number[] = {
    {"initial_ms", "policy.backoff.initial_ms", AT(initial_ms), false},
    {"max_ms", "policy.backoff.max_ms", AT(max_ms), false},
};

/*
 * Reads a member into its field when its name is in the table. An explicit 0 is out of bounds for
 * all but two of them, and "zero means default" is the C form's rule alone; so it becomes -1, which
 * weft_policy_resolve() refuses, or takes as "at once" for initial_ms.
 */
static enum weft_rc take_number(const struct number_field *table, size_t count,
                                const struct weft_json_iter *member, struct weft_policy *policy,
                                struct weft_err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!weft_json_is(&member->key, table[i].name))
            continue;
        if (member->value.kind == WEFT_JSON_NULL)
            return WEFT_OK;
        int64_t number;
        if (!weft_json_i64(&member->value, &number) || number < 0 || number > WEFT_DELAY_MAX_MS)
            return weft_invalid(err, table[i].path,
                                "%s must be a whole number that is not negative", table[i].path);
        if (number == 0 && table[i].offset != AT(attempt_timeout_ms))
            number = -1;
        if (table[i].small && number > WEFT_ATTEMPTS_MAX)
            number = WEFT_ATTEMPTS_MAX + 1; /* refused by resolve, with the bounds in the message */
        if (table[i].small)
            *(int32_t *)((char *)policy + table[i].offset) = (int32_t)number;
        else
            *(int64_t *)((char *)policy + table[i].offset) = number;
        return WEFT_OK;
    }
    return WEFT_NOT_FOUND;
}

static enum weft_rc take_backoff(const struct weft_json_iter *member, struct weft_policy *policy,
                                 struct weft_err *err)
{
    enum weft_rc rc = take_number(backoff_number, WEFT_LEN(backoff_number), member, policy, err);
    if (rc != WEFT_NOT_FOUND)
        return rc;
    const struct weft_json *value = &member->value;
    static const char *const known[] = {"kind", "factor", "jitter"};
    for (size_t i = 0; value->kind == WEFT_JSON_NULL && i < WEFT_LEN(known); i++)
        if (weft_json_is(&member->key, known[i]))
            return WEFT_OK;
    if (weft_json_is(&member->key, "kind")) {
        if (!weft_json_is(value, "exponential") && !weft_json_is(value, "fixed"))
            return weft_invalid(err, "policy.backoff.kind",
                                "backoff.kind must be exponential or fixed");
        policy->backoff =
            weft_json_is(value, "fixed") ? WEFT_BACKOFF_FIXED : WEFT_BACKOFF_EXPONENTIAL;
    } else if (weft_json_is(&member->key, "factor")) {
        if (!weft_json_double(value, &policy->factor) || policy->factor == 0)
            return weft_invalid(err, "policy.backoff.factor",
                                "backoff.factor must be a number from 1 to 1000");
    } else if (weft_json_is(&member->key, "jitter")) {
        if (value->kind != WEFT_JSON_BOOL)
            return weft_invalid(err, "policy.backoff.jitter",
                                "backoff.jitter must be true or false");
        policy->no_jitter = !weft_json_bool(value);
    } else {
        return weft_fail_field(err, WEFT_UNKNOWN_FIELD, "policy.backoff", "unknown field %.*s",
                               (int)member->key.size, member->key.text);
    }
    return WEFT_OK;
}

static enum weft_rc take_no_retry(const struct weft_json *value, struct weft_arena *arena,
                                  struct weft_policy *policy, struct weft_err *err)
{
    if (value->kind != WEFT_JSON_ARRAY)
        return weft_invalid(err, "policy.no_retry", "no_retry must be a list of error classes");
    const char **classes = weft_new_array(arena, const char *, WEFT_NO_RETRY_MAX + 1);
    struct weft_json_iter item;
    weft_json_iter_init(&item, value);
    size_t count = 0;
    while (weft_json_next(&item)) {
        if (item.value.kind != WEFT_JSON_STRING || count == WEFT_NO_RETRY_MAX)
            return weft_invalid(err, "policy.no_retry",
                                "no_retry must be a list of at most %d error classes",
                                WEFT_NO_RETRY_MAX);
        enum weft_rc rc = weft_json_string(&item.value, arena, &classes[count++], err);
        if (rc)
            return rc;
    }
    policy->no_retry = classes;
    policy->no_retry_count = count;
    return WEFT_OK;
}

static enum weft_rc take_member(const struct weft_json_iter *member, struct weft_arena *arena,
                                bool lenient, struct weft_policy *policy, struct weft_err *err)
{
    enum weft_rc rc = take_number(policy_number, WEFT_LEN(policy_number), member, policy, err);
    if (rc != WEFT_NOT_FOUND)
        return rc;
    if (weft_json_is(&member->key, "no_retry"))
        return member->value.kind == WEFT_JSON_NULL
                   ? WEFT_OK
                   : take_no_retry(&member->value, arena, policy, err);
    if (!weft_json_is(&member->key, "backoff"))
        return weft_fail_field(err, WEFT_UNKNOWN_FIELD, "policy", "unknown field %.*s in policy",
                               (int)member->key.size, member->key.text);
    if (member->value.kind == WEFT_JSON_NULL)
        return WEFT_OK;
    if (member->value.kind != WEFT_JSON_OBJECT)
        return weft_invalid(err, "policy.backoff", "backoff must be an object");
    struct weft_json_iter inner;
    weft_json_iter_init(&inner, &member->value);
    rc = WEFT_OK;
    while (!rc && weft_json_next(&inner)) {
        rc = take_backoff(&inner, policy, err);
        if (rc == WEFT_UNKNOWN_FIELD && lenient)
            rc = WEFT_OK;
    }
    return rc;
}

enum weft_rc weft_policy_read(const struct weft_json *value, struct weft_arena *arena, bool lenient,
                              struct weft_policy *ret_policy, struct weft_err *err)
{
    if (value->kind != WEFT_JSON_OBJECT)
        return weft_invalid(err, "policy", "policy must be an object");
    struct weft_policy policy = {0};
    struct weft_json_iter member;
    weft_json_iter_init(&member, value);
    while (weft_json_next(&member)) {
        enum weft_rc rc = take_member(&member, arena, lenient, &policy, err);
        if (rc && !(rc == WEFT_UNKNOWN_FIELD && lenient))
            return rc;
    }
    *ret_policy = policy;
    return WEFT_OK;
}

/* ---- Retries --------------------------------------------------------------------------------- */

#define JITTER 0.2 /* how far a random wait may be from the computed one, as a share of it */

weft_usec weft_retry_backoff(const struct weft_rules *rules, int32_t n, uint64_t random)
{
    double wait = (double)rules->initial_us;
    if (rules->backoff == WEFT_BACKOFF_EXPONENTIAL)
        for (int32_t i = 1; i < n && wait < (double)rules->max_us; i++)
            wait *= rules->factor;
    if (wait > (double)rules->max_us)
        wait = (double)rules->max_us;
    if (rules->jitter) {
        double least = wait * (1 - JITTER), most = wait * (1 + JITTER);
        /*
         * Drawn from what is left of the range below the ceiling, not cut afterwards: cutting would
         * give half of all executions at the ceiling the same wait.
         */
        if (most > (double)rules->max_us)
            most = (double)rules->max_us;
        double share = (double)(random >> 11) / (double)(1ull << 53); /* 53 bits fit a double */
        wait = least + (most - least) * share;
    }
    return (weft_usec)wait;
}

static bool in_no_retry(const struct weft_rules *rules, const char *error_class)
{
    for (size_t i = 0; error_class && i < rules->no_retry_count; i++)
        if (strcmp(rules->no_retry[i], error_class) == 0)
            return true;
    return false;
}

static bool is_final(const struct weft_rules *rules, const struct weft_live *live,
                     const struct weft_fault_report *report)
{
    return report->permanent || live->attempt - live->forgiven >= rules->max_attempts ||
           in_no_retry(rules, report->error_class);
}

struct weft_event weft_retry_decide(const struct weft_rules *rules, const struct weft_live *live,
                                    const struct weft_fault_report *report)
{
    struct weft_event event = {
        .kind = WEFT_EVENT_FAIL, .how = report->how, .now_us = report->now_us};
    if (is_final(rules, live, report))
        return event;

    weft_usec wait_us;
    if (report->retry_after_ms > 0)
        wait_us = report->retry_after_ms * WEFT_MS;
    else if (report->retry_after_ms < 0)
        wait_us = 0;
    else
        wait_us = weft_retry_backoff(rules, live->attempt - live->forgiven, report->random);
    event.kind = wait_us > 0 ? WEFT_EVENT_RETRY : WEFT_EVENT_RETRY_NOW;
    event.due_us = wait_us > 0 ? report->now_us + wait_us : 0;
    return event;
}

/*
 * is_final() read backwards. Whether the worker said "permanent" is not stored, but is the only
 * cause left when the others do not apply. A class in no_retry is named before the attempts are,
 * because more attempts would not have helped.
 */
static enum weft_not_retried not_retried(const struct weft_rules *rules,
                                         const struct weft_retry_facts *facts, int32_t used)
{
    if (facts->state != WEFT_STATE_FAILED)
        return WEFT_NOT_RETRIED_NONE;
    if (facts->ended == WEFT_ENDED_LOST)
        return WEFT_NOT_RETRIED_LOST;
    if (facts->ended == WEFT_ENDED_REFUSED)
        return WEFT_NOT_RETRIED_INVALID;
    if (in_no_retry(rules, facts->error_class))
        return WEFT_NOT_RETRIED_CLASS;
    return used >= rules->max_attempts ? WEFT_NOT_RETRIED_ATTEMPTS : WEFT_NOT_RETRIED_PERMANENT;
}

struct weft_retry_view weft_retry_look(const struct weft_rules *rules,
                                       const struct weft_retry_facts *facts)
{
    bool living = weft_state_living(facts->state);
    bool counts = living
                      ? facts->state == WEFT_STATE_RUNNING
                      : facts->ended == WEFT_ENDED_COMPLETED || facts->ended == WEFT_ENDED_FAILED ||
                            facts->ended == WEFT_ENDED_TIMED_OUT;
    int32_t used = facts->attempt - facts->forgiven - (counts ? 0 : 1);
    if (used < 0)
        used = 0;
    bool waits = facts->state == WEFT_STATE_DELAYED && used > 0;
    return (struct weft_retry_view){
        .used = used,
        .left = living && used < rules->max_attempts ? rules->max_attempts - used : 0,
        .next_us = waits ? facts->due_us : 0,
        .not_retried = not_retried(rules, facts, used),
    };
}

bool weft_attempt_overdue(const struct weft_live *live, weft_usec now_us)
{
    return live->attempt_deadline_us != 0 && live->attempt_deadline_us <= now_us;
}

struct weft_event weft_lost_decide(const struct weft_rules *rules, const struct weft_live *live,
                                   weft_usec forgive_us)
{
    if (live->due_us < forgive_us)
        return (struct weft_event){.kind = WEFT_EVENT_LOSE, .uncounted = true};
    if (live->lost + 1 > rules->max_lost)
        return (struct weft_event){.kind = WEFT_EVENT_FAIL, .how = WEFT_ENDED_LOST};
    return (struct weft_event){.kind = WEFT_EVENT_LOSE};
}
