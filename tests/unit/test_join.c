/* SPDX-License-Identifier: Apache-2.0 */

/* Joins against a brute force that asks what every possible future would bring. */

#include "core/graph.h"
#include "tap.h"

enum { UPSTREAMS_MAX = 7 };

static bool enough(const struct weft_join_state *join, uint32_t succeeded)
{
    if (join->join == WEFT_JOIN_ALL)
        return succeeded == join->total;
    return succeeded >= (join->join == WEFT_JOIN_ANY ? 1 : join->k);
}

/*
 * Satisfied when every way the others may end is enough, impossible when no way is, pending when
 * it depends on them.
 */
static enum weft_verdict_of_join brute_force(const struct weft_join_state *join)
{
    uint32_t left = join->total - join->succeeded - join->failed;
    bool always = true, ever = false;
    for (uint32_t more = 0; more <= left; more++) {
        bool is_enough = enough(join, join->succeeded + more);
        always &= is_enough;
        ever |= is_enough;
    }
    if (always)
        return WEFT_JOIN_SATISFIED;
    return ever ? WEFT_JOIN_PENDING : WEFT_JOIN_IMPOSSIBLE;
}

/* How many of the joins of so many upstreams are judged wrong in this state, for every k. */
static size_t judged_wrong(uint32_t total, uint32_t succeeded, uint32_t failed)
{
    size_t wrong = 0;
    for (uint32_t k = 0; k <= total + 1; k++) {
        enum weft_join kind = k == 0 ? WEFT_JOIN_ALL : WEFT_JOIN_QUORUM;
        struct weft_join_state join = {.join = k == total + 1 ? WEFT_JOIN_ANY : kind,
                                       .k = k <= total ? k : 0,
                                       .total = total,
                                       .succeeded = succeeded,
                                       .failed = failed};
        wrong += weft_join_judge(&join) != brute_force(&join);
    }
    return wrong;
}

/* Every join of up to so many upstreams, in every state it can be in. */
static void test_all_small_joins(void)
{
    size_t tried = 0, wrong = 0;
    for (uint32_t total = 1; total <= UPSTREAMS_MAX; total++)
        for (uint32_t succeeded = 0; succeeded <= total; succeeded++)
            for (uint32_t failed = 0; succeeded + failed <= total; failed++) {
                tried += total + 2;
                wrong += judged_wrong(total, succeeded, failed);
            }
    ok(tried > 800, "%zu joins were judged", tried);
    is_int(wrong, 0, "each as the brute force does");
}

/* The last verdict over upstreams that end as the bits say, in one order or the other. */
static enum weft_verdict_of_join verdict_of(uint32_t k, uint32_t ends, bool backwards,
                                            size_t *changed)
{
    struct weft_join_state join = {.join = WEFT_JOIN_QUORUM, .k = k, .total = UPSTREAMS_MAX};
    enum weft_verdict_of_join verdict = WEFT_JOIN_PENDING;
    for (uint32_t i = 0; i < UPSTREAMS_MAX; i++) {
        uint32_t bit = backwards ? UPSTREAMS_MAX - 1 - i : i;
        if (ends & (1u << bit))
            join.succeeded++;
        else
            join.failed++;
        enum weft_verdict_of_join next = weft_join_judge(&join);
        *changed += verdict != WEFT_JOIN_PENDING && next != verdict;
        verdict = next;
    }
    return verdict;
}

/* The verdict is the same in whatever order upstreams end, and once given it stays. */
static void test_order_does_not_matter(void)
{
    size_t changed = 0, differs = 0;
    for (uint32_t k = 1; k <= UPSTREAMS_MAX; k++)
        for (uint32_t ends = 0; ends < 1u << UPSTREAMS_MAX; ends++) {
            enum weft_verdict_of_join one = verdict_of(k, ends, false, &changed);
            differs += one != verdict_of(k, ends, true, &changed) || one == WEFT_JOIN_PENDING;
        }
    is_int(changed, 0, "a verdict stays");
    is_int(differs, 0, "the verdict does not depend on the order");
}

static void test_edges(void)
{
    struct weft_join_state root = {.join = WEFT_JOIN_ANY};
    is_int(weft_join_judge(&root), WEFT_JOIN_SATISFIED, "a join of nothing is satisfied");
    is_int(weft_edge_of(WEFT_STATE_SUCCEEDED), WEFT_EDGE_SUCCEEDED, "succeeded");
    for (int state = 0; state < WEFT_STATE_COUNT; state++) {
        enum weft_edge_state edge = weft_edge_of((enum weft_state)state);
        if (weft_state_living((enum weft_state)state))
            is_int(edge, WEFT_EDGE_PENDING, "%s: pending", weft_state_name((enum weft_state)state));
        else if (state != WEFT_STATE_SUCCEEDED)
            is_int(edge, WEFT_EDGE_FAILED, "%s: failed", weft_state_name((enum weft_state)state));
    }
    is_int(weft_flow_judge(false, false), WEFT_FLOW_SUCCEEDED, "every sink succeeded");
    is_int(weft_flow_judge(false, true), WEFT_FLOW_FAILED, "one did not");
    is_int(weft_flow_judge(true, false), WEFT_FLOW_CANCELLED, "cancelled before");
}

int main(void)
{
    test_all_small_joins();
    test_order_does_not_matter();
    test_edges();
    return tap_done();
}
