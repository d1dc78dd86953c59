/* SPDX-License-Identifier: Apache-2.0 */

/* Signal tokens: signed fields are read back, and a token with any change is refused. */

#include "base/id.h"
#include "core/signal_token.h"
#include "tap.h"

#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static uint8_t secret[WEFT_SIGNING_SECRET];

static struct weft_signal_token some_token(void)
{
    struct weft_signal_token token = {.key = 7, .epoch = 3};
    weft_id_new(&token.waitpoint, 1000, -1);
    weft_id_new(&token.execution, 2000, -1);
    return token;
}

static bool believed(const char *text)
{
    struct weft_signal_token token;
    uint8_t mac[WEFT_SIGNAL_MAC];
    return weft_signal_token_parse(text, &token, mac) &&
           weft_signal_token_verify(&token, mac, secret);
}

static void test_round_trip(void)
{
    struct weft_signal_token token = some_token(), back;
    char text[WEFT_SIGNAL_TOKEN_TEXT], again[WEFT_SIGNAL_TOKEN_TEXT];
    uint8_t mac[WEFT_SIGNAL_MAC];
    weft_signal_token_print(&token, secret, text);
    weft_signal_token_print(&token, secret, again);
    ok(strcmp(text, again) == 0, "a token printed twice is the same text");
    ok(strlen(text) == WEFT_SIGNAL_TOKEN_TEXT - 1, "a token has 103 characters");
    ok(strspn(text, letters) == strlen(text), "all of them can stand in a URL");
    ok(weft_signal_token_parse(text, &back, mac), "a printed token is one in form");
    ok(back.key == 7 && back.epoch == 3, "key and epoch come back");
    ok(weft_id_cmp(&back.waitpoint, &token.waitpoint) == 0 &&
           weft_id_cmp(&back.execution, &token.execution) == 0,
       "waitpoint and execution come back");
    ok(weft_signal_token_verify(&back, mac, secret), "the signature is good");
}

/* Each character replaced by each other one: no bit of a token is without meaning. */
static void test_every_character_counts(void)
{
    struct weft_signal_token token = some_token();
    char text[WEFT_SIGNAL_TOKEN_TEXT];
    weft_signal_token_print(&token, secret, text);
    size_t tried = 0, wrong = 0;
    for (size_t at = 0; text[at]; at++) {
        char kept = text[at];
        for (const char *letter = letters; *letter; letter++) {
            if (*letter == kept)
                continue;
            text[at] = *letter;
            tried++;
            wrong += believed(text);
        }
        text[at] = kept;
    }
    ok(tried == (size_t)103 * 63 && wrong == 0, "no token with one other character is believed");
    ok(believed(text), "the token itself is believed");
}

static void test_length(void)
{
    struct weft_signal_token token = some_token();
    char text[WEFT_SIGNAL_TOKEN_TEXT + 8];
    weft_signal_token_print(&token, secret, text);
    size_t size = strlen(text), wrong = 0;
    char kept[WEFT_SIGNAL_TOKEN_TEXT];
    memcpy(kept, text, sizeof(kept));
    for (size_t cut = 0; cut < size; cut++) {
        text[cut] = '\0';
        wrong += believed(text);
        text[cut] = kept[cut];
    }
    ok(wrong == 0, "no beginning of a token is believed");
    memcpy(text + size, "A", 2);
    ok(!believed(text), "a token with one character more is not believed");
    memcpy(text + size, "AAAA", 5);
    ok(!believed(text), "a token with four characters more is not believed");
    ok(!believed("") && !believed(NULL) && !believed("signal_") && !believed("signal_="),
       "texts that are no tokens are not believed");
}

/* The signature of one token under the facts of another, and under another secret. */
static void test_facts_of_another(void)
{
    struct weft_signal_token token = some_token(), other;
    char text[WEFT_SIGNAL_TOKEN_TEXT];
    uint8_t mac[WEFT_SIGNAL_MAC], secret_of_other[WEFT_SIGNING_SECRET];
    weft_signal_token_print(&token, secret, text);
    ok(weft_signal_token_parse(text, &token, mac), "the token is one in form");
    other = token;
    other.key++;
    ok(!weft_signal_token_verify(&other, mac, secret), "the token is not good for another key");
    other = token;
    other.epoch++;
    ok(!weft_signal_token_verify(&other, mac, secret), "the token is not good for another epoch");
    other = token;
    weft_id_next(&other.waitpoint, &token.waitpoint);
    ok(!weft_signal_token_verify(&other, mac, secret),
       "the token is not good for another waitpoint");
    other = token;
    weft_id_next(&other.execution, &token.execution);
    ok(!weft_signal_token_verify(&other, mac, secret),
       "the token is not good for another execution");
    memcpy(secret_of_other, secret, sizeof(secret));
    secret_of_other[31] ^= 1;
    ok(!weft_signal_token_verify(&token, mac, secret_of_other),
       "the token is not good for another secret");
}

int main(void)
{
    weft_random(secret, sizeof(secret));
    test_round_trip();
    test_every_character_counts();
    test_length();
    test_facts_of_another();
    return tap_done();
}
