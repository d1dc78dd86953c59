#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers that stop under load: tests/http/stops.py (WEFT_TEST_STORE: sqlite or pg). Prints TAP.

Stopped by SIGTERM a server finishes what it began and exits with 0 within the grace; killed by
SIGKILL it does not. Nothing that was acknowledged is lost either way.
"""
import signal
import threading
import time

from harness import STORE, Calls, Tap, metric_sum, metrics, pause, scratch, serve, until
from load import Load, check_kept

GRACE_S = 5
SLACK_S = 10  # for the process to end; a claim that were waited for would take 30 s
CLIENTS = 8


def waiting_claims(server, count):
    """Claims that find nothing; what they are answered when the server stops."""
    answers = []

    def wait():
        calls = Calls(server)
        try:
            answers.append(calls("POST", "/v1/claims", {"worker": "idle", "lanes": ["nothing"],
                                                        "wait_ms": 30000})[::2])
        except OSError as error:
            answers.append(repr(error))
        calls.close()
    threads = [threading.Thread(target=wait, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, answers


def stop_under_load(tap, store, number):
    server = serve(store, "--grace", f"{GRACE_S}s", tap=tap)
    load = Load([server], CLIENTS)
    threads, answers = waiting_claims(server, 5)
    until(lambda: metric_sum(metrics(server), "weft_waiters", "claim") >= 5, 10)
    until(lambda: len(load.ledger.completed) > 200, 20)
    began = time.monotonic()
    server.process.send_signal(number)
    status = server.process.wait(60)
    took = time.monotonic() - began
    ended = load.stop()
    for thread in threads:
        thread.join(10)
    tap.ok(ended, f"{number.name}: every client came to an end")
    if number == signal.SIGTERM:
        tap.equal(status, 0, "SIGTERM: the exit status is 0")
        tap.ok(took < GRACE_S + SLACK_S, "SIGTERM: within the grace", f"{took:.1f} s")
        tap.note(f"stopped after {took:.2f} s")
        tap.equal(answers, [(200, {"items": []})] * 5, "SIGTERM: waiting claims are answered")
    server = serve(store)
    check_kept(tap, server, load.ledger)
    tap.equal(server.stop(), 0, "the server stops by itself")


def again_and_again(tap, store):
    """Servers that come and go under the same clients' eyes: a rolling restart of one."""
    for i in range(3):
        server = serve(store)
        load = Load([server], 4)
        until(lambda: len(load.ledger.completed) > 20 * (i + 1), 10)
        pause(0.01 * i)
        server.process.send_signal(signal.SIGTERM)
        tap.equal(server.process.wait(30), 0, f"stop {i}: the exit status is 0")
        load.stop()
        server = serve(store)
        check_kept(tap, server, load.ledger)
        server.stop()


def main():
    tap = Tap()
    store = scratch(STORE, "stops")
    stop_under_load(tap, store, signal.SIGTERM)
    stop_under_load(tap, store, signal.SIGKILL)
    again_and_again(tap, store)
    store.remove()
    tap.done()


if __name__ == "__main__":
    main()
