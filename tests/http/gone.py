#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Claims of clients that went away: tests/http/gone.py (WEFT_TEST_STORE: sqlite or pg). Prints TAP.

An answer that is not read gives its leases back at once. The leases here last ten minutes, so what
another worker gets within seconds was given back and did not run out.
"""
import json
import signal
import socket
import struct
import threading
import time

from harness import STORE, Calls, Raw, Tap, metric_sum, metrics, scratch, serve, until, waiters

LEASE_MS = 600000
PROMPT_S = 15  # the leases of the workers that left would last for ten minutes


def claim_bytes(lane, worker, most, wait_ms):
    body = json.dumps({"worker": worker, "lanes": [lane], "max": most, "lease_ms": LEASE_MS,
                       "wait_ms": wait_ms}).encode()
    return (b"POST /v1/claims HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body)


def submit(calls, lane, count):
    answer = calls.good("POST", "/v1/executions",
                        {"items": [{"kind": "gone", "lane": lane} for _ in range(count)]})
    return {item["id"] for item in answer["items"]}


def collect(calls, lane, wanted, seconds):
    """Claims as a living worker until it has them all; returns the ids that it did not get."""
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
        tap.ok(until(lambda: waiters(server) == 0, PROMPT_S),
               f"no claim waits after the clients left ({name})")


def is_stopped(server):
    with open(f"/proc/{server.process.pid}/stat", encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


def gone_when_work_comes(tap, server, leave, name):
    """
    Work comes and clients leave in one and the same moment, in which the server stands still. A
    client that leaves an answer unread looks like one that read it; the crowd is gone for sure when
    the first answer is made.
    """
    lane = f"arriving-{name}"
    crowd = waiting_crowd(server, lane, 100, 3)
    ids = set()

    def work():
        calls = Calls(server)
        for _ in range(10):
            ids.update(submit(calls, lane, 5))
        calls.close()
    threads = [threading.Thread(target=work) for _ in range(4)]
    server.process.send_signal(signal.SIGSTOP)
    if not until(lambda: is_stopped(server), 10):
        raise AssertionError("the server does not stand still")
    for thread in threads:
        thread.start()
    for raw in crowd:
        leave(raw)
    server.process.send_signal(signal.SIGCONT)
    for thread in threads:
        thread.join()
    calls = Calls(server)
    began = time.monotonic()
    left = collect(calls, lane, ids, 2 * PROMPT_S)
    took = time.monotonic() - began
    calls.close()
    tap.ok(len(ids) == 200 and not left and took < PROMPT_S,
           f"200 executions that met 100 leaving clients are free at once ({name})",
           f"after {took:.1f} s of {len(ids)} missing: {len(left)}")


def gone_at_once(tap, server, calls):
    lane = "at-once"
    ids = submit(calls, lane, 100)

    def undelivered():
        return metric_sum(metrics(server), "weft_claims_undelivered_total")
    before = undelivered()
    for i in range(20):
        with Raw(server) as raw:  # its last words and its leaving are one packet
            raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
            raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
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
    tap.ok(listed and all(item["attempt"] == 1 for item in listed),
           "no execution that was given back spent an attempt")


def main():
    tap = Tap()
    store = scratch(STORE, "gone")
    server = serve(store, tap=tap)
    calls = Calls(server)
    gone_while_waiting(tap, server, calls)
    gone_when_work_comes(tap, server, lambda raw: raw.socket.close(), "close")
    gone_when_work_comes(tap, server, reset, "reset")
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
