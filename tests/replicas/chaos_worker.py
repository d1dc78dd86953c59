#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker that may be killed at any time: tests/replicas/chaos_worker.py FOLDER NAME SEED

It claims many at once under short leases, holds them for a while with renewals (now and then
without, past the end of the lease), and then completes them; a few it fails, releases or delays.
The result of an execution says by whom and under which epoch it was written: that is the effect.

FOLDER/replicas names the servers; it is read again whenever one does not answer. A call that may be
repeated is repeated at another server until it is answered. Before it goes on, the worker appends
to files of its own what the server answered:

    NAME.claims     id epoch            a lease it was given
    NAME.acks       id epoch            a complete that was acknowledged
    NAME.fenced     id epoch reason     a complete that was refused

When FOLDER/stop exists it leaves as soon as there is nothing to do.
"""
import json
import os
import random
import sys
import time

from fleet import BOUND_S, Address
from harness import FAULTS, Calls, pause

LANES = ["default", "mail"]


class Worker:
    def __init__(self, folder, name, seed):
        self.folder, self.name, self.random = folder, name, random.Random(seed)
        self.calls, self.files = None, {}

    def note(self, what, lines):
        """At once and in one piece, as far as the system lets it; a torn last line is no line."""
        if what not in self.files:
            path = os.path.join(self.folder, f"{self.name}.{what}")
            self.files[what] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(self.files[what], "".join(line + "\n" for line in lines).encode())

    def choose(self):
        """Chooses a server; a server that is gone shows when a call fails."""
        if self.calls:
            self.calls.close()
        with open(os.path.join(self.folder, "replicas"), encoding="utf-8") as file:
            urls = json.load(file)
        self.calls = Calls(Address(self.random.choice(urls)), timeout=10) if urls else None

    def once(self, path, body):
        """The items of the answer; None when there is none, and then another server is next."""
        try:
            if not self.calls or self.random.random() < 0.1:
                self.choose()
            status, _, answer = self.calls("POST", path, body) if self.calls else (0, None, None)
        except FAULTS:
            status = 0
        if status == 200:
            return answer.get("items", [])
        pause(0.03)
        self.choose()
        return None

    def always(self, path, items):
        """Repeated until it is answered, item by item; the answers by (id, epoch)."""
        end, left, found = time.monotonic() + BOUND_S, items, {}
        while left:
            if time.monotonic() > end:
                raise AssertionError(f"{self.name}: {path} was not answered for {BOUND_S} s")
            answers = self.once(path, {"items": left}) or []
            again = []
            for item, answer in zip(left, answers):
                if answer.get("error", {}).get("code") in ("busy", "unavailable"):
                    again.append(item)
                else:
                    found[item["id"], item["epoch"]] = answer
            left = again if answers else left
        return found

    def claim(self):
        lease_ms = self.random.choice([1000, 1500, 2000])
        items = self.once("/v1/claims", {"worker": self.name, "lanes": LANES, "wait_ms": 300,
                                         "lease_ms": lease_ms,
                                         "max": self.random.choice([20, 100, 200, 400])})
        if items:
            self.note("claims", [f"{item['id']} {item['epoch']}" for item in items])
        return items or [], lease_ms / 1000

    def hold(self, items, lease_s):
        """Works on them for a while, with renewals or, now and then, without."""
        mood = self.random.random()
        left_s = self.random.random() * 0.35
        if mood < 0.1:
            left_s = lease_s * (0.8 + self.random.random())
        while left_s > 0:
            pause(min(left_s, lease_s / 3))
            left_s -= lease_s / 3
            if left_s > 0 and mood > 0.04:
                self.always("/v1/leases/renew", [
                    {"id": item["id"], "epoch": item["epoch"], "lease_ms": int(lease_s * 1000)}
                    for item in items])

    def settle(self, items):
        """Ends the leases: most by a complete, in up to three calls."""
        done, others = [], {"fail": [], "release": [], "delay": []}
        more = {"fail": {"class": "chaos", "message": "no", "retryable": True},
                "release": {"delay_ms": 0}, "delay": {"delay_ms": 20}}
        for item in items:
            lease = {"id": item["id"], "epoch": item["epoch"]}
            if self.random.random() < 0.03:
                what = self.random.choice(list(others))
                others[what].append({**lease, **more[what]})
            else:
                done.append({**lease, "result": {"n": item["payload"]["n"], "worker": self.name,
                                                 "epoch": item["epoch"]}})
        size = max(1, len(done) // self.random.choice([1, 1, 2, 3]))
        for at in range(0, len(done), size):
            self.complete(done[at:at + size])
        for what, some in others.items():
            self.always(f"/v1/leases/{what}", some)

    def complete(self, items):
        answers = self.always("/v1/leases/complete", items)
        self.note("acks", [f"{an_id} {epoch}" for (an_id, epoch), answer in answers.items()
                           if answer.get("state") == "succeeded"])
        self.note("fenced", [f"{an_id} {epoch} {answer['error'].get('reason')}"
                             for (an_id, epoch), answer in answers.items() if "error" in answer])

    def run(self):
        stop = os.path.join(self.folder, "stop")
        while True:
            leaving = os.path.exists(stop)
            items, lease_s = self.claim()
            if items:
                self.hold(items, lease_s)
                self.settle(items)
            elif leaving:
                return


if __name__ == "__main__":
    Worker(sys.argv[1], sys.argv[2], int(sys.argv[3])).run()
