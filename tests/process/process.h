/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_PROCESS_PROCESS_H
#define WEFT_TESTS_PROCESS_PROCESS_H

/*
 * Many processes at one store, over the real clock. A process is forked while this one has nothing
 * open, and reports its work through a pipe, record by record: the records of a killed process are
 * kept.
 */

#include "support.h"

#include "weft/weft.h"

#include <sys/types.h>

/* A record in the pipe; small enough to be written whole or not at all. */
struct record {
    enum { CLAIMED = 1, COMPLETED, FENCED, OPENED } what;
    struct weft_id id;
    int32_t epoch;
    int32_t worker;
};

struct crew {
    pid_t *child;
    size_t count;
    int pipe[2];
    struct record *record; /* owned; all that was told so far */
    size_t records, capacity;
};

typedef void worker_fn(const struct place *place, int number, int out, void *context);

/* Starts count processes. The store must be closed in this one. */
void crew_start(struct crew *crew, const struct place *place, size_t count, worker_fn *work,
                void *context);
/* Reads the processes' reports until there are `records` of them; false when it takes too long. */
bool crew_hear(struct crew *crew, size_t records);
/* Reads everything and waits for all to end; true when all of them ended well or by SIGKILL. */
bool crew_join(struct crew *crew);
void crew_done(struct crew *crew);
size_t crew_count(const struct crew *crew, int what);

void tell(int out, const struct record *record);

struct work {
    const char *lane;
    uint32_t batch;
    int64_t lease_ms;
    bool expires; /* runs the lease expiry between claims */
    bool dies;    /* stops with its leases in hand and waits to be killed */
    bool lingers; /* asks for more before it finishes what it has */
};
/* A worker: claims and completes until nothing of the lane is left. */
worker_fn work_lane;

/* All executions of a lane, in memory of the arena. */
struct weft_execution *read_lane(struct weft_engine *engine, const char *lane,
                                 struct weft_arena *arena, size_t *ret_count);

#endif
