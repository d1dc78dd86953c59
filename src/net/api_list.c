/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /v1/executions: a page as JSON, or everything as lines of JSON. The lines are read and sent
 * page by page, each with an arena of its own, so a list of any length takes the memory of a page.
 */

#include "net/api.h"

#include "base/err.h"
#include "base/id.h"
#include "base/moment.h"
#include "core/cursor.h"
#include "core/spec.h"
#include "wire/wire.h"

#include <string.h>

enum {
    STREAM_PAGE = 500,       /* executions read at once for a stream */
    STREAM_EMPTY_PAGES = 10, /* that may follow each other before a sign of life is sent */
};

struct list_state {
    struct weft_listing listing;
    bool lines;
    char after[WEFT_CURSOR_TEXT_MAX]; /* of a stream: where the next page begins */
};

static enum weft_rc read_tag(struct weft_ask *ask, struct weft_filter *filter, struct weft_err *err)
{
    const char *text = weft_ask_query(ask, "tag");
    if (!text)
        return WEFT_OK;
    const char *colon = strchr(text, ':');
    if (!colon || colon == text)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "tag", "tag must look like key:value");
    struct weft_tag *tag = weft_new(ask->arena, struct weft_tag);
    tag->key = weft_arena_printf(ask->arena, "%.*s", (int)(colon - text), text);
    tag->value = colon + 1;
    filter->tag = tag;
    const char *needle;
    enum weft_rc rc = weft_tag_needle(tag, ask->arena, &needle, err);
    if (rc)
        err->field = "tag"; /* as it is called here */
    return rc;
}

static enum weft_rc read_moments(struct weft_ask *ask, struct weft_filter *filter,
                                 struct weft_err *err)
{
    const struct {
        const char *name;
        weft_usec *moment_us;
    } row[] = {
        {"created_since", &filter->created_since_us},
        {"created_until", &filter->created_until_us},
        {"finished_since", &filter->finished_since_us},
        {"finished_until", &filter->finished_until_us},
    };
    for (size_t i = 0; i < WEFT_LEN(row); i++) {
        const char *text = weft_ask_query(ask, row[i].name);
        if (text && !weft_moment_parse(text, strlen(text), row[i].moment_us)) {
            (void)weft_fail_field(err, WEFT_INVALID_VALUE, row[i].name,
                                  "%s must be a moment such as 2031-01-31T12:00:00Z", row[i].name);
            err->hint = "a + of an offset must be written %2B in a query";
            return WEFT_INVALID_VALUE;
        }
    }
    return WEFT_OK;
}

static enum weft_rc read_filter(struct weft_ask *ask, struct weft_filter *ret_filter,
                                struct weft_err *err)
{
    *ret_filter = (struct weft_filter){
        .ns = ask->ns,
        .lane = weft_ask_query(ask, "lane"),
        .kind = weft_ask_query(ask, "kind"),
        .tenant = weft_ask_query(ask, "tenant"),
        .key = weft_ask_query(ask, "key"),
        .error_class = weft_ask_query(ask, "error_class"),
        .worker = weft_ask_query(ask, "worker"),
        .id = weft_ask_query(ask, "id"),
    };
    if (ret_filter->key && !*ret_filter->key)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "key", "key is empty");
    const char *state = weft_ask_query(ask, "state");
    if (state) {
        ret_filter->state = weft_state_parse(state);
        if (ret_filter->state == WEFT_STATE_NONE)
            return weft_fail_field(err, WEFT_INVALID_VALUE, "state", "there is no such state");
    }
    const char *flow = weft_ask_query(ask, "flow");
    if (flow && (!weft_id_parse(flow, strlen(flow), &ret_filter->flow) ||
                 weft_id_is_zero(&ret_filter->flow))) /* which would mean any */
        return weft_fail_field(err, WEFT_INVALID_VALUE, "flow", "flow must be the id of a flow");
    enum weft_rc rc = read_moments(ask, ret_filter, err);
    return rc ? rc : read_tag(ask, ret_filter, err);
}

enum weft_rc weft_executions_read(struct weft_ask *ask, struct weft_err *err)
{
    struct list_state *list = weft_new(ask->arena, struct list_state);
    struct weft_paging paging = {0};
    enum weft_rc rc = read_filter(ask, &list->listing.filter, err);
    if (!rc)
        rc = weft_api_paging(ask, &paging, err);
    list->lines = weft_ask_wants_lines(ask);
    if (!rc && list->lines && weft_ask_query(ask, "limit"))
        rc = weft_fail_field(err, WEFT_INVALID_VALUE, "limit",
                             "lines are sent to the end: they have no limit");
    list->listing.limit = paging.limit;
    list->listing.after = paging.after;
    ask->state = list;
    return rc;
}

/* ---- A page ---------------------------------------------------------------------------------- */

static enum weft_rc reply_page(struct weft_ask *ask, const struct list_state *list,
                               struct weft_err *err)
{
    struct weft_read_page page;
    enum weft_rc rc =
        weft_engine_list(weft_server_engine(ask->server), &list->listing, ask->arena, &page, err);
    if (rc)
        return rc;
    struct weft_json_writer out;
    weft_reply_json(ask, 200, &out);
    weft_json_begin_object(&out);
    weft_json_key(&out, "items");
    weft_json_begin_array(&out);
    for (size_t i = 0; i < page.count; i++)
        weft_wire_write(&weft_wire_execution, &page.item[i], &out);
    weft_json_end_array(&out);
    weft_json_key(&out, "next");
    weft_json_put_text(&out, page.next);
    if (page.looked_to_us) {
        weft_json_key(&out, "looked_to");
        weft_wire_put_moment(&out, page.looked_to_us);
    }
    weft_json_end_object(&out);
    return WEFT_OK;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Appends one page as lines and moves the cursor; ret_last: there is no page after it. */
static enum weft_rc add_page(struct weft_ask *ask, struct list_state *list, struct weft_buf *out,
                             bool *ret_last, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_read_page page;
    enum weft_rc rc =
        weft_engine_list(weft_server_engine(ask->server), &list->listing, arena, &page, err);
    if (rc)
        goto out;
    for (size_t i = 0; i < page.count; i++) {
        struct weft_json_writer line;
        weft_json_writer_init(&line, out);
        weft_wire_write(&weft_wire_execution, &page.item[i], &line);
        weft_buf_add_char(out, '\n');
    }
    *ret_last = page.next == NULL;
    if (page.next) {
        size_t size = strnlen(page.next, sizeof(list->after) - 1);
        memcpy(list->after, page.next, size);
        list->after[size] = '\0';
        list->listing.after = list->after;
    }
    if (out->full)
        rc = weft_fail(err, WEFT_TOO_LARGE, "a page of the list does not fit");
out:
    weft_arena_free(arena);
    return rc;
}

static enum weft_rc more_lines(struct weft_ask *ask, struct weft_buf *out, bool *ret_last,
                               struct weft_err *err)
{
    struct list_state *list = ask->state;
    bool last = false;
    for (int pages = 0; pages < STREAM_EMPTY_PAGES && out->size == 0 && !last; pages++) {
        enum weft_rc rc = add_page(ask, list, out, &last, err);
        if (rc)
            return rc;
    }
    /* A filter that fits next to nothing: an empty line keeps the connection alive. */
    if (out->size == 0 && !last)
        weft_buf_add_char(out, '\n');
    *ret_last = last;
    return WEFT_OK;
}

enum weft_rc weft_executions_run(struct weft_ask *ask, struct weft_err *err)
{
    struct list_state *list = ask->state;
    if (!list->lines)
        return reply_page(ask, list, err);
    /* The first page is read before anything is sent, so that a bad cursor is still an error. */
    list->listing.limit = STREAM_PAGE;
    bool last = false;
    weft_reply_bytes(ask, "", 0, WEFT_LINES_TYPE);
    enum weft_rc rc = more_lines(ask, &ask->reply.body, &last, err);
    if (rc)
        ask->reply.status = 0; /* nothing was sent yet: the failure is the answer */
    else if (!last)
        ask->reply.stream = more_lines;
    return rc;
}
