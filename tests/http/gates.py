#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gates under load: tests/http/gates.py [keys] [handover] [gate] [lane]
WEFT_TEST_STORE: sqlite or pg; WEFT_SOAK=1: the long form

Executions of many keys, one of each at a time, over three servers (SQLite: one). Workers note when
they got each execution and when they gave it back; on PostgreSQL servers are killed at random in the
midst and others take their places. Then: all executions are done, no two of a key overlapped, no key
stood still. A second part measures the time from the end of one to the start of the next, a third one
that a window of a gate or of a lane never has a start too many. Prints TAP and figures.
"""
import http.client
import os
import random
import statistics
import sys
import threading
import time

from harness import SANITIZED, STORE, Calls, Tap, doctor, scratch, serve, until

SOAK = os.environ.get("WEFT_SOAK") == "1"
KEYS, EACH = (10000, 20) if SOAK else (100, 4) if SANITIZED else (300, 10)
WORKERS, BATCH = 4, 50
SERVERS = 3 if STORE == "pg" else 1
KILLS = 10 if SOAK else 2
STALL_S = 30
HANDOVERS = 200 if SOAK else 30
WINDOW, SPAN_S, WINDOW_S = 100, 1.0, 60 if SOAK else 4


class Worker(threading.Thread):
    """Claims and completes until all is done; notes (gate, got, gave back) of each."""

    def __init__(self, servers, total, done, lane):
        super().__init__(daemon=True)
        self.servers, self.total, self.done, self.lane = servers, total, done, lane
        self.spans, self.name = [], f"w{id(self)}"
        self.unsure = None  # what it completed without an answer
        self.start()

    def run(self):
        turn = 0
        while len(self.done) < self.total:
            turn += 1
            calls = Calls(self.servers[turn % len(self.servers)], timeout=10)
            try:
                while len(self.done) < self.total and self.finish(calls) and self.work(calls):
                    pass
            except (OSError, http.client.HTTPException, RuntimeError):
                pass  # its server was killed: the leases run out, or the next server has them
            finally:
                calls.close()

    def work(self, calls):
        status, _, answer = calls("POST", "/v1/claims", {
            "worker": self.name, "lanes": [self.lane], "max": BATCH, "wait_ms": 200,
            "lease_ms": 2000})
        got = time.monotonic()
        if status != 200:
            return False
        items = answer["items"]
        if not items:
            return False  # look at the other server
        self.unsure = items, got, time.monotonic()
        return True

    def finish(self, calls):
        """Completes what it has; once more, elsewhere, where a server died before it answered."""
        if not self.unsure:
            return True
        items, got, gave = self.unsure
        status, _, answer = calls("POST", "/v1/leases/complete", {
            "items": [{"id": item["id"], "epoch": item["epoch"]} for item in items]})
        if status != 200:
            return False
        for item, said in zip(items, answer["items"]):
            if said.get("state") == "succeeded":
                self.spans.append((item["tags"]["key"], got, gave))
                self.done.add(item["id"])
        self.unsure = None
        return True


def submit(calls, lane, gate, count):
    """`count` executions of KEYS keys, each with its gate, or without."""
    specs = [{"kind": "g", "lane": lane, **({"gate": f"{gate}:{number % KEYS}"} if gate else {}),
              "tags": {"key": str(number % KEYS)}} for number in range(count)]
    for first in range(0, count, 1000):
        calls.good("POST", "/v1/executions", {"items": specs[first:first + 1000]})


def run_all(servers, lane, total, kill=None):
    """Lets the workers do all; the spans, the seconds, and whether none of them stood still."""
    done = set()
    began = time.monotonic()
    workers = [Worker(servers, total, done, lane) for _ in range(WORKERS)]
    seen, moved, kills = 0, time.monotonic(), 0
    while len(done) < total and time.monotonic() - moved < STALL_S:
        if len(done) > seen:
            seen, moved = len(done), time.monotonic()
        if kill and seen > total * (kills + 1) // (KILLS + 1) and kills < KILLS:
            kill()
            kills += 1
        threading.Event().wait(0.02)
    took = time.monotonic() - began
    for worker in workers:
        worker.total = 0
        worker.join(30)
    return [span for worker in workers for span in worker.spans], took, len(done)


def overlaps(spans):
    """Pairs of one key that ran at the same time."""
    found = 0
    spans.sort()
    for before, after in zip(spans, spans[1:]):
        found += before[0] == after[0] and after[1] < before[2]
    return found


def one_at_a_time(tap, store, servers):
    calls = Calls(servers[0])
    total = KEYS * EACH
    calls.good("PUT", "/v1/gates/key", {"max_running": 1})
    def kill():
        which = random.randrange(1, len(servers))  # the first one has the calls of this test
        servers[which].kill()
        servers[which] = serve(store)

    submit(calls, "free", None, total)
    _, free_s, _ = run_all(servers, "free", total, kill if len(servers) > 1 else None)
    submit(calls, "gated", "key", total)
    spans, took, done = run_all(servers, "gated", total, kill if len(servers) > 1 else None)
    tap.note(f"{total} executions of {KEYS} keys: {total / took:.0f} a second, "
             f"{total / free_s:.0f} without limits: {free_s / took:.2f}")
    if SOAK and len(servers) > 1:
        tap.ok(free_s / took >= 0.5, "at half the speed of work without gates, or faster")
    tap.equal(done, total, "every execution of every key is done")
    tap.equal(overlaps(spans), 0, "no two executions of a key ran at the same time")


def handover(tap, servers):
    calls, watch = Calls(servers[0]), Calls(servers[0])
    calls.good("PUT", "/v1/gates/slot", {"max_running": 1})
    calls.good("POST", "/v1/executions", {"items": [
        {"kind": "g", "lane": "slot", "gate": "slot:1"}] * (HANDOVERS + 1)})
    claim = {"worker": "w", "lanes": ["slot"], "wait_ms": 10000}
    item, times = calls.good("POST", "/v1/claims", claim)["items"][0], []
    for _ in range(HANDOVERS):
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(
            (watch.good("POST", "/v1/claims", claim)["items"][0], time.monotonic())))
        waiting.start()
        threading.Event().wait(0.02)  # the claim waits by then
        calls.good("POST", "/v1/leases/complete", {"id": item["id"], "epoch": item["epoch"]})
        ended = time.monotonic()
        waiting.join(20)
        item, got = answers[0]
        times.append((got - ended) * 1000)
    middle = statistics.median(times)
    bound = 3 if SOAK else 500
    tap.ok(middle < bound, f"the slot is handed over within {bound} ms", f"{middle:.2f} ms")
    tap.note(f"handover: p50 {middle:.2f} ms, worst {max(times):.1f} ms")


def take_starts(server, lane, end, ids):
    calls = Calls(server)
    claim = {"worker": f"w{id(calls)}", "lanes": [lane], "max": 100, "wait_ms": 100,
             "lease_ms": 120000}
    while time.monotonic() < end:
        ids += [item["id"] for item in calls.good("POST", "/v1/claims", claim)["items"]]


def window(tap, servers, path, spec):
    """Each server has a worker; the store says when each execution was started."""
    calls, lane = Calls(servers[0]), spec["lane"]
    calls.good("PUT", path, {"window": {"limit": WINDOW, "per_ms": int(SPAN_S * 1000)}})
    for _ in range(int(WINDOW * WINDOW_S / 1000) + 1):
        calls.good("POST", "/v1/executions", {"items": [{"kind": "g", **spec}] * 1000})
    ids, end = [], time.monotonic() + WINDOW_S
    workers = [threading.Thread(target=take_starts, args=(server, lane, end, ids))
               for server in servers]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    times = [calls.good("GET", f"/v1/executions/{execution}")["started_at"] for execution in ids]
    seconds = sorted(float(t[11:13]) * 3600 + float(t[14:16]) * 60 + float(t[17:-1]) for t in times)
    most, first = 0, 0
    for number, at in enumerate(seconds):
        while at - seconds[first] >= SPAN_S:
            first += 1
        most = max(most, number - first + 1)
    tap.ok(most <= WINDOW, f"{path}: no span of {SPAN_S} s has more than {WINDOW} starts", f"{most}")
    least = WINDOW * WINDOW_S * 0.975 if SOAK else WINDOW * (WINDOW_S - 1) * 0.5
    tap.ok(len(ids) >= least, f"{path}: the window is used", f"{len(ids)} of at least {least:.0f}")
    tap.note(f"{path}: {len(ids)} starts in {WINDOW_S} s, at most {most} in {SPAN_S} s")


def main():
    tap = Tap()
    store = scratch(STORE, "gates")
    servers = [serve(store) for _ in range(SERVERS)]
    parts = {
        "keys": lambda: one_at_a_time(tap, store, servers),
        "handover": lambda: handover(tap, servers),
        "gate": lambda: window(tap, servers, "/v1/gates/api", {"lane": "window", "gate": "api:x"}),
        "lane": lambda: window(tap, servers, "/v1/lanes/api", {"lane": "api"}),
    }
    try:
        for part in sys.argv[1:] or parts:
            parts[part]()
        good, said = until(lambda: doctor(store), 30)
        tap.ok(good, "every row is whole", said)
    finally:
        for server in servers:
            server.kill()
        store.remove()
    tap.done()


if __name__ == "__main__":
    main()
