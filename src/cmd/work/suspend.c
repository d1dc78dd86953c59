/* SPDX-License-Identifier: Apache-2.0 */

/* Waiting as commands see it: signals are files that they read, a suspend is one that they write.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "cmd/work/work.h"
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Signals --------------------------------------------------------------------------------- */

enum { PAGE = 50 };

/* A signal of the index. */
struct entry {
    weft_usec at_us;
    size_t file;      /* the number of its file, before they are sorted */
    const char *json; /* without the payload */
};

/* The folder while it is filled. */
struct folder {
    const char *path;
    struct weft_arena *arena;
    const struct weft_claimed *claimed;
    struct entry *entry; /* owned */
    size_t count, room;
    struct weft_id *pending; /* owned; waitpoints that no suspension has taken */
    size_t pending_count;
};

static const char *json_of(const struct weft_signal_info *signal, struct weft_arena *arena)
{
    struct weft_buf text;
    struct weft_json_writer out;
    weft_buf_init(&text, SIZE_MAX);
    weft_json_writer_init(&out, &text);
    weft_wire_write(&weft_wire_signal_info, signal, &out);
    const char *copy = weft_arena_printf(arena, "%.*s", (int)text.size, text.data);
    weft_buf_done(&text);
    return copy;
}

static enum weft_rc add_signal(struct folder *folder, const struct weft_signal_info *signal,
                               struct weft_err *err)
{
    if (folder->count == folder->room) {
        folder->room = 2 * folder->room + PAGE;
        folder->entry = weft_realloc(folder->entry, folder->room, sizeof(*folder->entry));
    }
    struct weft_signal_info bare = *signal;
    bare.payload = NULL;
    bare.payload_size = 0;
    struct entry *entry = &folder->entry[folder->count++];
    *entry = (struct entry){
        .at_us = signal->at_us, .file = folder->count, .json = json_of(&bare, folder->arena)};
    const struct weft_bytes bytes = {.data = signal->payload ? signal->payload : "",
                                     .size = signal->payload_size,
                                     .content_type = signal->content_type};
    return weft_work_file_write(
        weft_arena_printf(folder->arena, "%s/%zu", folder->path, folder->count), &bytes, err);
}

static enum weft_rc read_pending(struct weft *weft, struct folder *folder, struct weft_err *err)
{
    struct weft_waitpoints page = {0};
    const char *after = NULL;
    enum weft_rc rc;
    do {
        rc = weft_waitpoints(weft, &folder->claimed->id, PAGE, after, &page, err);
        if (rc)
            break;
        folder->pending = weft_realloc(folder->pending, folder->pending_count + page.count + 1,
                                       sizeof(*folder->pending));
        for (size_t i = 0; i < page.count; i++)
            if (page.item[i].state == WEFT_WAITPOINT_PENDING)
                folder->pending[folder->pending_count++] = page.item[i].id;
        after = weft_arena_strdup(folder->arena, page.next);
        weft_waitpoints_free(&page);
    } while (after);
    return rc;
}

/*
 * Whether a listed signal belongs to the last suspension and is not among the signals that the
 * claim carried. The claim carries the earliest ones; a later signal is of one of its waitpoints,
 * or of a pending waitpoint that the suspension did not take.
 */
static bool is_missing(const struct folder *folder, const struct weft_signal_info *signal)
{
    const struct weft_claimed *claimed = folder->claimed;
    size_t count = claimed->signal_count;
    if (count > 0 && signal->at_us < claimed->signal[count - 1].at_us)
        return false;
    for (size_t i = 0; i < folder->pending_count; i++)
        if (weft_id_cmp(&folder->pending[i], &signal->waitpoint) == 0)
            return false;
    for (size_t i = count; i > 0 && claimed->signal[i - 1].at_us == signal->at_us; i--)
        if (claimed->signal[i - 1].n == signal->n &&
            weft_id_cmp(&claimed->signal[i - 1].waitpoint, &signal->waitpoint) == 0)
            return false;
    return true;
}

static int by_time(const void *a, const void *b)
{
    const struct entry *one = a, *two = b;
    if (one->at_us != two->at_us)
        return one->at_us < two->at_us ? -1 : 1;
    return one->file < two->file ? -1 : 1; /* as they were listed */
}

/*
 * Signals that were listed are by waitpoint: gives their files the numbers of their order in time.
 * Names with a dash stand for the old numbers meanwhile.
 */
static enum weft_rc sort_listed(struct folder *folder, size_t first, struct weft_err *err)
{
    size_t count = folder->count - first;
    struct entry *sorted = folder->entry + first;
    if (count == 0)
        return WEFT_OK;
    qsort(sorted, count, sizeof(*sorted), by_time);
    for (int step = 0; step < 2; step++)
        for (size_t i = 0; i < count; i++) {
            size_t old = sorted[i].file, now = first + i + 1;
            const char *away = weft_arena_printf(folder->arena, "%s/-%zu", folder->path, old);
            const char *name =
                weft_arena_printf(folder->arena, "%s/%zu", folder->path, step ? now : old);
            if (rename(step ? away : name, step ? name : away) != 0)
                return weft_fail(err, WEFT_UNAVAILABLE, "cannot rename %s: %s", name,
                                 strerrordesc_np(errno));
        }
    return WEFT_OK;
}

/* Adds the signals that the claim did not carry. */
static enum weft_rc add_listed(struct weft *weft, struct folder *folder, struct weft_err *err)
{
    size_t first = folder->count;
    const char *after = NULL;
    enum weft_rc rc = read_pending(weft, folder, err);
    while (!rc) {
        struct weft_signals page = {0};
        rc = weft_signals(weft, &folder->claimed->id, PAGE, after, &page, err);
        for (size_t i = 0; i < page.count && !rc; i++)
            if (is_missing(folder, &page.item[i]))
                rc = add_signal(folder, &page.item[i], err);
        after = weft_arena_strdup(folder->arena, page.next);
        weft_signals_free(&page);
        if (!after)
            break;
    }
    return rc ? rc : sort_listed(folder, first, err);
}

static enum weft_rc write_index(const struct folder *folder, struct weft_err *err)
{
    struct weft_buf text;
    struct weft_json_writer out;
    weft_buf_init(&text, SIZE_MAX);
    weft_json_writer_init(&out, &text);
    weft_json_begin_object(&out);
    weft_json_add_array(&out, "items");
    for (size_t i = 0; i < folder->count; i++)
        weft_json_put_raw(&out, folder->entry[i].json, strlen(folder->entry[i].json));
    weft_json_end_array(&out);
    weft_json_end_object(&out);
    const struct weft_bytes bytes = {.data = text.data, .size = text.size};
    enum weft_rc rc = weft_work_file_write(
        weft_arena_printf(folder->arena, "%s/signals.json", folder->path), &bytes, err);
    weft_buf_done(&text);
    return rc;
}

enum weft_rc weft_work_signals_write(struct weft *weft, const struct weft_claimed *claimed,
                                     const char *path, struct weft_arena *arena,
                                     struct weft_err *err)
{
    struct folder folder = {.path = path, .arena = arena, .claimed = claimed};
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < claimed->signal_count && !rc; i++)
        rc = add_signal(&folder, &claimed->signal[i], err);
    if (!rc && claimed->more_signals)
        rc = add_listed(weft, &folder, err);
    if (!rc)
        rc = write_index(&folder, err);
    free(folder.entry);
    free(folder.pending);
    return rc;
}

/* ---- The request ----------------------------------------------------------------------------- */

/* The text of a file, in the arena. Texts of errors go on after "its request in WEFT_SUSPEND_FILE".
 */
static enum weft_rc read_text(const char *path, struct weft_arena *arena, char **ret_text,
                              size_t *ret_size, struct weft_err *err)
{
    enum { TEXT_MAX = 1024 * 1024 };
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (fd < 0)
        return weft_fail(err, WEFT_NOT_FOUND, "is not there");
    char *text = weft_arena_alloc(arena, 1, TEXT_MAX + 1);
    size_t size = 0;
    ssize_t got = 1;
    while (got > 0 && size <= TEXT_MAX) {
        got = read(fd, text + size, TEXT_MAX + 1 - size);
        size += got > 0 ? (size_t)got : 0;
    }
    (void)close(fd);
    if (got < 0)
        return weft_fail(err, WEFT_UNAVAILABLE, "cannot be read");
    if (size > TEXT_MAX)
        return weft_fail(err, WEFT_TOO_LARGE, "is larger than %d bytes", TEXT_MAX);
    *ret_text = text;
    *ret_size = size;
    return WEFT_OK;
}

/*
 * A new waitpoint must not have the name of a pending one, which a command can have made with `weft
 * waitpoints --new`: it is named by its id. So all waitpoints with names are made here first,
 * which returns the pending ones again. If that request fails now, the suspend reports it.
 */
static enum weft_rc find_pending(struct weft *weft, const struct weft_claimed *claimed,
                                 struct weft_suspend *suspend, struct weft_arena *arena,
                                 struct weft_err *err)
{
    size_t room = suspend->waitpoint_count + 1, count = 0;
    struct weft_suspend_at *at = weft_new_array(arena, struct weft_suspend_at, room);
    struct weft_waitpoint_new *item = weft_new_array(arena, struct weft_waitpoint_new, room);
    struct weft_suspend_at **of = weft_new_array(arena, struct weft_suspend_at *, room);
    struct weft_waitpoints_made made = {0};
    enum weft_rc rc = WEFT_OK;
    for (size_t i = 0; i < suspend->waitpoint_count; i++) {
        at[i] = suspend->waitpoint[i];
        if (!at[i].name)
            continue;
        item[count] = (struct weft_waitpoint_new){
            .id = claimed->id, .epoch = claimed->epoch, .name = at[i].name};
        of[count++] = &at[i];
    }
    suspend->waitpoint = at;
    if (count == 0 || weft_waitpoint_make(weft, item, count, &made, NULL))
        return WEFT_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        const struct weft_waitpoint_made *answer = &made.item[i];
        if (!answer->err.rc)
            *of[i] = (struct weft_suspend_at){.id = answer->waitpoint.id};
        else if (answer->err.rc != WEFT_FENCED)
            rc = weft_fail(err, answer->err.rc, "cannot be met: %s", answer->err.text);
    }
    weft_waitpoints_made_free(&made);
    return rc;
}

enum weft_rc weft_work_suspend_read(struct weft *weft, const struct weft_claimed *claimed,
                                    const char *path, struct weft_arena *arena,
                                    struct weft_suspend *ret_suspend, struct weft_err *err)
{
    char *text = NULL;
    size_t size = 0;
    struct weft_json value;
    struct weft_err story = {0};
    enum weft_rc rc = read_text(path, arena, &text, &size, err);
    if (rc)
        return rc;
    rc = weft_json_check(text, size, &value, &story);
    if (!rc)
        rc = weft_wire_read(&weft_wire_suspend_file, &value, arena, ret_suspend, &story);
    if (rc)
        return weft_fail(err, rc, "is not valid: %s", story.text);
    return find_pending(weft, claimed, ret_suspend, arena, err);
}
