/* SPDX-License-Identifier: Apache-2.0 */

/* weft mock-llm: its options. */

#include "base/json.h"
#include "cmd/cli/cli.h"
#include "cmd/mock/mock.h"

#include <string.h>

enum { TIME_MAX_MS = 3600000, TOKENS_MAX = 100000 };

static double read_rate(const struct weft_cli *cli)
{
    const char *text = weft_cli_get(cli, "fail-rate");
    struct weft_json value;
    double rate = 0;
    if (text && (weft_json_check(text, strlen(text), &value, NULL) != WEFT_OK ||
                 !weft_json_double(&value, &rate) || rate < 0 || rate > 1))
        weft_cli_usage(cli, "--fail-rate takes a number from 0 to 1, like 0.01");
    return rate;
}

static enum weft_exit run_mock_llm(struct weft_cli *cli)
{
    const char *listen = weft_cli_get(cli, "listen");
    const struct mock_settings settings = {
        .listen = listen ? listen : "127.0.0.1:7718",
        .latency_ms = weft_cli_ms(cli, "latency", 0, TIME_MAX_MS, 0),
        .jitter_ms = weft_cli_ms(cli, "jitter", 0, TIME_MAX_MS, 0),
        .stream_delay_ms = weft_cli_ms(cli, "stream-delay", 0, TIME_MAX_MS, 0),
        .tokens = weft_cli_i64(cli, "tokens", 1, TOKENS_MAX, 0),
        .fail_rate = read_rate(cli),
    };
    struct weft_err err = {0};
    weft_cli_catch();
    enum weft_rc rc = weft_mock_serve(&settings, &err);
    return rc ? weft_cli_fail(&err) : WEFT_EXIT_OK;
}

static const struct weft_option options[] = {
    {"listen", 0, "HOST:PORT", "where it listens (127.0.0.1:7718); port 0: any", NULL},
    {"latency", 0, "TIME", "how long each answer takes (0)", NULL},
    {"jitter", 0, "TIME", "and up to so much longer, evenly (0)", NULL},
    {"tokens", 0, "N", "words of an answer (as many as the echo has)", NULL},
    {"stream-delay", 0, "TIME", "between two events of a stream (0)", NULL},
    {"fail-rate", 0, "SHARE", "share of requests that fail, 0 to 1 (0)", NULL},
    {.name = NULL},
};

const struct weft_command weft_command_mock_llm = {
    .name = "mock-llm",
    .args = "",
    .no_store = true,
    .summary = "run a model server for trials, which echoes",
    .about =
        "Answers as an OpenAI-like server does, so that calls and batches can be tried and "
        "measured "
        "without a model and without a network: POST /v1/chat/completions, /v1/completions, "
        "/v1/responses and /v1/embeddings, and GET /v1/models. It takes any model and any key.\n\n"
        "The answer is an echo of the last message, with `usage`; a token is a word. The same "
        "request gets the same answer, also as a stream (\"stream\": true). With --fail-rate some "
        "requests are answered with 429, with Retry-After, or with 500; which ones depends on "
        "their number alone, so a repeated request gets another chance.\n\n"
        "It serves plain HTTP on one thread, and keeps nothing. Ctrl-C ends it.",
    .example =
        "weft mock-llm\n"
        "weft mock-llm --latency 50ms --jitter 20ms --tokens 200 --stream-delay 10ms\n"
        "weft mock-llm --listen 127.0.0.1:0 --fail-rate 0.01",
    .option = options,
    .run = run_mock_llm,
};
