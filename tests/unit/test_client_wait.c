/* SPDX-License-Identifier: Apache-2.0 */

/* Waiting through the C library: the same calls on a store in this process and through a server. */

#include "base/base.h"
#include "server_fixture.h"
#include "tap.h"

#include "weft/admin.h"
#include "weft/weft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct weft_claims claim(struct weft *weft)
{
    const struct weft_claim claim = {.worker = "w", .wait_ms = 5000};
    struct weft_claims claims = {0};
    struct weft_err err = {0};
    ok(weft_claim(weft, &claim, 1, &claims, &err) == WEFT_OK && claims.count == 1,
       "an execution is claimed %s", err.text);
    return claims;
}

static struct weft_suspensions suspend(struct weft *weft, const struct weft_suspend *item)
{
    struct weft_suspensions answer = {0};
    struct weft_err err = {0};
    ok(weft_suspend(weft, item, 1, &answer, &err) == WEFT_OK && answer.count == 1,
       "the suspend call is answered %s", err.text);
    return answer;
}

static void test_waiting(struct weft *weft, const struct weft_id *id)
{
    struct weft_waiting waiting = {0};
    struct weft_err err = {0};
    is_int(weft_waiting(weft, id, &waiting, &err), WEFT_OK, "the waiting state is read");
    ok(waiting.suspended && waiting.suspended_us > 0 && waiting.timeout_us > waiting.suspended_us,
       "the times of the suspension and of its timeout are set");
    is_str(waiting.condition, "{\"any\":[{\"waitpoint\":\"a\"},{\"waitpoint\":\"b\"}]}",
           "the condition comes in canonical text");
    is_int(waiting.on_timeout, WEFT_ON_TIMEOUT_RESUME, "a timeout resumes the execution");
    ok(waiting.waitpoint_count == 2 && strcmp(waiting.waitpoint[1].name, "b") == 0 &&
           !waiting.waitpoint[1].token,
       "the waitpoints in the order in which they were made, without tokens");
    ok(!waiting.resumed, "the execution has not been resumed");
    weft_waiting_free(&waiting);
}

/* Suspend at two waitpoints, signal one of them, claim with the signal. */
static void test_signal(struct weft *weft, const struct weft_claimed *lease)
{
    static const struct weft_suspend_at at[] = {{.name = "a"}, {.name = "b"}};
    const struct weft_suspend item = {
        .id = lease->id,
        .epoch = lease->epoch,
        .waitpoint = at,
        .waitpoint_count = 2,
        .condition = "{\"any\":[{\"waitpoint\":\"a\"},{\"waitpoint\":\"b\"}]}",
        .timeout_ms = 60000,
        .on_timeout = WEFT_ON_TIMEOUT_RESUME,
    };
    struct weft_suspensions first = suspend(weft, &item), again = suspend(weft, &item);
    is_int(first.item[0].state, WEFT_STATE_SUSPENDED, "the execution is suspended");
    is_str(first.item[0].waitpoint[1].name, "b", "waitpoints are in the order of the item");
    is_str(again.item[0].waitpoint[1].token, first.item[0].waitpoint[1].token,
           "a repeat gives the same token");
    test_waiting(weft, &lease->id);
    struct weft_signal signal = {.token = first.item[0].waitpoint[1].token,
                                 .name = "yes",
                                 .key = "k",
                                 .payload = "[1]",
                                 .payload_size = 3};
    struct weft_signalled sent[2];
    struct weft_err err = {0};
    const struct weft_signal both[] = {signal, {.token = "no"}};
    is_int(weft_signal(weft, both, 2, sent, &err), WEFT_OK, "two signals are sent");
    is_str(weft_signal_effect_name(sent[0].effect), "resumed", "the first resumes");
    is_int(sent[1].err.rc, WEFT_UNAUTHORIZED, "the second has no good token");
    is_int(weft_signal(weft, &signal, 1, sent, &err), WEFT_OK, "the first is sent again");
    ok(sent[0].effect == WEFT_SIGNAL_DUPLICATE && sent[0].first == WEFT_SIGNAL_RESUMED,
       "the repeat is a duplicate of the signal that resumed");
    struct weft_waiting waiting = {0};
    is_int(weft_waiting(weft, &lease->id, &waiting, &err), WEFT_OK,
           "the waiting state is read again");
    ok(!waiting.suspended && waiting.waitpoint_count == 0 && waiting.resumed &&
           waiting.resumed_by == WEFT_RESUMED_BY_SIGNALS && waiting.resumed_us > 0,
       "the execution is not suspended any more, and signals resumed it");
    weft_waiting_free(&waiting);
    struct weft_claims next = claim(weft);
    const struct weft_claimed *got = next.item;
    ok(got->resumed && got->resumed_by == WEFT_RESUMED_BY_SIGNALS && got->resumed_us > 0,
       "the claim says what resumed the execution");
    ok(got->signal_count == 1 && strcmp(got->signal[0].name, "yes") == 0 &&
           got->signal[0].payload_size == 3 && memcmp(got->signal[0].payload, "[1]", 3) == 0,
       "the claim has the signal");
    weft_claims_free(&next);
    weft_suspensions_free(&first);
    weft_suspensions_free(&again);
}

static void test_lists(struct weft *weft, const struct weft_id *id)
{
    struct weft_waitpoints page = {0}, second = {0};
    struct weft_signals signals = {0};
    struct weft_err err = {0};
    is_int(weft_waitpoints(weft, id, 1, NULL, &page, &err), WEFT_OK, "a page of waitpoints");
    ok(page.count == 1 && page.next, "the page has one waitpoint and a next page");
    is_str(page.item[0].name, "a", "the page has the waitpoint that was made first");
    is_int(page.item[0].state, WEFT_WAITPOINT_CLOSED, "the waitpoint is closed");
    is_int(weft_waitpoints(weft, id, 1, page.next, &second, &err), WEFT_OK, "the next page");
    ok(second.count == 1 && strcmp(second.item[0].name, "b") == 0 && second.item[0].signals == 1,
       "the next page has the other waitpoint, with its signal");
    is_int(weft_signals(weft, id, 0, NULL, &signals, &err), WEFT_OK, "signals are listed");
    ok(signals.count == 1 && strcmp(signals.item[0].waitpoint_name, "b") == 0,
       "the list has one signal");
    weft_waitpoints_free(&second);
    is_int(weft_waitpoints(weft, &(struct weft_id){{9}}, 0, NULL, &second, &err), WEFT_NOT_FOUND,
           "an execution that does not exist has no list");
    weft_waitpoints_free(&page);
    weft_signals_free(&signals);
}

/* A pending waitpoint, its token for operators, keys, and an operator who resumes. */
static void test_operators(struct weft *weft, const struct weft_id *id, int32_t epoch)
{
    struct weft_err err = {0};
    const struct weft_waitpoint_new item = {.id = *id, .epoch = epoch, .name = "later"};
    struct weft_waitpoints_made made = {0};
    struct weft_bytes token = {0};
    struct weft_signing_keys keys = {0}, rotated = {0};
    is_int(weft_waitpoint_make(weft, &item, 1, &made, &err), WEFT_OK, "a waitpoint is made");
    is_int(weft_waitpoint_token(weft, &made.item[0].waitpoint.id, &token, &err), WEFT_OK,
           "the token of the waitpoint is given again");
    is_str(token.data, made.item[0].waitpoint.token, "the same");
    is_int(weft_signing_keys(weft, &keys, &err), WEFT_OK, "keys are listed");
    is_int(weft_signing_key_rotate(weft, &(struct weft_key_rotation){.grace_ms = 60000}, &rotated,
                                   &err),
           WEFT_OK, "the keys are rotated");
    is_int(rotated.count, keys.count + 1, "the rotation adds a key");
    ok(rotated.item[rotated.count - 1].current, "the new key signs");
    struct weft_suspensions answer = suspend(
        weft,
        &(struct weft_suspend){.id = *id, .epoch = epoch, .condition = "{\"operator\":true}"});
    is_int(answer.item[0].state, WEFT_STATE_SUSPENDED, "the execution waits for an operator");
    struct weft_steered steered;
    is_int(weft_steer(weft, WEFT_STEER_RESUME, &(struct weft_steer){.id = *id}, 1, &steered, &err),
           WEFT_OK, "the operator resumes the execution");
    is_int(steered.state, WEFT_STATE_READY, "the resumed execution is ready");
    struct weft_suspensions fenced = suspend(
        weft, &(struct weft_suspend){.id = *id, .epoch = 77, .condition = "{\"operator\":true}"});
    ok(fenced.item[0].err.rc == WEFT_FENCED && fenced.item[0].fence == WEFT_FENCE_UNKNOWN,
       "an epoch that was never given is fenced");
    weft_suspensions_free(&answer);
    weft_suspensions_free(&fenced);
    weft_waitpoints_made_free(&made);
    weft_bytes_free(&token);
    weft_signing_keys_free(&keys);
    weft_signing_keys_free(&rotated);
}

/* A condition that is no JSON does not harm the other items of its call. */
static void test_bad_condition(struct weft *weft)
{
    const struct weft_suspend item[] = {
        {.id = {{1}}, .epoch = 1, .condition = "{\"operator\":true}"},
        {.id = {{1}}, .epoch = 1, .condition = "{\"operator\":true},{"},
    };
    struct weft_suspensions answer = {0};
    struct weft_err err = {0};
    is_int(weft_suspend(weft, item, 2, &answer, &err), WEFT_OK, "each item is answered %s",
           err.text);
    is_int(answer.item[0].err.rc, WEFT_NOT_FOUND, "the execution of the good item does not exist");
    ok(answer.item[1].err.rc == WEFT_INVALID_VALUE && answer.item[1].err.field &&
           strcmp(answer.item[1].err.field, "condition") == 0,
       "the condition of the bad item is blamed: %s", answer.item[1].err.text);
    weft_suspensions_free(&answer);
}

static void test_all(const char *url, const char *name)
{
    struct weft *weft = NULL;
    struct weft_err err = {0};
    struct weft_submitted answer;
    printf("# %s\n", name);
    ok(weft_open(url, NULL, &weft, &err) == WEFT_OK, "%s is opened %s", name, err.text);
    ok(weft_submit(weft, &(struct weft_spec){.kind = "k"}, 1, &answer, &err) == WEFT_OK,
       "an execution is submitted");
    struct weft_claims lease = claim(weft);
    test_signal(weft, lease.item);
    test_lists(weft, &answer.id);
    test_operators(weft, &answer.id, lease.item[0].epoch + 1);
    struct weft_claims last = claim(weft);
    const struct weft_complete done = {.id = answer.id, .epoch = last.item[0].epoch};
    struct weft_lease_answer ended;
    ok(weft_complete(weft, &done, 1, &ended, &err) == WEFT_OK && !ended.err.rc,
       "the execution is completed");
    weft_claims_free(&lease);
    weft_claims_free(&last);
    test_bad_condition(weft);
    struct weft_suspensions none;
    is_int(weft_suspend(weft, NULL, 1, &none, &err), WEFT_INVALID_VALUE, "items must be there");
    struct weft_signalled sent;
    is_int(weft_signal(weft, &(struct weft_signal){.name = "n"}, 1, &sent, &err),
           WEFT_INVALID_VALUE, "a signal has a token");
    weft_close(weft);
}

int main(void)
{
    char url[300], file[280];
    const char *folder = getenv("TMPDIR");
    struct weft_err err = {0};
    struct weft_server *server = NULL;
    (void)snprintf(file, sizeof(file), "%s/client_wait_%d.db", folder ? folder : "/tmp", getpid());
    (void)snprintf(url, sizeof(url), "sqlite:%s", file);
    test_all(url, "a store");
    const struct weft_server_config config = {.store = url, .listen = "127.0.0.1:0"};
    ok(weft_server_start(&config, &server, &err) == WEFT_OK, "a server starts %s", err.text);
    test_all(weft_server_url(server), "a server");
    weft_server_free(server);
    static const char *const suffix[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < WEFT_LEN(suffix); i++) {
        char path[300];
        (void)snprintf(path, sizeof(path), "%s%s", file, suffix[i]);
        (void)unlink(path);
    }
    return tap_done();
}
