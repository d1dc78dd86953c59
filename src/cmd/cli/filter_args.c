/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ids and filters from the command line.
 *
 * Ids in short form are the beginning of an id, or its beginning, "..", and its end, as `weft ls`
 * shows them on a terminal. The server looks them up as a range of ids. For a form that fits
 * several ids the first few are listed, and none is taken.
 */

#include "cmd/cli/filter_args.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/id.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/text.h"
#include "core/state.h"
#include "wire/wire.h"

#include <string.h>

static const char *const filter_options[] = {"lane",  "kind",        "state", "since",
                                             "until", "tenant",      "key",   "tag",
                                             "flow",  "error-class", "worker"};

bool weft_pick_is_filter(const struct weft_cli *cli)
{
    for (size_t i = 0; i < WEFT_LEN(filter_options); i++)
        if (weft_cli_has(cli, filter_options[i]))
            return true;
    return false;
}

bool weft_pick_tag(const struct weft_cli *cli, const char *text, struct weft_tag *ret_tag)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return false;
    ret_tag->key = weft_arena_printf(cli->arena, "%.*s", (int)(equals - text), text);
    ret_tag->value = equals + 1;
    return true;
}

/* --since or --until: how long ago, or a moment. */
static bool pick_moment(const struct weft_cli *cli, const char *option, weft_usec *ret_moment_us)
{
    const char *text = weft_cli_get(cli, option);
    if (!text || weft_past_typed(text, ret_moment_us))
        return true;
    return weft_cli_refuse(
        cli, "--%s is '%s': it must be how long ago, like 1h or 7d, or like 2031-01-31T12:00:00Z",
        option, text);
}

static bool pick_moments(const struct weft_cli *cli, enum weft_pick_time time,
                         struct weft_filter *filter)
{
    bool ended = time == WEFT_PICK_ENDED ||
                 (time == WEFT_PICK_BY_STATE && filter->state && !weft_state_living(filter->state));
    weft_usec *since_us = ended ? &filter->finished_since_us : &filter->created_since_us;
    weft_usec *until_us = ended ? &filter->finished_until_us : &filter->created_until_us;
    if (!pick_moment(cli, "since", since_us) || !pick_moment(cli, "until", until_us))
        return false;
    if (!*since_us || !*until_us || *since_us < *until_us)
        return true;
    return weft_cli_refuse(cli, "--since is not before --until: nothing can fit");
}

bool weft_pick_filter(const struct weft_cli *cli, enum weft_pick_time time,
                      struct weft_filter *ret_filter, enum weft_exit *ret_exit)
{
    const char *state = weft_cli_get(cli, "state"), *flow = weft_cli_get(cli, "flow"), *const * tag;
    struct weft_filter filter = {
        .lane = weft_cli_get(cli, "lane"),
        .kind = weft_cli_get(cli, "kind"),
        .tenant = weft_cli_get(cli, "tenant"),
        .key = weft_cli_get(cli, "key"),
        .error_class = weft_cli_get(cli, "error-class"),
        .worker = weft_cli_get(cli, "worker"),
    };
    struct weft_id_short short_form;
    *ret_exit = WEFT_EXIT_USAGE;
    if (state) {
        filter.state = weft_state_parse(state);
        if (filter.state == WEFT_STATE_NONE)
            return weft_cli_refuse(cli, "there is no state '%s'; they are: %s", state,
                                   WEFT_STATE_WORDS);
    }
    if (!pick_moments(cli, time, &filter))
        return false;
    if (flow && !weft_id_parse(flow, strlen(flow), &filter.flow) &&
        !weft_id_short_parse(flow, &short_form))
        return weft_cli_refuse(cli, "'%s' is no id of a flow: `weft flow ls` shows them", flow);
    size_t tags = weft_cli_all(cli, "tag", &tag);
    if (tags > 1)
        return weft_cli_refuse(cli, "a filter has one --tag at most");
    if (tags == 1) {
        struct weft_tag *parsed = weft_new(cli->arena, struct weft_tag);
        if (!weft_pick_tag(cli, tag[0], parsed))
            return weft_cli_refuse(cli, "--tag is '%s': it must be KEY=VALUE", tag[0]);
        filter.tag = parsed;
    }
    *ret_filter = filter;
    *ret_exit = WEFT_EXIT_OK;
    return true;
}

bool weft_pick_ids(const struct weft_cli *cli, size_t count, enum weft_exit *ret_exit)
{
    const char *const *arg;
    (void)weft_cli_args(cli, &arg);
    for (size_t i = 0; i < count; i++) {
        struct weft_id id;
        struct weft_id_short short_form;
        if (weft_id_parse(arg[i], strlen(arg[i]), &id) || weft_id_short_parse(arg[i], &short_form))
            continue;
        *ret_exit = weft_cli_usage(cli,
                                   "'%s' is no id: give one as `weft ls` shows it, or at least its "
                                   "first %d digits",
                                   arg[i], WEFT_ID_PREFIX_MIN);
        return false;
    }
    *ret_exit = WEFT_EXIT_OK;
    return true;
}

/* ---- With an open handle --------------------------------------------------------------------- */

enum { CANDIDATES = 5 };

/* What fits a short form, executions or flows. */
struct found {
    const char *what; /* "execution" */
    size_t count;
    struct weft_id id[CANDIDATES + 1];
    const char *text[CANDIDATES + 1]; /* kind or name, state, age */
};

static enum weft_exit none_found(const struct found *found, const char *text)
{
    (void)fprintf(stderr, "weft: there is no %s with the id '", found->what);
    weft_put_clean(stderr, text);
    (void)fputs("'\n", stderr);
    return WEFT_EXIT_NOT_FOUND;
}

static enum weft_exit too_many(const struct found *found, const char *text)
{
    (void)fputs("weft: '", stderr);
    weft_put_clean(stderr, text);
    (void)fprintf(stderr, "' fits %s%zu %ss:\n", found->count > CANDIDATES ? "more than " : "",
                  found->count > CANDIDATES ? (size_t)CANDIDATES : found->count, found->what);
    for (size_t i = 0; i < found->count && i < CANDIDATES; i++) {
        char id[WEFT_ID_TEXT];
        weft_id_print(&found->id[i], id);
        (void)fprintf(stderr, "  %s  ", id);
        weft_put_clean(stderr, found->text[i]);
        (void)fputc('\n', stderr);
    }
    (void)fputs("hint: give more of the id\n", stderr);
    return WEFT_EXIT_USAGE;
}

static bool settle(const struct found *found, const char *text, struct weft_id *ret_id,
                   enum weft_exit *ret_exit)
{
    *ret_exit = WEFT_EXIT_OK;
    if (found->count == 1)
        *ret_id = found->id[0];
    else
        *ret_exit = found->count == 0 ? none_found(found, text) : too_many(found, text);
    return found->count == 1;
}

static bool find_execution(const struct weft_cli *cli, struct weft *weft, const char *text,
                           struct weft_id *ret_id, enum weft_exit *ret_exit)
{
    struct found found = {.what = "execution"};
    struct weft_err err = {0};
    char next[WEFT_CURSOR_TEXT] = "", ago[WEFT_AGO_TEXT];
    bool more = true;
    if (weft_id_parse(text, strlen(text), ret_id))
        return true;
    while (more && found.count <= CANDIDATES) {
        struct weft_page page = {0};
        if (weft_list(weft, &(struct weft_filter){.id = text},
                      (uint32_t)(CANDIDATES + 1 - found.count), next[0] ? next : NULL, &page,
                      &err)) {
            *ret_exit = weft_cli_fail(&err);
            return false;
        }
        for (size_t i = 0; i < page.count && found.count <= CANDIDATES; i++) {
            weft_ago(page.item[i].created_us, weft_wall_us(), ago);
            found.id[found.count] = page.item[i].id;
            found.text[found.count++] =
                weft_arena_printf(cli->arena, "%s, %s, %s", page.item[i].kind,
                                  weft_state_name(page.item[i].state), ago);
        }
        more = page.next != NULL;
        (void)snprintf(next, sizeof(next), "%s", page.next ? page.next : "");
        weft_page_free(&page);
    }
    return settle(&found, text, ret_id, ret_exit);
}

bool weft_find_flow(const struct weft_cli *cli, struct weft *weft, const char *text,
                    struct weft_id *ret_id, enum weft_exit *ret_exit)
{
    struct found found = {.what = "flow"};
    struct weft_err err = {0};
    char next[WEFT_CURSOR_TEXT] = "", ago[WEFT_AGO_TEXT];
    bool more = true;
    if (weft_id_parse(text, strlen(text), ret_id) && !weft_id_is_zero(ret_id))
        return true;
    while (more && found.count <= CANDIDATES) {
        struct weft_flows flows = {0};
        const struct weft_flow_listing listing = {
            .id = text,
            .limit = (uint32_t)(CANDIDATES + 1 - found.count),
            .after = next[0] ? next : NULL,
        };
        if (weft_flow_list(weft, &listing, &flows, &err)) {
            *ret_exit = weft_cli_fail(&err);
            return false;
        }
        for (size_t i = 0; i < flows.count && found.count <= CANDIDATES; i++) {
            const struct weft_flow *flow = &flows.item[i];
            weft_ago(flow->created_us, weft_wall_us(), ago);
            found.id[found.count] = flow->id;
            found.text[found.count++] =
                weft_arena_printf(cli->arena, "%s, %s, %s", flow->name ? flow->name : "no name",
                                  weft_wire_flow_states[flow->state], ago);
        }
        more = flows.next != NULL;
        (void)snprintf(next, sizeof(next), "%s", flows.next ? flows.next : "");
        weft_flows_free(&flows);
    }
    return settle(&found, text, ret_id, ret_exit);
}

bool weft_find_ids(const struct weft_cli *cli, struct weft *weft, size_t count,
                   const struct weft_id **ret_ids, enum weft_exit *ret_exit)
{
    const char *const *arg;
    struct weft_id *id = weft_new_array(cli->arena, struct weft_id, count + 1);
    (void)weft_cli_args(cli, &arg);
    for (size_t i = 0; i < count; i++)
        if (!find_execution(cli, weft, arg[i], &id[i], ret_exit))
            return false;
    *ret_ids = id;
    *ret_exit = WEFT_EXIT_OK;
    return true;
}

bool weft_find_filter(const struct weft_cli *cli, struct weft *weft, struct weft_filter *filter,
                      enum weft_exit *ret_exit)
{
    const char *flow = weft_cli_get(cli, "flow");
    *ret_exit = WEFT_EXIT_OK;
    return !flow || !weft_id_is_zero(&filter->flow) ||
           weft_find_flow(cli, weft, flow, &filter->flow, ret_exit);
}
