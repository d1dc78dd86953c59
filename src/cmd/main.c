/* SPDX-License-Identifier: Apache-2.0 */

/* The command: parses the command line and runs the subcommand that it names. */

#include "cmd/cli/cli.h"
#include "store/store.h"

#include <locale.h>
#include <string.h>

static enum weft_exit run(struct weft_cli *cli, int argc, char *const *argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("weft %s\n", weft_version());
        return WEFT_EXIT_OK;
    }
    weft_line_parse(cli, argc, argv);
    if (!cli->command) {
        weft_help_overview();
        return WEFT_EXIT_OK;
    }
    if (weft_cli_has(cli, "help")) {
        weft_help_command(cli->command);
        return WEFT_EXIT_OK;
    }
    return cli->command->run(cli);
}

/* A command whose output could not be written has failed. */
static enum weft_exit finish(enum weft_exit code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    (void)fprintf(stderr, "weft: cannot write to standard output\n");
    return code == WEFT_EXIT_OK ? WEFT_EXIT_FAILED : code;
}

int main(int argc, char **argv)
{
    /* For the width of characters alone; numbers and messages stay as they are. */
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* NOLINT(concurrency-mt-unsafe): one thread yet */
    weft_store_owns_process();
    struct weft_cli cli = {.arena = weft_arena_new(), .program = argc > 0 ? argv[0] : "weft"};
    weft_cli_current = &cli;
    enum weft_exit code = finish(run(&cli, argc, argv));
    weft_close(cli.weft);
    weft_cli_current = NULL;
    weft_arena_free(cli.arena);
    return (int)code;
}
