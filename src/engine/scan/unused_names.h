/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_SCAN_UNUSED_NAMES_H
#define WEFT_ENGINE_SCAN_UNUSED_NAMES_H

/* The removal of names and queues that are unused for long. */

#include "base/base.h"

struct weft_unused;
void weft_unused_init(struct weft_unused *unused, weft_usec after_us);
void weft_unused_done(struct weft_unused *unused);

#endif
