/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The same lifecycles without a server between: threads that submit, claim and complete through
 * weft.h on a store of this process, in a lane of their own. What the server is measured against.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "cmd/bench/bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RESULT_SIZE = 50, LEASE_MS = 15000, DRAIN_ROUNDS = 100000 };

struct crew {
    const struct weft_bench_plan *plan;
    struct weft *weft;
    const char *lane;
    struct weft_buf payload, result;
    weft_usec from_us, until_us; /* what is counted, CLOCK_BOOTTIME */
    atomic_ullong lifecycles;
    atomic_llong backlog;
};

struct hand {
    struct crew *crew;
    pthread_t thread;
    enum weft_rc rc;
    struct weft_err err;
    struct weft_spec *spec;           /* owned, as all below; array of plan->batch */
    struct weft_submitted *submitted; /* the answers to it */
    struct weft_complete *complete;
    struct weft_lease_answer *answer;
};

static void *get_array(size_t count, size_t size)
{
    void *array = calloc(count, size);
    if (!array)
        weft_oom(count * size);
    return array;
}

static enum weft_rc submit(struct hand *hand)
{
    struct crew *crew = hand->crew;
    uint32_t batch = crew->plan->batch;
    enum weft_rc rc = weft_submit(crew->weft, hand->spec, batch, hand->submitted, &hand->err);
    if (!rc && hand->submitted[0].err.rc) {
        hand->err = hand->submitted[0].err;
        rc = hand->err.rc;
    }
    if (!rc)
        atomic_fetch_add(&crew->backlog, batch);
    return rc;
}

static enum weft_rc work(struct hand *hand, size_t *ret_done)
{
    struct crew *crew = hand->crew;
    const char *const kind[] = {WEFT_BENCH_KIND};
    const struct weft_claim claim = {.worker = "weft-bench",
                                     .lanes = &crew->lane,
                                     .lane_count = 1,
                                     .kinds = kind,
                                     .kind_count = 1,
                                     .max = crew->plan->batch,
                                     .lease_ms = LEASE_MS};
    struct weft_claims got = {0};
    enum weft_rc rc = weft_claim(crew->weft, &claim, 1, &got, &hand->err);
    if (rc)
        return rc;
    size_t count = got.count;
    for (size_t i = 0; i < count; i++)
        hand->complete[i] = (struct weft_complete){.id = got.item[i].id,
                                                   .epoch = got.item[i].epoch,
                                                   .result = crew->result.data,
                                                   .result_size = crew->result.size};
    weft_claims_free(&got);
    atomic_fetch_sub(&crew->backlog, (long long)count);
    if (count > 0)
        rc = weft_complete(crew->weft, hand->complete, count, hand->answer, &hand->err);
    *ret_done = count;
    return rc;
}

static void *hand_main(void *context)
{
    struct hand *hand = context;
    struct crew *crew = hand->crew;
    long long most = (long long)crew->plan->batch * crew->plan->embedded_connections;
    while (!hand->rc && weft_boot_us() < crew->until_us && !weft_cli_interrupted()) {
        size_t done = 0;
        if (atomic_load(&crew->backlog) < most)
            hand->rc = submit(hand);
        if (!hand->rc)
            hand->rc = work(hand, &done);
        weft_usec now_us = weft_boot_us();
        if (now_us >= crew->from_us && now_us < crew->until_us)
            atomic_fetch_add(&crew->lifecycles, done);
    }
    return NULL;
}

static void make_hand(struct hand *hand, struct crew *crew)
{
    uint32_t batch = crew->plan->batch;
    *hand = (struct hand){.crew = crew,
                          .spec = get_array(batch, sizeof(*hand->spec)),
                          .submitted = get_array(batch, sizeof(*hand->submitted)),
                          .complete = get_array(batch, sizeof(*hand->complete)),
                          .answer = get_array(batch, sizeof(*hand->answer))};
    for (uint32_t i = 0; i < batch; i++)
        hand->spec[i] =
            (struct weft_spec){.lane = crew->lane,
                               .kind = WEFT_BENCH_KIND,
                               .payload = crew->payload.size ? crew->payload.data : NULL,
                               .payload_size = crew->payload.size};
}

static void free_hand(struct hand *hand)
{
    free(hand->spec);
    free(hand->submitted);
    free(hand->complete);
    free(hand->answer);
}

static enum weft_rc run_crew(struct crew *crew, struct weft_err *err)
{
    uint32_t hands = crew->plan->embedded_connections, started = 0;
    struct hand *hand = get_array(hands, sizeof(*hand));
    enum weft_rc rc = WEFT_OK;
    for (; started < hands && !rc; started++) {
        make_hand(&hand[started], crew);
        int failed = pthread_create(&hand[started].thread, NULL, hand_main, &hand[started]);
        if (failed) {
            rc = weft_fail(err, WEFT_UNAVAILABLE, "cannot start a thread: %s",
                           strerrordesc_np(failed));
            free_hand(&hand[started]);
            break;
        }
    }
    for (uint32_t i = 0; i < started; i++) {
        (void)pthread_join(hand[i].thread, NULL);
        if (hand[i].rc && !rc) {
            rc = hand[i].rc;
            *err = hand[i].err;
        }
    }
    size_t done = 1;
    for (int i = 0; i < DRAIN_ROUNDS && !rc && done > 0; i++) {
        done = 0;
        rc = work(&hand[0], &done);
        if (rc)
            *err = hand[0].err;
    }
    for (uint32_t i = 0; i < started; i++)
        free_hand(&hand[i]);
    free(hand);
    return rc;
}

enum weft_rc weft_bench_local(const struct weft_bench_plan *plan, double *ret_per_s,
                              struct weft_err *err)
{
    struct crew crew = {.plan = plan};
    const struct weft_options options = {
        .ns = plan->ns, .connections = plan->embedded_connections, .must_exist = true};
    enum weft_rc rc = weft_open(plan->store, &options, &crew.weft, err);
    if (rc)
        return rc;
    char lane[160];
    (void)snprintf(lane, sizeof(lane), "%.100s-embedded", plan->lane);
    crew.lane = lane;
    weft_buf_init(&crew.payload, plan->payload_size + 64);
    weft_buf_init(&crew.result, RESULT_SIZE + 64);
    if (plan->payload_size > 0)
        weft_bench_document(&crew.payload, plan->payload_size);
    weft_bench_document(&crew.result, RESULT_SIZE);
    crew.from_us = weft_boot_us() + plan->warmup_ms * WEFT_MS;
    crew.until_us = crew.from_us + plan->run_ms * WEFT_MS;
    rc = run_crew(&crew, err);
    if (!rc)
        *ret_per_s = (double)atomic_load(&crew.lifecycles) * 1000 / (double)plan->run_ms;
    weft_buf_done(&crew.payload);
    weft_buf_done(&crew.result);
    weft_close(crew.weft);
    return rc;
}
