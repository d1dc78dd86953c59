/* SPDX-License-Identifier: Apache-2.0 */

/* Secrets of outgoing calls: where they come from, whom they serve, and where they are not seen. */

#include "net/secrets.h"

#include "base/log.h"
#include "core/endpoint.h"
#include "support.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/secrets-XXXXXX";

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info, (void)type, (void)place;
    return remove(path);
}

static const char *path_of(const char *name)
{
    static char path[600];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void write_bytes(const char *name, const void *data, size_t size, mode_t mode)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || fchmod(fd, mode) != 0 || close(fd) != 0)
        bail_out("cannot write a secret");
}

static void write_secret(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text), 0600);
}

static void make_folder(const char *name)
{
    if (mkdir(path_of(name), 0700) != 0)
        bail_out("cannot make a folder");
}

static void read_dir(struct weft_secrets *secrets)
{
    struct weft_err err = {0};
    is_int(weft_secrets_read(secrets, dir, &err), WEFT_OK, "the folder is read: %s", err.text);
}

static void is_secret(struct weft_secrets *secrets, const char *ns, const char *name,
                      const char *want)
{
    const struct weft_secret *secret = weft_secret_get(secrets, ns, name);
    is_str(secret ? weft_secret_text(secret) : NULL, want, "%s of %s", name, ns);
    weft_secret_release(secret);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void test_namespaces(void)
{
    struct weft_secrets *secrets = weft_secrets_new();
    make_folder("acme");
    make_folder("a%2Fb");
    make_folder("%2E%2E");
    make_folder("%2E.");
    make_folder("a%2fc");
    write_secret("openai", "sk-default\n");
    write_secret("acme/openai", "sk-acme\r\n");
    write_secret("a%2Fb/openai", "sk-ab");
    write_secret("%2E./openai", "sk-dots");
    write_secret("a%2fc/openai", "sk-lower");
    write_secret(".hidden", "x");
    read_dir(secrets);
    is_secret(secrets, "default", "openai", "sk-default");
    is_secret(secrets, "acme", "openai", "sk-acme");
    is_secret(secrets, "a/b", "openai", "sk-ab");
    is_secret(secrets, "..", "openai", "sk-dots");
    is_secret(secrets, "a/c", "openai", NULL);
    is_secret(secrets, "acme", "other", NULL);
    is_secret(secrets, "other", "openai", NULL);
    is_secret(secrets, "default", "acme/openai", NULL);
    is_secret(secrets, "acme", "../openai", NULL);
    is_secret(secrets, "default", ".hidden", NULL);
    is_int(weft_secrets_count(secrets), 4, "secrets");
    make_folder("default");
    write_secret("default/openai", "sk-folder");
    read_dir(secrets);
    is_secret(secrets, "default", "openai", "sk-folder");
    weft_secrets_free(secrets);
}

static void test_reread(void)
{
    struct weft_secrets *secrets = weft_secrets_new();
    struct weft_err err = {0};
    write_secret("one", "first");
    write_secret("two", "stays");
    read_dir(secrets);
    const struct weft_secret *one = weft_secret_get(secrets, "default", "one");
    const struct weft_secret *two = weft_secret_get(secrets, "default", "two");
    write_secret("one", "second");
    read_dir(secrets);
    is_secret(secrets, "default", "one", "second");
    is_str(weft_secret_text(one), "first", "a holder keeps what it has");
    const struct weft_secret *again = weft_secret_get(secrets, "default", "two");
    ok(again == two, "a secret that stays the same is the same object");
    (void)unlink(path_of("one"));
    read_dir(secrets);
    is_secret(secrets, "default", "one", NULL);
    is_int(weft_secrets_read(secrets, "/nowhere/at/all", &err), WEFT_INVALID_VALUE,
           "a folder that is not there is an error");
    is_str(err.field, "secrets_dir", "it names the setting");
    is_secret(secrets, "default", "two", "stays");
    is_int(weft_secrets_read(secrets, NULL, &err), WEFT_OK, "no folder any more");
    is_secret(secrets, "default", "two", NULL);
    weft_secrets_free(secrets);
    is_str(weft_secret_text(one), "first", "a holder keeps it behind the end of all");
    weft_secret_release(one);
    weft_secret_release(two);
    weft_secret_release(again);
    weft_secret_release(NULL);
}

static void test_refused(void)
{
    static char large[WEFT_SECRET_MAX + 1];
    static const struct {
        const char *name, *text;
        size_t size;
        mode_t mode;
        bool used;
    } row[] = {
        {"empty", "", 0, 0600, false},
        {"newline", "\n", 1, 0600, false},
        {"newlines", "a\n\n", 3, 0600, false},
        {"lines", "a\nb", 3, 0600, false},
        {"return", "a\rb", 3, 0600, false},
        {"nul", "a\0b", 3, 0600, false},
        {"latin", "caf\xe9", 4, 0600, false},
        {"space", " a", 2, 0600, false},
        {"space2", "a ", 2, 0600, false},
        {"largest", large, WEFT_SECRET_MAX, 0600, true},
        {"large", large, WEFT_SECRET_MAX + 1, 0600, false},
        {"group", "a", 1, 0640, false},
        {"others", "a", 1, 0604, false},
        {"writable", "a", 1, 0620, false},
        {"readonly", "a", 1, 0400, true},
        {"a name", "a", 1, 0600, false},
        {"utf8", "caf\xc3\xa9", 5, 0600, true},
    };
    memset(large, 'x', sizeof(large));
    struct weft_secrets *secrets = weft_secrets_new();
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        write_bytes(row[i].name, row[i].text, row[i].size, row[i].mode);
    make_folder("folder");
    make_folder("folder/inner");
    if (mkfifo(path_of("fifo"), 0600) != 0)
        bail_out("cannot make a FIFO");
    read_dir(secrets);
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        const struct weft_secret *secret = weft_secret_get(secrets, "default", row[i].name);
        is_int(secret != NULL, row[i].used, "%s is used or not", row[i].name);
        weft_secret_release(secret);
        (void)unlink(path_of(row[i].name));
    }
    is_secret(secrets, "default", "fifo", NULL);
    is_secret(secrets, "folder", "inner", NULL);
    (void)unlink(path_of("fifo"));
    weft_secrets_free(secrets);
}

/* Kubernetes puts symbolic links into the folder. */
static void test_links(void)
{
    struct weft_secrets *secrets = weft_secrets_new();
    make_folder("..data");
    write_secret("..data/linked", "value");
    if (symlink("..data/linked", path_of("linked")) != 0 ||
        symlink("/nowhere", path_of("broken")) != 0)
        bail_out("cannot make a link");
    read_dir(secrets);
    is_secret(secrets, "default", "linked", "value");
    is_secret(secrets, "default", "broken", NULL);
    (void)unlink(path_of("broken"));
    weft_secrets_free(secrets);
}

static void test_header(void)
{
    struct weft_secrets *secrets = weft_secrets_new();
    write_secret("key", "sk-1");
    read_dir(secrets);
    const struct weft_secret *secret = weft_secret_get(secrets, "default", "key");
    const struct weft_endpoint_auth auth = {.name = "X", .before = "Bearer ", .after = ";"};
    const struct weft_secret *header = weft_secret_header(secret, &auth);
    is_str(weft_secret_text(header), "Bearer sk-1;", "the value of a header");
    weft_secret_release(header);
    weft_secret_release(secret);
    weft_secrets_free(secrets);
}

/* ---- Variables ------------------------------------------------------------------------------- */

static void test_variables(void)
{
    char path[] = "PATH=/bin", dir_name[] = "WEFT_SECRETS_DIR=/x",
         plain[] = "WEFT_SECRET_env=sk-env", spaced[] = "WEFT_SECRET_acme__open_ai=sk-acme",
         three[] = "WEFT_SECRET_a___b=x", none[] = "WEFT_SECRET_=x", end[] = "WEFT_SECRET_a_=x",
         empty[] = "WEFT_SECRET_empty=", dash[] = "WEFT_SECRET_team-a__x.y=sk-dash",
         last[] = "HOME=/", shadowed[] = "WEFT_SECRET_file=variable";
    char *environment[] = {path, plain, dir_name, spaced,   three, none,
                           end,  empty, dash,     shadowed, last,  NULL};
    struct weft_secrets *secrets = weft_secrets_new();
    weft_secrets_take(secrets, environment);
    is_secret(secrets, "default", "env", "sk-env");
    is_secret(secrets, "acme", "open_ai", "sk-acme");
    is_secret(secrets, "team-a", "x.y", "sk-dash");
    is_secret(secrets, "default", "acme__open_ai", NULL);
    is_secret(secrets, "a", "_b", NULL);
    is_secret(secrets, "a_", "b", NULL);
    is_secret(secrets, "default", "empty", NULL);
    is_int(weft_secrets_count(secrets), 4, "secrets");
    is_str(environment[0], "PATH=/bin", "other variables stay");
    is_str(environment[1], "WEFT_SECRETS_DIR=/x", "in their order");
    is_str(environment[2], "HOME=/", "and nothing but them");
    ok(!environment[3], "the environment ends behind them");
    is_str(plain, "WEFT_SECRET_env=", "the value is wiped where it was");
    is_str(three, "WEFT_SECRET_a___b=", "also one that is not used");
    write_secret("file", "of a file");
    read_dir(secrets);
    is_secret(secrets, "default", "file", "of a file");
    is_secret(secrets, "default", "openai", "sk-folder");
    (void)unlink(path_of("file"));
    read_dir(secrets);
    is_secret(secrets, "default", "file", "variable");
    weft_secrets_take(secrets, NULL);
    weft_secrets_free(secrets);
}

/* ---- Where they are not seen ----------------------------------------------------------------- */

enum { CANARY = 40 };

/* The canary is never in memory as a whole, but as a secret. */
static char canary_byte(size_t i)
{
    return (char)('a' + (i * 7 + 3 + i / 5) % 26);
}

static void write_canary(const char *name)
{
    volatile char text[CANARY];
    for (size_t i = 0; i < CANARY; i++)
        text[i] = canary_byte(i);
    write_bytes(name, (const void *)(uintptr_t)text, CANARY, 0600);
    explicit_bzero((void *)(uintptr_t)text, CANARY);
}

static bool has_canary(const char *data, size_t size)
{
    for (size_t i = 0; i + CANARY <= size; i++) {
        size_t same = 0;
        while (same < CANARY && data[i + same] == canary_byte(same))
            same++;
        if (same == CANARY)
            return true;
    }
    return false;
}

static bool file_has_canary(const char *path)
{
    enum { CHUNK = 1 << 20 };
    static char data[CHUNK + CANARY];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t kept = 0;
    bool found = false;
    for (ssize_t got; !found && (got = read(fd, data + kept, CHUNK)) > 0;) {
        found = has_canary(data, kept + (size_t)got);
        size_t all = kept + (size_t)got;
        kept = all < CANARY ? all : CANARY;
        memmove(data, data + all - kept, kept);
    }
    (void)close(fd);
    explicit_bzero(data, sizeof(data));
    return found;
}

/* Logs, refuses, holds and makes headers of the canary, then dies with a core dump. */
_Noreturn static void die_with_canary(void)
{
    struct weft_secrets *secrets = weft_secrets_new();
    struct weft_err err = {0};
    const struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    const struct weft_endpoint_auth auth = {.name = "X", .before = "Bearer ", .after = ""};
    if (chdir(path_of("cores")) != 0 || setrlimit(RLIMIT_CORE, &most) != 0 ||
        prctl(PR_SET_DUMPABLE, 1) != 0)
        _exit(1);
    int log = open("log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    weft_log_init(WEFT_DEBUG, WEFT_LOGFMT, log);
    if (weft_secrets_read(secrets, dir, &err))
        _exit(1);
    const struct weft_secret *secret = weft_secret_get(secrets, "default", "canary");
    const struct weft_secret *header = secret ? weft_secret_header(secret, &auth) : NULL;
    if (!header || !has_canary(weft_secret_text(header), strlen("Bearer ") + CANARY))
        _exit(1);
    weft_secret_release(weft_secret_header(secret, &auth)); /* and of freed memory */
    abort();
}

static void test_core(void)
{
    int status = 0;
    make_folder("cores");
    write_canary("canary");
    write_canary("refused");
    (void)chmod(path_of("refused"), 0644);
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        die_with_canary();
    (void)waitpid(child, &status, 0);
    if (WIFEXITED(status)) {
        ok(false, "the child has read its canary");
        return;
    }
    ok(WIFSIGNALED(status), "the child has died");
    ok(file_has_canary(path_of("canary")), "the search finds the canary in its file");
    ok(!file_has_canary(path_of("cores/log")), "the log does not have it");
    DIR *cores = opendir(path_of("cores"));
    bool met = false;
    for (const struct dirent *entry; (entry = readdir(cores));) {
        char path[300];
        if (strncmp(entry->d_name, "core", 4) != 0)
            continue;
        met = true;
        (void)snprintf(path, sizeof(path), "%s/cores/%.100s", dir, entry->d_name);
        ok(!file_has_canary(path), "the core dump does not have it");
        (void)unlink(path);
    }
    (void)closedir(cores);
    if (!met)
        tap_skip("this system writes no core dumps into the folder");
}

int main(void)
{
    weft_log_init(WEFT_SILENT, WEFT_LOGFMT, 2);
    if (!mkdtemp(dir))
        bail_out("cannot make a folder");
    test_namespaces();
    test_reread();
    test_refused();
    test_links();
    test_header();
    test_variables();
    test_core();
    (void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return tap_done();
}
