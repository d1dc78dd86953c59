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
 * arena when it is not static). null counts as absent, but for payloads and results. What a value
 * may be beyond its type is the engine's business.
 */

#include "base/json.h"
#include "core/state.h" /* weft_state_parse() */
#include "weft/weft.h"

struct weft_arena;
struct weft_wire_type; /* opaque outside this folder; see type.h */

/* ---- Messages: the JSON name, the struct ----------------------------------------------------- */

extern const struct weft_wire_type weft_wire_spec; /* struct weft_spec (ns is not on the wire) */
extern const struct weft_wire_type weft_wire_submitted; /* struct weft_submitted, without err */
extern const struct weft_wire_type weft_wire_execution; /* struct weft_execution */
extern const struct weft_wire_type weft_wire_claim;     /* struct weft_claim, with wait_ms */
extern const struct weft_wire_type weft_wire_claimed;   /* struct weft_claimed */
extern const struct weft_wire_type weft_wire_renew;     /* struct weft_renew */
extern const struct weft_wire_type weft_wire_complete;  /* struct weft_complete */
extern const struct weft_wire_type weft_wire_failure;   /* struct weft_failure */
extern const struct weft_wire_type weft_wire_delay;   /* struct weft_put_back, delay_ms required */
extern const struct weft_wire_type weft_wire_release; /* struct weft_put_back */
extern const struct weft_wire_type weft_wire_watch;   /* struct weft_watch */
extern const struct weft_wire_type weft_wire_ended_lease; /* struct weft_ended_lease */
extern const struct weft_wire_type
    weft_wire_renewed; /* struct weft_lease_answer: lease_expires_at */
extern const struct weft_wire_type weft_wire_finished; /* struct weft_lease_answer: state, run_at */
extern const struct weft_wire_type weft_wire_cancel;   /* struct weft_steer: reason */
extern const struct weft_wire_type weft_wire_replay;   /* struct weft_steer: force */
extern const struct weft_wire_type weft_wire_priority; /* struct weft_steer: priority, required */
extern const struct weft_wire_type weft_wire_deadline; /* struct weft_steer: deadline_at */
extern const struct weft_wire_type weft_wire_filter;   /* struct weft_filter */
extern const struct weft_wire_type weft_wire_sweep;    /* struct weft_wire_sweep */
extern const struct weft_wire_type weft_wire_attempt;  /* struct weft_attempt */
extern const struct weft_wire_type weft_wire_lane;     /* struct weft_lane */
extern const struct weft_wire_type weft_wire_lane_count;     /* struct weft_lane_count */
extern const struct weft_wire_type weft_wire_worker;         /* struct weft_worker_info */
extern const struct weft_wire_type weft_wire_token_spec;     /* struct weft_token_spec */
extern const struct weft_wire_type weft_wire_token_rotation; /* weft_token_rotation, without id */
extern const struct weft_wire_type weft_wire_token;          /* struct weft_token, without token */
extern const struct weft_wire_type weft_wire_token_made;     /* struct weft_token */
extern const struct weft_wire_type weft_wire_replica;        /* struct weft_replica */
extern const struct weft_wire_type weft_wire_scanner;        /* struct weft_scanner_status */
extern const struct weft_wire_type weft_wire_pass;           /* struct weft_wire_pass */

extern const struct weft_wire_type weft_wire_node;           /* struct weft_node */
extern const struct weft_wire_type weft_wire_flow_spec;      /* struct weft_flow_spec */
extern const struct weft_wire_type weft_wire_flow_submitted; /* struct weft_wire_flow_submitted */
extern const struct weft_wire_type weft_wire_flow_grown;     /* the same, with less to say */
extern const struct weft_wire_type weft_wire_flow_growth;    /* struct weft_flow_growth */
extern const struct weft_wire_type weft_wire_flow_edge;      /* struct weft_flow_edge */
extern const struct weft_wire_type weft_wire_flow_edging;    /* struct weft_flow_edging */
extern const struct weft_wire_type weft_wire_flow_linked;    /* its answer: a revision */
extern const struct weft_wire_type weft_wire_flow_cancel;    /* struct weft_flow_cancelling */
extern const struct weft_wire_type weft_wire_flow_cancelled; /* struct weft_flow_cancelled */
extern const struct weft_wire_type weft_wire_flow_node;      /* struct weft_flow_node */
extern const struct weft_wire_type weft_wire_flow;           /* struct weft_flow, as in lists */
extern const struct weft_wire_type weft_wire_flow_page;      /* struct weft_flow_page */
extern const struct weft_wire_type weft_wire_upstream;       /* struct weft_upstream */

struct weft_wire_named_id {
    const char *name;
    struct weft_id id;
};

/* What a flow became, in the form in which it travels. */
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
extern const char *const weft_wire_flow_cancels[WEFT_FLOW_CANCEL_ONLY + 1];
/* The value of a word in such a list, -1: it is none of them. */
int weft_wire_word(const char *const *word, size_t count, const char *text);

/* What a call with a filter did, in the form in which it travels. */
struct weft_wire_sweep {
    uint64_t matched, changed;
    bool more;
    const char *next; /* NULL: there is no more */
};

/* What a pass of a scanner did, in the form in which it travels. */
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

/* One object. Answers write every field (null when not set), requests only what is set. */
void weft_wire_write(const struct weft_wire_type *type, const void *item,
                     struct weft_json_writer *out);
/* The members without the braces, for an object that has others as well. */
void weft_wire_write_members(const struct weft_wire_type *type, const void *item,
                             struct weft_json_writer *out);
void weft_wire_put_id(struct weft_json_writer *out, const struct weft_id *id);
void weft_wire_put_moment(struct weft_json_writer *out, weft_usec moment_us); /* 0: null */

/* ---- Errors ---------------------------------------------------------------------------------- */

/* {"code","message","hint","field"}, with "reason" when the fence is not NONE. */
void weft_wire_write_error(const struct weft_err *error, enum weft_fence fence,
                           struct weft_json_writer *out);
/* Back again. hint and field are put in the arena. ret_fence may be NULL. */
WEFT_MUST_CHECK enum weft_rc weft_wire_read_error(const struct weft_json *value,
                                                  struct weft_arena *arena,
                                                  struct weft_err *ret_error,
                                                  enum weft_fence *ret_fence, struct weft_err *err);

/* ---- Schemas --------------------------------------------------------------------------------- */

const char *weft_wire_name(const struct weft_wire_type *type); /* "Spec" */
size_t weft_wire_size(const struct weft_wire_type *type);      /* of its struct */
/* The JSON Schema (2020-12) of a message, as one object. */
void weft_wire_schema(const struct weft_wire_type *type, struct weft_json_writer *out);

#endif
