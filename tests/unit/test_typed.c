/* SPDX-License-Identifier: Apache-2.0 */

/* What people type and what they read: numbers, durations, sizes, moments, "3 s ago". */

#include "base/arena.h"
#include "base/str.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/text.h"
#include "cmd/serve/settings.h"
#include "tap.h"

#include <inttypes.h>
#include <string.h>

enum { NOT = -1 };

struct row {
    const char *text;
    int64_t want; /* NOT: it is refused */
};

static void check(const char *what, bool (*typed)(const char *, int64_t *), const struct row *row,
                  size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        int64_t got = 4711;
        bool good = typed(row[i].text, &got);
        if (row[i].want == NOT)
            ok(!good && got == 4711, "%s: '%s' is refused", what, row[i].text);
        else
            ok(good && got == row[i].want, "%s: '%s' is %" PRId64, what, row[i].text, row[i].want);
    }
}

static void test_numbers(void)
{
    static const struct row number[] = {
        {"0", 0},      {"17", 17},   {"9223372036854775807", INT64_MAX},
        {"", NOT},     {"+1", NOT},  {"1x", NOT},
        {" 1", NOT},   {"1 ", NOT},  {"9223372036854775808", NOT},
        {"0x10", NOT}, {"1e3", NOT}, {"--1", NOT},
    };
    static const struct row duration[] = {
        {"500ms", 500},    {"30s", 30000},  {"30", 30000},
        {"5m", 300000},    {"2h", 7200000}, {"7d", 604800000},
        {"1w", 604800000}, {"0", 0},        {"3 s", 3000},
        {"-1s", NOT},      {"s", NOT},      {"5min", NOT},
        {"1.5s", NOT},     {"", NOT},       {"99999999999999999d", NOT},
    };
    static const struct row size[] = {
        {"1", 1},     {"64KiB", 65536}, {"2M", 2097152}, {"1GiB", 1073741824},   {"1 MiB", 1048576},
        {"MiB", NOT}, {"1MB", NOT},     {"-1", NOT},     {"9999999999TiB", NOT},
    };
    check("number", weft_number_typed, number, WEFT_LEN(number));
    check("duration", weft_duration_typed, duration, WEFT_LEN(duration));
    check("size", weft_size_typed, size, WEFT_LEN(size));
    int64_t negative;
    ok(weft_number_typed("-5", &negative) && negative == -5, "number: '-5' is -5");
}

static void test_moments(void)
{
    static const char *const refused[] = {"",    "tomorrow",   "2031-02-30T00:00:00Z", "+", "+x",
                                          "-5m", "2031-01-31", "+9223372036854775807d"};
    weft_usec moment, now = weft_wall_us();
    ok(weft_moment_typed("2031-01-31T12:00:00Z", &moment) && moment == 1927627200 * WEFT_SECOND,
       "RFC 3339");
    ok(weft_moment_typed("2031-01-31T13:00:00+01:00", &moment) &&
           moment == 1927627200 * WEFT_SECOND,
       "with an offset");
    ok(weft_moment_typed("+5m", &moment) && moment >= now + 300 * WEFT_SECOND &&
           moment < now + 360 * WEFT_SECOND,
       "from now");
    for (size_t i = 0; i < WEFT_LEN(refused); i++)
        ok(!weft_moment_typed(refused[i], &moment), "'%s' is no moment", refused[i]);
}

static void test_ago(void)
{
    static const weft_usec now = 1000000 * WEFT_SECOND;
    static const struct {
        weft_usec distance_us;
        const char *want;
    } row[] = {
        {0, "now"},
        {999 * WEFT_MS, "now"},
        {-3 * WEFT_SECOND, "3 s ago"},
        {-59 * WEFT_SECOND, "59 s ago"},
        {-60 * WEFT_SECOND, "1 m ago"},
        {-3599 * WEFT_SECOND, "59 m ago"},
        {-7200 * WEFT_SECOND, "2 h ago"},
        {-86400 * WEFT_SECOND, "1 d ago"},
        {-400 * (86400 * WEFT_SECOND), "400 d ago"},
        {300 * WEFT_SECOND, "in 5 m"},
        {2 * (86400 * WEFT_SECOND), "in 2 d"},
    };
    char text[WEFT_AGO_TEXT];
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        weft_ago(now + row[i].distance_us, now, text);
        is_str(text, row[i].want, "%s", row[i].want);
    }
    weft_ago(0, now, text);
    is_str(text, "-", "a time that is not set is a dash");
    weft_ago(INT64_MAX, now, text);
    ok(strncmp(text, "in ", 3) == 0, "the end of time fits");
}

static void test_nearest(void)
{
    static const char *const word[] = {"submit", "serve", "show", "ls", NULL};
    static const struct {
        const char *typed, *want;
    } row[] = {{"sumbit", "submit"}, {"sub", "submit"}, {"shw", "show"}, {"lss", "ls"},
               {"sl", NULL},         {"banana", NULL},  {"x", NULL},     {"", NULL}};
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_str(weft_nearest(row[i].typed, word), row[i].want, "'%s' means %s", row[i].typed,
               row[i].want ? row[i].want : "nothing");
}

static void test_mask(void)
{
    static const struct {
        const char *url, *want;
    } row[] = {
        {"sqlite:weft.db", "sqlite:weft.db"},
        {"postgres://u@h/d", "postgres://u@h/d"},
        {"postgres://u:p@h:5432/d", "postgres://u:***@h:5432/d"},
        {"postgres://u:p@x@h/d", "postgres://u:***@h/d"},
        {"postgres:///d?host=/tmp&password=a%20b&x=y", "postgres:///d?host=/tmp&password=***&x=y"},
        {"postgres://h/d?a=b@c:d", "postgres://h/d?a=b@c:d"},
        {"postgres://u:p/w@h/d", "postgres://u:***@h/d"},
        {"postgres://u:p?w@h/d", "postgres://u:***@h/d"},
        {"postgres://u:p%40w@h,i/d?x=y", "postgres://u:***@h,i/d?x=y"},
        {"postgres://u:p@s/s@h/d", "postgres://u:***@h/d"},
        {"postgres://h/d?sslpassword=a&password=b", "postgres://h/d?sslpassword=***&password=***"},
        {"postgres://h/d?password=a&x=y&password=b",
         "postgres://h/d?password=***&x=y&password=***"},
        {"postgres://h/d?p%61ssw%6Frd=a&x=y", "postgres://h/d?p%61ssw%6Frd=***&x=y"},
        {"postgres://h/d?PASSWORD=a", "postgres://h/d?PASSWORD=***"},
        {"postgres://h/d?passfile=/x&nopasswords=1", "postgres://h/d?passfile=/x&nopasswords=1"},
        {"postgres:///d?password", "postgres:///d?password"},
        {"postgres://u:@h", "postgres://u:***@h"},
        {"host=h password=a user=u", "host=h password=*** user=u"},
        {"host=h password = 'a b\\' c' user=u", "host=h password = *** user=u"},
        {"password=a&b\\ c host=h", "password=*** host=h"},
        {"host=h sslpassword='", "host=h sslpassword=***"},
        {"http://u:p@h:7717", "http://u:***@h:7717"},
        {"https://secret@h:7717/x", "https://***@h:7717/x"},
        {"http://h:7717/x", "http://h:7717/x"},
        {"sqlite:x.db?password=a", "sqlite:x.db?password=***"},
        {"", ""},
    };
    struct weft_arena *arena = weft_arena_new();
    for (size_t i = 0; i < WEFT_LEN(row); i++)
        is_str(weft_url_masked(row[i].url, arena), row[i].want, "%s", row[i].want);
    weft_arena_free(arena);
}

/* ---- Command lines --------------------------------------------------------------------------- */

enum { WORDS_MAX = 12 };

static void parse(struct weft_cli *cli, const char *const *word)
{
    char *argv[WORDS_MAX];
    int argc = 0;
    for (; word[argc]; argc++)
        argv[argc] = weft_arena_strdup(cli->arena, word[argc]);
    weft_line_parse(cli, argc, argv);
}

static void test_lines(void)
{
    static const struct {
        const char *name;
        const char *word[WORDS_MAX];
        const char *command, *option, *value, *arg;
        size_t args;
    } row[] = {
        {"a value apart", {"weft", "ls", "--lane", "a"}, "ls", "lane", "a", NULL, 0},
        {"a value after =", {"weft", "ls", "--lane=a=b"}, "ls", "lane", "a=b", NULL, 0},
        {"an empty value", {"weft", "ls", "--lane="}, "ls", "lane", "", NULL, 0},
        {"a letter", {"weft", "ls", "-l", "a"}, "ls", "lane", "a", NULL, 0},
        {"a letter and its value", {"weft", "ls", "-la"}, "ls", "lane", "a", NULL, 0},
        {"a bundle", {"weft", "ls", "-ajla"}, "ls", "lane", "a", NULL, 0},
        {"the last one holds", {"weft", "ls", "-la", "-lb"}, "ls", "lane", "b", NULL, 0},
        {"before the command", {"weft", "--store", "s", "ls"}, "ls", "store", "s", NULL, 0},
        {"after an argument",
         {"weft", "cancel", "x", "--yes", "-ry"},
         "cancel",
         "reason",
         "y",
         "x",
         1},
        {"after --", {"weft", "cancel", "--", "--yes"}, "cancel", "yes", NULL, "--yes", 1},
        {"a dash alone", {"weft", "submit", "-"}, "submit", "lane", NULL, "-", 1},
        {"an optional value", {"weft", "show", "--wait", "x"}, "show", "wait", NULL, "x", 1},
        {"given", {"weft", "show", "--wait=5s", "x"}, "show", "wait", "5s", "x", 1},
        {"one that looks like an option",
         {"weft", "ls", "--lane", "--all"},
         "ls",
         "lane",
         "--all",
         NULL,
         0},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_cli cli = {.arena = weft_arena_new()};
        parse(&cli, row[i].word);
        ok(cli.command != NULL, "%s is taken", row[i].name);
        is_str(cli.command ? cli.command->name : NULL, row[i].command, "%s: the command",
               row[i].name);
        is_str(weft_cli_get(&cli, row[i].option), row[i].value, "%s: --%s", row[i].name,
               row[i].option);
        is_int(cli.arg_count, row[i].args, "%s: so many arguments", row[i].name);
        if (row[i].args > 0)
            is_str(cli.arg[0], row[i].arg, "%s: the argument", row[i].name);
        weft_arena_free(cli.arena);
    }
    struct weft_cli cli = {.arena = weft_arena_new()};
    const char *const *value;
    parse(&cli, (const char *const[]){"weft", "submit", "-ta=1", "--tag", "b=2", NULL});
    ok(cli.command != NULL, "a command line with two tags is taken");
    is_int(weft_cli_all(&cli, "tag", &value), 2, "all of them");
    is_str(value[1], "b=2", "in order");
    weft_arena_free(cli.arena);
}

/* Every table says what the others need. */
static void test_tables(void)
{
    for (size_t i = 0; weft_commands[i]; i++) {
        const struct weft_command *command = weft_commands[i];
        bool whole = command->name && command->args && command->summary && command->about &&
                     command->example && command->run;
        ok(whole, "%s has all that the manual needs", command->name);
        for (const struct weft_option *at = command->option; at && at->name; at++) {
            bool twice = false;
            for (const struct weft_option *to = at + 1; to->name; to++)
                twice |=
                    strcmp(to->name, at->name) == 0 || (to->letter && to->letter == at->letter);
            ok(at->about && !twice, "%s --%s is there once", command->name, at->name);
        }
    }
}

int main(void)
{
    test_numbers();
    test_moments();
    test_ago();
    test_nearest();
    test_mask();
    test_lines();
    test_tables();
    return tap_done();
}
