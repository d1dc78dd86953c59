/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The load of the benchmark against a small server that keeps executions in memory, and is now and
 * then busy, or closes the connection before or after it has acted. In every case the numbers must
 * add up and no execution may be left.
 */

#include "base/buf.h"
#include "cmd/bench/bench.h"
#include "tap.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINES_MAX = 64, REQUEST_MAX = 1 << 20, EXECUTIONS_MAX = 1 << 22 };

/* Faults: one request in every N; 0: never. */
struct faults {
    unsigned busy;   /* 429 */
    unsigned refuse; /* 400 for a submission */
    unsigned before; /* hang up without doing it */
    unsigned after;  /* hang up after doing it */
};

enum place { NOWHERE, READY, RUNNING, DONE };

struct fake {
    struct faults faults;
    int listener;
    atomic_bool stop;
    unsigned requests;
    unsigned char *place; /* owned; of each execution, by its number */
    uint32_t submitted, next_ready, completed;
    struct weft_buf body, out;
    struct {
        int fd;
        char *in; /* owned */
        size_t size;
    } line[LINES_MAX];
};

/* ---- What it does ---------------------------------------------------------------------------- */

static size_t count_words(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        count++;
    return count;
}

static void do_submit(struct fake *fake, const char *request)
{
    size_t count = count_words(request, "\"kind\":");
    bool many = strstr(request, "\"items\":") != NULL;
    weft_buf_add_text(&fake->body, many ? "{\"items\":[" : "");
    for (size_t i = 0; i < count && fake->submitted < EXECUTIONS_MAX; i++) {
        weft_buf_printf(&fake->body, "%s{\"id\":\"018f-%08x\",\"state\":\"ready\"}", i ? "," : "",
                        fake->submitted);
        fake->place[fake->submitted++] = READY;
    }
    weft_buf_add_text(&fake->body, many ? "]}" : "");
}

static void do_claim(struct fake *fake, const char *request)
{
    const char *max = strstr(request, "\"max\":");
    unsigned long wanted = max ? strtoul(max + 6, NULL, 10) : 1, got = 0;
    weft_buf_add_text(&fake->body, "{\"items\":[");
    for (uint32_t i = fake->next_ready; i < fake->submitted && got < wanted; i++) {
        if (fake->place[i] != READY)
            continue;
        fake->place[i] = RUNNING;
        weft_buf_printf(&fake->body,
                        "%s{\"id\":\"018f-%08x\",\"epoch\":1,\"payload\":{\"id\":\"no\"}}",
                        got++ ? "," : "", i);
    }
    while (fake->next_ready < fake->submitted && fake->place[fake->next_ready] != READY)
        fake->next_ready++;
    weft_buf_add_text(&fake->body, "]}");
}

/* Calls back for every id of a text. */
static void each_id(struct fake *fake, const char *text, void (*then)(struct fake *, uint32_t))
{
    for (const char *at = text; (at = strstr(at, "018f-")); at += 5)
        then(fake, (uint32_t)strtoul(at + 5, NULL, 16));
}

static void complete_one(struct fake *fake, uint32_t number)
{
    if (fake->place[number] == RUNNING) {
        fake->place[number] = DONE;
        fake->completed++;
    }
    weft_buf_printf(&fake->body, "%s{\"id\":\"018f-%08x\",\"state\":\"succeeded\"}",
                    fake->body.data[fake->body.size - 1] == '[' ? "" : ",", number);
}

/* As when a lease runs out. */
static void put_back(struct fake *fake, uint32_t number)
{
    fake->place[number] = READY;
    if (number < fake->next_ready)
        fake->next_ready = number;
}

/* ---- How it answers -------------------------------------------------------------------------- */

static bool is_turn(const struct fake *fake, unsigned every)
{
    return every && fake->requests % every == every / 2;
}

/* False: hang up. */
static bool answer(struct fake *fake, const char *request)
{
    const char *status = "200 OK";
    bool claim = strncmp(request, "POST /v1/claims ", 16) == 0;
    bool submit = strncmp(request, "POST /v1/executions ", 20) == 0;
    fake->requests++;
    weft_buf_clear(&fake->body);
    if (is_turn(fake, fake->faults.before))
        return false;
    if (is_turn(fake, fake->faults.busy)) {
        status = "429 Busy";
        weft_buf_add_text(&fake->body, "{\"error\":{\"code\":\"busy\"}}");
    } else if (submit && is_turn(fake, fake->faults.refuse)) {
        status = "400 Bad";
        weft_buf_add_text(&fake->body, "{\"error\":{\"code\":\"invalid_value\"}}");
    } else if (submit) {
        do_submit(fake, strstr(request, "\r\n\r\n"));
    } else if (claim) {
        do_claim(fake, request);
    } else {
        weft_buf_add_text(&fake->body, "{\"items\":[");
        each_id(fake, request, complete_one);
        weft_buf_add_text(&fake->body, "]}");
    }
    if (is_turn(fake, fake->faults.after)) {
        if (claim)
            each_id(fake, fake->body.data, put_back);
        return false;
    }
    weft_buf_clear(&fake->out);
    weft_buf_printf(&fake->out, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", status,
                    fake->body.size);
    weft_buf_add(&fake->out, fake->body.data, fake->body.size);
    return true;
}

static bool send_all(int fd, const struct weft_buf *out)
{
    for (size_t sent = 0; sent < out->size;) {
        ssize_t put = send(fd, out->data + sent, out->size - sent, MSG_NOSIGNAL);
        if (put <= 0)
            return false;
        sent += (size_t)put;
    }
    return true;
}

/* False: the connection is over. */
static bool hear(struct fake *fake, size_t i)
{
    char *in = fake->line[i].in;
    size_t size = fake->line[i].size;
    ssize_t got = recv(fake->line[i].fd, in + size, REQUEST_MAX - 1 - size, 0);
    if (got <= 0)
        return false;
    size += (size_t)got;
    in[size] = '\0';
    fake->line[i].size = size;
    const char *length = strstr(in, "Content-Length: "), *end = strstr(in, "\r\n\r\n");
    if (!end || !length || size < (size_t)(end - in) + 4 + strtoul(length + 16, NULL, 10))
        return true;
    fake->line[i].size = 0;
    return answer(fake, in) && send_all(fake->line[i].fd, &fake->out);
}

static void take_line(struct fake *fake)
{
    int fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);
    for (size_t i = 0; i < LINES_MAX && fd >= 0; i++) {
        if (fake->line[i].fd >= 0)
            continue;
        fake->line[i].fd = fd;
        fake->line[i].size = 0;
        return;
    }
    if (fd >= 0)
        (void)close(fd);
}

static void *serve(void *context)
{
    struct fake *fake = context;
    while (!atomic_load(&fake->stop)) {
        struct pollfd fd[LINES_MAX + 1];
        for (size_t i = 0; i < LINES_MAX; i++)
            fd[i] = (struct pollfd){.fd = fake->line[i].fd, .events = POLLIN};
        fd[LINES_MAX] = (struct pollfd){.fd = fake->listener, .events = POLLIN};
        (void)poll(fd, WEFT_LEN(fd), 20);
        for (size_t i = 0; i < LINES_MAX; i++) {
            if (!fd[i].revents || hear(fake, i))
                continue;
            (void)close(fake->line[i].fd);
            fake->line[i].fd = -1;
        }
        if (fd[LINES_MAX].revents)
            take_line(fake);
    }
    return NULL;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static void *get(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory) {
        printf("Bail out! no memory\n");
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    return memory;
}

static struct fake *open_fake(const struct faults *faults, char *ret_url, size_t size)
{
    struct fake *fake = get(sizeof(*fake));
    fake->faults = *faults;
    fake->place = get(EXECUTIONS_MAX);
    weft_buf_init(&fake->body, REQUEST_MAX);
    weft_buf_init(&fake->out, (size_t)REQUEST_MAX * 2);
    for (size_t i = 0; i < LINES_MAX; i++) {
        fake->line[i].fd = -1;
        fake->line[i].in = get(REQUEST_MAX);
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ok(bind(fake->listener, (struct sockaddr *)&address, length) == 0 &&
           listen(fake->listener, LINES_MAX) == 0 &&
           getsockname(fake->listener, (struct sockaddr *)&address, &length) == 0,
       "a server listens");
    (void)snprintf(ret_url, size, "http://127.0.0.1:%d", ntohs(address.sin_port));
    return fake;
}

static void close_fake(struct fake *fake)
{
    for (size_t i = 0; i < LINES_MAX; i++) {
        if (fake->line[i].fd >= 0)
            (void)close(fake->line[i].fd);
        free(fake->line[i].in);
    }
    (void)close(fake->listener);
    weft_buf_done(&fake->body);
    weft_buf_done(&fake->out);
    free(fake->place);
    free(fake);
}

static const struct {
    const char *name;
    enum weft_bench_mode mode;
    uint32_t connections, batch;
    struct faults faults;
    const char *code; /* an error that must have been counted */
} row[] = {
    {"bulk", WEFT_BENCH_BULK, 8, 100, {0}, NULL},
    {"single", WEFT_BENCH_SINGLE, 32, 1, {0}, NULL},
    {"one connection", WEFT_BENCH_BULK, 1, 7, {0}, NULL},
    {"server answers 429", WEFT_BENCH_BULK, 4, 10, {.busy = 7}, "busy"},
    {"server answers 400", WEFT_BENCH_BULK, 4, 10, {.refuse = 8}, "invalid_value"},
    {"server closes before it acts", WEFT_BENCH_BULK, 4, 10, {.before = 9}, "connection"},
    {"server closes after it acted", WEFT_BENCH_BULK, 4, 10, {.after = 9}, "connection"},
    {"429 and closed connections",
     WEFT_BENCH_SINGLE,
     16,
     1,
     {.busy = 23, .before = 31, .after = 37},
     "connection"},
};

static void check_result(size_t i, const struct fake *fake, const struct weft_bench_result *result)
{
    uint32_t left = 0;
    for (uint32_t at = 0; at < fake->submitted; at++)
        left += fake->place[at] != DONE;
    is_int(left, 0, "%s: every execution was completed", row[i].name);
    ok(weft_bench_adds_up(result),
       "%s: the numbers add up: %llu submitted, %llu completed, %llu in doubt", row[i].name,
       (unsigned long long)result->submitted, (unsigned long long)result->completed,
       (unsigned long long)result->doubtful);
    /* The sweep before the run completes nothing here, and repeats are not counted twice. */
    is_int(fake->completed, result->completed, "%s: the server counts as many completions",
           row[i].name);
    ok(result->lifecycles > 0 && result->per_s > 0, "%s: %.0f lifecycles/s", row[i].name,
       result->per_s);
    ok(result->call[WEFT_BENCH_SUBMIT].count > 0 && result->call[WEFT_BENCH_CLAIM].count > 0 &&
           result->call[WEFT_BENCH_COMPLETE].count > 0 &&
           result->all.count == result->call[WEFT_BENCH_SUBMIT].count +
                                    result->call[WEFT_BENCH_CLAIM].count +
                                    result->call[WEFT_BENCH_COMPLETE].count,
       "%s: all three calls were measured", row[i].name);
    bool counted = false;
    for (size_t at = 0; at < result->errors.codes && row[i].code; at++)
        counted = counted || strcmp(result->errors.item[at].code, row[i].code) == 0;
    if (row[i].code)
        ok(counted, "%s: its error is counted", row[i].name);
    else
        is_int(result->errors.total, 0, "%s: no error is counted", row[i].name);
}

static void test_row(size_t i)
{
    char url[64];
    struct fake *fake = open_fake(&row[i].faults, url, sizeof(url));
    pthread_t thread;
    (void)pthread_create(&thread, NULL, serve, fake);
    const struct weft_bench_plan plan = {.mode = row[i].mode,
                                         .server = url,
                                         .lane = "bench",
                                         .connections = row[i].connections,
                                         .batch = row[i].batch,
                                         .run_ms = 300,
                                         .warmup_ms = 50,
                                         .payload_size = 100};
    struct weft_bench_result *result = get(sizeof(*result));
    struct weft_err err = {0};
    enum weft_rc rc = weft_bench_load(&plan, result, &err);
    ok(rc == WEFT_OK, "%s: runs %s", row[i].name, rc ? err.text : "");
    atomic_store(&fake->stop, true);
    (void)pthread_join(thread, NULL);
    check_result(i, fake, result);
    free(result);
    close_fake(fake);
}

int main(void)
{
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        test_row(i);
    return tap_done();
}
