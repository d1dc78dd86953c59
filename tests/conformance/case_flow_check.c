/* SPDX-License-Identifier: Apache-2.0 */

/* The check of invariants finds every kind of damage to a flow. */

#include "flows.h"

#include "base/arena.h"
#include "engine/admin/doctor.h"

/* What is done to the store and undone again; %s is the schema of PostgreSQL. */
static const struct damage {
    const char *problem, *break_it, *mend_it;
} damages[] = {
    {"counters do not match its edges", "UPDATE %snode SET failed = failed + 1 WHERE total = 2",
     "UPDATE %snode SET failed = failed - 1 WHERE total = 2"},
    {"edge is not what its upstream has come to",
     "UPDATE %sedge SET state = 0 WHERE state = 1; UPDATE %snode SET succeeded = 0 WHERE total = 1",
     "UPDATE %sedge SET state = 1; UPDATE %snode SET succeeded = 1 WHERE total = 1;"
     "UPDATE %sedge SET state = 0 WHERE downstream IN"
     " (SELECT downstream FROM %sedge GROUP BY downstream HAVING count(*) = 2)"},
    {"blocked behind a join that fired", "UPDATE %snode SET fired = 1 WHERE total = 2",
     "UPDATE %snode SET fired = 0 WHERE total = 2"},
    {"blocked behind a join that is decided", "UPDATE %snode SET policy = 2, k = 3 WHERE total = 2",
     "UPDATE %snode SET policy = 0, k = 0 WHERE total = 2"},
    {"began before its join fired", "UPDATE %snode SET fired = 0 WHERE total = 1",
     "UPDATE %snode SET fired = 1 WHERE total = 1"},
    {"mark of a sink is not what it has come to", "UPDATE %snode SET bad = true WHERE total = 2",
     "UPDATE %snode SET bad = false WHERE total = 2"},
    {"number of nodes is wrong", "UPDATE %sflow SET nodes = 5", "UPDATE %sflow SET nodes = 4"},
    {"flow has ended and has living members", "UPDATE %sflow SET state = 1",
     "UPDATE %sflow SET state = 0"},
    {"row is of another flow than its node", "UPDATE %soutcome SET flow = NULL",
     "UPDATE %soutcome SET flow = (SELECT flow FROM %snode LIMIT 1)"},
};

/* Runs SQL with the schema put in. */
static void run_on(struct fixture *f, const char *sql)
{
    const char *schema = is_pg(f) ? "weft." : "";
    const char *text = "", *place;
    while ((place = strstr(sql, "%s")) != NULL) {
        text = weft_arena_printf(f->arena, "%s%.*s%s", text, (int)(place - sql), sql, schema);
        sql = place + 2;
    }
    run_sql(f, weft_arena_printf(f->arena, "%s%s", text, sql));
}

CASE(flow_check_sees_damage)
{
    struct drawn flow;
    draw(&flow, "a; b:a; c:a; d:b,c");
    submit_drawn(f, &flow);
    end_node(f, &flow, "a", true);
    is_str(states(f, &flow), "srrb", "two nodes are ready and one is blocked");
    for (size_t i = 0; i < WEFT_LEN(damages); i++) {
        run_on(f, damages[i].break_it);
        ok(weft_engine_check(f->a, &f->err) == WEFT_CORRUPT &&
               strstr(f->err.text, damages[i].problem),
           "%s: %s", damages[i].problem, f->err.text);
        run_on(f, damages[i].mend_it);
        ok(weft_engine_check(f->a, &f->err) == WEFT_OK, "undone, the check finds nothing");
    }
}
