/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_ADMIN_DOCTOR_REPLICAS_H
#define WEFT_ENGINE_ADMIN_DOCTOR_REPLICAS_H

/* The part of the doctor that looks at replicas and their scanners. */

#include "base/base.h"

struct weft_arena;
struct weft_engine;
struct weft_findings;

/* The part of weft_engine_examine() that looks at replicas and their scanners. */
WEFT_MUST_CHECK enum weft_rc weft_doctor_replicas(struct weft_engine *engine,
                                                  struct weft_arena *arena,
                                                  struct weft_findings *ret_findings,
                                                  struct weft_err *err);

#endif
