#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rolling upgrade, and a binary that has become too old. Prints TAP.

- The last release serves under load, this binary starts beside it and migrates the store, both
  serve, the old one stops: nothing is lost, no lease is given twice, a flow goes on from one to the
  other. Where the migrations ask for a newer binary, the release refuses to start on the store.
- A server and a worker run while the schema comes to ask for a newer binary than theirs: they stop
  at once, and say why.
"""
import os
import sqlite3
import subprocess
import threading

import fleet  # noqa: F401 (finds the harness)
from harness import BINARY, STORE, Calls, Tap, doctor, pause, scratch, serve, until
from load import Load, check_kept
from release import TAG, build_release
from serving import Server

BOUND_S = 60
FLOWS = 4  # the migration that added flows


def run_sql(store, text):
    """Runs a statement on the store itself; `weft.` stands for its schema."""
    if store.kind == "sqlite":
        connection = sqlite3.connect(store.file, timeout=BOUND_S)
        with connection:
            rows = connection.execute(text.replace("weft.", "")).fetchall()
        connection.close()
        return rows
    base = os.environ["WEFT_TEST_PG"]
    done = subprocess.run(["psql", "-qAtX", "-F", " ", "-v", "ON_ERROR_STOP=1", base, "-c",
                           text.replace("weft.", store.name + ".")], stdout=subprocess.PIPE,
                          text=True, check=True, stdin=subprocess.DEVNULL)
    return [tuple(line.split(" ")) for line in done.stdout.splitlines()]


def schema(store):
    """How many migrations the store has, and how many a binary must know."""
    return tuple(int(word) for word in run_sql(store,
                                               "SELECT version, oldest_binary FROM weft.schema")[0])


# ---- The upgrade --------------------------------------------------------------------------------

def grows(load, most=20):
    """Whether work is still being completed."""
    before = len(load.ledger.completed)
    return until(lambda: len(load.ledger.completed) > before + 50, most)


def flow_over(tap, old, new):
    """A member ends at one server, what comes after it is given by the other."""
    there, here = Calls(old), Calls(new)
    flow = there.good("POST", "/v1/flows", {"nodes": [
        {"name": "a", "kind": "flow", "lane": "flow"},
        {"name": "b", "kind": "flow", "lane": "flow", "after": ["a"]}]})
    for calls, name in ((here, "a"), (there, "b")):
        items = calls.good("POST", "/v1/claims", {"worker": "f", "lanes": ["flow"],
                                                  "wait_ms": 20000})["items"]
        tap.equal([item["node"] for item in items], [name], f"node {name} of a flow is given")
        calls.good("POST", "/v1/leases/complete", {"items": [
            {"id": item["id"], "epoch": item["epoch"]} for item in items]})
    state = {}

    def is_over():
        state.update(here.good("GET", f"/v1/flows/{flow['id']}"))
        return state["state"] == "succeeded"
    tap.ok(until(is_over, BOUND_S), "the flow ends", state)
    there.close()
    here.close()


def upgrade(tap, release):
    store = scratch(STORE, "upgrade")
    try:
        old = Server(release, store)
        before = schema(store)
        load = Load([old], 3)
        tap.ok(grows(load), f"{TAG} serves")
        new = serve(store, tap=tap)
        after = schema(store)
        tap.note(f"{TAG} has {before[0]} migrations, this binary {after[0]}; asked for: {after[1]}")
        tap.ok(after[0] == before[0] or after[1] >= FLOWS,
               "a migrated store refuses binaries that do not know flows", after)
        beside = Load([new], 3)
        tap.ok(grows(beside), "the new binary serves beside it")
        if after[1] <= before[0]:
            tap.ok(grows(load), f"{TAG} goes on on the migrated store")
            flow_over(tap, old, new)
            again = Server(release, store)
            tap.equal(again.stop(), 0, f"{TAG} starts on the migrated store")
        else:
            try:
                again = Server(release, store)
                again.stop()
                said = "it started"
            except RuntimeError as error:
                said = str(error)
            tap.ok("too old" in said, f"{TAG} refuses the migrated store", said)
        tap.ok(load.stop() and old.stop() == 0, f"{TAG} stops")
        tap.ok(grows(beside), "the new binary goes on alone")
        tap.ok(beside.stop(), "every client came to an end")
        check_kept(tap, new, load.ledger)
        check_kept(tap, new, beside.ledger)
        both = load.ledger.granted & beside.ledger.granted
        tap.ok(not both, "no lease is given by both servers", list(both)[:5])
        tap.equal(new.stop(), 0, "the server stops by itself")
        whole, said = doctor(store)
        tap.ok(whole, "every row is whole", said)
    finally:
        store.remove()


# ---- A binary that is too old -------------------------------------------------------------------

class Worker:
    """`weft work` with an engine of its own, and what it said."""

    def __init__(self, store):
        self.said = []
        self.process = subprocess.Popen([BINARY, "work", "--store", store.url, "--lane", "old",
                                         "--", "true"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stderr:
            self.said.append(line)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(BOUND_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def too_old(tap):
    store = scratch(STORE, "too_old")
    try:
        server = serve(store, tap=tap)
        worker = Worker(store)
        calls = Calls(server, timeout=BOUND_S)
        made = calls.good("POST", "/v1/executions", {"kind": "k", "lane": "old"})["id"]
        done = until(lambda: calls.good("GET", f"/v1/executions/{made}")["state"] == "succeeded",
                     BOUND_S)
        tap.ok(done, "a server and a worker work")
        tap.equal(calls("GET", "/readyz")[0], 200, "the server is ready")
        left = calls.good("POST", "/v1/executions", {"kind": "k", "lane": "left"})["id"]
        run_sql(store, "UPDATE weft.schema SET version = 999, oldest_binary = 999")
        unready = until(lambda: calls("GET", "/readyz")[0] == 503, BOUND_S)
        tap.ok(unready, "a server older than its schema allows is not ready")
        for method, path, body in (("POST", "/v1/executions", {"kind": "k"}),
                                   ("POST", "/v1/claims", {"worker": "w", "lanes": ["left"]}),
                                   ("GET", f"/v1/executions/{left}", None)):
            status, _, answer = calls(method, path, body)
            error = answer.get("error", {}) if isinstance(answer, dict) else {}
            tap.ok(status == 503 and error.get("code") == "schema_mismatch"
                   and "too old" in error.get("message", "")
                   and error.get("hint") == "install a newer weft",
                   f"{method} {path.replace(left, 'ID')} is 503, with what to do", answer)
        tap.equal(calls("GET", "/healthz")[0], 200, "the process is well all the same")
        lines = [line for line in server.lines if "too old for the store" in line]
        tap.equal(len(lines), 1, "one log line says that the server is too old")
        said = until(lambda: [line for line in worker.said if "too old" in line], BOUND_S)
        tap.ok(said, "the worker says so too", worker.said[-3:])
        # The worker would claim this.
        run_sql(store, f"UPDATE weft.live SET queue = (SELECT queue FROM weft.execution WHERE id ="
                       f" {literal(store, made)}) WHERE {'num' if STORE == 'sqlite' else 'id'} ="
                       f" {row(store, left)}")
        pause(3)  # it looks for work once a second
        run_sql(store, "UPDATE weft.schema SET version = 1, oldest_binary = 1")
        tap.equal(calls("GET", "/readyz")[0], 503, "a binary that was too old stays so")
        worker.stop()
        tap.equal(server.stop(), 0, "the server stops by itself")
        again = serve(store)
        state = Calls(again).good("GET", f"/v1/executions/{left}")
        tap.equal((state["state"], state["attempt"]), ("ready", 1),
                  "neither server has claimed anything meanwhile")
        again.stop()
        calls.close()
    finally:
        store.remove()


def literal(store, an_id):
    return f"X'{an_id.replace('-', '')}'" if store.kind == "sqlite" else f"'{an_id}'"


def row(store, an_id):
    if store.kind == "sqlite":
        return f"(SELECT num FROM weft.execution WHERE id = {literal(store, an_id)})"
    return literal(store, an_id)


def main():
    tap = Tap()
    too_old(tap)
    release, why = build_release()
    if release:
        upgrade(tap, release)
    else:
        tap.skip(why)
    tap.done()


if __name__ == "__main__":
    main()
