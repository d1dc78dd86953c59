/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_UPSTREAM_H
#define WEFT_CMD_UPSTREAM_H

/*
 * What a member of a flow comes after, as a command can read it: a directory with a file for each
 * upstream that succeeded, which holds the bytes of its result; JSON has a newline at its end.
 */

#include "base/arena.h"
#include "weft/weft.h"

/*
 * Makes the directory, in $TMPDIR or /tmp; its path is put in the arena, NULL when the execution
 * comes after nothing. Results that did not come along with the claim are read through the handle.
 */
WEFT_MUST_CHECK enum weft_rc weft_upstream_put(struct weft *weft,
                                               const struct weft_claimed *claimed,
                                               struct weft_arena *arena, const char **ret_path,
                                               struct weft_err *err);
/* Removes it with all that is in it; NULL is fine. */
void weft_upstream_remove(const char *path);

/* How the file of a node is called: its name, with %2F for / and %2E for a dot at the beginning. */
const char *weft_upstream_file(const char *node, struct weft_arena *arena);

#endif
