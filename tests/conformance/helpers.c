/* SPDX-License-Identifier: Apache-2.0 */

/* The short forms of conformance.h. */

#include "conformance.h"
#include "direct.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "engine/admin/lanes.h"
#include "engine/engine.h"
#include "engine/job/claim.h"
#include "engine/job/control.h"
#include "engine/job/execution_read.h"
#include "engine/job/leases.h"
#include "engine/job/list.h"
#include "engine/job/submit.h"
#include "engine/scan/pass.h"
#include "store/store.h"
#include "weft/weft.h"

#include <stdlib.h>

bool is_pg(const struct fixture *f)
{
    return strcmp(f->store, "pg") == 0;
}

bool only_on_pg(const struct fixture *f, const char *why)
{
    if (!is_pg(f))
        tap_skip(why);
    return is_pg(f);
}

void run_sql_of(struct fixture *f, const char *pg, const char *sqlite)
{
    run_sql(f, is_pg(f) ? pg : sqlite);
}

/* A call that fails as a whole is a failed point with its story, and the case goes on. */
static void expect_ok(struct fixture *f, enum weft_rc rc, const char *what)
{
    if (rc)
        ok(false, "%s: %s: %s", what, weft_rc_wire(rc), f->err.text);
}

void forward_ms(struct fixture *f, int64_t ms)
{
    f->now_us += ms * WEFT_MS;
    weft_clock_set(weft_engine_clock(f->a), f->now_us);
    weft_clock_set(weft_engine_clock(f->b), f->now_us);
}

void run_sql(struct fixture *f, const char *sql)
{
    const struct weft_driver *driver;
    struct weft_conn *conn = NULL;
    enum weft_rc rc = weft_driver_for(f->url, &driver, &f->err);
    if (!rc)
        rc = driver->open(f->url, &conn, &f->err);
    if (!rc)
        rc = driver->begin(conn, WEFT_TX_WRITE, &f->err);
    if (!rc)
        rc = driver->script(conn, sql, &f->err);
    if (!rc)
        rc = driver->commit(conn, &f->err);
    expect_ok(f, rc, sql);
    weft_conn_close(conn);
}

struct weft_submitted submit(struct fixture *f, struct weft_engine *engine,
                             const struct weft_spec *spec)
{
    struct weft_submitted answer = {0};
    expect_ok(f, engine_submit(engine, "default", spec, 1, &answer, &f->err), "submit");
    return answer;
}

struct weft_id submit_ok(struct fixture *f, const struct weft_spec *spec)
{
    struct weft_submitted answer = submit(f, f->a, spec);
    if (answer.err.rc)
        ok(false, "submit is accepted: %s", answer.err.text);
    return answer.id;
}

struct weft_id submit_job(struct fixture *f)
{
    return submit_ok(f, &(struct weft_spec){.kind = "job"});
}

static const char *copy_text(struct fixture *f, const char *text)
{
    return text ? weft_arena_strdup(f->arena, text) : NULL;
}

static void copy_signals(struct fixture *f, struct weft_claimed *item)
{
    struct weft_signal_info *copy =
        weft_new_array(f->arena, struct weft_signal_info, item->signal_count + 1);
    for (size_t i = 0; i < item->signal_count; i++) {
        copy[i] = item->signal[i];
        copy[i].waitpoint_name = copy_text(f, copy[i].waitpoint_name);
        copy[i].name = copy_text(f, copy[i].name);
        copy[i].source = copy_text(f, copy[i].source);
        copy[i].key = copy_text(f, copy[i].key);
        copy[i].content_type = copy_text(f, copy[i].content_type);
        if (copy[i].payload)
            copy[i].payload = weft_arena_dup(f->arena, copy[i].payload, copy[i].payload_size);
    }
    item->signal = copy;
}

/* What the member of a flow was given besides. */
static void copy_upstreams(struct fixture *f, struct weft_claimed *item)
{
    struct weft_upstream *copy =
        weft_new_array(f->arena, struct weft_upstream, item->upstream_count + 1);
    for (size_t i = 0; i < item->upstream_count; i++) {
        copy[i] = item->upstream[i];
        copy[i].node = weft_arena_strdup(f->arena, copy[i].node);
        if (copy[i].content_type)
            copy[i].content_type = weft_arena_strdup(f->arena, copy[i].content_type);
        if (copy[i].result)
            copy[i].result = weft_arena_dup(f->arena, copy[i].result, copy[i].result_size);
    }
    item->upstream = copy;
    if (item->node)
        item->node = weft_arena_strdup(f->arena, item->node);
}

struct weft_claim_result claim_several(struct fixture *f, struct weft_engine *engine,
                                       const struct weft_claim *args, size_t count)
{
    struct weft_claim_result result = {0};
    struct weft_arena *arena = weft_arena_new();
    expect_ok(f, weft_engine_claim(engine, "default", args, count, arena, &result, &f->err),
              "claim");
    /* Copied out, because a claim wants an arena of its own and a case has many claims. */
    struct weft_claimed *item = weft_new_array(f->arena, struct weft_claimed, result.count + 1);
    for (size_t i = 0; i < result.count; i++) {
        item[i] = result.item[i];
        item[i].payload = weft_arena_dup(f->arena, item[i].payload, item[i].payload_size);
        item[i].content_type = weft_arena_strdup(f->arena, item[i].content_type);
        struct weft_tag *tags = weft_new_array(f->arena, struct weft_tag, item[i].tag_count + 1);
        for (size_t t = 0; t < item[i].tag_count; t++) {
            tags[t].key = weft_arena_strdup(f->arena, item[i].tags[t].key);
            tags[t].value = weft_arena_strdup(f->arena, item[i].tags[t].value);
        }
        item[i].tags = tags;
        if (!result.item[i].payload)
            item[i].payload = NULL;
        copy_upstreams(f, &item[i]);
        copy_signals(f, &item[i]);
    }
    weft_arena_free(arena);
    result.item = item;
    return result;
}

struct weft_claim_result claim_with(struct fixture *f, struct weft_engine *engine,
                                    const struct weft_claim *args)
{
    return claim_several(f, engine, args, 1);
}

struct weft_claim_result claim(struct fixture *f, struct weft_engine *engine, uint32_t max)
{
    return claim_with(
        f, engine,
        &(struct weft_claim){.worker = engine == f->a ? "worker-a" : "worker-b", .max = max});
}

struct weft_claimed claim_one(struct fixture *f, struct weft_engine *engine)
{
    struct weft_claim_result result = claim(f, engine, 1);
    if (result.count == 1)
        return result.item[0];
    ok(false, "there is one to claim");
    return (struct weft_claimed){.epoch = 1};
}

struct weft_claimed take_kind(struct fixture *f, const char *kind)
{
    const struct weft_claim args = {
        .worker = "worker-a", .kinds = &kind, .kind_count = 1, .lease_ms = 60000};
    struct weft_claim_result got = claim_with(f, f->a, &args);
    is_int(got.count, 1, "%s can be claimed", kind);
    return got.count ? got.item[0] : (struct weft_claimed){0};
}

struct weft_lease_answer renew(struct fixture *f, struct weft_engine *engine,
                               const struct weft_claimed *lease)
{
    struct weft_lease_answer answer = {0};
    const struct weft_renew item = {.id = lease->id, .epoch = lease->epoch};
    expect_ok(f, engine_renew(engine, &item, 1, &answer, &f->err), "renew");
    return answer;
}

struct weft_lease_answer complete(struct fixture *f, struct weft_engine *engine,
                                  const struct weft_claimed *lease, const char *result)
{
    struct weft_lease_answer answer = {0};
    const struct weft_complete item = {.id = lease->id,
                                       .epoch = lease->epoch,
                                       .result = result,
                                       .result_size = result ? strlen(result) : 0};
    expect_ok(f, engine_complete(engine, &item, 1, &answer, &f->err), "complete");
    return answer;
}

struct weft_lease_answer fail(struct fixture *f, struct weft_engine *engine,
                              const struct weft_claimed *lease, const char *error_class)
{
    struct weft_lease_answer answer = {0};
    const struct weft_failure item = {
        .id = lease->id, .epoch = lease->epoch, .error_class = error_class, .message = "it broke"};
    expect_ok(f, engine_fail(engine, &item, 1, &answer, &f->err), "fail");
    return answer;
}

struct weft_lease_answer put_back(struct fixture *f, enum weft_put_back_kind kind,
                                  const struct weft_claimed *lease, int64_t delay_ms)
{
    struct weft_lease_answer answer = {0};
    const struct weft_put_back item = {
        .id = lease->id, .epoch = lease->epoch, .delay_ms = delay_ms};
    expect_ok(f, engine_put_back(f->a, kind, &item, 1, &answer, &f->err), "put back");
    return answer;
}

struct weft_steered steer(struct fixture *f, enum weft_steer_kind kind,
                          const struct weft_steer *item)
{
    struct weft_steered answer = {0};
    const struct weft_steering steering = {.kind = kind, .ns = "default", .item = item, .count = 1};
    expect_ok(f, engine_steer(f->a, &steering, &answer, &f->err), "steer");
    return answer;
}

struct weft_execution describe(struct fixture *f, const struct weft_id *id)
{
    struct weft_execution item = {0};
    expect_ok(f, weft_engine_describe(f->b, "default", id, 1, f->arena, &item, &f->err),
              "describe");
    return item;
}

enum weft_state state_of(struct fixture *f, const struct weft_id *id)
{
    return describe(f, id).state;
}

struct weft_attempts attempts(struct fixture *f, const struct weft_id *id)
{
    struct weft_attempts list = {0};
    expect_ok(f, weft_engine_attempts(f->b, "default", id, f->arena, &list, &f->err), "attempts");
    return list;
}

struct weft_pass_report run_pass(struct fixture *f, struct weft_engine *engine,
                                 enum weft_scanner pass)
{
    struct weft_pass_report report = {0};
    expect_ok(f, weft_engine_pass(engine, pass, NULL, &report, &f->err), weft_scanner_name(pass));
    return report;
}

struct weft_pass_report pass_with(struct fixture *f, enum weft_scanner scanner,
                                  const struct weft_pass_config *config)
{
    struct weft_pass_report report = {0};
    if (weft_engine_pass(f->b, scanner, config, &report, &f->err))
        ok(false, "%s: %s", weft_scanner_name(scanner), f->err.text);
    return report;
}

void put_lane(struct fixture *f, struct weft_engine *engine, const struct weft_lane *lane)
{
    expect_ok(f, weft_engine_lane_put(engine, "default", lane, &f->err), "put lane");
}

static void expect_one_fenced(const struct weft_lease_answer *answer, enum weft_fence fence,
                              const char *what)
{
    ok(answer->err.rc == WEFT_FENCED && answer->fence == fence, "%s is fenced: %s (got %s, %s)",
       what, weft_fence_name(fence), weft_rc_wire(answer->err.rc), weft_fence_name(answer->fence));
}

void expect_fenced(struct fixture *f, const struct weft_claimed *lease, enum weft_fence fence)
{
    struct weft_execution before = describe(f, &lease->id);
    size_t ended = attempts(f, &lease->id).count;
    struct weft_lease_answer answer = renew(f, f->a, lease);
    expect_one_fenced(&answer, fence, "renew");
    const struct weft_renew progress = {
        .id = lease->id, .epoch = lease->epoch, .has_progress = true, .percent = 99};
    expect_ok(f, engine_renew(f->b, &progress, 1, &answer, &f->err), "progress");
    expect_one_fenced(&answer, fence, "progress");
    answer = complete(f, f->b, lease, "\"stale\"");
    expect_one_fenced(&answer, fence, "complete");
    answer = fail(f, f->a, lease, "stale");
    expect_one_fenced(&answer, fence, "fail");
    answer = put_back(f, WEFT_PUT_BACK_DELAY, lease, 1000);
    expect_one_fenced(&answer, fence, "delay");
    answer = put_back(f, WEFT_PUT_BACK_RELEASE, lease, 0);
    expect_one_fenced(&answer, fence, "release");
    struct weft_execution after = describe(f, &lease->id);
    ok(after.state == before.state && after.epoch == before.epoch &&
           after.attempt == before.attempt && after.run_at_us == before.run_at_us &&
           after.lease_expires_us == before.lease_expires_us && after.percent == before.percent &&
           after.lost == before.lost && attempts(f, &lease->id).count == ended,
       "a fenced call changes neither the execution nor its attempts");
}

/* ---- Executions side by side ----------------------------------------------------------------- */

struct weft_id submit_apart(struct fixture *f, const struct weft_spec *spec, const char **ret_lane)
{
    static int lanes;
    struct weft_spec apart = spec ? *spec : (struct weft_spec){0};
    apart.kind = apart.kind ? apart.kind : "job";
    apart.lane = *ret_lane = weft_arena_printf(f->arena, "lane-%d", ++lanes);
    return submit_ok(f, &apart);
}

struct weft_claim_result claim_lane(struct fixture *f, struct weft_engine *engine, const char *lane)
{
    const struct weft_claim args = {.worker = engine == f->a ? "worker-a" : "worker-b",
                                    .lanes = &lane,
                                    .lane_count = 1,
                                    .max = 1};
    return claim_with(f, engine, &args);
}

struct weft_claimed take(struct fixture *f, struct weft_engine *engine, const char *lane)
{
    struct weft_claim_result result = claim_lane(f, engine, lane);
    if (result.count == 1)
        return result.item[0];
    ok(false, "there is one to claim in %s", lane);
    return (struct weft_claimed){.epoch = 1, .lane = lane};
}

struct weft_claimed start(struct fixture *f, const struct weft_spec *spec)
{
    const char *lane;
    struct weft_id id = submit_apart(f, spec, &lane);
    struct weft_claimed lease = take(f, f->a, lane);
    lease.id = id;
    return lease;
}

struct weft_claimed start_policy(struct fixture *f, const struct weft_policy *policy)
{
    return start(f, &(struct weft_spec){.policy = policy});
}

/* The steps from running to a state, or nothing for one that nothing leads to yet. */
static void move_on(struct fixture *f, const struct weft_claimed *lease, enum weft_state state)
{
    struct weft_steer item = {.id = lease->id, .deadline_us = f->now_us + 1000 * WEFT_MS};
    switch (state) {
    case WEFT_STATE_READY:
        (void)put_back(f, WEFT_PUT_BACK_RELEASE, lease, 0);
        break;
    case WEFT_STATE_DELAYED:
        (void)put_back(f, WEFT_PUT_BACK_DELAY, lease, 1000);
        break;
    case WEFT_STATE_SUCCEEDED:
        (void)complete(f, f->a, lease, "\"done\"");
        break;
    case WEFT_STATE_FAILED:
        (void)fail_as(f, f->a, lease, &(struct weft_failure){.permanent = true});
        break;
    case WEFT_STATE_CANCELLED:
        (void)steer_id(f, WEFT_STEER_CANCEL, &lease->id);
        break;
    case WEFT_STATE_EXPIRED:
        (void)steer(f, WEFT_STEER_SET_DEADLINE, &item);
        forward_ms(f, 1000);
        (void)run_pass(f, f->a, WEFT_SCANNER_EXECUTION_DEADLINE);
        break;
    case WEFT_STATE_NONE:
    case WEFT_STATE_RUNNING:
    case WEFT_STATE_BLOCKED:
    case WEFT_STATE_SUSPENDED:
    case WEFT_STATE_HELD:
    case WEFT_STATE_SKIPPED:
    case WEFT_STATE_COUNT:
        break;
    }
}

struct weft_claimed bring(struct fixture *f, enum weft_state state, const struct weft_spec *spec)
{
    struct weft_claimed lease = start(f, spec);
    move_on(f, &lease, state);
    enum weft_state is = state_of(f, &lease.id);
    if (is != state)
        ok(false, "expected state %s, but it is %s", weft_state_name(state), weft_state_name(is));
    return lease;
}

struct weft_lease_answer fail_as(struct fixture *f, struct weft_engine *engine,
                                 const struct weft_claimed *lease, const struct weft_failure *how)
{
    struct weft_lease_answer answer = {0};
    struct weft_failure item = *how;
    item.id = lease->id;
    item.epoch = lease->epoch;
    expect_ok(f, engine_fail(engine, &item, 1, &answer, &f->err), "fail");
    return answer;
}

struct weft_steered steer_id(struct fixture *f, enum weft_steer_kind kind, const struct weft_id *id)
{
    return steer(f, kind, &(struct weft_steer){.id = *id});
}

const char *result_text(struct fixture *f, const struct weft_id *id)
{
    struct weft_bytes bytes = {0};
    const struct weft_bytes_of of = {.kind = WEFT_BYTES_RESULT, .ns = "default", .id = *id};
    enum weft_rc rc = weft_engine_bytes(f->b, &of, f->arena, &bytes, &f->err);
    if (rc == WEFT_NOT_FOUND)
        return NULL;
    expect_ok(f, rc, "result");
    return weft_arena_printf(f->arena, "%.*s", (int)bytes.size, (const char *)bytes.data);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool same_execution(const struct weft_execution *a, const struct weft_execution *b)
{
    return weft_id_cmp(&a->id, &b->id) == 0 && a->state == b->state && a->priority == b->priority &&
           a->attempt == b->attempt && a->epoch == b->epoch && a->lost == b->lost &&
           same_text(a->worker, b->worker) && same_text(a->reason, b->reason) &&
           same_text(a->by, b->by) && same_text(a->error_class, b->error_class) &&
           same_text(a->error_message, b->error_message) && a->percent == b->percent &&
           same_text(a->note, b->note) && a->created_us == b->created_us &&
           a->started_us == b->started_us && a->claimed_us == b->claimed_us &&
           a->finished_us == b->finished_us && a->run_at_us == b->run_at_us &&
           a->deadline_us == b->deadline_us && a->lease_expires_us == b->lease_expires_us &&
           weft_id_cmp(&a->flow, &b->flow) == 0 && same_text(a->node, b->node) &&
           a->attempts_used == b->attempts_used && a->attempts_left == b->attempts_left &&
           a->next_attempt_us == b->next_attempt_us && a->not_retried == b->not_retried &&
           a->result_size == b->result_size;
}

bool same_answer(const struct weft_lease_answer *a, const struct weft_lease_answer *b)
{
    return a->err.rc == WEFT_OK && b->err.rc == WEFT_OK && a->fence == b->fence &&
           a->state == b->state && a->run_at_us == b->run_at_us &&
           a->lease_expires_us == b->lease_expires_us;
}

void expect_last_attempt(struct fixture *f, const struct weft_id *id,
                         const struct weft_attempt *want)
{
    struct weft_attempts list = attempts(f, id);
    struct weft_attempt last = list.count ? list.item[list.count - 1] : (struct weft_attempt){0};
    is_str(last.ended, want->ended, "the last attempt ended: %s", want->ended);
    if (want->epoch)
        is_int(last.epoch, want->epoch, "the last attempt has its epoch");
    if (want->attempt)
        is_int(last.attempt, want->attempt, "the last attempt has its number");
    if (want->worker)
        is_str(last.worker, want->worker, "the last attempt has its worker");
    if (want->error_class)
        is_str(last.error_class, want->error_class, "the last attempt has its error class");
    if (want->error_message)
        is_str(last.error_message, want->error_message, "the last attempt has its message");
    if (want->started_us)
        is_int(last.started_us, want->started_us, "the last attempt began with its claim");
    if (want->ended_us)
        is_int(last.ended_us, want->ended_us, "the last attempt has its end");
    if (want->run_at_us)
        is_int(last.run_at_us, want->run_at_us, "the last attempt has the time of the next one");
}

bool same_id(const struct weft_id *a, const struct weft_id *b)
{
    return weft_id_cmp(a, b) == 0;
}

struct weft_submitted *submit_many(struct fixture *f, struct weft_engine *engine,
                                   const struct weft_spec *spec, size_t count)
{
    struct weft_submitted *answer = weft_new_array(f->arena, struct weft_submitted, count + 1);
    expect_ok(f, engine_submit(engine, "default", spec, count, answer, &f->err), "submit");
    return answer;
}

struct weft_id *submit_copies(struct fixture *f, const struct weft_spec *spec, size_t count)
{
    struct weft_spec *copy = weft_new_array(f->arena, struct weft_spec, count + 1);
    struct weft_id *id = weft_new_array(f->arena, struct weft_id, count + 1);
    for (size_t i = 0; i < count; i++)
        copy[i] = *spec;
    const struct weft_submitted *answer = submit_many(f, f->a, copy, count);
    for (size_t i = 0; i < count; i++) {
        if (answer[i].err.rc)
            ok(false, "submit is accepted: %s", answer[i].err.text);
        id[i] = answer[i].id;
    }
    return id;
}

struct weft_read_page list_page(struct fixture *f, const struct weft_listing *listing)
{
    struct weft_read_page page = {0};
    struct weft_listing mine = *listing;
    if (!mine.filter.ns)
        mine.filter.ns = "default";
    expect_ok(f, weft_engine_list(f->b, &mine, f->arena, &page, &f->err), "list");
    return page;
}

size_t count_rows(struct fixture *f, const struct weft_filter *filter)
{
    struct weft_listing listing = {.filter = *filter, .limit = WEFT_PAGE_MAX};
    size_t count = 0;
    do {
        struct weft_read_page page = list_page(f, &listing);
        count += page.count;
        listing.after = page.next;
    } while (listing.after);
    return count;
}

void expect_err(const struct weft_err *err, enum weft_rc rc, const char *field, const char *name)
{
    bool same_field = field ? err->field && strcmp(err->field, field) == 0 : !err->field;
    ok(err->rc == rc && same_field && err->text[0], "%s: %s, field %s", name, weft_rc_wire(rc),
       field ? field : "none");
    if (err->rc != rc || !same_field)
        printf("# got %s, field %s: %s\n", weft_rc_wire(err->rc), err->field ? err->field : "none",
               err->rc ? err->text : "");
}
