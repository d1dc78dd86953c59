/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_CONFORMANCE_ERASING_H
#define WEFT_TESTS_CONFORMANCE_ERASING_H

/* Short forms for cases about erasure. */

#include "conformance.h"

#include "weft/admin.h"

#define CANARY "kanarienvogel"

/* Orders an erasure, which must be taken. */
struct weft_erasure erase_ask(struct fixture *f, const struct weft_erasure_spec *spec);
struct weft_erasure erase_read(struct fixture *f, const struct weft_id *id);
struct weft_erasure erase_verify(struct fixture *f, const struct weft_id *id);
/* Runs what erases, on two replicas in turn, until the order is done. */
struct weft_erasure erase_to_the_end(struct fixture *f, const struct weft_id *id);
/* A count of the receipt; -1: it has none of that name. */
int64_t erase_counted(const struct weft_erasure *erasure, const char *name);

#endif
