/* SPDX-License-Identifier: Apache-2.0 */

/* Directories with the results of upstreams: made, removed, and cleaned up after a killed process.
 */

#include "cmd/work/work.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[256];

static const char *in_folder(const char *name)
{
    static char path[4][512];
    static int next;
    char *text = path[next++ % 4];
    (void)snprintf(text, sizeof(path[0]), "%s/%s", folder, name);
    return text;
}

static bool exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

static void make_file(const char *name)
{
    int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ok(fd >= 0 && close(fd) == 0, "a file %s", name);
}

static void make_folder(const char *name)
{
    ok(mkdir(in_folder(name), 0700) == 0, "a folder %s", name);
}

static void test_put(void)
{
    static const struct weft_upstream upstream[] = {
        {.node = "a", .state = WEFT_STATE_SUCCEEDED, .result = "12", .result_size = 2},
        {.node = "b", .state = WEFT_STATE_FAILED},
    };
    const struct weft_claimed claimed = {.upstream = upstream, .upstream_count = 2};
    struct weft_arena *arena = weft_arena_new();
    struct weft_work_dir dir;
    struct weft_err err = {0};
    char path[600], text[16] = "";
    if (!ok(weft_work_dir_make(NULL, &claimed, arena, &dir, &err) == WEFT_OK, "a directory %s",
            err.text))
        goto out;
    (void)snprintf(path, sizeof(path), "%s/a", dir.upstream);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ok(fd >= 0 && read(fd, text, sizeof(text) - 1) == 3 && close(fd) == 0, "holds the result");
    is_str(text, "12\n", "the file ends with a newline");
    (void)snprintf(path, sizeof(path), "%s/b", dir.upstream);
    ok(!exists(path), "an upstream that failed has no file");
    struct stat info;
    ok(stat(dir.path, &info) == 0 && (info.st_mode & 0777) == 0700,
       "the folder is for its owner alone");
    weft_work_dir_clean();
    ok(exists(dir.path), "another worker that starts leaves it");
    (void)snprintf(path, sizeof(path), "%s/more", dir.upstream);
    ok(mkdir(path, 0700) == 0, "the command made a folder in it");
    weft_work_dir_remove(&dir);
    ok(!exists(dir.path), "the folder is removed with its content");
    const struct weft_claimed none = {0};
    ok(weft_work_dir_make(NULL, &none, arena, &dir, &err) == WEFT_OK && !dir.upstream &&
           !dir.signals && dir.suspend,
       "an execution that comes after nothing has a place for its suspend alone");
    weft_work_dir_remove(&dir);
out:
    weft_arena_free(arena);
}

static void test_clean(void)
{
    make_folder("weft-work-killed");
    make_file("weft-work-killed/a");
    make_folder("weft-work-killed/deep");
    make_file("weft-work-killed/deep/b");
    make_folder("weft-work-living");
    make_file("weft-work-living/a");
    make_folder("precious");
    make_file("precious/a");
    make_file("weft-work-file");
    ok(symlink(in_folder("precious"), in_folder("weft-work-link")) == 0, "a link");
    ok(symlink(in_folder("precious"), in_folder("weft-work-killed/link")) == 0, "another");
    int fd = open(in_folder("weft-work-living"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ok(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0, "a process that lives");
    bool root = geteuid() == 0;
    if (root) {
        make_folder("weft-work-theirs");
        ok(chown(in_folder("weft-work-theirs"), 65534, 65534) == 0,
           "a folder belongs to another user");
    }
    weft_work_dir_clean();
    ok(!exists(in_folder("weft-work-killed")), "the folder of a killed process is removed");
    ok(exists(in_folder("weft-work-living/a")), "the folder of a living process stays");
    ok(exists(in_folder("weft-work-link")), "a link is not followed");
    ok(exists(in_folder("precious/a")), "the target of the link stays");
    ok(exists(in_folder("weft-work-file")), "a file is none of ours");
    if (root)
        ok(exists(in_folder("weft-work-theirs")), "a folder of another user is not removed");
    (void)close(fd);
    weft_work_dir_clean();
    ok(!exists(in_folder("weft-work-living")), "the folder of an ended process is removed");
}

int main(void)
{
    const char *parent = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    (void)snprintf(folder, sizeof(folder), "%s/weft-test-XXXXXX", parent ? parent : "/tmp");
    if (!ok(mkdtemp(folder) && setenv("TMPDIR", folder, 1) == 0, "a folder for them"))
        return tap_done();
    test_put();
    test_clean();
    static const char *const left[] = {"precious/a",       "precious",       "weft-work-link",
                                       "weft-work-theirs", "weft-work-file", ""};
    for (size_t i = 0; i < WEFT_LEN(left); i++)
        (void)remove(in_folder(left[i]));
    ok(!exists(folder), "no other file is left");
    return tap_done();
}
