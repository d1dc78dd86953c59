/* SPDX-License-Identifier: Apache-2.0 */

/* Ids and epochs are copied from a claim into its completion as text. */

#include "cmd/bench/bench.h"

#include "base/json.h"
#include "base/limits.h"
#include "wire/wire.h"

#include <string.h>

enum { RESULT_SIZE = 50 };

void weft_bench_count_error(struct weft_bench_errors *errors, const char *code, size_t size)
{
    errors->total++;
    if (size >= WEFT_BENCH_CODE_MAX)
        size = WEFT_BENCH_CODE_MAX - 1;
    size_t at = 0;
    while (at < errors->codes && (strlen(errors->item[at].code) != size ||
                                  memcmp(errors->item[at].code, code, size) != 0))
        at++;
    if (at == WEFT_BENCH_CODES_MAX)
        at--; /* the last one counts all others */
    if (at == errors->codes) {
        bool last = ++errors->codes == WEFT_BENCH_CODES_MAX;
        (void)snprintf(errors->item[at].code, WEFT_BENCH_CODE_MAX, "%.*s", last ? 5 : (int)size,
                       last ? "other" : code);
    }
    errors->item[at].count++;
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* The letters repeat late, so that compressing them gains nothing. */
void weft_bench_document(struct weft_buf *out, size_t size, unsigned seed)
{
    static const char head[] = "{\"text\":\"", tail[] = "\"}";
    size_t frame = sizeof(head) + sizeof(tail) - 2;
    uint64_t random = 88172645463325252u + seed * UINT64_C(0x9e3779b97f4a7c15);
    weft_buf_add_text(out, head);
    for (size_t i = frame; i < size; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        weft_buf_add_char(out, (char)('a' + random % 26));
    }
    weft_buf_add_text(out, tail);
}

static void add_spec(const struct weft_bench_plan *plan, struct weft_buf *out)
{
    weft_buf_printf(out, "{\"lane\":\"%s\",\"kind\":\"" WEFT_BENCH_KIND "\"", plan->lane);
    if (plan->payload_size > 0) {
        weft_buf_add_text(out, ",\"payload\":");
        weft_bench_document(out, plan->payload_size, 0);
    }
    weft_buf_add_char(out, '}');
}

void weft_bench_submission(const struct weft_bench_plan *plan, struct weft_buf *out)
{
    weft_buf_clear(out);
    if (plan->batch == 1) {
        add_spec(plan, out);
        return;
    }
    weft_buf_add_text(out, "{\"items\":[");
    for (uint32_t i = 0; i < plan->batch; i++) {
        if (i > 0)
            weft_buf_add_char(out, ',');
        add_spec(plan, out);
    }
    weft_buf_add_text(out, "]}");
}

void weft_bench_claim_body(const struct weft_bench_plan *plan, uint32_t max, int64_t wait_ms,
                           struct weft_buf *out)
{
    weft_buf_clear(out);
    weft_buf_printf(out,
                    "{\"worker\":\"weft-bench\",\"lanes\":[\"%s\"],\"kinds\":[\"" WEFT_BENCH_KIND
                    "\"],\"max\":%u,\"lease_ms\":15000,\"wait_ms\":%lld}",
                    plan->lane, max, (long long)wait_ms);
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* Counts {"error":{"code":...}}; false for anything else. */
static bool count_refusal(const struct weft_json *value, struct weft_bench_errors *errors)
{
    struct weft_json error, code;
    if (!weft_wire_member(value, "error", &error) || error.kind == WEFT_JSON_NULL)
        return false;
    if (weft_wire_member(&error, "code", &code) && code.kind == WEFT_JSON_STRING)
        weft_bench_count_error(errors, code.text + 1, code.size - 2);
    else
        weft_bench_count_error(errors, "unknown", 7);
    return true;
}

void weft_bench_read_refusal(const struct weft_bench_answer *answer,
                             struct weft_bench_errors *errors)
{
    struct weft_json value;
    struct weft_err err;
    if (weft_json_check(answer->body, answer->body_size, &value, &err) == WEFT_OK &&
        count_refusal(&value, errors))
        return;
    char code[16];
    int size = snprintf(code, sizeof(code), "http_%d", answer->status);
    weft_bench_count_error(errors, code, (size_t)size);
}

static enum weft_rc check_body(const struct weft_bench_answer *answer, struct weft_json *ret_value,
                               struct weft_err *err)
{
    enum weft_rc rc = weft_json_check(answer->body, answer->body_size, ret_value, err);
    if (!rc && ret_value->kind != WEFT_JSON_OBJECT)
        rc = weft_fail(err, WEFT_INVALID_VALUE, "the answer is no object");
    return rc;
}

enum weft_rc weft_bench_read_items(const struct weft_bench_answer *answer,
                                   struct weft_bench_errors *errors, size_t *ret_good,
                                   struct weft_err *err)
{
    struct weft_json value, items;
    enum weft_rc rc = check_body(answer, &value, err);
    if (rc)
        return rc;
    size_t good = 0;
    if (!weft_wire_member(&value, "items", &items)) {
        good = 1;
    } else if (items.kind != WEFT_JSON_ARRAY) {
        return weft_fail(err, WEFT_INVALID_VALUE, "the items of the answer are no array");
    } else {
        struct weft_json_iter iter;
        weft_json_iter_init(&iter, &items);
        while (weft_json_next(&iter))
            good += !count_refusal(&iter.value, errors);
    }
    *ret_good = good;
    return WEFT_OK;
}

/* One item of a completion out of one of a claim. */
static bool add_completion(const struct weft_json *item, bool first, struct weft_buf *out)
{
    struct weft_json id = {0}, epoch = {0};
    if (item->kind != WEFT_JSON_OBJECT)
        return false;
    struct weft_json_iter iter;
    weft_json_iter_init(&iter, item);
    while ((!id.text || !epoch.text) && weft_json_next(&iter)) {
        if (weft_json_is(&iter.key, "id"))
            id = iter.value;
        else if (weft_json_is(&iter.key, "epoch"))
            epoch = iter.value;
    }
    if (!id.text || !epoch.text || id.kind != WEFT_JSON_STRING || epoch.kind != WEFT_JSON_NUMBER)
        return false;
    weft_buf_add_text(out, first ? "{\"id\":" : ",{\"id\":");
    weft_buf_add(out, id.text, id.size);
    weft_buf_add_text(out, ",\"epoch\":");
    weft_buf_add(out, epoch.text, epoch.size);
    weft_buf_add_text(out, ",\"result\":");
    weft_bench_document(out, RESULT_SIZE, 0);
    weft_buf_add_char(out, '}');
    return true;
}

enum weft_rc weft_bench_read_claim(const struct weft_bench_answer *answer, struct weft_buf *out,
                                   size_t *ret_claimed, struct weft_err *err)
{
    struct weft_json value, items;
    enum weft_rc rc = check_body(answer, &value, err);
    if (rc)
        return rc;
    if (!weft_wire_member(&value, "items", &items) || items.kind != WEFT_JSON_ARRAY)
        return weft_fail(err, WEFT_INVALID_VALUE, "the answer to a claim has no items");
    size_t claimed = 0;
    weft_buf_clear(out);
    weft_buf_add_text(out, "{\"items\":[");
    struct weft_json_iter iter;
    weft_json_iter_init(&iter, &items);
    while (weft_json_next(&iter)) {
        if (!add_completion(&iter.value, claimed == 0, out))
            return weft_fail(err, WEFT_INVALID_VALUE, "a claimed item has no id and epoch");
        claimed++;
    }
    weft_buf_add_text(out, "]}");
    *ret_claimed = claimed;
    return WEFT_OK;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* The only item of an answer, which has been checked. */
static bool find_item(const struct weft_bench_answer *answer, struct weft_json *ret_item)
{
    struct weft_json value, items;
    struct weft_json_iter iter;
    struct weft_err err;
    if (check_body(answer, &value, &err) || !weft_wire_member(&value, "items", &items) ||
        items.kind != WEFT_JSON_ARRAY)
        return false;
    weft_json_iter_init(&iter, &items);
    bool found = weft_json_next(&iter) && iter.value.kind == WEFT_JSON_OBJECT;
    *ret_item = iter.value;
    return found;
}

bool weft_bench_read_fresh(const struct weft_bench_answer *answer, struct weft_buf *out)
{
    struct weft_json item, id, epoch, resumed;
    if (!find_item(answer, &item) || !weft_wire_member(&item, "id", &id) ||
        !weft_wire_member(&item, "epoch", &epoch) ||
        (weft_wire_member(&item, "resumed", &resumed) && resumed.kind != WEFT_JSON_NULL))
        return false;
    weft_buf_clear(out);
    weft_buf_printf(out, "{\"items\":[{\"id\":%.*s,\"epoch\":%.*s,", (int)id.size, id.text,
                    (int)epoch.size, epoch.text);
    weft_buf_add_text(out, "\"waitpoints\":[{\"name\":\"bench\"}]}]}");
    return true;
}

enum weft_rc weft_bench_read_suspended(const struct weft_bench_answer *answer, struct weft_buf *out,
                                       struct weft_err *err)
{
    struct weft_json item, waitpoints, token;
    struct weft_json_iter iter;
    if (find_item(answer, &item) && weft_wire_member(&item, "waitpoints", &waitpoints) &&
        waitpoints.kind == WEFT_JSON_ARRAY) {
        weft_json_iter_init(&iter, &waitpoints);
        if (weft_json_next(&iter) && weft_wire_member(&iter.value, "token", &token)) {
            weft_buf_clear(out);
            weft_buf_printf(out, "{\"items\":[{\"token\":%.*s,\"name\":\"go\",\"payload\":1}]}",
                            (int)token.size, token.text);
            return WEFT_OK;
        }
    }
    return weft_fail(err, WEFT_INVALID_VALUE, "the answer to a suspension has no token");
}

/* ---- One call after the other ---------------------------------------------------------------- */

enum { CALL_MS = 30000, FLOW_WAIT_MS = 300 };

static enum weft_rc refused(const struct weft_bench_answer *answer, const char *path,
                            struct weft_err *err)
{
    struct weft_bench_errors errors = {0};
    weft_bench_read_refusal(answer, &errors);
    enum weft_rc rc = WEFT_INVALID_VALUE;
    if (answer->status == 401 || answer->status == 403)
        rc = answer->status == 401 ? WEFT_UNAUTHORIZED : WEFT_FORBIDDEN;
    else if (answer->status == 429 || answer->status >= 500)
        rc = WEFT_UNAVAILABLE;
    return weft_fail(err, rc, "the server refuses %s: %d %s", path, answer->status,
                     errors.item[0].code);
}

enum weft_rc weft_bench_call(struct weft_bench_conn *conn, const char *path,
                             const struct weft_buf *body, struct weft_bench_answer *ret_answer,
                             struct weft_err *err)
{
    weft_bench_request(conn->target, path, body, &conn->request);
    enum weft_rc rc = weft_bench_send(conn, conn->request.data, conn->request.size, err);
    if (!rc)
        rc = weft_bench_await(conn, CALL_MS, ret_answer, err);
    if (!rc && (ret_answer->status < 200 || ret_answer->status > 299))
        rc = refused(ret_answer, path, err);
    return rc;
}

enum weft_rc weft_bench_sweep(const struct weft_bench_plan *plan,
                              const struct weft_bench_target *target, struct weft_err *err)
{
    struct weft_bench_conn conn = {.fd = -1};
    struct weft_bench_answer answer;
    struct weft_buf body;
    /* The nodes of a flow come one after the other. */
    int64_t wait_ms = plan->mode == WEFT_BENCH_FLOW ? FLOW_WAIT_MS : 0;
    weft_buf_init(&body, 1 << 20);
    enum weft_rc rc = weft_bench_connect(&conn, target, err);
    for (size_t claimed = 1; !rc && claimed > 0;) {
        claimed = 0;
        weft_bench_claim_body(plan, WEFT_BATCH_MAX, wait_ms, &body);
        rc = weft_bench_call(&conn, "/v1/claims", &body, &answer, err);
        if (!rc)
            rc = weft_bench_read_claim(&answer, &body, &claimed, err);
        if (!rc && claimed > 0)
            rc = weft_bench_call(&conn, "/v1/leases/complete", &body, &answer, err);
    }
    weft_buf_done(&body);
    weft_bench_close(&conn);
    return rc;
}
