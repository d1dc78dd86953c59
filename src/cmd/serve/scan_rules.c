/* SPDX-License-Identifier: Apache-2.0 */

#include "cmd/serve/scan_rules.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"
#include "cmd/cli/text.h"
#include "engine/scan/pass.h"
#include "net/server.h"
#include "weft/admin.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- Which ones ------------------------------------------------------------------------------ */

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

/* ---- One value ------------------------------------------------------------------------------- */

/* What a value is to change. */
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

/* ---- One rule -------------------------------------------------------------------------------- */

/* `value` follows the = of the pair, which is replaced by a NUL. */
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

enum weft_rc weft_scan_rules_read(const char *text,
                                  struct weft_scanner_setting setting[WEFT_SCANNER_COUNT],
                                  struct weft_err *err)
{
    char *copy = weft_strdup(text ? text : ""), *rest;
    enum weft_rc rc = WEFT_OK;
    weft_scanner_defaults(setting);
    for (char *rule = strtok_r(copy, " \t;", &rest); rule && !rc;
         rule = strtok_r(NULL, " \t;", &rest))
        rc = read_rule(rule, setting, err);
    free(copy);
    return rc;
}
