#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signal tokens that are not good: tests/http/signal_tokens.py (WEFT_TEST_STORE: sqlite or pg).

Every kind of bad token (cut, extended, of other letters, each bit flipped, with the execution, the
waitpoint, the epoch or the key of another token, signed with another secret, of a retired key) is
sent by itself, in the path and in a body, and among others in bulk. Each gets the same 401 with the
same headers and body, and the server makes no transaction for it. For the number of a key that is
newer than all keys it knows, a server reads the keys, 50 times a second at most, and nothing else.

Transactions are counted by the metric weft_store_transactions_total, without the poll. PostgreSQL
counts statements as well, in a cluster of the test's own. A server does some work by itself every
few seconds, so a count that is not 0 is taken again: what a token costs would be there each time.
Good tokens, which are counted first, show that the counts grow. Prints TAP and figures.
"""
import base64
import hashlib
import hmac
import json
import os
import struct
import time

from harness import (STORE, Calls, Raw, Tap, metric_sum, metrics, pause, scratch, serve)
from suspending import post, suspend
from waking import counting_cluster, statements

PREFIX = "signal_"
FIELDS = struct.Struct(">i16s16si")  # key, waitpoint, execution, epoch; the signature follows
GOOD = 20
TRIES = 8
AT_ONCE = 200  # requests that are counted together: less than a second, in which the poll comes
LOOKS_PER_S = 50
EACH = 100  # tokens of a kind, where there are not a known number of them
FILE_KEY = 1000000000  # the first number of a key of a file


# ---- Tokens -------------------------------------------------------------------------------------

def bytes_of(token):
    return base64.urlsafe_b64decode(token[len(PREFIX):])


def text_of(data):
    return PREFIX + base64.urlsafe_b64encode(data).decode()


def change(token, **fields):
    """The token with other fields and its old signature."""
    data = bytes_of(token)
    names = ("key", "waitpoint", "execution", "epoch")
    values = dict(zip(names, FIELDS.unpack(data[:FIELDS.size])), **fields)
    return text_of(FIELDS.pack(*(values[name] for name in names)) + data[FIELDS.size:])


def sign(token, secret):
    data = bytes_of(token)[:FIELDS.size]
    return text_of(data + hmac.new(secret, b"weft signal 1\0" + data, hashlib.sha256).digest())


def flip(token, bit):
    data = bytearray(bytes_of(token))
    data[bit // 8] ^= 1 << bit % 8
    return text_of(bytes(data))


def kinds_of(token, other):
    """Bad tokens by their kinds, made of two good ones."""
    key, waitpoint, execution, epoch = FIELDS.unpack(bytes_of(token)[:FIELDS.size])
    _, waitpoint2, execution2, _ = FIELDS.unpack(bytes_of(other)[:FIELDS.size])
    letters = len(token)
    return {
        "cut": [token[:size] for size in range(1, letters)],
        "cut in front": [token[size:] for size in range(1, letters - 1)],
        "extended": [token + more for count in range(1, EACH // 4)
                     for more in ("A" * count, "=" * count, "_" + "a" * count, token[-count:])],
        "of other letters": [token[:at] + letter + token[at + 1:]
                             for at in range(len(PREFIX), letters) for letter in ".~"],
        "of another prefix": [prefix + token[len(PREFIX):] for prefix in
                              ("Signal_", "SIGNAL_", "signal-", "weft_", "signals_", "_")],
        # The first 32 bits are the number of the key, see below.
        "with a bit flipped": [flip(token, bit) for bit in range(32, len(bytes_of(token)) * 8)],
        "of another execution": [change(token, execution=execution2),
                                 change(token, execution=bytes(16))],
        "of another waitpoint": [change(token, waitpoint=waitpoint2),
                                 change(token, waitpoint=bytes(16))],
        "of another waitpoint and execution": [
            change(token, waitpoint=waitpoint2, execution=execution2),
            change(other, waitpoint=waitpoint, execution=execution)],
        "of another epoch": [change(token, epoch=epoch + by) for by in (-2, -1, 1, 2, 255, 65536)],
        "of another key": [change(token, key=number) for number in
                           (0, -1, key - 1, -key, -2 ** 31, FILE_KEY, FILE_KEY + key, 2 ** 31 - 1)],
        "of another secret": [sign(token, secret) for secret in
                              [bytes(32), b"", b"secret"] + [os.urandom(32) for _ in range(EACH)]],
        "without a signature": [text_of(bytes_of(token)[:FIELDS.size] + bytes(32))],
    }


# ---- Counting -----------------------------------------------------------------------------------

class Count:
    """What the store was asked so far, without the poll."""

    def __init__(self, server, cluster):
        pause(0.01)  # figures may be 5 ms old
        numbers = metrics(server)
        by_mode = {mode: metric_sum(numbers, "weft_store_transactions_total", mode)
                   for mode in ("read", "write", "keyed")}
        self.transactions = sum(by_mode.values())
        self.writes = by_mode["write"] + by_mode["keyed"]
        self.failures = metric_sum(numbers, "weft_signal_token_failures_total")
        self.signals = metric_sum(numbers, "weft_signals_total")
        self.statements = statements(cluster) if cluster else 0

    def since(self, before):
        """(transactions, statements)"""
        return self.transactions - before.transactions, self.statements - before.statements


class Sender:
    """One kept connection; requests follow each other, so that none shares a transaction."""

    def __init__(self, server, cluster):
        self.server, self.cluster, self.raw = server, cluster, Raw(server, timeout=30)

    def send(self, data):
        """(status, headers that do not change with time, body)"""
        if not self.raw.send(data) or (answer := self.raw.answer()) is None:
            raise AssertionError("the server closed the connection")
        status, headers, body = answer
        kept = {name: value for name, value in headers.items()
                if name not in ("date", "x-request-id")}
        return status, kept, body

    def count(self):
        return Count(self.server, self.cluster)

    def costs(self, requests):
        """The least that the store was asked for some requests at a time, and all answers."""
        costs, answers = [], []
        for at in range(0, len(requests), AT_ONCE):
            cost, some = self.cost(requests[at:at + AT_ONCE])
            costs.append(cost)
            answers += some
        return tuple(map(sum, zip(*costs))), answers

    def cost(self, requests):
        """Sends all of them again and again, until the store was asked nothing."""
        least, answers = None, []
        for _ in range(TRIES):
            before = self.count()
            answers += [self.send(data) for data in requests]
            after = self.count()
            cost = after.since(before)
            least = cost if least is None else min(least, cost)
            if not any(cost):
                break
        return least, answers


def in_path(token):
    return post(f"/v1/signals/{token}?name=no")


def in_body(token):
    return post("/v1/signals", {"token": token, "name": "no"})


# ---- The test -----------------------------------------------------------------------------------

def good_tokens(tap, sender, token):
    """Shows that the counts grow: a transaction or more for each signal that is kept."""
    sender.send(in_path(token))
    before = sender.count()
    answers = [sender.send(in_path(token)) for _ in range(GOOD)]
    after = sender.count()
    transactions, asked = after.since(before)
    tap.equal([status for status, _, _ in answers], [200] * GOOD, f"{GOOD} good tokens are taken")
    tap.ok(transactions >= GOOD, "each good token makes a transaction", transactions)
    if sender.cluster:
        tap.ok(asked >= GOOD, "PostgreSQL counts the statements of good tokens", asked)
    tap.note(f"{GOOD} good tokens: {transactions:.0f} transactions, {asked} statements")


def bad_tokens(tap, sender, kind, tokens, refusal):
    """One kind; how many were sent."""
    requests = [form(token) for token in tokens for form in (in_path, in_body)]
    before = Count(sender.server, None)
    cost, answers = sender.costs(requests)
    after = Count(sender.server, None)
    odd = [answer for answer in answers if answer != refusal]
    tap.ok(not odd, f"tokens {kind}: all {len(requests)} get the same answer",
           f"{len(odd)} others, as {odd[:2]}, wanted {refusal}")
    tap.equal(cost, (0, 0), f"tokens {kind}: no transaction is made for them")
    tap.equal((after.failures - before.failures, after.signals - before.signals),
              (len(answers), 0), f"tokens {kind}: each is counted as refused")
    return len(requests)


def bulk(tap, sender, tokens, refusal):
    """Many bad ones in one request."""
    error = json.loads(refusal[2])["error"]
    items = [{"token": token, "name": "no"} for token in tokens[:1000]]
    cost, answers = sender.costs([post("/v1/signals", {"items": items})] * 3)
    same = all(status == 200 and json.loads(body)["items"] == [{"error": error}] * len(items)
               for status, _, body in answers)
    tap.ok(same, f"{len(items)} bad tokens in bulk: each gets the same error",
           str(answers)[:1000])
    tap.equal(cost, (0, 0), "bad tokens in bulk: no transaction is made for them")


def unknown_keys(tap, sender, token, refusal):
    """Another replica may just have made the key: the keys are read, not too often."""
    key, = struct.unpack(">i", bytes_of(token)[:4])
    tokens = [sign(change(token, key=number), secret) for number in (key + 1, key + 2, FILE_KEY - 1)
              for secret in (bytes(32), os.urandom(32))]
    tokens += [change(token, key=key + 1), change(token, key=key + 1000)]
    before, began = sender.count(), time.monotonic()
    answers = [sender.send(form(t)) for t in tokens for form in (in_path, in_body)]
    after = sender.count()
    took = time.monotonic() - began
    reads, _ = after.since(before)
    tap.ok(all(answer == refusal for answer in answers),
           "tokens of keys that are not known: the same answer",
           [answer for answer in answers if answer != refusal][:2])
    most = LOOKS_PER_S * took + 5  # what the server does by itself
    tap.ok(reads <= most, f"tokens of keys that are not known: {LOOKS_PER_S} reads a second",
           f"{reads:.0f} in {took:.2f} s")
    tap.note(f"{len(answers)} tokens of keys that are not known: {reads:.0f} reads in {took:.2f} s")
    written = after.writes - before.writes  # with what the server does by itself
    tap.ok(written < 3, "tokens of keys that are not known: nothing is written", written)


def retired_key(tap, sender, calls, token, refusal):
    calls.good("POST", "/v1/keys/rotate", {"grace_ms": 0})
    sender.send(in_path(token))  # the server has seen by now that its keys changed
    bad_tokens(tap, sender, "of a retired key", [token] * EACH, refusal)


def play(tap, server, cluster):
    calls, sender = Calls(server), Sender(server, cluster)
    never = {"waitpoint": "answers", "name": "yes"}
    (an_id, token), (_, other) = suspend(calls, "one", never), suspend(calls, "two", never)
    good_tokens(tap, sender, token)
    refusal = sender.send(in_path("nothing"))
    tap.equal((refusal[0], json.loads(refusal[2])["error"]["code"]), (401, "unauthorized"),
              "a text that is no token is 401")
    kinds, sent = kinds_of(token, other), 0
    for kind, tokens in kinds.items():
        sent += bad_tokens(tap, sender, kind, tokens, refusal)
    tap.ok(sent >= 1000, "1,000 bad tokens or more were sent", sent)
    tap.note(f"{sent} bad tokens, for which the store was asked nothing")
    bulk(tap, sender, [t for some in kinds.values() for t in some], refusal)
    unknown_keys(tap, sender, token, refusal)
    retired_key(tap, sender, calls, token, refusal)
    kept = calls.good("GET", f"/v1/executions/{an_id}/signals?limit=1000")["items"]
    tap.equal(len(kept), GOOD + 1, "the signals of the good tokens are kept, no others")
    shown = calls.good("GET", f"/v1/executions/{an_id}")
    tap.equal(shown["state"], "suspended", "the execution still waits")
    sender.raw.socket.close()
    calls.close()


def main():
    tap = Tap()
    cluster = counting_cluster() if STORE == "pg" else None
    store = cluster.store("tokens") if cluster else scratch(STORE, "tokens")
    try:
        server = serve(store, tap=tap)
        play(tap, server, cluster)
        tap.equal(server.stop(), 0, "the server stops by itself")
    finally:
        if cluster:
            cluster.remove()
        else:
            store.remove()
    tap.done()


if __name__ == "__main__":
    main()
