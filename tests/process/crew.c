/* SPDX-License-Identifier: Apache-2.0 */

/* Processes, their pipe, and the worker they run. */

#include "direct.h"
#include "process.h"

#include "base/arena.h"
#include "engine/admin/tally.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/execution_read.h"
#include "engine/job/leases.h"
#include "engine/job/list.h"
#include "engine/scan/pass.h"
#include "weft/weft.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

void tell(int out, const struct record *record)
{
    if (write(out, record, sizeof(*record)) != (ssize_t)sizeof(*record))
        _exit(3);
}

void crew_start(struct crew *crew, const struct place *place, size_t count, worker_fn *work,
                void *context)
{
    *crew = (struct crew){.count = count, .child = calloc(count, sizeof(pid_t))};
    if (!crew->child || pipe(crew->pipe))
        bail_out("no memory or no pipe");
    (void)fflush(stdout);
    for (size_t i = 0; i < count; i++) {
        crew->child[i] = fork();
        if (crew->child[i] < 0)
            bail_out("cannot fork");
        if (crew->child[i] > 0)
            continue;
        (void)close(crew->pipe[0]);
        work(place, (int)i, crew->pipe[1], context);
        _exit(0);
    }
    (void)close(crew->pipe[1]);
}

/* Reads what is there; false at the end of the pipe or when nothing came in time. */
static bool read_more(struct crew *crew)
{
    struct pollfd fd = {.fd = crew->pipe[0], .events = POLLIN};
    if (crew->records == crew->capacity) {
        crew->capacity = crew->capacity ? crew->capacity * 2 : 1024;
        crew->record = realloc(crew->record, crew->capacity * sizeof(*crew->record));
        if (!crew->record)
            bail_out("no memory");
    }
    if (poll(&fd, 1, PATIENCE_MS) <= 0)
        return false;
    /* One at a time: a record is never torn, because it is smaller than PIPE_BUF. */
    ssize_t got = read(crew->pipe[0], &crew->record[crew->records], sizeof(*crew->record));
    crew->records += got == (ssize_t)sizeof(*crew->record);
    return got > 0;
}

bool crew_hear(struct crew *crew, size_t records)
{
    while (crew->records < records)
        if (!read_more(crew))
            return false;
    return true;
}

bool crew_join(struct crew *crew)
{
    bool well = true;
    while (read_more(crew))
        continue;
    for (size_t i = 0; i < crew->count; i++) {
        int status = 0;
        (void)waitpid(crew->child[i], &status, 0);
        bool fine = WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL;
        if (!fine)
            printf("# process %zu ended with status %d\n", i, status);
        well &= fine;
    }
    return well;
}

void crew_done(struct crew *crew)
{
    (void)close(crew->pipe[0]);
    free(crew->child);
    free(crew->record);
}

size_t crew_count(const struct crew *crew, int what)
{
    size_t count = 0;
    for (size_t i = 0; i < crew->records; i++)
        count += (int)crew->record[i].what == what;
    return count;
}

/* ---- The worker ------------------------------------------------------------------------------ */

__attribute__((noreturn)) static void give_up(int number, const char *what,
                                              const struct weft_err *err)
{
    printf("# process %d: %s: %s\n", number, what, err->text);
    (void)fflush(stdout);
    _exit(2);
}

static uint64_t count_living(struct weft_engine *engine, const char *lane, int number)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_counts counts = {0};
    struct weft_err err = {0};
    uint64_t living = 0;
    if (weft_engine_counts(engine, "default", lane, arena, &counts, &err))
        give_up(number, "counts", &err);
    for (size_t i = 0; i < counts.count; i++)
        for (size_t s = 0; s < WEFT_STATE_COUNT; s++)
            living += counts.item[i].count[s];
    weft_arena_free(arena);
    return living;
}

static void finish_all(struct weft_engine *engine, const struct weft_claim_result *claims,
                       int number, int out)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_complete *item = weft_new_array(arena, struct weft_complete, claims->count + 1);
    struct weft_lease_answer *answer =
        weft_new_array(arena, struct weft_lease_answer, claims->count + 1);
    struct weft_err err = {0};
    for (size_t i = 0; i < claims->count; i++)
        item[i] = (struct weft_complete){.id = claims->item[i].id, .epoch = claims->item[i].epoch};
    if (engine_complete(engine, item, claims->count, answer, &err))
        give_up(number, "complete", &err);
    for (size_t i = 0; i < claims->count; i++) {
        if (answer[i].err.rc && answer[i].err.rc != WEFT_FENCED)
            give_up(number, "complete one", &answer[i].err);
        tell(out, &(struct record){.what = answer[i].err.rc ? FENCED : COMPLETED,
                                   .id = item[i].id,
                                   .epoch = item[i].epoch,
                                   .worker = number});
    }
    weft_arena_free(arena);
}

struct turn {
    struct weft_engine *engine;
    const struct work *work;
    int number, out;
};

static void claim_some(const struct turn *turn, struct weft_arena *arena,
                       struct weft_claim_result *ret_claims)
{
    struct weft_err err = {0};
    char name[32];
    (void)snprintf(name, sizeof(name), "worker-%d", turn->number);
    const struct weft_claim claim = {.worker = name,
                                     .lanes = &turn->work->lane,
                                     .lane_count = 1,
                                     .max = turn->work->batch,
                                     .lease_ms = turn->work->lease_ms};
    if (weft_engine_claim(turn->engine, "default", &claim, 1, arena, ret_claims, &err))
        give_up(turn->number, "claim", &err);
    for (size_t i = 0; i < ret_claims->count; i++)
        tell(turn->out, &(struct record){.what = CLAIMED,
                                         .id = ret_claims->item[i].id,
                                         .epoch = ret_claims->item[i].epoch,
                                         .worker = turn->number});
}

/* A claim and what follows; false when there was nothing to claim. */
static bool do_some(const struct turn *turn)
{
    struct weft_arena *arena = weft_arena_new(), *more_arena = weft_arena_new();
    struct weft_claim_result claims = {0}, more = {0};
    claim_some(turn, arena, &claims);
    while (claims.count && turn->work->dies)
        (void)pause();
    if (claims.count && turn->work->lingers)
        claim_some(turn, more_arena, &more);
    if (claims.count)
        finish_all(turn->engine, &claims, turn->number, turn->out);
    if (more.count)
        finish_all(turn->engine, &more, turn->number, turn->out);
    weft_arena_free(more_arena);
    weft_arena_free(arena);
    return claims.count > 0;
}

/* Works while there is something; true when nothing of the lane lives any more. */
static bool take_turn(void *context)
{
    const struct turn *turn = context;
    struct weft_pass_report report;
    struct weft_err err = {0};
    if (turn->work->expires &&
        weft_engine_pass(turn->engine, WEFT_SCANNER_LEASE_EXPIRY, NULL, &report, &err))
        give_up(turn->number, "lease expiry", &err);
    while (do_some(turn))
        continue;
    return count_living(turn->engine, turn->work->lane, turn->number) == 0;
}

void work_lane(const struct place *place, int number, int out, void *context)
{
    struct turn turn = {.work = context, .number = number, .out = out};
    turn.engine = place_open(place, NULL, 0);
    if (!wait_until(take_turn, &turn))
        _exit(4);
    weft_engine_close(turn.engine);
}

struct weft_execution *read_lane(struct weft_engine *engine, const char *lane,
                                 struct weft_arena *arena, size_t *ret_count)
{
    enum { MOST = 25000 };
    struct weft_execution *all = weft_new_array(arena, struct weft_execution, MOST);
    struct weft_err err = {0};
    struct weft_listing listing = {.filter = {.ns = "default", .lane = lane}, .limit = 1000};
    size_t count = 0;
    do {
        struct weft_read_page page = {0};
        if (weft_engine_list(engine, &listing, arena, &page, &err))
            bail_out("list: %s", err.text);
        for (size_t i = 0; i < page.count && count < MOST; i++)
            all[count++] = page.item[i];
        listing.after = page.next;
    } while (listing.after);
    *ret_count = count;
    return all;
}
