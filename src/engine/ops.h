/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_OPS_H
#define WEFT_ENGINE_OPS_H

/*
 * The operations of weft over one store. Arguments and answers are those of weft.h; `ns` is the
 * namespace of items that name none. Every call takes an array, answers each item on its own, and
 * is durable when it returns. Everything is thread-safe. Results are put in the caller's arena;
 * names in them (lane, kind, worker...) live as long as the engine.
 */

#include "base/clock.h"
#include "store/store.h"
#include "weft/weft.h"

struct weft_engine; /* opaque */

struct weft_engine_config {
    const char *url;
    const struct weft_driver *driver; /* NULL: the one for the URL */
    uint32_t connections;             /* 0: 4 */
    bool no_migrate;
};

/* On success the caller owns *ret_engine and ends it with weft_engine_close(). */
WEFT_MUST_CHECK enum weft_rc weft_engine_open(const struct weft_engine_config *config,
                                              struct weft_engine **ret_engine,
                                              struct weft_err *err);
void weft_engine_close(struct weft_engine *engine); /* NULL is fine */
struct weft_clock *weft_engine_clock(struct weft_engine *engine);

WEFT_MUST_CHECK enum weft_rc weft_engine_submit(struct weft_engine *engine, const char *ns,
                                                const struct weft_spec *spec, size_t count,
                                                struct weft_submitted *ret_answer,
                                                struct weft_err *err);

struct weft_claim_result {
    struct weft_claimed *item; /* in the arena */
    size_t count;
    bool contended;
};
/* The arena is the result's alone: it is emptied first. */
WEFT_MUST_CHECK enum weft_rc weft_engine_claim(struct weft_engine *engine, const char *ns,
                                               const struct weft_claim *claim, size_t count,
                                               struct weft_arena *arena,
                                               struct weft_claim_result *ret_result,
                                               struct weft_err *err);

WEFT_MUST_CHECK enum weft_rc weft_engine_renew(struct weft_engine *engine,
                                               const struct weft_renew *item, size_t count,
                                               struct weft_lease_answer *ret_answer,
                                               struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_complete(struct weft_engine *engine,
                                                  const struct weft_complete *item, size_t count,
                                                  struct weft_lease_answer *ret_answer,
                                                  struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_fail(struct weft_engine *engine,
                                              const struct weft_failure *item, size_t count,
                                              struct weft_lease_answer *ret_answer,
                                              struct weft_err *err);

enum weft_put_back_kind { WEFT_PUT_BACK_DELAY, WEFT_PUT_BACK_RELEASE };
WEFT_MUST_CHECK enum weft_rc weft_engine_put_back(struct weft_engine *engine,
                                                  enum weft_put_back_kind kind,
                                                  const struct weft_put_back *item, size_t count,
                                                  struct weft_lease_answer *ret_answer,
                                                  struct weft_err *err);

/* A call of weft_steer(), with the namespace of items that name none. */
struct weft_steering {
    enum weft_steer_kind kind;
    const char *ns;
    const struct weft_steer *item;
    size_t count;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_steer(struct weft_engine *engine,
                                               const struct weft_steering *steering,
                                               struct weft_steered *ret_answer,
                                               struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_steer_all(struct weft_engine *engine,
                                                   const struct weft_steer_all *args,
                                                   struct weft_sweep *ret_sweep,
                                                   struct weft_err *err);

struct weft_read_page {
    struct weft_execution *item; /* in the arena */
    size_t count;
    const char *next; /* in the arena, or NULL */
};
WEFT_MUST_CHECK enum weft_rc weft_engine_describe(struct weft_engine *engine, const char *ns,
                                                  const struct weft_id *id, size_t count,
                                                  struct weft_arena *arena,
                                                  struct weft_execution *ret_item,
                                                  struct weft_err *err);

/* Where a list walks. */
enum weft_list_source {
    WEFT_LIST_BY_STATE, /* wherever the state of the filter is found */
    WEFT_LIST_LIVING,
    WEFT_LIST_ENDED,
};

struct weft_listing {
    struct weft_filter filter; /* ns is required here */
    enum weft_list_source source;
    uint32_t limit;
    const char *after;
};
WEFT_MUST_CHECK enum weft_rc
weft_engine_list(struct weft_engine *engine, const struct weft_listing *listing,
                 struct weft_arena *arena, struct weft_read_page *ret_page, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_attempts(struct weft_engine *engine, const char *ns,
                                                  const struct weft_id *id,
                                                  struct weft_arena *arena,
                                                  struct weft_attempts *ret_attempts,
                                                  struct weft_err *err);

enum weft_bytes_kind { WEFT_BYTES_RESULT, WEFT_BYTES_PAYLOAD };
/* Whose bytes. */
struct weft_bytes_of {
    enum weft_bytes_kind kind;
    const char *ns;
    struct weft_id id;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_bytes(struct weft_engine *engine,
                                               const struct weft_bytes_of *of,
                                               struct weft_arena *arena,
                                               struct weft_bytes *ret_bytes, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_counts(struct weft_engine *engine, const char *ns,
                                                const char *lane, struct weft_arena *arena,
                                                struct weft_counts *ret_counts,
                                                struct weft_err *err);

WEFT_MUST_CHECK enum weft_rc weft_engine_lane_put(struct weft_engine *engine, const char *ns,
                                                  const struct weft_lane *lane,
                                                  struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_lanes(struct weft_engine *engine, const char *ns,
                                               struct weft_arena *arena,
                                               struct weft_lanes *ret_lanes, struct weft_err *err);

/* One bounded pass; see engine/scan/. */
WEFT_MUST_CHECK enum weft_rc weft_engine_pass(struct weft_engine *engine, enum weft_pass pass,
                                              uint32_t batch, struct weft_pass_report *ret_report,
                                              struct weft_err *err);

/*
 * Checks what must always be true of the whole store. WEFT_CORRUPT tells the first problem.
 * Reads everything: for tests and for `weft doctor`.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_check(struct weft_engine *engine, struct weft_err *err);

#endif
