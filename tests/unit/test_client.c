/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The calls of weft.h as a stranger would misuse them, and one round through all of them, over a
 * store and over a server. What the operations mean is tested by tests/conformance; here it is the
 * shell around them.
 */

#include "server_fixture.h"
#include "tap.h"
#include "weft/weft.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000 };

static struct weft_err err;
static char url[300];
static bool remote;

static struct weft *open_weft(const char *ns)
{
    struct weft *weft = NULL;
    enum weft_rc rc = weft_open(url, &(struct weft_options){.ns = ns}, &weft, &err);
    if (rc) {
        printf("Bail out! cannot open %s: %s\n", url, err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    return weft;
}

static struct weft_id submit(struct weft *weft, const struct weft_spec *spec)
{
    struct weft_submitted answer = {0};
    ok(weft_submit(weft, spec, 1, &answer, &err) == WEFT_OK && !answer.err.rc, "submitted: %s",
       answer.err.text);
    return answer.id;
}

static void test_open(void)
{
    struct weft *weft = NULL;
    ok(weft_open(NULL, NULL, &weft, &err) == WEFT_INVALID_VALUE,
       "a handle without a URL is refused");
    ok(weft_open(url, NULL, NULL, &err) == WEFT_INVALID_VALUE, "nowhere to put the handle");
    ok(weft_open("nonsense:", NULL, &weft, &err) != WEFT_OK, "no such scheme: %s", err.text);
    ok(weft_open("sqlite:/no/such/folder/x.db", NULL, &weft, &err) != WEFT_OK, "no such folder: %s",
       err.text);
    ok(weft_open(url, &(struct weft_options){.ns = "a b"}, &weft, &err) == WEFT_INVALID_VALUE,
       "a namespace with a space");
    is_str(err.field, "namespace", "the field is named");
    ok(weft_open(url, &(struct weft_options){.connections = 5000}, &weft, NULL) ==
           WEFT_INVALID_VALUE,
       "too many connections are refused, without a place for the error");
    ok(weft_open(url, &(struct weft_options){.no_migrate = true}, &weft, &err) == WEFT_SCHEMA,
       "a new store is refused when it may not be migrated");
    ok(weft == NULL, "nothing was given back");
    weft_close(NULL);
    ok(strlen(weft_version()) >= 5, "the version is %s", weft_version());
}

/* NULL for the handle, the items, the answers; in that order. */
static void test_null(struct weft *weft)
{
    static const struct weft_spec spec = {.kind = "k"};
    struct weft_submitted submitted;
    static const struct weft_claim claim = {.worker = "w"};
    struct weft_claims claims = {0};
    struct weft_tokens tokens = {0};
    static const struct weft_steer steer = {0};
    struct weft_steered steered;
    static const struct weft_id id = {0};
    struct weft_page page = {0};
    struct weft_lease_answer answer;
    const enum weft_rc got[] = {
        weft_submit(NULL, &spec, 1, &submitted, &err),
        weft_submit(weft, NULL, 1, &submitted, &err),
        weft_submit(weft, &spec, 1, NULL, &err),
        weft_claim(NULL, &claim, 1, &claims, &err),
        weft_claim(weft, NULL, 1, &claims, &err),
        weft_claim(weft, &claim, 1, NULL, &err),
        weft_renew(weft, NULL, 1, &answer, &err),
        weft_complete(weft, NULL, 1, &answer, &err),
        weft_fail_lease(weft, NULL, 1, &answer, &err),
        weft_delay(weft, NULL, 1, &answer, &err),
        weft_release(NULL, NULL, 0, NULL, &err),
        weft_steer(weft, WEFT_STEER_CANCEL, NULL, 1, &steered, &err),
        weft_steer(weft, WEFT_STEER_CANCEL, &steer, 1, NULL, &err),
        weft_steer(weft, (enum weft_steer_kind)77, &steer, 1, &steered, &err),
        weft_steer_all(weft, NULL, NULL, &err),
        weft_describe(weft, NULL, 1, &page, &err),
        weft_describe(weft, &id, 0, NULL, &err),
        weft_list(weft, NULL, 0, NULL, NULL, &err),
        weft_attempts(weft, NULL, NULL, &err),
        weft_result(weft, &id, NULL, &err),
        weft_payload(weft, NULL, NULL, &err),
        weft_counts(NULL, NULL, NULL, &err),
        weft_lane_put(weft, NULL, &err),
        weft_lanes(weft, NULL, &err),
        weft_lane_remove(weft, NULL, &err),
        weft_lane_remove(NULL, "l", &err),
        weft_token_create(weft, NULL, NULL, &err),
        weft_token_create(weft, &(struct weft_token_spec){.name = "a", .scope_count = 1}, &tokens,
                          &err),
        weft_token_create(weft, &(struct weft_token_spec){.scope_count = 0}, &tokens, &err),
        weft_token_rotate(weft, NULL, &tokens, &err),
        weft_token_rotate(weft, &(struct weft_token_rotation){.id = 0}, &tokens, &err),
        weft_token_rotate(weft, &(struct weft_token_rotation){.id = 1}, NULL, &err),
        weft_token_revoke(weft, 0, &err),
        weft_token_revoke(NULL, 1, &err),
        weft_tokens(weft, NULL, &err),
        weft_tokens(NULL, &tokens, &err),
        weft_workers(weft, NULL, &err),
        weft_workers(NULL, NULL, &err),
        weft_goodbye(weft, NULL, NULL, &err),
        weft_goodbye(NULL, "w", NULL, &err),
        weft_goodbye(weft, "a b", NULL, &err),
        weft_wait(weft, NULL, 0, &page, &err),
        weft_wait(weft, &id, 0, NULL, &err),
        weft_wait(weft, &id, -1, &page, &err),
        weft_wait(weft, &id, 86400001, &page, NULL),
        weft_run_pass(weft, WEFT_SCANNER_INTAKE, 0, NULL, &err),
        weft_run_pass(NULL, WEFT_SCANNER_INTAKE, 0, NULL, NULL),
        weft_replicas(weft, NULL, &err),
        weft_replicas(NULL, NULL, NULL),
        weft_scanners(weft, NULL, &err),
        weft_scanners(NULL, NULL, NULL),
    };
    for (size_t i = 0; i < sizeof(got) / sizeof(got[0]); i++)
        is_int(got[i], WEFT_INVALID_VALUE, "NULL where there must be something, row %zu", i);
}

/* Arrays inside items. */
static void test_null_inside(struct weft *weft)
{
    struct weft_submitted submitted;
    struct weft_claims claims = {0};
    struct weft_lease_answer answer;
    const struct weft_policy policy = {.no_retry_count = 1};
    const struct weft_spec spec[] = {
        {.kind = "k", .tag_count = 1},
        {.kind = "k", .capability_count = 2},
        {.kind = "k", .policy = &policy},
    };
    for (size_t i = 0; i < sizeof(spec) / sizeof(spec[0]); i++)
        is_int(weft_submit(weft, &spec[i], 1, &submitted, &err), WEFT_INVALID_VALUE,
               "submit, row %zu: %s", i, err.text);
    const struct weft_claim claim[] = {
        {.worker = "w", .lane_count = 1},       {.worker = "w", .kind_count = 1},
        {.worker = "w", .capability_count = 1}, {.worker = NULL},
        {.worker = "w", .wait_ms = 60001},      {.worker = "w", .wait_ms = -1},
    };
    for (size_t i = 0; i < sizeof(claim) / sizeof(claim[0]); i++)
        is_int(weft_claim(weft, &claim[i], 1, &claims, &err), WEFT_INVALID_VALUE,
               "claim, row %zu: %s", i, err.text);
    const struct weft_complete complete = {.epoch = 1, .result_size = 5};
    is_int(weft_complete(weft, &complete, 1, &answer, &err), WEFT_INVALID_VALUE, "complete: %s",
           err.text);
    const struct weft_lane lane = {.name = "l", .weight_count = 1};
    is_int(weft_lane_put(weft, &lane, &err), WEFT_INVALID_VALUE, "lane: %s", err.text);

    const struct weft_spec bad[] = {
        {.kind = NULL}, {.kind = "ok"}, {.kind = "k", .payload_size = 3}};
    struct weft_submitted each[3] = {0};
    is_int(weft_submit(weft, bad, 3, each, &err), WEFT_OK, "bad values are the items' own");
    is_int(each[0].err.rc, WEFT_INVALID_VALUE, "an item without a kind is refused");
    is_int(each[1].err.rc, WEFT_OK, "the other item of the call is accepted");
    is_int(each[2].err.rc, WEFT_INVALID_VALUE, "a payload of NULL with a size");
}

static void test_counts_of_items(struct weft *weft)
{
    struct weft_claims claims;
    struct weft_page page;
    is_int(weft_submit(weft, NULL, 0, NULL, &err), WEFT_OK, "submit of nothing");
    is_int(weft_renew(weft, NULL, 0, NULL, NULL), WEFT_OK, "renew of nothing");
    is_int(weft_steer(weft, WEFT_STEER_REPLAY, NULL, 0, NULL, NULL), WEFT_OK, "steer of nothing");
    is_int(weft_claim(weft, NULL, 0, &claims, &err), WEFT_OK, "claim of nothing");
    is_int(claims.count, 0, "gives nothing");
    weft_claims_free(&claims);
    is_int(weft_describe(weft, NULL, 0, &page, &err), WEFT_OK, "describe of nothing");
    is_int(page.count, 0, "gives nothing");
    weft_page_free(&page);

    static const struct weft_spec spec = {.kind = "k"};
    struct weft_submitted submitted;
    is_int(weft_submit(weft, &spec, 100001, &submitted, &err), WEFT_TOO_LARGE,
           "100,001 items are refused: %s", err.text);

    struct weft_attempts attempts = {0};
    struct weft_bytes bytes = {0};
    struct weft_counts counts = {0};
    struct weft_lanes lanes = {0};
    struct weft_workers workers = {0};
    claims = (struct weft_claims){.count = 1}; /* without an arena: there is nothing to free */
    page = (struct weft_page){.count = 1};
    attempts.count = bytes.size = counts.count = lanes.count = workers.count = 1;
    weft_claims_free(&claims);
    weft_page_free(&page);
    weft_attempts_free(&attempts);
    weft_bytes_free(&bytes);
    weft_counts_free(&counts);
    weft_lanes_free(&lanes);
    weft_workers_free(&workers);
    is_int(claims.count + page.count + attempts.count + bytes.size + counts.count + lanes.count +
               workers.count,
           0, "freeing a result without an arena clears it");
    weft_claims_free(NULL);
    weft_page_free(NULL);
    weft_attempts_free(NULL);
    weft_bytes_free(NULL);
    weft_counts_free(NULL);
    weft_lanes_free(NULL);
    weft_workers_free(NULL);
}

/* Once around: submit, claim, renew, complete, and every read. */
static void test_round(struct weft *weft)
{
    const struct weft_tag tag = {"colour", "red"};
    struct weft_id id = submit(weft, &(struct weft_spec){.kind = "round",
                                                         .lane = "round",
                                                         .payload = "[1]",
                                                         .payload_size = 3,
                                                         .tags = &tag,
                                                         .tag_count = 1,
                                                         .key = "round-1"});
    const char *const lane = "round";
    const struct weft_claim claim = {.worker = "w1", .lanes = &lane, .lane_count = 1, .max = 5};
    struct weft_claims claims = {0};
    ok(weft_claim(weft, &claim, 1, &claims, &err) == WEFT_OK && claims.count == 1, "claimed");
    const struct weft_claimed *got = &claims.item[0];
    ok(got->payload_size == 3 && memcmp(got->payload, "[1]", 3) == 0, "the claim has the payload");
    is_str(got->tags[0].value, "red", "the claim has the tag");

    struct weft_lease_answer answer = {0};
    const struct weft_renew renew = {
        .id = id, .epoch = got->epoch, .has_progress = true, .percent = 40, .note = "nearly"};
    ok(weft_renew(weft, &renew, 1, &answer, &err) == WEFT_OK && !answer.err.rc, "renewed");
    struct weft_page page = {0};
    ok(weft_describe(weft, &id, 1, &page, &err) == WEFT_OK && page.count == 1, "described");
    is_int(page.item[0].state, WEFT_STATE_RUNNING, "the described state is running");
    is_int(page.item[0].percent, 40, "the description has the progress");
    weft_page_free(&page);

    struct weft_bytes bytes = {0};
    is_int(weft_result(weft, &id, &bytes, &err), WEFT_NOT_FOUND, "no result yet");
    const struct weft_complete complete = {
        .id = id, .epoch = got->epoch, .result = "{}", .result_size = 2};
    ok(weft_complete(weft, &complete, 1, &answer, &err) == WEFT_OK && !answer.err.rc, "completed");
    is_int(weft_result(weft, &id, &bytes, &err), WEFT_OK, "there is a result");
    is_int(bytes.size, 2, "the result has two bytes");
    weft_bytes_free(&bytes);
    is_int(weft_payload(weft, &id, &bytes, &err), WEFT_OK, "the payload can be read");
    is_str(bytes.content_type, "application/json", "the payload is JSON");
    weft_bytes_free(&bytes);

    const struct weft_filter filter = {.key = "round-1"};
    ok(weft_list(weft, &filter, 0, NULL, &page, &err) == WEFT_OK && page.count == 1,
       "found by key");
    is_int(page.item[0].state, WEFT_STATE_SUCCEEDED, "the listed execution has succeeded");
    weft_page_free(&page);
    struct weft_attempts attempts = {0};
    is_int(weft_attempts(weft, &id, &attempts, &err), WEFT_OK, "the attempts can be read");
    weft_attempts_free(&attempts);
    weft_claims_free(&claims);
    is_int(weft_list(weft, NULL, 3, "garbage", &page, &err), WEFT_INVALID_VALUE, "a bad cursor");
}

static void test_steering(struct weft *weft)
{
    struct weft_id id = submit(weft, &(struct weft_spec){.kind = "steer", .lane = "steer"});
    struct weft_steered answer = {0};
    const struct weft_steer item = {.id = id, .reason = "no longer wanted"};
    ok(weft_steer(weft, WEFT_STEER_CANCEL, &item, 1, &answer, &err) == WEFT_OK && answer.changed,
       "cancelled");
    ok(weft_steer(weft, WEFT_STEER_REPLAY, &item, 1, &answer, &err) == WEFT_OK && answer.changed,
       "the cancelled execution is replayed");
    struct weft_sweep sweep = {0};
    const struct weft_steer_all all = {.kind = WEFT_STEER_CANCEL, .filter = {.lane = "steer"}};
    is_int(weft_steer_all(weft, &all, &sweep, &err), WEFT_OK, "cancelled by filter");
    is_int(sweep.changed, 1, "one of them");
    const struct weft_steer_all everything = {.kind = WEFT_STEER_CANCEL};
    is_int(weft_steer_all(weft, &everything, &sweep, &err), WEFT_INVALID_VALUE,
           "an empty filter is refused");
    ok(weft_steer(weft, WEFT_STEER_CANCEL, &item, 1, &answer, &err) == WEFT_OK &&
           answer.err.rc == WEFT_OK && !answer.changed,
       "a second cancel changes nothing");
    struct weft_id more[3];
    for (size_t i = 0; i < 3; i++)
        more[i] = submit(weft, &(struct weft_spec){.kind = "steer", .lane = "steer"});
    const struct weft_steer_all two = {
        .kind = WEFT_STEER_CANCEL, .filter = {.lane = "steer"}, .max = 2};
    ok(weft_steer_all(weft, &two, &sweep, &err) == WEFT_OK && sweep.changed == 2,
       "no more than were asked for");
    const struct weft_steer priority = {.id = more[0], .priority = 5};
    ok(weft_steer(weft, WEFT_STEER_REPRIORITIZE, &priority, 1, &answer, &err) == WEFT_OK,
       "a priority");
    const struct weft_steer absent = {.id = {{1}}};
    ok(weft_steer(weft, WEFT_STEER_REVOKE, &absent, 1, &answer, &err) == WEFT_OK &&
           answer.err.rc == WEFT_NOT_FOUND,
       "a revoke of an unknown id is not found");

    const struct weft_lane lane = {.name = "steer", .max_running = 3, .paused = true};
    is_int(weft_lane_put(weft, &lane, &err), WEFT_OK, "a lane is set");
    struct weft_lanes lanes = {0};
    is_int(weft_lanes(weft, &lanes, &err), WEFT_OK, "lanes are listed");
    bool found = false;
    for (size_t i = 0; i < lanes.count; i++)
        found |= strcmp(lanes.item[i].name, "steer") == 0 && lanes.item[i].paused;
    ok(found, "the paused lane is listed");
    weft_lanes_free(&lanes);
    is_int(weft_lane_remove(weft, "steer", &err), WEFT_OK, "the settings of the lane are removed");
    is_int(weft_lane_remove(weft, "steer", &err), WEFT_NOT_FOUND,
           "settings that were removed are not found");
    is_str(err.field, "lane", "the field is named");
    struct weft_counts counts = {0};
    is_int(weft_counts(weft, NULL, &counts, &err), WEFT_OK, "counts are read");
    weft_counts_free(&counts);
    for (int p = 0; p < WEFT_SCANNER_COUNT && !remote; p++) {
        struct weft_pass_report report;
        is_int(weft_run_pass(weft, (enum weft_scanner)p, 0, &report, &err), WEFT_OK, "pass %s",
               weft_scanner_name((enum weft_scanner)p));
    }
}

/* What one namespace holds is not there for another. */
static void test_tokens(struct weft *weft)
{
    static const char *const scopes[] = {"read", "work"}, *const none[] = {"root"};
    const struct weft_token_spec spec = {
        .name = "t", .scopes = scopes, .scope_count = 2, .ns = "blue", .expires_ms = 3600000};
    struct weft_tokens made = {0}, again = {0}, list = {0};
    is_int(weft_token_create(weft, &spec, &made, &err), WEFT_OK, "a token is made %s", err.text);
    const struct weft_token *token = made.item;
    ok(made.count == 1 && token->id > 0 && strncmp(token->token, "weft_", 5) == 0 &&
           token->scope_count == 2 && strcmp(token->ns, "blue") == 0 &&
           token->expires_us - token->created_us == 3600 * 1000000LL,
       "the token has the fields that were asked for");
    const struct weft_token_rotation rotation = {.id = token->id, .grace_ms = 60000};
    is_int(weft_token_rotate(weft, &rotation, &again, &err), WEFT_OK, "the token is rotated");
    ok(again.count == 1 && again.item->id == token->id &&
           strcmp(again.item->token, token->token) != 0 && again.item->old_expires_us > 0,
       "the rotated token has another secret and a grace for the old one");
    is_int(weft_tokens(weft, &list, &err), WEFT_OK, "the list");
    ok(list.count == 1 && list.item[0].id == token->id && !list.item[0].token &&
           strcmp(list.item[0].scopes[1], "work") == 0 && list.item[0].rotated_us > 0,
       "the list has the token without a secret");
    weft_tokens_free(&list);
    is_int(weft_token_revoke(weft, token->id, &err), WEFT_OK, "the token is revoked");
    is_int(weft_token_revoke(weft, token->id, &err), WEFT_NOT_FOUND,
           "a revoked token is not found");
    is_int(weft_token_rotate(weft, &rotation, &list, &err), WEFT_NOT_FOUND,
           "a revoked token cannot be rotated");
    is_str(err.field, "id", "the field is named");
    const struct weft_token_spec bad = {.name = "t", .scopes = none, .scope_count = 1};
    is_int(weft_token_create(weft, &bad, &list, &err), WEFT_INVALID_VALUE, "a scope that is none");
    is_str(err.field, "scopes", "the field is named");
    weft_tokens_free(&made);
    weft_tokens_free(&again);
    weft_tokens_free(NULL);
}

static void test_namespaces(struct weft *weft)
{
    struct weft_id id =
        submit(weft, &(struct weft_spec){.kind = "mine", .payload = "1", .payload_size = 1});
    struct weft *other = open_weft("other");
    struct weft_page page = {0};
    ok(weft_describe(other, &id, 1, &page, &err) == WEFT_OK, "another namespace may ask");
    is_int(page.item[0].state, WEFT_STATE_NONE, "another namespace sees no state");
    weft_page_free(&page);
    struct weft_bytes bytes = {0};
    is_int(weft_payload(other, &id, &bytes, &err), WEFT_NOT_FOUND,
           "another namespace does not get the payload");
    weft_close(other);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static int64_t mono_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A thread that waits: for work, and then for its end. */
struct waiter {
    struct weft *weft;
    struct weft_id id;
    enum weft_rc claimed, waited;
    size_t count;
    enum weft_state state;
};

static void *wait_for_end(void *context)
{
    struct waiter *waiter = context;
    struct weft_page page = {0};
    waiter->waited = weft_wait(waiter->weft, &waiter->id, PATIENCE_MS, &page, NULL);
    if (!waiter->waited)
        waiter->state = page.item[0].state;
    weft_page_free(&page);
    return NULL;
}

static void *claim_and_finish(void *context)
{
    struct waiter *waiter = context;
    const char *const lane = "wait";
    const struct weft_claim claim = {
        .worker = "waiter", .lanes = &lane, .lane_count = 1, .wait_ms = PATIENCE_MS};
    struct weft_claims claims = {0};
    waiter->claimed = weft_claim(waiter->weft, &claim, 1, &claims, NULL);
    waiter->count = claims.count;
    if (claims.count == 1) {
        const struct weft_complete done = {.id = claims.item[0].id, .epoch = claims.item[0].epoch};
        struct weft_lease_answer answer;
        if (weft_complete(waiter->weft, &done, 1, &answer, NULL))
            waiter->count = 0;
    }
    weft_claims_free(&claims);
    return NULL;
}

static void test_waiting(struct weft *weft)
{
    const char *const lane = "wait";
    struct weft_claims claims = {0};
    const struct weft_claim idle = {
        .worker = "waiter", .lanes = &lane, .lane_count = 1, .wait_ms = 120};
    int64_t began_ms = mono_ms();
    ok(weft_claim(weft, &idle, 1, &claims, &err) == WEFT_OK && claims.count == 0,
       "a claim that waits for nothing");
    ok(mono_ms() - began_ms >= 100, "takes its time");
    weft_claims_free(&claims);

    began_ms = mono_ms();
    struct waiter waiter = {.weft = weft};
    pthread_t claimer, watcher;
    (void)pthread_create(&claimer, NULL, claim_and_finish, &waiter);
    waiter.id = submit(weft, &(struct weft_spec){.kind = "wait", .lane = "wait"});
    (void)pthread_create(&watcher, NULL, wait_for_end, &waiter);
    (void)pthread_join(claimer, NULL);
    (void)pthread_join(watcher, NULL);
    ok(waiter.claimed == WEFT_OK && waiter.count == 1, "a claim that waits for work gets it");
    ok(waiter.waited == WEFT_OK && waiter.state == WEFT_STATE_SUCCEEDED,
       "a wait for the end sees the end");
    ok(mono_ms() - began_ms < PATIENCE_MS / 2, "neither call waits longer than needed");

    struct weft_page page = {0};
    struct weft_id id = submit(weft, &(struct weft_spec){.kind = "wait", .lane = "asleep"});
    ok(weft_wait(weft, &id, 60, &page, &err) == WEFT_OK && page.item[0].state == WEFT_STATE_READY,
       "a wait that runs out gives the current state");
    weft_page_free(&page);
    ok(weft_wait(weft, &id, 0, &page, &err) == WEFT_OK && page.count == 1, "without waiting, too");
    weft_page_free(&page);
    is_int(weft_wait(weft, &(struct weft_id){{1}}, PATIENCE_MS, &page, &err), WEFT_NOT_FOUND,
           "a wait for an unknown id is not_found at once");
}

static void test_goodbye(struct weft *weft)
{
    const char *const lane = "bye";
    struct weft_id id = submit(weft, &(struct weft_spec){.kind = "bye", .lane = lane});
    const struct weft_claim claim = {.worker = "gone:1", .lanes = &lane, .lane_count = 1};
    struct weft_claims claims = {0};
    ok(weft_claim(weft, &claim, 1, &claims, &err) == WEFT_OK && claims.count == 1, "claimed");
    is_int(claims.count ? claims.item[0].lease_ms : 0, 30000,
           "the claim has the default lease time");
    weft_claims_free(&claims);
    uint64_t released = 0;
    ok(weft_goodbye(weft, "gone:1", &released, &err) == WEFT_OK && released == 1,
       "a worker that is gone: %s", err.text);
    struct weft_page page = {0};
    ok(weft_describe(weft, &id, 1, &page, &err) == WEFT_OK &&
           page.item[0].state == WEFT_STATE_READY,
       "leaves its work to others");
    weft_page_free(&page);
    is_int(weft_goodbye(weft, "gone:1", NULL, &err), WEFT_OK, "a second goodbye is accepted");
    struct weft_workers workers = {0};
    is_int(weft_workers(weft, &workers, &err), WEFT_OK, "workers are listed");
    weft_workers_free(&workers);
}

static void test_link(struct weft *weft)
{
    static const char *const after[] = {"a"};
    const struct weft_node node[] = {
        {.name = "a", .spec = {.kind = "k", .lane = "link"}},
        {.name = "b", .spec = {.kind = "k", .lane = "link"}},
        {.name = "c", .spec = {.kind = "k", .lane = "link"}, .after = after, .after_count = 1}};
    const struct weft_flow_spec spec = {.nodes = node, .node_count = 3};
    struct weft_id id[3];
    struct weft_flow_submitted answer = {.node = id};
    ok(weft_flow_submit(weft, &spec, 1, &answer, &err) == WEFT_OK && !answer.err.rc, "a flow %s",
       answer.err.text);
    const struct weft_flow_edge to_c = {"b", "c"}, to_a = {"c", "a"};
    struct weft_flow_edging edging = {
        .flow = answer.id, .revision = 1, .edges = &to_c, .edge_count = 1};
    int32_t revision = 0;
    is_int(weft_flow_link(weft, &edging, &revision, &err), WEFT_OK, "an edge more %s", err.text);
    is_int(revision, 2, "the revision grows");
    is_int(weft_flow_link(weft, &edging, &revision, &err), WEFT_CONFLICT, "a stale revision");
    is_str(err.field, "revision", "the error names the revision");
    edging.revision = 2;
    edging.edges = &to_a;
    is_int(weft_flow_link(weft, &edging, &revision, &err), WEFT_CONFLICT,
           "an edge to a ready node is refused");
    is_str(err.field, "edges", "the error names the edges");
    is_int(weft_flow_link(weft, NULL, &revision, &err), WEFT_INVALID_VALUE,
           "a link without arguments is refused");
    struct weft_flow_page page = {0};
    is_int(weft_flow_get(weft, &answer.id, 0, &page, &err), WEFT_OK, "the flow");
    ok(page.count == 3 && page.node[2].after_count == 2, "the third node comes after two");
    weft_flow_page_free(&page);
    is_int(weft_flow_delete(weft, &answer.id, &err), WEFT_OK, "removed");
}

static void run_all(void)
{
    struct weft *weft = open_weft(remote ? "behind" : NULL);
    test_null(weft);
    test_null_inside(weft);
    test_counts_of_items(weft);
    test_round(weft);
    test_steering(weft);
    test_tokens(weft);
    test_namespaces(weft);
    test_waiting(weft);
    test_goodbye(weft);
    test_link(weft);
    weft_close(weft);
}

int main(void)
{
    const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread yet */
    (void)snprintf(url, sizeof(url), "sqlite:%s/weft-client-%d.db", folder ? folder : "/tmp",
                   (int)getpid());
    char store[300];
    memcpy(store, url, sizeof(store));
    test_open();
    run_all();
    /* The same store behind a server; another namespace, so that it begins empty. */
    struct weft_server *server = NULL;
    const struct weft_server_config config = {.store = store, .listen = "127.0.0.1:0"};
    ok(weft_server_start(&config, &server, &err) == WEFT_OK, "a server %s", err.text);
    (void)snprintf(url, sizeof(url), "%s", server ? weft_server_url(server) : "");
    remote = true;
    run_all();
    weft_server_free(server);
    static const char *const suffix[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof(suffix) / sizeof(suffix[0]); i++) {
        char path[320];
        (void)snprintf(path, sizeof(path), "%s%s", store + strlen("sqlite:"), suffix[i]);
        (void)unlink(path);
    }
    return tap_done();
}
