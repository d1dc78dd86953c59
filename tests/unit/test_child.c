/* SPDX-License-Identifier: Apache-2.0 */

/* Commands that behave, and commands that do not: the runner always comes back with the truth. */

#include "tap.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/limits.h"
#include "cmd/work/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_US = 10000000 };

struct ear {
    char heard[512];
    size_t lines;
    const char *stop_at; /* the line after which it should stop; NULL: never */
    enum weft_child_wish how;
    enum weft_child_wish wish;
    size_t reports;
    char report[64];
};

static void hear(void *context, const char *text, size_t size)
{
    struct ear *ear = context;
    size_t used = strlen(ear->heard);
    (void)snprintf(ear->heard + used, sizeof(ear->heard) - used, "[%.*s]", (int)size, text);
    ear->lines++;
    if (ear->stop_at && strlen(ear->stop_at) == size && memcmp(text, ear->stop_at, size) == 0)
        ear->wish = ear->how;
}

static enum weft_child_wish wish(void *context)
{
    return ((struct ear *)context)->wish;
}

static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "WEFT_ID=one", NULL};

/* Runs `sh -c script` with the rest of the child given. */
static bool run(const char *script, struct weft_child child, struct ear *ear,
                struct weft_child_end *ret_end)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    child.path = "/bin/sh";
    child.argv = argv;
    child.envp = environment;
    child.wish = wish;
    child.line = hear;
    child.context = ear;
    if (child.output_max == 0)
        child.output_max = WEFT_PAYLOAD_MAX;
    struct weft_err err;
    return ok(weft_child_run(&child, ret_end, &err) == WEFT_OK, "%s: runs", script);
}

/* ---- What goes in and comes out -------------------------------------------------------------- */

static void test_exits(void)
{
    static const struct {
        const char *script;
        int code, signal;
    } row[] = {
        {"true", 0, 0},
        {"false", 1, 0},
        {"exit 75", 75, 0},
        {"kill -KILL $$", -1, SIGKILL},
        {"kill -SEGV $$", -1, SIGSEGV},
        {"kill -PIPE $$", -1, SIGPIPE}, /* ours is ignored, a command's must not be */
        {"kill -TERM $$", -1, SIGTERM},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct ear ear = {0};
        struct weft_child_end end = {0};
        if (run(row[i].script, (struct weft_child){0}, &ear, &end)) {
            is_int(end.exit_code, row[i].code, "%s: exit code", row[i].script);
            is_int(end.signal, row[i].signal, "%s: signal", row[i].script);
            ok(!end.stopped && !end.too_large, "%s: by itself", row[i].script);
        }
        weft_child_end_done(&end);
    }
}

static void test_bytes(void)
{
    /* Larger than the pipes hold in both directions, so that a naive writer would be stuck. */
    static char input[WEFT_PAYLOAD_MAX];
    const size_t size = sizeof(input);
    for (size_t i = 0; i < size; i++)
        input[i] = (char)(i * 7 + i / 256);
    struct ear ear = {0};
    struct weft_child_end end = {0};
    if (run("cat", (struct weft_child){.input = input, .input_size = size}, &ear, &end))
        ok(end.exit_code == 0 && end.output.size == size &&
               memcmp(end.output.data, input, size) == 0,
           "a mebibyte of any bytes goes through cat");
    weft_child_end_done(&end);
    if (run("exec <&-; echo no thanks", (struct weft_child){.input = input, .input_size = size},
            &ear, &end)) {
        is_int(end.exit_code, 0, "closing stdin early does no harm");
        is_str(end.output.data, "no thanks\n", "the output of a child that closes stdin is kept");
    }
    weft_child_end_done(&end);
    if (run("head -c 10 | wc -c", (struct weft_child){.input = input, .input_size = size}, &ear,
            &end))
        ok(end.exit_code == 0 && strtol(end.output.data, NULL, 10) == 10,
           "nor does reading a part of it");
    weft_child_end_done(&end);
    if (run("wc -c", (struct weft_child){0}, &ear, &end))
        ok(strtol(end.output.data, NULL, 10) == 0 && end.exit_code == 0,
           "no input is an empty one");
    weft_child_end_done(&end);
    if (run("printf 'a\\000b'; echo $WEFT_ID", (struct weft_child){0}, &ear, &end))
        ok(end.output.size == 7 && memcmp(end.output.data, "a\0bone\n", 7) == 0,
           "zero bytes and the environment come through");
    weft_child_end_done(&end);
}

static void test_too_large(void)
{
    static const char *const script[] = {
        "head -c 2097152 /dev/zero",
        "cat /dev/zero",
        "trap '' TERM; cat /dev/zero",
    };
    for (size_t i = 0; i < WEFT_LEN(script); i++) {
        struct ear ear = {0};
        struct weft_child_end end = {0};
        if (run(script[i], (struct weft_child){.kill_after_ms = 100}, &ear, &end))
            ok(end.too_large && !end.stopped, "%s: is too much", script[i]);
        weft_child_end_done(&end);
    }
    struct ear ear = {0};
    struct weft_child_end end = {0};
    if (run("printf 12345", (struct weft_child){.output_max = 5}, &ear, &end))
        ok(!end.too_large && end.output.size == 5, "exactly as much as is allowed is fine");
    weft_child_end_done(&end);
}

/* ---- stderr ---------------------------------------------------------------------------------- */

static void test_stderr(void)
{
    struct ear ear = {0};
    struct weft_child_end end = {0};
    if (run("echo one >&2; printf 'two\\nthr' >&2; printf 'ee' >&2; exit 3", (struct weft_child){0},
            &ear, &end)) {
        is_str(ear.heard, "[one][two][three]", "lines of stderr are heard whole");
        is_str(end.tail, "one\ntwo\nthree", "the lines of stderr are remembered");
        is_int(end.exit_code, 3, "with the exit code");
    }
    weft_child_end_done(&end);

    ear = (struct ear){0};
    if (run("i=0; while [ $i -lt 3000 ]; do echo \"line $i\"; i=$((i+1)); done >&2",
            (struct weft_child){0}, &ear, &end)) {
        size_t size = strlen(end.tail);
        is_int(ear.lines, 3000, "many lines are heard");
        is_int(size, WEFT_CHILD_TAIL, "only the end is remembered");
        is_str(end.tail + size - 9, "line 2999", "the last line is remembered");
    }
    weft_child_end_done(&end);

    ear = (struct ear){0};
    if (run("head -c 5000 /dev/zero | tr '\\000' x >&2; printf 'a\\000b' >&2",
            (struct weft_child){0}, &ear, &end)) {
        is_int(ear.lines, 2, "a line that is too long is heard in parts");
        is_str(end.tail + strlen(end.tail) - 3, "a?b", "zero bytes do not cut the text");
    }
    weft_child_end_done(&end);
}

/* Characters of two bytes, one byte off: the tail must not begin with half of one. */
static void test_stderr_utf8(void)
{
    struct ear ear = {0};
    struct weft_child_end end = {0};
    if (run("i=0; while [ $i -lt 3000 ]; do printf '\\303\\251'; i=$((i+1)); done >&2; printf x "
            ">&2",
            (struct weft_child){0}, &ear, &end)) {
        is_int(strlen(end.tail), WEFT_CHILD_TAIL - 1, "half a character is left out");
        ok((unsigned char)end.tail[0] == 0xc3, "the tail begins with a whole character");
    }
    weft_child_end_done(&end);
}

/* ---- Progress -------------------------------------------------------------------------------- */

static void hear_progress(void *context, const char *text, size_t size)
{
    struct ear *ear = context;
    ear->reports++;
    (void)snprintf(ear->report, sizeof(ear->report), "%.*s", (int)size, text);
}

static void test_progress(void)
{
    static const struct {
        const char *name, *script;
        size_t reports;
        const char *last; /* NULL: any */
    } row[] = {
        {"a line", "echo '40 half way' >&3", 1, "40 half way"},
        {"lines in pieces", "printf '1\n2' >&3; printf '5\n' >&3; printf 7 >&3", 2, "25"},
        {"none", "exec 3>&-; echo done", 0, ""},
        {"megabytes", "yes 50 | head -c 3000000 >&3", 1000000, "50"},
        {"a line of a megabyte", "head -c 1000000 /dev/zero | tr '\\0' 5 >&3; echo >&3; echo 6 >&3",
         2, "6"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct ear ear = {0};
        struct weft_child_end end = {0};
        if (run(row[i].script, (struct weft_child){.progress = hear_progress}, &ear, &end)) {
            is_int(end.exit_code, 0, "%s: the command is not held up", row[i].name);
            is_int(ear.reports, row[i].reports, "%s: lines", row[i].name);
            is_str(ear.report, row[i].last, "%s: the last one", row[i].name);
        }
        weft_child_end_done(&end);
    }
}

/* ---- Stopping -------------------------------------------------------------------------------- */

static void test_stop(void)
{
    static const struct {
        const char *name, *script;
        enum weft_child_wish how;
        int64_t kill_after_ms;
        int code, signal;
    } row[] = {
        {"one that obeys", "echo up >&2; exec tail -f /dev/null", WEFT_CHILD_STOP, 3600000, -1,
         SIGTERM},
        {"one that tidies up", "trap 'exit 7' TERM; echo up >&2; while :; do :; done",
         WEFT_CHILD_STOP, 3600000, 7, 0},
        {"one that ignores it", "trap '' TERM; echo up >&2; exec tail -f /dev/null",
         WEFT_CHILD_STOP, 150, -1, SIGKILL},
        {"one killed at once", "trap '' TERM; echo up >&2; exec tail -f /dev/null", WEFT_CHILD_KILL,
         3600000, -1, SIGKILL},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct ear ear = {.stop_at = "up", .how = row[i].how};
        struct weft_child_end end = {0};
        weft_usec begun_us = weft_boot_us();
        if (run(row[i].script, (struct weft_child){.kill_after_ms = row[i].kill_after_ms}, &ear,
                &end)) {
            ok(end.stopped, "%s: was asked to stop", row[i].name);
            is_int(end.exit_code, row[i].code, "%s: exit code", row[i].name);
            is_int(end.signal, row[i].signal, "%s: signal", row[i].name);
            weft_usec took_us = weft_boot_us() - begun_us;
            ok(took_us < PATIENCE_US, "%s: soon", row[i].name);
            if (row[i].how == WEFT_CHILD_STOP && row[i].signal == SIGKILL)
                ok(took_us >= row[i].kill_after_ms * WEFT_MS, "%s: but had its time", row[i].name);
        }
        weft_child_end_done(&end);
    }
}

/* True when the process is gone or is a zombie that its new parent has not reaped. */
static bool is_gone(pid_t pid)
{
    char path[64], text[256] = "";
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    size_t got = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[got] = '\0';
    const char *state = strrchr(text, ')');
    return !state || state[2] == 'Z' || state[2] == 'X';
}

static bool wait_gone(pid_t pid)
{
    weft_usec until_us = weft_boot_us() + PATIENCE_US;
    while (!is_gone(pid) && weft_boot_us() < until_us)
        (void)poll(NULL, 0, 5);
    return is_gone(pid);
}

static void test_grandchild(void)
{
    struct ear ear = {0};
    struct weft_child_end end = {0};
    weft_usec begun_us = weft_boot_us();
    if (run("tail -f /dev/null & echo $!", (struct weft_child){0}, &ear, &end)) {
        pid_t left = (pid_t)strtol(end.output.data, NULL, 10);
        is_int(end.exit_code, 0, "the run ends while another process holds the pipes");
        ok(weft_boot_us() - begun_us < PATIENCE_US, "at once");
        ok(left > 0 && wait_gone(left), "the process that the child left behind is ended");
    }
    weft_child_end_done(&end);

    /* One that left the group too: it cannot be ended, but must not hold us up either. */
    if (run("setsid sh -c 'echo $$; exec tail -f /dev/null' & "
            "read -r word; kill -0 $! && echo bye",
            (struct weft_child){.input = "go\n", .input_size = 3}, &ear, &end)) {
        is_int(end.exit_code, 0, "nor does one that left the group hold it up");
        pid_t left = (pid_t)strtol(end.output.data, NULL, 10);
        if (left > 0)
            (void)kill(left, SIGKILL);
    }
    weft_child_end_done(&end);
}

/* ---- When this process is killed ------------------------------------------------------------- */

/* Hands the numbers of the command and of its child on to the process that waits for them. */
static void pass_pids(void *context, const char *text, size_t size)
{
    char line[64];
    int length = snprintf(line, sizeof(line), "%.*s\n", (int)size, text);
    if (write(*(int *)context, line, (size_t)length) != length)
        _exit(2);
}

/* A process that runs a command with a child and is killed itself. Not tail, which ends by itself
 * when its output is closed. */
static _Noreturn void run_to_death(bool guarded, int fd)
{
    static const char *const argv[] = {"sh", "-c", "sleep 1000 & echo $$ $! >&2; wait", NULL};
    struct weft_guard guard;
    struct weft_child child = {.path = "/bin/sh",
                               .argv = argv,
                               .envp = environment,
                               .output_max = 1,
                               .line = pass_pids,
                               .context = &fd};
    struct weft_child_end end;
    struct weft_err err;
    if (guarded && weft_guard_start(&guard) == 0)
        child.guard = &guard;
    if (weft_child_run(&child, &end, &err) == WEFT_OK)
        weft_child_end_done(&end);
    _exit(1);
}

static void test_death(void)
{
    for (int guarded = 0; guarded < 2; guarded++) {
        int ends[2];
        char text[64] = "";
        char *rest = text;
        if (!ok(pipe2(ends, O_CLOEXEC) == 0, "a pipe"))
            return;
        (void)fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            run_to_death(guarded, ends[1]);
        (void)close(ends[1]);
        ok(read(ends[0], text, sizeof(text) - 1) > 0, "the command runs");
        pid_t command = (pid_t)strtol(text, &rest, 10);
        pid_t child = (pid_t)strtol(rest, NULL, 10);
        ok(command > 0 && child > 0 && !is_gone(command) && !is_gone(child), "with a child");
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        ok(wait_gone(command), "%s: the command dies with the process that ran it",
           guarded ? "with a guard" : "without a guard");
        if (guarded)
            ok(wait_gone(child), "with a guard: its children die too");
        (void)kill(-command, SIGKILL);
        (void)close(ends[0]);
    }
}

/* A guard that ends kills no group that was reported to have ended. */
static void test_guard(void)
{
    struct weft_guard guard;
    struct ear ear = {0};
    struct weft_child_end end = {0};
    if (!ok(weft_guard_start(&guard) == 0, "a guard"))
        return;
    if (run("echo fine", (struct weft_child){.guard = &guard}, &ear, &end))
        is_int(end.exit_code, 0, "a command with a guard ends by itself");
    weft_child_end_done(&end);
    (void)kill(guard.pid, SIGTERM);
    ok(!is_gone(guard.pid), "signals that end a worker do not end the guard");
    (void)kill(guard.pid, SIGKILL);
    ok(wait_gone(guard.pid), "a guard that is killed");
    if (run("echo fine", (struct weft_child){.guard = &guard}, &ear, &end))
        is_int(end.exit_code, 0, "is done without");
    weft_child_end_done(&end);
    weft_guard_stop(&guard);
}

/* ---- Starting -------------------------------------------------------------------------------- */

static void test_find(void)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_err err = {0};
    const char *path = NULL;
    ok(weft_child_find("sh", arena, &path, &err) == WEFT_OK && path[0] == '/' &&
           access(path, X_OK) == 0,
       "sh is found at %s", path ? path : "no place");
    ok(weft_child_find("/bin/sh", arena, &path, &err) == WEFT_OK, "a path is taken as it is");
    is_str(path, "/bin/sh", "unchanged");
    static const char *const bad[] = {"no-such-command-anywhere", "/no/such", "/etc/passwd", "/tmp",
                                      ""};
    for (size_t i = 0; i < WEFT_LEN(bad); i++)
        ok(weft_child_find(bad[i], arena, &path, &err) == WEFT_NOT_FOUND, "'%s' is refused: %s",
           bad[i], err.text);

    const char *const argv[] = {"none", NULL};
    const struct weft_child child = {.path = "/no/such", .argv = argv, .envp = environment};
    struct weft_child_end end = {0};
    ok(weft_child_run(&child, &end, &err) == WEFT_UNAVAILABLE, "one that vanished: %s", err.text);
    weft_arena_free(arena);
}

/* Nothing of ours leaks into a command: the three standard files, and the one ls itself opens. */
static void test_files(void)
{
    struct ear ear = {0};
    struct weft_child_end end = {0};
    if (run("ls /proc/self/fd", (struct weft_child){0}, &ear, &end))
        is_str(end.output.data, "0\n1\n2\n3\n", "a command has no other files open");
    weft_child_end_done(&end);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)close_range(3, ~0u, 0); /* descriptors that the parent left open */
    test_exits();
    test_bytes();
    test_too_large();
    test_stderr();
    test_stderr_utf8();
    test_stop();
    test_grandchild();
    test_progress();
    test_death();
    test_guard();
    test_find();
    test_files();
    return tap_done();
}
