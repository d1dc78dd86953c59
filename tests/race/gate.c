/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A gate inside a statement of PostgreSQL.
 *
 * What must be stopped is not between two statements but within one: after its snapshot was taken
 * and before it comes to the row in question. Row level security does it without touching the
 * statement: a policy on `live` and `outcome` calls a function for every row that a scan visits,
 * and for one row that function waits for an advisory lock. The engine whose scans are to be
 * stopped runs under a role that the policy binds; the other one is the superuser, whom no policy
 * binds.
 *
 * Only statements that lock meet the gate: a claim first looks which queues have work, and must not
 * be stopped there. The policy's condition stands on the level of the scan, beside
 * the statement's own, so the plan keeps its shape: index scan, lock, limit. Whatever the statement
 * does to re-check a row that has changed since its snapshot is the same with and without the gate.
 */

#include "race.h"

#include "engine/engine.h"

enum { GATE = 4711 }; /* the number of the advisory lock, in the database of this program */

static void make_role(struct gate *gate, const struct weft_id *id)
{
    const struct race *race = gate->race;
    const struct place *place = &race->place;
    char text[37];
    weft_id_print(id, text);
    raw_run(place, race->raw,
            "DO $$ BEGIN CREATE ROLE weft_gated; EXCEPTION WHEN duplicate_object OR "
            "unique_violation THEN NULL; END $$");
    raw_run(place, race->raw,
            "GRANT USAGE ON SCHEMA weft TO weft_gated;"
            "GRANT ALL ON ALL TABLES IN SCHEMA weft TO weft_gated");
    raw_run(place, race->raw,
            "CREATE FUNCTION weft.gate(row_id uuid) RETURNS bool VOLATILE LANGUAGE plpgsql AS $$ "
            "BEGIN IF row_id = '%s' AND current_query() LIKE '%%FOR UPDATE%%' THEN "
            "PERFORM pg_advisory_lock_shared(%d); "
            "PERFORM pg_advisory_unlock_shared(%d); END IF; RETURN true; END $$",
            text, GATE, GATE);
    raw_run(place, race->raw,
            "CREATE POLICY gate ON weft.live TO weft_gated USING (weft.gate(id));"
            "CREATE POLICY gate ON weft.outcome TO weft_gated USING (weft.gate(id));"
            "ALTER TABLE weft.live ENABLE ROW LEVEL SECURITY;"
            "ALTER TABLE weft.outcome ENABLE ROW LEVEL SECURITY");
}

void gate_shut(struct gate *gate, struct race *race, const struct weft_id *id)
{
    *gate = (struct gate){.race = race, .keeper = raw_open(&race->place)};
    make_role(gate, id);
    struct place gated = race->place;
    size_t used = strlen(gated.url);
    (void)snprintf(gated.url + used, sizeof(gated.url) - used, "&options=-c%%20role%%3Dweft_gated");
    gate->slow = place_open(&gated, race->driver, race->now_us);
    raw_run(&race->place, gate->keeper, "SELECT pg_advisory_lock(%d)", GATE);
}

bool gate_reached(struct gate *gate)
{
    char sql[200];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %d "
                   "AND NOT granted",
                   GATE);
    return raw_wait(&gate->race->place, gate->race->raw, sql);
}

void gate_open(struct gate *gate)
{
    raw_run(&gate->race->place, gate->keeper, "SELECT pg_advisory_unlock(%d)", GATE);
}

void gate_done(struct gate *gate)
{
    const struct race *race = gate->race;
    weft_engine_close(gate->slow);
    PQfinish(gate->keeper);
    raw_run(
        &race->place, race->raw,
        "DROP POLICY gate ON weft.live; ALTER TABLE weft.live DISABLE ROW LEVEL SECURITY;"
        "DROP POLICY gate ON weft.outcome; ALTER TABLE weft.outcome DISABLE ROW LEVEL SECURITY");
}
