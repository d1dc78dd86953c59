# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of signals: executions that wait, requests as bytes, many answers at once."""
import json
import os
import select
import time

from harness import Raw

SOAK = os.environ.get("WEFT_SOAK", "0") not in ("", "0")
LONG_MS = 600000


def suspend(calls, lane, condition=None):
    """An execution that has begun and waits at one waitpoint: (id, token)."""
    an_id = calls.good("POST", "/v1/executions", {"kind": "wait", "lane": lane})["id"]
    lease, = calls.good("POST", "/v1/claims", {"worker": "first", "lanes": [lane],
                                               "lease_ms": LONG_MS, "wait_ms": 5000})["items"]
    if lease["id"] != an_id:
        raise AssertionError(f"the lane {lane} is used by another execution")
    return an_id, suspend_lease(calls, lease, condition)


def suspend_lease(calls, lease, condition=None):
    """The token of the waitpoint."""
    body = {"id": lease["id"], "epoch": lease["epoch"], "waitpoints": [{"name": "answers"}]}
    if condition:
        body["condition"] = condition
    waits = calls.good("POST", "/v1/leases/suspend", body)
    return waits["waitpoints"][0]["token"]


def post(path, body=None):
    """The bytes of a request; the body is JSON, or none."""
    data = b"" if body is None else json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n").encode() + data


def claim_request(lane, wait_ms=60000):
    return post("/v1/claims", {"worker": "next", "lanes": [lane], "lease_ms": LONG_MS,
                               "wait_ms": wait_ms})


class Volley:
    """Requests that are complete at the same time, each on a connection of its own.

    All of a request but its last byte is sent beforehand. One thread then sends the last bytes and
    reads the answers as they come, in pieces; they are parsed after the last one has come.
    """

    def __init__(self, requests):
        """requests: (server, bytes)"""
        self.raw, self.last, self.when = [], [], {}
        for server, data in requests:
            raw = Raw(server)
            raw.send(data[:-1])
            self.raw.append(raw)
            self.last.append(data[-1:])
        self.sent_ms = self.spread_ms = self.took_ms = 0.0

    @staticmethod
    def is_whole(data):
        head, mark, body = data.partition(b"\r\n\r\n")
        if not mark:
            return False
        at = head.lower().index(b"content-length:") + len(b"content-length:")
        return len(body) >= int(head[at:].split(b"\r\n", 1)[0])

    def read(self, poll, seconds):
        """Takes what has come. False: nothing came within that time."""
        events = poll.poll(seconds)
        for number, _ in events:
            raw = self.raw[self.by_file[number]]
            if not raw.more() or self.is_whole(raw.pending):
                self.when[self.by_file[number]] = time.monotonic()
                poll.unregister(number)
        return bool(events)

    def fire(self, patience_s=30):
        """The answers in the order of the requests: (status, JSON)."""
        self.by_file = {raw.socket.fileno(): i for i, raw in enumerate(self.raw)}
        with select.epoll() as poll:
            for number in self.by_file:
                poll.register(number, select.EPOLLIN)
            began = time.monotonic()
            for raw, last in zip(self.raw, self.last):
                raw.socket.send(last)
            self.sent_ms = (time.monotonic() - began) * 1000
            while len(self.when) < len(self.raw) and self.read(poll, patience_s):
                pass
        self.spread_ms = (max(self.when.values()) - min(self.when.values())) * 1000
        self.took_ms = (max(self.when.values()) - began) * 1000
        return [self.parsed(raw) if i in self.when else (None, None)
                for i, raw in enumerate(self.raw)]

    @staticmethod
    def parsed(raw):
        answer = raw.answer()
        raw.socket.close()
        return (answer[0], json.loads(answer[2])) if answer else (None, None)
