/* SPDX-License-Identifier: Apache-2.0 */

#include "core/spec.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"
#include "core/budget.h"
#include "core/capset.h"
#include "core/carried.h"
#include "core/http_call.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

enum {
    TAGS_TEXT_MAX = WEFT_TAGS_MAX * (WEFT_TAG_KEY_MAX + 6 * WEFT_TAG_VALUE_MAX + 8),
};

enum weft_rc weft_name_check(const char *name, const char *field, struct weft_err *err)
{
    if (name && weft_name_valid(name))
        return WEFT_OK;
    if (!name || !*name)
        return weft_invalid(err, field, "%s is missing or empty", field);
    return weft_invalid(err, field, "%s must be 1 to %d characters out of A-Z a-z 0-9 _ . : / -",
                        field, WEFT_NAME_MAX);
}

enum weft_rc weft_text_check(const char *text, size_t max, const char *field, struct weft_err *err)
{
    size_t size = text ? strlen(text) : 0;
    if (size > max)
        return weft_fail_field(err, WEFT_TOO_LARGE, field,
                               "%s has %zu bytes, at most %zu are allowed", field, size, max);
    if (size > 0 && !weft_text_printable(text, size))
        return weft_invalid(err, field, "%s must be valid UTF-8 without control characters", field);
    return WEFT_OK;
}

static bool tag_key_valid(const char *key)
{
    size_t size = key ? strlen(key) : 0;
    return size >= 1 && size <= WEFT_TAG_KEY_MAX && weft_name_valid(key) && !strpbrk(key, ":/");
}

static enum weft_rc tag_check(const struct weft_tag *tag, struct weft_err *err)
{
    if (!tag_key_valid(tag->key))
        return weft_invalid(err, "tags",
                            "a tag's key must be 1 to %d characters out of A-Z a-z 0-9 _ . -",
                            WEFT_TAG_KEY_MAX);
    if (!tag->value)
        return weft_invalid(err, "tags", "tag '%s' has no value", tag->key);
    return weft_text_check(tag->value, WEFT_TAG_VALUE_MAX, "tags", err);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct weft_tag *)a)->key, ((const struct weft_tag *)b)->key);
}

enum weft_rc weft_tags_text(const struct weft_tag *tag, size_t count, struct weft_arena *arena,
                            const char **ret_text, struct weft_err *err)
{
    if (count == 0) {
        *ret_text = NULL;
        return WEFT_OK;
    }
    if (count > WEFT_TAGS_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "tags", "%zu tags, at most %d are allowed",
                               count, WEFT_TAGS_MAX);
    struct weft_tag sorted[WEFT_TAGS_MAX];
    for (size_t i = 0; i < count; i++) {
        enum weft_rc rc = tag_check(&tag[i], err);
        if (rc)
            return rc;
        sorted[i] = tag[i];
    }
    qsort(sorted, count, sizeof(*sorted), by_key);

    struct weft_buf buf;
    weft_buf_init(&buf, TAGS_TEXT_MAX);
    struct weft_json_writer out;
    weft_json_writer_init(&out, &buf);
    weft_json_begin_object(&out);
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        if (i > 0 && strcmp(sorted[i].key, sorted[i - 1].key) == 0)
            rc = weft_invalid(err, "tags", "tag '%s' is given twice", sorted[i].key);
        weft_json_add_text(&out, sorted[i].key, sorted[i].value);
    }
    weft_json_end_object(&out);
    if (!rc)
        *ret_text = weft_arena_strdup(arena, buf.data);
    weft_buf_done(&buf);
    return rc;
}

const struct weft_tag *weft_tags_parse(const char *text, struct weft_arena *arena,
                                       size_t *ret_count)
{
    *ret_count = 0;
    struct weft_json value;
    if (!text || weft_json_check(text, strlen(text), &value, NULL) ||
        value.kind != WEFT_JSON_OBJECT)
        return NULL;
    struct weft_tag *tag = weft_new_array(arena, struct weft_tag, WEFT_TAGS_MAX);
    struct weft_json_iter member;
    weft_json_iter_init(&member, &value);
    size_t count = 0;
    while (count < WEFT_TAGS_MAX && weft_json_next(&member)) {
        if (weft_json_string(&member.key, arena, &tag[count].key, NULL) ||
            weft_json_string(&member.value, arena, &tag[count].value, NULL))
            break;
        count++;
    }
    *ret_count = count;
    return tag;
}

enum weft_rc weft_tag_needle(const struct weft_tag *tag, struct weft_arena *arena,
                             const char **ret_text, struct weft_err *err)
{
    /* {"k":"v"} without its braces. Inside a value every quote is escaped, so no value holds it. */
    const char *text;
    enum weft_rc rc = weft_tags_text(tag, 1, arena, &text, err);
    if (rc)
        return rc;
    char *needle = weft_arena_strdup(arena, text + 1);
    needle[strlen(needle) - 1] = '\0';
    *ret_text = needle;
    return WEFT_OK;
}

static enum weft_rc resolve_times(const struct weft_spec *spec, weft_usec now_us,
                                  struct weft_resolved *out, struct weft_err *err)
{
    if (spec->delay_ms != 0 && spec->run_at_us != 0)
        return weft_invalid(err, "run_at", "give delay_ms or run_at, not both");
    if (spec->delay_ms < 0 || spec->delay_ms > WEFT_DELAY_MAX_MS)
        return weft_invalid(err, "delay_ms", "delay_ms must be 0 to %lld (ten years)",
                            (long long)WEFT_DELAY_MAX_MS);
    if (spec->run_at_us < 0 || spec->run_at_us > WEFT_MOMENT_MAX_US)
        return weft_invalid(err, "run_at", "run_at must be a moment between 1970 and 9999");
    if (spec->deadline_us != 0 &&
        (spec->deadline_us <= now_us || spec->deadline_us > WEFT_MOMENT_MAX_US))
        return weft_invalid(err, "deadline_at",
                            "deadline_at must be in the future and before the year 10000");
    weft_usec due_us = spec->delay_ms ? now_us + spec->delay_ms * WEFT_MS : spec->run_at_us;
    enum weft_state now = spec->gate ? WEFT_STATE_HELD : WEFT_STATE_READY;
    out->state = due_us > now_us ? WEFT_STATE_DELAYED : now;
    out->due_us = due_us > now_us ? due_us : 0;
    out->deadline_us = spec->deadline_us;
    return WEFT_OK;
}

static enum weft_rc resolve_names(const struct weft_spec *spec, const char *ns,
                                  struct weft_resolved *out, struct weft_err *err)
{
    out->ns = spec->ns ? spec->ns : ns;
    out->lane = spec->lane ? spec->lane : "default";
    out->kind = spec->kind;
    out->tenant = spec->tenant ? spec->tenant : "";
    out->key = spec->key;
    out->gate = spec->gate;
    enum weft_rc rc = weft_name_check(out->ns, "namespace", err);
    if (!rc)
        rc = weft_name_check(out->lane, "lane", err);
    if (!rc)
        rc = weft_name_check(out->kind, "kind", err);
    if (!rc && spec->tenant)
        rc = weft_name_check(spec->tenant, "tenant", err);
    if (!rc && spec->gate)
        rc = weft_name_check(spec->gate, "gate", err);
    if (!rc && spec->key && !*spec->key)
        return weft_invalid(err, "key", "key is empty");
    if (!rc)
        rc = weft_text_check(spec->key, WEFT_KEY_MAX, "key", err);
    return rc;
}

static enum weft_rc resolve_payload(const struct weft_spec *spec, struct weft_resolved *out,
                                    struct weft_err *err)
{
    if (spec->payload_size > WEFT_PAYLOAD_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "payload",
                               "the payload has %zu bytes, at most %d are allowed",
                               spec->payload_size, WEFT_PAYLOAD_MAX);
    if (!spec->payload && spec->payload_size > 0)
        return weft_invalid(err, "payload", "payload is NULL but payload_size is %zu",
                            spec->payload_size);
    if (spec->content_type && !*spec->content_type)
        return weft_invalid(err, "content_type", "content_type is empty");
    out->payload = spec->payload;
    out->payload_size = spec->payload_size;
    out->content_type = spec->content_type;
    return weft_text_check(spec->content_type, WEFT_CONTENT_TYPE_MAX, "content_type", err);
}

/* The target of a kind that weft carries out itself; NULL: it is none. */
static enum weft_rc read_carried(struct weft_resolved *out, struct weft_arena *arena,
                                 const char **ret_target, struct weft_err *err)
{
    struct weft_carried carried;
    if (!weft_kind_is_carried(out->kind))
        return WEFT_OK;
    enum weft_rc rc =
        weft_carried_read(out->content_type, out->payload, out->payload_size, arena, &carried, err);
    if (rc)
        return rc;
    *ret_target = carried.target;
    out->from = carried.from;
    out->from_count = carried.from_count;
    return WEFT_OK;
}

enum weft_rc weft_spec_takes(const struct weft_resolved *spec, const char *const *upstream,
                             size_t count, struct weft_err *err)
{
    for (size_t i = 0; i < spec->from_count; i++) {
        size_t at = 0;
        while (at < count && strcmp(upstream[at], spec->from[i].node) != 0)
            at++;
        if (at == count)
            return weft_invalid(err, "payload.from",
                                "from takes the result of '%s', which it does not come after",
                                spec->from[i].node);
    }
    return WEFT_OK;
}

/* Each part is hashed on its own first, so that parts cannot merge. */
void weft_spec_fingerprint(struct weft_resolved *out)
{
    uint8_t part[3 * SHA256_DIGEST_LENGTH];
    SHA256((const uint8_t *)out->lane, strlen(out->lane), part);
    SHA256((const uint8_t *)out->kind, strlen(out->kind), part + SHA256_DIGEST_LENGTH);
    SHA256(out->payload ? out->payload : "", out->payload_size,
           part + (size_t)2 * SHA256_DIGEST_LENGTH);
    SHA256(part, sizeof(part), out->fingerprint);
}

enum weft_rc weft_spec_resolve(const struct weft_spec *spec, const char *ns, weft_usec now_us,
                               struct weft_arena *arena, struct weft_resolved *ret_resolved,
                               struct weft_err *err)
{
    struct weft_resolved out = {.priority = spec->priority,
                                .policy_given = spec->policy,
                                .cost = spec->cost,
                                .cost_count = spec->cost_count};
    enum weft_rc rc = resolve_names(spec, ns, &out, err);
    if (!rc)
        rc = resolve_payload(spec, &out, err);
    if (!rc)
        rc = resolve_times(spec, now_us, &out, err);
    if (rc)
        return rc;
    if (spec->priority < INT16_MIN || spec->priority > INT16_MAX)
        return weft_invalid(err, "priority", "priority is %d, allowed are -32768 to 32767",
                            (int)spec->priority);
    const char *capset = "", *target = NULL;
    rc = weft_capset_text(spec->capabilities, spec->capability_count, arena, &capset, err);
    if (!rc)
        rc = read_carried(&out, arena, &target, err);
    if (!rc)
        rc = weft_needs_text(spec->budgets, spec->budget_count, capset, target, arena, &out.needs,
                             err);
    if (!rc)
        rc = weft_amounts_check(spec->cost, spec->cost_count, "cost", err);
    if (!rc)
        rc = weft_tags_text(spec->tags, spec->tag_count, arena, &out.tags, err);
    if (!rc)
        rc = weft_policy_resolve(spec->policy, arena, &out.rules, err);
    if (rc)
        return rc;
    if (out.key)
        weft_spec_fingerprint(&out);
    *ret_resolved = out;
    return WEFT_OK;
}
