#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scanners cost when there is nothing to do: tests/replicas/idle.py. Prints TAP and figures.

A PostgreSQL of the test's own counts every statement of every session. Three servers
with all their scanners share a store, and nothing happens: no worker waits, no client asks.
tests/http/waking.py has the same with workers that wait.

What is proven:

  - a server sends at most 3 statements a second, all its scanners, its heartbeat and its poll
    together (BEGIN, COMMIT and SET are no questions and are counted apart; a function is one
    question), and takes less than 2 % of a core, at first with an empty store;
  - the same holds with a million executions delayed into the far future, and with 100,000 ended
    ones that are kept: what is not due costs nothing;
  - with 100,000 executions that their gate holds back besides, it is at most 5 statements;
  - the scanners are awake all the same: something that is due among the million is promoted within
    1.5 s of its time, and a lease that ends is taken away.

The million is made of one execution submitted through the API, copied in the store by SQL.
"""
import time

from fleet import Points, outlast_grace, submit
from harness import SANITIZED, Calls, Figures, Tap, pause, serve
from waking import counting_cluster

REPLICAS, MANY, ENDED, HELD = 3, 1000000, 100000, 100000
WINDOW_S = 10  # heartbeats come every 5 s, the clock is measured every 10 s
WINDOWS_MAX = 3
QUERIES_MAX, GATED_MAX, CPU_MAX = 3, 5, 0.02
SCHEMA = "idle"


def statements(cluster):
    """How often each statement was sent so far, without the statements of this test."""
    rows = cluster.sql("SELECT calls, left(regexp_replace(query, '\\s+', ' ', 'g'), 90) "
                       "FROM pg_stat_statements WHERE query !~ 'pg_stat_statements'")
    found = {}
    for row in rows.splitlines():
        calls, _, text = row.partition("|")
        found[text] = found.get(text, 0) + int(calls)
    return found


def watch(cluster, servers):
    """Per server and second: questions and all statements by text; the share of a core."""
    before, began = statements(cluster), time.monotonic()
    cpu = [Figures(server.process.pid).cpu_s for server in servers]
    pause(WINDOW_S)
    took = time.monotonic() - began
    cpu = [(Figures(server.process.pid).cpu_s - c) / took for server, c in zip(servers, cpu)]
    share = took * len(servers)
    after = statements(cluster)
    return {text: (count - before.get(text, 0)) / share for text, count in after.items()
            if count > before.get(text, 0)}, max(cpu)


def is_question(text):
    return text.split(" ")[0].rstrip(";").upper() not in (
        "BEGIN", "COMMIT", "ROLLBACK", "SET", "START", "DEALLOCATE", "DISCARD")


def idle(tap, cluster, servers, when, most=QUERIES_MAX):
    """On a busy machine the servers may still be catching up with what happened before the window;
    then another one follows. A server that asks too often does so in each."""
    for _ in range(WINDOWS_MAX):
        sent, cpu = watch(cluster, servers)
        rate = sum(count for text, count in sent.items() if is_question(text))
        tap.note(f"{when}: {rate:.2f} questions and {sum(sent.values()):.2f} statements a second "
                 f"and server, {cpu * 100:.2f} % CPU")
        listed = sorted(((count, text) for text, count in sent.items()), reverse=True)
        for count, text in listed[:10]:
            tap.note(f"  {count:6.2f}/s  {text}")
        if rate <= most and (SANITIZED or cpu <= CPU_MAX):
            break
    tap.ok(rate <= most, f"{when}: at most {most} questions a second and server",
           f"expected at most {most}, seen {rate:.2f}")
    if SANITIZED:
        tap.skip("CPU of a build with sanitizers says nothing")
    else:
        tap.ok(cpu <= CPU_MAX, f"{when}: less than {CPU_MAX * 100:.0f} % of a core", cpu)


def copy_rows(cluster, table, an_id, count):
    """Copies of the row of an execution under ids counted up from there, each a second later."""
    names = cluster.sql("SELECT column_name FROM information_schema.columns WHERE table_schema = "
                        f"'{SCHEMA}' AND table_name = '{table}' AND column_name <> 'id' ORDER BY 1")
    moved = {"due": "due + n::bigint * 1000000", "ord": "ord + n", "finished": "finished + n"}
    columns = ", ".join(names.splitlines())
    values = ", ".join(moved.get(name, name) for name in names.splitlines())
    cluster.sql(f"INSERT INTO {SCHEMA}.{table} (id, {columns}) SELECT ('{an_id[:24]}' || "
                f"lpad(to_hex(n), 12, '0'))::uuid, {values} FROM {SCHEMA}.{table}, "
                f"generate_series(1, {count}) n WHERE id = '{an_id}'")


def fill(tap, cluster, server):
    """A million delayed ones, and some that are over."""
    calls, began = Calls(server), time.monotonic()
    later, = submit(calls, "later", delay_ms=300 * 86400 * 1000)
    over, = submit(calls, "over")
    calls.good("POST", "/v1/executions/cancel", {"ids": [over], "reason": "not needed"})
    calls.close()
    for an_id, table, count in ((later, "live", MANY), (over, "outcome", ENDED)):
        copy_rows(cluster, "execution", an_id, count - 1)
        copy_rows(cluster, table, an_id, count - 1)
    cluster.sql("ANALYZE")
    tap.note(f"{MANY + ENDED} executions were made in {time.monotonic() - began:.1f} s")
    tap.equal(cluster.sql(f"SELECT count(*) FROM {SCHEMA}.live"), str(MANY), "a million executions are delayed")


def hold(tap, cluster, server):
    """A gate that admits one, which no worker takes, and many behind it."""
    calls = Calls(server)
    calls.good("PUT", "/v1/gates/full", {"max_running": 1})
    submit(calls, "gated", gate="full:1")
    held, = submit(calls, "gated", gate="full:1")
    for table in ("execution", "live"):
        copy_rows(cluster, table, held, HELD - 1)
    cluster.sql("ANALYZE")
    found = calls.good("GET", "/v1/gates/full:1")
    calls.close()
    tap.equal((found["ready"], found["held"]), (1, HELD), "one is admitted, the others are held")


def is_awake(tap, server):
    """Something small is done on time in between."""
    points, calls = Points("among a million"), Calls(server, timeout=60)

    def ran(lane, wait_ms=15000):
        return calls.good("POST", "/v1/claims", {"worker": f"w-{lane}", "lanes": [lane],
                                                 "lease_ms": 1000, "wait_ms": wait_ms})["items"]
    began = time.monotonic()
    soon, = submit(calls, "soon", delay_ms=1000)
    items, took = ran("soon"), time.monotonic() - began
    points.point([] if items and items[0]["id"] == soon and 0.99 <= took <= 2.5 else
                 [f"{soon}: expected after 1 s, seen {items} after {took:.2f} s"],
                 "a delay of 1 s ends after 1 s")
    began = time.monotonic()
    items, took = ran("soon"), time.monotonic() - began
    points.point([] if items and items[0]["epoch"] == 2 and took <= 2.5 else
                 [f"{soon}: expected again after 1 s, seen {items} after {took:.2f} s"],
                 "a lease that ends is taken away")
    calls.close()
    points.report(tap)


def main():
    tap, cluster, servers = Tap(), counting_cluster(), []
    try:
        servers += [serve(cluster.store(SCHEMA), tap=tap) for _ in range(REPLICAS)]
        outlast_grace(time.monotonic())
        idle(tap, cluster, servers, "an empty store")
        fill(tap, cluster, servers[0])
        idle(tap, cluster, servers, "a million in the future")
        hold(tap, cluster, servers[0])
        idle(tap, cluster, servers, "100,000 held besides", GATED_MAX)
        is_awake(tap, servers[0])
        tap.equal([server.stop() for server in servers], [0] * REPLICAS,
                  "the servers stop by themselves")
    finally:
        for server in servers:
            server.kill()
        cluster.remove()
    tap.done()


if __name__ == "__main__":
    main()
