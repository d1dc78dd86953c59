/* SPDX-License-Identifier: Apache-2.0 */

/* Ids and filters from the command line. */

#include "cmd/cli/filter_args.h"

#include "cmd/cli/line.h"
#include "cmd/cli/typed.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/id.h"
#include "core/state.h"

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
