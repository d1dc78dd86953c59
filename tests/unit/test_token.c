/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens: their form, which texts are accepted, and their scopes. */

#include "base/err.h"
#include "core/token.h"
#include "tap.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void test_secret(void)
{
    enum { MANY = 200 };
    char secret[MANY][WEFT_TOKEN_SECRET + 1];
    int bad = 0, same = 0;
    bool seen[64] = {false};
    for (int i = 0; i < MANY; i++) {
        weft_token_secret(secret[i]);
        bad += strspn(secret[i], alphabet) != WEFT_TOKEN_SECRET || strlen(secret[i]) != 43;
        for (int k = 0; k < i; k++)
            same += strcmp(secret[i], secret[k]) == 0;
        for (const char *c = secret[i]; *c; c++)
            seen[strchr(alphabet, *c) - alphabet] = true;
        /* 43 characters hold 258 bits: the last two are always 0. */
        bad += (strchr(alphabet, secret[i][42]) - alphabet) % 4 != 0;
    }
    int missing = 0;
    for (size_t i = 0; i < 64; i++)
        missing += !seen[i];
    is_int(bad, 0, "secrets have 43 characters of the alphabet");
    is_int(same, 0, "no two are the same");
    is_int(missing, 0, "every character occurs");
}

static void test_there_and_back(void)
{
    static const int32_t ids[] = {1, 7, 10, 123456, INT32_MAX};
    for (size_t i = 0; i < WEFT_LEN(ids); i++) {
        char secret[WEFT_TOKEN_SECRET + 1], text[WEFT_TOKEN_TEXT];
        uint8_t hash[WEFT_TOKEN_HASH], parsed[WEFT_TOKEN_HASH];
        int32_t id = 0;
        weft_token_secret(secret);
        weft_token_print(ids[i], secret, text);
        weft_token_hash(secret, hash);
        ok(weft_token_parse(text, &id, parsed), "%s is a token", text);
        is_int(id, ids[i], "the parsed id is that of the token");
        ok(weft_token_same(hash, parsed), "the parsed hash is that of the secret");
        parsed[31] ^= 1;
        ok(!weft_token_same(hash, parsed), "a hash that differs in one bit is another");
    }
    static const uint8_t abc[WEFT_TOKEN_HASH] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                                 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
                                                 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
                                                 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
    uint8_t hash[WEFT_TOKEN_HASH];
    weft_token_hash("abc", hash);
    ok(weft_token_same(hash, abc), "the hash is SHA-256");
}

#define SECRET "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopq"

static void test_refused_texts(void)
{
    static const char *const row[] = {
        "",
        "weft_",
        "weft_1",
        "weft_1_",
        "weft__" SECRET,
        "weft_0_" SECRET,
        "weft_01_" SECRET,
        "weft_-1_" SECRET,
        "weft_+1_" SECRET,
        "weft_ 1_" SECRET,
        "weft_2147483648_" SECRET,
        "weft_99999999999999999999_" SECRET,
        "weft_1_" SECRET "x",
        "weft_1_" SECRET " ",
        "weft_1_ABC",
        "weft_1-" SECRET,
        "Weft_1_" SECRET,
        " weft_1_" SECRET,
        "weft_1_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop+",
        "weft_1_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop=",
    };
    uint8_t hash[WEFT_TOKEN_HASH];
    int32_t id;
    ok(weft_token_parse("weft_1_" SECRET, &id, hash), "a token with every part is read");
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        ok(!weft_token_parse(row[i], &id, hash), "'%s' is none", row[i]);
    ok(!weft_token_parse(NULL, &id, hash), "nothing is none");
}

/* The words between the commas of a text. */
static enum weft_rc read_scopes(const char *text, uint32_t *ret_scopes, struct weft_err *err)
{
    char copy[64];
    const char *word[8];
    size_t count = 0;
    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (char *rest = copy; rest && count < WEFT_LEN(word);)
        word[count++] = strsep(&rest, ",");
    return weft_scopes_read(word, count, ret_scopes, err);
}

static void test_scopes(void)
{
    static const struct {
        const char *text;
        uint32_t scopes;
        const char *printed;
    } row[] = {
        {"read", WEFT_SCOPE_READ, "read"},
        {"submit,read", WEFT_SCOPE_READ | WEFT_SCOPE_SUBMIT, "read,submit"},
        {"work,work", WEFT_SCOPE_WORK, "work"},
        {"read,submit,work,admin", 15, "read,submit,work,admin"},
        {"", 0, NULL},
        {"read,", 0, NULL},
        {",read", 0, NULL},
        {"read submit", 0, NULL},
        {"READ", 0, NULL},
        {"root", 0, NULL},
        {"rea", 0, NULL},
        {"readx", 0, NULL},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_err err = {0};
        uint32_t scopes = 0;
        char text[WEFT_SCOPES_TEXT];
        enum weft_rc rc = read_scopes(row[i].text, &scopes, &err);
        is_int(rc, row[i].printed ? WEFT_OK : WEFT_INVALID_VALUE, "'%s'", row[i].text);
        if (rc)
            continue;
        is_int(scopes, row[i].scopes, "means so much");
        weft_scopes_print(scopes, text);
        is_str(text, row[i].printed, "the scopes are printed in canonical form");
    }
    char none[WEFT_SCOPES_TEXT];
    weft_scopes_print(0, none);
    is_str(none, "", "no scopes print as nothing");
}

static void test_allows(void)
{
    static const enum weft_scope all[] = {WEFT_SCOPE_READ, WEFT_SCOPE_SUBMIT, WEFT_SCOPE_WORK,
                                          WEFT_SCOPE_ADMIN};
    for (size_t i = 0; i < WEFT_LEN(all); i++)
        for (size_t k = 0; k < WEFT_LEN(all); k++)
            is_int(weft_scope_allows(all[i], all[k]), i == k || all[i] == WEFT_SCOPE_ADMIN,
                   "scope %d for %d", (int)all[i], (int)all[k]);
    ok(weft_scope_allows(0, WEFT_SCOPE_NONE), "nothing needs nothing");
    ok(weft_scope_allows(WEFT_SCOPE_READ | WEFT_SCOPE_WORK, WEFT_SCOPE_WORK), "one of two");
}

/* Who may hand out or manage which tokens. */
static void test_rights(void)
{
    enum { READ = WEFT_SCOPE_READ, WORK = WEFT_SCOPE_WORK, ADMIN = WEFT_SCOPE_ADMIN };
    static const struct {
        struct weft_rights own, other;
        bool want;
        const char *name;
    } row[] = {
        {{ADMIN, NULL}, {ADMIN, NULL}, true, "an admin: another admin"},
        {{ADMIN, NULL}, {READ | WORK, "blue"}, true, "an admin: any scope in any namespace"},
        {{ADMIN, "blue"}, {ADMIN, "blue"}, true, "a bound admin: one of its namespace"},
        {{ADMIN, "blue"}, {READ, "blue"}, true, "a bound admin: a reader of its namespace"},
        {{ADMIN, "blue"}, {READ, "red"}, false, "a bound admin: another namespace"},
        {{ADMIN, "blue"}, {READ, NULL}, false, "a bound admin: every namespace"},
        {{READ, NULL}, {READ, NULL}, true, "a reader: a reader"},
        {{READ, NULL}, {READ | WORK, NULL}, false, "a reader: a scope more"},
        {{READ | WORK, NULL}, {ADMIN, NULL}, false, "all but admin: an admin"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_int(weft_rights_include(&row[i].own, &row[i].other), row[i].want, "%s", row[i].name);
}

static void test_scope_lists(void)
{
    static const char *const good[] = {"work", "read", "work"}, *const bad[] = {"read",
                                                                                "work,read"};
    const char *word[WEFT_SCOPES_MAX];
    uint32_t scopes = 0;
    struct weft_err err;
    ok(weft_scopes_read(good, 3, &scopes, &err) == WEFT_OK && scopes == 5, "a list of words");
    ok(weft_scopes_list(scopes, word) == 2 && strcmp(word[0], "read") == 0 &&
           strcmp(word[1], "work") == 0,
       "the scopes are listed in their order");
    is_int(weft_scopes_read(good, 0, &scopes, &err), WEFT_INVALID_VALUE,
           "an empty list of scopes is refused");
    is_int(weft_scopes_read(bad, 2, &scopes, &err), WEFT_INVALID_VALUE, "two words in one");
    is_str(err.field, "scopes", "the field is named");
}

int main(void)
{
    test_rights();
    test_scope_lists();
    test_secret();
    test_there_and_back();
    test_refused_texts();
    test_scopes();
    test_allows();
    return tap_done();
}
