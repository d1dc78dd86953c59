/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The smallest complete program: three jobs, one handler, three results.
 *
 *     hello [URL]        sqlite:hello.db when no URL is given; http://127.0.0.1:7717 is a server
 *
 * Run it twice: the jobs are known by their keys, so the second run finds them done.
 */

#include <weft/weft.h>

#include <stdio.h>
#include <string.h>

enum { JOBS = 3 };

/* Carries out one job. It would run again if this process died in the middle of it. */
static enum weft_verdict greet(struct weft_job *job, void *context)
{
    (void)context;
    const struct weft_claimed *work = weft_job_claimed(job);
    char text[128];
    int size = snprintf(text, sizeof(text), "Hello, %.*s!", (int)work->payload_size,
                        (const char *)work->payload);
    weft_job_result(job, text, (size_t)size, "text/plain");
    return WEFT_DONE;
}

/* Hands over three jobs. They are durable when this returns. */
static enum weft_rc submit(struct weft *weft, struct weft_id ret_id[JOBS], struct weft_err *err)
{
    static const char *const name[JOBS] = {"Ada", "Grace", "Edsger"};
    static const char *const key[JOBS] = {"hello-1", "hello-2", "hello-3"};
    struct weft_spec spec[JOBS];
    for (int i = 0; i < JOBS; i++)
        spec[i] = (struct weft_spec){.kind = "greet",
                                     .key = key[i],
                                     .payload = name[i],
                                     .payload_size = strlen(name[i]),
                                     .content_type = "text/plain"};
    struct weft_submitted answer[JOBS];
    enum weft_rc rc = weft_submit(weft, spec, JOBS, answer, err);
    for (int i = 0; i < JOBS && !rc; i++) {
        printf("job %d is %s\n", i + 1, answer[i].duplicate ? "known already" : "submitted");
        ret_id[i] = answer[i].id;
        rc = answer[i].err.rc; /* each item has an answer of its own */
        if (rc)
            *err = answer[i].err;
    }
    return rc;
}

/* Waits until all three are over. */
static enum weft_rc wait_for(struct weft *weft, const struct weft_id id[JOBS], struct weft_err *err)
{
    for (int i = 0; i < JOBS;) {
        struct weft_page page;
        enum weft_rc rc = weft_wait(weft, &id[i], 60000, &page, err);
        if (rc)
            return rc;
        if (page.item[0].finished_us != 0)
            i++;
        weft_page_free(&page);
    }
    return WEFT_OK;
}

/* Runs a worker with one handler until the jobs are over. */
static enum weft_rc work(struct weft *weft, const struct weft_id id[JOBS], struct weft_err *err)
{
    const struct weft_worker_options options = {.threads = 2};
    struct weft_worker *worker = NULL;
    enum weft_rc rc = weft_worker_new(weft, &options, &worker, err);
    if (!rc)
        rc = weft_worker_on(worker, "greet", greet, NULL, err);
    if (!rc)
        rc = weft_worker_start(worker, err);
    if (!rc)
        rc = wait_for(weft, id, err);
    weft_worker_free(worker); /* stops it first */
    return rc;
}

static enum weft_rc print_results(struct weft *weft, const struct weft_id id[JOBS],
                                  struct weft_err *err)
{
    for (int i = 0; i < JOBS; i++) {
        struct weft_bytes result;
        enum weft_rc rc = weft_result(weft, &id[i], &result, err);
        if (rc)
            return rc;
        printf("job %d says: %.*s\n", i + 1, (int)result.size, (const char *)result.data);
        weft_bytes_free(&result);
    }
    return WEFT_OK;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "sqlite:hello.db";
    struct weft_err err;
    struct weft *weft = NULL;
    struct weft_id id[JOBS];
    printf("weft %s on %s\n", weft_version(), url);
    enum weft_rc rc = weft_open(url, NULL, &weft, &err);
    if (!rc)
        rc = submit(weft, id, &err);
    if (!rc)
        rc = work(weft, id, &err);
    if (!rc)
        rc = print_results(weft, id, &err);
    if (rc)
        (void)fprintf(stderr, "hello: %s: %s\n", weft_rc_wire(rc), err.text);
    weft_close(weft);
    return rc != WEFT_OK;
}
