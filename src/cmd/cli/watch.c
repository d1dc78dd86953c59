/* SPDX-License-Identifier: Apache-2.0 */

/* --watch: the same output repeatedly. --wait: until an execution has ended. */

#include "base/err.h"
#include "cmd/cli/text.h"
#include "core/state.h"

#include <poll.h>
#include <stdio_ext.h>
#include <unistd.h>

static bool over;

void weft_cli_watched(void)
{
    over = true;
}

/* The terminal is wiped by the same write that fills it, so that it does not flicker. */
static enum weft_exit show_over(const struct weft_cli *cli, struct weft *weft, weft_show_fn *show)
{
    if (isatty(STDOUT_FILENO) && !weft_cli_json(cli))
        printf("\033[H\033[2J");
    enum weft_exit code = show(cli, weft);
    if (code != WEFT_EXIT_OK)
        __fpurge(stdout); /* or it would wipe the error on stderr */
    (void)fflush(stdout);
    return code;
}

enum weft_exit weft_cli_watch(struct weft_cli *cli, int64_t normally_ms, weft_show_fn *show)
{
    struct weft *weft = weft_cli_open(cli);
    int64_t every_ms = weft_cli_ms(cli, "watch", 100, 3600000, normally_ms);
    if (!weft_cli_has(cli, "watch"))
        return show(cli, weft);
    weft_cli_catch();
    static char screen[1 << 16];
    (void)setvbuf(stdout, screen, _IOFBF, sizeof(screen));
    enum weft_exit code = show_over(cli, weft, show);
    while (code == WEFT_EXIT_OK && !over && !weft_cli_interrupted() && !ferror(stdout)) {
        (void)poll(NULL, 0, (int)every_ms); /* ended early by a signal */
        if (!weft_cli_interrupted())
            code = show_over(cli, weft, show);
    }
    return code;
}

static const int64_t a_day_ms = 86400000;

/* The exit code of --wait for the state in which the execution ended. */
static enum weft_exit verdict(const struct weft_execution *item)
{
    char id[WEFT_ID_TEXT];
    if (item->state == WEFT_STATE_SUCCEEDED)
        return WEFT_EXIT_OK;
    weft_id_print(&item->id, id);
    if (weft_state_living(item->state)) {
        weft_cli_say("weft: %s has not ended: it is %s", id, weft_state_name(item->state));
        weft_cli_say("hint: `weft show --wait %s`", id);
        return WEFT_EXIT_UNAVAILABLE;
    }
    char line[1024] = "";
    const char *why = item->error_message ? item->error_message
                      : item->error_class ? item->error_class
                                          : item->reason;
    if (why)
        weft_last_line(why, line, sizeof(line));
    weft_cli_say("weft: %s %s%s%s", id, weft_state_name(item->state), why ? ": " : "", line);
    return WEFT_EXIT_FAILED;
}

enum weft_exit weft_cli_wait(const struct weft_cli *cli, struct weft *weft,
                             const struct weft_id *id, weft_show_one_fn *show)
{
    struct weft_err err = {0};
    struct weft_page page = {0};
    char text[WEFT_ID_TEXT];
    bool wait = weft_cli_has(cli, "wait");
    int64_t wait_ms = weft_cli_ms(cli, "wait", 0, a_day_ms, a_day_ms);
    enum weft_rc rc =
        wait ? weft_wait(weft, id, wait_ms, &page, &err) : weft_describe(weft, id, 1, &page, &err);
    /* An execution that does not exist is described without a state. */
    if (!rc && !wait && (page.count != 1 || page.item->state == WEFT_STATE_NONE)) {
        weft_id_print(id, text);
        rc = weft_fail(&err, WEFT_NOT_FOUND, "there is no execution %s", text);
    }
    if (rc) {
        weft_page_free(&page);
        return weft_cli_fail(&err);
    }
    enum weft_exit code = wait ? verdict(page.item) : WEFT_EXIT_OK;
    enum weft_exit shown = show(cli, weft, page.item);
    weft_page_free(&page);
    return shown == WEFT_EXIT_OK ? code : shown;
}
