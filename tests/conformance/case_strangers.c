/* SPDX-License-Identifier: Apache-2.0 */

/* Unknown ids, and ids that belong to another namespace: both are not found. */

#include "conformance.h"

#include "base/id.h"
#include "engine/job/execution_read.h"
#include "engine/job/leases.h"
#include "weft/weft.h"

static const enum weft_steer_kind every_kind[] = {
    WEFT_STEER_CANCEL, WEFT_STEER_REPLAY,       WEFT_STEER_REPRIORITIZE,
    WEFT_STEER_REVOKE, WEFT_STEER_SET_DEADLINE,
};

static struct weft_id unknown_id(struct fixture *f)
{
    struct weft_id id;
    weft_id_new(&id, f->now_us, -1);
    return id;
}

CASE(strangers_unknown_id_is_not_found)
{
    struct weft_id id = unknown_id(f);
    struct weft_execution item = describe(f, &id);
    is_int(item.state, WEFT_STATE_NONE, "describe: no state");
    ok(weft_id_cmp(&item.id, &id) == 0, "describe: under the id that was asked for");
    struct weft_attempts list;
    is_int(weft_engine_attempts(f->a, "default", &id, f->arena, &list, &f->err), WEFT_NOT_FOUND,
           "attempts of an unknown id are not found");
    is_str(result_text(f, &id), NULL, "an unknown id has no result");
    for (size_t i = 0; i < WEFT_LEN(every_kind); i++) {
        struct weft_steered answer = steer_id(f, every_kind[i], &id);
        ok(answer.err.rc == WEFT_NOT_FOUND && answer.state == WEFT_STATE_NONE && !answer.changed,
           "steering of kind %d", (int)every_kind[i]);
    }
    struct weft_claimed lease = {.id = id, .epoch = 1};
    is_int(renew(f, f->a, &lease).err.rc, WEFT_NOT_FOUND,
           "a renewal of an unknown id is not found");
    is_int(complete(f, f->a, &lease, "1").err.rc, WEFT_NOT_FOUND,
           "a completion of an unknown id is not found");
    is_int(fail(f, f->a, &lease, "x").err.rc, WEFT_NOT_FOUND,
           "a failure of an unknown id is not found");
    is_int(put_back(f, WEFT_PUT_BACK_DELAY, &lease, 1).err.rc, WEFT_NOT_FOUND,
           "a delay of an unknown id is not found");
    is_int(put_back(f, WEFT_PUT_BACK_RELEASE, &lease, 0).err.rc, WEFT_NOT_FOUND,
           "a release of an unknown id is not found");
    is_int(state_of(f, &id), WEFT_STATE_NONE, "no call created the execution");
}

/* Tries everything that names a namespace, from `ns`, on an execution of "default". */
static void expect_hidden(struct fixture *f, const char *ns, enum weft_state state)
{
    const char *was = weft_state_name(state);
    struct weft_claimed lease = bring(f, state, NULL);
    struct weft_execution before = describe(f, &lease.id), item = {0};
    is_int(weft_engine_describe(f->a, ns, &lease.id, 1, f->arena, &item, &f->err), WEFT_OK,
           "%s: describe from %s", was, ns);
    is_int(item.state, WEFT_STATE_NONE, "%s: there is no such execution in %s", was, ns);
    struct weft_attempts list;
    is_int(weft_engine_attempts(f->a, ns, &lease.id, f->arena, &list, &f->err), WEFT_NOT_FOUND,
           "%s: nor its attempts", was);
    struct weft_bytes bytes;
    struct weft_bytes_of of = {.kind = WEFT_BYTES_RESULT, .ns = ns, .id = lease.id};
    is_int(weft_engine_bytes(f->a, &of, f->arena, &bytes, &f->err), WEFT_NOT_FOUND,
           "%s: nor its result", was);
    of.kind = WEFT_BYTES_PAYLOAD;
    is_int(weft_engine_bytes(f->a, &of, f->arena, &bytes, &f->err), WEFT_NOT_FOUND,
           "%s: nor its payload", was);
    for (size_t i = 0; i < WEFT_LEN(every_kind); i++) {
        const struct weft_steer by_item = {
            .ns = ns, .id = lease.id, .priority = 5, .deadline_us = f->now_us + WEFT_SECOND};
        struct weft_steered answer = steer(f, every_kind[i], &by_item);
        ok(answer.err.rc == WEFT_NOT_FOUND && answer.state == WEFT_STATE_NONE && !answer.changed,
           "%s: steering of kind %d is not found and tells no state", was, (int)every_kind[i]);
    }
    struct weft_execution after = describe(f, &lease.id);
    ok(same_execution(&before, &after), "%s: the execution is as it was", was);
}

CASE(strangers_other_namespace_is_not_found)
{
    static const enum weft_state state[] = {WEFT_STATE_READY, WEFT_STATE_RUNNING,
                                            WEFT_STATE_SUCCEEDED, WEFT_STATE_CANCELLED};
    (void)submit_ok(f, &(struct weft_spec){.ns = "theirs", .kind = "job"});
    for (size_t i = 0; i < WEFT_LEN(state); i++) {
        expect_hidden(f, "theirs", state[i]); /* exists */
        expect_hidden(f, "absent", state[i]); /* does not */
    }
    is_int(claim(f, f->a, 10).count, 0, "a claim in default does not see theirs");
}

CASE(strangers_the_item_names_the_namespace)
{
    struct weft_id id = submit_ok(f, &(struct weft_spec){.ns = "theirs", .kind = "job"});
    is_int(steer_id(f, WEFT_STEER_CANCEL, &id).err.rc, WEFT_NOT_FOUND,
           "an execution of another namespace is not found");
    const struct weft_steer item = {.ns = "theirs", .id = id};
    struct weft_steered answer = steer(f, WEFT_STEER_CANCEL, &item);
    ok(answer.err.rc == WEFT_OK && answer.changed, "an item may name its own namespace");
}
