/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A spec from the command line.
 *
 * A payload is JSON when it is valid JSON, otherwise text, otherwise bytes; --content-type
 * overrules that. What looks like JSON but is not is refused: it is a slip more often than a text.
 */

#include "cmd/cli/spec_args.h"

#include "cmd/cli/filter_args.h"
#include "cmd/cli/line.h"
#include "cmd/job/cmd_wait.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/str.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct weft_option weft_submit_options[] = {
    {.name = "kind", .letter = 'k', .value = "NAME", .about = "what is to be done; required"},
    {.name = "lane", .letter = 'l', .value = "NAME", .about = "where; default: default"},
    {.name = "key", .value = "KEY", .about = "idempotency key: a repeat gives the first one"},
    {.name = "priority", .letter = 'p', .value = "N", .about = "-32768 to 32767, higher first"},
    {.name = "delay", .value = "TIME", .about = "begin so much later"},
    {.name = "run-at", .value = "MOMENT", .about = "begin then"},
    {.name = "deadline", .value = "MOMENT", .about = "must be over by then"},
    {.name = "capability", .value = "NAME", .about = "what a worker must have; may be repeated"},
    {.name = "tenant", .value = "NAME", .about = "whose it is: tenants take turns"},
    {.name = "tag", .letter = 't', .value = "KEY=VALUE", .about = "a tag; may be repeated"},
    {.name = "content-type",
     .value = "TYPE",
     .about = "of the payload; default: what it looks like"},
    {.name = "max-attempts", .value = "N", .about = "how often it is tried; default: 25"},
    {.name = "timeout", .value = "TIME", .about = "how long one attempt may take"},
    {.name = "lease", .value = "TIME", .about = "how long a silent worker keeps it; default: 30s"},
    {.name = "backoff",
     .value = "HOW",
     .about = "how waits between attempts grow: exponential (doubling), fixed",
     .complete = "exponential fixed"},
    {.name = "retry-delay", .value = "TIME", .about = "the first wait; default: 1s"},
    {.name = "retry-max", .value = "TIME", .about = "the longest wait; default: 1h"},
    {.name = "no-jitter", .about = "wait exactly that long, not 80 % to 120 % of it"},
    {.name = "no-retry", .value = "CLASS", .about = "an error that is final; may be repeated"},
    {.name = "max-lost", .value = "N", .about = "leases that may be lost; default: 10"},
    {.name = "retention",
     .value = "TIME",
     .about = "how long the outcome is kept; default: the lane's, or 7d"},
    {.name = "count", .value = "N", .about = "submit it so many times"},
    {.name = "bulk", .value = "FILE", .about = "submit the specs in a file, a JSON object a line"},
    WEFT_WAIT_OPTION,
    {.name = NULL},
};

/* ---- The payload ----------------------------------------------------------------------------- */

static bool read_all(FILE *file, struct weft_buf *buf)
{
    char chunk[16384];
    size_t size;
    while (!buf->full && (size = fread(chunk, 1, sizeof(chunk), file)) > 0)
        weft_buf_add(buf, chunk, size);
    return !ferror(file);
}

static bool read_from(const struct weft_cli *cli, const char *path, struct weft_spec *spec)
{
    char why[128];
    struct weft_buf buf;
    FILE *file = path ? fopen(path, "re") : stdin;
    const char *name = path ? path : "standard input";
    if (!file) {
        (void)weft_cli_usage(cli, "cannot read %s: %s", name, strerror_r(errno, why, sizeof(why)));
        return false;
    }
    weft_buf_init(&buf, WEFT_PAYLOAD_MAX);
    bool good = read_all(file, &buf);
    if (!good)
        (void)weft_cli_usage(cli, "cannot read %s: %s", name, strerror_r(errno, why, sizeof(why)));
    else if (buf.full)
        (void)weft_cli_usage(cli, "%s is larger than %d bytes, the most a payload may have", name,
                             WEFT_PAYLOAD_MAX);
    good = good && !buf.full;
    spec->payload_size = good ? buf.size : 0;
    spec->payload = weft_arena_dup(cli->arena, buf.data, buf.size);
    weft_buf_done(&buf);
    if (path)
        (void)fclose(file);
    return good;
}

static bool guess_type(const struct weft_cli *cli, struct weft_spec *spec)
{
    struct weft_err err = {0};
    struct weft_json value;
    const char *text = spec->payload;
    if (weft_json_check(text, spec->payload_size, &value, &err) == WEFT_OK)
        return true;
    size_t at = 0;
    while (at < spec->payload_size && strchr(" \t\r\n", text[at]))
        at++;
    if (at < spec->payload_size && strchr("{[\"", text[at])) {
        (void)weft_cli_usage(cli,
                             "the payload is not valid JSON: %s (--content-type text/plain "
                             "sends it as it is)",
                             err.text);
        return false;
    }
    spec->content_type = weft_utf8_valid(text, spec->payload_size) ? "text/plain; charset=utf-8"
                                                                   : "application/octet-stream";
    return true;
}

const char weft_payload_piped[] = "-";

bool weft_input_piped(void)
{
    struct stat info;
    return fstat(STDIN_FILENO, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISREG(info.st_mode));
}

/* A user whose pipe stays open without data should learn why nothing happens. */
static void tell_of_wait(void)
{
    enum { PATIENCE_MS = 3000 };
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&input, 1, PATIENCE_MS) == 0)
        (void)fputs("weft: reading the payload from standard input; </dev/null gives none\n",
                    stderr);
}

bool weft_payload_typed(const struct weft_cli *cli, const char *argument, struct weft_spec *spec,
                        enum weft_exit *ret_exit)
{
    *ret_exit = WEFT_EXIT_USAGE;
    if (!argument) {
        *ret_exit = WEFT_EXIT_OK;
        return true;
    }
    bool piped = argument == weft_payload_piped;
    if (piped)
        tell_of_wait();
    if (strcmp(argument, "-") == 0 || argument[0] == '@') {
        if (!read_from(cli, argument[0] == '@' ? argument + 1 : NULL, spec))
            return false;
        if (piped && spec->payload_size == 0) {
            spec->payload = NULL;
            *ret_exit = WEFT_EXIT_OK;
            return true;
        }
    } else {
        spec->payload = argument;
        spec->payload_size = strlen(argument);
    }
    spec->content_type = weft_cli_get(cli, "content-type");
    if (!spec->content_type && !guess_type(cli, spec))
        return false;
    *ret_exit = WEFT_EXIT_OK;
    return true;
}

/* ---- The rest -------------------------------------------------------------------------------- */

static bool read_tags(const struct weft_cli *cli, struct weft_spec *spec)
{
    const char *const *text;
    size_t count = weft_cli_all(cli, "tag", &text);
    struct weft_tag *tag = weft_new_array(cli->arena, struct weft_tag, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (weft_pick_tag(cli, text[i], &tag[i]))
            continue;
        (void)weft_cli_usage(cli, "--tag is '%s': it must be KEY=VALUE", text[i]);
        return false;
    }
    spec->tags = count ? tag : NULL;
    spec->tag_count = count;
    return true;
}

static bool read_moment(const struct weft_cli *cli, const char *option, weft_usec *ret_moment_us)
{
    const char *text = weft_cli_get(cli, option);
    if (!text || weft_moment_typed(text, ret_moment_us))
        return true;
    (void)weft_cli_usage(cli, "--%s is '%s': it must be like 2031-01-31T12:00:00Z or +5m", option,
                         text);
    return false;
}

static bool read_policy(const struct weft_cli *cli, struct weft_spec *spec)
{
    static const char *const words[] = {"max-attempts", "timeout",   "lease",    "backoff",
                                        "retry-delay",  "retry-max", "no-retry", "no-jitter",
                                        "max-lost",     "retention"};
    struct weft_policy *policy = weft_new(cli->arena, struct weft_policy);
    const char *backoff = weft_cli_get(cli, "backoff");
    bool fixed = backoff && strcmp(backoff, "fixed") == 0;
    if (backoff && !fixed && strcmp(backoff, "exponential") != 0) {
        (void)weft_cli_usage(cli, "--backoff is '%s': it must be exponential or fixed", backoff);
        return false;
    }
    *policy = (struct weft_policy){
        .max_attempts = (int32_t)weft_cli_i64(cli, "max-attempts", 1, WEFT_ATTEMPTS_MAX, 0),
        .backoff = fixed ? WEFT_BACKOFF_FIXED : WEFT_BACKOFF_EXPONENTIAL,
        .initial_ms = weft_cli_ms(cli, "retry-delay", 0, WEFT_DELAY_MAX_MS, 0),
        .max_ms = weft_cli_ms(cli, "retry-max", 1, WEFT_DELAY_MAX_MS, 0),
        .no_jitter = weft_cli_has(cli, "no-jitter"),
        .attempt_timeout_ms = weft_cli_ms(cli, "timeout", 1, WEFT_DELAY_MAX_MS, 0),
        .lease_ms = weft_cli_ms(cli, "lease", WEFT_LEASE_MIN_MS, WEFT_LEASE_MAX_MS, 0),
        .max_lost = (int32_t)weft_cli_i64(cli, "max-lost", 1, WEFT_ATTEMPTS_MAX, 0),
        .retention_ms = weft_cli_ms(cli, "retention", 1, WEFT_DELAY_MAX_MS, 0),
    };
    if (policy->initial_ms == 0 && weft_cli_has(cli, "retry-delay"))
        policy->initial_ms = -1; /* at once */
    policy->no_retry_count = weft_cli_all(cli, "no-retry", &policy->no_retry);
    for (size_t i = 0; i < WEFT_LEN(words); i++)
        if (weft_cli_has(cli, words[i]))
            spec->policy = policy;
    return true;
}

bool weft_spec_typed(const struct weft_cli *cli, struct weft_spec *ret_spec,
                     enum weft_exit *ret_exit)
{
    struct weft_spec spec = {
        .lane = weft_cli_get(cli, "lane"),
        .kind = weft_cli_get(cli, "kind"),
        .priority = (int32_t)weft_cli_i64(cli, "priority", INT16_MIN, INT16_MAX, 0),
        .delay_ms = weft_cli_ms(cli, "delay", 0, WEFT_DELAY_MAX_MS, 0),
        .tenant = weft_cli_get(cli, "tenant"),
        .key = weft_cli_get(cli, "key"),
    };
    spec.capability_count = weft_cli_all(cli, "capability", &spec.capabilities);
    *ret_exit = WEFT_EXIT_USAGE;
    if (!read_moment(cli, "run-at", &spec.run_at_us) ||
        !read_moment(cli, "deadline", &spec.deadline_us) || !read_tags(cli, &spec) ||
        !read_policy(cli, &spec))
        return false;
    *ret_spec = spec;
    *ret_exit = WEFT_EXIT_OK;
    return true;
}
