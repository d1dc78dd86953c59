/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_API_FILES_H
#define WEFT_NET_API_FILES_H

/* Files as OpenAI's API shows them, for api_upload.c, api_files.c and api_batches.c. */

#include "core/batch_id.h"
#include "engine/batch/files.h"
#include "net/request.h"

/* Answers with the file. */
void weft_file_reply(struct weft_request *request, const struct weft_file *file);

/* The Range header of a request for bytes. */
struct weft_byte_range {
    uint64_t first, end; /* end: behind the last one */
    bool part;           /* it asks for a part */
};
/* False: no byte of it is there. A header that is no single range of bytes counts as none. */
WEFT_MUST_CHECK bool weft_byte_range_parse(const char *header, uint64_t size,
                                           struct weft_byte_range *ret_range);

#endif
