/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_ID_H
#define WEFT_BASE_ID_H

/*
 * Ids are UUIDv7 (RFC 9562): 48 bits of milliseconds, then in the 12 bits of rand_a a partition
 * (0..255, the high 8 bits) and 4 random bits, then 62 random bits. The partition lets scanners and
 * routers divide work without a column. All functions are thread-safe.
 */

#include "base/base.h"

enum { WEFT_PARTITIONS = 256 };

/* partition: 0..255, or -1 for a random one. */
void weft_id_new(struct weft_id *ret_id, weft_usec now_us, int partition);
/*
 * An id with the same time and partition, a random distance after `before`: rows written together
 * lie together in every table keyed by id. If the random bits overflow, the time is one millisecond
 * later.
 */
void weft_id_next(struct weft_id *ret_id, const struct weft_id *before);
int weft_id_partition(const struct weft_id *id);
weft_usec weft_id_time(const struct weft_id *id); /* to the millisecond */
int weft_id_cmp(const struct weft_id *a, const struct weft_id *b);
int weft_id_order(const void *a, const void *b); /* for qsort() of ids */
bool weft_id_is_zero(const struct weft_id *id);  /* stands for "no id" */

/* The least id of a moment, to the millisecond; clamped to the moments that an id can hold. */
struct weft_id weft_id_at(weft_usec moment_us);

/*
 * A short form of an id, for people: at least WEFT_ID_PREFIX_MIN first digits, optionally followed
 * by ".." and at most 12 last digits. Dashes do not count. The prefix is a range of ids, so a store
 * finds it by its primary key; the suffix distinguishes ids that were made together.
 */
struct weft_id_short {
    struct weft_id low, high; /* both inclusive */
    char suffix[13];          /* in small letters; empty: none */
};
enum { WEFT_ID_PREFIX_MIN = 4, WEFT_ID_SHORT_TEXT = 19 };
WEFT_MUST_CHECK bool weft_id_short_parse(const char *text, struct weft_id_short *ret_short);
/* "01932c075f..6789ab": the time to a quarter of a second, and 24 random bits. */
void weft_id_short_print(const struct weft_id *id, char ret_text[WEFT_ID_SHORT_TEXT]);

/* The partition of a keyed execution: the first byte of SHA-256(namespace, NUL, key). */
int weft_id_key_partition(const char *ns, const char *key);

/* size random bytes from the kernel. */
void weft_random(void *ret_bytes, size_t size);

/* Sorts ids and removes duplicates; returns how many are left. */
size_t weft_ids_sort(struct weft_id *id, size_t count);

#endif
