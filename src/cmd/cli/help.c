/* SPDX-License-Identifier: Apache-2.0 */

/* Help for a person at a terminal, from the tables of commands and options. */

#include "cmd/cli/line.h"
#include "cmd/cli/text.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH_NORMAL = 80, WIDTH_MAX = 100, OPTION_INDENT = 28 };

static size_t help_width(void)
{
    size_t width = weft_width();
    if (width == 0)
        return WIDTH_NORMAL;
    return width > WIDTH_MAX ? WIDTH_MAX : width;
}

/*
 * Words of one paragraph, from column `at`, each line after the first indented. A word that is
 * wider than the line stands on its own.
 */
static void put_wrapped(const char *text, size_t size, size_t at, size_t indent)
{
    size_t width = help_width(), column = at;
    bool first = true;
    while (size > 0) {
        size_t word = 0;
        while (word < size && text[word] != ' ' && text[word] != '\n')
            word++;
        if (word > 0 && !first && column + 1 + word > width) {
            printf("\n%*s", (int)indent, "");
            column = indent;
            first = true;
        }
        if (word > 0) {
            printf("%s%.*s", first ? "" : " ", (int)word, text);
            column += word + (first ? 0 : 1);
            first = false;
        }
        size_t taken = word < size ? word + 1 : word;
        text += taken;
        size -= taken;
    }
    putchar('\n');
}

/* Paragraphs are separated by empty lines. */
static void put_paragraphs(const char *text)
{
    while (text && *text) {
        const char *end = strstr(text, "\n\n");
        size_t size = end ? (size_t)(end - text) : strlen(text);
        put_wrapped(text, size, 0, 0);
        putchar('\n');
        text = end ? end + 2 : NULL;
    }
}

static void put_option(const struct weft_option *option)
{
    int column = option->letter ? printf("  -%c, --%s", option->letter, option->name)
                                : printf("      --%s", option->name);
    if (option->value && weft_option_value_optional(option))
        column += printf("[=%s", option->value + 1);
    else if (option->value)
        column += printf(" %s", option->value);
    if (column + 2 > OPTION_INDENT)
        printf("\n%*s", OPTION_INDENT, "");
    else
        printf("%*s", OPTION_INDENT - column, "");
    put_wrapped(option->about, strlen(option->about), OPTION_INDENT, OPTION_INDENT);
}

static void put_commands(void)
{
    for (size_t i = 0; weft_commands[i]; i++) {
        int column = printf("  %-12s", weft_commands[i]->name);
        put_wrapped(weft_commands[i]->summary, strlen(weft_commands[i]->summary), (size_t)column,
                    (size_t)column);
    }
}

void weft_help_overview(void)
{
    printf(
        "weft %s: hand over work, have it carried out, whatever crashes\n\n"
        "usage: weft COMMAND [OPTION...] [ARGUMENT...]\n\n"
        "commands:\n",
        weft_version());
    put_commands();
    printf(
        "\nBegin with `weft serve`. `weft help COMMAND` tells more about each, `man weft` all.\n");
}

void weft_help_command(const struct weft_command *command)
{
    size_t column = (size_t)printf("weft %s - ", command->name);
    put_wrapped(command->summary, strlen(command->summary), column, column);
    printf("\nusage: ");
    char usage[160];
    (void)snprintf(usage, sizeof(usage), "weft %s [OPTION...]%s%s", command->name,
                   command->args[0] ? " " : "", command->args);
    put_wrapped(usage, strlen(usage), sizeof("usage: ") - 1, sizeof("usage: ") - 1);
    putchar('\n');
    put_paragraphs(command->about);
    if (command->option && command->option->name) {
        printf("options:\n");
        for (const struct weft_option *at = command->option; at->name; at++)
            put_option(at);
        putchar('\n');
    }
    printf("common options:\n");
    for (const struct weft_option *at = weft_command_common(command); at->name; at++)
        if (weft_command_option(command, at->name, strlen(at->name)) == at)
            put_option(at);
    if (command->example) {
        printf("\nexamples:\n");
        for (const char *at = command->example; *at;) {
            size_t size = strcspn(at, "\n");
            printf("  %.*s\n", (int)size, at);
            at += size + (at[size] == '\n');
        }
    }
}

/* ---- The command ----------------------------------------------------------------------------- */

static enum weft_exit run_help(struct weft_cli *cli)
{
    const char *const *arg;
    const struct weft_command *command = NULL;
    if (weft_cli_args(cli, &arg) == 1) {
        command = weft_command_find(arg[0]);
        if (!command) {
            (void)fprintf(stderr, "weft help: there is no command '%s'\n", arg[0]);
            return WEFT_EXIT_NOT_FOUND;
        }
    }
    if (weft_cli_has(cli, "man"))
        weft_man_print(command);
    else if (command)
        weft_help_command(command);
    else
        weft_help_overview();
    return WEFT_EXIT_OK;
}

const struct weft_command weft_command_help = {
    .name = "help",
    .args = "[COMMAND]",
    .args_max = 1,
    .no_store = true,
    .summary = "show what a command does",
    .about =
        "Without a command it lists all of them. With --man it prints the manual page in the "
        "roff language, as it is installed.",
    .example = "weft help submit\nweft help --man submit | man -l -",
    .option = (const struct weft_option[]){{.name = "man", .about = "print the manual page"},
                                           {.name = NULL}},
    .run = run_help,
};
