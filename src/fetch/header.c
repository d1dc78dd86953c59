/* SPDX-License-Identifier: Apache-2.0 */

#include "fetch/header.h"

#include <string.h>
#include <strings.h>

/* The value of a header line when it has that name; NULL otherwise. Not NUL-terminated. */
static const char *header_value(const char *line, size_t size, const char *name, size_t *ret_size)
{
    size_t length = strlen(name);
    if (size <= length || strncasecmp(line, name, length) != 0 || line[length] != ':')
        return NULL;
    const char *value = line + length + 1, *end = line + size;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && strchr("\r\n \t", end[-1]))
        end--;
    *ret_size = (size_t)(end - value);
    return value;
}

/* In seconds. A date counts as one second: reading it would need a clock. */
static int64_t read_retry_after(const char *value, size_t size)
{
    enum { DIGITS_MAX = 6 };
    int64_t seconds = 0;
    if (size == 0)
        return -1;
    for (size_t i = 0; i < size; i++) {
        if (value[i] < '0' || value[i] > '9' || i == DIGITS_MAX)
            return WEFT_MS;
        seconds = seconds * 10 + (value[i] - '0');
    }
    return seconds * 1000;
}

static void copy_value(char *ret_text, size_t max, const char *value, size_t size)
{
    size = size < max ? size : max - 1;
    memcpy(ret_text, value, size);
    ret_text[size] = '\0';
}

void weft_fetch_read_header(struct weft_fetch_answer *answer, const char *line, size_t size)
{
    size_t value_size = 0;
    if (size > 5 && memcmp(line, "HTTP/", 5) == 0) {
        answer->retry_after_ms =
            -1; /* a new status line: the lines before belonged to an interim answer */
        answer->request_id[0] = answer->content_type[0] = '\0';
        return;
    }
    const char *value = header_value(line, size, "Retry-After", &value_size);
    if (value)
        answer->retry_after_ms = read_retry_after(value, value_size);
    value = header_value(line, size, "X-Request-Id", &value_size);
    if (value)
        copy_value(answer->request_id, sizeof(answer->request_id), value, value_size);
    value = header_value(line, size, "Content-Type", &value_size);
    if (value)
        copy_value(answer->content_type, sizeof(answer->content_type), value, value_size);
}
