/* SPDX-License-Identifier: Apache-2.0 */

/* Endpoints of outgoing HTTP calls. */

#include "core/endpoint.h"
#include "wire/rows.h"

#define OF struct weft_endpoint

static const char *const breakers[] = {"closed", "open", "half_open"};

/* 0 for a limit is refused: it would read as "nothing", and stands for the default. */
#define LIMIT(max_) .flags = WEFT_WIRE_OR_NULL | WEFT_WIRE_CHECKED, .min = 1, .max = (max_)

static const struct weft_wire_field endpoint_answers[] = {
    ROW("1xx", U64, health.answers[0], "Answers of these statuses"),
    ROW("2xx", U64, health.answers[1], "Answers of these statuses"),
    ROW("3xx", U64, health.answers[2], "Answers of these statuses"),
    ROW("4xx", U64, health.answers[3], "Answers of these statuses"),
    ROW("5xx", U64, health.answers[4], "Answers of these statuses"),
    ROW("failed", U64, health.failed, "Calls without a whole answer"),
};
static const struct weft_wire_field endpoint[] = {
    ROW("endpoint", TEXT, name, "Its name; in a request the path says it"),
    ROW("url", TEXT, url, "What every call begins with, http or https, without a query", REQUIRED),
    ROW("secret", TEXT, secret, "The name of the secret that calls carry; null: none"),
    ROW("auth", TEXT, auth,
        "The header that carries it. Default: `Authorization: Bearer {secret}`; null: it has no "
        "secret"),
    ROW("headers", TAGS, headers, "Headers of every call, up to 64; no secrets: they are shown",
        COUNT(header_count)),
    ROW("private", BOOL, private_addresses,
        "Calls may reach addresses that are not public. Default: false"),
    ROW("redirects", BOOL, redirects,
        "Redirects within the origin of the URL are followed, 5 at most. Default: false"),
    ROW("idempotent", BOOL, idempotent,
        "Any request may be sent twice, a POST too. Default: false"),
    ROW("idempotency_header", TEXT, idempotency_header,
        "A header that gets a key which all attempts of an execution share; null: none"),
    ROW("retry", STATUSES, retry,
        "The statuses that are worth another attempt, as numbers and classes. Default: "
        "[408,425,429,\"5xx\"]"),
    ROW("retry_after_max_ms", I64, retry_after_max_ms,
        "A longer wait that the server asks for is cut. Default: 3,600,000",
        LIMIT(WEFT_HTTP_RETRY_AFTER_MAX_S *INT64_C(1000))),
    ROW("max_in_flight", I64, max_in_flight, "Calls at a time, of each server of weft. Default: 64",
        LIMIT(WEFT_ENDPOINT_IN_FLIGHT_MAX)),
    ROW("connect_ms", I64, connect_ms,
        "For a connection, with the look-up of the name and TLS. Default: 5,000",
        LIMIT(WEFT_ENDPOINT_MS_MAX)),
    ROW("first_byte_ms", I64, first_byte_ms, "For the head of the answer. Default: 60,000",
        LIMIT(WEFT_ENDPOINT_MS_MAX)),
    ROW("idle_ms", I64, idle_ms, "Between two bytes of the answer. Default: 30,000",
        LIMIT(WEFT_ENDPOINT_MS_MAX)),
    ROW("total_ms", I64, total_ms, "For all of the call. Default: 600,000",
        LIMIT(WEFT_ENDPOINT_MS_MAX)),
    ROW("response_max", I64, response_max,
        "Bytes of an answer, decoded; what a stream folds into, which itself may be 8 times as "
        "long. "
        "Default: 8,388,608, the most there is",
        LIMIT(WEFT_ENDPOINT_RESPONSE_MAX)),
    ROW("version", U64, version,
        "Another one with each change; ignored in requests, as the next five"),
    ROW("breaker", WORD, health.breaker,
        "Whether the answering server lets calls begin: closed: yes; open: no, too many have "
        "failed; half_open: one, whose end decides",
        WORDS(breakers)),
    ROW("open_until", MOMENT, health.open_until_us, "When it lets one begin; null: it is not open"),
    ROW("in_flight", U64, health.in_flight, "Calls of the answering server that have not ended"),
    ROW("waiting", U64, health.waiting, "Claimed by it, and waiting for their turn"),
    OBJECT("answers", endpoint_answers, "How its calls have ended since it started",
           .flags = WEFT_WIRE_BY_FLAG, COUNT(health.known)),
};
MESSAGE_TYPE(endpoint, "Endpoint", "A server that weft calls for executions of kind `http`.",
             .answer = true, .request = true);
#undef OF

/* ---- Trials ---------------------------------------------------------------------------------- */

#define OF struct weft_endpoint_trying

static const struct weft_wire_field endpoint_trying[] = {
    ROW("path", TEXT, path,
        "What follows the URL of the endpoint, like `/models`. Default: nothing"),
    ROW("method", TEXT, method, "Default: GET"),
};
REQUEST(endpoint_trying, "EndpointTest", "A call that tries an endpoint.");
#undef OF

#define OF struct weft_endpoint_trial

static const struct weft_wire_field endpoint_trial_error[] = {
    ROW("class", TEXT, error_class, "What kind of error, as an execution would have it"),
    ROW("message", TEXT, error_message, "For people"),
};

#define WHEN(name_, field_, about_) ROW(name_, I64, field_, about_, OR_NULL, .max = INT64_MAX)
static const struct weft_wire_field endpoint_trial[] = {
    ROW("url", TEXT, url, "What was called"),
    ROW("status", I32, status, "Of the answer; null: there was none", OR_NULL, .min = 100,
        .max = 999),
    OBJECT("error", endpoint_trial_error, "Why there was no whole answer"),
    ROW("bytes", U64, bytes, "Of the answer, decoded"),
    WHEN("resolved_us", resolved_us,
         "When the name was looked up, in microseconds from the start; null, here and below: it "
         "did not happen"),
    WHEN("connected_us", connected_us, "When there was a connection"),
    WHEN("secured_us", secured_us, "When TLS was agreed on"),
    WHEN("first_byte_us", first_byte_us, "When the answer began"),
    WHEN("total_us", total_us, "When it was over"),
};
ANSWER(endpoint_trial, "EndpointTested", "How the call went.");
#undef OF
