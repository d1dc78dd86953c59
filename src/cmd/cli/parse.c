/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parser of argv, by the tables of options.
 *
 * Options may stand before or after arguments, and common ones also before the subcommand. A
 * command with a `rest` takes everything from its first argument on as it is, with or without a --
 * in front: the options of the program to run are not ours.
 */

#include "cmd/cli/text.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define X(name) extern const struct weft_command weft_command_##name;
#include "cmd/cli/commands.def"
#undef X

const struct weft_command *const weft_commands[] = {
#define X(name) &weft_command_##name,
#include "cmd/cli/commands.def"
#undef X
    NULL,
};

/* The options that only commands on a server or a store have come first. */
enum { STORE_OPTIONS = 5 };
static const struct weft_option common_options[] = {
    {"server", 0, "URL", "talk to this server; default: the local one", NULL},
    {"store", 0, "URL", "open this store directly: sqlite:PATH, postgres:", NULL},
    {"token", 0, "TOKEN", "the bearer token for the server", NULL},
    {"ca-file", 0, "FILE", "trust the certificates in this PEM file", NULL},
    {"namespace", 'n', "NAME", "the namespace; default: default", NULL},
    {"json", 'j', NULL, "write JSON, for programs", NULL},
    {"color", 0, "WHEN", "use colours: auto, always, never", "auto always never"},
    {"help", 'h', NULL, "show what the command does", NULL},
    {.name = NULL},
};

const struct weft_option *weft_command_common(const struct weft_command *command)
{
    return common_options + (command && command->no_store ? STORE_OPTIONS : 0);
}

enum { OPTIONS_MAX = 96 }; /* of one command */

static const struct weft_option *find_in(const struct weft_option *table, const char *name,
                                         size_t size)
{
    for (; table && table->name; table++)
        if (strncmp(table->name, name, size) == 0 && table->name[size] == '\0')
            return table;
    return NULL;
}

const struct weft_option *weft_command_option(const struct weft_command *command, const char *name,
                                              size_t size)
{
    const struct weft_option *option = command ? find_in(command->option, name, size) : NULL;
    return option ? option : find_in(weft_command_common(command), name, size);
}

const struct weft_option *const *weft_command_options(const struct weft_command *command)
{
    static const struct weft_option *found[OPTIONS_MAX + 1];
    const struct weft_option *own = command ? command->option : NULL;
    size_t count = 0;
    for (const struct weft_option *at = own; at && at->name; at++)
        found[count++] = at;
    for (const struct weft_option *at = weft_command_common(command); at->name; at++)
        if (!find_in(own, at->name, strlen(at->name)))
            found[count++] = at;
    assert(count <= OPTIONS_MAX);
    found[count] = NULL;
    return found;
}

bool weft_option_value_optional(const struct weft_option *option)
{
    return option->value && option->value[0] == '[';
}

const struct weft_command *weft_command_find(const char *name)
{
    for (size_t i = 0; weft_commands[i]; i++)
        if (strcmp(weft_commands[i]->name, name) == 0)
            return weft_commands[i];
    return NULL;
}

/* ---- What is near ---------------------------------------------------------------------------- */

enum { WORD_MAX = 32 };

/* The number of letters to add, drop or change (Levenshtein); WORD_MAX for long words. */
static size_t distance(const char *a, const char *b)
{
    size_t a_size = strlen(a), b_size = strlen(b);
    if (a_size >= WORD_MAX || b_size >= WORD_MAX)
        return WORD_MAX;
    size_t row[WORD_MAX];
    for (size_t j = 0; j <= b_size; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_size];
}

const char *weft_nearest(const char *typed, const char *const *word)
{
    const char *best = NULL;
    size_t typed_size = strlen(typed), least = typed_size <= 4 ? 2 : 3;
    for (; *word; word++) {
        bool begins = typed_size >= 2 && strncmp(typed, *word, typed_size) == 0;
        size_t far = begins ? 0 : distance(typed, *word);
        if (far < least) {
            best = *word;
            least = far;
        }
    }
    return best;
}

bool weft_is_word(const char *text, const char *words)
{
    size_t size = strlen(text);
    for (const char *at = words; size > 0 && *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == size && memcmp(at, text, size) == 0)
            return true;
        at += word;
    }
    return false;
}

/* The error for an unknown option or command; it suggests the nearest one. */
__attribute__((noreturn)) static void no_such(const struct weft_cli *cli, bool is_option,
                                              const char *typed)
{
    const char *name[OPTIONS_MAX + 1] = {NULL};
    const struct weft_option *const *option = weft_command_options(cli->command);
    for (size_t i = 0; is_option ? option[i] != NULL : weft_commands[i] != NULL; i++)
        name[i] = is_option ? option[i]->name : weft_commands[i]->name;
    const char *kind = is_option ? "option" : "command", *before = is_option ? "--" : "'";
    const char *after = is_option ? "" : "'", *near = weft_nearest(typed, name);
    if (!near)
        weft_cli_usage(cli, "there is no %s %s%s%s", kind, before, typed, after);
    weft_cli_usage(cli, "there is no %s %s%s%s; did you mean %s%s%s?", kind, before, typed, after,
                   before, near, after);
}

/* ---- Taking it apart ------------------------------------------------------------------------- */

struct walk {
    struct weft_cli *cli;
    char *const *argv;
    int argc, at;
};

static void give(struct weft_cli *cli, const struct weft_option *option, const char *value)
{
    cli->given[cli->given_count++] = (struct weft_given_option){.option = option, .value = value};
}

/* The word after the current one, as the value of an option. */
static void take_value(struct walk *walk, const char *spelled, const struct weft_option *option)
{
    if (walk->at + 1 >= walk->argc)
        weft_cli_usage(walk->cli, "%s needs a value: %s", spelled, option->value);
    give(walk->cli, option, walk->argv[++walk->at]);
}

static void take_long(struct walk *walk, const char *word)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t size = equals ? (size_t)(equals - name) : strlen(name);
    const struct weft_option *option = weft_command_option(walk->cli->command, name, size);
    if (!option)
        no_such(walk->cli, true, weft_arena_printf(walk->cli->arena, "%.*s", (int)size, name));
    if (equals && !option->value)
        weft_cli_usage(walk->cli, "--%s takes no value", option->name);
    if (!equals && option->value && !weft_option_value_optional(option))
        take_value(walk, word, option);
    else
        give(walk->cli, option, equals ? equals + 1 : NULL);
}

/* -l NAME, -lNAME, and switches in one word: -jh. */
static void take_letters(struct walk *walk, const char *word)
{
    for (const char *letter = word + 1; *letter; letter++) {
        const struct weft_option *const *at = weft_command_options(walk->cli->command);
        while (*at && (*at)->letter != *letter)
            at++;
        const struct weft_option *option = *at;
        if (!option)
            weft_cli_usage(walk->cli, "there is no option -%c", *letter);
        if (!option->value || weft_option_value_optional(option)) {
            give(walk->cli, option, NULL);
            continue;
        }
        if (letter[1] == '\0')
            take_value(walk, word, option);
        else
            give(walk->cli, option, letter[1] == '=' ? letter + 2 : letter + 1);
        return;
    }
}

/* One word that is no option. */
static void take_word(struct weft_cli *cli, const char *word)
{
    if (cli->command)
        cli->arg[cli->arg_count++] = word;
    else if (!(cli->command = weft_command_find(word)))
        no_such(cli, false, word);
}

static void take_all(struct walk *walk)
{
    bool words_only = false; /* words are arguments, whatever they look like */
    for (; walk->at < walk->argc; walk->at++) {
        const char *word = walk->argv[walk->at];
        const struct weft_command *command = walk->cli->command;
        bool dash = word[0] == '-' && word[1] != '\0';
        words_only |= command && command->rest && !dash;
        if (!words_only && strcmp(word, "--") == 0)
            words_only = true;
        else if (words_only || !dash)
            take_word(walk->cli, word);
        else if (word[1] == '-')
            take_long(walk, word);
        else
            take_letters(walk, word);
    }
}

/* Options that stood before the subcommand were read without its table. */
static void settle_options(struct weft_cli *cli)
{
    for (size_t i = 0; i < cli->given_count; i++) {
        const char *name = cli->given[i].option->name;
        const struct weft_option *option = weft_command_option(cli->command, name, strlen(name));
        if (!option)
            weft_cli_usage(cli, "takes no --%s", name);
        cli->given[i].option = option;
    }
}

/* How many arguments the usage allows: words in brackets are optional, dots mean any number. */
static void count_args(const char *usage, size_t *ret_min, size_t *ret_max)
{
    bool optional = false;
    *ret_min = *ret_max = 0;
    for (const char *at = usage; *at; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        optional |= *at == '[';
        *ret_min += !optional;
        if (size >= 3 && memmem(at, size, "...", 3))
            *ret_max = SIZE_MAX;
        else if (*ret_max < SIZE_MAX)
            ++*ret_max;
        at += size;
        optional &= at[-1] != ']';
    }
}

static void check_line(const struct weft_cli *cli)
{
    size_t min, max;
    const char *when = weft_cli_get(cli, "color");
    count_args(cli->command->args, &min, &max);
    if (when && !weft_is_word(when, "auto always never"))
        weft_cli_usage(cli, "--color is '%s': it must be auto, always or never", when);
    if (cli->arg_count >= min && cli->arg_count <= max)
        return;
    if (max == 0)
        weft_cli_usage(cli, "takes no arguments, but was given '%s'", cli->arg[0]);
    weft_cli_usage(cli, "too %s arguments: it takes %s", cli->arg_count < min ? "few" : "many",
                   cli->command->args);
}

void weft_line_parse(struct weft_cli *cli, int argc, char *const *argv)
{
    /* A word of letters may hold many switches, so there is room for each of their letters. */
    size_t room = 1;
    for (int i = 1; i < argc; i++)
        room += strlen(argv[i]) + 1;
    cli->given = weft_new_array(cli->arena, struct weft_given_option, room);
    cli->arg = weft_new_array(cli->arena, const char *, (size_t)argc + 1);
    struct walk walk = {.cli = cli, .argv = argv, .argc = argc, .at = 1};
    take_all(&walk);
    if (!cli->command || weft_cli_has(cli, "help"))
        return;
    settle_options(cli);
    check_line(cli);
}

/* ---- What was given -------------------------------------------------------------------------- */

const char *weft_cli_get(const struct weft_cli *cli, const char *option)
{
    for (size_t i = cli->given_count; i > 0; i--)
        if (strcmp(cli->given[i - 1].option->name, option) == 0)
            return cli->given[i - 1].value;
    return NULL;
}

size_t weft_cli_all(const struct weft_cli *cli, const char *option, const char *const **ret_values)
{
    const char **value = weft_new_array(cli->arena, const char *, cli->given_count);
    size_t count = 0;
    for (size_t i = 0; i < cli->given_count; i++)
        if (strcmp(cli->given[i].option->name, option) == 0 && cli->given[i].value)
            value[count++] = cli->given[i].value;
    *ret_values = value;
    return count;
}

bool weft_cli_has(const struct weft_cli *cli, const char *option)
{
    for (size_t i = 0; i < cli->given_count; i++)
        if (strcmp(cli->given[i].option->name, option) == 0)
            return true;
    return false;
}

bool weft_cli_json(const struct weft_cli *cli)
{
    return weft_cli_has(cli, "json");
}

/* The value of an option, a number or a duration, within its limits. */
static int64_t number_of(const struct weft_cli *cli, const char *option, const int64_t range[2],
                         int64_t normally, bool duration)
{
    const char *text = weft_cli_get(cli, option);
    int64_t number = normally;
    if (!text)
        return normally;
    if (duration ? !weft_duration_typed(text, &number) : !weft_number_typed(text, &number))
        weft_cli_usage(cli, "--%s is '%s': it must be a %s", option, text,
                       duration ? "duration like 500ms, 30s, 5m, 2h or 7d" : "whole number");
    if (number < range[0] || number > range[1])
        weft_cli_usage(cli, "--%s is %s: it must be within %" PRId64 " and %" PRId64 "%s", option,
                       text, range[0], range[1], duration ? " ms" : "");
    return number;
}

int64_t weft_cli_i64(const struct weft_cli *cli, const char *option, int64_t min, int64_t max,
                     int64_t normally)
{
    return number_of(cli, option, (const int64_t[]){min, max}, normally, false);
}

int64_t weft_cli_ms(const struct weft_cli *cli, const char *option, int64_t min, int64_t max,
                    int64_t normally)
{
    return number_of(cli, option, (const int64_t[]){min, max}, normally, true);
}
