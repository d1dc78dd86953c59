/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_BENCH_BENCH_REPORT_H
#define WEFT_CMD_BENCH_BENCH_REPORT_H

/* The figures: a table for people, one object for programs. */

#include "cmd/bench/bench_plan.h"

/* True when every execution that was submitted was completed. */
bool weft_bench_adds_up(const struct weft_bench_result *result);
void weft_bench_print(const struct weft_cli *cli, const struct weft_bench_plan *plan,
                      const struct weft_bench_result *result);
void weft_bench_print_json(const struct weft_bench_plan *plan,
                           const struct weft_bench_result *result);

#endif
