/* SPDX-License-Identifier: Apache-2.0 */

/* The sockets of the mock upstream: one thread, epoll, and a heap of connections that wait. */

#include "upstream/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    READ_SIZE = 1 << 16,
    INPUT_MAX = 1 << 23,
    SPARE_MAX = 1 << 18,
    STEPS_PER_TURN = 16
};

static int poller, listener, signals;
static bool over;
static struct connection *first; /* of all connections */

__attribute__((noreturn)) static void die(const char *what)
{
    perror(what);
    exit(1);
}

int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- Connections that wait: a heap with the earliest first ----------------------------------- */

static struct connection **heap; /* from 1 */
static size_t waiting, heap_room;

static void put_at(size_t at, struct connection *connection)
{
    heap[at] = connection;
    connection->heap_at = at;
}

/* Moves a connection up or down to its place. */
static void settle(size_t at, struct connection *connection)
{
    for (; at > 1 && heap[at / 2]->wake_us > connection->wake_us; at /= 2)
        put_at(at, heap[at / 2]);
    for (size_t child; (child = at * 2) <= waiting; at = child) {
        if (child < waiting && heap[child + 1]->wake_us < heap[child]->wake_us)
            child++;
        if (heap[child]->wake_us >= connection->wake_us)
            break;
        put_at(at, heap[child]);
    }
    put_at(at, connection);
}

static void stop_waiting(struct connection *connection)
{
    size_t at = connection->heap_at;
    connection->wake_us = 0;
    connection->heap_at = 0;
    if (at == 0)
        return;
    struct connection *last = heap[waiting--];
    if (last != connection)
        settle(at, last);
}

void wait_until(struct connection *connection, int64_t wake_us)
{
    stop_waiting(connection);
    if (waiting + 2 > heap_room) {
        heap_room = heap_room ? heap_room * 2 : 64;
        heap = realloc(heap, heap_room * sizeof(struct connection *));
        if (!heap)
            abort();
    }
    connection->wake_us = wake_us;
    waiting++;
    settle(waiting, connection);
}

/* ---- One connection -------------------------------------------------------------------------- */

static void close_connection(struct connection *connection, bool reset)
{
    const struct linger none = {.l_onoff = 1};
    if (reset)
        (void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    stop_waiting(connection);
    if (connection->next)
        connection->next->previous = connection->previous;
    *connection->previous = connection->next;
    (void)close(connection->fd);
    bytes_done(&connection->in);
    bytes_done(&connection->out);
    bytes_done(&connection->more);
    bytes_done(&connection->request.head);
    bytes_done(&connection->request.body);
    free(connection);
    totals.open--;
}

/* False: the connection is broken. */
static bool flush(struct connection *connection)
{
    struct bytes *out = &connection->out;
    while (connection->sent < out->size) {
        ssize_t sent = send(connection->fd, out->data + connection->sent,
                            out->size - connection->sent, MSG_NOSIGNAL);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        connection->sent += (size_t)sent;
    }
    out->size = connection->sent = 0;
    if (out->capacity > SPARE_MAX)
        bytes_done(out);
    return true;
}

static void watch(struct connection *connection)
{
    unsigned wanted = (connection->unread ? EPOLLRDHUP : EPOLLIN) |
                      (connection->out.size > connection->sent ? EPOLLOUT : 0);
    if (wanted == connection->watched)
        return;
    struct epoll_event event = {.events = wanted, .data.ptr = connection};
    (void)epoll_ctl(poller, EPOLL_CTL_MOD, connection->fd, &event);
    connection->watched = wanted;
}

/* Sends, makes the next part, takes the next request, until something is to be waited for. */
static void work(struct connection *connection)
{
    for (int steps = 0;; steps++) {
        if (connection->phase == READ_HEAD || connection->phase == READ_BODY)
            take_input(connection);
        if (!flush(connection)) {
            totals.left += connection->phase == ANSWER;
            close_connection(connection, false);
            return;
        }
        if (connection->phase != ANSWER || connection->wake_us || connection->out.size > 0)
            break;
        if (connection->step && steps >= STEPS_PER_TURN) {
            wait_until(connection, now_us()); /* others first */
            break;
        }
        if (connection->step) {
            connection->step(connection);
            continue;
        }
        if (connection->ending != KEEP) {
            close_connection(connection, connection->ending == RESET);
            return;
        }
        connection->phase = READ_HEAD;
    }
    watch(connection);
}

/* False: the client is gone. */
static bool take_bytes(struct connection *connection)
{
    static char data[READ_SIZE];
    ssize_t size = recv(connection->fd, data, sizeof(data), 0);
    if (size < 0)
        return errno == EAGAIN || errno == EINTR;
    if (size == 0 || connection->in.size > INPUT_MAX)
        return false;
    if (connection->phase != HOLD)
        bytes_add(&connection->in, data, (size_t)size);
    return true;
}

static void on_event(struct connection *connection, unsigned events)
{
    bool gone = (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0;
    if (!gone && (events & EPOLLIN))
        gone = !take_bytes(connection);
    if (gone) {
        totals.left += connection->phase == ANSWER || connection->phase == HOLD;
        close_connection(connection, false);
        return;
    }
    work(connection);
}

static void accept_all(void)
{
    const int one = 1;
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        struct connection *connection = calloc(1, sizeof(*connection));
        if (!connection)
            abort();
        connection->fd = fd;
        connection->next = first;
        connection->previous = &first;
        if (first)
            first->previous = &connection->next;
        first = connection;
        connection->watched = EPOLLIN;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0)
            die("epoll_ctl");
        totals.accepted++;
        totals.open++;
    }
}

/* ---- The program ----------------------------------------------------------------------------- */

static void open_listener(const char *address, int port)
{
    const int one = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t size = sizeof(at);
    if (inet_pton(AF_INET, address, &at.sin_addr) != 1) {
        (void)fprintf(stderr, "upstream: '%s' is not an IPv4 address\n", address);
        exit(1);
    }
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(listener, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) != 0)
        die(address);
    printf("%d\n", ntohs(at.sin_port));
    if (fflush(stdout) != 0)
        die("stdout");
}

/* Events of sources that are not connections are recognized by the address of their file. */
static void watch_file(const int *file)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = (void *)file};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, *file, &event) != 0 && errno != EPERM)
        die("epoll_ctl"); /* EPERM: a file or /dev/null, which never closes */
}

static void run(void)
{
    static int in = STDIN_FILENO;
    struct epoll_event events[EVENTS_MAX];
    watch_file(&listener);
    watch_file(&signals);
    watch_file(&in);
    while (!over) {
        int64_t left_us = waiting > 0 ? heap[1]->wake_us - now_us() : 3600000000;
        int timeout_ms = left_us <= 0 ? 0 : (int)((left_us + 999) / 1000);
        int count = epoll_wait(poller, events, EVENTS_MAX, timeout_ms);
        if (count < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < count; i++) {
            char word[256];
            if (events[i].data.ptr == &listener)
                accept_all();
            else if (events[i].data.ptr == &signals)
                over = true;
            else if (events[i].data.ptr == &in)
                over = over || read(in, word, sizeof(word)) <= 0;
            else
                on_event(events[i].data.ptr, events[i].events);
        }
        for (int64_t now = now_us(); waiting > 0 && heap[1]->wake_us <= now;) {
            struct connection *connection = heap[1];
            stop_waiting(connection);
            work(connection);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"address", required_argument, NULL, 'a'}, {"port", required_argument, NULL, 'p'}, {0}};
    const char *address = "127.0.0.1";
    int port = 0;
    for (int word; (word = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (word == 'a')
            address = optarg;
        else if (word == 'p')
            port = (int)strtol(optarg, NULL, 10);
        else
            return 1;
    }
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    signals = signalfd(-1, &set, SFD_CLOEXEC);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (signals < 0 || poller < 0)
        die("starting");
    open_listener(address, port);
    run();
    while (first)
        close_connection(first, false);
    free(heap);
    seen_clear();
    return 0;
}
