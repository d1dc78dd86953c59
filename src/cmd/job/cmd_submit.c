/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft submit: one execution, many copies of it, or a file of specs.
 *
 * Ids go to stdout, one a line, as soon as they are durable. With --wait stdout belongs to the
 * result, so that the command can stand in a pipe.
 */

#include "cmd/cli/bulk.h"
#include "cmd/cli/cli_json.h"
#include "cmd/cli/line.h"
#include "cmd/cli/spec_args.h"
#include "cmd/job/cmd_wait.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/limits.h"

#include <inttypes.h>
#include <string.h>

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
        weft_json_out_begin(&out);
        weft_json_begin_object(&out.json);
        weft_wire_write_members(&weft_wire_execution, item, &out.json);
        weft_json_out_bytes(&out, "result", &result);
        weft_json_end_object(&out.json);
        weft_json_out_end(&out);
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
    char id[WEFT_ID_TEXT];
    bool wait = weft_cli_has(cli, "wait");
    if (weft_submit(weft, spec, 1, &answer, &err))
        return weft_cli_fail(&err);
    if (answer.err.rc)
        return weft_cli_fail(&answer.err);
    weft_id_print(&answer.id, id);
    if (wait)
        (void)fprintf(stderr, "%s\n", id);
    else if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_submitted, &answer);
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
    for (const struct weft_option *at = weft_submit_options; at->name; at++)
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
    if (!payload && weft_cli_has(cli, "kind") && !weft_cli_has(cli, "bulk") && weft_input_piped())
        payload = weft_payload_piped;
    struct weft *weft;
    struct weft_spec spec;
    enum weft_exit code = check_line(cli, payload != NULL);
    if (code != WEFT_EXIT_OK)
        return code;
    uint64_t count = (uint64_t)weft_cli_i64(cli, "count", 1, INT32_MAX, 1);
    if (!weft_spec_typed(cli, &spec, &code) || !weft_payload_typed(cli, payload, &spec, &code) ||
        !weft_cli_open(cli, &weft, &code))
        return code;
    if (!weft_cli_has(cli, "wait")) /* a wait is simply ended by a signal */
        weft_cli_catch();
    if (weft_cli_has(cli, "bulk"))
        code = weft_submit_bulk(cli, weft, weft_cli_get(cli, "bulk"), spec.lane);
    else if (weft_cli_has(cli, "count"))
        code = submit_copies(cli, weft, &spec, count);
    else
        code = submit_one(cli, weft, &spec);
    weft_close(weft);
    return code;
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
    .option = weft_submit_options,
    .run = run_submit,
};
