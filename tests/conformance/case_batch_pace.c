/* SPDX-License-Identifier: Apache-2.0 */

/* Batches that keep up with their windows: lines that go first, lines that go to another model. */

#include "batches.h"
#include "conformance.h"

#include "base/arena.h"
#include "core/batch_pace.h"
#include "engine/batch/batch_view.h"
#include "engine/batch/models.h"
#include "engine/tx/tx.h"
#include "weft/weft.h"

#include <stdio.h>
#include <string.h>

/* All lines of a lane that can be claimed now, up to `most`. */
static struct weft_claim_result claim_of(struct fixture *f, const char *lane, uint32_t most)
{
    const struct weft_claim ask = {.worker = "w",
                                   .lanes = &lane,
                                   .lane_count = 1,
                                   .kinds = (const char *[]){"http"},
                                   .kind_count = 1,
                                   .max = most};
    return claim_with(f, f->b, &ask);
}

static size_t raised(struct fixture *f, const struct weft_id *id)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_batch_pace(&call, f->arena) =
        (struct weft_batch_pace_in){.batch = *id, .priority = WEFT_BATCH_RAISED};
    is_int(weft_tx_once(f->a, WEFT_TX_READ, &call, f->arena, &rows, &f->err), WEFT_OK, "count");
    return (size_t)weft_out_batch_pace(&rows)->raised;
}

static void look_at_batches(struct fixture *f)
{
    (void)run_pass(f, f->a, WEFT_SCANNER_BATCH_PROGRESS);
}

/* A batch with little time behind a large one that has much. */
CASE(batch_near_the_end_of_its_window_goes_first)
{
    struct weft_id large = batches_running(f, 2000, "24h");
    struct weft_id urgent = batches_running(f, 100, "20m");
    look_at_batches(f); /* the first look only counts */
    is_int(raised(f, &urgent), 0, "nothing is known of its pace yet");
    forward_ms(f, 30000);
    look_at_batches(f);
    size_t first = raised(f, &urgent);
    ok(first > 0 && first < 10, "after a look %zu lines go first", first);
    is_int(raised(f, &large), 0, "the large one has time");
    (void)run_pass(f, f->b, WEFT_SCANNER_BATCH_PROGRESS);
    is_int(raised(f, &urgent), first, "no other process looks at the same time");
    struct weft_claim_result got = claim_of(f, "gpt", (uint32_t)first + 1);
    size_t mine = 0;
    for (size_t i = 0; i < got.count; i++)
        mine += same_id(&got.item[i].flow, &urgent);
    is_int(mine, first, "they are claimed before the lines of the large one");
    /* The lane is full but for what goes first. */
    for (int i = 0; i < 110 && mine < 100; i++) {
        forward_ms(f, 10000);
        look_at_batches(f);
        size_t next = raised(f, &urgent);
        if (next == 0)
            continue;
        got = claim_of(f, "gpt", (uint32_t)next);
        for (size_t k = 0; k < got.count; k++)
            mine += same_id(&got.item[k].flow, &urgent);
    }
    is_int(mine, 100, "all of its lines begin within the window, although others fill the lane");
    batches_finish(f, &large);
}

/* It ends in time as it is: no line is put behind it. */
CASE(batch_that_is_fast_enough_raises_nothing)
{
    struct weft_id id = batches_running(f, 200, "20m");
    look_at_batches(f);
    forward_ms(f, 30000);
    is_int(batches_work(f, 50), 50, "fifty lines in half a minute");
    look_at_batches(f);
    is_int(raised(f, &id), 0, "that is fast enough");
}

static void put(struct fixture *f, const char *name, const char *endpoint, const char *lane,
                const char *escalate_to)
{
    const struct weft_model model = {
        .name = name, .endpoint = endpoint, .lane = lane, .escalate_to = escalate_to};
    is_int(weft_engine_model_put(f->a, "default", &model, &f->err), WEFT_OK, "model %s: %s", name,
           f->err.text);
}

CASE(batch_lines_escalate_late_in_the_window)
{
    put(f, "large", "e2", "big", NULL);
    put(f, "other", "e3", "gpt", NULL);
    put(f, "m", "e1", "gpt", "large");
    struct weft_id id = batches_create(f, batches_file_of(f, 1300, "other"), "1h", NULL);
    (void)batches_step(f, &id);
    (void)run_pass(f, f->a, WEFT_SCANNER_DEPENDENCY);
    struct weft_claim_result held = claim_of(f, "gpt", 1);
    is_int(held.count, 1, "a call is under way");
    forward_ms(f, 49 * 60000);
    look_at_batches(f);
    is_int(claim_of(f, "big", 1).count, 0, "nothing is moved before");
    forward_ms(f, 2 * 60000);
    for (int i = 0; i < 20; i++)
        look_at_batches(f);
    struct weft_claim_result got = claim_of(f, "big", 1000);
    is_int(got.count, 649, "every line of the model that waits is moved");
    bool right = true;
    for (size_t i = 0; i < got.count; i++) {
        char want[256];
        int number = -1;
        (void)sscanf(got.item[i].node, "r %d", &number); /* NOLINT(cert-err34-c) */
        (void)snprintf(want, sizeof(want),
                       "{\"endpoint\":\"e2\",\"path\":\"/x\",\"method\":\"POST\",\"body\":{"
                       "\"model\":\"large\",\"n\":%d}}",
                       number);
        right &= number % 2 == 0 && got.item[i].payload_size == strlen(want) &&
                 memcmp(got.item[i].payload, want, strlen(want)) == 0;
        (void)complete(f, f->b, &got.item[i], "{\"status\":200,\"headers\":{},\"body\":{}}");
    }
    ok(right, "with a payload for the other model");
    (void)complete(f, f->b, &held.item[0], "{\"status\":200,\"headers\":{},\"body\":{}}");
    got = claim_of(f, "gpt", 1000);
    is_int(got.count, 650, "the lines of another model stay");
    for (size_t i = 0; i < got.count; i++)
        (void)complete(f, f->b, &got.item[i], "{\"status\":200,\"headers\":{},\"body\":{}}");
    batches_finish(f, &id);
    struct weft_batch_info info;
    const struct weft_batch_asking asking = {.ns = "default", .id = id};
    is_int(weft_engine_batch_info(f->a, &asking, f->arena, &info, &f->err), WEFT_OK, "info");
    ok(info.model_count == 3 && strcmp(info.model[0].escalated_to, "large") == 0 &&
           !info.model[1].escalated_to,
       "the model that escalated is named");
    ok(info.model[0].total == 1 && info.model[1].total == 650 && info.model[2].total == 649,
       "lines are counted where they went");
    batches_expect_files(f, &id, 1300);
}

/* A line that waits for another attempt is moved with its time; one that is replayed stays there.
 */
CASE(batch_line_that_is_delayed_escalates)
{
    put(f, "large", "e2", "big", NULL);
    put(f, "m", "e1", "gpt", "large");
    struct weft_id id = batches_running(f, 1, "1h");
    put(f, "m", "e1", "gpt", "large"); /* batches_running() has put it anew */
    struct weft_claim_result got = claim_of(f, "gpt", 1);
    is_int(got.count, 1, "the line runs");
    (void)fail_as(f, f->b, &got.item[0],
                  &(struct weft_failure){.error_class = "http_503", .retry_after_ms = 3000000});
    forward_ms(f, 51 * 60000);
    look_at_batches(f);
    (void)run_pass(f, f->a, WEFT_SCANNER_DELAYED_PROMOTER);
    got = claim_of(f, "big", 1);
    is_int(got.count, 1, "it is claimed in the lane of the other model");
    ok(got.count == 1 && same_id(&got.item[0].flow, &id), "as a line of its batch");
}

CASE(model_escalation_is_checked)
{
    put(f, "large", "e2", "big", NULL);
    put(f, "m", "e1", "gpt", "large");
    struct weft_model read;
    is_int(weft_engine_model(f->b, "default", "m", f->arena, &read, &f->err), WEFT_OK, "read");
    is_str(read.escalate_to, "large", "it is stored");
    static const char *const bad[] = {"none", "n", "*", "m"};
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        const struct weft_model model = {
            .name = "n", .endpoint = "e", .lane = "l", .escalate_to = bad[i]};
        expect_err(weft_engine_model_put(f->a, "default", &model, &f->err) ? &f->err : NULL,
                   WEFT_INVALID_VALUE, "escalate_to", bad[i]);
    }
}
