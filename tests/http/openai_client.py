#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""OpenAI's client for JavaScript, unchanged but for its baseURL, against batches.

The client is an npm package, fixed by openai-client/package-lock.json, installed once into the build
folder. Where it cannot be had the points are skipped with the reason. The executor is played by a
worker. WEFT_TEST_STORE: sqlite or pg.
"""
import json
import os
import shutil
import subprocess
import tempfile
import threading

from harness import BUILD, FAULTS, HERE, STORE, Calls, Tap, scratch, serve, until

SOURCE = os.path.join(HERE, "openai-client")
INSTALL_S, RUN_S = 300, 180


def install(folder):
    """None, or why the client cannot be had."""
    if not shutil.which("npm") or not shutil.which("node"):
        return "npm is not installed"
    for name in ("package.json", "package-lock.json", ".npmrc", "run.mjs"):
        shutil.copy(os.path.join(SOURCE, name), folder)
    try:
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired:
        return f"npm ci was not done after {INSTALL_S} s"
    return f"npm ci failed: {done.stdout[-300:]}" if done.returncode else None


def work(server, stop):
    """Answers the calls of model m; every tenth gets a 400."""
    calls = Calls(server)
    while not stop.is_set():
        try:
            items = calls.good("POST", "/v1/claims", {"worker": "w", "lanes": ["m"], "kinds": ["http"], "max": 100,
                                                      "wait_ms": 200})["items"]
            for item in items:
                lease = {"id": item["id"], "epoch": item["epoch"]}
                if item["node"].endswith("7"):
                    calls.good("POST", "/v1/leases/fail", {"items": [
                        {**lease, "class": "http_400", "message": "no", "retryable": False}]})
                else:
                    calls.good("POST", "/v1/leases/complete", {"items": [
                        {**lease, "result": {"status": 200, "headers": {}, "body": {"n": item["node"]}}}]})
        except FAULTS:
            return
    calls.close()


def judge(tap, seen):
    tap.equal(seen["file"], ["file", "batch", True], "a file is uploaded and looked at")
    tap.equal(seen["counts"], {"total": 200, "completed": 180, "failed": 20}, "a batch completes")
    tap.equal(seen["metadata"], {"team": "a"}, "its metadata come back")
    tap.equal(seen["lines"], [180, 20, 200], "each line is in one of the files")
    tap.equal((seen["answer"], seen["error"]), ({"n": "r 0"}, 400), "lines of output and errors")
    tap.equal(seen["bad"], ["invalid_json_line", 2], "a bad line fails a batch")
    tap.equal((seen["late"], seen["cancelled"]), (["batch_expired"], ["batch_cancelled"]), "lines that did not run say why")
    tap.equal((seen["batches"], seen["files"], seen["models"]), (4, 3, ["idle", "m"]), "lists page by themselves")
    tap.equal(seen["failures"],
              ["NotFoundError 404 not_found", "NotFoundError 404 not_found", "BadRequestError 400 invalid_value",
               "ConflictError 409 not_live", "BadRequestError 400 invalid_value",
               "AuthenticationError 401 invalid_api_key", "PermissionDeniedError 403 forbidden"],
              "failures are the client's exceptions")
    tap.equal((seen["deleted"], seen["gone"]), (True, "NotFoundError 404 not_found"), "a file is deleted")


def main():
    tap = Tap()
    folder = tempfile.mkdtemp(prefix="openai-client.", dir=BUILD)
    missing = install(folder)
    if missing:
        tap.skip(missing)
    else:
        store = scratch(STORE, "openai")
        server = serve(store, tap=tap)
        calls, stop = Calls(server), threading.Event()
        for model in ("m", "idle"):
            calls.good("PUT", f"/v1/models/{model}", {"endpoint": "e"})
        token = server.make_token("submit,read")["token"]
        reader = server.make_token("read")["token"]
        known = Calls(server)
        known.headers = {"Authorization": "Bearer " + reader}
        until(lambda: known("GET", "/openai/v1/files")[0] == 200, 20)  # the server reads tokens once a second
        known.close()
        worker = threading.Thread(target=work, args=(server, stop))
        worker.start()
        done = subprocess.run(["node", "run.mjs", f"http://{server.host}:{server.port}/openai/v1",
                               token, reader], cwd=folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_S, check=False)
        stop.set()
        worker.join()
        tap.equal(done.returncode, 0, "the client does all of it")
        if done.returncode == 0:
            judge(tap, json.loads(done.stdout))
        else:
            tap.note(done.stderr[-2000:])
        calls.close()
        tap.equal(server.stop(), 0, "the server stops by itself")
        store.remove()
    shutil.rmtree(folder)
    tap.done()


if __name__ == "__main__":
    main()
