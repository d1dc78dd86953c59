/* SPDX-License-Identifier: Apache-2.0 */

/* The text of notices between replicas, also of replicas that say more than this one knows. */

#include "net/wait/notice.h"
#include "tap.h"

#include <string.h>

static const struct {
    const char *name, *text;
    size_t queues, workers;
    bool everything, inbox;
} rows[] = {
    {"nothing", "", 0, 0, false, false},
    {"queues and workers", "7:3 8:1 w5 ", 2, 1, false, false},
    {"everything", "*", 0, 0, true, false},
    {"inbox", "inbox", 0, 0, false, true},
    {"an unknown word before a queue", "x9:topic 7:3 ", 1, 0, false, false},
    {"an unknown word between queues and workers", "7:3 e77 8:1 t:9:1 w5 ", 2, 1, false, false},
    {"unknown words at the end", "7:3 w5 e1 e2", 1, 1, false, false},
    {"a queue after the workers", "w5 7:3 ", 1, 1, false, false},
    {"numbers that are none", "7:x :3 7: 0:3 7:0 w w0 wx -7:3 7:-3 +1:1 ", 0, 0, false, false},
    {"numbers that are too large", "2147483648:1 7:4294967296 w2147483648 99999999999999999999:1 ",
     0, 0, false, false},
    {"the largest numbers", "2147483647:4294967295 w2147483647 ", 1, 1, false, false},
    {"everything and a queue", "* 7:3 ", 1, 0, true, false},
    {"words that only begin so", "inboxes ** *x ", 0, 0, false, false},
    {"many spaces", "  7:3   w5  ", 1, 1, false, false},
};

static void test_rows(void)
{
    static struct weft_notice notice;
    for (size_t i = 0; i < WEFT_LEN(rows); i++) {
        weft_notice_read(rows[i].text, &notice);
        ok(notice.queues == rows[i].queues && notice.workers == rows[i].workers &&
               notice.everything == rows[i].everything && notice.inbox == rows[i].inbox,
           "%s: %zu queues, %zu workers", rows[i].name, rows[i].queues, rows[i].workers);
        if (rows[i].queues && strstr(rows[i].text, "7:3"))
            ok(notice.queue[0].queue == 7 && notice.queue[0].count == 3, "%s: queue 7 with 3",
               rows[i].name);
        if (rows[i].workers && strstr(rows[i].text, "w5"))
            is_int(notice.worker[0], 5, "%s: worker 5", rows[i].name);
    }
}

static void test_full(void)
{
    static struct weft_notice notice;
    static char text[2 * WEFT_NOTICE_QUEUES_MAX * 8];
    size_t size = 0;
    for (int i = 0; i < WEFT_NOTICE_QUEUES_MAX + 9; i++)
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%d:1 w%d ", i + 1, i + 1);
    weft_notice_read(text, &notice);
    is_int(notice.queues, WEFT_NOTICE_QUEUES_MAX, "queues beyond the limit are left out");
    is_int(notice.workers, WEFT_NOTICE_WORKERS_MAX, "workers beyond the limit are left out");
}

int main(void)
{
    test_rows();
    test_full();
    return tap_done();
}
