#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trial calls to endpoints, the secrets that they carry, and the command. Prints TAP.

A server of this program stands for the other side and keeps what it was sent.
"""
import http.server
import json
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time

from harness import BINARY, STORE, Calls, Tap, scratch, serve, until

FIRST, SECOND, THEIRS, VARIABLE = (f"sk-{word}-0f1e2d3c4b5a" for word in
                                   ("first", "second", "theirs", "variable"))


class Upstream(http.server.BaseHTTPRequestHandler):
    seen = []

    def answer(self):
        self.seen.append((self.command, self.path, dict(self.headers)))
        if self.path.startswith("/v1/slow"):
            time.sleep(3)
        body = b"x" * 1000
        try:
            self.give(body)
        except BrokenPipeError:
            pass  # the timeout came first

    def give(self, body):
        self.send_response(503 if self.path.startswith("/v1/busy") else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *args):
        pass


def write(path, text):
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
        f.write(text)


def reload(server, calls, name):
    """A changed secret is there when the log says that the secrets were read anew."""
    before = sum("the secrets were read anew" in line for line in server.lines)
    os.kill(server.process.pid, signal.SIGHUP)
    until(lambda: sum("the secrets were read anew" in line for line in server.lines) > before, 30)
    return calls.good("POST", f"/v1/endpoints/{name}/test")


def trials(tap, calls, port):
    calls.good("PUT", "/v1/endpoints/mock", {
        "url": f"http://127.0.0.1:{port}/v1", "private": True, "secret": "openai",
        "headers": {"X-Team": "a"}, "idempotency_header": "Idempotency-Key"})
    done = calls.good("POST", "/v1/endpoints/mock/test", {"path": "/models?a=b"})
    tap.equal((done["status"], done["error"], done["bytes"], done["url"]),
              (200, None, 1000, f"http://127.0.0.1:{port}/v1/models?a=b"), "a call is made")
    tap.ok(0 < done["connected_us"] <= done["first_byte_us"] <= done["total_us"]
           and done["secured_us"] is None, "it says when what happened", done)
    method, path, headers = Upstream.seen[-1]
    tap.equal((method, path, headers.get("X-Team"), headers.get("Authorization")),
              ("GET", "/v1/models?a=b", "a", f"Bearer {FIRST}"), "with headers and the secret")
    done = calls.good("POST", "/v1/endpoints/mock/test", {"path": "/busy", "method": "POST"})
    tap.equal((done["status"], done["error"], Upstream.seen[-1][0]), (503, None, "POST"),
              "a bad status is an answer")
    calls.good("PUT", "/v1/endpoints/slow", {"url": f"http://127.0.0.1:{port}/v1/slow",
                                             "private": True, "first_byte_ms": 300})
    done = calls.good("POST", "/v1/endpoints/slow/test")
    tap.equal((done["status"], done["error"]["class"]), (None, "http_timeout"), "a timeout")
    calls.good("PUT", "/v1/endpoints/public", {"url": f"http://localhost:{port}"})
    done = calls.good("POST", "/v1/endpoints/public/test")
    tap.equal((done["status"], done["error"]["class"]), (None, "http_refused"),
              "an endpoint that is not private does not reach this machine")
    calls.good("PUT", "/v1/endpoints/nobody", {"url": "http://127.0.0.1:1", "private": True})
    done = calls.good("POST", "/v1/endpoints/nobody/test", {})
    tap.equal(done["error"]["class"], "http_connect", "no server listens there")


def refusals(tap, calls):
    for path, body, status, field in (
            ("nope", {}, 404, "endpoint"), ("mock", {"path": "/../x"}, 400, "path"),
            ("mock", {"path": "x"}, 400, "path"), ("mock", {"method": "TRACE"}, 400, "method"),
            ("mock", {"body": 1}, 400, "body")):
        got, _, answer = calls("POST", f"/v1/endpoints/{path}/test", body)
        tap.equal((got, answer["error"]["field"]), (status, field), f"{path} {body} is refused")


def slow_ones(tap, server, calls, port):
    """Calls that take long take no thread: others are answered meanwhile."""
    calls.good("PUT", "/v1/endpoints/slow", {"url": f"http://127.0.0.1:{port}/v1/slow",
                                             "private": True})
    ended = []

    def one():
        mine = Calls(server)
        ended.append(mine("POST", "/v1/endpoints/slow/test")[0])
        mine.close()

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    for i in range(20):
        calls.good("PUT", f"/v1/lanes/lane-{i}", {"paused": False})
    took = time.monotonic() - began
    for thread in threads:
        thread.join()
    tap.equal(sorted(ended), [200] * 4 + [429] * 2, "four of a namespace at a time")
    tap.ok(took < 2, "other calls of administrators do not wait for them", took)


def environment(server):
    """As others see it; a server with secrets shows it to root alone."""
    try:
        with open(f"/proc/{server.process.pid}/environ", "rb") as f:
            return f.read()
    except PermissionError:
        return b""


def secrets(tap, server, calls, folder, port):
    write(f"{folder}/openai", SECOND + "\n")
    reload(server, calls, "mock")
    tap.equal(Upstream.seen[-1][2].get("Authorization"), f"Bearer {SECOND}",
              "a changed secret holds after SIGHUP")
    os.unlink(f"{folder}/openai")
    before = len(Upstream.seen)
    done = reload(server, calls, "mock")
    tap.equal((done["status"], done["error"]["class"], len(Upstream.seen)),
              (None, "http_secret", before), "without its secret no call is made")
    tap.ok("openai" in done["error"]["message"], "the error names the secret", done)
    theirs = Calls(server, namespace="acme")
    setting = {"url": f"http://127.0.0.1:{port}/v1", "private": True, "secret": "openai"}
    theirs.good("PUT", "/v1/endpoints/mock", setting)
    theirs.good("POST", "/v1/endpoints/mock/test")
    tap.equal(Upstream.seen[-1][2].get("Authorization"), f"Bearer {THEIRS}",
              "a namespace has secrets of its own")
    theirs.good("PUT", "/v1/endpoints/mock", {**setting, "secret": "env", "auth": "X-Key: k={secret}"})
    theirs.good("POST", "/v1/endpoints/mock/test")
    tap.equal(Upstream.seen[-1][2].get("X-Key"), f"k={VARIABLE}", "also from a variable")
    other = Calls(server, namespace="other")
    other.good("PUT", "/v1/endpoints/mock", setting)
    tap.equal(other.good("POST", "/v1/endpoints/mock/test")["error"]["class"], "http_secret",
              "and not those of another one")
    tap.ok(VARIABLE.encode() not in environment(server), "the variable is wiped from the process")
    shown = json.dumps([calls.good("GET", "/v1/endpoints"), theirs.good("GET", "/v1/endpoints")])
    said = "\n".join(server.lines) + shown
    tap.ok(not any(word in said for word in (FIRST, SECOND, THEIRS, VARIABLE)),
           "no secret is in the log or in an answer")
    for each in (theirs, other):
        each.close()


def run(server, *arguments, data=None):
    done = subprocess.run([BINARY, "endpoint", *arguments, "--server", server.url],
                          input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          stdin=None if data else subprocess.DEVNULL, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def command(tap, server, port):
    url = f"http://127.0.0.1:{port}/v1"
    code, out, err = run(server, "put", "cli", "--url", url, "--private", "--header", "X-A: b",
                         "--retry", "429,5xx", "--max-in-flight", "7", "--total", "5s",
                         "--response-max", "64KiB", "--json")
    made = json.loads(out) if code == 0 else {}
    tap.equal((code, err, made.get("headers"), made.get("retry"), made.get("max_in_flight"),
               made.get("total_ms"), made.get("response_max"), made.get("private")),
              (0, "", {"X-A": "b"}, [429, "5xx"], 7, 5000, 65536, True), "put makes an endpoint")
    code, out, _ = run(server, "put", "cli", "--default", "header", "--default", "retry",
                       "--idle", "1s", "--json")
    made = json.loads(out)
    tap.equal((code, made["headers"], made["retry"], made["idle_ms"], made["total_ms"]),
              (0, {}, [408, 425, 429, "5xx"], 1000, 5000), "put changes what is named alone")
    code, out, _ = run(server, "test", "cli", "--path", "/models")
    tap.ok(code == 0 and "first byte" in out and "200" in out, "test shows when what happened", out)
    code, out, _ = run(server, "test", "cli", "--path", "/busy", "--json")
    tap.equal((code, json.loads(out)["status"]), (1, 503), "test of a bad status ends with 1")
    code, out, _ = run(server, "ls")
    tap.ok(code == 0 and "cli" in out and "closed" in out, "ls shows it", out)
    code, out, _ = run(server, "show", "cli")
    tap.ok(code == 0 and "breaker" in out and url in out, "show shows it", out)
    code, _, err = run(server, "put", "file", "--file", "-",
                       data=json.dumps({"url": "https://example.com", "connect_ms": 70}))
    tap.equal((code, err), (0, ""), "put takes a file")
    code, _, err = run(server, "put", "file", "--url", "http://10.0.0.1")
    tap.ok(code == 2 or code == 1 and "private" in err, "an error has its hint", (code, err))
    for wrong in (["put"], ["ls", "x"], ["drop", "x"], ["ls", "--url", "x"], ["put", "x", "--path", "/"],
                  ["put", "x", "--retry", "abc"], ["put", "x", "--default", "nope"]):
        tap.equal(run(server, *wrong)[0], 2, f"usage: {' '.join(wrong)}")
    tap.equal([run(server, "rm", "cli")[0], run(server, "rm", "cli")[0], run(server, "show", "cli")[0]],
              [0, 3, 3], "rm removes it")


# ---- Authorities --------------------------------------------------------------------------------

def make_certificate(folder, name):
    """One for 127.0.0.1 that is its own authority."""
    subprocess.run(["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem"],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def authorities(tap, store):
    folder = tempfile.mkdtemp(prefix="weft-authorities-")
    trusted = f"{folder}/trusted.pem"
    make_certificate(folder, "ours")
    make_certificate(folder, "other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/ours.pem", f"{folder}/ours.key")
    upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    upstream.socket = context.wrap_socket(upstream.socket, server_side=True)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    shutil.copy(f"{folder}/other.pem", trusted)
    server = serve(store, "--ca-file", trusted)
    calls = Calls(server)

    def trust(name, said):
        shutil.copy(f"{folder}/{name}", trusted)
        before = sum(said in line for line in server.lines)
        os.kill(server.process.pid, signal.SIGHUP)
        return until(lambda: sum(said in line for line in server.lines) > before, 30)

    def test():
        answer = calls.good("POST", "/v1/endpoints/tls/test")
        return answer.get("status") or answer["error"]["class"]

    def execute():
        which = calls.good("POST", "/v1/executions", {"kind": "http", "policy": {"max_attempts": 1},
                                                      "payload": {"endpoint": "tls"}})["id"]
        shown = calls.good("GET", f"/v1/executions/{which}?wait_ms=20000")
        return shown["state"] if shown["state"] != "failed" else shown["error"]["class"]
    try:
        calls.good("PUT", "/v1/endpoints/tls", {"url": f"https://127.0.0.1:{upstream.server_address[1]}/v1",
                                                "private": True})
        tap.equal((test(), execute()), ("http_tls", "http_tls"), "an authority that is not trusted is refused")
        tap.ok(trust("ours.pem", "trust were read anew"), "SIGHUP reads the file again")
        tap.equal((test(), execute()), (200, "succeeded"), "its authority is trusted")
        tap.ok(trust("ours.key", "trust stay as they were"), "a file without certificates is refused")
        tap.ok(any("has no certificates" in line for line in server.lines), "and the log says why")
        tap.equal((test(), execute()), (200, "succeeded"), "what was trusted still is")
        tap.ok(trust("other.pem", "trust were read anew"), "another authority takes its place")
        tap.equal((test(), execute()), ("http_tls", "http_tls"), "kept connections of the old one are not used")
    finally:
        calls.close()
        server.stop()
        upstream.shutdown()
        shutil.rmtree(folder)
    done = subprocess.run([BINARY, "serve", "--store", store.url, "--listen", "127.0.0.1:0", "--ca-file", trusted],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60, check=False)
    tap.ok(done.returncode != 0 and f"cannot read {trusted}: No such file" in done.stdout,
           "a server does not start without the file", done.stdout)


def main():
    tap = Tap()
    folder = tempfile.mkdtemp(prefix="weft-secrets-")
    write(f"{folder}/openai", FIRST + "\n")
    write(f"{folder}/acme/openai", THEIRS)
    upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    port = upstream.server_address[1]
    store = scratch(STORE, "endpoint")
    server = serve(store, "--secrets-dir", folder, tap=tap,
                   env={"WEFT_SECRET_acme__env": VARIABLE})
    calls = Calls(server)
    try:
        trials(tap, calls, port)
        refusals(tap, calls)
        slow_ones(tap, server, calls, port)
        secrets(tap, server, calls, folder, port)
        command(tap, server, port)
        calls.close()
        tap.equal(server.stop(), 0, "the server stops by itself")
        authorities(tap, store)
    finally:
        shutil.rmtree(folder)
        upstream.shutdown()
    tap.done()


if __name__ == "__main__":
    main()
