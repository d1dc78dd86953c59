/* SPDX-License-Identifier: Apache-2.0 */

/* The limit on the queues of a namespace: new queues are refused, existing ones are served. */

#include "conformance.h"
#include "direct.h"

#include "base/arena.h"
#include "engine/admin/workers.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/flow/flow.h"
#include "engine/job/leases.h"
#include "engine/job/submit.h"
#include "store/fault/fault.h"
#include "store/store.h"
#include "weft/admin.h"
#include "weft/weft.h"

enum { LIMIT = 5 };

static struct weft_submitted *submit_tenants(struct fixture *f, const char *ns, size_t first,
                                             size_t count)
{
    struct weft_spec *spec = weft_new_array(f->arena, struct weft_spec, count);
    for (size_t i = 0; i < count; i++)
        spec[i] =
            (struct weft_spec){.ns = ns,
                               .kind = "job",
                               .tenant = weft_arena_printf(f->arena, "tenant-%zu", first + i)};
    struct weft_submitted *answer = weft_new_array(f->arena, struct weft_submitted, count);
    is_int(engine_submit(f->a, "default", spec, count, answer, &f->err), WEFT_OK,
           "%zu items, from number %zu", count, first);
    return answer;
}

static size_t refused_of(const struct weft_submitted *answer, size_t count)
{
    size_t refused = 0;
    for (size_t i = 0; i < count; i++)
        refused += answer[i].err.rc == WEFT_LIMIT_EXCEEDED;
    return refused;
}

CASE(census_refuses_a_queue_too_many)
{
    f->a->census.kind[WEFT_CENSUS_QUEUES].most = LIMIT;
    is_int(refused_of(submit_tenants(f, NULL, 0, 3), 3), 0, "three of five");
    struct weft_submitted *answer = submit_tenants(f, NULL, 0, 7);
    is_int(refused_of(answer, 7), 2, "seven, three of them known: two are too many");
    is_int(refused_of(answer, 5), 0, "the last two are refused");
    ok(strstr(answer[6].err.text, "'default' has 5 queues") && answer[6].err.hint,
       "the answer names the namespace, the number and a way out: %s", answer[6].err.text);
    is_int(refused_of(submit_tenants(f, NULL, 0, 5), 5), 0, "queues that exist go on");
    is_int(refused_of(submit_tenants(f, "other", 0, 5), 5), 0,
           "another namespace has its own five");
    is_int(refused_of(submit_tenants(f, "other", 5, 1), 1), 1,
           "the other namespace is refused a sixth queue");
}

/* Another process has added the queues: they are found, and the limit holds there too. */
CASE(census_of_another_process)
{
    (void)submit_tenants(f, NULL, 0, LIMIT);
    struct weft_engine *a = f->a;
    f->a = f->b;
    f->a->census.kind[WEFT_CENSUS_QUEUES].most = LIMIT;
    is_int(refused_of(submit_tenants(f, NULL, 0, LIMIT), LIMIT), 0,
           "submissions to existing queues are accepted");
    is_int(refused_of(submit_tenants(f, NULL, LIMIT, 1), 1), 1, "one more is refused");
    f->a = a;
    is_int(refused_of(submit_tenants(f, NULL, LIMIT, 1), 1), 0,
           "without a limit one more queue is accepted");
}

CASE(census_refuses_a_flow)
{
    f->a->census.kind[WEFT_CENSUS_QUEUES].most = 1;
    (void)submit_tenants(f, NULL, 0, 1);
    const struct weft_node node[] = {
        {.name = "one", .spec = {.kind = "job", .tenant = "tenant-0"}},
        {.name = "two", .spec = {.kind = "job", .tenant = "tenant-1"}}};
    struct weft_flow_spec flow = {.name = "flow", .nodes = node, .node_count = 2};
    struct weft_flow_submitted answer = {0};
    is_int(engine_flow_submit(f->a, "default", &flow, 1, &answer, &f->err), WEFT_OK, "call");
    is_int(answer.err.rc, WEFT_LIMIT_EXCEEDED, "a flow that needs a queue too many is refused");
}

static enum weft_rc worker_in(struct fixture *f, const char *ns, const char *name)
{
    const struct weft_watch watch = {.ns = ns, .worker = name};
    int32_t number = 0;
    return weft_engine_worker_number(f->a, &watch, &number, &f->err);
}

CASE(census_of_worker_names)
{
    f->a->census.kind[WEFT_CENSUS_WORKERS].most = LIMIT;
    for (int i = 0; i < LIMIT; i++)
        is_int(worker_in(f, "default", weft_arena_printf(f->arena, "w%d", i)), WEFT_OK,
               "worker %d of %d", i + 1, LIMIT);
    is_int(worker_in(f, "default", "w5"), WEFT_LIMIT_EXCEEDED, "one more is refused");
    ok(strstr(f->err.text, "'default' has 5 names of workers") && f->err.hint,
       "the answer names the namespace, the number and a way out: %s", f->err.text);
    is_int(worker_in(f, "default", "w4"), WEFT_OK, "names that there are go on");
    is_int(worker_in(f, "other", "w5"), WEFT_OK, "another namespace has its own");
    f->a->unused.after_us = WEFT_SECOND;
    struct weft_pass_report report = {0};
    for (int i = 0; i < 3; i++) {
        report = run_pass(f, f->a, WEFT_SCANNER_UNUSED_NAMES);
        forward_ms(f, 3600000);
    }
    ok(report.handled >= LIMIT - 1, "unused names are removed: %d", (int)report.handled);
    f->b->census.kind[WEFT_CENSUS_WORKERS].most =
        LIMIT; /* the other engine counts at once, this one in a second */
    struct weft_engine *engine = f->a;
    f->a = f->b;
    is_int(worker_in(f, "default", "w5"), WEFT_OK, "the removed worker makes room for another");
    f->a = engine;
}

static void count_adds(void *context, enum weft_fault_point point, enum weft_stmt stmt)
{
    *(int *)context += point == WEFT_FAULT_BEFORE_RUN && stmt == WEFT_STMT_NAME_ADD;
}

/* Many workers at once, as a server meets them: one that is too many is refused alone. */
CASE(census_of_many_worker_names)
{
    int adds = 0;
    struct weft_fault fault = {.hook = count_adds, .context = &adds};
    struct weft_engine *engine = open_faulty(f, &fault);
    engine->census.kind[WEFT_CENSUS_WORKERS].most = LIMIT;
    const struct weft_watch first = {.ns = "default", .worker = "w0"};
    struct weft_worker_met known;
    is_int(weft_engine_meet_workers(engine, &first, 1, &known, &f->err), WEFT_OK, "the first");
    struct weft_watch watch[LIMIT + 3];
    struct weft_worker_met met[LIMIT + 3];
    for (int i = 0; i < LIMIT + 2; i++)
        watch[i] =
            (struct weft_watch){.ns = "default", .worker = weft_arena_printf(f->arena, "w%d", i)};
    watch[LIMIT + 2] = (struct weft_watch){.ns = "other", .worker = "w0"};
    adds = 0;
    is_int(weft_engine_meet_workers(engine, watch, LIMIT + 3, met, &f->err), WEFT_OK, "meet all");
    is_int(adds, 2, "one statement adds the namespace, and one the names");
    is_int(met[0].number, known.number, "one that is known keeps its number");
    bool good = true, refused = true;
    for (int i = 0; i < LIMIT; i++)
        good &=
            met[i].number > 0 && !met[i].err.rc && (i == 0 || met[i].number != met[i - 1].number);
    for (int i = LIMIT; i < LIMIT + 2; i++)
        refused &= met[i].err.rc == WEFT_LIMIT_EXCEEDED && met[i].number == 0;
    ok(good, "each that there is room for has a number of its own");
    ok(refused, "the others are refused");
    ok(met[LIMIT + 2].number > 0 && met[LIMIT + 2].number != known.number,
       "another namespace has room, and other numbers");
    int32_t number = 0;
    is_int(weft_engine_worker_number(f->b, &watch[1], &number, &f->err), WEFT_OK, "elsewhere");
    is_int(number, met[1].number, "the number is the same");
    weft_engine_close(engine);
}
