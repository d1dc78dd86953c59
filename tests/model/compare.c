/* SPDX-License-Identifier: Apache-2.0 */

/* Texts of what the model and a store say of the same thing. */

#include "model.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "core/capset.h"
#include "core/spec.h"
#include "core/state.h"
#include "engine/job/execution_read.h"
#include "weft/weft.h"

enum { TEXT_MAX = 1 << 22 };

void say_subject(const struct world *w, size_t store, const struct weft_id *id,
                 struct weft_buf *out)
{
    const struct subject *x = weft_map_find(&w->store[store].by_id, id, sizeof(*id));
    if (x)
        weft_buf_printf(out, "#%zu", x->number);
    else
        weft_buf_add_text(out, "#?");
}

/* Prints the first line in which two texts differ. */
static void print_difference(const char *want, const char *got)
{
    while (*want && *want == *got) {
        size_t line = strcspn(want, "\n");
        if (strncmp(want, got, line + 1) != 0)
            break;
        want += line + (want[line] == '\n');
        got += line + (got[line] == '\n');
    }
    printf("# wanted: %.*s\n", (int)strcspn(want, "\n"), want);
    printf("# got:    %.*s\n", (int)strcspn(got, "\n"), got);
}

void compare_text(struct world *w, const char *who, const char *want, const char *got)
{
    if (strcmp(want, got) == 0)
        return;
    if (!w->failed)
        printf("# %s differs from the model in step %zu of seed %" PRIu64 "\n", who, w->step,
               w->seed);
    w->failed = true;
    print_difference(want, got);
}

void broken_call(struct world *w, size_t store, enum weft_rc rc, const struct weft_err *err)
{
    if (!rc)
        return;
    printf("# %s failed as a whole in step %zu of seed %" PRIu64 ": %s: %s\n", w->store[store].name,
           w->step, w->seed, weft_rc_wire(rc), err->text);
    w->failed = true;
}

static void say_leases(const struct weft_lease_answer *answer, size_t count, struct weft_buf *out)
{
    for (size_t i = 0; i < count; i++)
        weft_buf_printf(
            out, "item %zu: %s fence=%s state=%s expires=%" PRId64 " run_at=%" PRId64 "\n", i,
            weft_rc_wire(answer[i].err.rc), weft_fence_name(answer[i].fence),
            weft_state_name(answer[i].state), answer[i].lease_expires_us, answer[i].run_at_us);
}

void compare_leases(struct world *w, size_t store, const struct weft_lease_answer *want,
                    const struct weft_lease_answer *got, size_t count)
{
    struct weft_buf wanted, given;
    weft_buf_init(&wanted, TEXT_MAX);
    weft_buf_init(&given, TEXT_MAX);
    say_leases(want, count, &wanted);
    say_leases(got, count, &given);
    compare_text(w, w->store[store].name, wanted.data, given.data);
    weft_buf_done(&wanted);
    weft_buf_done(&given);
}

/* ---- Executions ------------------------------------------------------------------------------ */

static const char *or_dash(const char *text)
{
    return text ? text : "-";
}

/* The subject as describe() must show it; texts stay the model's. */
static struct weft_execution as_execution(const struct subject *x, struct weft_arena *arena)
{
    const struct weft_live *live = &x->live;
    bool progress = x->percent >= 0 && x->progress_epoch == live->epoch;
    struct weft_execution out = {
        .ns = "default",
        .lane = x->spec.lane,
        .kind = x->spec.kind,
        .state = live->state,
        .priority = live->priority,
        .attempt = live->attempt,
        .epoch = live->epoch,
        .lost = live->lost,
        .tenant = *x->spec.tenant ? x->spec.tenant : NULL,
        .key = x->spec.key,
        .worker = live->worker ? worker_name[live->worker] : NULL,
        .reason = x->story.reason,
        .by = x->story.by,
        .error_class = x->story.error_class,
        .error_message = x->story.error_message,
        .percent = progress ? x->percent : -1,
        .note = progress ? x->note : NULL,
        .created_us = x->created_us,
        .started_us = live->started_us,
        .claimed_us = live->claimed_us,
        .finished_us = x->finished_us,
        .run_at_us = live->state == WEFT_STATE_DELAYED ? live->due_us : 0,
        .deadline_us = live->deadline_us,
        .lease_expires_us = live->state == WEFT_STATE_RUNNING ? live->due_us : 0,
    };
    out.tags = weft_tags_parse(x->spec.tags, arena, &out.tag_count);
    out.capabilities = weft_capset_split(x->spec.needs, arena, &out.capability_count);
    return out;
}

static void say_execution(size_t number, const struct weft_execution *x, struct weft_buf *out)
{
    if (x->state == WEFT_STATE_NONE) {
        weft_buf_printf(out, "#%zu is not there\n", number);
        return;
    }
    weft_buf_printf(out, "#%zu %s %s/%s/%s pri=%d attempt=%d epoch=%d lost=%d tenant=%s key=%s",
                    number, weft_state_name(x->state), x->ns, x->lane, x->kind, x->priority,
                    x->attempt, x->epoch, x->lost, or_dash(x->tenant), or_dash(x->key));
    weft_buf_printf(out, " worker=%s reason=%s by=%s class=%s message=%s percent=%d note=%s",
                    or_dash(x->worker), or_dash(x->reason), or_dash(x->by), or_dash(x->error_class),
                    or_dash(x->error_message), x->percent, or_dash(x->note));
    const struct {
        const char *name;
        weft_usec moment_us;
    } moment[] = {{"created", x->created_us},    {"started", x->started_us},
                  {"claimed", x->claimed_us},    {"finished", x->finished_us},
                  {"run_at", x->run_at_us},      {"deadline", x->deadline_us},
                  {"lease", x->lease_expires_us}};
    for (size_t i = 0; i < WEFT_LEN(moment); i++)
        weft_buf_printf(out, " %s=%" PRId64, moment[i].name, moment[i].moment_us);
    for (size_t i = 0; i < x->tag_count; i++)
        weft_buf_printf(out, " tag:%s=%s", x->tags[i].key, x->tags[i].value);
    for (size_t i = 0; i < x->capability_count; i++)
        weft_buf_printf(out, " can:%s", x->capabilities[i]);
    weft_buf_add_text(out, "\n");
}

/* ---- Attempts -------------------------------------------------------------------------------- */

static void say_attempt(size_t number, const struct weft_attempt *a, struct weft_buf *out)
{
    weft_buf_printf(out,
                    "#%zu epoch=%d attempt=%d worker=%s %s class=%s message=%s started=%" PRId64
                    " ended=%" PRId64 " run_at=%" PRId64 "\n",
                    number, a->epoch, a->attempt, or_dash(a->worker), a->ended,
                    or_dash(a->error_class), or_dash(a->error_message), a->started_us, a->ended_us,
                    a->run_at_us);
}

static void say_past(size_t number, const struct past *past, struct weft_buf *out)
{
    const struct weft_attempt attempt = {
        .epoch = past->epoch,
        .attempt = past->attempt,
        .worker = past->worker ? worker_name[past->worker] : NULL,
        .ended = weft_ended_name(past->ended),
        .error_class = past->error_class,
        .error_message = past->error_message,
        .started_us = past->claimed_us,
        .ended_us = past->ended_us,
        .run_at_us = past->run_at_us,
    };
    say_attempt(number, &attempt, out);
}

/* The past grows in the order of epochs, and of replays within one: it is as the store lists it. */
static void say_history(const struct subject *x, struct weft_buf *out)
{
    for (size_t i = 0; i < x->past_count; i++)
        say_past(x->number, &x->past[i], out);
    if (x->held)
        say_past(x->number,
                 &(struct past){.epoch = x->live.epoch,
                                .attempt = x->live.attempt,
                                .worker = x->live.worker,
                                .ended = x->ended,
                                .claimed_us = x->live.claimed_us,
                                .ended_us = x->finished_us,
                                .error_class = x->story.error_class,
                                .error_message = x->story.error_message},
                 out);
    weft_buf_printf(out, "#%zu result=%s\n", x->number, or_dash(x->result));
}

static void read_history(struct world *w, size_t store, const struct subject *x,
                         struct weft_arena *arena, struct weft_buf *out)
{
    struct weft_attempts attempts = {0};
    struct weft_bytes bytes = {0};
    struct weft_err err = {0};
    struct weft_engine *reader = w->store[store].reader;
    broken_call(w, store,
                weft_engine_attempts(reader, "default", &x->id[store], arena, &attempts, &err),
                &err);
    for (size_t i = 0; i < attempts.count; i++)
        say_attempt(x->number, &attempts.item[i], out);
    const struct weft_bytes_of of = {
        .kind = WEFT_BYTES_RESULT, .ns = "default", .id = x->id[store]};
    enum weft_rc rc = weft_engine_bytes(reader, &of, arena, &bytes, &err);
    if (rc && rc != WEFT_NOT_FOUND)
        broken_call(w, store, rc, &err);
    weft_buf_printf(out, "#%zu result=%.*s\n", x->number, rc ? 1 : (int)bytes.size,
                    rc ? "-" : (const char *)bytes.data);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void read_store(struct world *w, size_t store, bool all, struct weft_buf *out)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_execution *item = weft_new_array(arena, struct weft_execution, w->subjects + 1);
    struct weft_id *id = weft_new_array(arena, struct weft_id, w->subjects + 1);
    struct weft_err err = {0};
    for (size_t i = 0; i < w->subjects; i++)
        id[i] = w->subject[i]->id[store];
    enum weft_rc rc =
        weft_engine_describe(w->store[store].reader, "default", id, w->subjects, arena, item, &err);
    broken_call(w, store, rc, &err);
    for (size_t i = 0; i < w->subjects && !rc; i++)
        say_execution(w->subject[i]->number, &item[i], out);
    for (size_t i = 0; i < w->subjects && !rc; i++)
        if (all || w->subject[i]->touched)
            read_history(w, store, w->subject[i], arena, out);
    weft_arena_free(arena);
}

void compare_state(struct world *w, bool all)
{
    struct weft_buf want, got;
    struct weft_arena *arena = weft_arena_new();
    weft_buf_init(&want, TEXT_MAX);
    for (size_t i = 0; i < w->subjects; i++) {
        const struct weft_execution x = as_execution(w->subject[i], arena);
        say_execution(w->subject[i]->number, &x, &want);
    }
    for (size_t i = 0; i < w->subjects; i++)
        if (all || w->subject[i]->touched)
            say_history(w->subject[i], &want);
    for (size_t s = 0; s < w->stores && !w->failed; s++) {
        weft_buf_init(&got, TEXT_MAX);
        read_store(w, s, all, &got);
        compare_text(w, w->store[s].name, want.data, got.data);
        weft_buf_done(&got);
    }
    for (size_t i = 0; i < w->subjects; i++)
        w->subject[i]->touched = false;
    weft_buf_done(&want);
    weft_arena_free(arena);
}
