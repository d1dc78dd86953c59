/* SPDX-License-Identifier: Apache-2.0 */

/* The scanner `purge`: what it removes and what it does not touch, batch by batch. */

#include "conformance.h"
#include "flows.h"

#include "base/id.h"
#include "engine/engine.h"
#include "engine/flow/flow.h"
#include "engine/job/leases.h"
#include "engine/ready/poll.h"
#include "engine/scan/pass.h"
#include "weft/weft.h"

static struct weft_pass_report purge(struct fixture *f, uint32_t batch)
{
    const struct weft_pass_config config = {.batch = batch};
    return pass_with(f, WEFT_SCANNER_PURGE, &config);
}

/* Cancels and hides a flow, and all its members are cancelled. */
static void delete_now(struct fixture *f, const struct weft_id *flow)
{
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = *flow, .how = WEFT_FLOW_CANCEL_ALL, .remove = true};
    enum weft_flow_state state;
    struct weft_flow_drain drain;
    is_int(weft_engine_flow_cancel(f->a, &args, &state, &drain, &f->err), WEFT_OK, "delete");
}

static bool is_due(struct fixture *f)
{
    struct weft_poll poll;
    is_int(weft_engine_poll(f->b, f->arena, &poll, &f->err), WEFT_OK, "poll");
    return poll.due_us[WEFT_SCANNER_PURGE] != WEFT_NEVER;
}

CASE(purge_touches_nothing_without_a_tombstone)
{
    struct many open, ended, running;
    struct weft_id plain = submit_job(f);
    many_new(f, &ended, 2);
    many_submit(f, &ended);
    while (claim(f, f->a, 10).count > 0) /* and all of it is cancelled: it has ended */
        ;
    const struct weft_flow_cancelling args = {
        .ns = "default", .flow = ended.answer.id, .how = WEFT_FLOW_CANCEL_ALL};
    enum weft_flow_state state;
    struct weft_flow_drain drain;
    is_int(weft_engine_flow_cancel(f->a, &args, &state, &drain, &f->err), WEFT_OK, "cancel");
    many_new(f, &open, 3);
    many_submit(f, &open);
    many_new(f, &running, 2);
    many_submit(f, &running);
    ok(!is_due(f), "nothing is deleted: purge is not due");
    struct weft_pass_report report = purge(f, 0);
    is_int(report.handled, 0, "nothing is removed");
    /* Deleted, while its members still live: no tombstone yet. */
    const struct weft_flow_cancelling later = {.ns = "default",
                                               .flow = running.answer.id,
                                               .how = WEFT_FLOW_CANCEL_PENDING,
                                               .remove = true};
    is_int(weft_engine_flow_cancel(f->a, &later, &state, NULL, &f->err), WEFT_OK, "delete");
    ok(!is_due(f), "a deleted flow with living members is not due");
    is_int(purge(f, 0).handled, 0, "and stays");
    is_int(many_in(f, &open, WEFT_STATE_READY), 3, "the open flow lives");
    is_int(many_in(f, &ended, WEFT_STATE_CANCELLED), 2, "the ended flow is there");
    is_int(state_of(f, &plain), WEFT_STATE_RUNNING, "so is the execution outside of flows");
}

CASE(purge_takes_small_flows_together)
{
    enum { FLOWS = 12, MEMBERS = 3, BATCH = 10 };
    struct many flow[FLOWS], kept;
    uint64_t members = 0, tombstones = 0;
    for (size_t i = 0; i < FLOWS; i++) {
        many_new(f, &flow[i], MEMBERS);
        many_submit(f, &flow[i]);
    }
    many_new(f, &kept, MEMBERS);
    many_submit(f, &kept);
    for (size_t i = 0; i < FLOWS; i++)
        delete_now(f, &flow[i].answer.id);
    ok(is_due(f), "purge is due as soon as they are over");
    struct weft_pass_report report = {.more = true};
    int passes = 0;
    for (; report.more && passes < FLOWS * MEMBERS; passes++) {
        report = purge(f, BATCH);
        ok(counter_of(&report, "members") <= BATCH, "no batch is larger");
        members += counter_of(&report, "members");
        tombstones += counter_of(&report, "tombstones");
        is_int(counter_of(&report, "processed"),
               counter_of(&report, "members") + counter_of(&report, "tombstones"),
               "processed counts both");
    }
    is_int(members, FLOWS * MEMBERS, "every member was removed once");
    is_int(tombstones, FLOWS, "and every flow");
    ok(passes <= FLOWS * MEMBERS / BATCH + 3, "in few batches: %d", passes);
    ok(!is_due(f), "nothing is left");
    is_int(many_in(f, &kept, WEFT_STATE_READY), MEMBERS, "the flow beside them lives");
}

/* A tombstone that cannot be removed is counted, and the others go. */
CASE(purge_goes_past_a_tombstone_that_fails)
{
    enum { FLOWS = 3, MEMBERS = 2 };
    struct many flow[FLOWS];
    if (!only_on_pg(f, "SQLite's connections run no triggers"))
        return;
    for (size_t i = 0; i < FLOWS; i++) {
        many_new(f, &flow[i], MEMBERS);
        many_submit(f, &flow[i]);
        delete_now(f, &flow[i].answer.id);
    }
    run_sql_of(f,
               "CREATE FUNCTION weft.stays() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
               " RAISE 'it stays'; END $$;"
               "CREATE TRIGGER stays BEFORE DELETE ON weft.node FOR EACH ROW"
               " WHEN (old.name = 'stays') EXECUTE FUNCTION weft.stays();"
               "UPDATE weft.node SET name = 'stays'"
               " WHERE id = (SELECT id FROM weft.node ORDER BY id LIMIT 1)",
               NULL);
    struct weft_pass_report report = purge(f, 0);
    is_int(counter_of(&report, "errors"), 1, "one fails");
    is_int(counter_of(&report, "tombstones"), FLOWS - 1, "the others are removed");
    ok(is_due(f), "there is something left to do");
    run_sql_of(f, "DROP FUNCTION weft.stays CASCADE", NULL);
    report = purge(f, 0);
    is_int(counter_of(&report, "tombstones"), 1, "what fails no more is removed");
}
