/* SPDX-License-Identifier: Apache-2.0 */

/* The life of an execution: from submission to its outcome and back. */

#include "conformance.h"

CASE(lifecycle_submit_claim_complete)
{
    struct weft_id id = submit_ok(
        f, &(struct weft_spec){.kind = "resize", .payload = "{\"w\":1}", .payload_size = 7});
    is_int(state_of(f, &id), WEFT_STATE_READY, "ready after submit");
    struct weft_claimed lease = claim_one(f, f->b);
    ok(weft_id_cmp(&lease.id, &id) == 0, "another process claims it");
    is_str(lease.kind, "resize", "with its kind");
    ok(lease.payload_size == 7 && memcmp(lease.payload, "{\"w\":1}", 7) == 0, "and its payload");
    is_int(lease.epoch, 1, "the first epoch is 1");
    is_int(lease.attempt, 1, "the first attempt is 1");
    is_int(claim(f, f->a, 10).count, 0, "nobody else gets it");
    struct weft_lease_answer answer = complete(f, f->b, &lease, "{\"ok\":true}");
    is_int(answer.err.rc, WEFT_OK, "complete");
    is_int(answer.state, WEFT_STATE_SUCCEEDED, "succeeded");
    struct weft_execution end = describe(f, &id);
    is_int(end.state, WEFT_STATE_SUCCEEDED, "it reads as succeeded");
    is_str(end.worker, "worker-b", "by the worker that had it");
    is_int(end.finished_us, f->now_us, "at the store's time");
}
