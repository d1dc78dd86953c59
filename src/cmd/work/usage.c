/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What commands spend. A command writes totals to a file, some times a second it is looked at, and
 * what has changed is reported.
 *
 * A report may take long, because a server may hang, and meanwhile the command wants its pipes
 * served and its signals passed on: so a thread makes the reports, which is started by the first
 * change that is seen. Commands that report nothing, or end within a second, have none. The last
 * report is made by the handler, which has nothing else to do then.
 *
 * The lock guards what the two share. It is a leaf, and no store is called under it.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"
#include "cmd/cli/text.h"
#include "cmd/work/work.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOOK_US = WEFT_SECOND,
    FILE_MAX = 65536, /* bytes at the end of the file that are read */
    RETRY_MS = 200,
    WARNING_MAX = 512,
    SHOWN_MAX = 60, /* of a line in a warning */
};

struct totals {
    struct weft_work_spent item[WEFT_BUDGET_DIMENSIONS_MAX];
    size_t count;
};

struct weft_work_usage {
    struct weft_work *work;
    struct weft_job *job;
    const char *path; /* borrowed */
    weft_line_fn *say;
    void *context;

    /* The handler's. */
    weft_usec look_us; /* when to look at the file again */
    struct stat seen;  /* the file as it was read last */
    struct totals totals;
    bool started; /* there is a reporter */
    pthread_t reporter;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Shared. */
    struct totals wanted; /* what is to be reported */
    bool pending;         /* the reporter has not begun to report it */
    enum weft_rc rc;      /* of the last report */
    bool ending;

    enum weft_rc said; /* the reporter's, then the handler's: the failure that was said last */
};

/* ---- Lines ----------------------------------------------------------------------------------- */

bool weft_work_usage_read(const char *text, size_t size, struct weft_work_spent *ret_spent)
{
    static const char space[] = " \t\r";
    const char *end = text + size, *name, *number;
    char digits[32] = "";
    while (end > text && strchr(space, end[-1]))
        end--;
    while (text < end && strchr(space, *text))
        text++;
    for (name = text; text < end && !strchr(space, *text);)
        text++;
    size_t name_size = (size_t)(text - name);
    while (text < end && strchr(space, *text))
        text++;
    number = text;
    size_t number_size = (size_t)(end - number);
    if (name_size == 0 || name_size >= sizeof(ret_spent->dimension) || number_size == 0 ||
        number_size >= sizeof(digits) || memchr(name, '\0', (size_t)(end - name)))
        return false;
    memcpy(ret_spent->dimension, name, name_size);
    ret_spent->dimension[name_size] = '\0';
    memcpy(digits, number, number_size);
    if (!weft_amount_typed(digits, &ret_spent->total))
        return false;
    const struct weft_amount amount = {ret_spent->dimension, ret_spent->total};
    return weft_amounts_check(&amount, 1, "totals", NULL) == WEFT_OK;
}

/* The first bad line of all commands is warned of. */
static void warn(const struct weft_work_usage *usage, const char *why, const char *line,
                 size_t size)
{
    char text[WARNING_MAX], shown[SHOWN_MAX + 1] = "";
    if (atomic_exchange(&usage->work->usage_warned, true))
        return;
    for (size_t i = 0; i < size && i < SHOWN_MAX; i++)
        shown[i] = (char)(line[i] >= ' ' && line[i] <= '~' ? line[i] : '?');
    int length = snprintf(text, sizeof(text),
                          "weft: a line of WEFT_USAGE_FILE was ignored, %s: '%s'; further ones are "
                          "without a word",
                          why, shown);
    usage->say(usage->context, text, (size_t)length);
}

static void take_line(struct weft_work_usage *usage, const char *line, size_t size)
{
    struct weft_work_spent spent;
    struct totals *totals = &usage->totals;
    if (strspn(line, " \t\r") >= size)
        return;
    if (!weft_work_usage_read(line, size, &spent)) {
        warn(usage, "it must be NAME NUMBER", line, size);
        return;
    }
    size_t i = 0;
    while (i < totals->count && strcmp(totals->item[i].dimension, spent.dimension) != 0)
        i++;
    if (i == WEFT_BUDGET_DIMENSIONS_MAX) {
        warn(usage, "there are more than 16 names", line, size);
        return;
    }
    totals->item[i] = spent;
    totals->count += i == totals->count;
}

/* ---- The file -------------------------------------------------------------------------------- */

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The end of the file, with a NUL behind it, owned by the caller; NULL: there is nothing to read.
 * A command may have put anything there. */
static char *read_tail(const char *path, size_t *ret_size, bool *ret_cut)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        (void)close(fd);
        return NULL;
    }
    *ret_cut = info.st_size > FILE_MAX;
    if (*ret_cut)
        (void)lseek(fd, -FILE_MAX, SEEK_END);
    char *text = weft_alloc(FILE_MAX + 1, 1);
    size_t size = 0;
    ssize_t got;
    do {
        got = read(fd, text + size, FILE_MAX - size);
        size += got > 0 ? (size_t)got : 0;
    } while (size < FILE_MAX && (got > 0 || (got < 0 && errno == EINTR)));
    (void)close(fd);
    *ret_size = size;
    return text;
}

/*
 * Takes the lines in; the last line of a name counts. ended: the command writes no more, so a last
 * line without a newline is whole.
 */
static void read_file(struct weft_work_usage *usage, bool ended)
{
    size_t size = 0;
    bool cut = false;
    char *text = read_tail(usage->path, &size, &cut);
    if (!text)
        return;
    const char *at = text, *end = text + size, *newline;
    if (cut) { /* in the middle of a line */
        newline = memchr(at, '\n', size);
        at = newline ? newline + 1 : end;
    }
    while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
        take_line(usage, at, (size_t)(newline - at));
        at = newline + 1;
    }
    if (ended && at < end)
        take_line(usage, at, (size_t)(end - at));
    free(text);
}

static bool same_totals(const struct totals *a, const struct totals *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; i < a->count && same; i++)
        same = strcmp(a->item[i].dimension, b->item[i].dimension) == 0 &&
               a->item[i].total == b->item[i].total;
    return same;
}

/* ---- Reports --------------------------------------------------------------------------------- */

static enum weft_rc report(struct weft_work_usage *usage, const struct totals *totals,
                           struct weft_err *err)
{
    struct weft_amount amount[WEFT_BUDGET_DIMENSIONS_MAX];
    for (size_t i = 0; i < totals->count; i++)
        amount[i] = (struct weft_amount){totals->item[i].dimension, totals->item[i].total};
    return weft_job_usage(usage->job, amount, totals->count, err);
}

/* Says why a report was not recorded, once for each command and reason. The status line says that
 * a lease is gone. */
static void complain(struct weft_work_usage *usage, const struct weft_err *err)
{
    char text[WARNING_MAX];
    if (err->rc == WEFT_FENCED || err->rc == usage->said)
        return;
    usage->said = err->rc;
    int length = snprintf(text, sizeof(text), "weft: usage not reported%s: %s",
                          weft_rc_retryable(err->rc) ? " yet" : "",
                          err->text[0] ? err->text : weft_rc_text(err->rc));
    usage->say(usage->context, text, (size_t)length);
}

static void *reporter_main(void *context)
{
    struct weft_work_usage *usage = context;
    pthread_mutex_lock(&usage->lock);
    for (;;) {
        while (!usage->pending && !usage->ending)
            pthread_cond_wait(&usage->changed, &usage->lock);
        if (usage->ending)
            break;
        const struct totals totals = usage->wanted;
        usage->pending = false;
        pthread_mutex_unlock(&usage->lock);
        struct weft_err err = {0};
        enum weft_rc rc = report(usage, &totals, &err);
        if (rc && !weft_rc_retryable(rc))
            complain(usage, &err);
        pthread_mutex_lock(&usage->lock);
        usage->rc = rc;
    }
    pthread_mutex_unlock(&usage->lock);
    return NULL;
}

struct weft_work_usage *weft_work_usage_new(struct weft_work *work, struct weft_job *job,
                                            const char *path, weft_line_fn *say, void *context)
{
    struct weft_work_usage *usage = weft_alloc(1, sizeof(*usage));
    usage->work = work;
    usage->job = job;
    usage->path = path;
    usage->say = say;
    usage->context = context;
    usage->look_us = weft_boot_us() + LOOK_US;
    pthread_mutex_init(&usage->lock, NULL);
    pthread_cond_init(&usage->changed, NULL);
    return usage;
}

void weft_work_usage_look(struct weft_work_usage *usage)
{
    struct stat info;
    weft_usec now_us = weft_boot_us();
    if (!usage->path || now_us < usage->look_us)
        return;
    usage->look_us = now_us + LOOK_US;
    if (lstat(usage->path, &info) == 0 && !same_file(&info, &usage->seen)) {
        usage->seen = info;
        read_file(usage, false);
    }
    pthread_mutex_lock(&usage->lock);
    bool changed = !same_totals(&usage->totals, &usage->wanted);
    if (changed || weft_rc_retryable(usage->rc)) {
        usage->wanted = usage->totals;
        usage->pending = true;
        pthread_cond_signal(&usage->changed);
    }
    pthread_mutex_unlock(&usage->lock);
    /* Where there is no thread to be had it is tried again, and the end reports it anyway. */
    if (changed && !usage->started)
        usage->started =
            weft_thread_quiet(&usage->reporter, "weft-usage", reporter_main, usage) == 0;
}

/* The last report, until it is answered or the worker stops. */
static void report_last(struct weft_work_usage *usage)
{
    for (;;) {
        struct weft_err err = {0};
        enum weft_rc rc = report(usage, &usage->totals, &err);
        if (rc)
            complain(usage, &err);
        if (!weft_rc_retryable(rc) || weft_job_stopping(usage->job))
            return;
        (void)poll(NULL, 0, RETRY_MS);
    }
}

void weft_work_usage_end(struct weft_work_usage *usage)
{
    pthread_mutex_lock(&usage->lock);
    usage->ending = true;
    pthread_cond_signal(&usage->changed);
    pthread_mutex_unlock(&usage->lock);
    if (usage->started)
        (void)pthread_join(usage->reporter, NULL);
    if (usage->path)
        read_file(usage, true);
    bool recorded = !usage->pending && !usage->rc && same_totals(&usage->totals, &usage->wanted);
    if (usage->totals.count > 0 && !recorded && weft_job_fence(usage->job) == WEFT_FENCE_NONE)
        report_last(usage);
    pthread_cond_destroy(&usage->changed);
    pthread_mutex_destroy(&usage->lock);
    free(usage);
}
