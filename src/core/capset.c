/* SPDX-License-Identifier: Apache-2.0 */

#include "core/capset.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "core/budget.h"
#include "core/spec.h"

#include <stdlib.h>
#include <string.h>

static bool token_valid(const char *token)
{
    if (!token || !*token)
        return false;
    for (const unsigned char *c = (const unsigned char *)token; *c; c++)
        if (*c <= ' ' || *c == ',' || *c >= 0x7f)
            return false;
    return true;
}

enum weft_rc weft_capset_text(const char *const *token, size_t count, struct weft_arena *arena,
                              const char **ret_text, struct weft_err *err)
{
    if (count == 0) {
        *ret_text = "";
        return WEFT_OK;
    }
    if (count > WEFT_CAPABILITIES_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "capabilities",
                               "%zu capabilities, at most %d are allowed", count,
                               WEFT_CAPABILITIES_MAX);
    const char **sorted = weft_new_array(arena, const char *, count);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (!token_valid(token[i]))
            return weft_invalid(err, "capabilities",
                                "capability %zu must be printable ASCII without spaces and commas",
                                i);
        sorted[i] = token[i];
        bytes += strlen(token[i]) + 1;
    }
    if (bytes > WEFT_CAPABILITIES_BYTES)
        return weft_fail_field(err, WEFT_TOO_LARGE, "capabilities",
                               "the capabilities take %zu bytes, at most %d are allowed", bytes,
                               WEFT_CAPABILITIES_BYTES);
    qsort(sorted, count, sizeof(*sorted), weft_text_order);

    char *text = weft_arena_alloc(arena, bytes, 1), *at = text;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(sorted[i], sorted[i - 1]) == 0)
            continue;
        if (at != text)
            *at++ = ',';
        at = stpcpy(at, sorted[i]);
    }
    *ret_text = text;
    return WEFT_OK;
}

/* Compares the tokens at a and b (each ends at a comma or the end) in the order of strcmp. */
static int token_cmp(const char *a, size_t a_size, const char *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    if (order != 0)
        return order;
    return (a_size > b_size) - (a_size < b_size);
}

/* The token behind one of `size` bytes. */
static const char *after(const char *token, size_t size)
{
    return token + size + (token[size] == ',');
}

bool weft_capset_fits(const char *needed, const char *offered)
{
    while (*needed) {
        if (!*offered)
            return false;
        size_t needed_size = strcspn(needed, ","), offered_size = strcspn(offered, ",");
        int order = token_cmp(needed, needed_size, offered, offered_size);
        if (order < 0)
            return false; /* the sorted offer is past it */
        if (order == 0)
            needed = after(needed, needed_size);
        offered = after(offered, offered_size);
    }
    return true;
}

static bool has_token(const char *const *token, size_t count, const char *wanted, size_t size)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(token[i], wanted, size) == 0 && token[i][size] == '\0')
            return true;
    return false;
}

bool weft_capset_offered(const char *needed, const char *const *token, size_t count)
{
    while (*needed) {
        size_t size = strcspn(needed, ",");
        if (!has_token(token, count, needed, size))
            return false;
        needed = after(needed, size);
    }
    return true;
}

bool weft_capset_within(const char *needed, const char *const *token, size_t count)
{
    while (*needed) {
        size_t size = strcspn(needed, ","), low = 0, high = count;
        while (low < high) {
            size_t middle = (low + high) / 2;
            int order = token_cmp(token[middle], strlen(token[middle]), needed, size);
            if (order == 0)
                break;
            if (order < 0)
                low = middle + 1;
            else
                high = middle;
        }
        if (low >= high)
            return false;
        needed = after(needed, size);
    }
    return true;
}

static uint16_t hash_of(const char *token, size_t size)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)token[i]) * 1099511628211u;
    /* The upper bits of the product depend on all bits of the hash. */
    return (uint16_t)((hash * 0x9e3779b97f4a7c15u >> 32) % WEFT_CAPSET_NUMBERS);
}

struct weft_capset_need weft_capset_need(const char *needed)
{
    const char *comma = strrchr(needed, ','), *last = comma ? comma + 1 : needed;
    if (!*needed)
        return (struct weft_capset_need){WEFT_CAPSET_NUMBERS, WEFT_CAPSET_NUMBERS};
    return (struct weft_capset_need){hash_of(needed, strcspn(needed, ",")),
                                     hash_of(last, strlen(last))};
}

void weft_capset_offer(const char *offered, struct weft_capset_offer *ret_offer)
{
    *ret_offer = (struct weft_capset_offer){0};
    ret_offer->bit[WEFT_CAPSET_NUMBERS / 64] = 1; /* an empty need fits any offer */
    while (*offered) {
        size_t size = strcspn(offered, ",");
        uint16_t number = hash_of(offered, size);
        ret_offer->bit[number / 64] |= (uint64_t)1 << number % 64;
        offered = after(offered, size);
    }
}

const char *const *weft_capset_split(const char *text, struct weft_arena *arena, size_t *ret_count)
{
    size_t count = *text != '\0';
    for (const char *c = text; *c; c++)
        count += *c == ',';
    const char **token = weft_new_array(arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++) {
        size_t size = strcspn(text, ",");
        char *copy = weft_arena_alloc(arena, size + 1, 1);
        token[i] = memcpy(copy, text, size);
        text = after(text, size);
    }
    *ret_count = count;
    return token;
}

/* ---- What a queue needs ---------------------------------------------------------------------- */

static enum weft_rc budgets_text(const char *const *budget, size_t count, struct weft_arena *arena,
                                 const char **ret_text, struct weft_err *err)
{
    if (count > WEFT_BUDGETS_NAMED_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "budgets",
                               "%zu budgets, at most %d are allowed", count,
                               WEFT_BUDGETS_NAMED_MAX);
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++)
        rc = weft_name_check(budget[i], "budgets", err);
    return rc ? rc : weft_capset_text(budget, count, arena, ret_text, err);
}

enum weft_rc weft_needs_text(const char *const *budget, size_t count, const char *capset,
                             const char *target, struct weft_arena *arena, const char **ret_text,
                             struct weft_err *err)
{
    *ret_text = capset;
    if (count == 0 && !target)
        return WEFT_OK;
    const char *names = "";
    enum weft_rc rc = budgets_text(budget, count, arena, &names, err);
    if (rc)
        return rc;
    if (strlen(names) + strlen(capset) + 1 > WEFT_CAPABILITIES_BYTES)
        return weft_fail_field(err, WEFT_TOO_LARGE, "budgets",
                               "the names of budgets and capabilities take more than %d bytes",
                               WEFT_CAPABILITIES_BYTES);
    *ret_text = target ? weft_arena_printf(arena, "%s %s %s", names, capset, target)
                       : weft_arena_printf(arena, "%s %s", names, capset);
    return WEFT_OK;
}

const char *weft_needs_capset(const char *text, struct weft_arena *arena)
{
    const char *first = strchr(text, ' '), *second = first ? strchr(first + 1, ' ') : NULL;
    if (!first)
        return text;
    return second ? weft_arena_printf(arena, "%.*s", (int)(second - first - 1), first + 1)
                  : first + 1;
}

const char *weft_needs_target(const char *text)
{
    const char *first = strchr(text, ' '), *second = first ? strchr(first + 1, ' ') : NULL;
    return second ? second + 1 : NULL;
}

const char *const *weft_needs_budgets(const char *text, struct weft_arena *arena, size_t *ret_count)
{
    const char *space = strchr(text, ' ');
    const char *names = space ? weft_arena_printf(arena, "%.*s", (int)(space - text), text) : "";
    return weft_capset_split(names, arena, ret_count);
}
