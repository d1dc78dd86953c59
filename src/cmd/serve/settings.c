/* SPDX-License-Identifier: Apache-2.0 */

/* Reading the settings from the command line, the environment and the file. */

#include "cmd/serve/settings.h"

#include "cmd/cli/line.h"
#include "cmd/cli/typed.h"
#include "cmd/serve/scan_rules.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/str.h"
#include "net/http/host.h"

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
    {.name = "hello", .about = "say where it listens and what to try, also to a pipe"},
    {.name = "config", .letter = 'c', .value = "FILE", .about = "read settings from this file"},
#define X(name_, flag_, env_, kind_, place, normally_, value_, least, most, words_, about_)        \
    {.name = (flag_), .value = (value_), .about = (about_), .complete = (words_)},
#include "cmd/serve/settings.def"
#undef X
    {.name = NULL},
};

bool weft_settings_of(const struct weft_option *option)
{
    return option == weft_serve_options || option == weft_serve_options + 1;
}

/* ---- One value ------------------------------------------------------------------------------- */

/* Says what is wrong with a value, by the name under which it was given. */
static bool complain(const char *text, const struct weft_setting *setting,
                     const struct weft_setting_value *value)
{
    if (strcmp(value->from, "flag") == 0)
        (void)fprintf(stderr, "weft: --%s", setting->flag);
    else if (strcmp(value->from, "environment") == 0)
        (void)fprintf(stderr, "weft: %s", setting->env);
    else
        (void)fprintf(stderr, "weft: %s: %s", value->from, setting->name);
    (void)fprintf(stderr, " is '%s': %s\n", value->text, text);
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
    char text[128];
    bool good;
    int64_t number = 0;
    const char *what = "a whole number", *unit = "";
    if (setting->kind == WEFT_SETTING_SECONDS) {
        what = "a duration of whole seconds, like 30s or 5m";
        unit = " seconds";
        good = weft_duration_typed(value->text, &number) && number % 1000 == 0;
        number /= 1000;
    } else if (setting->kind == WEFT_SETTING_BYTES) {
        what = "a size, like 64MiB";
        unit = " bytes";
        good = weft_size_typed(value->text, &number);
    } else {
        good = weft_number_typed(value->text, &number);
    }
    if (good && number >= setting->min && number <= setting->max) {
        *ret_number = number;
        return true;
    }
    if (good)
        (void)snprintf(text, sizeof(text), "it must be within %" PRId64 " and %" PRId64 "%s",
                       setting->min, setting->max, unit);
    else
        (void)snprintf(text, sizeof(text), "it must be %s", what);
    return complain(text, setting, value);
}

/* Checks the text and puts it where it belongs. */
static bool apply(const struct weft_setting *setting, const struct weft_setting_value *value,
                  struct weft_serve_settings *settings)
{
    void *place = (char *)settings + setting->offset;
    char text[128];
    int64_t number;
    switch (setting->kind) {
    case WEFT_SETTING_TEXT:
    case WEFT_SETTING_LIST:
        *(const char **)place = value->text[0] ? value->text : NULL;
        return true;
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
    (void)fprintf(stderr, "weft: %s: there is no setting '%s'%s%s%s\n", from, name,
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
        (void)fprintf(stderr, "weft: %s: a line must be `name = value`\n", from);
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
        (void)fprintf(stderr, "weft: %s is not a readable text file\n", path);
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

/* The file that was named must be there; the usual ones may be missing. */
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
        (void)fprintf(stderr, "weft: cannot read %s: %s\n", path,
                      strerror_r(errno, why, sizeof(why)));
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

/* The settings scanners and scan together. */
static bool read_scanners(const struct weft_setting_value *value,
                          struct weft_serve_settings *settings)
{
    struct weft_err err = {0};
    bool runs[WEFT_SCANNER_COUNT];
    if (weft_scan_list_read(settings->scanners, runs, &err))
        return complain_of("scanners", err.text, value);
    if (weft_scan_rules_read(settings->scan, settings->scanner, &err))
        return complain_of("scan", err.text, value);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        if (!runs[i])
            settings->scanner[i].interval_us = 0;
    settings->server.scanners = settings->scanner;
    return true;
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
        (void)fprintf(stderr, "weft: tls_cert and tls_key belong together: give both\n");
        return false;
    }
    struct weft_origins origins;
    struct weft_hosts hosts;
    struct weft_err err = {0};
    if (weft_origins_parse(ret_settings->server.cors_origin, arena, &origins, &err))
        return complain_of("cors_origin", err.text, ret_value);
    if (weft_hosts_parse(ret_settings->server.host, arena, &hosts, &err))
        return complain_of("host", err.text, ret_value);
    return read_scanners(ret_value, ret_settings);
}

const char *weft_settings_store(const struct weft_cli *cli, struct weft_arena *arena)
{
    struct weft_serve_settings settings;
    const char *store = weft_cli_get(cli, "store");
    if (store)
        return store;
    return weft_settings_read(cli, arena, NULL, &settings) ? settings.server.store : NULL;
}
