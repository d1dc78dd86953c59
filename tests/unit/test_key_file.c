/* SPDX-License-Identifier: Apache-2.0 */

/* The file of signing keys: its lines, and who may use it. */

#include "base/base.h"
#include "engine/wait/keys.h"
#include "tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HALF "000102030405060708090a0b0c0d0e0f"
#define GOOD HALF "101112131415161718191a1b1c1d1e1F"
#define SAY  "must be 64 to 128 hexadecimal digits"

static const struct row {
    const char *name, *text;
    const char *why; /* part of the error; NULL: it is read */
    size_t keys;
    bool store, store_signs;
} rows[] = {
    {"one key", "1000000000 " GOOD "\n", NULL, 1, false, false},
    {"no newline at the end", "2147483647\t" GOOD, NULL, 1, false, false},
    {"comments and empty lines", "# old\n\n \t\n1000000001 " GOOD "  # new\r\n", NULL, 1, false,
     false},
    {"two keys, then the store", "1000000002 " GOOD "\n1000000001 " GOOD "\nstore\n", NULL, 2, true,
     false},
    {"the store first", "store # signs\n1000000001 " GOOD "\n", NULL, 1, true, true},
    {"a long secret", "1000000001 " GOOD HALF "\n", NULL, 1, false, false},
    {"nothing", "", "has no key", 0, false, false},
    {"the store alone", "store\n", "has no key", 0, false, false},
    {"a number of the store", "999999999 " GOOD "\n", ":1: the number of a key must be", 0, false,
     false},
    {"a number too large", "2147483648 " GOOD "\n", ":1: the number of a key must be", 0, false,
     false},
    {"a number far too large", "99999999999999999999999 " GOOD "\n",
     ":1: the number of a key must be", 0, false, false},
    {"a number that is none", "1000000001x " GOOD "\n", ":1: the number of a key must be", 0, false,
     false},
    {"a number twice", "1000000001 " GOOD "\n\n1000000001 " GOOD "\n", ":3: the number of this key",
     0, false, false},
    {"no secret", "1000000001\n", SAY, 0, false, false},
    {"a short secret", "1000000001 " HALF "\n", SAY, 0, false, false},
    {"an odd number of digits", "1000000001 " GOOD "1\n", SAY, 0, false, false},
    {"a secret that is not hexadecimal", "1000000001 " HALF HALF "zz\n", SAY, 0, false, false},
    {"a secret too long", "1000000001 " GOOD GOOD "00\n", SAY, 0, false, false},
    {"a third word", "1000000001 " GOOD " more\n", "a line is the number", 0, false, false},
    {"the store twice", "1000000001 " GOOD "\nstore\nstore\n", ":3: the line store", 0, false,
     false},
    {"a word after store", "store 1\n", ":1: the line store", 0, false, false},
};

static void test_lines(void)
{
    for (size_t i = 0; i < WEFT_LEN(rows); i++) {
        const struct row *row = &rows[i];
        static struct weft_key_file file;
        struct weft_err err = {0};
        enum weft_rc rc = weft_key_file_parse("keys", row->text, strlen(row->text), &file, &err);
        if (row->why) {
            ok(rc == WEFT_INVALID_VALUE && strstr(err.text, row->why), "%s is refused: %s",
               row->name, err.text);
            ok(!strstr(err.text, HALF), "%s: the error has no secret", row->name);
        } else {
            ok(rc == WEFT_OK && file.count == row->keys && file.store == row->store &&
                   file.store_signs == row->store_signs,
               "%s: is read %s", row->name, err.text);
        }
    }
}

static void test_values(void)
{
    static const char text[] = "1000000002 " GOOD "\n1000000001 " GOOD HALF "\n";
    static struct weft_key_file file;
    struct weft_err err = {0};
    uint8_t want[WEFT_SIGNING_SECRET];
    for (size_t i = 0; i < sizeof(want); i++)
        want[i] = (uint8_t)i;
    is_int(weft_key_file_parse("keys", text, strlen(text), &file, &err), WEFT_OK, "two keys");
    ok(file.key[0].id == 1000000002 && file.key[1].id == 1000000001,
       "keys are in the order of the file");
    ok(memcmp(file.key[0].secret, want, sizeof(want)) == 0, "32 bytes are taken as they are");
    ok(memcmp(file.key[1].secret, want, sizeof(want)) != 0,
       "48 bytes are more than their first 32");
}

static void write_file(const char *path, mode_t mode)
{
    static const char text[] = "1000000001 " GOOD "\n";
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    ok(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fchmod(fd, mode) == 0,
       "a file of mode %o is written", (unsigned)mode);
    (void)close(fd);
}

static void test_modes(void)
{
    static const struct {
        mode_t mode;
        bool good;
    } mode[] = {{0600, true},  {0400, true},  {0640, false}, {0604, false},
                {0620, false}, {0602, false}, {0610, false}};
    char path[] = "/tmp/weft-key-file-XXXXXX";
    static struct weft_key_file file;
    int fd = mkstemp(path);
    (void)close(fd);
    for (size_t i = 0; i < WEFT_LEN(mode); i++) {
        struct weft_err err = {0};
        write_file(path, mode[i].mode);
        enum weft_rc rc = weft_key_file_read(path, &file, &err);
        ok(mode[i].good ? rc == WEFT_OK
                        : rc == WEFT_INVALID_VALUE && strstr(err.text, "others than its owner"),
           "a file of mode %o is %s %s", (unsigned)mode[i].mode, mode[i].good ? "read" : "refused",
           err.text);
        (void)chmod(path, 0600);
    }
    struct weft_err err = {0};
    (void)unlink(path);
    ok(weft_key_file_read(path, &file, &err) == WEFT_INVALID_VALUE && strstr(err.text, path),
       "a file that is not there is refused by its name");
    ok(weft_key_file_read("/tmp", &file, &err) == WEFT_INVALID_VALUE &&
           strstr(err.text, "not a regular file"),
       "a folder is refused");
}

int main(void)
{
    test_lines();
    test_values();
    test_modes();
    return tap_done();
}
