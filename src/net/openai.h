/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEFT_NET_OPENAI_H
#define WEFT_NET_OPENAI_H

/*
 * The manners of OpenAI's API, for the routes under /openai/v1 (weft_route.openai): its errors, ids
 * with a prefix, moments as whole seconds, lists with first_id and last_id. Parameters and fields
 * that are not known are ignored there.
 */

#include "base/json.h"
#include "core/batch_id.h"
#include "net/request.h"

enum { WEFT_OPENAI_ID_TEXT = WEFT_BATCH_ID_TEXT };

/* Whether a request is for the part of the API that has these manners. */
bool weft_openai_wants(const struct weft_request *request);
/* {"error":{"message","type","param","code"}} */
void weft_openai_write_error(const struct weft_err *err, struct weft_json_writer *out);

/* "file-" and 32 digits. */
void weft_openai_id_print(const char *prefix, const struct weft_id *id,
                          char ret_text[WEFT_OPENAI_ID_TEXT]);
WEFT_MUST_CHECK bool weft_openai_id_parse(const char *prefix, const char *text,
                                          struct weft_id *ret_id);
void weft_openai_add_id(struct weft_json_writer *out, const char *key, const char *prefix,
                        const struct weft_id *id);
/* Unix seconds; 0: null. */
void weft_openai_add_moment(struct weft_json_writer *out, const char *key, weft_usec moment_us);

/* {"object":"list","data":[ and the caller writes the elements. */
void weft_openai_begin_list(struct weft_request *request, struct weft_json_writer *ret_out);
/* first and last NULL: there are no elements. */
void weft_openai_end_list(struct weft_json_writer *out, const char *first, const char *last,
                          bool more);

#endif
