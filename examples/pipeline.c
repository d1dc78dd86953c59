/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A day's work in miniature: a thousand resizes with keys and priorities behind a lane limit, some
 * of which fail at first and are tried again, a long report that tells its progress, and a job that
 * is cancelled while it runs.
 *
 *     pipeline [URL]     sqlite:pipeline.db when no URL is given
 *
 * Run it twice, or in two terminals at once: every job is done once, by one of the two.
 */

#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IMAGES = 1000, FLAKY_EVERY = 100, KEY_SIZE = 32 };

static void pause_ms(long ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&pause, NULL);
}

/* ---- Handlers -------------------------------------------------------------------------------- */

/* Every hundredth image cannot be fetched at the first attempt; the policy says when to try again.
 */
static enum weft_verdict resize(struct weft_job *job, void *context)
{
    (void)context;
    const struct weft_claimed *work = weft_job_claimed(job);
    char text[KEY_SIZE] = "";
    memcpy(text, work->payload, work->payload_size < sizeof(text) - 1 ? work->payload_size : 0);
    long number = strtol(text, NULL, 10);
    if (number % FLAKY_EVERY == 0 && work->attempt == 1) {
        weft_job_error(job, "fetch_failed", "the image host did not answer");
        return WEFT_RETRY;
    }
    char result[64];
    int size = snprintf(result, sizeof(result), "{\"image\":%ld,\"width\":640}", number);
    weft_job_result(job, result, (size_t)size, NULL);
    return WEFT_DONE;
}

/* Takes its time, reports its progress, and stops when it is cancelled or the worker stops. */
static enum weft_verdict report(struct weft_job *job, void *context)
{
    (void)context;
    for (int page = 0; page < 20; page++) {
        if (weft_job_stopping(job)) /* cancelled, or the worker stops */
            return WEFT_NOT_NOW;
        weft_job_progress(job, page * 5, "rendering pages");
        pause_ms(50);
    }
    return WEFT_DONE;
}

/* Would run for ever: oversee() cancels it. */
static enum weft_verdict watch(struct weft_job *job, void *context)
{
    (void)context;
    while (!weft_job_stopping(job))
        pause_ms(20);
    printf("the watcher was told to stop: %s\n", weft_fence_name(weft_job_fence(job)));
    return WEFT_NOT_NOW;
}

/* ---- Submitting ------------------------------------------------------------------------------ */

/* One call for a thousand; the last hundred are urgent and go first. */
static enum weft_rc submit_images(struct weft *weft, struct weft_err *err)
{
    static char key[IMAGES][KEY_SIZE], payload[IMAGES][KEY_SIZE];
    static struct weft_spec spec[IMAGES];
    static struct weft_submitted answer[IMAGES];
    const struct weft_policy patient = {
        .max_attempts = 3, .backoff = WEFT_BACKOFF_FIXED, .initial_ms = 200, .no_jitter = true};
    for (int i = 0; i < IMAGES; i++) {
        (void)snprintf(key[i], sizeof(key[i]), "image-%d", i);
        int size = snprintf(payload[i], sizeof(payload[i]), "%d", i);
        spec[i] = (struct weft_spec){.kind = "resize",
                                     .lane = "images",
                                     .key = key[i],
                                     .payload = payload[i],
                                     .payload_size = (size_t)size,
                                     .priority = i >= IMAGES - 100 ? 10 : 0,
                                     .policy = &patient};
    }
    enum weft_rc rc = weft_submit(weft, spec, IMAGES, answer, err);
    int fresh = 0, known = 0;
    for (int i = 0; i < IMAGES && !rc; i++) {
        fresh += !answer[i].err.rc && !answer[i].duplicate;
        known += answer[i].duplicate;
    }
    if (!rc)
        printf("images: %d new, %d known already\n", fresh, known);
    return rc;
}

static enum weft_rc submit_one(struct weft *weft, const char *kind, struct weft_id *ret_id,
                               struct weft_err *err)
{
    const struct weft_spec spec = {.kind = kind, .lane = "office", .key = kind};
    struct weft_submitted answer;
    enum weft_rc rc = weft_submit(weft, &spec, 1, &answer, err);
    if (!rc && answer.err.rc) {
        *err = answer.err;
        rc = answer.err.rc;
    }
    if (!rc)
        *ret_id = answer.id;
    return rc;
}

/* ---- Watching -------------------------------------------------------------------------------- */

static struct weft_execution look(struct weft *weft, const struct weft_id *id)
{
    struct weft_page page = {0};
    struct weft_execution found = {.percent = -1};
    if (weft_describe(weft, id, 1, &page, NULL) == WEFT_OK)
        found = page.item[0];
    weft_page_free(&page); /* the texts in `found` are gone, the numbers stay */
    return found;
}

/* Living executions of all lanes. */
static enum weft_rc count_living(struct weft *weft, uint64_t *ret_living, struct weft_err *err)
{
    struct weft_counts counts;
    enum weft_rc rc = weft_counts(weft, NULL, &counts, err);
    if (rc)
        return rc;
    *ret_living = 0;
    for (size_t i = 0; i < counts.count; i++)
        for (int state = 0; state < WEFT_STATE_COUNT; state++)
            *ret_living += counts.item[i].count[state];
    weft_counts_free(&counts);
    return WEFT_OK;
}

/* Cancels the watcher once it runs, then waits until nothing is left to do. */
static enum weft_rc oversee(struct weft *weft, const struct weft_id *report_id,
                            const struct weft_id *watch_id, struct weft_err *err)
{
    uint64_t living = 1;
    int32_t percent = -1;
    bool cancelled = false;
    enum weft_rc rc = WEFT_OK;
    while (!rc && living > 0) {
        if (!cancelled && look(weft, watch_id).state == WEFT_STATE_RUNNING) {
            const struct weft_steer cancel = {.id = *watch_id, .reason = "seen enough"};
            struct weft_steered answer;
            rc = weft_steer(weft, WEFT_STEER_CANCEL, &cancel, 1, &answer, err);
            cancelled = true;
        }
        struct weft_execution now = look(weft, report_id);
        if (now.percent > percent)
            printf("the report is at %d %%\n", now.percent);
        percent = now.percent > percent ? now.percent : percent;
        if (!rc)
            rc = count_living(weft, &living, err);
        pause_ms(20);
    }
    return rc;
}

/* How each execution ended, by walking all pages. */
static enum weft_rc print_outcomes(struct weft *weft, struct weft_err *err)
{
    size_t count[WEFT_STATE_COUNT] = {0}, second = 0;
    char after[WEFT_ID_TEXT] = "";
    for (bool more = true; more;) {
        struct weft_page page;
        enum weft_rc rc = weft_list(weft, NULL, 500, *after ? after : NULL, &page, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < page.count; i++) {
            count[page.item[i].state]++;
            second += page.item[i].attempt > 1;
        }
        more = page.next;
        if (more)
            (void)snprintf(after, sizeof(after), "%s", page.next);
        weft_page_free(&page);
    }
    for (int state = 1; state < WEFT_STATE_COUNT; state++)
        if (count[state] > 0)
            printf("%-10s %5zu\n", weft_state_name((enum weft_state)state), count[state]);
    printf("%zu of them needed a second attempt\n", second);
    return WEFT_OK;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static enum weft_rc run(struct weft *weft, struct weft_worker *worker, struct weft_err *err)
{
    struct weft_id report_id, watch_id;
    /* At most three resizes at a time, over all processes that work on this store. */
    const struct weft_lane lane = {.name = "images", .max_running = 3};
    enum weft_rc rc = weft_lane_put(weft, &lane, err);
    if (!rc)
        rc = submit_images(weft, err);
    if (!rc)
        rc = submit_one(weft, "report", &report_id, err);
    if (!rc)
        rc = submit_one(weft, "watch", &watch_id, err);
    if (!rc)
        rc = weft_worker_on(worker, "resize", resize, NULL, err);
    if (!rc)
        rc = weft_worker_on(worker, "report", report, NULL, err);
    if (!rc)
        rc = weft_worker_on(worker, "watch", watch, NULL, err);
    if (!rc)
        rc = weft_worker_start(worker, err);
    if (!rc)
        rc = oversee(weft, &report_id, &watch_id, err);
    (void)weft_worker_stop(worker);
    return rc ? rc : print_outcomes(weft, err);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "sqlite:pipeline.db";
    static const char *const lanes[] = {"images", "office"};
    const struct weft_worker_options options = {
        .lanes = lanes, .lane_count = 2, .threads = 6, .lease_ms = 1000};
    struct weft_err err;
    struct weft *weft = NULL;
    struct weft_worker *worker = NULL;
    enum weft_rc rc = weft_open(url, NULL, &weft, &err);
    if (!rc)
        rc = weft_worker_new(weft, &options, &worker, &err);
    if (!rc)
        rc = run(weft, worker, &err);
    if (rc)
        (void)fprintf(stderr, "pipeline: %s: %s\n", weft_rc_wire(rc), err.text);
    weft_worker_free(worker);
    weft_close(weft);
    return rc != WEFT_OK;
}
