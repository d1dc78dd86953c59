/* SPDX-License-Identifier: Apache-2.0 */

#include "core/http_policy.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/moment.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- Which statuses are worth another attempt ------------------------------------------------ */

enum { CLASS = 100 };

static_assert((WEFT_RETRY_STATUS_MAX - WEFT_RETRY_STATUS_MIN) / 64 <
                  WEFT_LEN(((struct weft_http_retry *)0)->bit),
              "a status is a bit");

static bool in_range(int64_t status)
{
    return status >= WEFT_RETRY_STATUS_MIN && status <= WEFT_RETRY_STATUS_MAX;
}

static void add(struct weft_http_retry *retry, int64_t status)
{
    size_t at = (size_t)(status - WEFT_RETRY_STATUS_MIN);
    retry->bit[at / 64] |= (uint64_t)1 << at % 64;
}

static void add_class(struct weft_http_retry *retry, int64_t first)
{
    for (int64_t status = first; status < first + CLASS; status++)
        add(retry, status);
}

bool weft_http_retry_has(const struct weft_http_retry *retry, int status)
{
    size_t at = (size_t)(status - WEFT_RETRY_STATUS_MIN);
    return in_range(status) && retry->bit[at / 64] >> at % 64 & 1;
}

static bool add_item(struct weft_http_retry *retry, const struct weft_json *item)
{
    static const char *const name[] = {"3xx", "4xx", "5xx"};
    int64_t status;
    for (size_t i = 0; i < WEFT_LEN(name); i++)
        if (weft_json_is(item, name[i])) {
            add_class(retry, WEFT_RETRY_STATUS_MIN + (int64_t)i * CLASS);
            return true;
        }
    if (!weft_json_i64(item, &status) || !in_range(status))
        return false;
    add(retry, status);
    return true;
}

enum weft_rc weft_http_retry_read(const struct weft_json *value, struct weft_http_retry *ret_retry,
                                  struct weft_err *err)
{
    struct weft_http_retry retry = {0};
    if (!value || value->kind == WEFT_JSON_NULL) {
        add(&retry, 408);
        add(&retry, 425);
        add(&retry, 429);
        add_class(&retry, 500);
        *ret_retry = retry;
        return WEFT_OK;
    }
    if (value->kind != WEFT_JSON_ARRAY)
        return weft_invalid(err, "retry", "retry must be a list of statuses, like [429,\"5xx\"]");
    struct weft_json_iter item;
    weft_json_iter_init(&item, value);
    while (weft_json_next(&item))
        if (!add_item(&retry, &item.value))
            return weft_invalid(err, "retry",
                                "%.*s in retry is neither a status from %d to %d nor one of "
                                "\"3xx\", \"4xx\", \"5xx\"",
                                (int)(item.value.size < 20 ? item.value.size : 20), item.value.text,
                                WEFT_RETRY_STATUS_MIN, WEFT_RETRY_STATUS_MAX);
    *ret_retry = retry;
    return WEFT_OK;
}

static bool has_class(const struct weft_http_retry *retry, int first)
{
    int status = first;
    while (status < first + CLASS && weft_http_retry_has(retry, status))
        status++;
    return status == first + CLASS;
}

const char *weft_http_retry_text(const struct weft_http_retry *retry, struct weft_arena *arena)
{
    enum { TEXT_MAX = 2048 }; /* 300 numbers */
    struct weft_buf buf;
    struct weft_json_writer out;
    weft_buf_init(&buf, TEXT_MAX);
    weft_json_writer_init(&out, &buf);
    weft_json_begin_array(&out);
    for (int first = WEFT_RETRY_STATUS_MIN; first < WEFT_RETRY_STATUS_MAX; first += CLASS) {
        if (has_class(retry, first)) {
            char name[] = "0xx";
            name[0] = (char)('0' + first / CLASS);
            weft_json_put_text(&out, name);
            continue;
        }
        for (int status = first; status < first + CLASS; status++)
            if (weft_http_retry_has(retry, status))
                weft_json_put_i64(&out, status);
    }
    weft_json_end_array(&out);
    assert(!buf.full);
    const char *text = weft_arena_strdup(arena, buf.data);
    weft_buf_done(&buf);
    return text;
}

/* ---- What an end means ----------------------------------------------------------------------- */

/* Of each failure: its class, what the breaker learns, and why it is never repeated, if it is. */
static const struct {
    const char *word;
    enum weft_breaker_end health;
    const char *why;
} row_of[WEFT_HTTP_FAILURES] = {
    [WEFT_HTTP_RESOLVE] = {"http_resolve", WEFT_BREAKER_BAD, NULL},
    [WEFT_HTTP_CONNECT] = {"http_connect", WEFT_BREAKER_BAD, NULL},
    [WEFT_HTTP_TLS] = {"http_tls", WEFT_BREAKER_BAD, NULL},
    [WEFT_HTTP_UNTRUSTED] = {"http_tls", WEFT_BREAKER_BAD, "the certificate is not trusted"},
    [WEFT_HTTP_TIMEOUT] = {"http_timeout", WEFT_BREAKER_BAD, NULL},
    [WEFT_HTTP_BROKEN] = {"http_broken", WEFT_BREAKER_BAD, NULL},
    [WEFT_HTTP_PROTOCOL] = {"http_protocol", WEFT_BREAKER_BAD, NULL},
    [WEFT_HTTP_REFUSED] = {"http_refused", WEFT_BREAKER_VOID, "weft does not call this address"},
    [WEFT_HTTP_REDIRECTED] = {"http_redirect", WEFT_BREAKER_VOID, "the redirect is not followed"},
    [WEFT_HTTP_OVERSIZED] = {"http_too_large", WEFT_BREAKER_GOOD, "the answer is too large"},
};

/* The server has not acted on the request: RFC 9110, 15.5.9; RFC 8470, 5.2; RFC 6585, 4. */
static bool is_untouched(int status)
{
    return status == 408 || status == 425 || status == 429;
}

static bool may_repeat(const struct weft_http_ended *ended)
{
    static const char *const idempotent[] = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};
    if (!ended->sent || ended->idempotent)
        return true;
    if (ended->failure == WEFT_HTTP_ANSWERED && is_untouched(ended->status))
        return true;
    for (size_t i = 0; i < WEFT_LEN(idempotent); i++)
        if (strcmp(ended->method, idempotent[i]) == 0)
            return true;
    return false;
}

static enum weft_breaker_end health_of(int status)
{
    if (status >= 500)
        return WEFT_BREAKER_BAD;
    return is_untouched(status) ? WEFT_BREAKER_VOID : WEFT_BREAKER_GOOD;
}

struct weft_http_decision weft_http_decide(const struct weft_http_retry *retry,
                                           const struct weft_http_ended *ended)
{
    struct weft_http_decision made = {.verdict = WEFT_HTTP_FAIL};
    assert((unsigned)ended->failure < WEFT_HTTP_FAILURES);
    if (ended->failure != WEFT_HTTP_ANSWERED) {
        made.health = row_of[ended->failure].health;
        made.why = row_of[ended->failure].why;
        (void)snprintf(made.error_class, sizeof(made.error_class), "%s",
                       row_of[ended->failure].word);
    } else {
        made.health = health_of(ended->status);
        if (ended->status >= 200 && ended->status < 300) {
            made.verdict = WEFT_HTTP_SUCCEED;
            return made;
        }
        (void)snprintf(made.error_class, sizeof(made.error_class), "http_%d", ended->status);
        if (!weft_http_retry_has(retry, ended->status))
            made.why = "the status is not one that is tried again";
    }
    if (!made.why && !may_repeat(ended))
        made.why = "the request may have had its effect, and must not have it twice";
    if (!made.why)
        made.verdict = WEFT_HTTP_RETRY;
    return made;
}

/* ---- Retry-After ----------------------------------------------------------------------------- */

static const char days[] = "Sunday\0Monday\0Tuesday\0Wednesday\0Thursday\0Friday\0Saturday\0";
static const char months[] = "Jan\0Feb\0Mar\0Apr\0May\0Jun\0Jul\0Aug\0Sep\0Oct\0Nov\0Dec\0";

struct date {
    int year, month, day, hour, minute, second;
};

/* A text that is read from its front; `good` false: it was not what was asked for. */
struct cursor {
    const char *at, *end;
    bool good;
};

static void take(struct cursor *in, const char *text)
{
    size_t size = strlen(text);
    if (!in->good || (size_t)(in->end - in->at) < size || memcmp(in->at, text, size) != 0)
        in->good = false;
    else
        in->at += size;
}

/* The place of a word in a list; `most` characters of each are written, 0: all. */
static int take_word(struct cursor *in, const char *list, size_t most)
{
    int place = 0;
    for (const char *word = list; *word; word += strlen(word) + 1, place++) {
        size_t size = most ? most : strlen(word);
        if (in->good && (size_t)(in->end - in->at) >= size && memcmp(in->at, word, size) == 0) {
            in->at += size;
            return place;
        }
    }
    in->good = false;
    return 0;
}

static int take_digits(struct cursor *in, int digits)
{
    int number = 0;
    for (; digits > 0; digits--) {
        if (!in->good || in->at == in->end || *in->at < '0' || *in->at > '9') {
            in->good = false;
            return 0;
        }
        number = number * 10 + (*in->at++ - '0');
    }
    return number;
}

static void take_time(struct cursor *in, struct date *date)
{
    date->hour = take_digits(in, 2);
    take(in, ":");
    date->minute = take_digits(in, 2);
    take(in, ":");
    date->second = take_digits(in, 2);
}

/* Sun, 06 Nov 1994 08:49:37 GMT */
static struct date take_fixed(struct cursor *in)
{
    struct date date;
    (void)take_word(in, days, 3);
    take(in, ", ");
    date.day = take_digits(in, 2);
    take(in, " ");
    date.month = take_word(in, months, 0) + 1;
    take(in, " ");
    date.year = take_digits(in, 4);
    take(in, " ");
    take_time(in, &date);
    take(in, " GMT");
    return date;
}

/* Sunday, 06-Nov-94 08:49:37 GMT */
static struct date take_rfc850(struct cursor *in)
{
    struct date date;
    (void)take_word(in, days, 0);
    take(in, ", ");
    date.day = take_digits(in, 2);
    take(in, "-");
    date.month = take_word(in, months, 0) + 1;
    take(in, "-");
    date.year = take_digits(in, 2); /* the century is the caller's */
    take(in, " ");
    take_time(in, &date);
    take(in, " GMT");
    return date;
}

/* Sun Nov  6 08:49:37 1994 */
static struct date take_asctime(struct cursor *in)
{
    struct date date;
    (void)take_word(in, days, 3);
    take(in, " ");
    date.month = take_word(in, months, 0) + 1;
    take(in, " ");
    bool one = in->at < in->end && *in->at == ' ';
    take(in, one ? " " : "");
    date.day = take_digits(in, one ? 1 : 2);
    take(in, " ");
    take_time(in, &date);
    take(in, " ");
    date.year = take_digits(in, 4);
    return date;
}

/* The moment of a date, by way of the calendar of base/moment.h. A leap second is the next one. */
static bool moment_of(const struct date *date, weft_usec *ret_us)
{
    char text[64];
    int second = date->second == 60 ? 59 : date->second;
    (void)snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02dZ", date->year, date->month,
                   date->day, date->hour, date->minute, second);
    if (!weft_moment_parse(text, strlen(text), ret_us))
        return false;
    *ret_us += (date->second - second) * WEFT_SECOND;
    return true;
}

/* The year that has these last two digits and lies at most 50 years ahead. */
static int full_year(int year, weft_usec now_us)
{
    char now[WEFT_MOMENT_TEXT];
    weft_moment_print(now_us, now);
    int this_year = take_digits(&(struct cursor){.at = now, .end = now + 4, .good = true}, 4);
    year += this_year - this_year % 100;
    return year > this_year + 50 ? year - 100 : year + 50 < this_year ? year + 100 : year;
}

static bool read_date(const char *text, size_t size, weft_usec now_us, weft_usec *ret_us)
{
    struct date (*const form[])(struct cursor *) = {take_fixed, take_rfc850, take_asctime};
    for (size_t i = 0; i < WEFT_LEN(form); i++) {
        struct cursor in = {.at = text, .end = text + size, .good = true};
        struct date date = form[i](&in);
        if (!in.good || in.at != in.end)
            continue;
        if (form[i] == take_rfc850)
            date.year = full_year(date.year, now_us);
        return moment_of(&date, ret_us);
    }
    return false;
}

/* Digits alone; a number beyond the ceiling is the ceiling. */
static bool read_seconds(const char *text, size_t size, weft_usec *ret_us)
{
    weft_usec seconds = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        seconds = seconds * 10 + (text[i] - '0');
        if (seconds > WEFT_HTTP_RETRY_AFTER_MAX_S)
            seconds = WEFT_HTTP_RETRY_AFTER_MAX_S;
    }
    *ret_us = seconds * WEFT_SECOND;
    return size > 0;
}

weft_usec weft_http_retry_after(const char *text, size_t size, weft_usec now_us)
{
    const weft_usec most_us = WEFT_HTTP_RETRY_AFTER_MAX_S * WEFT_SECOND;
    weft_usec wait_us, until_us;
    for (; size > 0 && (*text == ' ' || *text == '\t'); size--)
        text++;
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t'))
        size--;
    if (!read_seconds(text, size, &wait_us)) {
        if (!read_date(text, size, now_us, &until_us))
            return -1;
        wait_us = until_us > now_us ? until_us - now_us : 0;
    }
    return wait_us < most_us ? wait_us : most_us;
}

void weft_idempotency_key(const struct weft_id *id, char ret_text[WEFT_IDEMPOTENCY_KEY_TEXT])
{
    char text[WEFT_ID_TEXT];
    weft_id_print(id, text);
    (void)snprintf(ret_text, WEFT_IDEMPOTENCY_KEY_TEXT, "weft-%s", text);
}
