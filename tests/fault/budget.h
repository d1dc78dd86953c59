/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_FAULT_BUDGET_H
#define WEFT_TESTS_FAULT_BUDGET_H

#include "strike.h"

/* The loop over budgets: the sequences that are wanted. */
void budget_faults(wanted_fn *wanted, int argc, char **argv);

#endif
