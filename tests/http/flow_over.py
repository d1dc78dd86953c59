#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A flow that is over is over: tests/http/flow_over.py (WEFT_TEST_STORE: sqlite or pg).

Eight clients and two servers over one store. Each client ends the last member of a flow at the
first server and, as soon as that is acknowledged, cancels, grows or reads the flow, at the same
server or at the other one. No cancel and no growth may be accepted, and no read may say `open`.
Prints TAP and figures; WEFT_SOAK=1: ten times as many flows.
"""
import collections
import os
import threading

from harness import STORE, Calls, Tap, scratch, serve

CLIENTS = 8
FLOWS = 1200 * (10 if os.environ.get("WEFT_SOAK", "0") not in ("", "0") else 1)
STEPS = ("cancel", "grow", "read")


def run_flow(calls, lane):
    """A flow of two members whose last end was acknowledged just now."""
    flow = calls.good("POST", "/v1/flows", {"nodes": [
        {"name": "a", "kind": "over", "lane": lane},
        {"name": "b", "kind": "over", "lane": lane, "after": ["a"]}]})["id"]
    for _ in range(2):
        items = []
        while not items:
            items = calls.good("POST", "/v1/claims", {"worker": lane, "lanes": [lane],
                                                      "wait_ms": 5000})["items"]
        done = calls.good("POST", "/v1/leases/complete", {"items": [
            {"id": items[0]["id"], "epoch": items[0]["epoch"], "result": 1}]})
        if "error" in done["items"][0]:
            raise AssertionError(f"complete: {done}")
    return flow


def accepted(calls, flow, step):
    """Whether the flow is taken for an open one."""
    if step == "cancel":
        status, _, answer = calls("POST", f"/v1/flows/{flow}/cancel", {"policy": "all"})
    elif step == "grow":
        status, _, answer = calls("POST", f"/v1/flows/{flow}/nodes", {
            "revision": 1, "nodes": [{"name": "x", "kind": "over", "after": ["b"]}]})
    else:
        return calls.good("GET", f"/v1/flows/{flow}")["state"] == "open"
    if status < 300:
        return True
    if answer["error"]["code"] != "not_live":
        raise AssertionError(f"{step}: {status} {answer}")
    return False


def client(number, servers, tried, wrong):
    calls = [Calls(server) for server in servers]
    for turn in range(FLOWS // CLIENTS):
        flow = run_flow(calls[0], f"over{number}")
        where = (turn // len(STEPS)) % len(servers)
        key = (STEPS[turn % len(STEPS)], ("the same server", "the other server")[where])
        tried[key] += 1
        wrong[key] += accepted(calls[where], flow, key[0])
    for one in calls:
        one.close()


def main():
    tap = Tap()
    store = scratch(STORE, "flowover")
    servers = [serve(store, tap=tap), serve(store, tap=tap)]
    counts = [(collections.Counter(), collections.Counter(), []) for _ in range(CLIENTS)]

    def run(number):
        tried, wrong, failed = counts[number]
        try:
            client(number, servers, tried, wrong)
        except Exception as problem:  # reported below, by the thread that prints
            failed.append(repr(problem))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tap.equal([failed for _, _, failed in counts if failed], [], "every client comes to its end")
    tried = sum((one for one, _, _ in counts), collections.Counter())
    for key in sorted(tried):
        wrong = sum(one[key] for _, one, _ in counts)
        tap.note(f"{key[0]} at {key[1]}: {wrong} of {tried[key]} took the flow for an open one")
        tap.equal(wrong, 0, f"{key[0]} at {key[1]}, after the last end")
    for server in servers:
        tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()
    tap.done()


if __name__ == "__main__":
    main()
