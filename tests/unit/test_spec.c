/* SPDX-License-Identifier: Apache-2.0 */

/* What may be submitted: names, times, tags and their needles, fingerprints. */

#include "base/arena.h"
#include "base/limits.h"
#include "core/spec.h"
#include "tap.h"

#define NOW ((weft_usec)1700000000 * WEFT_SECOND)

static struct weft_arena *arena;

/* A name of the given length. */
static const char *name_of(size_t size)
{
    char *name = weft_arena_alloc(arena, size + 1, 1);
    memset(name, 'n', size);
    return name;
}

static void test_names(void)
{
    struct weft_err err = {0};
    const char *const good[] = {"a", "A-Z_0.9:x/y", "..", "-", "aws:s3/x", name_of(WEFT_NAME_MAX)};
    const char *const bad[] = {NULL,          "",    " a",   "a b",  "a\n",
                               "caf\xc3\xa9", "a,b", "a\"b", "a\\b", "a%",
                               "a'b",         "a;b", "\x7f", "a\tb", name_of(WEFT_NAME_MAX + 1)};
    for (size_t i = 0; i < WEFT_LEN(good); i++)
        ok(weft_name_check(good[i], "lane", &err) == WEFT_OK, "'%.20s' is a name", good[i]);
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        is_int(weft_name_check(bad[i], "lane", &err), WEFT_INVALID_VALUE, "bad name %zu", i);
        is_str(err.field, "lane", "blames its field");
    }
    ok(weft_text_check(NULL, 3, "note", &err) == WEFT_OK, "no text is fine");
    ok(weft_text_check("abc", 3, "note", &err) == WEFT_OK, "a text that just fits");
    is_int(weft_text_check("abcd", 3, "note", &err), WEFT_TOO_LARGE, "a text that does not");
    is_int(weft_text_check("a\x01", 3, "note", &err), WEFT_INVALID_VALUE, "a control character");
    is_int(weft_text_check("\xc3", 3, "note", &err), WEFT_INVALID_VALUE, "half a character");
}

struct spec_row {
    const char *name;
    struct weft_spec spec;
    enum weft_rc want;
    const char *field;
};

static void check_specs(const struct spec_row *row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct weft_resolved out = {.priority = 4711};
        struct weft_err err = {0};
        enum weft_rc rc = weft_spec_resolve(&row[i].spec, "default", NOW, arena, &out, &err);
        is_int(rc, row[i].want, "%s: %s", row[i].name, weft_rc_wire(row[i].want));
        is_str(err.field, row[i].field, "%s: the field to blame", row[i].name);
        if (rc)
            is_int(out.priority, 4711, "%s: nothing is given back", row[i].name);
    }
}

static void test_refused(void)
{
    static const char *const spaced[] = {"a b"};
    const struct weft_tag bad_key = {"a:b", "v"}, no_value = {"a", NULL};
    const struct weft_policy policy = {.max_attempts = -1};
    const struct spec_row row[] = {
        {"nothing but a kind", {.kind = "k"}, WEFT_OK, NULL},
        {"no kind", {.lane = "l"}, WEFT_INVALID_VALUE, "kind"},
        {"an empty lane", {.kind = "k", .lane = ""}, WEFT_INVALID_VALUE, "lane"},
        {"a bad namespace", {.kind = "k", .ns = "a b"}, WEFT_INVALID_VALUE, "namespace"},
        {"a bad tenant", {.kind = "k", .tenant = ""}, WEFT_INVALID_VALUE, "tenant"},
        {"an empty key", {.kind = "k", .key = ""}, WEFT_INVALID_VALUE, "key"},
        {"a key with a newline", {.kind = "k", .key = "a\nb"}, WEFT_INVALID_VALUE, "key"},
        {"the longest key", {.kind = "k", .key = name_of(WEFT_KEY_MAX)}, WEFT_OK, NULL},
        {"a longer key", {.kind = "k", .key = name_of(WEFT_KEY_MAX + 1)}, WEFT_TOO_LARGE, "key"},
        {"bytes from nowhere", {.kind = "k", .payload_size = 1}, WEFT_INVALID_VALUE, "payload"},
        {"too many bytes",
         {.kind = "k", .payload = "", .payload_size = WEFT_PAYLOAD_MAX + 1},
         WEFT_TOO_LARGE,
         "payload"},
        {"an empty type", {.kind = "k", .content_type = ""}, WEFT_INVALID_VALUE, "content_type"},
        {"the highest priority", {.kind = "k", .priority = 32767}, WEFT_OK, NULL},
        {"a higher one", {.kind = "k", .priority = 32768}, WEFT_INVALID_VALUE, "priority"},
        {"the lowest priority", {.kind = "k", .priority = -32768}, WEFT_OK, NULL},
        {"a lower one", {.kind = "k", .priority = -32769}, WEFT_INVALID_VALUE, "priority"},
        {"two times", {.kind = "k", .delay_ms = 1, .run_at_us = 1}, WEFT_INVALID_VALUE, "run_at"},
        {"a delay before now", {.kind = "k", .delay_ms = -1}, WEFT_INVALID_VALUE, "delay_ms"},
        {"the longest delay", {.kind = "k", .delay_ms = WEFT_DELAY_MAX_MS}, WEFT_OK, NULL},
        {"a longer delay", {.kind = "k", .delay_ms = INT64_MAX}, WEFT_INVALID_VALUE, "delay_ms"},
        {"before 1970", {.kind = "k", .run_at_us = -1}, WEFT_INVALID_VALUE, "run_at"},
        {"after 9999", {.kind = "k", .run_at_us = INT64_MAX}, WEFT_INVALID_VALUE, "run_at"},
        {"a deadline now", {.kind = "k", .deadline_us = NOW}, WEFT_INVALID_VALUE, "deadline_at"},
        {"a deadline in time", {.kind = "k", .deadline_us = NOW + 1}, WEFT_OK, NULL},
        {"no end of time",
         {.kind = "k", .deadline_us = INT64_MAX},
         WEFT_INVALID_VALUE,
         "deadline_at"},
        {"a bad capability",
         {.kind = "k", .capabilities = spaced, .capability_count = 1},
         WEFT_INVALID_VALUE,
         "capabilities"},
        {"a bad tag", {.kind = "k", .tags = &bad_key, .tag_count = 1}, WEFT_INVALID_VALUE, "tags"},
        {"no value", {.kind = "k", .tags = &no_value, .tag_count = 1}, WEFT_INVALID_VALUE, "tags"},
        {"a bad policy",
         {.kind = "k", .policy = &policy},
         WEFT_INVALID_VALUE,
         "policy.max_attempts"},
    };
    check_specs(row, WEFT_LEN(row));
}

static void test_resolved(void)
{
    struct weft_resolved out;
    struct weft_err err = {0};
    const struct weft_spec plain = {.kind = "k"};
    ok(weft_spec_resolve(&plain, "space", NOW, arena, &out, &err) == WEFT_OK, "a plain spec");
    is_str(out.ns, "space", "the namespace of the handle");
    is_str(out.lane, "default", "the default lane");
    is_str(out.tenant, "", "the spec without a tenant has an empty one");
    is_str(out.needs, "", "the spec without capabilities has an empty set");
    ok(!out.tags && !out.key && !out.payload && !out.content_type, "no tags, key, payload or type");
    is_int(out.state, WEFT_STATE_READY, "the spec without a delay is ready");
    is_int(out.due_us, 0, "the resolved spec is due at once");
    is_int(out.rules.max_attempts, 25, "under the default policy");

    static const struct {
        const char *name;
        int64_t delay_ms;
        weft_usec run_at_us, due_us;
    } row[] = {
        {"a delay", 1, 0, NOW + WEFT_MS},     {"a moment ahead", 0, NOW + 1, NOW + 1},
        {"this very moment", 0, NOW, 0},      {"a moment ago", 0, NOW - 1, 0},
        {"the first moment of all", 0, 1, 0},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        const struct weft_spec spec = {
            .kind = "k", .delay_ms = row[i].delay_ms, .run_at_us = row[i].run_at_us};
        ok(weft_spec_resolve(&spec, "space", NOW, arena, &out, &err) == WEFT_OK &&
               out.due_us == row[i].due_us &&
               out.state == (row[i].due_us ? WEFT_STATE_DELAYED : WEFT_STATE_READY),
           "%s", row[i].name);
    }
}

static const char *tags_of(const struct weft_tag *tag, size_t count)
{
    const char *text = NULL;
    struct weft_err err = {0};
    ok(weft_tags_text(tag, count, arena, &text, &err) == WEFT_OK, "%zu tags: %s", count, err.text);
    return text;
}

static void test_tags(void)
{
    const struct weft_tag tag[] = {
        {"zone", "eu"}, {"a-b.c_9", ""}, {"quote", "say \"hi\" \\o/"}, {"word", "caf\xc3\xa9"}};
    const struct weft_tag mixed[] = {tag[2], tag[0], tag[3], tag[1]};
    const char *text = tags_of(tag, 4);
    is_str(text,
           "{\"a-b.c_9\":\"\",\"quote\":\"say \\\"hi\\\" \\\\o/\",\"word\":\"caf\xc3\xa9\","
           "\"zone\":\"eu\"}",
           "sorted by key, without white space");
    is_str(tags_of(mixed, 4), text, "in whatever order they were given");
    is_str(tags_of(NULL, 0), NULL, "no tags are no text");
    size_t count = 0;
    const struct weft_tag *back = weft_tags_parse(text, arena, &count);
    is_int(count, 4, "all of them read back");
    is_str(tags_of(back, count), text, "the tags are as they were");
    is_int((weft_tags_parse(NULL, arena, &count), count), 0, "no text is no tags");
    is_int((weft_tags_parse("[1]", arena, &count), count), 0, "a JSON array of numbers is no tags");

    struct weft_err err = {0};
    const struct weft_tag twice[] = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
    is_int(weft_tags_text(twice, 3, arena, &text, &err), WEFT_INVALID_VALUE, "no key twice");
    struct weft_tag many[WEFT_TAGS_MAX + 1];
    char value[WEFT_TAG_VALUE_MAX + 2];
    memset(value, '"', sizeof(value));
    value[WEFT_TAG_VALUE_MAX] = '\0';
    for (size_t i = 0; i < WEFT_LEN(many); i++) {
        char *key = weft_arena_alloc(arena, WEFT_TAG_KEY_MAX + 1, 1);
        memset(key, 'k', WEFT_TAG_KEY_MAX);
        key[0] = (char)('A' + (char)(i % 26));
        key[1] = (char)('A' + (char)(i / 26));
        many[i] = (struct weft_tag){key, value};
    }
    text = tags_of(many, WEFT_TAGS_MAX);
    (void)weft_tags_parse(text, arena, &count);
    is_int(count, WEFT_TAGS_MAX, "the most and the largest tags read back");
    is_int(weft_tags_text(many, WEFT_TAGS_MAX + 1, arena, &text, &err), WEFT_TOO_LARGE, "33 tags");
    value[WEFT_TAG_VALUE_MAX] = '"';
    value[WEFT_TAG_VALUE_MAX + 1] = '\0';
    is_int(weft_tags_text(many, 1, arena, &text, &err), WEFT_TOO_LARGE, "a value of 257 bytes");
    const struct weft_tag control = {"a", "x\x1fy"};
    is_int(weft_tags_text(&control, 1, arena, &text, &err), WEFT_INVALID_VALUE, "a control byte");
}

/*
 * A needle is looked for as a plain substring. Every pair out of these keys and values, alone and
 * beside each other, must be found exactly where it is a tag.
 */
static void test_needles(void)
{
    static const char *const key[] = {"k", "v", "kk", "k.k"};
    static const char *const value[] = {
        "",
        "v",
        "k",
        "\"",
        "\\",
        "\\\"",
        "\"k\"",
        "k\":\"v",
        "\"k\":\"v\"",
        "v\",\"k\":\"v",
        "\\\"k\\\":\\\"v\\\"",
        "v\"",
        "v\\",
        "v\\\"",
        "\",\"k\":\"v",
        "{\"k\":\"v\"}",
        ",\"k\":\"v\"",
        "k\\\":",
        "\":\"v",
        "v\"}",
        ":",
        ",",
        "\\u0022k",
    };
    enum { KEYS = WEFT_LEN(key), VALUES = WEFT_LEN(value), ALL = KEYS * VALUES };
    const char *needle[ALL];
    struct weft_err err = {0};
    size_t failed = 0, wrong = 0, pairs = 0;
    for (size_t n = 0; n < ALL; n++) {
        const struct weft_tag tag = {key[n / VALUES], value[n % VALUES]};
        failed += weft_tag_needle(&tag, arena, &needle[n], &err) != WEFT_OK;
    }
    is_int(failed, 0, "every tag has a needle");
    for (size_t a = 0; a < ALL && !failed; a++)
        for (size_t b = 0; b < ALL; b++) {
            const struct weft_tag tag[] = {{key[a / VALUES], value[a % VALUES]},
                                           {key[b / VALUES], value[b % VALUES]}};
            const char *text;
            if (a / VALUES == b / VALUES || weft_tags_text(tag, 2, arena, &text, &err))
                continue;
            for (size_t n = 0; n < ALL; n++) {
                pairs++;
                wrong += (strstr(text, needle[n]) != NULL) != (n == a || n == b);
            }
        }
    ok(wrong == 0 && pairs > 500000, "%zu searches, %zu wrong", pairs, wrong);
    const struct weft_tag bad = {"a b", "v"};
    const char *text = "kept";
    is_int(weft_tag_needle(&bad, arena, &text, &err), WEFT_INVALID_VALUE, "a bad tag has none");
    is_str(text, "kept", "a refused tag leaves the result as it was");
}

static void fingerprint_of(const struct weft_spec *spec, uint8_t ret_print[32])
{
    struct weft_resolved out = {0};
    struct weft_err err = {0};
    if (weft_spec_resolve(spec, "default", NOW, arena, &out, &err))
        ok(false, "a spec for a fingerprint: %s", err.text);
    memcpy(ret_print, out.fingerprint, sizeof(out.fingerprint));
}

static void test_fingerprint(void)
{
    static const struct weft_spec spec[] = {
        {.kind = "k", .key = "x"},
        {.kind = "k", .key = "x", .lane = "l"},
        {.kind = "l", .key = "x", .lane = "k"},
        {.kind = "kl", .key = "x", .lane = "k"},
        {.kind = "l", .key = "x", .lane = "kk"},
        {.kind = "k", .key = "x", .payload = "p", .payload_size = 1},
        {.kind = "k", .key = "x", .payload = "p\0", .payload_size = 2},
        {.kind = "kp", .key = "x"},
        {.kind = "k", .key = "x", .payload = "default", .payload_size = 7},
    };
    uint8_t print[WEFT_LEN(spec)][32];
    size_t same = 0;
    for (size_t i = 0; i < WEFT_LEN(spec); i++) {
        fingerprint_of(&spec[i], print[i]);
        for (size_t k = 0; k < i; k++)
            same += memcmp(print[i], print[k], sizeof(print[i])) == 0;
    }
    is_int(same, 0, "another lane, kind or payload is another submission");
    uint8_t other[32];
    const struct weft_tag tag = {"a", "b"};
    const struct weft_spec rest = {.kind = "k",
                                   .key = "y",
                                   .lane = "default",
                                   .priority = 9,
                                   .delay_ms = 5,
                                   .tenant = "t",
                                   .tags = &tag,
                                   .tag_count = 1,
                                   .content_type = "text/plain"};
    fingerprint_of(&rest, other);
    ok(memcmp(print[0], other, sizeof(other)) == 0,
       "a difference in any other field is no difference");
}

int main(void)
{
    arena = weft_arena_new();
    test_names();
    test_refused();
    test_resolved();
    test_tags();
    test_needles();
    test_fingerprint();
    weft_arena_free(arena);
    return tap_done();
}
