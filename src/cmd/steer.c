/* SPDX-License-Identifier: Apache-2.0 */

/*
 * weft cancel and weft replay: by id, or everything that fits a filter.
 *
 * By filter the number is asked for confirmation first, unless --yes is given; then the calls of
 * the API, each of which is bounded, are repeated until there is nothing left.
 */

#include "cmd/json.h"
#include "cmd/line.h"
#include "cmd/pick.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/limits.h"
#include "core/state.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { COUNT_PAGES = 10 }; /* how far the count before the confirmation goes */

struct verb {
    enum weft_steer_kind kind;
    const char *doing;
    const char *done;
    bool living; /* it is for living executions; otherwise for ended ones */
};

static const struct verb cancel = {WEFT_STEER_CANCEL, "cancel", "cancelled", true};
static const struct verb replay = {WEFT_STEER_REPLAY, "replay", "replayed", false};

/* ---- By id ----------------------------------------------------------------------------------- */

static void put_steered_json(const struct weft_id *id, const struct weft_steered *answer,
                             struct weft_json_writer *json)
{
    weft_json_begin_object(json);
    weft_json_key(json, "id");
    weft_wire_put_id(json, id);
    if (answer->err.rc) {
        weft_json_key(json, "error");
        weft_wire_write_error(&answer->err, WEFT_FENCE_NONE, json);
    } else {
        weft_json_key(json, "state");
        weft_json_put_text(json, weft_state_name(answer->state));
        weft_json_key(json, "changed");
        weft_json_put_bool(json, answer->changed);
    }
    weft_json_end_object(json);
}

static void put_steered(const struct verb *verb, const struct weft_id *id,
                        const struct weft_steered *answer)
{
    char text[WEFT_ID_TEXT];
    weft_id_print(id, text);
    if (answer->err.rc) {
        (void)fflush(stdout);
        (void)fprintf(stderr, "weft: %s: %s\n", text,
                      answer->err.text[0] ? answer->err.text : weft_rc_text(answer->err.rc));
    } else {
        printf("%s %s\n", text, answer->changed ? verb->done : "was so already");
    }
}

static enum weft_exit put_all_steered(const struct weft_cli *cli, const struct verb *verb,
                                      const struct weft_steer *item,
                                      const struct weft_steered *answer, size_t count)
{
    enum weft_exit code = WEFT_EXIT_OK;
    struct weft_json_out out;
    if (weft_cli_json(cli))
        weft_json_out_begin_items(&out);
    for (size_t i = 0; i < count; i++) {
        if (answer[i].err.rc && code == WEFT_EXIT_OK)
            code = weft_exit_of(answer[i].err.rc);
        if (weft_cli_json(cli))
            put_steered_json(&item[i].id, &answer[i], &out.json);
        else
            put_steered(verb, &item[i].id, &answer[i]);
    }
    if (weft_cli_json(cli))
        weft_json_out_end_items(&out);
    return code;
}

static enum weft_exit steer_ids(struct weft_cli *cli, const struct verb *verb)
{
    struct weft_err err = {0};
    enum weft_exit code;
    struct weft *weft;
    const struct weft_id *id;
    size_t count;
    if (!weft_pick_ids(cli, &id, &count, &code) || !weft_cli_open(cli, &weft, &code))
        return code;
    struct weft_steer *item = weft_new_array(cli->arena, struct weft_steer, count);
    struct weft_steered *answer = weft_new_array(cli->arena, struct weft_steered, count);
    for (size_t i = 0; i < count; i++)
        item[i] = (struct weft_steer){.id = id[i],
                                      .reason = verb->living ? weft_cli_get(cli, "reason") : NULL};
    for (size_t from = 0; from < count && code == WEFT_EXIT_OK; from += WEFT_BATCH_MAX) {
        size_t chunk = count - from < WEFT_BATCH_MAX ? count - from : WEFT_BATCH_MAX;
        if (weft_steer(weft, verb->kind, item + from, chunk, answer + from, &err))
            code = weft_cli_fail(&err);
    }
    if (code == WEFT_EXIT_OK)
        code = put_all_steered(cli, verb, item, answer, count);
    weft_close(weft);
    return code;
}

/* ---- By filter ------------------------------------------------------------------------------- */

/* Those it would change; *ret_more: there may be more than were counted. */
static enum weft_rc count_fitting(struct weft *weft, const struct verb *verb,
                                  const struct weft_filter *filter, uint64_t *ret_count,
                                  bool *ret_more, struct weft_err *err)
{
    char next[512] = "";
    *ret_count = 0;
    *ret_more = true;
    for (int pages = 0; *ret_more && pages < COUNT_PAGES; pages++) {
        struct weft_page page;
        enum weft_rc rc = weft_list(weft, filter, WEFT_PAGE_MAX, next[0] ? next : NULL, &page, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < page.count; i++)
            if (weft_state_living(page.item[i].state) == verb->living)
                ++*ret_count;
        *ret_more = page.next != NULL;
        (void)snprintf(next, sizeof(next), "%s", page.next ? page.next : "");
        weft_page_free(&page);
    }
    return WEFT_OK;
}

/* Asks on the terminal. */
static bool confirmed(const struct verb *verb, uint64_t count, bool more)
{
    char answer[16] = "";
    (void)fprintf(stderr, "%s %s%" PRIu64 " execution%s? [y/N] ", verb->doing,
                  more ? "at least " : "", count, count == 1 ? "" : "s");
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static enum weft_exit ask_first(struct weft_cli *cli, struct weft *weft, const struct verb *verb,
                                const struct weft_filter *filter, uint64_t *ret_count)
{
    struct weft_err err = {0};
    bool more;
    if (count_fitting(weft, verb, filter, ret_count, &more, &err))
        return weft_cli_fail(&err);
    if (weft_cli_has(cli, "yes") || (*ret_count == 0 && !more))
        return WEFT_EXIT_OK;
    if (!isatty(STDIN_FILENO))
        return weft_cli_usage(cli, "would %s %s%" PRIu64 " executions: say --yes to do so",
                              verb->doing, more ? "at least " : "", *ret_count);
    if (confirmed(verb, *ret_count, more))
        return WEFT_EXIT_OK;
    (void)fprintf(stderr, "weft: nothing was done\n");
    return WEFT_EXIT_FAILED;
}

static enum weft_exit sweep(struct weft *weft, const struct weft_steer_all *args, const char *what,
                            uint64_t expected, struct weft_sweep *ret_sweep)
{
    struct weft_err err = {0};
    enum weft_exit code = WEFT_EXIT_OK;
    struct weft_bar *bar = weft_bar_new(what, expected);
    *ret_sweep = (struct weft_sweep){.more = true};
    while (ret_sweep->more && code == WEFT_EXIT_OK) {
        struct weft_sweep part = {0};
        if (weft_cli_interrupted()) {
            code = WEFT_EXIT_INTERRUPTED;
            break;
        }
        if (weft_steer_all(weft, args, &part, &err)) {
            weft_bar_free(bar);
            return weft_cli_fail(&err);
        }
        ret_sweep->matched += part.matched;
        ret_sweep->changed += part.changed;
        ret_sweep->more = part.more;
        weft_bar_set(bar, ret_sweep->changed);
        if (part.more && part.changed == 0) /* the next call would look at the same ones */
            code = WEFT_EXIT_FAILED;
    }
    weft_bar_free(bar);
    if (code == WEFT_EXIT_FAILED)
        (void)fprintf(stderr,
                      "weft: there may be more, behind too much that does not fit\n"
                      "hint: name a narrower filter, or the ids that `weft ls --all` finds\n");
    return code;
}

static enum weft_exit steer_fitting(struct weft_cli *cli, const struct verb *verb)
{
    enum weft_exit code;
    struct weft *weft;
    uint64_t expected = 0;
    struct weft_sweep done = {0};
    struct weft_steer_all args = {.kind = verb->kind};
    if (!weft_pick_filter(cli, &args.filter, &code) || !weft_cli_open(cli, &weft, &code))
        return code;
    args.reason = verb->living ? weft_cli_get(cli, "reason") : NULL;
    weft_cli_catch();
    code = ask_first(cli, weft, verb, &args.filter, &expected);
    if (code == WEFT_EXIT_OK) {
        code = sweep(weft, &args, verb->doing, expected, &done);
        if (weft_cli_json(cli))
            weft_json_out_item(&weft_wire_sweep, &done);
        else
            printf("%" PRIu64 " %s\n", done.changed, verb->done);
    }
    weft_close(weft);
    return code;
}

static enum weft_exit steer(struct weft_cli *cli, const struct verb *verb)
{
    const char *const *arg;
    bool by_id = weft_cli_args(cli, &arg) > 0, by_filter = weft_pick_is_filter(cli);
    if (by_id && by_filter)
        return weft_cli_usage(cli, "give ids or a filter, not both");
    if (!by_id && !by_filter)
        return weft_cli_usage(cli, "give ids, or a filter such as --lane or --state");
    return by_id ? steer_ids(cli, verb) : steer_fitting(cli, verb);
}

static enum weft_exit run_cancel(struct weft_cli *cli)
{
    return steer(cli, &cancel);
}

static enum weft_exit run_replay(struct weft_cli *cli)
{
    return steer(cli, &replay);
}

const struct weft_command weft_command_cancel = {
    .name = "cancel",
    .args = "[ID...]",
    .args_max = UINT32_MAX,
    .summary = "stop executions that have not ended",
    .about =
        "By id, or by a filter all that fit it: then the number is shown and must be "
        "confirmed, unless --yes is given. A worker that has one learns of it with its next "
        "heartbeat; what it still says is refused.",
    .example =
        "weft cancel 01932c07-5f3e-7a10-8c51-0123456789ab --reason 'wrong input'\n"
        "weft cancel --lane mail --state ready --yes",
    .option =
        (const struct weft_option[]){
            WEFT_FILTER_OPTIONS,
            {.name = "reason", .letter = 'r', .value = "TEXT", .about = "is kept with each"},
            {.name = "yes", .letter = 'y', .about = "do not ask"},
            {.name = NULL},
        },
    .run = run_cancel,
};

const struct weft_command weft_command_replay = {
    .name = "replay",
    .args = "[ID...]",
    .args_max = UINT32_MAX,
    .summary = "run executions that have ended once more",
    .about =
        "By id, or by a filter all that fit it: then the number is shown and must be "
        "confirmed, unless --yes is given. A replayed execution is ready again, with all its "
        "attempts; how it ended before is kept in its history.",
    .example =
        "weft replay 01932c07-5f3e-7a10-8c51-0123456789ab\n"
        "weft replay --lane mail --state failed",
    .option =
        (const struct weft_option[]){
            WEFT_FILTER_OPTIONS,
            {.name = "yes", .letter = 'y', .about = "do not ask"},
            {.name = NULL},
        },
    .run = run_replay,
};
