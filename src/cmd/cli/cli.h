/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_CLI_H
#define WEFT_CMD_CLI_CLI_H

/*
 * The command line of `weft`. A subcommand is a const struct, exported by a file cmd_NAME.c and
 * listed in commands.def; parsing, --help, the man pages and the shell completion come from these
 * tables. Commands use weft.h, so each works on a server and on a store alike; serve, migrate and
 * doctor need the engine or the store itself.
 *
 * A command line that is wrong, and a server or store that cannot be opened, end the process with a
 * message and an exit code: a command function does not pass such failures on.
 */

#include "base/arena.h"
#include "weft/weft.h"

#include <stdio.h>

struct weft_cli;

/* Exit codes, documented in weft(1). */
enum weft_exit {
    WEFT_EXIT_OK = 0,
    WEFT_EXIT_FAILED = 1,      /* it was asked for and refused, or an item failed */
    WEFT_EXIT_USAGE = 2,       /* the command line is wrong */
    WEFT_EXIT_NOT_FOUND = 3,   /* there is no such execution, lane, ... */
    WEFT_EXIT_UNAVAILABLE = 4, /* the server or the store cannot be reached */
    WEFT_EXIT_DENIED = 5,      /* unauthorized or forbidden */
    WEFT_EXIT_CONFLICT = 6,    /* conflict, fenced, not_live, a limit */
    WEFT_EXIT_LEFT = 7,        /* work --drain: executions are left that it cannot serve */
    WEFT_EXIT_INTERRUPTED = 130,
};
enum weft_exit weft_exit_of(enum weft_rc rc);

struct weft_option {
    const char *name;     /* "lane": --lane; NULL ends the table */
    char letter;          /* 'l': -l; 0: none */
    const char *value;    /* "NAME": takes a value; "[NAME]": may, with =; NULL: a switch */
    const char *about;    /* one line */
    const char *complete; /* words for the shell, "ready delayed ..."; or NULL */
};
struct weft_command {
    const char *name;
    const char *args;    /* "ID...", "[--] CMD [ARG...]": says how many it takes; "" for none */
    bool rest;           /* everything after -- belongs to the command as it is */
    bool no_store;       /* takes neither --server nor --store */
    const char *summary; /* one line */
    const char *about;   /* paragraphs for the man page, separated by empty lines */
    const char *example; /* lines for the man page: "weft ls --state failed" */
    const struct weft_option *option;
    enum weft_exit (*run)(struct weft_cli *cli);
};
extern const struct weft_command *const weft_commands[]; /* ends with NULL */

/* ---- The command line ------------------------------------------------------------------------ */

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
    const char **arg; /* ends with NULL */
    size_t arg_count;
    struct weft *weft; /* what weft_cli_open() opened; or NULL */
};
/* The command line of the process, for messages; NULL before it was parsed. */
extern const struct weft_cli *weft_cli_current;

/* Parses argv. A command line that asks for help is not checked any further. */
void weft_line_parse(struct weft_cli *cli, int argc, char *const *argv);

const char *weft_cli_get(const struct weft_cli *cli, const char *option); /* the last; or NULL */
/* All values of an option that may be repeated, in order. */
size_t weft_cli_all(const struct weft_cli *cli, const char *option, const char *const **ret_values);
bool weft_cli_has(const struct weft_cli *cli, const char *option);
/* The value of an option, or else of a variable of the environment; or NULL. */
const char *weft_cli_or_env(const struct weft_cli *cli, const char *option, const char *variable);
/* A whole number within min and max. */
int64_t weft_cli_i64(const struct weft_cli *cli, const char *option, int64_t min, int64_t max,
                     int64_t normally);
/* "500ms", "30s", "5m", "2h", "7d", a bare number is seconds; in milliseconds. */
int64_t weft_cli_ms(const struct weft_cli *cli, const char *option, int64_t min, int64_t max,
                    int64_t normally);
bool weft_cli_json(const struct weft_cli *cli);  /* --json was given */
bool weft_cli_color(const struct weft_cli *cli); /* stdout is a terminal that wants colours */

/* ---- Tables of commands and options ---------------------------------------------------------- */

/* NULL when there is none of that name. */
const struct weft_command *weft_command_find(const char *name);
/* The common options of a command; the table ends with a NULL name. NULL command: all. */
const struct weft_option *weft_command_common(const struct weft_command *command);
/* The option by name; NULL when the command has no such option. */
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

void weft_help_overview(void);
void weft_help_command(const struct weft_command *command);

/* ---- What a command works on ----------------------------------------------------------------- */

/*
 * Opens what --server or --store (or WEFT_SERVER, WEFT_STORE) say, by default the server at
 * WEFT_LOCAL_SERVER, with --token or WEFT_TOKEN and --namespace or WEFT_NAMESPACE. main() closes
 * the handle.
 */
#define WEFT_LOCAL_SERVER "http://127.0.0.1:7717"
struct weft *weft_cli_open(struct weft_cli *cli);
/* The URL that weft_cli_open() would open, and the namespace; NULL: the default one. */
const char *weft_cli_target(const struct weft_cli *cli);
const char *weft_cli_namespace(const struct weft_cli *cli);
bool weft_is_server(const char *url); /* http:// or https:// */
/* The environment; an empty variable counts as none. */
const char *weft_env(const char *name);
/*
 * All bytes of a file, "-" is standard input, with a NUL behind them in the arena of the cli. NULL:
 * *ret_why says why; a file of more than `max` bytes is refused.
 */
char *weft_cli_read_file(const struct weft_cli *cli, const char *path, size_t max, size_t *ret_size,
                         const char **ret_why);

/* ---- Failures and signals -------------------------------------------------------------------- */

/* Closes the handle and ends the process. Called from the main thread alone. */
__attribute__((noreturn)) void weft_quit(enum weft_exit code);
/* Prints a line on stderr, without control characters; stdout is flushed first. */
__attribute__((format(printf, 1, 2))) void weft_cli_say(const char *fmt, ...);
/* Says on stderr what is wrong with the command line, and ends the process. */
__attribute__((noreturn, format(printf, 2, 3))) void weft_cli_usage(const struct weft_cli *cli,
                                                                    const char *fmt, ...);
/* Says on stderr what went wrong ("weft: ..."), with the hint on a line of its own. */
enum weft_exit weft_cli_fail(const struct weft_err *err);

/*
 * True after SIGINT or SIGTERM once weft_cli_catch() was called. A second one of its kind ends the
 * process at once.
 */
void weft_cli_catch(void);
bool weft_cli_interrupted(void);

/* ---- --watch and --wait ---------------------------------------------------------------------- */

/* clang-format off */
#define WEFT_WATCH_OPTION(normally)                                                                \
    {"watch", 'w', "[TIME]", "show them repeatedly, every " normally " or at this interval", NULL}
#define WEFT_WAIT_OPTION                                                                           \
    {"wait", 'w', "[TIME]", "wait until it has ended, at most so long; default: a day", NULL}
/* clang-format on */
/*
 * Opens the handle and shows something once, or with --watch[=TIME] repeatedly until it fails or is
 * interrupted; on a terminal each time in place of the one before. normally_ms: the default period.
 */
typedef enum weft_exit weft_show_fn(const struct weft_cli *cli, struct weft *weft);
/* Called by `show` when nothing will change any more: --watch ends after this time. */
void weft_cli_watched(void);
enum weft_exit weft_cli_watch(struct weft_cli *cli, int64_t normally_ms, weft_show_fn *show);

/*
 * Reads the execution, with --wait when it has ended or the time is up, and gives it to `show`.
 * With
 * --wait the exit code is WEFT_EXIT_FAILED for an execution that did not succeed and
 * WEFT_EXIT_UNAVAILABLE for one that has not ended. Every failure has been printed.
 */
typedef enum weft_exit weft_show_one_fn(const struct weft_cli *cli, struct weft *weft,
                                        const struct weft_execution *item);
enum weft_exit weft_cli_wait(const struct weft_cli *cli, struct weft *weft,
                             const struct weft_id *id, weft_show_one_fn *show);

#endif
