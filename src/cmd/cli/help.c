/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Help for a person at a terminal, manual pages and the completion of bash, all from the tables of
 * commands and options.
 */

#include "cmd/cli/text.h"
#include "cmd/serve/settings.h"
#include "store/migrate.h"

#include <ctype.h>
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

/* ---- Manual pages ---------------------------------------------------------------------------- */

/*
 * Manual pages in the man(7) macros, from the same tables as the help. Text is written for people;
 * here its backslashes, leading dots and hyphens are made safe for roff.
 */

static const struct {
    enum weft_exit code;
    const char *about;
} exit_words[] = {
    {WEFT_EXIT_OK, "It was done."},
    {WEFT_EXIT_FAILED,
     "It was refused or went wrong, wholly or for some of the items; with --wait: "
     "the execution did not succeed."},
    {WEFT_EXIT_USAGE, "The command line, a setting or a value is wrong. Nothing was done."},
    {WEFT_EXIT_NOT_FOUND, "There is no such execution, lane, worker, token or store."},
    {WEFT_EXIT_UNAVAILABLE,
     "The server or the store cannot be reached, is too busy, or a wait was "
     "over before the end came. Trying again later may help."},
    {WEFT_EXIT_DENIED, "The token is missing, unknown or does not allow this."},
    {WEFT_EXIT_CONFLICT,
     "It conflicts with what is there: another payload under the same key, a "
     "lease that is gone, a state or a limit that does not allow it."},
    {WEFT_EXIT_LEFT,
     "`weft work --drain` has ended, and executions are left that this worker cannot serve."},
    {WEFT_EXIT_INTERRUPTED, "Interrupted by SIGINT or SIGTERM before it was done."},
};

static const struct {
    const char *name, *about;
} env_words[] = {
    {"WEFT_SERVER", "The server to talk to, unless --server or --store is given."},
    {"WEFT_STORE",
     "The store to open directly, unless --server, --store or WEFT_SERVER is given; "
     "for `weft serve`, its store."},
    {"WEFT_TOKEN", "The bearer token, unless --token is given."},
    {"WEFT_CA_FILE", "Certificates to trust, unless --ca-file is given."},
    {"WEFT_NAMESPACE", "The namespace, unless --namespace is given."},
    {"WEFT_CONFIG", "The settings file of `weft serve`, unless --config is given."},
    {"WEFT_SIGNING_KEY_FILE",
     "Over a store: the file with the keys of signal tokens, as its servers have it."},
    {"NO_COLOR", "When set, no colours are used unless --color always is given."},
    {"COLUMNS", "How wide tables may be; otherwise the terminal is asked."},
};

static void man_char(char c)
{
    if (c == '\\')
        (void)fputs("\\e", stdout);
    else if (c == '-')
        (void)fputs("\\-", stdout);
    else
        putchar(c);
}

/* Running text: each line of input begins a line of output, and empty lines begin paragraphs. */
static void man_text(const char *text, size_t size)
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
        man_char(text[i]);
        fresh = text[i] == '\n';
    }
    putchar('\n');
}

static void man_line(const char *text)
{
    man_text(text, strlen(text));
}

/* weft-submit, in capitals for the head of a page. */
static void man_name(const struct weft_command *command, int (*letter)(int))
{
    for (const char *at = "weft"; *at; at++)
        putchar(letter(*at));
    if (command)
        (void)fputs("\\-", stdout);
    for (const char *at = command ? command->name : ""; *at; at++)
        putchar(letter(*at));
}

static void man_head(const struct weft_command *command)
{
    (void)fputs(".\\\" SPDX-License-Identifier: Apache-2.0\n.TH ", stdout);
    man_name(command, toupper);
    printf(" 1 \"\" \"weft %s\" \"User Commands\"\n.SH NAME\n", weft_version());
    man_name(command, tolower);
    (void)fputs(" \\- ", stdout);
    man_line(command ? command->summary : "a durable execution engine");
}

static void man_option(const struct weft_option *option)
{
    (void)fputs(".TP\n\\fB", stdout);
    if (option->letter)
        printf("\\-%c\\fR, \\fB", option->letter);
    (void)fputs("\\-\\-", stdout);
    for (const char *at = option->name; *at; at++)
        man_char(*at);
    (void)fputs("\\fR", stdout);
    if (option->value && weft_option_value_optional(option))
        printf("[=\\fI%.*s\\fR]", (int)strcspn(option->value + 1, "]"), option->value + 1);
    else if (option->value)
        printf(" \\fI%s\\fR", option->value);
    putchar('\n');
    man_line(option->about);
}

static void man_options(const struct weft_command *command)
{
    (void)fputs(".SH OPTIONS\n", stdout);
    for (const struct weft_option *const *at = weft_command_options(command); *at; at++)
        man_option(*at);
}

static void man_example(const char *example)
{
    (void)fputs(".SH EXAMPLES\n.nf\n", stdout);
    while (*example) {
        size_t size = strcspn(example, "\n");
        man_text(example, size);
        example += size + (example[size] == '\n');
    }
    (void)fputs(".fi\n", stdout);
}

static void man_exit_status(void)
{
    (void)fputs(".SH EXIT STATUS\n", stdout);
    for (size_t i = 0; i < WEFT_LEN(exit_words); i++) {
        printf(".TP\n%d\n", (int)exit_words[i].code);
        man_line(exit_words[i].about);
    }
}

static void man_environment(const struct weft_command *command)
{
    (void)fputs(".SH ENVIRONMENT\n", stdout);
    for (size_t i = 0; i < WEFT_LEN(env_words); i++) {
        printf(".TP\n%s\n", env_words[i].name);
        man_line(env_words[i].about);
    }
    if (!command || !weft_command_option(command, "config", 6)) /* it takes no settings */
        return;
    for (size_t i = 0; i < weft_setting_count; i++) {
        if (strcmp(weft_settings[i].env, "WEFT_STORE") == 0)
            continue;
        printf(".TP\n%s\n", weft_settings[i].env);
        man_line(weft_settings[i].about);
    }
}

static void man_commands(void)
{
    (void)fputs(".SH COMMANDS\n", stdout);
    for (size_t i = 0; weft_commands[i]; i++) {
        printf(".TP\n.BR weft\\-%s (1)\n", weft_commands[i]->name);
        man_line(weft_commands[i]->summary);
    }
}

static void man_overview(void)
{
    (void)fputs(
        ".SH SYNOPSIS\n.B weft\n.I COMMAND\n[\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n"
        ".SH DESCRIPTION\n",
        stdout);
    man_line(
        "weft remembers work, gives it to one worker at a time, notices when that worker "
        "dies, retries, and keeps what came of it. `weft serve` runs the server; the other "
        "commands talk to it, or open a store directly with --store.\n\n"
        "Results are written to standard output, for people when that is a terminal and for "
        "programs with --json. Errors are one line on standard error, often with a hint.\n\n"
        "Durations are written 500ms, 30s, 5m, 2h, 7d; a number alone is seconds. Moments are "
        "RFC 3339 (2031-01-31T12:00:00Z) or +5m, from now.");
    man_commands();
    man_options(NULL);
    man_example("weft serve\nweft submit --kind mail '{\"to\":\"ada\"}'\nweft ls --state failed");
    man_exit_status();
    man_environment(NULL);
}

static void man_command(const struct weft_command *command)
{
    printf(".SH SYNOPSIS\n.B weft %s\n[\\fIOPTION\\fR...]", command->name);
    if (command->args[0]) {
        putchar(' ');
        man_text(command->args, strlen(command->args));
    } else {
        putchar('\n');
    }
    (void)fputs(".SH DESCRIPTION\n", stdout);
    man_line(command->about ? command->about : command->summary);
    man_options(command);
    if (command->example)
        man_example(command->example);
    man_exit_status();
    man_environment(command);
    (void)fputs(".SH SEE ALSO\n.BR weft (1)\n", stdout);
}

/* A manual page on stdout; NULL: weft(1) itself. */
static void man_print(const struct weft_command *command)
{
    man_head(command);
    if (command)
        man_command(command);
    else
        man_overview();
}

/* ---- Completion ------------------------------------------------------------------------------ */

/*
 * Completion for bash, written from the tables. The script holds the words and one function; it
 * calls nothing, so completing costs no process and works without a server.
 */

/* The options of a command as `NAME) words="..." ;;`. */
static void put_options_of(const struct weft_command *command)
{
    printf("    %s) printf '%%s' '", command->name);
    for (const struct weft_option *const *at = weft_command_options(command); *at; at++)
        printf("--%s ", (*at)->name);
    printf("' ;;\n");
}

static void put_values_of(const char *command, const struct weft_option *option)
{
    if (!option->value || weft_option_value_optional(option))
        return;
    printf("    '%s --%s'", command, option->name);
    if (option->letter)
        printf(" | '%s -%c'", command, option->letter);
    if (option->complete)
        printf(") printf '%%s' '%s' ;;\n", option->complete);
    else if (strstr(option->value, "FILE"))
        printf(") printf '%%s' '@file' ;;\n");
    else
        printf(") printf '%%s' '@any' ;;\n");
}

static void put_tables(void)
{
    printf("_weft_options() {\n    case $1 in\n");
    for (size_t i = 0; weft_commands[i]; i++)
        put_options_of(weft_commands[i]);
    printf(
        "    esac\n}\n\n"
        "# What may follow an option: words, @file, @any; nothing when it takes no value.\n"
        "_weft_values() {\n    case \"$1 $2\" in\n");
    for (size_t i = 0; weft_commands[i]; i++)
        for (const struct weft_option *const *at = weft_command_options(weft_commands[i]); *at;
             at++)
            put_values_of(weft_commands[i]->name, *at);
    printf("    esac\n}\n\n");
}

static const char script[] =
    "_weft() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local command='' i k values\n"
    "    if [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
    "    if [[ $word == '=' ]]; then word=''; fi\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        if [[ \" $_weft_commands \" == *\" ${COMP_WORDS[i]} \"* ]]; then\n"
    "            command=${COMP_WORDS[i]}\n"
    "            break\n"
    "        fi\n"
    "    done\n"
    "    COMPREPLY=()\n"
    "    if [[ -z $command ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$_weft_commands\" -- \"$word\")\n"
    "        return\n"
    "    fi\n"
    "    values=$(_weft_values \"$command\" \"$before\")\n"
    "    case $values in\n"
    "    @file) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
    "    @any) ;;\n"
    "    '')\n"
    "        if [[ $word == -* ]]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -W \"$(_weft_options \"$command\")\" -- "
    "\"$word\")\n"
    "        elif [[ $command == help ]]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -W \"$_weft_commands\" -- \"$word\")\n"
    "        else\n"
    "            values=$(_weft_words \"$command\")\n"
    "            for ((k = i + 1; k < COMP_CWORD; k++)); do\n"
    "                if [[ \" $values \" == *\" ${COMP_WORDS[k]} \"* ]]; then values=''; fi\n"
    "            done\n"
    "            if [[ -n $values ]]; then\n"
    "                mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$word\")\n"
    "            else\n"
    "                mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
    "            fi\n"
    "        fi\n"
    "        ;;\n"
    "    *) mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$word\") ;;\n"
    "    esac\n"
    "}\n"
    "complete -o filenames -F _weft weft\n";

/* "create|ls|revoke [ID]": the first argument is one of the words before the space. */
static void put_words(void)
{
    printf("_weft_words() {\n    case $1 in\n");
    for (size_t i = 0; weft_commands[i]; i++) {
        const char *args = weft_commands[i]->args;
        size_t size = strcspn(args, " ");
        if (!memchr(args, '|', size))
            continue;
        printf("    %s) printf '%%s' '", weft_commands[i]->name);
        for (size_t at = 0; at < size; at++)
            putchar(args[at] == '|' ? ' ' : args[at]);
        printf("' ;;\n");
    }
    printf("    esac\n}\n\n");
}

static enum weft_exit run_completion(struct weft_cli *cli)
{
    if (strcmp(cli->arg[0], "bash") != 0)
        weft_cli_usage(cli, "there is completion for bash only, not for '%s'", cli->arg[0]);
    printf(
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# Completion of weft for bash, made by `weft completion bash`.\n\n_weft_commands='");
    for (size_t i = 0; weft_commands[i]; i++)
        printf("%s%s", i ? " " : "", weft_commands[i]->name);
    printf("'\n\n");
    put_tables();
    put_words();
    (void)fputs(script, stdout);
    return WEFT_EXIT_OK;
}

const struct weft_command weft_command_completion = {
    .name = "completion",
    .args = "bash",
    .no_store = true,
    .summary = "print the completion script of a shell",
    .about =
        "The script completes commands, options and the words an option takes. Packages "
        "install it; otherwise load it in your shell's start-up file.",
    .example = "source <(weft completion bash)",
    .run = run_completion,
};

static enum weft_exit run_version(struct weft_cli *cli)
{
    if (weft_cli_json(cli))
        printf("{\"version\":\"%s\",\"schema\":%zu}\n", weft_version(), weft_migration_count);
    else
        printf("weft %s\n", weft_version());
    return WEFT_EXIT_OK;
}

const struct weft_command weft_command_version = {
    .name = "version",
    .args = "",
    .no_store = true,
    .summary = "print the version",
    .about = "With --json also the number of the newest schema that this binary knows.",
    .example = "weft version --json",
    .run = run_version,
};

static enum weft_exit run_help(struct weft_cli *cli)
{
    const char *name = cli->arg[0];
    const struct weft_command *command = name ? weft_command_find(name) : NULL;
    if (name && !command) {
        weft_cli_say("weft help: there is no command '%s'", name);
        return WEFT_EXIT_NOT_FOUND;
    }
    if (weft_cli_has(cli, "man"))
        man_print(command);
    else if (command)
        weft_help_command(command);
    else
        weft_help_overview();
    return WEFT_EXIT_OK;
}

const struct weft_command weft_command_help = {
    .name = "help",
    .args = "[COMMAND]",
    .no_store = true,
    .summary = "show what a command does",
    .about =
        "Without a command it lists all of them. With --man it prints the manual page in the "
        "roff language, as it is installed.",
    .example = "weft help submit\nweft help --man submit | man -l -",
    .option = (const struct weft_option[]){{"man", 0, NULL, "print the manual page", NULL},
                                           {.name = NULL}},
    .run = run_help,
};
