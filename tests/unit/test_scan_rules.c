/* SPDX-License-Identifier: Apache-2.0 */

/* The settings of scanners as people type them. */

#include "tap.h"

#include "cmd/serve/settings.h"
#include "engine/scan/pass.h"
#include "net/server.h"
#include "weft/admin.h"

#include <stdlib.h>

#define EXPIRY   WEFT_SCANNER_LEASE_EXPIRY
#define PROMOTER WEFT_SCANNER_DELAYED_PROMOTER
#define WORKERS  WEFT_SCANNER_WORKER_EXPIRY

static void test_lists(void)
{
    static const struct {
        const char *text;
        bool expiry, promoter;
    } row[] = {
        {NULL, true, true},
        {"all", true, true},
        {"none", false, false},
        {"lease_expiry", true, false},
        {"delayed_promoter,lease_expiry", true, true},
        {"delayed_promoter, intake", false, true},
        {",,delayed_promoter,", false, true},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        bool runs[WEFT_SCANNER_COUNT];
        enum weft_rc rc = weft_scan_list_read(row[i].text, runs, NULL);
        ok(!rc && runs[EXPIRY] == row[i].expiry && runs[PROMOTER] == row[i].promoter, "'%s'",
           row[i].text ? row[i].text : "nothing");
    }
    static const char *const bad[] = {"", "lease", "lease_expiry,none", "ALL", "all,intake", "*"};
    for (size_t i = 0; i < WEFT_LEN(bad); i++) {
        bool runs[WEFT_SCANNER_COUNT];
        struct weft_err err = {0};
        is_int(weft_scan_list_read(bad[i], runs, &err), WEFT_INVALID_VALUE, "'%s'", bad[i]);
    }
    bool runs[WEFT_SCANNER_COUNT];
    struct weft_err err = {0};
    is_int(weft_scan_list_read("intake,bogus", runs, &err), WEFT_INVALID_VALUE, "an unknown one");
    ok(strstr(err.text, "'bogus'") && strstr(err.text, "lease_expiry"), "tells the known ones: %s",
       err.text);
}

static void test_rules(void)
{
    struct weft_scanner_setting s[WEFT_SCANNER_COUNT];
    is_int(weft_scan_rules_read(NULL, s, NULL), WEFT_OK, "no rules");
    is_int(s[EXPIRY].interval_us, weft_scanner_info(EXPIRY)->interval_us, "the table's interval");
    is_int(s[EXPIRY].partition_last, 255, "all partitions");
    is_int(weft_scan_rules_read(" ;; *:interval=5s,namespace=acme ;lease_expiry:batch=20,interval="
                                "500ms,partitions=0-127  delayed_promoter:namespace=* ",
                                s, NULL),
           WEFT_OK, "several");
    is_int(s[EXPIRY].interval_us, 500 * WEFT_MS, "the later rule wins");
    is_int(s[EXPIRY].batch, 20, "a batch");
    is_int(s[EXPIRY].partition_last, 127, "a range");
    is_str(s[EXPIRY].ns, "acme", "a setting that the later rule leaves out stays");
    is_str(s[PROMOTER].ns, "", "all namespaces again");
    is_int(s[PROMOTER].interval_us, 5 * WEFT_SECOND, "* sets every scanner");
    is_int(weft_scan_rules_read("lease_expiry:interval=1m *:interval=0", s, NULL), WEFT_OK, "off");
    ok(s[EXPIRY].interval_us == 0 && s[WORKERS].interval_us == 0, "* switches every scanner off");
    is_int(weft_scan_rules_read("*:batch=4000000000,partitions=3", s, NULL), WEFT_OK,
           "a rule for all sets each scanner as far as it can be set");
    is_int(s[EXPIRY].batch, weft_scanner_info(EXPIRY)->batch_max,
           "the batch is at most the limit of the scanner");
    ok(s[EXPIRY].partition_first == 3 && s[EXPIRY].partition_last == 3, "one partition");
    is_int(s[WORKERS].partition_last, 255, "a scanner without partitions keeps the full range");
}

static void test_refused(void)
{
    static const struct {
        const char *text, *tells;
    } row[] = {
        {"lease_expiry", "'lease_expiry' must be NAME:key=value"},
        {"lease_expiry:", "must be key=value"},
        {":interval=1s", "there is no scanner ''"},
        {"lease:interval=1s", "there is no scanner 'lease'"},
        {"**:interval=1s", "there is no scanner '**'"},
        {"*:interval", "'interval' must be key=value"},
        {"*:interval=1s,,batch=1", "'' must be key=value"},
        {"*:speed=1", "there is no key 'speed'"},
        {"*:=1", "there is no key ''"},
        {"*:interval=", "interval is ''"},
        {"*:interval=-1s", "interval is '-1s'"},
        {"*:interval=9ms", "interval is '9ms'"},
        {"*:interval=25h", "interval is '25h'"},
        {"*:interval=99999999999999999999s", "interval is '9999"},
        {"*:interval=1s=2s", "interval is '1s=2s'"},
        {"*:batch=0", "batch is '0'"},
        {"*:batch=-3", "batch is '-3'"},
        {"*:batch=4294967296", "batch is '4294967296'"},
        {"lease_expiry:batch=1001", "at most 1000"},
        {"*:namespace=", "namespace is ''"},
        {"*:namespace=a\x01", "which is no name"},
        {"*:partitions=", "partitions is ''"},
        {"*:partitions=-", "partitions is '-'"},
        {"*:partitions=5-", "partitions is '5-'"},
        {"*:partitions=-5", "partitions is '-5'"},
        {"*:partitions=7-3", "partitions is '7-3'"},
        {"*:partitions=0-256", "partitions is '0-256'"},
        {"*:partitions=1-2-3", "partitions is '1-2-3'"},
        {"*:partitions=0-0", "cannot stand alone"},
        {"*:partitions=00000000001-5", "partitions is '000"},
        {"worker_expiry:partitions=1-5", "worker_expiry cannot be limited"},
        {"*:interval=5s bogus:interval=1", "'bogus'"},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        struct weft_scanner_setting s[WEFT_SCANNER_COUNT];
        struct weft_err err = {0};
        enum weft_rc rc = weft_scan_rules_read(row[i].text, s, &err);
        ok(rc == WEFT_INVALID_VALUE && strstr(err.text, row[i].tells), "'%s': %s", row[i].text,
           err.text);
    }
}

/* Long and random texts are refused or read; nothing else happens. */
static void test_hostile(void)
{
    enum { LONG = 1 << 20, TRIES = 20000, PIECES = 12 };
    static const char *const piece[] = {
        "*",   ":",      "=",  ",",        ";",         " ",
        "0",   "-",      "1s", "batch",    "\xff",      "lease_expiry",
        "999", "intake", "\t", "interval", "namespace", "partitions"};
    struct weft_scanner_setting s[WEFT_SCANNER_COUNT];
    struct weft_err err = {0};
    char *text = malloc(LONG + 1);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    is_int(weft_scan_rules_read(text, s, &err), WEFT_INVALID_VALUE, "a long name");
    memcpy(text, "*:namespace=", 12);
    is_int(weft_scan_rules_read(text, s, &err), WEFT_INVALID_VALUE, "a long value");
    memset(text, ';', LONG);
    is_int(weft_scan_rules_read(text, s, &err), WEFT_OK, "a long nothing");
    bool sane = true;
    for (uint32_t t = 0, seed = 7; t < TRIES; t++) {
        int size = 0;
        for (int p = 0; p < PIECES; p++) {
            seed = seed * 1664525u + 1013904223u;
            size += snprintf(text + size, LONG - (size_t)size, "%s",
                             piece[(seed >> 16) % WEFT_LEN(piece)]);
        }
        if (weft_scan_rules_read(text, s, &err) == WEFT_OK)
            for (size_t i = 0; i < WEFT_SCANNER_COUNT; i++)
                sane = sane && s[i].batch >= 1 && s[i].partition_first <= s[i].partition_last &&
                       s[i].interval_us >= 0 && strlen(s[i].ns) <= 128;
    }
    ok(sane, "whatever was read is within its limits");
    free(text);
}

int main(void)
{
    test_lists();
    test_rules();
    test_refused();
    test_hostile();
    return tap_done();
}
