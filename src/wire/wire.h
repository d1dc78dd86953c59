/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_WIRE_WIRE_H
#define WEFT_WIRE_WIRE_H

/*
 * The JSON of the HTTP API, once for both sides.
 *
 * Each message is a table of fields over a struct of weft.h. From the one table come the reader,
 * the writer and the schema in the OpenAPI document, so the server, the remote client and the
 * documentation cannot disagree. Readers are strict: a field that is not in the table is
 * WEFT_UNKNOWN_FIELD, a wrong type or range is WEFT_INVALID_VALUE, and err->field names it (in the
 * arena when it is not static). null counts as absent, but for payloads and results. Which values
 * of a type are allowed is the engine's business.
 */

#include "base/json.h"
#include "core/state.h" /* weft_state_parse() */
#include "weft/weft.h"

struct weft_wire_type; /* opaque outside this folder; see type.h */

/* ---- Messages -------------------------------------------------------------------------------- */

#define MESSAGE(name) extern const struct weft_wire_type weft_wire_##name;
#include "wire/messages.def"

/* A suspend as a command of `weft work` writes it; no message of the API. */
extern const struct weft_wire_type weft_wire_suspend_file;

/* All of them. */
extern const struct weft_wire_type *const weft_wire_messages[];
extern const size_t weft_wire_message_count;

struct weft_wire_named_id {
    const char *name;
    struct weft_id id;
};

/* The answer to a submitted flow, as it is written in JSON. */
struct weft_wire_flow_submitted {
    struct weft_id id;
    enum weft_flow_state state;
    const struct weft_wire_named_id *nodes;
    size_t node_count;
    int32_t revision;
    bool duplicate;
};
/* The words of a flow's state and of how it is cancelled, in the order of their enums. */
extern const char *const weft_wire_flow_states[WEFT_FLOW_STATE_COUNT];
extern const char *const weft_wire_resumed_by[WEFT_RESUMED_BY_OPERATOR + 1];
extern const char *const weft_wire_on_timeouts[WEFT_ON_TIMEOUT_ESCALATE + 1];
extern const char *const weft_wire_waitpoint_states[WEFT_WAITPOINT_CLOSED + 1];
extern const char *const weft_wire_flow_cancels[WEFT_FLOW_CANCEL_ONLY + 1];
extern const char *const weft_wire_batch_statuses[WEFT_BATCH_STATUS_CANCELLED + 1];
/* The value of a word in such a list, -1: it is none of them. */
int weft_wire_word(const char *const *word, size_t count, const char *text);

/* The answer to a call with a filter, as it is written in JSON. */
struct weft_wire_sweep {
    uint64_t matched, changed;
    bool more;
    const char *next; /* NULL: there is no more */
};

/* The report of a pass, as it is written in JSON. */
struct weft_wire_pass {
    const char *name;
    uint64_t handled, failed;
    const struct weft_counter *counters;
    size_t counter_count;
    bool more;
    weft_usec next_due_us; /* INT64_MAX: nothing is known */
    weft_usec duration_us;
};

/* ---- Reading --------------------------------------------------------------------------------- */

/*
 * Fills *ret_struct (zeroed first) from an object. Texts are put in the arena; payloads that are
 * JSON stay slices of the checked text, which must live as long.
 */
WEFT_MUST_CHECK enum weft_rc weft_wire_read(const struct weft_wire_type *type,
                                            const struct weft_json *value, struct weft_arena *arena,
                                            void *ret_struct, struct weft_err *err);
/* For answers of a server that may be newer: fields that are not known are passed over. */
WEFT_MUST_CHECK enum weft_rc weft_wire_read_answer(const struct weft_wire_type *type,
                                                   const struct weft_json *value,
                                                   struct weft_arena *arena, void *ret_struct,
                                                   struct weft_err *err);
/*
 * Messages from the text of a JSON array that a server of any version wrote, in the arena. What
 * cannot be read is left out, and a text that is no array is an empty one.
 */
void *weft_wire_read_list(const struct weft_wire_type *type, const char *text,
                          struct weft_arena *arena, size_t *ret_count);
/* The member of an object, false when it is not there. */
WEFT_MUST_CHECK bool weft_wire_member(const struct weft_json *object, const char *name,
                                      struct weft_json *ret_value);

/* ---- Writing --------------------------------------------------------------------------------- */

/* One object. Answers write every field (null when not set), requests only the fields that are set.
 */
void weft_wire_write(const struct weft_wire_type *type, const void *item,
                     struct weft_json_writer *out);
/* The members without the braces, for an object that has others as well. */
void weft_wire_write_members(const struct weft_wire_type *type, const void *item,
                             struct weft_json_writer *out);
void weft_wire_put_id(struct weft_json_writer *out, const struct weft_id *id);
void weft_wire_put_moment(struct weft_json_writer *out, weft_usec moment_us); /* 0: null */

/* ---- Errors ---------------------------------------------------------------------------------- */

/* What the error of a lease says besides. */
struct weft_wire_detail {
    enum weft_fence fence;          /* "reason" of fenced; NONE: absent */
    const struct weft_amount *left; /* "left" of budget_exceeded; absent for other codes */
    size_t left_count;
};
/* {"code","message","hint","field"}, with what the detail says; NULL: nothing. */
void weft_wire_write_error(const struct weft_err *error, const struct weft_wire_detail *detail,
                           struct weft_json_writer *out);
/* Back again. hint, field and left are put in the arena. ret_detail may be NULL. */
WEFT_MUST_CHECK enum weft_rc weft_wire_read_error(const struct weft_json *value,
                                                  struct weft_arena *arena,
                                                  struct weft_err *ret_error,
                                                  struct weft_wire_detail *ret_detail,
                                                  struct weft_err *err);

/* ---- Schemas --------------------------------------------------------------------------------- */

const char *weft_wire_name(const struct weft_wire_type *type); /* "Spec" */
size_t weft_wire_size(const struct weft_wire_type *type);      /* of its struct */
/*
 * The name of a field of any message as a static text: "lane", or "policy.backoff.kind" for a field
 * of an object inside. NULL: no message has it.
 */
const char *weft_wire_field_name(const char *name);
/* The JSON Schema (2020-12) of a message, as one object. */
void weft_wire_schema(const struct weft_wire_type *type, struct weft_json_writer *out);

#endif
