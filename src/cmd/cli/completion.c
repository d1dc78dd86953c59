/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Completion for bash, written from the tables. The script holds the words and one function; it
 * calls nothing, so completing costs no process and works without a server.
 */

#include "cmd/cli/line.h"

#include <string.h>

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

/* "create|ls|revoke [ID]": the words before the first space are what may stand first. */
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
    const char *const *arg;
    (void)weft_cli_args(cli, &arg);
    if (strcmp(arg[0], "bash") != 0)
        return weft_cli_usage(cli, "there is completion for bash only, not for '%s'", arg[0]);
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
    .args_min = 1,
    .args_max = 1,
    .no_store = true,
    .summary = "print the completion script of a shell",
    .about =
        "The script completes commands, options and the words an option takes. Packages "
        "install it; otherwise load it in your shell's start-up file.",
    .example = "source <(weft completion bash)",
    .run = run_completion,
};
