/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_BASE_ID_H
#define WEFT_BASE_ID_H

/*
 * Ids are UUIDv7 (RFC 9562): 48 bits of milliseconds, then in the 12 bits of rand_a a partition
 * (0..255, the high 8 bits) and 4 random bits, then 62 random bits. The partition costs nothing
 * and lets scanners and routers share out work without a column.
 */

#include "base/base.h"

enum { WEFT_PARTITIONS = 256 };

/* partition: 0..255, or -1 for a random one. */
void weft_id_new(struct weft_id *ret_id, weft_usec now_us, int partition);
/*
 * An id of the same moment and partition that comes after `before`, by a random distance: rows that
 * are written together lie together in every table that is keyed by id. Where there is no room left
 * it is of the next millisecond.
 */
void weft_id_next(struct weft_id *ret_id, const struct weft_id *before);
int weft_id_partition(const struct weft_id *id);
weft_usec weft_id_time(const struct weft_id *id); /* to the millisecond */
int weft_id_cmp(const struct weft_id *a, const struct weft_id *b);
bool weft_id_is_zero(const struct weft_id *id); /* no id is: it stands for none */

/* The least id of a moment, to the millisecond. Moments outside of what an id holds are cut. */
struct weft_id weft_id_at(weft_usec moment_us);

/*
 * A short form of an id, for people: its first digits, at least WEFT_ID_PREFIX_MIN, or those, "..",
 * and its last digits, at most 12. Dashes do not count. The prefix is a range of ids, so a store
 * finds it by its primary key; the suffix tells ids apart that were made together, which differ in
 * nothing else.
 */
struct weft_id_short {
    struct weft_id low, high; /* both inclusive */
    char suffix[13];          /* in small letters; empty: none */
};
enum { WEFT_ID_PREFIX_MIN = 4, WEFT_ID_SHORT_TEXT = 19 };
WEFT_MUST_CHECK bool weft_id_short_parse(const char *text, struct weft_id_short *ret_short);
/* "01932c075f..6789ab": the moment to a quarter of a second, and 24 bits that are as good as random
 */
void weft_id_short_print(const struct weft_id *id, char ret_text[WEFT_ID_SHORT_TEXT]);

/* The partition of a keyed execution: the first byte of SHA-256(namespace, NUL, key). */
int weft_id_key_partition(const char *ns, const char *key);

/* size random bytes from the kernel. */
void weft_random(void *ret_bytes, size_t size);

#endif
