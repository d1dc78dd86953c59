/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_BATCH_BATCH_H
#define WEFT_ENGINE_BATCH_BATCH_H

/*
 * Batches: each line of a file is a member of a flow, an execution of kind `http` that is named by
 * the custom_id of its line. So cancel, deadlines and the exact end are those of flows. A batch
 * adds the members in parts, where any process goes on after a crash (batch_write.c), its own
 * counts, which are final when the flow has ended, and its lines in the order of the file
 * (batch_read.c), retries of lines (batch_retry.c), and lines that keep up with its window
 * (batch_hurry.c, batch_escalate.c). Its id is that of its flow.
 */

#include "base/base.h"
#include "base/err.h"
#include "weft/batch.h"

struct weft_arena;
struct weft_engine;
struct weft_tx;

enum {
    WEFT_BATCH_METADATA_MAX = 16, /* pairs */
    WEFT_BATCH_METADATA_KEY_MAX = 64,
    WEFT_BATCH_METADATA_VALUE_MAX = 512,
    WEFT_BATCH_WINDOW_MAX_S = 30 * 86400,
    WEFT_BATCH_MODELS_MAX = 100, /* that are counted apart */
};

/* Stored: never renumber. */
enum weft_batch_phase {
    WEFT_BATCH_WRITING = 0,
    WEFT_BATCH_RUNNING = 1, /* its flow is open, or has just ended */
    WEFT_BATCH_ENDED = 2,
    WEFT_BATCH_FAILED = 3, /* its file cannot be used */
};

struct weft_batch_new {
    const char *ns;
    struct weft_id file;
    const char *endpoint; /* "/v1/chat/completions": the url of each line */
    const char *window;   /* "24h": a number and s, m, h or d */
    const char *metadata; /* a checked JSON object; NULL: none */
    const char *key;      /* the same key gives the same batch; NULL: none */
};

struct weft_batch {
    struct weft_id id, file;
    const char *endpoint, *window, *metadata, *flaws;
    enum weft_batch_phase phase;
    enum weft_batch_status status;
    const char *ns;
    int32_t ns_id;
    bool flow_there; /* it is not being removed, nor gone */
    bool flow_open, flow_cancelled;
    weft_usec flow_finished_us;
    uint64_t requests;   /* members */
    uint64_t at, line;   /* while it is written: how far */
    struct weft_id last; /* zeros: no member yet */
    weft_usec created_us, expires_us, opened_us, finished_us, cancelling_us, retried_us;
    weft_usec retry_us;      /* lines that ended badly until then are brought back; 0: none is */
    struct weft_id retry_to; /* zeros: it has not begun */
    weft_usec looked_us, look_at_us;                /* by weft_batch_hurry() */
    uint64_t succeeded, failed, expired, cancelled; /* members that ended so */
    uint64_t running;                               /* of a batch that has not ended */
};

/* The file is looked at later: mistakes in it fail the batch, not this call. */
WEFT_MUST_CHECK enum weft_rc weft_engine_batch_create(struct weft_engine *engine,
                                                      const struct weft_batch_new *args,
                                                      struct weft_id *ret_id, struct weft_err *err);
/* With its counts. ns NULL: of any namespace. */
WEFT_MUST_CHECK enum weft_rc weft_engine_batch(struct weft_engine *engine, const char *ns,
                                               const struct weft_id *id, struct weft_arena *arena,
                                               struct weft_batch *ret_batch, struct weft_err *err);
struct weft_batches_asking {
    const char *ns;
    struct weft_id after;
    bool has_after;
    uint32_t limit; /* batches that are looked at */
    bool by_status;
    enum weft_batch_status status; /* with by_status: only these */
};
struct weft_batch_list {
    struct weft_batch *item;
    size_t count;
    struct weft_id last; /* that was looked at */
    bool more;
};
WEFT_MUST_CHECK enum weft_rc weft_engine_batches(struct weft_engine *engine,
                                                 const struct weft_batches_asking *asking,
                                                 struct weft_arena *arena,
                                                 struct weft_batch_list *ret_list,
                                                 struct weft_err *err);
/*
 * Calls in flight finish and count. A batch that is being written is cancelled when all of it is.
 * WEFT_NOT_LIVE: it has ended otherwise. The members are cancelled by weft_engine_flow_drain().
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_batch_cancel(struct weft_engine *engine, const char *ns,
                                                      const struct weft_id *id,
                                                      struct weft_err *err);

/*
 * Does the next piece of work that a batch has: writes a part of its members, opens its flow,
 * cancels it, brings lines back that are retried, hurries lines, or makes its counts final. Any
 * process may do so at the same time. *ret_more: there is more to do at once.
 */
WEFT_MUST_CHECK enum weft_rc weft_engine_batch_step(struct weft_engine *engine,
                                                    const struct weft_id *id, bool *ret_more,
                                                    struct weft_err *err);

/* ---- Lines ----------------------------------------------------------------------------------- */

/* A member that has ended. */
struct weft_batch_answer {
    struct weft_id id;
    const char *custom_id;
    enum weft_state state;
    const void *result; /* of those that succeeded, where good ones were asked for */
    size_t result_size;
    const char *error_class, *error_message; /* of those that failed */
    const char *detail; /* what was answered to a call that failed, as a result has it; or NULL */
};
struct weft_batch_page {
    struct weft_id after; /* zeros: from the beginning; moves on */
    bool good;            /* those that succeeded; else those that ended otherwise */
    uint32_t members;     /* at most so many are looked at */
    struct weft_batch_answer *item;
    size_t count;
    size_t looked; /* members; fewer than `members`: these were the last */
};
/* The next lines in the order of the file. Members that live are passed over. */
WEFT_MUST_CHECK enum weft_rc weft_engine_batch_answers(struct weft_engine *engine,
                                                       const struct weft_id *id,
                                                       struct weft_batch_page *page,
                                                       struct weft_arena *arena,
                                                       struct weft_err *err);

/* ---- For the files of this folder ------------------------------------------------------------ */

WEFT_MUST_CHECK enum weft_rc weft_batch_load(struct weft_engine *engine, int32_t ns,
                                             const struct weft_id *id, struct weft_arena *arena,
                                             struct weft_batch *ret_batch, struct weft_err *err);
/* The same in a transaction. */
WEFT_MUST_CHECK enum weft_rc weft_batch_load_in(struct weft_tx *tx, const struct weft_id *id,
                                                struct weft_batch *ret_batch, struct weft_err *err);
/* Reads the next part of the file and writes its members. */
WEFT_MUST_CHECK enum weft_rc weft_batch_write(struct weft_engine *engine,
                                              const struct weft_batch *batch, struct weft_err *err);
/* Makes the counts final, if the flow has ended. */
WEFT_MUST_CHECK enum weft_rc
weft_batch_freeze(struct weft_engine *engine, const struct weft_batch *batch, struct weft_err *err);
/* "24h" in seconds; 0: it is no window. */
int64_t weft_batch_window(const char *text);
/* The flow of a batch that was deleted, with the first of its members; no error if there is none.
 */
WEFT_MUST_CHECK enum weft_rc weft_batch_delete_flow(struct weft_engine *engine, const char *ns,
                                                    const struct weft_id *id, struct weft_err *err);
/*
 * If a look is due: puts lines that wait before others, if the window asks for that, and moves
 * lines to another model late in it (core/batch_pace.h). *ret_more: there are more lines to move.
 */
WEFT_MUST_CHECK enum weft_rc weft_batch_hurry(struct weft_engine *engine,
                                              const struct weft_batch *batch, bool *ret_more,
                                              struct weft_err *err);
/* Moves the next lines of models that name another one for that; *ret_more: there are more. */
WEFT_MUST_CHECK enum weft_rc weft_batch_escalate(struct weft_engine *engine,
                                                 const struct weft_batch *batch, bool *ret_more,
                                                 struct weft_err *err);
/* Brings back the next lines of a retry that is under way; *ret_more: it has not come to the end.
 */
WEFT_MUST_CHECK enum weft_rc weft_batch_bring_back(struct weft_engine *engine,
                                                   const struct weft_batch *batch, bool *ret_more,
                                                   struct weft_err *err);

#endif
