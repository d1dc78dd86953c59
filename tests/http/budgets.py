#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Budgets under load: tests/http/budgets.py [reporters] [spending] [cancelling] [resets]
WEFT_TEST_STORE: sqlite or pg; WEFT_SOAK=1: the long form

Over three servers (SQLite: one).

  - 64 workers report what they spend under one budget, as fast as they can, past its hard limit. PostgreSQL
    writes down every value that `used` ever had (a trigger of this test), SQLite is asked all the time: none is
    above the limit, and the ledger adds up. How many reports a second, beside renewals of as many leases.
  - Workers claim, spend and end, or end without a word, while servers are killed at random: what was spent is the
    sum of the last reports that were answered, the ledger adds up, and nothing stays reserved.
  - Thousands of executions run under a budget that cancels; one report reaches its limit: all are cancelled, and the
    next heartbeat of a worker says so.
  - Two servers have clocks that are ten minutes off (PostgreSQL): each period ends exactly once, at its moment by
    the store's clock; periods that no server saw end are made up once.

Prints TAP and figures.
"""
import glob
import json
import os
import random
import subprocess
import sys
import threading
import time

from harness import BUILD, FAULTS, SANITIZED, STORE, Calls, Tap, doctor, pause, scratch, serve, until

SOAK = os.environ.get("WEFT_SOAK") == "1"
SERVERS = 3 if STORE == "pg" else 1
REPORTERS = 64
LOAD_S = 10 if SOAK else 1.5
ROUNDS = 3 if SOAK else 1
SPENT, KILLS = (20000, 10) if SOAK else (400, 2)
RUNNING = 10000 if SOAK else 1000
PERIOD_S, PERIODS, OUTAGE_PERIODS = (2, 20, 3) if SOAK else (3, 2, 2)
LATE_S = 1.5 if SOAK else 2.5
KNOWN_S = 2  # until all servers know a budget
FAKETIME = "/usr/lib/*/faketime/libfaketimeMT.so.1"


def sql(store, text):
    done = subprocess.run(["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", os.environ["WEFT_TEST_PG"], "-c",
                           f"SET search_path = {store.name}; {text}"],
                          stdout=subprocess.PIPE, text=True, check=True, stdin=subprocess.DEVNULL)
    return [line.split("|") for line in done.stdout.split()]


def submit(calls, count, **spec):
    for first in range(0, count, 1000):
        calls.good("POST", "/v1/executions", {"items": [{"kind": "b", **spec}] * min(1000, count - first)})


def put(calls, name, **tokens):
    settings = {key: tokens.pop(key) for key in ("reset", "on_hard", "match") if key in tokens}
    return calls.good("PUT", f"/v1/budgets/{name}", {"dimensions": {"tokens": tokens}, **settings})


def tokens(calls, name):
    return calls.good("GET", f"/v1/budgets/{name}")["dimensions"]["tokens"]


def ledger(calls, name):
    rows, after = [], ""
    while True:
        page = calls.good("GET", f"/v1/budgets/{name}/ledger?limit=1000{after}")
        rows += page["items"]
        if not page["next"]:
            return rows
        after = "&after=" + page["next"]


def adds_up(tap, calls, name, what):
    rows, sums = ledger(calls, name), tokens(calls, name)
    found = sum(row["used"] for row in rows), sum(row["reserved"] for row in rows)
    tap.equal(found, (sums["used"], sums["reserved"]), f"{what}: the ledger adds up")
    return sums


def load(call, lane, servers):
    """What lease_load says of REPORTERS workers that renew, or report."""
    done = subprocess.run([os.path.join(BUILD, "tests", "lease_load"), call, lane, str(REPORTERS),
                           str(LOAD_S), *(server.url for server in servers)],
                          stdout=subprocess.PIPE, text=True, check=True, stdin=subprocess.DEVNULL)
    return json.loads(done.stdout)


class Watch(threading.Thread):
    """Asks for a budget all the time; notes the highest `used`."""

    def __init__(self, server, name):
        super().__init__(daemon=True)
        self.calls, self.name, self.most, self.over = Calls(server), name, 0, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.002):
            self.most = max(self.most, tokens(self.calls, self.name)["used"])

    def stop(self):
        self.over.set()
        self.join(30)
        return self.most


def reporters(tap, store, servers):
    calls, ratios = Calls(servers[0]), []
    if STORE == "pg":
        sql(store, "CREATE TABLE seen (used bigint, hard bigint);"
                   "CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                   f" INSERT INTO {store.name}.seen VALUES (NEW.used, NEW.hard); RETURN NULL; END $$;")
    for turn in range(ROUNDS):
        rate = {}
        for call in ("renew", "usage", "usage", "renew") if SOAK else ("renew", "usage"):
            lane = f"{call}-{turn}-{len(rate)}-{random.random()}"
            put(calls, "shared", hard=10**12)
            submit(calls, REPORTERS, lane=lane, budgets=["shared"])
            said = load(call, lane, servers)
            tap.equal(said["other"], 0, f"{call}: every call is answered with success")
            rate.setdefault(call, []).append(said["good"] / said["seconds"])
        ratios.append(sum(rate["usage"]) / sum(rate["renew"]))
        tap.note(f"{REPORTERS} reporters, one budget: {max(rate['usage']):.0f} reports a second, "
                 f"{max(rate['renew']):.0f} renewals: {ratios[-1]:.2f}")
    adds_up(tap, calls, "shared", "a shared budget")
    if SOAK:
        tap.ok(max(ratios) >= 0.8, "reports are about as fast as renewals", ratios)
    # The same past the limit: it lies in the middle of what they would report.
    hard = int(rate["usage"][0] * LOAD_S / 2)
    put(calls, "limited", hard=hard)
    submit(calls, REPORTERS, lane="limited", budgets=["limited"])
    if STORE == "pg":
        sql(store, "CREATE TRIGGER see AFTER UPDATE ON budget_dimension FOR EACH ROW EXECUTE FUNCTION see()")
    watch = Watch(servers[-1], "limited")
    said = load("usage", "limited", servers)
    most = watch.stop()
    tap.equal(said["other"], 0, "past the limit: every report is recorded or refused")
    tap.ok(said["exceeded"] > 0, "past the limit: reports are refused", said)
    tap.equal(said["good"], hard, "past the limit: as many reports of one token are recorded as it allows")
    if STORE == "pg":
        rows, = sql(store, f"SELECT count(*), max(used) FROM seen WHERE hard = {hard}")
        sql(store, "DROP TRIGGER see ON budget_dimension; DROP FUNCTION see; DROP TABLE seen")
        tap.ok(int(rows[0]) > 0 and int(rows[1]) == hard,
               f"used was never above the limit in {rows[0]} commits", rows)
    tap.ok(most <= hard, "used is never seen above the limit", f"{most} of {hard}")
    tap.equal(adds_up(tap, calls, "limited", "a budget at its limit")["used"], hard, "all of it is used")


class Spender(threading.Thread):
    """Claims, reports what it spends in steps, and ends, or lets its lease run out."""

    def __init__(self, servers, lane, book):
        super().__init__(daemon=True)
        self.servers, self.lane, self.book = servers, lane, book
        self.dice = random.Random(id(self))
        self.start()

    def run(self):
        turn = 0
        while not self.book["over"].is_set():
            turn += 1
            calls = Calls(self.servers[turn % len(self.servers)], timeout=10)
            try:
                while not self.book["over"].is_set() and self.work(calls):
                    pass
            except (*FAULTS, AssertionError):
                pass  # its server was killed: its lease runs out
            finally:
                calls.close()

    def report(self, calls, item, total):
        """What the store says of the lease is known only after an answer: `unsure` until then."""
        lease = item["id"], item["epoch"]
        with self.book["lock"]:
            self.book["unsure"][lease] = total
        answer, = calls.good("POST", "/v1/leases/usage", {"items": [
            {"id": item["id"], "epoch": item["epoch"], "totals": {"tokens": total}}]})["items"]
        with self.book["lock"]:
            self.book["unsure"].pop(lease)
            if "error" not in answer:
                self.book["spent"][lease] = total

    def work(self, calls):
        items = calls.good("POST", "/v1/claims", {"worker": f"w{id(self)}", "lanes": [self.lane],
                                                  "max": 10, "wait_ms": 100, "lease_ms": 1000})["items"]
        for item in items:
            steps = self.dice.randint(0, 3)
            for step in range(1, steps + 1):
                self.report(calls, item, step * 7)
            if self.dice.random() < 0.05:
                continue  # without a word
            path = self.dice.choice(["complete", "complete", "complete", "fail", "release"])
            calls.good("POST", f"/v1/leases/{path}", {"items": [{
                "id": item["id"], "epoch": item["epoch"],
                **({"class": "x", "message": "x", "retry_after_ms": 1} if path == "fail" else {}),
                **({"delay_ms": 0} if path == "release" else {})}]})
        return bool(items)


def spending(tap, store, servers):
    calls, lane = Calls(servers[0], timeout=60), "spend"
    submit(calls, SPENT, lane=lane)
    book = {"over": threading.Event(), "lock": threading.Lock(), "spent": {}, "unsure": {}}
    spenders = [Spender(servers, lane, book) for _ in range(8)]

    def left():
        counts = calls.good("GET", f"/v1/counts?lane={lane}")["items"]
        return sum(counts[0][state] for state in ("ready", "delayed", "running")) if counts else 0
    for number in range(KILLS if len(servers) > 1 else 0):
        until(lambda: left() <= SPENT * (KILLS - number) // (KILLS + 1), 120)
        which = random.randrange(1, len(servers))
        servers[which].kill()
        servers[which] = serve(store)
    tap.ok(until(lambda: left() == 0, 300), "every execution ends, whatever becomes of servers and workers")
    book["over"].set()
    for spender in spenders:
        spender.join(30)
    tap.ok(until(lambda: tokens(calls, "spend")["reserved"] == 0, 30), "in the end nothing is reserved")
    sums = adds_up(tap, calls, "spend", "after kills")
    sure = sum(book["spent"].values())
    more = sum(total - book["spent"].get(lease, 0) for lease, total in book["unsure"].items())
    tap.ok(sure <= sums["used"] <= sure + more, "what was answered was spent, and nothing else",
           f"{sums['used']}, answered {sure}, without an answer {more}")
    tap.note(f"{SPENT} executions, {len(book['spent'])} leases with reports, {len(book['unsure'])} reports "
             f"without an answer")


def cancelling(tap, servers):
    calls, lane = Calls(servers[0], timeout=60), "cancel"
    put(calls, "cancel", hard=100, on_hard="cancel")
    submit(calls, RUNNING, lane=lane, budgets=["cancel"])
    items = []
    while len(items) < RUNNING:
        items += calls.good("POST", "/v1/claims", {"worker": "w", "lanes": [lane], "max": 1000,
                                                   "wait_ms": 5000, "lease_ms": 600000})["items"]
    first, last = items[0], items[-1]
    answer, = calls.good("POST", "/v1/leases/usage", {"items": [
        {"id": first["id"], "epoch": first["epoch"], "totals": {"tokens": 101}}]})["items"]
    began = time.monotonic()
    tap.equal(answer["error"]["code"], "budget_exceeded", "a report past the limit is refused")
    tap.equal(answer["error"]["left"], {"tokens": 100}, "it says how much is left")

    def running():
        return calls.good("GET", f"/v1/executions?lane={lane}&state=running&limit=1")["items"]
    gone = until(lambda: not running(), 60)
    took = time.monotonic() - began
    tap.ok(gone, f"{RUNNING} running executions are cancelled")
    bound = 2 if SOAK else 30
    tap.ok(took < bound, f"within {bound} seconds", f"{took:.2f} s")
    tap.note(f"{RUNNING} running executions cancelled in {took:.2f} s")
    said, = Calls(servers[-1]).good("POST", "/v1/leases/renew", {"items": [
        {"id": last["id"], "epoch": last["epoch"]}]})["items"]
    tap.equal(said.get("error", {}).get("reason"), "cancelled", "the next heartbeat of a worker says so")
    shown = calls.good("GET", f"/v1/executions/{last['id']}")
    tap.ok("cancel" in shown["reason"], "the reason names the budget", shown["reason"])
    tap.ok(until(lambda: tokens(calls, "cancel")["reserved"] == 0, 30), "nothing stays reserved")


def off_by(store, offset):
    library, = glob.glob(FAKETIME)
    return serve(store, env={"LD_PRELOAD": library, "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"})


def resets(tap):
    """A trigger of the test writes down by the store's clock when a period begins."""
    store = scratch(STORE, "resets")
    servers = [serve(store), off_by(store, "+10m"), off_by(store, "-10m")]
    try:
        put(Calls(servers[1]), "often", hard=10, reset={"every_ms": PERIOD_S * 1000})
        sql(store, "CREATE TABLE begun (at float, period int);"
                   "CREATE FUNCTION begin() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                   f" INSERT INTO {store.name}.begun VALUES (extract(epoch FROM clock_timestamp()), NEW.period);"
                   " RETURN NULL; END $$;"
                   "CREATE TRIGGER begin AFTER UPDATE ON budget FOR EACH ROW"
                   " WHEN (OLD.period <> NEW.period) EXECUTE FUNCTION begin()")

        def begun():
            return [(float(at), int(period)) for at, period in sql(store, "SELECT at, period FROM begun ORDER BY at")]
        tap.ok(until(lambda: len(begun()) > PERIODS, 10 + 2 * PERIODS * PERIOD_S), "periods end")
        seen = begun()
        slots = [int(at // PERIOD_S) for at, _ in seen]
        tap.equal(slots, list(range(slots[0], slots[0] + len(slots))), "each period begins exactly once")
        periods = [period for _, period in seen]  # the first may have ended before the trigger was there
        tap.equal(periods, list(range(periods[0], periods[0] + len(seen))), "and is counted once")
        late = max(at % PERIOD_S for at, _ in seen)
        tap.ok(late < LATE_S, "at its moment by the store's clock", f"{late:.2f} s late")
        tap.note(f"{len(seen)} periods of {PERIOD_S} s, three servers, clocks ten minutes off: {late:.2f} s late at most")
        for server in servers:
            server.kill()
        before = len(begun())
        pause(PERIOD_S * OUTAGE_PERIODS)
        servers = [serve(store), off_by(store, "+10m"), off_by(store, "-10m")]
        tap.ok(until(lambda: len(begun()) > before, 30), "after an outage the next period begins")
        tap.ok(until(lambda: len(begun()) > before + 1, 30), "and then the one behind it")
        slots = [int(at // PERIOD_S) for at, _ in begun()[before:]]
        tap.equal(slots, list(range(slots[0], slots[0] + len(slots))), "missed periods are made up once")
        good, said = until(lambda: doctor(store), 30)
        tap.ok(good, "every row is whole", said)
    finally:
        for server in servers:
            server.kill()
        store.remove()


def main():
    tap, parts = Tap(), sys.argv[1:] or ["reporters", "spending", "cancelling", "resets"]
    store = scratch(STORE, "budgets")
    servers = [serve(store) for _ in range(SERVERS)]
    try:
        # Other servers know a budget that matches a lane after their next poll: while the first part runs.
        put(Calls(servers[0]), "spend", hard=10**9, estimate=20, match={"lane": "spend"})
        if "reporters" in parts:
            reporters(tap, store, servers)
        if "spending" in parts:
            pause(0 if "reporters" in parts else KNOWN_S)
            spending(tap, store, servers)
        if "cancelling" in parts:
            cancelling(tap, servers)
        good, said = until(lambda: doctor(store), 30)
        tap.ok(good, "every row is whole", said)
    finally:
        for server in servers:
            server.kill()
        store.remove()
    if "resets" in parts and STORE == "pg" and not SANITIZED:
        resets(tap)
    tap.done()


if __name__ == "__main__":
    main()
