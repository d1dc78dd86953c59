/* SPDX-License-Identifier: Apache-2.0 */

/* Endpoints of outgoing HTTP calls: what is stored of them, and what other processes know. */

#include "conformance.h"

#include "base/arena.h"
#include "engine/engine_state.h"
#include "engine/http/endpoints.h"
#include "engine/http/settings.h"
#include "engine/ready/poll.h"

#include <stdio.h>
#include <string.h>

static const struct weft_tag headers[] = {{"X-Team", "a \"quoted\" caf\xc3\xa9"}, {"x-empty", ""}};

/* Every setting differs from its default. */
static struct weft_endpoint full(const char *name)
{
    return (struct weft_endpoint){.name = name,
                                  .url = "https://API.example.com:443/v1",
                                  .secret = "openai",
                                  .auth = "X-Api-Key: key={secret};",
                                  .headers = headers,
                                  .header_count = WEFT_LEN(headers),
                                  .private_addresses = true,
                                  .redirects = true,
                                  .idempotent = true,
                                  .idempotency_header = "Idempotency-Key",
                                  .retry = "[503,  429, \"4xx\"]",
                                  .retry_after_max_ms = 1,
                                  .max_in_flight = 2,
                                  .connect_ms = 3,
                                  .first_byte_ms = 4,
                                  .idle_ms = 5,
                                  .total_ms = 6,
                                  .response_max = 7};
}

static void put(struct fixture *f, const char *ns, const struct weft_endpoint *endpoint)
{
    struct weft_err err = {0};
    is_int(weft_engine_endpoint_put(f->a, ns, endpoint, &err), WEFT_OK, "endpoint %s is put: %s",
           endpoint->name, err.text);
}

static void put_plain(struct fixture *f, const char *ns, const char *name, const char *url)
{
    put(f, ns, &(struct weft_endpoint){.name = name, .url = url});
}

static struct weft_endpoint get(struct fixture *f, struct weft_engine *engine, const char *ns,
                                const char *name)
{
    struct weft_endpoint endpoint = {0};
    f->err.rc = weft_engine_endpoint(engine, ns, name, f->arena, &endpoint, &f->err);
    return endpoint;
}

/* The poll of the other process. */
static void poll_b(struct fixture *f)
{
    struct weft_poll seen;
    is_int(weft_engine_poll(f->b, f->arena, &seen, &f->err), WEFT_OK, "the other process polls");
}

/* How often a process has read the endpoints cannot be seen, but which object it has can. */
static const struct weft_known_endpoint *known(struct fixture *f, struct weft_engine *engine,
                                               const char *ns, const char *name)
{
    (void)f;
    const struct weft_known_endpoint *endpoint = weft_endpoint_get(engine, ns, name);
    weft_endpoint_release(endpoint); /* the engine holds it until it reads them again */
    return endpoint;
}

static void is_full(const struct weft_endpoint *is)
{
    is_str(is->url, "https://api.example.com/v1", "the URL is in its one form");
    is_str(is->secret, "openai", "the name of the secret");
    is_str(is->auth, "X-Api-Key: key={secret};", "how it is sent");
    is_int(is->header_count, 2, "headers");
    is_str(is->headers[0].key, "X-Team", "the first header");
    is_str(is->headers[0].value, headers[0].value, "with quotes and letters beyond ASCII");
    is_str(is->headers[1].value, "", "an empty header");
    ok(is->private_addresses && is->redirects && is->idempotent, "the flags");
    is_str(is->idempotency_header, "Idempotency-Key", "idempotency_header");
    is_str(is->retry, "[\"4xx\",503]", "the list of statuses is in its one form");
    is_int(is->retry_after_max_ms, 1, "retry_after_max_ms");
    is_int(is->max_in_flight, 2, "max_in_flight");
    is_int(is->connect_ms, 3, "connect_ms");
    is_int(is->first_byte_ms, 4, "first_byte_ms");
    is_int(is->idle_ms, 5, "idle_ms");
    is_int(is->total_ms, 6, "total_ms");
    is_int(is->response_max, 7, "response_max");
}

CASE(endpoint_is_stored_with_all_its_settings)
{
    const struct weft_endpoint endpoint = full("e/1");
    put(f, "default", &endpoint);
    const struct weft_endpoint is = get(f, f->b, "default", "e/1");
    is_str(is.name, "e/1", "the name");
    is_full(&is);
    ok(!is.health.known, "the engine knows nothing of its health");
}

CASE(endpoint_has_defaults)
{
    put_plain(f, "default", "e", "http://example.com");
    const struct weft_endpoint is = get(f, f->b, "default", "e");
    ok(!is.secret && !is.auth && !is.idempotency_header && is.header_count == 0, "no texts");
    ok(!is.private_addresses && !is.redirects && !is.idempotent, "no flags");
    is_str(is.url, "http://example.com/", "the URL");
    is_str(is.retry, "[408,425,429,\"5xx\"]", "retry");
    is_int(is.retry_after_max_ms, 3600000, "retry_after_max_ms");
    is_int(is.max_in_flight, 64, "max_in_flight");
    is_int(is.connect_ms, 5000, "connect_ms");
    is_int(is.first_byte_ms, 60000, "first_byte_ms");
    is_int(is.idle_ms, 30000, "idle_ms");
    is_int(is.total_ms, 600000, "total_ms");
    is_int(is.response_max, 8 << 20, "response_max");
}

CASE(endpoint_put_again_replaces_all)
{
    const struct weft_endpoint endpoint = full("e");
    put(f, "default", &endpoint);
    const struct weft_endpoint first = get(f, f->a, "default", "e");
    put_plain(f, "default", "e", "https://other.example.com");
    const struct weft_endpoint second = get(f, f->a, "default", "e");
    is_str(second.url, "https://other.example.com/", "the new URL");
    ok(!second.secret && second.header_count == 0 && !second.private_addresses,
       "what is absent went back to its default");
    ok(second.version > first.version, "the version has grown");
}

CASE(endpoint_removed_and_put_has_another_version)
{
    put_plain(f, "default", "e", "https://example.com");
    uint64_t first = get(f, f->a, "default", "e").version;
    struct weft_endpoint before = {0};
    is_int(weft_engine_endpoint_remove(f->b, "default", "e", f->arena, &before, &f->err), WEFT_OK,
           "it is removed");
    is_str(before.url, "https://example.com/", "its settings are told");
    (void)get(f, f->a, "default", "e");
    is_int(f->err.rc, WEFT_NOT_FOUND, "it is gone");
    is_str(f->err.field, "endpoint", "the error names the field");
    is_int(weft_engine_endpoint_remove(f->b, "default", "e", f->arena, &before, &f->err),
           WEFT_NOT_FOUND, "a second removal finds none");
    put_plain(f, "default", "e", "https://example.com");
    ok(get(f, f->a, "default", "e").version > first, "the same again has a newer version");
}

CASE(endpoint_is_known_to_others_after_their_poll)
{
    poll_b(f);
    put_plain(f, "default", "e", "https://example.com");
    ok(known(f, f->a, "default", "e") != NULL, "the process that put it knows it at once");
    ok(known(f, f->b, "default", "e") == NULL, "the other one does not yet");
    poll_b(f);
    const struct weft_known_endpoint *first = known(f, f->b, "default", "e");
    is_str(first->setting->url, "https://example.com/", "after its poll it does");
    is_str(first->url.host, "example.com", "with the parts of the URL");
    is_int(first->setting->connect_ms, 5000, "with all defaults");
    ok(weft_http_retry_has(&first->retry, 503), "with the statuses to retry");
    ok(!first->auth.name, "without a secret");
    poll_b(f);
    ok(known(f, f->b, "default", "e") == first, "a poll without a change keeps it");
    put_plain(f, "default", "other", "https://example.com");
    poll_b(f);
    ok(known(f, f->b, "default", "e") == first, "and so does the change of another one");
}

CASE(endpoint_held_outlives_its_change)
{
    const struct weft_endpoint endpoint = full("e");
    put(f, "default", &endpoint);
    const struct weft_known_endpoint *held = weft_endpoint_get(f->a, "default", "e");
    put_plain(f, "default", "e", "https://other.example.com");
    const struct weft_known_endpoint *now = weft_endpoint_get(f->a, "default", "e");
    ok(now != held && now->version > held->version, "there is another one now");
    is_full(held->setting);
    is_str(held->auth.name, "X-Api-Key", "the header of the secret");
    is_str(held->auth.before, "key=", "what comes before the secret");
    is_str(held->auth.after, ";", "and behind it");
    struct weft_endpoint before;
    is_int(weft_engine_endpoint_remove(f->a, "default", "e", f->arena, &before, &f->err), WEFT_OK,
           "it is removed");
    ok(!weft_endpoint_get(f->a, "default", "e"), "it is not known any more");
    is_str(now->setting->url, "https://other.example.com/", "who holds it reads it still");
    weft_endpoint_release(held);
    weft_endpoint_release(now);
    weft_endpoint_release(NULL);
}

CASE(endpoint_is_of_its_namespace)
{
    put_plain(f, "acme", "e", "https://acme.example.com");
    put_plain(f, "acme-2", "e", "https://acme2.example.com");
    is_str(get(f, f->a, "acme", "e").url, "https://acme.example.com/", "of acme");
    is_str(get(f, f->a, "acme-2", "e").url, "https://acme2.example.com/", "of acme-2");
    (void)get(f, f->a, "default", "e");
    is_int(f->err.rc, WEFT_NOT_FOUND, "there is none in another namespace");
    poll_b(f);
    is_str(known(f, f->b, "acme", "e")->setting->url, "https://acme.example.com/",
           "acme in memory");
    is_str(known(f, f->b, "acme-2", "e")->setting->url, "https://acme2.example.com/",
           "acme-2 in memory");
    ok(!known(f, f->b, "default", "e"), "none in memory for another namespace");
}

CASE(endpoints_are_listed_in_pages)
{
    static const char *const name[] = {"a", "b", "c", "d", "e"};
    for (size_t i = WEFT_LEN(name); i-- > 0;)
        put_plain(f, "default", name[i], "https://example.com");
    struct weft_endpoint_asking asking = {.ns = "default", .limit = 2};
    struct weft_endpoints page = {0};
    size_t met = 0;
    do {
        if (weft_engine_endpoints(f->b, &asking, f->arena, &page, &f->err))
            break;
        for (size_t i = 0; i < page.count; i++, met++)
            is_str(page.item[i].name, name[met < 5 ? met : 4], "number %zu by name", met);
        asking.after = page.next;
    } while (page.next);
    is_int(met, 5, "all of them");
}

CASE(endpoint_that_is_not_allowed_changes_nothing)
{
    put_plain(f, "default", "e", "https://example.com");
    const struct weft_endpoint bad = {.name = "e", .url = "https://user@example.com"};
    is_int(weft_engine_endpoint_put(f->a, "default", &bad, &f->err), WEFT_INVALID_VALUE,
           "a URL with a user is refused");
    is_str(f->err.field, "url", "the error names the field");
    is_str(get(f, f->a, "default", "e").url, "https://example.com/", "the endpoint is as it was");
}

CASE(endpoints_of_a_namespace_are_bounded)
{
    run_sql_of(f,
               "INSERT INTO weft.name (sort, namespace, text) VALUES (1, 0, 'many') "
               "ON CONFLICT DO NOTHING",
               "INSERT OR IGNORE INTO name (sort, namespace, text) VALUES (1, 0, 'many')");
    run_sql_of(f,
               "INSERT INTO weft.endpoint SELECT n.id, 'e' || i, 1, 'https://example.com/', NULL, "
               "NULL, '{}', '[]', NULL, 0, 1, 1, 1, 1, 1, 1, 1 "
               "FROM weft.name n, generate_series(1, 1000) i WHERE n.text = 'many' AND n.sort = 1",
               "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1000) "
               "INSERT INTO endpoint SELECT n.id, 'e' || i, 1, 'https://example.com/', NULL, NULL, "
               "'{}', '[]', NULL, 0, 1, 1, 1, 1, 1, 1, 1 FROM name n, c "
               "WHERE n.text = 'many' AND n.sort = 1");
    const struct weft_endpoint more = {.name = "more", .url = "https://example.com"};
    is_int(weft_engine_endpoint_put(f->a, "many", &more, &f->err), WEFT_LIMIT_EXCEEDED,
           "the 1,001st is refused");
    put_plain(f, "many", "e7", "https://other.example.com");
    is_str(get(f, f->b, "many", "e7").url, "https://other.example.com/", "one can be replaced");
    put_plain(f, "default", "more", "https://example.com");
}

/* Rules may become stricter in a later version. */
CASE(endpoint_that_is_not_allowed_any_more_is_not_known)
{
    put_plain(f, "default", "good", "https://example.com");
    put_plain(f, "default", "old", "https://example.com");
    run_sql_of(f, "UPDATE weft.endpoint SET url = 'gopher://x', version = 77 WHERE name = 'old'",
               "UPDATE endpoint SET url = 'gopher://x', version = 77 WHERE name = 'old'");
    poll_b(f);
    ok(known(f, f->b, "default", "good") != NULL, "the good one is known");
    ok(known(f, f->b, "default", "old") == NULL, "the other one is not");
    is_str(get(f, f->b, "default", "old").url, "gopher://x", "readers see it as it is stored");
}
