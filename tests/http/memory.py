#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rounds of large payloads on many connections, and the memory they leave. Prints TAP.

    tests/http/memory.py    WEFT_TEST_STORE: sqlite or pg

Memory of a burst must go back to the system within seconds: buffers of connections to the store,
and pages that malloc holds free. After several rounds the server is as large as after the first.
"""
import threading

from harness import (FAULTS, QUARANTINE_KB, SANITIZED, STORE, Calls, Figures, Tap, metric_sum,
                     metrics, scratch, serve, until)

PAYLOAD = 512 << 10
CLIENTS, EACH = 24, 3
ROUNDS = 3
SETTLE_S = 30  # it takes up to about 11: large connections are kept for 5 s, chores come every 5 s
# The first round brings threads, connections, statements and caches of pages to stay.
FIRST_KB = (10 << 10) + QUARANTINE_KB
# SQLite's readers keep pages: which of them served the first round is chance.
GROWTH_KB = ((12 << 10) if STORE == "sqlite" else (4 << 10)) + QUARANTINE_KB
PEAK_KB = 12 << 10  # a burst takes at least so much, or there was nothing to give back


class Worker(threading.Thread):
    """Submits large executions, then claims and completes as many with large results."""

    def __init__(self, server, number):
        super().__init__(daemon=True)
        self.calls, self.number, self.failed = Calls(server, timeout=60), number, None

    def work(self):
        for _ in range(EACH):
            self.calls.good("POST", "/v1/executions", {"kind": "large", "payload": "x" * PAYLOAD})
        claim = {"worker": f"worker-{self.number}", "max": 4, "wait_ms": 500}
        while items := self.calls.good("POST", "/v1/claims", claim)["items"]:
            if any(len(item["payload"]) != PAYLOAD for item in items):
                raise AssertionError("a payload has another size")
            self.calls.good("POST", "/v1/leases/complete", {"items": [
                {"id": item["id"], "epoch": item["epoch"], "result": "y" * PAYLOAD}
                for item in items]})

    def run(self):
        try:
            self.work()
        except (*FAULTS, AssertionError) as error:
            self.failed = repr(error)[:300]
        self.calls.close()


def burst(tap, server, name):
    """One round; the largest that the server was seen."""
    workers = [Worker(server, number) for number in range(CLIENTS)]
    for worker in workers:
        worker.start()
    largest = 0

    def over():
        nonlocal largest
        largest = max(largest, Figures(server.process.pid).rss_kb)
        return not any(worker.is_alive() for worker in workers)
    ended = until(over, 120)
    until(lambda: metric_sum(metrics(server), "weft_http_connections") <= 1, 10)
    failed = [worker.failed for worker in workers if worker.failed]
    tap.ok(ended and not failed, f"{name}: all is submitted, claimed and completed", failed[:3])
    return largest


def settles(tap, server, most_kb, name):
    """Whether it becomes so small in time; how large it is then."""
    small = until(lambda: Figures(server.process.pid).rss_kb <= most_kb, SETTLE_S)
    figures = Figures(server.process.pid)
    tap.ok(small, name, f"{figures}, wanted {most_kb} kB at most")
    tap.note(f"{name}: {figures}")
    return figures.rss_kb


def main():
    tap, store = Tap(), scratch(STORE, "memory")
    server = serve(store, tap=tap)
    begun = Figures(server.process.pid).rss_kb
    peak = burst(tap, server, "round 1")
    first = settles(tap, server, begun + FIRST_KB, "after the first round it is small again")
    peaks = [burst(tap, server, f"round {number}") for number in range(2, ROUNDS + 2)]
    tap.note(f"{begun} kB at first, at most {max(peak, *peaks)} kB in a round")
    tap.ok(SANITIZED or min(peak, *peaks) > begun + PEAK_KB, "a round takes much", (peak, peaks))
    settles(tap, server, first + GROWTH_KB, "after all rounds it is where the first left it")
    calls = Calls(server)
    tap.equal(calls("GET", "/readyz")[0], 200, "the server is ready after all rounds")
    calls.close()
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()
    tap.done()


if __name__ == "__main__":
    main()
