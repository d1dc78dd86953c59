/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The thread of a loop. libcurl says through watch_socket() which descriptors it waits for and
 * through set_timer() when it wants to be called; epoll waits for all packs of the loop at once.
 *
 * A connection that becomes idle stays known to epoll, which saves two system calls for each call.
 * If the server then closes it, or sends what no call asked for, it is shut down at once: libcurl
 * sees that before it uses the connection again, and no answer is taken for that of another call.
 *
 * The deadlines of calls are kept here, not by libcurl: it has none for the first byte, and
 * measures silence in whole seconds.
 */

#include "fetch/crowd_state.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    FILES_FIRST = 256,
    WAIT_MAX_MS = 60000,
    BEGIN_MAX = 64 /* calls in one turn: those under way are not to wait long */
};

#define PACK_EMPTY_US (60 * WEFT_SECOND) /* after that its connections are closed */

/* ---- Descriptors ----------------------------------------------------------------------------- */

static struct crowd_file *file_of(struct crowd_loop *loop, int fd)
{
    if ((size_t)fd >= loop->files) {
        size_t files = loop->files ? loop->files : FILES_FIRST;
        while (files <= (size_t)fd)
            files *= 2;
        loop->file = weft_realloc(loop->file, files, sizeof(struct crowd_file));
        for (size_t i = loop->files; i < files; i++)
            loop->file[i] = (struct crowd_file){0};
        loop->files = files;
    }
    return &loop->file[fd];
}

/* Tells epoll what is wanted of a descriptor. */
static void tell_poller(struct crowd_loop *loop, int fd, struct crowd_file *file)
{
    if (file->known == file->wanted)
        return;
    struct epoll_event event = {.events = file->wanted, .data.fd = fd};
    int change = !file->wanted ? EPOLL_CTL_DEL : file->known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    (void)epoll_ctl(loop->poller, change, fd, &event);
    file->known = file->wanted;
}

/*
 * libcurl may close a connection that it never used without telling us, and get the same number for
 * the next: then it believes that we wait for it already.
 */
void weft_crowd_opened(struct crowd_loop *loop, int fd)
{
    struct crowd_file *file = file_of(loop, fd);
    file->known = 0;
    file->ours = true;
    tell_poller(loop, fd, file);
}

/* The kernel takes a closed descriptor out of epoll by itself. */
void weft_crowd_closed(struct crowd_loop *loop, int fd)
{
    *file_of(loop, fd) = (struct crowd_file){0};
}

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *unused)
{
    struct crowd_pack *pack = context;
    struct crowd_loop *loop = pack->loop;
    struct crowd_file *file = file_of(loop, fd);
    struct crowd_rig *rig = NULL;
    (void)unused;
    if (what == CURL_POLL_REMOVE) {
        file->transfer = NULL;
        file->wanted = 0;
        if (!file->ours || file->known != EPOLLIN)
            tell_poller(loop, fd, file);
        return 0;
    }
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&rig);
    file->pack = pack;
    file->transfer = rig ? rig->transfer : NULL;
    file->wanted = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    tell_poller(loop, fd, file);
    return 0;
}

/* ---- Packs ----------------------------------------------------------------------------------- */

static int set_timer(CURLM *multi, long ms, void *context)
{
    struct crowd_pack *pack = context;
    (void)multi;
    pack->due_us = ms < 0 ? WEFT_NEVER : ms == 0 ? 0 : weft_boot_us() + ms * WEFT_MS;
    return 0;
}

static struct crowd_pack *make_pack(struct crowd_loop *loop)
{
    struct crowd_pack *pack = weft_alloc(1, sizeof(*pack));
    *pack = (struct crowd_pack){.loop = loop, .multi = curl_multi_init(), .due_us = WEFT_NEVER};
    if (!pack->multi)
        weft_oom(1);
    (void)curl_multi_setopt(pack->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    (void)curl_multi_setopt(pack->multi, CURLMOPT_SOCKETDATA, pack);
    (void)curl_multi_setopt(pack->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    (void)curl_multi_setopt(pack->multi, CURLMOPT_TIMERDATA, pack);
    (void)curl_multi_setopt(pack->multi, CURLMOPT_MAXCONNECTS, (long)PACK_CONNECTIONS);
    (void)curl_multi_setopt(pack->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    loop->pack = weft_realloc(loop->pack, loop->packs + 1, sizeof(struct crowd_pack *));
    loop->pack[loop->packs++] = pack;
    return pack;
}

static void free_pack(struct crowd_pack *pack)
{
    (void)curl_multi_cleanup(pack->multi);
    free(pack);
}

/* The first with room, so that few calls share few connections. */
static struct crowd_pack *find_pack(struct crowd_loop *loop)
{
    for (size_t i = 0; i < loop->packs; i++)
        if (loop->pack[i]->count < PACK_MAX)
            return loop->pack[i];
    return make_pack(loop);
}

/* Calls libcurl for a pack whose time has come. Its timer is asked for: it tells changes only. */
static void run_pack(struct crowd_pack *pack)
{
    int running;
    long ms = -1;
    (void)curl_multi_socket_action(pack->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    (void)curl_multi_timeout(pack->multi, &ms);
    (void)set_timer(pack->multi, ms, pack);
}

static void run_due_packs(struct crowd_loop *loop)
{
    for (size_t i = 0; i < loop->packs; i++)
        if (loop->pack[i]->due_us <= loop->now_us)
            run_pack(loop->pack[i]);
}

/* Closes what has not been used for a while. */
static void drop_empty_packs(struct crowd_loop *loop)
{
    for (size_t i = loop->packs; i-- > 0;) {
        struct crowd_pack *pack = loop->pack[i];
        if (pack->count > 0 || loop->now_us - pack->empty_us < PACK_EMPTY_US)
            continue;
        free_pack(pack);
        loop->pack[i] = loop->pack[--loop->packs];
    }
    while (loop->spare && loop->spares > loop->packs * PACK_MAX) {
        struct crowd_rig *rig = loop->spare;
        loop->spare = rig->next;
        loop->spares--;
        weft_crowd_rig_free(rig);
    }
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static weft_usec add_ms(weft_usec at_us, int64_t ms)
{
    return ms < (WEFT_NEVER - at_us) / WEFT_MS ? at_us + ms * WEFT_MS : WEFT_NEVER;
}

static weft_usec total_due(const struct weft_transfer *transfer)
{
    return add_ms(transfer->start_us, transfer->call.total_ms);
}

static weft_usec step_due(const struct weft_transfer *transfer)
{
    const struct weft_crowd_call *call = &transfer->call;
    switch (transfer->step) {
    case CROWD_WAITS:
        break;
    case CROWD_CONNECTS:
        return add_ms(transfer->since_us, call->connect_ms);
    case CROWD_ASKS:
        return add_ms(transfer->since_us, call->first_byte_ms);
    case CROWD_HEARS:
        return add_ms(transfer->since_us, call->idle_ms);
    }
    return WEFT_NEVER;
}

/* An earlier deadline is set at once; a later one when the old one comes up. */
static void set_due(struct weft_transfer *transfer, bool later)
{
    weft_usec step_us = step_due(transfer), total_us = total_due(transfer);
    weft_usec due_us = step_us < total_us ? step_us : total_us;
    if (later || transfer->due.place == 0 || due_us < transfer->due.at_us)
        weft_dues_set(&transfer->loop->dues, &transfer->due, due_us);
}

void weft_crowd_enter(struct weft_transfer *transfer, enum crowd_step step, weft_usec now_us)
{
    transfer->step = step;
    transfer->since_us = now_us;
    set_due(transfer, false);
}

static struct crowd_rig *take_rig(struct crowd_loop *loop)
{
    struct crowd_rig *rig = loop->spare;
    if (!rig)
        return weft_crowd_rig_new(loop);
    loop->spare = rig->next;
    loop->spares--;
    return rig;
}

static void put_rig(struct crowd_loop *loop, struct crowd_rig *rig)
{
    weft_crowd_rig_clear(rig);
    rig->transfer = NULL;
    rig->next = loop->spare;
    loop->spare = rig;
    loop->spares++;
}

/* Gives it to libcurl, which goes on with it when the pack runs. */
static void ask(struct weft_transfer *transfer)
{
    transfer->begun_us = weft_boot_us();
    weft_crowd_enter(transfer, CROWD_CONNECTS, transfer->begun_us);
    weft_crowd_rig_set(transfer->rig, transfer);
    if (curl_multi_add_handle(transfer->pack->multi, transfer->rig->easy) != CURLM_OK)
        weft_oom(1); /* it has no other reason to fail */
}

static void begin(struct crowd_loop *loop, struct weft_transfer *transfer)
{
    TAILQ_REMOVE(&loop->waiting, transfer, entry);
    TAILQ_INSERT_TAIL(&loop->running, transfer, entry);
    loop->count++;
    transfer->pack = find_pack(loop);
    transfer->pack->count++;
    transfer->rig = take_rig(loop);
    ask(transfer);
}

static void begin_waiting(struct crowd_loop *loop)
{
    struct weft_transfer *transfer;
    for (int begun = 0; begun < BEGIN_MAX && loop->count < loop->limit; begun++) {
        if (!(transfer = TAILQ_FIRST(&loop->waiting)))
            break;
        begin(loop, transfer);
    }
}

/* Takes it from libcurl, which closes its connection unless the answer is complete. */
static void leave_pack(struct crowd_loop *loop, struct weft_transfer *transfer)
{
    struct crowd_pack *pack = transfer->pack;
    (void)curl_multi_remove_handle(pack->multi, transfer->rig->easy);
    put_rig(loop, transfer->rig);
    if (--pack->count == 0)
        pack->empty_us = loop->now_us;
    TAILQ_REMOVE(&loop->running, transfer, entry);
    loop->count--;
}

static void end(struct weft_transfer *transfer, CURLcode code)
{
    char text[CROWD_TEXT_MAX];
    struct crowd_loop *loop = transfer->loop;
    const struct weft_crowd_end end = weft_crowd_judge(transfer, code, text);
    weft_dues_remove(&loop->dues, &transfer->due);
    if (transfer->rig)
        leave_pack(loop, transfer);
    else
        TAILQ_REMOVE(&loop->waiting, transfer, entry);
    atomic_fetch_sub(&loop->load, 1);
    atomic_fetch_sub(&loop->crowd->in_flight, 1);
    transfer->call.ops->ended(transfer->call.context, &end);
    free(transfer->url);
    free(transfer);
}

/* libcurl is done with it: it ends, or goes where it was redirected. */
static void take_done(struct weft_transfer *transfer, CURLcode code)
{
    bool hops = transfer->hops && code == CURLE_OK && transfer->stop == CROWD_GOES_ON;
    if (hops && weft_crowd_hop(transfer)) {
        (void)curl_multi_remove_handle(transfer->pack->multi, transfer->rig->easy);
        ask(transfer);
        return;
    }
    end(transfer, code);
}

static void take_done_of_all(struct crowd_loop *loop)
{
    for (size_t i = 0; i < loop->packs; i++) {
        int left;
        const CURLMsg *message;
        while ((message = curl_multi_info_read(loop->pack[i]->multi, &left))) {
            struct crowd_rig *rig = NULL;
            CURLcode code = message->data.result; /* gone with the handle */
            (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&rig);
            take_done(rig->transfer, code);
        }
    }
}

/* ---- What happens ---------------------------------------------------------------------------- */

/*
 * Something came in on the connection of a call: less than a line, for lines and bodies are noted
 * by their callbacks. Right after a handshake it may be TLS's own affair.
 */
static void hear(struct weft_transfer *transfer)
{
    bool answers = transfer->step == CROWD_ASKS && !weft_crowd_is_tls(transfer);
    if (answers || transfer->step == CROWD_HEARS)
        weft_crowd_enter(transfer, CROWD_HEARS, transfer->loop->now_us);
}

static void take_event(struct crowd_loop *loop, int fd, uint32_t events)
{
    struct crowd_file *file = file_of(loop, fd);
    struct weft_transfer *transfer = file->transfer;
    const uint32_t broken = EPOLLERR | EPOLLHUP;
    int running, mask = (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                        (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                        (events & broken ? CURL_CSELECT_ERR : 0);
    if (!file->known)
        return; /* closed a moment ago */
    if (!(events & (file->wanted | broken)) || !file->wanted) {
        if (!file->wanted && file->ours)
            (void)shutdown(fd, SHUT_RDWR);
        tell_poller(loop, fd, file);
        return;
    }
    (void)curl_multi_socket_action(file->pack->multi, fd, mask, &running);
    if (transfer && (events & EPOLLIN))
        hear(transfer);
}

static void take_inbox(struct crowd_loop *loop)
{
    struct crowd_list inbox = TAILQ_HEAD_INITIALIZER(inbox);
    pthread_mutex_lock(&loop->lock);
    TAILQ_CONCAT(&inbox, &loop->inbox, entry);
    loop->stops = loop->stopping;
    pthread_mutex_unlock(&loop->lock);
    struct weft_transfer *transfer;
    TAILQ_FOREACH (transfer, &inbox, entry)
        set_due(transfer, true);
    TAILQ_CONCAT(&loop->waiting, &inbox, entry);
}

static void abort_list(struct crowd_list *list, bool all)
{
    for (struct weft_transfer *transfer = TAILQ_FIRST(list), *next; transfer; transfer = next) {
        next = TAILQ_NEXT(transfer, entry);
        if (!all && !atomic_load_explicit(&transfer->unwanted, memory_order_relaxed))
            continue;
        transfer->stop = CROWD_ABORTED;
        end(transfer, CURLE_OK);
    }
}

/* The mark is read before the inbox: a call that it stands for is in there, if it is nowhere else.
 */
static void take_orders(struct crowd_loop *loop)
{
    bool unwanted = atomic_exchange(&loop->unwanted, false);
    take_inbox(loop);
    if (!unwanted && !loop->stops)
        return;
    abort_list(&loop->running, loop->stops);
    abort_list(&loop->waiting, loop->stops);
}

static void end_late(struct crowd_loop *loop)
{
    struct weft_due *due;
    while ((due = weft_dues_first(&loop->dues)) && due->at_us <= loop->now_us) {
        struct weft_transfer *transfer =
            (struct weft_transfer *)((char *)due - offsetof(struct weft_transfer, due));
        if (total_due(transfer) <= loop->now_us)
            transfer->stop = CROWD_OVERDUE;
        else if (step_due(transfer) <= loop->now_us)
            transfer->stop = CROWD_LATE;
        if (transfer->stop == CROWD_GOES_ON)
            set_due(transfer, true);
        else
            end(transfer, CURLE_OPERATION_TIMEDOUT);
    }
}

/* ---- The thread ------------------------------------------------------------------------------ */

static weft_usec earlier(weft_usec a_us, weft_usec b_us)
{
    return a_us < b_us ? a_us : b_us;
}

static int wait_ms(const struct crowd_loop *loop)
{
    const struct weft_due *first = weft_dues_first(&loop->dues);
    weft_usec wake_us = first ? first->at_us : WEFT_NEVER;
    if (loop->count < loop->limit && !TAILQ_EMPTY(&loop->waiting))
        return 0; /* there is room for more */
    for (size_t i = 0; i < loop->packs; i++) {
        const struct crowd_pack *pack = loop->pack[i];
        wake_us = earlier(wake_us, pack->due_us);
        if (pack->count == 0)
            wake_us = earlier(wake_us, pack->empty_us + PACK_EMPTY_US);
    }
    weft_usec left_us = wake_us == WEFT_NEVER ? WEFT_NEVER : wake_us - weft_boot_us();
    if (left_us <= 0)
        return 0;
    return left_us > WAIT_MAX_MS * WEFT_MS ? WAIT_MAX_MS : (int)((left_us + WEFT_MS - 1) / WEFT_MS);
}

static void take_events(struct crowd_loop *loop)
{
    struct epoll_event event[EVENTS_MAX];
    int count = epoll_wait(loop->poller, event, EVENTS_MAX, wait_ms(loop));
    loop->now_us = weft_boot_us();
    for (int i = 0; i < count; i++) {
        eventfd_t wakes;
        if (event[i].data.fd == loop->waker)
            (void)eventfd_read(loop->waker, &wakes);
        else
            take_event(loop, event[i].data.fd, event[i].events);
    }
}

void *weft_crowd_turns(void *context)
{
    struct crowd_loop *loop = context;
    do {
        take_events(loop);
        take_done_of_all(loop); /* before aborts and deadlines: what is over is over */
        take_orders(loop);
        end_late(loop);
        begin_waiting(loop);
        run_due_packs(loop);
        take_done_of_all(loop);
        drop_empty_packs(loop);
    } while (!loop->stops);
    while (loop->packs > 0)
        free_pack(loop->pack[--loop->packs]);
    drop_empty_packs(loop); /* the spare rigs */
    return NULL;
}

void weft_crowd_wake(struct crowd_loop *loop)
{
    (void)eventfd_write(loop->waker, 1);
}
