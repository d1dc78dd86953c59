/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft budget: budgets, their ledgers, and setting them. Settings are replaced as a whole: what the
 * command line does not name is read first and put back. A dimension that the budget does not have
 * is taken for a mistyped one, because its limit would then hold nothing back.
 */

#include "base/limits.h"
#include "cmd/admin/budget_show.h"
#include "cmd/cli/amount_args.h"
#include "cmd/cli/output.h"
#include "core/budget.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The settings while they are changed. */
struct draft {
    struct weft_budget budget;
    struct weft_budget_dimension *dimension; /* the budget's own */
    size_t known;                            /* dimensions that it has in the store */
};

/* ---- Dimensions ------------------------------------------------------------------------------ */

/* The error for a dimension that the budget does not have. */
static enum weft_exit no_such_dimension(const struct weft_cli *cli, const struct draft *draft,
                                        const char *name, const char *advice)
{
    struct weft_err err = {0};
    const char **word = weft_new_array(cli->arena, const char *, draft->known + 1);
    for (size_t i = 0; i < draft->known; i++)
        word[i] = draft->dimension[i].name;
    const char *near = weft_nearest(name, word);
    const char *has = weft_joined(cli->arena, word, draft->known, ", ");
    (void)weft_fail_field(&err, WEFT_NOT_FOUND, "dimensions", "budget '%s' has no dimension '%s'",
                          draft->budget.name, name);
    err.hint =
        near ? weft_arena_printf(cli->arena, "did you mean '%s'? it has %s%s", near, has, advice)
             : weft_arena_printf(cli->arena, "it has %s%s", has, advice);
    return weft_cli_fail(&err);
}

/* The dimension of this name; one behind the last when there is none. */
static size_t find_dimension(const struct draft *draft, const char *name)
{
    size_t i = 0;
    while (i < draft->budget.dimension_count && strcmp(draft->dimension[i].name, name) != 0)
        i++;
    return i;
}

/* Puts the amounts of an option into a member of their dimensions; new ones are added. */
static enum weft_exit set_limits(const struct weft_cli *cli, struct draft *draft,
                                 const char *option, size_t member)
{
    const struct weft_amount *amount;
    size_t count = weft_amounts_given(cli, option, &amount);
    for (size_t i = 0; i < count; i++) {
        size_t at = find_dimension(draft, amount[i].dimension);
        if (at >= draft->known && draft->known > 0 && !weft_cli_has(cli, "add"))
            return no_such_dimension(cli, draft, amount[i].dimension, "; --add adds a new one");
        if (at == WEFT_BUDGET_DIMENSIONS_MAX)
            weft_cli_usage(cli, "a budget has at most %d dimensions", WEFT_BUDGET_DIMENSIONS_MAX);
        if (at == draft->budget.dimension_count) {
            draft->dimension[at] = (struct weft_budget_dimension){.name = amount[i].dimension};
            draft->budget.dimension_count++;
        }
        memcpy((char *)&draft->dimension[at] + member, &amount[i].amount, sizeof(int64_t));
    }
    return WEFT_EXIT_OK;
}

static enum weft_exit drop_dimensions(const struct weft_cli *cli, struct draft *draft)
{
    const char *const *name;
    size_t count = weft_cli_all(cli, "drop", &name);
    for (size_t i = 0; i < count; i++)
        if (find_dimension(draft, name[i]) >= draft->known)
            return no_such_dimension(cli, draft, name[i], "");
    for (size_t i = 0; i < count; i++) {
        size_t at = find_dimension(draft, name[i]), *left = &draft->budget.dimension_count;
        if (at == *left) /* it was named twice */
            continue;
        --*left;
        memmove(&draft->dimension[at], &draft->dimension[at + 1],
                (*left - at) * sizeof(*draft->dimension));
    }
    if (count > 0 && draft->budget.dimension_count == 0)
        weft_cli_usage(cli, "a budget needs a dimension: `weft budget %s --remove` removes it",
                       draft->budget.name);
    return WEFT_EXIT_OK;
}

static enum weft_exit set_dimensions(const struct weft_cli *cli, struct draft *draft)
{
#define AT(member) offsetof(struct weft_budget_dimension, member)
    enum weft_exit code = set_limits(cli, draft, "hard", AT(hard));
    if (code == WEFT_EXIT_OK)
        code = set_limits(cli, draft, "soft", AT(soft));
    if (code == WEFT_EXIT_OK)
        code = set_limits(cli, draft, "estimate", AT(estimate));
    if (code == WEFT_EXIT_OK)
        code = drop_dimensions(cli, draft);
    for (size_t i = 0; i < draft->budget.dimension_count && code == WEFT_EXIT_OK; i++) {
        const struct weft_budget_dimension *own = &draft->dimension[i];
        if (own->hard > 0 && own->estimate > own->hard)
            weft_cli_usage(cli,
                           "the estimate of '%s' is %" PRId64 ", above its hard limit of %" PRId64
                           ": nothing could ever be claimed; lower --estimate or raise --hard",
                           own->name, own->estimate, own->hard);
    }
    return code;
}

/* ---- Periods and executions ------------------------------------------------------------------ */

/* "1month", "3months". */
static bool months_typed(const char *text, int64_t *ret_months)
{
    static const char *const units[] = {"month", "months"};
    size_t digits = strspn(text, "0123456789");
    char *end;
    for (size_t i = 0; i < WEFT_LEN(units); i++)
        if (digits > 0 && digits <= 6 && strcmp(text + digits, units[i]) == 0) {
            *ret_months = strtoll(text, &end, 10);
            return true;
        }
    return false;
}

static void set_every(const struct weft_cli *cli, struct weft_budget *budget)
{
    const char *const *all, *text = weft_cli_get(cli, "every");
    int64_t months = 0, ms = 0;
    if (!text)
        return;
    if (weft_cli_all(cli, "every", &all) > 1)
        weft_cli_usage(cli,
                       "--every is given twice: a period is a span of time like 1d, or months "
                       "like 1month, and not both");
    bool never = strcmp(text, "0") == 0 || strcmp(text, "never") == 0;
    if (!never && !months_typed(text, &months) && !weft_duration_typed(text, &ms))
        weft_cli_usage(cli, "--every is '%s': it must be like 1d, 12h, 1month, or never", text);
    if (!never && (months ? months > WEFT_BUDGET_MONTHS_MAX
                          : ms < WEFT_BUDGET_EVERY_MIN_MS || ms > WEFT_DELAY_MAX_MS))
        weft_cli_usage(cli, "--every is %s: it must be within 1s and 3650d, or 1month and %dmonths",
                       text, WEFT_BUDGET_MONTHS_MAX);
    budget->every_ms = ms;
    budget->every_months = (int32_t)months;
    if (never)
        budget->anchor_us = 0;
}

static void set_anchor(const struct weft_cli *cli, struct weft_budget *budget)
{
    const char *text = weft_cli_get(cli, "anchor");
    if (!text)
        return;
    if (!weft_moment_typed(text, &budget->anchor_us))
        weft_cli_usage(cli, "--anchor is '%s': it must be like 2031-01-31T12:00:00Z or +5m", text);
}

/* Whose executions are under it is one setting: what is named replaces all of it. */
static void set_match(const struct weft_cli *cli, struct weft_budget *budget)
{
    bool part =
        weft_cli_has(cli, "lane") || weft_cli_has(cli, "kind") || weft_cli_has(cli, "tenant");
    bool all = weft_cli_has(cli, "match-all"), named = weft_cli_has(cli, "by-name");
    if (part + all + named > 1)
        weft_cli_usage(cli,
                       "--match-all, --by-name, and --lane, --kind or --tenant exclude each "
                       "other: the last three say which executions it matches");
    if (!part && !all && !named)
        return;
    budget->matches = !named;
    budget->match_lane = weft_cli_get(cli, "lane");
    budget->match_kind = weft_cli_get(cli, "kind");
    budget->match_tenant = weft_cli_get(cli, "tenant");
}

static void set_on_hard(const struct weft_cli *cli, struct weft_budget *budget)
{
    const char *text = weft_cli_get(cli, "on-hard");
    if (text && strcmp(text, "hold") != 0 && strcmp(text, "cancel") != 0)
        weft_cli_usage(cli, "--on-hard is '%s': it must be hold or cancel", text);
    if (text)
        budget->on_hard = text[0] == 'c' ? WEFT_ON_HARD_CANCEL : WEFT_ON_HARD_HOLD;
}

/* A value that is no value ends the process before a store or server is asked. */
static void check_values(const struct weft_cli *cli)
{
    static const char *const limits[] = {"hard", "soft", "estimate"};
    const struct weft_amount *amount;
    struct weft_budget none = {0};
    for (size_t i = 0; i < WEFT_LEN(limits); i++)
        (void)weft_amounts_given(cli, limits[i], &amount);
    set_every(cli, &none);
    set_anchor(cli, &none);
    set_match(cli, &none);
    set_on_hard(cli, &none);
}

/* ---- Changing -------------------------------------------------------------------------------- */

static enum weft_exit put_draft(const struct weft_cli *cli, struct weft *weft, struct draft *draft)
{
    struct weft_err err = {0};
    enum weft_exit code = set_dimensions(cli, draft);
    if (code != WEFT_EXIT_OK)
        return code;
    if (draft->budget.dimension_count == 0) {
        (void)weft_fail_field(&err, WEFT_NOT_FOUND, "budget", "there is no budget '%s'",
                              draft->budget.name);
        err.hint = "to make it, say what it limits: --hard tokens=1M, --soft or --estimate";
        return weft_cli_fail(&err);
    }
    set_every(cli, &draft->budget);
    set_anchor(cli, &draft->budget);
    set_match(cli, &draft->budget);
    set_on_hard(cli, &draft->budget);
    if (weft_cli_has(cli, "anchor") && draft->budget.every_ms == 0 &&
        draft->budget.every_months == 0)
        weft_cli_usage(cli,
                       "--anchor goes with periods: say how long one is with --every 1d or "
                       "--every 1month");
    if (weft_budget_put(weft, &draft->budget, &err))
        return weft_cli_fail(&err);
    return weft_budget_show(cli, weft, draft->budget.name);
}

static enum weft_exit put(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    struct weft_budgets now = {0};
    struct draft draft = {.budget = {.name = name}};
    enum weft_rc rc = weft_budgets(weft, name, 0, NULL, &now, &err);
    if (rc && rc != WEFT_NOT_FOUND)
        return weft_cli_fail(&err);
    if (!rc)
        draft.budget = now.item[0];
    draft.dimension = weft_new_array(cli->arena, struct weft_budget_dimension,
                                     draft.budget.dimension_count + WEFT_BUDGET_DIMENSIONS_MAX);
    draft.known = draft.budget.dimension_count;
    if (draft.known > 0)
        memcpy(draft.dimension, draft.budget.dimension, draft.known * sizeof(*draft.dimension));
    draft.budget.dimension = draft.dimension;
    enum weft_exit code = put_draft(cli, weft, &draft);
    weft_budgets_free(&now);
    return code;
}

static enum weft_exit remove_budget(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    if (weft_budget_remove(weft, name, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli)) {
        struct weft_json_out out;
        weft_json_out_begin_object(&out);
        weft_json_add_text(&out.json, "budget", name);
        weft_json_add_bool(&out.json, "removed", true);
        weft_json_out_end_object(&out);
    } else {
        printf("budget %s is removed, with its ledger\n", name);
    }
    return WEFT_EXIT_OK;
}

static enum weft_exit reset(const struct weft_cli *cli, struct weft *weft, const char *name)
{
    struct weft_err err = {0};
    if (weft_budget_reset(weft, name, &err))
        return weft_cli_fail(&err);
    return weft_budget_show(cli, weft, name);
}

/* ---- The command ----------------------------------------------------------------------------- */

static const struct weft_option options[] = {
    {"hard", 0, "DIM=N", "spend at most so much: tokens=1M,usd=500; may be repeated; 0: no limit",
     NULL},
    {"soft", 0, "DIM=N", "from here on its state is soft; 0: no such limit", NULL},
    {"estimate", 0, "DIM=N", "reserved for an execution that has no cost of its own", NULL},
    {"add", 0, NULL, "add dimensions that it does not have yet", NULL},
    {"drop", 0, "DIM", "take a dimension away; may be repeated", NULL},
    {"every", 0, "TIME", "begin a new period each 1d, 12h, 1month, ...; never: no more", NULL},
    {"anchor", 0, "MOMENT", "a period begins then; the others follow; default: 1970-01-01", NULL},
    {"on-hard", 0, "WHAT", "at a hard limit running executions go on (hold), or are cancelled",
     "hold cancel"},
    {"lane", 'l', "NAME", "match executions of this lane", NULL},
    {"kind", 'k', "NAME", "match executions of this kind", NULL},
    {"tenant", 0, "NAME", "match executions of this tenant", NULL},
    {"match-all", 0, NULL, "match all executions", NULL},
    {"by-name", 0, NULL, "match none: only executions that name it are under it", NULL},
    {"reset", 0, NULL, "begin a new period now", NULL},
    WEFT_LEDGER_OPTIONS,
    {"remove", 0, NULL, "remove it with its ledger", NULL},
    {.name = NULL},
};

/* The first option that changes settings; NULL: none was given. */
static const char *first_change(const struct weft_cli *cli)
{
    for (size_t i = 0; i < WEFT_LEN(options) && strcmp(options[i].name, "reset") != 0; i++)
        if (weft_cli_has(cli, options[i].name))
            return options[i].name;
    return NULL;
}

/* What is to be done, as the name of an option: NULL shows. Two of them exclude each other. */
static const char *find_action(const struct weft_cli *cli)
{
    const char *const actions[] = {"reset", "ledger", "remove"};
    const char *action = first_change(cli);
    for (size_t i = 0; i < WEFT_LEN(actions); i++) {
        if (!weft_cli_has(cli, actions[i]))
            continue;
        if (action)
            weft_cli_usage(cli, "--%s and --%s exclude each other", action, actions[i]);
        action = actions[i];
    }
    return action;
}

static enum weft_exit run_budget(struct weft_cli *cli)
{
    static const char *const of_ledger[] = {"limit", "all", "after", "long"};
    const char *name = cli->arg[0], *action = find_action(cli);
    bool ledger = action && strcmp(action, "ledger") == 0;
    for (size_t i = 0; i < WEFT_LEN(of_ledger) && !ledger; i++)
        if (weft_cli_has(cli, of_ledger[i]))
            weft_cli_usage(cli, "--%s goes with --ledger", of_ledger[i]);
    if (action && !name)
        weft_cli_usage(cli, "name the budget that --%s is about", action);
    check_values(cli);
    struct weft *weft = weft_cli_open(cli);
    if (!name)
        return weft_budget_list(cli, weft);
    if (!action)
        return weft_budget_show(cli, weft, name);
    if (ledger)
        return weft_budget_show_ledger(cli, weft, name);
    return strcmp(action, "reset") == 0    ? reset(cli, weft, name)
           : strcmp(action, "remove") == 0 ? remove_budget(cli, weft, name)
                                           : put(cli, weft, name);
}

const struct weft_command weft_command_budget = {
    .name = "budget",
    .args = "[NAME]",
    .summary = "show budgets, limit how much may be spent",
    .about =
        "A budget limits what executions spend in a period, in dimensions of your choice: tokens, "
        "cents, seconds. It is for the executions that it matches by lane, kind and tenant, and "
        "for executions that name it (weft submit --budget). A claim reserves what an execution is "
        "expected to spend: its --cost, or else the estimate of the dimension. Its worker reports "
        "what it has spent, and what was not spent is given back at its end.\n\n"
        "A claim takes what fits into the hard limits together with what is reserved. A report "
        "that would pass a hard limit is refused. It closes the budget, as does the use of all of "
        "a hard limit: nothing more is claimed under it before its next period, or a higher limit; "
        "with --on-hard cancel what runs under it is cancelled. The soft limit only changes the "
        "state. With --every what was used is set to 0 again and again: each 1d, 12h, or in "
        "months, 1month (1m is a minute); the moment of --anchor is the beginning of a period. "
        "--reset does it now.\n\n"
        "Without options it shows the budgets, or one. Options make a budget or change it: what no "
        "option names stays as it is. Numbers are whole and may end with k, M, G or T, for "
        "thousands, millions and so on. A dimension that an existing budget does not have is "
        "refused, because it may be mistyped; --add adds it, --drop takes one away. Which "
        "executions it matches is one setting: --lane, --kind and --tenant together replace it, "
        "and so do --match-all and --by-name.\n\n"
        "The columns are USED in this period; RESERVED by what runs beyond what it used; LEFT of "
        "the hard limit; RESET, when the next period begins. On a terminal there is a bar: # is "
        "used, + reserved, and . left of the hard limit, or of the soft one where there is no "
        "other.\n\n"
        "--ledger lists what each execution has reserved and used of each dimension in this "
        "period; SETTLED says that none of its leases runs any more, and (older) is what the "
        "executions that ended more than a week ago add up to. With --json it is one object "
        "{\"items\":[...],\"next\":CURSOR}; with --json --all each line of the ledger is an object "
        "of its own.",
    .example =
        "weft budget\n"
        "weft budget team-a --hard tokens=1M,usd=500 --soft tokens=800k --estimate tokens=500\n"
        "weft budget team-a --every 1month --anchor 2026-12-01T00:00:00Z --tenant team-a\n"
        "weft budget gpu --hard seconds=36000 --lane gpu --every 1d --on-hard cancel\n"
        "weft budget team-a --ledger --all --json\n"
        "weft budget team-a --reset",
    .option = options,
    .run = run_budget,
};
