/* SPDX-License-Identifier: Apache-2.0 */

/* Messages about batches. */

#include "weft/weft.h"
#include "wire/rows.h"

const char *const weft_wire_batch_statuses[WEFT_BATCH_STATUS_CANCELLED + 1] = {
    [WEFT_BATCH_STATUS_VALIDATING] = "validating",   [WEFT_BATCH_STATUS_FAILED] = "failed",
    [WEFT_BATCH_STATUS_IN_PROGRESS] = "in_progress", [WEFT_BATCH_STATUS_FINALIZING] = "finalizing",
    [WEFT_BATCH_STATUS_COMPLETED] = "completed",     [WEFT_BATCH_STATUS_EXPIRED] = "expired",
    [WEFT_BATCH_STATUS_CANCELLING] = "cancelling",   [WEFT_BATCH_STATUS_CANCELLED] = "cancelled",
};

#define LINES                                                                                      \
    ROW("total", U64, total, "Lines"), ROW("succeeded", U64, succeeded, "Lines that succeeded"),   \
        ROW("failed", U64, failed, "Lines that failed"),                                           \
        ROW("expired", U64, expired, "Lines that were over with the window"),                      \
        ROW("cancelled", U64, cancelled, "Lines that were cancelled"),                             \
        ROW("running", U64, running, "Lines whose call is under way")

#define OF struct weft_batch_model

static const struct weft_wire_field batch_model[] = {
    ROW("model", TEXT, model, "What the lines name; null: all models beyond the first 100"),
    LINES,
    ROW("escalated_to", TEXT, escalated_to,
        "Lines that had not begun were moved to this model; null: none was"),
};
ANSWER(batch_model, "BatchModel", "The lines of a batch that name one model.");
#undef OF

#define OF     struct weft_batch_info
#define DETAIL .flags = WEFT_WIRE_WITH, .type = offsetof(OF, detailed)

static const struct weft_wire_field batch_info[] = {
    ROW("id", ID, id, "Its id, which is that of its flow too", REQUIRED),
    ROW("batch_id", TEXT, batch_id, "The same as OpenAI's clients know it", REQUIRED),
    ROW("status", WORD, status, "How far it is", WORDS(weft_wire_batch_statuses), REQUIRED),
    ROW("endpoint", TEXT, endpoint, "The url of its lines", REQUIRED),
    ROW("completion_window", TEXT, window, "How long its lines may take", REQUIRED),
    ROW("input_file_id", TEXT, input_file, "Where its lines are from", REQUIRED),
    ROW("output_file_id", TEXT, output_file,
        "Lines that succeeded; null: none, or it has not begun"),
    ROW("error_file_id", TEXT, error_file, "Lines that did not; null: none, or it has not begun"),
    ROW("metadata", ANY, metadata, "As it was given"),
    ROW("errors", ANY, errors, "Why the file cannot be used, as a list; null: nothing is wrong"),
    LINES,
    ROW("created_at", MOMENT, created_us, "When it was created"),
    ROW("started_at", MOMENT, started_us, "When its lines were ready; null: not yet"),
    ROW("expires_at", MOMENT, expires_us, "When its window ends"),
    ROW("cancelling_at", MOMENT, cancelling_us, "When a cancel was asked for; null: none was"),
    ROW("finished_at", MOMENT, finished_us, "When its last line ended; null: it has not ended"),
    ROW("retried_at", MOMENT, retried_us, "When it was last retried; null: never"),
    ROW("ended_last_minute", U64, ended_last_minute,
        "Lines that ended in the last minute; not in lists", DETAIL),
    ROW("estimated_end_at", MOMENT, estimated_end_us,
        "When it ends at the pace of the last minute; null: it cannot be told; not in lists",
        DETAIL),
    ROW("models", LIST, model, "By the model that lines name; not in lists", COUNT(model_count),
        .of = &weft_wire_batch_model, DETAIL),
};
ANSWER(batch_info, "Batch", "A batch, in weft's own words.");
#undef OF

#define OF struct weft_batch_spec

static const struct weft_wire_field batch_spec[] = {
    ROW("input_file_id", TEXT, input_file, "The file: `file-...`, or its id", REQUIRED),
    ROW("endpoint", TEXT, endpoint, "The url of its lines, like `/v1/chat/completions`", REQUIRED),
    ROW("completion_window", TEXT, window,
        "A time like `30m`, `24h` or `7d`, 30 days at most. Default: 24h"),
    ROW("metadata", RAW, metadata, "Up to 16 texts of up to 512 bytes under names of up to 64"),
    ROW("key", TEXT, key, "The same key with the same file gives the same batch"),
};
REQUEST(batch_spec, "BatchSpec", "What is to be made of a file.");
#undef OF

#define OF struct weft_batch_retried

static const struct weft_wire_field batch_retried[] = {
    ROW("retried", U64, retried, "Lines that had failed, expired or been cancelled", REQUIRED),
    ROW("more", BOOL, more, "They are still being brought back, which goes on by itself"),
    ROW("status", WORD, status, "Of the batch now", WORDS(weft_wire_batch_statuses), REQUIRED),
    ROW("expires_at", MOMENT, expires_us, "When its window ends now"),
};
ANSWER(batch_retried, "BatchRetried", "What a retry brought back.");
#undef OF

#define OF struct weft_batch_removed

static const struct weft_wire_field batch_removed[] = {
    ROW("id", ID, id, "The batch that was deleted", REQUIRED),
    ROW("status", WORD, status, "That it had", WORDS(weft_wire_batch_statuses), REQUIRED),
};
ANSWER(batch_removed, "BatchRemoved", "A batch that was deleted.");
#undef OF
