#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three replicas purge together: tests/replicas/purge.py. Prints TAP and figures.

One large deleted flow and a thousand small ones lie in a PostgreSQL of the test's own, beside living
work. With WEFT_SOAK=1 the large one has a million members (or WEFT_SOAK_MEMBERS), and it is a measurement; otherwise it is short.

What is proven:

  - without a pause three servers remove every row, each by one of them: what they count adds up exactly to
    what was there; in the soak at least 30,000 executions a second in all, and submissions and reads
    beside them do not take twice as long (99th percentile);
  - what lives, or has ended without being deleted, is there afterwards, row by row;
  - with the pause a server removes a batch and rests: never more than its batches add up to;
  - a server that is told to stop in the middle stops at once, and the others do the rest.

Flows have 100,000 members at most; the large one here is made of one that was submitted, copied in the
store by SQL, because a larger tombstone is what the replicas have to share.
"""
import os
import threading
import time

from fleet import show, submit
from harness import (SANITIZED, Calls, Cluster, Tap, doctor, metric_sum, metrics, pause, serve, until)

SOAK = os.environ.get("WEFT_SOAK") == "1"
LARGE, SMALL, EACH = (int(os.environ.get("WEFT_SOAK_MEMBERS", "1000000")), 1000, 10) if SOAK else (20000, 1000, 2)
LIVING = 500
BATCH = 1000 if SOAK else 100
RATE_MIN = 30000
BOUND_S = 300
SCHEMA = "purge"
TABLES = ("execution", "live", "outcome", "node", "edge", "flow", "span")


def copies(cluster, table, source, rows, **changed):
    """Inserts copies of one row: `rows` gives m, and what is different is said in terms of it."""
    names = cluster.sql("SELECT column_name FROM information_schema.columns WHERE table_schema = "
                        f"'{SCHEMA}' AND table_name = '{table}' ORDER BY 1").splitlines()
    columns = ", ".join(names)
    values = ", ".join(changed.get(name, f"s.{name}") for name in names)
    cluster.sql(f"INSERT INTO {SCHEMA}.{table} ({columns}) SELECT {values} FROM {rows}, {SCHEMA}.{table} s "
                f"WHERE s.id = '{source}'")


def copy_members(cluster, flow, node, large, small):
    """The node of a flow, many times over in it, and flows like it with some nodes each; all of them are
    deleted and over. Ids count up from those of the first, so that they lie in its span."""
    def counted_up(an_id, number):
        return f"('{an_id[:24]}' || lpad(to_hex({number}), 12, '0'))::uuid"
    copies(cluster, "flow", flow, f"generate_series(1, {small}) m", id=counted_up(flow, "m"), key="NULL",
           nodes=str(EACH))
    for table in ("execution", "outcome", "node"):
        copies(cluster, table, node, f"generate_series(1, {large - 1}) m", id=counted_up(node, "m"),
               name="'n' || m")
        copies(cluster, table, node, f"generate_series(0, {small * EACH - 1}) m",
               id=counted_up(node, f"{large} + m"), flow=counted_up(flow, f"1 + m / {EACH}"), name="'n' || m")
    cluster.sql(f"UPDATE {SCHEMA}.flow SET nodes = {large} WHERE id = '{flow}'; ANALYZE")


def flow_of(calls, count, **more):
    nodes = [{"name": f"m{i}", "kind": "member", "lane": "members"} for i in range(count)]
    return calls.good("POST", "/v1/flows", {"nodes": nodes, **more})


def fill(cluster, calls):
    """Living work, an ended flow that is kept, and tombstones; the living rows by table."""
    submit(calls, "living", LIVING)
    flow_of(calls, 20)
    kept = flow_of(calls, 20)["id"]
    calls.good("POST", f"/v1/flows/{kept}/cancel", {"policy": "all", "reason": "kept"})
    before = rows(cluster)
    gone = flow_of(calls, 1)
    node = gone["nodes"]["m0"]
    calls.good("DELETE", f"/v1/flows/{gone['id']}")
    state = lambda: cluster.sql(f"SELECT state FROM {SCHEMA}.flow WHERE id = '{gone['id']}'") == "3"
    if not until(state, 10):
        raise AssertionError("the deleted flow does not end")
    copy_members(cluster, gone["id"], node, LARGE, SMALL)
    return before


def rows(cluster):
    return {table: int(cluster.sql(f"SELECT count(*) FROM {SCHEMA}.{table}")) for table in TABLES}


def counted(servers):
    """What the scanner counted, added up over the servers."""
    total = {}
    for server in servers:
        numbers = metrics(server)
        for name in ("processed", "members", "tombstones", "skipped_locked", "errors"):
            total[name] = total.get(name, 0) + metric_sum(
                numbers, "weft_scanner_rows_total", f'scanner="purge",counter="{name}"')
    return total


class Foreground:
    """Submits and reads, one after the other, until it is stopped; how long each took."""

    def __init__(self, server):
        self.calls, self.took, self.stopping = Calls(server), [], threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stopping.wait(0.002):
            began = time.monotonic()
            an_id, = submit(self.calls, "beside")
            show(self.calls, an_id)
            self.took.append(time.monotonic() - began)

    def end(self):
        self.stopping.set()
        self.thread.join()
        self.calls.close()
        self.took.sort()
        return self.took[len(self.took) * 99 // 100] * 1000 if self.took else 0


def tombstones(cluster):
    return int(cluster.sql(f"SELECT count(*) FROM {SCHEMA}.node n JOIN {SCHEMA}.flow f ON f.id = n.flow "
                           "WHERE f.deleted IS NOT NULL"))


def hide_tombstones(cluster):
    """They look like flows that are kept, until the servers have started."""
    cluster.sql(f"CREATE TABLE {SCHEMA}.hidden AS SELECT id FROM {SCHEMA}.flow WHERE deleted IS NOT NULL; "
                f"UPDATE {SCHEMA}.flow SET deleted = NULL, state = 3 WHERE deleted IS NOT NULL")


def show_tombstones(cluster):
    """As they are marked to be removed: the next poll of each server finds them."""
    cluster.sql(f"UPDATE {SCHEMA}.flow SET deleted = 1, state = -2 WHERE id IN (SELECT id FROM {SCHEMA}.hidden); "
                f"DROP TABLE {SCHEMA}.hidden")


def all_gone(cluster):
    """Looks rarely: a process and a session for each look are load too, which the foreground would feel."""
    pause(0.3 if SOAK else 0.02)
    return cluster.sql(f"SELECT 1 FROM {SCHEMA}.flow WHERE deleted IS NOT NULL LIMIT 1") == ""


def paused(tap, cluster, store):
    """One server, with the default pause."""
    left = tombstones(cluster)
    server = serve(store, "--scanners", "purge", "--purge-batch", str(BATCH), tap=tap)
    try:
        pause(3)
    finally:
        began = time.monotonic()
        stopped = server.stop()
        took = time.monotonic() - began
    gone = left - tombstones(cluster)
    tap.ok(0 < gone <= BATCH * 40, "with a pause of 100 ms a server removes at most ten batches a second", gone)
    tap.note(f"{gone} members in about 3 s with a batch of {BATCH} and a pause of 100 ms")
    tap.equal(stopped, 0, "it stops by itself in the midst of the work")
    tap.ok(took < 5, "and soon", f"{took:.1f} s")
    return gone


def main():
    tap, cluster, servers = Tap(), Cluster(durable=SOAK), []
    try:
        store = cluster.store(SCHEMA)
        filler = serve(store, "--scanners", "none", tap=tap)
        servers.append(filler)
        calls = Calls(filler, timeout=60)
        before = fill(cluster, calls)
        calls.close()
        throttled = paused(tap, cluster, store)
        members = tombstones(cluster)
        hide_tombstones(cluster)
        servers += [serve(store, "--scanners", "purge", "--purge-pause", "0", tap=tap) for _ in range(3)]
        pause(1)  # what servers do when they start is over
        foreground = Foreground(filler)
        pause(5 if SOAK else 1)
        calm = foreground.end()
        foreground = Foreground(filler)
        show_tombstones(cluster)
        began = time.monotonic()
        gone = until(lambda: all_gone(cluster), BOUND_S)
        took, busy = time.monotonic() - began, foreground.end()
        tap.ok(gone, "every tombstone is removed", counted(servers[1:]))
        total = counted(servers[1:])
        tap.note(f"{members} members after {throttled} in {took:.1f} s: {members / took:.0f} a second; {total}")
        tap.note(f"foreground p99: {calm:.1f} ms before, {busy:.1f} ms beside it")
        tap.equal(total.get("members"), members, "each member was removed by one replica")
        tap.equal(total.get("errors", 0), 0, "no error")
        if SOAK and not SANITIZED:
            tap.ok(members / took >= RATE_MIN, f"at least {RATE_MIN} a second", members / took)
            tap.ok(busy <= 2 * calm + 1, "the foreground does not take twice as long", (calm, busy))
        after = rows(cluster)
        made = int(cluster.sql(f"SELECT count(*) FROM {SCHEMA}.live l JOIN {SCHEMA}.queue q ON q.id = l.queue "
                               f"JOIN {SCHEMA}.name n ON n.id = q.lane WHERE n.text = 'beside'"))
        after["execution"] -= made
        after["live"] -= made
        for table in ("execution", "live", "outcome", "node", "edge", "flow"):
            tap.equal(after[table], before[table], f"{table}: what is not deleted is there, and nothing else")
        whole, said = doctor(store, BOUND_S)
        tap.ok(whole, "every row is whole", said)
        tap.equal([server.stop() for server in servers], [0] * 4, "the servers stop by themselves")
    finally:
        for server in servers:
            server.kill()
        cluster.remove()
    tap.done()


if __name__ == "__main__":
    main()
