/* SPDX-License-Identifier: Apache-2.0 */

#include "core/multipart.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static enum weft_rc malformed(const char *what, struct weft_err *err)
{
    return weft_fail_field(err, WEFT_INVALID_VALUE, "body", "the multipart body is malformed: %s",
                           what);
}

/* ---- Parameters of headers ------------------------------------------------------------------- */

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t");
}

/* Copies a quoted text or a word to ret_text, which has room for `room`. False: it is none. */
static bool read_value(const char **at, char *ret_text, size_t room)
{
    size_t size = 0;
    bool quoted = **at == '"';
    *at += quoted;
    while (**at && (quoted ? **at != '"' : !strchr("; \t", **at))) {
        if (quoted && **at == '\\' && ((*at)[1] == '"' || (*at)[1] == '\\'))
            (*at)++;
        if (size + 1 >= room)
            return false;
        ret_text[size++] = *(*at)++;
    }
    ret_text[size] = '\0';
    if (quoted && *(*at)++ != '"')
        return false;
    return quoted || size > 0;
}

/* The parameter of a header: `; name=value`. *ret_found false: it is not there. */
static bool read_parameter(const char *header, const char *name, char *ret_text, size_t room,
                           bool *ret_found)
{
    char ignored[WEFT_MULTIPART_HEAD];
    const char *at = header + strcspn(header, ";");
    *ret_found = false;
    while (*at == ';') {
        at = skip_space(at + 1);
        size_t size = strcspn(at, "=; \t");
        bool wanted = strlen(name) == size && strncasecmp(at, name, size) == 0;
        at += size;
        if (*at == '=') {
            at++;
            if (!read_value(&at, wanted ? ret_text : ignored, wanted ? room : sizeof(ignored)))
                return false;
            *ret_found |= wanted;
        }
        at = skip_space(at);
    }
    return *at == '\0';
}

/* ---- The beginning --------------------------------------------------------------------------- */

static enum weft_rc wrong_type(struct weft_err *err)
{
    return weft_hint(err,
                     weft_fail_field(err, WEFT_UNSUPPORTED_MEDIA_TYPE, "Content-Type",
                                     "this call takes multipart/form-data with a boundary"),
                     "send the file as a form does: curl -F purpose=batch -F file=@batch.jsonl");
}

enum weft_rc weft_multipart_init(struct weft_multipart *multipart, const char *content_type,
                                 const struct weft_multipart_ops *ops, void *context,
                                 struct weft_err *err)
{
    static const char type[] = "multipart/form-data";
    char boundary[WEFT_MULTIPART_BOUNDARY + 1];
    bool found = false;
    *multipart = (struct weft_multipart){.ops = ops, .context = context};
    if (!content_type || strncasecmp(content_type, type, sizeof(type) - 1) != 0 ||
        !strchr("; \t", content_type[sizeof(type) - 1]) ||
        !read_parameter(content_type, "boundary", boundary, sizeof(boundary), &found) || !found ||
        !*boundary || strpbrk(boundary, "\r\n"))
        return wrong_type(err);
    multipart->mark_size =
        (size_t)snprintf(multipart->mark, sizeof(multipart->mark), "\r\n--%s", boundary);
    multipart->matched = 2; /* the first boundary may begin the body */
    weft_buf_init(&multipart->head, WEFT_MULTIPART_HEAD);
    return WEFT_OK;
}

void weft_multipart_done(struct weft_multipart *multipart)
{
    weft_buf_done(&multipart->head);
}

/* ---- Heads of parts -------------------------------------------------------------------------- */

/* Finds the value of Content-Disposition and ends it with a NUL; NULL: there is none. */
static char *find_disposition(char *head)
{
    static const char name[] = "content-disposition:";
    for (char *line = head, *next; line; line = next) {
        next = strstr(line, "\r\n");
        if (next) {
            *next = '\0';
            next += 2;
        }
        if (strncasecmp(line, name, sizeof(name) - 1) == 0)
            return line + sizeof(name) - 1;
    }
    return NULL;
}

static enum weft_rc begin_part(struct weft_multipart *multipart, struct weft_err *err)
{
    char name[WEFT_MULTIPART_TEXT], filename[WEFT_MULTIPART_TEXT];
    bool named = false, is_file = false;
    struct weft_buf *head = &multipart->head;
    if (memchr(head->data, '\0', head->size))
        return malformed("a header holds a NUL character", err);
    const char *value = find_disposition(head->data);
    if (!value || strncasecmp(skip_space(value), "form-data", 9) != 0 ||
        !read_parameter(value, "name", name, sizeof(name), &named) || !named ||
        !read_parameter(value, "filename", filename, sizeof(filename), &is_file))
        return malformed("a part has no Content-Disposition with the name of its field", err);
    enum weft_rc rc =
        multipart->ops->begin(multipart->context, name, is_file ? filename : NULL, err);
    weft_buf_clear(head);
    multipart->place = WEFT_MULTIPART_IN_DATA;
    multipart->matched = 0;
    return rc;
}

/* Reads up to the empty line behind the headers; returns what is left. */
static enum weft_rc read_head(struct weft_multipart *multipart, const char **at, const char *end,
                              struct weft_err *err)
{
    struct weft_buf *head = &multipart->head;
    while (*at < end) {
        weft_buf_add_char(head, *(*at)++);
        if (head->full)
            return malformed("the headers of a part are too long", err);
        if (head->size == 2 && memcmp(head->data, "\r\n", 2) == 0)
            return malformed("a part has no headers", err);
        if (head->size >= 4 && memcmp(head->data + head->size - 4, "\r\n\r\n", 4) == 0)
            return begin_part(multipart, err);
    }
    return WEFT_OK;
}

/* ---- Data and boundaries --------------------------------------------------------------------- */

static enum weft_rc give(const struct weft_multipart *multipart, const char *data, size_t size,
                         struct weft_err *err)
{
    bool wanted = size > 0 && multipart->place == WEFT_MULTIPART_IN_DATA;
    return wanted ? multipart->ops->data(multipart->context, data, size, err) : WEFT_OK;
}

static enum weft_rc meet_boundary(struct weft_multipart *multipart, struct weft_err *err)
{
    bool ends = multipart->place == WEFT_MULTIPART_IN_DATA;
    multipart->place = WEFT_MULTIPART_BOUNDED;
    multipart->behind_size = 0;
    return ends ? multipart->ops->end(multipart->context, err) : WEFT_OK;
}

/*
 * Looks for the mark, whose CR stands only at its beginning: after a mismatch no part of what was
 * matched can begin it again.
 */
static enum weft_rc read_data(struct weft_multipart *multipart, const char **at, const char *end,
                              struct weft_err *err)
{
    while (*at < end) {
        if (multipart->matched == 0) {
            const char *cr = memchr(*at, '\r', (size_t)(end - *at));
            const char *stop = cr ? cr : end;
            enum weft_rc rc = give(multipart, *at, (size_t)(stop - *at), err);
            *at = stop;
            if (rc || stop == end)
                return rc;
        }
        if (**at == multipart->mark[multipart->matched]) {
            (*at)++;
            if (++multipart->matched == multipart->mark_size)
                return meet_boundary(multipart, err);
            continue;
        }
        size_t matched = multipart->matched;
        multipart->matched = 0;
        enum weft_rc rc = give(multipart, multipart->mark, matched, err);
        if (rc)
            return rc;
    }
    return WEFT_OK;
}

/* "--" ends the body; white space and the end of the line begin a part. */
static enum weft_rc read_behind(struct weft_multipart *multipart, const char **at, const char *end,
                                struct weft_err *err)
{
    while (*at < end) {
        char c = *(*at)++;
        if (multipart->behind_size == 0 && (c == ' ' || c == '\t'))
            continue;
        multipart->behind[multipart->behind_size++] = c;
        if (multipart->behind_size < 2)
            continue;
        if (memcmp(multipart->behind, "--", 2) == 0)
            multipart->place = WEFT_MULTIPART_FINISHED;
        else if (memcmp(multipart->behind, "\r\n", 2) == 0)
            multipart->place = WEFT_MULTIPART_IN_HEAD;
        else
            return malformed("a boundary is followed by other text", err);
        return WEFT_OK;
    }
    return WEFT_OK;
}

enum weft_rc weft_multipart_read(struct weft_multipart *multipart, const char *data, size_t size,
                                 struct weft_err *err)
{
    const char *at = data, *end = data + size;
    enum weft_rc rc = WEFT_OK;
    while (!rc && at < end) {
        switch (multipart->place) {
        case WEFT_MULTIPART_BEFORE:
        case WEFT_MULTIPART_IN_DATA:
            rc = read_data(multipart, &at, end, err);
            break;
        case WEFT_MULTIPART_BOUNDED:
            rc = read_behind(multipart, &at, end, err);
            break;
        case WEFT_MULTIPART_IN_HEAD:
            rc = read_head(multipart, &at, end, err);
            break;
        case WEFT_MULTIPART_FINISHED:
            at = end;
            break;
        }
    }
    return rc;
}

enum weft_rc weft_multipart_end(const struct weft_multipart *multipart, struct weft_err *err)
{
    return multipart->place == WEFT_MULTIPART_FINISHED
               ? WEFT_OK
               : malformed("it ends before its last boundary", err);
}
