/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scanner `erasure`: makes the steps of erasures (engine/erase/). Every replica does; a step
 * that another one has made meanwhile is not made again. An order that fails stops no other one.
 */

#include "base/arena.h"
#include "base/clock.h"
#include "engine/engine_state.h"
#include "engine/erase/erase.h"
#include "engine/scan/scan.h"

#define PASS_US (100 * WEFT_MS)

enum { ORDERS = 100 };

/* The order of the table in pass.c. */
enum { STEPS, CANCELLED, REMOVED, SCRUBBED, FLOWS, FINISHED, LOCKED };

static bool late(const struct weft_pass *pass)
{
    weft_usec most_us = pass->config->most_us ? pass->config->most_us : PASS_US;
    return weft_boot_us() - pass->began_us > most_us;
}

static void count(struct weft_pass *pass, const struct weft_erase *erase,
                  const uint64_t before[WEFT_ERASE_COUNTS])
{
    pass->count[CANCELLED] += erase->count[WEFT_ERASE_CANCELLED] - before[WEFT_ERASE_CANCELLED];
    pass->count[REMOVED] += erase->count[WEFT_ERASE_REMOVED] - before[WEFT_ERASE_REMOVED];
    pass->count[SCRUBBED] += erase->count[WEFT_ERASE_SCRUBBED] - before[WEFT_ERASE_SCRUBBED];
    pass->count[FLOWS] += erase->count[WEFT_ERASE_FLOWS] - before[WEFT_ERASE_FLOWS];
}

/* Steps of one order, as long as it need not wait. */
static enum weft_rc advance(struct weft_pass *pass, const struct weft_erasure_read_out *row,
                            struct weft_err *err)
{
    struct weft_erase erase = {.engine = pass->engine, .arena = pass->arena};
    bool over = false;
    enum weft_rc rc = weft_erase_begin(&erase, row, err);
    uint64_t before[WEFT_ERASE_COUNTS];
    for (size_t i = 0; i < WEFT_ERASE_COUNTS; i++)
        before[i] = erase.count[i];
    bool goes_on = !rc;
    /* One step at least, or a busy replica would never come to the second order. */
    while (goes_on) {
        rc = weft_erase_step(&erase, &over, err);
        pass->count[STEPS]++;
        goes_on = !rc && !over && !erase.locked && erase.wait_us == 0 && !late(pass);
        if (goes_on && pass->engine->pool.writers == 1)
            weft_pass_rest(2 * WEFT_MS);
    }
    count(pass, &erase, before);
    pass->count[LOCKED] += erase.locked;
    pass->count[FINISHED] += over && !rc;
    if (rc || over)
        return rc;
    weft_usec due_us = weft_clock_now(pass->engine->clock) + erase.wait_us;
    if (erase.wait_us > 0 && due_us < pass->report.next_due_us)
        pass->report.next_due_us = due_us;
    pass->report.more |= erase.wait_us == 0 && !erase.locked;
    return WEFT_OK;
}

enum weft_rc weft_erasure_run(struct weft_pass *pass, struct weft_err *err)
{
    struct weft_call call;
    struct weft_rows rows = {0};
    *weft_call_erasure_due(&call, pass->arena) =
        (struct weft_erasure_due_in){.batch = ORDERS, .ns = pass->ns};
    enum weft_rc rc = weft_tx_once(pass->engine, WEFT_TX_READ, &call, pass->arena, &rows, err);
    enum weft_rc last = WEFT_OK;
    for (size_t i = 0; i < rows.count && !rc; i++) {
        struct weft_err story = {0};
        enum weft_rc one = advance(pass, &weft_out_erasure_read(&rows)[i], &story);
        pass->report.failed += one != WEFT_OK;
        if (one) {
            last = one;
            if (err)
                *err = story;
        }
    }
    pass->report.handled = pass->count[CANCELLED] + pass->count[REMOVED] + pass->count[SCRUBBED] +
                           pass->count[FLOWS] + pass->count[FINISHED];
    return rc ? rc : pass->report.failed > 0 && pass->report.failed == rows.count ? last : WEFT_OK;
}
