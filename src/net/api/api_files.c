/* SPDX-License-Identifier: Apache-2.0 */

/* Files: listed, looked at, sent in ranges, deleted. */

#include "net/api/files.h"

#include "base/arena.h"
#include "base/err.h"
#include "net/api/batch_lines.h"
#include "net/api/handlers.h"
#include "net/openai.h"
#include "net/server.h"

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

static void write_file(struct weft_json_writer *out, const char *id_prefix,
                       const struct weft_file *file)
{
    weft_json_begin_object(out);
    weft_openai_add_id(out, "id", id_prefix, &file->id);
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
    write_file(&out, WEFT_FILE_PREFIX, file);
}

/* ---- One file -------------------------------------------------------------------------------- */

/* Files of output and of errors belong to a batch. */
enum kind { UPLOADED, OUTPUT, ERRORS };
static const char *const prefix[] = {
    [UPLOADED] = WEFT_FILE_PREFIX, [OUTPUT] = WEFT_OUTPUT_PREFIX, [ERRORS] = WEFT_ERRORS_PREFIX};

/* request->state of the calls on one file. It lives until the last byte has been sent. */
struct one_file {
    enum kind kind;
    struct weft_id id; /* of the file; of OUTPUT and ERRORS that of the batch */
    uint64_t at, end;  /* bytes that are still to be sent */
    struct weft_batch_page page;
};

enum weft_rc weft_file_read(struct weft_request *request, struct weft_err *err)
{
    struct one_file *one = weft_new(request->arena, struct one_file);
    request->state = one;
    const char *text = weft_request_path(request, "file");
    for (size_t i = 0; i < WEFT_LEN(prefix); i++)
        if (weft_openai_id_parse(prefix[i], text, &one->id)) {
            one->kind = (enum kind)i;
            return WEFT_OK;
        }
    return weft_fail_field(err, WEFT_NOT_FOUND, "id", "there is no such file");
}

/* Files of a batch have no rows: what they hold is read from its members. */
static enum weft_rc look_up_batch(struct weft_request *request, struct weft_file *ret_file,
                                  struct weft_err *err)
{
    const struct one_file *one = request->state;
    struct weft_batch batch;
    bool output = one->kind == OUTPUT;
    enum weft_rc rc = weft_engine_batch(request->server->engine, request->ns, &one->id,
                                        request->arena, &batch, err);
    if (!rc && (batch.phase == WEFT_BATCH_WRITING || batch.phase == WEFT_BATCH_FAILED))
        rc = weft_fail_field(err, WEFT_NOT_FOUND, "id", "the batch has no such file");
    if (!rc)
        *ret_file = (struct weft_file){
            .id = batch.id,
            .filename = output ? "batch_output.jsonl" : "batch_errors.jsonl",
            .purpose = "batch_output",
            .requests = output ? batch.succeeded : batch.failed + batch.expired + batch.cancelled,
            .created_us = batch.opened_us};
    return rc;
}

static enum weft_rc look_up(struct weft_request *request, struct weft_file *ret_file,
                            struct weft_err *err)
{
    const struct one_file *one = request->state;
    if (one->kind != UPLOADED)
        return look_up_batch(request, ret_file, err);
    return weft_engine_file(request->server->engine, request->ns, &one->id, request->arena,
                            ret_file, err);
}

enum weft_rc weft_file_run(struct weft_request *request, struct weft_err *err)
{
    const struct one_file *one = request->state;
    struct weft_file file;
    struct weft_json_writer out;
    enum weft_rc rc = look_up(request, &file, err);
    if (rc)
        return rc;
    weft_reply_json(request, 200, &out);
    write_file(&out, prefix[one->kind], &file);
    return WEFT_OK;
}

enum weft_rc weft_file_delete_run(struct weft_request *request, struct weft_err *err)
{
    const struct one_file *one = request->state;
    struct weft_json_writer out;
    if (one->kind != UPLOADED)
        return weft_invalid(err, "id", "this file goes with its batch");
    enum weft_rc rc = weft_engine_file_remove(request->server->engine, request->ns, &one->id, err);
    if (rc)
        return rc;
    weft_reply_json(request, 200, &out);
    weft_json_begin_object(&out);
    weft_openai_add_id(&out, "id", WEFT_FILE_PREFIX, &one->id);
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
        write_file(&out, WEFT_FILE_PREFIX, &list.item[i]);
    if (list.count > 0) {
        weft_openai_id_print(WEFT_FILE_PREFIX, &list.item[0].id, first);
        weft_openai_id_print(WEFT_FILE_PREFIX, &list.item[list.count - 1].id, last);
    }
    weft_openai_end_list(&out, list.count ? first : NULL, list.count ? last : NULL, list.more);
    return WEFT_OK;
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
    struct weft_file_chunk chunk;
    enum weft_rc rc = weft_engine_file_read(request->server->engine, &one->id, one->at,
                                            request->arena, &chunk, err);
    if (rc)
        return rc;
    uint64_t skip = one->at - chunk.at, left = one->end - one->at;
    uint64_t size = chunk.size - skip < left ? chunk.size - skip : left;
    weft_buf_add(out, (const char *)chunk.data + skip, size);
    one->at += size;
    *ret_last = one->at == one->end;
    return WEFT_OK;
}

/*
 * The next lines of a batch. How many members are looked at depends on how large the lines before
 * were, so that a part stays around a MiB whatever their results are; a single one may be larger.
 */
static enum weft_rc send_lines(struct weft_request *request, struct weft_buf *out, bool *ret_last,
                               struct weft_err *err)
{
    enum { FEWEST = 16, MOST = 1000, SMALL = 512 << 10, LARGE = 2 << 20 };
    struct one_file *one = request->state;
    struct weft_batch_page *page = &one->page;
    do {
        if (page->members == 0)
            page->members = FEWEST;
        page->bytes = LARGE;
        enum weft_rc rc =
            weft_engine_batch_answers(request->server->engine, &one->id, page, request->arena, err);
        if (rc)
            return rc;
        for (size_t i = 0; i < page->count; i++)
            weft_batch_line_add(out, &page->item[i], page->good);
        *ret_last = page->last;
        if (out->size < SMALL && page->members < MOST)
            page->members = page->members * 4 < MOST ? page->members * 4 : MOST;
        else if (out->size > LARGE && page->members > FEWEST)
            page->members /= 4;
    } while (!*ret_last && out->size == 0);
    return WEFT_OK;
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

enum weft_rc weft_file_content_run(struct weft_request *request, struct weft_err *err)
{
    struct weft_file file;
    struct weft_byte_range range;
    enum weft_rc rc = look_up(request, &file, err);
    struct one_file *one = request->state;
    if (rc)
        return rc;
    if (one->kind != UPLOADED) { /* whose size is not known: there are no ranges */
        one->page.good = one->kind == OUTPUT;
        weft_reply_bytes(request, "", 0, "application/octet-stream");
        request->reply.stream = send_lines;
        return WEFT_OK;
    }
    if (!weft_byte_range_parse(weft_request_header(request, "Range"), file.bytes, &range))
        return refuse_range(request, file.bytes);
    weft_reply_bytes(request, "", 0, "application/octet-stream");
    weft_reply_header(request, "Accept-Ranges", "bytes");
    if (range.part) {
        request->reply.status = 206;
        weft_reply_header(request, "Content-Range",
                          weft_arena_printf(request->arena, "bytes %llu-%llu/%llu",
                                            (unsigned long long)range.first,
                                            (unsigned long long)range.end - 1,
                                            (unsigned long long)file.bytes));
    }
    if (range.first == range.end)
        return WEFT_OK;
    one->at = range.first;
    one->end = range.end;
    request->reply.stream = send_next;
    request->reply.stream_bytes = range.end - range.first;
    return WEFT_OK;
}
