/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UNIT_RELAY_FIXTURE_H
#define WEFT_TESTS_UNIT_RELAY_FIXTURE_H

/*
 * A way to PostgreSQL that can be cut at a chosen place: a unix socket of its own, and a thread
 * that passes bytes on in both directions until the test orders a cut. It cuts answers: the server
 * has carried out the request.
 */

#include "tap.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum relay_mode {
    RELAY_PASS,
    RELAY_HOLD,       /* requests stay where they are, answers pass */
    RELAY_CUT_ALL,    /* nothing of an answer passes */
    RELAY_CUT_PINS,   /* of an answer only the beginning passes: BEGIN and the number */
    RELAY_CUT_COMMIT, /* all passes but the answer to COMMIT */
    RELAY_CUT_FLUSH,  /* all passes up to the answer to COMMIT */
    RELAY_POOLER,     /* the client gets another process number, as from a pooler */
    RELAY_RENAMES,    /* the same, and the probe's statement gets another name */
    RELAY_OLD,        /* the server says that it is PostgreSQL 12 */
};

enum { RELAY_PAIRS_MAX = 32, RELAY_PORT = 5432 };

struct relay {
    char folder[64];
    struct sockaddr_un here, server;
    int listener, stop[2];
    pthread_t thread;
    int mode;    /* enum relay_mode; after a cut it passes again */
    bool held;   /* a request is being held */
    bool passed; /* by RELAY_CUT_PINS: the beginning */
    int pair[RELAY_PAIRS_MAX][2];
    size_t pairs;
};

static inline void relay_set(struct relay *relay, enum relay_mode mode)
{
    __atomic_store_n(&relay->held, false, __ATOMIC_SEQ_CST);
    relay->passed = false;
    __atomic_store_n(&relay->mode, (int)mode, __ATOMIC_SEQ_CST);
}

static inline void relay_send(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* the other side is gone, which the next read tells */
        data += sent;
        size -= (size_t)sent;
    }
}

/* Where the message behind which nothing may pass begins or ends; NULL: not in here. */
static inline const char *relay_find(const char *data, size_t size, const char *what,
                                     size_t what_size)
{
    return memmem(data, size, what, what_size);
}

/* Changes the number of the server process in the message that brings it ('K', of 12 bytes). */
static inline void relay_disguise(char *data, size_t size)
{
    static const char key[] = {'K', 0, 0, 0, 12};
    char *found = memmem(data, size, key, sizeof(key));
    if (found && found + 9 <= data + size)
        found[6] ^= 0x55;
}

/* Makes the version that the server tells at the start 12. */
static inline void relay_age(char *data, size_t size)
{
    static const char name[] = "server_version";
    char *found = memmem(data, size, name, sizeof(name));
    if (found && found + sizeof(name) + 2 <= data + size) {
        found[sizeof(name)] = '1';
        found[sizeof(name) + 1] = '2';
    }
}

/* Gives the statement weft_NUMBER_probe another name of the same length, wherever it is used. */
static inline void relay_rename(char *data, size_t size)
{
    static const char tail[] = "_probe"; /* with the NUL: the name, and not a pattern */
    for (char *at = data; (at = memmem(at, size - (size_t)(at - data), tail, sizeof(tail)));
         at += sizeof(tail))
        memcpy(at, "_other", sizeof(tail));
}

/* Passes an answer on, or a part of it. False: the connection is to be cut. */
static inline bool relay_answer(struct relay *relay, int client, const char *data, size_t size)
{
    static const char committed[] = "C\0\0\0\013COMMIT", pinned[] = "SELECT 1";
    int mode = __atomic_load_n(&relay->mode, __ATOMIC_SEQ_CST);
    const char *commit = relay_find(data, size, committed, sizeof(committed));
    size_t pass = size;
    if (mode == RELAY_CUT_ALL)
        pass = 0;
    if (mode == RELAY_CUT_COMMIT && commit)
        pass = (size_t)(commit - data);
    if (mode == RELAY_CUT_FLUSH && commit)
        pass = (size_t)(commit - data) + sizeof(committed);
    if (mode == RELAY_CUT_PINS) {
        const char *pins = relay_find(data, size, pinned, sizeof(pinned));
        if (relay->passed)
            pass = 0;
        else if (pins)
            pass = (size_t)(pins - data) + sizeof(pinned);
        relay->passed |= pins != NULL;
    }
    relay_send(client, data, pass);
    bool cut = commit && (mode == RELAY_CUT_ALL || mode == RELAY_CUT_PINS ||
                          mode == RELAY_CUT_COMMIT || mode == RELAY_CUT_FLUSH);
    if (cut)
        relay_set(relay, RELAY_PASS);
    return !cut;
}

/* Takes what has come from one side (0: the client) of a pair. False: the pair is over. */
static inline bool relay_move(struct relay *relay, const int pair[2], int side)
{
    char data[65536];
    ssize_t size = read(pair[side], data, sizeof(data));
    if (size <= 0)
        return false;
    int mode = __atomic_load_n(&relay->mode, __ATOMIC_SEQ_CST);
    if (side == 1 && (mode == RELAY_POOLER || mode == RELAY_RENAMES))
        relay_disguise(data, (size_t)size);
    if (side == 1 && mode == RELAY_OLD)
        relay_age(data, (size_t)size);
    if (side == 0 && mode == RELAY_RENAMES)
        relay_rename(data, (size_t)size);
    if (side == 1)
        return relay_answer(relay, pair[0], data, (size_t)size);
    relay_send(pair[1], data, (size_t)size);
    return true;
}

static inline void relay_accept(struct relay *relay)
{
    int client = accept(relay->listener, NULL, NULL);
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert(client >= 0 && server >= 0 && relay->pairs < RELAY_PAIRS_MAX);
    if (connect(server, (struct sockaddr *)&relay->server, sizeof(relay->server)) != 0) {
        (void)close(client);
        (void)close(server);
        return;
    }
    relay->pair[relay->pairs][0] = client;
    relay->pair[relay->pairs++][1] = server;
}

static inline void relay_close(struct relay *relay, size_t at)
{
    (void)close(relay->pair[at][0]);
    (void)close(relay->pair[at][1]);
    relay->pairs--;
    memmove(relay->pair[at], relay->pair[at + 1], (relay->pairs - at) * sizeof(relay->pair[0]));
}

static inline void relay_serve(struct relay *relay, const struct pollfd *fd)
{
    bool hold = __atomic_load_n(&relay->mode, __ATOMIC_SEQ_CST) == RELAY_HOLD;
    for (size_t at = relay->pairs; at-- > 0;) {
        bool good = true;
        if (fd[2 * at + 1].revents)
            good = relay_move(relay, relay->pair[at], 1);
        if (good && fd[2 * at].revents && hold)
            __atomic_store_n(&relay->held, true, __ATOMIC_SEQ_CST);
        else if (good && fd[2 * at].revents)
            good = relay_move(relay, relay->pair[at], 0);
        if (!good)
            relay_close(relay, at);
    }
}

static inline void *relay_thread(void *context)
{
    struct relay *relay = context;
    for (;;) {
        struct pollfd fd[2 * RELAY_PAIRS_MAX + 2];
        size_t count = 2 * relay->pairs;
        for (size_t i = 0; i < count; i++)
            fd[i] = (struct pollfd){.fd = relay->pair[i / 2][i % 2], .events = POLLIN};
        /* What is held is looked at no more. */
        bool held = __atomic_load_n(&relay->held, __ATOMIC_SEQ_CST);
        for (size_t i = 0; i < count && held; i += 2)
            fd[i].fd = -1;
        fd[count] = (struct pollfd){.fd = relay->listener, .events = POLLIN};
        fd[count + 1] = (struct pollfd){.fd = relay->stop[0], .events = POLLIN};
        (void)poll(fd, count + 2, 100); /* a change of mode is seen by then */
        if (fd[count + 1].revents)
            return NULL;
        relay_serve(relay, fd);
        if (fd[count].revents)
            relay_accept(relay);
    }
}

/* Opens a way to the server whose socket lies in `host`. */
static inline void relay_init(struct relay *relay, const char *host, const char *port)
{
    *relay = (struct relay){.here.sun_family = AF_UNIX, .server.sun_family = AF_UNIX};
    (void)snprintf(relay->folder, sizeof(relay->folder), "/tmp/weft-relay.XXXXXX");
    char *folder = mkdtemp(relay->folder);
    assert(folder);
    (void)snprintf(relay->here.sun_path, sizeof(relay->here.sun_path), "%s/.s.PGSQL.%d", folder,
                   RELAY_PORT);
    (void)snprintf(relay->server.sun_path, sizeof(relay->server.sun_path), "%s/.s.PGSQL.%s", host,
                   port);
    relay->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int bad = bind(relay->listener, (struct sockaddr *)&relay->here, sizeof(relay->here)) ||
              listen(relay->listener, RELAY_PAIRS_MAX) || pipe(relay->stop) ||
              pthread_create(&relay->thread, NULL, relay_thread, relay);
    assert(!bad);
    (void)bad;
}

static inline void relay_done(struct relay *relay)
{
    ssize_t written = write(relay->stop[1], "", 1);
    assert(written == 1);
    (void)written;
    (void)pthread_join(relay->thread, NULL);
    while (relay->pairs > 0)
        relay_close(relay, relay->pairs - 1);
    (void)close(relay->listener);
    (void)close(relay->stop[0]);
    (void)close(relay->stop[1]);
    (void)unlink(relay->here.sun_path);
    (void)rmdir(relay->folder);
}

#endif
