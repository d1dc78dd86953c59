#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Uploads and downloads of files: tests/http/files.py (WEFT_TEST_STORE: sqlite or pg). Prints TAP."""
import json
import random

from harness import STORE, Calls, Raw, Tap, metrics, scratch, serve, until

FILES = "/openai/v1/files"
BOUNDARY = "----weft-test"
COUNTERS = ("weft_files_uploaded_total", "weft_file_bytes_uploaded_total")
LIMIT = 1 << 20  # --file-bytes, and 100 requests


def line(custom_id, pad=0):
    return json.dumps({"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions",
                       "body": {"model": "m", "pad": "x" * pad}}) + "\n"


def form(*fields):
    """Each field is (name, value) or (name, value, filename)."""
    body = b""
    for name, value, *filename in fields:
        body += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"'.encode()
        body += f'; filename="{filename[0]}"'.encode() if filename else b""
        body += b"\r\n\r\n" + (value if isinstance(value, bytes) else value.encode()) + b"\r\n"
    return body + f"--{BOUNDARY}--\r\n".encode()


def head(size=None):
    how = b"Transfer-Encoding: chunked" if size is None else b"Content-Length: %d" % size
    return (b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; "
            b"boundary=%s\r\n%s\r\n\r\n" % (FILES.encode(), BOUNDARY.encode(), how))


def post(server, body, chunked=False):
    with Raw(server, timeout=60) as raw:
        if not chunked:
            raw.send(head(len(body)) + body)
        else:
            raw.send(head())
            at, dice = 0, random.Random(7)
            while at < len(body):
                part = body[at:at + dice.choice((1, 2, 77, 5000, 70000))]
                raw.send(b"%x\r\n%s\r\n" % (len(part), part))
                at += len(part)
            raw.send(b"0\r\n\r\n")
        status, _, answer = raw.answer()
        return status, json.loads(answer)


def get(calls, path, **headers):
    kept, calls.headers = calls.headers, {**calls.headers, **headers}
    try:
        return calls("GET", path)
    finally:
        calls.headers = kept


def round_trip(tap, server, calls):
    content = "".join(line(f"r{i}", pad) for i, pad in enumerate([0, 300000, 10, 200000, 5])).encode()
    for chunked in (False, True):
        status, file = post(server, form(("purpose", "batch"), ("file", content, "in.jsonl")), chunked)
        tap.equal((status, file["bytes"], file["requests"], file["errors"]), (200, len(content), 5, None),
                  f"a file is uploaded, {'chunked' if chunked else 'at once'}")
        path = f"{FILES}/{file['id']}"
        tap.equal(get(calls, path)[2], file, "it is as the upload said")
        status, headers, got = get(calls, path + "/content")
        tap.equal((status, bytes(got) == content, headers["Content-Length"]),
                  (200, True, str(len(content))), "its bytes come back")
    return file, content


def ranges(tap, calls, file, content):
    path = f"{FILES}/{file['id']}/content"
    size = len(content)
    for asked, first, end in (("0-0", 0, 1), ("10-99", 10, 100), ("300000-400000", 300000, 400001),
                              (f"{size - 5}-", size - 5, size), ("-7", size - 7, size),
                              (f"5-{size + 99}", 5, size), (f"-{size + 99}", 0, size)):
        status, headers, got = get(calls, path, Range="bytes=" + asked)
        tap.equal((status, bytes(got) == content[first:end], headers["Content-Range"]),
                  (206, True, f"bytes {first}-{end - 1}/{size}"), f"the bytes {asked}")
    for asked in (f"{size}-", "-0"):
        status, headers, got = get(calls, path, Range="bytes=" + asked)
        tap.equal((status, headers["Content-Range"], got["error"]["type"]),
                  (416, f"bytes */{size}", "invalid_request_error"), f"there are no bytes {asked}")
    for asked in ("bytes=0-1,5-6", "lines=1-2", "bytes=5-1", "bytes=a"):
        status, _, got = get(calls, path, Range=asked)
        tap.equal((status, len(got)), (200, size), f"{asked} asks for no range")


def lines_of_a_batch(tap, server, calls):
    """The lines of a batch that has ended are read in ranges; those of one that runs as a whole."""
    calls.good("PUT", "/v1/models/m", {"endpoint": "e"})
    _, file = post(server, form(("purpose", "batch"), ("file", "".join(line(f"r{i}") for i in range(80)), "a")))
    batch = calls.good("POST", "/v1/batches", {"input_file_id": file["id"], "endpoint": "/v1/chat/completions"})
    until(lambda: calls.good("GET", f"/v1/batches/{batch['id']}")["status"] == "in_progress", 30)
    path = f"{FILES}/file-errors-{batch['batch_id'][len('batch_'):]}/content"
    status, headers, _ = get(calls, path, Range="bytes=0-9")
    tap.equal((status, headers["Accept-Ranges"]), (200, None), "while the batch runs there are no ranges")
    calls.good("POST", f"/v1/batches/{batch['id']}/cancel")
    until(lambda: calls.good("GET", f"/v1/batches/{batch['id']}")["status"] == "cancelled", 30)
    status, headers, whole = get(calls, path)
    whole = bytes(whole)
    tap.equal((status, headers["Accept-Ranges"], whole.count(b"\n")), (200, "bytes", 80), "then all lines are there")
    size = len(whole)
    for asked, first, end in (("0-0", 0, 1), ("150-5000", 150, 5001), (f"{size - 300}-", size - 300, size),
                              ("-7", size - 7, size), (f"9-{size + 9}", 9, size)):
        status, headers, got = get(calls, path, Range="bytes=" + asked)
        tap.equal((status, bytes(got) == whole[first:end], headers["Content-Range"]),
                  (206, True, f"bytes {first}-{end - 1}/{size}"), f"the bytes {asked} of the lines")
    status, headers, _ = get(calls, path, Range=f"bytes={size}-")
    tap.equal((status, headers["Content-Range"]), (416, f"bytes */{size}"), "there is nothing behind them")
    for own in (batch["id"], batch["batch_id"]):
        tap.equal(calls.good("GET", f"/v1/batches/{own}")["cancelled"], 80, "a batch by either of its names")


def lists(tap, server, calls):
    made = sorted(post(server, form(("purpose", "batch"), ("file", line("a"), f"{i}.jsonl")))[1]["id"]
                  for i in range(3))  # their order within a millisecond is not that of the uploads
    page = calls.good("GET", f"{FILES}?limit=2&unknown=1")
    tap.equal((page["object"], [file["id"] for file in page["data"]], page["has_more"]),
              ("list", made[:0:-1], True), "the newest two")
    tap.equal((page["first_id"], page["last_id"]), (made[2], made[1]), "and their ends")
    page = calls.good("GET", f"{FILES}?limit=1&after={page['last_id']}")
    tap.equal([file["id"] for file in page["data"]], made[:1], "the page behind them")
    tap.equal(calls("GET", FILES + "?after=nonsense")[0], 400, "after must be an id")
    tap.equal(calls.good("DELETE", f"{FILES}/{made[0]}"),
              {"id": made[0], "object": "file", "deleted": True}, "a file is deleted")
    for path in (made[0], made[0] + "/content", "file-x"):
        status, _, answer = calls("GET", f"{FILES}/{path}")
        tap.equal((status, answer["error"]["code"]), (404, "not_found"), f"{path[-8:]} is not there")


def flaws(tap, server):
    content = line("a") + "\n" + line("a") + "oops\n" + "".join(f'{{"n":{i}}}\n' for i in range(60))
    status, file = post(server, form(("file", content, "bad.jsonl"), ("purpose", "batch")))
    errors = file["errors"]
    tap.equal((status, file["requests"], errors["total"], len(errors["data"])), (200, 63, 62, 62),
              "lines with mistakes do not fail an upload")
    tap.equal([(flaw["code"], flaw["line"]) for flaw in errors["data"][:3]],
              [("duplicate_custom_id", 3), ("invalid_json_line", 4),
               ("missing_required_parameter", 5)], "each has its true line")
    content = "".join(line(f"r{i}") for i in range(150))
    _, file = post(server, form(("file", content, "many.jsonl"), ("purpose", "batch")))
    tap.equal([(flaw["code"], flaw["line"]) for flaw in file["errors"]["data"]],
              [("too_many_tasks", 101)], "a file may have too many requests")


def refusals(tap, server, calls):
    good = ("file", line("a"), "a.jsonl")
    for what, body, status, param in (
            ("no file", form(("purpose", "batch")), 400, "file"),
            ("no purpose", form(good), 400, "purpose"),
            ("another purpose", form(good, ("purpose", "fine-tune")), 400, "purpose"),
            ("two files", form(good, good, ("purpose", "batch")), 400, "file"),
            ("a time that is too short", form(good, ("purpose", "batch"),
                                              ("expires_after[seconds]", "5")), 400,
             "expires_after.seconds"),
            ("an anchor that is not known", form(good, ("purpose", "batch"),
                                                 ("expires_after[anchor]", "x")), 400,
             "expires_after.anchor"),
            ("a form that was cut", form(good, ("purpose", "batch"))[:-20], 400, "body"),
            ("nothing", b"", 400, "file"),
            ("a file that is too large", form(("file", b"x" * (LIMIT + 1), "x")), 413, "file"),
            ("an announced size that is too large", form(("file", b"x" * (LIMIT + 200000), "x")), 413, "file")):
        got, answer = post(server, body)
        tap.equal((got, sorted(answer["error"]), answer["error"]["param"]),
                  (status, ["code", "message", "param", "type"], param), what)
    tap.equal(calls("POST", FILES, {})[0], 415, "a body that is no form")
    _, file = post(server, form(good, ("purpose", "batch"), ("other", "1"), ("expires_after[anchor]", "created_at"),
                                ("expires_after[seconds]", "3600")))
    tap.ok(abs(file["expires_at"] - file["created_at"] - 3600) <= 1, "a file has its time", file)
    _, file = post(server, form(("file", b"", "none"), ("purpose", "batch")))
    tap.equal((file["bytes"], file["requests"]), (0, 0), "a file may be empty")
    tap.equal(get(calls, f"{FILES}/{file['id']}/content")[0], 200, "and is read")


def broken_off(tap, server, calls):
    """A client that goes away in the middle leaves nothing behind that is seen."""
    before = len(calls.good("GET", FILES)["data"])
    with Raw(server) as raw:
        raw.send(head(900000) + form(("purpose", "batch"), ("file", line("a", 500000), "x"))[:400000])
    tap.equal(len(calls.good("GET", FILES)["data"]), before, "an upload that broke off is not listed")


def own_uploads(tap, server, calls):
    """POST /v1/files: the body is the file."""
    content = "".join(line(f"r{i}", 50000) for i in range(10)).encode()
    before, counted = len(calls.good("GET", "/v1/files?limit=1000")["items"]), metrics(server)
    for how in (b"Content-Length: %d" % len(content), b"Transfer-Encoding: chunked"):
        chunks = [content[at:at + 70000] for at in range(0, len(content), 70000)]
        body = content if b"Length" in how else b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in chunks) + b"0\r\n\r\n"
        with Raw(server, timeout=60) as raw:
            raw.send(b"POST /v1/files?filename=own HTTP/1.1\r\nHost: localhost\r\n" + how + b"\r\n\r\n" + body)
            status, _, answer = raw.answer()
            file = json.loads(answer)
        tap.equal((status, file["filename"], file["bytes"], file["requests"], file["error_count"]),
                  (201, "own", len(content), 10, 0), f"a file with {how[:17]}")
        tap.equal(bytes(get(calls, f"/v1/files/{file['id']}/content")[2]) == content, True, "its bytes")
    with Raw(server, timeout=60) as raw:
        raw.send(b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n"
                 % (3 * LIMIT))
        status, _, answer = raw.answer()
    tap.equal((status, json.loads(answer)["error"]["field"]), (413, "file"), "a file that is too large is refused before it is sent")
    chunk = b"%x\r\n%s\r\n" % (len(content), content)
    with Raw(server, timeout=60) as raw:
        raw.send(b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + 4 * chunk + b"0\r\n\r\n")
        status, _, answer = raw.answer()
    tap.equal((status, json.loads(answer)["error"]["field"]), (413, "file"), "one whose size was not told gets its answer too")
    tap.equal(len(calls.good("GET", "/v1/files?limit=1000")["items"]), before + 2, "and leaves nothing")
    after = metrics(server)
    tap.equal([after[name] - counted[name] for name in COUNTERS], [2, 2 * len(content)], "whole uploads are counted")


def tenants(tap, server):
    mine, other = Calls(server), Calls(server, namespace="other")
    _, file = post(server, form(("file", line("a"), "a"), ("purpose", "batch")))
    tap.equal(other("GET", f"{FILES}/{file['id']}")[0], 404, "another namespace does not see a file")
    tap.equal(other("DELETE", f"{FILES}/{file['id']}")[0], 404, "nor delete it")
    tap.equal(other.good("GET", FILES)["data"], [], "nor list it")
    mine.close()
    other.close()


def main():
    tap = Tap()
    store = scratch(STORE, "files")
    server = serve(store, "--file-bytes", "1MiB", "--file-requests", "100", tap=tap)
    calls = Calls(server)
    file, content = round_trip(tap, server, calls)
    ranges(tap, calls, file, content)
    lists(tap, server, calls)
    lines_of_a_batch(tap, server, calls)
    own_uploads(tap, server, calls)
    flaws(tap, server)
    refusals(tap, server, calls)
    broken_off(tap, server, calls)
    tenants(tap, server)
    calls.close()
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()
    tap.done()


if __name__ == "__main__":
    main()
