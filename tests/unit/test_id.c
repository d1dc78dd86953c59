/* SPDX-License-Identifier: Apache-2.0 */

#include "base/id.h"
#include "tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOMENT ((weft_usec)1700000000123456)

static void test_layout(void)
{
    size_t wrong = 0;
    for (int partition = 0; partition < 256; partition++) {
        struct weft_id id;
        weft_id_new(&id, MOMENT, partition);
        wrong += weft_id_partition(&id) != partition;
        wrong += weft_id_time(&id) != MOMENT / 1000 * 1000;
        wrong += id.byte[6] >> 4 != 7;    /* the version */
        wrong += id.byte[8] >> 6 != 0x02; /* the variant */
    }
    is_int(wrong, 0, "time, version, partition and variant are in their places");

    struct weft_id id;
    weft_id_new(&id, 0, 0xab);
    char text[WEFT_ID_TEXT];
    weft_id_print(&id, text);
    ok(strncmp(text, "00000000-0000-7ab", 17) == 0, "the beginning of time");
    weft_id_new(&id, (((weft_usec)1 << 48) - 1) * 1000 + 999, 0);
    is_int(weft_id_time(&id), (((weft_usec)1 << 48) - 1) * 1000, "the end of time");
}

static int compare(const void *a, const void *b)
{
    return weft_id_cmp(a, b);
}

/* Of 100000 ids none is like another, and every partition gets its share. */
static void test_spread(void)
{
    enum { COUNT = 100000 };
    struct weft_id *id = calloc(COUNT, sizeof(*id));
    size_t count[256] = {0}, repeated = 0, lonely = 0;
    for (size_t i = 0; i < COUNT; i++) {
        weft_id_new(&id[i], MOMENT, -1);
        count[weft_id_partition(&id[i])]++;
    }
    qsort(id, COUNT, sizeof(*id), compare);
    for (size_t i = 1; i < COUNT; i++)
        repeated += weft_id_cmp(&id[i - 1], &id[i]) == 0;
    for (size_t i = 0; i < WEFT_LEN(count); i++)
        lonely += count[i] < COUNT / 256 / 2;
    is_int(repeated, 0, "ids do not repeat");
    is_int(lonely, 0, "no partition gets less than half of its share");
    free(id);
}

static void test_order(void)
{
    struct weft_id early, late;
    weft_id_new(&early, MOMENT, 255);
    weft_id_new(&late, MOMENT + 1000, 0);
    ok(weft_id_cmp(&early, &late) < 0 && weft_id_cmp(&late, &early) > 0, "ids sort by time first");
    is_int(weft_id_cmp(&late, &late), 0, "an id is equal to itself");
}

/* Ids of one run follow each other; where a run has no room left, a new one begins. */
static void test_next(void)
{
    enum { COUNT = 1000 };
    struct weft_id before, id;
    size_t wrong = 0, even = 0;
    weft_id_new(&before, MOMENT, 77);
    before.byte[8] = 0x80; /* room for the whole run */
    for (size_t i = 0; i < COUNT; i++) {
        weft_id_next(&id, &before);
        wrong += weft_id_cmp(&before, &id) >= 0 || weft_id_partition(&id) != 77 ||
                 weft_id_time(&id) != MOMENT / 1000 * 1000 || id.byte[6] >> 4 != 7 ||
                 id.byte[8] >> 6 != 2;
        even += id.byte[15] % 2 == 0;
        before = id;
    }
    is_int(wrong, 0, "each comes after the one before, of the same moment and partition");
    ok(even > COUNT / 4 && even < COUNT * 3 / 4, "the distance between two ids cannot be guessed");
    memset(before.byte + 8, 0xff, 8);
    before.byte[8] = 0xbf;
    before.byte[7] &= 0xf0;
    weft_id_next(&id, &before);
    ok(weft_id_partition(&id) == 77 && weft_id_time(&id) == MOMENT / 1000 * 1000 &&
           id.byte[8] >> 6 == 2 && weft_id_cmp(&id, &before) > 0,
       "where its last bits are full it comes after all the same");
    before.byte[7] |= 0x0f;
    weft_id_next(&id, &before);
    ok(weft_id_partition(&id) == 77 && weft_id_time(&id) == MOMENT / 1000 * 1000 + 1000 &&
           id.byte[6] >> 4 == 7 && id.byte[8] >> 6 == 2 && weft_id_cmp(&id, &before) > 0,
       "after the last id of a millisecond and partition comes one of the next millisecond");
}

static void test_text(void)
{
    static const struct {
        const char *name, *text;
        bool want;
    } row[] = {
        {"lower case", "018bcfe5-687b-7ab1-9def-0123456789ab", true},
        {"upper case", "018BCFE5-687B-7AB1-9DEF-0123456789AB", true},
        {"not a version 7", "00000000-0000-0000-0000-000000000000", true},
        {"nothing", "", false},
        {"too short", "018bcfe5-687b-7ab1-9def-0123456789a", false},
        {"too long", "018bcfe5-687b-7ab1-9def-0123456789abc", false},
        {"no dashes", "018bcfe5687b7ab19def0123456789abcdef", false},
        {"dash one early", "018bcfe-5687b-7ab1-9def-0123456789ab", false},
        {"dash one late", "018bcfe56-87b-7ab1-9def-0123456789ab", false},
        {"last dash missing", "018bcfe5-687b-7ab1-9def00123456789ab", false},
        {"bad letter", "018bcfe5-687b-7ab1-9def-0123456789ag", false},
        {"bad high letter", "g18bcfe5-687b-7ab1-9def-0123456789ab", false},
        {"braces", "{18bcfe5-687b-7ab1-9def-0123456789a}", false},
        {"space", " 18bcfe5-687b-7ab1-9def-0123456789ab", false},
        {"slash before the digits", "/18bcfe5-687b-7ab1-9def-0123456789ab", false},
        {"colon after the digits", ":18bcfe5-687b-7ab1-9def-0123456789ab", false},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_id id = {{0xee}};
        bool read = weft_id_parse(row[i].text, strlen(row[i].text), &id);
        ok(read == row[i].want && (read || id.byte[0] == 0xee), "parse: %s", row[i].name);
    }
    struct weft_id upper, lower;
    ok(weft_id_parse(row[0].text, 36, &lower) && weft_id_parse(row[1].text, 36, &upper) &&
           weft_id_cmp(&lower, &upper) == 0,
       "case does not matter");
    char text[WEFT_ID_TEXT];
    weft_id_print(&upper, text);
    is_str(text, row[0].text, "an id is printed in lower case");
    is_int(weft_id_partition(&upper), 0xab, "the partition can be read off the text");
}

/* The wanted bytes were computed with sha256sum over the namespace, a NUL and the key. */
static void test_key_partition(void)
{
    static const struct {
        const char *ns, *key;
        int want;
    } row[] = {
        {"default", "order-1", 0x2a},
        {"default", "order-2", 0x60},
        {"", "", 0x6e},
        {"a", "b", 0x59},
        {"ab", "", 0x96},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_int(weft_id_key_partition(row[i].ns, row[i].key), row[i].want, "partition of '%s' '%s'",
               row[i].ns, row[i].key);
}

static void test_random_sizes(void)
{
    static const size_t size[] = {1, 16, 255, 256, 257, 1024, 5000};
    for (size_t i = 0; i < WEFT_LEN(size); i++) {
        unsigned char *bytes = calloc(1, size[i] + 1);
        unsigned char seen = 0;
        for (int tries = 0; tries < 64; tries++) { /* a last byte of zero 64 times is 2^-512 */
            weft_random(bytes, size[i]);
            seen |= bytes[size[i] - 1];
        }
        ok(seen && bytes[size[i]] == 0, "%zu random bytes, all of them and no more", size[i]);
        free(bytes);
    }
}

/* Without care the child would go on with the parent's unused bytes and mint the same ids. */
static void test_fork(void)
{
    unsigned char before[16], ours[16], theirs[16] = {0};
    weft_random(before, sizeof(before));
    int fd[2];
    if (!ok(pipe(fd) == 0, "a pipe"))
        return;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        weft_random(theirs, sizeof(theirs));
        _exit(write(fd[1], theirs, sizeof(theirs)) != sizeof(theirs));
    }
    weft_random(ours, sizeof(ours));
    ok(read(fd[0], theirs, sizeof(theirs)) == sizeof(theirs), "the child tells its bytes");
    ok(memcmp(ours, theirs, sizeof(ours)) != 0, "a child does not repeat its parent");
    int status;
    ok(waitpid(child, &status, 0) == child && status == 0, "the child ends well");
    (void)close(fd[0]);
    (void)close(fd[1]);
}

static void *mint(void *ret_id)
{
    weft_id_new(ret_id, MOMENT, 0);
    return NULL;
}

static void test_threads(void)
{
    struct weft_id mine, other;
    pthread_t thread;
    (void)pthread_create(&thread, NULL, mint, &other);
    (void)pthread_join(thread, NULL);
    weft_id_new(&mine, MOMENT, 0);
    ok(weft_id_cmp(&mine, &other) != 0, "a thread does not repeat another");
}

static void test_short(void)
{
    static const char whole[] = "01932c07-5f3e-7a10-8c51-0123456789ab";
    static const struct {
        const char *text;
        bool fits, valid;
    } row[] = {
        {"0193", true, true},
        {"01932c07-5f3e", true, true},
        {"01932C075F3E7A10", true, true},
        {"01932c07-5f3e-7a10-8c51-0123456789ab", true, true},
        {"01932c075f..6789ab", true, true},
        {"01932c075f..6789AB", true, true},
        {"0193..0123456789ab", true, true},
        {"01932c075f..6789ac", false, true},
        {"0193..b", true, true},
        {"01932c08", false, true},
        {"ffff", false, true},
        {"019", false, false},
        {"", false, false},
        {"..6789ab", false, false},
        {"0193..", false, false},
        {"0193.6789ab", false, false},
        {"0193...ab", false, false},
        {"0193..6789-ab", false, false},
        {"0193..00123456789ab", false, false},
        {"0193xy", false, false},
        {"01932c07-5f3e-7a10-8c51-0123456789ab0", false, false},
        {"01932c07-5f3e-7a10-8c51-012345..6789abc", false, false},
    };
    struct weft_id id;
    char text[WEFT_ID_TEXT];
    ok(weft_id_parse(whole, strlen(whole), &id), "an id");
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct weft_id_short form = {.suffix = ""};
        bool valid = weft_id_short_parse(row[i].text, &form);
        ok(valid == row[i].valid, "'%s' is %sa short form", row[i].text,
           row[i].valid ? "" : "not ");
        bool fits = valid && weft_id_cmp(&form.low, &id) <= 0 &&
                    weft_id_cmp(&id, &form.high) <= 0 &&
                    strcmp(whole + strlen(whole) - strlen(form.suffix), form.suffix) == 0;
        ok(fits == row[i].fits, "'%s' %s the id", row[i].text,
           row[i].fits ? "fits" : "does not fit");
    }
    weft_id_short_print(&id, text);
    is_str(text, "01932c075f..6789ab", "a short id shows both ends");
    id = weft_id_at(MOMENT);
    ok(weft_id_time(&id) == MOMENT / WEFT_MS * WEFT_MS, "the least id of a moment has its time");
    id = weft_id_at(-1);
    ok(weft_id_is_zero(&id), "a moment before all others has the least id");
}

int main(void)
{
    test_short();
    test_layout();
    test_spread();
    test_order();
    test_next();
    test_text();
    test_key_partition();
    test_random_sizes();
    test_fork();
    test_threads();
    return tap_done();
}
