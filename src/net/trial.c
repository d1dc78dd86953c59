/* SPDX-License-Identifier: Apache-2.0 */

#include "net/trial.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "engine/http/endpoints.h"
#include "fetch/crowd.h"
#include "net/secrets.h"
#include "net/server.h"
#include "net/wait/waits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum {
    TRIALS_MAX = 16,       /* at a time, */
    TRIALS_OF_ONE_MAX = 4, /* of one namespace */
};
#define KEPT_US (60 * WEFT_SECOND) /* an answer that no request takes is forgotten */

struct trial {
    TAILQ_ENTRY(trial) all;
    struct weft_trials *trials;
    struct weft_arena *arena; /* holds it and its texts */
    struct weft_id id;
    const char *ns;
    const struct weft_known_endpoint *endpoint; /* held */
    const struct weft_secret *secret;           /* held: the value of its header; or NULL */
    struct weft_crowd_call call;
    struct weft_endpoint_trial end;
    weft_usec ended_us; /* boot time; 0: not yet */
};

struct weft_trials {
    struct weft_server *server;
    pthread_mutex_t lock; /* over all below, and the end of each trial */
    TAILQ_HEAD(trial_list, trial) all;
    struct weft_crowd *crowd; /* NULL: there was no trial yet */
    char *pem;                /* owned: what it trusts besides the system's, or NULL */
};

struct weft_trials *weft_trials_new(struct weft_server *server)
{
    struct weft_trials *trials = weft_alloc(1, sizeof(*trials));
    trials->server = server;
    pthread_mutex_init(&trials->lock, NULL);
    TAILQ_INIT(&trials->all);
    return trials;
}

/* Under the lock; the trial has ended, or was never begun. */
static void forget(struct trial *trial)
{
    TAILQ_REMOVE(&trial->trials->all, trial, all);
    weft_endpoint_release(trial->endpoint);
    weft_secret_release(trial->secret);
    weft_arena_free(trial->arena);
}

void weft_trials_free(struct weft_trials *trials)
{
    if (!trials)
        return;
    weft_crowd_stop(trials->crowd); /* every trial has ended after this */
    for (struct trial *trial; (trial = TAILQ_FIRST(&trials->all));)
        forget(trial);
    pthread_mutex_destroy(&trials->lock);
    free(trials->pem);
    free(trials);
}

void weft_trials_trust(struct weft_trials *trials, const char *pem)
{
    pthread_mutex_lock(&trials->lock);
    free(trials->pem);
    trials->pem = weft_strdup(pem);
    if (trials->crowd)
        weft_crowd_trust(trials->crowd, pem);
    pthread_mutex_unlock(&trials->lock);
}

/* ---- The call, on a thread of the crowd ------------------------------------------------------ */

static void note_head(void *context, int status, const struct weft_crowd_header *header,
                      size_t count)
{
    (void)context, (void)status, (void)header, (void)count;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the crowd says what it takes */
static bool note_data(void *context, const void *bytes, size_t size, bool *ret_enough)
{
    (void)bytes, (void)ret_enough;
    ((struct trial *)context)->end.bytes += size;
    return true;
}

static void note_end(void *context, const struct weft_crowd_end *end)
{
    struct trial *trial = context;
    struct weft_trials *trials = trial->trials;
    const struct weft_id id = trial->id;
    const struct weft_http_ended ended = {.failure = end->failure,
                                          .status = end->status,
                                          .method = trial->call.method,
                                          .sent = end->sent};
    const struct weft_crowd_phases *phases = &end->phases;
    pthread_mutex_lock(&trials->lock);
    trial->end.status = end->status;
    trial->end.resolved_us = phases->resolved_us;
    trial->end.connected_us = phases->connected_us;
    trial->end.secured_us = phases->secured_us;
    trial->end.first_byte_us = phases->first_byte_us;
    trial->end.total_us = phases->total_us;
    if (end->aborted || end->failure != WEFT_HTTP_ANSWERED) {
        const struct weft_http_decision decided = weft_http_decide(&trial->endpoint->retry, &ended);
        trial->end.error_class =
            weft_arena_strdup(trial->arena, end->aborted ? "http_aborted" : decided.error_class);
        trial->end.error_message = weft_arena_strdup(trial->arena, end->text);
    }
    trial->ended_us = weft_boot_us();
    pthread_mutex_unlock(&trials->lock); /* from here on the trial may be gone */
    weft_wait_ended(trials->server, &id, 1);
}

static const struct weft_crowd_ops ops = {.head = note_head, .data = note_data, .ended = note_end};

/* ---- Beginning ------------------------------------------------------------------------------- */

static int64_t shorter(int64_t ms)
{
    return ms < WEFT_TRIAL_MS ? ms : WEFT_TRIAL_MS;
}

/* The headers of the endpoint, and that of its secret. False: this server has no such secret. */
static bool add_headers(struct trial *trial)
{
    const struct weft_endpoint *setting = trial->endpoint->setting;
    struct weft_crowd_header *header =
        weft_new_array(trial->arena, struct weft_crowd_header, setting->header_count + 1);
    size_t count = 0;
    for (; count < setting->header_count; count++)
        header[count] =
            (struct weft_crowd_header){setting->headers[count].key, setting->headers[count].value};
    if (setting->secret) {
        const struct weft_secret *secret =
            weft_secret_get(trial->trials->server->secrets, trial->ns, setting->secret);
        if (!secret)
            return false;
        trial->secret = weft_secret_header(secret, &trial->endpoint->auth);
        weft_secret_release(secret);
        header[count++] =
            (struct weft_crowd_header){trial->endpoint->auth.name, weft_secret_text(trial->secret)};
    }
    trial->call.header = header;
    trial->call.header_count = count;
    return true;
}

static enum weft_rc check_method(const char *method, struct weft_err *err)
{
    static const char *const allowed[] = {"GET", "HEAD",  "OPTIONS", "POST",
                                          "PUT", "PATCH", "DELETE"};
    for (size_t i = 0; i < WEFT_LEN(allowed); i++)
        if (strcmp(method, allowed[i]) == 0)
            return WEFT_OK;
    return weft_invalid(err, "method",
                        "method must be one of GET HEAD OPTIONS POST PUT PATCH DELETE");
}

/* Fills in the call. */
static enum weft_rc prepare(struct trial *trial, const struct weft_endpoint_trying *trying,
                            struct weft_err *err)
{
    const struct weft_endpoint *setting = trial->endpoint->setting;
    const char *method = trying->method ? trying->method : "GET";
    struct weft_http_url url;
    enum weft_rc rc = check_method(method, err);
    if (!rc && trying->path)
        rc = weft_http_path_check(trying->path, err);
    if (!rc)
        rc = weft_http_url_join(&trial->endpoint->url, trying->path, trial->arena, &url, err);
    if (rc)
        return rc;
    trial->end.url = url.text;
    trial->call = (struct weft_crowd_call){
        .method = weft_arena_strdup(trial->arena, method),
        .url = url.text,
        .private_addresses = setting->private_addresses,
        .redirects = setting->redirects,
        .once = true,
        .connect_ms = shorter(setting->connect_ms),
        .first_byte_ms = shorter(setting->first_byte_ms),
        .idle_ms = shorter(setting->idle_ms),
        .total_ms = shorter(setting->total_ms),
        .response_max = (size_t)setting->response_max,
        .ops = &ops,
        .context = trial,
    };
    return WEFT_OK;
}

/* The endpoint, which may have been made on another replica a moment ago. */
static enum weft_rc find_endpoint(struct weft_engine *engine, const char *ns, const char *name,
                                  const struct weft_known_endpoint **ret_endpoint,
                                  struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    *ret_endpoint = weft_endpoint_get(engine, ns, name);
    if (!*ret_endpoint)
        rc = weft_endpoints_read(engine, err);
    if (!*ret_endpoint && !rc)
        *ret_endpoint = weft_endpoint_get(engine, ns, name);
    if (!*ret_endpoint && !rc)
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "endpoint", "there is no endpoint '%s'", name);
    return rc;
}

/* Under the lock: forgets answers that no request took, and looks whether there is room. */
static enum weft_rc check_room(struct weft_trials *trials, const char *ns, struct weft_err *err)
{
    size_t all = 0, own = 0;
    weft_usec now_us = weft_boot_us();
    for (struct trial *trial = TAILQ_FIRST(&trials->all), *next; trial; trial = next) {
        next = TAILQ_NEXT(trial, all);
        if (trial->ended_us && now_us - trial->ended_us > KEPT_US) {
            forget(trial);
            continue;
        }
        all += trial->ended_us == 0;
        own += trial->ended_us == 0 && strcmp(trial->ns, ns) == 0;
    }
    if (all < TRIALS_MAX && own < TRIALS_OF_ONE_MAX)
        return WEFT_OK;
    return weft_fail(err, WEFT_RATE_LIMITED, "%zu tests of endpoints are under way",
                     all < TRIALS_MAX ? own : all);
}

/* Under the lock: starts the transfer, or ends the trial without one. */
static enum weft_rc start(struct weft_trials *trials, struct trial *trial, struct weft_err *err)
{
    const struct weft_crowd_config config = {.in_flight = TRIALS_MAX};
    if (!trials->crowd) {
        enum weft_rc rc = weft_crowd_start(&config, &trials->crowd, err);
        if (rc)
            return rc;
        weft_crowd_trust(trials->crowd, trials->pem);
    }
    if (add_headers(trial)) {
        (void)weft_crowd_call(trials->crowd, &trial->call);
        return WEFT_OK;
    }
    trial->end.error_class = "http_secret";
    trial->end.error_message =
        weft_arena_printf(trial->arena, "this server has no secret '%s' of the namespace '%s'",
                          trial->endpoint->setting->secret, trial->ns);
    trial->ended_us = weft_boot_us();
    return WEFT_OK;
}

enum weft_rc weft_trial_begin(struct weft_trials *trials, const char *ns,
                              const struct weft_endpoint_trying *trying, struct weft_id *ret_id,
                              struct weft_err *err)
{
    const struct weft_known_endpoint *endpoint;
    enum weft_rc rc = find_endpoint(trials->server->engine, ns, trying->name, &endpoint, err);
    if (rc)
        return rc;
    struct weft_arena *arena = weft_arena_new();
    struct trial *trial = weft_new(arena, struct trial);
    *trial = (struct trial){
        .trials = trials, .arena = arena, .ns = weft_arena_strdup(arena, ns), .endpoint = endpoint};
    weft_random(&trial->id, sizeof(trial->id));
    *ret_id = trial->id;
    pthread_mutex_lock(&trials->lock);
    rc = check_room(trials, ns, err);
    TAILQ_INSERT_TAIL(&trials->all, trial, all);
    if (!rc)
        rc = prepare(trial, trying, err);
    if (!rc)
        rc = start(trials, trial, err);
    if (rc)
        forget(trial);
    pthread_mutex_unlock(&trials->lock);
    return rc;
}

bool weft_trial_take(struct weft_trials *trials, const struct weft_id *id, struct weft_arena *arena,
                     struct weft_endpoint_trial *ret_trial)
{
    bool ended = false;
    struct trial *trial;
    pthread_mutex_lock(&trials->lock);
    TAILQ_FOREACH (trial, &trials->all, all)
        if (weft_id_cmp(&trial->id, id) == 0)
            break;
    if (trial && trial->ended_us) {
        *ret_trial = trial->end;
        ret_trial->url = weft_arena_strdup(arena, trial->end.url);
        ret_trial->error_class = weft_arena_strdup(arena, trial->end.error_class);
        ret_trial->error_message = weft_arena_strdup(arena, trial->end.error_message);
        forget(trial);
        ended = true;
    }
    pthread_mutex_unlock(&trials->lock);
    return ended;
}
