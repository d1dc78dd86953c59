#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Claims of clients that went away: tests/http/gone.py (WEFT_TEST_STORE: sqlite or pg). Prints TAP.

An answer that nobody reads gives its leases back at once. The leases here last ten minutes, so what
another worker gets within seconds was given back and did not run out.
"""
import json
import socket
import struct
import threading
import time

from harness import STORE, Calls, Raw, Tap, metric_sum, metrics, scratch, serve, until

LEASE_MS = 600000
PROMPT_S = 15  # the leases of those who left would last for ten minutes


def claim_bytes(lane, worker, most, wait_ms):
    body = json.dumps({"worker": worker, "lanes": [lane], "max": most, "lease_ms": LEASE_MS,
                       "wait_ms": wait_ms}).encode()
    return (b"POST /v1/claims HTTP/1.1\r\nHost: weft\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body)


def submit(calls, lane, count):
    answer = calls.good("POST", "/v1/executions",
                        {"items": [{"kind": "gone", "lane": lane} for _ in range(count)]})
    return {item["id"] for item in answer["items"]}


def collect(calls, lane, wanted, seconds):
    """Claims as a living worker until it has them all; those it did not get."""
    end, left = time.monotonic() + seconds, set(wanted)
    while left and time.monotonic() < end:
        answer = calls.good("POST", "/v1/claims", {"worker": "alive", "lanes": [lane], "max": 100,
                                                   "lease_ms": LEASE_MS, "wait_ms": 500})
        left -= {item["id"] for item in answer["items"]}
    return left


def reset(raw):
    """Closes with a reset, as a process that dies with unread data does."""
    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.socket.close()


def waiters(server):
    return metric_sum(metrics(server), "weft_waiters", "claim")


def waiting_crowd(server, lane, count, most):
    crowd = [Raw(server) for _ in range(count)]
    for i, raw in enumerate(crowd):
        raw.send(claim_bytes(lane, f"{lane}-{i}", most, 30000))
    if not until(lambda: waiters(server) >= count, 10):
        raise AssertionError(f"{waiters(server)} of {count} claims wait")
    return crowd


def gone_while_waiting(tap, server, calls):
    for name, leave in (("close", lambda raw: raw.socket.close()), ("reset", reset)):
        lane = f"waiting-{name}"
        for raw in waiting_crowd(server, lane, 50, 1):
            leave(raw)
        ids = submit(calls, lane, 1)
        began = time.monotonic()
        left = collect(calls, lane, ids, 2 * PROMPT_S)
        took = time.monotonic() - began
        tap.ok(not left and took < PROMPT_S, f"work goes past 50 clients that left ({name})",
               f"after {took:.1f} s missing: {left}")
        tap.ok(until(lambda: waiters(server) == 0, PROMPT_S), f"and nobody waits any more ({name})")


def gone_when_work_comes(tap, server, calls, leave, name):
    lane = f"arriving-{name}"
    crowd = waiting_crowd(server, lane, 100, 3)
    start = threading.Barrier(3)

    def leave_all(half):
        start.wait()
        for raw in half:
            leave(raw)
    threads = [threading.Thread(target=leave_all, args=(crowd[i::2],)) for i in range(2)]
    for thread in threads:
        thread.start()
    start.wait()
    ids = set()
    for _ in range(40):  # one after the other, so that work comes while they leave
        ids |= submit(calls, lane, 5)
    for thread in threads:
        thread.join()
    began = time.monotonic()
    left = collect(calls, lane, ids, 2 * PROMPT_S)
    took = time.monotonic() - began
    tap.ok(not left and took < PROMPT_S,
           f"200 executions that met 100 leaving clients are free at once ({name})",
           f"after {took:.1f} s missing: {len(left)}")


def gone_at_once(tap, server, calls):
    lane = "at-once"
    ids = submit(calls, lane, 100)

    def undelivered():
        return metric_sum(metrics(server), "weft_claims_undelivered_total")
    before = undelivered()
    for i in range(20):
        with Raw(server) as raw:
            raw.send(claim_bytes(lane, f"hasty-{i}", 5, 0))
    tap.ok(until(lambda: undelivered() >= before + 100, PROMPT_S),
           "100 leases of 20 clients that did not wait for the answer are given back",
           undelivered() - before)
    began = time.monotonic()
    left = collect(calls, lane, ids, 2 * PROMPT_S)
    took = time.monotonic() - began
    tap.ok(not left and took < PROMPT_S, "claims whose clients left before the answer hold nothing",
           f"after {took:.1f} s missing: {len(left)}")


def no_attempt_is_lost(tap, calls):
    """Giving back spends no retry."""
    listed = calls.good("GET", "/v1/executions?limit=1000")["items"]
    tap.ok(listed and all(item["attempt"] == 1 for item in listed), "none of it spent an attempt")


def main():
    tap = Tap()
    store = scratch(STORE, "gone")
    server = serve(store, tap=tap)
    calls = Calls(server)
    gone_while_waiting(tap, server, calls)
    gone_when_work_comes(tap, server, calls, lambda raw: raw.socket.close(), "close")
    gone_when_work_comes(tap, server, calls, reset, "reset")
    gone_at_once(tap, server, calls)
    no_attempt_is_lost(tap, calls)
    numbers = metrics(server)
    tap.note(f"{metric_sum(numbers, 'weft_claims_undelivered_total'):.0f} leases were given back")
    calls.close()
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()
    tap.done()


if __name__ == "__main__":
    main()
