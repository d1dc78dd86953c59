#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random requests over the route table, on the store WEFT_TEST_STORE (sqlite or pg). Prints TAP.

The routes, their parameters and their bodies come from /openapi.json. A request is made to fit
and then spoilt in some places, or not; the seed is fixed (WEFT_SEED chooses another), so that a run
can be repeated as far as threads allow. No request may crash or hang the server, and a 5xx must say
why with a code that weft knows.
"""
import json
import os
import random
import re
import threading
import time
import urllib.parse

from harness import (FAULTS, QUARANTINE_KB, ROOT, SANITIZED, STORE, Calls, Figures, Raw, Tap,
                     metric_sum, metrics, scratch, serve, until)

REQUESTS = 3000 if SANITIZED else 10000
THREADS = 6
PATIENCE_S = 20
NIL = "00000000-0000-0000-0000-000000000000"
TEXTS = ["", "a", "default", "mail/out", "é€😀", "\0", "\n", "'; DROP TABLE live; --",
         "%00", "../..",
         "null", "true", "a" * 128, "a" * 129, "x" * 5000, NIL, "k:v", "ready", "\ud800", "-", "0"]
NUMBERS = [0, 1, -1, 2, 10, 1000, 1001, 32767, 32768, -32769, 2**31 - 1, 2**31, 2**53, 2**63 - 1,
           2**63, -2**63, 10**30, 0.5, 1e308, -0.0, 1e-320]
WAITS = [0, 1, 20, -1, 60001, "soon"]
HEADERS = ["Accept", "Content-Type", "X-Request-Id", "X-Weft-Namespace", "Authorization", "Origin",
           "If-Match", "Range", "Cookie", "Accept-Encoding", "Connection", "Upgrade", "TE"]
METHODS = ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "TRACE", "get", "BREW"]


def known_codes():
    with open(os.path.join(ROOT, "include", "weft", "errors.def"), encoding="utf-8") as file:
        return set(re.findall(r'^X\(\w+, +\d+, +"(\w+)"', file.read(), re.M))


class Maker:
    """Makes requests from the document, with a generator of its own."""

    def __init__(self, document, seed, seen):
        self.document, self.random, self.seen = document, random.Random(seed), seen
        self.calls = [(path, method, operation) for path, methods in document["paths"].items()
                      for method, operation in methods.items() if isinstance(operation, dict)]

    def resolve(self, schema):
        while isinstance(schema, dict) and "$ref" in schema:
            at = self.document
            for part in schema["$ref"][2:].split("/"):
                at = at[part]
            schema = at
        return schema

    def anything(self, depth=0):
        pick = self.random.random
        if pick() < 0.35 or depth > 3:
            return self.random.choice(TEXTS)
        if pick() < 0.5:
            return self.random.choice(NUMBERS)
        if pick() < 0.4:
            return self.random.choice([None, True, False, [], {}])
        if pick() < 0.5:
            return [self.anything(depth + 1) for _ in range(self.random.randrange(4))]
        return {self.random.choice(TEXTS): self.anything(depth + 1)
                for _ in range(self.random.randrange(4))}

    def some_id(self):
        return self.random.choice(self.seen["ids"]) if self.seen["ids"] else NIL

    def text(self, schema):
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        if schema.get("format") == "uuid":
            return self.some_id()
        if schema.get("format") == "date-time":
            return self.random.choice(["2030-01-02T03:04:05.678Z", "2020-01-01T00:00:00Z", "never"])
        return self.random.choice(["default", "mail", "a", "w1", "gpu", "AAAA", "k:v"])

    def value(self, schema, name="", depth=0):
        """A value that fits, or, now and then, one that does not."""
        schema = self.resolve(schema)
        if self.random.random() < 0.02 or not isinstance(schema, dict) or depth > 8:
            wrong = self.anything()
            # A number would be a wait that is longer than this test waits for an answer.
            return "soon" if name == "wait_ms" and isinstance(wrong, (int, float)) else wrong
        if name == "wait_ms":
            return self.random.choice(WAITS)
        for word in ("oneOf", "anyOf"):
            if word in schema and "properties" not in schema:
                return self.value(self.random.choice(schema[word]), name, depth + 1)
        kinds = schema.get("type", "object" if "properties" in schema else None)
        kind = self.random.choice(kinds) if isinstance(kinds, list) else kinds
        if name == "id" or kind == "string":
            return self.text({**schema, "format": "uuid"} if name == "id" else schema)
        if name == "epoch":
            return self.random.choice([1, 1, 1, 2, 3, 0])
        if kind in ("integer", "number"):
            return self.number(schema)
        if kind == "array":
            return [self.value(schema.get("items", {}), "", depth + 1)
                    for _ in range(self.random.choice([0, 1, 1, 2, 5]))]
        if kind == "object":
            return self.object(schema, depth)
        return {"boolean": self.random.random() < 0.5, "null": None}.get(kind, self.anything())

    def number(self, schema):
        least, most = schema.get("minimum", 0), schema.get("maximum", 1000)
        return self.random.choice([least, most, least - 1, most + 1, 1, 5, 1000, 2000])

    def object(self, schema, depth):
        made, required = {}, schema.get("required", [])
        for name, inner in schema.get("properties", {}).items():
            if name in required and self.random.random() < 0.97 or self.random.random() < 0.4:
                made[name] = self.value(inner, name, depth + 1)
        if self.random.random() < 0.05:
            made[self.random.choice(TEXTS)] = self.anything()
        return made

    def spoil(self, data):
        """Bytes in place of others, or gone, or twice."""
        data = bytearray(data)
        for _ in range(self.random.choice([1, 1, 3, 20])):
            at = self.random.randrange(len(data) + 1)
            how = self.random.randrange(3)
            if how == 0:
                data[at:at + 1] = bytes([self.random.randrange(256)])
            elif how == 1:
                del data[at:at + self.random.randrange(1, 9)]
            else:
                data[at:at] = data[at:at + self.random.randrange(1, 30)]
        return bytes(data)

    def target(self, path, operation):
        for name in re.findall(r"\{(\w+)\}", path):
            value = self.some_id() if name == "id" else self.random.choice(
                ["default", "mail", "w1", *TEXTS])
            value = value.encode("utf-8", "surrogatepass")
            path = path.replace("{" + name + "}", urllib.parse.quote(value, safe=""))
        query = []
        for parameter in operation.get("parameters", []):
            parameter = self.resolve(parameter)
            if parameter["in"] == "query" and self.random.random() < 0.3:
                value = self.value(parameter.get("schema", {}), parameter["name"])
                value = str(value).encode("utf-8", "surrogatepass")
                query.append(parameter["name"] + "=" + urllib.parse.quote(value))
        return path + ("?" + "&".join(query) if query else "")

    def body(self, operation):
        content = operation.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema")
        if schema is None and self.random.random() < 0.95:
            return None
        body = json.dumps(self.value(schema or {})).encode("utf-8", "replace")
        return self.spoil(body) if self.random.random() < 0.15 else body

    def headers(self):
        made = []
        while self.random.random() < 0.3:
            value = self.random.choice(TEXTS + ["application/x-ndjson", "*/*", "close"])
            value = re.sub(r"[\r\n]", "", value).encode("utf-8", "surrogatepass")
            made.append(self.random.choice(HEADERS).encode() + b": " + value[:2000])
        return made

    def request(self):
        """The bytes of a request and whether its answer has no body."""
        path, method, operation = self.random.choice(self.calls)
        method = method.upper()
        if self.random.random() < 0.05:
            method = self.random.choice(METHODS)
        target = self.target(path, operation).encode()
        if self.random.random() < 0.04:
            target = b"/" + self.spoil(target).replace(b" ", b"").replace(b"\n", b"")
        body = self.body(operation)
        head = [method.encode() + b" " + target + b" HTTP/1.1", b"Host: localhost", *self.headers()]
        if body is not None and self.random.random() < 0.1:
            head.append(b"Transfer-Encoding: chunked")
            body = (b"%x\r\n%s\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
        elif body is not None:
            head.append(b"Content-Length: %d" % len(body))
        return b"\r\n".join(head) + b"\r\n\r\n" + (body or b""), method == "HEAD"


class Worker(threading.Thread):
    def __init__(self, server, maker, count, codes):
        super().__init__(daemon=True)
        self.server, self.maker, self.count, self.codes = server, maker, count, codes
        self.statuses, self.wrong, self.raw = {}, [], None

    def ask(self, data, head_only):
        try:
            if not self.raw:
                self.raw = Raw(self.server, timeout=PATIENCE_S)
            self.raw.send(data)
            answer = self.raw.answer(head_only)
        except TimeoutError:
            self.wrong.append(("no answer", data))
            answer = None
        if not answer or answer[1].get("connection") == "close":
            self.raw.socket.close()
            self.raw = None
        return answer

    def learn(self, answer):
        found = re.findall(rb'"id":"([0-9a-f-]{36})"', answer[2])
        self.maker.seen["ids"] = (self.maker.seen["ids"] + [i.decode() for i in found])[-200:]

    def run(self):
        for _ in range(self.count):
            data, head_only = self.maker.request()
            try:
                answer = self.ask(data, head_only)
            except OSError as error:
                self.wrong.append((repr(error), data))
                return
            status = answer[0] if answer else 0
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if answer:
                self.learn(answer)
            if status >= 500 and not self.has_reason(answer):
                self.wrong.append((answer, data))
        if self.raw:
            self.raw.socket.close()

    def has_reason(self, answer):
        try:
            code = json.loads(answer[2])["error"]["code"]
        except (ValueError, KeyError, TypeError):
            return False
        return code in self.codes and code not in ("internal", "corrupt")


def main():
    kind = STORE
    seed = int(os.environ.get("WEFT_SEED", "20260101"))
    tap, store, began = Tap(), scratch(kind, "random"), time.monotonic()
    server = serve(store, "--receive-timeout", "5s", tap=tap)
    calls = Calls(server)
    document = calls.good("GET", "/openapi.json")
    before = Figures(server.process.pid)
    seen, codes = {"ids": []}, known_codes()
    workers = [Worker(server, Maker(document, seed + i, seen), REQUESTS // THREADS, codes)
               for i in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(240)
    total = {}
    for worker in workers:
        for status, count in worker.statuses.items():
            total[status] = total.get(status, 0) + count
    wrong = [what for worker in workers for what in worker.wrong]
    answers = ", ".join(f"{s or 'hung up'}: {n}" for s, n in sorted(total.items()))
    tap.note(f"seed {seed}: {answers}")
    tap.ok(not any(worker.is_alive() for worker in workers), "every request came to an end")
    tap.equal(sum(total.values()) // THREADS, REQUESTS // THREADS, f"{REQUESTS} requests were made")
    tap.ok(not wrong, "every answer is below 500 or has a reason", "\n".join(map(repr, wrong[:5])))
    tap.ok(total.get(200, 0) > REQUESTS // 10 and total.get(400, 0) > REQUESTS // 20,
           "many were good and many were bad")
    try:
        tap.equal(calls("GET", "/healthz")[0], 200, "the server is well")
        ready = until(lambda: calls("GET", "/readyz")[0] == 200, 10)
        tap.ok(ready, "the server is ready")
        gone = until(lambda: metric_sum(metrics(server), "weft_http_connections") <= 2, 10)
        tap.ok(gone, "no connection is left behind")
    except FAULTS as error:
        tap.ok(False, "the server is well", repr(error))
    if server.process.poll() is None:
        after = Figures(server.process.pid)
        tap.note(f"before: {before}\nafter: {after}\n{time.monotonic() - began:.1f} s")
        tap.ok(after.rss_kb < before.rss_kb + (64 << 10) + QUARANTINE_KB, "memory is bounded")
    calls.close()
    status = server.stop()
    if not tap.equal(status, 0, "the server stops by itself"):
        tap.note("".join(server.lines[-50:]))
    store.remove()
    tap.done()


if __name__ == "__main__":
    main()
