/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_CORE_MULTIPART_H
#define WEFT_CORE_MULTIPART_H

/*
 * A body of type multipart/form-data (RFC 7578) from bytes as they come: whichever way the bytes
 * are split, the parts are the same. Pure.
 *
 * What stands before the first boundary and behind the last one is skipped. Of the headers of a
 * part only Content-Disposition is read, for the name of the field and of the file.
 */

#include "base/buf.h"
#include "base/err.h"

enum {
    WEFT_MULTIPART_BOUNDARY = 70, /* bytes of a boundary, by the standard */
    WEFT_MULTIPART_HEAD = 8192,   /* bytes of the headers of one part */
    WEFT_MULTIPART_TEXT = 1024,   /* bytes of a name, longer ones are refused */
};

/* What the caller is told, in this order for each part. A failure ends the reading. */
struct weft_multipart_ops {
    /* A part begins. filename NULL: it is no file. Both are the reader's. */
    enum weft_rc (*begin)(void *context, const char *name, const char *filename,
                          struct weft_err *err);
    enum weft_rc (*data)(void *context, const char *data, size_t size, struct weft_err *err);
    enum weft_rc (*end)(void *context, struct weft_err *err);
};

enum weft_multipart_place {
    WEFT_MULTIPART_BEFORE,   /* the first boundary has not come */
    WEFT_MULTIPART_BOUNDED,  /* behind a boundary: the end of its line, or "--" */
    WEFT_MULTIPART_IN_HEAD,  /* in the headers of a part */
    WEFT_MULTIPART_IN_DATA,  /* in its data */
    WEFT_MULTIPART_FINISHED, /* behind the last boundary */
};

struct weft_multipart {
    const struct weft_multipart_ops *ops;
    void *context;
    char mark[WEFT_MULTIPART_BOUNDARY + 5]; /* CR LF -- boundary */
    size_t mark_size, matched;              /* so much of the mark has been read */
    enum weft_multipart_place place;
    char behind[2]; /* what followed a boundary */
    size_t behind_size;
    struct weft_buf head;
};

/*
 * content_type: of the request. WEFT_UNSUPPORTED_MEDIA_TYPE: it is not multipart/form-data, or has
 * no boundary. The caller ends it with _done().
 */
WEFT_MUST_CHECK enum weft_rc weft_multipart_init(struct weft_multipart *multipart,
                                                 const char *content_type,
                                                 const struct weft_multipart_ops *ops,
                                                 void *context, struct weft_err *err);
void weft_multipart_done(struct weft_multipart *multipart); /* a zeroed one is fine */
/* WEFT_INVALID_VALUE: it is malformed; or what an op said. Nothing can be read after that. */
WEFT_MUST_CHECK enum weft_rc weft_multipart_read(struct weft_multipart *multipart, const char *data,
                                                 size_t size, struct weft_err *err);
/* After the last byte: WEFT_INVALID_VALUE when the last boundary is missing. */
WEFT_MUST_CHECK enum weft_rc weft_multipart_end(const struct weft_multipart *multipart,
                                                struct weft_err *err);

#endif
