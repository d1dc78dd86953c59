/* SPDX-License-Identifier: Apache-2.0 */

/* Reading the file of signing keys. Its texts hold secrets: they are cleared, and never logged. */

#include "base/alloc.h"
#include "base/err.h"
#include "engine/wait/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum weft_rc cannot(const char *path, const char *why, struct weft_err *err)
{
    return weft_invalid(err, "signing_key_file", "cannot use %.120s: %s", path, why);
}

/* A secret that others can read is none, and a file that others can write has their keys. */
static enum weft_rc check_mode(const char *path, int fd, struct weft_err *err)
{
    struct stat info;
    char reason[100];
    if (fstat(fd, &info) != 0)
        return cannot(path, strerror_r(errno, reason, sizeof(reason)), err);
    if (!S_ISREG(info.st_mode))
        return cannot(path, "it is not a regular file", err);
    if (info.st_mode & (S_IRWXG | S_IRWXO))
        return weft_hint(err, cannot(path, "others than its owner may use it", err),
                         "chmod 600, and make new secrets if others may have read it");
    return WEFT_OK;
}

/* Up to WEFT_KEY_FILE_BYTES of a file, in memory that the caller clears. */
static enum weft_rc read_text(const char *path, int fd, char *text, size_t *ret_size,
                              struct weft_err *err)
{
    char reason[100];
    ssize_t got = 1;
    *ret_size = 0;
    while (*ret_size < WEFT_KEY_FILE_BYTES && got > 0) {
        got = read(fd, text + *ret_size, WEFT_KEY_FILE_BYTES - *ret_size);
        *ret_size += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        return cannot(path, strerror_r(errno, reason, sizeof(reason)), err);
    return got == 0 ? WEFT_OK : cannot(path, "it is too large", err);
}

enum weft_rc weft_key_file_read(const char *path, struct weft_key_file *ret_file,
                                struct weft_err *err)
{
    char reason[100];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
    if (fd < 0)
        return cannot(path, strerror_r(errno, reason, sizeof(reason)), err);
    char *text = weft_alloc(1, WEFT_KEY_FILE_BYTES);
    size_t size = 0;
    enum weft_rc rc = check_mode(path, fd, err);
    if (!rc)
        rc = read_text(path, fd, text, &size, err);
    if (!rc)
        rc = weft_key_file_parse(path, text, size, ret_file, err);
    (void)close(fd);
    explicit_bzero(text, WEFT_KEY_FILE_BYTES);
    free(text);
    return rc;
}

enum weft_rc weft_keys_load(struct weft_keys *keys, const char *path, struct weft_err *err)
{
    struct weft_key_file *file = path ? weft_alloc(1, sizeof(*file)) : NULL, *before;
    enum weft_rc rc = path ? weft_key_file_read(path, file, err) : WEFT_OK;
    if (rc) {
        free(file);
        return rc;
    }
    pthread_mutex_lock(&keys->lock);
    before = keys->file;
    keys->file = file;
    pthread_mutex_unlock(&keys->lock);
    weft_key_file_free(before);
    return WEFT_OK;
}

void weft_key_file_free(struct weft_key_file *file)
{
    if (file)
        explicit_bzero(file, sizeof(*file));
    free(file);
}
