/* SPDX-License-Identifier: Apache-2.0 */

#include "core/sse.h"

#include <string.h>

enum { FIELD_MAX = 64 }; /* the longest name of a field that matters, with some room */

void weft_sse_init(struct weft_sse *sse, size_t event_max)
{
    *sse = (struct weft_sse){0};
    weft_buf_init(&sse->line, event_max + FIELD_MAX);
    weft_buf_init(&sse->name, event_max);
    weft_buf_init(&sse->data, event_max);
}

void weft_sse_done(struct weft_sse *sse)
{
    weft_buf_done(&sse->line);
    weft_buf_done(&sse->name);
    weft_buf_done(&sse->data);
}

static bool is_field(const char *field, size_t size, const char *name)
{
    return size == strlen(name) && memcmp(field, name, size) == 0;
}

static void begin_event(struct weft_sse *sse)
{
    weft_buf_clear(&sse->name);
    weft_buf_clear(&sse->data);
    sse->has_data = sse->given = false;
}

/* A line that is not empty. */
static void take_field(struct weft_sse *sse, const char *line, size_t size)
{
    const char *colon = memchr(line, ':', size), *end = line + size;
    size_t name = (size_t)((colon ? colon : end) - line);
    const char *value = colon ? colon + 1 : end;
    if (value < end && *value == ' ')
        value++;
    if (is_field(line, name, "data")) {
        if (sse->has_data)
            weft_buf_add_char(&sse->data, '\n');
        weft_buf_add(&sse->data, value, (size_t)(end - value));
        sse->has_data = true;
    } else if (is_field(line, name, "event")) {
        weft_buf_clear(&sse->name);
        weft_buf_add(&sse->name, value, (size_t)(end - value));
    }
}

/* The end of a line. True: it is the end of an event with data. */
static bool end_line(struct weft_sse *sse)
{
    static const char mark[] = "\xef\xbb\xbf";
    const char *line = sse->line.data;
    size_t size = sse->line.size;
    if (!sse->begun && size >= strlen(mark) && memcmp(line, mark, strlen(mark)) == 0) {
        line += strlen(mark);
        size -= strlen(mark);
    }
    sse->begun = true;
    bool found = size == 0 && sse->has_data;
    if (size > 0)
        take_field(sse, line, size);
    else if (!found)
        begin_event(sse);
    weft_buf_clear(&sse->line);
    sse->given = found;
    return found;
}

static struct weft_sse_event event_of(const struct weft_sse *sse)
{
    return (struct weft_sse_event){
        .name = sse->name.data, .data = sse->data.data, .size = sse->data.size};
}

static enum weft_rc check_size(const struct weft_sse *sse, struct weft_err *err)
{
    if (sse->line.full || sse->name.full || sse->data.full)
        return weft_fail(err, WEFT_TOO_LARGE, "an event of the stream has more than %zu bytes",
                         sse->data.max);
    return WEFT_OK;
}

enum weft_rc weft_sse_read(struct weft_sse *sse, const char **at, const char *end,
                           struct weft_sse_event *ret_event, bool *ret_found, struct weft_err *err)
{
    const char *next = *at;
    bool found = false;
    if (sse->given)
        begin_event(sse);
    if (next < end && sse->after_cr) {
        next += *next == '\n';
        sse->after_cr = false;
    }
    while (next < end && !found) {
        const char *line = next;
        while (next < end && *next != '\n' && *next != '\r')
            next++;
        weft_buf_add(&sse->line, line, (size_t)(next - line));
        if (next < end) {
            bool cr = *next++ == '\r';
            sse->after_cr = cr && next == end; /* its LF may come with the next bytes */
            next += cr && next < end && *next == '\n';
            found = !sse->line.full && end_line(sse);
        }
        enum weft_rc rc = check_size(sse, err);
        if (rc)
            return rc;
    }
    *at = next;
    *ret_found = found;
    if (found)
        *ret_event = event_of(sse);
    return WEFT_OK;
}

enum weft_rc weft_sse_end(struct weft_sse *sse, struct weft_sse_event *ret_event, bool *ret_found,
                          struct weft_err *err)
{
    if (sse->given)
        begin_event(sse);
    if (sse->line.size > 0)
        (void)end_line(sse); /* a line without its end */
    enum weft_rc rc = check_size(sse, err);
    if (rc)
        return rc;
    *ret_found = end_line(sse);
    if (*ret_found)
        *ret_event = event_of(sse);
    return WEFT_OK;
}
