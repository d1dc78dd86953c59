/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ERASE_ERASE_H
#define WEFT_ENGINE_ERASE_ERASE_H

/*
 * Erasure: everything of a tenant, or with a tag, that was created before the request.
 *
 * The request is a row with the subject, the moment and a place: the order. The scanner `erasure`
 * walks over all executions by their ids, a step at a time, on whichever replica is there first,
 * and needs no index of its own. A step
 *
 *   1. reads the next executions and finds the subject's (erase_walk),
 *   2. deletes flows of which every member is the subject's; the scanner `purge` removes these,
 *   3. cancels those that live,
 *   4. in one transaction, under the lock of the order: removes the ended ones with all that
 *      mentions them, scrubs members of flows that others share (the graph stays whole, what the
 *      member carried goes), counts, and writes down how far the walk has come.
 *
 * Batches are walked with executions, by their ids, in the same windows (erase_batches.c). A batch
 * is the subject's by its metadata. It is deleted with its flow in step 2, and in step 4, once
 * `purge` has removed the flow, it goes with its file, unless a batch of others reads that file
 * too.
 *
 * Before each walk go the submissions by SQL that were not taken in yet (erase_name.c). And a walk
 * that may be the last one begins when no submission from before the request is open (erase.c).
 *
 * What a step could not take (locked by others, a lease that is still to be settled, a flow that
 * `purge` has not removed yet) the next walk finds; erasure is over after a walk that has found
 * nothing, so each walk is also the proof of the one before.
 *
 * The name of a tenant is a row that queues refer to, and processes keep its id for a while. When a
 * walk has found nothing and nothing was submitted after the request, the name and its queues are
 * retired (names/unused.h): a submission for the tenant looks the name up again, and thereby
 * takes it back. WEFT_ERASE_NAME_US later, and after one more walk, the row gets another text,
 * unless the name was taken back. Its id goes on to be right where it is still in a cache.
 *
 * At last the subject is removed from the order, the store lets go of old bytes (driver->forget),
 * and the row is the receipt: a hash of the subject under a secret of that row, by which
 * verification knows the subject again without being told.
 */

#include "store/store.h"
#include "weft/admin.h"

struct weft_engine;
struct weft_tx;

#define WEFT_ERASE_NAME_US (5 * WEFT_SECOND)
#define WEFT_ERASE_REASON  "erased"        /* of cancels */
#define WEFT_ERASE_WAIT_US (500 * WEFT_MS) /* before a walk for what the last one left */

enum weft_erasure_phase {
    WEFT_ERASURE_WALKS = 0,
    WEFT_ERASURE_RETIRES = 1, /* its name is retired; then one more walk */
    WEFT_ERASURE_SCOURS = 2,  /* the subject is gone from the order */
    WEFT_ERASURE_OVER = 3,
};

/* Which one, or a page of them. */
struct weft_erasure_asking {
    struct weft_id id;
    const char *ns;
    uint32_t limit;
    const char *after; /* the id of the last one; NULL: the newest come first */
};

/* token: of the caller, 0 without one. */
WEFT_MUST_CHECK enum weft_rc weft_engine_erase(struct weft_engine *engine, const char *ns,
                                               const struct weft_erasure_spec *spec, int32_t token,
                                               struct weft_arena *arena,
                                               struct weft_erasure *ret_erasure,
                                               struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_erasure(struct weft_engine *engine,
                                                 const struct weft_erasure_asking *asking,
                                                 struct weft_arena *arena,
                                                 struct weft_erasure *ret_erasure,
                                                 struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_engine_erasures(struct weft_engine *engine,
                                                  const struct weft_erasure_asking *asking,
                                                  struct weft_arena *arena,
                                                  struct weft_erasures *ret_erasures,
                                                  struct weft_err *err);
/* Looks for the subject again, and writes into the receipt what that found. */
WEFT_MUST_CHECK enum weft_rc weft_engine_erasure_verify(struct weft_engine *engine,
                                                        const struct weft_erasure_asking *asking,
                                                        struct weft_arena *arena,
                                                        struct weft_erasure *ret_erasure,
                                                        struct weft_err *err);

/* ---- The steps ------------------------------------------------------------------------------- */

/* What is counted, in the order of weft_erase_counted. */
enum weft_erase_count {
    WEFT_ERASE_CANCELLED, /* executions, before they were removed or scrubbed */
    WEFT_ERASE_REMOVED,   /* executions */
    WEFT_ERASE_SCRUBBED,  /* executions, in flows that others share */
    WEFT_ERASE_FLOWS,     /* deleted whole */
    WEFT_ERASE_KEYS,
#define SIDE(table, TABLE, bit) WEFT_ERASE_##TABLE, /* rows of this table */
#include "core/tables.def"
    WEFT_ERASE_LEDGER,
    WEFT_ERASE_BATCHES,
    WEFT_ERASE_FILES,
    WEFT_ERASE_CHUNKS,
    WEFT_ERASE_SHARED_FILES, /* that batches of others read: they stay */
    WEFT_ERASE_INBOX,
    WEFT_ERASE_NOTES, /* of submissions by SQL that were refused */
    WEFT_ERASE_BUDGETS,
    WEFT_ERASE_LANES,
    WEFT_ERASE_NAMES,
    WEFT_ERASE_COUNTS
};
extern const char *const weft_erase_counted[WEFT_ERASE_COUNTS];

/* An order in hand. */
struct weft_erase {
    struct weft_engine *engine;
    struct weft_arena *arena;
    struct weft_erasure_read_out row;
    const char *ns;
    const char *tag; /* as it stands in the text of tags; NULL: the subject is a tenant */
    int32_t tenant;  /* -1: there is no such name, and nothing is to be found */
    uint64_t count[WEFT_ERASE_COUNTS];
    weft_usec wait_us; /* the next step comes after this; 0: at once */
    bool locked;       /* another replica made a step meanwhile: this one did nothing */
};

/* Texts stay in the arena. */
WEFT_MUST_CHECK enum weft_rc weft_erase_begin(struct weft_erase *erase,
                                              const struct weft_erasure_read_out *row,
                                              struct weft_err *err);
/* One step, whatever is next; *ret_over: there is nothing left to do. */
WEFT_MUST_CHECK enum weft_rc weft_erase_step(struct weft_erase *erase, bool *ret_over,
                                             struct weft_err *err);
/* The next part of the walk. *ret_end: it has come to the end. */
WEFT_MUST_CHECK enum weft_rc weft_erase_walk(struct weft_erase *erase, bool *ret_end,
                                             struct weft_err *err);
/* Settings that name the tenant. */
WEFT_MUST_CHECK enum weft_rc weft_erase_settings(struct weft_erase *erase, struct weft_err *err);
/* Submissions by SQL that were not taken in yet; before the walk, which finds those that are. */
WEFT_MUST_CHECK enum weft_rc weft_erase_inbox(struct weft_erase *erase, struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc weft_erase_retire_name(struct weft_erase *erase, struct weft_err *err);
/* Unless it is wanted again. */
WEFT_MUST_CHECK enum weft_rc weft_erase_rename(struct weft_erase *erase, bool *ret_renamed,
                                               struct weft_err *err);

/* ---- Batches (erase_batches.c) --------------------------------------------------------------- */

struct weft_erase_batches_out;

/* Batches of a window of the walk. */
struct weft_erase_batches {
    const struct weft_erase_batches_out *row;
    size_t count;
    bool full; /* there may be more behind the last one */
};
WEFT_MUST_CHECK enum weft_rc weft_erase_batches_look(struct weft_erase *erase,
                                                     struct weft_erase_batches *ret_batches,
                                                     struct weft_err *err);
/*
 * In the transaction of the step: removes the files of the subject's, and marks these as deleted.
 * *ret_more: a file has more chunks than one transaction removes, so the walk stays where it is.
 */
WEFT_MUST_CHECK enum weft_rc weft_erase_batches_remove(struct weft_tx *tx, struct weft_erase *erase,
                                                       const struct weft_erase_batches *batches,
                                                       bool *ret_more, struct weft_err *err);
/* Behind that transaction: deletes the flows of those that it has marked. */
WEFT_MUST_CHECK enum weft_rc weft_erase_batches_delete(struct weft_erase *erase,
                                                       const struct weft_erase_batches *batches,
                                                       struct weft_err *err);
/* Hides a flow and cancels what lives of it; the scanners do the rest. */
WEFT_MUST_CHECK enum weft_rc weft_erase_flow(struct weft_erase *erase, const struct weft_id *flow,
                                             struct weft_err *err);

/* Called for the pairs of a JSON object of texts; true: this is the one. */
typedef bool weft_erase_pair_fn(void *context, const char *key, const char *value);
/* Whether one of the pairs is the one. What is no JSON object has none. */
bool weft_erase_pairs(const char *json, struct weft_arena *arena, weft_erase_pair_fn *is,
                      void *context);
/* The pair of the metadata of a batch that names a tenant. */
#define WEFT_ERASE_TENANT_PAIR "tenant"

/* ---- Shared by the files of this folder ------------------------------------------------------ */

/* The row of an order. */
WEFT_MUST_CHECK enum weft_rc weft_erasure_find(struct weft_engine *engine,
                                               const struct weft_erasure_asking *asking,
                                               struct weft_arena *arena,
                                               const struct weft_erasure_read_out **ret_row,
                                               struct weft_err *err);
/* The text that stands for a tenant from now on: names are unique, and so are orders. */
const char *weft_erase_instead(const struct weft_id *order, struct weft_arena *arena);
/* The first id of the millisecond of the request: what is in the inbox under a lower one was
 * written before it. */
struct weft_id weft_erase_horizon(weft_usec asked_us);
/* The arguments of erasure_note, as things stand. */
void weft_erase_note(const struct weft_erase *erase, struct weft_call *ret_call,
                     struct weft_arena *arena);
/* Stores where the order stands, with its counts. */
WEFT_MUST_CHECK enum weft_rc weft_erase_store(struct weft_erase *erase, struct weft_err *err);
const char *weft_erase_counts_text(const struct weft_erase *erase, struct weft_arena *arena);

#endif
