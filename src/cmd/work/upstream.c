/* SPDX-License-Identifier: Apache-2.0 */

/* The results of the upstreams of a node as files. */

#include "cmd/work/work.h"

#include <string.h>

/*
 * The file of a node: its name, with %2F for / and %2E for a dot at the beginning. Names are ASCII:
 * see weft.h. A file must be no path, not hidden, and neither . nor ..
 */
static const char *file_of(const char *node, struct weft_arena *arena)
{
    enum { ENCODED = 3 };
    char *name = weft_new_array(arena, char, ENCODED *strlen(node) + 1), *to = name;
    for (const char *from = node; *from; from++) {
        if (*from == '/' || (*from == '.' && from == node)) {
            memcpy(to, *from == '/' ? "%2F" : "%2E", ENCODED);
            to += ENCODED;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return name;
}

static enum weft_rc write_upstream(struct weft *weft, const struct weft_upstream *upstream,
                                   const char *path, struct weft_err *err)
{
    struct weft_bytes bytes = {.data = upstream->result,
                               .size = upstream->result_size,
                               .content_type = upstream->content_type};
    enum weft_rc rc = upstream->too_large ? weft_result(weft, &upstream->id, &bytes, err) : WEFT_OK;
    if (!rc)
        rc = weft_work_file_write(path, &bytes, err);
    weft_bytes_free(&bytes);
    return rc;
}

enum weft_rc weft_upstream_write(struct weft *weft, const struct weft_claimed *claimed,
                                 const char *path, struct weft_arena *arena, struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < claimed->upstream_count && !rc; i++) {
        const struct weft_upstream *upstream = &claimed->upstream[i];
        if (upstream->state == WEFT_STATE_SUCCEEDED)
            rc = write_upstream(
                weft, upstream,
                weft_arena_printf(arena, "%s/%s", path, file_of(upstream->node, arena)), err);
    }
    return rc;
}
