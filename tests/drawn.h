/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_TESTS_DRAWN_H
#define WEFT_TESTS_DRAWN_H

/* Small flows, drawn as text. */

#include "base/base.h"
#include "weft/weft.h"

enum { DRAWN_MAX = 16 };

/* A flow drawn as text, "a; b:a; c:a,b", with the answer to its submission. The kind of a node is
 * its name. */
struct drawn {
    char text[512];
    struct weft_node node[DRAWN_MAX];
    const char *after[DRAWN_MAX][DRAWN_MAX];
    size_t count;
    struct weft_id id[DRAWN_MAX];
    struct weft_flow_submitted answer;
};

void draw(struct drawn *flow, const char *text);

#endif
