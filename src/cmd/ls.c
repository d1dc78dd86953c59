/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft ls: a list of executions, newest first.
 *
 * A page of the API may be short, so pages are asked for until there are as many as were wanted.
 * They are printed as they come; nothing is kept.
 */

#include "cmd/json.h"
#include "cmd/pick.h"

#include "base/base.h"
#include "base/limits.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT_NORMAL = 50 };

static const struct weft_column columns[] = {
    {.title = "ID"},
    {.title = "LANE", .give = 3},
    {.title = "KIND", .give = 4},
    {.title = "STATE"},
    {.title = "TRY", .align = WEFT_RIGHT, .give = 2},
    {.title = "AGE", .align = WEFT_RIGHT},
    {.title = "DETAIL", .give = 1},
};

/* What one wants to know of it: who has it, what went wrong, or why it was stopped. */
static void put_detail(struct weft_table *table, const struct weft_execution *item)
{
    if (item->error_class && item->error_message)
        weft_table_cell(table, "%s: %s", item->error_class, item->error_message);
    else if (item->error_class)
        weft_table_cell(table, "%s", item->error_class);
    else if (item->reason)
        weft_table_cell(table, "%s", item->reason);
    else if (item->state == WEFT_STATE_DELAYED)
        weft_table_ago(table, item->run_at_us);
    else if (item->state == WEFT_STATE_RUNNING && item->percent >= 0)
        weft_table_cell(table, "%s, %d %%", item->worker ? item->worker : "", item->percent);
    else
        weft_table_cell(table, "%s", item->worker ? item->worker : "");
}

static void put_row(struct weft_table *table, const struct weft_execution *item)
{
    char id[WEFT_ID_TEXT];
    weft_id_print(&item->id, id);
    weft_table_cell(table, "%s", id);
    weft_table_cell(table, "%s", item->lane);
    weft_table_cell(table, "%s", item->kind);
    weft_table_state(table, item->state);
    weft_table_cell(table, "%d", item->attempt);
    weft_table_ago(table, item->created_us);
    put_detail(table, item);
}

struct listing {
    struct weft *weft;
    struct weft_filter filter;
    uint64_t wanted;          /* UINT64_MAX: all */
    struct weft_table *table; /* NULL: JSON */
    struct weft_json_out out; /* JSON, unless all are wanted: then each has a line of its own */
    char next[512];           /* the cursor, empty at the end */
};

static void put_page(struct listing *listing, const struct weft_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        if (listing->table)
            put_row(listing->table, &page->item[i]);
        else if (listing->wanted == UINT64_MAX)
            weft_json_out_item(&weft_wire_execution, &page->item[i]);
        else
            weft_wire_write(&weft_wire_execution, &page->item[i], &listing->out.json);
    }
    if (listing->table)
        weft_table_flush(listing->table);
}

static enum weft_rc read_pages(struct listing *listing, const char *after, struct weft_err *err)
{
    uint64_t seen = 0;
    bool more = true;
    (void)snprintf(listing->next, sizeof(listing->next), "%s", after ? after : "");
    while (more && seen < listing->wanted && !weft_cli_interrupted()) {
        uint64_t left = listing->wanted - seen;
        struct weft_page page = {0};
        enum weft_rc rc = weft_list(listing->weft, &listing->filter,
                                    (uint32_t)(left < WEFT_PAGE_MAX ? left : WEFT_PAGE_MAX),
                                    listing->next[0] ? listing->next : NULL, &page, err);
        if (rc)
            return rc;
        put_page(listing, &page);
        seen += page.count;
        (void)snprintf(listing->next, sizeof(listing->next), "%s", page.next ? page.next : "");
        more = page.next != NULL;
        weft_page_free(&page);
    }
    return WEFT_OK;
}

/* Ends what was begun on stdout. After a failure there is no list, only what was printed of it. */
static void finish(struct listing *listing, enum weft_rc rc)
{
    bool items = !listing->table && listing->wanted != UINT64_MAX;
    if (rc && listing->table) {
        weft_table_free(listing->table);
    } else if (rc && items) {
        weft_buf_done(&listing->out.buf);
    } else if (listing->table) {
        weft_table_print(listing->table);
        if (listing->next[0] && isatty(STDERR_FILENO))
            (void)fprintf(stderr, "There are more: add --after %s, or --all\n", listing->next);
    } else if (items) {
        weft_json_end_array(&listing->out.json);
        weft_json_key(&listing->out.json, "next");
        weft_json_put_text(&listing->out.json, listing->next[0] ? listing->next : NULL);
        weft_json_end_object(&listing->out.json);
        weft_json_out_end(&listing->out);
    }
}

static enum weft_exit run_ls(struct weft_cli *cli)
{
    struct weft_err err = {0};
    enum weft_exit code;
    struct listing listing = {.wanted = UINT64_MAX};
    if (!weft_cli_has(cli, "all"))
        listing.wanted = (uint64_t)weft_cli_i64(cli, "limit", 1, INT32_MAX, LIMIT_NORMAL);
    if (!weft_pick_filter(cli, &listing.filter, &code) || !weft_cli_open(cli, &listing.weft, &code))
        return code;
    if (!weft_cli_json(cli))
        listing.table = weft_table_new(cli, columns, WEFT_LEN(columns));
    else if (listing.wanted != UINT64_MAX)
        weft_json_out_begin_items(&listing.out);
    weft_cli_catch();
    enum weft_rc rc = read_pages(&listing, weft_cli_get(cli, "after"), &err);
    finish(&listing, rc);
    if (rc)
        code = weft_cli_fail(&err);
    else if (weft_cli_interrupted())
        code = WEFT_EXIT_INTERRUPTED;
    weft_close(listing.weft);
    return code;
}

const struct weft_command weft_command_ls = {
    .name = "ls",
    .args = "",
    .summary = "list executions, newest first",
    .about =
        "Options name what each execution must fit. DETAIL is the worker that has it, the "
        "error it met, or the reason it was stopped for.\n\n"
        "With --json it is one object {\"items\":[...],\"next\":CURSOR}; with --json --all "
        "each execution is a line of its own.",
    .example =
        "weft ls --state failed --lane mail\nweft ls --tag customer=42 --limit 10\n"
        "weft ls --all --json | jq -r .id",
    .option =
        (const struct weft_option[]){
            WEFT_FILTER_OPTIONS,
            {.name = "limit", .value = "N", .about = "at most so many; default: 50"},
            {.name = "all", .letter = 'a', .about = "all there are, page by page"},
            {.name = "after", .value = "CURSOR", .about = "go on where another list ended"},
            {.name = NULL},
        },
    .run = run_ls,
};
