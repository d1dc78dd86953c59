/* SPDX-License-Identifier: Apache-2.0 */

#include "core/endpoint.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "core/spec.h"
#include "weft/weft.h"

#include <string.h>

/* ---- Numbers --------------------------------------------------------------------------------- */

static const struct number {
    const char *field;
    size_t at;
    int64_t normally, min, max;
} numbers[] = {
#define NUMBER(field, ...)                                                                         \
    {                                                                                              \
#field, offsetof(struct weft_endpoint, field), __VA_ARGS__                                 \
    }
    NUMBER(retry_after_max_ms, 3600000, 1, WEFT_HTTP_RETRY_AFTER_MAX_S *INT64_C(1000)),
    NUMBER(max_in_flight, 64, 1, WEFT_ENDPOINT_IN_FLIGHT_MAX),
    NUMBER(connect_ms, 5000, 1, WEFT_ENDPOINT_MS_MAX),
    NUMBER(first_byte_ms, 60000, 1, WEFT_ENDPOINT_MS_MAX),
    NUMBER(idle_ms, 30000, 1, WEFT_ENDPOINT_MS_MAX),
    NUMBER(total_ms, 600000, 1, WEFT_ENDPOINT_MS_MAX),
    NUMBER(response_max, 8 << 20, 1, WEFT_ENDPOINT_RESPONSE_MAX),
#undef NUMBER
};

static enum weft_rc fill_numbers(struct weft_endpoint *endpoint, struct weft_err *err)
{
    for (size_t i = 0; i < WEFT_LEN(numbers); i++) {
        const struct number *number = &numbers[i];
        int64_t *value = (int64_t *)(void *)((char *)endpoint + number->at);
        if (*value == 0)
            *value = number->normally;
        if (*value < number->min || *value > number->max)
            return weft_invalid(err, number->field, "%s is %lld, allowed are %lld to %lld",
                                number->field, (long long)*value, (long long)number->min,
                                (long long)number->max);
    }
    return WEFT_OK;
}

/* ---- Headers --------------------------------------------------------------------------------- */

/* Rules of headers blame `headers`; here another field may have it. */
static enum weft_rc blame(enum weft_rc rc, const char *field, struct weft_err *err)
{
    if (rc && err)
        err->field = field;
    return rc;
}

static enum weft_rc check_header(const struct weft_tag *header, struct weft_err *err)
{
    const struct weft_http_header one = {.name = header->key, .value = header->value};
    if (!one.name || !one.value)
        return weft_invalid(err, "headers", "a header has a name and a value");
    enum weft_rc rc = weft_http_header_check(&one, err);
    if (!rc)
        rc = weft_http_header_allowed(one.name, err);
    if (rc && weft_http_header_is(one.name, "authorization"))
        return weft_hint(err, rc, "name a secret in `secret`, and how it is sent in `auth`");
    return rc;
}

static enum weft_rc check_headers(const struct weft_endpoint *endpoint, struct weft_err *err)
{
    size_t bytes = 0;
    if (endpoint->header_count > WEFT_HTTP_HEADERS_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "headers",
                               "%zu headers, at most %d are allowed", endpoint->header_count,
                               WEFT_HTTP_HEADERS_MAX);
    for (size_t i = 0; i < endpoint->header_count; i++) {
        const struct weft_tag *header = &endpoint->headers[i];
        enum weft_rc rc = check_header(header, err);
        if (rc)
            return rc;
        for (size_t k = 0; k < i; k++)
            if (weft_http_header_is(endpoint->headers[k].key, header->key))
                return weft_invalid(err, "headers", "the header %s is given twice", header->key);
        bytes += strlen(header->key) + strlen(header->value);
    }
    if (bytes > WEFT_HTTP_HEADERS_BYTES)
        return weft_fail_field(err, WEFT_TOO_LARGE, "headers",
                               "the headers have %zu bytes, at most %d are allowed", bytes,
                               WEFT_HTTP_HEADERS_BYTES);
    return WEFT_OK;
}

/* A header that weft fills in must not be among those that the endpoint sets as they are. */
static enum weft_rc check_apart(const struct weft_endpoint *endpoint, const char *name,
                                const char *field, struct weft_err *err)
{
    for (size_t i = 0; i < endpoint->header_count; i++)
        if (weft_http_header_is(endpoint->headers[i].key, name))
            return weft_invalid(err, field, "the header %s is among `headers` too", name);
    return WEFT_OK;
}

static enum weft_rc check_idempotency(const struct weft_endpoint *endpoint, struct weft_err *err)
{
    static const char field[] = "idempotency_header";
    const struct weft_http_header header = {.name = endpoint->idempotency_header, .value = ""};
    if (!header.name)
        return WEFT_OK;
    enum weft_rc rc = weft_http_header_check(&header, err);
    if (!rc)
        rc = weft_http_header_allowed(header.name, err);
    return rc ? blame(rc, field, err) : check_apart(endpoint, header.name, field, err);
}

/* ---- The secret ------------------------------------------------------------------------------ */

bool weft_secret_name_valid(const char *name)
{
    size_t size = strlen(name);
    return size > 0 && size <= WEFT_SECRET_NAME_MAX && name[0] != '.' &&
           weft_word_size(name, "_.-") == size;
}

/* "Name: before{secret}after", cut into its parts. */
static enum weft_rc read_auth(const char *auth, struct weft_arena *arena,
                              struct weft_endpoint_auth *ret_auth, struct weft_err *err)
{
    static const char mark[] = "{secret}",
                      form[] = "for example \"Authorization: Bearer {secret}\"";
    const char *colon = strchr(auth, ':'), *at = strstr(auth, mark);
    if (!colon || colon[1] != ' ' || !at || at < colon || strstr(at + 1, mark))
        return weft_hint(err,
                         weft_invalid(err, "auth",
                                      "auth must be the name of a header, a colon, a space and a "
                                      "value that has {secret} once"),
                         form);
    if (strlen(auth) > WEFT_ENDPOINT_AUTH_MAX)
        return weft_fail_field(err, WEFT_TOO_LARGE, "auth", "auth has %zu bytes, allowed are %d",
                               strlen(auth), WEFT_ENDPOINT_AUTH_MAX);
    const struct weft_http_header header = {
        .name = weft_arena_printf(arena, "%.*s", (int)(colon - auth), auth), .value = colon + 2};
    enum weft_rc rc = weft_http_header_check(&header, err);
    if (!rc && !weft_http_header_is(header.name, "authorization"))
        rc = weft_http_header_allowed(header.name, err);
    if (rc)
        return blame(rc, "auth", err);
    ret_auth->name = header.name;
    ret_auth->before = weft_arena_printf(arena, "%.*s", (int)(at - header.value), header.value);
    ret_auth->after = at + strlen(mark);
    return WEFT_OK;
}

static enum weft_rc check_secret(struct weft_endpoint *endpoint, struct weft_arena *arena,
                                 const struct weft_http_url *url,
                                 struct weft_endpoint_auth *ret_auth, struct weft_err *err)
{
    if (!endpoint->secret)
        return endpoint->auth ? weft_invalid(err, "auth",
                                             "auth says how a secret is sent, and "
                                             "`secret` names none")
                              : WEFT_OK;
    if (!weft_secret_name_valid(endpoint->secret))
        return weft_invalid(
            err, "secret", "the name of a secret is 1 to %d of A-Z a-z 0-9 _ . -, and no dot first",
            WEFT_SECRET_NAME_MAX);
    if (!url->tls && !endpoint->private_addresses)
        return weft_invalid(err, "url", "a secret goes to a public server over https only");
    if (!endpoint->auth)
        endpoint->auth = "Authorization: Bearer {secret}";
    enum weft_rc rc = read_auth(endpoint->auth, arena, ret_auth, err);
    if (!rc)
        rc = check_apart(endpoint, ret_auth->name, "auth", err);
    if (!rc && endpoint->idempotency_header &&
        weft_http_header_is(endpoint->idempotency_header, ret_auth->name))
        rc = weft_invalid(err, "idempotency_header", "the header %s carries the secret",
                          ret_auth->name);
    return rc;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static enum weft_rc read_url(struct weft_endpoint *endpoint, struct weft_arena *arena,
                             struct weft_http_url *ret_url, struct weft_err *err)
{
    if (!endpoint->url || !*endpoint->url)
        return weft_invalid(err, "url", "url is missing");
    enum weft_rc rc = weft_http_base_read(endpoint->url, "url", arena, ret_url, err);
    if (rc)
        return rc;
    const char *why = ret_url->address.size ? weft_address_refused(&ret_url->address) : NULL;
    if (why && !endpoint->private_addresses)
        return weft_hint(
            err,
            weft_invalid(err, "url", "the address %s is not public: it is %s", ret_url->host, why),
            "only an endpoint that is `private` reaches such addresses");
    endpoint->url = ret_url->text;
    return WEFT_OK;
}

static enum weft_rc read_retry(struct weft_endpoint *endpoint, struct weft_arena *arena,
                               struct weft_http_retry *ret_retry, struct weft_err *err)
{
    struct weft_json value;
    const char *text = endpoint->retry;
    if (text && weft_json_check(text, strlen(text), &value, NULL))
        return weft_invalid(err, "retry", "retry must be a list of statuses, like [429,\"5xx\"]");
    enum weft_rc rc = weft_http_retry_read(text ? &value : NULL, ret_retry, err);
    if (!rc)
        endpoint->retry = weft_http_retry_text(ret_retry, arena);
    return rc;
}

enum weft_rc weft_endpoint_resolve(const struct weft_endpoint *given, struct weft_arena *arena,
                                   struct weft_endpoint *ret_endpoint,
                                   struct weft_endpoint_parts *ret_parts, struct weft_err *err)
{
    struct weft_endpoint endpoint = *given;
    struct weft_endpoint_parts parts = {0};
    enum weft_rc rc = weft_name_check(endpoint.name, "endpoint", err);
    if (!rc)
        rc = read_url(&endpoint, arena, &parts.url, err);
    if (!rc)
        rc = check_headers(&endpoint, err);
    if (!rc)
        rc = check_idempotency(&endpoint, err);
    if (!rc)
        rc = check_secret(&endpoint, arena, &parts.url, &parts.auth, err);
    if (!rc)
        rc = read_retry(&endpoint, arena, &parts.retry, err);
    if (!rc)
        rc = fill_numbers(&endpoint, err);
    if (rc)
        return rc;
    *ret_endpoint = endpoint;
    if (ret_parts)
        *ret_parts = parts;
    return WEFT_OK;
}
