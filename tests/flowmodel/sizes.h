/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_FLOWMODEL_SIZES_H
#define WEFT_TESTS_FLOWMODEL_SIZES_H

#include "support.h"

/* Large graphs, in a store in which nothing lives. */
void run_sizes(const struct place *place);

#endif
