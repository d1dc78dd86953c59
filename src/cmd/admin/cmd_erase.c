/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft erase: asks for an erasure, waits for it, shows receipts, and verifies. Servers erase by
 * themselves; while it waits, the command runs the passes too, because on a store without a server
 * no other process does.
 */

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "cmd/cli/output.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* ---- Showing --------------------------------------------------------------------------------- */

static void put_state(struct weft_table *table, const void *item)
{
    const struct weft_erasure *erasure = item;
    weft_table_cell(table, "%s", erasure->state == WEFT_ERASURE_DONE ? "done" : "running");
    weft_table_cell(table, "%s", erasure->of == WEFT_ERASURE_TENANT ? "tenant" : "tag");
}

static void put_remains(struct weft_table *table, const void *item)
{
    const struct weft_erasure *erasure = item;
    if (erasure->verified_us)
        weft_table_cell(table, "%" PRIu64, erasure->remains);
    else
        weft_table_cell(table, "-");
}

#define AT(member) offsetof(struct weft_erasure, member)
static const struct weft_column columns[] = {
    {"ID", WEFT_LEFT, 0, weft_cell_id, AT(id)},
    {"STATE", WEFT_LEFT, 0, put_state, 0},
    {"OF", WEFT_LEFT, 0, NULL, 0},
    {"ASKED", WEFT_RIGHT, 0, weft_cell_ago, AT(asked_us)},
    {"FINISHED", WEFT_RIGHT, 0, weft_cell_ever, AT(finished_us)},
    {"REMAINS", WEFT_RIGHT, 0, put_remains, 0},
    {"BY", WEFT_LEFT, 2, weft_cell_text, AT(by)},
    {"REASON", WEFT_LEFT, 1, weft_cell_text, AT(reason)},
};
#undef AT

static void put_receipt(const struct weft_cli *cli, const struct weft_erasure *erasure)
{
    char id[WEFT_ID_TEXT];
    if (weft_cli_json(cli)) {
        weft_json_out_item(&weft_wire_erasure, erasure);
        return;
    }
    weft_id_print(&erasure->id, id);
    printf("erasure  %s\nstate    %s\nof       a %s, hash %s\nreason   %s\n", id,
           erasure->state == WEFT_ERASURE_DONE ? "done" : "running",
           erasure->of == WEFT_ERASURE_TENANT ? "tenant" : "tag", erasure->subject_hash,
           erasure->reason);
    if (erasure->by)
        printf("by       %s\n", erasure->by);
    for (size_t i = 0; i < erasure->count_count; i++)
        if (erasure->counts[i].value > 0)
            printf("%-12s %" PRIu64 "\n", erasure->counts[i].name, erasure->counts[i].value);
    if (erasure->unreached)
        printf("%s\n", erasure->unreached);
    if (erasure->digest)
        printf("digest   %s\n", erasure->digest);
    if (erasure->verified_us)
        printf("verified: %" PRIu64 " rows of the subject remain\n", erasure->remains);
}

static struct weft_id read_id(const struct weft_cli *cli)
{
    struct weft_id id;
    if (cli->arg_count != 2 || !weft_id_parse(cli->arg[1], strlen(cli->arg[1]), &id))
        weft_cli_usage(cli, "say which: `weft erase %s ID`, as `weft erase ls` shows it",
                       cli->arg[0]);
    return id;
}

static enum weft_exit list(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct weft_erasures erasures = {0};
    if (weft_erasures(weft_cli_open(cli), NULL, WEFT_PAGE_MAX, NULL, &erasures, &err))
        return weft_cli_fail(&err);
    weft_cli_put_list(cli, WEFT_LIST(columns, weft_wire_erasure, erasures));
    weft_erasures_free(&erasures);
    return WEFT_EXIT_OK;
}

static enum weft_exit show(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct weft_erasures erasures = {0};
    struct weft_id id = read_id(cli);
    if (weft_erasures(weft_cli_open(cli), &id, 0, NULL, &erasures, &err))
        return weft_cli_fail(&err);
    put_receipt(cli, erasures.item);
    weft_erasures_free(&erasures);
    return WEFT_EXIT_OK;
}

/* Fails when something of the subject is there. */
static enum weft_exit verify(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct weft_erasures erasures = {0};
    struct weft_id id = read_id(cli);
    if (weft_erasure_verify(weft_cli_open(cli), &id, &erasures, &err))
        return weft_cli_fail(&err);
    uint64_t remains = erasures.item->remains;
    put_receipt(cli, erasures.item);
    weft_erasures_free(&erasures);
    return remains > 0 ? WEFT_EXIT_FAILED : WEFT_EXIT_OK;
}

/* ---- Erasing --------------------------------------------------------------------------------- */

/* One pass of each scanner that an erasure needs. */
static enum weft_rc run_passes(struct weft *weft, bool *ret_more, struct weft_err *err)
{
    static const enum weft_scanner scanner[] = {WEFT_SCANNER_ERASURE, WEFT_SCANNER_CANCEL_BACKLOG,
                                                WEFT_SCANNER_DEPENDENCY, WEFT_SCANNER_PURGE};
    enum weft_rc rc = WEFT_OK;
    *ret_more = false;
    for (size_t i = 0; i < WEFT_LEN(scanner) && !rc; i++) {
        struct weft_pass_report report = {0};
        rc = weft_run_pass(weft, scanner[i], 0, &report, err);
        *ret_more |= report.more;
    }
    return rc;
}

static enum weft_rc await(struct weft *weft, struct weft_erasures *erasures, struct weft_err *err)
{
    static const struct timespec pause = {.tv_nsec = 100000000};
    enum weft_rc rc = WEFT_OK;
    while (!rc && erasures->item->state == WEFT_ERASURE_RUNNING) {
        bool more = false;
        struct weft_id id = erasures->item->id;
        rc = run_passes(weft, &more, err);
        weft_erasures_free(erasures);
        if (!rc && !more)
            (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        if (!rc)
            rc = weft_erasures(weft, &id, 0, NULL, erasures, err);
    }
    return rc;
}

static enum weft_exit erase(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct weft_erasures erasures = {0};
    const struct weft_erasure_spec spec = {.tenant = weft_cli_get(cli, "tenant"),
                                           .tag = weft_cli_get(cli, "tag"),
                                           .reason = weft_cli_get(cli, "reason")};
    if (!spec.tenant == !spec.tag)
        weft_cli_usage(cli, "say what: --tenant NAME, or --tag KEY:VALUE");
    if (!spec.reason)
        weft_cli_usage(cli, "say why with --reason: it stays in the receipt");
    struct weft *weft = weft_cli_open(cli);
    enum weft_rc rc = weft_erase(weft, &spec, &erasures, &err);
    if (!rc && weft_cli_has(cli, "wait"))
        rc = await(weft, &erasures, &err);
    if (rc)
        return weft_cli_fail(&err);
    put_receipt(cli, erasures.item);
    weft_erasures_free(&erasures);
    return WEFT_EXIT_OK;
}

static enum weft_exit run_erase(struct weft_cli *cli)
{
    const char *verb = cli->arg_count > 0 ? cli->arg[0] : NULL;
    if (!verb)
        return erase(cli);
    if (strcmp(verb, "show") == 0)
        return show(cli);
    if (strcmp(verb, "verify") == 0)
        return verify(cli);
    if (cli->arg_count > 1 || !weft_is_word(verb, "ls list"))
        weft_cli_usage(cli, "'%s' is neither show, ls nor verify", verb);
    return list(cli);
}

const struct weft_command weft_command_erase = {
    .name = "erase",
    .args = "[show|ls|verify [ID]]",
    .summary = "erase everything of a tenant or with a tag, and show the receipts",
    .about =
        "Erases what was created before: what lives is cancelled first, executions are removed "
        "with all that mentions them, members of flows that others share are scrubbed, and batches "
        "whose metadata name the tenant or have the tag go with their files. What is submitted "
        "later is not touched. It cannot be undone. A receipt stays, with a hash of "
        "the subject instead of the subject; the reason stays too, so it must not name it.\n\n"
        "With --wait the command waits until it is done, and runs the passes itself besides. "
        "weft erase verify looks for the subject again, and for rows that belong to nothing, and "
        "exits with 1 when there are any. docs/erasure.md tells what is erased and what cannot be "
        "reached.",
    .example =
        "weft erase --tenant acme --reason 'ticket 4711' --wait\n"
        "weft erase --tag user:42 --reason 'request of 2026-11-19'\n"
        "weft erase ls\nweft erase verify 019a9c1e-7f00-7a01-9f0e-0123456789ab",
    .option =
        (const struct weft_option[]){
            {"tenant", 0, "NAME", "everything of this tenant", NULL},
            {"tag", 0, "KEY:VALUE", "everything with this tag", NULL},
            {"reason", 0, "TEXT", "why; it stays in the receipt", NULL},
            {"wait", 0, NULL, "until it is done", NULL},
            {.name = NULL},
        },
    .run = run_erase,
};
