/* SPDX-License-Identifier: Apache-2.0 */

#include "cmd/serve/scan_rules.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/text.h"
#include "engine/scan/pass.h"
#include "net/server.h"
#include "weft/admin.h"

#include <string.h>

enum {
    INTERVAL_MIN_MS = 10,
    INTERVAL_MAX_MS = 86400000,
    PARTITION_LAST = 255,
    SHOWN_MAX = 60, /* of a text that is wrong */
    NAMES_MAX = 512,
};

/* A piece of the text. */
struct slice {
    const char *at;
    size_t size;
};

#define SHOWN(slice) (int)((slice).size < SHOWN_MAX ? (slice).size : SHOWN_MAX), (slice).at

static struct slice slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

/* Takes all up to the first of these characters, and that one away. */
static struct slice cut(struct slice *rest, const char *ends)
{
    struct slice piece = {rest->at, 0};
    while (piece.size < rest->size && !strchr(ends, piece.at[piece.size]))
        piece.size++;
    size_t gone = piece.size < rest->size ? piece.size + 1 : piece.size;
    rest->at += gone;
    rest->size -= gone;
    return piece;
}

static bool is(struct slice slice, const char *word)
{
    return slice.size == strlen(word) && memcmp(slice.at, word, slice.size) == 0;
}

static enum weft_scanner find_scanner(struct slice name)
{
    size_t i = 0;
    while (i < WEFT_SCANNER_COUNT && !is(name, weft_scanner_name((enum weft_scanner)i)))
        i++;
    return (enum weft_scanner)i;
}

static enum weft_rc unknown_scanner(struct slice name, struct weft_err *err)
{
    struct weft_buf names;
    weft_buf_init(&names, NAMES_MAX);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        weft_buf_printf(&names, "%s%s", i ? ", " : "", weft_scanner_name((enum weft_scanner)i));
    weft_buf_add_char(&names, '\0');
    (void)weft_fail(err, WEFT_INVALID_VALUE, "there is no scanner '%.*s'; there are %s",
                    SHOWN(name), names.data);
    weft_buf_done(&names);
    return WEFT_INVALID_VALUE;
}

/* ---- Which ones ------------------------------------------------------------------------------ */

enum weft_rc weft_scan_list_read(const char *text, bool ret_runs[WEFT_SCANNER_COUNT],
                                 struct weft_err *err)
{
    bool runs[WEFT_SCANNER_COUNT] = {false};
    bool all = !text || strcmp(text, "all") == 0;
    struct slice rest = slice_of(all || strcmp(text, "none") == 0 ? "" : text);
    if (!all && !*text)
        return weft_fail(err, WEFT_INVALID_VALUE, "it must be all, none or names of scanners");
    while (rest.size > 0) {
        struct slice name = cut(&rest, ", ");
        if (name.size == 0) /* two separators in a row */
            continue;
        enum weft_scanner scanner = find_scanner(name);
        if (scanner == WEFT_SCANNER_COUNT)
            return unknown_scanner(name, err);
        runs[scanner] = true;
    }
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
        ret_runs[i] = all || runs[i];
    return WEFT_OK;
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
    const char *dash = strchr(value, '-');
    size_t size = dash ? (size_t)(dash - value) : strlen(value);
    if (size >= sizeof(first))
        return false;
    memcpy(first, value, size);
    first[size] = '\0';
    return weft_number_typed(first, ret_first) &&
           weft_number_typed(dash ? dash + 1 : first, ret_last);
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

static enum weft_rc read_pair(struct slice pair, const struct target *target, struct weft_err *err)
{
    char value[WEFT_NAME_MAX + 1];
    struct slice rest = pair, name = cut(&rest, "=");
    size_t i = 0;
    if (name.size == pair.size)
        return weft_fail(err, WEFT_INVALID_VALUE, "'%.*s' must be key=value", SHOWN(pair));
    while (i < WEFT_LEN(keys) && !is(name, keys[i].name))
        i++;
    if (i == WEFT_LEN(keys))
        return weft_fail(err, WEFT_INVALID_VALUE,
                         "there is no key '%.*s'; there are interval, batch, namespace and "
                         "partitions",
                         SHOWN(name));
    if (rest.size > WEFT_NAME_MAX)
        return weft_fail(err, WEFT_INVALID_VALUE, "the value of %s is too long", keys[i].name);
    memcpy(value, rest.at, rest.size);
    value[rest.size] = '\0';
    return keys[i].set(target, value, err);
}

static enum weft_rc read_pairs(struct slice pairs, const struct target *target,
                               struct weft_err *err)
{
    enum weft_rc rc = WEFT_OK;
    do
        rc = read_pair(cut(&pairs, ","), target, err);
    while (!rc && pairs.size > 0);
    return rc;
}

static enum weft_rc read_rule(struct slice rule, struct weft_scanner_setting *setting,
                              struct weft_err *err)
{
    struct slice pairs = rule, name = cut(&pairs, ":");
    enum weft_scanner scanner = find_scanner(name);
    bool named = !is(name, "*");
    if (name.size == rule.size)
        return weft_fail(err, WEFT_INVALID_VALUE, "'%.*s' must be NAME:key=value", SHOWN(rule));
    if (named && scanner == WEFT_SCANNER_COUNT)
        return unknown_scanner(name, err);
    for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++) {
        const struct target target = {weft_scanner_info((enum weft_scanner)i), &setting[i], named};
        if (named && i != scanner)
            continue;
        enum weft_rc rc = read_pairs(pairs, &target, err);
        if (rc)
            return rc;
    }
    return WEFT_OK;
}

enum weft_rc weft_scan_rules_read(const char *text,
                                  struct weft_scanner_setting setting[WEFT_SCANNER_COUNT],
                                  struct weft_err *err)
{
    struct slice rest = slice_of(text ? text : "");
    weft_scanner_defaults(setting);
    while (rest.size > 0) {
        struct slice rule = cut(&rest, " \t;");
        if (rule.size == 0)
            continue;
        enum weft_rc rc = read_rule(rule, setting, err);
        if (rc)
            return rc;
    }
    return WEFT_OK;
}
