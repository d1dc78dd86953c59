/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cancel and replay by filter.
 *
 * The number is asked for confirmation first, unless --yes is given. Then the calls of the API,
 * each of which is bounded, follow each other by their cursors to the end: what is submitted
 * meanwhile is not taken. When that is cut short, by a signal or a failure, what was done so far is
 * printed and the cursor to go on with.
 */

#include "cmd/job/cmd_control.h"

#include "cmd/cli/cli_json.h"
#include "cmd/cli/filter_args.h"
#include "cmd/cli/line.h"

#include "base/arena.h"
#include "base/limits.h"
#include "core/state.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { COUNT_PAGES = 10 }; /* how far the count before the confirmation goes */

/* Executions that it would change; *ret_more: there may be more than were counted. */
static enum weft_rc count_fitting(struct weft *weft, const struct weft_verb *verb,
                                  const struct weft_steer_all *args, uint64_t *ret_count,
                                  bool *ret_more, struct weft_err *err)
{
    char next[512] = "";
    (void)snprintf(next, sizeof(next), "%s", args->after ? args->after : "");
    *ret_count = 0;
    *ret_more = true;
    for (int pages = 0; *ret_more && pages < COUNT_PAGES; pages++) {
        struct weft_page page;
        enum weft_rc rc =
            weft_list(weft, &args->filter, WEFT_PAGE_MAX, next[0] ? next : NULL, &page, err);
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
static bool confirmed(const struct weft_verb *verb, uint64_t count, bool more)
{
    char answer[16] = "";
    (void)fprintf(stderr, "%s %s%" PRIu64 " execution%s? [y/N] ", verb->doing,
                  more ? "at least " : "", count, count == 1 ? "" : "s");
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static enum weft_exit ask_first(struct weft_cli *cli, struct weft *weft,
                                const struct weft_verb *verb, const struct weft_steer_all *args,
                                uint64_t *ret_count)
{
    struct weft_err err = {0};
    bool more;
    if (count_fitting(weft, verb, args, ret_count, &more, &err))
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

/* Follows the cursors to the end. The sum is right also when it did not get there. */
static enum weft_exit sweep(struct weft *weft, const struct weft_verb *verb,
                            struct weft_steer_all *args, uint64_t expected,
                            struct weft_sweep *ret_sweep)
{
    struct weft_err err = {0};
    enum weft_exit code = WEFT_EXIT_OK;
    struct weft_bar *bar = weft_bar_new(verb->doing, expected);
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

static void put_sum(const struct weft_cli *cli, const struct weft_verb *verb,
                    const struct weft_sweep *done)
{
    if (weft_cli_json(cli)) {
        const struct weft_wire_sweep told = {.matched = done->matched,
                                             .changed = done->changed,
                                             .more = done->more,
                                             .next = done->next[0] ? done->next : NULL};
        weft_json_out_item(&weft_wire_sweep, &told);
    } else {
        printf("%s %" PRIu64 " execution%s", verb->done, done->changed,
               done->changed == 1 ? "" : "s");
        if (done->matched > done->changed)
            printf(" (%" PRIu64 " %s)", done->matched - done->changed, verb->not_done);
        putchar('\n');
    }
    (void)fflush(stdout);
    if (done->more && done->next[0])
        (void)fprintf(stderr, "hint: to go on, say the same again with --after %s\n", done->next);
    else if (done->more)
        (void)fputs("hint: to go on, say the same again\n", stderr);
}

enum weft_exit weft_steer_filter(struct weft_cli *cli, const struct weft_verb *verb)
{
    enum weft_exit code;
    struct weft *weft;
    uint64_t expected = 0;
    struct weft_sweep done = {0};
    struct weft_steer_all args = {.kind = verb->kind, .after = weft_cli_get(cli, "after")};
    if (!weft_pick_filter(cli, verb->living ? WEFT_PICK_CREATED : WEFT_PICK_ENDED, &args.filter,
                          &code) ||
        !weft_cli_open(cli, &weft, &code))
        return code;
    args.reason = verb->living ? weft_cli_get(cli, "reason") : NULL;
    args.force = !verb->living && weft_cli_has(cli, "force");
    weft_cli_catch();
    if (weft_find_filter(cli, weft, &args.filter, &code))
        code = ask_first(cli, weft, verb, &args, &expected);
    if (code == WEFT_EXIT_OK) {
        code = sweep(weft, verb, &args, expected, &done);
        put_sum(cli, verb, &done);
    }
    weft_close(weft);
    return code;
}
