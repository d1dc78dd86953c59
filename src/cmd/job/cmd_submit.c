/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft submit: one execution, many copies of it, or a file of specs.
 *
 * Ids go to stdout, one a line, as soon as they are durable. With --wait stdout belongs to the
 * result, so that the command can stand in a pipe.
 *
 * A payload is JSON when it is valid JSON, otherwise text, otherwise bytes; --content-type
 * overrules that. What looks like JSON but is not is refused: it is a slip more often than a text.
 */

#include "cmd/cli/bar.h"
#include "cmd/cli/cli_json.h"
#include "cmd/cli/filter_args.h"
#include "cmd/cli/line.h"
#include "cmd/cli/text.h"
#include "cmd/cli/typed.h"
#include "cmd/job/await_end.h"
#include "cmd/job/submit_bulk.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/limits.h"
#include "base/str.h"
#include "core/result.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct weft_option options[] = {
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

static bool read_from(const struct weft_cli *cli, const char *path, struct weft_spec *spec)
{
    const char *why, *name = strcmp(path, "-") == 0 ? "standard input" : path;
    spec->payload = weft_cli_read_file(cli, path, WEFT_PAYLOAD_MAX, &spec->payload_size, &why);
    return spec->payload || weft_cli_refuse(cli, "cannot read %s as the payload: %s", name, why);
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
    if (at < spec->payload_size && strchr("{[\"", text[at]))
        return weft_cli_refuse(cli,
                               "the payload is not valid JSON: %s (--content-type text/plain "
                               "sends it as it is)",
                               err.text);
    spec->content_type = weft_utf8_valid(text, spec->payload_size) ? "text/plain; charset=utf-8"
                                                                   : "application/octet-stream";
    return true;
}

/* As an argument: standard input, if there is any. */
static const char payload_piped[] = "-";

/* Standard input is a pipe or a file; not a terminal, /dev/null or a socket. */
static bool input_piped(void)
{
    struct stat info;
    return fstat(STDIN_FILENO, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISREG(info.st_mode));
}

/* Says what the command waits for while a pipe stays open without data. */
static void tell_of_wait(void)
{
    enum { PATIENCE_MS = 3000 };
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&input, 1, PATIENCE_MS) == 0)
        (void)fputs("weft: reading the payload from standard input; </dev/null gives none\n",
                    stderr);
}

/* The payload: the argument itself, @FILE, or - for standard input. NULL: there is none. */
static bool read_payload(const struct weft_cli *cli, const char *argument, struct weft_spec *spec)
{
    bool piped = argument == payload_piped, good = true;
    if (piped)
        tell_of_wait();
    if (argument && (strcmp(argument, "-") == 0 || argument[0] == '@')) {
        good = read_from(cli, argument + (argument[0] == '@'), spec);
    } else if (argument) {
        spec->payload = argument;
        spec->payload_size = strlen(argument);
    }
    if (good && piped && spec->payload_size == 0)
        spec->payload = NULL;
    if (good && spec->payload) {
        spec->content_type = weft_cli_get(cli, "content-type");
        good = spec->content_type || guess_type(cli, spec);
    }
    return good;
}

/* ---- The spec -------------------------------------------------------------------------------- */

static bool read_tags(const struct weft_cli *cli, struct weft_spec *spec)
{
    const char *const *text;
    size_t count = weft_cli_all(cli, "tag", &text);
    struct weft_tag *tag = weft_new_array(cli->arena, struct weft_tag, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (weft_pick_tag(cli, text[i], &tag[i]))
            continue;
        return weft_cli_refuse(cli, "--tag is '%s': it must be KEY=VALUE", text[i]);
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
    return weft_cli_refuse(cli, "--%s is '%s': it must be like 2031-01-31T12:00:00Z or +5m", option,
                           text);
}

static bool read_policy(const struct weft_cli *cli, struct weft_spec *spec)
{
    static const char *const words[] = {"max-attempts", "timeout",   "lease",    "backoff",
                                        "retry-delay",  "retry-max", "no-retry", "no-jitter",
                                        "max-lost",     "retention"};
    struct weft_policy *policy = weft_new(cli->arena, struct weft_policy);
    const char *backoff = weft_cli_get(cli, "backoff");
    bool fixed = backoff && strcmp(backoff, "fixed") == 0;
    if (backoff && !fixed && strcmp(backoff, "exponential") != 0)
        return weft_cli_refuse(cli, "--backoff is '%s': it must be exponential or fixed", backoff);
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

static bool read_spec(const struct weft_cli *cli, struct weft_spec *ret_spec)
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
    bool good = read_moment(cli, "run-at", &spec.run_at_us) &&
                read_moment(cli, "deadline", &spec.deadline_us) && read_tags(cli, &spec) &&
                read_policy(cli, &spec);
    *ret_spec = spec;
    return good;
}

/* ---- One, and waiting for it ----------------------------------------------------------------- */

static enum weft_exit put_result(const struct weft_cli *cli, struct weft *weft,
                                 const struct weft_execution *item)
{
    struct weft_err err = {0};
    struct weft_bytes result = {0};
    enum weft_rc rc = weft_result(weft, &item->id, &result, &err);
    if (rc && rc != WEFT_NOT_FOUND)
        return weft_cli_fail(&err);
    if (weft_cli_json(cli)) {
        struct weft_json_out out;
        weft_json_out_begin_object(&out);
        weft_wire_write_members(&weft_wire_execution, item, &out.json);
        weft_json_out_bytes(&out, "result", &result);
        weft_json_out_end_object(&out);
    } else {
        weft_put_bytes(result.data, result.size);
    }
    weft_bytes_free(&result);
    return WEFT_EXIT_OK;
}

static enum weft_exit wait_for_it(const struct weft_cli *cli, struct weft *weft,
                                  const struct weft_id *id)
{
    struct weft_page page = {0};
    enum weft_exit code = weft_cli_wait(cli, weft, id, &page);
    if (page.count > 0 && (code == WEFT_EXIT_OK || weft_cli_json(cli))) {
        enum weft_exit shown = put_result(cli, weft, page.item);
        if (shown != WEFT_EXIT_OK)
            code = shown;
    }
    weft_page_free(&page);
    return code;
}

static enum weft_exit submit_one(const struct weft_cli *cli, struct weft *weft,
                                 const struct weft_spec *spec)
{
    struct weft_err err = {0};
    struct weft_submitted answer = {0};
    struct weft_submit_result result;
    char id[WEFT_ID_TEXT];
    bool wait = weft_cli_has(cli, "wait");
    if (weft_submit(weft, spec, 1, &answer, &err))
        return weft_cli_fail(&err);
    if (answer.err.rc)
        return weft_cli_fail(&answer.err);
    weft_id_print(&answer.id, id);
    result = weft_submit_result_of(&answer);
    if (wait)
        (void)fprintf(stderr, "%s\n", id);
    else if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_submitted, &result);
    else
        printf("%s\n", id);
    if (answer.duplicate && !weft_cli_json(cli))
        (void)fprintf(stderr, "weft: the key is known: this is the execution it named, now %s\n",
                      weft_state_name(answer.state));
    return wait ? wait_for_it(cli, weft, &answer.id) : WEFT_EXIT_OK;
}

/* ---- Many copies ----------------------------------------------------------------------------- */

static enum weft_exit submit_copies(const struct weft_cli *cli, struct weft *weft,
                                    const struct weft_spec *spec, uint64_t count)
{
    struct weft_spec *copy = weft_new_array(cli->arena, struct weft_spec, WEFT_BATCH_MAX);
    for (size_t i = 0; i < WEFT_BATCH_MAX; i++)
        copy[i] = *spec;
    struct weft_sending sending = {.cli = cli, .weft = weft, .bar = weft_bar_new("submit", count)};
    enum weft_exit code = WEFT_EXIT_OK;
    for (uint64_t left = count; left > 0 && code == WEFT_EXIT_OK;) {
        size_t chunk = left < WEFT_BATCH_MAX ? (size_t)left : WEFT_BATCH_MAX;
        code = weft_send_chunk(&sending, copy, NULL, chunk);
        left -= chunk;
    }
    weft_bar_free(sending.bar);
    return code == WEFT_EXIT_OK ? sending.worst : code;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* A file brings its own specs: of the options that describe one, only --lane goes with it. */
static enum weft_exit check_bulk(const struct weft_cli *cli, bool payload)
{
    if (payload)
        return weft_cli_usage(cli, "--bulk goes with no payload");
    for (const struct weft_option *at = options; at->name; at++)
        if (weft_cli_has(cli, at->name) && strcmp(at->name, "bulk") != 0 &&
            strcmp(at->name, "lane") != 0)
            return weft_cli_usage(cli, "--bulk does not go with --%s", at->name);
    return WEFT_EXIT_OK;
}

static enum weft_exit check_line(const struct weft_cli *cli, bool payload)
{
    if (weft_cli_has(cli, "bulk"))
        return check_bulk(cli, payload);
    if (!weft_cli_has(cli, "kind"))
        return weft_cli_usage(cli, "say with --kind what is to be done");
    if (weft_cli_has(cli, "count") && (weft_cli_has(cli, "key") || weft_cli_has(cli, "wait")))
        return weft_cli_usage(cli, "--count goes with neither --key nor --wait");
    if (weft_cli_has(cli, "content-type") && !payload)
        return weft_cli_usage(cli, "--content-type is of a payload, and there is none");
    return WEFT_EXIT_OK;
}

static enum weft_exit run_submit(struct weft_cli *cli)
{
    const char *const *arg;
    const char *payload = weft_cli_args(cli, &arg) > 0 ? arg[0] : NULL;
    if (!payload && weft_cli_has(cli, "kind") && !weft_cli_has(cli, "bulk") && input_piped())
        payload = payload_piped;
    struct weft *weft;
    struct weft_spec spec;
    enum weft_exit code = check_line(cli, payload != NULL);
    if (code != WEFT_EXIT_OK)
        return code;
    uint64_t count = (uint64_t)weft_cli_i64(cli, "count", 1, INT32_MAX, 1);
    if (!read_spec(cli, &spec) || !read_payload(cli, payload, &spec))
        return WEFT_EXIT_USAGE;
    if (!weft_cli_open(cli, &weft, &code))
        return code;
    if (!weft_cli_has(cli, "wait")) /* a wait is simply ended by a signal */
        weft_cli_catch();
    if (weft_cli_has(cli, "bulk"))
        return weft_submit_bulk(cli, weft, weft_cli_get(cli, "bulk"), spec.lane);
    return weft_cli_has(cli, "count") ? submit_copies(cli, weft, &spec, count)
                                      : submit_one(cli, weft, &spec);
}

const struct weft_command weft_command_submit = {
    .name = "submit",
    .args = "[PAYLOAD]",
    .args_max = 1,
    .summary = "hand over work",
    .about =
        "PAYLOAD is the payload itself, @FILE for the content of a file, or - for standard input. "
        "Without it the payload is standard input where that is a pipe or a file: `echo x | weft "
        "submit --kind s`; an empty one is no payload. In a loop that reads a file, and where a "
        "pipe is never closed, say </dev/null. "
        "It is sent as JSON when it is JSON, otherwise as text or bytes; --content-type overrules "
        "that. The id is printed when the execution is durable.\n\n"
        "With --wait the command stays until the execution has ended and prints its result; the id "
        "goes to standard error. The exit code is 1 when it did not succeed, and 4 when the time "
        "was up before.\n\n"
        "--bulk reads one spec per line, as the HTTP API takes them: {\"kind\":\"mail\","
        "\"payload\":{\"to\":\"ada\"},\"key\":\"m-1\"}. They are sent 1,000 at a time; --lane "
        "stands in where a line names none. A line that is refused is named on standard error with "
        "its number and the others are submitted; then the exit code is 1. At the end standard "
        "error has how many were accepted, were duplicates (their key was known) and were refused. "
        "With --json each line of the file has a line of output, with its number as \"line\", and "
        "the last line is {\"accepted\":N,\"duplicates\":N,\"refused\":N}.",
    .example =
        "weft submit --kind mail '{\"to\":\"ada\"}'\n"
        "weft submit --kind resize --lane images --key img-17 @photo.jpg\n"
        "date | weft submit --kind note --wait=30s\n"
        "weft submit --bulk jobs.jsonl",
    .option = options,
    .run = run_submit,
};
