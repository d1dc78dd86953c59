#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The client of namespace b, in a process of its own: tenants_probe.py HOST PORT BOUND_S

For each line with a number of seconds on its input it works that long (submit, claim, complete,
read, list, /readyz on one connection, /healthz on a new one each time; now and then a body of more
than 128 KiB, a flow of two members, and a delayed execution) and prints one line of JSON: the
microseconds of each call, and what failed. A call that fails counts as one that took FAILED_US.
"""
import json
import socket
import sys
import time

FAILED_US = 10**9
ENOUGH = 5  # a window ends early after so many failures
LEAST, LONGEST = 5, 3  # it has so many turns, unless that takes so many times as long
BULK_EVERY = 5
BULK = json.dumps({"items": [{"kind": "bulk", "lane": "bulk", "payload": "x" * 8192}] * 20})

FLOW = json.dumps({"name": "hop", "nodes": [{"name": "a", "kind": "b", "lane": "hop"},
                                            {"name": "b", "kind": "b", "lane": "hop",
                                             "after": ["a"]}]})
DELAY_MS = 20


class Refused(Exception):
    pass


class Client:
    def __init__(self, host, port, bound_s):
        self.target, self.bound_s, self.sock = (host, port), bound_s, None
        self.known = None  # the id of an execution that was submitted

    def close(self):
        if self.sock:
            self.sock.close()
            self.sock = None

    def call(self, method, path, body=None, wanted=(200, 201)):
        """The body of the answer. Whatever goes wrong closes the connection."""
        try:
            if not self.sock:
                self.sock = socket.create_connection(self.target, timeout=self.bound_s)
                self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            data = None if body is None else body.encode()
            length = "" if data is None else f"Content-Length: {len(data)}\r\n"
            self.sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Weft-Namespace: b"
                              f"\r\nContent-Type: application/json\r\n{length}\r\n".encode()
                              + (data or b""))
            status, got = self.receive()
        except (OSError, ValueError) as error:
            self.close()
            raise Refused(f"{type(error).__name__} {error}") from error
        if status not in wanted:
            self.close()  # the server may hang up after a refusal
            raise Refused(f"{status} {got[:200].decode(errors='replace')}")
        return got

    def receive(self):
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.more()
        head, _, body = data.partition(b"\r\n\r\n")
        low = head.lower()
        if b"transfer-encoding: chunked" in low:
            while not body.endswith(b"0\r\n\r\n"):
                body += self.more()
            body = b"".join(body.split(b"\r\n")[1::2])
        else:
            at = low.find(b"content-length:")
            size = int(low[at + 15:].split(b"\r\n", 1)[0]) if at >= 0 else 0
            while len(body) < size:
                body += self.more()
        return int(head[9:12]), body

    def more(self):
        got = self.sock.recv(1 << 16)
        if not got:
            raise ConnectionResetError("the server hung up")
        return got


class Window:
    """The calls of a stretch of time."""

    def __init__(self, client, fresh):
        self.client, self.fresh = client, fresh
        self.times, self.failed = {}, []

    def timed(self, name, client, *arguments):
        began = time.perf_counter()
        try:
            got = client.call(*arguments)
            took = int((time.perf_counter() - began) * 1e6)
        except Refused as error:
            got, took = None, FAILED_US
            self.failed.append(f"{name} after {time.perf_counter() - began:.2f} s: {error}")
        self.times.setdefault(name, []).append(took)
        return got

    def work(self):
        made = self.timed("submit", self.client, "POST", "/v1/executions",
                          '{"kind":"b","payload":{"n":1}}')
        got = self.timed("claim", self.client, "POST", "/v1/claims",
                         '{"worker":"b","kinds":["b"],"max":1,"wait_ms":2000}')
        items = json.loads(got)["items"] if got else []
        if got and made and not items:
            self.failed.append("claim: an execution is ready, and the claim returned none")
            self.times["claim"][-1] = FAILED_US
        for item in items:
            self.timed("complete", self.client, "POST", "/v1/leases/complete", json.dumps(
                {"items": [{"id": item["id"], "epoch": item["epoch"], "result": 1}]}))
        if made:
            self.client.known = json.loads(made)["id"]
        if self.client.known:
            self.timed("read", self.client, "GET", f"/v1/executions/{self.client.known}")

    def look(self):
        self.timed("list", self.client, "GET", "/v1/executions?limit=20")
        self.timed("readyz", self.client, "GET", "/readyz")
        self.fresh.close()
        self.timed("healthz", self.fresh, "GET", "/healthz")

    def claim(self, lane):
        got = self.client.call("POST", "/v1/claims", json.dumps(
            {"worker": "b", "lanes": [lane], "max": 1, "wait_ms": 5000}))
        items = json.loads(got)["items"]
        if not items:
            raise Refused(f"nothing could be claimed in lane {lane}")
        return items[0]

    def complete(self, item):
        self.client.call("POST", "/v1/leases/complete", json.dumps(
            {"items": [{"id": item["id"], "epoch": item["epoch"]}]}))

    def hop(self):
        """How long after the end of a member the next member of its flow is claimed."""
        self.client.call("POST", "/v1/flows", FLOW)
        first = self.claim("hop")
        began = time.perf_counter()
        self.complete(first)
        second = self.claim("hop")
        took = time.perf_counter() - began
        self.complete(second)
        return took

    def due(self):
        """How long after its time a delayed execution is claimed."""
        began = time.perf_counter()
        self.client.call("POST", "/v1/executions",
                         f'{{"kind":"b","lane":"due","delay_ms":{DELAY_MS}}}')
        item = self.claim("due")
        took = time.perf_counter() - began - DELAY_MS / 1000
        self.complete(item)
        return max(0, took)

    def stretch(self, name, run):
        """Several calls whose time is measured together."""
        try:
            took = int(run() * 1e6)
        except Refused as error:
            took = FAILED_US
            self.failed.append(f"{name}: {error}")
        self.times.setdefault(name, []).append(took)

    def run(self, seconds):
        began, turn = time.monotonic(), 0
        while len(self.failed) < ENOUGH:
            took = time.monotonic() - began
            if turn and took > seconds and (turn >= LEAST or took > seconds * LONGEST):
                break
            self.work()
            self.look()
            if turn % BULK_EVERY == 0:
                self.timed("bulk", self.client, "POST", "/v1/executions", BULK)
                self.stretch("hop", self.hop)
                self.stretch("due", self.due)
            turn += 1


def main():
    host, port, bound_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    client, fresh = Client(host, port, bound_s), Client(host, port, bound_s)
    for line in sys.stdin:
        window = Window(client, fresh)
        window.run(float(line))
        print(json.dumps({"times": window.times, "failed": window.failed}), flush=True)


if __name__ == "__main__":
    main()
