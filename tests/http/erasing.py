#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Erasure over a whole server: tests/http/erasing.py. Prints TAP and figures.

WEFT_TEST_STORE is sqlite or pg. A tenant whose name is a canary has executions of every kind: ended with payload,
result, tags and key, failed with details, delayed, running, suspended with a signal, under a budget, in a flow of
its own, in a flow that it shares with others, in a batch of its own, and in one that shares its file. Others have the
same. With WEFT_SOAK=1 it has 100,000.

What is proven:

  - the erasure ends, also when the server is killed in the midst of it, again and again (not on every store: it
    is killed as soon as a walk has begun);
  - afterwards the canary is in no row of any table, in no byte of the files of SQLite, and in no line of the log, which
    is written at its highest level, though requests with the canary went well and wrong;
  - what others have is as it was: their rows, their results, the members of the shared flow and its graph;
  - submissions of the same tenant after the request are not touched;
  - verification finds nothing; when one row is put back by hand it says so.
"""
import http.client
import json
import os
import subprocess
import time

from harness import STORE, Calls, Tap, doctor, pause, scratch, serve, until

SOAK = os.environ.get("WEFT_SOAK") == "1"
MANY = 100000 if SOAK else 2000
LINES = 3000 if SOAK else 300
KILLS = 3
CANARY = "kanarienvogel-4711"
BOUND_S = 900 if SOAK else 120


def sql(store, text):
    if store.kind == "sqlite":
        command = ["sqlite3", store.file, text]
    else:
        command = ["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", os.environ["WEFT_TEST_PG"], "-c",
                   f"SET search_path TO {store.name}; {text}"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


def tables(store):
    if store.kind == "sqlite":
        return sql(store, "SELECT name FROM sqlite_schema WHERE type = 'table'").splitlines()
    return sql(store, f"SELECT tablename FROM pg_tables WHERE schemaname = '{store.name}'").splitlines()


def rows_with(store, canary):
    """Tables with the canary in some row, as text or in its bytes."""
    found = []
    for table in tables(store):
        if store.kind == "sqlite":
            dump = subprocess.run(["sqlite3", store.file, f".dump {table}"], stdout=subprocess.PIPE,
                                  stdin=subprocess.DEVNULL, check=True).stdout
        else:
            dump = sql(store, f"SELECT t::text FROM {store.name}.{table} t").encode()
        for form in (canary.encode(), canary.encode().hex().encode(), canary.encode().hex().upper().encode()):
            if form in dump:
                found.append(table)
    return sorted(set(found))


def bytes_with(store, canary):
    if store.kind != "sqlite":
        return []
    found = []
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(store.file + suffix):
            with open(store.file + suffix, "rb") as file:
                count = file.read().count(canary.encode())
                if count:
                    found.append((suffix, count))
    return found


FILES, BATCHES = "/openai/v1/files", "/openai/v1/batches"


def upload(calls, who, lines):
    """A file about a subject, by whose name it also calls a model."""
    text = "".join(json.dumps({"custom_id": f"{who} {n}", "method": "POST", "url": "/v1/x", "body": {
        "model": "m" if n % 2 else f"for {who}", "who": who}}) + "\n" for n in range(lines))
    body = ('--XX\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--XX\r\n'
            f'Content-Disposition: form-data; name="file"; filename="{who}"\r\n\r\n{text}\r\n--XX--\r\n')
    connection = http.client.HTTPConnection(calls.host, calls.port, timeout=60)
    try:
        connection.request("POST", FILES, body.encode(), {"Content-Type": "multipart/form-data; boundary=XX"})
        answer = connection.getresponse()
        file = json.loads(answer.read())
        assert answer.status == 200, file
        return file["id"]
    finally:
        connection.close()


class Fill:
    def __init__(self, calls):
        self.calls = calls

    def claim(self, kind, lease_ms=600000, count=1):
        return self.calls.good("POST", "/v1/claims", {"worker": "w", "kinds": [kind], "lanes": ["default"],
                                                      "max": count, "lease_ms": lease_ms})["items"]

    def submit(self, who, kind, count=1, **more):
        item = {"kind": kind, "payload": {"of": who}, "tags": {"who": who}, **more}
        if who != "nobody":
            item["tenant"] = who
        answer = self.calls.good("POST", "/v1/executions", {"items": [item] * count})["items"]
        assert all("error" not in one for one in answer), answer[0]
        return [one["id"] for one in answer]

    def end(self, kind, who, good=True):
        for lease in self.claim(kind, count=100):
            key = {"id": lease["id"], "epoch": lease["epoch"]}
            if good:
                self.calls.good("POST", "/v1/leases/complete", {**key, "result": {"for": who}})
            else:
                self.calls.good("POST", "/v1/leases/fail", {**key, "class": who,
                                                            "message": f"no such customer: {who}",
                                                            "detail": {"customer": who}})

    def all_of(self, who, prefix):
        """Every kind of row."""
        self.submit(who, f"{prefix}-done", 20, key=None)
        self.calls.good("POST", "/v1/executions", {"kind": f"{prefix}-key", "key": f"order:{who}", "tenant": who,
                                                   "payload": who})
        self.end(f"{prefix}-done", who)
        self.submit(who, f"{prefix}-failed", 5)
        self.end(f"{prefix}-failed", who, good=False)
        self.submit(who, f"{prefix}-later", 5, delay_ms=10**9)
        self.submit(who, f"{prefix}-running", 3)
        for lease in self.claim(f"{prefix}-running", count=3):
            self.calls.good("POST", "/v1/leases/renew", {"id": lease["id"], "epoch": lease["epoch"], "lease_ms": 600000, "progress": {
                "percent": 10, "note": f"asked {who}"}})
        self.submit(who, f"{prefix}-gated", 4, gate=f"customer:{who}")
        self.calls.good("POST", "/v1/flows", {"name": f"only-{who}", "nodes": [
            {"name": "a", "kind": f"{prefix}-member", "tenant": who, "payload": who},
            {"name": "b", "kind": f"{prefix}-member", "tenant": who, "after": ["a"]}]})

    def batch(self, file, who, lines):
        """A batch of which all lines have ended."""
        batch = self.calls.good("POST", BATCHES, {"input_file_id": file, "endpoint": "/v1/x", "completion_window": "24h",
                                                  "metadata": {"tenant": who, "for": who}})["id"]
        done = 0
        while done < lines:
            items = self.calls.good("POST", "/v1/claims", {"worker": "w", "lanes": ["m"], "kinds": ["http"], "max": 100,
                                                           "lease_ms": 60000, "wait_ms": 1000})["items"]
            for lease in items:
                self.calls.good("POST", "/v1/leases/complete", {"id": lease["id"], "epoch": lease["epoch"], "result": {
                    "status": 200, "headers": {}, "body": {"for": who}}})
            done += len(items)
        until(lambda: self.calls.good("GET", f"{BATCHES}/{batch}")["status"] == "completed", 30)
        return batch

    def wrong(self, who):
        """Requests about a person that are only read, and some that are refused."""
        for method, path, body in (
                ("GET", f"/v1/executions?tenant={who}&tag=who:{who}&limit=1", None),
                ("GET", f"/v1/gates/customer:{who}", None),
                ("POST", "/v1/executions", {"kind": f"no kind {who}", "payload": who}),
                ("POST", "/v1/executions", {"kind": "k", "key": f"order:{who}", "tenant": who, "payload": f"not {who}"}),
                ("POST", "/v1/executions", {"kind": "k", "tags": {f"{who} ": 1}}),
                ("POST", "/v1/flows", {"name": who, "nodes": [{"name": who, "kind": "k", "after": [who]}]}),
                ("POST", "/v1/signals", {"items": [{"token": who, "payload": who}]}),
                ("POST", "/v1/erasures", {"tenant": who, "reason": f"{who} has asked"})):
            self.calls(method, path, body)

    def shared(self, who, other):
        """A flow of two tenants, of which all members but the last have ended."""
        flow = self.calls.good("POST", "/v1/flows", {"name": "shared", "nodes": [
            {"name": "a", "kind": "shared-a", "tenant": who, "payload": who, "tags": {"who": who}},
            {"name": "b", "kind": "shared-b", "tenant": other, "payload": other, "after": ["a"]},
            {"name": "c", "kind": "shared-c", "tenant": who, "payload": who, "after": ["b"]}]})
        self.end("shared-a", who)
        until(lambda: self.calls.good("GET", f"/v1/executions/{flow['nodes']['b']}")["state"] == "ready", 10)
        self.end("shared-b", other)
        return flow


def others(calls):
    """What others have, as readers see it."""
    found = []
    for kind in ("other-done", "other-failed", "other-later", "other-running", "other-gated", "other-key",
                 "other-member"):
        items, after = [], ""
        while after is not None:  # a page may be short: it looks at so many rows only
            page = calls.good("GET", f"/v1/executions?kind={kind}&limit=1000" + (f"&after={after}" if after else ""))
            items += page["items"]
            after = page["next"]
        for item in items:
            if not item["finished_at"]:  # what lives goes on: a delay ends meanwhile
                item = {key: item[key] for key in ("id", "kind", "lane", "tenant", "tags", "created_at", "key",
                                                   "policy", "gate", "priority", "attempts_used", "flow_id")}
            found.append(json.dumps(item, sort_keys=True))
    return sorted(found)


def answered(calls, batch):
    """A batch with the bytes of its input and of its output."""
    shown = calls.good("GET", f"{BATCHES}/{batch}")
    return shown, [bytes(calls("GET", f"{FILES}/{shown[key]}/content")[2]) for key in ("input_file_id", "output_file_id")]


def main():
    tap, store = Tap(), scratch(STORE, "erasing")
    server = serve(store, "--log-level", "debug", tap=tap)
    logs = server.lines
    try:
        calls = Calls(server, timeout=120)
        fill = Fill(calls)
        fill.all_of("other", "other")
        fill.all_of(CANARY, "mine")
        for i in range(MANY // 1000):
            fill.submit(CANARY, "mine-many", 1000, delay_ms=10**9 if i % 2 else 0)
        flow = fill.shared(CANARY, "other")
        for model in ("m", "*"):
            calls.good("PUT", f"/v1/models/{model}", {"endpoint": "openai", "lane": "m"})
        neutral = upload(calls, "both", 5)
        kept = [fill.batch(upload(calls, "other", 20), "other", 20), fill.batch(neutral, "other", 5)]
        fill.batch(upload(calls, CANARY, LINES), CANARY, LINES)
        fill.batch(neutral, CANARY, 5)
        fill.wrong(CANARY)
        calls.good("PUT", "/v1/lanes/default", {"weights": {CANARY: 3, "other": 2}})
        calls.good("PUT", "/v1/budgets/b", {"match": {"tenant": CANARY}, "dimensions": {"eur": {"hard": 10**9}}})
        before, answers = others(calls), [answered(calls, batch) for batch in kept]
        result = calls("GET", f"/v1/executions/{flow['nodes']['b']}/result")[2]
        tap.ok(rows_with(store, CANARY), "the canary is in the store")
        began = time.monotonic()
        order = calls.good("POST", "/v1/erasures", {"tenant": CANARY, "reason": "ticket 1"})
        tap.equal(order["state"], "running", "the order is taken")
        for _ in range(KILLS):
            pause(0.3)
            server.kill()
            calls.close()
            server = serve(store, "--log-level", "debug", tap=tap)
            logs = logs + server.lines
            calls = Calls(server, timeout=120)
        read = lambda: calls.good("GET", f"/v1/erasures/{order['id']}")
        done = until(lambda: read()["state"] == "done", BOUND_S)
        receipt = read()
        tap.ok(done, f"it is done after {KILLS} kills", receipt)
        tap.note(f"{MANY} executions and more in {time.monotonic() - began:.1f} s: {receipt}")
        tap.equal(rows_with(store, CANARY), [], "the canary is in no row")
        tap.equal(bytes_with(store, CANARY), [], "the canary is in no byte of the files")
        tap.equal([line for line in logs + server.lines if CANARY in line], [], "the canary is in no line of the log")
        now = others(calls)
        tap.ok(now == before, "what others have is as it was",
               "\n".join(sorted(set(now) ^ set(before), key=lambda line: line[-200:])[:4]))
        tap.equal(calls("GET", f"/v1/executions/{flow['nodes']['b']}/result")[2], result, "so is the result in the "
                  "shared flow")
        tap.equal([answered(calls, batch) for batch in kept], answers, "so are the batches of others, with their answers")
        tap.equal([receipt["counts"][key] for key in ("batch", "file", "shared_file")], [2, 1, 1],
                  "batches are counted, and that one file stays")
        shown = calls.good("GET", f"/v1/flows/{flow['id']}")
        tap.equal(sorted(node["name"] for node in shown["nodes"]), ["a", "b", "c"], "its graph is whole")
        tap.equal(receipt["counts"]["scrubbed"], 2, "two members are scrubbed")
        tap.ok(receipt["counts"]["flows"] <= 3, "flows of its own are removed")  # fewer: killed before it was noted
        verified = calls.good("POST", f"/v1/erasures/{order['id']}/verify", {})
        tap.equal(verified["remains"], 0, "verification finds nothing")
        whole, said = doctor(store)
        tap.ok(whole, "every row is whole", said)
        Fill(calls).submit(CANARY, "mine-new", 3)
        again = calls.good("POST", f"/v1/erasures/{order['id']}/verify", {})
        tap.equal(again["remains"], 0, "what is submitted later does not count")
        tap.equal(len(calls.good("GET", f"/v1/executions?tenant={CANARY}")["items"]), 3, "and is there")
        sql(store, f"UPDATE execution SET created = 0 WHERE queue IN (SELECT id FROM queue WHERE kind = 'mine-new')")
        found = calls.good("POST", f"/v1/erasures/{order['id']}/verify", {})
        tap.equal(found["remains"], 3, "rows that are put back by hand are found")
        tap.equal(server.stop(), 0, "the server stops by itself")
    finally:
        server.kill()
        if tap.failed:
            tap.note("".join(server.lines[-20:]))
        store.remove()
    tap.done()


if __name__ == "__main__":
    main()
