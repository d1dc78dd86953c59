#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that wait with a token that is revoked, rotated or expires meanwhile. Prints TAP.

    tests/http/revoked.py    WEFT_TEST_STORE: sqlite or pg

Claims, watches, reads that wait for an end and lists in parts end soon after, on the server that
revoked and, over PostgreSQL, on another one. No lease is given for such a token.
"""
import json
import socket
import threading
import time

from harness import FAULTS, STORE, Calls, Raw, Tap, scratch, serve, until

SOON_S = 2      # the bound in the documents
SLACK_S = 8     # what a busy machine may add
WAIT_MS = 60000
ROUNDS = 30


class Held(threading.Thread):
    """One request that waits, with how and when it ended."""

    def __init__(self, server, token, method, path, body=None):
        super().__init__(daemon=True)
        self.calls = Calls(server, timeout=90)
        self.calls.headers["Authorization"] = f"Bearer {token}"
        self.ask, self.status, self.answer, self.ended = (method, path, body), None, None, None
        self.start()

    def run(self):
        try:
            self.status, _, self.answer = self.calls(*self.ask)
        except FAULTS as error:
            self.answer = repr(error)
        self.ended = time.monotonic()
        self.calls.close()


def caller(server, token):
    calls = Calls(server)
    calls.headers["Authorization"] = f"Bearer {token}"
    return calls


def claim_of(kind):
    return {"worker": "w", "kinds": [kind], "wait_ms": WAIT_MS, "lease_ms": 600000}


def waiters(admin):
    _, _, text = admin("GET", "/metrics")
    return sum(float(line.rpartition(" ")[2]) for line in text.decode().splitlines()
               if line.startswith("weft_waiters{"))


def new_token(admin, scopes="work read"):
    return admin.good("POST", "/v1/tokens", {"name": "t", "scopes": scopes.split()})


def waiting_ends(tap, first, second, admin, how):
    """Everything that can wait, at the server that ends the token and at another one."""
    made = new_token(admin)
    other = caller(second, admin.headers["Authorization"].split()[1])
    until(lambda: caller(second, made["token"])("GET", "/v1/executions?limit=1")[0] == 200, 10)
    execution = admin.good("POST", "/v1/executions", {"kind": f"open-{how}"})["id"]
    # Metrics are a few milliseconds old: the waiters of the part before may still be counted.
    tap.ok(until(lambda: waiters(admin) + waiters(other) == 0, 20), f"{how}: nothing waits yet")
    held = [Held(server, made["token"], *ask) for server in (first, second) for ask in (
        ("POST", "/v1/claims", claim_of(f"late-{how}")),
        ("POST", "/v1/leases/watch", {"worker": "w", "wait_ms": WAIT_MS}),
        ("GET", f"/v1/executions/{execution}?wait_ms={WAIT_MS}"))]
    each = 6 if first is second else 3
    tap.ok(until(lambda: waiters(admin) >= each and waiters(other) >= each, 20), f"{how}: requests wait")
    began = time.monotonic()
    if how == "revoke":
        admin.good("DELETE", f"/v1/tokens/{made['id']}")
    else:
        admin.good("POST", f"/v1/tokens/{made['id']}/rotate", {"grace_ms": 0})
    for one in held:
        one.join(WAIT_MS / 1000 + 30)
    took = [one.ended - began for one in held if one.ended]
    tap.ok(len(took) == len(held) and max(took) < SOON_S + SLACK_S,
           f"{how}: all end within {SOON_S} s", took)
    tap.note(f"the longest took {max(took):.2f} s")
    tap.equal([one.status for one in held], [401] * len(held), f"{how}: with 401")
    late = admin.good("POST", "/v1/executions", {"kind": f"late-{how}"})["id"]
    tap.equal(admin.good("GET", f"/v1/executions/{late}")["state"], "ready",
              f"{how}: work that comes then is not given to them")
    other.close()


def expiry(tap, server, admin):
    made = server.make_token("work,read", lifetime=4)
    until(lambda: caller(server, made["token"])("GET", "/v1/executions?limit=1")[0] == 200, 4)
    began = time.monotonic()
    held = Held(server, made["token"], "POST", "/v1/claims", claim_of("expired"))
    held.join(WAIT_MS / 1000 + 30)
    tap.ok(held.status == 401 and held.ended - began < 4 + SOON_S + SLACK_S,
           "a claim whose token expires ends with 401", (held.status, held.answer))
    admin.good("POST", "/v1/executions", {"kind": "expired"})


def race(tap, server, admin):
    """Work arrives while the token is revoked: the lease is delivered or given back."""
    delivered = refused = 0
    lost = []
    for number in range(ROUNDS):
        made = new_token(admin)
        kind = f"race-{number}"
        held = Held(server, made["token"], "POST", "/v1/claims", claim_of(kind))
        until(lambda: waiters(admin) > 0, 10)
        secret = admin.headers["Authorization"].split()[1]
        revoke = ("DELETE", f"/v1/tokens/{made['id']}")
        submit = ("POST", "/v1/executions", {"kind": kind})
        first = Held(server, secret, *(submit if number % 3 else revoke))
        if number % 3 == 2:
            first.join(30)  # as late as it can be
        second = Held(server, secret, *(revoke if number % 3 else submit))
        first.join(30)
        second.join(30)
        execution = (first if number % 3 else second).answer["id"]
        held.join(30)
        if held.status == 200 and held.answer["items"]:
            delivered += 1
            continue
        refused += held.status == 401

        def is_ready():
            return admin.good("GET", f"/v1/executions/{execution}")["state"] == "ready"
        if not until(is_ready, 10):
            lost.append((held.status, held.answer, execution))
    tap.ok(delivered + refused == ROUNDS and not lost,
           f"{ROUNDS} revocations beside a submission: the lease is delivered or given back", lost)
    _, _, text = admin("GET", "/metrics")
    back = next(line.rpartition(" ")[2] for line in text.decode().splitlines()
                if line.startswith("weft_claims_undelivered_total"))
    tap.note(f"{delivered} were delivered, {refused} refused, {back} leases were given back")


def stream(tap, server, admin):
    """A long list, read slowly: nothing is sent of it after its token has gone."""
    tags = {f"tag{i}": "x" * 200 for i in range(8)}
    for _ in range(8):
        admin.good("POST", "/v1/executions", {"items": [{"kind": "listed", "tags": tags}] * 1000})
    made = new_token(admin)
    with Raw(server, timeout=30, receive_buffer=4096) as raw:
        raw.send(b"GET /v1/executions?kind=listed HTTP/1.1\r\nHost: localhost\r\n"
                 b"Accept: application/x-ndjson\r\nAuthorization: Bearer "
                 + made["token"].encode() + b"\r\n\r\n")
        head = raw.until(b"\r\n\r\n")
        tap.ok(b" 200 " in head.split(b"\r\n")[0], "a list begins")
        admin.good("DELETE", f"/v1/tokens/{made['id']}")
        try:
            whole = raw.chunks()
        except (socket.timeout, TimeoutError):
            whole = "silent"
    tap.equal(whole, None, "the list is broken off before its end")


def main():
    tap = Tap()
    store = scratch(STORE, "revoked")
    first = serve(store, "--tokens")
    second = serve(store, "--tokens") if STORE == "pg" else first
    admin = caller(first, first.make_token("admin")["token"])
    until(lambda: admin("GET", "/v1/tokens")[0] == 200, 10)
    until(lambda: caller(second, admin.headers["Authorization"].split()[1])(
        "GET", "/v1/tokens")[0] == 200, 10)
    waiting_ends(tap, first, second, admin, "revoke")
    waiting_ends(tap, first, second, admin, "rotate")
    expiry(tap, first, admin)
    race(tap, first, admin)
    stream(tap, first, admin)
    admin.close()
    for server in {first, second}:
        tap.equal(server.stop(), 0, "a server stops")
    store.remove()
    tap.done()


main()
