/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_FETCH_CROWD_STATE_H
#define WEFT_FETCH_CROWD_STATE_H

/*
 * Private to crowd*.c: a crowd is loops, a loop is a thread with packs, a pack is a multi handle of
 * libcurl with up to PACK_MAX calls.
 *
 * Packs exist because libcurl looks for a free connection by walking the list of all that lead to
 * the same host: with 1,000 calls on one handle that is most of the work. A call goes to the first
 * pack with room, so few calls share few connections.
 *
 * What belongs to a loop is touched by its thread alone, but for what `lock` guards and for
 * atomics.
 */

#include "fetch/crowd.h"
#include "fetch/crowd_due.h"
#include "fetch/crowd_head.h"
#include "fetch/crowd_unpack.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

enum {
    PACK_MAX = 100,         /* calls of a pack */
    PACK_CONNECTIONS = 128, /* that a pack keeps, with those in use */
    PACK_REDIRECTS = 5,
};

struct crowd_loop;

struct crowd_pack {
    struct crowd_loop *loop;
    CURLM *multi;
    size_t count;       /* calls */
    weft_usec due_us;   /* when libcurl wants to be called; WEFT_NEVER */
    weft_usec empty_us; /* since when it has no calls */
};

/* What a call needs while it runs, kept for the next one. */
struct crowd_rig {
    struct crowd_rig *next; /* when it is spare */
    struct crowd_loop *loop;
    struct weft_transfer *transfer; /* NULL: spare */
    CURL *easy;
    struct curl_slist *line; /* owned array: the header lines of the request */
    size_t line_room;
    char *text; /* owned: their texts. May hold secrets: wiped when the call ends */
    size_t text_size, text_room;
    struct weft_head head;      /* of the answer */
    struct weft_unpack *unpack; /* owned; NULL: the body is not compressed */
    char message[CURL_ERROR_SIZE];
    char address[WEFT_ADDRESS_TEXT]; /* that was refused */
    uint64_t trusted;                /* which of crowd->pem its handle has */
};

enum crowd_step {
    CROWD_WAITS,    /* for its turn */
    CROWD_CONNECTS, /* until the connection can take the request */
    CROWD_ASKS,     /* until the first byte of an answer */
    CROWD_HEARS,    /* until its end */
};

/* Why a call ends before libcurl says so. */
enum crowd_stop {
    CROWD_GOES_ON,
    CROWD_FAILED,  /* as `failure` and `why` say */
    CROWD_LATE,    /* the deadline of its step passed */
    CROWD_OVERDUE, /* the deadline of the whole call passed */
    CROWD_ENOUGH,  /* its owner has what it wanted */
    CROWD_ABORTED,
};

struct weft_transfer {
    TAILQ_ENTRY(weft_transfer) entry; /* in inbox, waiting or running */
    struct weft_crowd_call call;
    struct crowd_loop *loop;
    struct crowd_pack *pack; /* NULL: not begun */
    struct crowd_rig *rig;   /* the same */
    _Atomic bool unwanted;   /* by weft_crowd_abort() */
    enum crowd_step step;
    enum crowd_stop stop;
    enum weft_http_failure failure;
    const char *why;    /* static */
    weft_usec start_us; /* when the call was made */
    weft_usec begun_us; /* when libcurl got it, or the last redirect */
    weft_usec since_us; /* from when the deadline of the step counts */
    weft_usec heard_us; /* when the answer began; 0: it did not */
    struct weft_due due;
    char *url; /* owned: where a redirect led; NULL: as the call says */
    int redirects;
    int status;      /* 0: no complete head came */
    size_t received; /* bytes of the body, decoded */
    bool asked;      /* libcurl was about to send the request */
    bool sent;       /* something of an earlier request of this call was sent */
    bool hops;       /* the answer redirects, and that is followed */
    bool bare;       /* a redirect took the body away */
};

TAILQ_HEAD(crowd_list, weft_transfer);

/* A descriptor that libcurl uses. */
struct crowd_file {
    struct crowd_pack *pack;
    struct weft_transfer *transfer; /* the call that waits for it, or NULL */
    uint32_t wanted;                /* events that libcurl waits for; 0: the connection is idle */
    uint32_t known;                 /* events that epoll reports; 0: it does not know it */
    bool ours;                      /* a connection, which is closed by our callback */
};

struct crowd_loop {
    struct weft_crowd *crowd;
    pthread_t thread;
    int poller, waker;     /* epoll, eventfd */
    size_t limit;          /* calls that run at once */
    _Atomic size_t load;   /* calls, with those that wait */
    _Atomic bool unwanted; /* some call is */
    pthread_mutex_t lock;  /* of the two below; held for a moment only */
    struct crowd_list inbox;
    bool stopping;

    weft_usec now_us; /* of this turn */
    bool stops;
    struct crowd_list waiting, running;
    size_t count; /* running */
    struct weft_dues dues;
    struct crowd_pack **pack; /* owned */
    size_t packs;
    struct crowd_rig *spare;
    size_t spares;
    struct crowd_file *file; /* owned, by descriptor */
    size_t files;
};

struct weft_crowd {
    pthread_mutex_t lock;     /* of the next; no other lock is taken under it */
    char *pem;                /* owned: what weft_crowd_trust() said last */
    _Atomic uint64_t trusted; /* how often it said something */
    _Atomic size_t in_flight;
    size_t loops;
    struct crowd_loop *loop; /* owned */
};

/* ---- crowd_loop.c: the thread ---------------------------------------------------------------- */

void *weft_crowd_turns(void *context); /* of a loop, until it stops */
void weft_crowd_wake(struct crowd_loop *loop);
/* The call comes to a step, or shows again that it goes on. */
void weft_crowd_enter(struct weft_transfer *transfer, enum crowd_step step, weft_usec now_us);
/* A connection, when it is made and when it is closed. */
void weft_crowd_opened(struct crowd_loop *loop, int fd);
void weft_crowd_closed(struct crowd_loop *loop, int fd);

/* ---- crowd_rig.c: the settings and callbacks of a call ----------------------------------------
 */

struct crowd_rig *weft_crowd_rig_new(struct crowd_loop *loop);
void weft_crowd_rig_free(struct crowd_rig *rig);
/* Makes the rig ready for the transfer, also for its next redirect. */
void weft_crowd_rig_set(struct crowd_rig *rig, struct weft_transfer *transfer);
void weft_crowd_rig_clear(struct crowd_rig *rig); /* wipes what may be secret */

/* ---- crowd_end.c: how calls end ---------------------------------------------------------------
 */

/* Where a redirect leads, taken over by the transfer. False: the call fails. */
bool weft_crowd_hop(struct weft_transfer *transfer);
bool weft_crowd_is_tls(const struct weft_transfer *transfer);
/* True when a byte of the request may have reached the server. */
bool weft_crowd_sent(const struct weft_transfer *transfer);
/* The end of a call to which libcurl said `code`. The text is in ret_text, if any. */
enum { CROWD_TEXT_MAX = 400 };
struct weft_crowd_end weft_crowd_judge(const struct weft_transfer *transfer, CURLcode code,
                                       char ret_text[CROWD_TEXT_MAX]);

#endif
