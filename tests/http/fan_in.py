#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A member of a flow that comes after thousands of others: tests/http/fan_in.py

    WEFT_TEST_STORE  sqlite or pg

Its claim carries the results of all of them. Reading them takes long, and no other request waits: on
PostgreSQL a lock keeps it from being read, and other claims and submits are answered meanwhile.
"""
import threading

from harness import STORE, Calls, Cluster, Tap, scratch, serve, until
from outage import Lock

WIDE, PORTION = 4500, 500  # more than one call reads along: FAN_IN_ALONG in src/engine/job/claim_upstreams.c


def make_sink(calls):
    """A flow of which all have ended but the last, which comes after all of them."""
    names = [f"n{i}" for i in range(WIDE)]
    calls.good("POST", "/v1/flows", {"nodes": [
        *({"name": name, "kind": "root"} for name in names),
        {"name": "sink", "kind": "sink", "after": names}]})
    left = WIDE
    while left > 0:
        got = calls.good("POST", "/v1/claims",
                         {"worker": "w", "kinds": ["root"], "max": PORTION})["items"]
        calls.good("POST", "/v1/leases/complete",
                   {"items": [{"id": item["id"], "epoch": item["epoch"], "result": item["node"]}
                              for item in got]})
        left -= len(got)


def claim_sink(calls, wait_ms=20000):
    return calls("POST", "/v1/claims", {"worker": "w", "kinds": ["sink", "small"], "max": 10,
                                        "wait_ms": wait_ms})


def is_right(item):
    upstream = item["upstream"]
    return len(upstream) == WIDE and all(upstream[f"n{i}"]["result"] == f"n{i}" and
                                         upstream[f"n{i}"]["state"] == "succeeded"
                                         for i in range(WIDE))


def whole(tap):
    store = scratch(STORE, "fan_in")
    server = serve(store, tap=tap)
    calls = Calls(server, timeout=60)
    make_sink(calls)
    calls.good("POST", "/v1/executions", {"kind": "small"})
    items = []
    while not any(item["kind"] == "sink" for item in items):
        items += claim_sink(calls)[2]["items"]
    sinks = [item for item in items if item["kind"] == "sink"]
    tap.ok(len(sinks) == 1 and is_right(sinks[0]), "the sink gets the results of all its upstreams")
    tap.equal(sum(item["kind"] == "small" for item in items), 1,
              "other work is claimed beside the sink")
    done = calls.good("POST", "/v1/leases/complete",
                      {"id": sinks[0]["id"], "epoch": sinks[0]["epoch"]})
    tap.equal(done["state"], "succeeded", "the lease of the sink is valid")
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()


def serves_others(calls):
    """Whether a submit, a claim and a completion are answered."""
    made = calls.good("POST", "/v1/executions", {"kind": "job"})
    got = calls.good("POST", "/v1/claims", {"worker": "b", "kinds": ["job"]})["items"]
    done = [calls.good("POST", "/v1/leases/complete", {"id": item["id"], "epoch": item["epoch"]})
            for item in got]
    return [item["id"] for item in got] == [made["id"]] and done[0]["state"] == "succeeded"


def locked(tap):
    """The upstreams cannot be read for a while."""
    cluster, answers = Cluster(), []
    server = serve(cluster.store("fan_in"), tap=tap)
    calls, other = Calls(server, timeout=60), Calls(server, timeout=10, namespace="other")
    make_sink(calls)
    other.good("POST", "/v1/executions", {"kind": "first"})
    is_due = "SELECT count(*) FROM fan_in.node WHERE name = 'sink' AND fired = 1"
    until(lambda: cluster.sql(is_due) == "1", 30)
    lock = Lock(cluster, "LOCK TABLE fan_in.edge IN ACCESS EXCLUSIVE MODE")
    claimer = threading.Thread(target=lambda: answers.append(claim_sink(calls)))
    claimer.start()
    is_held = ("SELECT count(*) FROM pg_locks WHERE NOT granted "
               "AND relation = 'fan_in.edge'::regclass")
    tap.ok(until(lambda: cluster.sql(is_held) != "0", 30), "the claim of the sink waits for a lock")
    tap.ok(all(serves_others(other) for _ in range(20)) and not answers,
           "submits, claims and completions of others are answered meanwhile")
    lock.let_go()
    claimer.join(60)
    status, _, answer = answers[0]
    tap.ok(status == 200 and len(answer["items"]) == 1 and is_right(answer["items"][0]),
           "the sink is given when its results can be read", (status, str(answer)[:300]))
    tap.equal(server.stop(), 0, "the server stops by itself")
    cluster.remove()


def main():
    tap = Tap()
    whole(tap)
    if STORE == "pg":
        locked(tap)
    tap.done()


if __name__ == "__main__":
    main()
