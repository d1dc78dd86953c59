#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that wait for the end of a flow: tests/http/flow_ends.py (WEFT_TEST_STORE: sqlite or pg).

A read that waits is answered at once when the flow ends on its replica, whatever ended it, and
within its poll when it ends by another one. The flow ends when the waiter has just looked and will
not for a long time: an answer that comes much sooner was woken. Prints TAP and figures.
"""
import json
import statistics
import time

from harness import STORE, Calls, Raw, Tap, metric_sum, metrics, pause, scratch, serve, until

TURNS = 3
PROMPT_MS, POLL_MS = 250, 2500
SETTLED_S = 0.85  # a waiter looked after 0.75 s for the last time, and looks next after 1.55 s


def chain(lane):
    return {"nodes": [{"name": "a", "kind": "end", "lane": lane},
                      {"name": "b", "kind": "end", "lane": lane, "after": ["a"]}]}


def wait_for_end(server, flow, before):
    raw = Raw(server, timeout=60)
    raw.send(b"GET /v1/flows/%s?wait_ms=30000 HTTP/1.1\r\nHost: localhost\r\n\r\n" % flow.encode())
    until(lambda: metric_sum(metrics(server), "weft_waiters", "end") > before, 10)
    return raw


def work(calls, lane, how):
    """Runs one member of the lane."""
    item = calls.good("POST", "/v1/claims", {"worker": "w", "lanes": [lane], "wait_ms": 5000})
    lease = item["items"][0]
    calls.good("POST", "/v1/leases/" + how,
               {"items": [{"id": lease["id"], "epoch": lease["epoch"], **BODY[how]}]})


BODY = {"complete": {"result": 1}, "fail": {"class": "no", "message": "no", "retryable": False}}


def one_end(there, calls, turn, how):
    """A flow whose last member ends while a client waits: ms until its answer, and the answer."""
    lane = f"end{turn}"
    flow = calls.good("POST", "/v1/flows", chain(lane))["id"]
    if how == "complete":
        work(calls, lane, "complete")
    before = metric_sum(metrics(there), "weft_waiters", "end")
    waiting = wait_for_end(there, flow, before)
    pause(SETTLED_S)
    began = time.monotonic()
    if how == "cancel":
        calls.good("POST", f"/v1/flows/{flow}/cancel", {"policy": "all"})
    else:  # the failure of a ends b as well
        work(calls, lane, how)
    status, _, body = waiting.answer()
    took_ms = (time.monotonic() - began) * 1000
    waiting.socket.close()
    return took_ms, json.loads(body)["state"] if status == 200 else status


STATE = {"complete": "succeeded", "fail": "failed", "cancel": "cancelled"}


def ends(tap, there, calls, name, bound_ms):
    for how, state in STATE.items():
        turns = [one_end(there, calls, f"{name}-{how}-{turn}", how) for turn in range(TURNS)]
        took = [ms for ms, _ in turns]
        tap.note(f"{name}, {how}: median {statistics.median(took):.1f} ms, most {max(took):.1f}")
        tap.equal({state for _, state in turns}, {state}, f"{name}, {how}: the flow is {state}")
        # One that is late says more about the machine than about waking; none is early by chance.
        tap.ok(min(took) < bound_ms, f"{name}, {how}: the wait ends in time", took)


def main():
    tap = Tap()
    store = scratch(STORE, "flowends")
    here = serve(store, tap=tap)
    calls = Calls(here)
    ends(tap, here, calls, "here", PROMPT_MS)
    if STORE == "pg":
        there = serve(store, tap=tap)
        ends(tap, there, calls, "elsewhere", POLL_MS)
        tap.equal(there.stop(), 0, "the other server stops with 0")
    calls.close()
    tap.equal(here.stop(), 0, "the server stops by itself")
    store.remove()
    tap.done()


if __name__ == "__main__":
    main()
