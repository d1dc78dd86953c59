#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads that wait for the end of an execution: tests/http/execution_ends.py (WEFT_TEST_STORE).

Every way in which an execution can end wakes the read that waits for it at the replica that ended
it. Each end comes when the read has looked for the last time by itself; what is left would be the
look for all of them once a second. Prints TAP and figures.
"""
import datetime
import json
import statistics
import threading
import time

from harness import (SANITIZED, STORE, Calls, Raw, Tap, metric_sum, metrics, pause, scratch, serve,
                     until)

TURNS = 3
PROMPT_MS = 500 if SANITIZED else 250
SETTLED_S = 0.5  # a read looks after 50, 150 and 350 ms, and then not by itself
DUE_S = 1.5


class Waiting(threading.Thread):
    """A read that waits; `state` and `took_ms`, since the end that the answer names."""

    def __init__(self, server, execution):
        super().__init__()
        self.raw = Raw(server, timeout=60)
        self.raw.send(b"GET /v1/executions/%s?wait_ms=30000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
                      % execution.encode())
        self.state = self.took_ms = None
        self.start()

    def run(self):
        status, _, body = self.raw.answer()
        now = time.time()
        answer = json.loads(body)
        self.state = answer["state"] if status == 200 else status
        ended = datetime.datetime.fromisoformat(answer["finished_at"].replace("Z", "+00:00"))
        self.took_ms = (now - ended.timestamp()) * 1000
        self.raw.socket.close()


def lease_of(calls, lane, **spec):
    """An execution that runs."""
    calls.good("POST", "/v1/executions", {"kind": "end", "lane": lane, **spec})
    return claim(calls, lane)


def claim(calls, lane):
    item = calls.good("POST", "/v1/claims", {"worker": "w", "lanes": [lane], "wait_ms": 5000,
                                             "lease_ms": 60000})["items"][0]
    return {"id": item["id"], "epoch": item["epoch"]}


def flow_of(calls, lane, *nodes):
    return calls.good("POST", "/v1/flows",
                      {"nodes": [{"kind": "end", "lane": lane, **node} for node in nodes]})


def complete(calls, lease):
    calls.good("POST", "/v1/leases/complete", lease)


def fail(calls, lease):
    calls.good("POST", "/v1/leases/fail", {**lease, "class": "no", "retryable": False})


# Each way: the state it ends in, and what makes the execution (its id) and the function that ends it.

def by_complete(calls, lane):
    lease = lease_of(calls, lane)
    return lease["id"], lambda: complete(calls, lease)


def by_failure(calls, lane):
    lease = lease_of(calls, lane)
    return lease["id"], lambda: fail(calls, lease)


def by_cancel(calls, lane):
    lease = lease_of(calls, lane)
    return lease["id"], lambda: calls.good("POST", f"/v1/executions/{lease['id']}/cancel", {})


def by_cancel_of_many(calls, lane):
    lease = lease_of(calls, lane)
    return lease["id"], lambda: calls.good("POST", "/v1/executions/cancel", {"ids": [lease["id"]]})


def by_deadline(calls, lane):
    due = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=DUE_S)
    spec = {"kind": "end", "lane": lane, "deadline_at": due.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    return calls.good("POST", "/v1/executions", spec)["id"], lambda: None


def by_timeout(calls, lane):
    policy = {"max_attempts": 1, "attempt_timeout_ms": int(DUE_S * 1000)}
    return lease_of(calls, lane, policy=policy)["id"], lambda: None


def by_skip(calls, lane):
    flow = flow_of(calls, lane, {"name": "a"}, {"name": "b", "after": ["a"]})
    lease = claim(calls, lane)
    return flow["nodes"]["b"], lambda: fail(calls, lease)


def by_sibling(calls, lane):
    flow = flow_of(calls, lane, {"name": "a"}, {"name": "b"},
                   {"name": "c", "after": ["a", "b"], "join": {"policy": "any"}})
    lease = claim(calls, lane)
    other = "b" if lease["id"] == flow["nodes"]["a"] else "a"
    return flow["nodes"][other], lambda: complete(calls, lease)


def by_flow(calls, lane):
    flow = flow_of(calls, lane, {"name": "a"})
    return flow["nodes"]["a"], lambda: calls.good("POST", f"/v1/flows/{flow['id']}/cancel", {})


WAYS = ((by_complete, "succeeded"), (by_failure, "failed"), (by_cancel, "cancelled"),
        (by_cancel_of_many, "cancelled"), (by_deadline, "expired"), (by_timeout, "failed"),
        (by_skip, "skipped"), (by_sibling, "cancelled"), (by_flow, "cancelled"))


def turn(server, calls, number):
    """All ways, each in a lane of its own, with a read that waits."""
    begun = [way(calls, f"{way.__name__}-{number}") for way, _ in WAYS]
    waiting = [Waiting(server, execution) for execution, _ in begun]
    until(lambda: metric_sum(metrics(server), "weft_waiters", "end") == len(WAYS), 10)
    pause(SETTLED_S)
    for _, end in begun:
        end()
    for read in waiting:
        read.join()
    return waiting


def main():
    tap = Tap()
    store = scratch(STORE, "ends")
    server = serve(store, tap=tap)
    calls = Calls(server)
    turns = [turn(server, calls, number) for number in range(TURNS)]
    for i, (way, state) in enumerate(WAYS):
        reads = [waiting[i] for waiting in turns]
        took = [read.took_ms for read in reads]
        tap.note(f"{way.__name__}: median {statistics.median(took):.1f} ms, most {max(took):.1f}")
        tap.equal({read.state for read in reads}, {state}, f"{way.__name__}: the read says {state}")
        # One that is late says more about the machine than about waking.
        tap.ok(statistics.median(took) < PROMPT_MS, f"{way.__name__}: the read is woken", took)
    calls.close()
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()
    tap.done()


if __name__ == "__main__":
    main()
