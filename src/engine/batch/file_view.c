/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/batch/file_view.h"

#include "base/arena.h"
#include "base/limits.h"
#include "core/cursor.h"
#include "engine/job/list.h"

static struct weft_file_info info_of(const struct weft_file *file, enum weft_content which,
                                     struct weft_arena *arena)
{
    return (struct weft_file_info){
        .id = file->id,
        .file_id = weft_file_id_text(which, &file->id, arena),
        .filename = file->filename,
        .purpose = file->purpose,
        .bytes = file->bytes,
        .requests = file->requests,
        .error_count = file->flaw_count,
        .errors = file->flaw_count ? weft_arena_printf(arena, "[%s]", file->flaws) : NULL,
        .created_us = file->created_us,
        .expires_us = file->expires_us};
}

enum weft_rc weft_engine_file_info(struct weft_engine *engine,
                                   const struct weft_file_asking *asking, struct weft_arena *arena,
                                   struct weft_file_info *ret_info, struct weft_err *err)
{
    struct weft_content_walk walk;
    struct weft_file file;
    enum weft_rc rc = weft_content_begin(engine, asking, arena, &walk, &file, err);
    if (!rc)
        *ret_info = info_of(&file, asking->which, arena);
    return rc;
}

enum weft_rc weft_engine_file_infos(struct weft_engine *engine,
                                    const struct weft_file_listing *listing,
                                    struct weft_arena *arena, struct weft_file_infos *ret_infos,
                                    struct weft_err *err)
{
    const struct weft_cursor_list list = {.name = "files", .ns = listing->ns};
    struct weft_files_asking asking = {.ns = listing->ns,
                                       .has_after = listing->after != NULL,
                                       .limit =
                                           listing->limit ? listing->limit : WEFT_PAGE_DEFAULT};
    struct weft_file_list found;
    enum weft_rc rc = weft_page_limit(listing->limit, err);
    if (!rc)
        rc = weft_cursor_read_id(&list, listing->after, &asking.after, err);
    if (!rc)
        rc = weft_engine_files(engine, &asking, arena, &found, err);
    if (rc)
        return rc;
    struct weft_file_info *item = weft_new_array(arena, struct weft_file_info, found.count + 1);
    for (size_t i = 0; i < found.count; i++)
        item[i] = info_of(&found.item[i], WEFT_CONTENT_FILE, arena);
    *ret_infos = (struct weft_file_infos){.item = item, .count = found.count};
    if (found.more)
        ret_infos->next = weft_cursor_write_id(&list, &item[found.count - 1].id, arena);
    return WEFT_OK;
}

enum weft_rc weft_engine_file_delete(struct weft_engine *engine,
                                     const struct weft_file_asking *asking,
                                     struct weft_arena *arena, struct weft_file_info *ret_info,
                                     struct weft_err *err)
{
    if (asking->which != WEFT_CONTENT_FILE)
        return weft_hint(err, weft_invalid(err, "id", "this file goes with its batch"),
                         "delete the batch");
    enum weft_rc rc = weft_engine_file_info(engine, asking, arena, ret_info, err);
    return rc ? rc : weft_engine_file_remove(engine, asking->ns, &asking->id, err);
}

enum weft_rc weft_engine_file_upload(struct weft_engine *engine, const char *ns,
                                     const struct weft_upload *upload, struct weft_arena *arena,
                                     struct weft_file_info *ret_info, struct weft_err *err)
{
    struct weft_file_asking asking = {.ns = ns};
    enum weft_rc rc = weft_engine_upload(engine, ns, upload, &asking.id, err);
    return rc ? rc : weft_engine_file_info(engine, &asking, arena, ret_info, err);
}
