#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A database that goes away and comes back, or only stands still. Prints TAP.

PostgreSQL is restarted under load: requests get an answer, or 503 with Retry-After, within a bound;
everything acknowledged is there, and the throughput comes back by itself. Then its
tables are locked: when the queue is full, the rest is answered 429 with Retry-After at once. When a
single row is locked, only requests that need that row wait for it.
"""
import concurrent.futures
import subprocess
import time

from harness import FAULTS, Calls, Cluster, Tap, metric_sum, metrics, pause, serve, until
from load import Load, check_kept

BOUND_S = 20
BACK_S = 15
CLIENTS = 6
HELD_S = 3  # less than a statement waits for a row
ALLOWED = {200, 201, 409, 429, 503}


def restart_under_load(tap, cluster, server, mode):
    load = Load([server], CLIENTS, bound_s=BOUND_S)
    ledger = load.ledger
    until(lambda: len(ledger.completed) > 100, 20)
    began = time.monotonic()
    pause(1.0)
    before = ledger.rate(began, began + 1)
    down = time.monotonic()
    cluster.restart(mode)
    up = time.monotonic()

    def is_back():
        now = time.monotonic()
        return now > up + 1 and ledger.rate(now - 1, now) > before / 2
    back = until(is_back, BACK_S)
    took = time.monotonic() - up
    ended = load.stop()
    tap.note(f"{mode}: {before:.0f}/s before, the restart took {up - down:.1f} s, "
             f"half of it was back {took:.1f} s later")
    tap.ok(back, f"{mode}: the throughput comes back by itself")
    tap.ok(ended and ledger.slowest < BOUND_S, f"{mode}: no request hangs",
           f"the slowest took {ledger.slowest:.1f} s")
    tap.ok(set(ledger.statuses) <= ALLOWED, f"{mode}: requests are answered, or get 503",
           ledger.statuses)
    tap.equal(ledger.bare, 0, f"{mode}: every 503 says when to try again")
    check_kept(tap, server, ledger)


def away(tap, cluster, server):
    """While there is no database at all."""
    calls = Calls(server, timeout=BOUND_S)
    cluster.run("pause")
    try:
        for method, path, body in (("POST", "/v1/executions", {"kind": "away"}),
                                   ("GET", "/v1/executions", None), ("GET", "/readyz", None),
                                   ("POST", "/v1/claims", {"worker": "away"})):
            began = time.monotonic()
            status, headers, answer = calls(method, path, body)
            took = time.monotonic() - began
            tap.ok(status == 503 and headers["Retry-After"] and took < BOUND_S,
                   f"without a database {method} {path} is 503", (status, answer, took))
        tap.equal(calls("GET", "/healthz")[0], 200, "the process is well all the same")
    finally:
        cluster.run("resume")
    ready = until(lambda: calls("GET", "/readyz")[0] == 200, BACK_S)
    tap.ok(ready, "the server is ready again when the database is")
    calls.close()


class Lock:
    """Keeps a lock in the store until released."""

    def __init__(self, cluster, statement):
        self.process = subprocess.Popen(["psql", "-qAtX", cluster.url], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.say(f"BEGIN; {statement}; SELECT 'locked';")
        if self.process.stdout.readline() != "locked\n":
            raise AssertionError(f"not locked: {statement}")

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def let_go(self):
        self.say("COMMIT;")
        self.process.stdin.close()
        self.process.wait(10)


def full_queue(tap, cluster):
    server = serve(cluster.store("crowded"), "--queue-max", "4", "--threads", "2", tap=tap)
    Calls(server).good("POST", "/v1/executions", {"kind": "first"})
    lock = Lock(cluster, "LOCK TABLE crowded.live IN ACCESS EXCLUSIVE MODE")

    def submit(_):
        calls, began = Calls(server, timeout=60), time.monotonic()
        try:
            status, headers, answer = calls("POST", "/v1/executions", {"kind": "crowd"})
        except FAULTS as error:
            return repr(error), None, None, 0
        finally:
            calls.close()
        return status, headers, answer, time.monotonic() - began
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        futures = [pool.submit(submit, i) for i in range(40)]
        until(lambda: sum(f.done() for f in futures) >= 30, 10)
        early = [f.result() for f in futures if f.done()]
        lock.let_go()
        results = [f.result() for f in futures]
    full = [r for r in early if r[0] == 429]
    tap.ok(len(full) >= 25, "a full queue is answered 429 at once", [r[0] for r in early])
    tap.ok(all(r[1]["Retry-After"] and r[2]["error"]["code"] == "rate_limited" and r[3] < 5
               for r in full), "429 has Retry-After and the code rate_limited")
    done = sum(r[0] == 201 for r in results)
    tap.ok(all(r[0] in (201, 429, 503) for r in results) and done >= 1,
           "queued requests are served when the lock is gone", [r[0] for r in results])
    status = until(lambda: Calls(server)("POST", "/v1/executions", {"kind": "after"})[0] == 201, 10)
    tap.ok(status, "a new request is served when the lock is gone")
    tap.ok(metric_sum(metrics(server), "weft_queue_requests") == 0, "the queue is empty again")
    tap.equal(server.stop(), 0, "the server stops by itself")


def locked_table(tap, cluster):
    """A submission without keys that waits for a lock on a table: refused once, and for that."""
    server = serve(cluster.store("locked"), tap=tap)
    calls = Calls(server, timeout=400)
    calls.good("POST", "/v1/executions", {"kind": "first"})
    lock = Lock(cluster, "LOCK TABLE locked.execution IN ACCESS EXCLUSIVE MODE")
    for name, body in (("one", {"kind": "k"}), ("twenty", {"items": [{"kind": "k"}] * 20})):
        began = time.monotonic()
        status, _, answer = calls("POST", "/v1/executions", body)
        took = time.monotonic() - began
        errors = [answer["error"]] if "error" in answer else [item["error"] for item in
                                                              answer["items"]]
        tap.ok(took < 60, f"a locked table: {name} without a key waits a few seconds", took)
        tap.ok(all(error["code"] == "busy" and error["field"] is None and
                   "key" not in error["message"] + error["hint"] for error in errors),
               "the refusal without a key does not mention keys", (status, errors[0]))
    lock.let_go()
    calls.good("POST", "/v1/executions", {"items": [{"kind": "k"}] * 20})
    calls.close()
    tap.equal(server.stop(), 0, "the server stops by itself")


def held_row(tap, cluster):
    """Completions share transactions with others, who must not wait for a row that one of them needs."""
    server = serve(cluster.store("held"), tap=tap)
    calls = Calls(server, timeout=BOUND_S)
    calls.good("POST", "/v1/executions", {"items": [{"kind": "held"} for _ in range(40)]})
    claimed = calls.good("POST", "/v1/claims", {"worker": "w", "max": 20})["items"]
    held = claimed[0]
    lock = Lock(cluster, f"UPDATE held.live SET due = due WHERE id = '{held['id']}'")

    def complete(item):
        own, began = Calls(server, timeout=60), time.monotonic()
        status = own("POST", "/v1/leases/complete",
                     {"items": [{"id": item["id"], "epoch": item["epoch"]}]})[0]
        own.close()
        return status, time.monotonic() - began

    def live(item):
        own, slowest = Calls(server, timeout=60), 0
        for method, path, body in (("POST", "/v1/executions", {"kind": "held"}),
                                   ("POST", "/v1/claims", {"worker": "w", "max": 1})):
            began = time.monotonic()
            own.good(method, path, body)
            slowest = max(slowest, time.monotonic() - began)
        own.close()
        complete(item)  # may have been taken together with the one that is stuck
        return slowest
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        stuck = pool.submit(complete, held)
        others = [pool.submit(live, item) for item in claimed[1:]]
        until(lambda: all(f.done() for f in others), 30)
        slowest = max(f.result() for f in others)
        tap.ok(slowest < HELD_S, "only completions of the locked row wait long",
               f"{slowest:.1f} s")
        lock.let_go()
        tap.ok(stuck.result()[0] in (200, 429),
               "the completion of the locked row waits or is answered 429",
               stuck.result())
    tap.equal(complete(held)[0], 200, "the execution is completed when its row is free")
    calls.close()
    tap.equal(server.stop(), 0, "the server stops by itself")


def main():
    tap, cluster = Tap(), Cluster(durable=True)
    try:
        server = serve(cluster.store("outage"), tap=tap)
        restart_under_load(tap, cluster, server, "fast")
        restart_under_load(tap, cluster, server, "immediate")
        away(tap, cluster, server)
        tap.equal(server.stop(), 0, "the server stops by itself")
        full_queue(tap, cluster)
        locked_table(tap, cluster)
        held_row(tap, cluster)
    finally:
        cluster.remove()
    tap.done()


if __name__ == "__main__":
    main()
