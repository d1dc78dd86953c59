# SPDX-License-Identifier: Apache-2.0
"""What request bodies may look like: none, compressed, lines."""
import gzip
import json
import re
import struct

from checks import Caller, same, server_of_its_own
from harness import until


def empty_bodies(bench):
    """openapi: a body is required where the document says so, and only there"""
    caller = Caller(bench, "empty-bodies")
    made = caller.post("/v1/executions", {"kind": "k"}, 201)["id"]
    for operation in bench.document.operations:
        declared = operation.content.get("requestBody")
        if declared is None:
            continue
        path = operation.path.replace("{id}", made).replace("{lane}", "l").replace("{worker}", "w")
        path = path.replace("{gate}", "g").replace("{budget}", "b").replace("{endpoint}", "e")
        path = path.replace("{model}", "m")
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
        same(items[2]["id"], items[5]["id"], "the id of the repeated line")
        assert items[1]["error"]["message"].startswith("line 4: "), items[1]
        same(items[4]["error"]["field"], "colour", "the field to blame")
        same(namespaced.send("GET", f"/v1/executions/{items[0]['id']}/payload").body, b'{"n": 1}',
             "the payload of the first")
    plain = caller.send("POST", "/v1/executions", text, 400)  # the type decides
    same(plain.json()["error"]["code"], "invalid_json", "lines that are said to be JSON")


def lines_as_answer(bench):
    """lines: a client that accepts lines gets an answer on each"""
    caller = Caller(bench, "lines-as-answer")
    text = b'{"kind": "a"}\n\n{}\n{"kind": "b"}\n'
    answer = caller.send("POST", "/v1/executions", text,
                         headers=[LINES, ("Accept", "application/x-ndjson")])
    same(answer.header("Content-Type"), "application/x-ndjson", "the type")
    assert answer.body.endswith(b"\n"), answer.body
    items = [json.loads(line) for line in answer.body.splitlines()]
    same([item.get("state") for item in items], ["ready", None, "ready"], "the states")
    same((items[1]["error"]["field"], items[1]["line"]), ("kind", 3), "the refused item")


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


def zstd(data, repeat=1):
    """A frame of raw blocks; with repeat, of blocks that are one byte so many times."""
    if repeat > 1:
        blocks = [(1, 1 << 17, data)] * (repeat >> 17)
    else:
        blocks = [(0, len(data[at:at + 65536]), data[at:at + 65536])
                  for at in range(0, len(data), 65536)] or [(0, 0, b"")]
    frame = struct.pack("<IBB", 0xFD2FB528, 0, 0x38)  # no size, a window of 128 KiB
    for number, (kind, size, content) in enumerate(blocks):
        last = number == len(blocks) - 1
        frame += (last | kind << 1 | size << 3).to_bytes(3, "little") + content
    return frame


PACKERS = {"gzip": gzip.compress, "zstd": zstd}


def packed_bodies(bench):
    """encodings: gzip and zstd bodies are taken as if they had come plainly"""
    caller = Caller(bench, "packed-bodies")
    for name, pack in PACKERS.items():
        coding = ("Content-Encoding", name)
        spec = {"kind": name, "key": name, "payload": {"a": [1, 2, 3]}}
        made = caller.send("POST", "/v1/executions", pack(json.dumps(spec).encode()), 201, [coding])
        caller.post("/v1/executions", spec)  # the same key and payload: the same execution
        same(caller.send("GET", f"/v1/executions/{made.json()['id']}/payload").body,
             b'{"a": [1, 2, 3]}', "the payload")
        lines = b'{"kind": "a"}\nno\n{"kind": "b"}\n'
        items = caller.send("POST", "/v1/executions", pack(lines), 200, [LINES, coding]).json()
        same(["error" in item for item in items["items"]], [False, True, False], "lines")
        claimed = caller.send("POST", "/v1/claims", pack(b'{"worker": "w"}'), 200, [coding]).json()
        lease = {"id": claimed["items"][0]["id"], "epoch": claimed["items"][0]["epoch"]}
        done = caller.send("POST", "/v1/leases/complete", pack(json.dumps(lease).encode()), 200,
                           [coding]).json()
        same(done["state"], "succeeded", "the lease")
        large = {"items": [{"kind": "k", "payload": "x" * 900000}] * 12}
        items = caller.send("POST", "/v1/executions", pack(json.dumps(large).encode()), 200,
                            [coding]).json()["items"]
        same([item.get("state") for item in items], ["ready"] * 12, "10 MB unpacked")
        caller.send("PUT", "/v1/lanes/l", pack(b'{"paused": true}'), 200, [coding])
        caller.send("POST", f"/v1/executions/{lease['id']}/cancel", None, 409, [coding])
    for plain in ("identity", ""):
        caller.send("POST", "/v1/executions", b'{"kind": "k"}', 201, [("Content-Encoding", plain)])


def packed_wrongly(bench):
    """encodings: a body that cannot be unpacked is 400, an unknown encoding 415"""
    caller = Caller(bench, "packed-wrongly")
    spec = b'{"kind": "k"}'
    for name, pack in PACKERS.items():
        whole = pack(spec)
        for wrong in (whole[:-1], whole[:5], whole + b"x", spec, b"\x00" * 100):
            answer = caller.send("POST", "/v1/executions", wrong, 400, [("Content-Encoding", name)])
            error = answer.json()["error"]
            same((error["code"], error["field"]), ("invalid_value", "Content-Encoding"), name)
            assert error["hint"], "no hint"
        refused = caller.send("POST", "/v1/executions", pack(b"no"), 400,
                              [("Content-Encoding", name)]).json()
        same(refused["error"]["code"], "invalid_json", "code for a packed 'no'")
    for names in (["br"], ["deflate"], ["gzip, zstd"], ["gzip", "gzip"], ["identity", "br"]):
        answer = caller.send("POST", "/v1/executions", spec, 415,
                             [("Content-Encoding", name) for name in names])
        same(answer.json()["error"]["code"], "unsupported_media_type", f"the code of {names}")
        same(answer.header("Accept-Encoding"), "gzip, zstd", f"encodings offered after {names}")
        assert answer.json()["error"]["hint"], "no hint"
    answer = caller.send("POST", "/v1/claims", b'{"worker": "w"}\n', 415, [LINES])
    same(answer.json()["error"]["field"], "Content-Type", "lines where none are taken")
    same((answer.header("Accept"), answer.header("Accept-Encoding")), ("application/json", None),
         "Accept and Accept-Encoding of the answer")
    same(caller.send("GET", "/v1/executions").json()["items"], [], "stored executions")


def bombs(bench):
    """encodings: a body that unpacks to more than its limit is 413, and takes no more memory"""
    many = 1 << 30
    small = {"gzip": gzip.compress(b" " * (64 << 20)), "zstd": zstd(b" ", many)}
    with server_of_its_own(bench, "bombs", ["--body-bytes", "40MiB"]) as server:
        caller = Caller(bench, "bombs", server)
        for name, bomb in small.items():
            for path in ("/v1/executions", "/v1/claims", "/v1/leases/complete"):
                answer = caller.send("POST", path, bomb, 413, [("Content-Encoding", name)])
                same(answer.json()["error"]["code"], "too_large", f"the code of {name}")
        # the memory of all bodies has a limit too: what a flow may have is more than that
        for name, bomb in small.items():
            answer = caller.send("POST", "/v1/flows", bomb, 429, [("Content-Encoding", name)])
            same(answer.json()["error"]["code"], "busy", f"the code of {name}")
            assert int(answer.header("Retry-After")) >= 1, "no Retry-After"
        text = caller.send("GET", "/metrics").body.decode()
        same(re.search(r"^weft_http_body_bytes (\d+)", text, re.M).group(1), "0", "bytes kept")
        peak = re.search(r"VmHWM:\s+(\d+) kB", open(f"/proc/{server.process.pid}/status",
                                                   encoding="ascii").read())
        assert int(peak.group(1)) < (1000 << 10), f"{peak.group(1)} kB at most"


def files(bench):
    """files: a form is uploaded, listed, read and deleted as the document says"""
    caller = Caller(bench, "files-document")
    form = ("Content-Type", "multipart/form-data; boundary=XX")
    body = (b'--XX\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            b'--XX\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n[]\r\n--XX--')
    file = caller.send("POST", "/openai/v1/files", body, 200, [form]).json()
    same(file["errors"]["data"][0]["line"], 1, "the line of the mistake")
    same(caller.send("GET", "/openai/v1/files?unknown=1").json()["data"], [file], "the list")
    path = "/openai/v1/files/" + file["id"]
    same(caller.send("GET", path).json(), file, "the file")
    same(caller.send("GET", path + "/content").body, b"[]", "its bytes")
    caller.send("DELETE", path)
    for method in ("GET", "DELETE"):
        error = caller.send(method, path, None, 404).json()["error"]
        same(error["type"], "invalid_request_error", "the error of a file that is gone")
    caller.send("POST", "/openai/v1/files", {}, 415)


def own_files(bench):
    """files: a body is uploaded, listed, read and deleted under weft's own paths"""
    caller = Caller(bench, "own-files-document")
    lines = ("Content-Type", "application/x-ndjson")
    file = caller.send("POST", "/v1/files?filename=a.jsonl", b"[]\n", 201, [lines]).json()
    same((file["filename"], file["bytes"], file["error_count"]), ("a.jsonl", 3, 1), "what it is")
    same(file["errors"][0]["line"], 1, "the line of the mistake")
    same(caller.send("GET", "/v1/files?limit=5").json(), {"items": [file], "next": None}, "the list")
    for name in (file["id"], file["file_id"]):
        same(caller.send("GET", "/v1/files/" + name).json(), file, "the file")
        same(caller.send("GET", f"/v1/files/{name}/content").body, b"[]\n", "its bytes")
    same(caller.send("GET", "/openai/v1/files").json()["data"][0]["id"], file["file_id"], "OpenAI's view of it")
    same(caller.send("DELETE", "/v1/files/" + file["id"]).json(), file, "what was deleted")
    for name in (file["id"], file["file_id"], "file-1"):
        caller.send("GET", "/v1/files/" + name, None, 404)
    same(caller.send("POST", "/v1/files", b"", 400, [lines]).json()["error"]["field"], "file", "an empty file")
    same(caller.send("POST", "/v1/files?expires_ms=5", b"[]", 400, [lines]).json()["error"]["field"],
         "expires_ms", "a file that is gone at once")


def own_batch(caller, batch):
    """A new batch in weft's own words, to its end."""
    path = "/v1/batches/" + batch["batch_id"]
    until(lambda: caller.send("GET", path).json()["status"] == "in_progress", 30)
    same(caller.send("POST", path + "/cancel", {}).json()["id"], batch["id"], "what was cancelled")
    until(lambda: caller.send("GET", path).json()["status"] == "cancelled", 30)
    same(caller.send("POST", path + "/retry").json()["retried"], 1, "lines that run again")
    same(caller.send("DELETE", path).json()["id"], batch["id"], "what was deleted")
    caller.send("GET", path, None, 404)


def batches(bench):
    """batches: they are made, listed and cancelled as the document says, and so are models"""
    caller = Caller(bench, "batches-document")
    model = caller.send("PUT", "/v1/models/m", {"endpoint": "e"}).json()
    same(caller.send("GET", "/v1/models/m").json(), model, "the model")
    same(caller.send("GET", "/v1/models").json()["items"], [model], "the models")
    same(caller.send("GET", "/openai/v1/models").json()["data"][0]["id"], "m", "for OpenAI's clients")
    form = ("Content-Type", "multipart/form-data; boundary=XX")
    line = json.dumps({"custom_id": "a", "method": "POST", "url": "/v1/x", "body": {"model": "m"}})
    body = ('--XX\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--XX\r\nContent-Disposition: form-data; name="file"\r\n\r\n{line}\r\n--XX--').encode()
    file = caller.send("POST", "/openai/v1/files", body, 200, [form]).json()["id"]
    batch = caller.send("POST", "/openai/v1/batches", {
        "input_file_id": file, "endpoint": "/v1/x", "completion_window": "24h"}).json()
    path = "/openai/v1/batches/" + batch["id"]
    same(caller.send("GET", path).json()["id"], batch["id"], "the batch")
    same(caller.send("GET", "/openai/v1/batches").json()["first_id"], batch["id"], "the list")
    own = caller.send("POST", "/v1/batches", {"input_file_id": file, "endpoint": "/v1/x", "key": "k"}).json()
    same((own["completion_window"], own["input_file_id"]), ("24h", file), "weft's own view of a new one")
    again = caller.send("POST", "/v1/batches", {"input_file_id": file, "endpoint": "/v1/x", "key": "k"}).json()
    same(again["id"], own["id"], "the same key")
    error = caller.send("POST", "/v1/batches", {"input_file_id": file, "endpoint": "/v1/y", "key": "k"}, 409).json()["error"]
    same(error["field"], "key", "the key of another batch")
    caller.send("POST", path + "/cancel", {})
    own_batch(caller, own)
    caller.send("DELETE", "/v1/models/m")
    caller.send("GET", "/v1/models/m", None, 404)


ALL = [files, own_files, batches, packed_bodies, packed_wrongly, bombs, empty_bodies, lines_of_specs, lines_as_answer, lines_limits]
