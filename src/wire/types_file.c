/* SPDX-License-Identifier: Apache-2.0 */

/* Files, and where the lines of batches go. */

#include "weft/file.h"
#include "wire/rows.h"

#define OF struct weft_file_info

static const struct weft_wire_field file[] = {
    ROW("id", ID, id, "Its id; of the output and the errors of a batch that of the batch",
        REQUIRED),
    ROW("file_id", TEXT, file_id, "The name that OpenAI's API has for it", REQUIRED),
    ROW("filename", TEXT, filename, "As it was uploaded", REQUIRED),
    ROW("purpose", TEXT, purpose, "batch: the input of batches; batch_output: of a batch",
        REQUIRED),
    ROW("bytes", U64, bytes,
        "Its size; 0 for the files of a batch, whose size is not known before"),
    ROW("requests", U64, requests, "Its lines that are not blank"),
    ROW("error_count", U64, error_count, "Lines that have mistakes"),
    ROW("errors", ANY, errors,
        "The first 100 of them: `code`, `message`, `param` and `line`; null: there are none"),
    ROW("created_at", MOMENT, created_us, "When the upload began"),
    ROW("expires_at", MOMENT, expires_us, "When it is removed; null: never"),
};
ANSWER(file, "File", "A file of lines.");
#undef OF

#define OF struct weft_model

static const struct weft_wire_field model[] = {
    ROW("model", TEXT, name, "Its name, or * for every other; in a request the path says it"),
    ROW("endpoint", TEXT, endpoint, "The endpoint that its calls go to", REQUIRED),
    ROW("lane", TEXT, lane, "The lane of its calls. Default: named as the model, or models for *"),
    ROW("max_running", I32, max_running,
        "How many of its calls run at once, which is a setting of the lane; 0: no limit",
        .max = INT32_MAX),
    ROW("escalate_to", TEXT, escalate_to,
        "Lines that wait late in the window of their batch go to that model; null: to none"),
};
MESSAGE_TYPE(model, "Model", "Where the calls of a model go.", .answer = true, .request = true);
#undef OF
