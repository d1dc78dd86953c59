#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A service that workers call refuses connections for a minute; with the default policy every
execution succeeds afterwards: tests/replicas/refused.py (WEFT_TEST_STORE: sqlite or pg). TAP.

    WEFT_SOAK=1     1,000 executions and 60 s, in real time: about three minutes. Without it the
                    test is skipped: the case retry_default_survives_an_outage_of_a_minute of
                    tests/conformance proves the same with a clock that it sets

A server, one `weft work` with several commands at a time, and a port that is bound but not listened
at until the outage is over. Printed: how many attempts were used, how long after the end of the
outage the last one succeeded, and how many connections were tried in each 10 s, which must fall:
waiting executions must not hammer a service that is away.
"""
import collections
import os
import signal
import socket
import subprocess
import threading
import time

from fleet import moment, submit
from harness import BINARY, STORE, Calls, Tap, pause, scratch, serve

LONG = os.environ.get("WEFT_SOAK", "0") not in ("", "0")
COUNT, OUTAGE_S, COMMANDS = 1000, 60.0, 8
# The eighth attempt, the last one that an outage of a minute can make necessary, begins after
# 1.2 * 127 s at the latest; workers take their time on top.
BOUND_S = 240.0
ATTEMPTS_MOST = 8


class Service:
    """Refuses connections until it is opened; then greets every caller."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.greeted = 0

    def open(self):
        self.socket.listen(128)
        threading.Thread(target=self.greet, daemon=True).start()

    def greet(self):
        while True:
            try:
                caller, _ = self.socket.accept()
            except OSError:
                return
            caller.sendall(b"hello\n")
            caller.close()
            self.greeted += 1

    def close(self):
        self.socket.close()


def listed(calls, lane):
    items, after = [], ""
    while after is not None:
        page = calls.good("GET", f"/v1/executions?lane={lane}&limit=1000{after}")
        items += page["items"]
        after = f"&after={page['next']}" if page["next"] else None
    return items


def start_worker(server, service):
    command = f"exec 3<>/dev/tcp/127.0.0.1/{service.port} && read -r line <&3 && echo \"$line\""
    return subprocess.Popen(
        [BINARY, "work", "--server", server.url, "--lane", "calls", "--concurrency", str(COMMANDS),
         "--", "bash", "-c", command],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run(tap, server, service, calls):
    began = time.time()
    submit(calls, "calls", COUNT)
    worker = start_worker(server, service)
    try:
        pause(max(0.0, began + OUTAGE_S - time.time()))  # the outage itself
        service.open()
        opened = time.time()
        items = listed(calls, "calls")
        while time.time() - opened < BOUND_S and any(i["finished_at"] is None for i in items):
            pause(1.0)
            items = listed(calls, "calls")
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)
    states = collections.Counter(item["state"] for item in items)
    tap.equal(dict(states), {"succeeded": COUNT}, f"{COUNT} of {COUNT} succeed after the outage")
    used = collections.Counter(item["attempts_used"] for item in items)
    tap.note(f"attempts used: {dict(sorted(used.items()))}")
    tap.ok(max(used) <= ATTEMPTS_MOST, f"no execution needs more than {ATTEMPTS_MOST} attempts", dict(used))
    ends = sorted(moment(item["finished_at"]) - opened for item in items if item["finished_at"])
    tap.note(f"after the end of the outage: half by {ends[len(ends) // 2]:.1f} s, "
             f"the last at {ends[-1]:.1f} s")
    return began, [item["id"] for item in items]


def tell_pace(tap, calls, began, ids):
    """How many attempts failed in each 10 s of the outage, from a tenth of the executions."""
    window = collections.Counter()
    for an_id in ids[::10]:
        for one in calls.good("GET", f"/v1/executions/{an_id}/attempts")["items"]:
            if one["ended"] == "failed":
                window[int((moment(one["ended_at"]) - began) // 10)] += 10
    pace = [window[i] for i in range(int(OUTAGE_S // 10))]
    tap.note(f"failed attempts in each 10 s of the outage: {pace}")
    tap.ok(pace[-1] <= pace[0] / 2, "calls to the absent service become less frequent", pace)


def main():
    tap = Tap()
    if not LONG:
        tap.skip("three minutes of real time: set WEFT_SOAK=1")
        tap.done()
    store, service = scratch(STORE, "refused"), Service()
    server = serve(store, tap=tap)
    calls = Calls(server)
    try:
        tell_pace(tap, calls, *run(tap, server, service, calls))
        tap.equal(server.stop(), 0, "the server stops by itself")
    finally:
        calls.close()
        server.kill()
        service.close()
        store.remove()
    tap.done()


if __name__ == "__main__":
    main()
