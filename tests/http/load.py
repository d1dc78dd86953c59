# SPDX-License-Identifier: Apache-2.0
"""Clients that submit, claim and complete, and keep a record of every answer.

A call that was acknowledged must hold from then on, whatever happens to the server.
"""
import threading
import time

from harness import FAULTS, Calls, pause

FINE = (200, 201)


class Ledger:
    """What was acknowledged, and how it went."""

    def __init__(self):
        self.lock = threading.Lock()
        self.submitted, self.completed = set(), set()
        self.granted, self.twice = set(), []  # leases, as (id, epoch)
        self.statuses, self.bare, self.slowest, self.moments = {}, 0, 0.0, []

    def note(self, status, headers, took):
        """status 0: the connection broke."""
        with self.lock:
            self.statuses[status] = self.statuses.get(status, 0) + 1
            self.slowest = max(self.slowest, took)
            if status in (429, 503) and not (headers and headers.get("Retry-After")):
                self.bare += 1

    def add(self, where, ids):
        with self.lock:
            where.update(ids)
            self.moments += [time.monotonic()] * len(ids)

    def grant(self, items):
        with self.lock:
            for lease in ((item["id"], item["epoch"]) for item in items):
                if lease in self.granted:
                    self.twice.append(lease)
                self.granted.add(lease)

    def rate(self, since, until):
        """Acknowledgements per second between two moments."""
        with self.lock:
            count = sum(1 for moment in self.moments if since <= moment < until)
        return count / (until - since)

    def __str__(self):
        statuses = ", ".join(f"{s or 'broken'}: {n}" for s, n in sorted(self.statuses.items()))
        return (f"{len(self.submitted)} submitted, {len(self.completed)} completed; answers "
                f"{statuses}; the slowest took {self.slowest:.2f} s")


class Client(threading.Thread):
    """Alternates: some submits, then a claim and its completion."""

    def __init__(self, server, ledger, name, bound_s=30):
        super().__init__(daemon=True)
        self.calls, self.ledger, self.name = Calls(server, timeout=bound_s), ledger, name
        self.stopping = threading.Event()

    def ask(self, path, body):
        began, status, headers, answer = time.monotonic(), 0, None, None
        try:
            status, headers, answer = self.calls("POST", path, body)
        except FAULTS:
            pause(0.05)
        self.ledger.note(status, headers, time.monotonic() - began)
        if status in (429, 503):
            pause(0.05)
        return answer if status in FINE else None

    def submit(self, count):
        spec = {"kind": "load", "payload": {"by": self.name}}
        answer = self.ask("/v1/executions", spec if count == 1 else {"items": [spec] * count})
        if answer:
            items = [answer] if count == 1 else answer["items"]
            self.ledger.add(self.ledger.submitted, [i["id"] for i in items if "id" in i])

    def work(self):
        claimed = self.ask("/v1/claims", {"worker": self.name, "max": 10, "wait_ms": 100})
        if not claimed or not claimed["items"]:
            return
        self.ledger.grant(claimed["items"])
        answer = self.ask("/v1/leases/complete", {"items": [
            {"id": item["id"], "epoch": item["epoch"], "result": {"by": self.name}}
            for item in claimed["items"]]})
        if answer:
            self.ledger.add(self.ledger.completed,
                            [i["id"] for i in answer["items"] if i.get("state") == "succeeded"])

    def run(self):
        turn = 0
        while not self.stopping.is_set():
            turn += 1
            self.submit(1 if turn % 3 else 10)
            if turn % 2:
                self.work()
        self.calls.close()


class Load:
    """A number of clients at work."""

    def __init__(self, servers, count, bound_s=30):
        self.ledger = Ledger()
        self.clients = [Client(servers[i % len(servers)], self.ledger, f"client-{i}", bound_s)
                        for i in range(count)]
        for client in self.clients:
            client.start()

    def stop(self, seconds=40):
        """True when all of them came to an end."""
        for client in self.clients:
            client.stopping.set()
        for client in self.clients:
            client.join(seconds)
        return not any(client.is_alive() for client in self.clients)


def states(calls):
    """The state of every execution there is, by id."""
    found, after = {}, ""
    while after is not None:
        page = calls.good("GET", "/v1/executions?limit=1000" + (f"&after={after}" if after else ""))
        found.update((item["id"], item["state"]) for item in page["items"])
        after = page["next"]
    return found


def check_kept(tap, server, ledger):
    """Everything acknowledged is there."""
    calls = Calls(server, timeout=60)
    now = states(calls)
    calls.close()
    lost = [i for i in ledger.submitted if i not in now]
    undone = [i for i in ledger.completed if now.get(i) != "succeeded"]
    tap.note(str(ledger))
    tap.ok(ledger.submitted and not lost,
           f"{len(ledger.submitted)} acknowledged submissions are there", lost[:5])
    tap.ok(ledger.completed and not undone,
           f"{len(ledger.completed)} acknowledged completions hold", undone[:5])
    tap.ok(not ledger.twice, "no lease was given twice", ledger.twice[:5])
