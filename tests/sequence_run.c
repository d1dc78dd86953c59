/* SPDX-License-Identifier: Apache-2.0 */

/* Runs of sequences, and the judgement on what they left behind. See sequence.h. */

#include "sequence.h"

#include "base/arena.h"
#include "engine/admin/doctor.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "weft/weft.h"

void run_init(struct run *run, const struct sequence *sequence, const struct place *place,
              int number)
{
    *run = (struct run){.sequence = sequence,
                        .place = place,
                        .now_us = START_US + (weft_usec)number * 3600 * WEFT_SECOND};
    (void)snprintf(run->lane, sizeof(run->lane), "lane-%d", number);
    (void)snprintf(run->kind, sizeof(run->kind), "kind-%d", number);
    (void)snprintf(run->worker, sizeof(run->worker), "worker-%d", number);
    for (int i = 0; i < ITEMS; i++)
        (void)snprintf(run->key[i], sizeof(run->key[i]), "key-%d-%d", number, i);
}

weft_usec run_later(const struct run *run)
{
    return run->now_us + 600 * WEFT_SECOND;
}

static int key_number(const struct run *run, const char *key)
{
    for (int i = 0; key && i < ITEMS; i++)
        if (strcmp(run->key[i], key) == 0)
            return i;
    return -1;
}

void run_look(struct run *run, struct weft_engine *clean)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_read_page page = {0};
    struct weft_err err = {0};
    const struct weft_listing listing = {.filter = {.ns = "default", .kind = run->kind},
                                         .limit = SEEN_MAX};
    if (weft_engine_list(clean, &listing, arena, &page, &err))
        bail_out("list: %s", err.text);
    for (size_t i = 0; i < page.count; i++) {
        run->seen[i].id = page.item[i].id;
        run->seen[i].living = page.item[i].finished_us == 0;
        run->seen[i].key = key_number(run, page.item[i].key);
    }
    run->seen_count = page.count;
    weft_arena_free(arena);
}

void run_done(struct run *run, struct weft_engine *clean)
{
    run_look(run, clean);
    for (size_t i = 0; i < run->seen_count; i++)
        if (run->seen[i].living)
            (void)steer_one(clean, WEFT_STEER_CANCEL, &(struct weft_steer){.id = run->seen[i].id});
}

struct weft_execution run_now(struct run *run, struct weft_engine *clean, size_t i)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_execution item = look_at(clean, &run->id[i], arena);
    weft_arena_free(arena); /* the numbers are kept, the texts are not looked at */
    return item;
}

/* ---- Judging --------------------------------------------------------------------------------- */

size_t run_done_count(struct run *run, struct weft_engine *clean, const struct heard *heard)
{
    size_t count = 0;
    run_look(run, clean);
    for (size_t i = 0; i < ITEMS; i++)
        count += run->sequence->done(run, clean, heard, i);
    return count;
}

static const char *judge_item(struct run *run, struct weft_engine *clean, bool done, size_t i)
{
    const struct sequence *sequence = run->sequence;
    if (sequence->fresh)
        return NULL; /* there is no execution of before to look at */
    if (run_now(run, clean, i).epoch < run->epoch[i])
        return "an epoch went back";
    if (done && sequence->attempts >= 0 &&
        attempts_of(clean, &run->id[i]) != (size_t)sequence->attempts)
        return "the history has another number of leases";
    return NULL;
}

const char *run_judge(struct run *run, struct weft_engine *clean, const struct heard *heard)
{
    bool done[ITEMS];
    run_look(run, clean);
    if (run->seen_count > ITEMS)
        return "there are more executions than were submitted";
    for (size_t i = 0; i < ITEMS; i++) {
        done[i] = run->sequence->done(run, clean, heard, i);
        for (size_t k = 0; k < i; k++)
            if (run->sequence->group[k] == run->sequence->group[i] && done[k] != done[i])
                return "a part of it happened";
        if (heard->answered && !heard->rc && !heard->item[i] && !done[i])
            return "it was answered and is not there";
        const char *wrong = judge_item(run, clean, done[i], i);
        if (wrong)
            return wrong;
    }
    struct weft_err err;
    return weft_engine_check(clean, &err) ? "the invariants are broken" : NULL;
}
