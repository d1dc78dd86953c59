/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_CLI_CLI_H
#define WEFT_CMD_CLI_CLI_H

/*
 * What the subcommands of `weft` share. Each is one file that exports one const struct; main.c
 * lists them. Parsing, --help, the man pages and the shell completion all come from these tables.
 * Commands talk to weft through weft.h, so each works on a server and on a store alike; those that
 * need the engine itself (serve, migrate, doctor) say so.
 */

#include "weft/weft.h"

#include <stdio.h>

struct weft_cli; /* opaque: the parsed command line */

/* Exit codes, documented in weft(1). */
enum weft_exit {
    WEFT_EXIT_OK = 0,
    WEFT_EXIT_FAILED = 1,      /* it was asked for and refused, or an item failed */
    WEFT_EXIT_USAGE = 2,       /* the command line is wrong */
    WEFT_EXIT_NOT_FOUND = 3,   /* there is no such execution, lane, ... */
    WEFT_EXIT_UNAVAILABLE = 4, /* the server or the store cannot be reached */
    WEFT_EXIT_DENIED = 5,      /* unauthorized or forbidden */
    WEFT_EXIT_CONFLICT = 6,    /* conflict, fenced, not_live */
    WEFT_EXIT_LEFT = 7,        /* work --drain: something is left that it cannot serve */
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
    const char *args; /* "ID...", "-- CMD [ARG...]"; "" for none */
    uint32_t args_min, args_max;
    bool rest;           /* everything after -- belongs to the command as it is */
    bool no_store;       /* takes neither --server nor --store */
    const char *summary; /* one line */
    const char *about;   /* paragraphs for the man page, separated by empty lines */
    const char *example; /* lines for the man page: "weft ls --state failed" */
    const struct weft_option *option;
    enum weft_exit (*run)(struct weft_cli *cli);
};

/* Options every command has: --server --store --token --namespace --json --color --help. */
extern const struct weft_option weft_common_options[];
extern const struct weft_command *const weft_commands[]; /* ends with NULL */

/* ---- The command line ------------------------------------------------------------------------ */

const char *weft_cli_get(const struct weft_cli *cli, const char *option); /* the last; or NULL */
/* All values of an option that may be repeated, in order. */
size_t weft_cli_all(const struct weft_cli *cli, const char *option, const char *const **ret_values);
bool weft_cli_has(const struct weft_cli *cli, const char *option);
size_t weft_cli_args(const struct weft_cli *cli, const char *const **ret_args);
/* A whole number; says what is wrong and ends the program with WEFT_EXIT_USAGE otherwise. */
int64_t weft_cli_i64(const struct weft_cli *cli, const char *option, int64_t min, int64_t max,
                     int64_t normally);
/* "500ms", "30s", "5m", "2h", "7d", a bare number is seconds; in milliseconds. */
int64_t weft_cli_ms(const struct weft_cli *cli, const char *option, int64_t min, int64_t max,
                    int64_t normally);

/*
 * Opens what --server or --store (or WEFT_SERVER, WEFT_STORE) say, by default the server at
 * http://127.0.0.1:7717, with --token or WEFT_TOKEN and --namespace or WEFT_NAMESPACE. On failure
 * the story has been told on stderr and *ret_exit is the exit code. The caller closes the handle.
 */
WEFT_MUST_CHECK bool weft_cli_open(struct weft_cli *cli, struct weft **ret_weft,
                                   enum weft_exit *ret_exit);
/* The URL that weft_cli_open() would open, and the namespace; NULL: the default one. */
const char *weft_cli_target(const struct weft_cli *cli);
const char *weft_cli_namespace(const struct weft_cli *cli);

/* Says on stderr what went wrong ("weft: ..."), with the hint on a line of its own. */
enum weft_exit weft_cli_fail(const struct weft_err *err);
enum weft_exit weft_cli_usage(const struct weft_cli *cli, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- What people see ------------------------------------------------------------------------- */

bool weft_cli_json(const struct weft_cli *cli);  /* --json was given */
bool weft_cli_color(const struct weft_cli *cli); /* stdout is a terminal that wants colours */

/* An id as people see it: in short form on a terminal, whole in a pipe or with --long. */
void weft_cli_id(const struct weft_cli *cli, const struct weft_id *id, char ret_text[WEFT_ID_TEXT]);
/* The last line of a text that is not empty, up to size bytes of it, in ret_text. */
void weft_last_line(const char *text, char *ret_text, size_t size);
/* Bytes as they are; on a terminal a newline follows those that end with none. */
void weft_put_bytes(const void *data, size_t size);

const char *weft_state_color(enum weft_state state); /* an SGR number, or NULL */

enum weft_align { WEFT_LEFT, WEFT_RIGHT };
struct weft_column {
    const char *title;
    enum weft_align align;
    uint32_t give; /* when the terminal is narrow: 1 shrinks or goes first, then 2, ...; 0: never */
};
/* A table that fits the terminal; cells are copied. */
struct weft_table;
struct weft_table *weft_table_new(const struct weft_cli *cli, const struct weft_column *column,
                                  size_t columns);
void weft_table_cell(struct weft_table *table, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* In a colour, an SGR number; NULL: none. */
void weft_table_paint(struct weft_table *table, const char *color, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void weft_table_state(struct weft_table *table, enum weft_state state); /* coloured */
void weft_table_ago(struct weft_table *table, weft_usec moment_us);     /* "3 s ago", "in 5 m" */
/* Prints the rows so far and forgets them; titles are printed once, widths can only grow. */
void weft_table_flush(struct weft_table *table);
void weft_table_print(struct weft_table *table); /* what is left, and frees it */
/* A line below a table of counts that tells how old they are. */
void weft_cli_put_age(const struct weft_counts *counts);
void weft_table_free(struct weft_table *table); /* without printing */

enum { WEFT_AGO_TEXT = 24 };
void weft_ago(weft_usec moment_us, weft_usec now_us, char ret_text[WEFT_AGO_TEXT]);
void weft_span(weft_usec span_us, char ret_text[WEFT_AGO_TEXT]); /* "5 ms", "1.2 s", "3 h" */
weft_usec weft_wall_us(void); /* the clock on the wall, for "ago" */
/* What people type; false: it is not that. A duration is as in weft_cli_ms(); a size is 64KiB. */
WEFT_MUST_CHECK bool weft_number_typed(const char *text, int64_t *ret_number);
WEFT_MUST_CHECK bool weft_duration_typed(const char *text, int64_t *ret_ms);
WEFT_MUST_CHECK bool weft_size_typed(const char *text, int64_t *ret_bytes);
/* A moment that a person typed: RFC 3339, or "+5m" or "5m" from now. False: it is none of them. */
WEFT_MUST_CHECK bool weft_moment_typed(const char *text, weft_usec *ret_moment_us);
/* The same for the past: RFC 3339, or "5m" ago. */
WEFT_MUST_CHECK bool weft_past_typed(const char *text, weft_usec *ret_moment_us);

/* A bar on stderr, only when that is a terminal; total 0: unknown, counts only. */
struct weft_bar;
struct weft_bar *weft_bar_new(const char *what, uint64_t total);
void weft_bar_set(struct weft_bar *bar, uint64_t done);
void weft_bar_free(struct weft_bar *bar); /* wipes the line */

/*
 * True after SIGINT or SIGTERM once weft_cli_catch() was called. A second one of its kind ends the
 * process at once.
 */
void weft_cli_catch(void);
bool weft_cli_interrupted(void);

/*
 * Shows something once, or with --watch[=TIME] again and again until it fails or is interrupted; on
 * a terminal each time in place of the one before. normally_ms: how often, where nothing is said.
 */
typedef enum weft_exit weft_show_fn(const struct weft_cli *cli, struct weft *weft);
/* To be called while it is shown: there will be nothing new, this was the last time. */
void weft_cli_watched(void);
enum weft_exit weft_cli_watch(const struct weft_cli *cli, struct weft *weft, int64_t normally_ms,
                              weft_show_fn *show);

#endif
