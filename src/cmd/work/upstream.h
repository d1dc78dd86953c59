/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_WORK_UPSTREAM_H
#define WEFT_CMD_WORK_UPSTREAM_H

/*
 * What a member of a flow comes after, as a command can read it: a directory with a file for each
 * upstream that succeeded, which holds the bytes of its result; JSON has a newline at its end.
 *
 * The process that made a directory holds a lock on it (flock) until it is removed. A directory
 * that is not locked was left behind by a process that was killed.
 */

#include "base/arena.h"
#include "weft/weft.h"

struct weft_upstream_dir {
    const char *path; /* in the arena; NULL: the execution comes after nothing */
    int fd;           /* holds the lock; closed on exec */
};

/*
 * Makes the directory, in $TMPDIR or /tmp. Results that did not come along with the claim are read
 * through the handle. It ends with weft_upstream_remove().
 */
WEFT_MUST_CHECK enum weft_rc
weft_upstream_put(struct weft *weft, const struct weft_claimed *claimed, struct weft_arena *arena,
                  struct weft_upstream_dir *ret_dir, struct weft_err *err);
/* Removes it with all that is in it. */
void weft_upstream_remove(const struct weft_upstream_dir *dir);
/*
 * Removes what processes of this user left behind in $TMPDIR or /tmp. Directories of living ones,
 * of other users and symbolic links stay.
 */
void weft_upstream_clean(void);

#endif
