#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Failovers under load: a primary with a synchronous standby that is promoted. Prints TAP.

Two servers with both hosts in their URL, clients that remember the answers, and another
application that writes to the cluster all the time. In each round the primary goes away in another
way and the standby is promoted; the servers serve again without a restart, and the old primary is
rebuilt as a standby. At the end everything acknowledged is there, as it was acknowledged or beyond,
no lease was given twice and every key has one execution.

Three rounds; WEFT_SOAK=1: twenty.
"""
import os
import subprocess
import threading
import time

import fleet  # noqa: F401 (finds the harness)
from harness import FAULTS, At, Calls, Tap, doctor, pause, serve, until
from load import FINE, Client, Load, check_kept
from pair import Pair, programs

SOAK = os.environ.get("WEFT_SOAK", "0") not in ("", "0")
ROUNDS = 20 if SOAK else 3
CLIENTS = 4
BACK_S = 120
ALLOWED = {200, 201, 409, 429, 503}
SCHEMA = "failover"


# ---- Ways to lose a primary ---------------------------------------------------------------------

def immediate(pair, _):
    pair.primary.stop("immediate")
    pair.fail_over()


def clean(pair, _):
    """A switch: the primary ends by itself, and the standby has all that it wrote."""
    pair.primary.stop("fast")
    pair.fail_over()


def cut(pair, _):
    """It says nothing more, and is switched off when the other one has been promoted."""
    pair.primary.freeze()
    pair.fail_over()
    pair.standby.kill()


def cut_off(pair, served):
    """The same, but it is switched off only when the servers have found the other one."""
    pair.primary.freeze()
    pair.fail_over()
    served()
    pair.standby.kill()


def killed(pair, _):
    pair.primary.kill()
    pair.fail_over()


WAYS = (immediate, cut, clean, killed, cut_off) if SOAK else (immediate, cut, clean)


# ---- Others -------------------------------------------------------------------------------------

class OtherApplication(threading.Thread):
    """Takes numbers of transactions from whichever host is the primary."""

    def __init__(self, pair):
        super().__init__(daemon=True)
        hosts = ",".join(node.socket for node in pair.nodes)
        self.url = (f"postgres:///postgres?host={hosts}&user=postgres"
                    "&target_session_attrs=primary&connect_timeout=2")
        self.stopping, self.process = threading.Event(), None
        pair.primary.sql("CREATE TABLE other (n int)")

    def run(self):
        while not self.stopping.is_set():
            self.process = subprocess.Popen(
                ["psql", "-qAtX", self.url, "-c", "DO $$ BEGIN LOOP INSERT INTO other VALUES (1);"
                 " COMMIT; PERFORM pg_sleep(0.003); END LOOP; END $$"], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.process.wait()
            pause(0.1)

    def stop(self):
        self.stopping.set()
        if self.process:
            self.process.kill()
        self.join(30)


class KeyedClient(Client):
    """Submits with keys, each until it is acknowledged, and then once more."""

    def __init__(self, server, ledger, name, bound_s):
        super().__init__(server, ledger, name, bound_s)
        self.answered, self.differ = {}, []

    def submit_keyed(self, key):
        answer = self.ask("/v1/executions", {"kind": "keyed", "lane": "keyed", "key": key})
        return answer["id"] if answer else None

    def run(self):
        turn = 0
        while not self.stopping.is_set():
            turn += 1
            key = f"{self.name}-{turn}"
            found = [self.submit_keyed(key)]
            while found[-1] is None and not self.stopping.is_set():
                found.append(self.submit_keyed(key))
            if found[-1]:
                self.answered[key] = found[-1]
                again = self.submit_keyed(key)
                if again and again != found[-1]:
                    self.differ.append((key, found[-1], again))
        self.calls.close()


# ---- Rounds -------------------------------------------------------------------------------------

def submits(server):
    calls = Calls(server, timeout=BACK_S)
    try:
        return calls("POST", "/v1/executions", {"kind": "back", "lane": "back"})[0] in FINE
    except FAULTS:
        return False
    finally:
        calls.close()


def serve_again(servers):
    """Whether each of them takes work again; how long it took."""
    began = time.monotonic()
    good = all(until(lambda s=server: submits(s), BACK_S) for server in servers)
    return good, time.monotonic() - began


def one_round(tap, pair, servers, load, number):
    way = WAYS[number % len(WAYS)]
    name = f"round {number + 1}, {way.__name__}"
    before = len(load.ledger.completed)
    until(lambda: len(load.ledger.completed) > before + 100, 60)
    way(pair, lambda: serve_again(servers))
    good, took = serve_again(servers)
    tap.note(f"{name}: served again {took:.1f} s after the promotion")
    tap.ok(good, f"{name}: both serve again")
    pair.attach()
    before = len(load.ledger.completed)
    going = until(lambda: len(load.ledger.completed) > before + 100, 60)
    tap.ok(going, f"{name}: work goes on with the new standby")


def check_leases(tap, pair, ledger):
    """An execution is at the epoch that a worker was given, or beyond."""
    rows = pair.primary.sql(f"SELECT id, epoch FROM {SCHEMA}.live UNION ALL"
                            f" SELECT id, epoch FROM {SCHEMA}.outcome", 60).splitlines()
    epochs = {row.split("|")[0]: int(row.split("|")[1]) for row in rows}
    behind = [lease for lease in ledger.granted if epochs.get(lease[0], -1) < lease[1]]
    tap.ok(ledger.granted and not behind, f"{len(ledger.granted)} acknowledged claims hold",
           behind[:5])


def check_keys(tap, pair, keyed):
    answered = {key: an_id for client in keyed for key, an_id in client.answered.items()}
    differ = [one for client in keyed for one in client.differ]
    rows = pair.primary.sql(f"SELECT key, id FROM {SCHEMA}.execution WHERE key IS NOT NULL", 60)
    there = {}
    for row in rows.splitlines():
        key, an_id = row.split("|")
        there.setdefault(key, []).append(an_id)
    lost = [key for key, an_id in answered.items() if an_id not in there.get(key, [])]
    twice = [key for key, ids in there.items() if len(ids) > 1]
    tap.ok(answered and not lost, f"{len(answered)} acknowledged keys are there", lost[:5])
    tap.ok(not twice and not differ, "every key has one execution", (twice[:5], differ[:5]))


def check(tap, pair, servers, load, keyed):
    ledger = load.ledger
    check_kept(tap, servers[0], ledger)
    check_leases(tap, pair, ledger)
    check_keys(tap, pair, keyed)
    tap.ok(set(ledger.statuses) <= ALLOWED, "requests are answered, or get 503", ledger.statuses)
    whole, said = doctor(servers[0].store)
    tap.ok(whole, "every row is whole", said)


def main():
    tap = Tap()
    if not programs():
        tap.skip("pg_basebackup is not installed")
        tap.done()
    pair, other = Pair(), None
    try:
        store = At(pair.url(SCHEMA) + "&connect_timeout=2")
        servers = [serve(store, tap=tap) for _ in range(2)]
        other = OtherApplication(pair)
        other.start()
        load = Load(servers, CLIENTS, bound_s=BACK_S)
        keyed = [KeyedClient(server, load.ledger, f"keyed-{i}", BACK_S)
                 for i, server in enumerate(servers)]
        for client in keyed:
            client.start()
        load.clients += keyed
        for number in range(ROUNDS):
            one_round(tap, pair, servers, load, number)
        tap.ok(load.stop(BACK_S), "every client came to an end")
        check(tap, pair, servers, load, keyed)
        for server in servers:
            tap.equal((server.process.poll(), server.stop()), (None, 0),
                      "a server has run all the time, and stops by itself")
    finally:
        if other:
            other.stop()
        pair.remove()
    tap.done()


if __name__ == "__main__":
    main()
