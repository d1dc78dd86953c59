/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft work --drain: it goes on while an execution of its lanes and kinds is ready, delayed or
 * running, here or elsewhere, that it could serve: running ones may fail and come back. It ends
 * when all that is left are executions that it cannot serve: in a paused lane, in need of a
 * capability that it does not have, blocked by nodes of flows that it does not run, or suspended
 * until signals come.
 */

#include "base/clock.h"
#include "base/moment.h"
#include "cmd/cli/filter_args.h"
#include "cmd/work/work.h"

#include <inttypes.h>
#include <string.h>

enum {
    LOOK_MS = 200,   /* between two looks at what is left */
    LOOK_SHARE = 10, /* they take at most a tenth of the time */
    LOOK_MAX_MS = 10000,
    CASCADE_MS = 1500, /* a blocked node is ready so soon after its last upstream has ended */
    SILENT_MS = 2000,  /* before it says what it waits for */
    REASONS = 16,      /* that are counted separately */
};

/* Prints a line on stderr between the lines of the commands. */
static void say(struct weft_work *work, const char *text)
{
    pthread_mutex_lock(&work->lock);
    (void)fprintf(stderr, "%s\n", text);
    pthread_mutex_unlock(&work->lock);
}

/* Why this worker cannot serve some executions. */
struct reason {
    const char *text, *plural; /* static, or in the arena of the look */
    uint64_t count;
};

struct look {
    struct weft_drain *drain;
    struct weft_arena *arena;
    bool *paused; /* by lane */
    struct reason reason[REASONS];
    size_t reasons;
    /* Blocked and suspended ones; 0 or 1 while it only matters whether there are any. */
    uint64_t count[WEFT_STATE_COUNT];
    bool counting; /* all of these */
    bool servable; /* one was found that this worker could serve, and the look ended there */
    bool waits;    /* that one is delayed or runs elsewhere, as `what` says */
    const char *what;
};

/* ---- What cannot be served here -------------------------------------------------------------- */

/* Reasons beyond these are counted together in the last place. */
static void count_reason(struct look *look, const char *text, const char *plural)
{
    size_t at = 0;
    while (at < look->reasons && strcmp(look->reason[at].text, text) != 0)
        at++;
    if (at == REASONS) {
        at = REASONS - 1;
        look->reason[at].text = look->reason[at].plural = "for other reasons";
    } else if (at == look->reasons) {
        look->reasons++;
        look->reason[at] = (struct reason){.text = weft_arena_strdup(look->arena, text),
                                           .plural = weft_arena_strdup(look->arena, plural)};
    }
    look->reason[at].count++;
}

/* The capabilities that are asked for and not offered here, joined by commas; NULL: none. */
static const char *missing(const struct look *look, const struct weft_execution *item,
                           bool *ret_many)
{
    const char *text = NULL;
    *ret_many = false;
    for (size_t i = 0; i < item->capability_count; i++) {
        size_t at = 0;
        while (at < look->drain->options->capability_count &&
               strcmp(look->drain->options->capabilities[at], item->capabilities[i]) != 0)
            at++;
        if (at < look->drain->options->capability_count)
            continue;
        *ret_many = text != NULL;
        text = text ? weft_arena_printf(look->arena, "%s, %s", text, item->capabilities[i])
                    : item->capabilities[i];
    }
    return text;
}

/* False when this worker could serve the execution; otherwise counts the reason. */
static bool is_beyond(struct look *look, size_t lane, const struct weft_execution *item)
{
    char text[512], plural[512];
    bool many;
    if (look->paused[lane]) {
        (void)snprintf(text, sizeof(text), "in the paused lane %s (weft lanes %s --resume)",
                       item->lane, item->lane);
        count_reason(look, text, text);
        return true;
    }
    const char *lacks = missing(look, item, &many);
    if (!lacks)
        return false;
    const char *word = many ? "the capabilities" : "the capability";
    (void)snprintf(text, sizeof(text), "needs %s %s", word, lacks);
    (void)snprintf(plural, sizeof(plural), "need %s %s", word, lacks);
    count_reason(look, text, plural);
    return true;
}

static void note_servable(struct look *look, const struct weft_execution *item)
{
    char id[WEFT_ID_TEXT], moment[WEFT_MOMENT_TEXT];
    look->servable = true;
    weft_id_print(&item->id, id);
    if (item->state == WEFT_STATE_DELAYED) {
        weft_moment_print(item->run_at_us, moment);
        look->what = weft_arena_printf(look->arena, "%s, which is delayed until %s", id, moment);
    } else if (item->state == WEFT_STATE_RUNNING) {
        look->what = weft_arena_printf(look->arena, "%s, which worker %s runs", id,
                                       item->worker ? item->worker : "(unknown)");
    }
    look->waits = look->what != NULL;
}

/* ---- Looking --------------------------------------------------------------------------------- */

/* Evaluates one page; true when the next page must be read, too. */
static bool take_page(struct look *look, size_t lane, enum weft_state state,
                      const struct weft_page *page)
{
    if (state == WEFT_STATE_BLOCKED || state == WEFT_STATE_SUSPENDED) {
        look->count[state] += page->count;
        return page->next && (look->counting || look->count[state] == 0);
    }
    for (size_t i = 0; i < page->count && !look->servable; i++)
        if (!is_beyond(look, lane, &page->item[i]))
            note_servable(look, &page->item[i]);
    return page->next && !look->servable;
}

static enum weft_rc read_pages(struct look *look, size_t lane, const struct weft_filter *filter,
                               struct weft_err *err)
{
    struct weft_pages pages = {.more = true};
    enum weft_rc rc = WEFT_OK;
    uint32_t limit = filter->state == WEFT_STATE_BLOCKED && !look->counting ? 1 : WEFT_PAGE_MAX;
    for (bool more = true; more && !rc;) {
        rc = weft_next_page(look->drain->weft, filter, limit, &pages, err);
        more = !rc && take_page(look, lane, filter->state, &pages.page);
    }
    weft_page_free(&pages.page);
    return rc;
}

static enum weft_rc read_state(struct look *look, size_t lane, enum weft_state state,
                               struct weft_err *err)
{
    const struct weft_drain *drain = look->drain;
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < (drain->kinds ? drain->kinds : 1) && !rc && !look->servable; i++) {
        const struct weft_filter filter = {.lane = drain->options->lanes[lane],
                                           .kind = drain->kinds ? drain->kind[i] : NULL,
                                           .state = state};
        rc = read_pages(look, lane, &filter, err);
    }
    return rc;
}

/* Counts all blocked or suspended executions. This is done last: there may be very many of them. */
static enum weft_rc count_waiting(struct look *look, enum weft_state state, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    look->counting = true;
    look->count[state] = 0;
    for (size_t i = 0; i < look->drain->options->lane_count && !rc; i++)
        rc = read_state(look, i, state, err);
    return rc;
}

static enum weft_rc read_paused(struct look *look, struct weft_err *err)
{
    const struct weft_drain *drain = look->drain;
    struct weft_lanes lanes = {0};
    look->paused = weft_new_array(look->arena, bool, drain->options->lane_count + 1);
    enum weft_rc rc = weft_lanes(drain->weft, &lanes, err);
    for (size_t i = 0; i < lanes.count && !rc; i++)
        for (size_t k = 0; k < drain->options->lane_count; k++)
            if (strcmp(lanes.item[i].name, drain->options->lanes[k]) == 0)
                look->paused[k] = lanes.item[i].paused;
    weft_lanes_free(&lanes);
    return rc;
}

/*
 * The states in this order, because an execution that goes on from running to delayed to ready
 * meanwhile is then seen in one of them. Blocked ones come first: one that becomes ready meanwhile
 * is seen either way.
 */
static enum weft_rc look_at_all(struct look *look, struct weft_err *err)
{
    static const enum weft_state state[] = {WEFT_STATE_BLOCKED, WEFT_STATE_RUNNING,
                                            WEFT_STATE_DELAYED, WEFT_STATE_READY};
    enum weft_rc rc = read_paused(look, err);
    for (size_t k = 0; k < WEFT_LEN(state); k++)
        for (size_t i = 0; i < look->drain->options->lane_count && !rc && !look->servable; i++)
            rc = read_state(look, i, state[k], err);
    return rc;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static uint64_t held(const struct weft_worker_stats *stats)
{
    return stats->claimed - stats->completed - stats->failed - stats->put_back - stats->fenced -
           stats->suspended;
}

/* What is left, in words; NULL: nothing. */
static const char *describe(const struct look *look)
{
    uint64_t blocked = look->count[WEFT_STATE_BLOCKED];
    uint64_t suspended = look->count[WEFT_STATE_SUSPENDED], total = blocked + suspended;
    const char *text = "";
    for (size_t i = 0; i < look->reasons; i++) {
        const struct reason *reason = &look->reason[i];
        total += reason->count;
        text = weft_arena_printf(look->arena, "%s%s%" PRIu64 " %s", text, i ? ", " : "",
                                 reason->count, reason->count == 1 ? reason->text : reason->plural);
    }
    if (blocked > 0)
        text = weft_arena_printf(look->arena,
                                 "%s%s%" PRIu64 " wait%s for nodes of flows that it does not run",
                                 text, *text ? ", " : "", blocked, blocked == 1 ? "s" : "");
    if (suspended > 0)
        text = weft_arena_printf(look->arena, "%s%s%" PRIu64 " %s suspended", text,
                                 *text ? ", " : "", suspended, suspended == 1 ? "is" : "are");
    if (total == 0)
        return NULL;
    return weft_arena_printf(look->arena,
                             "%" PRIu64 " execution%s left that this worker cannot serve: %s",
                             total, total == 1 ? " is" : "s are", text);
}

/* Prints once, after a while without work, which execution --drain waits for. */
static void say_waiting(struct weft_drain *drain, const struct look *look)
{
    weft_usec now_us = weft_boot_us();
    if (!look->waits)
        drain->waiting_us = 0;
    else if (drain->waiting_us == 0)
        drain->waiting_us = now_us;
    if (drain->announced || !drain->waiting_us || now_us - drain->waiting_us < SILENT_MS * WEFT_MS)
        return;
    drain->announced = true;
    say(drain->work, weft_arena_printf(look->arena, "weft: waiting for %s", look->what));
}

/*
 * Looks twice. What is claimed while we look goes from ready to running behind our back, and it may
 * be our own worker's although that has not heard of it yet; the second look sees it running, or
 * the worker has counted it by then. True when nothing is left that could be served.
 */
static bool is_drained(struct weft_drain *drain, struct look *ret_look, struct weft_err *err)
{
    struct weft_worker_stats before, after;
    weft_worker_stats(drain->worker, &before);
    if (held(&before) > 0) {
        drain->waiting_us = 0;
        return false;
    }
    for (int i = 0; i < 2; i++) {
        *ret_look = (struct look){.drain = drain, .arena = ret_look->arena};
        if (look_at_all(ret_look, err))
            return false;
        if (ret_look->servable) {
            say_waiting(drain, ret_look);
            return false;
        }
    }
    weft_worker_stats(drain->worker, &after);
    return after.claimed == before.claimed;
}

/* Sets the time of the next look: the longer this look took, the later. */
static void pace(struct weft_drain *drain, weft_usec began_us)
{
    weft_usec now_us = weft_boot_us(), rest_us = LOOK_SHARE * (now_us - began_us);
    if (rest_us < LOOK_MS * WEFT_MS)
        rest_us = LOOK_MS * WEFT_MS;
    if (rest_us > LOOK_MAX_MS * WEFT_MS)
        rest_us = LOOK_MAX_MS * WEFT_MS;
    drain->look_us = now_us + rest_us;
}

/*
 * What a blocked node waits for may have ended just now; if it still waits after a while, then for
 * something that this worker does not do.
 */
static bool blocked_long(struct weft_drain *drain, struct look *look, struct weft_err *err)
{
    return weft_boot_us() - drain->drained_us >= CASCADE_MS * WEFT_MS &&
           count_waiting(look, WEFT_STATE_BLOCKED, err) == WEFT_OK &&
           look->count[WEFT_STATE_BLOCKED] > 0;
}

bool weft_drain_is_over(struct weft_drain *drain, struct weft_err *err)
{
    weft_usec began_us = weft_boot_us();
    if (began_us < drain->look_us)
        return false;
    struct look look = {.arena = weft_arena_new()};
    *err = (struct weft_err){0};
    bool drained = is_drained(drain, &look, err);
    if (!drained)
        drain->drained_us = 0;
    else if (drain->drained_us == 0)
        drain->drained_us = began_us;
    bool over = drained && (look.count[WEFT_STATE_BLOCKED] == 0 || blocked_long(drain, &look, err));
    if (over && count_waiting(&look, WEFT_STATE_SUSPENDED, err))
        over = false;
    const char *left = over ? describe(&look) : NULL;
    drain->left = left ? weft_arena_strdup(drain->arena, left) : NULL;
    weft_arena_free(look.arena);
    pace(drain, began_us);
    /* Another try would meet these errors again. */
    return over || err->rc == WEFT_UNAUTHORIZED || err->rc == WEFT_FORBIDDEN;
}
