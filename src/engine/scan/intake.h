/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_ENGINE_SCAN_INTAKE_H
#define WEFT_ENGINE_SCAN_INTAKE_H

/* The intake of executions that applications submitted by SQL. */

#include "base/base.h"
#include "base/limits.h"

struct weft_engine;
struct weft_pass_config;
struct weft_pass_report;

/* The same for intake, which knows namespaces by their names. */
struct weft_inbox_turns {
    bool on;
    char start[4 * WEFT_NAME_MAX + 1]; /* the namespace that the next look begins with */
};

/* The intake runs transactions of its own. */
WEFT_MUST_CHECK enum weft_rc weft_intake_run(struct weft_engine *engine,
                                             const struct weft_pass_config *config,
                                             struct weft_pass_report *ret_report,
                                             struct weft_err *err);

#endif
