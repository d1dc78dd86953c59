#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Submitting by SQL as an application does: with an ordinary role, and at once. Prints TAP.

A role that was granted the submission may call weft_submit() and touch nothing else of weft's, and
cannot run code of its own with the rights of the schema's owner. What it commits is claimed by a
worker that waits within milliseconds, and by the slow poll when the notice is off.
"""
import glob
import json
import os
import statistics
import subprocess
import threading
import time

from harness import (BINARY, ROOT, SANITIZED, At, Calls, Cluster, Tap, metric_sum, metrics, serve,
                     until)

TRIES, RETRIES, WAKE_MAX_MS = 15, 4, 20
CROWD, CROWD_EACH = 8, 25
FLOOD = 100000 if os.environ.get("WEFT_SOAK", "0") not in ("", "0") else 10000
SCHEMA = "shop_weft"  # not the default: the function and the notice must follow the schema's name
SUBMIT = f"SELECT {SCHEMA}.weft_submit"


class Psql:
    """A session of an application, kept open; each line is a transaction unless it says BEGIN."""

    def __init__(self, cluster, role, options=""):
        self.process = subprocess.Popen(
            ["psql", "-qAtX", cluster.url.replace("user=postgres", f"user={role}")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={"PATH": "/usr/bin:/bin", "PGOPTIONS": options})

    def __call__(self, text):
        """What the statements print, errors too."""
        print(text, ";\n\\echo =end=", sep="", file=self.process.stdin, flush=True)
        lines = []
        for line in self.process.stdout:
            if line.rstrip("\n") == "=end=":
                break
            lines.append(line.rstrip("\n"))
        return "\n".join(lines)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(10)


def migrate(store, *options):
    return subprocess.run([BINARY, "migrate", "--store", store.url, *options],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


def granting(tap, cluster, store):
    """The role of an application before and after the grant."""
    cluster.sql("CREATE ROLE application LOGIN; CREATE ROLE stranger LOGIN")
    done = migrate(store)
    tap.equal(done.returncode, 0, "the store is migrated")
    before = Psql(cluster, "application")
    tap.ok("permission denied for schema" in before(f"{SUBMIT}('early')"),
           "a role without the grant cannot submit")
    before.close()
    done = migrate(store, "--grant-submit", "application")
    tap.ok(done.returncode == 0 and "role application may submit by SQL" in done.stdout,
           "weft migrate --grant-submit grants it", done.stdout)
    done = migrate(store, "--grant-submit", "missing role")
    tap.ok(done.returncode == 3 and 'no role "missing role"' in done.stdout
           and "hint: create it first" in done.stdout, "an unknown role is named", done.stdout)
    tap.equal(migrate(store, "--grant-submit", "application", "--check").returncode, 2,
              "--check and --grant-submit exclude each other")
    cluster.sql(f"GRANT USAGE ON SCHEMA {SCHEMA} TO stranger")
    stranger = Psql(cluster, "stranger")
    tap.ok("permission denied for function weft_submit" in stranger(f"{SUBMIT}('x')")
           and "permission denied for function weft_submit_spec" in stranger(f"{SUBMIT}_spec('{{}}')"),
           "USAGE on the schema alone does not let a role submit")
    stranger.close()


def nothing_else(tap, cluster):
    """Every table, view, sequence and function of weft's is closed to the role."""
    session = Psql(cluster, "application")
    tables, views = (cluster.sql(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE n.nspname = '{SCHEMA}' AND c.relkind = '{kind}'").split() for kind in "rv")
    tap.ok(len(tables) > 15 and views, "there are tables and views to try", (tables, views))
    tries = [f"SELECT 1 FROM {SCHEMA}.{name} LIMIT 1" for name in tables + views]
    tries += [f"DELETE FROM {SCHEMA}.{name}" for name in tables]
    tries += [f"INSERT INTO {SCHEMA}.{name} DEFAULT VALUES" for name in tables]
    tap.equal([text for text in tries if "permission denied" not in session(text)], [],
              "the role may read and write none of weft's tables")
    tap.ok("permission denied for function grant_submit"
           in session(f"SELECT {SCHEMA}.grant_submit('stranger')"),
           "the role may not grant what it was granted")
    tap.ok("permission denied" in session(f"CREATE TABLE {SCHEMA}.mine (i int)"),
           "the role may not create anything in weft's schema")
    session.close()


HIJACK = """
CREATE FUNCTION {0}.caught() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    IF current_user <> 'application' THEN
        INSERT INTO public.caught VALUES (current_user::text); END IF; END $$;
CREATE FUNCTION {0}.gen_random_uuid() RETURNS uuid LANGUAGE plpgsql AS $$ BEGIN
    PERFORM {0}.caught(); RETURN pg_catalog.gen_random_uuid(); END $$;
CREATE FUNCTION {0}.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN
    PERFORM {0}.caught(); RETURN pg_catalog.clock_timestamp(); END $$;
CREATE FUNCTION {0}.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    PERFORM {0}.caught(); END $$;
CREATE FUNCTION {0}.join_bytes(bytea, bytea) RETURNS bytea LANGUAGE plpgsql AS $$ BEGIN
    PERFORM {0}.caught(); RETURN pg_catalog.byteacat($1, $2); END $$;
CREATE OPERATOR {0}.|| (LEFTARG = bytea, RIGHTARG = bytea, FUNCTION = {0}.join_bytes);
CREATE TABLE {0}.inbox (LIKE public.lure)
"""


def no_hijack(tap, cluster):
    """Functions, operators and tables of the caller's, found first by its own search path."""
    cluster.sql("CREATE TABLE public.caught (who text); GRANT INSERT ON public.caught TO PUBLIC; "
                "CREATE TABLE public.lure (id uuid); GRANT SELECT ON public.lure TO PUBLIC; "
                "CREATE SCHEMA bait AUTHORIZATION application")
    session = Psql(cluster, "application")
    said = session(HIJACK.format("bait")) + session(HIJACK.format("pg_temp"))
    tap.equal(said, "", "an application makes functions, operators and tables of its own")
    ids = []
    for path in ("bait, pg_catalog", "pg_temp, bait, pg_catalog", f"pg_temp, pg_catalog, {SCHEMA}"):
        ids.append(session(f"SET search_path = {path}; {SUBMIT}('hijack')"))
        # A trigger of the caller's transaction runs at its COMMIT, with the path of that moment.
        ids.append(session(f"BEGIN; {SUBMIT}('hijack'); COMMIT"))
    tap.ok(all(len(one) == 36 for one in ids), "submitting succeeds with every search path", ids)
    tap.equal(session("SELECT pg_catalog.count(*) FROM bait.inbox"), "0",
              "nothing went to a table of the caller's")
    session.close()
    tap.equal(cluster.sql("SELECT count(*) FROM public.caught"), "0",
              "no code of the caller's ran with the rights of another role")
    tap.equal(cluster.sql(f"SELECT count(*) FROM {SCHEMA}.inbox"), "6",
              "all submissions are in the inbox")


WRAP = f"""
CREATE SCHEMA acme; GRANT USAGE ON SCHEMA acme TO acme;
CREATE FUNCTION acme.submit(kind text, payload json) RETURNS uuid LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ SELECT {SCHEMA}.weft_submit(kind, payload, namespace => 'acme') $$;
ALTER FUNCTION acme.submit OWNER TO acme_submitter;
REVOKE ALL ON FUNCTION acme.submit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION acme.submit TO acme;
"""


def one_namespace(tap, cluster, store):
    """A role that may submit into one namespace only, as docs/operations.md says."""
    cluster.sql("CREATE ROLE acme LOGIN; CREATE ROLE acme_submitter")
    tap.equal(migrate(store, "--grant-submit", "acme_submitter").returncode, 0,
              "a role without login gets the grant")
    cluster.sql(WRAP)
    session = Psql(cluster, "acme")
    submitted = session("SELECT acme.submit('wrapped', '{}')")
    tap.equal(cluster.sql(f"SELECT id, namespace FROM {SCHEMA}.inbox WHERE kind = 'wrapped'"),
              f"{submitted}|acme", "a wrapper submits into its namespace")
    tap.ok("permission denied for schema" in session(f"{SUBMIT}('x')"),
           "the role behind it cannot submit elsewhere")
    session.close()


def upgrade(tap, cluster):
    """A role that could submit before the function became SECURITY DEFINER still can."""
    tap.equal(migrate(At(cluster.url)).returncode, 0, "a store in the schema weft")
    cluster.sql("CREATE ROLE \"Old Hand\" LOGIN; "
                "GRANT USAGE ON SCHEMA weft TO \"Old Hand\"; "
                "GRANT INSERT, SELECT ON weft.inbox TO \"Old Hand\"; "
                # As before the migration, but for what it replaces.
                "DROP TRIGGER wake_intake ON weft.inbox; DROP FUNCTION weft.wake_intake(); "
                "DROP FUNCTION weft.grant_submit(text)")
    for path in glob.glob(os.path.join(ROOT, "sql", "migrations", "*-sql-submit.pg.sql")):
        with open(path, encoding="utf-8") as file:
            cluster.sql(file.read())
    session = Psql(cluster, "Old%20Hand")
    tap.equal(len(session("SELECT weft.weft_submit('still')")), 36,
              "a role with INSERT on the inbox was granted the function")
    session.close()


def claim_one(server, lane, got):
    calls = Calls(server)
    answer = calls.good("POST", "/v1/claims", {"worker": "w", "lanes": [lane], "wait_ms": 20000})
    got["at"], got["items"] = time.monotonic(), answer["items"]
    calls.close()


def http_submit(server):
    """The same over HTTP on the same server: what the machine needs for it just now."""
    calls = Calls(server)

    def submit(lane):
        return calls.good("POST", "/v1/executions", {"kind": "wake", "lane": lane})["id"]
    return submit


def sql_submit(session):
    return lambda lane: session(f"{SUBMIT}('wake', '{{}}', '{lane}')")


def wake_ms(server, submit, lane="sql"):
    """From before the call to the answer of a claim that was waiting; None: it is another one."""
    got = {}
    thread = threading.Thread(target=claim_one, args=(server, lane, got), daemon=True)
    thread.start()
    until(lambda: metric_sum(metrics(server), "weft_waiters", "claim") >= 1, 10)
    began = time.monotonic()
    submitted = submit(lane)
    thread.join(30)
    if [item["id"] for item in got.get("items", [])] != [submitted]:
        return None
    return (got["at"] - began) * 1000


def wake_median(tap, server, submit, how):
    """The median of some wakes, and how many claims got something else."""
    took = [wake_ms(server, submit) for _ in range(TRIES)]
    good = sorted(ms for ms in took if ms is not None) or [1e9]
    middle = statistics.median(good)
    tap.note(f"{how} submit to claimed: {middle:.1f} ms (median of {len(good)}), {good[-1]:.1f} ms "
             "at most")
    return middle, took.count(None)


def waking(tap, cluster, server):
    session = Psql(cluster, "application")
    wake_ms(server, sql_submit(session))  # the first one makes the lane and the connections
    middle, lost = wake_median(tap, server, sql_submit(session), "SQL")
    tap.equal(lost, 0, "a claim that waits gets what was submitted")
    most, tries = WAKE_MAX_MS, 0
    while middle >= most and tries < RETRIES and not SANITIZED:  # is it the machine that is slow?
        tries += 1
        plain = wake_median(tap, server, http_submit(server), "HTTP")[0]
        most = max(WAKE_MAX_MS, 4 * plain)
        middle = wake_median(tap, server, sql_submit(session), "SQL")[0]
    if SANITIZED:
        tap.skip("times of a build with sanitizers say nothing")
    else:
        tap.ok(middle < most, f"within {WAKE_MAX_MS} ms, unless the machine is too busy for that",
               (middle, most))
    session.close()
    quiet = Psql(cluster, "application", "-c weft.notify=off")
    took = [wake_ms(server, sql_submit(quiet)) for _ in range(2)]
    tap.ok(None not in took, "without the notice the slow poll finds the row", took)
    tap.note("with weft.notify = off: " + ", ".join(f"{ms:.0f} ms" for ms in took if ms))
    quiet.close()


def heard(cluster, options, body):
    """The notices that a transaction of the application sends."""
    listener = Psql(cluster, "postgres")
    listener(f'LISTEN "{SCHEMA}"')
    session = Psql(cluster, "application", options)
    session(body)
    said = listener("SELECT 1").count('"inbox"')
    session.close()
    listener.close()
    return said


def notices(tap, cluster):
    """One notice for a transaction, none for one that is rolled back or asks for none."""
    twice = f"BEGIN; {SUBMIT}('a'); {SUBMIT}('b'); COMMIT"
    tap.equal(heard(cluster, "", twice), 1, "a transaction sends one notice")
    tap.equal(heard(cluster, "", twice.replace("COMMIT", "ROLLBACK")), 0,
              "a transaction that is rolled back sends no notice")
    tap.equal(heard(cluster, "-c weft.notify=off", twice), 0, "weft.notify = off sends none")
    tap.equal(heard(cluster, "", "SET weft.notify = 'OFF'; " + twice), 0,
              "weft.notify = OFF sends none")
    cluster.sql("ALTER ROLE application SET weft.notify = off")
    tap.equal(heard(cluster, "", twice), 0, "a role with weft.notify set to off sends none")
    cluster.sql("ALTER ROLE application RESET weft.notify")
    # Of two that commit at the same time one notifies: the other does not wait for it.
    other = Psql(cluster, "postgres")
    other(f"BEGIN; SELECT pg_advisory_xact_lock(2003133044, '{SCHEMA}.inbox'::regclass::oid::int)")
    tap.equal(heard(cluster, "", twice), 0,
              "a commit while another transaction notifies sends none")
    other("ROLLBACK")
    other.close()


def crowd(tap, cluster, server):
    """Many that commit at once, of which few notify: nothing waits for the slow poll for long."""
    sessions = [Psql(cluster, "application") for _ in range(CROWD)]

    def submit(session):
        for _ in range(CROWD_EACH):
            session(f"{SUBMIT}('crowd', NULL, 'crowd')")
    threads = [threading.Thread(target=submit, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for session in sessions:
        session.close()
    began = time.monotonic()

    def left():
        return int(cluster.sql(f"SELECT count(*) FROM {SCHEMA}.inbox"))
    tap.ok(until(lambda: left() == 0, 10),
           "all rows that many sessions submit are taken in", left())
    tap.note(f"the inbox is empty {(time.monotonic() - began) * 1000:.0f} ms after the last commit")
    calls = Calls(server)
    claimed = calls.good("POST", "/v1/claims", {"worker": "w", "lanes": ["crowd"], "max": 1000})
    tap.equal(len({item["id"] for item in claimed["items"]}), CROWD * CROWD_EACH,
              "each execution of the many sessions is claimed once")
    calls.close()


SPEC = {"kind": "spec", "lane": "spec", "payload": {"n": 1}, "priority": 7, "tenant": "t", "key": "k1",
        "tags": {"a": "b"}, "capabilities": ["gpu"], "gate": "customer:42", "budgets": ["team"],
        "cost": {"tokens": 5}}
REFUSED = [
    ({"kind": "x", "gat": "y"}, "there is no field gat"), (["kind"], "is not a JSON object"),
    ({"kind": "x", "gate": 7}, "gate must be a text"), ({"kind": "x", "cost": 5}, "cost must be an object"),
    ({"kind": "x", "priority": 1.5}, "priority must be a whole number"),
    ({"kind": "x", "run_at": "tomorrow"}, "run_at must be a time"),
    ({"kind": "x", "budgets": [1]}, "budgets must be a list of texts"),
    ({"kind": "x", "budgets": [f"b{i}" for i in range(9)]}, "budgets has 9 names, at most 8 are allowed"),
    ({"kind": "x", "gate": "g" * 129}, "gate has 129 bytes, at most 128 are allowed"),
    ({"kind": "x" * 129}, "kind has 129 bytes, at most 128 are allowed"),
    ({"kind": "x", "payload": 1, "payload_base64": "AA=="}, "exclude each other"),
]


def by_spec(tap, cluster, server):
    """A spec as JSON: the fields of a submission over HTTP, those of limits among them."""
    calls, session = Calls(server), Psql(cluster, "application")
    calls.good("PUT", "/v1/gates/customer", {"max_running": 1})
    calls.good("PUT", "/v1/budgets/team", {"dimensions": {"tokens": {"hard": 100, "estimate": 1}}})

    def submit(spec):
        return session(f"{SUBMIT}_spec('{json.dumps(spec)}')")

    def shown(execution):
        return until(lambda: calls("GET", f"/v1/executions/{execution}")[0] == 200
                     and calls.good("GET", f"/v1/executions/{execution}"), 10)
    first, second = submit(SPEC), submit({**SPEC, "key": "k2"})
    got = shown(first)
    tap.equal({field: got[field] for field in SPEC if field not in ("payload", "cost")},
              {field: SPEC[field] for field in SPEC if field not in ("payload", "cost")},
              "an execution has the fields of the spec")
    tap.ok(until(lambda: (shown(first)["state"], shown(second)["state"]) == ("ready", "held"), 10),
           "its gate admits one of two")
    claim = {"worker": "w", "lanes": ["spec"], "capabilities": ["gpu"], "max": 2, "wait_ms": 5000}
    migration, = glob.glob(os.path.join(ROOT, "sql", "migrations", "*-sql-spec.pg.sql"))
    tap.equal(cluster.sql(f"SELECT oldest_binary >= {int(os.path.basename(migration)[:4])} FROM {SCHEMA}.schema"),
              "t", "a binary that would take it in without its gate is unfit from now on")
    item, = calls.good("POST", "/v1/claims", claim)["items"]
    tap.equal((item["id"], item["payload"]), (first, SPEC["payload"]), "it is claimed with its payload")
    tap.equal(calls.good("GET", "/v1/budgets/team")["dimensions"]["tokens"]["reserved"], 5,
              "its budget has reserved its cost")
    tap.equal([words for spec, words in REFUSED if words not in submit(spec)], [],
              "what is wrong with a spec is an error of the call")
    tap.equal(cluster.sql(f"SELECT count(*) FROM {SCHEMA}.inbox"), "0", "nothing of these was submitted")
    wrong = shown(submit({"kind": "x", "gate": "no gate"}))
    tap.ok(wrong["state"] == "failed" and "gate" in wrong["error"]["message"],
           "a name that is none makes a failed execution", wrong)
    calls.close()
    session.close()


def turns(tap, cluster, server):
    """A namespace submits very much at once: a row of another one does not wait for all of it."""
    got, session = {}, Psql(cluster, "application")
    session("BEGIN")
    session(f"SELECT count({SCHEMA}.weft_submit('flood', namespace => 'flood')) "
            f"FROM generate_series(1, {FLOOD})")
    made = session(f"{SUBMIT}('turns', lane => 'turns')")
    thread = threading.Thread(target=claim_one, args=(server, "turns", got), daemon=True)
    thread.start()
    session("COMMIT")
    thread.join(60)

    def left():
        return int(cluster.sql(f"SELECT count(*) FROM {SCHEMA}.inbox WHERE namespace = 'flood'"))
    waiting = left()
    tap.equal([item["id"] for item in got.get("items", [])], [made],
              "the execution of the quiet namespace is claimed")
    tap.ok(waiting > FLOOD // 10, "most rows of the flooding namespace still wait then",
           f"{waiting} of {FLOOD} wait")
    tap.note(f"{waiting} of {FLOOD} rows waited then")
    tap.ok(until(lambda: left() == 0, 120),
           "all rows of the flooding namespace are taken in", left())
    session.close()


def refusals(tap, cluster, server):
    """What is refused is counted by why."""
    session = Psql(cluster, "application")
    made = session(f"{SUBMIT}('refused', lane => 'a b')")
    tap.ok(until(lambda: metric_sum(metrics(server), "weft_inbox_refused_total", 'reason="invalid"') == 1, 20),
           "an invalid row is counted", made)
    cluster.sql(f"INSERT INTO {SCHEMA}.inbox (id, namespace, kind) VALUES ('{made}', 'default', 'again')")
    tap.ok(until(lambda: metric_sum(metrics(server), "weft_inbox_refused_total", 'reason="existing_id"') == 1, 20),
           "a row under an id that is taken is counted", made)
    tap.equal(metric_sum(metrics(server), "weft_inbox_refused_total", 'reason="invalid"'), 1,
              "each refused row counts once")
    session.close()


def main():
    tap, cluster = Tap(), Cluster()
    store = cluster.store(SCHEMA)
    try:
        granting(tap, cluster, store)
        nothing_else(tap, cluster)
        no_hijack(tap, cluster)
        notices(tap, cluster)
        one_namespace(tap, cluster, store)
        upgrade(tap, cluster)
        server = serve(store, tap=tap)
        until(lambda: cluster.sql("SELECT count(*) FROM pg_stat_activity "
                                  f"WHERE query = 'LISTEN \"{SCHEMA}\"'") == "1", 10)
        waking(tap, cluster, server)
        crowd(tap, cluster, server)
        refusals(tap, cluster, server)
        by_spec(tap, cluster, server)
        turns(tap, cluster, server)
        tap.equal(server.stop(), 0, "the server stops by itself")
    finally:
        cluster.remove()
    tap.done()


if __name__ == "__main__":
    main()
