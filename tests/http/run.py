#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of the HTTP API against a server of its own.

    tests/http/run.py [--store sqlite|pg] [--only TEXT] [--jobs N]

The server is $WEFT_BUILD/weft (default: build/weft) over a scratch store; PostgreSQL is the one
that WEFT_TEST_PG names. Prints TAP: a point per case, then points per route of the OpenAPI
document, against which everything that was sent and answered is checked. Cases of tokens*.http run
against a second server, started with --tokens.

A case file is cases/NAME.http. A line that begins with # is a comment.

    === a title                         begins a case; each has a namespace of its own, $ns,
                                        which its requests name in X-Weft-Namespace
    POST /v1/executions?x=1             a request: method and path,
    X-Request-Id: 42                    headers (`-` as value: without this header),
    {"kind": "resize"}                  the body as it is, up to the arrow
    --> 201                             the status of the answer,
    Location: /v1/executions/<id>       headers it must have (in them <...> stands for any text,
                                        `-` as value: the header is not there),
    {"id": <id $id>, "state": "ready"}  and its body as a pattern

Patterns are JSON, in which may stand

    <id> <moment> <int> <number> <string> <bool> <null> <object> <array> <any>     a value of a kind
    <id or null>         one of several           <int $epoch>         and keeps it as $epoch
    <now> <in 5 s>       a moment of the case     <moment after $a>    a later moment than $a
    $epoch               the value that was kept  /^so.*so$/           a string that matches
    ...                  other members; in arrays any number of other elements
    [any order: 1, 2]    an array of these, whatever comes first

Bodies that are not JSON, or not only: `exactly: TEXT`, `bytes: BASE64`, `contains: TEXT`,
`lacks: TEXT`, each the rest of its line, and `empty`.

In requests and patterns "$id" is what was kept, and "$(now+5s)" a moment (units: ms s min h d). A
body may also be given as `Body-Base64: TEXT` among the headers. <<3 x {"n": #}>> repeats, with
commas and # counting from 0; <<3 x a>> is aaa. One may stand inside another.

    --> 200 (after 300 ms) (before 2 s)    the answer must take that long, and no longer
    --> 200 (within 10 s)                  the request is repeated until the answer fits

    while                               these requests are sent and wait for their answers,
    GET /v1/executions/$id?wait_ms=20000
    --> 200 (before 10 s)
    {"state": "cancelled", ...}
    then                                these steps are done meanwhile,
    POST /v1/executions/$id/cancel
    --> 200
    end                                 and then the answers must come

    token $reader: read,submit in $ns for 2 s   makes a token (namespace and life optional)
    revoke $reader                              takes it back
"""
import argparse
import concurrent.futures
import os
import re
import sys
import threading
import time
import traceback

import checks
import checks_bodies
import checks_cors
import selfcheck
from casefile import Block, Broken, Token, fill, read_cases
from openapi import Document
from pattern import Mismatch, read_json
from serving import Server, Store

HERE = os.path.dirname(os.path.abspath(__file__))
PAUSE_S = 0.02
BLOCK_S = 90


class Context:
    """What a case has learnt, and the exchange that is being looked at."""

    def __init__(self, values, begun):
        self.values, self.begun = values, begun
        self.sent = self.received = 0.0

    def fill(self, text):
        return fill(text, self.values, self.sent)


class Bench:
    """The servers under test, the document, and the points."""

    def __init__(self, plain, tokens, document):
        self.plain, self.tokens, self.document = plain, tokens, document
        self.lock = threading.Lock()
        self.points = self.failed = 0
        self.secrets = []  # what must not be in the log

    def server_of(self, case):
        return self.tokens if case.file.startswith("tokens") else self.plain

    def point(self, fine, title, why=""):
        with self.lock:
            self.points += 1
            self.failed += not fine
            lines = [] if fine else [f"# {line}" for line in str(why).split("\n")]
            print("\n".join([f"{'ok' if fine else 'not ok'} {self.points} - {title}", *lines]),
                  flush=True)


class Run:
    """One case on its way."""

    def __init__(self, bench, case, number):
        self.bench, self.case = bench, case
        self.server = bench.server_of(case)
        self.values = {"ns": f"{case.file}.{number}"}
        self.token_ids = {}
        self.client = self.server.client()
        self.begun = 0.0

    def go(self):
        self.begun = time.time()
        try:
            self.steps(self.case.steps)
        finally:
            self.client.close()

    def steps(self, steps):
        for step in steps:
            if isinstance(step, Block):
                self.block(step)
            elif isinstance(step, Token):
                self.token(step)
            else:
                self.step(step, self.client)

    def token(self, step):
        if step.scopes is None:
            self.server.run("token", "revoke", str(self.token_ids[step.name]))
            return
        namespace = fill(step.namespace, self.values, 0) if step.namespace else None
        made = self.server.make_token(step.scopes, namespace, step.lifetime)
        self.values[step.name], self.token_ids[step.name] = made["token"], made["id"]
        self.bench.secrets.append(made["token"].split("_", 2)[2])

    def block(self, block):
        pool = concurrent.futures.ThreadPoolExecutor(len(block.waiting))
        futures = []
        for step in block.waiting:
            sent = threading.Event()
            futures.append(pool.submit(self.wait, step, sent))
            sent.wait(BLOCK_S)
        try:
            self.steps(block.steps)
        finally:
            pool.shutdown(wait=False)
        for future in futures:
            future.result(BLOCK_S)

    def wait(self, step, sent):
        client = self.server.client()
        try:
            self.step(step, client, sent.set)
        finally:
            sent.set()
            client.close()

    def step(self, step, client, on_sent=None):
        end = time.monotonic() + (step.within or 0)
        while True:
            answer = self.exchange(step, client, on_sent)
            try:
                self.judge(step, answer)
                return
            except Mismatch as mismatch:
                if time.monotonic() > end:
                    raise Mismatch(f"{self.case.path}:{step.line}: {step.method} {step.path}\n"
                                   f"{mismatch}\n{answer}") from mismatch
            threading.Event().wait(PAUSE_S)

    def exchange(self, step, client, on_sent):
        now = time.time()
        headers = [(name, fill(value, self.values, now)) for name, value in step.headers]
        if not any(name == "X-Weft-Namespace" for name, _ in headers):
            headers.append(("X-Weft-Namespace", self.values["ns"]))
        headers = [(name, value) for name, value in headers if value != "-"]
        path = fill(step.path, self.values, now)
        body = fill(step.body, self.values, now) if isinstance(step.body, str) else step.body
        answer = client.send(step.method, path, headers, body, on_sent)
        self.bench.document.see(step.method, path, body, answer, headers)
        return answer

    def judge(self, step, answer):
        if answer.status != step.status:
            raise Mismatch(f"the status is {answer.status}, not {step.status}")
        if step.after and answer.took < step.after:
            raise Mismatch(f"the answer came after {answer.took:.3f} s, before {step.after} s")
        if step.before and answer.took > step.before:
            raise Mismatch(f"the answer came after {answer.took:.3f} s, not within {step.before} s")
        for name, wanted in step.wanted_headers:
            self.judge_header(name, fill(wanted, self.values, answer.sent), answer.header(name))
        for word, wanted in step.wanted_body:
            self.judge_body(word, fill(wanted, self.values, answer.sent), answer.body)
        if step.pattern:
            context = Context(dict(self.values), self.begun)
            context.sent, context.received = answer.sent, answer.received
            try:
                value = read_json(answer.body)
            except ValueError as broken:
                raise Mismatch(f"the body is not JSON: {broken}") from broken
            step.pattern.match(value, context, "body")
            self.values.update(context.values)

    @staticmethod
    def judge_header(name, wanted, value):
        if wanted == "-":
            if value is not None:
                raise Mismatch(f"the header {name} is there: {value}")
            return
        parts = re.split(r"<[^>]*>", wanted)
        if value is None or not re.fullmatch(".+".join(re.escape(part) for part in parts), value):
            raise Mismatch(f"the header {name} is {value!r}, not {wanted!r}")

    @staticmethod
    def judge_body(word, wanted, body):
        fits = {
            "exactly": lambda: body == wanted.encode(),
            "bytes": lambda: body == checks.from_base64(wanted),
            "contains": lambda: wanted.encode() in body,
            "lacks": lambda: wanted.encode() not in body,
        }[word]
        if not fits():
            raise Mismatch(f"the body is not as wanted ({word}: {wanted[:200]})")


def attempt(bench, title, call):
    """Makes a point of a call that fails by an exception."""
    try:
        call()
        bench.point(True, title)
    except (Mismatch, AssertionError) as wrong:
        bench.point(False, title, wrong)
    except Exception:  # the suite goes on: every failure is a point
        bench.point(False, title, traceback.format_exc())


def run_all(bench, cases, only, jobs):
    work = []
    for number, case in enumerate(cases):
        title = f"{case.file}: {case.title}"
        if only in title:
            work.append((title, Run(bench, case, number).go))
    for check in checks.ALL + checks_bodies.ALL + checks_cors.ALL:
        if only in check.__doc__:
            work.append((check.__doc__, lambda check=check: check(bench)))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda item: attempt(bench, *item), work))


def judge_document(bench, only):
    """What the document says, after all that was seen."""
    document = bench.document
    version = document.content.get("openapi", "")
    bench.point(version.startswith("3.1."), "openapi: the document is of version 3.1", version)
    known = {str(operation) for operation in document.operations}
    missing = [route for route in checks.ROUTES if route not in known]
    bench.point(not missing, "openapi: every route of the API is in the document", missing)
    for operation in document.operations:
        seen = ", ".join(f"{n} x {status}" for status, n in sorted(operation.seen.items()))
        wrong = list(dict.fromkeys(operation.wrong))
        bench.point(not wrong, f"openapi: {operation} is as the document says ({seen})",
                    "\n".join(wrong[:20]))
        if not only:
            bench.point(any(status < 300 for status in operation.seen),
                        f"openapi: {operation} was seen to succeed")


def judge_log(bench):
    """The access log of the server with tokens, which has stopped."""
    lines = [line for line in bench.tokens.lines if " request " in line or "=request " in line]
    wanted = len(bench.tokens.answered)
    bench.point(len(lines) == wanted, f"the log has a line per request ({wanted})",
                f"{len(lines)} lines\n{''.join(bench.tokens.lines[-5:])}")
    told = [line for line in bench.tokens.lines for secret in bench.secrets if secret in line]
    bench.point(not told, "the log tells no secrets", "".join(told[:5]))


def main():
    parser = argparse.ArgumentParser(description="Runs the cases of the HTTP API.")
    parser.add_argument("--store", default=os.environ.get("WEFT_TEST_STORE", "sqlite"),
                        choices=("sqlite", "pg"))
    parser.add_argument("--only", default="", help="cases with this text in their title")
    parser.add_argument("--jobs", type=int, default=8, help="how many cases at a time")
    options = parser.parse_args()
    if options.store == "pg" and not os.environ.get("WEFT_TEST_PG"):
        print("Bail out! WEFT_TEST_PG must be the URL of a scratch PostgreSQL")
        return 1
    build = os.environ.get("WEFT_BUILD", os.path.join(HERE, "..", "..", "build"))
    binary = os.path.join(build, "weft")
    stores = [Store(options.store, name) for name in ("plain", "tokens")]
    servers = []
    try:
        cases = read_cases(os.path.join(HERE, "cases"))
        servers.append(Server(binary, stores[0]))
        servers.append(Server(binary, stores[1], ["--tokens", "--access-log"]))
        document = Document(servers[0].client().send("GET", "/openapi.json").body)
        bench = Bench(*servers, document)
        for name in ("patterns", "schemas"):
            wrong = getattr(selfcheck, name)()
            bench.point(not wrong, f"runner: {name} tell what fits from what does not",
                        "\n".join(wrong))
        run_all(bench, cases, options.only, options.jobs)
        judge_document(bench, options.only)
        for server, name in zip(servers, ("the server", "the server with tokens")):
            status = server.stop()
            bench.point(status == 0, f"{name} stops in order",
                        f"exit status {status}\n{''.join(server.lines[-50:])}")
        judge_log(bench)
        print(f"1..{bench.points}", flush=True)
        return 1 if bench.failed else 0
    except (Broken, RuntimeError) as broken:
        print(f"Bail out! {broken}")
        return 1
    finally:
        for server in servers:
            server.stop()
        for store in stores:
            store.remove()


if __name__ == "__main__":
    sys.exit(main())
