/* SPDX-License-Identifier: Apache-2.0 */

/* Steering by id and by filter, and lists. */

#include "direct.h"
#include "model.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "core/state.h"
#include "engine/job/control.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "weft/weft.h"

#include <stdlib.h>

/* ---- By id ----------------------------------------------------------------------------------- */

static void say_steered(const struct weft_steered *answer, size_t count, struct weft_buf *out)
{
    for (size_t i = 0; i < count; i++)
        weft_buf_printf(out, "item %zu: %s %s%s\n", i, weft_rc_wire(answer[i].err.rc),
                        weft_state_name(answer[i].state), answer[i].changed ? " changed" : "");
}

static struct weft_steer random_steer(struct world *w)
{
    static const char *const reasons[] = {NULL, "not wanted", "too \"late\""};
    struct weft_steer item = {
        .ns = chance(w, 3) ? "elsewhere" : NULL,
        .reason = reasons[below(w, WEFT_LEN(reasons))],
        .priority = (int32_t)below(w, 7) - 3,
        .deadline_us = chance(w, 30) ? 0 : w->now_us + 1 + (weft_usec)below(w, 30000000),
    };
    if (chance(w, 3)) {
        item.priority = 40000;
        item.deadline_us = w->now_us;
    }
    return item;
}

void op_steer(struct world *w)
{
    static const enum weft_state aim[] = {
        [WEFT_STEER_CANCEL] = WEFT_STATE_READY,         [WEFT_STEER_REPLAY] = WEFT_STATE_SUCCEEDED,
        [WEFT_STEER_REPRIORITIZE] = WEFT_STATE_READY,   [WEFT_STEER_REVOKE] = WEFT_STATE_RUNNING,
        [WEFT_STEER_SET_DEADLINE] = WEFT_STATE_DELAYED,
    };
    enum weft_steer_kind kind = (enum weft_steer_kind)below(w, WEFT_LEN(aim));
    struct weft_steer item[ITEMS_MAX];
    struct subject *subject[ITEMS_MAX];
    struct weft_steered want[ITEMS_MAX], got[ITEMS_MAX];
    size_t count = 1 + below(w, chance(w, 10) ? ITEMS_MAX : 3);
    for (size_t i = 0; i < count; i++) {
        enum weft_state state =
            chance(w, 30) ? (enum weft_state)below(w, WEFT_STATE_COUNT) : aim[kind];
        subject[i] = i > 0 && chance(w, 15) ? subject[i - 1] : pick_subject(w, state);
        item[i] = random_steer(w);
        want[i] = model_steer(w, kind, &item[i], subject[i]);
        note(w, "steer %d %zu/%zu #%zd -> %s %s%s", (int)kind, i + 1, count,
             subject[i] ? (ssize_t)subject[i]->number : -1, weft_rc_wire(want[i].err.rc),
             weft_state_name(want[i].state), want[i].changed ? " changed" : "");
    }
    for (size_t s = 0; s < w->stores; s++) {
        struct weft_buf wanted, given;
        struct weft_err err = {0};
        const struct weft_steering steering = {
            .kind = kind, .ns = "default", .item = item, .count = count};
        for (size_t i = 0; i < count; i++)
            item[i].id = id_in(subject[i], s);
        memset(got, 0, sizeof(got));
        broken_call(w, s, engine_steer(w->store[s].engine, &steering, got, &err), &err);
        weft_buf_init(&wanted, 1 << 16);
        weft_buf_init(&given, 1 << 16);
        say_steered(want, count, &wanted);
        say_steered(got, count, &given);
        compare_text(w, w->store[s].name, wanted.data, given.data);
        weft_buf_done(&wanted);
        weft_buf_done(&given);
    }
}

/* ---- By filter ------------------------------------------------------------------------------- */

static struct weft_filter random_filter(struct world *w)
{
    static const struct weft_tag tags[] = {{"who", "a \"b\" \\c"}, {"zone", "eu"}, {"who", "b"}};
    struct weft_filter filter = {.ns = "default"};
    do {
        if (chance(w, 30))
            filter.lane = lane_name[below(w, LANES)];
        if (chance(w, 30))
            filter.kind = chance(w, 50) ? "send" : "resize";
        if (chance(w, 15))
            filter.tenant = chance(w, 80) ? "acme" : "absent";
        if (chance(w, 15))
            filter.key = weft_arena_printf(w->arena, "key-%zu", below(w, 30));
        if (chance(w, 25))
            filter.tag = &tags[below(w, WEFT_LEN(tags))];
        if (chance(w, 40))
            filter.state = (enum weft_state)(1 + below(w, WEFT_STATE_COUNT - 1));
    } while (!filter.lane && !filter.kind && !filter.tenant && !filter.key && !filter.tag &&
             !filter.state);
    return filter;
}

static void note_filter(struct world *w, const char *word, const struct weft_filter *f, size_t n)
{
    note(w, "%s lane=%s kind=%s tenant=%s key=%s tag=%s state=%s: %zu", word,
         f->lane ? f->lane : "-", f->kind ? f->kind : "-", f->tenant ? f->tenant : "-",
         f->key ? f->key : "-", f->tag ? f->tag->key : "-", weft_state_name(f->state), n);
}

void op_sweep(struct world *w)
{
    const struct weft_steer_all args = {
        .kind = chance(w, 40) ? WEFT_STEER_CANCEL : WEFT_STEER_REPLAY,
        .filter = random_filter(w),
        .reason = "swept",
    };
    const struct weft_steer item = {.reason = args.reason};
    uint64_t matched = 0, changed = 0;
    for (size_t i = 0; i < w->subjects; i++) {
        struct subject *x = w->subject[i];
        /* It walks what can be changed: the living for cancel, the others for replay. */
        if (weft_state_living(x->live.state) != (args.kind == WEFT_STEER_CANCEL) ||
            !model_fits(x, &args.filter))
            continue;
        matched++;
        changed += model_steer(w, args.kind, &item, x).changed;
    }
    note_filter(w, args.kind == WEFT_STEER_CANCEL ? "cancel all" : "replay all", &args.filter,
                matched);
    for (size_t s = 0; s < w->stores; s++) {
        struct weft_sweep got = {0};
        struct weft_err err = {0};
        broken_call(w, s, weft_engine_steer_all(w->store[s].engine, &args, &got, &err), &err);
        const char *wanted =
            weft_arena_printf(w->arena, "matched %" PRIu64 " changed %" PRIu64, matched, changed);
        const char *given =
            weft_arena_printf(w->arena, "matched %" PRIu64 " changed %" PRIu64 "%s", got.matched,
                              got.changed, got.more ? " and more" : "");
        compare_text(w, w->store[s].name, wanted, given);
    }
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    size_t left = (*(struct subject *const *)a)->number,
           right = (*(struct subject *const *)b)->number;
    return (left > right) - (left < right);
}

/* Reads all pages. A row that comes twice, or is none of ours, is said as it is. */
static void list_from(struct world *w, size_t s, const struct weft_filter *filter, uint32_t limit,
                      struct weft_buf *out)
{
    struct weft_listing listing = {.filter = *filter, .limit = limit};
    struct weft_arena *arena = weft_arena_new();
    struct subject *found[SUBJECTS_MAX];
    size_t count = 0, pages = 0;
    do {
        struct weft_read_page page = {0};
        struct weft_err err = {0};
        broken_call(w, s, weft_engine_list(w->store[s].reader, &listing, arena, &page, &err), &err);
        for (size_t i = 0; i < page.count; i++) {
            struct subject *x =
                weft_map_find(&w->store[s].by_id, &page.item[i].id, sizeof(page.item[i].id));
            if (x && count < SUBJECTS_MAX)
                found[count++] = x;
            else
                weft_buf_add_text(out, "#? ");
        }
        listing.after = page.next;
    } while (listing.after && ++pages < SUBJECTS_MAX && !w->failed);
    if (count > 0)
        qsort(found, count, sizeof(struct subject *), by_number);
    for (size_t i = 0; i < count; i++)
        weft_buf_printf(out, "#%zu ", found[i]->number);
    weft_arena_free(arena);
}

void op_list(struct world *w)
{
    static const uint32_t limits[] = {0, 3, 17, 1000};
    struct weft_filter filter = random_filter(w);
    uint32_t limit = limits[below(w, WEFT_LEN(limits))];
    struct weft_buf want, got;
    size_t count = 0;
    if (chance(w, 20))
        filter = (struct weft_filter){.ns = chance(w, 90) ? "default" : "elsewhere"};
    weft_buf_init(&want, 1 << 16);
    for (size_t i = 0; i < w->subjects; i++)
        if (strcmp(filter.ns, "default") == 0 && model_fits(w->subject[i], &filter)) {
            weft_buf_printf(&want, "#%zu ", w->subject[i]->number);
            count++;
        }
    note_filter(w, "list", &filter, count);
    for (size_t s = 0; s < w->stores; s++) {
        weft_buf_init(&got, 1 << 16);
        list_from(w, s, &filter, limit, &got);
        compare_text(w, w->store[s].name, want.data, got.data);
        weft_buf_done(&got);
    }
    weft_buf_done(&want);
}
