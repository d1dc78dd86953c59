/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Claims only note their workers here; upkeep writes the workers that are new, have changed, or
 * were last written a while ago, many at once, so that a claim costs no further write.
 */

#include "net/upkeep/roster.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/map.h"
#include "engine/admin/workers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REWRITE_US (10 * WEFT_SECOND)
#define FORGET_US  (600 * WEFT_SECOND)
enum { WRITE_MAX = 500, KNOWN_MAX = 1000, KEY_MAX = 300 };

struct entry {
    struct entry *next;
    void *texts; /* owned: all that `seen` points to; there may be 100,000 workers */
    struct weft_worker_seen seen;
    weft_usec written_us; /* 0: never, or it has changed since */
    bool gone;            /* said goodbye: not to be written */
};

struct weft_roster {
    pthread_mutex_t lock; /* over all */
    struct weft_map by_name;
    struct entry *first;
    size_t kept; /* entries after old ones were last forgotten */
};

struct weft_roster *weft_roster_new(void)
{
    struct weft_roster *roster = weft_alloc(1, sizeof(*roster));
    pthread_mutex_init(&roster->lock, NULL);
    return roster;
}

void weft_roster_free(struct weft_roster *roster)
{
    if (!roster)
        return;
    for (struct entry *entry = roster->first; entry;) {
        struct entry *next = entry->next;
        free(entry->texts);
        free(entry);
        entry = next;
    }
    weft_map_done(&roster->by_name);
    pthread_mutex_destroy(&roster->lock);
    free(roster);
}

static size_t key_of(const char *ns, const char *worker, char ret_key[KEY_MAX])
{
    int size = snprintf(ret_key, KEY_MAX, "%s\n%s", ns, worker);
    return size < KEY_MAX ? (size_t)size : KEY_MAX - 1;
}

static bool same_texts(const char *const *a, size_t a_count, const char *const *b, size_t b_count)
{
    if (a_count != b_count)
        return false;
    for (size_t i = 0; i < a_count; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}

static size_t size_of_texts(const char *const *text, size_t count)
{
    size_t size = count * sizeof(*text);
    for (size_t i = 0; i < count; i++)
        size += strlen(text[i]) + 1;
    return size;
}

static const char *copy_text(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    *at += size;
    return memcpy(*at - size, text, size);
}

/* The pointers of several lists come first, the texts behind all of them. */
static const char *const *copy_texts(const char ***list, char **at, const char *const *text,
                                     size_t count)
{
    const char **copy = *list;
    *list += count;
    for (size_t i = 0; i < count; i++)
        copy[i] = copy_text(at, text[i]);
    return copy;
}

static size_t size_of_seen(const struct weft_worker_seen *seen)
{
    return strlen(seen->ns) + strlen(seen->name) + 2 +
           size_of_texts(seen->lanes, seen->lane_count) +
           size_of_texts(seen->capabilities, seen->capability_count);
}

/* A copy whose texts are in the room, which has size_of_seen() bytes. */
static struct weft_worker_seen copy_seen(const struct weft_worker_seen *seen, void *room)
{
    struct weft_worker_seen copy = *seen;
    const char **list = room;
    char *at = (char *)(list + seen->lane_count + seen->capability_count);
    copy.ns = copy_text(&at, seen->ns);
    copy.name = copy_text(&at, seen->name);
    copy.lanes = copy_texts(&list, &at, seen->lanes, seen->lane_count);
    copy.capabilities = copy_texts(&list, &at, seen->capabilities, seen->capability_count);
    return copy;
}

/* Takes over what a claim says of its worker. */
static void learn(struct entry *entry, const struct weft_claim *claim)
{
    static const char *const normally[] = {"default"};
    const struct weft_worker_seen news = {
        .ns = claim->ns,
        .name = claim->worker,
        .lanes = claim->lane_count ? claim->lanes : normally,
        .lane_count = claim->lane_count ? claim->lane_count : 1,
        .capabilities = claim->capabilities,
        .capability_count = claim->capability_count,
    };
    const struct weft_worker_seen *seen = &entry->seen;
    if (seen->name && same_texts(seen->lanes, seen->lane_count, news.lanes, news.lane_count) &&
        same_texts(seen->capabilities, seen->capability_count, news.capabilities,
                   news.capability_count))
        return;
    void *texts = weft_alloc(1, size_of_seen(&news));
    entry->seen = copy_seen(&news, texts);
    free(entry->texts);
    entry->texts = texts;
    entry->written_us = 0;
}

bool weft_roster_knows(struct weft_roster *roster, const struct weft_claim *claim)
{
    char key[KEY_MAX];
    size_t size = key_of(claim->ns, claim->worker, key);
    pthread_mutex_lock(&roster->lock);
    bool known = weft_map_find(&roster->by_name, key, size) != NULL;
    pthread_mutex_unlock(&roster->lock);
    return known;
}

void weft_roster_seen(struct weft_roster *roster, const struct weft_claim *claim, weft_usec now_us)
{
    char key[KEY_MAX];
    size_t size = key_of(claim->ns, claim->worker, key);
    pthread_mutex_lock(&roster->lock);
    struct entry *entry = weft_map_find(&roster->by_name, key, size);
    if (!entry) {
        entry = weft_alloc(1, sizeof(*entry));
        entry->next = roster->first;
        roster->first = entry;
        weft_map_put(&roster->by_name, key, size, entry);
    }
    learn(entry, claim);
    if (entry->gone)
        entry->written_us = 0;
    entry->gone = false;
    entry->seen.seen_us = now_us;
    pthread_mutex_unlock(&roster->lock);
}

void weft_roster_forget(struct weft_roster *roster, const char *ns, const char *worker)
{
    char key[KEY_MAX];
    size_t size = key_of(ns, worker, key);
    pthread_mutex_lock(&roster->lock);
    struct entry *entry = weft_map_find(&roster->by_name, key, size);
    if (entry)
        entry->gone = true;
    pthread_mutex_unlock(&roster->lock);
}

static bool is_to_write(const struct entry *entry)
{
    return !entry->gone && entry->seen.seen_us > entry->written_us &&
           (entry->written_us == 0 || entry->seen.seen_us - entry->written_us >= REWRITE_US);
}

/* Frees workers that have not claimed for long: names come and go with processes. */
static void forget_old(struct weft_roster *roster)
{
    weft_usec newest_us = 0;
    for (const struct entry *e = roster->first; e; e = e->next)
        newest_us = e->seen.seen_us > newest_us ? e->seen.seen_us : newest_us;
    struct entry *kept = NULL;
    struct weft_map by_name = {0};
    roster->kept = 0;
    for (struct entry *e = roster->first; e;) {
        struct entry *next = e->next;
        if (newest_us - e->seen.seen_us < FORGET_US) {
            roster->kept++;
            char key[KEY_MAX];
            size_t size = key_of(e->seen.ns, e->seen.name, key);
            weft_map_put(&by_name, key, size, e);
            e->next = kept;
            kept = e;
        } else {
            free(e->texts);
            free(e);
        }
        e = next;
    }
    weft_map_done(&roster->by_name);
    roster->by_name = by_name;
    roster->first = kept;
}

enum weft_rc weft_roster_write(struct weft_roster *roster, struct weft_engine *engine,
                               struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_worker_seen *seen = weft_new_array(arena, struct weft_worker_seen, WRITE_MAX);
    size_t count = 0, known = 0;
    pthread_mutex_lock(&roster->lock);
    for (struct entry *e = roster->first; e; e = e->next, known++)
        if (count < WRITE_MAX && is_to_write(e)) {
            seen[count] = copy_seen(&e->seen, weft_arena_alloc(arena, size_of_seen(&e->seen), 1));
            e->written_us = e->seen.seen_us;
            count++;
        }
    if (known > KNOWN_MAX && known > 2 * roster->kept)
        forget_old(roster);
    pthread_mutex_unlock(&roster->lock);
    enum weft_rc rc = count ? weft_engine_workers_put(engine, seen, count, err) : WEFT_OK;
    weft_arena_free(arena);
    return rc;
}
