/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft signal, waitpoints and keys: what people and scripts need of suspended executions.
 *
 * A signal needs no other right than its token. The payload is JSON when it is, otherwise it is
 * sent as the bytes that it is.
 */

#include "base/json.h"
#include "base/limits.h"
#include "cmd/cli/filter_args.h"
#include "cmd/cli/output.h"
#include "cmd/job/show.h"
#include "core/result.h"
#include "weft/admin.h"

#include <stdlib.h>
#include <string.h>

/* ---- Signal ---------------------------------------------------------------------------------- */

static enum weft_exit run_signal(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct weft_signalled answer;
    struct weft_signal signal = {.token = cli->arg[0],
                                 .name = weft_cli_get(cli, "name"),
                                 .source = weft_cli_get(cli, "source"),
                                 .key = weft_cli_get(cli, "key"),
                                 .content_type = weft_cli_get(cli, "content-type")};
    if (cli->arg_count > 1) {
        struct weft_json value;
        signal.payload = cli->arg[1];
        signal.payload_size = strlen(cli->arg[1]);
        if (!signal.content_type &&
            weft_json_check(signal.payload, signal.payload_size, &value, NULL))
            signal.content_type = "text/plain";
    }
    if (weft_signal(weft_cli_open(cli), &signal, 1, &answer, &err))
        return weft_cli_fail(&err);
    if (answer.err.rc)
        return weft_cli_fail(&answer.err);
    if (weft_cli_json(cli)) {
        const struct weft_signal_result result = {
            .effect = answer.effect, .first = answer.first, .waitpoint = answer.waitpoint};
        weft_json_out_item(&weft_wire_signalled, &result);
    } else if (answer.effect == WEFT_SIGNAL_DUPLICATE) {
        printf("duplicate: the first one with this key was %s\n",
               weft_signal_effect_name(answer.first));
    } else {
        printf("%s\n", weft_signal_effect_name(answer.effect));
    }
    return WEFT_EXIT_OK;
}

const struct weft_command weft_command_signal = {
    .name = "signal",
    .args = "TOKEN [PAYLOAD]",
    .summary = "send a signal to a waitpoint of a suspended execution",
    .about =
        "TOKEN is what the worker was given for the waitpoint; it is all the right that is needed. "
        "PAYLOAD is any text; JSON is sent as JSON. Prints what the signal did: resumed, recorded "
        "(more is needed), buffered (the execution is not suspended yet), ignored (its condition "
        "does not ask for it) or duplicate.",
    .example = "weft signal \"$TOKEN\" --name approved --source ann '{\"note\":\"fine\"}'",
    .option =
        (const struct weft_option[]){
            {"name", 0, "NAME", "what it says, like approved", NULL},
            {"source", 0, "TEXT", "who sends it; conditions may count these", NULL},
            {"key", 'k', "KEY", "a second signal with it is a duplicate", NULL},
            {"content-type", 0, "TYPE", "of the payload; default: JSON, or text/plain", NULL},
            {.name = NULL},
        },
    .run = run_signal,
};

/* ---- Waitpoints ------------------------------------------------------------------------------ */

#define AT(member) offsetof(struct weft_waitpoint, member)
static const struct weft_column waitpoint_columns[] = {
    {"ID", WEFT_LEFT, 0, weft_cell_id, AT(id)},
    {"NAME", WEFT_LEFT, 3, weft_cell_text, AT(name)},
    {"STATE", WEFT_LEFT, 0, weft_cell_waitpoint_state, AT(state)},
    {"SIGNALS", WEFT_RIGHT, 0, weft_cell_i32, AT(signals)},
    {"CREATED", WEFT_RIGHT, 1, weft_cell_ago, AT(created_us)},
    {"EXPIRES", WEFT_RIGHT, 0, weft_cell_ever, AT(expires_us)},
};
#undef AT

/* Which lease: by the command line, else by the variables of `weft work`. */
static struct weft_waitpoint_new lease_of(struct weft_cli *cli)
{
    const char *id = cli->arg_count ? cli->arg[0] : weft_env("WEFT_ID");
    const char *env = cli->arg_count ? NULL : weft_env("WEFT_EPOCH");
    char *end = NULL;
    long epoch = env ? strtol(env, &end, 10) : 0;
    struct weft_waitpoint_new item = {
        .name = weft_cli_get(cli, "new"),
        .expires_ms = weft_cli_ms(cli, "expires", 1, WEFT_DELAY_MAX_MS, 0),
        .epoch = (int32_t)weft_cli_i64(cli, "epoch", 1, INT32_MAX, 0)};
    if (!item.epoch && env && *env && !*end && epoch > 0 && epoch <= INT32_MAX)
        item.epoch = (int32_t)epoch;
    if (!id || !weft_id_parse(id, strlen(id), &item.id))
        weft_cli_usage(cli, "--new needs the whole id of an execution, or WEFT_ID");
    if (!item.epoch)
        weft_cli_usage(cli, "--new needs the lease: --epoch N, or WEFT_ID and WEFT_EPOCH");
    return item;
}

static enum weft_exit make_waitpoint(struct weft_cli *cli)
{
    struct weft_err err = {0};
    const struct weft_waitpoint_new item = lease_of(cli);
    struct weft_waitpoints_made made = {0};
    if (weft_waitpoint_make(weft_cli_open(cli), &item, 1, &made, &err))
        return weft_cli_fail(&err);
    enum weft_exit code = WEFT_EXIT_OK;
    const struct weft_waitpoint *waitpoint = &made.item[0].waitpoint;
    if (made.item[0].err.rc) {
        code = weft_cli_fail(&made.item[0].err);
    } else if (weft_cli_json(cli)) {
        const struct weft_waitpoint_result result = {.waitpoint = *waitpoint};
        weft_json_out_item(&weft_wire_waitpoint_pending, &result);
    } else {
        printf("%s\n", waitpoint->token);
    }
    weft_waitpoints_made_free(&made);
    return code;
}

static enum weft_exit run_waitpoints(struct weft_cli *cli)
{
    struct weft_err err = {0};
    if (weft_cli_get(cli, "new"))
        return make_waitpoint(cli);
    if (cli->arg_count == 0)
        weft_cli_usage(cli, "of which execution? Give its ID");
    if (weft_cli_get(cli, "epoch") || weft_cli_get(cli, "expires"))
        weft_cli_usage(cli, "--epoch and --expires are for --new");
    const struct weft_id *id;
    struct weft *weft = weft_open_ids(cli, 1, &id);
    struct weft_waitpoints page = {0};
    if (weft_waitpoints(weft, id, WEFT_PAGE_MAX, NULL, &page, &err))
        return weft_cli_fail(&err);
    weft_cli_put_list(cli, WEFT_LIST(waitpoint_columns, weft_wire_waitpoint, page));
    if (page.next && !weft_cli_json(cli))
        weft_cli_say("there are more than %d", WEFT_PAGE_MAX);
    weft_waitpoints_free(&page);
    return WEFT_EXIT_OK;
}

const struct weft_command weft_command_waitpoints = {
    .name = "waitpoints",
    .args = "[ID]",
    .summary = "show where an execution waits for signals, or make a place",
    .about =
        "Open ones take signals now; pending ones were made before the execution was "
        "suspended; closed ones are history. Tokens are not shown.\n\n"
        "With --new a worker makes a pending waitpoint of the execution that it runs, and its "
        "token is printed: send it away first, suspend after. Signals that come early are kept. "
        "A pending one of that name is given again. A command of `weft work` needs no ID: its "
        "environment says which execution and which lease it is.",
    .example =
        "weft waitpoints 01932c07-5f3e-7a10-8c51-0123456789ab\n"
        "TOKEN=$(weft waitpoints --new approval --expires 3d)",
    .option =
        (const struct weft_option[]){
            {"new", 0, "NAME", "make a pending one; prints its token", NULL},
            {"epoch", 0, "N", "--new: of the lease, from the claim ($WEFT_EPOCH)", NULL},
            {"expires", 0, "TIME", "--new: it closes then (with its execution)", NULL},
            {.name = NULL},
        },
    .run = run_waitpoints,
};

/* ---- Signing keys ---------------------------------------------------------------------------- */

static void put_use(struct weft_table *table, const void *item)
{
    const struct weft_signing_key_info *key = item;
    weft_table_cell(table, "%s", key->current ? "signs" : "verifies");
}

#define AT(member) offsetof(struct weft_signing_key_info, member)
static const struct weft_column key_columns[] = {
    {"KEY", WEFT_RIGHT, 0, weft_cell_i32, AT(key_id)},
    {"USE", WEFT_LEFT, 0, put_use, 0},
    {"CREATED", WEFT_RIGHT, 1, weft_cell_ago, AT(created_us)},
    {"RETIRES", WEFT_RIGHT, 0, weft_cell_ever, AT(retires_us)},
};
#undef AT

static enum weft_exit run_keys(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct weft_signing_keys keys = {0};
    const char *verb = cli->arg_count ? cli->arg[0] : "ls";
    struct weft_key_rotation rotation = {
        .grace_ms = weft_cli_ms(cli, "grace", 0, WEFT_DELAY_MAX_MS, 86400000)};
    if (!weft_is_word(verb, "ls list rotate"))
        weft_cli_usage(cli, "'%s' is neither ls nor rotate", verb);
    struct weft *weft = weft_cli_open(cli);
    enum weft_rc rc = strcmp(verb, "rotate") == 0
                          ? weft_signing_key_rotate(weft, &rotation, &keys, &err)
                          : weft_signing_keys(weft, &keys, &err);
    if (rc)
        return weft_cli_fail(&err);
    weft_cli_put_list(cli, WEFT_LIST(key_columns, weft_wire_signing_key, keys));
    weft_signing_keys_free(&keys);
    return WEFT_EXIT_OK;
}

const struct weft_command weft_command_keys = {
    .name = "keys",
    .args = "[ls|rotate]",
    .summary = "show and rotate the keys that sign signal tokens",
    .about =
        "The newest key signs the tokens of waitpoints. After a rotation tokens of the keys before "
        "stay good for --grace, a day by default; 0 when a secret has leaked, and then tokens that "
        "are out there are refused at once. Secrets are never shown.",
    .example = "weft keys\nweft keys rotate --grace 1h",
    .option =
        (const struct weft_option[]){
            {"grace", 0, "TIME", "rotate: how long older tokens stay good; default: 24h", NULL},
            {.name = NULL},
        },
    .run = run_keys,
};
