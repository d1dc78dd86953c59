/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_SERVE_SCAN_RULES_H
#define WEFT_CMD_SERVE_SCAN_RULES_H

/*
 * The settings of scanners as people type them.
 *
 * Which run: "all", "none", or names with commas between them. How they run: rules with spaces or
 * semicolons between them, each "NAME:key=value,key=value"; NAME may be *; a later rule beats an
 * earlier one. Keys:
 *
 *   interval=30s        the longest time between two looks; 0 is off
 *   batch=500           rows of one transaction
 *   namespace=acme      only work of that namespace; * is all
 *   partitions=0-127    only ids of these partitions
 *
 * A rule for * says only what a scanner can do: a batch above its limit becomes the limit, and
 * partitions leave alone those that cannot be limited to them. A rule that names one must fit it.
 */

#include "net/server.h"

/* The texts may be NULL: all of them, as they are by default. WEFT_INVALID_VALUE says what is
 * wrong. */
WEFT_MUST_CHECK enum weft_rc
weft_scan_list_read(const char *text, bool ret_runs[WEFT_SCANNER_COUNT], struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc
weft_scan_rules_read(const char *text, struct weft_scanner_setting setting[WEFT_SCANNER_COUNT],
                     struct weft_err *err);

#endif
