/* SPDX-License-Identifier: Apache-2.0 */

#include "net/wait/notice_text.h"

#include "engine/tx/commit_effects.h"

#include <stdlib.h>
#include <string.h>

/* True when digits up to `end` are a number from 1 to `most`. */
static bool read_number(const char *text, const char *end, uint32_t most, uint32_t *ret_number)
{
    uint64_t number = 0;
    if (text == end)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return false;
        number = number * 10 + (uint64_t)(*text - '0');
        if (number > most)
            return false;
    }
    *ret_number = (uint32_t)number;
    return number > 0;
}

static void read_queue(const char *word, const char *end, struct weft_notice *notice)
{
    const char *colon = memchr(word, ':', (size_t)(end - word));
    uint32_t queue, count;
    if (colon && read_number(word, colon, INT32_MAX, &queue) &&
        read_number(colon + 1, end, UINT32_MAX, &count) && notice->queues < WEFT_NOTICE_QUEUES_MAX)
        notice->queue[notice->queues++] = (struct weft_woken){(int32_t)queue, count};
}

static void read_worker(const char *word, const char *end, struct weft_notice *notice)
{
    uint32_t worker;
    if (read_number(word, end, INT32_MAX, &worker) && notice->workers < WEFT_NOTICE_WORKERS_MAX)
        notice->worker[notice->workers++] = (int32_t)worker;
}

void weft_notice_read(const char *text, struct weft_notice *ret_notice)
{
    ret_notice->everything = ret_notice->inbox = false;
    ret_notice->queues = ret_notice->workers = 0;
    while (*text) {
        const char *end = strchrnul(text, ' ');
        size_t size = (size_t)(end - text);
        if (size == 1 && *text == '*')
            ret_notice->everything = true;
        else if (size == strlen("inbox") && memcmp(text, "inbox", size) == 0)
            ret_notice->inbox = true;
        else if (*text == 'w')
            read_worker(text + 1, end, ret_notice);
        else
            read_queue(text, end, ret_notice);
        text = *end ? end + 1 : end;
    }
}
