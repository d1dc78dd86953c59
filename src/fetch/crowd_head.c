/* SPDX-License-Identifier: Apache-2.0 */

#include "fetch/crowd_head.h"

#include <string.h>
#include <strings.h>

enum { LENGTH_DIGITS_MAX = 18 };

void weft_head_init(struct weft_head *head)
{
    *head = (struct weft_head){0};
    weft_buf_init(&head->text, (size_t)2 * WEFT_HEAD_BYTES_MAX);
}

void weft_head_done(struct weft_head *head)
{
    weft_buf_done(&head->text);
}

void weft_head_again(struct weft_head *head)
{
    weft_buf_clear(&head->text);
    head->count = 0;
    head->ended = false;
}

void weft_head_clear(struct weft_head *head)
{
    weft_head_again(head);
    head->lines = head->bytes = 0;
    head->wrong = NULL;
}

size_t weft_head_list(const struct weft_head *head, struct weft_crowd_header *ret_header)
{
    for (size_t i = 0; i < head->count; i++)
        ret_header[i] = (struct weft_crowd_header){.name = head->text.data + head->name[i],
                                                   .value = head->text.data + head->value[i]};
    return head->count;
}

const char *weft_head_find(const struct weft_head *head, const char *name)
{
    for (size_t i = 0; i < head->count; i++)
        if (strcasecmp(head->text.data + head->name[i], name) == 0)
            return head->text.data + head->value[i];
    return NULL;
}

static enum weft_head_step refuse(struct weft_head *head, const char *wrong)
{
    head->wrong = wrong;
    return WEFT_HEAD_BAD;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The part of a line without blanks around it. */
static const char *trim(const char *text, size_t *size)
{
    for (; *size > 0 && is_blank(*text); text++)
        (*size)--;
    while (*size > 0 && is_blank(text[*size - 1]))
        (*size)--;
    return text;
}

/* RFC 9112, 5.2: a line that begins with a blank continues the one before. */
static enum weft_head_step add_folded(struct weft_head *head, const char *line, size_t size)
{
    if (head->count == 0)
        return refuse(head, "the head of the answer begins with a blank");
    line = trim(line, &size);
    head->text.data[head->text.size - 1] = ' ';
    weft_buf_add(&head->text, line, size);
    weft_buf_add_char(&head->text, '\0');
    return WEFT_HEAD_MORE;
}

/* RFC 9110, 8.6: a length is digits, and there are no two. */
static bool is_good_length(const struct weft_head *head, const char *value)
{
    size_t digits = strspn(value, "0123456789");
    const char *before = weft_head_find(head, "Content-Length");
    return digits > 0 && digits <= LENGTH_DIGITS_MAX && value[digits] == '\0' &&
           (!before || strcmp(before, value) == 0);
}

static enum weft_head_step add_line(struct weft_head *head, const char *line, size_t size)
{
    const char *colon = memchr(line, ':', size);
    size_t name_size = colon ? (size_t)(colon - line) : 0;
    if (name_size == 0 || is_blank(colon[-1]))
        return refuse(head, "a header line of the answer has no name");
    size_t value_size = size - name_size - 1;
    const char *value = trim(colon + 1, &value_size);
    struct weft_buf *text = &head->text;
    size_t name_at = text->size, value_at = name_at + name_size + 1;
    weft_buf_add(text, line, name_size);
    weft_buf_add_char(text, '\0');
    weft_buf_add(text, value, value_size);
    weft_buf_add_char(text, '\0');
    if (strcasecmp(text->data + name_at, "Content-Length") == 0 &&
        !is_good_length(head, text->data + value_at))
        return refuse(head, "the answer says its length in a way that cannot be relied on");
    head->name[head->count] = (uint32_t)name_at;
    head->value[head->count] = (uint32_t)value_at;
    head->count++;
    return WEFT_HEAD_MORE;
}

enum weft_head_step weft_head_line(struct weft_head *head, const char *line, size_t size)
{
    head->bytes += size;
    while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r'))
        size--;
    bool status = !head->ended && head->count == 0 && size > 5 && memcmp(line, "HTTP/", 5) == 0;
    head->lines += size > 0 && !status;
    if (head->bytes > WEFT_HEAD_BYTES_MAX || head->lines > WEFT_HEAD_LINES_MAX)
        return refuse(head, "the head of the answer is too long");
    if (memchr(line, '\0', size))
        return refuse(head, "the head of the answer has a NUL byte");
    if (head->ended || status)
        return WEFT_HEAD_MORE;
    if (size == 0) {
        head->ended = true;
        return WEFT_HEAD_END;
    }
    return is_blank(*line) ? add_folded(head, line, size) : add_line(head, line, size);
}
