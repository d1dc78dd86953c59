/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Refuses files that the parent process had open at fork().
 *
 * SQLite keeps a record of the process's locks per file, and a child inherits the record but not
 * the locks. A new connection of the child to such a file would assume locks that it does not hold:
 * once the parent closes the file, SQLite removes the write-ahead log under the child, whose next
 * commits are acknowledged and lost. So this driver keeps a list of open files, and refuses to open
 * one that a parent had open at the fork.
 *
 * The list holds each connection from its opening to its closing. The lock is held over fork(), so
 * that a child always finds it free and the list consistent.
 */

#include "store/sqlite/sqlite.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/fork.h"

#include <pthread.h>
#include <sys/stat.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t lock_over_forks = PTHREAD_ONCE_INIT;
static struct weft_lite_file *first;

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    int failed = pthread_atfork(take_lock, give_lock, give_lock);
    if (failed)
        weft_oom(0); /* ENOMEM is its only failure */
}

enum weft_rc weft_lite_check_inherited(const char *path, struct weft_err *err)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return WEFT_OK; /* a new file, or opening it will fail */
    uint64_t forks = weft_forks();
    bool inherited = false;
    (void)pthread_once(&lock_over_forks, watch_forks);
    pthread_mutex_lock(&lock);
    for (const struct weft_lite_file *file = first; file && !inherited; file = file->next)
        inherited = file->forks != forks && file->device == (uint64_t)info.st_dev &&
                    file->inode == (uint64_t)info.st_ino;
    pthread_mutex_unlock(&lock);
    if (!inherited)
        return WEFT_OK;
    return weft_hint(err,
                     weft_fail(err, WEFT_MISUSE,
                               "%s was open in the parent when fork() made this process", path),
                     "SQLite loses data in this case: open the file only after fork(), or exec()");
}

void weft_lite_note_open(struct weft_lite_file *file, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return;
    file->device = (uint64_t)info.st_dev;
    file->inode = (uint64_t)info.st_ino;
    file->forks = weft_forks();
    (void)pthread_once(&lock_over_forks, watch_forks);
    pthread_mutex_lock(&lock);
    file->next = first;
    first = file;
    pthread_mutex_unlock(&lock);
}

void weft_lite_note_closed(struct weft_lite_file *file)
{
    pthread_mutex_lock(&lock);
    for (struct weft_lite_file **at = &first; *at; at = &(*at)->next) {
        if (*at == file) {
            *at = file->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}
