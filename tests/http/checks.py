# SPDX-License-Identifier: Apache-2.0
"""What a case file cannot say: many clients at once, long lists, connections, the document itself.

A check is a function of the bench; its first line is its title, and it fails by an assertion.
"""
import base64
import concurrent.futures
import contextlib
import json
import re
import threading
import time

from pattern import Mismatch
from serving import Server, Store

# The routes of the API, as it was agreed upon.
ROUTES = [
    "POST /v1/executions",
    "GET /v1/executions",
    "POST /v1/executions/cancel",
    "POST /v1/executions/replay",
    "GET /v1/executions/{id}",
    "GET /v1/executions/{id}/result",
    "GET /v1/executions/{id}/payload",
    "GET /v1/executions/{id}/attempts",
    "POST /v1/executions/{id}/cancel",
    "POST /v1/executions/{id}/replay",
    "POST /v1/executions/{id}/priority",
    "POST /v1/executions/{id}/deadline",
    "POST /v1/executions/{id}/revoke",
    "POST /v1/executions/{id}/resume",
    "GET /v1/executions/{id}/waiting",
    "GET /v1/executions/{id}/waitpoints",
    "GET /v1/executions/{id}/signals",
    "GET /v1/counts",
    "POST /v1/claims",
    "POST /v1/leases/renew",
    "POST /v1/leases/complete",
    "POST /v1/leases/fail",
    "POST /v1/leases/delay",
    "POST /v1/leases/release",
    "POST /v1/leases/suspend",
    "POST /v1/leases/waitpoints",
    "POST /v1/signals",
    "POST /v1/signals/{token}",
    "POST /v1/waitpoints/{id}/token",
    "GET /v1/keys",
    "POST /v1/keys/rotate",
    "POST /v1/workers/{worker}/goodbye",
    "GET /v1/workers",
    "GET /v1/lanes",
    "GET /v1/lanes/{lane}",
    "PUT /v1/lanes/{lane}",
    "GET /v1/replicas",
    "GET /v1/scanners",
    "POST /v1/scanners/{name}/run",
    "POST /openai/v1/files",
    "GET /openai/v1/files",
    "GET /openai/v1/files/{file}",
    "DELETE /openai/v1/files/{file}",
    "GET /openai/v1/files/{file}/content",
    "POST /openai/v1/batches",
    "GET /openai/v1/batches",
    "GET /openai/v1/batches/{batch}",
    "POST /openai/v1/batches/{batch}/cancel",
    "GET /openai/v1/models",
    "POST /v1/batches",
    "GET /v1/files",
    "POST /v1/files",
    "GET /v1/files/{file}",
    "DELETE /v1/files/{file}",
    "GET /v1/files/{file}/content",
    "GET /v1/models",
    "GET /v1/models/{model}",
    "PUT /v1/models/{model}",
    "DELETE /v1/models/{model}",
    "GET /v1/batches",
    "GET /v1/batches/{id}",
    "DELETE /v1/batches/{id}",
    "POST /v1/batches/{id}/retry",
    "POST /v1/batches/{id}/cancel",
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
    "GET /openapi.json",
]
PATIENCE_S = 60


def from_base64(text):
    return base64.b64decode(text)


def same(got, wanted, what):
    if got != wanted:
        raise Mismatch(f"{what}: {str(got)[:1000]}, not {str(wanted)[:1000]}")


class Caller:
    """A client of one namespace; fails when a status is not the expected one."""

    def __init__(self, bench, namespace, server=None):
        self.bench, self.namespace = bench, namespace
        self.client = (server or bench.plain).client()

    def send(self, method, path, body=None, status=200, headers=()):
        text = json.dumps(body) if body is not None and not isinstance(body, bytes) else body
        answer = self.client.send(method, path, [("X-Weft-Namespace", self.namespace), *headers],
                                  text)
        self.bench.document.see(method, path, text, answer, headers)
        if status and answer.status != status:
            raise Mismatch(f"{method} {path}: status {answer.status}, not {status}\n{answer}")
        return answer

    def post(self, path, body, status=200):
        return self.send("POST", path, body, status).json()

    def submit(self, specs):
        return self.post("/v1/executions", {"items": specs})["items"]

    def claim(self, **fields):
        # No lease runs out before it is looked at, on however slow a machine.
        return self.post("/v1/claims", {"worker": "w", "lease_ms": 600000, **fields})["items"]


def at_once(bench, namespace, count, call, server=None):
    """Has `count` callers, each with a connection of its own, call at the same moment."""
    barrier = threading.Barrier(count)

    def one(number):
        caller = Caller(bench, namespace, server)
        caller.send("GET", "/healthz")  # the connection is there
        barrier.wait(PATIENCE_S)
        try:
            return call(caller, number)
        finally:
            caller.client.close()
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def bad_among_64(bench):
    """group commit: one bad submit among 64 fails alone"""
    for turn in range(5):
        def submit(caller, number, turn=turn):
            spec = {"kind": f"k{turn}.{number}", "payload": number}
            if number == 17:
                spec["deadline_at"] = "2001-01-01T00:00:00Z"
            return caller.send("POST", "/v1/executions", spec, None)
        answers = at_once(bench, "bad-among-64", 64, submit)
        same([a.status for a in answers], [400 if n == 17 else 201 for n in range(64)], "statuses")
        same(answers[17].json()["error"]["field"], "deadline_at", "the field to blame")
        ids = [a.json()["id"] for n, a in enumerate(answers) if n != 17]
        same(len(set(ids)), 63, "different ids")
        caller = Caller(bench, "bad-among-64")
        for number in (0, 16, 18, 63):
            found = caller.send("GET", f"/v1/executions/{answers[number].json()['id']}").json()
            same(found["kind"], f"k{turn}.{number}", "the kind behind an answer")


def conflict_among_64(bench):
    """group commit: one key conflict among 64 submits fails alone"""
    caller = Caller(bench, "conflict-among-64")
    caller.post("/v1/executions", {"kind": "k", "key": "taken", "payload": 1}, 201)

    def submit(caller, number):
        spec = {"kind": "k", "key": "taken" if number == 40 else f"free-{number}", "payload": 2}
        return caller.send("POST", "/v1/executions", spec, None)
    answers = at_once(bench, "conflict-among-64", 64, submit)
    same([a.status for a in answers], [409 if n == 40 else 201 for n in range(64)], "statuses")


def same_key_at_once(bench):
    """group commit: 32 submits with one key make one execution"""
    answers = at_once(bench, "same-key", 32, lambda caller, _: caller.send(
        "POST", "/v1/executions", {"kind": "k", "key": "one", "payload": {"a": 1}}, None))
    same(sorted(a.status for a in answers), [200] * 31 + [201], "statuses")
    same(len({a.json()["id"] for a in answers}), 1, "ids")
    same(sum(a.json()["duplicate"] for a in answers), 31, "duplicates")


def stale_among_64(bench):
    """group commit: one stale complete among 64 is fenced alone"""
    caller = Caller(bench, "stale-among-64")
    caller.submit([{"kind": "k"}] * 64)
    claimed = caller.claim(max=64)
    same(len(claimed), 64, "claimed")
    caller.post(f"/v1/executions/{claimed[5]['id']}/cancel", {})

    def complete(caller, number):
        item = {"id": claimed[number]["id"], "epoch": claimed[number]["epoch"], "result": number}
        return caller.post("/v1/leases/complete", {"items": [item]})["items"]
    answers = at_once(bench, "stale-among-64", 64, complete)
    for number, items in enumerate(answers):
        same([item["id"] for item in items], [claimed[number]["id"]], "whose answer it is")
        if number == 5:
            same(items[0]["error"]["reason"], "cancelled", "the reason")
        else:
            same(items[0]["state"], "succeeded", "the state")
    for number in (0, 4, 6, 63):
        path = f"/v1/executions/{claimed[number]['id']}/result"
        same(caller.send("GET", path).body, str(number).encode(), "the result")


def order_under_load(bench):
    """group commit: answers keep the order of their items under load"""
    def submit(caller, number):
        for turn in range(4):
            specs = [{"kind": "not a kind" if i % 7 == 3 else f"k{number}.{turn}.{i}"}
                     for i in range(50)]
            answers = caller.submit(specs)
            same(len(answers), 50, "answers")
            for i, answer in enumerate(answers):
                if i % 7 == 3:
                    same(answer["error"]["field"], "kind", f"item {i}")
                    continue
                same(answer["state"], "ready", f"item {i}")
                if i % 10 == 0:
                    found = caller.send("GET", f"/v1/executions/{answer['id']}").json()
                    same(found["kind"], f"k{number}.{turn}.{i}", "the kind behind an answer")
    at_once(bench, "order-under-load", 16, submit)


def no_work_twice(bench):
    """group commit: 32 claims at once share out the work, each piece once"""
    caller = Caller(bench, "no-work-twice")
    caller.submit([{"kind": "k"}] * 200)
    shares = at_once(bench, "no-work-twice", 32, lambda caller, number: [
        item["id"] for _ in range(10)
        for item in caller.claim(worker=f"w{number}", max=3, wait_ms=200)])
    got = [one for share in shares for one in share]
    same(len(got), 200, "claimed")
    same(len(set(got)), 200, "claimed once")


def waiting_claims(bench):
    """waiting: 32 claims that wait get the 32 executions that come, one each"""
    ready = threading.Barrier(33)

    def wait(number):
        caller = Caller(bench, "waiting-claims")
        caller.send("GET", "/healthz")
        ready.wait(PATIENCE_S)
        return caller.claim(worker=f"w{number}", max=1, wait_ms=60000)
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        futures = [pool.submit(wait, number) for number in range(32)]
        ready.wait(PATIENCE_S)
        caller = Caller(bench, "waiting-claims")
        ids = [caller.post("/v1/executions", {"kind": "k"}, 201)["id"] for _ in range(32)]
        got = [future.result(PATIENCE_S) for future in futures]
    same(sorted(item["id"] for items in got for item in items), sorted(ids), "claimed ids")
    same({len(items) for items in got}, {1}, "items per claim")


def gone_client(bench):
    """waiting: after a client went away the next one claims its execution"""
    caller = Caller(bench, "gone-client")
    for turn in range(5):
        gone = Caller(bench, "gone-client")
        gone.client.put("POST", "/v1/claims", [("X-Weft-Namespace", "gone-client")],
                        b'{"worker": "gone", "wait_ms": 20000}')
        gone.client.close()
        made = caller.post("/v1/executions", {"kind": f"k{turn}"}, 201)
        got = caller.claim(worker="here", wait_ms=20000)
        same([item["id"] for item in got], [made["id"]], "ids that the next client claimed")
        same(got[0]["attempt"], 1, "the attempt")


def bytes_of_a_claim(bench):
    """claims: a claim stops at 8 MiB of payloads, and the rest comes with the next"""
    caller = Caller(bench, "bytes-of-a-claim")
    payload = base64.b64encode(bytes(1000000)).decode()
    for part in range(2):
        caller.submit([{"kind": f"k{part * 6 + i}", "payload_base64": payload} for i in range(6)])
    kinds = []
    for _ in range(12):
        items = caller.claim(max=12, wait_ms=20000) if len(kinds) < 12 else []
        assert len(items) <= 8, f"{len(items)} MB in one claim"
        kinds += [item["kind"] for item in items]
    same(sorted(kinds), sorted(f"k{i}" for i in range(12)), "the items of all claims")


def pages_of_120(bench):
    """list: 120 items in pages of 50, each once, newest first"""
    caller = Caller(bench, "pages-of-120")
    made = [item["id"] for item in caller.submit([{"kind": "k"}] * 120)]
    for query in ("", "&kind=k", "&state=ready"):
        seen, pages, after = [], 0, ""
        while True:
            page = caller.send("GET", f"/v1/executions?limit=50{query}{after}").json()
            assert len(page["items"]) <= 50, f"{len(page['items'])} items in a page of 50"
            seen += [item["id"] for item in page["items"]]
            pages += 1
            assert pages < 100, "the pages do not end"
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
        same(seen, sorted(made, reverse=True), f"all items{query}")
    page = caller.send("GET", "/v1/executions").json()
    same(len(page["items"]), 50, "the default limit")


def sparse_pages(bench):
    """list: a filter that fits little gives short pages and finds everything"""
    caller = Caller(bench, "sparse-pages")
    for part in range(3):
        caller.submit([{"kind": "k", "tags": {"n": str(part * 500 + i)}} for i in range(500)])
    for wanted in ("7", "743", "1499"):
        seen, after = [], ""
        for _ in range(100):
            page = caller.send("GET", f"/v1/executions?limit=5&tag=n:{wanted}{after}").json()
            seen += [item["tags"]["n"] for item in page["items"]]
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
        same(seen, [wanted], "ids found")


def lines_of_2600(bench):
    """list: 2,600 executions as lines of JSON"""
    caller = Caller(bench, "lines-of-2600")
    made = []
    for part in range(4):
        made += [item["id"] for item in caller.submit(
            [{"kind": f"k{part}", "tags": {"n": str(i)}} for i in range(650)])]
    answer = caller.client.send("GET", "/v1/executions", [
        ("X-Weft-Namespace", "lines-of-2600"), ("Accept", "application/x-ndjson")])
    same(answer.status, 200, "the status")
    same(answer.header("Content-Type"), "application/x-ndjson", "the content type")
    lines = [line for line in answer.body.split(b"\n") if line]
    items = [json.loads(line) for line in lines]
    same([item["id"] for item in items], sorted(made, reverse=True), "the executions")
    schema = {"$ref": "#/components/schemas/Execution"}
    for item in (items[0], items[1300], items[-1]):
        same(bench.document.schemas.check(schema, item, "line"), [], "the schema")
    # the connection goes on after it
    port = caller.client.local_port()
    caller.send("GET", "/v1/executions?limit=1")
    same(caller.client.local_port(), port, "the connection")


def keep_alive(bench):
    """connections: one carries many requests, also after errors"""
    caller = Caller(bench, "keep-alive")
    caller.send("GET", "/healthz")
    port = caller.client.local_port()
    made = caller.post("/v1/executions", {"kind": "k"}, 201)
    for _ in range(10):
        caller.send("GET", f"/v1/executions/{made['id']}")
        caller.send("GET", "/v1/nothing", None, 404)
        caller.send("GET", "/v1/claims", None, 405)
        caller.send("POST", "/v1/executions", b"{", 400)
        caller.send("POST", "/v1/executions/" + made["id"] + "/revoke", None, 409)
        caller.send("GET", f"/v1/executions/{made['id']}?wait_ms=10")
        caller.claim(lanes=["none"], wait_ms=10)
        caller.send("HEAD", f"/v1/executions/{made['id']}")
        same(caller.client.local_port(), port, "the connection")


def too_large_in_chunks(bench):
    """limits: a body in chunks is cut off at its limit too"""
    caller = Caller(bench, "too-large")
    body = b'{"worker": "w", "kinds": ["' + b"k" * 100000 + b'"]}'
    answer = caller.send("POST", "/v1/claims", body, 413, [("Transfer-Encoding", "chunked")])
    same(answer.json()["error"]["code"], "too_large", "the code")


@contextlib.contextmanager
def server_of_its_own(bench, name, options):
    store = Store(bench.plain.store.kind, name)
    server = Server(bench.plain.binary, store, options)
    try:
        yield server
    finally:
        status = server.stop()
        store.remove()
    same(status, 0, "the exit status")


def full_queue(bench):
    """limits: a server with too much to do answers 429, and keeps what it accepted"""
    with server_of_its_own(bench, "queue", ["--queue-max", "1", "--threads", "1"]) as server:
        refused = 0
        accepted = []
        for _ in range(50):
            answers = at_once(bench, "full-queue", 32, lambda caller, number: caller.send(
                "POST", "/v1/executions", {"kind": f"k{number}"}, None), server)
            for answer in answers:
                if answer.status == 201:
                    accepted.append(answer.json()["id"])
                    continue
                same(answer.status, 429, "the status")
                same(answer.json()["error"]["code"], "rate_limited", "the code")
                assert int(answer.header("Retry-After")) >= 1, "no Retry-After"
                refused += 1
            if refused:
                break
        assert refused, "no submission was refused"
        caller = Caller(bench, "full-queue", server)
        for one in accepted:
            caller.send("GET", f"/v1/executions/{one}")


def full_memory(bench):
    """limits: a body for which there is no room is refused with 429"""
    with server_of_its_own(bench, "memory", ["--body-bytes", "1MiB"]) as server:
        spec = json.dumps({"kind": "k", "payload": "x" * 900000}).encode()
        slow = Caller(bench, "full-memory", server).client
        slow.put("POST", "/v1/executions", [("Content-Length", str(len(spec)))], None)
        slow.connection.send(spec[:-1])
        until = time.monotonic() + 30
        held = 0
        while held < len(spec) - 1 and time.monotonic() < until:  # what was sent must have arrived
            text = Caller(bench, "full-memory", server).send("GET", "/metrics").body.decode()
            held = int(re.search(r"^weft_http_body_bytes (\d+)", text, re.M).group(1))
        same(held, len(spec) - 1, "the bytes in memory")
        answer = Caller(bench, "full-memory", server).send("POST", "/v1/executions", spec, None)
        same(answer.status, 429, "the status")
        same(answer.json()["error"]["code"], "busy", "the code")
        assert answer.json()["error"]["hint"], "no hint"
        assert int(answer.header("Retry-After")) >= 1, "no Retry-After"
        slow.connection.send(spec[-1:])
        same(slow.connection.getresponse().status, 201, "the one that was there first")
        Caller(bench, "full-memory", server).send("POST", "/v1/executions", spec, 201)


def stop_with_waiters(bench):
    """waiting: a server that stops answers waiting calls"""
    with server_of_its_own(bench, "stop", []) as server:
        made = Caller(bench, "stop", server).post("/v1/executions", {"kind": "k"}, 201)

        def wait(number):
            caller = Caller(bench, "stop", server)
            if number % 2:
                return caller.client.send("GET", f"/v1/executions/{made['id']}?wait_ms=50000", [
                    ("X-Weft-Namespace", "stop")], on_sent=begun.release)
            return caller.client.send("POST", "/v1/claims", [], (
                '{"worker": "w%d", "wait_ms": 50000}' % number), begun.release)
        begun = threading.Semaphore(0)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            futures = [pool.submit(wait, number) for number in range(6)]
            for _ in futures:
                assert begun.acquire(timeout=PATIENCE_S)
            # all have arrived when a request that came after them is answered
            Caller(bench, "stop", server).send("GET", "/readyz")
            status = server.stop()
            answers = [future.result(PATIENCE_S) for future in futures]
        same(status, 0, "the exit status")
        for number, answer in enumerate(answers):
            assert answer.took < 30, f"it took {answer.took:.1f} s"
            same(answer.status, 200, f"the status of {number}")
            same(answer.json()["state"] if number % 2 else answer.json(),
                 "ready" if number % 2 else {"items": []}, f"the answer of {number}")


def whole_document(bench):
    """openapi: references, parameters and names of the document are whole"""
    document = bench.document
    refs = re.findall(r'"\$ref": ?"([^"]+)"', json.dumps(document.content))
    for ref in set(refs):
        document.schemas.resolve(ref)
    names = [operation.content.get("operationId") for operation in document.operations]
    assert all(names) and len(set(names)) == len(names), f"operation ids: {names}"
    for operation in document.operations:
        declared = set()
        for parameter in operation.content.get("parameters", []):
            if "$ref" in parameter:
                parameter = document.schemas.resolve(parameter["$ref"])
            assert parameter["in"] in ("path", "query", "header"), f"{operation}: {parameter}"
            assert "schema" in parameter, f"{operation}: {parameter} has no schema"
            if parameter["in"] == "path":
                assert parameter["required"] is True, f"{operation}: {parameter}"
                declared.add(parameter["name"])
        same(declared, set(re.findall(r"{(\w+)}", operation.path)), f"path of {operation}")
        responses = operation.content["responses"]
        assert any(status.startswith("2") for status in responses), f"{operation}: no success"
        assert "default" in responses or "4XX" in responses, f"{operation}: no errors"
        assert operation.content.get("summary"), f"{operation}: no summary"


def filters_of_the_document(bench):
    """openapi: every query parameter of the document is taken"""
    caller = Caller(bench, "filters-of-the-document")
    made = caller.post("/v1/executions", {"kind": "k"}, 201)
    flow = caller.post("/v1/flows", {"nodes": [{"name": "a", "kind": "k"}]}, 201)
    caller.send("PUT", "/v1/budgets/b", {"dimensions": {"tokens": {}}})
    caller.send("PUT", "/v1/endpoints/e", {"url": "https://example.com"})
    values = {"lane": "l", "kind": "k", "state": "failed", "tag": "a:b", "tenant": "t", "key": "k",
              "limit": "7", "wait_ms": "0", "flow": flow["id"],
              "name": "n"}
    for operation in bench.document.operations:
        if operation.method != "GET":
            continue
        owner = flow if operation.path.startswith("/v1/flows") else made
        path = operation.path.replace("{id}", owner["id"]).replace("{lane}", "l")
        path = path.replace("{gate}", "g").replace("{budget}", "b").replace("{endpoint}", "e")
        for parameter in operation.content.get("parameters", []):
            if parameter.get("in") == "query" and parameter["name"] in values:
                caller.send("GET", f"{path}?{parameter['name']}={values[parameter['name']]}")
    for name in ("lane", "kind", "state", "tag", "tenant", "key", "flow", "limit", "after"):
        declared = bench.document.find("GET", "/v1/executions").content["parameters"]
        assert any(p.get("name") == name for p in declared), f"{name} is not in the document"


ALL = [bad_among_64, conflict_among_64, same_key_at_once, stale_among_64, order_under_load,
       no_work_twice, waiting_claims, gone_client, bytes_of_a_claim, pages_of_120, sparse_pages,
       lines_of_2600, keep_alive, too_large_in_chunks, full_queue, full_memory,
       stop_with_waiters, whole_document, filters_of_the_document]
