/* SPDX-License-Identifier: Apache-2.0 */

/* --watch: the same output repeatedly. */

#include "cmd/cli/cli.h"

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
    struct weft *weft;
    enum weft_exit code;
    if (!weft_cli_open(cli, &weft, &code))
        return code;
    int64_t every_ms = weft_cli_ms(cli, "watch", 100, 3600000, normally_ms);
    if (!weft_cli_has(cli, "watch"))
        return show(cli, weft);
    weft_cli_catch();
    static char screen[1 << 16];
    (void)setvbuf(stdout, screen, _IOFBF, sizeof(screen));
    code = show_over(cli, weft, show);
    while (code == WEFT_EXIT_OK && !over && !weft_cli_interrupted() && !ferror(stdout)) {
        (void)poll(NULL, 0, (int)every_ms); /* ended early by a signal */
        if (!weft_cli_interrupted())
            code = show_over(cli, weft, show);
    }
    return code;
}
