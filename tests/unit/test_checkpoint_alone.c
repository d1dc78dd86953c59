/* SPDX-License-Identifier: Apache-2.0 */

/* The write-ahead log where the system has no thread to give: commits keep it short themselves. */

#include "checkpoint_fixture.h"

#include "base/thread.h"

#include <errno.h>

static int asked;

/* In place of the one in the library. */
/* NOLINTNEXTLINE(readability-non-const-parameter): as it is declared */
int weft_thread_quiet(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *context)
{
    (void)ret_thread;
    (void)name;
    (void)run;
    (void)context;
    asked++;
    return EAGAIN;
}

int main(void)
{
    struct fixture f;
    fixture_init(&f, &weft_driver_sqlite);
    struct weft_conn *conn = fixture_open_new(&f);
    is_int(fixture_add_many(&f, conn, 1, 8), 8, "2 MiB are written");
    is_int(asked, 0, "a short log needs no thread");
    is_int(fixture_add_many(&f, conn, 9, 92), 92, "25 MiB are written");
    is_int(asked, 1, "a thread was asked for, once");
    ok(fixture_size(&f, "-wal") <= 8 * MIB, "the log has %d KiB",
       (int)(fixture_size(&f, "-wal") / 1024));
    fixture_check(&f, conn, 100);
    fixture_done(&f);
    return tap_done();
}
