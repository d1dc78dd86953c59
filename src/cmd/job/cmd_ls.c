/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft ls: a list of executions, newest first.
 *
 * A page of the API may be short, so pages are asked for until there are as many as were wanted.
 * They are printed as they come; nothing is kept.
 */

#include "base/id.h"
#include "base/limits.h"
#include "base/moment.h"
#include "cmd/cli/filter_args.h"
#include "cmd/cli/output.h"

#include <unistd.h>

enum { LIMIT_NORMAL = 50, LINE_MAX_TEXT = 1024 };

/* DETAIL: the error, the reason of a stop, the run time, or the worker. */
static void put_detail(struct weft_table *table, const void *field)
{
    const struct weft_execution *item = field;
    char line[LINE_MAX_TEXT] = "";
    if (item->error_message)
        weft_last_line(item->error_message, line, sizeof(line));
    if (item->error_class && line[0])
        weft_table_cell(table, "%s: %s", item->error_class, line);
    else if (item->error_class)
        weft_table_cell(table, "%s", item->error_class);
    else if (item->reason)
        weft_table_cell(table, "%s", item->reason);
    else if (item->state == WEFT_STATE_DELAYED)
        weft_cell_ago(table, &item->run_at_us);
    else if (item->state == WEFT_STATE_RUNNING && item->percent >= 0)
        weft_table_cell(table, "%s, %d %%", item->worker ? item->worker : "", item->percent);
    else
        weft_table_cell(table, "%s", item->worker ? item->worker : "");
}

#define AT(member) offsetof(struct weft_execution, member)
/* clang-format off */
#define FROM_KIND                                                                                  \
    {"KIND", WEFT_LEFT, 4, weft_cell_text, AT(kind)},                                              \
    {"STATE", WEFT_LEFT, 0, weft_cell_state, AT(state)},                                           \
    {"TRY", WEFT_RIGHT, 2, weft_cell_i32, AT(attempt)},                                            \
    {"AGE", WEFT_RIGHT, 0, weft_cell_ago, AT(created_us)},                                         \
    {"DETAIL", WEFT_LEFT, 1, put_detail, 0}
/* clang-format on */
static const struct weft_column columns[] = {
    {"ID", WEFT_LEFT, 0, weft_cell_id, AT(id)},
    {"LANE", WEFT_LEFT, 3, weft_cell_text, AT(lane)},
    FROM_KIND,
};
/* With --flow: the name of the node follows the id. */
static const struct weft_column member_columns[] = {
    {"ID", WEFT_LEFT, 0, weft_cell_id, AT(id)},
    {"NODE", WEFT_LEFT, 3, weft_cell_text, AT(node)},
    {"LANE", WEFT_LEFT, 2, weft_cell_text, AT(lane)},
    FROM_KIND,
};

struct listing {
    struct weft *weft;
    struct weft_filter filter;
    uint64_t wanted;          /* UINT64_MAX: all */
    struct weft_table *table; /* NULL: JSON */
    struct weft_json_out out; /* JSON, unless all are wanted: then each has a line of its own */
    struct weft_pages pages;
    bool progress; /* a line on stderr says how far it has looked */
};

static void put_page(struct listing *listing, const struct weft_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        if (listing->table)
            weft_table_row(listing->table, &page->item[i]);
        else if (listing->wanted == UINT64_MAX)
            weft_json_out_item(&weft_wire_execution, &page->item[i]);
        else
            weft_wire_write(&weft_wire_execution, &page->item[i], &listing->out.json);
    }
    if (listing->table)
        weft_table_flush(listing->table);
}

/* On a terminal, for a filter that few executions fit: how far back the server has looked. */
static void show_progress(struct listing *listing, const struct weft_page *page)
{
    char moment[WEFT_MOMENT_TEXT];
    if (!isatty(STDERR_FILENO))
        return;
    if (listing->progress)
        (void)fputs("\r\033[K", stderr);
    listing->progress = page->looked_to_us != 0;
    if (!listing->progress)
        return;
    weft_moment_print(page->looked_to_us, moment);
    (void)fprintf(stderr, "looked back to %s", moment);
    (void)fflush(stderr);
}

static enum weft_rc read_pages(struct listing *listing, const char *after, struct weft_err *err)
{
    struct weft_pages *pages = &listing->pages;
    enum weft_rc rc = WEFT_OK;
    (void)snprintf(pages->next, sizeof(pages->next), "%s", after ? after : "");
    for (uint64_t left = listing->wanted; pages->more && left > 0 && !weft_cli_interrupted();) {
        rc = weft_next_page(listing->weft, &listing->filter,
                            (uint32_t)(left < WEFT_PAGE_MAX ? left : WEFT_PAGE_MAX), pages, err);
        if (rc)
            break;
        show_progress(listing, &pages->page);
        put_page(listing, &pages->page);
        left -= pages->page.count < left ? pages->page.count : left;
    }
    weft_page_free(&pages->page);
    return rc;
}

/* Ends the table or the JSON. After a failure rows that were not printed yet are dropped. */
static void finish(struct listing *listing, enum weft_rc rc)
{
    bool items = !listing->table && listing->wanted != UINT64_MAX;
    if (listing->progress)
        (void)fputs("\r\033[K", stderr);
    if (rc && listing->table) {
        weft_table_free(listing->table);
    } else if (rc && items) {
        weft_json_out_drop(&listing->out);
    } else if (listing->table) {
        weft_table_print(listing->table);
        if (listing->pages.next[0] && isatty(STDERR_FILENO))
            (void)fprintf(stderr, "There are more: add --after %s, or --all\n",
                          listing->pages.next);
    } else if (items) {
        weft_json_end_array(&listing->out.json);
        weft_json_key(&listing->out.json, "next");
        weft_json_put_text(&listing->out.json, listing->pages.next[0] ? listing->pages.next : NULL);
        weft_json_out_end_object(&listing->out);
    }
}

static enum weft_exit run_ls(struct weft_cli *cli)
{
    struct weft_err err = {0};
    struct listing listing = {.wanted = UINT64_MAX, .pages.more = true};
    if (!weft_cli_has(cli, "all"))
        listing.wanted = (uint64_t)weft_cli_i64(cli, "limit", 1, INT32_MAX, LIMIT_NORMAL);
    listing.weft = weft_open_filter(cli, WEFT_PICK_BY_STATE, &listing.filter);
    bool members = !weft_id_is_zero(&listing.filter.flow);
    if (!weft_cli_json(cli))
        listing.table = weft_table_new(cli, members ? member_columns : columns,
                                       members ? WEFT_LEN(member_columns) : WEFT_LEN(columns));
    else if (listing.wanted != UINT64_MAX)
        weft_json_out_begin_items(&listing.out);
    weft_cli_catch();
    enum weft_rc rc = read_pages(&listing, weft_cli_get(cli, "after"), &err);
    finish(&listing, rc);
    return rc ? weft_cli_fail(&err) : weft_cli_interrupted() ? WEFT_EXIT_INTERRUPTED : WEFT_EXIT_OK;
}

const struct weft_command weft_command_ls = {
    .name = "ls",
    .args = "",
    .summary = "list executions, newest first",
    .about =
        "Options name what each execution must fit.\n\n"
        "ID: on a terminal a short form of the id, which every command takes; in a pipe, with "
        "--long and with --json the whole id. NODE, with --flow: its name in the flow. LANE, KIND, "
        "STATE: as submitted, and what became of it. TRY: the number of its attempt. AGE: since it "
        "was submitted. DETAIL: the worker that has it, the last line of the error it met, when it "
        "runs, or the reason it was stopped for.\n\n"
        "--since and --until are compared with the moment at which an execution ended when --state "
        "is one of succeeded, failed, cancelled, expired and skipped, otherwise with the moment at "
        "which it was submitted. They take how long ago (30s, 5m, 1h, 7d, 2w) or a moment such as "
        "2031-01-31T12:00:00Z.\n\n"
        "A filter that fits little makes for a long look: on a terminal standard error says how "
        "far back it has looked, and Ctrl-C ends it with what was found.\n\n"
        "With --json it is one object {\"items\":[...],\"next\":CURSOR}; with --json --all "
        "each execution is a line of its own.",
    .example =
        "weft ls --state failed --since 1h --lane mail\nweft ls --error-class timeout --worker "
        "w-7\nweft ls --tag customer=42 --limit 10\n"
        "weft ls --all --json | jq -r .id",
    .option =
        (const struct weft_option[]){
            WEFT_FILTER_OPTIONS,
            {"limit", 0, "N", "at most so many; default: 50", NULL},
            {"all", 'a', NULL, "all there are, page by page", NULL},
            {"long", 'L', NULL, "whole ids, also on a terminal", NULL},
            {"after", 0, "CURSOR", "go on where another list ended", NULL},
            {.name = NULL},
        },
    .run = run_ls,
};
