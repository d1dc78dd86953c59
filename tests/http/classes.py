#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every engine thread is busy: what needs none is answered all the same. Prints TAP."""
import threading
import time

from harness import FAULTS, Calls, Cluster, Tap, pause, serve, until
from outage import Lock

PROMPT_S = 1  # what needs no engine thread, on a slow machine


def listing(server, stop):
    """Reads lists, which need an engine thread."""
    while not stop.is_set():
        calls = Calls(server, timeout=60)
        try:
            calls("GET", "/v1/executions")
        except FAULTS:
            pass
        calls.close()


def ask(server, path, times):
    """The status of an answer; how long it took is added to the times."""
    calls, began, status = Calls(server, timeout=5), time.monotonic(), 0
    try:
        status = calls("GET", path)[0]
    except FAULTS:
        pass
    calls.close()
    times.append(time.monotonic() - began)
    return status


def held(tap):
    """Every engine thread is held by a lock: what needs none is answered at once."""
    cluster, stop = Cluster(), threading.Event()
    server = serve(cluster.store("held"), "--threads", "3", tap=tap)
    calls = Calls(server)
    calls.good("POST", "/v1/executions", {"kind": "first"})
    calls.good("GET", "/metrics")  # from here on its counts are kept
    lock = Lock(cluster, "LOCK TABLE held.live, held.execution IN ACCESS EXCLUSIVE MODE")
    readers = [threading.Thread(target=listing, args=(server, stop), daemon=True) for _ in range(8)]
    for reader in readers:
        reader.start()
    paths = ("/healthz", "/readyz", "/metrics")
    times, statuses = {path: [] for path in paths}, {path: [] for path in paths}
    until_s = time.monotonic() + 5
    while time.monotonic() < until_s:
        for path in paths:
            statuses[path].append(ask(server, path, times[path]))
        pause()
    lock.let_go()
    for path in paths:
        tap.ok(max(times[path]) < PROMPT_S, f"{path} is answered while every engine thread is held",
               f"{max(times[path]):.2f} s")
    tap.ok(set(statuses["/healthz"] + statuses["/metrics"]) == {200}, "with 200", statuses)
    tap.equal(statuses["/readyz"][-1], 503, "a store that answers nothing for 3 s is not ready")
    back = until(lambda: ask(server, "/readyz", []) == 200, 30)
    tap.ok(back, "and it is ready again by itself")
    stop.set()
    for reader in readers:
        reader.join(60)
    tap.equal(server.stop(), 0, "the server stops by itself")
    cluster.remove()


def main():
    tap = Tap()
    held(tap)
    tap.done()


if __name__ == "__main__":
    main()
