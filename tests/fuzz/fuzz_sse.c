/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Event streams. The first two bytes say how the rest is split. In pieces it gives the same events
 * and folds into the same result as in one; a result that is said to be JSON is an object.
 */

#include "fuzz/fuzz.h"

#include "base/json.h"
#include "core/sse.h"
#include "core/sse_fold.h"

enum { SIZE_MAX_HERE = 2000 };

struct pieces {
    const char *at, *end;
    size_t first, step;
};

/* The next piece, in memory of exactly its size, which the caller frees. */
static char *next_piece(struct pieces *pieces, size_t *ret_size)
{
    size_t left = (size_t)(pieces->end - pieces->at);
    size_t size = pieces->first ? pieces->first : pieces->step;
    size = size < left ? size : left;
    char *piece = malloc(size ? size : 1);
    must(piece);
    memcpy(piece, pieces->at, size);
    pieces->at += size;
    pieces->first = 0;
    *ret_size = size;
    return piece;
}

/* The events of a piece, each behind its name and size. */
static enum weft_rc read_piece(struct weft_sse *sse, const char *at, const char *end,
                               struct weft_buf *events)
{
    struct weft_sse_event event;
    bool found = true;
    while (found) {
        enum weft_rc rc = weft_sse_read(sse, &at, end, &event, &found, NULL);
        if (rc)
            return rc;
        if (found) {
            must(event.data[event.size] == '\0' && event.size <= SIZE_MAX_HERE);
            weft_buf_printf(events, "%s:%zu:", event.name, event.size);
            weft_buf_add(events, event.data, event.size);
        }
    }
    must(at == end);
    return WEFT_OK;
}

static enum weft_rc read_events(struct pieces pieces, struct weft_buf *events)
{
    struct weft_sse sse;
    struct weft_sse_event event;
    enum weft_rc rc = WEFT_OK;
    bool found = false;
    weft_sse_init(&sse, SIZE_MAX_HERE);
    while (!rc && pieces.at < pieces.end) {
        size_t size;
        char *piece = next_piece(&pieces, &size);
        rc = read_piece(&sse, piece, piece + size, events);
        free(piece);
    }
    if (!rc)
        rc = weft_sse_end(&sse, &event, &found, NULL);
    if (!rc && found)
        weft_buf_add(events, event.data, event.size);
    weft_sse_done(&sse);
    return rc;
}

static enum weft_rc fold(struct pieces pieces, struct weft_buf *result)
{
    struct weft_sse_fold *fold = weft_sse_fold_new(SIZE_MAX_HERE);
    struct weft_folded folded;
    struct weft_json value;
    struct weft_err err = {0};
    enum weft_rc rc = WEFT_OK;
    while (!rc && pieces.at < pieces.end) {
        size_t size;
        char *piece = next_piece(&pieces, &size);
        rc = weft_sse_fold_add(fold, piece, size, &err);
        free(piece);
    }
    if (!rc)
        rc = weft_sse_fold_end(fold, &folded, &err);
    must(!rc || rc == WEFT_TOO_LARGE || rc == WEFT_INVALID_JSON || rc == WEFT_INVALID_VALUE ||
         rc == WEFT_UNAVAILABLE);
    if (!rc) {
        must(folded.size <= SIZE_MAX_HERE);
        must(folded.kind != WEFT_FOLDED_JSON ||
             (!weft_json_check(folded.data, folded.size, &value, NULL) &&
              value.kind == WEFT_JSON_OBJECT));
        must((folded.status >= 400 && folded.status <= 599) == (folded.kind == WEFT_FOLDED_ERROR));
        weft_buf_printf(result, "%d %d ", folded.kind, folded.status);
        weft_buf_add(result, folded.data, folded.size);
    }
    weft_sse_fold_free(fold);
    return rc;
}

static void must_be_same(enum weft_rc (*run)(struct pieces, struct weft_buf *), struct pieces whole,
                         struct pieces pieces)
{
    struct weft_buf one, other;
    weft_buf_init(&one, 1 << 20);
    weft_buf_init(&other, 1 << 20);
    enum weft_rc rc = run(whole, &one);
    must(run(pieces, &other) == rc);
    must(one.size == other.size && memcmp(one.data, other.data, one.size) == 0);
    weft_buf_done(&one);
    weft_buf_done(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *begin = (const char *)data + 2, *end = (const char *)data + size;
    struct pieces whole = {.at = begin, .end = end, .step = size};
    struct pieces pieces = {.at = begin, .end = end, .first = data[0], .step = 1u + data[1] % 64};
    must_be_same(read_events, whole, pieces);
    must_be_same(fold, whole, pieces);
    return 0;
}
