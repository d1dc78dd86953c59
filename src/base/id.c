/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Random bytes are read from the kernel into a pool per thread, so that a batch of ids costs few
 * system calls. A pool belongs to one process: a child discards a pool filled before its fork().
 */

#include "base/id.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { POOL_BYTES = 1024 };

struct pool {
    uint64_t forks; /* weft_forks() when it was filled */
    size_t left;    /* unused bytes, at the end */
    uint8_t byte[POOL_BYTES];
};

static _Thread_local struct pool pool;
static pthread_once_t digest_once = PTHREAD_ONCE_INIT;
static EVP_MD *digest; /* looked up once: a lookup costs more than hashing a key */

static void from_kernel(uint8_t *to, size_t size)
{
    while (size > 0) {
        ssize_t got = getrandom(to, size, 0);
        assert(got > 0 || errno == EINTR);
        if (got > 0) {
            to += got;
            size -= (size_t)got;
        }
    }
}

void weft_random(void *ret_bytes, size_t size)
{
    if (size > POOL_BYTES / 4) {
        from_kernel(ret_bytes, size);
        return;
    }
    uint64_t forks = weft_forks();
    if (pool.left < size || pool.forks != forks) {
        from_kernel(pool.byte, POOL_BYTES);
        pool.left = POOL_BYTES;
        pool.forks = forks;
    }
    uint8_t *from = pool.byte + (POOL_BYTES - pool.left);
    memcpy(ret_bytes, from, size);
    explicit_bzero(from, size); /* the caller may use it as a secret */
    pool.left -= size;
}

void weft_id_new(struct weft_id *ret_id, weft_usec now_us, int partition)
{
    assert(partition >= -1 && partition <= 255);
    assert(now_us >= 0 && now_us / WEFT_MS < (int64_t)1 << 48);
    uint64_t ms = (uint64_t)(now_us / WEFT_MS);
    uint8_t random[10];
    weft_random(random, sizeof(random));
    if (partition >= 0)
        random[0] = (uint8_t)partition;

    for (int i = 0; i < 6; i++)
        ret_id->byte[i] = (uint8_t)(ms >> (40 - 8 * i));
    ret_id->byte[6] = (uint8_t)(0x70 | random[0] >> 4);
    ret_id->byte[7] = (uint8_t)(random[0] << 4 | (random[1] & 0x0f));
    memcpy(ret_id->byte + 8, random + 2, 8);
    ret_id->byte[8] = (uint8_t)(0x80 | (ret_id->byte[8] & 0x3f));
}

void weft_id_next(struct weft_id *ret_id, const struct weft_id *before)
{
    uint64_t tail = before->byte[8] & 0x3f;
    for (int i = 9; i < 16; i++)
        tail = tail << 8 | before->byte[i];
    uint32_t distance;
    weft_random(&distance, sizeof(distance));
    tail += (uint64_t)distance + 1;
    *ret_id = *before;
    if (tail >> 62) {
        /* The carry goes into the random bits beside the partition, from there into the time. */
        tail = distance;
        if ((before->byte[7] & 0x0f) == 0x0f)
            weft_id_new(ret_id, weft_id_time(before) + WEFT_MS, weft_id_partition(before));
        else
            ret_id->byte[7]++;
    }
    for (int i = 15; i > 8; i--, tail >>= 8)
        ret_id->byte[i] = (uint8_t)tail;
    ret_id->byte[8] = (uint8_t)(0x80 | tail);
}

int weft_id_partition(const struct weft_id *id)
{
    return (id->byte[6] & 0x0f) << 4 | id->byte[7] >> 4;
}

weft_usec weft_id_time(const struct weft_id *id)
{
    uint64_t ms = 0;
    for (int i = 0; i < 6; i++)
        ms = ms << 8 | id->byte[i];
    return (weft_usec)ms * WEFT_MS;
}

int weft_id_cmp(const struct weft_id *a, const struct weft_id *b)
{
    return memcmp(a->byte, b->byte, sizeof(a->byte));
}

int weft_id_order(const void *a, const void *b)
{
    return weft_id_cmp(a, b);
}

bool weft_id_is_zero(const struct weft_id *id)
{
    static const struct weft_id zero;
    return weft_id_cmp(id, &zero) == 0;
}

static bool dash_before(size_t byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

WEFT_EXPORT void weft_id_print(const struct weft_id *id, char ret_text[WEFT_ID_TEXT])
{
    static const char hex[] = "0123456789abcdef";
    char *to = ret_text;
    for (size_t i = 0; i < sizeof(id->byte); i++) {
        if (dash_before(i))
            *to++ = '-';
        *to++ = hex[id->byte[i] >> 4];
        *to++ = hex[id->byte[i] & 0x0f];
    }
    *to = '\0';
}

WEFT_EXPORT bool weft_id_parse(const char *text, size_t size, struct weft_id *ret_id)
{
    if (size != WEFT_ID_TEXT - 1)
        return false;
    struct weft_id id;
    for (size_t i = 0; i < sizeof(id.byte); i++) {
        if (dash_before(i) && *text++ != '-')
            return false;
        int high = weft_hex_digit(text[0]), low = weft_hex_digit(text[1]);
        if (high < 0 || low < 0)
            return false;
        id.byte[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    *ret_id = id;
    return true;
}

struct weft_id weft_id_at(weft_usec moment_us)
{
    const uint64_t last_ms = ((uint64_t)1 << 48) - 1;
    uint64_t ms = moment_us < 0 ? 0 : (uint64_t)(moment_us / WEFT_MS);
    if (ms > last_ms)
        ms = last_ms;
    struct weft_id id = {0};
    for (int i = 0; i < 6; i++)
        id.byte[i] = (uint8_t)(ms >> (40 - 8 * i));
    return id;
}

static void set_digit(struct weft_id *id, size_t at, int digit)
{
    uint8_t *byte = &id->byte[at / 2];
    *byte = at % 2 ? (uint8_t)((*byte & 0xf0) | digit) : (uint8_t)((*byte & 0x0f) | digit << 4);
}

bool weft_id_short_parse(const char *text, struct weft_id_short *ret_short)
{
    struct weft_id_short out = {.suffix = ""};
    enum { DIGITS = 2 * sizeof(out.low.byte), SUFFIX_MAX = sizeof(out.suffix) - 1 };
    memset(&out.high, 0xff, sizeof(out.high));
    size_t digits = 0, tail = 0;
    for (; *text && *text != '.'; text++) {
        int digit = weft_hex_digit(*text);
        if (*text == '-')
            continue;
        if (digit < 0 || digits == DIGITS)
            return false;
        set_digit(&out.low, digits, digit);
        set_digit(&out.high, digits++, digit);
    }
    if (digits < WEFT_ID_PREFIX_MIN)
        return false;
    if (*text && (text[0] != '.' || text[1] != '.' || !text[2]))
        return false;
    for (text += *text ? 2 : 0; *text; text++) {
        int digit = weft_hex_digit(*text);
        if (digit < 0 || tail == SUFFIX_MAX || digits + tail == DIGITS)
            return false;
        out.suffix[tail++] = "0123456789abcdef"[digit];
    }
    *ret_short = out;
    return true;
}

void weft_id_short_print(const struct weft_id *id, char ret_text[WEFT_ID_SHORT_TEXT])
{
    const uint8_t *byte = id->byte;
    (void)snprintf(ret_text, WEFT_ID_SHORT_TEXT, "%02x%02x%02x%02x%02x..%02x%02x%02x", byte[0],
                   byte[1], byte[2], byte[3], byte[4], byte[13], byte[14], byte[15]);
}

static void find_digest(void)
{
    digest = EVP_MD_fetch(NULL, "SHA256", NULL);
}

int weft_id_key_partition(const char *ns, const char *key)
{
    (void)pthread_once(&digest_once, find_digest);
    assert(digest);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context)
        weft_oom(0);
    uint8_t hash[EVP_MAX_MD_SIZE];
    bool done = EVP_DigestInit_ex2(context, digest, NULL) &&
                EVP_DigestUpdate(context, ns, strlen(ns) + 1) && /* with its NUL */
                EVP_DigestUpdate(context, key, strlen(key)) &&
                EVP_DigestFinal_ex(context, hash, NULL);
    EVP_MD_CTX_free(context);
    assert(done);
    return hash[0];
}

size_t weft_ids_sort(struct weft_id *id, size_t count)
{
    size_t kept = 0;
    if (count > 1)
        qsort(id, count, sizeof(*id), weft_id_order);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || weft_id_cmp(&id[kept - 1], &id[i]) != 0)
            id[kept++] = id[i];
    return kept;
}
