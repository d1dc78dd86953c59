/* SPDX-License-Identifier: Apache-2.0 */

/* Lanes, workers, tokens and scanners through a server. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "client/remote/remote.h"
#include "engine/call.h"
#include "engine/scan/pass.h"
#include "wire/wire.h"

#include <string.h>

/* ---- Lanes and workers ----------------------------------------------------------------------- */

/* Sends a request whose answer is not read. */
static enum weft_rc send_only(const struct weft_via *via, const struct weft_remote_request *request,
                              struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_remote_response response;
    enum weft_rc rc = weft_remote_send(via, request, arena, &response, err);
    weft_arena_free(arena);
    return rc;
}

enum weft_rc weft_remote_lane_put(const struct weft_via *via, const struct weft_op_call *call,
                                  struct weft_err *err)
{
    struct weft_lane settings = *(const struct weft_lane *)call->in;
    struct weft_buf body;
    const struct weft_remote_request request = {
        .op = call->op, .place = settings.name, .body = &body};
    enum weft_rc rc = settings.name ? WEFT_OK : weft_missing("name", err);
    for (size_t i = 0; i < settings.weight_count && !rc; i++)
        if (!settings.weights[i].tenant)
            rc = weft_missing("weights", err);
    if (rc)
        return rc;
    settings.name = NULL; /* the path says it */
    weft_remote_write(&body, &weft_wire_lane, &settings);
    rc = send_only(via, &request, err);
    weft_buf_done(&body);
    return rc;
}

enum weft_rc weft_remote_lane_remove(const struct weft_via *via, const struct weft_op_call *call,
                                     struct weft_err *err)
{
    const struct weft_remote_request request = {.op = call->op, .place = call->in};
    return send_only(via, &request, err);
}

/* A member that counts; 0 when it is not there. */
static uint64_t number_in(const struct weft_json *object, const char *name)
{
    struct weft_json value;
    int64_t number;
    if (!weft_wire_member(object, name, &value) || !weft_json_i64(&value, &number) || number < 0)
        return 0;
    return (uint64_t)number;
}

enum weft_rc weft_remote_goodbye(const struct weft_via *via, const struct weft_op_call *call,
                                 struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    const struct weft_remote_request request = {.op = call->op, .place = call->in};
    struct weft_json object;
    enum weft_rc rc = weft_remote_ask(via, &request, arena, &object, err);
    if (!rc)
        *(uint64_t *)call->out = number_in(&object, "released");
    weft_arena_free(arena);
    return rc;
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

enum weft_rc weft_remote_token_rotate(const struct weft_via *via, const struct weft_op_call *call,
                                      struct weft_err *err)
{
    const struct weft_token_rotation *rotation = call->in;
    const struct weft_remote_request request = {
        .op = call->op, .place = weft_arena_printf(call->arena, "%d", rotation->id)};
    return weft_remote_one(via, &request, rotation, call->arena, call->out, err);
}

enum weft_rc weft_remote_token_revoke(const struct weft_via *via, const struct weft_op_call *call,
                                      struct weft_err *err)
{
    const struct weft_remote_request request = {
        .op = call->op, .place = weft_arena_printf(call->arena, "%d", *(const int32_t *)call->in)};
    return send_only(via, &request, err);
}

/* ---- Scanners -------------------------------------------------------------------------------- */

/* Names of counters outlive the answer: unknown ones, of a newer server, are left out. */
static struct weft_pass_report report_of(const struct weft_wire_pass *pass,
                                         enum weft_scanner scanner)
{
    struct weft_pass_report report = {.handled = pass->handled,
                                      .failed = pass->failed,
                                      .more = pass->more,
                                      .next_due_us = pass->next_due_us};
    const char *const *name = weft_scanner_info(scanner)->counter;
    for (; *name; name++) {
        size_t i = 0;
        while (i < pass->counter_count && strcmp(pass->counters[i].name, *name) != 0)
            i++;
        if (i < pass->counter_count)
            report.counter[report.counter_count++] =
                (struct weft_counter){.name = *name, .value = pass->counters[i].value};
    }
    return report;
}

enum weft_rc weft_remote_run_scanner(const struct weft_via *via, const struct weft_op_call *call,
                                     struct weft_err *err)
{
    enum weft_scanner scanner = ((const struct weft_run_scanner *)call->in)->scanner;
    if ((unsigned)scanner >= WEFT_SCANNER_COUNT)
        return weft_fail_field(err, WEFT_INVALID_VALUE, "scanner", "there is no such scanner");
    const struct weft_remote_request request = {.op = call->op,
                                                .place = weft_scanner_name(scanner)};
    struct weft_wire_pass pass; /* the server chooses the batch */
    enum weft_rc rc = weft_remote_one(via, &request, NULL, call->arena, &pass, err);
    if (!rc)
        *(struct weft_pass_report *)call->out = report_of(&pass, scanner);
    return rc;
}
