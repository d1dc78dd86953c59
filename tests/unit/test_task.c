/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What becomes of an execution when a command is run for it. The command is sh, and its payload is
 * the script.
 */

#include "worker_fixture.h"

#include "base/clock.h"
#include "base/limits.h"
#include "cmd/work/work.h"
#include "weft/weft.h"

#include <poll.h>
#include <signal.h>

static const char *const sh[] = {"sh", NULL};

static void work_init(struct weft_work *work)
{
    *work = (struct weft_work){.path = "/bin/sh",
                               .argv = sh,
                               .kill_after_ms = 100,
                               .later_ms = 3600000,
                               .term_us = WEFT_NEVER};
    pthread_mutex_init(&work->lock, NULL);
}

static struct weft_worker *begin(struct world *w, struct weft_work *work, int64_t lease_ms)
{
    struct weft_worker *worker =
        make_worker(w, w->weft, &(struct weft_worker_options){.threads = 4, .lease_ms = lease_ms});
    ok(weft_worker_on(worker, "sh", weft_work_task, work, &w->err) == WEFT_OK, "has its command");
    start(w, worker);
    return worker;
}

static bool wait_ended(struct weft_work *work, uint64_t want)
{
    weft_usec until_us = weft_boot_us() + PATIENCE_MS * WEFT_MS;
    while (atomic_load(&work->ended) < want && weft_boot_us() < until_us)
        (void)poll(NULL, 0, 5);
    return atomic_load(&work->ended) >= want;
}

/* A lease is not enough: an execution that was claimed and not begun goes back at once. */
static bool wait_running(const struct weft_worker *worker)
{
    struct weft_worker_stats stats = {0};
    weft_usec until_us = weft_boot_us() + PATIENCE_MS * WEFT_MS;
    do {
        (void)poll(NULL, 0, 5);
        weft_worker_stats(worker, &stats);
    } while (stats.running == 0 && weft_boot_us() < until_us);
    return stats.running > 0;
}

static struct weft_id submit_script(struct world *w, const char *script)
{
    static const struct weft_policy policy = {.max_attempts = 1};
    static const struct weft_tag tag = {.key = "color.of-it", .value = "very red"};
    return submit(w, &(struct weft_spec){.kind = "sh",
                                         .payload = script,
                                         .payload_size = strlen(script),
                                         .content_type = "text/x-shellscript",
                                         .tenant = "acme",
                                         .tags = &tag,
                                         .tag_count = 1,
                                         .policy = &policy});
}

/* ---- How commands end ------------------------------------------------------------------------ */

static const struct {
    const char *script;
    enum weft_state state;
    const char *type, *result;       /* NULL: there is none */
    const char *error_class, *error; /* NULL: any */
} row[] = {
    {"echo ' {\"a\": 1} '", WEFT_STATE_SUCCEEDED, "application/json", "{\"a\": 1}", NULL, NULL},
    {"echo hello", WEFT_STATE_SUCCEEDED, "text/plain; charset=utf-8", "hello\n", NULL, NULL},
    {"printf 'a\\377'", WEFT_STATE_SUCCEEDED, "application/octet-stream", "a\377", NULL, NULL},
    {"true", WEFT_STATE_SUCCEEDED, NULL, NULL, NULL, NULL},
    {"echo $WEFT_LANE $WEFT_KIND $WEFT_ATTEMPT $WEFT_EPOCH $WEFT_TENANT", WEFT_STATE_SUCCEEDED,
     "text/plain; charset=utf-8", "default sh 1 1 acme\n", NULL, NULL},
    {"echo $WEFT_TAG_COLOR_OF_IT, $WEFT_CONTENT_TYPE, $WEFT_DEADLINE_AT", WEFT_STATE_SUCCEEDED,
     "text/plain; charset=utf-8", "very red, text/x-shellscript,\n", NULL, NULL},
    {"echo oops >&2; echo ignored; exit 3", WEFT_STATE_FAILED, NULL, NULL, "exit_3", "oops"},
    {"exit 4", WEFT_STATE_FAILED, NULL, NULL, "exit_4", "the command ended with exit code 4"},
    {"exit 65", WEFT_STATE_FAILED, NULL, NULL, "exit_65", NULL},
    {"kill -KILL $$", WEFT_STATE_FAILED, NULL, NULL, "signal_KILL", NULL},
    {"head -c 2000000 /dev/zero", WEFT_STATE_FAILED, NULL, NULL, "output_too_large",
     "the command wrote more than 1048576 bytes to its output, which is the most that a result may "
     "have: put large results into a file or a store of objects and print where they are"},
    {"exit 75", WEFT_STATE_DELAYED, NULL, NULL, NULL, NULL},
};

static void check_row(struct world *w, size_t i, const struct weft_id *id)
{
    struct weft_execution found = describe(w, id);
    is_str(weft_state_name(found.state), weft_state_name(row[i].state), "%s: state", row[i].script);
    if (row[i].error_class)
        is_str(found.error_class, row[i].error_class, "%s: class", row[i].script);
    if (row[i].error)
        is_str(found.error_message, row[i].error, "%s: message", row[i].script);
    struct weft_bytes bytes = {0};
    enum weft_rc rc = weft_result(w->weft, id, &bytes, &w->err);
    if (!row[i].result) {
        is_int(rc, WEFT_NOT_FOUND, "%s: no result", row[i].script);
        return;
    }
    ok(rc == WEFT_OK && bytes.size == strlen(row[i].result) &&
           memcmp(bytes.data, row[i].result, bytes.size) == 0,
       "%s: result", row[i].script);
    is_str(bytes.content_type, row[i].type, "%s: content type", row[i].script);
    weft_bytes_free(&bytes);
}

static void test_ends(struct world *w)
{
    struct weft_work work;
    work_init(&work);
    struct weft_id id[WEFT_LEN(row)];
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        id[i] = submit_script(w, row[i].script);
    struct weft_worker *worker = begin(w, &work, 0);
    ok(wait_ended(&work, WEFT_LEN(row)), "all commands have ended");
    is_int(weft_worker_stop(worker), 0, "the worker stops");
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        check_row(w, i, &id[i]);
    weft_worker_free(worker);
}

/* Exit code 65 and too much output end it although attempts are left, 75 spends none. */
static void test_attempts(struct world *w)
{
    struct weft_work work;
    work_init(&work);
    static const char flood[] = "head -c 2000000 /dev/zero; exit 75";
    struct weft_id large = submit(w, &(struct weft_spec){.kind = "sh",
                                                         .payload = flood,
                                                         .payload_size = sizeof(flood) - 1,
                                                         .content_type = "text/plain"});
    struct weft_id hopeless = submit(w, &(struct weft_spec){.kind = "sh",
                                                            .payload = "exit 65",
                                                            .payload_size = 7,
                                                            .content_type = "text/plain"});
    struct weft_id fails =
        submit(w, &(struct weft_spec){.kind = "sh",
                                      .payload = "[ $WEFT_ATTEMPT -eq 3 ]",
                                      .payload_size = 23,
                                      .content_type = "text/plain",
                                      .policy = &(struct weft_policy){.initial_ms = -1}});
    work.later_ms = 0;
    const char *again = "[ $WEFT_EPOCH -eq 4 ] && echo $WEFT_ATTEMPT || exit 75";
    struct weft_id later = submit_script(w, again);
    struct weft_worker *worker = begin(w, &work, 0);
    ok(wait_ended(&work, 1 + 1 + 3 + 4), "all attempts are made");
    is_int(weft_worker_stop(worker), 0, "the worker stops");
    is_int(describe(w, &hopeless).state, WEFT_STATE_FAILED, "exit code 65 fails the execution");
    is_int(describe(w, &hopeless).attempt, 1, "of the first attempt");
    is_int(describe(w, &large).state, WEFT_STATE_FAILED, "too much output is the end");
    is_str(describe(w, &large).error_class, "output_too_large", "with its class");
    is_int(describe(w, &large).attempt, 1, "of the first attempt");
    is_int(describe(w, &fails).state, WEFT_STATE_SUCCEEDED, "failures are tried again");
    is_int(describe(w, &fails).attempt, 3, "two failures take three attempts");
    is_int(describe(w, &later).state, WEFT_STATE_SUCCEEDED,
           "an execution with exit code 75 comes back");
    struct weft_bytes bytes = {0};
    ok(weft_result(w->weft, &later, &bytes, &w->err) == WEFT_OK && bytes.size >= 1 &&
           *(const char *)bytes.data == '1',
       "in the same attempt");
    weft_bytes_free(&bytes);
    weft_worker_free(worker);
}

/* ---- Progress -------------------------------------------------------------------------------- */

static void test_progress_lines(void)
{
    static const struct {
        const char *line;
        int32_t percent; /* -1: refused */
        const char *note;
    } line[] = {
        {"0", 0, ""},
        {"100", 100, ""},
        {"40 half way", 40, "half way"},
        {"  7\tseven \t\r", 7, "seven"},
        {"12.9% of it", 12, "of it"},
        {"99%", 99, ""},
        {"5.", 5, ""},
        {"101", -1, ""},
        {"10000000000000000000", -1, ""},
        {"-1", -1, ""},
        {"half", -1, ""},
        {"50x", -1, ""},
        {"50%%", -1, ""},
        {".5", -1, ""},
        {"%", -1, ""},
        {"", -1, ""},
    };
    for (size_t i = 0; i < WEFT_LEN(line); i++) {
        struct weft_work_progress got = {.percent = -1};
        bool read = weft_work_progress_read(line[i].line, strlen(line[i].line), &got);
        ok(read == (line[i].percent >= 0) && got.percent == line[i].percent &&
               strcmp(got.note, line[i].note) == 0,
           "'%s' is %d '%s'", line[i].line, got.percent, got.note);
    }
    static char text[2000] = "8 "; /* zero bytes behind */
    memset(text + 2, 'x', sizeof(text) - 2);
    struct weft_work_progress got;
    ok(weft_work_progress_read(text, sizeof(text), &got) && strlen(got.note) == WEFT_REASON_MAX,
       "a note that is too long is cut");
}

static void test_usage_lines(void)
{
    static const struct {
        const char *line, *name; /* NULL: it is no such line */
        int64_t total;
    } line[] = {
        {"tokens 12", "tokens", 12},
        {"  micro-dollars\t 7k \r", "micro-dollars", 7000},
        {"a.b_c 0", "a.b_c", 0},
        {"tokens 1000T", "tokens", 1000000000000000},
        {"tokens 1001T", NULL, 0},
        {"tokens -1", NULL, 0},
        {"tokens +1", NULL, 0},
        {"tokens 1.5", NULL, 0},
        {"tokens 1 2", NULL, 0},
        {"tokens many", NULL, 0},
        {"tokens", NULL, 0},
        {"12", NULL, 0},
        {"to/kens 12", NULL, 0},
        {"t\xc3\xb6kens 12", NULL, 0},
        {"tokens 00000000000000000000000000000000001", NULL, 0},
        {"", NULL, 0},
    };
    for (size_t i = 0; i < WEFT_LEN(line); i++) {
        struct weft_work_spent got = {.total = -1};
        bool read = weft_work_usage_read(line[i].line, strlen(line[i].line), &got);
        ok(read == (line[i].name != NULL) &&
               (!read || (got.total == line[i].total && strcmp(got.dimension, line[i].name) == 0)),
           "line %zu of usage is %s", i, read ? "taken" : "ignored");
    }
    struct weft_work_spent got;
    char text[WEFT_DIMENSION_NAME_MAX + 4];
    memset(text, 'x', WEFT_DIMENSION_NAME_MAX + 1);
    (void)snprintf(text + WEFT_DIMENSION_NAME_MAX, 4, " 12");
    ok(weft_work_usage_read(text, WEFT_DIMENSION_NAME_MAX + 3, &got), "a name of the longest kind");
    (void)snprintf(text + WEFT_DIMENSION_NAME_MAX, 4, "x 1");
    ok(!weft_work_usage_read(text, WEFT_DIMENSION_NAME_MAX + 3, &got), "a name that is too long");
    ok(!weft_work_usage_read("tok\0ens 12", 10, &got), "a name with a zero byte");
}

/* Heartbeats of this lease are twenty minutes apart: progress does not wait for one. */
static void test_progress(struct world *w)
{
    struct weft_work work;
    work_init(&work);
    static const char script[] =
        "echo nonsense >&3; echo \"40 half way\" >&$WEFT_PROGRESS_FD;"
        "exec tail -f /dev/null";
    struct weft_id id = submit_script(w, script);
    struct weft_worker *worker = begin(w, &work, 3600000);
    weft_usec until_us = weft_boot_us() + PATIENCE_MS * WEFT_MS;
    while (describe(w, &id).percent != 40 && weft_boot_us() < until_us)
        (void)poll(NULL, 0, 5);
    is_int(describe(w, &id).percent, 40, "the percentage is there while the command runs");
    is_str(describe(w, &id).note, "half way", "the note is there while the command runs");
    is_int(describe(w, &id).state, WEFT_STATE_RUNNING, "the command goes on");
    ok(atomic_load(&work.warned), "a line that is no progress was warned of");
    atomic_store(&work.stop, WEFT_WORK_QUITS);
    is_int(weft_worker_stop(worker), 0, "the worker stops");
    weft_worker_free(worker);
}

/* ---- Stopping -------------------------------------------------------------------------------- */

static const char stubborn[] = "trap '' TERM; exec tail -f /dev/null";

static bool wait_state(struct world *w, const struct weft_id *id, enum weft_state state)
{
    weft_usec until_us = weft_boot_us() + PATIENCE_MS * WEFT_MS;
    while (describe(w, id).state != state && weft_boot_us() < until_us)
        (void)poll(NULL, 0, 5);
    return describe(w, id).state == state;
}

static void test_cancel(struct world *w)
{
    struct weft_work work;
    work_init(&work);
    struct weft_id id = submit_script(w, stubborn);
    struct weft_worker *worker = begin(w, &work, 1000);
    ok(wait_state(w, &id, WEFT_STATE_RUNNING), "the execution runs");
    const struct weft_steer cancel = {.id = id};
    struct weft_steered steered;
    ok(weft_steer(w->weft, WEFT_STEER_CANCEL, &cancel, 1, &steered, &w->err) == WEFT_OK &&
           steered.err.rc == WEFT_OK,
       "the execution is cancelled");
    ok(wait_ended(&work, 1), "the command is ended, although it ignores SIGTERM");
    is_int(weft_worker_stop(worker), 0, "the worker stops");
    is_int(describe(w, &id).state, WEFT_STATE_CANCELLED, "the execution stays cancelled");
    weft_worker_free(worker);
}

/* A signal to the worker: commands may go on for the grace, then go back. */
static void test_stop(struct world *w)
{
    struct weft_work work;
    work_init(&work);
    struct weft_id id = submit_script(w, stubborn);
    struct weft_worker *worker = begin(w, &work, 0);
    ok(wait_running(worker), "the execution runs");
    atomic_store(&work.term_us, weft_boot_us() + 50 * WEFT_MS);
    atomic_store(&work.stop, WEFT_WORK_STOPS);
    is_int(weft_worker_stop(worker), 0, "the worker stops");
    ok(weft_boot_us() >= atomic_load(&work.term_us), "after the grace");
    struct weft_execution found = describe(w, &id);
    is_int(found.state, WEFT_STATE_READY, "the execution is ready again");
    weft_worker_free(worker);
}

/* No more than --max are run; executions claimed beyond that are given back. */
static void test_max(struct world *w)
{
    struct weft_work work;
    work_init(&work);
    work.max = 3;
    struct weft_id id[8];
    for (size_t i = 0; i < WEFT_LEN(id); i++)
        id[i] = submit_script(w, "true");
    struct weft_worker *worker = begin(w, &work, 0);
    ok(wait_ended(&work, 3), "three are run");
    is_int(weft_worker_stop(worker), 0, "the worker stops");
    size_t done = 0, ready = 0;
    for (size_t i = 0; i < WEFT_LEN(id); i++) {
        enum weft_state state = describe(w, &id[i]).state;
        done += state == WEFT_STATE_SUCCEEDED;
        ready += state == WEFT_STATE_READY;
    }
    is_int(done, 3, "no more than three");
    is_int(ready, 5, "the others are as they were");
    weft_worker_free(worker);
}

/* A command that cannot be started is no failure of the execution. */
static void test_vanished(struct world *w)
{
    struct weft_work work;
    work_init(&work);
    work.path = "/no/such/command";
    struct weft_id id = submit_script(w, "true");
    struct weft_worker *worker = begin(w, &work, 0);
    ok(wait_ended(&work, 1), "the execution is tried");
    is_int(weft_worker_stop(worker), 0, "the worker stops");
    is_int(describe(w, &id).state, WEFT_STATE_DELAYED, "the execution is delayed");
    weft_worker_free(worker);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    static void (*const test[])(struct world *) = {
        test_ends, test_attempts, test_progress, test_cancel, test_stop, test_max, test_vanished};
    test_progress_lines();
    test_usage_lines();
    for (size_t i = 0; i < WEFT_LEN(test); i++) {
        struct world w;
        world_init(&w, "sqlite");
        test[i](&w);
        (void)describe(&w, NULL);
        world_done(&w);
    }
    return tap_done();
}
