/* SPDX-License-Identifier: Apache-2.0 */

/* Files: listed, looked at, sent in ranges, deleted. */

#include "net/api/files.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "engine/batch/file_view.h"
#include "net/api/api.h"
#include "net/api/handlers.h"
#include "net/openai.h"
#include "net/server.h"
#include "net/wait/waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- As JSON --------------------------------------------------------------------------------- */

static void write_flaws(struct weft_json_writer *out, const struct weft_file *file)
{
    weft_json_key(out, "errors");
    if (file->flaw_count == 0) {
        weft_json_put_null(out);
        return;
    }
    struct weft_buf list;
    weft_buf_init(&list, SIZE_MAX);
    weft_buf_printf(&list, "[%s]", file->flaws);
    weft_json_begin_object(out);
    weft_json_add_text(out, "object", "list");
    weft_json_add_i64(out, "total", (int64_t)file->flaw_count);
    weft_json_add_raw(out, "data", list.data);
    weft_json_end_object(out);
    weft_buf_done(&list);
}

static void write_file(struct weft_json_writer *out, enum weft_content which,
                       const struct weft_file *file, struct weft_arena *arena)
{
    weft_json_begin_object(out);
    weft_json_add_text(out, "id", weft_file_id_text(which, &file->id, arena));
    weft_json_add_text(out, "object", "file");
    weft_json_add_i64(out, "bytes", (int64_t)file->bytes);
    weft_openai_add_moment(out, "created_at", file->created_us);
    weft_openai_add_moment(out, "expires_at", file->expires_us);
    weft_json_add_text(out, "filename", file->filename);
    weft_json_add_text(out, "purpose", file->purpose);
    weft_json_add_text(out, "status", "processed");
    weft_json_add_text(out, "status_details", NULL);
    weft_json_add_i64(out, "requests", (int64_t)file->requests);
    write_flaws(out, file);
    weft_json_end_object(out);
}

void weft_file_reply(struct weft_request *request, const struct weft_file *file)
{
    struct weft_json_writer out;
    weft_reply_json(request, 200, &out);
    write_file(&out, WEFT_CONTENT_FILE, file, request->arena);
}

/* ---- One file -------------------------------------------------------------------------------- */

/* request->state of the calls on one file. It lives until the last byte has been sent. */
struct one_file {
    struct weft_file_asking of; /* the argument of weft_api_run() */
    struct weft_content_walk walk, measure;
    uint64_t size;
    weft_usec until_us; /* boot time: how long it may take to measure; 0: it has not begun */
};

enum weft_rc weft_file_read(struct weft_request *request, struct weft_err *err)
{
    struct one_file *one = weft_new(request->arena, struct one_file);
    request->state = one;
    if (!weft_file_id_parse(weft_request_path(request, "file"), &one->of))
        return weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such file");
    one->of.ns = request->ns;
    return WEFT_OK;
}

enum weft_rc weft_file_run(struct weft_request *request, struct weft_err *err)
{
    struct one_file *one = request->state;
    struct weft_file file;
    struct weft_json_writer out;
    enum weft_rc rc = weft_content_begin(request->server->engine, &one->of, request->arena,
                                         &one->walk, &file, err);
    if (rc)
        return rc;
    weft_reply_json(request, 200, &out);
    write_file(&out, one->of.which, &file, request->arena);
    return WEFT_OK;
}

enum weft_rc weft_file_delete_run(struct weft_request *request, struct weft_err *err)
{
    const struct one_file *one = request->state;
    struct weft_json_writer out;
    struct weft_file_info info;
    enum weft_rc rc =
        weft_engine_file_delete(request->server->engine, &one->of, request->arena, &info, err);
    if (rc)
        return rc;
    weft_reply_json(request, 200, &out);
    weft_json_begin_object(&out);
    weft_json_add_text(&out, "id", info.file_id);
    weft_json_add_text(&out, "object", "file");
    weft_json_add_bool(&out, "deleted", true);
    weft_json_end_object(&out);
    return WEFT_OK;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

enum weft_rc weft_files_read(struct weft_request *request, struct weft_err *err)
{
    static const struct weft_request_number number = {
        .name = "limit", .min = 1, .max = WEFT_FILES_PAGE_MAX, .normally = WEFT_FILES_PAGE_MAX};
    struct weft_files_asking *asking = weft_new(request->arena, struct weft_files_asking);
    const char *after = weft_request_query(request, "after");
    const char *order = weft_request_query(request, "order");
    int64_t limit = 0;
    enum weft_rc rc = weft_request_query_i64(request, &number, &limit, err);
    if (rc)
        return rc;
    if (order && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)
        return weft_invalid(err, "order", "order must be asc or desc");
    *asking = (struct weft_files_asking){.ns = request->ns,
                                         .purpose = weft_request_query(request, "purpose"),
                                         .oldest_first = order && strcmp(order, "asc") == 0,
                                         .limit = (uint32_t)limit,
                                         .has_after = after != NULL};
    if (after && !weft_openai_id_parse(WEFT_FILE_PREFIX, after, &asking->after))
        return weft_invalid(err, "after", "after must be the id of a file");
    request->state = asking;
    return WEFT_OK;
}

enum weft_rc weft_files_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_file_list list;
    struct weft_json_writer out;
    char first[WEFT_OPENAI_ID_TEXT], last[WEFT_OPENAI_ID_TEXT];
    enum weft_rc rc =
        weft_engine_files(request->server->engine, request->state, request->arena, &list, err);
    if (rc)
        return rc;
    weft_openai_begin_list(request, &out);
    for (size_t i = 0; i < list.count; i++)
        write_file(&out, WEFT_CONTENT_FILE, &list.item[i], request->arena);
    if (list.count > 0) {
        weft_openai_id_print(WEFT_FILE_PREFIX, &list.item[0].id, first);
        weft_openai_id_print(WEFT_FILE_PREFIX, &list.item[list.count - 1].id, last);
    }
    weft_openai_end_list(&out, list.count ? first : NULL, list.count ? last : NULL, list.more);
    return WEFT_OK;
}

enum weft_rc weft_file_infos_read(struct weft_request *request, struct weft_err *err)
{
    struct weft_file_listing *listing = weft_new(request->arena, struct weft_file_listing);
    struct weft_paging paging = {0};
    enum weft_rc rc = weft_api_paging(request, &paging, err);
    *listing =
        (struct weft_file_listing){.ns = request->ns, .limit = paging.limit, .after = paging.after};
    request->state = listing;
    return rc;
}

/* ---- Content --------------------------------------------------------------------------------- */

static bool read_number(const char **at, uint64_t *ret_number)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    *ret_number = strtoull(*at, &end, 10); /* a number that is too large stays the largest */
    *at = end;
    return true;
}

bool weft_byte_range_parse(const char *header, uint64_t size, struct weft_byte_range *ret_range)
{
    static const char unit[] = "bytes=";
    uint64_t first = 0, last = 0;
    *ret_range = (struct weft_byte_range){.end = size};
    if (!header || strncmp(header, unit, sizeof(unit) - 1) != 0)
        return true;
    const char *at = header + sizeof(unit) - 1;
    bool has_first = read_number(&at, &first);
    if (*at++ != '-')
        return true;
    bool has_last = read_number(&at, &last);
    if (*at || (!has_first && !has_last) || (has_first && has_last && last < first))
        return true;
    if (!has_first) { /* the last so many */
        ret_range->first = last < size ? size - last : 0;
        ret_range->part = true;
        return last > 0 && size > 0;
    }
    if (has_last && last < size)
        ret_range->end = last + 1;
    ret_range->first = first;
    ret_range->part = true;
    return first < size;
}

static enum weft_rc send_next(struct weft_request *request, struct weft_buf *out, bool *ret_last,
                              struct weft_err *err)
{
    struct one_file *one = request->state;
    return weft_content_next(request->server->engine, &one->walk, out, ret_last, err);
}

/* 416: the answer of no other route. */
static enum weft_rc refuse_range(struct weft_request *request, uint64_t size)
{
    struct weft_err err = {0};
    (void)weft_invalid(&err, "Range", "the file has only %llu bytes", (unsigned long long)size);
    weft_reply_error(request, &err);
    request->reply.status = 416;
    weft_reply_header(request, "Content-Range",
                      weft_arena_printf(request->arena, "bytes */%llu", (unsigned long long)size));
    return WEFT_OK;
}

/*
 * A range of the lines of a batch needs the size of them all, which is found by making each of
 * them. That is done in pieces, and the request goes behind the others between them. *ret_whole:
 * the size is known; false: this request is called again.
 */
static enum weft_rc measure(struct weft_request *request, bool *ret_whole, struct weft_err *err)
{
    static const weft_usec piece_us = 50 * WEFT_MS, most_us = 60 * WEFT_SECOND;
    struct one_file *one = request->state;
    weft_usec begin_us = weft_boot_us();
    bool last = false;
    if (one->until_us == 0) {
        one->measure = one->walk;
        one->until_us = begin_us + most_us;
    }
    enum weft_rc rc = WEFT_OK;
    while (!rc && !last && weft_boot_us() < begin_us + piece_us)
        rc = weft_content_measure(request->server->engine, &one->measure, &one->size, &last, err);
    *ret_whole = last;
    if (rc || last)
        return rc;
    if (!weft_wait_for_end(request, &one->of.id, one->until_us, WEFT_WAIT_POLLS))
        return weft_hint(err,
                         weft_fail_field(err, WEFT_UNAVAILABLE, "Range",
                                         "the size of the file could not be found in time"),
                         "ask for it without a Range header");
    weft_wait_ended(request->server, &one->of.id, 1);
    return WEFT_OK;
}

static void reply_content(struct weft_request *request, const struct weft_byte_range *range,
                          uint64_t size)
{
    struct one_file *one = request->state;
    weft_reply_bytes(request, "", 0, "application/octet-stream");
    weft_reply_header(request, "Accept-Ranges", "bytes");
    if (range->part) {
        request->reply.status = 206;
        weft_reply_header(request, "Content-Range",
                          weft_arena_printf(request->arena, "bytes %llu-%llu/%llu",
                                            (unsigned long long)range->first,
                                            (unsigned long long)range->end - 1,
                                            (unsigned long long)size));
    }
    if (range->first == range->end)
        return;
    one->walk.at = range->first;
    one->walk.end = range->end;
    request->reply.stream = send_next;
    request->reply.stream_bytes = range->end - range->first;
}

enum weft_rc weft_file_content_run(struct weft_request *request, struct weft_err *err)
{
    struct one_file *one = request->state;
    struct weft_file file;
    struct weft_byte_range range;
    const char *header = weft_request_header(request, "Range");
    bool measured = false;
    enum weft_rc rc = WEFT_OK;
    if (one->until_us == 0) {
        rc = weft_content_begin(request->server->engine, &one->of, request->arena, &one->walk,
                                &file, err);
        one->size = rc ? 0 : file.bytes;
    }
    if (rc)
        return rc;
    if (one->of.which != WEFT_CONTENT_FILE) {
        (void)!weft_byte_range_parse(header, UINT64_MAX, &range);
        /* While the batch runs the size changes: there are no ranges. */
        if (one->walk.growing || !range.part) {
            weft_reply_bytes(request, "", 0, "application/octet-stream");
            request->reply.stream = send_next;
            if (!one->walk.growing)
                weft_reply_header(request, "Accept-Ranges", "bytes");
            return WEFT_OK;
        }
        rc = measure(request, &measured, err);
        if (rc || !measured)
            return rc;
    }
    if (!weft_byte_range_parse(header, one->size, &range))
        return refuse_range(request, one->size);
    reply_content(request, &range, one->size);
    return WEFT_OK;
}
