/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_GROUP_PLAN_H
#define WEFT_NET_GROUP_PLAN_H

/*
 * What the engine threads do next: a queue for each kind of request, how many of a kind may run at
 * once, and whose turn it is. Pure: group.c has the threads, and holds its lock around each call.
 */

#include "net/group/fair.h"
#include "net/group/group_run.h"
#include "net/http/answers.h"

enum {
    WEFT_JOINTS_MAX = 4,     /* joint calls at once, of which all but two are held up */
    WEFT_WALKS_WAITING = 64, /* lists with a filter that wait, of one token: some seconds of work */
};

/* A joint call that is under way. */
struct weft_joint {
    weft_usec began_us; /* boot time */
    size_t requests;    /* 0: there is none */
};

/* A thread that runs something of a slow class, and for which namespace. */
struct weft_holder {
    bool busy;
    bool walks; /* a list with a filter */
    enum weft_group class;
    int32_t token; /* 0: none */
    char ns[129];
};

struct weft_plan_queue {
    struct weft_fair fair;
    uint32_t running; /* calls under way */
    uint32_t apart;   /* of these: not joint */
    weft_usec
        small_us;    /* boot time; when its small call began that is not joint; 0: there is none */
    bool large_next; /* with one writer: the last call took small lines and left large ones */
    size_t gather;   /* so many requests begin the next call at once, */
    weft_usec gather_us; /* fewer only then; see plan.c */
};

struct weft_plan {
    uint32_t threads;
    size_t writers; /* calls that may write at once */
    struct weft_plan_queue queue[WEFT_GROUP_COUNT];
    size_t tasks; /* that wait */
    uint32_t tasks_running;
    size_t waiting; /* requests in all queues */
    struct weft_joint joint[WEFT_JOINTS_MAX];
    size_t writing;                     /* calls that write now */
    uint32_t slow;                      /* tasks and calls of slow classes that run now */
    uint32_t others;                    /* all that runs now but for quick reads */
    const struct weft_answers *answers; /* reads wait while these fill the memory; or NULL */
    struct weft_holder *holder;         /* owned; one for each thread */
    unsigned turn[2];                   /* whose it is: of kinds that do not write; that do */
    bool wrote;                         /* the last turn was one that writes */
    bool side_work; /* with one writer: a large call has left its place to small ones */
};

/* What a thread took. */
struct weft_batch {
    bool task;                                   /* the first one; or requests: */
    struct weft_group_part part[WEFT_JOINT_MAX]; /* each with room for WEFT_BATCH_MAX */
    size_t parts;
    struct weft_joint *joint;   /* the call is for several kinds; or NULL */
    bool small;                 /* it is not joint, and counts as small: see plan.c */
    struct weft_holder *holder; /* the call is of a slow class; or NULL */
    bool side_work;             /* the call has given back the right to write and its place */
};

void weft_plan_init(struct weft_plan *plan, uint32_t threads, size_t writers);
void weft_plan_done(struct weft_plan *plan); /* its queues are empty */

/* Puts a request into the queue of its class; says which that is. */
enum weft_group weft_plan_put(struct weft_plan *plan, struct weft_request *request);
/*
 * Whether one more request of a namespace may wait where `most` may in all. One namespace may fill
 * the queues as long as it is alone; others still find room, so it may become half as many more.
 */
bool weft_plan_has_room(const struct weft_plan *plan, const char *ns, size_t most);
/* Whether a request may wait beside the other lists with filters of its token. */
bool weft_plan_has_room_to_walk(const struct weft_plan *plan, const struct weft_request *request);

/* True when something may run now. */
bool weft_plan_may_run(const struct weft_plan *plan, weft_usec now_us);
/* Takes the next task or requests in turn; false when nothing may run now. */
bool weft_plan_take(struct weft_plan *plan, weft_usec now_us, struct weft_batch *batch);
/*
 * A call is about to do long work outside its transaction: other calls need not wait for it. With
 * one writer, calls of small lines may run beside it from here on.
 */
void weft_plan_side_work(struct weft_plan *plan, struct weft_batch *batch);
/* What was taken has run: gives its room back. */
void weft_plan_give_back(struct weft_plan *plan, const struct weft_batch *batch, weft_usec now_us);
/* Whether requests wait for others of their kind: a thread has to look at the time. */
bool weft_plan_gathers(const struct weft_plan *plan, weft_usec now_us);
/*
 * Takes reads that have waited for room for their answers since `since_us` or longer; says how
 * many, at most `most`.
 */
size_t weft_plan_take_roomless(struct weft_plan *plan, weft_usec since_us, struct weft_request **to,
                               size_t most);
/* When a request that may not run now may, without any event before; WEFT_NEVER. */
weft_usec weft_plan_next_look(const struct weft_plan *plan, weft_usec now_us);

#endif
