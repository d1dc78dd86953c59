/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_UNIT_CROWD_FIXTURE_H
#define WEFT_TESTS_UNIT_CROWD_FIXTURE_H

/* A crowd, the mock upstream as a child, and calls whose ends can be waited for. */

#include "tap.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "fetch/crowd.h"

#include <dirent.h>
#include <libgen.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, TAKEN_HEADERS = 4096 };

/* ---- The upstream ---------------------------------------------------------------------------- */

struct upstream {
    pid_t pid;
    int port;
};

/* Beside this program. It ends with it, because it watches its stdin. */
static inline struct upstream upstream_start(void)
{
    char path[4096], word[16] = "";
    int in[2], out[2];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[size > 0 ? size : 0] = '\0';
    char *folder = dirname(path), program[4200];
    (void)snprintf(program, sizeof(program), "%s/upstream", folder);
    if (pipe(in) != 0 || pipe(out) != 0)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(in[0], 0);
        (void)dup2(out[1], 1);
        for (int fd = 3; fd < 64; fd++)
            (void)close(fd);
        (void)execl(program, "upstream", (char *)NULL);
        _exit(127);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    if (read(out[0], word, sizeof(word) - 1) <= 0)
        abort();
    (void)close(out[0]); /* in[1] stays open for as long as this process lives */
    return (struct upstream){.pid = pid, .port = (int)strtol(word, NULL, 10)};
}

static inline void upstream_stop(struct upstream *upstream)
{
    (void)kill(upstream->pid, SIGTERM);
    (void)waitpid(upstream->pid, NULL, 0);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* How a call went. */
struct taken {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int heads, ends;
    int status; /* of head */
    struct weft_crowd_end end;
    char text[500];
    char header[TAKEN_HEADERS]; /* "name: value\n" */
    char *body;                 /* owned */
    size_t size;
    size_t stop_at; /* stop when so many bytes are there; 0: do not */
    bool not_enough;
};

static inline void taken_init(struct taken *taken)
{
    *taken = (struct taken){0};
    pthread_mutex_init(&taken->lock, NULL);
    pthread_cond_init(&taken->changed, NULL);
}

static inline void taken_done(struct taken *taken)
{
    pthread_mutex_destroy(&taken->lock);
    pthread_cond_destroy(&taken->changed);
    free(taken->body);
}

static inline void taken_head(void *context, int status, const struct weft_crowd_header *header,
                              size_t count)
{
    struct taken *taken = context;
    size_t size = 0;
    pthread_mutex_lock(&taken->lock);
    for (size_t i = 0; i < count && size < sizeof(taken->header) / 2; i++)
        size += (size_t)snprintf(taken->header + size, sizeof(taken->header) - size,
                                 "%.400s: %.400s\n", header[i].name, header[i].value);
    taken->heads++;
    taken->status = status;
    pthread_cond_broadcast(&taken->changed);
    pthread_mutex_unlock(&taken->lock);
}

static inline bool taken_data(void *context, const void *bytes, size_t size, bool *ret_enough)
{
    struct taken *taken = context;
    pthread_mutex_lock(&taken->lock);
    taken->body = weft_realloc(taken->body, taken->size + size + 1, 1);
    memcpy(taken->body + taken->size, bytes, size);
    taken->size += size;
    taken->body[taken->size] = '\0';
    bool stop = taken->stop_at && taken->size >= taken->stop_at;
    *ret_enough = stop && !taken->not_enough;
    pthread_cond_broadcast(&taken->changed);
    pthread_mutex_unlock(&taken->lock);
    return !stop;
}

static inline void taken_ended(void *context, const struct weft_crowd_end *end)
{
    struct taken *taken = context;
    pthread_mutex_lock(&taken->lock);
    taken->end = *end;
    (void)snprintf(taken->text, sizeof(taken->text), "%s", end->text ? end->text : "");
    taken->end.text = end->text ? taken->text : NULL;
    taken->ends++;
    pthread_cond_broadcast(&taken->changed);
    pthread_mutex_unlock(&taken->lock);
}

static const struct weft_crowd_ops taken_ops = {taken_head, taken_data, taken_ended};

/* A GET that may go to this machine, with time enough. */
static inline struct weft_crowd_call plain_call(const char *url, struct taken *taken)
{
    return (struct weft_crowd_call){
        .method = "GET",
        .url = url,
        .private_addresses = true,
        .connect_ms = 5000,
        .first_byte_ms = PATIENCE_MS,
        .idle_ms = PATIENCE_MS,
        .total_ms = PATIENCE_MS,
        .response_max = 1 << 20,
        .ops = &taken_ops,
        .context = taken,
    };
}

static inline bool await(struct taken *taken, bool (*is_there)(const struct taken *taken))
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2 * PATIENCE_MS / 1000;
    pthread_mutex_lock(&taken->lock);
    while (!is_there(taken) && pthread_cond_timedwait(&taken->changed, &taken->lock, &until) == 0)
        ;
    bool there = is_there(taken);
    pthread_mutex_unlock(&taken->lock);
    return there;
}

static inline bool is_over(const struct taken *taken)
{
    return taken->ends > 0;
}

static inline bool await_end(struct taken *taken)
{
    return await(taken, is_over);
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

static inline int count_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    (void)closedir(folder);
    return count;
}

#endif
