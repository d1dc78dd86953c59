/* SPDX-License-Identifier: Apache-2.0 */

#include "drawn.h"

#include <stdio.h>
#include <string.h>

void draw(struct drawn *flow, const char *text)
{
    *flow = (struct drawn){0};
    (void)snprintf(flow->text, sizeof(flow->text), "%s", text);
    char *rest = flow->text, *part;
    while ((part = strsep(&rest, ";")) != NULL) {
        struct weft_node *node = &flow->node[flow->count];
        char *after = part + strspn(part, " "), *name;
        node->name = strsep(&after, ":");
        node->spec.kind = node->name;
        node->after = flow->after[flow->count];
        while (after && (name = strsep(&after, ",")) != NULL)
            flow->after[flow->count][node->after_count++] = name;
        flow->count++;
    }
}
