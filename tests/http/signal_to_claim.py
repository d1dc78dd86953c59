#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon an execution that a signal resumed is claimed: tests/http/signal_to_claim.py
(WEFT_TEST_STORE: sqlite or pg). Prints TAP and figures.

A worker waits in a claim; a signal at the same replica resumes an execution. Measured is the time
from the answer of the signal to the answer of the claim, 200 times, each with an execution and a
claim of its own. A claim that is answered first took no time.

The median is asked to be below 50 ms, since tests run on machines that do other things as well,
and far below the poll of once a second. With WEFT_SOAK=1 the store waits for the disk, and the
median must be below 2.5 ms and the 99th percentile below 10 ms.
"""
import json
import select
import time

from harness import (SANITIZED, STORE, Calls, Cluster, Raw, Tap, metric_sum, metrics, scratch,
                     serve, until, waiters)
from suspending import LONG_MS, SOAK, Volley, claim_request, post

TURNS = 200
LANE = "wait"
P50_MAX_MS, P99_MAX_MS = (2.5, 10.0) if SOAK else (50.0, 500.0)


def suspend_all(calls):
    """Executions that wait for a signal each: tokens by their ids."""
    calls.good("POST", "/v1/executions", {"items": [{"kind": "wait", "lane": LANE}] * TURNS})
    leases = calls.good("POST", "/v1/claims", {"worker": "first", "lanes": [LANE], "max": TURNS,
                                               "lease_ms": LONG_MS, "wait_ms": 5000})["items"]
    waits = calls.good("POST", "/v1/leases/suspend", {"items": [
        {"id": lease["id"], "epoch": lease["epoch"], "waitpoints": [{"name": "answer"}]}
        for lease in leases]})["items"]
    return {item["id"]: item["waitpoints"][0]["token"] for item in waits}


def answers_of(both):
    """When the answer on each connection was whole; 0: it did not come in time."""
    when = {raw: 0.0 for raw in both}
    while missing := [raw for raw in both if not when[raw]]:
        ready, _, _ = select.select([raw.socket for raw in missing], [], [], 20)
        now = time.monotonic()
        if not ready:
            break
        for raw in missing:
            if raw.socket in ready and (not raw.more() or Volley.is_whole(raw.pending)):
                when[raw] = now
    return [when[raw] for raw in both]


def turn(server, sender, worker, an_id, token):
    """The ms between the two answers, None when the claim got another answer than it should."""
    worker.send(claim_request(LANE))
    until(lambda: waiters(server) == 1, 10)
    sender.send(post(f"/v1/signals/{token}?name=go"))
    signalled, claimed = answers_of([sender, worker])
    if not signalled or not claimed:
        return None
    status, _, body = sender.answer()
    items = json.loads(worker.answer()[2])["items"]
    good = (status == 200 and json.loads(body)["effect"] == "resumed"
            and [(i["id"], i["epoch"], len(i["signals"])) for i in items] == [(an_id, 2, 1)])
    return max(0.0, (claimed - signalled) * 1000) if good else None


def judge(tap, took):
    ordered = sorted(took)
    p50, p99 = ordered[len(took) // 2], ordered[len(took) * 99 // 100]
    tap.note(f"{STORE}: from the answer of the signal to that of the claim p50 {p50:.2f} ms, "
             f"p99 {p99:.2f} ms, at most {ordered[-1]:.2f} ms, {ordered.count(0.0)} of {len(took)} "
             "came first")
    if SANITIZED:
        tap.skip("times of a build with sanitizers say nothing")
        return
    tap.ok(p50 < P50_MAX_MS, f"the median is below {P50_MAX_MS:g} ms", p50)
    tap.ok(p99 < P99_MAX_MS, f"the 99th percentile is below {P99_MAX_MS:g} ms", ordered[-5:])


def main():
    tap = Tap()
    cluster = Cluster(durable=True) if SOAK and STORE == "pg" else None
    store = cluster.store("claim") if cluster else scratch(STORE, "claim")
    try:
        server = serve(store, tap=tap)
        calls = Calls(server)
        tokens = suspend_all(calls)
        tap.equal(len(tokens), TURNS, f"{TURNS} executions are suspended")
        before = metrics(server)
        with Raw(server, timeout=30) as sender, Raw(server, timeout=30) as worker:
            took = [turn(server, sender, worker, *pair) for pair in tokens.items()]
        after = metrics(server)
        tap.equal(took.count(None), 0, "each signal resumes one execution, which is claimed once")
        judge(tap, [ms for ms in took if ms is not None] or [float("inf")])
        poll = metric_sum(after, "weft_wakes_total", "poll") - metric_sum(
            before, "weft_wakes_total", "poll")
        tap.note(f"the poll woke {poll:.0f} claims")
        # It may come between a commit and the news of it.
        tap.ok(poll < TURNS / 10, "claims are woken by the signal, not by the poll", poll)
        calls.close()
        tap.equal(server.stop(), 0, "the server stops by itself")
    finally:
        if cluster:
            cluster.remove()
        else:
            store.remove()
    tap.done()


if __name__ == "__main__":
    main()
