/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls over libcurl.
 *
 * A connection is an easy handle with its own multi handle, which keeps one TCP connection. A call
 * takes the idle connection used last, or makes one: there are as many connections as there were
 * concurrent calls. The multi handle is needed because only curl_multi_poll() lets a waiting call
 * check `stop` without a busy loop: it wakes ten times a second.
 *
 * The server may have closed a kept connection a moment ago. libcurl then repeats the request on a
 * new one if no byte of an answer came; but a server that died between carrying out a request and
 * answering it looks the same. So a call marked `once` supplies its body through a callback that
 * refuses to rewind: libcurl repeats the request only while no byte of the body was written, when
 * no server can have acted on it. A call without a body has nothing to hold back and gets a new
 * connection instead.
 *
 * Locks: fetch->lock guards the list of idle connections. No function is called under it.
 */

#include "fetch/fetch.h"

#include "base/alloc.h"
#include "fetch/library.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    DEFAULT_CONNECT_MS = 5000,
    DEFAULT_TIMEOUT_MS = 30000,
    DEFAULT_BODY_MAX = 64 << 20,
    STOP_CHECK_MS = 100,   /* how often a waiting call checks `stop` */
    WAIT_MS = 1000,        /* without `stop`; libcurl's own timers cut it short */
    IDLE_MAX = 64,         /* connections kept */
    IDLE_AGE_S = 60,       /* a connection idle for longer is not used again; servers close at 75 */
    HEADER_LINES_MAX = 32, /* of a config */
    SOURCE_PIECE = 256 << 10, /* bytes that a source gives at once */
};

struct connection {
    struct connection *next;
    CURL *easy;
    CURLM *multi;
};

struct weft_fetch {
    char *base_url; /* owned, without a slash at the end */
    char *ca_file;  /* owned, or NULL */
    bool loopback;  /* the server is on this machine: no proxy */
    int64_t connect_ms;
    size_t body_max;
    struct curl_slist *header;      /* owned; of calls without a body */
    struct curl_slist *body_header; /* owned; of calls with one */
    pthread_mutex_t lock;
    struct connection *idle;
    size_t idle_count;
};

/* One call while it runs. */
struct run {
    const struct weft_fetch_call *call;
    struct weft_fetch_answer answer;
    CURL *easy;
    size_t given;              /* bytes of the body that libcurl took from the callback */
    bool all_given;            /* the source has come to its end */
    struct curl_slist more[3]; /* the call's own header lines, before the common ones */
    char content_type[64];
    char message[CURL_ERROR_SIZE];
};

/* ---- The header lines of an answer ----------------------------------------------------------- */

/* The value of a header line when it has that name; NULL otherwise. Not NUL-terminated. */
static const char *header_value(const char *line, size_t size, const char *name, size_t *ret_size)
{
    size_t length = strlen(name);
    if (size <= length || strncasecmp(line, name, length) != 0 || line[length] != ':')
        return NULL;
    const char *value = line + length + 1, *end = line + size;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && strchr("\r\n \t", end[-1]))
        end--;
    *ret_size = (size_t)(end - value);
    return value;
}

/* In seconds. A date counts as one second: reading it would need a clock. */
static int64_t read_retry_after(const char *value, size_t size)
{
    enum { DIGITS_MAX = 6 };
    int64_t seconds = 0;
    if (size == 0)
        return -1;
    for (size_t i = 0; i < size; i++) {
        if (value[i] < '0' || value[i] > '9' || i == DIGITS_MAX)
            return WEFT_MS;
        seconds = seconds * 10 + (value[i] - '0');
    }
    return seconds * 1000;
}

static void copy_value(char *ret_text, size_t max, const char *value, size_t size)
{
    size = size < max ? size : max - 1;
    memcpy(ret_text, value, size);
    ret_text[size] = '\0';
}

/* Reads one line, as received. */
static void read_header(struct weft_fetch_answer *answer, const char *line, size_t size)
{
    size_t value_size = 0;
    if (size > 5 && memcmp(line, "HTTP/", 5) == 0) {
        answer->retry_after_ms =
            -1; /* a new status line: the lines before belonged to an interim answer */
        answer->request_id[0] = answer->content_type[0] = '\0';
        return;
    }
    const char *value = header_value(line, size, "Retry-After", &value_size);
    if (value)
        answer->retry_after_ms = read_retry_after(value, value_size);
    value = header_value(line, size, "X-Request-Id", &value_size);
    if (value)
        copy_value(answer->request_id, sizeof(answer->request_id), value, value_size);
    value = header_value(line, size, "Content-Type", &value_size);
    if (value)
        copy_value(answer->content_type, sizeof(answer->content_type), value, value_size);
}

/* ---- Callbacks of libcurl -------------------------------------------------------------------- */

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct run *run = context;
    const struct weft_fetch_sink *sink = run->call->sink;
    long status = 0;
    if (sink)
        (void)curl_easy_getinfo(run->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300)
        return sink->put(sink->context, data, size * count) ? size * count : 0;
    weft_buf_add(&run->answer.body, data, size * count);
    return run->answer.body.full ? 0 : size * count;
}

static size_t take_header(char *line, size_t size, size_t count, void *context)
{
    struct run *run = context;
    read_header(&run->answer, line, size * count);
    return size * count;
}

static size_t give_body(char *ret_data, size_t size, size_t count, void *context)
{
    struct run *run = context;
    size_t left = run->call->body_size - run->given;
    size_t most = size * count < left ? size * count : left;
    memcpy(ret_data, (const char *)run->call->body + run->given, most);
    run->given += most;
    return most;
}

static size_t give_source(char *ret_data, size_t size, size_t count, void *context)
{
    struct run *run = context;
    const struct weft_fetch_source *source = run->call->source;
    size_t given = 0;
    if (!source->next(source->context, ret_data, size * count, &given))
        return CURL_READFUNC_ABORT;
    run->given += given;
    run->all_given = given == 0;
    return given;
}

static int refuse_rewind(void *context, curl_off_t offset, int origin)
{
    (void)context;
    (void)offset;
    (void)origin;
    return CURL_SEEKFUNC_FAIL;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static bool is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "[::1]") == 0;
}

/* A part of the URL, or NULL. The caller frees it with curl_free(). */
static char *url_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    return curl_url_get(url, part, &text, 0) == CURLUE_OK ? text : NULL;
}

static enum weft_rc check_url(const char *base_url, bool *ret_loopback, struct weft_err *err)
{
    CURLU *url = curl_url();
    if (!url)
        weft_oom(1);
    char *host = NULL, *user = NULL, *query = NULL, *fragment = NULL;
    enum weft_rc rc = WEFT_OK;
    if (strncmp(base_url, "http://", 7) != 0 && strncmp(base_url, "https://", 8) != 0)
        rc = weft_invalid(err, "url", "a server is http:// or https://");
    else if (curl_url_set(url, CURLUPART_URL, base_url, 0) != CURLUE_OK)
        rc = weft_invalid(err, "url", "this is not the URL of a server");
    if (rc)
        goto out;
    host = url_part(url, CURLUPART_HOST);
    user = url_part(url, CURLUPART_USER);
    query = url_part(url, CURLUPART_QUERY);
    fragment = url_part(url, CURLUPART_FRAGMENT);
    if (!host || !*host)
        rc = weft_invalid(err, "url", "the URL names no host");
    else if (user)
        rc = weft_invalid(err, "url", "a server takes a token, not a user in its URL");
    else if (query || fragment)
        rc = weft_invalid(err, "url", "the URL of a server ends with its path");
    else
        *ret_loopback = is_loopback(host);
out:
    curl_free(fragment);
    curl_free(query);
    curl_free(user);
    curl_free(host);
    curl_url_cleanup(url);
    return rc;
}

static void add_header(struct curl_slist **list, const char *line)
{
    struct curl_slist *more = curl_slist_append(*list, line);
    if (!more)
        weft_oom(strlen(line));
    *list = more;
}

static bool has_line_break(const char *text)
{
    return strpbrk(text, "\r\n") != NULL;
}

/* The header lines of all calls; an empty "Expect:" keeps libcurl from waiting for a 100. */
static enum weft_rc make_headers(const struct weft_fetch_config *config,
                                 struct curl_slist **ret_list, struct weft_err *err)
{
    if (config->token && (!*config->token || has_line_break(config->token)))
        return weft_invalid(err, "token", "this cannot be a token");
    struct curl_slist *list = NULL;
    add_header(&list, "Expect:");
    if (config->token) {
        struct weft_buf text;
        weft_buf_init(&text, SIZE_MAX);
        weft_buf_printf(&text, "Authorization: Bearer %s", config->token);
        add_header(&list, text.data);
        weft_buf_done(&text);
    }
    for (size_t i = 0; config->header && config->header[i]; i++) {
        if (i < HEADER_LINES_MAX && !has_line_break(config->header[i])) {
            add_header(&list, config->header[i]);
            continue;
        }
        curl_slist_free_all(list);
        return weft_invalid(err, "header", "header line %zu is refused", i);
    }
    *ret_list = list;
    return WEFT_OK;
}

enum weft_rc weft_fetch_open(const struct weft_fetch_config *config, struct weft_fetch **ret_fetch,
                             struct weft_err *err)
{
    bool loopback = false;
    struct curl_slist *header = NULL, *body_header = NULL;
    enum weft_rc rc = weft_fetch_library(err);
    if (!rc)
        rc = check_url(config->base_url, &loopback, err);
    if (!rc)
        rc = make_headers(config, &header, err);
    if (!rc)
        rc = make_headers(config, &body_header, err);
    if (rc) {
        curl_slist_free_all(header);
        return rc;
    }
    add_header(&header, "Content-Type:");
    add_header(&body_header, "Content-Type: application/json");
    struct weft_fetch *fetch = weft_alloc(1, sizeof(*fetch));
    *fetch = (struct weft_fetch){
        .base_url = weft_strdup(config->base_url),
        .ca_file = weft_strdup(config->ca_file),
        .loopback = loopback,
        .connect_ms = config->connect_ms ? config->connect_ms : DEFAULT_CONNECT_MS,
        .body_max = config->body_max ? config->body_max : DEFAULT_BODY_MAX,
        .header = header,
        .body_header = body_header,
    };
    size_t length = strlen(fetch->base_url);
    while (length > 0 && fetch->base_url[length - 1] == '/')
        fetch->base_url[--length] = '\0';
    pthread_mutex_init(&fetch->lock, NULL);
    *ret_fetch = fetch;
    return WEFT_OK;
}

/* ---- Connections ----------------------------------------------------------------------------- */

static void free_connection(struct connection *connection)
{
    curl_easy_cleanup(connection->easy);
    curl_multi_cleanup(connection->multi);
    free(connection);
}

void weft_fetch_close(struct weft_fetch *fetch)
{
    if (!fetch)
        return;
    for (struct connection *connection = fetch->idle, *next; connection; connection = next) {
        next = connection->next;
        free_connection(connection);
    }
    pthread_mutex_destroy(&fetch->lock);
    curl_slist_free_all(fetch->body_header);
    curl_slist_free_all(fetch->header);
    free(fetch->ca_file);
    free(fetch->base_url);
    free(fetch);
}

static struct connection *take_connection(struct weft_fetch *fetch)
{
    pthread_mutex_lock(&fetch->lock);
    struct connection *connection = fetch->idle;
    if (connection) {
        fetch->idle = connection->next;
        fetch->idle_count--;
    }
    pthread_mutex_unlock(&fetch->lock);
    if (connection) {
        curl_easy_reset(
            connection->easy); /* the TCP connection belongs to the multi handle and stays */
        return connection;
    }
    connection = weft_alloc(1, sizeof(*connection));
    connection->easy = curl_easy_init();
    connection->multi = curl_multi_init();
    if (!connection->easy || !connection->multi)
        weft_oom(1);
    (void)curl_multi_setopt(connection->multi, CURLMOPT_MAXCONNECTS, 1L);
    return connection;
}

static void put_connection(struct weft_fetch *fetch, struct connection *connection)
{
    pthread_mutex_lock(&fetch->lock);
    bool keep = fetch->idle_count < IDLE_MAX;
    if (keep) {
        connection->next = fetch->idle;
        fetch->idle = connection;
        fetch->idle_count++;
    }
    pthread_mutex_unlock(&fetch->lock);
    if (!keep)
        free_connection(connection);
}

/* ---- A call ---------------------------------------------------------------------------------- */

static void set_connection(const struct weft_fetch *fetch, CURL *easy)
{
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a slow resolver */
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "weft/" WEFT_VERSION);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)fetch->connect_ms);
    (void)curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_AGE_S);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    if (fetch->loopback)
        (void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (fetch->ca_file)
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, fetch->ca_file);
}

static void set_body(const struct weft_fetch_call *call, struct run *run, CURL *easy)
{
    (void)curl_easy_setopt(easy, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_size);
    if (!call->once || call->body_size == 0) {
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body_size ? call->body : "");
        (void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, call->once ? 1L : 0L);
        return;
    }
    (void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_body);
    (void)curl_easy_setopt(easy, CURLOPT_READDATA, run);
    (void)curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, refuse_rewind);
}

/* A server may refuse such a body before it is sent, so it is asked first. */
static void set_source(const struct weft_fetch_source *source, struct run *run, CURL *easy)
{
    (void)curl_easy_setopt(easy, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)source->size);
    (void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_source);
    (void)curl_easy_setopt(easy, CURLOPT_READDATA, run);
    (void)curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, refuse_rewind);
    (void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)SOURCE_PIECE);
    (void)snprintf(run->content_type, sizeof(run->content_type), "Content-Type: %s",
                   source->content_type);
}

/* The call's own header lines before the common ones: libcurl takes the first of each name. */
static struct curl_slist *headers_of(const struct weft_fetch *fetch, struct run *run)
{
    static char expect[] = "Expect: 100-continue";
    const struct weft_fetch_call *call = run->call;
    char *line[] = {(char *)call->header, call->source ? run->content_type : NULL,
                    call->source ? expect : NULL};
    struct curl_slist *list = call->body_size ? fetch->body_header : fetch->header;
    for (size_t i = 0; i < WEFT_LEN(line); i++) {
        if (!line[i])
            continue;
        run->more[i] = (struct curl_slist){.data = line[i], .next = list};
        list = &run->more[i];
    }
    return list;
}

/* The time of a whole call, or of a stretch in which nothing moves. */
static void set_time(const struct weft_fetch_call *call, CURL *easy)
{
    int64_t timeout_ms = call->timeout_ms ? call->timeout_ms : DEFAULT_TIMEOUT_MS;
    if (call->source || call->sink) {
        (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)((timeout_ms + 999) / 1000));
    } else {
        (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    }
}

static void set_call(const struct weft_fetch *fetch, struct run *run, CURL *easy)
{
    const struct weft_fetch_call *call = run->call;
    bool post = strcmp(call->method, "POST") == 0;
    struct weft_buf url;
    weft_buf_init(&url, SIZE_MAX);
    weft_buf_printf(&url, "%s%s", fetch->base_url, call->path);
    (void)curl_easy_setopt(easy, CURLOPT_URL, url.data);
    weft_buf_done(&url);
    if (call->source)
        set_source(call->source, run, easy);
    else if (post || call->body_size)
        set_body(call, run, easy);
    if (!post)
        (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_of(fetch, run));
    set_time(call, easy);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, run->message);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, run);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, run);
}

static bool is_stopped(const struct weft_fetch_call *call)
{
    return call->stop && atomic_load_explicit(call->stop, memory_order_relaxed);
}

/* Performs the call. *ret_stopped: `stop` ended it. */
static CURLcode drive(struct connection *connection, const struct weft_fetch_call *call,
                      bool *ret_stopped)
{
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    int running = 1;
    CURLMcode multi = curl_multi_add_handle(connection->multi, connection->easy);
    while (!multi && running && !is_stopped(call)) {
        multi = curl_multi_perform(connection->multi, &running);
        if (!multi && running)
            multi = curl_multi_poll(connection->multi, NULL, 0,
                                    call->stop ? STOP_CHECK_MS : WAIT_MS, NULL);
    }
    *ret_stopped = running && !multi;
    int left;
    const CURLMsg *message;
    while ((message = curl_multi_info_read(connection->multi, &left)))
        if (message->msg == CURLMSG_DONE)
            code = message->data.result;
    (void)curl_multi_remove_handle(connection->multi, connection->easy);
    return multi ? CURLE_FAILED_INIT : code;
}

/* True when the server may have received the whole request. */
static bool was_sent(const struct run *run, CURL *easy)
{
    long bytes = 0;
    if (run->call->source)
        return run->all_given || (int64_t)run->given == run->call->source->size;
    if (run->call->once && run->call->body_size)
        return run->given == run->call->body_size;
    (void)curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &bytes);
    return bytes > 0;
}

/* "Connection refused" is clearer than libcurl's "failed to connect after N ms". */
static void name_cause(struct run *run, CURL *easy)
{
    long number = 0;
    char text[CURL_ERROR_SIZE];
    (void)curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &number);
    if (number != 0)
        (void)snprintf(run->message, sizeof(run->message), "%s",
                       strerror_r((int)number, text, sizeof(text)));
}

enum weft_rc weft_fetch_do(struct weft_fetch *fetch, const struct weft_fetch_call *call,
                           struct weft_fetch_answer *ret_answer,
                           struct weft_fetch_failure *ret_failure, struct weft_err *err)
{
    struct run run = {.call = call, .answer = {.retry_after_ms = -1}};
    weft_buf_init(&run.answer.body, fetch->body_max);
    struct connection *connection = take_connection(fetch);
    run.easy = connection->easy;
    set_connection(fetch, connection->easy);
    set_call(fetch, &run, connection->easy);
    bool stopped = false;
    CURLcode code = drive(connection, call, &stopped);
    const struct weft_fetch_failure failure = {
        .sent = was_sent(&run, connection->easy),
        .stopped = stopped,
        .permanent = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE,
    };
    long status = 0;
    (void)curl_easy_getinfo(connection->easy, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_COULDNT_CONNECT)
        name_cause(&run, connection->easy);
    put_connection(fetch, connection);

    if (code == CURLE_OK && !stopped) {
        run.answer.status = (int)status;
        *ret_answer = run.answer;
        return WEFT_OK;
    }
    bool full = run.answer.body.full;
    weft_buf_done(&run.answer.body);
    *ret_failure = failure;
    if (full)
        return weft_fail(err, WEFT_TOO_LARGE, "the answer of %s is larger than %zu bytes",
                         fetch->base_url, fetch->body_max);
    const char *message = *run.message ? run.message : curl_easy_strerror(code);
    (void)weft_fail(err, WEFT_UNAVAILABLE, "%s: %s", fetch->base_url,
                    stopped ? "the call was stopped" : message);
    return weft_hint(err, WEFT_UNAVAILABLE,
                     failure.permanent
                         ? "name the file of the authority to trust, and check the host in the URL"
                         : NULL);
}

void weft_fetch_answer_done(struct weft_fetch_answer *answer)
{
    weft_buf_done(&answer->body);
    *answer = (struct weft_fetch_answer){0};
}
