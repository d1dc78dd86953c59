/* SPDX-License-Identifier: Apache-2.0 */

/* Reading the settings from the command line, the environment and the file; weft config. */

#include "cmd/serve/settings.h"

#include "base/limits.h"
#include "base/str.h"
#include "cmd/cli/output.h"
#include "engine/scan/pass.h"
#include "net/http/host.h"
#include "weft/admin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20 };

const struct weft_setting weft_settings[] = {
#define X(name_, flag_, env_, kind_, place, normally_, value_, least, most, words_, about_)        \
    {.name = #name_,                                                                               \
     .flag = (flag_),                                                                              \
     .env = (env_),                                                                                \
     .kind = WEFT_SETTING_##kind_,                                                                 \
     .offset = offsetof(struct weft_serve_settings, place),                                        \
     .normally = (normally_),                                                                      \
     .min = (least),                                                                               \
     .max = (most),                                                                                \
     .words = (words_),                                                                            \
     .about = (about_)},
#include "cmd/serve/settings.def"
#undef X
};
const size_t weft_setting_count = WEFT_LEN(weft_settings);

const struct weft_option weft_serve_options[] = {
    {"hello", 0, NULL, "say where it listens and what to try, also to a pipe", NULL},
    {"config", 'c', "FILE", "read settings from this file", NULL},
#define X(name_, flag_, env_, kind_, place, normally_, value_, least, most, words_, about_)        \
    {.name = (flag_), .value = (value_), .about = (about_), .complete = (words_)},
#include "cmd/serve/settings.def"
#undef X
    {.name = NULL},
};

/* ---- Scanners: which ones -------------------------------------------------------------------- */

enum {
    INTERVAL_MIN_MS = 10,
    INTERVAL_MAX_MS = 86400000,
    PARTITION_LAST = 255,
    NAMES_MAX = 512,
};

#define SHOWN "%.60s" /* of a text that is wrong */

static enum weft_scanner find_scanner(const char *name)
{
    size_t i = 0;
    while (i < WEFT_SCANNER_COUNT && strcmp(name, weft_scanner_name((enum weft_scanner)i)) != 0)
        i++;
    return (enum weft_scanner)i;
}

static enum weft_rc unknown_scanner(const char *name, struct weft_err *err)
{
    struct weft_buf names;
    weft_buf_init(&names, NAMES_MAX);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        weft_buf_printf(&names, "%s%s", i ? ", " : "", weft_scanner_name((enum weft_scanner)i));
    weft_buf_add_char(&names, '\0');
    (void)weft_fail(err, WEFT_INVALID_VALUE, "there is no scanner '" SHOWN "'; there are %s", name,
                    names.data);
    weft_buf_done(&names);
    return WEFT_INVALID_VALUE;
}

enum weft_rc weft_scan_list_read(const char *text, bool ret_runs[WEFT_SCANNER_COUNT],
                                 struct weft_err *err)
{
    bool runs[WEFT_SCANNER_COUNT + 1] = {false};
    bool all = !text || strcmp(text, "all") == 0;
    if (!all && !*text)
        return weft_fail(err, WEFT_INVALID_VALUE, "it must be all, none or names of scanners");
    char *copy = weft_strdup(all || strcmp(text, "none") == 0 ? "" : text), *rest;
    enum weft_rc rc = WEFT_OK;
    for (char *name = strtok_r(copy, ", ", &rest); name && !rc;
         name = strtok_r(NULL, ", ", &rest)) {
        enum weft_scanner scanner = find_scanner(name);
        runs[scanner] = true;
        if (scanner == WEFT_SCANNER_COUNT)
            rc = unknown_scanner(name, err);
    }
    for (size_t i = 0; i < WEFT_SCANNER_COUNT && !rc; i++)
        ret_runs[i] = all || runs[i];
    free(copy);
    return rc;
}

/* ---- Scanners: rules ------------------------------------------------------------------------- */

/* The scanner whose setting a value changes. */
struct target {
    const struct weft_scanner_info *info;
    struct weft_scanner_setting *setting;
    bool named; /* the rule names this scanner, so it must fit it */
};

static enum weft_rc set_interval(const struct target *target, const char *value,
                                 struct weft_err *err)
{
    int64_t ms;
    if (!weft_duration_typed(value, &ms) || ms > INTERVAL_MAX_MS || (ms && ms < INTERVAL_MIN_MS))
        return weft_fail(err, WEFT_INVALID_VALUE,
                         "interval is '%s': it must be 0, or a duration from 10ms to 1d", value);
    target->setting->interval_us = ms * WEFT_MS;
    return WEFT_OK;
}

static enum weft_rc set_batch(const struct target *target, const char *value, struct weft_err *err)
{
    int64_t batch, most = target->info->batch_max;
    if (!weft_number_typed(value, &batch) || batch < 1 || batch > UINT32_MAX)
        return weft_fail(err, WEFT_INVALID_VALUE, "batch is '%s': it must be a number from 1 on",
                         value);
    if (target->named && batch > most)
        return weft_fail(err, WEFT_INVALID_VALUE, "batch is %s: %s takes at most %u", value,
                         target->info->name, target->info->batch_max);
    target->setting->batch = (uint32_t)(batch < most ? batch : most);
    return WEFT_OK;
}

static enum weft_rc set_namespace(const struct target *target, const char *value,
                                  struct weft_err *err)
{
    bool all = strcmp(value, "*") == 0;
    if (!all && !weft_name_valid(value))
        return weft_fail(err, WEFT_INVALID_VALUE, "namespace is '%s', which is no name", value);
    memcpy(target->setting->ns, all ? "" : value, all ? 1 : strlen(value) + 1);
    return WEFT_OK;
}

/* "A-B", or "A" alone. */
static bool read_range(const char *value, int64_t *ret_first, int64_t *ret_last)
{
    char first[8];
    size_t size = strcspn(value, "-");
    if (size >= sizeof(first))
        return false;
    memcpy(first, value, size);
    first[size] = '\0';
    return weft_number_typed(first, ret_first) &&
           weft_number_typed(value[size] ? value + size + 1 : first, ret_last);
}

static enum weft_rc set_partitions(const struct target *target, const char *value,
                                   struct weft_err *err)
{
    int64_t first, last;
    if (!read_range(value, &first, &last) || first < 0 || last > PARTITION_LAST || first > last)
        return weft_fail(err, WEFT_INVALID_VALUE, "partitions is '%s': it must be A-B within 0-255",
                         value);
    if (last == 0) /* a pass takes 0 and 0 for all of them */
        return weft_fail(err, WEFT_INVALID_VALUE,
                         "partitions is '%s': partition 0 cannot stand alone", value);
    if (!target->info->partitioned)
        return target->named ? weft_fail(err, WEFT_INVALID_VALUE,
                                         "%s cannot be limited to partitions", target->info->name)
                             : WEFT_OK;
    target->setting->partition_first = (uint8_t)first;
    target->setting->partition_last = (uint8_t)last;
    return WEFT_OK;
}

static const struct key {
    const char *name;
    enum weft_rc (*set)(const struct target *target, const char *value, struct weft_err *err);
} keys[] = {
    {"interval", set_interval},
    {"batch", set_batch},
    {"namespace", set_namespace},
    {"partitions", set_partitions},
};

/* Applies key=value to the targets. The = is replaced by a NUL. */
static enum weft_rc read_pair(char *name, const struct target *target, size_t targets,
                              struct weft_err *err)
{
    char *value = strchr(name, '=');
    enum weft_rc rc = WEFT_OK;
    size_t i = 0;
    if (!value)
        return weft_fail(err, WEFT_INVALID_VALUE, "'" SHOWN "' must be key=value", name);
    *value++ = '\0';
    while (i < WEFT_LEN(keys) && strcmp(name, keys[i].name) != 0)
        i++;
    if (i == WEFT_LEN(keys))
        return weft_fail(err, WEFT_INVALID_VALUE,
                         "there is no key '" SHOWN
                         "'; there are interval, batch, namespace and "
                         "partitions",
                         name);
    if (strlen(value) > WEFT_NAME_MAX)
        return weft_fail(err, WEFT_INVALID_VALUE, "the value of %s is too long", keys[i].name);
    for (size_t k = 0; k < targets && !rc; k++)
        rc = keys[i].set(&target[k], value, err);
    return rc;
}

static enum weft_rc read_rule(char *name, struct weft_scanner_setting *setting,
                              struct weft_err *err)
{
    struct target target[WEFT_SCANNER_COUNT];
    size_t targets = 0;
    char *pairs = strchr(name, ':');
    if (!pairs)
        return weft_fail(err, WEFT_INVALID_VALUE, "'" SHOWN "' must be NAME:key=value", name);
    *pairs++ = '\0';
    bool named = strcmp(name, "*") != 0;
    enum weft_scanner scanner = find_scanner(name);
    if (named && scanner == WEFT_SCANNER_COUNT)
        return unknown_scanner(name, err);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        if (!named || i == scanner)
            target[targets++] =
                (struct target){weft_scanner_info((enum weft_scanner)i), &setting[i], named};
    enum weft_rc rc;
    do
        rc = read_pair(strsep(&pairs, ","), target, targets, err);
    while (!rc && pairs && *pairs);
    return rc;
}

static enum weft_rc read_rules(const char *text,
                               struct weft_scanner_setting setting[WEFT_SCANNER_COUNT],
                               struct weft_err *err)
{
    char *copy = weft_strdup(text ? text : ""), *rest;
    enum weft_rc rc = WEFT_OK;
    for (char *rule = strtok_r(copy, " \t;", &rest); rule && !rc;
         rule = strtok_r(NULL, " \t;", &rest))
        rc = read_rule(rule, setting, err);
    free(copy);
    return rc;
}

enum weft_rc weft_scan_rules_read(const char *text,
                                  struct weft_scanner_setting setting[WEFT_SCANNER_COUNT],
                                  struct weft_err *err)
{
    weft_scanner_defaults(setting);
    return read_rules(text, setting, err);
}

/* ---- One value ------------------------------------------------------------------------------- */

/* Says what is wrong with a value, by the name under which it was given. */
static bool complain(const char *text, const struct weft_setting *setting,
                     const struct weft_setting_value *value)
{
    bool flag = strcmp(value->from, "flag") == 0;
    bool env = strcmp(value->from, "environment") == 0;
    weft_cli_say("weft: %s%s%s is '%s': %s",
                 flag  ? "--"
                 : env ? ""
                       : value->from,
                 flag || env ? "" : ": ",
                 flag  ? setting->flag
                 : env ? setting->env
                       : setting->name,
                 value->text, text);
    return false;
}

static bool read_switch(const char *text, bool *ret_value)
{
    bool yes = weft_is_word(text, "yes true on 1");
    *ret_value = yes;
    return yes || weft_is_word(text, "no false off 0");
}

static bool read_number(const struct weft_setting *setting, const struct weft_setting_value *value,
                        int64_t *ret_number)
{
    static const struct {
        const char *what, *unit;
        bool (*typed)(const char *text, int64_t *ret_number);
        int64_t divisor;
    } forms[] = {
        [WEFT_SETTING_NUMBER] = {"a whole number", "", weft_number_typed, 1},
        [WEFT_SETTING_SECONDS] = {"a duration of whole seconds, like 30s or 5m", " seconds",
                                  weft_duration_typed, 1000},
        [WEFT_SETTING_MILLIS] = {"a duration, like 100ms or 2s", " milliseconds",
                                 weft_duration_typed, 1},
        [WEFT_SETTING_BYTES] = {"a size, like 64MiB", " bytes", weft_size_typed, 1},
    };
    char text[128];
    int64_t number = 0, divisor = forms[setting->kind].divisor;
    bool good = forms[setting->kind].typed(value->text, &number) && number % divisor == 0;
    number /= divisor;
    if (good && number >= setting->min && number <= setting->max) {
        *ret_number = number;
        return true;
    }
    if (good)
        (void)snprintf(text, sizeof(text), "it must be within %" PRId64 " and %" PRId64 "%s",
                       setting->min, setting->max, forms[setting->kind].unit);
    else
        (void)snprintf(text, sizeof(text), "it must be %s", forms[setting->kind].what);
    return complain(text, setting, value);
}

/* Checks the text and stores the value in its member. */
static bool apply(const struct weft_setting *setting, const struct weft_setting_value *value,
                  struct weft_serve_settings *settings)
{
    void *place = (char *)settings + setting->offset;
    char text[128];
    int64_t number = 0;
    switch (setting->kind) {
    case WEFT_SETTING_TEXT:
    case WEFT_SETTING_LIST:
        *(const char **)place = value->text[0] ? value->text : NULL;
        return value->text[0] || setting->min == 0 ||
               complain("it must not be empty", setting, value);
    case WEFT_SETTING_WORD:
        *(const char **)place = value->text;
        (void)snprintf(text, sizeof(text), "it must be one of: %s", setting->words);
        return weft_is_word(value->text, setting->words) || complain(text, setting, value);
    case WEFT_SETTING_SWITCH:
        return read_switch(value->text, place) || complain("it must be yes or no", setting, value);
    case WEFT_SETTING_BYTES:
        if (!read_number(setting, value, &number))
            return false;
        *(uint64_t *)place = (uint64_t)number;
        return true;
    case WEFT_SETTING_NUMBER:
    case WEFT_SETTING_SECONDS:
    case WEFT_SETTING_MILLIS:
        if (!read_number(setting, value, &number))
            return false;
        *(uint32_t *)place = (uint32_t)number;
        return true;
    }
    return false;
}

/* ---- The file -------------------------------------------------------------------------------- */

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t size = strlen(text);
    while (size > 0 && strchr(" \t\r", text[size - 1]))
        text[--size] = '\0';
    return text;
}

static size_t find_setting(const char *name)
{
    size_t i = 0;
    while (i < weft_setting_count && strcmp(weft_settings[i].name, name) != 0)
        i++;
    return i;
}

static bool unknown_name(const char *from, const char *name)
{
    const char *known[WEFT_LEN(weft_settings) + 1];
    for (size_t i = 0; i < weft_setting_count; i++)
        known[i] = weft_settings[i].name;
    known[weft_setting_count] = NULL;
    const char *near = weft_nearest(name, known);
    weft_cli_say("weft: %s: there is no setting '%s'%s%s%s", from, name,
                 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return false;
}

/* One line: `name = value`, or nothing but white space and a comment. */
static bool read_line(char *line, const char *from, struct weft_setting_value *value)
{
    char *text = trim(line);
    if (text[0] == '\0' || text[0] == '#')
        return true;
    char *equals = strchr(text, '=');
    if (!equals) {
        weft_cli_say("weft: %s: a line must be `name = value`", from);
        return false;
    }
    *equals = '\0';
    char *name = trim(text), *given = trim(equals + 1);
    char *comment = strstr(given, " #"); /* a # inside a word, as in a URL, is not one */
    if (comment) {
        *comment = '\0';
        given = trim(given);
    }
    size_t i = find_setting(name);
    if (i == weft_setting_count)
        return unknown_name(from, name);
    value[i] = (struct weft_setting_value){.text = given, .from = from};
    return true;
}

static bool read_lines(const char *path, FILE *file, struct weft_arena *arena,
                       struct weft_setting_value *value)
{
    char *all = weft_arena_alloc(arena, FILE_MAX + 1, 1);
    size_t size = fread(all, 1, FILE_MAX + 1, file);
    if (ferror(file) || size > FILE_MAX || strlen(all) != size || !weft_utf8_valid(all, size)) {
        weft_cli_say("weft: %s is not a readable text file", path);
        return false;
    }
    int number = 0;
    for (char *line = all; line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        const char *from = weft_arena_printf(arena, "%s:%d", path, ++number);
        if (!read_line(line, from, value))
            return false;
        line = end ? end + 1 : NULL;
    }
    return true;
}

/* A file that was named must exist; the usual ones may be missing. */
static bool read_file(const struct weft_cli *cli, struct weft_arena *arena,
                      struct weft_setting_value *value)
{
    static const char *const usual[] = {"weft.conf", "/etc/weft.conf"};
    const struct weft_option *option = weft_command_option(cli->command, "config", 6);
    const char *path = option ? weft_cli_get(cli, "config") : NULL;
    if (!path)
        path = weft_env("WEFT_CONFIG");
    for (size_t i = 0; !path && i < WEFT_LEN(usual); i++)
        if (access(usual[i], F_OK) == 0)
            path = usual[i];
    if (!path)
        return true;
    FILE *file = fopen(path, "re");
    if (!file) {
        char why[128];
        weft_cli_say("weft: cannot read %s: %s", path, strerror_r(errno, why, sizeof(why)));
        return false;
    }
    bool good = read_lines(path, file, arena, value);
    (void)fclose(file);
    return good;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void read_flag(const struct weft_cli *cli, const struct weft_setting *setting,
                      struct weft_setting_value *value)
{
    if (!weft_command_option(cli->command, setting->flag, strlen(setting->flag)) ||
        !weft_cli_has(cli, setting->flag))
        return;
    const char *text = weft_cli_get(cli, setting->flag);
    const char *const *all;
    size_t count = setting->kind == WEFT_SETTING_LIST ? weft_cli_all(cli, setting->flag, &all) : 0;
    for (size_t i = 0; i < count; i++)
        text = i == 0 ? all[0] : weft_arena_printf(cli->arena, "%s,%s", text, all[i]);
    *value = (struct weft_setting_value){.text = text ? text : "yes", .from = "flag"};
}

static bool complain_of(const char *name, const char *text, const struct weft_setting_value *value)
{
    size_t i = find_setting(name);
    return complain(text, &weft_settings[i], &value[i]);
}

/* Applies `scanners`, `purge_batch`, `purge_pause` and `scan` together: a rule has the last word.
 */
static bool read_scanners(const struct weft_setting_value *value,
                          struct weft_serve_settings *settings)
{
    struct weft_err err = {0};
    bool runs[WEFT_SCANNER_COUNT] = {0};
    if (weft_scan_list_read(settings->scanners, runs, &err))
        return complain_of("scanners", err.text, value);
    weft_scanner_defaults(settings->scanner);
    settings->scanner[WEFT_SCANNER_PURGE].batch = settings->purge_batch;
    settings->scanner[WEFT_SCANNER_PURGE].pause_us = settings->purge_pause_ms * WEFT_MS;
    if (read_rules(settings->scan, settings->scanner, &err))
        return complain_of("scan", err.text, value);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        if (!runs[i])
            settings->scanner[i].interval_us = 0;
    settings->server.scanners = settings->scanner;
    return true;
}

/* The words of the settings of the executor. */
static void read_executor(struct weft_serve_settings *settings)
{
    settings->server.no_executor = strcmp(settings->executor, "off") == 0;
    settings->server.http_urls = strcmp(settings->http_urls, "public") == 0;
}

bool weft_settings_read(const struct weft_cli *cli, struct weft_arena *arena,
                        struct weft_setting_value *ret_value,
                        struct weft_serve_settings *ret_settings)
{
    memset(ret_settings, 0, sizeof(*ret_settings));
    if (!ret_value)
        ret_value = weft_new_array(arena, struct weft_setting_value, weft_setting_count);
    for (size_t i = 0; i < weft_setting_count; i++)
        ret_value[i] = (struct weft_setting_value){weft_settings[i].normally, "default"};
    if (!read_file(cli, arena, ret_value))
        return false;
    for (size_t i = 0; i < weft_setting_count; i++) {
        const char *text = weft_env(weft_settings[i].env);
        if (text)
            ret_value[i] = (struct weft_setting_value){text, "environment"};
        read_flag(cli, &weft_settings[i], &ret_value[i]);
        if (!apply(&weft_settings[i], &ret_value[i], ret_settings))
            return false;
    }
    if (!ret_settings->server.tls_cert != !ret_settings->server.tls_key) {
        weft_cli_say("weft: tls_cert and tls_key belong together: give both");
        return false;
    }
    struct weft_origins origins;
    struct weft_hosts hosts;
    struct weft_err err = {0};
    if (weft_origins_parse(ret_settings->server.cors_origin, arena, &origins, &err))
        return complain_of("cors_origin", err.text, ret_value);
    if (weft_hosts_parse(ret_settings->server.host, arena, &hosts, &err))
        return complain_of("host", err.text, ret_value);
    read_executor(ret_settings);
    return read_scanners(ret_value, ret_settings);
}

/* ---- weft config ----------------------------------------------------------------------------- */

static enum weft_exit run_config(struct weft_cli *cli)
{
    static const struct weft_column columns[] = {
        {"NAME", WEFT_LEFT, 0, NULL, 0},
        {"VALUE", WEFT_LEFT, 2, NULL, 0},
        {"FROM", WEFT_LEFT, 3, NULL, 0},
        {"MEANING", WEFT_LEFT, 1, NULL, 0},
    };
    struct weft_serve_settings settings;
    struct weft_setting_value value[WEFT_LEN(weft_settings)];
    if (!weft_settings_read(cli, cli->arena, value, &settings))
        return WEFT_EXIT_USAGE;
    bool json = weft_cli_json(cli);
    struct weft_json_out out;
    struct weft_table *table = json ? NULL : weft_table_new(cli, columns, WEFT_LEN(columns));
    if (json)
        weft_json_out_begin_items(&out);
    for (size_t i = 0; i < weft_setting_count; i++) {
        const char *shown = weft_url_masked(value[i].text, cli->arena);
        if (json) {
            weft_json_begin_object(&out.json);
            weft_json_add_text(&out.json, "name", weft_settings[i].name);
            weft_json_add_text(&out.json, "value", shown);
            weft_json_add_text(&out.json, "from", value[i].from);
            weft_json_end_object(&out.json);
        } else {
            weft_table_cell(table, "%s", weft_settings[i].name);
            weft_table_cell(table, "%s", shown[0] ? shown : "-");
            weft_table_cell(table, "%s", value[i].from);
            weft_table_cell(table, "%s", weft_settings[i].about);
        }
    }
    if (json)
        weft_json_out_end_items(&out);
    else
        weft_table_print(table);
    return WEFT_EXIT_OK;
}

const struct weft_command weft_command_config = {
    .name = "config",
    .args = "",
    .no_store = true,
    .summary = "show the settings of the server and where each came from",
    .about =
        "Takes the flags of `weft serve` and reads the same environment and file. A flag beats a "
        "variable, a variable beats the file, the file beats the default. The file is the one "
        "named by --config or WEFT_CONFIG, else ./weft.conf, else /etc/weft.conf; its lines are "
        "`name = value`, and # begins a comment. Passwords are not shown.",
    .example = "weft config\nweft config --config /etc/weft.conf --json",
    .option = weft_serve_options + 1,
    .run = run_config,
};
