/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_SPEC_H
#define WEFT_CORE_SPEC_H

/*
 * Validation of submissions, for C callers, HTTP and the inbox. A valid spec is resolved: defaults
 * are filled in, names are checked, tags, capabilities and budgets have their canonical text. No
 * statement refuses a resolved spec. Pure.
 */

#include "core/policy.h"
#include "core/state.h"

struct weft_http_from;

struct weft_resolved {
    const char *ns, *lane, *kind, *tenant, *needs; /* tenant and needs: "" when none */
    const char *gate;                              /* NULL: none */
    const void *payload;                           /* NULL: none */
    size_t payload_size;
    const char *content_type; /* NULL: JSON */
    const char *tags;         /* canonical JSON text, NULL: none */
    const char *key;          /* NULL: none */
    uint8_t fingerprint[32];  /* of lane, kind and payload; set when there is a key */
    int32_t priority;
    enum weft_state state;
    weft_usec due_us;
    weft_usec deadline_us;
    const struct weft_amount *cost; /* borrowed */
    size_t cost_count;
    const struct weft_http_from *from; /* of kind `http`: results of upstreams that it takes */
    size_t from_count;
    const struct weft_policy *policy_given; /* borrowed; the source of rules, NULL: defaults */
    struct weft_rules rules;
};

/* The texts of the result are in the arena or static; the payload stays the caller's. */
WEFT_MUST_CHECK enum weft_rc weft_spec_resolve(const struct weft_spec *spec, const char *ns,
                                               weft_usec now_us, struct weft_arena *arena,
                                               struct weft_resolved *ret_resolved,
                                               struct weft_err *err);

/*
 * A part of a resolved spec that depends on where it stands: the results that it takes must be
 * those of its upstreams, of which an execution outside of flows has none.
 */
WEFT_MUST_CHECK enum weft_rc weft_spec_takes(const struct weft_resolved *spec,
                                             const char *const *upstream, size_t count,
                                             struct weft_err *err);

/* Submissions are the same if lane, kind and payload are. Set by resolve when there is a key. */
void weft_spec_fingerprint(struct weft_resolved *out);

/* Checks a name against [A-Za-z0-9_.:/-]{1,128}; `field` is blamed. */
WEFT_MUST_CHECK enum weft_rc weft_name_check(const char *name, const char *field,
                                             struct weft_err *err);
/* Checks a text for people: valid UTF-8, bounded. NULL is valid. */
WEFT_MUST_CHECK enum weft_rc weft_text_check(const char *text, size_t max, const char *field,
                                             struct weft_err *err);

/* The canonical JSON of tags, and back. */
WEFT_MUST_CHECK enum weft_rc weft_tags_text(const struct weft_tag *tag, size_t count,
                                            struct weft_arena *arena, const char **ret_text,
                                            struct weft_err *err);
const struct weft_tag *weft_tags_parse(const char *text, struct weft_arena *arena,
                                       size_t *ret_count);
/* One tag as it appears in that text: a filter searches for it as a substring. */
WEFT_MUST_CHECK enum weft_rc weft_tag_needle(const struct weft_tag *tag, struct weft_arena *arena,
                                             const char **ret_text, struct weft_err *err);

#endif
