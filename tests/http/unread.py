#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers that clients do not read, claims among them, and the memory they may take. Prints TAP.

    tests/http/unread.py    WEFT_TEST_STORE: sqlite or pg; WEFT_SOAK=1: the long form

A namespace holds at most half of answer_bytes. Its reads and claims that find no room are answered
503 after a few seconds, no lease is given to them, and another namespace does not notice.
"""
import os
import threading
import time

from harness import (QUARANTINE_KB, SANITIZED, STORE, Calls, Figures, Raw, Tap, metric_sum, metrics,
                     scratch, serve, until)

SOAK = os.environ.get("WEFT_SOAK") == "1"
BUDGET = (128 if SOAK else 16) << 20
CLIENTS, ITEMS = (300, 512) if SOAK else (24, 80)
PAYLOAD = "x" * ((1 << 20) - 2)  # a claim takes eight of them
LATE_S = 30 * (4 if SANITIZED else 1)  # an answer that is due after 5 s has come by then
CLAIM = b'{"worker":"w","max":1000}'


def claim(server):
    """A claim whose answer is not read."""
    raw = Raw(server, receive_buffer=4096, timeout=LATE_S)
    raw.send(b"POST /v1/claims HTTP/1.1\r\nHost: localhost\r\nX-Weft-Namespace: flood\r\n"
             b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(CLAIM) + CLAIM)
    return raw


def held(server):
    return metric_sum(metrics(server), "weft_http_answer_bytes")


def trickle(readers, stop):
    """Takes a little of each answer, again and again: enough not to be cut."""
    while not stop.wait(0.1):
        for reader in readers:
            reader.socket.recv(4096)


def refused(tap, what, call):
    """A call that finds no room is refused with 503 and a hint."""
    began = time.monotonic()
    status, headers, answer = call()
    took = time.monotonic() - began
    error = answer.get("error", {})
    tap.ok(status == 503 and error.get("code") == "unavailable" and headers["Retry-After"],
           f"{what} that finds no room is answered 503 with Retry-After",
           (status, str(answer)[:300]))
    tap.ok(4 < took < LATE_S, f"{what} waited a few seconds for it", f"{took:.1f} s")
    tap.ok("clients of this namespace" in error.get("message", "") and
           "half of answer_bytes" in error["message"] and "--answer-bytes" in error.get("hint", ""),
           f"the error of {what} names the full budget and the option that raises it", error)


def full(tap, server):
    """One namespace has filled its half and goes on reading, slowly."""
    readers, stop = [], threading.Event()
    reading = threading.Thread(target=trickle, args=(readers, stop), daemon=True)
    reading.start()
    while held(server) < BUDGET // 2 and len(readers) < CLIENTS:
        before, reader = held(server), claim(server)
        reader.socket.recv(100)  # the head
        readers.append(reader)
        until(lambda b=before: held(server) > b, LATE_S)
    tap.ok(BUDGET // 2 <= held(server) < BUDGET, "answers of claims count", held(server))
    calls = [Calls(server, timeout=LATE_S, namespace="flood") for _ in range(2)]
    asked = [("a claim", lambda: calls[0]("POST", "/v1/claims", {"worker": "w"})),
             ("a list", lambda: calls[1]("GET", "/v1/executions?limit=1"))]
    threads = [threading.Thread(target=refused, args=(tap, *one)) for one in asked]
    for thread in threads:
        thread.start()
    quiet, times = Calls(server, timeout=LATE_S, namespace="quiet"), []
    while any(thread.is_alive() for thread in threads):
        began = time.monotonic()
        quiet.good("POST", "/v1/executions", {"kind": "k"})
        got = quiet.good("POST", "/v1/claims", {"worker": "w"})["items"]
        quiet.good("POST", "/v1/leases/complete", {"id": got[0]["id"], "epoch": got[0]["epoch"]})
        quiet.good("GET", "/v1/executions?limit=1")
        times.append(time.monotonic() - began)
        threads[0].join(0.05)
    tap.ok(max(times) < 4, "another namespace goes on meanwhile", f"{max(times):.2f} s")
    stop.set()
    reading.join()
    for reader in readers:
        reader.socket.close()
    tap.ok(until(lambda: held(server) == 0, LATE_S), "the room is free when they have gone")


def crowd(tap, server):
    """Many at once that read nothing at all."""
    begun, largest, most = Figures(server.process.pid).rss_kb, 0, 0
    readers = [claim(server) for _ in range(CLIENTS)]

    def cut():
        nonlocal largest, most
        numbers = metrics(server)
        largest = max(largest, Figures(server.process.pid).rss_kb)
        now = int(metric_sum(numbers, "weft_http_answer_bytes"))
        most = max(most, now)
        return most > 0 and now == 0 and metric_sum(numbers, "weft_waiters") == 0
    ended = until(cut, 120)
    # Half of the budget, and one answer that began before it was full.
    tap.ok(0 < most < BUDGET // 2 + (12 << 20),
           f"{CLIENTS} claims whose answers are not read are bounded",
           f"{most >> 20} MiB")
    tap.ok(largest - begun < (4 * BUDGET >> 10) + QUARANTINE_KB, "the server stays small",
           f"{begun >> 10} MB, then {largest >> 10} MB")
    tap.note(f"{CLIENTS} claims without a reader: {begun >> 10} MB, then {largest >> 10} MB, "
             f"{most / 1048576:.1f} MiB of answers")
    tap.ok(ended, "every client that does not read is disconnected or refused")
    for reader in readers:
        reader.socket.close()


def drain(tap, server):
    """No lease is lost: a client that reads gets every execution, on its first attempt."""
    calls, seen = Calls(server, timeout=LATE_S, namespace="flood"), {}

    def all_seen():
        status, _, answer = calls("POST", "/v1/claims", {"worker": "w", "max": 1000})
        items = answer["items"] if status == 200 else []
        seen.update({item["id"]: item["attempt"] for item in items})
        if items:
            calls.good("POST", "/v1/leases/complete", {"items": [
                {"id": item["id"], "epoch": item["epoch"]} for item in items]})
        return len(seen) == ITEMS
    tap.ok(until(all_seen, 120), "a client that reads gets them all", len(seen))
    tap.equal(set(seen.values()), {1}, "no execution used more than one attempt")


def main():
    tap = Tap()
    store = scratch(STORE, "unread")
    server = serve(store, "--answer-bytes", str(BUDGET), tap=tap)
    writer = Calls(server, namespace="flood")
    for _ in range(ITEMS // 8):
        writer.good("POST", "/v1/executions", {"items": [{"kind": "large", "payload": PAYLOAD}] * 8})
    full(tap, server)
    crowd(tap, server)
    drain(tap, server)
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()
    tap.done()


if __name__ == "__main__":
    main()
