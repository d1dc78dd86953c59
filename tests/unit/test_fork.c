/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A handle and a worker in a forked child: every call is refused, closing and freeing neither hang
 * nor disturb the parent, which works on. The child tells what it saw through a pipe, because the
 * test's own counters are the parent's.
 */

#include "worker_fixture.h"

#include <signal.h>
#include <sys/wait.h>

/* What the child found: a byte for each point, in the order of the names. */
struct told {
    int fd;
    size_t count;
};

static const char *const point_name[] = {
    "submit: text and hint",
    "claim",
    "renew",
    "complete",
    "fail_lease",
    "delay",
    "release",
    "steer",
    "steer_all",
    "describe",
    "wait",
    "list",
    "attempts",
    "result",
    "payload",
    "counts",
    "lane_put",
    "lanes",
    "workers",
    "goodbye",
    "run_pass",
    "replicas",
    "scanners",
    "flow_submit",
    "flow_grow",
    "flow_link",
    "flow_cancel",
    "flow_delete",
    "flow_get",
    "flow_nodes",
    "flow_list",
    "worker_new",
    "worker_on",
    "worker_start",
    "worker_stats",
    "worker_stop",
    "an execution that was read before stays readable",
    "a new handle in the child",
};

static void tell(struct told *told, bool good)
{
    const char byte = good ? 'y' : 'n';
    told->count += write(told->fd, &byte, 1) == 1;
}

static void use_calls(struct told *told, struct weft *weft)
{
    const struct weft_id id = {{1}};
    struct weft_err err = {0};
    struct weft_submitted submitted;
    struct weft_lease_answer lease;
    struct weft_steered steered;
    struct weft_sweep sweep;
    struct weft_page page = {0};
    struct weft_attempts attempts;
    struct weft_bytes bytes;
    struct weft_counts counts;
    const struct weft_spec spec = {.kind = "k"};
    enum weft_rc rc = weft_submit(weft, &spec, 1, &submitted, &err);
    tell(told, rc == WEFT_MISUSE && strcmp(err.text, "this handle was opened before fork()") == 0 &&
                   err.hint && strcmp(err.hint, "open a new one in the child") == 0);
#define REFUSED(call) tell(told, (call) == WEFT_MISUSE)
    REFUSED(
        weft_claim(weft, &(struct weft_claim){.worker = "w"}, 1, &(struct weft_claims){0}, &err));
    REFUSED(weft_renew(weft, &(struct weft_renew){.id = id}, 1, &lease, &err));
    REFUSED(weft_complete(weft, &(struct weft_complete){.id = id}, 1, &lease, &err));
    REFUSED(weft_fail_lease(weft, &(struct weft_failure){.id = id}, 1, &lease, &err));
    REFUSED(weft_delay(weft, &(struct weft_put_back){.id = id}, 1, &lease, &err));
    REFUSED(weft_release(weft, &(struct weft_put_back){.id = id}, 1, &lease, &err));
    REFUSED(weft_steer(weft, WEFT_STEER_CANCEL, &(struct weft_steer){.id = id}, 1, &steered, &err));
    REFUSED(weft_steer_all(weft, &(struct weft_steer_all){.filter = {.kind = "k"}}, &sweep, &err));
    REFUSED(weft_describe(weft, &id, 1, &page, &err));
    REFUSED(weft_wait(weft, &id, 1000, &page, &err));
    REFUSED(weft_list(weft, NULL, 0, NULL, &page, &err));
    REFUSED(weft_attempts(weft, &id, &attempts, &err));
    REFUSED(weft_result(weft, &id, &bytes, &err));
    REFUSED(weft_payload(weft, &id, &bytes, &err));
    REFUSED(weft_counts(weft, NULL, &counts, &err));
    REFUSED(weft_lane_put(weft, &(struct weft_lane){.name = "l"}, &err));
    REFUSED(weft_lanes(weft, &(struct weft_lanes){0}, &err));
    REFUSED(weft_workers(weft, &(struct weft_workers){0}, &err));
    REFUSED(weft_goodbye(weft, "w", NULL, &err));
    REFUSED(weft_run_pass(weft, WEFT_SCANNER_INTAKE, 0, &(struct weft_pass_report){0}, &err));
    REFUSED(weft_replicas(weft, &(struct weft_replicas){0}, &err));
    REFUSED(weft_scanners(weft, &(struct weft_scanners){0}, &err));
}

static void use_flows(struct told *told, struct weft *weft)
{
    const struct weft_id id = {{1}};
    struct weft_err err = {0};
    struct weft_flow_submitted submitted = {.node = NULL};
    struct weft_flow_page page;
    const struct weft_node node = {.name = "a", .spec = {.kind = "k"}};
    const struct weft_flow_spec spec = {.nodes = &node, .node_count = 1};
    const struct weft_flow_growth growth = {.flow = id, .nodes = &node, .node_count = 1};
    REFUSED(weft_flow_submit(weft, &spec, 1, &submitted, &err));
    REFUSED(weft_flow_grow(weft, &growth, &submitted, &err));
    REFUSED(weft_flow_link(weft, &(struct weft_flow_edging){.flow = id}, &(int32_t){0}, &err));
    REFUSED(weft_flow_cancel(weft, &(struct weft_flow_cancelling){.flow = id}, 0,
                             &(struct weft_flow_cancelled){0}, &err));
    REFUSED(weft_flow_delete(weft, &id, &err));
    REFUSED(weft_flow_get(weft, &id, 0, &page, &err));
    REFUSED(weft_flow_nodes(weft, &id, 0, NULL, &page, &err));
    REFUSED(weft_flow_list(weft, NULL, &(struct weft_flows){0}, &err));
}

static void use_worker(struct told *told, struct weft *weft, struct weft_worker *worker)
{
    struct weft_err err = {0};
    struct weft_worker *other = NULL;
    REFUSED(weft_worker_new(weft, NULL, &other, &err));
    REFUSED(weft_worker_on(worker, "more", handle_numbered, NULL, &err));
    REFUSED(weft_worker_start(worker, &err));
    struct weft_worker_stats stats;
    weft_worker_stats(worker, &stats);
    tell(told, stats.last_error.rc == WEFT_MISUSE && stats.running == 0);
    tell(told, weft_worker_stop(worker) == 0);
}

/* SQLite cannot open a file again that the parent has open; every other store can. */
static bool open_anew(const struct world *w)
{
    struct weft *weft = NULL;
    struct weft_err err = {0};
    struct weft_submitted answer = {0};
    const struct weft_spec spec = {.kind = "from-the-child"};
    enum weft_rc rc = weft_open(w->url, NULL, &weft, &err);
    if (strncmp(w->url, "sqlite:", 7) == 0)
        return rc == WEFT_MISUSE && err.hint && strstr(err.hint, "after fork()");
    if (!rc)
        rc = weft_submit(weft, &spec, 1, &answer, &err);
    weft_close(weft);
    return !rc && answer.err.rc == WEFT_OK;
}

static void run_child(struct world *w, struct weft_worker *worker, struct weft_page *page, int fd)
{
    struct told told = {.fd = fd};
    (void)alarm(PATIENCE_MS / 1000); /* a call that hangs ends the child, and the test tells */
    use_calls(&told, w->weft);
    use_flows(&told, w->weft);
    use_worker(&told, w->weft, worker);
    tell(&told, page->count == 1 && strcmp(page->item[0].kind, "square") == 0);
    weft_page_free(page);
    weft_worker_free(worker);
    weft_close(w->weft);
    tell(&told, open_anew(w));
    _exit(told.count == WEFT_LEN(point_name) ? 0 : 1);
}

/*
 * AddressSanitizer 14 does not hold its own locks over fork(): once in a while a thread of the
 * parent has one, and the child waits for it for ever. Without it one try must do.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRIES_MORE 2
#endif
#endif
#ifndef TRIES_MORE
#define TRIES_MORE 0
#endif

/* Returns how the child ended, and a letter for each point that it reported. */
static int fork_child(struct world *w, struct weft_worker *worker, struct weft_page *page,
                      char ret_told[WEFT_LEN(point_name)])
{
    int pipes[2], status = -1;
    memset(ret_told, '-', WEFT_LEN(point_name));
    if (!ok(pipe(pipes) == 0, "%s: a pipe", w->store))
        return status;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)close(pipes[0]);
        run_child(w, worker, page, pipes[1]);
    }
    (void)close(pipes[1]);
    for (size_t i = 0; i < WEFT_LEN(point_name); i++)
        if (read(pipes[0], &ret_told[i], 1) != 1)
            ret_told[i] = '-';
    (void)close(pipes[0]);
    return waitpid(child, &status, 0) == child ? status : -1;
}

static void test_fork(struct world *w)
{
    struct weft_page page = {0};
    struct weft_worker *worker =
        make_worker(w, w->weft, &(struct weft_worker_options){.threads = 2});
    handle(w, worker, "square", handle_numbered);
    submit_numbered(w, "square", 0, 5);
    start(w, worker);
    ok(box_wait(&w->box, &w->box.ended, 5), "%s: the worker works", w->store);
    ok(weft_list(w->weft, &(struct weft_filter){.kind = "square"}, 1, NULL, &page, &w->err) == 0,
       "%s: an execution is read", w->store);
    char told[WEFT_LEN(point_name)];
    int status = fork_child(w, worker, &page, told);
    for (int again = 0; again < TRIES_MORE && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
         again++)
        status = fork_child(w, worker, &page, told);
    for (size_t i = 0; i < WEFT_LEN(point_name); i++)
        ok(told[i] == 'y', "%s: in the child: %s", w->store, point_name[i]);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: the child ends by itself", w->store);

    submit_numbered(w, "square", 5, 50);
    ok(box_wait(&w->box, &w->box.ended, 55), "%s: the parent works on", w->store);
    is_int(weft_worker_stop(worker), 0, "%s: and stops", w->store);
    is_int(count_in(w, WEFT_STATE_SUCCEEDED), 55, "%s: with everything done", w->store);
    struct weft_worker_stats stats;
    weft_worker_stats(worker, &stats);
    is_int(stats.store_errors, 0, "%s: the child broke no connection of it %s", w->store,
           stats.last_error.text);
    weft_page_free(&page);
    weft_worker_free(worker);
}

/* A file that is closed before fork(), and one that the parent does not have, may be opened. */
static void test_other_files(struct world *w)
{
    char url[640];
    (void)snprintf(url, sizeof(url), "%s", w->url);
    weft_close(w->weft);
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(PATIENCE_MS / 1000);
        struct weft *weft = NULL;
        enum weft_rc rc = weft_open(url, NULL, &weft, NULL);
        weft_close(weft);
        _exit((int)rc);
    }
    int status = -1;
    ok(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == WEFT_OK,
       "%s: a store that was closed before fork() opens in the child", w->store);
    w->weft = world_open(w);
}

int main(void)
{
    for (size_t s = 0; s < WEFT_LEN(world_stores); s++) {
        if (!world_exists(world_stores[s]))
            continue;
        struct world w;
        world_init(&w, world_stores[s]);
        test_fork(&w);
        if (!world_is_http(world_stores[s]))
            test_other_files(&w);
        world_done(&w);
    }
    return tap_done();
}
