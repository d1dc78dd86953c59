/* SPDX-License-Identifier: Apache-2.0 */

#include "core/key_file.h"

#include "base/str.h"

#include <openssl/sha.h>
#include <string.h>

enum { SECRET_DIGITS_MIN = 2 * WEFT_SIGNING_SECRET, SECRET_DIGITS_MAX = 128 };

struct reader {
    const char *path;
    struct weft_key_file *file;
    unsigned line;
    struct weft_err *err;
};

static enum weft_rc wrong(const struct reader *reader, const char *what)
{
    return weft_invalid(reader->err, "signing_key_file", "%.120s:%u: %s", reader->path,
                        reader->line, what);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of a line, up to `end`; empty at the end and before a comment. */
static const char *next_word(const char **at, const char *end, size_t *ret_size)
{
    const char *begin = *at;
    while (begin < end && is_blank(*begin))
        begin++;
    const char *stop = begin;
    while (stop < end && !is_blank(*stop) && *stop != '#')
        stop++;
    *at = stop;
    *ret_size = (size_t)(stop - begin);
    return begin;
}

static enum weft_rc read_id(const struct reader *reader, const char *text, size_t size,
                            int32_t *ret_id)
{
    int64_t number = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || number > INT32_MAX)
            number = INT64_MAX / 16;
        number = number > INT32_MAX ? number : 10 * number + (text[i] - '0');
    }
    if (number < WEFT_FILE_KEY_FIRST || number > INT32_MAX)
        return wrong(reader,
                     "the number of a key must be 1000000000 to 2147483647, for instance "
                     "a date and two digits, like 2026113001");
    for (size_t i = 0; i < reader->file->count; i++)
        if (reader->file->key[i].id == number)
            return wrong(reader, "the number of this key stands on another line, too");
    *ret_id = (int32_t)number;
    return WEFT_OK;
}

static enum weft_rc read_secret(const struct reader *reader, const char *text, size_t size,
                                uint8_t ret_secret[WEFT_SIGNING_SECRET])
{
    static const char what[] =
        "the secret must be 64 to 128 hexadecimal digits: "
        "`openssl rand -hex 32` makes one";
    uint8_t bytes[SECRET_DIGITS_MAX / 2];
    enum weft_rc rc = WEFT_OK;
    if (size < SECRET_DIGITS_MIN || size > SECRET_DIGITS_MAX || size % 2)
        return wrong(reader, what);
    for (size_t i = 0; i < size / 2 && !rc; i++) {
        int high = weft_hex_digit(text[2 * i]), low = weft_hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            rc = wrong(reader, what);
        else
            bytes[i] = (uint8_t)(high << 4 | low);
    }
    if (!rc && size == SECRET_DIGITS_MIN)
        memcpy(ret_secret, bytes, WEFT_SIGNING_SECRET);
    else if (!rc)
        SHA256(bytes, size / 2, ret_secret);
    explicit_bzero(bytes, sizeof(bytes));
    return rc;
}

static enum weft_rc read_line(const struct reader *reader, const char *line, const char *end)
{
    struct weft_key_file *file = reader->file;
    size_t size, more, rest;
    const char *at = line, *id = next_word(&at, end, &size);
    const char *secret = next_word(&at, end, &more);
    const char *third = next_word(&at, end, &rest);
    if (size == 0)
        return WEFT_OK;
    if (rest > 0 || (third < end && *third != '#'))
        return wrong(reader, "a line is the number of a key and its secret");
    if (size == 5 && memcmp(id, "store", 5) == 0) {
        if (more > 0 || file->store)
            return wrong(reader, "the line store stands alone, and once");
        file->store = true;
        file->store_signs = file->count == 0;
        return WEFT_OK;
    }
    if (file->count == WEFT_FILE_KEYS_MAX)
        return wrong(reader, "a file has at most 64 keys");
    struct weft_file_key *key = &file->key[file->count];
    enum weft_rc rc = read_id(reader, id, size, &key->id);
    if (!rc)
        rc = read_secret(reader, secret, more, key->secret);
    file->count += !rc;
    return rc;
}

enum weft_rc weft_key_file_parse(const char *path, const char *text, size_t size,
                                 struct weft_key_file *ret_file, struct weft_err *err)
{
    struct reader reader = {.path = path, .file = ret_file, .err = err};
    const char *at = text, *end = text + size;
    enum weft_rc rc = WEFT_OK;
    memset(ret_file, 0, sizeof(*ret_file));
    while (at < end && !rc) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        reader.line++;
        rc = read_line(&reader, at, stop);
        at = stop < end ? stop + 1 : end;
    }
    if (!rc && ret_file->count == 0)
        rc = weft_invalid(err, "signing_key_file", "%.120s has no key", path);
    if (rc)
        explicit_bzero(ret_file, sizeof(*ret_file));
    return rc;
}
