/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_LINE_H
#define WEFT_CMD_CLI_LINE_H

/*
 * The command line as it was parsed, for the files that make up the command itself: parsing, help,
 * output. Subcommands see it through cli.h alone.
 */

#include "cmd/cli/cli.h"

struct weft_arena;

struct weft_given_option {
    const struct weft_option *option;
    const char *value; /* NULL: none was given */
};

struct weft_cli {
    struct weft_arena *arena;           /* lives as long as the process's one command line */
    const char *program;                /* as it was called */
    const struct weft_command *command; /* NULL: none was named */
    struct weft_given_option *given;    /* in order */
    size_t given_count;
    const char **arg;
    size_t arg_count;
    struct weft *weft; /* what weft_cli_open() opened; or NULL */
};

/*
 * Parses argv. False: the error has been printed, and the exit code is WEFT_EXIT_USAGE. A command
 * line that asks for help is not checked any further.
 */
WEFT_MUST_CHECK bool weft_line_parse(struct weft_cli *cli, int argc, char *const *argv);

/* NULL when there is none of that name. */
const struct weft_command *weft_command_find(const char *name);

/* The options that only commands on a server or a store have come first in weft_common_options. */
enum { WEFT_STORE_OPTIONS = 5 };
/* The common options of a command; the table ends with a NULL name. NULL command: all. */
const struct weft_option *weft_command_common(const struct weft_command *command);
/* The option by name or by letter; NULL when the command has no such option. */
const struct weft_option *weft_command_option(const struct weft_command *command, const char *name,
                                              size_t size);

/* All options of a command, its own first; ends with NULL, valid until the next call. */
const struct weft_option *const *weft_command_options(const struct weft_command *command);

/* "[TIME]": the value may be left out, and is given with = only. */
bool weft_option_value_optional(const struct weft_option *option);

/* The word of the list (ended by NULL) that is nearest to what was typed, NULL: none is near. */
const char *weft_nearest(const char *typed, const char *const *word);

/* True for one of the words of a list with spaces between them. */
bool weft_is_word(const char *text, const char *words);

/* The environment; an empty variable counts as none. */
const char *weft_env(const char *name);
/* Ends the process. */
__attribute__((noreturn)) void weft_quit(enum weft_exit code);

/*
 * All bytes of a file, "-" is standard input, with a NUL behind them in the arena of the cli. NULL:
 * *ret_why says why; a file of more than `max` bytes is refused.
 */
char *weft_cli_read_file(const struct weft_cli *cli, const char *path, size_t max, size_t *ret_size,
                         const char **ret_why);

/* The command line of the process, for messages; NULL before it was parsed. */
extern const struct weft_cli *weft_cli_current;

/* ---- Tables the manual needs ----------------------------------------------------------------- */

struct weft_exit_word {
    enum weft_exit code;
    const char *about;
};
extern const struct weft_exit_word weft_exit_words[]; /* ends with about NULL */

struct weft_env_word {
    const char *name;
    const char *about;
};
extern const struct weft_env_word weft_env_words[]; /* ends with name NULL */

/* ---- Help ------------------------------------------------------------------------------------ */

void weft_help_overview(void);
void weft_help_command(const struct weft_command *command);
/* A manual page on stdout; NULL: weft(1) itself. */
void weft_man_print(const struct weft_command *command);

#endif
