/* SPDX-License-Identifier: Apache-2.0 */

#include "net/openai.h"

#include "base/clock.h"
#include "base/err.h"

#include <stdio.h>
#include <string.h>

bool weft_openai_wants(const struct weft_request *request)
{
    if (request->route)
        return request->route->openai;
    return request->match.count > 0 &&
           strcmp(request->match.text + request->match.segment[0], "openai") == 0;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Clients choose their exception by the status; the type is for people. */
static const char *type_of(const struct weft_err *err)
{
    int status = weft_rc_http(err->rc);
    if (status >= 500)
        return "server_error";
    if (status == 429)
        return "rate_limit_error";
    if (status == 401)
        return "authentication_error";
    return status == 403 ? "permission_error" : "invalid_request_error";
}

void weft_openai_write_error(const struct weft_err *err, struct weft_json_writer *out)
{
    char message[2 * sizeof(err->text)];
    (void)snprintf(message, sizeof(message), "%s%s%s", err->text, err->hint ? "; " : "",
                   err->hint ? err->hint : "");
    weft_json_begin_object(out);
    weft_json_add_object(out, "error");
    weft_json_add_text(out, "message", message);
    weft_json_add_text(out, "type", type_of(err));
    weft_json_add_text(out, "param", err->field);
    weft_json_add_text(out, "code",
                       err->rc == WEFT_UNAUTHORIZED ? "invalid_api_key" : weft_rc_wire(err->rc));
    weft_json_end_object(out);
    weft_json_end_object(out);
}

/* ---- Values ---------------------------------------------------------------------------------- */

void weft_openai_id_print(const char *prefix, const struct weft_id *id,
                          char ret_text[WEFT_OPENAI_ID_TEXT])
{
    weft_batch_id_print(prefix, id, ret_text);
}

bool weft_openai_id_parse(const char *prefix, const char *text, struct weft_id *ret_id)
{
    return weft_batch_id_parse(prefix, text, ret_id);
}

void weft_openai_add_id(struct weft_json_writer *out, const char *key, const char *prefix,
                        const struct weft_id *id)
{
    char text[WEFT_OPENAI_ID_TEXT];
    weft_openai_id_print(prefix, id, text);
    weft_json_add_text(out, key, text);
}

void weft_openai_add_moment(struct weft_json_writer *out, const char *key, weft_usec moment_us)
{
    weft_json_key(out, key);
    if (moment_us)
        weft_json_put_i64(out, moment_us / WEFT_SECOND);
    else
        weft_json_put_null(out);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

void weft_openai_begin_list(struct weft_request *request, struct weft_json_writer *ret_out)
{
    weft_reply_json(request, 200, ret_out);
    weft_json_begin_object(ret_out);
    weft_json_add_text(ret_out, "object", "list");
    weft_json_add_array(ret_out, "data");
}

void weft_openai_end_list(struct weft_json_writer *out, const char *first, const char *last,
                          bool more)
{
    weft_json_end_array(out);
    weft_json_add_text(out, "first_id", first);
    weft_json_add_text(out, "last_id", last);
    weft_json_add_bool(out, "has_more", more);
    weft_json_end_object(out);
}
