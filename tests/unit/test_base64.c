/* SPDX-License-Identifier: Apache-2.0 */

/* Base64: the vectors of RFC 4648, every length, and what is refused. */

#include "base/str.h"
#include "tap.h"

struct vector {
    const char *data, *text, *url;
    size_t size;
};

static void test_vectors(void)
{
    static const struct vector row[] = {
        {"", "", "", 0},
        {"f", "Zg==", "Zg", 1},
        {"fo", "Zm8=", "Zm8", 2},
        {"foo", "Zm9v", "Zm9v", 3},
        {"foob", "Zm9vYg==", "Zm9vYg", 4},
        {"fooba", "Zm9vYmE=", "Zm9vYmE", 5},
        {"foobar", "Zm9vYmFy", "Zm9vYmFy", 6},
        {"\xfb\xff\xbf", "+/+/", "-_-_", 3},
        {"\0", "AA==", "AA", 1},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        char text[16], data[16];
        size_t size = 99;
        is_int(weft_base64_encode(row[i].data, row[i].size, text), strlen(row[i].text),
               "'%s' has its length", row[i].text);
        is_str(text, row[i].text, "encoded as '%s'", row[i].text);
        is_int(weft_base64url(row[i].data, row[i].size, text), strlen(row[i].url),
               "'%s' has its length", row[i].url);
        is_str(text, row[i].url, "the form for URLs is '%s'", row[i].url);
        ok(weft_base64_decode(row[i].text, strlen(row[i].text), data, &size) &&
               size == row[i].size && memcmp(data, row[i].data, size) == 0,
           "'%s' decodes to the same", row[i].text);
        ok(weft_base64url_decode(row[i].url, strlen(row[i].url), data, &size) &&
               size == row[i].size && memcmp(data, row[i].data, size) == 0,
           "the form for URLs '%s' decodes to the same", row[i].url);
    }
}

static void test_refused(void)
{
    static const char *const row[] = {
        "Z",    "Zg",    "Zg=",  "Zm9vYg", "====", "=g==",  "Z===",     "Zg=g",     "Zh==",
        "Zm9=", "Zm9v=", "Z g=", "Zg==\n", "-_-_", "Zm9v!", "Zg==Zg==", "Zm8=Zm9v", "\xc3\xa4==",
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        char data[16];
        size_t size = 99;
        ok(!weft_base64_decode(row[i], strlen(row[i]), data, &size) && size == 99, "refused: %zu",
           i);
    }
    char data[16];
    size_t size;
    ok(!weft_base64_decode("Zm\0v", 4, data, &size), "a NUL is in no alphabet");
    static const char *const url[] = {"Z", "Zm9vY", "Zg==", "Zm8=", "+/+/", "Zh", "Zm9", "Z g"};
    for (size_t i = 0; i < WEFT_LEN(url); i++)
        ok(!weft_base64url_decode(url[i], strlen(url[i]), data, &size),
           "the form for URLs refuses '%s'", url[i]);
}

static void test_lengths(void)
{
    uint8_t data[256], back[260];
    char text[WEFT_BASE64_SIZE(sizeof(data)) + 1];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 167 + 13);
    size_t wrong = 0;
    for (size_t size = 0; size <= sizeof(data); size++) {
        size_t made = weft_base64_encode(data, size, text), got = 0;
        bool same = made == WEFT_BASE64_SIZE(size) && strlen(text) == made &&
                    weft_base64_decode(text, made, back, &got) && got == size &&
                    memcmp(back, data, size) == 0;
        wrong += !same;
    }
    is_int(wrong, 0, "every length comes back");
}

int main(void)
{
    test_vectors();
    test_refused();
    test_lengths();
    return tap_done();
}
