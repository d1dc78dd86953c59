/* SPDX-License-Identifier: Apache-2.0 */

/* Files and models of a server. The bytes of a file go through without being kept. */

#include "base/arena.h"
#include "base/err.h"
#include "client/remote/remote.h"
#include "engine/batch/file_view.h"
#include "engine/batch/models.h"
#include "fetch/fetch.h"

#include <sys/stat.h>
#include <unistd.h>

enum { MOVING_MS = 60000 }; /* how long an upload or a download may stand still */

enum weft_rc weft_remote_file(const struct weft_via *via, const struct weft_op_call *call,
                              struct weft_err *err)
{
    const struct weft_file_asking *asking = call->in;
    const struct weft_remote_request request = {
        .op = call->op, .place = weft_file_id_text(asking->which, &asking->id, call->arena)};
    return weft_remote_one(via, &request, call->arena, call->out, err);
}

WEFT_REMOTE_PAGE_OF(weft_remote_files, weft_file_listing, weft_file_infos, NULL);

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* What moves, and why it stopped. */
struct moving {
    const struct weft_upload *upload;
    const struct weft_sink *sink;
    uint64_t done; /* bytes */
    bool moved;    /* some of them may have been used up */
    struct weft_err err;
};

static bool next_bytes(void *context, void *ret_data, size_t most, size_t *ret_size)
{
    struct moving *moving = context;
    moving->moved = true;
    return !weft_upload_next(moving->upload, ret_data, most, ret_size, &moving->done, &moving->err);
}

static bool put_bytes(void *context, const void *data, size_t size)
{
    struct moving *moving = context;
    moving->moved = true;
    moving->done += size;
    return !weft_sink_put(moving->sink, data, size, &moving->err);
}

/* How many bytes are left of a file that has a size; -1: it has none. */
static int64_t size_of(const struct weft_upload *upload)
{
    struct stat stat;
    if (upload->read || fstat(upload->fd, &stat) || !S_ISREG(stat.st_mode))
        return -1;
    off_t at = lseek(upload->fd, 0, SEEK_CUR);
    return at < 0 || at > stat.st_size ? -1 : stat.st_size - at;
}

/* Says what broke off: the caller's end, or the connection after some bytes. */
static enum weft_rc broken_off(const struct moving *moving, enum weft_rc rc, const char *what,
                               const char *hint, struct weft_err *err)
{
    struct weft_err story = *err;
    if (moving->err.rc) {
        *err = moving->err;
        return err->rc;
    }
    if (rc != WEFT_UNAVAILABLE || !moving->moved)
        return rc;
    return weft_hint(err,
                     weft_fail(err, rc, "the %s broke off after %llu bytes: %s", what,
                               (unsigned long long)moving->done, story.text),
                     hint);
}

enum weft_rc weft_remote_file_put(const struct weft_via *via, const struct weft_op_call *call,
                                  struct weft_err *err)
{
    struct weft_via patient = *via;
    struct moving moving = {.upload = call->in};
    const struct weft_fetch_source source = {.next = next_bytes,
                                             .context = &moving,
                                             .size = size_of(moving.upload),
                                             .content_type = "application/x-ndjson"};
    const char *expires =
        moving.upload->expires_ms
            ? weft_arena_printf(call->arena, "%lld", (long long)moving.upload->expires_ms)
            : NULL;
    const struct weft_remote_request request = {
        .op = call->op,
        .query =
            WEFT_QUERY(call->arena, {"filename", moving.upload->filename}, {"expires_ms", expires}),
        .source = &source,
        .moved = &moving.moved};
    struct weft_err story = {0};
    patient.timeout_ms = MOVING_MS;
    enum weft_rc rc = weft_remote_one(&patient, &request, call->arena, call->out, &story);
    if (!rc)
        return rc;
    rc = broken_off(&moving, rc, "upload", "upload it again: a file that is not whole is removed",
                    &story);
    return weft_copy_err(rc, &story, err);
}

enum weft_rc weft_remote_content(const struct weft_via *via, const struct weft_op_call *call,
                                 struct weft_err *err)
{
    const struct weft_content_asking *asking = call->in;
    struct weft_via patient = *via;
    struct moving moving = {.sink = asking->sink};
    const struct weft_fetch_sink sink = {.put = put_bytes, .context = &moving};
    const struct weft_remote_request request = {
        .op = call->op,
        .place = weft_file_id_text(asking->of.which, &asking->of.id, call->arena),
        .sink = &sink,
        .moved = &moving.moved};
    struct weft_remote_response response;
    struct weft_err story = {0};
    patient.timeout_ms = MOVING_MS;
    enum weft_rc rc = weft_remote_send(&patient, &request, call->arena, &response, &story);
    *(uint64_t *)call->out = moving.done;
    if (!rc)
        return rc;
    rc = broken_off(&moving, rc, "answer", "read it again", &story);
    return weft_copy_err(rc, &story, err);
}

/* ---- Models ---------------------------------------------------------------------------------- */

WEFT_REMOTE_PAGE_OF(weft_remote_models, weft_models_asking, weft_models, NULL);

enum weft_rc weft_remote_model_put(const struct weft_via *via, const struct weft_op_call *call,
                                   struct weft_err *err)
{
    struct weft_model settings = *(const struct weft_model *)call->in;
    const struct weft_remote_request request = {
        .op = call->op, .place = settings.name, .item = &settings};
    settings.name = NULL; /* the path says it */
    return weft_remote_send_only(via, &request, err);
}
