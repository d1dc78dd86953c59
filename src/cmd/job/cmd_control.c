/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft cancel, replay, priority, revoke, resume and deadline: by id; cancel and replay also by a
 * filter.
 *
 * With a filter the number of executions is shown and must be confirmed; then the calls follow each
 * other by their cursors to the end. Executions that are submitted meanwhile are not taken. When a
 * signal or a failure ends it early, it prints what was done and the cursor to go on with.
 */

#include "base/limits.h"
#include "cmd/cli/filter_args.h"
#include "cmd/cli/output.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct verb {
    const char *command; /* its name; by filter also what it does */
    enum weft_steer_kind kind;
    const char *done;     /* "cancelled" */
    bool living;          /* it is for living executions; otherwise for ended ones */
    bool takes_value;     /* the last argument is the new priority or deadline */
    const char *not_done; /* why some that fit a filter were not changed; NULL: takes no filter */
};

static const struct verb verbs[] = {
    {"cancel", WEFT_STEER_CANCEL, "cancelled", true, false, "had ended meanwhile"},
    {"replay", WEFT_STEER_REPLAY, "replayed", false, false, "could not be replayed"},
    {"revoke", WEFT_STEER_REVOKE, "revoked", true, false, NULL},
    {"priority", WEFT_STEER_REPRIORITIZE, "has another priority", true, true, NULL},
    {"resume", WEFT_STEER_RESUME, "resumed", true, false, NULL},
    {"deadline", WEFT_STEER_SET_DEADLINE, "has another deadline", true, true, NULL},
};

/* ---- By id ----------------------------------------------------------------------------------- */

static void put_steered_json(const struct weft_id *id, const struct weft_steered *answer,
                             struct weft_json_writer *json)
{
    weft_json_begin_object(json);
    weft_json_key(json, "id");
    weft_wire_put_id(json, id);
    if (answer->err.rc) {
        weft_json_key(json, "error");
        weft_wire_write_error(&answer->err, NULL, json);
    } else {
        weft_json_add_text(json, "state", weft_state_name(answer->state));
        weft_json_add_bool(json, "changed", answer->changed);
    }
    weft_json_end_object(json);
}

static enum weft_exit put_steered(const struct weft_cli *cli, const struct verb *verb,
                                  const struct weft_id *id, const struct weft_steered *answer,
                                  size_t count)
{
    enum weft_exit code = WEFT_EXIT_OK;
    struct weft_json_out out;
    bool json = weft_cli_json(cli);
    if (json)
        weft_json_out_begin_items(&out);
    for (size_t i = 0; i < count; i++) {
        const struct weft_err *err = &answer[i].err;
        char text[WEFT_ID_TEXT];
        weft_id_print(&id[i], text);
        if (err->rc && code == WEFT_EXIT_OK)
            code = weft_exit_of(err->rc);
        if (json)
            put_steered_json(&id[i], &answer[i], &out.json);
        else if (err->rc)
            weft_cli_say("weft: %s: %s", text, err->text[0] ? err->text : weft_rc_text(err->rc));
        else
            printf("%s %s\n", text, answer[i].changed ? verb->done : "was so already");
    }
    if (json)
        weft_json_out_end_items(&out);
    return code;
}

/* The last argument: a priority, or a deadline. */
static void read_value(const struct weft_cli *cli, const struct verb *verb, const char *text,
                       struct weft_steer *ret_item)
{
    int64_t number;
    if (verb->kind == WEFT_STEER_REPRIORITIZE) {
        if (!weft_number_typed(text, &number) || number < INT16_MIN || number > INT16_MAX)
            weft_cli_usage(cli,
                           "the priority comes last and is a whole number from -32768 to 32767, "
                           "not '%s'",
                           text);
        ret_item->priority = (int32_t)number;
    } else if (strcmp(text, "none") != 0 && !weft_moment_typed(text, &ret_item->deadline_us)) {
        weft_cli_usage(
            cli,
            "the deadline comes last and is like 2031-01-31T12:00:00Z or +1h, or none, not '%s'",
            text);
    }
}

static enum weft_exit steer_ids(struct weft_cli *cli, const struct verb *verb)
{
    struct weft_err err = {0};
    const struct weft_id *id;
    struct weft_steer like = {
        .reason = weft_is_word(verb->command, "cancel revoke resume") ? weft_cli_get(cli, "reason")
                                                                      : NULL,
        .force = verb->kind == WEFT_STEER_REPLAY && weft_cli_has(cli, "force")};
    size_t count = cli->arg_count - (verb->takes_value ? 1 : 0);
    if (verb->takes_value)
        read_value(cli, verb, cli->arg[count], &like);
    struct weft *weft = weft_open_ids(cli, count, &id);
    struct weft_steer *item = weft_new_array(cli->arena, struct weft_steer, count);
    struct weft_steered *answer = weft_new_array(cli->arena, struct weft_steered, count);
    for (size_t i = 0; i < count; i++) {
        item[i] = like;
        item[i].id = id[i];
    }
    for (size_t from = 0; from < count; from += WEFT_BATCH_MAX) {
        size_t chunk = count - from < WEFT_BATCH_MAX ? count - from : WEFT_BATCH_MAX;
        if (weft_steer(weft, verb->kind, item + from, chunk, answer + from, &err))
            return weft_cli_fail(&err);
    }
    return put_steered(cli, verb, id, answer, count);
}

/* ---- By filter ------------------------------------------------------------------------------- */

enum { COUNT_PAGES = 10 }; /* how far the count before the confirmation goes */

/* Counts executions that the verb would change; *ret_more: there may be more than these. */
static enum weft_rc count_fitting(struct weft *weft, const struct verb *verb,
                                  const struct weft_steer_all *args, uint64_t *ret_count,
                                  bool *ret_more, struct weft_err *err)
{
    struct weft_pages pages = {.more = true};
    enum weft_rc rc = WEFT_OK;
    (void)snprintf(pages.next, sizeof(pages.next), "%s", args->after ? args->after : "");
    *ret_count = 0;
    for (int read = 0; pages.more && read < COUNT_PAGES && !rc; read++) {
        rc = weft_next_page(weft, &args->filter, WEFT_PAGE_MAX, &pages, err);
        for (size_t i = 0; i < pages.page.count; i++)
            *ret_count += weft_state_living(pages.page.item[i].state) == verb->living;
    }
    *ret_more = pages.more;
    weft_page_free(&pages.page);
    return rc;
}

/* Asks the user on the terminal. */
static bool confirmed(const struct verb *verb, uint64_t count, bool more)
{
    char answer[16] = "";
    (void)fprintf(stderr, "%s %s%" PRIu64 " execution%s? [y/N] ", verb->command,
                  more ? "at least " : "", count, count == 1 ? "" : "s");
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static enum weft_exit ask_first(struct weft_cli *cli, struct weft *weft, const struct verb *verb,
                                const struct weft_steer_all *args, uint64_t *ret_count)
{
    struct weft_err err = {0};
    bool more;
    if (count_fitting(weft, verb, args, ret_count, &more, &err))
        return weft_cli_fail(&err);
    if (weft_cli_has(cli, "yes") || (*ret_count == 0 && !more))
        return WEFT_EXIT_OK;
    if (!isatty(STDIN_FILENO))
        weft_cli_usage(cli, "would %s %s%" PRIu64 " executions: say --yes to do so", verb->command,
                       more ? "at least " : "", *ret_count);
    if (confirmed(verb, *ret_count, more))
        return WEFT_EXIT_OK;
    weft_cli_say("weft: nothing was done");
    return WEFT_EXIT_FAILED;
}

/* Follows the cursors to the end. After a failure *ret_sweep has the sum of the calls before it. */
static enum weft_exit sweep(struct weft *weft, const struct verb *verb, struct weft_steer_all *args,
                            uint64_t expected, struct weft_sweep *ret_sweep)
{
    struct weft_err err = {0};
    enum weft_exit code = WEFT_EXIT_OK;
    struct weft_bar *bar = weft_bar_new(verb->command, expected);
    *ret_sweep = (struct weft_sweep){.more = true};
    if (args->after)
        (void)snprintf(ret_sweep->next, sizeof(ret_sweep->next), "%s", args->after);
    while (ret_sweep->more && code == WEFT_EXIT_OK) {
        struct weft_sweep part = {0};
        if (weft_cli_interrupted()) {
            code = WEFT_EXIT_INTERRUPTED;
            break;
        }
        if (weft_steer_all(weft, args, &part, &err)) {
            code = weft_cli_fail(&err);
            break;
        }
        ret_sweep->matched += part.matched;
        ret_sweep->changed += part.changed;
        ret_sweep->more = part.more && part.next[0];
        memcpy(ret_sweep->next, part.next, sizeof(part.next));
        args->after = ret_sweep->next;
        weft_bar_set(bar, ret_sweep->changed);
    }
    weft_bar_free(bar);
    return code;
}

static void put_sum(const struct weft_cli *cli, const struct verb *verb,
                    const struct weft_sweep *done)
{
    if (weft_cli_json(cli)) {
        const struct weft_wire_sweep sum = {.matched = done->matched,
                                            .changed = done->changed,
                                            .more = done->more,
                                            .next = done->next[0] ? done->next : NULL};
        weft_json_out_item(&weft_wire_sweep, &sum);
    } else {
        printf("%s %" PRIu64 " execution%s", verb->done, done->changed,
               done->changed == 1 ? "" : "s");
        if (done->matched > done->changed)
            printf(" (%" PRIu64 " %s)", done->matched - done->changed, verb->not_done);
        putchar('\n');
    }
    if (done->more)
        weft_cli_say("hint: to go on, say the same again%s%s",
                     done->next[0] ? " with --after " : "", done->next);
}

static enum weft_exit steer_filter(struct weft_cli *cli, const struct verb *verb)
{
    uint64_t expected = 0;
    struct weft_sweep done = {0};
    struct weft_steer_all args = {.kind = verb->kind,
                                  .after = weft_cli_get(cli, "after"),
                                  .reason = verb->living ? weft_cli_get(cli, "reason") : NULL,
                                  .force = !verb->living && weft_cli_has(cli, "force")};
    struct weft *weft =
        weft_open_filter(cli, verb->living ? WEFT_PICK_CREATED : WEFT_PICK_ENDED, &args.filter);
    weft_cli_catch();
    enum weft_exit code = ask_first(cli, weft, verb, &args, &expected);
    if (code != WEFT_EXIT_OK)
        return code;
    code = sweep(weft, verb, &args, expected, &done);
    put_sum(cli, verb, &done);
    return code;
}

static enum weft_exit run_control(struct weft_cli *cli)
{
    const struct verb *verb = verbs;
    while (strcmp(verb->command, cli->command->name) != 0)
        verb++;
    if (!verb->not_done) /* it takes no filter, and at least one id */
        return steer_ids(cli, verb);
    bool by_id = cli->arg_count > 0, by_filter = weft_pick_is_filter(cli);
    if (by_id && by_filter)
        weft_cli_usage(cli, "give ids or a filter, not both");
    if (!by_id && !by_filter)
        weft_cli_usage(cli, "give ids, or a filter such as --lane or --state");
    if (by_id && weft_cli_has(cli, "after"))
        weft_cli_usage(cli, "--after goes with a filter, not with ids");
    return by_id ? steer_ids(cli, verb) : steer_filter(cli, verb);
}

const struct weft_command weft_command_cancel = {
    .name = "cancel",
    .args = "[ID...]",
    .summary = "stop executions that have not ended",
    .about =
        "By id, or by a filter all that fit it: then the number is shown and must be "
        "confirmed, unless --yes is given. A worker that has one learns of it with its next "
        "heartbeat; what it still says is refused.\n\n"
        "An id may be given in short form, as `weft ls` shows it on a terminal. --since and "
        "--until are compared with the moment at which an execution was submitted; they take how "
        "long ago (1h) or a moment. A filter is followed to its end, newest first; what is "
        "submitted meanwhile is not taken. When it is interrupted it says how many it did, and "
        "the --after with which to go on.",
    .example =
        "weft cancel 01932c07-5f3e-7a10-8c51-0123456789ab --reason 'wrong input'\n"
        "weft cancel --lane mail --state ready --yes",
    .option =
        (const struct weft_option[]){
            WEFT_FILTER_OPTIONS,
            {"reason", 'r', "TEXT", "is kept with each", NULL},
            {"yes", 'y', NULL, "do not ask", NULL},
            {"after", 0, "CURSOR", "by filter: go on where another ended", NULL},
            {.name = NULL},
        },
    .run = run_control,
};

const struct weft_command weft_command_replay = {
    .name = "replay",
    .args = "[ID...]",
    .summary = "run executions that have ended once more",
    .about =
        "By id, or by a filter all that fit it: then the number is shown and must be "
        "confirmed, unless --yes is given. A replayed execution is ready again, with all its "
        "attempts; how it ended before is kept in its history. A member of a flow waits for "
        "upstreams that have not ended, or that are replayed with it; where they have ended in a "
        "way that its join does not allow it is refused, unless --force is given.\n\n"
        "An id may be given in short form, as `weft ls` shows it on a terminal. --since and "
        "--until are compared with the moment at which an execution ended; they take how long ago "
        "(1h) or a moment. A filter is followed to its end, newest first. When it is interrupted "
        "it says how many it did, and the --after with which to go on.",
    .example =
        "weft replay 01932c07-5f3e-7a10-8c51-0123456789ab\n"
        "weft replay --lane mail --state failed --since 1h",
    .option =
        (const struct weft_option[]){
            WEFT_FILTER_OPTIONS,
            {"force", 0, NULL, "members of flows also if their upstreams do not allow it", NULL},
            {"yes", 'y', NULL, "do not ask", NULL},
            {"after", 0, "CURSOR", "by filter: go on where another ended", NULL},
            {.name = NULL},
        },
    .run = run_control,
};

const struct weft_command weft_command_priority = {
    .name = "priority",
    .args = "ID... N",
    .summary = "give executions another priority",
    .about =
        "N is -32768 to 32767; higher ones are claimed first, and 0 is what an execution has when "
        "nothing was said. Only an execution that has not ended has a priority to change. A "
        "negative N stands behind --: `weft priority ID -- -5`.",
    .example =
        "weft priority 01932c07-5f3e-7a10-8c51-0123456789ab 10\n"
        "weft priority 01932c075f..6789ab -- -5",
    .run = run_control,
};

const struct weft_command weft_command_revoke = {
    .name = "revoke",
    .args = "ID...",
    .summary = "take running executions away from their workers",
    .about =
        "The lease ends at once and the execution is ready again, with its attempt not spent: for "
        "a worker that hangs. The worker learns of it with its next heartbeat; what it still says "
        "is refused.",
    .example = "weft revoke 01932c07-5f3e-7a10-8c51-0123456789ab --reason 'worker hangs'",
    .option =
        (const struct weft_option[]){
            {"reason", 'r', "TEXT", "is kept with each", NULL},
            {.name = NULL},
        },
    .run = run_control,
};

const struct weft_command weft_command_resume = {
    .name = "resume",
    .args = "ID...",
    .summary = "let suspended executions go on",
    .about =
        "Whatever they wait for: each is ready again, and the worker that gets it sees that an "
        "operator resumed it. `weft waitpoints ID` shows what an execution waits for.",
    .example = "weft resume 01932c07-5f3e-7a10-8c51-0123456789ab --reason 'approved by phone'",
    .option =
        (const struct weft_option[]){
            {"reason", 'r', "TEXT", "is kept with each", NULL},
            {.name = NULL},
        },
    .run = run_control,
};

const struct weft_command weft_command_deadline = {
    .name = "deadline",
    .args = "ID... MOMENT|none",
    .summary = "give executions another deadline, or none",
    .about =
        "MOMENT is when they must be over: RFC 3339, or +1h from now. An execution that has not "
        "ended by then expires. With `none` they have no deadline any more.",
    .example =
        "weft deadline 01932c07-5f3e-7a10-8c51-0123456789ab +1h\n"
        "weft deadline 01932c075f..6789ab none",
    .run = run_control,
};
