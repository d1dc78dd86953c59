/* SPDX-License-Identifier: Apache-2.0 */

/* Capability sets: canonical text, and which set serves which. */

#include "base/arena.h"
#include "base/limits.h"
#include "core/capset.h"
#include "tap.h"

static struct weft_arena *arena;

static const char *text_of(const char *const *token, size_t count)
{
    const char *text = "(none)";
    struct weft_err err = {0};
    ok(weft_capset_text(token, count, arena, &text, &err) == WEFT_OK, "a set of %zu: %s", count,
       err.text);
    return text;
}

static void test_text(void)
{
    is_str(text_of(NULL, 0), "", "the empty set is the empty text");
    const char *const one[] = {"gpu"};
    is_str(text_of(one, 1), "gpu", "a set of one token is its text");
    const char *const mixed[] = {"gpu", "arm64", "gpu", "Zone=eu", "arm64", "gpu+"};
    is_str(text_of(mixed, WEFT_LEN(mixed)), "Zone=eu,arm64,gpu,gpu+", "sorted, without repeats");
    const char *const same[] = {"a", "a", "a"};
    is_str(text_of(same, 3), "a", "only repeats");
}

static void test_bad(void)
{
    static const char *const bad[] = {NULL, "", "a b", "a,b", ",", "a\n", "\x7f", "caf\xc3\xa9"};
    const char *text = "kept";
    struct weft_err err = {0};
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        const char *const token[] = {"good", bad[i]};
        is_int(weft_capset_text(token, 2, arena, &text, &err), WEFT_INVALID_VALUE,
               "bad token %zu is refused", i);
        is_str(err.field, "capabilities", "the error names the field capabilities");
    }
    const char *many[WEFT_CAPABILITIES_MAX + 1];
    for (size_t i = 0; i < WEFT_LEN(many); i++)
        many[i] = "x";
    is_int(weft_capset_text(many, WEFT_LEN(many), arena, &text, &err), WEFT_TOO_LARGE,
           "257 tokens are too many");
    char large[WEFT_CAPABILITIES_BYTES + 1];
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    const char *const one[] = {large};
    is_int(weft_capset_text(one, 1, arena, &text, &err), WEFT_TOO_LARGE,
           "2,048 bytes are too many");
    is_str(text, "kept", "nothing is given back on failure");
    is_int(weft_capset_text(one, 0, arena, &text, &err), WEFT_OK, "an empty set is accepted");
    large[sizeof(large) - 2] = '\0';
    is_int(weft_capset_text(one, 1, arena, &text, &err), WEFT_OK, "2,047 and the end are fine");
    is_int(weft_capset_text(many, WEFT_CAPABILITIES_MAX, arena, &text, &err), WEFT_OK,
           "256 tokens are fine");
}

static void test_fits(void)
{
    static const struct {
        const char *needed, *offered;
        bool want;
    } row[] = {
        {"", "", true},
        {"", "gpu", true},
        {"gpu", "", false},
        {"gpu", "gpu", true},
        {"gpu", "GPU", false},
        {"gpu", "gpu2", false},
        {"gpu2", "gpu", false},
        {"gpu", "arm,gpu,zone", true},
        {"arm,zone", "arm,gpu,zone", true},
        {"arm,gpu,zone", "arm,zone", false},
        {"a,a!", "a,a!,a-", true},
        {"a!", "a,a-", false},
        {"a-", "a,a!,a-", true},
        {"b", "a,ab,abc,b", true},
        {"zz", "a,b,c", false},
        {"a,zz", "a,b,c", false},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        size_t count;
        const char *const *token = weft_capset_split(row[i].offered, arena, &count);
        is_int(weft_capset_fits(row[i].needed, row[i].offered), row[i].want, "'%s' %s by '%s'",
               row[i].needed, row[i].want ? "is served" : "is not served", row[i].offered);
        is_int(weft_capset_offered(row[i].needed, token, count), row[i].want,
               "the list form gives the same answer");
    }
}

/* Every subset of six awkward tokens against every other: the walk agrees with plain sets. */
static void test_all_subsets(void)
{
    static const char *const word[] = {"a", "a+", "aa", "B", "b-1", "~"};
    enum { SETS = 1 << 6 };
    const char *text[SETS];
    for (unsigned set = 0; set < SETS; set++) {
        const char *token[6];
        struct weft_err err;
        size_t count = 0;
        for (unsigned i = 0; i < 6; i++)
            if (set & 1u << i)
                token[count++] = word[i];
        if (weft_capset_text(token, count, arena, &text[set], &err))
            text[set] = "(failed)";
    }
    int wrong = 0;
    for (unsigned needed = 0; needed < SETS; needed++)
        for (unsigned offered = 0; offered < SETS; offered++)
            wrong += weft_capset_fits(text[needed], text[offered]) != ((needed & ~offered) == 0);
    is_int(wrong, 0, "all pairs of %d sets", SETS);
}

static void test_split(void)
{
    size_t count = 99;
    (void)weft_capset_split("", arena, &count);
    is_int(count, 0, "the empty text has no tokens");
    const char *const *token = weft_capset_split("gpu", arena, &count);
    is_int(count, 1, "the text has one token");
    is_str(token[0], "gpu", "the only token is kept");
    token = weft_capset_split("a,bc,d", arena, &count);
    is_int(count, 3, "the text has three tokens");
    ok(strcmp(token[0], "a") == 0 && strcmp(token[1], "bc") == 0 && strcmp(token[2], "d") == 0,
       "in their order");
    is_str(text_of(token, count), "a,bc,d", "the split tokens print as the same text");
}

/* A search in the tokens of an offer says the same as a walk along both texts. */
static void test_within(void)
{
    static const char *const offer[] = {"", "a", "a,b", "a,aa,b", "aa,ab,b,c,ca,d", "b,ba,bb"};
    static const char *const need[] = {"",     "a",  "aa",  "ab", "b",    "c",
                                       "ca,d", "bb", "a,z", "z",  "aa,d", "ba,c"};
    size_t wrong = 0, lost = 0, left_out = 0, unfit = 0;
    for (size_t i = 0; i < WEFT_LEN(offer); i++) {
        size_t count;
        struct weft_capset_offer quick;
        weft_capset_offer(offer[i], &quick);
        const char *const *token = weft_capset_split(offer[i], arena, &count);
        for (size_t k = 0; k < WEFT_LEN(need); k++) {
            bool fits = weft_capset_fits(need[k], offer[i]);
            bool may_fit = weft_capset_may_fit(weft_capset_need(need[k]), &quick);
            wrong += weft_capset_within(need[k], token, count) != fits;
            lost += fits && !may_fit;
            unfit += !fits;
            left_out += !may_fit;
        }
    }
    is_int(wrong, 0, "within: as fits");
    is_int(lost, 0, "a quick look leaves out nothing that fits");
    is_int(left_out, unfit,
           "the quick look leaves out every set of one or two tokens that does not fit");
}

static void test_needs(void)
{
    /* clang-format off */
    static const struct {
        const char *budget, *capset, *target, *text;
    } row[] = {
        {NULL, "", NULL, ""},
        {NULL, "a,b", NULL, "a,b"},
        {"money", "", NULL, "money "},
        {"money", "a,b", NULL, "money a,b"},
        {NULL, "", "openai", "  openai"},
        {NULL, "a", "*", " a *"},
        {"money", "a,b", "open/ai", "money a,b open/ai"},
    };
    /* clang-format on */
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        const char *text = NULL;
        size_t count = 0;
        is_int(weft_needs_text(&row[i].budget, row[i].budget != NULL, row[i].capset, row[i].target,
                               arena, &text, NULL),
               WEFT_OK, "needs '%s' are written", row[i].text);
        is_str(text, row[i].text, "as one text");
        is_str(weft_needs_capset(text, arena), row[i].capset, "its capabilities are read");
        const char *target = weft_needs_target(text);
        is_str(target ? target : "-", row[i].target ? row[i].target : "-", "its target is read");
        (void)weft_needs_budgets(text, arena, &count);
        is_int(count, row[i].budget != NULL, "its budgets are read");
    }
    ok(!weft_capset_fits(" openai", "gpu,openai"), "an older binary finds no worker that fits");
}

int main(void)
{
    arena = weft_arena_new();
    test_needs();
    test_text();
    test_bad();
    test_fits();
    test_within();
    test_all_subsets();
    test_split();
    weft_arena_free(arena);
    return tap_done();
}
