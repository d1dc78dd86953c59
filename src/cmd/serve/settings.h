/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CMD_SERVE_SETTINGS_H
#define WEFT_CMD_SERVE_SETTINGS_H

/*
 * The settings of `weft serve`: a flag beats the environment, which beats the file, which beats the
 * default. What is not known or not allowed is an error that names where it stands.
 */

#include "cmd/cli/cli.h"
#include "net/server.h"

enum weft_setting_kind {
    WEFT_SETTING_TEXT,
    WEFT_SETTING_LIST,    /* the same; a flag that is repeated adds to it */
    WEFT_SETTING_WORD,    /* one of `complete` */
    WEFT_SETTING_NUMBER,  /* uint32_t */
    WEFT_SETTING_SECONDS, /* uint32_t, typed as a duration */
    WEFT_SETTING_MILLIS,  /* the same, in milliseconds */
    WEFT_SETTING_BYTES,   /* uint64_t, typed as a size */
    WEFT_SETTING_SWITCH,  /* bool: yes, no, true, false, on, off, 1, 0 */
};

struct weft_setting {
    const char *name; /* in the file */
    const char *flag;
    const char *env;
    enum weft_setting_kind kind;
    size_t offset; /* in struct weft_serve_settings */
    const char *normally;
    int64_t min, max; /* of a text: min 1 means that it must not be empty */
    const char *words;
    const char *about;
};
extern const struct weft_setting weft_settings[];
extern const size_t weft_setting_count;

/* The flags: --hello, which is for `weft serve` alone, --config, and one for each setting. */
extern const struct weft_option weft_serve_options[];

struct weft_serve_settings {
    struct weft_server_config server;
    const char *scanners;                                    /* as typed: see below */
    const char *scan;                                        /* the same */
    uint32_t purge_batch, purge_pause_ms;                    /* of the scanner `purge` */
    struct weft_scanner_setting scanner[WEFT_SCANNER_COUNT]; /* what they say; server has it too */
    const char *executor;                                    /* server has it too, as the next */
    const char *http_urls;
    const char *log_level;
    const char *log_format;
    uint32_t store_wait_s; /* how long to wait at the start for a store that is away */
};

/* A value and where it came from. */
struct weft_setting_value {
    const char *text; /* as it was written */
    const char *from; /* "flag", "environment", "weft.conf:3", "default" */
};

/*
 * Reads all of them. ret_value has weft_setting_count, or is NULL; texts are in the arena, or the
 * environment's and the command line's. ret_settings must stay where it is: a part of it points to
 * another. On failure the error has been printed.
 */
WEFT_MUST_CHECK bool weft_settings_read(const struct weft_cli *cli, struct weft_arena *arena,
                                        struct weft_setting_value *ret_value,
                                        struct weft_serve_settings *ret_settings);

/* ---- Scanners -------------------------------------------------------------------------------- */

/*
 * The settings of scanners as people type them.
 *
 * Which run: "all", "none", or names with commas between them. How they run: rules with spaces or
 * semicolons between them, each "NAME:key=value,key=value"; NAME may be *; a later rule beats an
 * earlier one. Keys:
 *
 *   interval=30s        the longest time between two looks; 0 is off
 *   batch=500           rows of one transaction
 *   namespace=acme      only work of that namespace; * is all
 *   partitions=0-127    only ids of these partitions
 *
 * A rule for * says only what a scanner can do: a batch above its limit becomes the limit, and
 * partitions do not apply to scanners that cannot be limited to them. A rule that names a scanner
 * must fit it.
 */

/* A text may be NULL: all scanners, with their defaults. WEFT_INVALID_VALUE: the text is wrong. */
WEFT_MUST_CHECK enum weft_rc
weft_scan_list_read(const char *text, bool ret_runs[WEFT_SCANNER_COUNT], struct weft_err *err);
WEFT_MUST_CHECK enum weft_rc
weft_scan_rules_read(const char *text, struct weft_scanner_setting setting[WEFT_SCANNER_COUNT],
                     struct weft_err *err);

#endif
