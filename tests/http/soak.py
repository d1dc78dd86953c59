#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mixed traffic with random disconnects, and what is left of it. Prints TAP and figures.

    tests/http/soak.py      WEFT_TEST_STORE: sqlite or pg; with WEFT_SOAK=1 for ten minutes, else
                            for a few seconds; WEFT_SOAK_S says how many seconds instead

After a warm-up everything is drained and the server measured; then the traffic goes on, is drained
again, and memory, descriptors, threads and tables must be where they were.
"""
import json
import os
import random
import threading
import time

from harness import (FAULTS, QUARANTINE_KB, STORE, Calls, Figures, Raw, Tap, doctor, metric_sum,
                     metrics, pause, scratch, serve, until)

LONG = os.environ.get("WEFT_SOAK", "0") not in ("", "0")
SECONDS = float(os.environ.get("WEFT_SOAK_S") or (600 if LONG else 6))
WARM_S = min(60.0, max(4.0, SECONDS / 4))
CLIENTS = 8
LANES = ["default", "mail", "images/large", "slow", "limited"]
WORKERS = [f"worker-{i}" for i in range(12)]
TENANTS = [None, "acme", "globex"]
# A quiet server gives free memory back every 5 s; connections to the store that are not used
# are closed after a minute, and once a minute all free memory goes that can.
QUIET_S = 75 if LONG else 6
SMALLER_KB = 64  # passes of scanners come and go: less than that says nothing
# Where it began is where a first round of the same traffic has left it: with statements prepared,
# names known, threads that have come to rest. What is in use does not grow from there (without
# malloc's caches 3184 kB after one round on PostgreSQL, 3188 after the next), but it is not the
# same twice: each of 12 threads keeps up to 0.2 MB of small blocks for itself, and what was free
# lies in pages that are partly in use. SQLite's connections hold up to 2 MB of pages each, and
# which are open is chance. A leak of 0.3 MB in a minute shows. In a short run there is no time for
# all to be given back: threads keep 1 MB each, and connections stay open.
GROWTH_KB = ((5 << 10 if STORE == "sqlite" else 3 << 10) if LONG else 10 << 10) + QUARANTINE_KB
# A connection to the store is one descriptor, or two with SQLite: the file and its log. A quiet
# server has two open, and up to two more for a minute when a poll and passes meet. In a short run
# the connections of the traffic are still open, and the warm-up did not need all.
GROWTH_FILES = 4 if LONG else 8


class Visitor(threading.Thread):
    """Does one thing after the other, chosen at random, and leaves now and then without a word."""

    def __init__(self, server, number, ending):
        super().__init__(daemon=True)
        self.server, self.ending, self.random = server, ending, random.Random(number)
        self.calls, self.held, self.ids = Calls(server), [], []
        self.done, self.left, self.failed = 0, 0, []

    def spec(self):
        pick = self.random
        made = {"kind": pick.choice(["resize", "send", "x"]), "lane": pick.choice(LANES),
                "payload": {"n": pick.random(), "text": "x" * pick.choice([0, 10, 3000])},
                "priority": pick.choice([-5, 0, 0, 9])}
        if pick.random() < 0.2:
            made["delay_ms"] = pick.choice([1, 50, 400])
        if pick.random() < 0.2:
            made.update(tenant=pick.choice(TENANTS), tags={"k": pick.choice("abc")})
        if pick.random() < 0.2:
            made["key"] = f"key-{pick.randrange(10**9)}"
        if pick.random() < 0.2:
            made["policy"] = {"max_attempts": 2, "lease_ms": 1000,
                              "backoff": {"kind": "fixed", "initial_ms": 1, "jitter": False}}
        return made

    def remember(self, answer):
        self.ids = (self.ids + [i["id"] for i in answer.get("items", [answer]) if "id" in i])[-50:]

    def submit(self):
        if self.random.random() < 0.5:
            self.remember(self.calls("POST", "/v1/executions", self.spec())[2])
        else:
            many = [self.spec() for _ in range(self.random.randrange(1, 30))]
            self.remember(self.calls("POST", "/v1/executions", {"items": many})[2])

    def claim_body(self):
        pick = self.random
        return {"worker": pick.choice(WORKERS), "lanes": pick.sample(LANES, 2),
                "max": pick.choice([1, 5, 20]), "lease_ms": pick.choice([1000, 30000]),
                "wait_ms": pick.choice([0, 20, 200])}

    def claim(self):
        answer = self.calls("POST", "/v1/claims", self.claim_body())[2]
        self.held += [{"id": i["id"], "epoch": i["epoch"]} for i in answer.get("items", [])]

    def settle(self):
        """Ends, renews or gives back what it holds."""
        items, self.held = self.held[:20], self.held[20:]
        if not items:
            self.claim()
            return
        what = self.random.choice(["complete", "complete", "complete", "fail", "delay", "release",
                                   "renew", "forget"])
        more = {"complete": {"result": {"ok": True}}, "delay": {"delay_ms": 5},
                "fail": {"class": "io", "message": "no", "retryable": True},
                "release": {"delay_ms": 0}, "renew": {"progress": {"percent": 50}}}
        if what == "forget":
            return
        self.calls("POST", "/v1/leases/" + what, {"items": [{**i, **more[what]} for i in items]})
        if what == "renew":
            self.held += items

    def some_id(self):
        return self.random.choice(self.ids) if self.ids else "00000000-0000-0000-0000-000000000000"

    def steer(self):
        what = self.random.choice(["cancel", "replay", "priority", "deadline", "revoke"])
        body = {"priority": {"priority": 7}, "deadline": {"deadline_at": "2099-01-01T00:00:00Z"},
                "cancel": {"reason": "soak"}}.get(what)
        self.calls("POST", f"/v1/executions/{self.some_id()}/{what}", body)

    def read(self):
        path = self.random.choice([
            f"/v1/executions/{self.some_id()}", f"/v1/executions/{self.some_id()}/attempts",
            f"/v1/executions/{self.some_id()}/result", f"/v1/executions/{self.some_id()}/payload",
            f"/v1/executions/{self.some_id()}?wait_ms=30", "/v1/executions?limit=20&state=ready",
            "/v1/executions?tag=k:a&limit=5", "/v1/counts", "/v1/lanes", "/v1/workers", "/metrics",
            "/v1/lanes/mail", "/openapi.json", "/readyz", "/nowhere", "/v1/executions?limit=0"])
        self.calls("GET", path)

    def rule(self):
        self.calls("PUT", "/v1/lanes/limited", {"max_running": self.random.choice([0, 2, 5]),
                                                "paused": self.random.random() < 0.2})

    def farewell(self):
        self.calls("POST", f"/v1/workers/{self.random.choice(WORKERS)}/goodbye")

    def vanish(self):
        """Asks for something and is gone: before the end of the request, or before the answer."""
        body = json.dumps(self.random.choice([self.claim_body(), self.spec()])).encode()
        path = self.random.choice([b"/v1/claims", b"/v1/executions"])
        whole = (b"POST %s HTTP/1.1\r\nHost: [::1]\r\nContent-Length: %d\r\n\r\n" % (path, len(body))
                 + body)
        with Raw(self.server) as raw:
            raw.send(whole[:self.random.choice([len(whole), self.random.randrange(len(whole))])])
            if self.random.random() < 0.5:
                pause(self.random.random() * 0.03)
        self.left += 1

    def run(self):
        things = [self.submit] * 6 + [self.claim] * 5 + [self.settle] * 9 + [self.read] * 6 + \
                 [self.steer] * 2 + [self.vanish] * 2 + [self.rule, self.farewell]
        while not self.ending.is_set():
            try:
                self.random.choice(things)()
                self.done += 1
                if self.random.random() < 0.02:
                    self.calls.close()
            except FAULTS as error:
                self.failed.append(repr(error))
                self.calls.close()
        self.calls.close()


def traffic(server, seconds, seed):
    ending = threading.Event()
    visitors = [Visitor(server, seed + i, ending) for i in range(CLIENTS)]
    for visitor in visitors:
        visitor.start()
    until(lambda: server.process.poll() is not None, seconds)
    ending.set()
    for visitor in visitors:
        visitor.join(60)
    return visitors


def living(calls):
    """How many executions can still change."""
    words = ("ready", "delayed", "blocked", "running", "suspended", "held")
    return sum(lane[word] for lane in calls.good("GET", "/v1/counts")["items"] for word in words)


def drain(server):
    """Cancels everything that lives; what is left after that."""
    calls = Calls(server, timeout=120)
    calls.good("PUT", "/v1/lanes/limited", {"paused": False, "max_running": 0})

    def is_empty():
        for lane in LANES:
            until(lambda lane=lane: not calls.good(
                "POST", "/v1/executions/cancel",
                {"filter": {"lane": lane}, "reason": "drained"})["more"], 60)
        return living(calls) == 0
    until(is_empty, 60)
    left = living(calls)
    calls.close()
    until(lambda: metric_sum(metrics(server), "weft_http_connections") <= 1, 10)
    return left


def settled(server):
    """What the server takes when it does not become smaller any more."""
    least, since = Figures(server.process.pid), time.monotonic()

    def is_quiet():
        nonlocal least, since
        now = Figures(server.process.pid)
        if now.anon_kb < least.anon_kb - SMALLER_KB or now.files < least.files:
            least, since = now, time.monotonic()
        return time.monotonic() - since > QUIET_S
    until(is_quiet, 2 * QUIET_S if LONG else 10 * QUIET_S)
    return least


def look(tap, server, name):
    left = drain(server)
    figures, numbers = settled(server), metrics(server)
    tap.note(f"{name}: {figures}; {metric_sum(numbers, 'weft_http_requests_total'):.0f} requests, "
             f"{metric_sum(numbers, 'weft_claims_undelivered_total'):.0f} leases given back")
    tap.equal(left, 0, f"{name}: nothing lives after the drain")
    tap.equal((metric_sum(numbers, "weft_waiters"), metric_sum(numbers, "weft_queue_requests")),
              (0, 0), f"{name}: no request waits")
    return figures


def main():
    tap, store = Tap(), scratch(STORE, "soak")
    server = serve(store, "--receive-timeout", "2s", tap=tap)
    traffic(server, WARM_S, 1)
    before = look(tap, server, f"after {WARM_S:.0f} s of warm-up")
    began = time.monotonic()
    visitors = traffic(server, SECONDS, 1000)
    tap.note(f"{sum(v.done for v in visitors)} things done, {sum(v.left for v in visitors)} "
             f"disconnects in {time.monotonic() - began:.0f} s")
    failed = [what for visitor in visitors for what in visitor.failed]
    tap.ok(not failed and not any(v.is_alive() for v in visitors), "every call was answered",
           failed[:5])
    after = look(tap, server, f"after {SECONDS:.0f} s of traffic")
    tap.ok(after.files <= before.files + GROWTH_FILES, "descriptors are where they were", after)
    tap.equal(after.threads, before.threads, "threads are where they were")
    allowed = before.anon_kb + GROWTH_KB
    tap.ok(after.anon_kb <= allowed, "memory is where it was", f"{after}, allowed {allowed} kB")
    began = time.monotonic()
    whole, said = doctor(store, max(60, 5 * SECONDS))
    tap.note(f"the doctor took {time.monotonic() - began:.1f} s")
    tap.ok(whole, "the doctor finds every row whole", said)
    if not tap.equal(server.stop(), 0, "the server stops by itself"):
        tap.note("".join(server.lines[-50:]))
    store.remove()
    tap.done()


if __name__ == "__main__":
    main()
