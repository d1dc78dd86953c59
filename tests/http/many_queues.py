#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A namespace with very many queues does no harm to another one. Prints TAP and figures.

20,000 tenants (WEFT_SOAK=1: 200,000) have work in one namespace. While they are submitted, and when
all of them are ready, the claims of another namespace take about as long as on a quiet server. A
server that starts then answers its first claim at once. A tenant with very many kinds beside one
with a single kind gets every second claim, no more.
"""
import concurrent.futures
import os
import statistics
import threading
import time

from harness import SANITIZED, Calls, Tap, metric_sum, metrics, scratch, serve, until

SOAK = os.environ.get("WEFT_SOAK", "0") not in ("", "0")
TENANTS = 200000 if SOAK else 2000 if SANITIZED else 20000
WORKERS = 50
KINDS = 20000 if SOAK else 500 if SANITIZED else 2000
BATCH = 1000
CYCLES = 1000 if SOAK else 300
TIMES, LIMIT_S = 10, 0.25  # of quiet, and of a claim on a machine that does other things as well
FIRST_S = 0.25 if SOAK else 1.0  # the first claim of a new server, beside what a connection takes
FLOORS_S = (0.005, 0.05)  # median and p99: below this a machine under load says nothing


class Cycles:
    """Submits one, claims it, completes it, and keeps how long the claims took."""

    def __init__(self, server, namespace):
        self.calls, self.took = Calls(server, namespace=namespace), []

    def one(self):
        self.calls.good("POST", "/v1/executions", {"kind": "job"})
        began = time.monotonic()
        got = self.calls.good("POST", "/v1/claims", {"worker": "w", "wait_ms": 10000})["items"]
        self.took.append(time.monotonic() - began)
        if len(got) != 1:
            raise AssertionError(f"one execution was submitted, {len(got)} were claimed")
        self.calls.good("POST", "/v1/leases/complete",
                        {"items": [{"id": got[0]["id"], "epoch": got[0]["epoch"]}]})

    def figures(self):
        took, self.took = sorted(self.took), []
        return statistics.median(took), took[int(len(took) * 0.99)]


def fill(server, namespace, specs):
    calls = Calls(server, timeout=120, namespace=namespace)
    for at in range(0, len(specs), BATCH):
        calls.good("POST", "/v1/executions", {"items": specs[at:at + BATCH]})
    calls.close()


def compare(tap, what, quiet, found):
    for name, before, now, floor in zip(("median", "p99"), quiet, found, FLOORS_S):
        tap.ok(now < max(TIMES * before, floor) and now < LIMIT_S,
               f"{what}: {name} of another namespace is below {TIMES} times that of a quiet server",
               f"{now * 1000:.2f} ms, quiet {before * 1000:.2f} ms")
        tap.note(f"{what}: {name} {now * 1000:.2f} ms, quiet {before * 1000:.2f} ms")


def other_namespace(tap, server):
    cycles = Cycles(server, "other")
    for _ in range(CYCLES):
        cycles.one()
    quiet = cycles.figures()
    specs = [{"kind": "job", "tenant": f"tenant-{i}"} for i in range(TENANTS)]
    filler = threading.Thread(target=fill, args=(server, "many", specs))
    began = time.monotonic()
    filler.start()
    while filler.is_alive() or len(cycles.took) < CYCLES:
        cycles.one()
    filler.join()
    tap.note(f"{TENANTS} tenants took {time.monotonic() - began:.1f} s")
    compare(tap, "while they come", quiet, cycles.figures())
    for _ in range(CYCLES):
        cycles.one()
    compare(tap, "when all are ready", quiet, cycles.figures())
    many = Calls(server, namespace="many")
    got = many.good("POST", "/v1/claims", {"worker": "w", "max": 50})["items"]
    tap.equal(len({item["tenant"] for item in got}), 50, "a claim of 50 serves 50 tenants")
    got = [many.good("POST", "/v1/claims", {"worker": "w"})["items"][0] for _ in range(100)]
    tap.equal(len({item["tenant"] for item in got}), 100, "100 claims serve 100 tenants")


def first_claim(tap, store):
    with_work = serve(store, tap=tap)
    try:
        for namespace, wanted in (("other", 0), ("many", 1)):
            calls = Calls(with_work, namespace=namespace)
            calls.good("GET", "/healthz")
            began = time.monotonic()
            got = calls.good("POST", "/v1/claims", {"worker": "first"})["items"]
            took = time.monotonic() - began
            tap.ok(len(got) == wanted and took < FIRST_S,
                   f"a new server answers its first claim of '{namespace}' at once",
                   f"{len(got)} items in {took * 1000:.1f} ms")
            tap.note(f"first claim of '{namespace}': {took * 1000:.1f} ms")
    finally:
        with_work.stop()


def across_servers(tap, store, server):
    """A claim that waits at another server is woken by the notice, or by its poll."""
    other = serve(store, tap=tap)
    try:
        got = []
        waiting = threading.Thread(target=lambda: got.extend(Calls(other, namespace="third").good(
            "POST", "/v1/claims", {"worker": "w", "wait_ms": 30000})["items"]))
        waiting.start()
        until(lambda: metric_sum(metrics(other), "weft_waiters", "claim") > 0, 10)
        began = time.monotonic()
        Calls(server, namespace="third").good("POST", "/v1/executions", {"kind": "job"})
        waiting.join()
        tap.ok(len(got) == 1 and time.monotonic() - began < 10,
               "work of a namespace is found by a waiting claim at another server",
               f"{time.monotonic() - began:.2f} s")
    finally:
        other.stop()


def many_kinds(tap, server):
    """Small and large tenants get the same number of turns, however many kinds there are."""
    fill(server, "kinds", [{"kind": f"kind-{i}", "tenant": "large"} for i in range(KINDS)])
    fill(server, "kinds", [{"kind": "one", "tenant": "small"} for i in range(100)])
    for name, claim, turns in (("any kind", {}, 40),
                               ("its kinds by name", {"kinds": ["one", "kind-7", "kind-8"]}, 4)):
        calls = Calls(server, namespace="kinds")
        got = [calls.good("POST", "/v1/claims", {"worker": "w", **claim})["items"][0]["tenant"]
               for _ in range(turns)]
        small = got.count("small")
        tap.ok(abs(small - turns / 2) <= 1,
               f"a tenant with one kind beside {KINDS}: every second claim of {name} is its own",
               f"{small} of {turns}")


def limit(tap, server):
    """The namespace has as many queues as it may: work for them goes on, a new one is refused."""
    calls = Calls(server, namespace="many")
    _, _, answer = calls("POST", "/v1/executions", {"items": [
        {"kind": "job", "tenant": "tenant-1"}, {"kind": "job", "tenant": "one-too-many"}]})
    items = answer["items"]
    tap.ok("id" in items[0] and items[1]["error"]["code"] == "limit_exceeded"
           and str(TENANTS) in items[1]["error"]["message"],
           "a queue too many is refused, and its neighbour is not", answer)


def worker_names(tap, server):
    """A namespace has as many worker names as it may: a new one is refused, and it alone."""
    calls = Calls(server, namespace="names")
    for i in range(WORKERS):
        calls.good("POST", "/v1/claims", {"worker": f"worker-{i}"})

    def claim(at):
        name = ("worker-1", f"new-{at}")[at % 2]
        return Calls(server, namespace="names")("POST", "/v1/claims", {"worker": name})

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(claim, range(64)))
    known, new = answers[0::2], answers[1::2]
    tap.ok(all(answer[0] == 409 and answer[2]["error"]["code"] == "limit_exceeded" and
               str(WORKERS) in answer[2]["error"]["message"] for answer in new),
           f"claims under a worker name more than {WORKERS} are refused", new[0])
    tap.ok(all(answer[0] == 200 for answer in known),
           "claims under a known name beside them are not", known)
    status, _, answer = calls("POST", "/v1/leases/watch", {"worker": "new", "wait_ms": 1})
    tap.ok(status == 409, "a watch under a new name is refused as well", answer)
    status, _, answer = Calls(server, namespace="others")("POST", "/v1/claims", {"worker": "new"})
    tap.ok(status == 200, "another namespace has its own number of names", answer)


def main():
    tap = Tap()
    store = scratch(os.environ.get("WEFT_TEST_STORE") or "sqlite", "many_queues")
    server = serve(store, "--namespace-queues", str(TENANTS),
                   "--namespace-workers", str(WORKERS), tap=tap)
    try:
        other_namespace(tap, server)
        limit(tap, server)
        worker_names(tap, server)
        first_claim(tap, store)
        across_servers(tap, store, server)
        many_kinds(tap, server)
    finally:
        server.stop()
        store.remove()
    tap.done()


if __name__ == "__main__":
    main()
