#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many silent or idle connections must not keep other clients out. Prints TAP.

The short form has some hundred of them; WEFT_SOAK=1 has 5,000, with the usual limits.
"""
import json
import os
import resource
import select
import signal
import socket
import subprocess
import time

from harness import BINARY, Calls, Figures, Raw, Tap, metric_sum, scratch, serve, until

SOAK = os.environ.get("WEFT_SOAK") == "1"
LIMIT, SILENT = (4096, 5000) if SOAK else (300, 500)
SLACK_S = 10
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def request(method, path, token=None, body=b"", namespace=None):
    head = [b"%s %s HTTP/1.1" % (method, path), b"Host: localhost",
            b"Content-Length: %d" % len(body)]
    if token:
        head.append(b"Authorization: Bearer " + token.encode())
    if namespace:
        head.append(b"X-Weft-Namespace: " + namespace.encode())
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def healthy_s(server, tries=5):
    """The longest that /healthz took, on a connection of its own each time."""
    longest = 0
    for _ in range(tries):
        began = time.monotonic()
        try:
            with Raw(server, timeout=SLACK_S) as raw:
                raw.send(HEALTH)
                answer = raw.answer()
        except OSError as error:
            answer = error
        if not answer or isinstance(answer, OSError) or answer[0] != 200:
            return f"/healthz: {answer}"
        longest = max(longest, time.monotonic() - began)
    return longest


def is_open(raw):
    """Whether the server has left a connection alone on which nothing is to be read."""
    readable, _, _ = select.select([raw.socket], [], [], 0)
    return not readable


def silent(server, count):
    """Connections without a word."""
    found = []
    for _ in range(count):
        found.append(socket.create_connection((server.host, int(server.port)), SLACK_S))
    return found


def quick(tap, took, quiet, name):
    """Within a second; on a machine that is slow by itself, within ten times of quiet."""
    fine = isinstance(took, float) and took < max(1, 10 * quiet)
    if tap.ok(fine, name, took):
        tap.note(f"{took * 1000:.1f} ms, quiet {quiet * 1000:.1f} ms")


def claim(tap, server, token=None):
    """A claim that waits for a kind that is not submitted yet."""
    body = json.dumps({"worker": "w", "kinds": ["late"], "wait_ms": 60000}).encode()
    raw = Raw(server, timeout=60)
    raw.send(request(b"POST", b"/v1/claims", token, body))
    waits = until(lambda: metric_sum(metrics_of(server, token), "weft_waiters", "claim") == 1,
                  SLACK_S)
    tap.ok(waits, "a claim waits")
    return raw


def metrics_of(server, token):
    calls = Calls(server)
    if token:
        calls.headers["Authorization"] = f"Bearer {token}"
    _, _, text = calls("GET", "/metrics")
    calls.close()
    lines = [line.rpartition(" ") for line in text.decode().splitlines() if line[:1] != "#"]
    return {name: float(value) for name, _, value in lines if name}


def keep_out(tap, tokens):
    """Silent connections give way; busy ones, and ones let in before, do not."""
    what = "with tokens" if tokens else "without tokens"
    store = scratch("sqlite", "silent")
    server = serve(store, "--connections", str(LIMIT), *(["--tokens"] if tokens else []))
    token = server.make_token("admin")["token"] if tokens else None
    if token:
        until(lambda: Caller(server, token).status("/v1/executions") == 200, SLACK_S)
    idle = Raw(server, timeout=SLACK_S)
    idle.send(request(b"GET", b"/v1/executions", token))
    tap.equal(idle.answer()[0], 200, f"{what}: a request is let in")
    waiting = claim(tap, server, token)
    body = json.dumps({"kind": "slow"}).encode()
    slow = Raw(server, timeout=SLACK_S)
    slow.send(request(b"POST", b"/v1/executions", token, body)[:-1])
    quiet = healthy_s(server)
    if not tap.ok(isinstance(quiet, float), "/healthz answers", quiet):
        quiet = 0.1
    held = silent(server, SILENT)
    quick(tap, healthy_s(server), quiet, f"{what}: /healthz answers beside {SILENT} silent ones")
    number = until(lambda: metric_sum(metrics_of(server, token), "weft_http_connections")
                   <= LIMIT + 32, SLACK_S)
    tap.ok(number, "the number of connections stays within the limit")
    away = until(lambda: metric_sum(metrics_of(server, token), "weft_http_turned_away_total") >=
                 SILENT - LIMIT, SLACK_S)
    tap.ok(away, "connections above the limit are closed and counted")
    tap.ok(is_open(idle) and is_open(waiting) and is_open(slow),
           "connections that were let in are left alone")
    idle.send(request(b"GET", b"/v1/executions", token))
    tap.equal(idle.answer()[0], 200, "a connection that was idle is served again")
    slow.send(body[-1:])
    tap.equal(slow.answer()[0], 201, "a request that was coming in is carried out")
    idle.send(request(b"POST", b"/v1/executions", token, json.dumps({"kind": "late"}).encode()))
    tap.equal(idle.answer()[0], 201, "work comes")
    answer = waiting.answer()
    tap.equal((answer[0], len(json.loads(answer[2])["items"])), (200, 1),
              "the waiting claim gets the work")
    for one in held:
        one.close()
    for raw in (idle, waiting, slow):
        raw.socket.close()
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()


class Caller:
    def __init__(self, server, token):
        self.calls = Calls(server)
        self.calls.headers["Authorization"] = f"Bearer {token}"

    def status(self, path):
        status, _, _ = self.calls("GET", path)
        self.calls.close()
        return status


def known_ones(tap):
    """Connections that were let in fill the server, and silent ones come."""
    store = scratch("sqlite", "known")
    server = serve(store, "--connections", "40")
    held = [Raw(server, timeout=SLACK_S) for _ in range(40)]
    for raw in held:
        raw.send(request(b"GET", b"/v1/executions"))
    tap.ok(all(raw.answer()[0] == 200 for raw in held), "connections up to the limit are served")
    more = silent(server, 60)
    took = until(lambda: isinstance(healthy_s(server, 1), float), SLACK_S)
    tap.ok(took, "/healthz answers although all were let in")
    stay = [raw for raw in held if is_open(raw)]
    tap.ok(len(stay) >= len(held) - 10, "silent connections take no places of these", len(stay))
    for raw in stay:
        raw.send(HEALTH)
    # One more idle connection may have made room meanwhile, for a silent one that came late.
    answers = [raw.answer() for raw in stay]
    served = [answer for answer in answers if answer and answer[0] == 200]
    tap.ok(len(served) >= len(held) - 10,
           "the connections that stayed are still served", (len(served), len(stay)))
    for one in more:
        one.close()
    for raw in held:
        raw.socket.close()
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()


def known(server, count, namespace, source="127.0.0.1"):
    """Connections that have sent one good request, one after the other; and the answers."""
    found, answers = [], []
    for _ in range(count):
        found.append(Raw(server, timeout=SLACK_S, source=source))
        found[-1].send(request(b"GET", b"/v1/executions", namespace=namespace))
        answers.append(found[-1].answer())
    return found, answers


def closed_cleanly(raw):
    """The server closed between two requests: an end, and no reset."""
    try:
        return raw.socket.recv(1) == b""
    except OSError:
        return False


def resting_ones(tap):
    """Idle connections make room, first where a namespace or an address has most."""
    store = scratch("sqlite", "resting")
    server = serve(store, "--connections", "100")
    few, answers = known(server, 10, "few")
    elsewhere, more = known(server, 10, "other", "127.0.0.2")
    waiting = claim(tap, server)
    body = json.dumps({"kind": "slow"}).encode()
    slow = Raw(server, timeout=SLACK_S)
    slow.send(request(b"POST", b"/v1/executions", None, body)[:-1])
    quiet = healthy_s(server)
    many, rest = known(server, 200, "many")
    tap.ok(all(one and one[0] == 200 for one in answers + more + rest),
           "twice as many as may be send a request, and all are answered")
    quick(tap, healthy_s(server), quiet if isinstance(quiet, float) else 0.1,
          "/healthz answers beside connections that rest")
    number = until(lambda: metric_sum(metrics_of(server, None), "weft_http_connections") <= 100,
                   SLACK_S)
    tap.ok(number, "the number of connections stays within the limit")
    stay = [raw for raw in many if is_open(raw)]
    gone = [raw for raw in many if not is_open(raw)]
    tap.ok(60 <= len(stay) <= 80, "as many idle connections stay as the limit allows", len(stay))
    tap.ok(all(closed_cleanly(raw) for raw in gone),
           "the other idle connections were closed between requests")
    tap.ok(all(is_open(raw) for raw in few + elsewhere),
           "connections of a namespace or an address with few are left alone")
    tap.ok(is_open(waiting) and is_open(slow),
           "connections with a request under way are left alone")
    slow.send(body[-1:])
    tap.equal(slow.answer()[0], 201, "a request that was coming in is carried out")
    slow.send(request(b"POST", b"/v1/executions", None, json.dumps({"kind": "late"}).encode()))
    tap.equal(slow.answer()[0], 201, "work comes")
    answer = waiting.answer()
    tap.equal((answer[0], len(json.loads(answer[2])["items"])), (200, 1),
              "the waiting claim gets the work")
    for raw in few + stay:
        raw.send(request(b"GET", b"/v1/executions"))
    tap.ok(all(raw.answer()[0] == 200 for raw in few + stay),
           "the connections that stayed are served")
    for raw in few + elsewhere + many + [waiting, slow]:
        raw.socket.close()
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()


def busy_ones(tap):
    """All places have a request under way: a new connection gets one answer, and goes."""
    store = scratch("sqlite", "busy")
    server = serve(store, "--connections", "20")
    body = json.dumps({"kind": "slow"}).encode()
    busy = [Raw(server, timeout=SLACK_S) for _ in range(20)]
    head, _, _ = request(b"POST", b"/v1/executions", None, body).partition(b"\r\n\r\n")
    for raw in busy:
        raw.send(head + b"\r\nExpect: 100-continue\r\n\r\n")
    tap.ok(all(raw.answer()[0] == 100 for raw in busy), "requests come in on all connections")
    odd = []
    for _ in range(8):  # more often than there are spare places
        with Raw(server, timeout=SLACK_S) as raw:
            raw.send(HEALTH)
            answer = raw.answer()
            fine = answer and (answer[0], answer[1].get("connection")) == (200, "close")
            if not fine or not raw.ended(SLACK_S):
                odd.append(answer)
    tap.equal(odd, [], "connections above the limit are answered and closed")
    for raw in busy:
        raw.send(body)
    tap.ok(all(raw.answer()[0] == 201 for raw in busy), "the requests are carried out")
    with Raw(server, timeout=SLACK_S) as raw:
        raw.send(HEALTH)
        answer = raw.answer()
        tap.ok(answer[0] == 200 and "connection" not in answer[1],
               "a new one takes the place of one that rests", answer)
        tap.ok(until(lambda: sum(not is_open(one) for one in busy) == 1, SLACK_S),
               "exactly one idle connection is closed")
    for raw in busy:
        raw.socket.close()
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()


def per_address(tap):
    """One address has its own limit; 127.0.0.2 is another address than 127.0.0.1."""
    store = scratch("sqlite", "address")
    server = serve(store, "--connections", "100", "--per-address", "20")
    first, answers = known(server, 20, "default")
    tap.ok(all(one[0] == 200 for one in answers), "connections up to the limit are served")
    extra = Raw(server, timeout=SLACK_S)
    tap.ok(extra.ended(SLACK_S), "a further connection of the same address is closed")
    other = socket.create_connection((server.host, int(server.port)), SLACK_S, ("127.0.0.2", 0))
    other.sendall(HEALTH)
    tap.ok(other.recv(15).startswith(b"HTTP/1.1 200"), "a connection of another address is served")
    first.pop().socket.close()
    first.pop().socket.close()
    tap.ok(until(lambda: isinstance(healthy_s(server, 1), float), SLACK_S),
           "after some connections closed there is room again")
    quiet = Raw(server, timeout=SLACK_S)
    again = [Raw(server, timeout=SLACK_S) for _ in range(3)]
    tap.ok(quiet.ended(SLACK_S), "a silent one of the address makes room for its next")
    tap.ok(all(is_open(raw) for raw in first), "the connections that were let in stay")
    for raw in first + again + [extra, quiet]:
        raw.socket.close()
    other.close()
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()


def unprivileged():
    """Words before a command that may not raise its hard limits."""
    with open("/proc/self/status", encoding="utf-8") as file:
        powers = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff"))
    return ["setpriv", "--bounding-set", "-sys_resource"] if powers >> 24 & 1 else []


class Limited:
    """A server with its own limit of descriptors; else like serving.Server."""

    def __init__(self, store, soft, hard, *options):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.host, self.port = probe.getsockname()
        self.process = subprocess.Popen(
            [*unprivileged(), BINARY, "serve", "--listen", f"127.0.0.1:{self.port}", "--store", store.url, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            preexec_fn=limit)

    def up(self):
        return until(lambda: isinstance(healthy_s(self, 1), float), SLACK_S)

    def limits(self):
        with open(f"/proc/{self.process.pid}/limits", encoding="utf-8") as file:
            return next(int(line.split()[3]) for line in file if line.startswith("Max open files"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said


def descriptors(tap):
    store = scratch("sqlite", "files")
    server = Limited(store, 128, 2000, "--connections", "600")
    tap.ok(server.up(), "a server with a low soft limit of descriptors starts")
    tap.ok(server.limits() >= 600,
           "the server raises its soft limit of descriptors", server.limits())
    tap.equal(server.stop()[0], 0, "the server with the raised limit stops with 0")
    server = Limited(store, 200, 200, "--connections", "600", "--threads", "2")
    tap.ok(server.up(), "a server with a low hard limit of descriptors starts")
    held = silent(server, 300)
    before, began = Figures(server.process.pid).cpu_s, time.monotonic()
    took = healthy_s(server)
    tap.ok(isinstance(took, float),
           "the server answers beside more connections than descriptors", took)
    until(lambda: time.monotonic() - began > 1, 5)
    used = Figures(server.process.pid).cpu_s - before
    tap.ok(used < 0.5 * (time.monotonic() - began), "a server without descriptors does not spin",
           f"{used} s of CPU")
    for one in held:
        one.close()
    status, said = server.stop()
    tap.equal(status, 0, "the server without descriptors stops with 0")
    tap.ok("ulimit -n" in said, "the log says how to raise the limit", said[-2000:])
    server = Limited(store, 60, 60, "--connections", "600")
    _, said = server.process.communicate(timeout=30)
    tap.ok(server.process.returncode and "ulimit -n" in said,
           "far too few descriptors end it with what to do", said[-2000:])
    store.remove()


def main():
    tap = Tap()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    keep_out(tap, False)
    keep_out(tap, True)
    known_ones(tap)
    resting_ones(tap)
    busy_ones(tap)
    per_address(tap)
    descriptors(tap)
    tap.done()


main()
