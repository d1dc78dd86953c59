/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which function carries out an operation through a server: an operation of wire/ops.def needs one
 * of its own only where it differs from the two general forms. Reading, lanes, workers, tokens and
 * scanners are here.
 */

#include "client/remote/remote.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/moment.h"
#include "core/state.h"
#include "engine/erase/erase.h"
#include "engine/http/settings.h"
#include "engine/job/execution_read.h"
#include "engine/job/list.h"
#include "engine/limit/budgets.h"
#include "engine/limit/gates.h"
#include "engine/scan/pass.h"
#include "engine/wait/wait.h"
#include "fetch/fetch.h"
#include "wire/wire.h"

#include <string.h>

enum { TRIAL_WAIT_MS = 31000 }; /* how long a server may try an endpoint */

/* What the path names: the argument, if that is a text, or the id that it begins with. */
static const char *place_of(const struct weft_op_call *call)
{
    const char *path = weft_ops[call->op].path;
    if (!strchr(path, '{'))
        return NULL;
    if (strstr(path, "{lane}") || strstr(path, "{worker}") || strstr(path, "{gate}") ||
        strstr(path, "{budget}") || strstr(path, "{endpoint}") || strstr(path, "{model}"))
        return call->in;
    if (strstr(path, "tokens/"))
        return weft_arena_printf(call->arena, "%d", *(const int32_t *)call->in);
    return weft_remote_id(call->arena, call->in);
}

/* One request whose body is the argument, if the operation takes one. */
static enum weft_rc send_message(const struct weft_via *via, const struct weft_op_call *call,
                                 struct weft_err *err)
{
    const struct weft_remote_request request = {.op = call->op,
                                                .place = place_of(call),
                                                .item = weft_ops[call->op].takes ? call->in : NULL};
    return weft_remote_one(via, &request, call->arena, call->out, err);
}

/* ---- One execution --------------------------------------------------------------------------- */

static enum weft_rc read_one(const struct weft_via *via, const struct weft_id *id, int64_t wait_ms,
                             struct weft_arena *arena, struct weft_execution *ret_item,
                             struct weft_err *err)
{
    const struct weft_remote_request request = {.op = WEFT_OP_DESCRIBE,
                                                .place = weft_remote_id(arena, id),
                                                .query = weft_remote_wait_query(arena, wait_ms),
                                                .wait_ms = wait_ms};
    return weft_remote_one(via, &request, arena, ret_item, err);
}

/* One execution, which must exist, when it has ended or the wait is over. */
static enum weft_rc wait_for_end(const struct weft_via *via, const struct weft_op_call *call,
                                 struct weft_err *err)
{
    weft_usec until_us = weft_mono_us() + via->wait_ms * WEFT_MS;
    struct weft_execution *item = call->out;
    for (;;) {
        int64_t slice_ms = weft_remote_wait_slice(until_us);
        enum weft_rc rc = read_one(via, call->in, slice_ms, call->arena, item, err);
        if (rc || !weft_state_living(item->state) || slice_ms < WEFT_REMOTE_SLICE_MS)
            return rc;
    }
}

static enum weft_rc describe(const struct weft_via *via, const struct weft_op_call *call,
                             struct weft_err *err)
{
    const struct weft_id *id = call->in;
    struct weft_execution *item = call->out;
    if (via->waits)
        return wait_for_end(via, call, err);
    for (size_t i = 0; i < call->count; i++) {
        enum weft_rc rc = read_one(via, &id[i], 0, call->arena, &item[i], err);
        if (rc == WEFT_NOT_FOUND)
            item[i] = (struct weft_execution){.id = id[i], .percent = -1};
        else if (rc)
            return rc;
    }
    return WEFT_OK;
}

static enum weft_rc read_bytes(const struct weft_via *via, const struct weft_op_call *call,
                               struct weft_err *err)
{
    const struct weft_remote_request request = {.op = call->op,
                                                .place = weft_remote_id(call->arena, call->in)};
    struct weft_remote_response response;
    enum weft_rc rc = weft_remote_send(via, &request, call->arena, &response, err);
    if (!rc)
        *(struct weft_bytes *)call->out = (struct weft_bytes){
            .data = response.body, .size = response.size, .content_type = response.content_type};
    return rc;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static void *add_item(struct weft_remote_list *listing, size_t size, struct weft_arena *arena)
{
    if (listing->count == listing->capacity) {
        size_t capacity = listing->capacity ? 2 * listing->capacity : 16;
        void *item = weft_arena_alloc(arena, capacity, size);
        if (listing->count)
            memcpy(item, listing->item, listing->count * size);
        listing->item = item;
        listing->capacity = capacity;
    }
    return (char *)listing->item + listing->count++ * size;
}

static weft_usec looked_to(const struct weft_json *object)
{
    struct weft_json value;
    weft_usec moment_us = 0;
    if (weft_wire_member(object, "looked_to", &value) && value.kind == WEFT_JSON_STRING &&
        !weft_moment_parse(value.text + 1, value.size - 2, &moment_us))
        moment_us = 0;
    return moment_us;
}

enum weft_rc weft_remote_page(const struct weft_via *via, const struct weft_remote_request *request,
                              struct weft_arena *arena, struct weft_remote_list *listing,
                              struct weft_err *err)
{
    const struct weft_wire_type *type = weft_ops[request->op].gives;
    struct weft_json_iter iter;
    struct weft_json next;
    enum weft_rc rc = weft_remote_ask(via, request, arena, &listing->page, err);
    if (rc)
        return rc;
    if (!weft_remote_items(&listing->page, SIZE_MAX, &iter))
        return weft_remote_garbled(request, err);
    while (weft_json_next(&iter))
        if (weft_wire_read_answer(type, &iter.value, arena,
                                  add_item(listing, weft_wire_size(type), arena), NULL))
            return weft_remote_garbled(request, err);
    listing->next = NULL;
    if (weft_wire_member(&listing->page, "next", &next) && next.kind == WEFT_JSON_STRING &&
        weft_json_string(&next, arena, &listing->next, NULL))
        return weft_remote_garbled(request, err);
    listing->looked_to_us = looked_to(&listing->page);
    return WEFT_OK;
}

static enum weft_rc whole_list(const struct weft_via *via, const struct weft_op_call *call,
                               struct weft_err *err)
{
    struct {
        const void *item;
        size_t count;
    } *answer = call->out; /* how every list of weft.h begins */
    struct weft_remote_list listing = {0};
    struct weft_remote_request request = {.op = call->op};
    bool attempts = call->op == WEFT_OP_ATTEMPTS, keys = call->op == WEFT_OP_KEYS;
    if (attempts)
        request.place = weft_remote_id(call->arena, call->in);
    enum weft_rc rc;
    do {
        request.query = WEFT_QUERY(call->arena, {"limit", attempts || keys ? NULL : "1000"},
                                   {"after", listing.next});
        rc = weft_remote_page(via, &request, call->arena, &listing, err);
    } while (!rc && listing.next);
    if (!rc) {
        answer->item = listing.item;
        answer->count = listing.count;
    }
    return rc;
}

const char *weft_remote_page_query(struct weft_arena *arena, uint32_t limit, const char *after)
{
    return WEFT_QUERY(arena, {"limit", limit ? weft_arena_printf(arena, "%u", limit) : NULL},
                      {"after", after});
}

/* A page about an execution: waitpoints or signals. */
static enum weft_rc wait_page(const struct weft_via *via, const struct weft_op_call *call,
                              struct weft_err *err)
{
    struct weft_waitpoints *answer = call->out; /* both kinds of page begin so */
    const struct weft_wait_asking *asking = call->in;
    struct weft_remote_list listing = {0};
    const struct weft_remote_request request = {
        .op = call->op,
        .place = weft_remote_id(call->arena, &asking->id),
        .query = weft_remote_page_query(call->arena, asking->limit, asking->after)};
    enum weft_rc rc = weft_remote_page(via, &request, call->arena, &listing, err);
    if (!rc) {
        answer->item = listing.item;
        answer->count = listing.count;
        answer->next = listing.next;
    }
    return rc;
}

/* A new signing key; the answer is a list. */
static enum weft_rc key_rotate(const struct weft_via *via, const struct weft_op_call *call,
                               struct weft_err *err)
{
    struct weft_signing_keys *answer = call->out;
    struct weft_remote_list listing = {0};
    const struct weft_remote_request request = {.op = call->op, .item = call->in};
    enum weft_rc rc = weft_remote_page(via, &request, call->arena, &listing, err);
    if (!rc) {
        answer->item = listing.item;
        answer->count = listing.count;
    }
    return rc;
}

/* A moment as text; NULL: there is none. */
static const char *moment_text(struct weft_arena *arena, weft_usec moment_us)
{
    char text[WEFT_MOMENT_TEXT];
    if (moment_us <= 0 || moment_us > WEFT_MOMENT_MAX_US)
        return NULL;
    weft_moment_print(moment_us, text);
    return weft_arena_strdup(arena, text);
}

static const char *tag_text(struct weft_arena *arena, const struct weft_tag *tag)
{
    return tag ? weft_arena_printf(arena, "%s:%s", tag->key ? tag->key : "",
                                   tag->value ? tag->value : "")
               : NULL;
}

static const char *query_list(const struct weft_listing *wanted, struct weft_arena *arena)
{
    const struct weft_filter *filter = &wanted->filter;
    return WEFT_QUERY(
        arena, {"lane", filter->lane}, {"kind", filter->kind},
        {"state", filter->state ? weft_state_name(filter->state) : NULL},
        {"tenant", filter->tenant}, {"key", filter->key}, {"error_class", filter->error_class},
        {"worker", filter->worker}, {"id", filter->id},
        {"escalated", filter->escalated ? "true" : NULL},
        {"created_since", moment_text(arena, filter->created_since_us)},
        {"created_until", moment_text(arena, filter->created_until_us)},
        {"finished_since", moment_text(arena, filter->finished_since_us)},
        {"finished_until", moment_text(arena, filter->finished_until_us)},
        {"flow", weft_id_is_zero(&filter->flow) ? NULL : weft_remote_id(arena, &filter->flow)},
        {"tag", tag_text(arena, filter->tag)},
        {"limit", wanted->limit ? weft_arena_printf(arena, "%u", wanted->limit) : NULL},
        {"after", wanted->after});
}

static enum weft_rc list(const struct weft_via *via, const struct weft_op_call *call,
                         struct weft_err *err)
{
    const struct weft_listing *wanted = call->in;
    if ((unsigned)wanted->filter.state >= WEFT_STATE_COUNT)
        return weft_invalid(err, "state", "there is no such state");
    const struct weft_remote_request request = {
        .op = call->op, .query = query_list(wanted, call->arena), .ns = wanted->filter.ns};
    struct weft_remote_list listing = {0};
    enum weft_rc rc = weft_remote_page(via, &request, call->arena, &listing, err);
    if (!rc)
        *(struct weft_read_page *)call->out =
            (struct weft_read_page){.item = listing.item,
                                    .count = listing.count,
                                    .next = listing.next,
                                    .looked_to_us = listing.looked_to_us};
    return rc;
}

static enum weft_rc counts(const struct weft_via *via, const struct weft_op_call *call,
                           struct weft_err *err)
{
    const struct weft_remote_request request = {
        .op = call->op, .query = WEFT_QUERY(call->arena, {"lane", call->in})};
    struct weft_remote_list listing = {0};
    struct weft_json as_of, age;
    weft_usec as_of_us = 0;
    int64_t age_ms;
    enum weft_rc rc = weft_remote_page(via, &request, call->arena, &listing, err);
    if (!rc &&
        (!weft_wire_member(&listing.page, "as_of", &as_of) || as_of.kind != WEFT_JSON_STRING ||
         !weft_moment_parse(as_of.text + 1, as_of.size - 2, &as_of_us)))
        rc = weft_remote_garbled(&request, err);
    if (rc || !weft_wire_member(&listing.page, "age_ms", &age) || !weft_json_i64(&age, &age_ms) ||
        age_ms < 0)
        age_ms = -1; /* an older server */
    if (!rc)
        *(struct weft_counts *)call->out = (struct weft_counts){
            .item = listing.item, .count = listing.count, .as_of_us = as_of_us, .age_ms = age_ms};
    return rc;
}

/* ---- Lanes and workers ----------------------------------------------------------------------- */

enum weft_rc weft_remote_send_only(const struct weft_via *via,
                                   const struct weft_remote_request *request, struct weft_err *err)
{
    struct weft_arena *arena = weft_arena_new();
    struct weft_remote_response response;
    enum weft_rc rc = weft_remote_send(via, request, arena, &response, err);
    weft_arena_free(arena);
    return rc;
}

static enum weft_rc lane_put(const struct weft_via *via, const struct weft_op_call *call,
                             struct weft_err *err)
{
    struct weft_lane settings = *(const struct weft_lane *)call->in;
    const struct weft_remote_request request = {
        .op = call->op, .place = settings.name, .item = &settings};
    enum weft_rc rc = settings.name ? WEFT_OK : weft_missing("name", err);
    for (size_t i = 0; i < settings.weight_count && !rc; i++)
        if (!settings.weights[i].tenant)
            rc = weft_missing("weights", err);
    if (rc)
        return rc;
    settings.name = NULL; /* the path says it */
    return weft_remote_send_only(via, &request, err);
}

static enum weft_rc gate_put(const struct weft_via *via, const struct weft_op_call *call,
                             struct weft_err *err)
{
    struct weft_gate settings = *(const struct weft_gate *)call->in;
    const struct weft_remote_request request = {
        .op = call->op, .place = settings.name, .item = &settings};
    settings.name = NULL; /* the path says it */
    settings.running = settings.ready = settings.held = 0;
    settings.next_us = 0;
    return weft_remote_send_only(via, &request, err);
}

static enum weft_rc gates(const struct weft_via *via, const struct weft_op_call *call,
                          struct weft_err *err)
{
    const struct weft_gate_asking *asking = call->in;
    const char *query =
        WEFT_QUERY(call->arena, {"prefix", asking->prefix},
                   {"limit", weft_arena_printf(call->arena, "%u",
                                               asking->limit ? asking->limit : WEFT_PAGE_DEFAULT)},
                   {"after", asking->after});
    const struct weft_remote_request request = {.op = call->op, .query = query, .ns = asking->ns};
    struct weft_remote_list list = {0};
    enum weft_rc rc = weft_remote_page(via, &request, call->arena, &list, err);
    if (!rc)
        *(struct weft_gates *)call->out =
            (struct weft_gates){.item = list.item, .count = list.count, .next = list.next};
    return rc;
}

static enum weft_rc budget_put(const struct weft_via *via, const struct weft_op_call *call,
                               struct weft_err *err)
{
    struct weft_budget settings = *(const struct weft_budget *)call->in;
    const struct weft_remote_request request = {
        .op = call->op, .place = settings.name, .item = &settings};
    settings.name = NULL; /* the path says it */
    settings.state = WEFT_BUDGET_OK;
    settings.next_reset_us = settings.period_began_us = 0;
    settings.breaches = 0;
    return weft_remote_send_only(via, &request, err);
}

static WEFT_REMOTE_PAGE_OF(budgets, weft_budget_asking, weft_budgets, NULL);

static enum weft_rc endpoint_put(const struct weft_via *via, const struct weft_op_call *call,
                                 struct weft_err *err)
{
    struct weft_endpoint settings = *(const struct weft_endpoint *)call->in;
    const struct weft_remote_request request = {
        .op = call->op, .place = settings.name, .item = &settings};
    settings.name = NULL; /* the path says it */
    settings.version = 0;
    settings.health = (struct weft_endpoint_health){0};
    return weft_remote_send_only(via, &request, err);
}

static enum weft_rc endpoint_test(const struct weft_via *via, const struct weft_op_call *call,
                                  struct weft_err *err)
{
    const struct weft_endpoint_trying *trying = call->in;
    const struct weft_remote_request request = {
        .op = call->op, .place = trying->name, .item = trying, .wait_ms = TRIAL_WAIT_MS};
    return weft_remote_one(via, &request, call->arena, call->out, err);
}

static WEFT_REMOTE_PAGE_OF(endpoints, weft_endpoint_asking, weft_endpoints, NULL);
static WEFT_REMOTE_PAGE_OF(erasures, weft_erasure_asking, weft_erasures, NULL);
static WEFT_REMOTE_PAGE_OF(ledger, weft_ledger_asking, weft_ledger, asking->name);

/* The same for an operation whose path names its argument. */
static enum weft_rc send_place(const struct weft_via *via, const struct weft_op_call *call,
                               struct weft_err *err)
{
    const struct weft_remote_request request = {.op = call->op, .place = place_of(call)};
    return weft_remote_send_only(via, &request, err);
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

static enum weft_rc goodbye(const struct weft_via *via, const struct weft_op_call *call,
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

static enum weft_rc run_scanner(const struct weft_via *via, const struct weft_op_call *call,
                                struct weft_err *err)
{
    enum weft_scanner scanner = ((const struct weft_run_scanner *)call->in)->scanner;
    if ((unsigned)scanner >= WEFT_SCANNER_COUNT)
        return weft_invalid(err, "scanner", "there is no such scanner");
    const struct weft_remote_request request = {.op = call->op,
                                                .place = weft_scanner_name(scanner)};
    struct weft_wire_pass pass; /* the server chooses the batch */
    enum weft_rc rc = weft_remote_one(via, &request, call->arena, &pass, err);
    if (!rc)
        *(struct weft_pass_report *)call->out = report_of(&pass, scanner);
    return rc;
}

/* ---- The backend ----------------------------------------------------------------------------- */

static weft_remote_fn *const calls[WEFT_OP_COUNT] = {
    [WEFT_OP_CLAIM] = weft_remote_claim,
    [WEFT_OP_WATCH] = weft_remote_watch,
    [WEFT_OP_CANCEL_MANY] = weft_remote_steer_many,
    [WEFT_OP_REPLAY_MANY] = weft_remote_steer_many,
    [WEFT_OP_FLOW_SUBMIT] = weft_remote_flow_submit,
    [WEFT_OP_FLOW_GROW] = weft_remote_flow_grow,
    [WEFT_OP_FLOW_LINK] = weft_remote_flow_link,
    [WEFT_OP_FLOW_CANCEL] = weft_remote_flow_cancel,
    [WEFT_OP_FLOW_DELETE] = weft_remote_flow_cancel,
    [WEFT_OP_FLOW] = weft_remote_flow,
    [WEFT_OP_FLOW_NODES] = weft_remote_flow_nodes,
    [WEFT_OP_FLOWS] = weft_remote_flows,
    [WEFT_OP_DESCRIBE] = describe,
    [WEFT_OP_LIST] = list,
    [WEFT_OP_RESULT] = read_bytes,
    [WEFT_OP_PAYLOAD] = read_bytes,
    [WEFT_OP_COUNTS] = counts,
    [WEFT_OP_ATTEMPTS] = whole_list,
    [WEFT_OP_LANES] = whole_list,
    [WEFT_OP_WORKERS] = whole_list,
    [WEFT_OP_TOKENS] = whole_list,
    [WEFT_OP_REPLICAS] = whole_list,
    [WEFT_OP_SCANNERS] = whole_list,
    [WEFT_OP_WAITPOINT_LIST] = wait_page,
    [WEFT_OP_SIGNAL_LIST] = wait_page,
    [WEFT_OP_KEYS] = whole_list,
    [WEFT_OP_KEY_ROTATE] = key_rotate,
    [WEFT_OP_LANE_PUT] = lane_put,
    [WEFT_OP_GATES] = gates,
    [WEFT_OP_GATE_PUT] = gate_put,
    [WEFT_OP_GATE_REMOVE] = send_place,
    [WEFT_OP_BUDGETS] = budgets,
    [WEFT_OP_BUDGET_PUT] = budget_put,
    [WEFT_OP_BUDGET_REMOVE] = send_place,
    [WEFT_OP_BUDGET_RESET] = send_place,
    [WEFT_OP_LEDGER] = ledger,
    [WEFT_OP_ENDPOINTS] = endpoints,
    [WEFT_OP_ENDPOINT_PUT] = endpoint_put,
    [WEFT_OP_ENDPOINT_TEST] = endpoint_test,
    [WEFT_OP_ENDPOINT_REMOVE] = send_place,
    [WEFT_OP_ERASURES] = erasures,
    [WEFT_OP_FILES] = weft_remote_files,
    [WEFT_OP_FILE] = weft_remote_file,
    [WEFT_OP_FILE_PUT] = weft_remote_file_put,
    [WEFT_OP_FILE_REMOVE] = weft_remote_file,
    [WEFT_OP_FILE_CONTENT] = weft_remote_content,
    [WEFT_OP_BATCHES] = weft_remote_batches,
    [WEFT_OP_BATCH] = weft_remote_batch,
    [WEFT_OP_BATCH_CREATE] = weft_remote_batch_create,
    [WEFT_OP_BATCH_CANCEL] = weft_remote_batch,
    [WEFT_OP_BATCH_RETRY] = weft_remote_batch,
    [WEFT_OP_BATCH_DELETE] = weft_remote_batch,
    [WEFT_OP_MODELS] = weft_remote_models,
    [WEFT_OP_MODEL_PUT] = weft_remote_model_put,
    [WEFT_OP_MODEL_REMOVE] = send_place,
    [WEFT_OP_LANE_REMOVE] = send_place,
    [WEFT_OP_GOODBYE] = goodbye,
    [WEFT_OP_TOKEN_REVOKE] = send_place,
    [WEFT_OP_RUN_SCANNER] = run_scanner,
};

static enum weft_rc call_server(const struct weft_via *via, const struct weft_op_call *call,
                                struct weft_err *err)
{
    bool items = !weft_group_alone(weft_ops[call->op].group);
    weft_remote_fn *usual = items ? weft_remote_bulk : send_message;
    return (calls[call->op] ? calls[call->op] : usual)(via, call, err);
}

static void close_remote(struct weft *weft)
{
    weft_fetch_close(weft->fetch);
}

const struct weft_backend weft_backend_remote = {.call = call_server, .close = close_remote};
