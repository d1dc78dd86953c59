/* SPDX-License-Identifier: Apache-2.0 */

/* The fence that a late write gets: all states of a lease against all operations. */

#include "core/fence.h"
#include "tap.h"

enum { MINE = 3 }; /* the epoch that asks */

/* The fence by how the lease ended; a lost one depends on whether another worker has claimed it. */
static enum weft_fence wanted_fence(enum weft_ended ended, bool newer)
{
    static const struct {
        enum weft_ended ended;
        enum weft_fence same, newer;
    } row[] = {
        {WEFT_ENDED_NONE, WEFT_FENCE_UNKNOWN, WEFT_FENCE_RECLAIMED},
        {WEFT_ENDED_COMPLETED, WEFT_FENCE_FINISHED, WEFT_FENCE_FINISHED},
        {WEFT_ENDED_FAILED, WEFT_FENCE_FINISHED, WEFT_FENCE_FINISHED},
        {WEFT_ENDED_TIMED_OUT, WEFT_FENCE_TIMED_OUT, WEFT_FENCE_TIMED_OUT},
        {WEFT_ENDED_LOST, WEFT_FENCE_LOST, WEFT_FENCE_RECLAIMED},
        {WEFT_ENDED_RELEASED, WEFT_FENCE_RELEASED, WEFT_FENCE_RELEASED},
        {WEFT_ENDED_DELAYED, WEFT_FENCE_RELEASED, WEFT_FENCE_RELEASED},
        {WEFT_ENDED_REVOKED, WEFT_FENCE_REVOKED, WEFT_FENCE_REVOKED},
        {WEFT_ENDED_CANCELLED, WEFT_FENCE_CANCELLED, WEFT_FENCE_CANCELLED},
        {WEFT_ENDED_EXPIRED, WEFT_FENCE_EXPIRED, WEFT_FENCE_EXPIRED},
        {WEFT_ENDED_SUSPENDED, WEFT_FENCE_SUSPENDED, WEFT_FENCE_SUSPENDED},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        if (row[i].ended == ended)
            return newer ? row[i].newer : row[i].same;
    return WEFT_FENCE_NONE;
}

static void check_fate(const struct weft_lease_facts *facts, enum weft_ended asked)
{
    struct weft_fate fate = weft_lease_fate(facts, MINE, asked);
    char name[128];
    (void)snprintf(name, sizeof(name), "%s, epoch %d now, ended %s, asked %s",
                   weft_state_name(facts->state), facts->epoch, weft_ended_name(facts->ended),
                   weft_ended_name(asked));
    if (asked != WEFT_ENDED_NONE && facts->ended == asked) {
        ok(fate.rc == WEFT_OK && fate.fence == WEFT_FENCE_NONE && fate.state == facts->answer &&
               fate.run_at_us == facts->run_at_us,
           "%s: the same answer again", name);
        return;
    }
    ok(fate.rc == WEFT_FENCED && fate.state == facts->state && fate.run_at_us == 0,
       "%s: fenced, with the state of now", name);
    is_str(weft_fence_name(fate.fence),
           weft_fence_name(wanted_fence(facts->ended, facts->epoch > MINE)), "%s: why", name);
}

static void test_square(void)
{
    static const enum weft_ended asked[] = {WEFT_ENDED_NONE, WEFT_ENDED_COMPLETED,
                                            WEFT_ENDED_FAILED, WEFT_ENDED_DELAYED,
                                            WEFT_ENDED_RELEASED};
    static const enum weft_state state[] = {WEFT_STATE_READY, WEFT_STATE_DELAYED,
                                            WEFT_STATE_RUNNING, WEFT_STATE_SUCCEEDED,
                                            WEFT_STATE_CANCELLED};
    for (int ended = 0; ended <= WEFT_ENDED_EXPIRED; ended++)
        for (size_t s = 0; s < WEFT_LEN(state); s++)
            for (int epoch = MINE; epoch <= MINE + 1; epoch++)
                for (size_t a = 0; a < WEFT_LEN(asked); a++) {
                    const struct weft_lease_facts facts = {
                        .state = state[s],
                        .epoch = epoch,
                        .ended = (enum weft_ended)ended,
                        .answer = WEFT_STATE_DELAYED,
                        .run_at_us = 4711,
                    };
                    check_fate(&facts, asked[a]);
                }
}

static void test_edges(void)
{
    struct weft_lease_facts facts = {0};
    is_int(weft_lease_fate(&facts, MINE, WEFT_ENDED_COMPLETED).rc, WEFT_NOT_FOUND,
           "there is no such execution");
    facts = (struct weft_lease_facts){.state = WEFT_STATE_READY, .epoch = 2};
    struct weft_fate fate = weft_lease_fate(&facts, MINE, WEFT_ENDED_NONE);
    ok(fate.rc == WEFT_FENCED && fate.fence == WEFT_FENCE_UNKNOWN,
       "an epoch from the future was never given");
    fate = weft_lease_fate(&facts, 0, WEFT_ENDED_NONE);
    ok(fate.rc == WEFT_FENCED && fate.fence == WEFT_FENCE_UNKNOWN, "epoch 0 was never given");
    fate = weft_lease_fate(&facts, 1, WEFT_ENDED_NONE);
    ok(fate.rc == WEFT_FENCED && fate.fence == WEFT_FENCE_RECLAIMED,
       "an old epoch without a record was reclaimed");
    facts.ended = WEFT_ENDED_REFUSED;
    facts.epoch = 0;
    fate = weft_lease_fate(&facts, 1, WEFT_ENDED_COMPLETED);
    ok(fate.rc == WEFT_FENCED && fate.fence == WEFT_FENCE_UNKNOWN,
       "a refused submission never had a lease");
}

static void test_words(void)
{
    for (int fence = 0; fence <= WEFT_FENCE_UNKNOWN; fence++)
        for (int other = 0; other < fence; other++)
            if (strcmp(weft_fence_name((enum weft_fence)fence),
                       weft_fence_name((enum weft_fence)other)) == 0)
                ok(false, "two fences are called %s", weft_fence_name((enum weft_fence)fence));
    is_str(weft_fence_name(WEFT_FENCE_TIMED_OUT), "timed_out", "fences have words");
    is_str(weft_fence_name((enum weft_fence)99), "none", "a fence out of range has the word none");
}

int main(void)
{
    test_square();
    test_edges();
    test_words();
    return tap_done();
}
