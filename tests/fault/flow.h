/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_FAULT_FLOW_H
#define WEFT_TESTS_FAULT_FLOW_H

#include "strike.h"

/* The loop over flows: the sequences that are wanted. */
void flow_faults(wanted_fn *wanted, int argc, char **argv);

#endif
