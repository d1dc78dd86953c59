/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What budgets hold: tables with a line for each dimension, on a terminal with a bar in it, and
 * ledgers. Numbers are written out, so that they can be compared and added up.
 */

#include "cmd/admin/budget_show.h"

#include "base/id.h"
#include "base/limits.h"
#include "base/moment.h"
#include "cmd/cli/output.h"
#include "cmd/job/show.h"
#include "core/budget.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* ---- Dimensions ------------------------------------------------------------------------------ */

struct row {
    const struct weft_budget *budget;
    const struct weft_budget_dimension *own;
};

static const char *color_of(enum weft_budget_state state)
{
    static const char *const color[] = {
        [WEFT_BUDGET_OK] = "32", [WEFT_BUDGET_SOFT] = "33", [WEFT_BUDGET_HARD] = "31"};
    return color[state];
}

static enum weft_budget_state state_of(const struct weft_budget_dimension *own)
{
    return weft_sums_state(
        &(struct weft_sums){.hard = own->hard, .soft = own->soft, .used = own->used});
}

static int cells_of(int64_t amount, int64_t whole, int cells)
{
    double share = (double)amount / (double)whole;
    int full = share >= 1 ? cells : (int)(share * cells);
    return full == 0 && amount > 0 ? 1 : full;
}

/* What is used and reserved of the hard limit, or else of the soft one. */
static void put_bar(struct weft_table *table, const struct weft_budget_dimension *own)
{
    enum { CELLS = 20, FEW_CELLS = 10, WIDE = 100 };
    char bar[CELLS + 1] = "";
    int64_t whole = own->hard ? own->hard : own->soft;
    int cells = weft_width() < WIDE ? FEW_CELLS : CELLS;
    if (whole > 0) {
        int used = cells_of(own->used, whole, cells), room = cells - used;
        int reserved = cells_of(own->reserved, whole, cells);
        memset(bar, '.', (size_t)cells);
        memset(bar, '#', (size_t)used);
        memset(bar + used, '+', (size_t)(reserved < room ? reserved : room));
    }
    weft_table_paint(table, color_of(state_of(own)), "%s%s%s", whole ? "[" : "", bar,
                     whole ? "]" : "");
}

static void put_limit(struct weft_table *table, int64_t limit)
{
    if (limit > 0)
        weft_table_cell(table, "%" PRId64, limit);
    else
        weft_table_cell(table, "-");
}

/* USED, RESERVED and LEFT: what neither is used nor reserved. */
static void put_sums(struct weft_table *table, const struct weft_budget_dimension *own)
{
    int64_t left = own->hard - own->used - own->reserved;
    weft_table_cell(table, "%" PRId64, own->used);
    weft_table_cell(table, "%" PRId64, own->reserved);
    if (own->hard > 0)
        weft_table_cell(table, "%" PRId64, left > 0 ? left : 0);
    else
        weft_table_cell(table, "-");
}

static void put_name(struct weft_table *table, const void *item)
{
    const struct row *row = item;
    weft_table_cell(table, "%s", row->budget->name);
    weft_table_paint(table, color_of(row->budget->state), "%s",
                     weft_budget_state_word(row->budget->state));
}

static void put_dimension(struct weft_table *table, const void *item)
{
    weft_table_cell(table, "%s", ((const struct row *)item)->own->name);
}

static void put_usage(struct weft_table *table, const void *item)
{
    put_bar(table, ((const struct row *)item)->own);
}

static void put_listed(struct weft_table *table, const void *item)
{
    const struct row *row = item;
    put_sums(table, row->own);
    put_limit(table, row->own->hard);
    weft_cell_ago(table, &row->budget->next_reset_us);
}

static void put_own(struct weft_table *table, const void *item)
{
    const struct row *row = item;
    put_sums(table, row->own);
    put_limit(table, row->own->soft);
    put_limit(table, row->own->hard);
    weft_table_cell(table, "%" PRId64, row->own->estimate);
}

/* clang-format off */
#define BUDGET                                                                                     \
    {"BUDGET", WEFT_LEFT, 6, put_name, 0},                                                         \
    {"STATE", WEFT_LEFT, 0, NULL, 0}
#define DIMENSION {"DIMENSION", WEFT_LEFT, 7, put_dimension, 0}
#define BAR       {"USAGE", WEFT_RIGHT, 4, put_usage, 0} /* is left out, but never cut */
#define LISTED                                                                                     \
    {"USED", WEFT_RIGHT, 0, put_listed, 0},                                                        \
    {"RESERVED", WEFT_RIGHT, 2, NULL, 0},                                                          \
    {"LEFT", WEFT_RIGHT, 0, NULL, 0},                                                              \
    {"HARD", WEFT_RIGHT, 1, NULL, 0},                                                              \
    {"RESET", WEFT_RIGHT, 3, NULL, 0}
#define OWN                                                                                        \
    {"USED", WEFT_RIGHT, 0, put_own, 0},                                                           \
    {"RESERVED", WEFT_RIGHT, 2, NULL, 0},                                                          \
    {"LEFT", WEFT_RIGHT, 0, NULL, 0},                                                              \
    {"SOFT", WEFT_RIGHT, 3, NULL, 0},                                                              \
    {"HARD", WEFT_RIGHT, 5, NULL, 0},                                                              \
    {"ESTIMATE", WEFT_RIGHT, 1, NULL, 0}
/* clang-format on */

/* A bar is for eyes: programs and logs get the numbers. */
static struct weft_table *make_table(const struct weft_cli *cli, bool listed)
{
    static const struct weft_column list_bar[] = {BUDGET, DIMENSION, BAR, LISTED};
    static const struct weft_column list_plain[] = {BUDGET, DIMENSION, LISTED};
    static const struct weft_column own_bar[] = {DIMENSION, BAR, OWN};
    static const struct weft_column own_plain[] = {DIMENSION, OWN};
    bool bar = isatty(STDOUT_FILENO);
    if (listed)
        return bar ? weft_table_new(cli, list_bar, WEFT_LEN(list_bar))
                   : weft_table_new(cli, list_plain, WEFT_LEN(list_plain));
    return bar ? weft_table_new(cli, own_bar, WEFT_LEN(own_bar))
               : weft_table_new(cli, own_plain, WEFT_LEN(own_plain));
}

static void put_rows(struct weft_table *table, const struct weft_budget *budget)
{
    for (size_t i = 0; i < budget->dimension_count; i++)
        weft_table_row(table, &(struct row){.budget = budget, .own = &budget->dimension[i]});
}

/* ---- The list -------------------------------------------------------------------------------- */

enum weft_exit weft_budget_list(const struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_budgets page = {0};
    struct weft_json_out out;
    bool json = weft_cli_json(cli);
    struct weft_table *table = json ? NULL : make_table(cli, true);
    const char *after = NULL;
    enum weft_rc rc;
    if (json)
        weft_json_out_begin_items(&out);
    do {
        rc = weft_budgets(weft, NULL, WEFT_PAGE_MAX, after, &page, &err);
        for (size_t i = 0; i < page.count && !rc; i++)
            if (json)
                weft_wire_write(&weft_wire_budget, &page.item[i], &out.json);
            else
                put_rows(table, &page.item[i]);
        after = rc ? NULL : weft_arena_strdup(cli->arena, page.next);
        weft_budgets_free(&page);
    } while (after);
    if (json && rc)
        weft_json_out_drop(&out);
    else if (json)
        weft_json_out_end_items(&out);
    else if (rc)
        weft_table_free(table);
    else
        weft_table_print(table);
    return rc ? weft_cli_fail(&err) : WEFT_EXIT_OK;
}

/* ---- One budget ------------------------------------------------------------------------------ */

const char *weft_budget_every_text(struct weft_arena *arena, const struct weft_budget *budget)
{
    if (budget->every_months > 0)
        return weft_arena_printf(arena, "%dmonth%s", budget->every_months,
                                 budget->every_months > 1 ? "s" : "");
    return budget->every_ms > 0 ? weft_duration_text(arena, budget->every_ms) : NULL;
}

/* Whose executions are under it. */
static void put_match(const struct weft_cli *cli, const struct weft_budget *budget)
{
    const char *const part[] = {budget->match_lane, budget->match_kind, budget->match_tenant};
    static const char *const word[] = {"lane", "kind", "tenant"};
    const char *text = "";
    for (size_t i = 0; i < WEFT_LEN(part); i++)
        if (part[i])
            text = weft_arena_printf(cli->arena, "%s%s%s %s", text, *text ? ", " : "", word[i],
                                     part[i]);
    if (!budget->matches)
        text = "executions that name it";
    else if (!*text)
        text = "all executions";
    else
        text = weft_arena_printf(cli->arena, "%s, and executions that name it", text);
    weft_show_field("for", "%s", text);
}

static void put_periods(const struct weft_cli *cli, const struct weft_budget *budget)
{
    const char *every = weft_budget_every_text(cli->arena, budget);
    char moment[WEFT_MOMENT_TEXT];
    weft_moment_print(budget->anchor_us, moment);
    if (every)
        weft_show_field("reset", "every %s, counted from %s", every, moment);
    else
        weft_show_field("reset", "never");
    weft_show_moment("next reset", budget->next_reset_us);
    weft_show_moment("period began", budget->period_began_us);
}

static void put_budget(const struct weft_cli *cli, const struct weft_budget *budget)
{
    weft_show_text("budget", budget->name);
    printf("%-13s ", "state");
    weft_put_painted(weft_cli_color(cli) ? color_of(budget->state) : NULL,
                     weft_budget_state_word(budget->state));
    putchar('\n');
    put_match(cli, budget);
    weft_show_field("on hard", "%s",
                    budget->on_hard == WEFT_ON_HARD_CANCEL ? "cancel what runs"
                                                           : "hold: what runs goes on");
    put_periods(cli, budget);
    weft_show_field("breaches", "%" PRIu64 " in this period", budget->breaches);
    putchar('\n');
    struct weft_table *table = make_table(cli, false);
    put_rows(table, budget);
    weft_table_print(table);
}

enum weft_exit weft_budget_show(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    struct weft_budgets one = {0};
    if (weft_budgets(weft, name, 0, NULL, &one, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_budget, one.item);
    else
        put_budget(cli, one.item);
    weft_budgets_free(&one);
    return WEFT_EXIT_OK;
}

/* ---- The ledger ------------------------------------------------------------------------------ */

/* Old executions are added up under no id. */
static void put_charged(struct weft_table *table, const void *field)
{
    if (weft_id_is_zero(field))
        weft_table_cell(table, "(older)");
    else
        weft_cell_id(table, field);
}

static void put_charge(struct weft_table *table, const void *item)
{
    const struct weft_charge *charge = item;
    weft_table_cell(table, "%" PRId64, charge->reserved);
    weft_table_cell(table, "%" PRId64, charge->used);
    weft_table_cell(table, "%s", charge->settled ? "yes" : "no");
}

#define AT(member) offsetof(struct weft_charge, member)
static const struct weft_column charge_columns[] = {
    {"ID", WEFT_LEFT, 0, put_charged, AT(id)},
    {"DIMENSION", WEFT_LEFT, 1, weft_cell_text, AT(dimension)},
    {"RESERVED", WEFT_RIGHT, 0, put_charge, 0},
    {"USED", WEFT_RIGHT, 0, NULL, 0},
    {"SETTLED", WEFT_RIGHT, 2, NULL, 0},
};

struct listing {
    const char *name;         /* of the budget */
    uint64_t wanted;          /* executions; UINT64_MAX: all */
    struct weft_table *table; /* NULL: JSON */
    struct weft_json_out out; /* JSON, unless all are wanted: then each has a line of its own */
    const char *next;         /* in the arena of the cli; NULL: there is no more */
};

/* Returns how many executions are in the page. A page never ends inside of one. */
static uint64_t put_page(struct listing *listing, const struct weft_ledger *page)
{
    uint64_t ids = 0;
    for (size_t i = 0; i < page->count; i++) {
        ids += i == 0 || weft_id_cmp(&page->item[i - 1].id, &page->item[i].id) != 0;
        if (listing->table)
            weft_table_row(listing->table, &page->item[i]);
        else if (listing->wanted == UINT64_MAX)
            weft_json_out_item(&weft_wire_charge, &page->item[i]);
        else
            weft_wire_write(&weft_wire_charge, &page->item[i], &listing->out.json);
    }
    if (listing->table)
        weft_table_flush(listing->table);
    return ids;
}

static enum weft_rc put_pages(const struct weft_cli *cli, struct weft *weft,
                              struct listing *listing, struct weft_err *err)
{
    listing->next = weft_cli_get(cli, "after");
    for (uint64_t left = listing->wanted; left > 0 && !weft_cli_interrupted();) {
        struct weft_ledger page = {0};
        uint32_t most = (uint32_t)(left < WEFT_PAGE_MAX ? left : WEFT_PAGE_MAX);
        enum weft_rc rc = weft_budget_ledger(weft, listing->name, most, listing->next, &page, err);
        if (rc)
            return rc;
        uint64_t ids = put_page(listing, &page);
        left -= ids < left ? ids : left;
        listing->next = weft_arena_strdup(cli->arena, page.next);
        weft_ledger_free(&page);
        if (!listing->next)
            break;
    }
    return WEFT_OK;
}

/* Ends the table or the JSON. After a failure rows that were not printed yet are dropped. */
static void finish(struct listing *listing, enum weft_rc rc)
{
    bool items = !listing->table && listing->wanted != UINT64_MAX;
    if (rc && listing->table) {
        weft_table_free(listing->table);
    } else if (rc && items) {
        weft_json_out_drop(&listing->out);
    } else if (listing->table) {
        weft_table_print(listing->table);
        if (listing->next && isatty(STDERR_FILENO))
            (void)fprintf(stderr, "There are more: add --after %s, or --all\n", listing->next);
    } else if (items) {
        weft_json_end_array(&listing->out.json);
        weft_json_add_text(&listing->out.json, "next", listing->next);
        weft_json_out_end_object(&listing->out);
    }
}

enum weft_exit weft_budget_show_ledger(const struct weft_cli *cli, struct weft *weft,
                                       const char *name)
{
    struct weft_err err = {0};
    struct listing listing = {.name = name, .wanted = UINT64_MAX};
    if (!weft_cli_has(cli, "all"))
        listing.wanted = (uint64_t)weft_cli_i64(cli, "limit", 1, INT32_MAX, WEFT_PAGE_DEFAULT);
    if (!weft_cli_json(cli))
        listing.table = weft_table_new(cli, charge_columns, WEFT_LEN(charge_columns));
    else if (listing.wanted != UINT64_MAX)
        weft_json_out_begin_items(&listing.out);
    weft_cli_catch();
    enum weft_rc rc = put_pages(cli, weft, &listing, &err);
    finish(&listing, rc);
    return rc ? weft_cli_fail(&err) : weft_cli_interrupted() ? WEFT_EXIT_INTERRUPTED : WEFT_EXIT_OK;
}
