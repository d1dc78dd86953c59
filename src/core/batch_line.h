/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_BATCH_LINE_H
#define WEFT_CORE_BATCH_LINE_H

/*
 * The lines of a batch's input: {"custom_id","method":"POST","url","body":{"model",...}} on each.
 * One line is read on its own; a check reads a whole file as it arrives, whichever way its bytes
 * are split, with the memory of one line and of a hash for each custom_id. Pure.
 */

#include "base/buf.h"
#include "base/json.h"

enum {
    WEFT_BATCH_LINE_MAX = (1 << 20) - 2048, /* bytes: a payload is a little more than its line */
    WEFT_BATCH_CUSTOM_ID_MAX = 512,         /* bytes */
    WEFT_BATCH_URL_MAX = 256,
    WEFT_BATCH_MODEL_MAX = 128,
    WEFT_BATCH_ERRORS_MAX = 100, /* of one file that are kept; more are counted */
};

struct weft_batch_line {
    const char *custom_id, *url, *model; /* in the arena */
    struct weft_json body;               /* borrowed from the text */
};

/* What is wrong with a line. All are static but the message. */
struct weft_batch_flaw {
    const char *code;  /* "invalid_json_line" */
    const char *param; /* the field that is to blame, or NULL */
    char message[256];
};

/* The line has nothing but white space. */
bool weft_batch_line_blank(const char *text, size_t size);
/* False: *ret_flaw says what is wrong. */
WEFT_MUST_CHECK bool weft_batch_line_read(const char *text, size_t size, struct weft_arena *arena,
                                          struct weft_batch_line *ret_line,
                                          struct weft_batch_flaw *ret_flaw);

/* Requests for a batch are the same if these texts are. */
void weft_batch_fingerprint(const char *const *text, size_t count, uint8_t ret_fingerprint[32]);

/* A list of flaws as JSON, of the form that OpenAI gives them: {"code","message","param","line"}.
 */
struct weft_batch_flaws {
    struct weft_buf text; /* the elements, without the brackets */
    uint64_t count;       /* more than are listed, maybe */
};
void weft_batch_flaws_init(struct weft_batch_flaws *flaws);
void weft_batch_flaws_done(struct weft_batch_flaws *flaws); /* zeroed ones are fine */
/* line 0: of the file as a whole. */
void weft_batch_flaws_add(struct weft_batch_flaws *flaws, const struct weft_batch_flaw *flaw,
                          uint64_t line);

/* A file that is being checked. */
struct weft_batch_check {
    uint64_t requests_max;
    uint64_t lines, requests, bytes; /* so far; blank lines are lines and no requests */
    struct weft_batch_flaws flaws;
    struct weft_buf line; /* the one that has not ended; of one that is too long the beginning */
    struct weft_arena *arena;
    struct weft_batch_hash *seen; /* a table of hashes of custom_ids; room is a power of two */
    size_t room, used;
};

void weft_batch_check_init(struct weft_batch_check *check, uint64_t requests_max);
void weft_batch_check_done(struct weft_batch_check *check); /* a zeroed one is fine */
void weft_batch_check_add(struct weft_batch_check *check, const char *data, size_t size);
/* After the last byte: a last line needs no line end. */
void weft_batch_check_end(struct weft_batch_check *check);

#endif
