/* SPDX-License-Identifier: Apache-2.0 */

/* weft flow: graphs of executions, from a file to their end. */

#include "base/id.h"
#include "cmd/cli/filter_args.h"
#include "cmd/cli/output.h"
#include "cmd/flow/flow.h"

#include <inttypes.h>
#include <string.h>

static const int64_t a_day_ms = 86400000;

/* The flow that the command is about: weft_show_fn has no argument for it. */
static struct weft_id watched;

/* ---- Looking --------------------------------------------------------------------------------- */

/* A page of nodes after the first one. */
struct later {
    struct weft_flow_page page;
    struct later *before;
};

/* The flow with all its nodes. With --watch it is read for days, so it has memory of its own. */
struct whole {
    struct weft_flow_page first; /* has the nodes of all pages */
    struct later *last;
    struct weft_arena *arena; /* owned */
};

static void free_whole(struct whole *whole)
{
    for (struct later *at = whole->last; at; at = at->before)
        weft_flow_page_free(&at->page);
    weft_flow_page_free(&whole->first);
    weft_arena_free(whole->arena);
}

static enum weft_rc read_whole(struct weft *weft, const struct weft_id *id, struct whole *ret_whole,
                               struct weft_err *err)
{
    struct whole whole = {0};
    enum weft_rc rc = weft_flow_get(weft, id, 0, &whole.first, err);
    if (rc)
        return rc;
    whole.arena = weft_arena_new();
    size_t total = (size_t)whole.first.flow.node_count, count = whole.first.count;
    const char *next = whole.first.next;
    struct weft_flow_node *node = weft_new_array(whole.arena, struct weft_flow_node, total + 1);
    if (count > total)
        count = total;
    for (size_t i = 0; i < count; i++)
        node[i] = whole.first.node[i];
    while (!rc && next && count < total) {
        struct later *later = weft_new(whole.arena, struct later);
        rc = weft_flow_nodes(weft, id, 0, next, &later->page, err);
        if (rc)
            break;
        later->before = whole.last;
        whole.last = later;
        for (size_t i = 0; i < later->page.count && count < total; i++)
            node[count++] = later->page.node[i];
        next = later->page.next;
    }
    whole.first.node = node;
    whole.first.count = count;
    whole.first.next = NULL;
    if (rc)
        free_whole(&whole);
    else
        *ret_whole = whole;
    return rc;
}

static enum weft_exit show_flow(const struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct whole whole;
    if (read_whole(weft, &watched, &whole, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_flow_page, &whole.first);
    else
        weft_flow_draw(cli, &whole.first, weft_cli_has(cli, "all"));
    if (whole.first.flow.state != WEFT_FLOW_OPEN)
        weft_cli_watched();
    free_whole(&whole);
    return WEFT_EXIT_OK;
}

/* Follows the flow to its end, which decides the exit code. */
static enum weft_exit follow(struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_flow_page page;
    enum weft_exit code =
        weft_cli_has(cli, "watch") ? weft_cli_watch(cli, 1000, show_flow) : WEFT_EXIT_OK;
    if (code != WEFT_EXIT_OK)
        return code;
    int64_t wait_ms =
        weft_cli_has(cli, "wait") ? weft_cli_ms(cli, "wait", 0, a_day_ms, a_day_ms) : 0;
    if (weft_flow_get(weft, &watched, wait_ms, &page, &err))
        return weft_cli_fail(&err);
    enum weft_flow_state state = page.flow.state;
    weft_flow_page_free(&page);
    if (state == WEFT_FLOW_SUCCEEDED)
        return WEFT_EXIT_OK;
    char id[WEFT_ID_TEXT];
    weft_id_print(&watched, id);
    if (state == WEFT_FLOW_OPEN) {
        weft_cli_say("weft: flow %s has not ended", id);
        weft_cli_say("hint: `weft flow show --watch %s`", id);
        return weft_cli_interrupted() ? WEFT_EXIT_INTERRUPTED : WEFT_EXIT_UNAVAILABLE;
    }
    weft_cli_say("weft: flow %s %s", id, weft_wire_flow_states[state]);
    return WEFT_EXIT_FAILED;
}

static void put_flow_state(struct weft_table *table, const void *item)
{
    const struct weft_flow *flow = item;
    weft_table_paint(table, weft_flow_color(flow->state), "%s", weft_wire_flow_states[flow->state]);
}

#define AT(member) offsetof(struct weft_flow, member)
static const struct weft_column columns[] = {
    {"ID", WEFT_LEFT, 0, weft_cell_id, AT(id)},
    {"NAME", WEFT_LEFT, 1, weft_cell_text, AT(name)},
    {"STATE", WEFT_LEFT, 0, put_flow_state, 0},
    {"NODES", WEFT_RIGHT, 0, weft_cell_u64, AT(node_count)},
    {"CREATED", WEFT_RIGHT, 0, weft_cell_ago, AT(created_us)},
    {"ENDED", WEFT_RIGHT, 0, weft_cell_ago, AT(finished_us)},
};

/* Pages may be short: reads pages until there are as many flows as were asked for. */
static enum weft_rc read_flows(struct weft *weft, const struct weft_flow_listing *wanted,
                               struct weft_table *table, struct weft_json_writer *json,
                               struct weft_err *err)
{
    struct weft_flow_listing listing = *wanted;
    char next[WEFT_CURSOR_TEXT] = "";
    bool more = true;
    while (more && listing.limit > 0) {
        struct weft_flows flows = {0};
        enum weft_rc rc = weft_flow_list(weft, &listing, &flows, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < flows.count; i++) {
            if (table)
                weft_table_row(table, &flows.item[i]);
            else
                weft_wire_write(&weft_wire_flow, &flows.item[i], json);
        }
        more = flows.next != NULL;
        (void)snprintf(next, sizeof(next), "%s", flows.next ? flows.next : "");
        listing.after = next;
        listing.limit -= (uint32_t)flows.count;
        weft_flows_free(&flows);
    }
    return WEFT_OK;
}

static enum weft_exit run_ls(struct weft_cli *cli, struct weft *weft)
{
    const char *state = weft_cli_get(cli, "state");
    int found = state ? weft_wire_word(weft_wire_flow_states, WEFT_FLOW_STATE_COUNT, state) : 0;
    const struct weft_flow_listing listing = {.name = weft_cli_get(cli, "name"),
                                              .limit =
                                                  (uint32_t)weft_cli_i64(cli, "limit", 1, 1000, 50),
                                              .by_state = state != NULL,
                                              .state = (enum weft_flow_state)found};
    if (found < 0)
        weft_cli_usage(cli, "a flow is open, succeeded, failed or cancelled, not '%s'", state);
    struct weft_err err = {0};
    struct weft_json_out out;
    struct weft_table *table =
        weft_cli_json(cli) ? NULL : weft_table_new(cli, columns, WEFT_LEN(columns));
    if (!table)
        weft_json_out_begin_items(&out);
    enum weft_rc rc = read_flows(weft, &listing, table, &out.json, &err);
    if (table && rc)
        weft_table_free(table);
    else if (table)
        weft_table_print(table);
    else if (rc)
        weft_json_out_drop(&out);
    else
        weft_json_out_end_items(&out);
    return rc ? weft_cli_fail(&err) : WEFT_EXIT_OK;
}

static enum weft_exit run_dot(struct weft_cli *cli, struct weft *weft)
{
    (void)cli;
    struct weft_err err = {0};
    struct whole whole;
    if (read_whole(weft, &watched, &whole, &err))
        return weft_cli_fail(&err);
    weft_flow_dot(&whole.first);
    free_whole(&whole);
    return WEFT_EXIT_OK;
}

static enum weft_exit run_show(struct weft_cli *cli, struct weft *weft)
{
    bool waits = weft_cli_has(cli, "wait") && !weft_cli_has(cli, "watch");
    enum weft_exit code = waits ? follow(cli, weft) : WEFT_EXIT_OK;
    if (code != WEFT_EXIT_OK && code != WEFT_EXIT_FAILED) /* then it has ended, badly */
        return code;
    enum weft_exit shown = weft_cli_watch(cli, 1000, show_flow);
    return shown ? shown : code;
}

/* ---- Changing -------------------------------------------------------------------------------- */

static void put_submitted(const struct weft_cli *cli, const struct weft_wire_type *type,
                          const struct weft_flow_submitted *answer,
                          const struct weft_flow_spec *spec)
{
    char id[WEFT_ID_TEXT];
    weft_id_print(&answer->id, id);
    if (!weft_cli_json(cli)) {
        printf("%s\n", id);
        return;
    }
    struct weft_wire_named_id *named =
        weft_new_array(cli->arena, struct weft_wire_named_id, spec->node_count);
    for (size_t i = 0; i < spec->node_count; i++)
        named[i] = (struct weft_wire_named_id){.name = spec->nodes[i].name, .id = answer->node[i]};
    const struct weft_wire_flow_submitted written = {.id = answer->id,
                                                     .state = answer->state,
                                                     .nodes = named,
                                                     .node_count = spec->node_count,
                                                     .revision = answer->revision,
                                                     .duplicate = answer->duplicate};
    weft_json_out_item(type, &written);
}

static enum weft_exit run_run(struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_flow_file file = {0};
    weft_flow_file_read(cli, cli->arg[1], &file);
    if (weft_cli_get(cli, "name"))
        file.spec.name = weft_cli_get(cli, "name");
    if (weft_cli_get(cli, "key"))
        file.spec.key = weft_cli_get(cli, "key");
    struct weft_flow_submitted answer = {
        .node = weft_new_array(cli->arena, struct weft_id, file.spec.node_count + 1)};
    if (weft_flow_submit(weft, &file.spec, 1, &answer, &err))
        return weft_cli_fail(&err);
    if (answer.err.rc)
        return weft_cli_fail(&answer.err);
    watched = answer.id;
    if (!weft_cli_has(cli, "watch"))
        put_submitted(cli, &weft_wire_flow_submitted, &answer, &file.spec);
    (void)fflush(stdout);
    bool stays = weft_cli_has(cli, "watch") || weft_cli_has(cli, "wait");
    return stays ? follow(cli, weft) : WEFT_EXIT_OK;
}

/* The revision of --revision, or the present revision of the flow. */
static enum weft_rc find_revision(const struct weft_cli *cli, struct weft *weft,
                                  int32_t *ret_revision, struct weft_err *err)
{
    struct weft_flow_page page;
    *ret_revision = (int32_t)weft_cli_i64(cli, "revision", 1, INT32_MAX, 0);
    if (*ret_revision)
        return WEFT_OK;
    enum weft_rc rc = weft_flow_get(weft, &watched, 0, &page, err);
    if (rc)
        return rc;
    *ret_revision = page.flow.revision;
    weft_flow_page_free(&page);
    return WEFT_OK;
}

static enum weft_exit run_add(struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_flow_file file = {.grows = true};
    weft_flow_file_read(cli, cli->arg[2], &file);
    struct weft_flow_growth growth = {
        .flow = watched, .nodes = file.spec.nodes, .node_count = file.spec.node_count};
    struct weft_flow_submitted answer = {
        .node = weft_new_array(cli->arena, struct weft_id, file.spec.node_count + 1)};
    if (find_revision(cli, weft, &growth.revision, &err) ||
        weft_flow_grow(weft, &growth, &answer, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        put_submitted(cli, &weft_wire_flow_grown, &answer, &file.spec);
    else
        printf("revision %d\n", answer.revision);
    return WEFT_EXIT_OK;
}

/* "FROM,TO": no name has a comma. */
static struct weft_flow_edge read_edge(const struct weft_cli *cli, const char *text)
{
    char *from = weft_arena_strdup(cli->arena, text), *comma = strchr(from, ',');
    if (!comma || comma == from || !comma[1] || strchr(comma + 1, ','))
        weft_cli_usage(cli, "'%s' is no edge: name two nodes, FROM,TO", text);
    *comma = '\0';
    return (struct weft_flow_edge){.from = from, .to = comma + 1};
}

static enum weft_exit run_link(struct weft_cli *cli, struct weft *weft)
{
    struct weft_err err = {0};
    struct weft_wire_flow_submitted linked = {0};
    size_t count = cli->arg_count - 2;
    struct weft_flow_edge *edge = weft_new_array(cli->arena, struct weft_flow_edge, count);
    struct weft_flow_edging edging = {.flow = watched, .edges = edge, .edge_count = count};
    for (size_t i = 0; i < count; i++)
        edge[i] = read_edge(cli, cli->arg[i + 2]);
    if (find_revision(cli, weft, &edging.revision, &err) ||
        weft_flow_link(weft, &edging, &linked.revision, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_flow_linked, &linked);
    else
        printf("revision %d\n", linked.revision);
    return WEFT_EXIT_OK;
}

/* A flow that is cancelled stays open until its last member has ended. */
static void put_cancelled(const struct weft_flow_cancelled *answer)
{
    const char *s = answer->cancelled == 1 ? "" : "s";
    if (answer->state != WEFT_FLOW_OPEN)
        printf("flow %s, with %" PRIu64 " member%s\n", weft_wire_flow_states[answer->state],
               answer->cancelled, s);
    else if (answer->done)
        printf("cancelled %" PRIu64 " member%s; the flow ends when the others have ended\n",
               answer->cancelled, s);
    else
        printf("cancelled %" PRIu64 " member%s so far; the others follow\n", answer->cancelled, s);
}

static enum weft_exit cancel(const struct weft_cli *cli, struct weft *weft,
                             const struct weft_flow_cancelling *args, int64_t wait_ms)
{
    struct weft_err err = {0};
    struct weft_flow_cancelled answer;
    if (weft_flow_cancel(weft, args, wait_ms, &answer, &err))
        return weft_cli_fail(&err);
    if (weft_cli_json(cli))
        weft_json_out_item(&weft_wire_flow_cancelled, &answer);
    else if (!args->remove)
        put_cancelled(&answer);
    return WEFT_EXIT_OK;
}

static enum weft_exit run_cancel(struct weft_cli *cli, struct weft *weft)
{
    const char *policy = weft_cli_get(cli, "policy");
    int how = weft_wire_word(weft_wire_flow_cancels, WEFT_LEN(weft_wire_flow_cancels),
                             policy ? policy : "all");
    if (how < 0)
        weft_cli_usage(cli, "--policy is all, pending or flow_only, not '%s'", policy);
    const struct weft_flow_cancelling args = {
        .flow = watched, .how = (enum weft_flow_cancel)how, .reason = weft_cli_get(cli, "reason")};
    return cancel(cli, weft, &args, weft_cli_ms(cli, "wait", 0, 60000, 10000));
}

static enum weft_exit run_rm(struct weft_cli *cli, struct weft *weft)
{
    const struct weft_flow_cancelling args = {.flow = watched, .reason = "deleted", .remove = true};
    return cancel(cli, weft, &args, 0);
}

static const struct verb {
    const char *name;
    size_t args; /* with the verb */
    const char *takes;
    const char *options; /* that it takes; any other is refused */
    bool more;           /* it takes more of the last argument */
    bool no_id;          /* its first argument is no id of a flow */
    enum weft_exit (*run)(struct weft_cli *cli, struct weft *weft);
} verbs[] = {
    {"run", 2, "FILE", "watch wait name key", .no_id = true, .run = run_run},
    {"show", 2, "ID", "watch wait all", .run = run_show},
    {"ls", 1, "nothing", "name state limit", .no_id = true, .run = run_ls},
    {"cancel", 2, "ID", "wait policy reason", .run = run_cancel},
    {"dot", 2, "ID", "", .run = run_dot},
    {"add", 3, "ID FILE", "revision", .run = run_add},
    {"link", 3, "ID FROM,TO...", "revision", .more = true, .run = run_link},
    {"rm", 2, "ID", "", .run = run_rm},
};

static enum weft_exit run_flow(struct weft_cli *cli)
{
    const char *name = cli->arg[0];
    size_t count = cli->arg_count, i = 0;
    struct weft_id_short short_form;
    while (i < WEFT_LEN(verbs) && strcmp(verbs[i].name, name) != 0)
        i++;
    if (i == WEFT_LEN(verbs))
        weft_cli_usage(cli,
                       "there is no `weft flow %s`; there are run, show, ls, cancel, dot, add, "
                       "link and rm",
                       name);
    const struct verb *verb = &verbs[i];
    if (count < verb->args || (count > verb->args && !verb->more))
        weft_cli_usage(cli, "`weft flow %s` takes %s", name, verb->takes);
    for (const struct weft_option *at = cli->command->option; at->name; at++)
        if (weft_cli_has(cli, at->name) && !weft_is_word(at->name, verb->options))
            weft_cli_usage(cli, "`weft flow %s` has no --%s", name, at->name);
    if (!verb->no_id && !weft_id_short_parse(cli->arg[1], &short_form))
        weft_cli_usage(cli, "'%s' is no id of a flow: `weft flow ls` shows them", cli->arg[1]);
    struct weft *weft = weft_cli_open(cli);
    if (!verb->no_id)
        watched = weft_find_flow(cli, weft, cli->arg[1]);
    return verb->run(cli, weft);
}

const struct weft_command weft_command_flow = {
    .name = "flow",
    .args = "run|show|ls|cancel|dot|add|link|rm [ID] [FILE|FROM,TO...]",
    .summary = "run graphs of executions and look at them",
    .about =
        "A flow is a graph: a node is an execution with a name, and begins when what it comes "
        "after has succeeded, or any, or k of it.\n\n"
        "`run FILE` submits a flow and prints its id; FILE is the body of POST /v1/flows, in which "
        "// and /* */ comments may stand; - is standard input. With --watch it is drawn until it "
        "ends, with --wait waited for; then the exit code is 0 when it succeeded and 1 when not. "
        "`show ID` draws it: a node stands below the one that it waits for longest, and AFTER says "
        "what else it comes after. Its columns are NODE, the name; STATE; TIME, how long it has "
        "run or ran; TRY, the attempt if it is not the first; ID, of its execution, in short form "
        "on a terminal, for `weft show` and the others; NOTE, its error, the reason it was "
        "stopped for, or what a suspended node waits for; one whose timeout left it to an operator "
        "is escalated. Of very many nodes in a row or a chain the first ones are drawn, the last "
        "one, and some that failed or were escalated; the others are counted. With --all all are "
        "drawn. `dot "
        "ID` prints it for Graphviz. `add ID FILE` adds the nodes of a file to a flow that is "
        "open; they may come after nodes that it has. `link ID FROM,TO...` adds edges between "
        "nodes that it has: the node TO, which is blocked, comes after the node FROM as well. "
        "`cancel ID` cancels it and `rm ID` deletes it, cancelling it first if it is open.",
    .example =
        "weft flow run nightly.json --watch\n"
        "weft flow show 0192f5c4-7d1e-7a3b-8c2d-1f2e3d4c5b6a\n"
        "weft flow ls --state open\n"
        "weft flow dot 0192f5c4-7d1e-7a3b-8c2d-1f2e3d4c5b6a | dot -Tsvg >flow.svg",
    .option =
        (const struct weft_option[]){
            {"watch", 0, "[TIME]",
             "run, show: draw it repeatedly until it ends, every second or at this interval", NULL},
            {"wait", 'w', "[TIME]",
             "run, show: wait until it has ended, at most so long (a day); cancel: at "
             "most so long (10s)",
             NULL},
            {"all", 'a', NULL, "show: draw every node", NULL},
            {"name", 0, "NAME", "run: call it so; ls: only flows called so", NULL},
            {"key", 0, "KEY", "run: submit it once for this key", NULL},
            {"state", 's', "STATE", "ls: only flows in this state",
             "open succeeded failed cancelled"},
            {"limit", 0, "N", "ls: so many at most, the newest; default 50", NULL},
            {"policy", 0, "WORD", "cancel: all, all but the running (pending), or none (flow_only)",
             "all pending flow_only"},
            {"reason", 0, "TEXT", "cancel: why; kept with its members", NULL},
            {"revision", 0, "N", "add, link: only if the flow is still at this revision", NULL},
            {.name = NULL},
        },
    .run = run_flow,
};
