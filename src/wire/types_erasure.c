/* SPDX-License-Identifier: Apache-2.0 */

/* Messages about erasures. */

#include "weft/admin.h"
#include "wire/rows.h"

static const char *const states[] = {
    [WEFT_ERASURE_RUNNING] = "running",
    [WEFT_ERASURE_DONE] = "done",
};
static const char *const subjects[] = {
    [WEFT_ERASURE_TENANT] = "tenant",
    [WEFT_ERASURE_TAG] = "tag",
};

#define OF struct weft_erasure_spec

static const struct weft_wire_field erasure_spec[] = {
    ROW("tenant", TEXT, tenant, "Everything of this tenant"),
    ROW("tag", TEXT, tag, "Instead of a tenant: everything with this tag, written `key:value`"),
    ROW("reason", TEXT, reason,
        "Why; it stays in the receipt, so it must not name whom it is about", REQUIRED),
};
REQUEST(erasure_spec, "ErasureSpec", "What is to be erased.");
#undef OF

#define OF struct weft_erasure

static const struct weft_wire_field erasure[] = {
    ROW("id", ID, id, "Its id", REQUIRED),
    ROW("state", WORD, state, "running: it is still under way", WORDS(states), REQUIRED),
    ROW("of", WORD, of, "What the subject is", WORDS(subjects), REQUIRED),
    ROW("subject_hash", TEXT, subject_hash,
        "HMAC-SHA-256 of the subject under a secret that the store keeps with this receipt",
        REQUIRED),
    ROW("reason", TEXT, reason, "As it was asked", REQUIRED),
    ROW("by", TEXT, by, "The token that asked; null: without tokens"),
    ROW("asked_at", MOMENT, asked_us, "What was created later is not touched", REQUIRED),
    ROW("finished_at", MOMENT, finished_us, "When it was done; null: it is not"),
    ROW("counts", COUNTERS, counts, "Rows by what became of them, and by table",
        COUNT(count_count)),
    ROW("not_reached", TEXT, unreached, "What it could not reach; null: it is not done"),
    ROW("digest", TEXT, digest, "SHA-256 over the receipt; null: it is not done"),
    ROW("verified_at", MOMENT, verified_us, "When it was last verified; null: never"),
    ROW("remains", U64, remains, "Rows of the subject that the last verification found"),
};
ANSWER(erasure, "Erasure", "An erasure that is under way, or its receipt.");
#undef OF
