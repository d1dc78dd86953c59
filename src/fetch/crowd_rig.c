/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One call as libcurl sees it: its settings, and the callbacks that watch it.
 *
 * Addresses are judged twice: before a socket is made, so that none is ever connected to a refused
 * address, and before a request is sent, because a kept connection may have been made for a call
 * that was allowed more.
 *
 * libcurl repeats a request by itself when a kept connection turns out to be closed. Before each
 * request it asks before_request(), which refuses the second one of a call marked `once`.
 */

#include "fetch/crowd_state.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    IDLE_AGE_S = 60,   /* a connection idle for longer is not used again; servers close at 75 */
    CA_CACHE_S = 600,  /* how soon another file of authorities is noticed */
    LINES_OF_OURS = 3, /* header lines that are added */
};

static void fail(struct weft_transfer *transfer, enum weft_http_failure failure, const char *why)
{
    if (transfer->stop != CROWD_GOES_ON)
        return;
    transfer->stop = CROWD_FAILED;
    transfer->failure = failure;
    transfer->why = why;
}

/* ---- Addresses ------------------------------------------------------------------------------- */

/* True when the call may not go there. */
static bool is_refused(struct crowd_rig *rig, const struct weft_address *address)
{
    struct weft_transfer *transfer = rig->transfer;
    const char *what = transfer->call.private_addresses ? NULL : weft_address_refused(address);
    if (!what)
        return false;
    weft_address_print(address, rig->address);
    transfer->why = what;
    return true;
}

static bool read_address(const struct curl_sockaddr *from, struct weft_address *ret_address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&from->addr;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&from->addr;
    *ret_address = (struct weft_address){.size = from->family == AF_INET ? 4 : 16};
    if (from->family == AF_INET)
        memcpy(ret_address->byte, &v4->sin_addr, 4);
    else if (from->family == AF_INET6)
        memcpy(ret_address->byte, &v6->sin6_addr, 16);
    return from->family == AF_INET || from->family == AF_INET6;
}

/* With CURL_SOCKET_BAD libcurl goes on to the next address of the host, if there is one. */
static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct crowd_rig *rig = context;
    struct weft_address address;
    (void)purpose;
    if (!read_address(to, &address) || is_refused(rig, &address))
        return CURL_SOCKET_BAD;
    int fd = socket(to->family, to->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, to->protocol);
    if (fd < 0)
        return CURL_SOCKET_BAD;
    weft_crowd_opened(rig->loop, fd);
    return fd;
}

static int close_socket(void *context, curl_socket_t fd)
{
    weft_crowd_closed(context, fd);
    return close(fd);
}

static bool is_peer_refused(struct crowd_rig *rig, const char *peer)
{
    struct weft_address address;
    if (rig->transfer->call.private_addresses)
        return false;
    bool known = strchr(peer, ':')
                     ? weft_address_v6(peer, strlen(peer), &address)
                     : weft_host_read(peer, strlen(peer), &address) == WEFT_HOST_ADDRESS;
    if (known)
        return is_refused(rig, &address);
    rig->transfer->why = "the address of the server cannot be read";
    return true;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): libcurl says what it passes */
static int before_request(void *context, char *peer, char *own, int peer_port, int own_port)
{
    struct crowd_rig *rig = context;
    struct weft_transfer *transfer = rig->transfer;
    (void)own;
    (void)peer_port;
    (void)own_port;
    if (is_peer_refused(rig, peer)) {
        fail(transfer, WEFT_HTTP_REFUSED, transfer->why);
        return CURL_PREREQFUNC_ABORT;
    }
    transfer->sent = weft_crowd_sent(transfer);
    if (transfer->asked && transfer->sent && transfer->call.once) {
        fail(transfer, WEFT_HTTP_BROKEN, "the server closed the connection instead of answering");
        return CURL_PREREQFUNC_ABORT;
    }
    transfer->asked = true;
    if (transfer->step == CROWD_CONNECTS)
        weft_crowd_enter(transfer, CROWD_ASKS, weft_boot_us());
    return CURL_PREREQFUNC_OK;
}

/* ---- The answer ------------------------------------------------------------------------------ */

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* The head is complete. False: the call stops. */
static bool take_head(struct crowd_rig *rig)
{
    struct weft_transfer *transfer = rig->transfer;
    long status = 0;
    (void)curl_easy_getinfo(rig->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status == 101 || status < 100) {
        fail(transfer, WEFT_HTTP_PROTOCOL, "the server switched to another protocol");
        return false;
    }
    if (status < 200) {
        weft_head_again(&rig->head);
        return true;
    }
    transfer->status = (int)status;
    transfer->hops = transfer->call.redirects && is_redirect((int)status) &&
                     weft_head_find(&rig->head, "Location");
    if (!weft_unpack_new(weft_head_find(&rig->head, "Content-Encoding"), &rig->unpack)) {
        fail(transfer, WEFT_HTTP_PROTOCOL, "the answer has an encoding that was not asked for");
        return false;
    }
    if (!transfer->hops) {
        struct weft_crowd_header header[WEFT_HEAD_LINES_MAX];
        size_t count = weft_head_list(&rig->head, header);
        transfer->call.ops->head(transfer->call.context, (int)status, header, count);
    }
    return true;
}

static size_t take_line(char *line, size_t size, size_t count, void *context)
{
    struct crowd_rig *rig = context;
    enum weft_head_step step = weft_head_line(&rig->head, line, size * count);
    weft_usec now_us = weft_boot_us();
    if (!rig->transfer->heard_us)
        rig->transfer->heard_us = now_us;
    weft_crowd_enter(rig->transfer, CROWD_HEARS, now_us);
    if (step == WEFT_HEAD_BAD)
        fail(rig->transfer, WEFT_HTTP_PROTOCOL, rig->head.wrong);
    if (step == WEFT_HEAD_BAD || (step == WEFT_HEAD_END && !take_head(rig)))
        return CURL_WRITEFUNC_ERROR;
    return size * count;
}

static bool take_bytes(void *context, const void *bytes, size_t size)
{
    struct weft_transfer *transfer = context;
    if (size > transfer->call.response_max - transfer->received) {
        fail(transfer, WEFT_HTTP_OVERSIZED, NULL);
        return false;
    }
    transfer->received += size;
    bool enough = false;
    if (transfer->hops || transfer->call.ops->data(transfer->call.context, bytes, size, &enough))
        return true;
    transfer->stop = enough ? CROWD_ENOUGH : CROWD_ABORTED;
    return false;
}

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct crowd_rig *rig = context;
    struct weft_transfer *transfer = rig->transfer;
    size *= count;
    weft_crowd_enter(transfer, CROWD_HEARS, weft_boot_us());
    bool taken = rig->unpack ? weft_unpack_add(rig->unpack, data, size, take_bytes, transfer)
                             : take_bytes(transfer, data, size);
    if (taken)
        return size;
    if (weft_unpack_broken(rig->unpack))
        fail(transfer, WEFT_HTTP_PROTOCOL, "the answer is not compressed as it says");
    return CURL_WRITEFUNC_ERROR;
}

/* ---- The request ----------------------------------------------------------------------------- */

static bool has_header(const struct weft_crowd_call *call, const char *name)
{
    for (size_t i = 0; i < call->header_count; i++)
        if (strcasecmp(call->header[i].name, name) == 0)
            return true;
    return false;
}

/* A larger block instead of this one, which may have held secrets. */
static void make_room(struct crowd_rig *rig, size_t lines, size_t size)
{
    if (lines > rig->line_room) {
        rig->line = weft_realloc(rig->line, lines, sizeof(struct curl_slist));
        rig->line_room = lines;
    }
    if (size > rig->text_room) {
        weft_crowd_rig_clear(rig);
        free(rig->text);
        rig->text = weft_alloc(size, 1);
        rig->text_room = size;
    }
}

/* The next header line. NULL: libcurl is not to send it; an empty value needs a semicolon then. */
static void add_line(struct crowd_rig *rig, size_t *lines, const char *name, const char *value)
{
    char *text = rig->text + rig->text_size;
    const char *between = !value ? ":" : *value ? ": " : ";";
    int size = snprintf(text, rig->text_room - rig->text_size, "%s%s%s", name, between,
                        value ? value : "");
    rig->text_size += (size_t)size + 1;
    rig->line[*lines] = (struct curl_slist){.data = text};
    if (*lines > 0)
        rig->line[*lines - 1].next = &rig->line[*lines];
    (*lines)++;
}

/*
 * The header lines. "Expect:" keeps libcurl from waiting for a 100, "Content-Type:" from saying
 * that a body is a form.
 */
static struct curl_slist *write_lines(struct crowd_rig *rig, const struct weft_transfer *transfer)
{
    const struct weft_crowd_call *call = &transfer->call;
    size_t size = sizeof("Accept-Encoding: " WEFT_UNPACK_CODINGS), lines = 0;
    size += sizeof("Expect:") + sizeof("Content-Type:");
    for (size_t i = 0; i < call->header_count; i++)
        size += strlen(call->header[i].name) + strlen(call->header[i].value) + sizeof(": ");
    make_room(rig, call->header_count + LINES_OF_OURS, size);
    for (size_t i = 0; i < call->header_count; i++)
        if (!transfer->bare || strncasecmp(call->header[i].name, "Content-", 8) != 0)
            add_line(rig, &lines, call->header[i].name, call->header[i].value);
    if (!has_header(call, "Accept-Encoding"))
        add_line(rig, &lines, "Accept-Encoding", WEFT_UNPACK_CODINGS);
    if (transfer->bare || !has_header(call, "Content-Type"))
        add_line(rig, &lines, "Content-Type", NULL);
    add_line(rig, &lines, "Expect", NULL);
    return rig->line;
}

static void set_method(CURL *easy, const struct weft_crowd_call *call)
{
    bool head = strcmp(call->method, "HEAD") == 0, post = strcmp(call->method, "POST") == 0;
    bool get = strcmp(call->method, "GET") == 0, body = !head && (post || call->body);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L); /* undoes the settings of the last call */
    if (head)
        (void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (body) {
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_size);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body_size ? call->body : "");
    }
    bool usual = head || (post && body) || (get && !body);
    (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, usual ? NULL : call->method);
}

/*
 * The text takes the place of the system's file of authorities; the system's folder of them, which
 * libcurl was built with, stays. libcurl gives no call a connection that was made with another
 * text.
 */
static void set_trust(struct crowd_rig *rig)
{
    struct weft_crowd *crowd = rig->loop->crowd;
    if (rig->trusted == atomic_load(&crowd->trusted))
        return;
    pthread_mutex_lock(&crowd->lock);
    struct curl_blob blob = {
        .data = crowd->pem, .len = crowd->pem ? strlen(crowd->pem) : 0, .flags = CURL_BLOB_COPY};
    if (curl_easy_setopt(rig->easy, CURLOPT_CAINFO_BLOB, crowd->pem ? &blob : NULL) != CURLE_OK)
        weft_oom(blob.len);
    rig->trusted = atomic_load(&crowd->trusted);
    pthread_mutex_unlock(&crowd->lock);
}

void weft_crowd_rig_set(struct crowd_rig *rig, struct weft_transfer *transfer)
{
    const struct weft_crowd_call *call = &transfer->call;
    CURL *easy = rig->easy;
    rig->transfer = transfer;
    transfer->rig = rig;
    weft_head_clear(&rig->head);
    *rig->message = *rig->address = '\0';
    weft_crowd_rig_clear(rig);
    set_trust(rig);
    set_method(easy, call);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, write_lines(rig, transfer));
    (void)curl_easy_setopt(easy, CURLOPT_URL, transfer->url ? transfer->url : call->url);
    /* libcurl shares this among the addresses of a host; the deadline itself is kept by us. */
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                           (long)(call->connect_ms < INT32_MAX ? call->connect_ms : INT32_MAX));
}

void weft_crowd_rig_clear(struct crowd_rig *rig)
{
    weft_unpack_free(rig->unpack);
    rig->unpack = NULL;
    if (rig->text_size > 0)
        explicit_bzero(rig->text, rig->text_size);
    rig->text_size = 0;
}

/* ---- A rig ----------------------------------------------------------------------------------- */

static void set_callbacks(struct crowd_rig *rig)
{
    CURL *easy = rig->easy;
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, rig);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, rig->message);
    (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    (void)curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, rig);
    (void)curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    (void)curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, rig->loop); /* it outlives the rig */
    (void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_request);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, rig);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_line);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, rig);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, rig);
}

/* The same for all calls. HTTP/1.1, also over TLS: a connection that hangs holds up one call. */
static void set_rules(struct crowd_rig *rig)
{
    CURL *easy = rig->easy;
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a slow resolver */
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    (void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    (void)curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "weft/" WEFT_VERSION);
    (void)curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_AGE_S);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, (long)CA_CACHE_S);
}

struct crowd_rig *weft_crowd_rig_new(struct crowd_loop *loop)
{
    struct crowd_rig *rig = weft_alloc(1, sizeof(*rig));
    rig->loop = loop;
    rig->easy = curl_easy_init();
    if (!rig->easy)
        weft_oom(1);
    weft_head_init(&rig->head);
    set_rules(rig);
    set_callbacks(rig);
    return rig;
}

void weft_crowd_rig_free(struct crowd_rig *rig)
{
    weft_crowd_rig_clear(rig);
    curl_easy_cleanup(rig->easy);
    weft_head_done(&rig->head);
    free(rig->text);
    free(rig->line);
    free(rig);
}
