/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The end of the engine threads, seen by the threads that outlive them: the loop, which may still
 * bring requests and leases that no client took, and the upkeep, which asks the threads to rest.
 */

#include "server_fixture.h"
#include "tap.h"

#include "base/log.h"
#include "engine/engine.h"
#include "net/group/group.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char path[256];

static struct weft_server *serve(void)
{
    static char url[300];
    const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    (void)snprintf(path, sizeof(path), "%s/weft-group-%d.db", folder ? folder : "/tmp",
                   (int)getpid());
    (void)snprintf(url, sizeof(url), "sqlite:%s", path);
    struct weft_server *server = NULL;
    struct weft_err err = {0};
    const struct weft_server_config config = {.store = url, .listen = "127.0.0.1:0"};
    if (weft_server_start(&config, &server, &err)) {
        printf("Bail out! %s\n", err.text);
        exit(1); /* NOLINT(concurrency-mt-unsafe) */
    }
    return server;
}

static int reach(const struct weft_server *server)
{
    const char *colon = strrchr(weft_server_url(server), ':');
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to))) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Asks for a list, which an engine thread would make; the head of the answer. */
static const char *ask(int fd)
{
    static const char request[] = "GET /v1/executions HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static char answer[4096];
    size_t size = 0;
    memset(answer, 0, sizeof(answer));
    if (write(fd, request, sizeof(request) - 1) != (ssize_t)sizeof(request) - 1)
        return "";
    while (size < sizeof(answer) - 1 && !strstr(answer, "\r\n\r\n")) {
        ssize_t got = read(fd, answer + size, sizeof(answer) - 1 - size);
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    return answer;
}

static void count_task(struct weft_server *server, void *context)
{
    int *ran = context;
    *ran += weft_engine_clock(server->engine) != NULL;
}

int main(void)
{
    weft_log_init(WEFT_SILENT, WEFT_LOGFMT, STDERR_FILENO);
    struct weft_server *server = serve();
    int fd = reach(server), late = reach(server), ran = 0;
    ok(fd >= 0 && late >= 0, "two clients are connected");
    ok(strstr(ask(fd), "HTTP/1.1 200") != NULL, "a server with threads answers a list");

    weft_groups_stop(server->groups);
    ok(strstr(ask(late), "HTTP/1.1 503") != NULL, "without them a request is turned away");
    ok(weft_groups_rest(server->groups), "the upkeep may still ask them to rest");
    weft_groups_do(server->groups, count_task, &ran);
    weft_groups_do(server->groups, count_task, &ran);
    ok(ran == 0, "a task that comes now waits");
    (void)close(fd);
    (void)close(late);
    weft_server_free(server);
    ok(ran == 2, "both tasks ran to the end with the engine open");

    static const char *const suffix[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        char name[300];
        (void)snprintf(name, sizeof(name), "%s%s", path, suffix[i]);
        (void)unlink(name);
    }
    return tap_done();
}
