/* SPDX-License-Identifier: Apache-2.0 */

/* Policies: an accepted policy has a canonical text, which is read back with the same text. */

#include "fuzz/fuzz.h"

#include "base/arena.h"
#include "core/policy.h"

/* The canonical text of a policy in JSON, or NULL when it is refused. */
static const char *resolve(const char *data, size_t size, struct weft_arena *arena)
{
    struct weft_json value;
    struct weft_err err = {0};
    struct weft_policy policy;
    struct weft_rules rules;
    if (weft_json_check(data, size, &value, &err) || value.kind != WEFT_JSON_OBJECT)
        return NULL;
    enum weft_rc rc = weft_policy_parse(&value, arena, &policy, &err);
    if (!rc)
        rc = weft_policy_resolve(&policy, arena, &rules, &err);
    must(!rc || rc == WEFT_UNKNOWN_FIELD || rc == WEFT_INVALID_VALUE || rc == WEFT_TOO_LARGE);
    return rc ? NULL : weft_policy_text(&rules, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weft_arena *arena = weft_arena_new();
    const char *text = resolve((const char *)data, size, arena);
    if (text) {
        const char *again = resolve(text, strlen(text), arena);
        must(again && strcmp(again, text) == 0);
    }
    weft_arena_free(arena);
    return 0;
}
