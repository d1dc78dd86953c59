/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ids and filters from the command line.
 *
 * Ids in short form are the beginning of an id, or its beginning, "..", and its end, as `weft ls`
 * shows them on a terminal. The server looks them up as a range of ids. For a form that fits
 * several ids the first few are listed, and none is taken.
 */

#include "cmd/cli/filter_args.h"

#include "base/id.h"
#include "cmd/cli/text.h"
#include "core/state.h"
#include "wire/wire.h"

#include <string.h>

bool weft_pick_is_filter(const struct weft_cli *cli)
{
    static const struct weft_option filter_options[] = {WEFT_FILTER_OPTIONS};
    for (size_t i = 0; i < WEFT_LEN(filter_options); i++)
        if (weft_cli_has(cli, filter_options[i].name))
            return true;
    return false;
}

struct weft_tag weft_pick_tag(const struct weft_cli *cli, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        weft_cli_usage(cli, "--tag is '%s': it must be KEY=VALUE", text);
    return (struct weft_tag){
        .key = weft_arena_printf(cli->arena, "%.*s", (int)(equals - text), text),
        .value = equals + 1,
    };
}

/* --since or --until: how long ago, or a moment; 0: not given. */
static weft_usec pick_moment(const struct weft_cli *cli, const char *option)
{
    const char *text = weft_cli_get(cli, option);
    weft_usec moment_us = 0;
    if (text && !weft_past_typed(text, &moment_us))
        weft_cli_usage(
            cli,
            "--%s is '%s': it must be how long ago, like 1h or 7d, or like 2031-01-31T12:00:00Z",
            option, text);
    return moment_us;
}

static void pick_moments(const struct weft_cli *cli, enum weft_pick_time time,
                         struct weft_filter *filter)
{
    bool ended = time == WEFT_PICK_ENDED ||
                 (time == WEFT_PICK_BY_STATE && filter->state && !weft_state_living(filter->state));
    weft_usec since_us = pick_moment(cli, "since"), until_us = pick_moment(cli, "until");
    if (since_us && until_us && since_us >= until_us)
        weft_cli_usage(cli, "--since is not before --until: nothing can fit");
    *(ended ? &filter->finished_since_us : &filter->created_since_us) = since_us;
    *(ended ? &filter->finished_until_us : &filter->created_until_us) = until_us;
}

/* The filter of the options, but for a --flow in short form. */
static struct weft_filter pick_filter(const struct weft_cli *cli, enum weft_pick_time time)
{
    const char *state = weft_cli_get(cli, "state"), *flow = weft_cli_get(cli, "flow"), *const * tag;
    struct weft_filter filter = {
        .lane = weft_cli_get(cli, "lane"),
        .kind = weft_cli_get(cli, "kind"),
        .state = state ? weft_state_parse(state) : WEFT_STATE_NONE,
        .tenant = weft_cli_get(cli, "tenant"),
        .key = weft_cli_get(cli, "key"),
        .error_class = weft_cli_get(cli, "error-class"),
        .worker = weft_cli_get(cli, "worker"),
        .escalated = weft_cli_has(cli, "escalated"),
    };
    struct weft_id_short short_form;
    if (state && filter.state == WEFT_STATE_NONE)
        weft_cli_usage(cli, "there is no state '%s'; they are: %s", state, WEFT_STATE_WORDS);
    pick_moments(cli, time, &filter);
    if (flow && !weft_id_parse(flow, strlen(flow), &filter.flow) &&
        !weft_id_short_parse(flow, &short_form))
        weft_cli_usage(cli, "'%s' is no id of a flow: `weft flow ls` shows them", flow);
    size_t tags = weft_cli_all(cli, "tag", &tag);
    if (tags > 1)
        weft_cli_usage(cli, "a filter has one --tag at most");
    if (tags == 1) {
        struct weft_tag *parsed = weft_new(cli->arena, struct weft_tag);
        *parsed = weft_pick_tag(cli, tag[0]);
        filter.tag = parsed;
    }
    return filter;
}

/* ---- Ids in short form ----------------------------------------------------------------------- */

enum { CANDIDATES = 5 };

/* Executions or flows that fit a short form. */
struct found {
    const char *what; /* "execution" */
    size_t count;
    struct weft_id id[CANDIDATES + 1];
    const char *text[CANDIDATES + 1]; /* kind or name, state, age */
};

static void note(const struct weft_cli *cli, struct found *found, const struct weft_id *id,
                 const char *words[2], weft_usec created_us)
{
    char ago[WEFT_AGO_TEXT];
    if (found->count > CANDIDATES)
        return;
    weft_ago(created_us, weft_wall_us(), ago);
    found->id[found->count] = *id;
    found->text[found->count++] =
        weft_arena_printf(cli->arena, "%s, %s, %s", words[0], words[1], ago);
}

/* The only id that fits; no id and several ids end the process. */
static struct weft_id only_one(const struct found *found, const char *text)
{
    if (found->count == 1)
        return found->id[0];
    if (found->count == 0) {
        weft_cli_say("weft: there is no %s with the id '%s'", found->what, text);
        weft_quit(WEFT_EXIT_NOT_FOUND);
    }
    bool more = found->count > CANDIDATES;
    size_t shown = more ? (size_t)CANDIDATES : found->count;
    weft_cli_say("weft: '%s' fits %s%zu %ss:", text, more ? "more than " : "", shown, found->what);
    for (size_t i = 0; i < shown; i++) {
        char id[WEFT_ID_TEXT];
        weft_id_print(&found->id[i], id);
        weft_cli_say("  %s  %s", id, found->text[i]);
    }
    weft_cli_say("hint: give more of the id");
    weft_quit(WEFT_EXIT_USAGE);
}

enum weft_rc weft_next_page(struct weft *weft, const struct weft_filter *filter, uint32_t limit,
                            struct weft_pages *pages, struct weft_err *err)
{
    weft_page_free(&pages->page);
    pages->page = (struct weft_page){0};
    enum weft_rc rc =
        weft_list(weft, filter, limit, pages->next[0] ? pages->next : NULL, &pages->page, err);
    const char *next = rc ? NULL : pages->page.next;
    if (!rc)
        (void)snprintf(pages->next, sizeof(pages->next), "%s", next ? next : "");
    pages->more = next != NULL;
    return rc;
}

static struct weft_id find_execution(const struct weft_cli *cli, struct weft *weft,
                                     const char *text)
{
    struct found found = {.what = "execution"};
    struct weft_pages pages = {.more = true};
    struct weft_err err = {0};
    struct weft_id id;
    if (weft_id_parse(text, strlen(text), &id))
        return id;
    const struct weft_filter filter = {.id = text};
    while (pages.more && found.count <= CANDIDATES) {
        if (weft_next_page(weft, &filter, (uint32_t)(CANDIDATES + 1 - found.count), &pages, &err))
            weft_quit(weft_cli_fail(&err));
        for (size_t i = 0; i < pages.page.count; i++) {
            const struct weft_execution *item = &pages.page.item[i];
            note(cli, &found, &item->id, (const char *[]){item->kind, weft_state_name(item->state)},
                 item->created_us);
        }
    }
    weft_page_free(&pages.page);
    return only_one(&found, text);
}

struct weft_id weft_find_flow(const struct weft_cli *cli, struct weft *weft, const char *text)
{
    struct found found = {.what = "flow"};
    struct weft_err err = {0};
    struct weft_id id;
    char next[WEFT_CURSOR_TEXT] = "";
    bool more = true;
    if (weft_id_parse(text, strlen(text), &id) && !weft_id_is_zero(&id))
        return id;
    while (more && found.count <= CANDIDATES) {
        struct weft_flows flows = {0};
        const struct weft_flow_listing listing = {
            .id = text,
            .limit = (uint32_t)(CANDIDATES + 1 - found.count),
            .after = next[0] ? next : NULL,
        };
        if (weft_flow_list(weft, &listing, &flows, &err))
            weft_quit(weft_cli_fail(&err));
        for (size_t i = 0; i < flows.count; i++) {
            const struct weft_flow *flow = &flows.item[i];
            const char *name = flow->name ? flow->name : "no name";
            note(cli, &found, &flow->id, (const char *[]){name, weft_wire_flow_states[flow->state]},
                 flow->created_us);
        }
        more = flows.next != NULL;
        (void)snprintf(next, sizeof(next), "%s", flows.next ? flows.next : "");
        weft_flows_free(&flows);
    }
    return only_one(&found, text);
}

struct weft *weft_open_ids(struct weft_cli *cli, size_t count, const struct weft_id **ret_ids)
{
    for (size_t i = 0; i < count; i++) {
        const char *text = cli->arg[i];
        struct weft_id id;
        struct weft_id_short short_form;
        if (!weft_id_parse(text, strlen(text), &id) && !weft_id_short_parse(text, &short_form))
            weft_cli_usage(cli,
                           "'%s' is no id: give one as `weft ls` shows it, or at least its first "
                           "%d digits",
                           text, WEFT_ID_PREFIX_MIN);
    }
    struct weft *weft = weft_cli_open(cli);
    struct weft_id *id = weft_new_array(cli->arena, struct weft_id, count + 1);
    for (size_t i = 0; i < count; i++)
        id[i] = find_execution(cli, weft, cli->arg[i]);
    *ret_ids = id;
    return weft;
}

struct weft *weft_open_filter(struct weft_cli *cli, enum weft_pick_time time,
                              struct weft_filter *ret_filter)
{
    struct weft_filter filter = pick_filter(cli, time);
    struct weft *weft = weft_cli_open(cli);
    if (weft_cli_get(cli, "flow") && weft_id_is_zero(&filter.flow))
        filter.flow = weft_find_flow(cli, weft, weft_cli_get(cli, "flow"));
    *ret_filter = filter;
    return weft;
}
