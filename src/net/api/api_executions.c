/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading executions: one, as it is or when it is over, its attempts; and GET /v1/executions, a
 * page as JSON, or everything as lines of JSON. Pages and lines are read and sent in parts of about
 * PART bytes: rows read for a part are freed before it is sent, and the next one is read when it
 * has gone. So a list of any length, read however slowly, takes the memory of a part. A page that
 * fits one part is sent whole, with its length.
 */

#include "net/api/handlers.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/moment.h"
#include "core/cursor.h"
#include "core/spec.h"
#include "core/state.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "net/api/api.h"
#include "net/server.h"
#include "net/wait/waits.h"
#include "weft/weft.h"
#include "wire/wire.h"

#include <string.h>

/* ---- The execution --------------------------------------------------------------------------- */

struct wanted {
    struct weft_id id;
    weft_usec until_us; /* boot time; 0: do not wait */
};

static enum weft_rc describe(struct weft_request *request, const struct weft_id *id,
                             struct weft_arena *arena, struct weft_execution *ret_execution,
                             struct weft_err *err)
{
    enum weft_rc rc = weft_engine_describe(request->server->engine, request->ns, id, 1, arena,
                                           ret_execution, err);
    if (!rc && ret_execution->state == WEFT_STATE_NONE)
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such execution");
    return rc;
}

static enum weft_rc reply_now(struct weft_request *request, const struct weft_id *id,
                              struct weft_err *err)
{
    struct weft_execution execution;
    enum weft_rc rc = describe(request, id, request->arena, &execution, err);
    return weft_api_reply(request, rc, &execution);
}

enum weft_rc weft_execution_read(struct weft_request *request, struct weft_err *err)
{
    struct wanted *wanted = weft_new(request->arena, struct wanted);
    enum weft_rc rc = weft_request_id(request, &wanted->id, err);
    if (!rc)
        rc = weft_api_wait_until(request, &wanted->until_us, err);
    request->state = wanted;
    return rc;
}

enum weft_rc weft_execution_run(struct weft_request *request, struct weft_err *err)
{
    const struct wanted *wanted = request->state;
    struct weft_execution execution;
    if (wanted->until_us == 0)
        return reply_now(request, &wanted->id, err);
    /* A request that waits looks many times: each look has an arena of its own. */
    struct weft_arena *arena = weft_arena_new();
    enum weft_rc rc = describe(request, &wanted->id, arena, &execution, err);
    bool waits = !rc && weft_state_living(execution.state) &&
                 weft_wait_for_end(request, &wanted->id, wanted->until_us, WEFT_WAIT_NOTIFIED);
    if (!rc && !waits)
        weft_reply_wire(request, 200, &weft_wire_execution, &execution);
    weft_arena_free(arena);
    return rc;
}

/* ---- Its attempts ---------------------------------------------------------------------------- */

enum weft_rc weft_attempts_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_attempts_page page;
    enum weft_rc rc = weft_engine_attempts_page(request->server->engine, request->state,
                                                request->arena, &page, err);
    return rc ? rc : weft_api_reply_page(request, &WEFT_API_PAGE(page.item, page.count, page.next));
}

/* ---- The list -------------------------------------------------------------------------------- */

enum {
    STREAM_PAGE = 500,       /* executions read at once for a stream, at most */
    FIRST_READ = 32,         /* executions read at once while their size is not known */
    PART = 256 << 10,        /* bytes sent at once, but for the last execution read */
    STREAM_EMPTY_PAGES = 10, /* that may follow each other before a sign of life is sent */
};

struct list_state {
    struct weft_listing listing;
    bool lines;
    uint32_t left;                    /* of a page: executions still to be sent */
    size_t sent;                      /* executions sent or on their way */
    uint64_t bytes;                   /* that they took */
    char after[WEFT_CURSOR_TEXT_MAX]; /* where the next part begins */
};

static enum weft_rc read_tag(struct weft_request *request, struct weft_filter *filter,
                             struct weft_err *err)
{
    const char *text = weft_request_query(request, "tag");
    if (!text)
        return WEFT_OK;
    const char *colon = strchr(text, ':');
    if (!colon || colon == text)
        return weft_invalid(err, "tag", "tag must look like key:value");
    struct weft_tag *tag = weft_new(request->arena, struct weft_tag);
    tag->key = weft_arena_printf(request->arena, "%.*s", (int)(colon - text), text);
    tag->value = colon + 1;
    filter->tag = tag;
    const char *needle;
    enum weft_rc rc = weft_tag_needle(tag, request->arena, &needle, err);
    if (rc)
        err->field = "tag"; /* as it is called here */
    return rc;
}

static enum weft_rc read_moments(struct weft_request *request, struct weft_filter *filter,
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
        const char *text = weft_request_query(request, row[i].name);
        if (text && !weft_moment_parse(text, strlen(text), row[i].moment_us))
            return weft_hint(err,
                             weft_invalid(err, row[i].name,
                                          "%s must be a moment such as 2031-01-31T12:00:00Z",
                                          row[i].name),
                             "a + of an offset must be written %2B in a query");
    }
    return WEFT_OK;
}

static enum weft_rc read_filter(struct weft_request *request, struct weft_filter *ret_filter,
                                struct weft_err *err)
{
    *ret_filter = (struct weft_filter){
        .ns = request->ns,
        .lane = weft_request_query(request, "lane"),
        .kind = weft_request_query(request, "kind"),
        .tenant = weft_request_query(request, "tenant"),
        .key = weft_request_query(request, "key"),
        .error_class = weft_request_query(request, "error_class"),
        .worker = weft_request_query(request, "worker"),
        .id = weft_request_query(request, "id"),
    };
    if (ret_filter->key && !*ret_filter->key)
        return weft_invalid(err, "key", "key is empty");
    const char *state = weft_request_query(request, "state");
    if (state) {
        ret_filter->state = weft_state_parse(state);
        if (ret_filter->state == WEFT_STATE_NONE)
            return weft_invalid(err, "state", "there is no such state");
    }
    const char *escalated = weft_request_query(request, "escalated");
    if (escalated && strcmp(escalated, "true") != 0)
        return weft_invalid(err, "escalated", "escalated can only be true");
    ret_filter->escalated = escalated != NULL;
    const char *flow = weft_request_query(request, "flow");
    if (flow && (!weft_id_parse(flow, strlen(flow), &ret_filter->flow) ||
                 weft_id_is_zero(&ret_filter->flow))) /* which would mean any */
        return weft_invalid(err, "flow", "flow must be the id of a flow");
    enum weft_rc rc = read_moments(request, ret_filter, err);
    return rc ? rc : read_tag(request, ret_filter, err);
}

enum weft_rc weft_executions_read(struct weft_request *request, struct weft_err *err)
{
    struct list_state *list = weft_new(request->arena, struct list_state);
    struct weft_paging paging = {0};
    enum weft_rc rc = read_filter(request, &list->listing.filter, err);
    if (!rc)
        rc = weft_api_paging(request, &paging, err);
    list->lines = weft_request_wants_lines(request);
    if (!rc && list->lines && weft_request_query(request, "limit"))
        rc = weft_invalid(err, "limit", "lines are sent to the end: they have no limit");
    list->listing.limit = paging.limit;
    list->listing.after = paging.after;
    request->state = list;
    return rc;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* How many executions fill the rest of a part, by the average size so far. */
static uint32_t read_next(const struct list_state *list, size_t room)
{
    if (list->sent == 0)
        return FIRST_READ;
    uint64_t count = room / (list->bytes / list->sent + 1) + 1;
    return count < STREAM_PAGE ? (uint32_t)count : STREAM_PAGE;
}

static void write_items(struct list_state *list, const struct weft_read_page *page,
                        struct weft_buf *out)
{
    size_t before = out->size;
    for (size_t i = 0; i < page->count; i++) {
        struct weft_json_writer item;
        if (!list->lines && list->sent > 0)
            weft_buf_add_char(out, ',');
        weft_json_writer_init(&item, out);
        weft_wire_write(&weft_wire_execution, &page->item[i], &item);
        if (list->lines)
            weft_buf_add_char(out, '\n');
        list->sent++;
    }
    list->bytes += out->size - before;
}

static void write_end(const struct weft_read_page *page, struct weft_buf *out)
{
    struct weft_json_writer end;
    weft_buf_add_text(out, "],\"next\":");
    weft_json_writer_init(&end, out);
    weft_json_put_text(&end, page->next);
    if (page->looked_to_us) {
        weft_buf_add_text(out, ",\"looked_to\":");
        weft_json_writer_init(&end, out);
        weft_wire_put_moment(&end, page->looked_to_us);
    }
    weft_buf_add_char(out, '}');
}

/* Reads some more and appends them; ret_last: that was all. */
static enum weft_rc add_some(struct weft_request *request, struct list_state *list,
                             struct weft_buf *out, bool *ret_last, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_read_page page;
    list->listing.limit = read_next(list, out->size < PART ? PART - out->size : 0);
    if (!list->lines && list->listing.limit > list->left)
        list->listing.limit = list->left;
    enum weft_rc rc = weft_engine_list(request->server->engine, &list->listing, arena, &page, err);
    if (rc)
        goto out;
    write_items(list, &page, out);
    list->left -= (uint32_t)page.count;
    /* A page that the store left short ends there: the client goes on as it likes. */
    bool last = !page.next || (!list->lines && (list->left == 0 || page.looked_to_us));
    if (!list->lines && last)
        write_end(&page, out);
    *ret_last = last;
    if (page.next) {
        size_t size = strnlen(page.next, sizeof(list->after) - 1);
        memcpy(list->after, page.next, size);
        list->after[size] = '\0';
        list->listing.after = list->after;
    }
    if (out->full)
        rc = weft_fail(err, WEFT_TOO_LARGE, "a part of the list does not fit");
out:
    weft_arena_free(arena);
    return rc;
}

static enum weft_rc more_items(struct weft_request *request, struct weft_buf *out, bool *ret_last,
                               struct weft_err *err)
{
    struct list_state *list = request->state;
    bool last = false;
    for (int in_vain = 0; in_vain < STREAM_EMPTY_PAGES && out->size < PART && !last;) {
        size_t before = list->sent;
        enum weft_rc rc = add_some(request, list, out, &last, err);
        if (rc)
            return rc;
        in_vain += list->sent == before;
    }
    /* A filter that fits next to nothing: an empty line keeps the connection alive. */
    if (out->size == 0 && !last)
        weft_buf_add_char(out, '\n');
    *ret_last = last;
    return WEFT_OK;
}

enum weft_rc weft_executions_run(struct weft_request *request, struct weft_err *err)
{
    struct list_state *list = request->state;
    bool last = false;
    list->left = list->listing.limit;
    /* The first part is read before anything is sent, so that a bad cursor is still an error. */
    weft_reply_bytes(request, "", 0, NULL);
    if (list->lines)
        weft_reply_as_lines(request);
    else
        weft_buf_add_text(&request->reply.body, "{\"items\":[");
    enum weft_rc rc = more_items(request, &request->reply.body, &last, err);
    if (!rc && !last) /* nothing was sent yet: a failure is still the answer */
        request->reply.stream = more_items;
    return rc;
}
