/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_FAULT_WAIT_H
#define WEFT_TESTS_FAULT_WAIT_H

#include "strike.h"

/* The loop over waiting: the sequences that are wanted. */
void wait_faults(wanted_fn *wanted, int argc, char **argv);

#endif
