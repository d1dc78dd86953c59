/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Manual pages in the man(7) macros, from the same tables as the help. Text is written for people;
 * here its backslashes, leading dots and hyphens are made safe for roff.
 */

#include "cmd/cli/line.h"
#include "cmd/serve/settings.h"

#include "base/base.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void put_char(char c)
{
    if (c == '\\')
        (void)fputs("\\e", stdout);
    else if (c == '-')
        (void)fputs("\\-", stdout);
    else
        putchar(c);
}

/* Running text: each line of input begins a line of output, and empty lines begin paragraphs. */
static void put_text(const char *text, size_t size)
{
    bool fresh = true;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n' && i + 1 < size && text[i + 1] == '\n') {
            (void)fputs("\n.PP\n", stdout);
            i++;
            fresh = true;
            continue;
        }
        if (fresh && (text[i] == '.' || text[i] == '\''))
            (void)fputs("\\&", stdout);
        put_char(text[i]);
        fresh = text[i] == '\n';
    }
    putchar('\n');
}

static void put_line(const char *text)
{
    put_text(text, strlen(text));
}

/* weft-submit, with its letters as they are or as the head of a page wants them. */
static void put_name(const struct weft_command *command, int (*letter)(int))
{
    for (const char *at = "weft"; *at; at++)
        putchar(letter(*at));
    if (command)
        (void)fputs("\\-", stdout);
    for (const char *at = command ? command->name : ""; *at; at++)
        putchar(letter(*at));
}

static void put_head(const struct weft_command *command)
{
    (void)fputs(".\\\" SPDX-License-Identifier: Apache-2.0\n.TH ", stdout);
    put_name(command, toupper);
    printf(" 1 \"\" \"weft %s\" \"User Commands\"\n.SH NAME\n", weft_version());
    put_name(command, tolower);
    (void)fputs(" \\- ", stdout);
    put_line(command ? command->summary : "a durable execution engine");
}

static void put_option(const struct weft_option *option)
{
    (void)fputs(".TP\n\\fB", stdout);
    if (option->letter)
        printf("\\-%c\\fR, \\fB", option->letter);
    (void)fputs("\\-\\-", stdout);
    for (const char *at = option->name; *at; at++)
        put_char(*at);
    (void)fputs("\\fR", stdout);
    if (option->value && weft_option_value_optional(option))
        printf("[=\\fI%.*s\\fR]", (int)strcspn(option->value + 1, "]"), option->value + 1);
    else if (option->value)
        printf(" \\fI%s\\fR", option->value);
    putchar('\n');
    put_line(option->about);
}

static void put_options(const struct weft_command *command)
{
    (void)fputs(".SH OPTIONS\n", stdout);
    for (const struct weft_option *const *at = weft_command_options(command); *at; at++)
        put_option(*at);
}

static void put_example(const char *example)
{
    (void)fputs(".SH EXAMPLES\n.nf\n", stdout);
    while (*example) {
        size_t size = strcspn(example, "\n");
        put_text(example, size);
        example += size + (example[size] == '\n');
    }
    (void)fputs(".fi\n", stdout);
}

static void put_exit_status(void)
{
    (void)fputs(".SH EXIT STATUS\n", stdout);
    for (const struct weft_exit_word *at = weft_exit_words; at->about; at++) {
        printf(".TP\n%d\n", (int)at->code);
        put_line(at->about);
    }
}

static void put_environment(const struct weft_command *command)
{
    (void)fputs(".SH ENVIRONMENT\n", stdout);
    for (const struct weft_env_word *at = weft_env_words; at->name; at++) {
        printf(".TP\n%s\n", at->name);
        put_line(at->about);
    }
    if (!command || !weft_settings_of(command->option))
        return;
    for (size_t i = 0; i < weft_setting_count; i++) {
        if (strcmp(weft_settings[i].env, "WEFT_STORE") == 0)
            continue;
        printf(".TP\n%s\n", weft_settings[i].env);
        put_line(weft_settings[i].about);
    }
}

static void put_commands(void)
{
    (void)fputs(".SH COMMANDS\n", stdout);
    for (size_t i = 0; weft_commands[i]; i++) {
        printf(".TP\n.BR weft\\-%s (1)\n", weft_commands[i]->name);
        put_line(weft_commands[i]->summary);
    }
}

static void put_overview(void)
{
    (void)fputs(
        ".SH SYNOPSIS\n.B weft\n.I COMMAND\n[\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n"
        ".SH DESCRIPTION\n",
        stdout);
    put_line(
        "weft remembers work, gives it to one worker at a time, notices when that worker "
        "dies, retries, and keeps what came of it. `weft serve` runs the server; the other "
        "commands talk to it, or open a store directly with --store.\n\n"
        "Results are written to standard output, for people when that is a terminal and for "
        "programs with --json. Errors are one line on standard error, often with a hint.\n\n"
        "Durations are written 500ms, 30s, 5m, 2h, 7d; a number alone is seconds. Moments are "
        "RFC 3339 (2031-01-31T12:00:00Z) or +5m, from now.");
    put_commands();
    put_options(NULL);
    put_example("weft serve\nweft submit --kind mail '{\"to\":\"ada\"}'\nweft ls --state failed");
    put_exit_status();
    put_environment(NULL);
}

static void put_command(const struct weft_command *command)
{
    printf(".SH SYNOPSIS\n.B weft %s\n[\\fIOPTION\\fR...]", command->name);
    if (command->args[0]) {
        putchar(' ');
        put_text(command->args, strlen(command->args));
    } else {
        putchar('\n');
    }
    (void)fputs(".SH DESCRIPTION\n", stdout);
    put_line(command->about ? command->about : command->summary);
    put_options(command);
    if (command->example)
        put_example(command->example);
    put_exit_status();
    put_environment(command);
    (void)fputs(".SH SEE ALSO\n.BR weft (1)\n", stdout);
}

void weft_man_print(const struct weft_command *command)
{
    put_head(command);
    if (command)
        put_command(command);
    else
        put_overview();
}
