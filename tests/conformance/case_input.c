/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bad input: each mistake gets one clear error with a code and the field to blame, its neighbours
 * in the same call are not touched by it, and nothing is written.
 */

#include "conformance.h"

#include "base/arena.h"
#include "base/limits.h"
#include "engine/job/claim.h"
#include "weft/weft.h"

#include <math.h>

static char name_129[WEFT_NAME_MAX + 2], value_257[WEFT_TAG_VALUE_MAX + 2];
static char tag_key_65[WEFT_TAG_KEY_MAX + 2], type_129[WEFT_CONTENT_TYPE_MAX + 2];
static char class_65[WEFT_CLASS_MAX + 2], reason_513[WEFT_REASON_MAX + 2];
static char token_2048[WEFT_CAPABILITIES_BYTES + 1];
static char one_byte_too_many[WEFT_PAYLOAD_MAX + 1];
static const char *token_257[WEFT_CAPABILITIES_MAX + 1], *lane_65[WEFT_CLAIM_LANES_MAX + 1];
static const char *kind_257[WEFT_CLAIM_KINDS_MAX + 1], *class_17[WEFT_NO_RETRY_MAX + 1];
static struct weft_tag tag_33[WEFT_TAGS_MAX + 1];

static void fill(char *text, size_t size)
{
    memset(text, 'x', size - 1);
    text[size - 1] = '\0';
}

static void fill_all(struct fixture *f)
{
    fill(name_129, sizeof(name_129));
    fill(value_257, sizeof(value_257));
    fill(tag_key_65, sizeof(tag_key_65));
    fill(type_129, sizeof(type_129));
    fill(class_65, sizeof(class_65));
    fill(reason_513, sizeof(reason_513));
    fill(token_2048, sizeof(token_2048));
    for (size_t i = 0; i < WEFT_LEN(token_257); i++)
        token_257[i] = "t";
    for (size_t i = 0; i < WEFT_LEN(lane_65); i++)
        lane_65[i] = "lane";
    for (size_t i = 0; i < WEFT_LEN(kind_257); i++)
        kind_257[i] = "kind";
    for (size_t i = 0; i < WEFT_LEN(class_17); i++)
        class_17[i] = "class";
    for (size_t i = 0; i < WEFT_LEN(tag_33); i++)
        tag_33[i] = (struct weft_tag){weft_arena_printf(f->arena, "k%zu", i), "v"};
}

/* ---- Submitting ------------------------------------------------------------------------------ */

#define TAG(k, v)  .tags = (const struct weft_tag[]){{k, v}}, .tag_count = 1
#define TOKEN(...) .capabilities = (const char *const[]){__VA_ARGS__}, .capability_count = 1
#define POLICY(...)                                                                                \
    .policy = &(const struct weft_policy)                                                          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define NO_RETRY(...) POLICY(.no_retry = (const char *const[]){__VA_ARGS__}, .no_retry_count = 1)

struct bad_spec {
    const char *name;
    struct weft_spec spec;
    enum weft_rc rc;
    const char *field;
};

#define BAD(name, field, ...)                                                                      \
    {                                                                                              \
        name, {.kind = "job", __VA_ARGS__}, WEFT_INVALID_VALUE, field                              \
    }
#define LARGE(name, field, ...)                                                                    \
    {                                                                                              \
        name, {.kind = "job", __VA_ARGS__}, WEFT_TOO_LARGE, field                                  \
    }

/* clang-format off */
static const struct bad_spec bad_spec[] = {
    {"no kind", {.lane = "default"}, WEFT_INVALID_VALUE, "kind"},
    {"empty kind", {.kind = ""}, WEFT_INVALID_VALUE, "kind"},
    {"kind too long", {.kind = name_129}, WEFT_INVALID_VALUE, "kind"},
    {"kind with a newline", {.kind = "a\nb"}, WEFT_INVALID_VALUE, "kind"},
    {"kind not UTF-8", {.kind = "a\xff"}, WEFT_INVALID_VALUE, "kind"},
    BAD("empty lane", "lane", .lane = ""),
    BAD("lane too long", "lane", .lane = name_129),
    BAD("lane with a control character", "lane", .lane = "a\x01"),
    BAD("lane not UTF-8", "lane", .lane = "\xc3("),
    BAD("lane with a space", "lane", .lane = "a b"),
    BAD("lane in letters that are not ours", "lane", .lane = "\xc3\xa9"),
    BAD("empty tenant", "tenant", .tenant = ""),
    BAD("tenant too long", "tenant", .tenant = name_129),
    BAD("tenant not UTF-8", "tenant", .tenant = "\x80"),
    BAD("empty namespace", "namespace", .ns = ""),
    BAD("namespace with a quote", "namespace", .ns = "a'b"),
    BAD("empty key", "key", .key = ""),
    BAD("key not UTF-8", "key", .key = "\xed\xa0\x80"),
    BAD("key with a tab", "key", .key = "a\tb"),
    BAD("key with a C1 control", "key", .key = "a\xc2\x85"),
    LARGE("payload too large", "payload", .payload = one_byte_too_many,
          .payload_size = sizeof(one_byte_too_many)),
    LARGE("payload beyond all", "payload", .payload = "x", .payload_size = SIZE_MAX),
    BAD("payload NULL with a size", "payload", .payload_size = 1),
    BAD("empty content type", "content_type", .payload = "x", .payload_size = 1,
        .content_type = ""),
    LARGE("content type too long", "content_type", .content_type = type_129),
    BAD("content type with a line break", "content_type", .content_type = "a/b\r\nX: y"),
    BAD("negative delay", "delay_ms", .delay_ms = -1),
    BAD("delay beyond ten years", "delay_ms", .delay_ms = WEFT_DELAY_MAX_MS + 1),
    BAD("delay beyond all", "delay_ms", .delay_ms = INT64_MAX),
    BAD("delay and run_at", "run_at", .delay_ms = 1, .run_at_us = START_US + 1),
    BAD("run_at before 1970", "run_at", .run_at_us = -1),
    BAD("run_at after 9999", "run_at", .run_at_us = WEFT_MOMENT_MAX_US + 1),
    BAD("run_at beyond all", "run_at", .run_at_us = INT64_MAX),
    BAD("deadline in the past", "deadline_at", .deadline_us = START_US - 1),
    BAD("deadline now", "deadline_at", .deadline_us = START_US),
    BAD("deadline before 1970", "deadline_at", .deadline_us = INT64_MIN),
    BAD("deadline after 9999", "deadline_at", .deadline_us = WEFT_MOMENT_MAX_US + 1),
    BAD("priority too high", "priority", .priority = 32768),
    BAD("priority too low", "priority", .priority = -32769),
    LARGE("too many tags", "tags", .tags = tag_33, .tag_count = WEFT_TAGS_MAX + 1),
    BAD("a tag twice", "tags",
        .tags = (const struct weft_tag[]){{"a", "1"}, {"b", "1"}, {"a", "2"}}, .tag_count = 3),
    BAD("tag without a key", "tags", TAG(NULL, "v")),
    BAD("tag with an empty key", "tags", TAG("", "v")),
    BAD("tag key too long", "tags", TAG(tag_key_65, "v")),
    BAD("tag key with a colon", "tags", TAG("a:b", "v")),
    BAD("tag key with a space", "tags", TAG("a b", "v")),
    BAD("tag key not ASCII", "tags", TAG("\xc3\xa9", "v")),
    BAD("tag without a value", "tags", TAG("k", NULL)),
    LARGE("tag value too long", "tags", TAG("k", value_257)),
    BAD("tag value not UTF-8", "tags", TAG("k", "\xff\xfe")),
    BAD("tag value with a control character", "tags", TAG("k", "\x1b[0m")),
    LARGE("too many capabilities", "capabilities", .capabilities = token_257,
          .capability_count = WEFT_CAPABILITIES_MAX + 1),
    BAD("a capability that is none", "capabilities", TOKEN(NULL)),
    BAD("an empty capability", "capabilities", TOKEN("")),
    BAD("a capability with a comma", "capabilities", TOKEN("a,b")),
    BAD("a capability with a space", "capabilities", TOKEN("a b")),
    BAD("a capability with a control character", "capabilities", TOKEN("a\x7f")),
    BAD("a capability that is not ASCII", "capabilities", TOKEN("\xc3\xa9")),
    LARGE("capabilities with too many bytes", "capabilities", TOKEN(token_2048)),
    BAD("max_attempts negative", "policy.max_attempts", POLICY(.max_attempts = -1)),
    BAD("max_attempts too high", "policy.max_attempts", POLICY(.max_attempts = 30001)),
    BAD("max_lost negative", "policy.max_lost", POLICY(.max_lost = -1)),
    BAD("max_lost too high", "policy.max_lost", POLICY(.max_lost = INT32_MAX)),
    BAD("initial_ms below -1", "policy.backoff.initial_ms", POLICY(.initial_ms = -2)),
    BAD("initial_ms too high", "policy.backoff.initial_ms", POLICY(.initial_ms = INT64_MAX)),
    BAD("max_ms negative", "policy.backoff.max_ms", POLICY(.max_ms = -1)),
    BAD("max_ms too high", "policy.backoff.max_ms", POLICY(.max_ms = WEFT_DELAY_MAX_MS + 1)),
    BAD("factor below 1", "policy.backoff.factor", POLICY(.factor = 0.5)),
    BAD("factor above 1000", "policy.backoff.factor", POLICY(.factor = 1000.5)),
    BAD("factor not a number", "policy.backoff.factor", POLICY(.factor = NAN)),
    BAD("factor infinite", "policy.backoff.factor", POLICY(.factor = INFINITY)),
    BAD("unknown backoff", "policy.backoff.kind", POLICY(.backoff = (enum weft_backoff)7)),
    BAD("timeout negative", "policy.attempt_timeout_ms", POLICY(.attempt_timeout_ms = -1)),
    BAD("timeout too high", "policy.attempt_timeout_ms", POLICY(.attempt_timeout_ms = INT64_MAX)),
    BAD("lease too short", "policy.lease_ms", POLICY(.lease_ms = 999)),
    BAD("lease too long", "policy.lease_ms", POLICY(.lease_ms = 86400001)),
    BAD("retention negative", "policy.retention_ms", POLICY(.retention_ms = -1)),
    BAD("retention too long", "policy.retention_ms", POLICY(.retention_ms = INT64_MAX)),
    LARGE("too many classes", "policy.no_retry", POLICY(.no_retry = class_17,
          .no_retry_count = WEFT_NO_RETRY_MAX + 1)),
    BAD("a class that is none", "policy.no_retry", NO_RETRY(NULL)),
    BAD("an empty class", "policy.no_retry", NO_RETRY("")),
    BAD("a class too long", "policy.no_retry", NO_RETRY(class_65)),
    BAD("a class not UTF-8", "policy.no_retry", NO_RETRY("\xff")),
};
/* clang-format on */

CASE(input_specs)
{
    enum { ROWS = WEFT_LEN(bad_spec) };
    fill_all(f);
    struct weft_spec *spec = weft_new_array(f->arena, struct weft_spec, 2 * ROWS + 1);
    for (size_t i = 0; i < ROWS; i++) {
        spec[2 * i] = (struct weft_spec){.kind = "job"};
        spec[2 * i + 1] = bad_spec[i].spec;
        struct weft_submitted alone = submit(f, f->a, &bad_spec[i].spec);
        expect_err(&alone.err, bad_spec[i].rc, bad_spec[i].field, bad_spec[i].name);
    }
    is_int(count_rows(f, &(struct weft_filter){0}), 0, "nothing was written");
    spec[(size_t)2 * ROWS] = (struct weft_spec){.kind = "job"};
    struct weft_submitted *answer = submit_many(f, f->b, spec, 2 * ROWS + 1);
    size_t accepted = 0;
    for (size_t i = 0; i <= ROWS; i++)
        accepted += answer[2 * i].err.rc == WEFT_OK && answer[2 * i].state == WEFT_STATE_READY;
    is_int(accepted, ROWS + 1, "neighbours of bad ones are accepted");
    for (size_t i = 0; i < ROWS; i++)
        expect_err(&answer[2 * i + 1].err, bad_spec[i].rc, bad_spec[i].field, bad_spec[i].name);
    is_int(count_rows(f, &(struct weft_filter){0}), ROWS + 1, "only the good ones were written");
}

/* The other side of each fence: the largest allowed value is accepted. */
CASE(input_specs_at_the_limit)
{
    fill_all(f);
    name_129[WEFT_NAME_MAX] = value_257[WEFT_TAG_VALUE_MAX] = type_129[WEFT_CONTENT_TYPE_MAX] =
        '\0';
    tag_key_65[WEFT_TAG_KEY_MAX] = class_65[WEFT_CLASS_MAX] = '\0';
    token_2048[WEFT_CAPABILITIES_BYTES - 1] = '\0';
    const struct weft_spec row[] = {
        {.kind = name_129, .lane = name_129, .tenant = name_129, .ns = name_129},
        {.kind = "job", .key = "\xc2\xa0"},
        {.kind = "job", .payload = one_byte_too_many, .payload_size = WEFT_PAYLOAD_MAX},
        {.kind = "job", .content_type = type_129},
        {.kind = "job", .delay_ms = WEFT_DELAY_MAX_MS},
        {.kind = "job", .run_at_us = WEFT_MOMENT_MAX_US, .deadline_us = WEFT_MOMENT_MAX_US},
        {.kind = "job", .run_at_us = 1, .deadline_us = START_US + 1},
        {.kind = "job", .priority = INT16_MAX},
        {.kind = "job", .priority = INT16_MIN},
        {.kind = "job", .tags = tag_33, .tag_count = WEFT_TAGS_MAX},
        {.kind = "job", TAG(tag_key_65, value_257)},
        {.kind = "job", TAG("k", "")},
        {.kind = "job", TOKEN(token_2048)},
        {.kind = "job", .capabilities = token_257, .capability_count = WEFT_CAPABILITIES_MAX},
        {.kind = "job", POLICY(.max_attempts = 30000, .max_lost = 30000)},
        {.kind = "job", POLICY(.max_attempts = 1, .max_lost = 1, .max_ms = 1, .factor = 1)},
        {.kind = "job", POLICY(.initial_ms = WEFT_DELAY_MAX_MS, .max_ms = WEFT_DELAY_MAX_MS)},
        {.kind = "job", POLICY(.initial_ms = -1, .factor = 1000, .retention_ms = 1)},
        {.kind = "job", POLICY(.attempt_timeout_ms = WEFT_DELAY_MAX_MS, .lease_ms = 86400000)},
        {.kind = "job", POLICY(.lease_ms = 1000, .retention_ms = WEFT_DELAY_MAX_MS)},
        {.kind = "job", NO_RETRY(class_65)},
        {.kind = "job", POLICY(.no_retry = class_17, .no_retry_count = WEFT_NO_RETRY_MAX)},
    };
    struct weft_submitted *answer = submit_many(f, f->a, row, WEFT_LEN(row));
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        ok(answer[i].err.rc == WEFT_OK, "row %zu at the limit is accepted: %s", i,
           answer[i].err.rc ? answer[i].err.text : "yes");
    is_int(count_rows(f, &(struct weft_filter){0}), WEFT_LEN(row) - 1,
           "all rows but the keyed duplicate are written");
}

/* ---- Claiming -------------------------------------------------------------------------------- */

static const char *const empty[] = {""}, *const comma[] = {"a,b"}, *const null[] = {NULL};

static const struct {
    const char *name;
    struct weft_claim claim;
    enum weft_rc rc;
    const char *field;
} bad_claim[] = {
    {"no worker", {.max = 1}, WEFT_INVALID_VALUE, "worker"},
    {"empty worker", {.worker = ""}, WEFT_INVALID_VALUE, "worker"},
    {"worker too long", {.worker = name_129}, WEFT_INVALID_VALUE, "worker"},
    {"worker not UTF-8", {.worker = "\xff"}, WEFT_INVALID_VALUE, "worker"},
    {"max 1,001", {.worker = "w", .max = 1001}, WEFT_INVALID_VALUE, "max"},
    {"max beyond all", {.worker = "w", .max = UINT32_MAX}, WEFT_INVALID_VALUE, "max"},
    {"lease of 999 ms", {.worker = "w", .lease_ms = 999}, WEFT_INVALID_VALUE, "lease_ms"},
    {"lease above a day", {.worker = "w", .lease_ms = 86400001}, WEFT_INVALID_VALUE, "lease_ms"},
    {"lease negative", {.worker = "w", .lease_ms = -1}, WEFT_INVALID_VALUE, "lease_ms"},
    {"empty lane", {.worker = "w", .lanes = empty, .lane_count = 1}, WEFT_INVALID_VALUE, "lanes"},
    {"lane that is none",
     {.worker = "w", .lanes = null, .lane_count = 1},
     WEFT_INVALID_VALUE,
     "lanes"},
    {"too many lanes",
     {.worker = "w", .lanes = lane_65, .lane_count = WEFT_CLAIM_LANES_MAX + 1},
     WEFT_TOO_LARGE,
     "lanes"},
    {"empty kind", {.worker = "w", .kinds = empty, .kind_count = 1}, WEFT_INVALID_VALUE, "kinds"},
    {"too many kinds",
     {.worker = "w", .kinds = kind_257, .kind_count = WEFT_CLAIM_KINDS_MAX + 1},
     WEFT_TOO_LARGE,
     "kinds"},
    {"bad capability",
     {.worker = "w", .capabilities = comma, .capability_count = 1},
     WEFT_INVALID_VALUE,
     "capabilities"},
    {"too many capabilities",
     {.worker = "w", .capabilities = token_257, .capability_count = WEFT_CAPABILITIES_MAX + 1},
     WEFT_TOO_LARGE,
     "capabilities"},
    {"bad namespace", {.worker = "w", .ns = "a b"}, WEFT_INVALID_VALUE, "namespace"},
};

CASE(input_claims)
{
    fill_all(f);
    (void)submit_job(f);
    for (size_t i = 0; i < WEFT_LEN(bad_claim); i++) {
        /* A claim is refused as a whole: the good one in front must not have been served. */
        const struct weft_claim both[] = {{.worker = "good"}, bad_claim[i].claim};
        struct weft_arena *arena = weft_arena_new();
        struct weft_claim_result got;
        struct weft_err err = {0};
        is_int(weft_engine_claim(f->a, "default", both, 2, arena, &got, &err), bad_claim[i].rc,
               "%s: refused", bad_claim[i].name);
        expect_err(&err, bad_claim[i].rc, bad_claim[i].field, bad_claim[i].name);
        weft_arena_free(arena);
    }
    is_int(count_rows(f, &(struct weft_filter){.state = WEFT_STATE_READY}), 1, "nothing was taken");
    const struct weft_claim largest = {.worker = "w",
                                       .max = 1000,
                                       .lease_ms = 86400000,
                                       .lanes = lane_65,
                                       .lane_count = WEFT_CLAIM_LANES_MAX,
                                       .kinds = kind_257,
                                       .kind_count = WEFT_CLAIM_KINDS_MAX};
    is_int(claim_with(f, f->a, &largest).count, 0, "a claim at the limit is fine");
}
