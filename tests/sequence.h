/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_SEQUENCE_H
#define WEFT_TESTS_SEQUENCE_H

/*
 * Every operation of the engine as something that can be struck in the middle: how to get ready for
 * it, the one call, and how to tell afterwards from the store alone whether it happened. The call
 * may fail or the process that makes it may die; another process looks at the store afterwards.
 */

#include "support.h"

#include "store/store.h"
#include "weft/weft.h"

enum { ITEMS = 3, SEEN_MAX = 16 };

/* What the caller heard. May lie in memory shared with a process that dies. */
struct heard {
    bool answered;
    enum weft_rc rc;
    bool unknown; /* the hint said outcome_unknown */
    char text[160];
    enum weft_rc item[ITEMS];
    struct weft_id id[ITEMS];
    int32_t epoch[ITEMS];
    uint64_t number; /* passes, sweeps, claims: how many */
};

/* One run of a sequence, on names of its own, so that nothing is cached. */
struct run {
    const struct sequence *sequence;
    const struct place *place;
    weft_usec now_us;
    char lane[32], kind[32], worker[32];
    char key[ITEMS][32];
    struct weft_id id[ITEMS]; /* what prepare() made */
    int32_t epoch[ITEMS];
    /* The executions of this run as they were when run_look() listed them. */
    struct {
        struct weft_id id;
        bool living;
        int key; /* which of the keys, -1: none */
    } seen[SEEN_MAX];
    size_t seen_count;
};

struct sequence {
    const char *name;
    enum weft_stmt stmt; /* does it: the transaction with this statement is the one that counts */
    bool pg_only;
    bool fresh;             /* nothing exists before the call */
    bool no_repeat;         /* weft.h: this may not be repeated blindly */
    enum weft_rc repeat_rc; /* another word that a repeat of what is done may get */
    bool counts;            /* heard.number must be ITEMS */
    bool full_may_be_done;  /* goes on after its commit, so a later failure says nothing */
    int attempts;           /* rows of history of each execution when it is done; -1: any */
    int group[ITEMS];       /* items of a group happen together or not at all */
    void (*prepare)(struct run *run, struct weft_engine *clean);
    void (*act)(struct run *run, struct weft_engine *engine, struct heard *heard);
    bool (*done)(struct run *run, struct weft_engine *clean, const struct heard *heard, size_t i);
};

extern const struct sequence sequences[];
extern const size_t sequence_count;

void run_init(struct run *run, const struct sequence *sequence, const struct place *place,
              int number);
/* An execution of the run as it is now. Its texts may not be looked at. */
struct weft_execution run_now(struct run *run, struct weft_engine *clean, size_t i);
/* Lists the executions of this run; the checks read from that list which items are done. */
void run_look(struct run *run, struct weft_engine *clean);
/* Ends what still lives, so that the next run is alone. */
void run_done(struct run *run, struct weft_engine *clean);
/* Later than every lease, delay and deadline that prepare() made. */
weft_usec run_later(const struct run *run);
/* The mismatch between the answer that was heard and the store, NULL when there is none. */
const char *run_judge(struct run *run, struct weft_engine *clean, const struct heard *heard);
/* How many of the items are done. */
size_t run_done_count(struct run *run, struct weft_engine *clean, const struct heard *heard);

#endif
