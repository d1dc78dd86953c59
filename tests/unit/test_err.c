/* SPDX-License-Identifier: Apache-2.0 */

#include "base/err.h"
#include "base/str.h"
#include "tap.h"

static void test_fail(void)
{
    struct weft_err err;
    memset(&err, 0xee, sizeof(err));
    is_int(weft_fail(&err, WEFT_FENCED, "renew %s, %d", "x", 3), WEFT_FENCED,
           "the code comes back");
    is_int(err.rc, WEFT_FENCED, "the error holds the code");
    is_str(err.text, "renew x, 3", "the error has its text");
    ok(err.cause == WEFT_CAUSE_NONE && !err.field && !err.hint && !err.sqlstate[0],
       "fields of an older failure are cleared");

    is_int(weft_fail_field(&err, WEFT_TOO_LARGE, "payload", "%d bytes", 7), WEFT_TOO_LARGE,
           "the code comes back with a field");
    is_str(err.field, "payload", "the field is named");
    is_str(err.text, "7 bytes", "the error has its text");
    (void)weft_fail(&err, WEFT_BUSY, "x");
    is_str(err.field, NULL, "the next failure names no field");

    is_int(weft_fail(NULL, WEFT_BUSY, "unheard"), WEFT_BUSY,
           "a failure needs no place for the error");
    is_int(weft_fail_field(NULL, WEFT_BUSY, "f", "unheard"), WEFT_BUSY,
           "a failure with a field needs no place for the error");
}

/* Long stories are cut, but never inside a character, wherever the characters begin. */
static void test_long_story(void)
{
    char wide[601];
    for (size_t i = 0; i < 600; i += 3)
        memcpy(wide + i, "\xe2\x82\xac", 3);
    wide[600] = '\0';
    for (int shift = 0; shift < 3; shift++) {
        struct weft_err err;
        (void)weft_fail(&err, WEFT_INTERNAL, "%.*s%s", shift, "ab", wide);
        size_t size = strlen(err.text);
        ok(size > sizeof(err.text) - 4 && weft_utf8_valid(err.text, size),
           "cut between characters, shifted by %d", shift);
    }
}

static void test_table(void)
{
    static const struct {
        enum weft_rc rc;
        int http;
        bool retry;
        const char *wire;
    } row[] = {
        {WEFT_OK, 200, false, "ok"},
        {WEFT_INVALID_JSON, 400, false, "invalid_json"},
        {WEFT_NOT_FOUND, 404, false, "not_found"},
        {WEFT_FENCED, 409, false, "fenced"},
        {WEFT_BUSY, 429, true, "busy"},
        {WEFT_UNAVAILABLE, 503, true, "unavailable"},
        {WEFT_SCHEMA, 503, false, "schema_mismatch"},
        {WEFT_INTERNAL, 500, false, "internal"},
        {WEFT_MISUSE, 500, false, "misuse"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        ok(weft_rc_http(row[i].rc) == row[i].http && weft_rc_retryable(row[i].rc) == row[i].retry &&
               strcmp(weft_rc_wire(row[i].rc), row[i].wire) == 0,
           "table: %s", row[i].wire);

    for (int rc = 0; rc < WEFT_RC_COUNT; rc++) {
        const char *wire = weft_rc_wire((enum weft_rc)rc), *text = weft_rc_text((enum weft_rc)rc);
        if (!ok(wire && text && strlen(text) > 3, "code %d has a word and a sentence", rc))
            continue;
        for (int other = 0; other < rc; other++)
            if (strcmp(wire, weft_rc_wire((enum weft_rc)other)) == 0)
                ok(false, "codes %d and %d have the same word", other, rc);
    }
}

int main(void)
{
    test_fail();
    test_long_story();
    test_table();
    return tap_done();
}
