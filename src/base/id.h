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

/* The partition of a keyed execution: the first byte of SHA-256(namespace, NUL, key). */
int weft_id_key_partition(const char *ns, const char *key);

/* size random bytes from the kernel. */
void weft_random(void *ret_bytes, size_t size);

#endif
