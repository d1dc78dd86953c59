/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft submit: one execution, many copies of it, or a file of specs.
 *
 * Ids go to stdout, one a line, as soon as they are durable. With --wait stdout belongs to the
 * result, so that the command can stand in a pipe.
 *
 * A payload is JSON when it is valid JSON, otherwise text, otherwise bytes; --content-type
 * overrules that. What looks like JSON but is not is refused: it is a slip more often than a text.
 *
 * Memory is bounded by one chunk, whatever the size of the file. A chunk is submitted when it has
 * 1,000 specs or half of what one request may carry.
 */

#include "base/limits.h"
#include "base/str.h"
#include "cmd/cli/amount_args.h"
#include "cmd/cli/filter_args.h"
#include "cmd/cli/output.h"
#include "core/result.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4 << 20 }; /* of a file: a payload in base64, and the rest of the spec */

static const struct weft_option options[] = {
    {"kind", 'k', "NAME", "what is to be done; required", NULL},
    {"lane", 'l', "NAME", "where; default: default", NULL},
    {"key", 0, "KEY", "idempotency key: a repeat gives the first one", NULL},
    {"priority", 'p', "N", "-32768 to 32767, higher first", NULL},
    {"delay", 0, "TIME", "begin so much later", NULL},
    {"run-at", 0, "MOMENT", "begin then", NULL},
    {"deadline", 0, "MOMENT", "must be over by then", NULL},
    {"capability", 0, "NAME", "what a worker must have; may be repeated", NULL},
    {"tenant", 0, "NAME", "whose it is: tenants take turns", NULL},
    {"gate", 0, "NAME", "whose limits hold for it: see weft gate", NULL},
    {"budget", 0, "NAME", "a budget that it is under: see weft budget; may be repeated", NULL},
    {"cost", 0, "DIM=N", "what it is expected to spend: tokens=500; may be repeated", NULL},
    {"tag", 't', "KEY=VALUE", "a tag; may be repeated", NULL},
    {"content-type", 0, "TYPE", "of the payload; default: what it looks like", NULL},
    {"max-attempts", 0, "N", "how often it is tried; default: 25", NULL},
    {"timeout", 0, "TIME", "how long one attempt may take", NULL},
    {"lease", 0, "TIME", "how long a silent worker keeps it; default: 30s", NULL},
    {"backoff", 0, "HOW", "how waits between attempts grow: exponential (doubling), fixed",
     "exponential fixed"},
    {"retry-delay", 0, "TIME", "the first wait; default: 1s", NULL},
    {"retry-max", 0, "TIME", "the longest wait; default: 1h", NULL},
    {"no-jitter", 0, NULL, "wait exactly that long, not 80 % to 120 % of it", NULL},
    {"no-retry", 0, "CLASS", "an error that is final; may be repeated", NULL},
    {"max-lost", 0, "N", "leases that may be lost; default: 10", NULL},
    {"retention", 0, "TIME", "how long the outcome is kept; default: the lane's, or 7d", NULL},
    {"count", 0, "N", "submit it so many times", NULL},
    {"bulk", 0, "FILE", "submit the specs in a file, a JSON object a line", NULL},
    WEFT_WAIT_OPTION,
    {.name = NULL},
};

/* ---- The payload ----------------------------------------------------------------------------- */

static void guess_type(const struct weft_cli *cli, struct weft_spec *spec)
{
    struct weft_err err = {0};
    struct weft_json value;
    const char *text = spec->payload;
    if (weft_json_check(text, spec->payload_size, &value, &err) == WEFT_OK)
        return;
    size_t at = 0;
    while (at < spec->payload_size && strchr(" \t\r\n", text[at]))
        at++;
    if (at < spec->payload_size && strchr("{[\"", text[at]))
        weft_cli_usage(cli,
                       "the payload is not valid JSON: %s (--content-type text/plain sends it as "
                       "it is)",
                       err.text);
    spec->content_type = weft_utf8_valid(text, spec->payload_size) ? "text/plain; charset=utf-8"
                                                                   : "application/octet-stream";
}

/* Stands for the argument when the payload is standard input, which may be empty. */
static const char payload_piped[] = "-";

/* Standard input is a pipe or a file; not a terminal, /dev/null or a socket. */
static bool input_piped(void)
{
    struct stat info;
    return fstat(STDIN_FILENO, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISREG(info.st_mode));
}

/* Says what the command waits for while a pipe stays open without data. */
static void warn_of_wait(void)
{
    enum { PATIENCE_MS = 3000 };
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&input, 1, PATIENCE_MS) == 0)
        weft_cli_say("weft: reading the payload from standard input; </dev/null gives none");
}

/* The payload: the argument itself, @FILE, or - for standard input. NULL: there is none. */
static void read_payload(const struct weft_cli *cli, const char *argument, struct weft_spec *spec)
{
    bool piped = argument == payload_piped;
    if (piped)
        warn_of_wait();
    if (argument && (strcmp(argument, "-") == 0 || argument[0] == '@')) {
        const char *path = argument + (argument[0] == '@'), *why;
        spec->payload = weft_cli_read_file(cli, path, WEFT_PAYLOAD_MAX, &spec->payload_size, &why);
        if (!spec->payload)
            weft_cli_usage(cli, "cannot read %s as the payload: %s",
                           strcmp(path, "-") == 0 ? "standard input" : path, why);
    } else if (argument) {
        spec->payload = argument;
        spec->payload_size = strlen(argument);
    }
    if (piped && spec->payload_size == 0)
        spec->payload = NULL;
    if (!spec->payload)
        return;
    spec->content_type = weft_cli_get(cli, "content-type");
    if (!spec->content_type)
        guess_type(cli, spec);
}

/* ---- The spec -------------------------------------------------------------------------------- */

static void read_tags(const struct weft_cli *cli, struct weft_spec *spec)
{
    const char *const *text;
    size_t count = weft_cli_all(cli, "tag", &text);
    struct weft_tag *tag = weft_new_array(cli->arena, struct weft_tag, count + 1);
    for (size_t i = 0; i < count; i++)
        tag[i] = weft_pick_tag(cli, text[i]);
    spec->tags = count ? tag : NULL;
    spec->tag_count = count;
}

static weft_usec read_moment(const struct weft_cli *cli, const char *option)
{
    const char *text = weft_cli_get(cli, option);
    weft_usec moment_us = 0;
    if (text && !weft_moment_typed(text, &moment_us))
        weft_cli_usage(cli, "--%s is '%s': it must be like 2031-01-31T12:00:00Z or +5m", option,
                       text);
    return moment_us;
}

static void read_policy(const struct weft_cli *cli, struct weft_spec *spec)
{
    static const char *const words[] = {"max-attempts", "timeout",   "lease",    "backoff",
                                        "retry-delay",  "retry-max", "no-retry", "no-jitter",
                                        "max-lost",     "retention"};
    struct weft_policy *policy = weft_new(cli->arena, struct weft_policy);
    const char *backoff = weft_cli_get(cli, "backoff");
    bool fixed = backoff && strcmp(backoff, "fixed") == 0;
    if (backoff && !fixed && strcmp(backoff, "exponential") != 0)
        weft_cli_usage(cli, "--backoff is '%s': it must be exponential or fixed", backoff);
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
}

static struct weft_spec read_spec(const struct weft_cli *cli)
{
    struct weft_spec spec = {
        .lane = weft_cli_get(cli, "lane"),
        .kind = weft_cli_get(cli, "kind"),
        .priority = (int32_t)weft_cli_i64(cli, "priority", INT16_MIN, INT16_MAX, 0),
        .delay_ms = weft_cli_ms(cli, "delay", 0, WEFT_DELAY_MAX_MS, 0),
        .tenant = weft_cli_get(cli, "tenant"),
        .gate = weft_cli_get(cli, "gate"),
        .key = weft_cli_get(cli, "key"),
    };
    spec.capability_count = weft_cli_all(cli, "capability", &spec.capabilities);
    spec.budget_count = weft_cli_all(cli, "budget", &spec.budgets);
    spec.cost_count = weft_amounts_given(cli, "cost", &spec.cost);
    spec.run_at_us = read_moment(cli, "run-at");
    spec.deadline_us = read_moment(cli, "deadline");
    read_tags(cli, &spec);
    read_policy(cli, &spec);
    return spec;
}

/* Without --json only the result of an execution that succeeded is printed. */
static enum weft_exit put_result(const struct weft_cli *cli, struct weft *weft,
                                 const struct weft_execution *item)
{
    struct weft_err err = {0};
    struct weft_bytes result = {0};
    if (item->state != WEFT_STATE_SUCCEEDED && !weft_cli_json(cli))
        return WEFT_EXIT_OK;
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
        weft_cli_say("%s", id);
    else if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_submitted, &result);
    else
        printf("%s\n", id);
    if (answer.duplicate && !weft_cli_json(cli))
        weft_cli_say("weft: the key is known: this is the execution it named, now %s",
                     weft_state_name(answer.state));
    return wait ? weft_cli_wait(cli, weft, &answer.id, put_result) : WEFT_EXIT_OK;
}

/* ---- Many ------------------------------------------------------------------------------------ */

/* Executions that are submitted in chunks, with a bar, each answered with a line. */
struct sending {
    const struct weft_cli *cli;
    struct weft *weft;
    struct weft_bar *bar;
    const char *file; /* where the specs stand, or NULL */
    uint64_t done;
    uint64_t accepted, duplicates, refused;
    enum weft_exit worst; /* of the items that were refused so far */
};

/* The number of the line that a spec comes from, when it comes from a file. */
static void put_line_number(const struct sending *sending, uint64_t line,
                            struct weft_json_writer *json)
{
    if (sending->file)
        weft_json_add_i64(json, "line", (int64_t)line);
}

static void refuse(struct sending *sending, uint64_t line, const struct weft_err *err)
{
    const char *text = err->text[0] ? err->text : weft_rc_text(err->rc);
    sending->refused++;
    if (sending->worst == WEFT_EXIT_OK)
        sending->worst = WEFT_EXIT_FAILED;
    if (sending->file)
        weft_cli_say("weft: %s:%" PRIu64 ": %s", sending->file, line, text);
    else
        weft_cli_say("weft: %s", text);
    if (!weft_cli_json(sending->cli))
        return;
    struct weft_json_out out;
    weft_json_out_begin_object(&out);
    put_line_number(sending, line, &out.json);
    weft_json_key(&out.json, "error");
    weft_wire_write_error(err, NULL, &out.json);
    weft_json_out_end_object(&out);
}

static void put_answer(struct sending *sending, uint64_t line, const struct weft_submitted *answer)
{
    char id[WEFT_ID_TEXT];
    if (answer->err.rc) {
        refuse(sending, line, &answer->err);
        return;
    }
    if (answer->duplicate)
        sending->duplicates++;
    else
        sending->accepted++;
    if (weft_cli_json(sending->cli)) {
        struct weft_json_out out;
        const struct weft_submit_result result = weft_submit_result_of(answer);
        weft_json_out_begin_object(&out);
        put_line_number(sending, line, &out.json);
        weft_wire_write_members(&weft_wire_submitted, &result, &out.json);
        weft_json_out_end_object(&out);
        return;
    }
    weft_id_print(&answer->id, id);
    printf("%s\n", id);
}

/*
 * Submits up to WEFT_BATCH_MAX specs and prints their answers. line: the line of each in the file,
 * or NULL. Anything but WEFT_EXIT_OK: the chunk as a whole failed, which has been printed, or a
 * signal came.
 */
static enum weft_exit send_chunk(struct sending *sending, const struct weft_spec *spec,
                                 const uint64_t *line, size_t count)
{
    struct weft_err err = {0};
    if (count == 0)
        return WEFT_EXIT_OK;
    struct weft_submitted *answer = weft_alloc(count, sizeof(*answer));
    enum weft_exit code = WEFT_EXIT_OK;
    if (weft_submit(sending->weft, spec, count, answer, &err)) {
        code = weft_cli_fail(&err);
        if (line)
            weft_cli_say("weft: stopped at line %" PRIu64
                         " of %s: this line and all after it were not answered",
                         line[0], sending->file);
    }
    for (size_t i = 0; i < count && code == WEFT_EXIT_OK; i++)
        put_answer(sending, line ? line[i] : 0, &answer[i]);
    free(answer);
    sending->done += count;
    weft_bar_set(sending->bar, sending->done);
    return code == WEFT_EXIT_OK && weft_cli_interrupted() ? WEFT_EXIT_INTERRUPTED : code;
}

static enum weft_exit submit_copies(const struct weft_cli *cli, struct weft *weft,
                                    const struct weft_spec *spec, uint64_t count)
{
    struct weft_spec *copy = weft_new_array(cli->arena, struct weft_spec, WEFT_BATCH_MAX);
    for (size_t i = 0; i < WEFT_BATCH_MAX; i++)
        copy[i] = *spec;
    struct sending sending = {.cli = cli, .weft = weft, .bar = weft_bar_new("submit", count)};
    enum weft_exit code = WEFT_EXIT_OK;
    for (uint64_t left = count; left > 0 && code == WEFT_EXIT_OK;) {
        size_t chunk = left < WEFT_BATCH_MAX ? (size_t)left : WEFT_BATCH_MAX;
        code = send_chunk(&sending, copy, NULL, chunk);
        left -= chunk;
    }
    weft_bar_free(sending.bar);
    return code == WEFT_EXIT_OK ? sending.worst : code;
}

/* ---- A file ---------------------------------------------------------------------------------- */

struct chunk {
    struct weft_arena *arena; /* of the lines and what was read from them */
    struct weft_spec *spec;
    uint64_t *line;
    size_t count, bytes;
};

/* Reads one line into the chunk. A line that is no spec is reported and left out. */
static void read_line(struct sending *sending, const char *lane, struct chunk *chunk,
                      const char *text, uint64_t number)
{
    struct weft_err err = {0};
    struct weft_json value;
    struct weft_spec *spec = &chunk->spec[chunk->count];
    size_t size = strlen(text);
    if (text[strspn(text, " \t\r\n")] == '\0')
        return;
    if (size > LINE_MAX_BYTES) {
        err = (struct weft_err){.rc = WEFT_TOO_LARGE, .text = "the line is too long"};
        refuse(sending, number, &err);
        return;
    }
    const char *copy = weft_arena_dup(chunk->arena, text, size + 1);
    enum weft_rc rc = weft_json_check(copy, size, &value, &err);
    if (!rc)
        rc = weft_wire_read(&weft_wire_spec, &value, chunk->arena, spec, &err);
    if (rc) {
        refuse(sending, number, &err);
        return;
    }
    if (!spec->lane)
        spec->lane = lane;
    chunk->line[chunk->count++] = number;
    chunk->bytes += size;
}

static enum weft_exit send_and_empty(struct sending *sending, struct chunk *chunk)
{
    enum weft_exit code = send_chunk(sending, chunk->spec, chunk->line, chunk->count);
    weft_arena_reset(chunk->arena);
    chunk->count = chunk->bytes = 0;
    return code;
}

static enum weft_exit send_lines(struct sending *sending, const char *lane, FILE *file)
{
    struct chunk chunk = {.arena = weft_arena_new(),
                          .spec =
                              weft_new_array(sending->cli->arena, struct weft_spec, WEFT_BATCH_MAX),
                          .line = weft_new_array(sending->cli->arena, uint64_t, WEFT_BATCH_MAX)};
    enum weft_exit code = WEFT_EXIT_OK;
    char *text = NULL;
    size_t room = 0;
    uint64_t number = 0;
    while (code == WEFT_EXIT_OK && getline(&text, &room, file) >= 0) {
        read_line(sending, lane, &chunk, text, ++number);
        if (chunk.count == WEFT_BATCH_MAX || chunk.bytes >= WEFT_BATCH_BYTES)
            code = send_and_empty(sending, &chunk);
    }
    if (code == WEFT_EXIT_OK && ferror(file))
        code = WEFT_EXIT_USAGE;
    enum weft_exit last = code == WEFT_EXIT_OK ? send_and_empty(sending, &chunk) : code;
    free(text);
    weft_arena_free(chunk.arena);
    return last;
}

/* The number of lines, for the bar; 0 for a pipe, which cannot be read twice. */
static uint64_t count_lines(FILE *file)
{
    struct stat info;
    char block[65536];
    uint64_t lines = 0;
    size_t size;
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode))
        return 0;
    while ((size = fread(block, 1, sizeof(block), file)) > 0)
        for (size_t i = 0; i < size; i++)
            lines += block[i] == '\n';
    rewind(file);
    return lines;
}

/* How many lines were accepted and refused: on stderr; with --json the last line of the output. */
static void put_summary(const struct sending *sending)
{
    if (!weft_cli_json(sending->cli)) {
        weft_cli_say("weft: accepted %" PRIu64 ", duplicates %" PRIu64 ", refused %" PRIu64,
                     sending->accepted, sending->duplicates, sending->refused);
        return;
    }
    struct weft_json_out out;
    weft_json_out_begin_object(&out);
    weft_json_add_i64(&out.json, "accepted", (int64_t)sending->accepted);
    weft_json_add_i64(&out.json, "duplicates", (int64_t)sending->duplicates);
    weft_json_add_i64(&out.json, "refused", (int64_t)sending->refused);
    weft_json_out_end_object(&out);
}

/* Submits a file of specs, or - for standard input. Specs without a lane get this one. */
static enum weft_exit submit_file(const struct weft_cli *cli, struct weft *weft, const char *path,
                                  const char *lane)
{
    bool input = strcmp(path, "-") == 0;
    FILE *file = input ? stdin : fopen(path, "re");
    if (!file) {
        char why[128];
        weft_cli_usage(cli, "cannot read %s: %s", path, strerror_r(errno, why, sizeof(why)));
    }
    struct sending sending = {.cli = cli,
                              .weft = weft,
                              .file = input ? "standard input" : path,
                              .bar = weft_bar_new("submit", input ? 0 : count_lines(file))};
    enum weft_exit code = send_lines(&sending, lane, file);
    weft_bar_free(sending.bar);
    if (ferror(file)) {
        weft_cli_say("weft submit: cannot read %s to its end", sending.file);
        weft_cli_say("hint: see `weft help submit`");
    }
    put_summary(&sending);
    if (!input)
        (void)fclose(file);
    return code == WEFT_EXIT_OK ? sending.worst : code;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* The specs are in the file: of the options that describe a spec only --lane goes with --bulk. */
static void check_bulk(const struct weft_cli *cli, bool payload)
{
    if (payload)
        weft_cli_usage(cli, "--bulk goes with no payload");
    for (const struct weft_option *at = options; at->name; at++)
        if (weft_cli_has(cli, at->name) && !weft_is_word(at->name, "bulk lane"))
            weft_cli_usage(cli, "--bulk does not go with --%s", at->name);
}

static void check_line(const struct weft_cli *cli, bool payload)
{
    if (!weft_cli_has(cli, "kind"))
        weft_cli_usage(cli, "say with --kind what is to be done");
    if (weft_cli_has(cli, "count") && (weft_cli_has(cli, "key") || weft_cli_has(cli, "wait")))
        weft_cli_usage(cli, "--count goes with neither --key nor --wait");
    if (weft_cli_has(cli, "content-type") && !payload)
        weft_cli_usage(cli, "--content-type is of a payload, and there is none");
}

static enum weft_exit run_submit(struct weft_cli *cli)
{
    const char *payload = cli->arg[0], *file = weft_cli_get(cli, "bulk");
    if (!payload && weft_cli_has(cli, "kind") && !file && input_piped())
        payload = payload_piped;
    if (file)
        check_bulk(cli, payload != NULL);
    else
        check_line(cli, payload != NULL);
    uint64_t count = (uint64_t)weft_cli_i64(cli, "count", 1, INT32_MAX, 1);
    struct weft_spec spec = read_spec(cli);
    read_payload(cli, payload, &spec);
    struct weft *weft = weft_cli_open(cli);
    if (!weft_cli_has(cli, "wait")) /* a wait is simply ended by a signal */
        weft_cli_catch();
    if (file)
        return submit_file(cli, weft, file, spec.lane);
    return weft_cli_has(cli, "count") ? submit_copies(cli, weft, &spec, count)
                                      : submit_one(cli, weft, &spec);
}

const struct weft_command weft_command_submit = {
    .name = "submit",
    .args = "[PAYLOAD]",
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
        "weft submit --kind chat --budget team-a --cost tokens=2k @question.json\n"
        "weft submit --bulk jobs.jsonl",
    .option = options,
    .run = run_submit,
};
