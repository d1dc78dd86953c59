/* SPDX-License-Identifier: Apache-2.0 */

/* Ids and filters from the command line. */

#include "cmd/pick.h"

#include "cmd/line.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/id.h"
#include "core/state.h"

#include <string.h>

static const char *const filter_options[] = {"lane", "kind", "state", "tenant",
                                             "key",  "tag",  "flow"};

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

bool weft_pick_filter(const struct weft_cli *cli, struct weft_filter *ret_filter,
                      enum weft_exit *ret_exit)
{
    const char *state = weft_cli_get(cli, "state"), *flow = weft_cli_get(cli, "flow"), *const * tag;
    struct weft_filter filter = {
        .lane = weft_cli_get(cli, "lane"),
        .kind = weft_cli_get(cli, "kind"),
        .tenant = weft_cli_get(cli, "tenant"),
        .key = weft_cli_get(cli, "key"),
    };
    *ret_exit = WEFT_EXIT_USAGE;
    if (state) {
        filter.state = weft_state_parse(state);
        if (filter.state == WEFT_STATE_NONE) {
            (void)weft_cli_usage(cli, "there is no state '%s'; they are: %s", state,
                                 WEFT_STATE_WORDS);
            return false;
        }
    }
    if (flow &&
        (!weft_id_parse(flow, strlen(flow), &filter.flow) || weft_id_is_zero(&filter.flow))) {
        (void)weft_cli_usage(cli, "'%s' is no id of a flow: `weft flow ls` shows them", flow);
        return false;
    }
    size_t tags = weft_cli_all(cli, "tag", &tag);
    if (tags > 1) {
        (void)weft_cli_usage(cli, "a filter has one --tag at most");
        return false;
    }
    if (tags == 1) {
        struct weft_tag *parsed = weft_new(cli->arena, struct weft_tag);
        if (!weft_pick_tag(cli, tag[0], parsed)) {
            (void)weft_cli_usage(cli, "--tag is '%s': it must be KEY=VALUE", tag[0]);
            return false;
        }
        filter.tag = parsed;
    }
    *ret_filter = filter;
    *ret_exit = WEFT_EXIT_OK;
    return true;
}

bool weft_pick_ids(const struct weft_cli *cli, const struct weft_id **ret_ids, size_t *ret_count,
                   enum weft_exit *ret_exit)
{
    const char *const *arg;
    size_t count = weft_cli_args(cli, &arg);
    struct weft_id *id = weft_new_array(cli->arena, struct weft_id, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (weft_id_parse(arg[i], strlen(arg[i]), &id[i]))
            continue;
        *ret_exit =
            weft_cli_usage(cli, "'%s' is no id: ids are UUIDs, as `weft ls` shows them", arg[i]);
        return false;
    }
    *ret_ids = id;
    *ret_count = count;
    return true;
}
