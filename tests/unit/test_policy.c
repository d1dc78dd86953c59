/* SPDX-License-Identifier: Apache-2.0 */

/* Policies: defaults, bounds, the JSON form, and one text for equal policies. */

#include "base/arena.h"
#include "base/limits.h"
#include "core/policy.h"
#include "tap.h"

#include <math.h>

enum { INDEX_ENTRY_MAX = 2704 }; /* of a btree page of 8 KiB: the text has a unique index */

static struct weft_arena *arena;

#define WEEK_US ((weft_usec)7 * 86400 * WEFT_SECOND)

static void test_defaults(void)
{
    struct weft_rules rules;
    struct weft_err err;
    ok(weft_policy_resolve(NULL, arena, &rules, &err) == WEFT_OK, "no policy is a policy");
    is_int(rules.max_attempts, 25, "25 attempts");
    is_int(rules.backoff, WEFT_BACKOFF_EXPONENTIAL, "the default backoff is exponential");
    is_int(rules.initial_us, WEFT_SECOND, "from a second");
    is_int(rules.max_us, 3600 * WEFT_SECOND, "the default longest wait is an hour");
    ok(rules.factor == 2, "the default factor is 2");
    ok(rules.jitter, "the default has jitter");
    is_int(rules.attempt_timeout_us, 0, "the default has no attempt timeout");
    is_int(rules.lease_us, 30 * WEFT_SECOND, "leases of 30 s");
    is_int(rules.max_lost, 10, "ten leases may be lost");
    is_int(rules.retention_us, 0, "nothing is said about how long it is kept");
    is_int(rules.no_retry_count, 0, "no final classes");
    const struct weft_policy zero = {0};
    struct weft_rules same;
    ok(weft_policy_resolve(&zero, arena, &same, &err) == WEFT_OK, "zeros are defaults");
    is_str(weft_policy_text(&same, arena), weft_policy_text(&rules, arena), "the same ones");
}

struct bound {
    const char *name;
    struct weft_policy policy;
    const char *field; /* NULL: it is allowed */
};

static void test_bounds(void)
{
    const struct bound row[] = {
        {"one attempt", {.max_attempts = 1}, NULL},
        {"the most attempts", {.max_attempts = WEFT_ATTEMPTS_MAX}, NULL},
        {"one more", {.max_attempts = WEFT_ATTEMPTS_MAX + 1}, "policy.max_attempts"},
        {"fewer than one", {.max_attempts = -1}, "policy.max_attempts"},
        {"the most lost", {.max_lost = WEFT_ATTEMPTS_MAX}, NULL},
        {"more lost", {.max_lost = WEFT_ATTEMPTS_MAX + 1}, "policy.max_lost"},
        {"fewer lost", {.max_lost = -1}, "policy.max_lost"},
        {"at once", {.initial_ms = -1}, NULL},
        {"before that", {.initial_ms = -2}, "policy.backoff.initial_ms"},
        {"the longest wait", {.initial_ms = WEFT_DELAY_MAX_MS}, NULL},
        {"a longer one", {.initial_ms = WEFT_DELAY_MAX_MS + 1}, "policy.backoff.initial_ms"},
        {"a ceiling of 1 ms", {.max_ms = 1}, NULL},
        {"the highest ceiling", {.max_ms = WEFT_DELAY_MAX_MS}, NULL},
        {"a higher one", {.max_ms = WEFT_DELAY_MAX_MS + 1}, "policy.backoff.max_ms"},
        {"a negative one", {.max_ms = -1}, "policy.backoff.max_ms"},
        {"a huge one", {.max_ms = INT64_MAX}, "policy.backoff.max_ms"},
        {"the longest timeout", {.attempt_timeout_ms = WEFT_DELAY_MAX_MS}, NULL},
        {"a longer timeout", {.attempt_timeout_ms = INT64_MAX}, "policy.attempt_timeout_ms"},
        {"a negative timeout", {.attempt_timeout_ms = -1}, "policy.attempt_timeout_ms"},
        {"the shortest lease", {.lease_ms = WEFT_LEASE_MIN_MS}, NULL},
        {"a shorter one", {.lease_ms = WEFT_LEASE_MIN_MS - 1}, "policy.lease_ms"},
        {"the longest lease", {.lease_ms = WEFT_LEASE_MAX_MS}, NULL},
        {"a longer lease", {.lease_ms = WEFT_LEASE_MAX_MS + 1}, "policy.lease_ms"},
        {"the shortest retention", {.retention_ms = 1}, NULL},
        {"the longest retention", {.retention_ms = WEFT_DELAY_MAX_MS}, NULL},
        {"a longer retention", {.retention_ms = WEFT_DELAY_MAX_MS + 1}, "policy.retention_ms"},
        {"a negative retention", {.retention_ms = INT64_MIN}, "policy.retention_ms"},
        {"no growth", {.factor = 1}, NULL},
        {"the fastest growth", {.factor = 1000}, NULL},
        {"faster", {.factor = 1000.5}, "policy.backoff.factor"},
        {"shrinking", {.factor = 0.99}, "policy.backoff.factor"},
        {"negative growth", {.factor = -2}, "policy.backoff.factor"},
        {"no number", {.factor = NAN}, "policy.backoff.factor"},
        {"no end", {.factor = INFINITY}, "policy.backoff.factor"},
        {"fixed", {.backoff = WEFT_BACKOFF_FIXED}, NULL},
        {"another backoff", {.backoff = (enum weft_backoff)2}, "policy.backoff.kind"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_rules rules;
        struct weft_err err = {0};
        enum weft_rc rc = weft_policy_resolve(&row[i].policy, arena, &rules, &err);
        is_int(rc, row[i].field ? WEFT_INVALID_VALUE : WEFT_OK, "%s", row[i].name);
        is_str(err.field, row[i].field, "%s: the field to blame", row[i].name);
    }
}

static void test_no_retry(void)
{
    const char *many[WEFT_NO_RETRY_MAX + 1];
    char long_word[WEFT_CLASS_MAX + 2];
    struct weft_rules rules;
    struct weft_err err = {0};
    for (size_t i = 0; i < WEFT_LEN(many); i++)
        many[i] = "same";
    struct weft_policy policy = {.no_retry = many, .no_retry_count = WEFT_NO_RETRY_MAX};
    ok(weft_policy_resolve(&policy, arena, &rules, &err) == WEFT_OK, "16 classes");
    policy.no_retry_count++;
    is_int(weft_policy_resolve(&policy, arena, &rules, &err), WEFT_TOO_LARGE, "17 are too many");
    is_str(err.field, "policy.no_retry", "says which field");
    memset(long_word, 'x', sizeof(long_word) - 1);
    long_word[sizeof(long_word) - 1] = '\0';
    const char *const bad[] = {NULL, "", "a\nb", "\xff", long_word};
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        policy = (struct weft_policy){.no_retry = &bad[i], .no_retry_count = 1};
        is_int(weft_policy_resolve(&policy, arena, &rules, &err), WEFT_INVALID_VALUE,
               "bad class %zu is refused", i);
    }
    long_word[WEFT_CLASS_MAX] = '\0';
    const char *const good[] = {long_word};
    policy = (struct weft_policy){.no_retry = good, .no_retry_count = 1};
    is_int(weft_policy_resolve(&policy, arena, &rules, &err), WEFT_OK, "64 bytes are fine");
}

static const char *text_of(const struct weft_policy *policy)
{
    struct weft_rules rules;
    struct weft_err err = {0};
    if (!ok(weft_policy_resolve(policy, arena, &rules, &err) == WEFT_OK, "resolves: %s", err.text))
        return "";
    return weft_policy_text(&rules, arena);
}

/* From a canonical text through the JSON reader and back. */
static void check_round_trip(const char *text)
{
    struct weft_json value;
    struct weft_policy policy;
    struct weft_err err = {0};
    ok(weft_json_check(text, strlen(text), &value, &err) == WEFT_OK, "the policy is JSON: %s",
       err.text);
    if (ok(weft_policy_parse(&value, arena, &policy, &err) == WEFT_OK, "the policy is read: %s",
           err.text))
        is_str(text_of(&policy), text, "the policy is written as it was read");
}

static void test_text(void)
{
    static const char *const ab[] = {"a", "b"}, *const ba[] = {"b", "a"},
                             *const twice[] = {"b", "a", "b", "a"};
    struct weft_policy policy = {.no_retry = ab, .no_retry_count = 2};
    const char *text = text_of(&policy);
    policy.no_retry = ba;
    is_str(text_of(&policy), text, "the order of classes does not matter");
    policy.no_retry = twice;
    policy.no_retry_count = 4;
    is_str(text_of(&policy), text, "a class that is given twice counts once");
    struct weft_policy spelled = {.max_attempts = 25,
                                  .initial_ms = 1000,
                                  .factor = 2,
                                  .max_ms = 3600000,
                                  .lease_ms = 30000,
                                  .max_lost = 10};
    is_str(text_of(&spelled), text_of(&(struct weft_policy){0}), "defaults may be spelled out");
    spelled.factor = 2.0000000000000004;
    ok(strcmp(text_of(&spelled), text_of(&(struct weft_policy){0})) != 0,
       "the least difference makes another text");

    check_round_trip(text);
    check_round_trip(text_of(&(struct weft_policy){0}));
    check_round_trip(text_of(&(struct weft_policy){.initial_ms = -1, .no_jitter = true}));
    check_round_trip(text_of(&(struct weft_policy){
        .backoff = WEFT_BACKOFF_FIXED, .factor = 1.1, .attempt_timeout_ms = 1, .max_attempts = 1}));
    check_round_trip(text_of(&spelled));
}

/* The text that shows a policy to readers is read back as the same policy. */
static void test_shown(void)
{
    static const char *const final[] = {"a", "b"};
    static const struct weft_policy given[] = {
        {0},
        {.initial_ms = -1, .no_jitter = true, .max_attempts = 1},
        {.backoff = WEFT_BACKOFF_FIXED,
         .initial_ms = 7,
         .factor = 1.5,
         .max_ms = 9,
         .attempt_timeout_ms = 11,
         .lease_ms = 2000,
         .max_lost = 3,
         .retention_ms = 13,
         .no_retry = final,
         .no_retry_count = 2},
    };
    for (size_t i = 0; i < WEFT_LEN(given); i++) {
        struct weft_rules rules;
        ok(weft_policy_resolve(&given[i], arena, &rules, NULL) == WEFT_OK, "policy %zu", i);
        struct weft_policy shown = weft_policy_of(&rules);
        is_str(text_of(&shown), weft_policy_text(&rules, arena), "policy %zu is shown whole", i);
    }
}

/* Texts from before lanes had a say state the week: it counts as said, and they stay readable. */
static void test_old_text(void)
{
    static const char text[] =
        "{\"max_attempts\":5,\"backoff\":{\"kind\":\"exponential\",\"initial_ms\":1000,\"factor\":"
        "2,"
        "\"max_ms\":60000,\"jitter\":true},\"attempt_timeout_ms\":0,\"lease_ms\":30000,"
        "\"no_retry\":[],\"max_lost\":10,\"retention_ms\":604800000}";
    struct weft_json value;
    struct weft_policy policy;
    struct weft_rules rules;
    struct weft_err err;
    ok(weft_json_check(text, strlen(text), &value, &err) == WEFT_OK &&
           weft_policy_parse(&value, arena, &policy, &err) == WEFT_OK &&
           weft_policy_resolve(&policy, arena, &rules, &err) == WEFT_OK,
       "an old text is read");
    is_int(rules.retention_us, WEEK_US, "the old text states a week of retention");
    is_int(rules.max_attempts, 5, "the old text keeps the attempts that were the default then");
    is_int(rules.max_us, 60 * WEFT_SECOND,
           "the old text keeps the longest wait that was the default then");
    is_str(weft_policy_text(&rules, arena), text, "an old text is canonical");
    ok(!strstr(text_of(&(struct weft_policy){0}), "retention"),
       "a retention that is not stated is not written");
}

static void test_keeps(void)
{
    static const struct {
        const char *name;
        weft_usec policy_us, lane_us;
        enum weft_state state;
        weft_usec want_us;
    } row[] = {
        {"a week by default", 0, 0, WEFT_STATE_SUCCEEDED, WEEK_US},
        {"failed", 0, 0, WEFT_STATE_FAILED, 4 * WEEK_US},
        {"expired", 0, 0, WEFT_STATE_EXPIRED, 4 * WEEK_US},
        {"cancelled", 0, 0, WEFT_STATE_CANCELLED, WEEK_US},
        {"skipped", 0, 0, WEFT_STATE_SKIPPED, WEEK_US},
        {"the lane's", 0, 5, WEFT_STATE_SUCCEEDED, 5},
        {"the lane's, failed", 0, 5, WEFT_STATE_FAILED, 20},
        {"the policy's", 3, 0, WEFT_STATE_SUCCEEDED, 3},
        {"the policy's before the lane's", 3, 5, WEFT_STATE_CANCELLED, 3},
        {"the policy's, expired", 3, 5, WEFT_STATE_EXPIRED, 12},
        {"the longest", WEFT_DELAY_MAX_MS * WEFT_MS, 1, WEFT_STATE_FAILED,
         4 * WEFT_DELAY_MAX_MS * WEFT_MS},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        const struct weft_rules rules = {.retention_us = row[i].policy_us};
        is_int(weft_policy_keeps(&rules, row[i].lane_us, row[i].state), row[i].want_us, "%s",
               row[i].name);
    }
}

/* Every number at its longest, sixteen classes that double when they are written. */
static void test_largest(void)
{
    static const char letter[] = {'"', '\\'};
    for (size_t l = 0; l < WEFT_LEN(letter); l++) {
        char word[WEFT_NO_RETRY_MAX][WEFT_CLASS_MAX + 1];
        const char *class[WEFT_NO_RETRY_MAX];
        for (size_t i = 0; i < WEFT_NO_RETRY_MAX; i++) {
            memset(word[i], letter[l], WEFT_CLASS_MAX);
            word[i][i] = '/';
            word[i][WEFT_CLASS_MAX] = '\0';
            class[i] = word[i];
        }
        const struct weft_policy policy = {
            .max_attempts = WEFT_ATTEMPTS_MAX,
            .max_lost = WEFT_ATTEMPTS_MAX,
            .initial_ms = WEFT_DELAY_MAX_MS,
            .factor = 1.0000000000000002,
            .max_ms = WEFT_DELAY_MAX_MS,
            .attempt_timeout_ms = WEFT_DELAY_MAX_MS,
            .lease_ms = WEFT_LEASE_MAX_MS,
            .retention_ms = WEFT_DELAY_MAX_MS,
            .no_retry = class,
            .no_retry_count = WEFT_NO_RETRY_MAX,
        };
        const char *text = text_of(&policy);
        ok(strlen(text) <= INDEX_ENTRY_MAX, "the largest policy, %zu bytes, fits an index entry",
           strlen(text));
        check_round_trip(text);
    }
}

struct parse_row {
    const char *json;
    enum weft_rc want; /* of parse, or of resolve when that accepts */
    const char *field;
};

static void parse_one(const struct parse_row *row)
{
    struct weft_json value;
    struct weft_policy policy;
    struct weft_rules rules;
    struct weft_err err = {0};
    if (!ok(weft_json_check(row->json, strlen(row->json), &value, &err) == WEFT_OK, "%s",
            row->json))
        return;
    enum weft_rc rc = weft_policy_parse(&value, arena, &policy, &err);
    if (!rc)
        rc = weft_policy_resolve(&policy, arena, &rules, &err);
    is_int(rc, row->want, "%s is %s", row->json, weft_rc_wire(row->want));
    is_str(err.field, row->field, "%s blames the right field", row->json);
}

#define BAD(json, field)                                                                           \
    {                                                                                              \
        json, WEFT_INVALID_VALUE, field                                                            \
    }
#define UNKNOWN(json, field)                                                                       \
    {                                                                                              \
        json, WEFT_UNKNOWN_FIELD, field                                                            \
    }
#define GOOD(json)                                                                                 \
    {                                                                                              \
        json, WEFT_OK, NULL                                                                        \
    }

static void test_parse(void)
{
    static const struct parse_row row[] = {
        GOOD("{}"),
        GOOD("{\"max_attempts\":1,\"max_lost\":30000,\"attempt_timeout_ms\":0,\"lease_ms\":1000,"
             "\"retention_ms\":1,\"no_retry\":[],\"backoff\":{}}"),
        GOOD("{\"backoff\":{\"kind\":\"fixed\",\"initial_ms\":0,\"factor\":1e3,\"max_ms\":1,"
             "\"jitter\":false}}"),
        GOOD("{\"max_attempts\":3.0}"),
        GOOD("{\"max_attempts\":null,\"max_lost\":null,\"attempt_timeout_ms\":null,"
             "\"lease_ms\":null,\"retention_ms\":null,\"no_retry\":null,\"backoff\":null}"),
        GOOD("{\"backoff\":{\"kind\":null,\"initial_ms\":null,\"factor\":null,\"max_ms\":null,"
             "\"jitter\":null}}"),
        BAD("[]", "policy"),
        BAD("null", "policy"),
        BAD("{\"max_attempts\":0}", "policy.max_attempts"),
        BAD("{\"max_attempts\":-1}", "policy.max_attempts"),
        BAD("{\"max_attempts\":1.5}", "policy.max_attempts"),
        BAD("{\"max_attempts\":\"1\"}", "policy.max_attempts"),
        BAD("{\"max_attempts\":true}", "policy.max_attempts"),
        BAD("{\"max_attempts\":30001}", "policy.max_attempts"),
        BAD("{\"max_attempts\":4294967297}", "policy.max_attempts"),
        BAD("{\"max_attempts\":1e30}", "policy.max_attempts"),
        BAD("{\"max_lost\":0}", "policy.max_lost"),
        BAD("{\"max_lost\":[]}", "policy.max_lost"),
        BAD("{\"max_lost\":4294967297}", "policy.max_lost"),
        BAD("{\"attempt_timeout_ms\":-1}", "policy.attempt_timeout_ms"),
        BAD("{\"attempt_timeout_ms\":9223372036854775807}", "policy.attempt_timeout_ms"),
        BAD("{\"lease_ms\":0}", "policy.lease_ms"),
        BAD("{\"lease_ms\":999}", "policy.lease_ms"),
        BAD("{\"lease_ms\":86400001}", "policy.lease_ms"),
        BAD("{\"lease_ms\":{}}", "policy.lease_ms"),
        BAD("{\"retention_ms\":0}", "policy.retention_ms"),
        BAD("{\"retention_ms\":1e18}", "policy.retention_ms"),
        BAD("{\"backoff\":[]}", "policy.backoff"),
        BAD("{\"backoff\":\"fixed\"}", "policy.backoff"),
        BAD("{\"backoff\":{\"kind\":\"linear\"}}", "policy.backoff.kind"),
        BAD("{\"backoff\":{\"kind\":1}}", "policy.backoff.kind"),
        BAD("{\"backoff\":{\"initial_ms\":-1}}", "policy.backoff.initial_ms"),
        BAD("{\"backoff\":{\"initial_ms\":316224000001}}", "policy.backoff.initial_ms"),
        BAD("{\"backoff\":{\"max_ms\":0}}", "policy.backoff.max_ms"),
        BAD("{\"backoff\":{\"factor\":0}}", "policy.backoff.factor"),
        BAD("{\"backoff\":{\"factor\":0.5}}", "policy.backoff.factor"),
        BAD("{\"backoff\":{\"factor\":1001}}", "policy.backoff.factor"),
        BAD("{\"backoff\":{\"factor\":1e999}}", "policy.backoff.factor"),
        BAD("{\"backoff\":{\"factor\":\"2\"}}", "policy.backoff.factor"),
        BAD("{\"backoff\":{\"jitter\":0}}", "policy.backoff.jitter"),
        BAD("{\"no_retry\":\"a\"}", "policy.no_retry"),
        BAD("{\"no_retry\":[1]}", "policy.no_retry"),
        BAD("{\"no_retry\":[null]}", "policy.no_retry"),
        BAD("{\"no_retry\":[\"\"]}", "policy.no_retry"),
        BAD("{\"no_retry\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\",\"k\","
            "\"l\",\"m\",\"n\",\"o\",\"p\",\"q\"]}",
            "policy.no_retry"),
        UNKNOWN("{\"max_attempt\":1}", "policy"),
        UNKNOWN("{\"initial_ms\":1}", "policy"),
        UNKNOWN("{\"\":null}", "policy"),
        UNKNOWN("{\"backoff\":{\"max_attempts\":1}}", "policy.backoff"),
        UNKNOWN("{\"backoff\":{\"Kind\":null}}", "policy.backoff"),
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        parse_one(&row[i]);
}

/* The story of an unknown field names it, so that a misspelling is found. */
static void test_unknown_named(void)
{
    static const char text[] = "{\"backoff\":{\"jiter\":true}}";
    struct weft_json value;
    struct weft_policy policy = {.max_attempts = 77};
    struct weft_err err = {0};
    ok(weft_json_check(text, strlen(text), &value, &err) == WEFT_OK, "a misspelled field");
    is_int(weft_policy_parse(&value, arena, &policy, &err), WEFT_UNKNOWN_FIELD,
           "a misspelled field is refused");
    ok(strstr(err.text, "jiter") != NULL, "the error names the misspelled field: %s", err.text);
    is_int(policy.max_attempts, 77, "a refused policy leaves the result as it was");
}

static void test_parse_values(void)
{
    static const char text[] =
        "{\"max_attempts\":7,\"max_lost\":8,\"attempt_timeout_ms\":9,\"lease_ms\":1001,"
        "\"retention_ms\":11,\"no_retry\":[\"z\",\"\\u0061\"],\"backoff\":{\"kind\":\"fixed\","
        "\"initial_ms\":12,\"factor\":3.5,\"max_ms\":13,\"jitter\":false}}";
    struct weft_json value;
    struct weft_policy policy = {0};
    struct weft_err err = {0};
    ok(weft_json_check(text, strlen(text), &value, &err) == WEFT_OK &&
           weft_policy_parse(&value, arena, &policy, &err) == WEFT_OK,
       "a policy with every field");
    is_int(policy.max_attempts, 7, "max_attempts");
    is_int(policy.max_lost, 8, "max_lost");
    is_int(policy.attempt_timeout_ms, 9, "attempt_timeout_ms");
    is_int(policy.lease_ms, 1001, "lease_ms");
    is_int(policy.retention_ms, 11, "retention_ms");
    is_int(policy.backoff, WEFT_BACKOFF_FIXED, "backoff.kind");
    is_int(policy.initial_ms, 12, "backoff.initial_ms");
    ok(policy.factor == 3.5, "backoff.factor");
    is_int(policy.max_ms, 13, "backoff.max_ms");
    ok(policy.no_jitter, "backoff.jitter");
    if (!is_int(policy.no_retry_count, 2, "no_retry") || !policy.no_retry)
        return;
    is_str(policy.no_retry[0], "z", "the first class of no_retry");
    is_str(policy.no_retry[1], "a", "the second class of no_retry is decoded");
}

int main(void)
{
    arena = weft_arena_new();
    test_defaults();
    test_bounds();
    test_no_retry();
    test_text();
    test_old_text();
    test_shown();
    test_keeps();
    test_largest();
    test_parse();
    test_unknown_named();
    test_parse_values();
    weft_arena_free(arena);
    return tap_done();
}
