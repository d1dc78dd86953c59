/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A connection lost in COMMIT. PostgreSQL knows what became of the transaction, so the caller hears
 * a plain OK, whether it was committed (and must not be done again) or aborted (and is). SQLite
 * cannot say; then the caller gets outcome_unknown, and may repeat the calls that weft.h names.
 * A session that the server ends while the transaction is open is no question at all.
 */

#include "race.h"
#include "sequence.h"

#include "store/fault/fault.h"

/* How the transaction that counts is struck. */
static const struct blow {
    const char *name;
    enum weft_fault_point point;
    enum weft_fault_kind kind; /* NONE: the server ends the session */
    bool pg_only;
} blows[] = {
    {"the commit is lost", WEFT_FAULT_BEFORE_COMMIT, WEFT_FAULT_LOSE, false},
    {"its answer is lost", WEFT_FAULT_BEFORE_COMMIT, WEFT_FAULT_LOSE_REPLY, false},
    {"the server ends the session", WEFT_FAULT_AFTER_RUN, WEFT_FAULT_NONE, true},
    {"the server ends it before the commit", WEFT_FAULT_BEFORE_COMMIT, WEFT_FAULT_NONE, true},
};

struct strike {
    struct race *race;
    const struct blow *blow;
};

/* The server ends every session of the engines that has a transaction open. */
static void end_sessions(struct race *race)
{
    raw_run(&race->place, race->raw,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = '%s' AND state = 'idle in transaction'",
            race->place.schema);
    char sql[200];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT (count(*) = 0)::int FROM pg_stat_activity "
                   "WHERE application_name = '%s' AND state = 'idle in transaction'",
                   race->place.schema);
    if (!raw_wait(&race->place, race->raw, sql))
        bail_out("a session does not end");
}

static void strike_now(void *context)
{
    const struct strike *strike = context;
    if (strike->blow->kind == WEFT_FAULT_NONE) {
        end_sessions(strike->race);
        return;
    }
    strike->race->fault.kind = strike->blow->kind;
    strike->race->fault.strike_at = 1; /* the call that this hook announces */
}

static void judge(struct run *run, struct weft_engine *clean, const struct heard *heard,
                  const struct blow *blow)
{
    const char *name = run->sequence->name;
    const char *wrong = run_judge(run, clean, heard);
    bool committed = blow->kind == WEFT_FAULT_LOSE_REPLY;
    ok(!wrong, "%s, %s: the store fits the answer%s%s", name, blow->name, wrong ? ": " : "",
       wrong ? wrong : "");
    if (on_pg()) {
        is_int(heard->rc, WEFT_OK, "%s, %s: the caller hears OK (%s)", name, blow->name,
               heard->text);
        is_int(run_done_count(run, clean, heard), ITEMS, "%s, %s: it is done, once", name,
               blow->name);
        return;
    }
    ok(heard->rc == WEFT_UNAVAILABLE && heard->unknown, "%s, %s: the caller gets outcome_unknown",
       name, blow->name);
    is_int(run_done_count(run, clean, heard), committed ? ITEMS : 0, "%s, %s: it is%s done", name,
           blow->name, committed ? "" : " not");
    if (run->sequence->no_repeat)
        return;
    struct heard again = {0};
    run->sequence->act(run, clean, &again);
    wrong = run_judge(run, clean, &again);
    ok(again.rc == WEFT_OK && !wrong && run_done_count(run, clean, &again) == ITEMS,
       "%s, %s: a repeat is safe%s%s", name, blow->name, wrong ? ": " : "", wrong ? wrong : "");
}

RACE(a_connection_lost_in_commit)
{
    static const char *const names[] = {"submit_plain", "submit_keyed", "claim",  "complete",
                                        "fail_retry",   "fail_final",   "cancel", "replay"};
    int number = 0;
    for (size_t s = 0; s < sequence_count; s++) {
        bool wanted = false;
        for (size_t i = 0; i < WEFT_LEN(names); i++)
            wanted |= strcmp(names[i], sequences[s].name) == 0;
        for (size_t b = 0; wanted && b < WEFT_LEN(blows); b++) {
            if (blows[b].pg_only && !on_pg())
                continue;
            struct run run;
            struct heard heard = {0};
            struct strike strike = {.race = race, .blow = &blows[b]};
            struct ambush ambush = {.point = blows[b].point,
                                    .stmt = sequences[s].stmt,
                                    .act = strike_now,
                                    .context = &strike};
            run_init(&run, &sequences[s], &race->place, ++number);
            race_forward(race, (run.now_us - race->now_us) / WEFT_MS);
            sequences[s].prepare(&run, race->b);
            ambush_lay(&ambush);
            sequences[s].act(&run, race->a, &heard);
            ambush_lay(NULL);
            ok(ambush.sprung, "%s: %s", sequences[s].name, blows[b].name);
            judge(&run, race->b, &heard, &blows[b]);
            run_done(&run, race->b);
        }
    }
}
