#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batches through their life: tests/http/batches.py (WEFT_TEST_STORE: sqlite or pg). The executor is played by
workers, but where a model is down. Prints TAP."""
import http.client
import json
import socket

from executor import Upstream
from executor import put as put_endpoint
from harness import STORE, Calls, Tap, scratch, serve, until

FILES, BATCHES = "/openai/v1/files", "/openai/v1/batches"
LINES = 6000
URL = "/v1/chat/completions"


def line(number, model="m"):
    return json.dumps({"custom_id": f"r {number}", "method": "POST", "url": URL,
                       "body": {"model": model, "n": number}}) + "\n"


def upload(calls, content):
    body = ('--XX\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--XX\r\n'
            'Content-Disposition: form-data; name="file"; filename="in"\r\n\r\n' + content + "\r\n--XX--\r\n")
    connection = http.client.HTTPConnection(calls.host, calls.port, timeout=60)
    try:
        connection.request("POST", FILES, body.encode(), {"Content-Type": "multipart/form-data; boundary=XX"})
        answer = connection.getresponse()
        file = json.loads(answer.read())
        if answer.status != 200:
            raise OSError(f"{answer.status} {file}")
        return file
    finally:
        connection.close()


def create(calls, file, **more):
    return calls.good("POST", BATCHES, {"input_file_id": file, "endpoint": URL, "completion_window": "24h", **more})


def wait(calls, batch, status, seconds=60):
    seen = {}

    def there():
        seen.update(calls.good("GET", f"{BATCHES}/{batch}"))
        return seen["status"] == status
    until(there, seconds)
    return seen


def read_lines(calls, file):
    if not file:
        return []
    _, _, text = calls("GET", f"{FILES}/{file}/content")
    return [json.loads(one) for one in bytes(text).decode().splitlines()]


def is_bad(node):
    return node.endswith("7")


def finish(calls, items):
    good = [item for item in items if not is_bad(item["node"])]
    bad = [item for item in items if is_bad(item["node"])]
    if good:
        calls.good("POST", "/v1/leases/complete", {"items": [
            {"id": item["id"], "epoch": item["epoch"],
             "result": {"status": 200, "headers": {"x-request-id": "q"}, "body": {"n": item["node"]}}}
            for item in good]})
    if bad:
        calls.good("POST", "/v1/leases/fail", {"items": [
            {"id": item["id"], "epoch": item["epoch"], "class": "http_400", "message": "no",
             "retryable": False} for item in bad]})


def claim(calls, most=500, wait_ms=300):
    return calls.good("POST", "/v1/claims", {"worker": "w", "lanes": ["m"], "kinds": ["http"], "max": most,
                                             "lease_ms": 60000, "wait_ms": wait_ms})["items"]


def claim_exactly(calls, count):
    """A batch that has just begun lets its lines go in parts, so one claim may find fewer."""
    items = []
    until(lambda: items.extend(claim(calls, count - len(items))) or len(items) == count, 30)
    return items


def check_files(tap, calls, batch, total, what):
    output, errors = (read_lines(calls, batch[key]) for key in ("output_file_id", "error_file_id"))
    names = [entry["custom_id"] for entry in output + errors]
    counts = batch["request_counts"]
    tap.equal(sorted(names), sorted(f"r {n}" for n in range(total)), f"{what}: each line once")
    tap.equal((counts["total"], counts["completed"]), (total, len(output)), f"{what}: the counts are those of the files")
    order = [int(entry["custom_id"][2:]) for entry in output]
    tap.ok(order == sorted(order), f"{what}: the output is in the order of the file")
    return output, errors


def life(tap, calls):
    file = upload(calls, "".join(line(n) for n in range(500)))["id"]
    batch = create(calls, file, metadata={"a": "b"})
    tap.equal((batch["object"], batch["metadata"], batch["output_file_id"]), ("batch", {"a": "b"}, None), "a batch")
    batch = wait(calls, batch["id"], "in_progress")
    while items := claim(calls):
        finish(calls, items)
    batch = wait(calls, batch["id"], "completed")
    output, errors = check_files(tap, calls, batch, 500, "completed")
    tap.equal(batch["request_counts"]["failed"], len(errors), "failed lines are counted")
    tap.equal(output[0]["response"], {"status_code": 200, "request_id": "q", "body": {"n": "r 0"}}, "a line of the output")
    tap.equal((errors[0]["response"]["status_code"], errors[0]["error"]), (400, None), "a line of the errors")
    tap.equal(calls("POST", f"{BATCHES}/{batch['id']}/cancel")[0], 409, "a completed batch is not cancelled")
    for path, status in ((f"{BATCHES}/batch_x", 404), (f"{BATCHES}/batch_{'0' * 31}1", 404)):
        tap.equal(calls("GET", path)[0], status, "a batch that is not there")
    for body in ({}, {"input_file_id": file, "endpoint": URL}, {"input_file_id": file, "endpoint": "x", "completion_window": "1h"},
                 {"input_file_id": file, "endpoint": URL, "completion_window": "1h", "metadata": {"a": 1}}):
        tap.equal(calls("POST", BATCHES, body)[0], 400, f"not a batch: {str(body)[:60]}")
    return file


OWN = "/v1/batches"


def uuid_of(batch):
    digits = batch[len("batch_"):]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def own(tap, calls, file):
    """Batches in weft's own words, and retries of them."""
    batch = wait(calls, create(calls, file, completion_window="60s", metadata={"a": "b"})["id"], "in_progress")
    finish(calls, claim_exactly(calls, 200))
    seen = calls.good("GET", f"{OWN}/{batch['id']}")
    tap.equal(seen, {**calls.good("GET", f"{OWN}/{seen['id']}"), "estimated_end_at": seen["estimated_end_at"]},
              "both forms of the id are the same batch")
    tap.equal((seen["id"], seen["batch_id"], seen["input_file_id"]), (uuid_of(batch["id"]), batch["id"], file),
              "it has both ids")
    tap.equal((seen["total"], seen["succeeded"], seen["failed"], seen["running"], seen["ended_last_minute"]),
              (500, 180, 20, 0, 200), "its lines are counted")
    tap.ok(seen["estimated_end_at"] and not seen["finished_at"], "the end is estimated")
    tap.equal([(one["model"], one["total"], one["failed"]) for one in seen["models"]], [("m", 500, 20)],
              "they are counted by model")
    tap.equal([one["id"] for one in calls.good("GET", f"{OWN}?status=in_progress")["items"]], [seen["id"]],
              "it is listed by its status")
    page = calls.good("GET", f"{OWN}?limit=1")
    tap.ok("models" not in page["items"][0] and page["next"], "a page of the list has no details")
    tap.ok(calls.good("GET", f"{OWN}?limit=1&after={page['next']}")["items"][0]["id"] != page["items"][0]["id"],
           "the next page goes on")
    calls.good("POST", f"{OWN}/{seen['id']}/cancel")
    batch = wait(calls, batch["id"], "cancelled")
    before = check_files(tap, calls, batch, 500, "cancelled")
    retried = calls.good("POST", f"{OWN}/{seen['id']}/retry", {})
    tap.equal((retried["retried"], retried["more"], retried["status"]), (320, False, "in_progress"), "retry brings lines back")
    batch = calls.good("GET", f"{BATCHES}/{batch['id']}")
    tap.equal((batch["status"], batch["request_counts"], batch["cancelled_at"], batch["cancelling_at"]),
              ("in_progress", {"total": 500, "completed": 180, "failed": 0}, None, None), "the batch is in progress")
    tap.equal((read_lines(calls, batch["error_file_id"]), len(read_lines(calls, batch["output_file_id"]))), ([], 180),
              "the lines have left the errors")
    while items := claim(calls):
        finish(calls, [{**item, "node": "good"} for item in items])
    batch = wait(calls, batch["id"], "completed")
    output, errors = check_files(tap, calls, batch, 500, "retried")
    tap.equal((len(before[0]), len(output), errors, batch["error_file_id"]), (180, 500, [], None), "all are in the output")
    again = calls.good("POST", f"{OWN}/{seen['id']}/retry")
    tap.equal((again["retried"], again["status"]), (0, "completed"), "nothing is left to retry")


def replayed(tap, calls, file):
    """A line that is replayed by itself; the answer of a server to a line that failed."""
    batch = wait(calls, create(calls, file)["id"], "in_progress")
    while items := claim(calls):
        calls.good("POST", "/v1/leases/fail", {"items": [
            {"id": item["id"], "epoch": item["epoch"], "class": "http_422", "message": "no", "retryable": False,
             "detail": {"status": 422, "headers": {"x-request-id": "r"}, "body": {"error": {"message": item["node"]}}}}
            for item in items[:250]]})
        finish(calls, [{**item, "node": "good"} for item in items[250:]])
    batch = wait(calls, batch["id"], "completed")
    _, errors = check_files(tap, calls, batch, 500, "failed lines")
    tap.ok(errors and all(entry["response"] == {"status_code": 422, "request_id": "r",
                                                "body": {"error": {"message": entry["custom_id"]}}}
                          and entry["error"] is None for entry in errors), "what was answered is in the error file")
    failed = len(errors)
    line_id = errors[3]["id"][len("batch_req_"):]
    calls.good("POST", f"/v1/executions/{uuid_of('batch_' + line_id)}/replay", {})
    seen = calls.good("GET", f"{BATCHES}/{batch['id']}")
    tap.equal((seen["status"], seen["request_counts"]["failed"], seen["completed_at"]), ("in_progress", failed - 1, None),
              "a line that is replayed opens the batch again")
    items = claim(calls)
    tap.equal([item["node"] for item in items], [errors[3]["custom_id"]], "the line runs")
    finish(calls, [{**items[0], "node": "good"}])
    seen = wait(calls, batch["id"], "completed")
    check_files(tap, calls, seen, 500, "replayed")
    tap.equal(seen["request_counts"]["failed"], failed - 1, "the final counts are new ones")


def deleted(tap, calls, file):
    batch = wait(calls, create(calls, file)["id"], "in_progress")
    held = claim_exactly(calls, 10)
    gone = calls.good("DELETE", f"{OWN}/{batch['id']}")
    tap.equal(gone, {"id": uuid_of(batch["id"]), "status": "in_progress"}, "a batch that runs is deleted")
    for path in (f"{OWN}/{batch['id']}", f"{BATCHES}/{batch['id']}", f"{FILES}/{batch['output_file_id']}/content"):
        tap.equal(calls("GET", path)[0], 404, "it is shown no more")
    tap.equal(calls("DELETE", f"{OWN}/{batch['id']}")[0], 404, "again: there is none")
    tap.equal(calls("POST", "/v1/leases/complete", {"id": held[0]["id"], "epoch": held[0]["epoch"]})[0], 409,
              "its calls in flight are revoked")
    until(lambda: not claim(calls), 10)  # the others are cancelled, as those of a flow are
    for path in (f"{OWN}/x", f"{OWN}/{uuid_of(batch['id'])}"):
        tap.ok(calls("GET", path)[0] in (400, 404), "a batch that is not there")
    tap.equal(calls("GET", f"{OWN}?status=gone")[0], 400, "a status that there is not")


def flawed(tap, calls, file):
    bad = upload(calls, line(1) + "oops\n")["id"]
    batch = wait(calls, create(calls, bad)["id"], "failed")
    tap.equal([(flaw["code"], flaw["line"]) for flaw in batch["errors"]["data"]], [("invalid_json_line", 2)],
              "a bad line fails the batch")
    batch = wait(calls, create(calls, upload(calls, line(1) + line(2, "other"))["id"])["id"], "failed")
    tap.equal([(flaw["code"], flaw["line"]) for flaw in batch["errors"]["data"]], [("model_not_found", 2)],
              "so does a model that is not there")
    batch = wait(calls, create(calls, file, endpoint="/v1/embeddings")["id"], "failed")
    tap.equal(len(batch["errors"]["data"]), 100, "and another endpoint")


def cancelled(tap, calls, file):
    batch = wait(calls, create(calls, file)["id"], "in_progress")
    until(lambda: finish(calls, items := claim(calls, 10)) or items, 10)
    calls.good("POST", f"{BATCHES}/{batch['id']}/cancel")
    batch = wait(calls, batch["id"], "cancelled")
    _, errors = check_files(tap, calls, batch, 500, "cancelled")
    codes = {entry["error"]["code"] for entry in errors if entry["error"]}
    tap.equal(codes, {"batch_cancelled"}, "lines that did not begin say so")


def expired(tap, calls, file):
    batch = wait(calls, create(calls, file, completion_window="1s")["id"], "expired")
    _, errors = check_files(tap, calls, batch, 500, "expired")
    tap.equal({entry["error"]["code"] for entry in errors}, {"batch_expired"}, "lines that came too late say so")


def held_up(tap):
    """A model whose server is down does not hold up another one in the same batch."""
    store = scratch(STORE, "batchdown")
    server = serve(store, tap=tap)
    calls, upstream = Calls(server), Upstream()
    with socket.socket() as nobody:  # bound, and not listening: nothing answers there
        nobody.bind(("127.0.0.1", 0))
        put_endpoint(calls, "up", f"{upstream.url}/v1", idempotent=True)
        put_endpoint(calls, "down", f"http://127.0.0.1:{nobody.getsockname()[1]}/v1", idempotent=True)
        calls.good("PUT", "/v1/models/good", {"endpoint": "up"})
        calls.good("PUT", "/v1/models/bad", {"endpoint": "down", "escalate_to": None})
        file = upload(calls, "".join(line(n, "bad" if n % 2 else "good") for n in range(200)))["id"]
        batch = wait(calls, create(calls, file, completion_window="30s")["id"], "in_progress")

        def models():
            return {one["model"]: one for one in calls.good("GET", f"{OWN}/{batch['id']}")["models"]}
        until(lambda: models()["good"]["succeeded"] == 100, 15)
        tap.equal(models()["bad"]["succeeded"], 0, "the lines of the model that is up end while the other one is down")
        # Half of the window is left: the lines that wait go to the model that is up.
        calls.good("PUT", "/v1/models/bad", {"endpoint": "down", "escalate_to": "good"})
        until(lambda: calls.good("GET", f"{BATCHES}/{batch['id']}")["status"] in ("completed", "expired"), 60)
        final = calls.good("GET", f"{BATCHES}/{batch['id']}")
        check_files(tap, calls, final, 200, "escalated")
        shown = models()
        tap.ok(shown["good"]["total"] > 100 and shown["bad"]["escalated_to"] == "good",
               "lines that still waited have gone to it", str(shown))
        tap.equal(shown["good"]["succeeded"], shown["good"]["total"], "and succeeded there")
    calls.close()
    upstream.stop()
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()


def main():
    tap = Tap()
    store = scratch(STORE, "batches")
    server = serve(store, tap=tap)
    calls = Calls(server)
    tap.equal(calls("GET", "/v1/models/m")[0], 404, "there is no model")
    model = calls.good("PUT", "/v1/models/m", {"endpoint": "e", "max_running": 3000})
    tap.equal((model["lane"], model["max_running"], calls.good("GET", "/v1/lanes/m")["max_running"]), ("m", 3000, 3000),
              "the limit of a model is that of its lane")
    tap.equal(calls.good("PUT", "/v1/models/m", model), model, "what a GET gave may be put back")
    for other in ("x", "m", "*"):
        tap.equal(calls("PUT", "/v1/models/m", {"endpoint": "e", "escalate_to": other})[0], 400, f"escalate_to {other} is refused")
    file = life(tap, calls)
    flawed(tap, calls, file)
    own(tap, calls, file)
    replayed(tap, calls, file)
    deleted(tap, calls, file)
    cancelled(tap, calls, file)
    expired(tap, calls, file)
    ids = [batch["id"] for batch in calls.good("GET", BATCHES)["data"]]
    page = calls.good("GET", f"{BATCHES}?limit=2&after={ids[0]}")
    tap.equal(([batch["id"] for batch in page["data"]], page["has_more"]), (ids[1:3], True), "batches are listed in pages")
    calls.close()
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()
    held_up(tap)
    tap.done()


if __name__ == "__main__":
    main()
