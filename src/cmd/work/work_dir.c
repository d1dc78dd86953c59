/* SPDX-License-Identifier: Apache-2.0 */

#include "cmd/work/work.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "weft-work-"

enum {
    FILE_MODE = 0600,
    DIR_MODE = 0700,
    OPEN_MAX_FDS = 8, /* of nftw() */
};

/* ---- Making ---------------------------------------------------------------------------------- */

static enum weft_rc cannot_write(const char *path, struct weft_err *err)
{
    char why[128];
    return weft_fail(err, WEFT_UNAVAILABLE, "cannot write %s: %s", path,
                     strerror_r(errno, why, sizeof(why)));
}

/* JSON is kept without white space around it: files with a number each shall add up line by line.
 */
static bool wants_newline(const char *content_type)
{
    static const char json[] = "application/json";
    return !content_type || strncmp(content_type, json, sizeof(json) - 1) == 0;
}

enum weft_rc weft_work_file_write(const char *path, const struct weft_bytes *bytes,
                                  struct weft_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (fd < 0)
        return cannot_write(path, err);
    FILE *file = fdopen(fd, "w");
    if (!file) {
        (void)close(fd);
        return cannot_write(path, err);
    }
    (void)fwrite(bytes->data, 1, bytes->size, file);
    if (bytes->size > 0 && wants_newline(bytes->content_type))
        (void)fputc('\n', file);
    bool failed = ferror(file) != 0;
    return fclose(file) != 0 || failed ? cannot_write(path, err) : WEFT_OK;
}

static const char *parent_folder(void)
{
    const char *parent = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): no thread sets any */
    return parent && *parent ? parent : "/tmp";
}

/* On file systems without flock() no cleaner gets a lock either. */
static bool lock_taken(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/*
 * A new directory and its lock. A cleaner may have come between the two: it has the lock, or has
 * removed the directory with it. Then another one is made.
 */
static enum weft_rc make_dir(struct weft_arena *arena, struct weft_work_dir *ret_dir,
                             struct weft_err *err)
{
    enum { TRIES = 100 };
    const char *pattern = weft_arena_printf(arena, "%s/" PREFIX "XXXXXX", parent_folder());
    for (int i = 0; i < TRIES; i++) {
        struct stat info;
        char *path = weft_arena_strdup(arena, pattern); /* the letters are filled in */
        if (!mkdtemp(path))
            return cannot_write(path, err);
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT) {
            enum weft_rc rc = cannot_write(path, err);
            (void)rmdir(path);
            return rc;
        }
        if (fd >= 0 && lock_taken(fd) && fstat(fd, &info) == 0 && info.st_nlink > 0) {
            *ret_dir = (struct weft_work_dir){.path = path, .fd = fd};
            return WEFT_OK;
        }
        if (fd >= 0)
            (void)close(fd);
    }
    errno = EBUSY;
    return cannot_write(pattern, err);
}

static enum weft_rc make_inner(const struct weft_work_dir *dir, const char *name,
                               struct weft_arena *arena, const char **ret_path,
                               struct weft_err *err)
{
    *ret_path = weft_arena_printf(arena, "%s/%s", dir->path, name);
    return mkdir(*ret_path, DIR_MODE) == 0 ? WEFT_OK : cannot_write(*ret_path, err);
}

static enum weft_rc fill_dir(struct weft *weft, const struct weft_claimed *claimed,
                             struct weft_arena *arena, struct weft_work_dir *dir,
                             struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    dir->suspend = weft_arena_printf(arena, "%s/suspend.json", dir->path);
    dir->usage = weft_arena_printf(arena, "%s/usage", dir->path);
    if (claimed->upstream_count > 0) {
        rc = make_inner(dir, "upstream", arena, &dir->upstream, err);
        if (!rc)
            rc = weft_upstream_write(weft, claimed, dir->upstream, arena, err);
    }
    if (!rc && claimed->resumed) {
        rc = make_inner(dir, "signals", arena, &dir->signals, err);
        if (!rc)
            rc = weft_work_signals_write(weft, claimed, dir->signals, arena, err);
    }
    return rc;
}

enum weft_rc weft_work_dir_make(struct weft *weft, const struct weft_claimed *claimed,
                                struct weft_arena *arena, struct weft_work_dir *ret_dir,
                                struct weft_err *err)
{
    struct weft_work_dir dir = {.fd = -1};
    enum weft_rc rc = make_dir(arena, &dir, err);
    bool needed = claimed->upstream_count > 0 || claimed->resumed;
    if (rc && !needed)
        rc = WEFT_OK; /* most commands do not look at it */
    else if (!rc)
        rc = fill_dir(weft, claimed, arena, &dir, err);
    if (rc)
        weft_work_dir_remove(&dir);
    else
        *ret_dir = dir;
    return rc;
}

/* ---- Removing -------------------------------------------------------------------------------- */

/* A file that cannot be removed stays: the command may have protected it. */
static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

/* Removes all files of the directory through its descriptor: the path may name another one now. */
static void empty_dir(int fd)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/.", fd);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): only with FTW_CHDIR */
    (void)nftw(path, remove_one, OPEN_MAX_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void weft_work_dir_remove(const struct weft_work_dir *dir)
{
    if (!dir->path)
        return;
    empty_dir(dir->fd);
    (void)rmdir(dir->path);
    (void)close(dir->fd);
}

static void clean_one(int parent, const char *name)
{
    struct stat info;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0 && info.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        empty_dir(fd);
        (void)unlinkat(parent, name, AT_REMOVEDIR);
    }
    (void)close(fd);
}

void weft_work_dir_clean(void)
{
    DIR *folder = opendir(parent_folder());
    if (!folder)
        return;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread reads this one */
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strncmp(entry->d_name, PREFIX, sizeof(PREFIX) - 1) == 0)
            clean_one(dirfd(folder), entry->d_name);
    (void)closedir(folder);
}
