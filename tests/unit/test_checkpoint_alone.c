/* SPDX-License-Identifier: Apache-2.0 */

/* The write-ahead log when no thread can be started: commits keep the log short themselves. */

#include "checkpoint_fixture.h"

#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>

/* Larger than the address space, so that pthread_create() fails with EAGAIN. */
static const size_t impossible_stack = (size_t)1 << 60;

/* Sets the stack size of threads that are started from now on. Returns the size before. */
static size_t set_stack_size(size_t size)
{
    pthread_attr_t attr;
    size_t before = 0;
    ok(pthread_getattr_default_np(&attr) == 0 && pthread_attr_getstacksize(&attr, &before) == 0 &&
           pthread_attr_setstacksize(&attr, size) == 0 && pthread_setattr_default_np(&attr) == 0,
       "threads are started with a stack of %zu KiB from now on", size / 1024);
    (void)pthread_attr_destroy(&attr);
    return before;
}

static void *do_nothing(void *context)
{
    return context;
}

/* How many threads of this process checkpoint. -1: unknown. */
static int checkpoint_threads(void)
{
    int found = 0;
    DIR *folder = opendir("/proc/self/task");
    if (!folder)
        return -1;
    for (const struct dirent *task; (task = readdir(folder));) {
        char path[300], name[32] = "";
        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        found += fgets(name, sizeof(name), file) && strcmp(name, "weft-checkpoint\n") == 0;
        (void)fclose(file);
    }
    (void)closedir(folder);
    return found;
}

int main(void)
{
    struct fixture f;
    pthread_t thread;
    fixture_init(&f, &weft_driver_sqlite);
    struct weft_conn *conn = fixture_open_new(&f);
    is_int(fixture_add_many(&f, conn, 1, 8), 8, "2 MiB are written");
    is_int(checkpoint_threads(), 0, "a log of 2 MiB starts no thread");

    size_t usual = set_stack_size(impossible_stack);
    is_int(pthread_create(&thread, NULL, do_nothing, NULL), EAGAIN, "no thread can be started");
    is_int(fixture_add_many(&f, conn, 9, 92), 92, "23 MiB more are written without a thread");
    ok(fixture_size(&f, "-wal") <= 8 * MIB, "the log has %d KiB",
       (int)(fixture_size(&f, "-wal") / 1024));

    set_stack_size(usual);
    is_int(fixture_add_many(&f, conn, 101, 40), 40,
           "10 MiB are written when threads can be started");
    is_int(checkpoint_threads(), 0, "this connection does not try to start a thread again");

    struct weft_conn *other = fixture_open(&f);
    is_int(fixture_add_many(&f, other, 141, 40), 40, "10 MiB are written by another connection");
    is_int(checkpoint_threads(), 1, "the other connection starts a thread");
    weft_conn_close(other);
    fixture_check(&f, conn, 180);
    fixture_done(&f);
    return tap_done();
}
