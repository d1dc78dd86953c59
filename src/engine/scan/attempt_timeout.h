/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_SCAN_ATTEMPT_TIMEOUT_H
#define WEFT_ENGINE_SCAN_ATTEMPT_TIMEOUT_H

/* The pass over attempts that took too long. */

#include "base/base.h"

struct weft_change;
struct weft_scan;

/* Ends the attempt of a row: another one, or the end of the execution. */
void weft_scan_time_out(struct weft_scan *scan, struct weft_change *change);

#endif
