/* SPDX-License-Identifier: Apache-2.0 */

/* The example of CONTRIBUTING.md; tools/checkdocs compares the two. */

#include "conformance.h"

CASE(example_lost_lease_is_fenced)
{
    struct weft_id id = submit_job(f);
    struct weft_claimed lease = claim_one(f, f->a);
    forward_ms(f, 30000); /* the lease runs out: time is a variable, no test sleeps */
    (void)run_pass(f, f->b, WEFT_SCANNER_LEASE_EXPIRY);
    is_int(state_of(f, &id), WEFT_STATE_READY, "execution with a lost lease is ready");
    is_int(complete(f, f->a, &lease, "1").err.rc, WEFT_FENCED, "complete by the old holder fails");
    is_int(claim_one(f, f->b).epoch, lease.epoch + 1, "the next claim gets the next epoch");
}
