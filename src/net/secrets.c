/* SPDX-License-Identifier: Apache-2.0 */

#include "net/secrets.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/str.h"
#include "core/endpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRETS_MAX = 4096, PATH_TEXT = 512 };

static const char prefix[] = "WEFT_SECRET_";

/* The beginning of the pages of a secret. */
struct weft_secret {
    atomic_size_t holders;
    size_t mapped; /* bytes of the pages */
    size_t size;
    char text[];
};

struct entry {
    char *ns, *name;
    const struct weft_secret *secret;
};

struct list {
    struct entry *item; /* owned */
    size_t count;
};

struct weft_secrets {
    pthread_mutex_t reading; /* one reading of the folder at a time */
    pthread_mutex_t lock;    /* over `read`; never while a file is read */
    struct list read;        /* from files */
    struct list taken;       /* from variables; does not change */
};

/* ---- Pages ----------------------------------------------------------------------------------- */

/* Pages for a text of so many bytes, held once. */
static struct weft_secret *make(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t mapped = (sizeof(struct weft_secret) + size + 1 + page - 1) / page * page;
    void *memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        weft_oom(mapped);
    (void)madvise(memory, mapped, MADV_DONTDUMP);
    (void)mlock(memory, mapped); /* beyond RLIMIT_MEMLOCK it may be swapped out */
    struct weft_secret *secret = memory;
    secret->mapped = mapped;
    secret->size = size;
    atomic_init(&secret->holders, 1);
    return secret;
}

static const struct weft_secret *hold(const struct weft_secret *secret)
{
    if (secret)
        atomic_fetch_add(&((struct weft_secret *)(uintptr_t)secret)->holders, 1);
    return secret;
}

void weft_secret_release(const struct weft_secret *held)
{
    struct weft_secret *secret = (struct weft_secret *)(uintptr_t)held;
    if (!secret || atomic_fetch_sub(&secret->holders, 1) != 1)
        return;
    size_t mapped = secret->mapped;
    explicit_bzero(secret, mapped);
    (void)munmap(secret, mapped);
}

const char *weft_secret_text(const struct weft_secret *secret)
{
    return secret->text;
}

const struct weft_secret *weft_secret_header(const struct weft_secret *secret,
                                             const struct weft_endpoint_auth *auth)
{
    size_t before = strlen(auth->before), after = strlen(auth->after);
    struct weft_secret *header = make(before + secret->size + after);
    memcpy(header->text, auth->before, before);
    memcpy(header->text + before, secret->text, secret->size);
    memcpy(header->text + before + secret->size, auth->after, after);
    return header;
}

/* NULL: it may be used; or what is wrong with it. */
static const char *refuse_text(const char *text, size_t size)
{
    if (size == 0)
        return "it is empty";
    if (size > WEFT_SECRET_MAX)
        return "it has more than 16 KiB";
    if (!weft_text_printable(text, size))
        return "it has a control character, or is not UTF-8";
    if (text[0] == ' ' || text[size - 1] == ' ')
        return "it begins or ends with a space";
    return NULL;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static struct entry *find(const struct list *list, const char *ns, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->item[i].name, name) == 0 && strcmp(list->item[i].ns, ns) == 0)
            return &list->item[i];
    return NULL;
}

/* Takes over the secret; one of this name that is there already is replaced. */
static void put(struct list *list, const char *ns, const char *name,
                const struct weft_secret *secret)
{
    struct entry *entry = find(list, ns, name);
    if (entry) {
        weft_secret_release(entry->secret);
    } else {
        list->item = weft_realloc(list->item, list->count + 1, sizeof(*list->item));
        entry = &list->item[list->count++];
        *entry = (struct entry){.ns = weft_strdup(ns), .name = weft_strdup(name)};
    }
    entry->secret = secret;
}

static void drop(struct list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        weft_secret_release(list->item[i].secret);
        free(list->item[i].ns);
        free(list->item[i].name);
    }
    free(list->item);
}

struct weft_secrets *weft_secrets_new(void)
{
    struct weft_secrets *secrets = weft_alloc(1, sizeof(*secrets));
    pthread_mutex_init(&secrets->lock, NULL);
    pthread_mutex_init(&secrets->reading, NULL);
    return secrets;
}

void weft_secrets_free(struct weft_secrets *secrets)
{
    if (!secrets)
        return;
    drop(&secrets->read);
    drop(&secrets->taken);
    pthread_mutex_destroy(&secrets->reading);
    pthread_mutex_destroy(&secrets->lock);
    free(secrets);
}

const struct weft_secret *weft_secret_get(struct weft_secrets *secrets, const char *ns,
                                          const char *name)
{
    pthread_mutex_lock(&secrets->lock);
    const struct entry *entry = find(&secrets->read, ns, name);
    if (!entry)
        entry = find(&secrets->taken, ns, name);
    const struct weft_secret *secret = entry ? hold(entry->secret) : NULL;
    pthread_mutex_unlock(&secrets->lock);
    return secret;
}

size_t weft_secrets_count(struct weft_secrets *secrets)
{
    pthread_mutex_lock(&secrets->lock);
    size_t count = secrets->read.count + secrets->taken.count;
    pthread_mutex_unlock(&secrets->lock);
    return count;
}

/* ---- Variables ------------------------------------------------------------------------------- */

/* "NS__NAME" or "NAME", cut in place. False: it cannot be told apart. */
static bool split_name(char *text, const char **ret_ns, const char **ret_name)
{
    char *mark = strstr(text, "__");
    *ret_ns = mark ? text : "default";
    *ret_name = mark ? mark + 2 : text;
    if (mark)
        *mark = '\0';
    const char *const part[] = {*ret_ns, *ret_name};
    for (size_t i = 0; i < WEFT_LEN(part); i++) {
        size_t size = strlen(part[i]);
        if (size == 0 || part[i][0] == '_' || part[i][size - 1] == '_' || strstr(part[i], "__"))
            return false;
    }
    return weft_name_valid(*ret_ns) && weft_secret_name_valid(*ret_name);
}

/* Takes over one variable, "WEFT_SECRET_...=value", and wipes its value. */
static void take_one(struct weft_secrets *secrets, char *variable)
{
    char *value = strchr(variable, '=') + 1;
    size_t size = strlen(value);
    char *name = weft_alloc((size_t)(value - variable), 1);
    memcpy(name, variable, (size_t)(value - 1 - variable));
    char *parts = weft_strdup(name + strlen(prefix));
    const char *ns = NULL, *own = NULL, *why = refuse_text(value, size);
    if (!split_name(parts, &ns, &own))
        why = "its name is not NAMESPACE__NAME or NAME";
    if (!why) {
        struct weft_secret *secret = make(size);
        memcpy(secret->text, value, size);
        put(&secrets->taken, ns, own, secret);
    }
    explicit_bzero(value, size);
    if (why)
        weft_error("a secret of the environment is not used", F_STR("variable", name),
                   F_STR("why", why));
    free(parts);
    free(name);
}

void weft_secrets_take(struct weft_secrets *secrets, char **environment)
{
    char **kept = environment;
    for (char **at = environment; at && *at; at++)
        if (strncmp(*at, prefix, strlen(prefix)) == 0 && strchr(*at, '='))
            take_one(secrets, *at);
        else
            *kept++ = *at;
    if (environment)
        *kept = NULL;
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* A reading of the folder. */
struct reading {
    const char *dir;
    const struct list *before; /* what holds now: secrets that are the same are kept */
    struct list found;
};

static void leave_out(const struct reading *reading, const char *ns, const char *name,
                      const char *why)
{
    char path[PATH_TEXT];
    (void)snprintf(path, sizeof(path), ns ? "%s/%s/%s" : "%s/%s%s", reading->dir, ns ? ns : "",
                   name);
    weft_error("a secret is not used", F_STR("file", path), F_STR("why", why));
}

/* As PostgreSQL judges the key of its certificate. NULL: it may be used. */
static const char *refuse_file(const struct stat *info)
{
    uid_t self = geteuid();
    if (!S_ISREG(info->st_mode))
        return "it is not a regular file";
    if (info->st_uid != self && info->st_uid != 0)
        return "it belongs to another user";
    mode_t refused = info->st_uid == self ? S_IRWXG | S_IRWXO : S_IWGRP | S_IXGRP | S_IRWXO;
    if (info->st_mode & refused)
        return "others than its owner may use it: chmod 600, and make a new secret if they may "
               "have read it";
    return NULL;
}

/* The bytes of a file, in pages as for a secret. NULL: *ret_why says why not. */
static struct weft_secret *read_file(int fd, const char **ret_why)
{
    struct weft_secret *file = make(WEFT_SECRET_MAX + 3); /* one more than may be, and a new line */
    ssize_t got = 1;
    size_t size = 0;
    while (size < file->size && got > 0) {
        got = read(fd, file->text + size, file->size - size);
        size += got > 0 ? (size_t)got : 0;
    }
    *ret_why = got < 0 ? "it cannot be read" : NULL;
    if (size > 0 && file->text[size - 1] == '\n')
        size--;
    if (size > 0 && file->text[size - 1] == '\r')
        size--;
    if (!*ret_why)
        *ret_why = refuse_text(file->text, size);
    struct weft_secret *secret = *ret_why ? NULL : make(size);
    if (secret)
        memcpy(secret->text, file->text, size);
    weft_secret_release(file);
    return secret;
}

/* Keeps the object of before if the text is the same. */
static const struct weft_secret *settle(const struct list *before, const char *ns, const char *name,
                                        const struct weft_secret *secret)
{
    const struct entry *was = find(before, ns, name);
    if (!was || was->secret->size != secret->size ||
        memcmp(was->secret->text, secret->text, secret->size) != 0)
        return secret;
    weft_secret_release(secret);
    return hold(was->secret);
}

/* A file of a namespace; folder: its folder, or NULL. */
static void add_file(struct reading *reading, const char *folder, const char *ns, const char *name,
                     int fd, const struct stat *info)
{
    const char *why = refuse_file(info);
    if (!why && !weft_secret_name_valid(name))
        why = "its name is not 1 to 64 of A-Z a-z 0-9 _ . -";
    if (!why && reading->found.count >= SECRETS_MAX)
        why = "there are too many secrets";
    const struct weft_secret *secret = why ? NULL : read_file(fd, &why);
    if (secret)
        put(&reading->found, ns, name, settle(reading->before, ns, name, secret));
    else
        leave_out(reading, folder, name, why);
}

/* The namespace of a folder. False: the name stands for none, or not in its one form. */
static bool read_folder_name(const char *folder, char ret_ns[WEFT_NAME_MAX + 1])
{
    size_t size = 0;
    for (const char *at = folder; *at; at++) {
        char c = *at;
        if (c == '%' && strncmp(at, "%2F", 3) == 0)
            c = '/';
        else if (c == '%' && strncmp(at, "%2E", 3) == 0 && at == folder)
            c = '.';
        at += c != *at ? 2 : 0;
        if (size == WEFT_NAME_MAX)
            return false;
        ret_ns[size++] = c;
    }
    ret_ns[size] = '\0';
    return weft_name_valid(ret_ns);
}

/* Opens an entry of a folder. A FIFO must not block. */
static int open_entry(DIR *folder, const char *name, struct stat *ret_info)
{
    int fd = openat(dirfd(folder), name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, ret_info) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static void read_namespace(struct reading *reading, const char *folder, int fd)
{
    char ns[WEFT_NAME_MAX + 1];
    struct stat info;
    DIR *entries = read_folder_name(folder, ns) ? fdopendir(fd) : NULL;
    if (!entries) {
        (void)close(fd);
        leave_out(reading, NULL, folder, "no namespace has this folder");
        return;
    }
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this call's own */
    for (const struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.')
            continue;
        int file = open_entry(entries, entry->d_name, &info);
        if (file >= 0)
            add_file(reading, folder, ns, entry->d_name, file, &info);
        else
            leave_out(reading, folder, entry->d_name, "it cannot be opened");
        if (file >= 0)
            (void)close(file);
    }
    (void)closedir(entries);
}

/* The files of the folder first, then its folders: default/NAME beats NAME. */
static void read_entries(struct reading *reading, DIR *entries, bool folders)
{
    struct stat info;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this call's own */
    for (const struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.')
            continue;
        int fd = open_entry(entries, entry->d_name, &info);
        if (fd < 0 && !folders)
            leave_out(reading, NULL, entry->d_name, "it cannot be opened");
        if (fd < 0)
            continue;
        if (S_ISDIR(info.st_mode) && folders) {
            read_namespace(reading, entry->d_name, fd);
            continue;
        }
        if (!S_ISDIR(info.st_mode) && !folders)
            add_file(reading, NULL, "default", entry->d_name, fd, &info);
        (void)close(fd);
    }
}

static enum weft_rc read_all(struct reading *reading, struct weft_err *err)
{
    char reason[100];
    if (!reading->dir)
        return WEFT_OK;
    DIR *entries = opendir(reading->dir);
    if (!entries)
        return weft_invalid(err, "secrets_dir", "cannot read the folder %.120s: %s", reading->dir,
                            strerror_r(errno, reason, sizeof(reason)));
    read_entries(reading, entries, false);
    rewinddir(entries);
    read_entries(reading, entries, true);
    (void)closedir(entries);
    return WEFT_OK;
}

enum weft_rc weft_secrets_read(struct weft_secrets *secrets, const char *dir, struct weft_err *err)
{
    pthread_mutex_lock(&secrets->reading); /* nothing else changes the list */
    struct reading reading = {.dir = dir, .before = &secrets->read};
    enum weft_rc rc = read_all(&reading, err);
    struct list left = reading.found;
    if (!rc) {
        pthread_mutex_lock(&secrets->lock);
        left = secrets->read;
        secrets->read = reading.found;
        pthread_mutex_unlock(&secrets->lock);
    }
    drop(&left);
    pthread_mutex_unlock(&secrets->reading);
    return rc;
}
