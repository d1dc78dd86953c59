# SPDX-License-Identifier: Apache-2.0
"""What request bodies may look like: none, compressed, lines."""
import json

from checks import Caller, same


def empty_bodies(bench):
    """openapi: a body is required where the document says so, and only there"""
    caller = Caller(bench, "empty-bodies")
    made = caller.post("/v1/executions", {"kind": "k"}, 201)["id"]
    for operation in bench.document.operations:
        declared = operation.content.get("requestBody")
        if declared is None:
            continue
        path = operation.path.replace("{id}", made).replace("{lane}", "l").replace("{worker}", "w")
        answer = caller.send(operation.method, path.replace("{name}", "intake"), None, None)
        said = "has no body" in answer.body.decode()
        same(said, declared["required"], f"{operation}: refused for want of a body")


LINES = ("Content-Type", "application/x-ndjson")


def lines_of_specs(bench):
    """lines: a line is a spec, and a bad one is refused with its number"""
    caller = Caller(bench, "lines-of-specs")
    text = (b'\n{"kind": "a", "payload": {"n": 1}}\r\n  \t\n{"kind": \n {"kind": "b", "key": "k"} \n'
            b'[1]\n{"kind": "c", "colour": 1}\n{"kind": "b", "key": "k"}\n'
            b'{"kind": "b", "key": "k", "payload": 2}\n\xff\n{"kind": "d\x00"}\n{"kind": "last"}')
    for kind in ("application/x-ndjson", "application/ndjson", "Application/JSONL; charset=utf-8"):
        namespaced = Caller(bench, f"lines-of-specs.{kind[12:14]}")
        items = namespaced.send("POST", "/v1/executions", text,
                                headers=[("Content-Type", kind)]).json()["items"]
        errors = [(item["error"]["code"], item["line"]) if "error" in item else None
                  for item in items]
        same(errors, [None, ("invalid_json", 4), None, ("invalid_value", 6), ("unknown_field", 7),
                      None, ("conflict", 9), ("invalid_json", 10), ("invalid_json", 11), None],
             f"the errors of {kind}")
        same(items[5]["duplicate"], True, "the second of the same key")
        same(items[2]["id"], items[5]["id"], "and its id")
        assert items[1]["error"]["message"].startswith("line 4: "), items[1]
        same(items[4]["error"]["field"], "colour", "the field to blame")
        same(namespaced.send("GET", f"/v1/executions/{items[0]['id']}/payload").body, b'{"n": 1}',
             "the payload of the first")
    plain = caller.send("POST", "/v1/executions", text, 400)  # the type decides
    same(plain.json()["error"]["code"], "invalid_json", "lines that are said to be JSON")


def lines_as_answer(bench):
    """lines: whoever accepts lines gets an answer on each"""
    caller = Caller(bench, "lines-as-answer")
    text = b'{"kind": "a"}\n\n{}\n{"kind": "b"}\n'
    answer = caller.send("POST", "/v1/executions", text,
                         headers=[LINES, ("Accept", "application/x-ndjson")])
    same(answer.header("Content-Type"), "application/x-ndjson", "the type")
    assert answer.body.endswith(b"\n"), answer.body
    items = [json.loads(line) for line in answer.body.splitlines()]
    same([item.get("state") for item in items], ["ready", None, "ready"], "the states")
    same((items[1]["error"]["field"], items[1]["line"]), ("kind", 3), "what was refused")


def lines_limits(bench):
    """lines: at most 1,000 items, and blank lines do not count"""
    caller = Caller(bench, "lines-limits")
    line = b'{"kind": "k"}\n'
    items = caller.send("POST", "/v1/executions", (line + b"\n") * 1000, headers=[LINES]).json()
    same(len({item["id"] for item in items["items"]}), 1000, "the ids")
    refused = caller.send("POST", "/v1/executions", line * 1001, 413, headers=[LINES]).json()
    same(refused["error"]["code"], "too_large", "the code of 1,001")
    for empty in (None, b"", b"\n \n"):
        refused = caller.send("POST", "/v1/executions", empty, 400, headers=[LINES]).json()
        same(refused["error"]["code"], "invalid_json", f"the code of {empty!r}")
    large = json.dumps({"kind": "k", "payload": "x" * 900000}).encode() + b"\n"
    items = caller.send("POST", "/v1/executions", large * 12, headers=[LINES]).json()["items"]
    same([item.get("state") for item in items], ["ready"] * 12, "12 lines of 900 kB")


ALL = [empty_bodies, lines_of_specs, lines_as_answer, lines_limits]
