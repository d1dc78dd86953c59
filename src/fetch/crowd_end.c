/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How calls end: what libcurl's code means, the sentence for people, where redirects lead.
 *
 * Texts of libcurl are used only for failures before a request was sent: they name hosts and
 * certificates, never a part of a request.
 */

#include "fetch/crowd_state.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "core/http_url.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool weft_crowd_is_tls(const struct weft_transfer *transfer)
{
    return strncasecmp(transfer->call.url, "https:", 6) == 0;
}

bool weft_crowd_sent(const struct weft_transfer *transfer)
{
    long bytes = 0;
    if (transfer->sent || !transfer->asked)
        return transfer->sent;
    /* Of TLS libcurl counts bytes when whole records are out, so its number may lag behind. */
    if (weft_crowd_is_tls(transfer))
        return true;
    (void)curl_easy_getinfo(transfer->rig->easy, CURLINFO_REQUEST_SIZE, &bytes);
    return bytes > 0;
}

/* ---- Redirects ------------------------------------------------------------------------------- */

static bool fail(struct weft_transfer *transfer, const char *why)
{
    transfer->stop = CROWD_FAILED;
    transfer->failure = WEFT_HTTP_REDIRECTED;
    transfer->why = why;
    return false;
}

/* As browsers do: 303 makes any method a GET, 301 and 302 a POST. */
static void change_method(struct weft_transfer *transfer)
{
    struct weft_crowd_call *call = &transfer->call;
    bool post = strcmp(call->method, "POST") == 0, head = strcmp(call->method, "HEAD") == 0;
    if (transfer->status > 303 || head || (transfer->status != 303 && !post))
        return;
    call->method = "GET";
    call->body = NULL;
    call->body_size = 0;
    transfer->bare = true;
}

/* The URL that a redirect names, if it is one that is followed; owned. */
static char *read_target(const struct weft_transfer *transfer, char *target)
{
    struct weft_http_url from, to;
    struct weft_arena *arena = weft_arena_new();
    char *url = NULL;
    target[strcspn(target, "#")] = '\0';
    if (weft_http_url_read(transfer->call.url, "url", arena, &from, NULL) == WEFT_OK &&
        weft_http_url_read(target, "url", arena, &to, NULL) == WEFT_OK &&
        weft_http_same_origin(&from, &to))
        url = weft_strdup(to.text);
    weft_arena_free(arena);
    return url;
}

bool weft_crowd_hop(struct weft_transfer *transfer)
{
    char *target = NULL;
    (void)curl_easy_getinfo(transfer->rig->easy, CURLINFO_REDIRECT_URL, &target);
    if (++transfer->redirects > PACK_REDIRECTS)
        return fail(transfer, "the server redirects again and again");
    char *url = target ? read_target(transfer, target) : NULL;
    if (!url)
        return fail(transfer, "the server redirects to another origin, or to no URL at all");
    free(transfer->url);
    transfer->url = url;
    transfer->sent = weft_crowd_sent(transfer);
    change_method(transfer);
    transfer->status = 0;
    transfer->received = 0;
    transfer->hops = transfer->asked = false;
    return true;
}

/* ---- What a code means ----------------------------------------------------------------------- */

/* Of a call that had no connection yet. */
static enum weft_http_failure before_connection(const struct weft_transfer *transfer, CURLcode code)
{
    switch (code) { /* NOLINT(clang-diagnostic-switch-enum): the others mean the same here */
    case CURLE_COULDNT_RESOLVE_HOST:
        return WEFT_HTTP_RESOLVE;
    case CURLE_OPERATION_TIMEDOUT:
        return WEFT_HTTP_TIMEOUT;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return WEFT_HTTP_UNTRUSTED;
    case CURLE_COULDNT_CONNECT:
        return *transfer->rig->address ? WEFT_HTTP_REFUSED : WEFT_HTTP_CONNECT;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_LOGIN_DENIED: /* there is user info in it */
        return WEFT_HTTP_REFUSED;
    default:
        return weft_crowd_is_tls(transfer) ? WEFT_HTTP_TLS : WEFT_HTTP_CONNECT;
    }
}

/* libcurl has one code for chunks that are none and for a connection that is lost. */
static bool is_bad_chunk(const struct weft_transfer *transfer, CURLcode code)
{
    return code == CURLE_RECV_ERROR && strstr(transfer->rig->message, "chunked-encoding");
}

static enum weft_http_failure after_connection(CURLcode code)
{
    switch (code) { /* NOLINT(clang-diagnostic-switch-enum): all others are the server's doing */
    case CURLE_OPERATION_TIMEDOUT:
        return WEFT_HTTP_TIMEOUT;
    case CURLE_OK: /* though the head is not complete */
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
        return WEFT_HTTP_BROKEN;
    default:
        return WEFT_HTTP_PROTOCOL;
    }
}

static enum weft_http_failure failure_of(const struct weft_transfer *transfer, CURLcode code)
{
    if (transfer->stop == CROWD_LATE || transfer->stop == CROWD_OVERDUE)
        return WEFT_HTTP_TIMEOUT;
    if (transfer->stop == CROWD_FAILED)
        return transfer->failure;
    if (is_bad_chunk(transfer, code))
        return WEFT_HTTP_PROTOCOL;
    return transfer->asked ? after_connection(code) : before_connection(transfer, code);
}

/* ---- Sentences ------------------------------------------------------------------------------- */

static void tell_timeout(const struct weft_transfer *transfer, char ret_text[CROWD_TEXT_MAX])
{
    const struct weft_crowd_call *call = &transfer->call;
    enum crowd_step step = transfer->stop == CROWD_OVERDUE ? CROWD_WAITS : transfer->step;
    const struct {
        const char *words;
        int64_t ms;
    } row[] = {
        [CROWD_WAITS] = {"the call was not over within", call->total_ms},
        [CROWD_CONNECTS] = {"there was no connection within", call->connect_ms},
        [CROWD_ASKS] = {"the server did not begin to answer within", call->first_byte_ms},
        [CROWD_HEARS] = {"the server stopped in the middle of its answer for", call->idle_ms},
    };
    (void)snprintf(ret_text, CROWD_TEXT_MAX, "%s %" PRId64 " ms", row[step].words, row[step].ms);
}

/* "Connection refused" is clearer than libcurl's "failed to connect after N ms". */
static void tell_connect(const struct weft_transfer *transfer, CURLcode code,
                         char ret_text[CROWD_TEXT_MAX])
{
    long number = 0;
    char why[200];
    if (code == CURLE_COULDNT_CONNECT)
        (void)curl_easy_getinfo(transfer->rig->easy, CURLINFO_OS_ERRNO, &number);
    (void)snprintf(ret_text, CROWD_TEXT_MAX, "no connection: %s",
                   number ? strerror_r((int)number, why, sizeof(why)) : curl_easy_strerror(code));
}

static void tell(const struct weft_transfer *transfer, enum weft_http_failure failure,
                 CURLcode code, char ret_text[CROWD_TEXT_MAX])
{
    const struct crowd_rig *rig = transfer->rig;
    if (failure == WEFT_HTTP_TIMEOUT)
        tell_timeout(transfer, ret_text);
    else if (failure == WEFT_HTTP_REFUSED && *rig->address)
        (void)snprintf(ret_text, CROWD_TEXT_MAX, "%s is not called: it is no public address (%s)",
                       rig->address, transfer->why);
    else if (failure == WEFT_HTTP_CONNECT)
        tell_connect(transfer, code, ret_text);
    else if (failure == WEFT_HTTP_OVERSIZED)
        (void)snprintf(ret_text, CROWD_TEXT_MAX, "the answer is larger than %zu bytes",
                       transfer->call.response_max);
    else if (transfer->stop == CROWD_FAILED)
        (void)snprintf(ret_text, CROWD_TEXT_MAX, "%s", transfer->why);
    else if (failure == WEFT_HTTP_REFUSED)
        (void)snprintf(ret_text, CROWD_TEXT_MAX, "this is not a URL that is called");
    else if (failure == WEFT_HTTP_BROKEN)
        (void)snprintf(ret_text, CROWD_TEXT_MAX, "the connection ended before the answer did");
    else if (transfer->asked)
        (void)snprintf(ret_text, CROWD_TEXT_MAX, "this is not an answer in HTTP: %s",
                       is_bad_chunk(transfer, code) ? "its chunks are broken"
                                                    : curl_easy_strerror(code));
    else
        (void)snprintf(ret_text, CROWD_TEXT_MAX, "%s",
                       *rig->message ? rig->message : curl_easy_strerror(code));
}

/* ---- The end --------------------------------------------------------------------------------- */

static int64_t phase_us(const struct weft_transfer *transfer, CURLINFO info)
{
    curl_off_t us = 0;
    (void)curl_easy_getinfo(transfer->rig->easy, info, &us);
    return us > 0 ? us + transfer->begun_us - transfer->start_us : 0;
}

/* On a kept connection there was nothing to look up and to connect. */
static struct weft_crowd_phases read_phases(const struct weft_transfer *transfer)
{
    struct weft_crowd_phases phases = {.first_byte_us =
                                           phase_us(transfer, CURLINFO_STARTTRANSFER_TIME_T)};
    long connections = 0;
    (void)curl_easy_getinfo(transfer->rig->easy, CURLINFO_NUM_CONNECTS, &connections);
    if (connections == 0 && transfer->asked)
        return phases;
    phases.resolved_us = phase_us(transfer, CURLINFO_NAMELOOKUP_TIME_T);
    phases.connected_us = phase_us(transfer, CURLINFO_CONNECT_TIME_T);
    phases.secured_us = phase_us(transfer, CURLINFO_APPCONNECT_TIME_T);
    return phases;
}

static bool is_answered(const struct weft_transfer *transfer, CURLcode code)
{
    const struct crowd_rig *rig = transfer->rig;
    return transfer->stop == CROWD_ENOUGH ||
           (transfer->stop == CROWD_GOES_ON && code == CURLE_OK && transfer->status &&
            (!rig || weft_unpack_whole(rig->unpack)));
}

struct weft_crowd_end weft_crowd_judge(const struct weft_transfer *transfer, CURLcode code,
                                       char ret_text[CROWD_TEXT_MAX])
{
    struct weft_crowd_end end = {.status = transfer->status,
                                 .aborted = transfer->stop == CROWD_ABORTED};
    if (transfer->rig) {
        end.sent = weft_crowd_sent(transfer);
        end.phases = read_phases(transfer);
    }
    /* A fresh look: the first byte may have come after the loop's last one. */
    end.phases.total_us = weft_boot_us() - transfer->start_us;
    if (end.aborted || is_answered(transfer, code))
        return end;
    if (transfer->rig) {
        end.failure = failure_of(transfer, code);
        tell(transfer, end.failure, code, ret_text);
    } else {
        end.failure = WEFT_HTTP_TIMEOUT; /* nothing else ends a call that waits */
        tell_timeout(transfer, ret_text);
    }
    end.text = ret_text;
    return end;
}
