/* SPDX-License-Identifier: Apache-2.0 */

/* Runs the command for one execution; how it ends decides the outcome of the execution. */

#include "base/clock.h"
#include "base/moment.h"
#include "base/str.h"
#include "cmd/cli/output.h"
#include "cmd/work/work.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
    SHORT_ID = 8,      /* the last letters: the first ones are the time and alike for all */
    NEAR_MAX_MS = 10,  /* how often a handler with nothing to do checks for work */
    SUMMARY_MAX = 120, /* bytes of a message in a status line */
};

struct task {
    struct weft_work *work;
    struct weft_job *job;
    char id[WEFT_ID_TEXT];
    struct weft_work_progress progress; /* the last line of it */
    bool progressed;                    /* it is not reported yet */
    struct weft_work_usage *usage;
    struct weft_suspend suspend; /* what the command asked for by its exit code */
    enum weft_rc suspend_rc;     /* whether it can be read */
    struct weft_err suspend_err;
};

/* The outcome, for the status line. */
struct outcome {
    enum weft_verdict verdict;
    const char *word, *color;
    const char *error_class; /* or NULL */
    const char *message;     /* or NULL */
    weft_usec took_us;
};

/* ---- The environment ------------------------------------------------------------------------- */

static const char *const own_names[] = {
    "WEFT_ID",           "WEFT_EPOCH",   "WEFT_ATTEMPT",     "WEFT_LANE",
    "WEFT_KIND",         "WEFT_TENANT",  "WEFT_DEADLINE_AT", "WEFT_CONTENT_TYPE",
    "WEFT_FLOW",         "WEFT_NODE",    "WEFT_UPSTREAM",    "WEFT_PROGRESS_FD",
    "WEFT_SUSPEND_FILE", "WEFT_SIGNALS", "WEFT_RESUMED",     "WEFT_USAGE_FILE",
};

/* True for variables that an outer `weft work` set for its own execution. */
static bool is_ours(const char *variable)
{
    size_t size = strcspn(variable, "=");
    for (size_t i = 0; i < WEFT_LEN(own_names); i++)
        if (strlen(own_names[i]) == size && memcmp(variable, own_names[i], size) == 0)
            return true;
    return strncmp(variable, "WEFT_TAG_", 9) == 0;
}

/* WEFT_TAG_ and the key in capitals, everything but letters and digits as an underscore. */
static const char *tag_variable(const struct weft_tag *tag, struct weft_arena *arena)
{
    size_t size = strlen(tag->key);
    char *name = weft_arena_dup(arena, tag->key, size + 1);
    for (size_t i = 0; i < size; i++) {
        unsigned char letter = (unsigned char)name[i]; /* ASCII: see weft.h */
        if (letter >= 'a' && letter <= 'z')
            name[i] = (char)(letter - 'a' + 'A');
        else if (!(letter >= '0' && letter <= '9') && !(letter >= 'A' && letter <= 'Z'))
            name[i] = '_';
    }
    return weft_arena_printf(arena, "WEFT_TAG_%s=%s", name, tag->value);
}

/* Variables with places in the directory of the command. Returns how many. */
static size_t add_places(const struct weft_claimed *claimed, const struct weft_work_dir *dir,
                         const char **env, struct weft_arena *arena)
{
    static const char *const by[] = {[WEFT_RESUMED_BY_SIGNALS] = "signals",
                                     [WEFT_RESUMED_BY_TIMEOUT] = "timeout",
                                     [WEFT_RESUMED_BY_OPERATOR] = "operator"};
    size_t count = 0;
    if (dir->upstream)
        env[count++] = weft_arena_printf(arena, "WEFT_UPSTREAM=%s", dir->upstream);
    if (dir->suspend)
        env[count++] = weft_arena_printf(arena, "WEFT_SUSPEND_FILE=%s", dir->suspend);
    if (dir->usage)
        env[count++] = weft_arena_printf(arena, "WEFT_USAGE_FILE=%s", dir->usage);
    if (dir->signals)
        env[count++] = weft_arena_printf(arena, "WEFT_SIGNALS=%s", dir->signals);
    if (claimed->resumed && (unsigned)claimed->resumed_by < WEFT_LEN(by) && by[claimed->resumed_by])
        env[count++] = weft_arena_printf(arena, "WEFT_RESUMED=%s", by[claimed->resumed_by]);
    return count;
}

/* Ends with NULL, in the arena. */
static const char *const *make_environment(const struct weft_claimed *claimed,
                                           const struct weft_work_dir *dir,
                                           struct weft_arena *arena)
{
    size_t given = 0, count = 0;
    while (environ[given])
        given++;
    const char **env =
        weft_new_array(arena, const char *, given + WEFT_LEN(own_names) + claimed->tag_count + 1);
    for (size_t i = 0; i < given; i++)
        if (!is_ours(environ[i]))
            env[count++] = environ[i];
    char id[WEFT_ID_TEXT], deadline[WEFT_MOMENT_TEXT];
    weft_id_print(&claimed->id, id);
    env[count++] = weft_arena_printf(arena, "WEFT_ID=%s", id);
    env[count++] = weft_arena_printf(arena, "WEFT_EPOCH=%d", claimed->epoch);
    env[count++] = weft_arena_printf(arena, "WEFT_ATTEMPT=%d", claimed->attempt);
    env[count++] = weft_arena_printf(arena, "WEFT_LANE=%s", claimed->lane);
    env[count++] = weft_arena_printf(arena, "WEFT_KIND=%s", claimed->kind);
    env[count++] = weft_arena_printf(arena, "WEFT_PROGRESS_FD=%d", WEFT_PROGRESS_FD);
    if (claimed->tenant)
        env[count++] = weft_arena_printf(arena, "WEFT_TENANT=%s", claimed->tenant);
    if (claimed->deadline_us) {
        weft_moment_print(claimed->deadline_us, deadline);
        env[count++] = weft_arena_printf(arena, "WEFT_DEADLINE_AT=%s", deadline);
    }
    if (claimed->content_type)
        env[count++] = weft_arena_printf(arena, "WEFT_CONTENT_TYPE=%s", claimed->content_type);
    if (claimed->node) {
        weft_id_print(&claimed->flow, id);
        env[count++] = weft_arena_printf(arena, "WEFT_FLOW=%s", id);
        env[count++] = weft_arena_printf(arena, "WEFT_NODE=%s", claimed->node);
    }
    count += add_places(claimed, dir, env + count, arena);
    for (size_t i = 0; i < claimed->tag_count; i++)
        env[count++] = tag_variable(&claimed->tags[i], arena);
    return env;
}

/* JSON without the white space around it; anything else as it is. */
static void give_result(struct weft_job *job, const struct weft_buf *output)
{
    struct weft_json value;
    struct weft_err err;
    if (output->size == 0)
        return;
    if (weft_json_check(output->data, output->size, &value, &err) == WEFT_OK)
        weft_job_result(job, value.text, value.size, "application/json");
    else
        weft_job_result(job, output->data, output->size,
                        weft_utf8_valid(output->data, output->size) ? "text/plain; charset=utf-8"
                                                                    : "application/octet-stream");
}

/* ---- While it runs --------------------------------------------------------------------------- */

static void pass_line(void *context, const char *text, size_t size)
{
    struct task *task = context;
    const char *end = task->id + strlen(task->id) - SHORT_ID;
    pthread_mutex_lock(&task->work->lock);
    (void)fprintf(stderr, "%s: ", end);
    (void)fwrite(text, 1, size, stderr);
    (void)fputc('\n', stderr);
    pthread_mutex_unlock(&task->work->lock);
}

bool weft_work_progress_read(const char *text, size_t size, struct weft_work_progress *ret_progress)
{
    size_t at = 0, digits = 0;
    int32_t percent = 0;
    while (size > 0 && strchr(" \t\r", text[size - 1]))
        size--;
    while (at < size && (text[at] == ' ' || text[at] == '\t'))
        at++;
    for (; at < size && text[at] >= '0' && text[at] <= '9' && digits < 4; at++, digits++)
        percent = 10 * percent + (text[at] - '0');
    if (digits > 0 && at < size && text[at] == '.') /* a fraction is cut */
        for (at++; at < size && text[at] >= '0' && text[at] <= '9';)
            at++;
    if (digits > 0 && at < size && text[at] == '%')
        at++;
    if (digits == 0 || percent > 100 || (at < size && text[at] != ' ' && text[at] != '\t'))
        return false;
    while (at < size && (text[at] == ' ' || text[at] == '\t'))
        at++;
    ret_progress->percent = percent;
    size_t left = size - at, most = sizeof(ret_progress->note) - 1;
    if (left > most)
        left = weft_utf8_cut(text + at, left, most);
    memcpy(ret_progress->note, text + at, left);
    ret_progress->note[left] = '\0';
    return true;
}

/* Only the last line counts: wish() reports it, some times a second. */
static void take_progress(void *context, const char *text, size_t size)
{
    struct task *task = context;
    if (weft_work_progress_read(text, size, &task->progress)) {
        task->progressed = true;
    } else if (size > 0 && !atomic_exchange(&task->work->warned, true)) {
        static const char warning[] =
            "weft: a line of progress was ignored, it must be PERCENT [NOTE]; "
            "further ones are without a word";
        pass_line(context, warning, sizeof(warning) - 1);
    }
}

static enum weft_child_wish wish(void *context)
{
    struct task *task = context;
    struct weft_work *work = task->work;
    if (task->progressed)
        weft_job_progress(task->job, task->progress.percent,
                          task->progress.note[0] ? task->progress.note : NULL);
    task->progressed = false;
    weft_work_usage_look(task->usage);
    int stop = atomic_load(&work->stop);
    if (stop >= WEFT_WORK_QUITS)
        return WEFT_CHILD_KILL;
    if (stop == WEFT_WORK_HURRIES || weft_job_fence(task->job) != WEFT_FENCE_NONE)
        return WEFT_CHILD_STOP;
    return weft_boot_us() >= atomic_load(&work->term_us) ? WEFT_CHILD_STOP : WEFT_CHILD_GO_ON;
}

/* ---- How it ended ---------------------------------------------------------------------------- */

static const char *class_of(const struct weft_child_end *end, struct weft_arena *arena)
{
    if (end->too_large)
        return "output_too_large";
    if (end->signal) {
        const char *name = sigabbrev_np(end->signal);
        return name ? weft_arena_printf(arena, "signal_%s", name)
                    : weft_arena_printf(arena, "signal_%d", end->signal);
    }
    return weft_arena_printf(arena, "exit_%d", end->exit_code);
}

static const char *message_of(const struct weft_child_end *end, struct weft_arena *arena)
{
    if (end->too_large)
        return weft_arena_printf(arena,
                                 "the command wrote more than %d bytes to its output, which is the "
                                 "most that a result may have: put large results into a file or a "
                                 "store of objects and print where they are",
                                 WEFT_PAYLOAD_MAX);
    if (end->tail[0])
        return end->tail;
    if (end->signal)
        return weft_arena_printf(arena, "the command was killed by signal %d (%s)", end->signal,
                                 sigdescr_np(end->signal));
    return weft_arena_printf(arena, "the command ended with exit code %d", end->exit_code);
}

static struct outcome judge_suspend(struct task *task, struct weft_arena *arena)
{
    if (!task->suspend_rc) {
        weft_job_suspend(task->job, &task->suspend);
        return (struct outcome){WEFT_SUSPEND, "suspended", "36", NULL, task->suspend.reason, 0};
    }
    const char *message = weft_arena_printf(
        arena, "the command ended with exit code %d, but its request in WEFT_SUSPEND_FILE %s",
        WEFT_WORK_EXIT_SUSPEND, task->suspend_err.text);
    weft_job_error(task->job, "bad_suspend", message);
    return (struct outcome){WEFT_RETRY, "fail", "31", "bad_suspend", message, 0};
}

static struct outcome judge(struct task *task, const struct weft_child_end *end,
                            struct weft_arena *arena)
{
    struct weft_job *job = task->job;
    enum weft_fence fence = weft_job_fence(job);
    if (fence != WEFT_FENCE_NONE) /* the lease is gone: no outcome is accepted */
        return (struct outcome){WEFT_NOT_NOW, "lost", "33", weft_fence_name(fence), NULL, 0};
    if (end->exit_code == 0 && !end->too_large) {
        give_result(job, &end->output);
        return (struct outcome){WEFT_DONE, "done", "32", NULL, NULL, 0};
    }
    if (end->exit_code == WEFT_WORK_EXIT_SUSPEND && !end->too_large)
        return judge_suspend(task, arena);
    if (end->stopped &&
        !end->too_large) { /* not its fault: it costs no attempt and is ready again at once */
        weft_job_delay(job, 0);
        return (struct outcome){WEFT_NOT_NOW, "back", "33", NULL, NULL, 0};
    }
    if (end->exit_code == WEFT_WORK_EXIT_LATER && !end->too_large) {
        weft_job_delay(job, task->work->later_ms);
        return (struct outcome){
            WEFT_NOT_NOW, "later", "33", NULL, end->tail[0] ? end->tail : NULL, 0};
    }
    struct outcome out = {.verdict = WEFT_RETRY,
                          .word = "fail",
                          .color = "31",
                          .error_class = class_of(end, arena),
                          .message = message_of(end, arena)};
    /* Another attempt would print as much. */
    if (end->exit_code == WEFT_WORK_EXIT_GIVE_UP || end->too_large) {
        out.verdict = WEFT_GIVE_UP;
        out.word = "quit";
    }
    weft_job_error(job, out.error_class, out.message);
    return out;
}

/* ---- The status line ------------------------------------------------------------------------- */

static void put_json(const struct task *task, const struct outcome *out)
{
    const struct weft_claimed *claimed = weft_job_claimed(task->job);
    struct weft_json_out line;
    weft_json_out_begin_object(&line);
    struct weft_json_writer *json = &line.json;
    weft_json_add_text(json, "outcome", out->word);
    weft_json_add_text(json, "id", task->id);
    weft_json_add_text(json, "lane", claimed->lane);
    weft_json_add_text(json, "kind", claimed->kind);
    weft_json_add_i64(json, "attempt", claimed->attempt);
    weft_json_add_text(json, "class", out->error_class);
    weft_json_add_text(json, "message", out->message);
    weft_json_add_i64(json, "took_ms", out->took_us / WEFT_MS);
    weft_json_out_end_object(&line);
}

/* The last line of a message, cut and without control characters. */
static void put_summary(const char *message)
{
    char line[WEFT_CHILD_TAIL + 1];
    weft_last_line(message, line, sizeof(line));
    line[weft_utf8_cut(line, strlen(line), SUMMARY_MAX)] = '\0';
    printf(": ");
    weft_put_clean(stdout, line);
}

static void put_status(const struct task *task, const struct outcome *out)
{
    pthread_mutex_lock(&task->work->lock);
    if (task->work->json) {
        put_json(task, out);
    } else {
        char word[16];
        (void)snprintf(word, sizeof(word), "%-5s", out->word);
        weft_put_painted(task->work->color ? out->color : NULL, word);
        printf(" %s %s %.1f s", task->id, weft_job_claimed(task->job)->kind,
               (double)out->took_us / 1e6);
        if (out->error_class)
            printf(" %s", out->error_class);
        if (out->message)
            put_summary(out->message);
        printf("\n");
    }
    (void)fflush(stdout);
    pthread_mutex_unlock(&task->work->lock);
}

/* ---- The handler ----------------------------------------------------------------------------- */

/* More was claimed than --max allows: the handler waits for the stop and then returns the lease. */
static enum weft_verdict give_back(struct weft_job *job)
{
    while (!weft_job_stopping(job))
        (void)poll(NULL, 0, NEAR_MAX_MS);
    weft_job_delay(job, 0);
    return WEFT_NOT_NOW;
}

static enum weft_rc run_command(struct task *task, struct weft_arena *arena,
                                struct weft_child_end *ret_end, struct weft_err *err)
{
    const struct weft_work *work = task->work;
    const struct weft_claimed *claimed = weft_job_claimed(task->job);
    struct weft_work_dir dir;
    enum weft_rc rc = weft_work_dir_make(work->weft, claimed, arena, &dir, err);
    if (rc)
        return rc;
    const struct weft_child child = {.path = work->path,
                                     .argv = work->argv,
                                     .envp = make_environment(claimed, &dir, arena),
                                     .input = claimed->payload,
                                     .input_size = claimed->payload_size,
                                     .output_max = WEFT_PAYLOAD_MAX,
                                     .kill_after_ms = work->kill_after_ms,
                                     .wish = wish,
                                     .line = pass_line,
                                     .progress = take_progress,
                                     .context = task,
                                     .guard = work->guard};
    task->usage = weft_work_usage_new(task->work, task->job, dir.usage, pass_line, task);
    rc = weft_child_run(&child, ret_end, err);
    weft_work_usage_end(task->usage);
    if (!rc && ret_end->exit_code == WEFT_WORK_EXIT_SUSPEND)
        task->suspend_rc = weft_work_suspend_read(work->weft, claimed, dir.suspend, arena,
                                                  &task->suspend, &task->suspend_err);
    weft_work_dir_remove(&dir);
    return rc;
}

enum weft_verdict weft_work_task(struct weft_job *job, void *context)
{
    struct weft_work *work = context;
    if (work->max && atomic_fetch_add(&work->begun, 1) >= work->max)
        return give_back(job);
    const struct weft_claimed *claimed = weft_job_claimed(job);
    struct task task = {.work = work, .job = job};
    weft_id_print(&claimed->id, task.id);
    struct weft_arena *arena = weft_arena_new();
    struct weft_child_end end = {0};
    struct weft_err err;
    weft_usec begun_us = weft_boot_us();
    struct outcome out;
    if (run_command(&task, arena, &end, &err)) { /* no fault of the execution */
        weft_job_delay(job, work->later_ms);
        out = (struct outcome){WEFT_NOT_NOW, "later", "33", "not_started", err.text, 0};
    } else {
        out = judge(&task, &end, arena);
    }
    out.took_us = weft_boot_us() - begun_us;
    put_status(&task, &out);
    weft_child_end_done(&end);
    weft_arena_free(arena);
    atomic_fetch_add(&work->ended, 1);
    return out.verdict;
}
