#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One namespace floods the server; calls of another stay quick. Prints TAP and figures.

    tests/http/classes.py    WEFT_TEST_STORE: sqlite or pg; WEFT_SOAK=1: the long form

Each call of the quiet namespace is timed without a load and then under it, in the same run: the
99th of a hundred may take ten times as long, or 250 ms (in the short form, which runs beside other
tests and makes a hundred calls, the 95th). The clients that flood are processes of
their own, with bodies made beforehand, so that this process measures the server and not itself.
"""
import http.client
import json
import multiprocessing
import os
import threading
import time

from harness import (FAULTS, QUARANTINE_KB, SANITIZED, STORE, Calls, Cluster, Figures, Raw, Tap,
                     metric_sum, metrics, pause, scratch, serve, until)
from outage import Lock

SOAK = os.environ.get("WEFT_SOAK") == "1"
BOUND_S = 0.25 * (8 if SANITIZED else 1)
FACTOR, PERCENT = 10, 99 if SOAK else 95
FLOWS, NODES = (8, 100000) if SOAK else (8, 10000)
WRITERS, ITEMS = (400, 1000) if SOAK else (40, 1000)
READERS, UNREAD_KB = (300, 150 << 10) if SOAK else (50, 60 << 10)
# So little that lists of clients that do not read find no room for their next part, and end.
ANSWER_MB = 16 if SOAK else 2
APART_S = 2 * (8 if SANITIZED else 1)  # beside a locked flow, for which weft waits 5 s
PROMPT_S = 1  # what needs no engine thread, on a slow machine
LARGE = json.dumps({"items": [{"kind": "large", "payload": "x" * 1500}] * 100}).encode()


def chains(nodes):
    """A flow of chains of ten nodes."""
    return {"nodes": [{"name": f"n{i}", "kind": "k", **({"after": [f"n{i - 1}"]} if i % 10 else {})}
                      for i in range(nodes)]}


def flood(address, path, body, stop, counts):
    """Sends the same again and again, until `stop` is set; a process of its own."""
    connection = http.client.HTTPConnection(*address, timeout=600)
    while not stop.is_set():
        try:
            connection.request("POST", path, body, {"X-Weft-Namespace": "flood"})
            answer = connection.getresponse()
            answer.read()
            with counts.get_lock():
                counts[0 if answer.status < 300 else 1] += 1
        except FAULTS:
            connection.close()
            with counts.get_lock():
                counts[1] += 1


class Flood:
    """So many clients that send the same body."""

    def __init__(self, server, clients, path, body):
        self.stop, self.counts = multiprocessing.Event(), multiprocessing.Array("l", 2)
        self.began = time.monotonic()
        self.clients = [multiprocessing.Process(
            target=flood, daemon=True,
            args=((server.host, int(server.port)), path, body, self.stop, self.counts))
            for _ in range(clients)]
        for client in self.clients:
            client.start()

    def end(self):
        self.stop.set()
        for client in self.clients:
            client.terminate()
            client.join()
        took = time.monotonic() - self.began
        return f"{self.counts[0]} requests of the flood were served in {took:.0f} s, " \
               f"{self.counts[1]} were not"


class Probe:
    """The calls of the quiet namespace, each timed."""

    def __init__(self, server):
        self.calls = Calls(server, timeout=120, namespace="quiet")
        self.id = self.calls.good("POST", "/v1/executions", {"kind": "here"})["id"]

    def submit(self):
        self.calls.good("POST", "/v1/executions", {"kind": "quiet", "lane": "quiet"})

    def large(self):
        connection = self.calls.connection
        connection.request("POST", "/v1/executions", LARGE, self.calls.headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status

    def work(self):
        items = self.calls.good("POST", "/v1/claims", {"worker": "w", "lanes": ["quiet"]})["items"]
        assert items, "no work"
        self.calls.good("POST", "/v1/leases/complete", {"items": [
            {"id": item["id"], "epoch": item["epoch"]} for item in items]})

    def read(self):
        self.calls.good("GET", f"/v1/executions/{self.id}")

    def list(self):
        self.calls.good("GET", "/v1/executions?limit=10")

    def ready(self):
        assert self.calls("GET", "/readyz")[0] == 200, "not ready"

    def metrics(self):
        self.calls.good("GET", "/metrics")

    def time(self, names, rounds, seconds=60):
        """The times of each call, in rounds of all of them, sorted; fewer when it takes long."""
        times, end = {name: [] for name in names}, time.monotonic() + seconds
        for _ in range(rounds):
            for name in names:
                began = time.monotonic()
                if began > end and times[name]:
                    break
                getattr(self, name)()
                times[name].append(time.monotonic() - began)
        return {name: sorted(found) for name, found in times.items()}


def at(times, percent):
    return times[min(len(times) - 1, len(times) * percent // 100)]


def compare(tap, load, quiet, busy):
    for name, times in busy.items():
        bound = max(FACTOR * at(quiet[name], 99), BOUND_S)
        tap.ok(at(times, PERCENT) <= bound, f"{load}: {name} of another namespace goes on",
               f"p{PERCENT} {at(times, PERCENT) * 1e3:.1f} ms, allowed {bound * 1e3:.1f} ms")
        tap.note(f"{load}: {name}: quiet {at(quiet[name], 50) * 1e3:.1f} "
                 f"p99 {at(quiet[name], 99) * 1e3:.1f} ms, busy {at(times, 50) * 1e3:.1f} "
                 f"p99 {at(times, 99) * 1e3:.1f} max {times[-1] * 1e3:.1f} ms")


def flooded(tap, load, clients, path, body):
    """The quiet namespace without and with a flood in another one."""
    store = scratch(STORE, "classes")
    server = serve(store, tap=tap)
    probe = Probe(server)
    names = ["submit", "large", "work", "read", "list", "ready", "metrics"]
    rounds = 300 if SOAK else 100
    probe.time(names, 5)
    quiet = probe.time(names, rounds)
    attack = Flood(server, clients, path, body)
    # Until all of them have sent something that is under way.
    until(lambda: sum(attack.counts[:]) >= 1, 120)
    busy = probe.time(names, rounds)
    tap.note(f"{load}: " + attack.end())
    compare(tap, load, quiet, busy)
    server.kill()  # what it was given is long
    store.remove()


def unread(tap):
    """Clients that ask for lists and never read them: the memory is bounded, and they are cut."""
    store = scratch(STORE, "unread")
    server = serve(store, "--answer-bytes", f"{ANSWER_MB}MiB", tap=tap)
    writer = Calls(server, namespace="flood")
    tags = {f"tag{number}": "x" * 250 for number in range(32)}  # a page of 8 MB
    for _ in range(10):
        writer.good("POST", "/v1/executions", {"items": [{"kind": "large", "tags": tags}] * 100})
    probe, begun = Probe(server), Figures(server.process.pid).rss_kb
    quiet = probe.time(["read", "list"], 50)
    readers = [Raw(server, receive_buffer=4096) for _ in range(READERS)]
    for reader in readers:
        reader.send(b"GET /v1/executions?limit=1000 HTTP/1.1\r\nHost: localhost\r\n"
                    b"X-Weft-Namespace: flood\r\n\r\n")
    largest, held = 0, 0

    def cut():
        nonlocal largest, held
        numbers = metrics(server)
        largest = max(largest, Figures(server.process.pid).rss_kb)
        held = max(held, metric_sum(numbers, "weft_http_answer_bytes"))
        # A client that was refused for want of memory has its answer, and may stay.
        refused = metric_sum(numbers, "weft_http_requests_total", 'code="503"')
        return metric_sum(numbers, "weft_http_connections") <= 3 + refused
    until(lambda: cut() or held > 0, 30)
    busy = probe.time(["read", "list"], 50)
    compare(tap, f"{READERS} clients that do not read", quiet, busy)
    ended = until(cut, 60)
    tap.ok(held > 0, "answers that wait for their clients are counted")
    tap.ok(held < 2 * ANSWER_MB << 20, "answers that wait stay within twice their budget", held)
    tap.ok(largest - begun < UNREAD_KB + QUARANTINE_KB, "the server stays small",
           f"{begun} kB, then {largest} kB")
    tap.note(f"{READERS} clients that do not read: {begun >> 10} MB, then {largest >> 10} MB, "
             f"{held / 1048576:.1f} MiB of answers")
    tap.ok(ended, "all clients that do not read are disconnected")
    tap.equal(metric_sum(metrics(server), "weft_http_answer_bytes"), 0,
              "the room of their answers is free")
    for reader in readers:
        reader.socket.close()
    status, _, page = Calls(server, namespace="flood")("GET", "/v1/executions?limit=1000")
    tap.ok(status == 200 and len(page["items"]) == 1000, "a client that reads gets the whole page",
           (status, len(page.get("items", []))))
    tap.equal(server.stop(), 0, "the server stops by itself")
    store.remove()


def listing(server, stop):
    """Reads lists, which need an engine thread."""
    while not stop.is_set():
        calls = Calls(server, timeout=60)
        try:
            calls("GET", "/v1/executions")
        except FAULTS:
            pass
        calls.close()


def ask(server, path, times):
    """The status of an answer; how long it took is added to the times."""
    calls, began, status = Calls(server, timeout=5), time.monotonic(), 0
    try:
        status = calls("GET", path)[0]
    except FAULTS:
        pass
    calls.close()
    times.append(time.monotonic() - began)
    return status


def held(tap):
    """Every engine thread is held by a lock: what needs none is answered at once."""
    cluster, stop = Cluster(), threading.Event()
    server = serve(cluster.store("held"), "--threads", "3", tap=tap)
    calls = Calls(server)
    calls.good("POST", "/v1/executions", {"kind": "first"})
    calls.good("GET", "/metrics")  # from here on its counts are kept
    lock = Lock(cluster, "LOCK TABLE held.live, held.execution IN ACCESS EXCLUSIVE MODE")
    readers = [threading.Thread(target=listing, args=(server, stop), daemon=True) for _ in range(8)]
    for reader in readers:
        reader.start()
    paths = ("/healthz", "/readyz", "/metrics")
    times, statuses = {path: [] for path in paths}, {path: [] for path in paths}
    until_s = time.monotonic() + 5
    while time.monotonic() < until_s:
        for path in paths:
            statuses[path].append(ask(server, path, times[path]))
        pause()
    lock.let_go()
    for path in paths:
        tap.ok(max(times[path]) < PROMPT_S, f"{path} is answered while every engine thread is held",
               f"{max(times[path]):.2f} s")
    tap.ok(set(statuses["/healthz"] + statuses["/metrics"]) == {200},
           "/healthz and /metrics are answered 200", statuses)
    tap.equal(statuses["/readyz"][-1], 503, "a store that answers nothing for 3 s is not ready")
    back = until(lambda: ask(server, "/readyz", []) == 200, 30)
    tap.ok(back, "the server is ready again by itself")
    stop.set()
    for reader in readers:
        reader.join(60)
    tap.equal(server.stop(), 0, "the server stops by itself")
    cluster.remove()


class Graph:
    """A flow of members that are claimed, of one that has ended, and of one that comes last."""

    def __init__(self, calls, claimed):
        names = [f"m{i}" for i in range(claimed)]
        flow = calls.good("POST", "/v1/flows", {"nodes": [
            *({"name": name, "kind": "member"} for name in names),
            {"name": "spare", "kind": "other", "lane": "other"},
            {"name": "ended", "kind": "other", "lane": "other"},
            {"name": "last", "kind": "last", "lane": "last", "after": ["m0"]}]})
        self.id, self.grown = flow["id"], 0
        self.node = flow["nodes"]
        calls.good("POST", f"/v1/executions/{self.node['ended']}/cancel")
        self.leases = []
        while len(self.leases) < claimed:
            self.leases += calls.good("POST", "/v1/claims",
                                      {"worker": "w", "max": claimed, "lease_ms": 600000})["items"]
        self.leases.sort(key=lambda item: item["id"] != self.node["m0"])

    def complete(self, calls):
        lease = self.leases.pop(0)
        calls.good("POST", "/v1/leases/complete", {"id": lease["id"], "epoch": lease["epoch"]})

    def request(self, what):
        self.grown += 1
        return {"cancel": (f"/v1/flows/{self.id}/cancel", {"policy": "flow_only"}),
                "grow": (f"/v1/flows/{self.id}/nodes",
                         {"revision": 1, "nodes": [
                             {"name": f"g{self.grown}-{threading.get_ident()}", "kind": "other",
                              "lane": "other"}]}),
                "replay": (f"/v1/executions/{self.node['ended']}/replay", {})}[what]


def press(server, graph, what, stop, answers):
    """Asks for a change of the locked flow again and again."""
    calls = Calls(server, timeout=60)
    while not stop.is_set():
        began = time.monotonic()
        status, headers, answer = calls("POST", *graph.request(what))
        answers.append((what, status, headers.get("Retry-After"), answer,
                        time.monotonic() - began))
        pause()
    calls.close()


def beside(calls, graph, hurt, failed):
    """What others do meanwhile, each with the time it took."""
    def cancel_and_replay():
        calls.good("POST", f"/v1/executions/{other.node['ended']}/replay")
        calls.good("POST", f"/v1/executions/{other.node['ended']}/cancel")
    other = Graph(calls, 1)
    for name, do in (("grow", lambda: calls.good("POST", *other.request("grow"))),
                     ("read", lambda: calls.good("GET", f"/v1/flows/{other.id}")),
                     ("replay", cancel_and_replay),
                     ("cancel", lambda: calls.good("POST", f"/v1/flows/{other.id}/cancel")),
                     ("read the locked flow", lambda: calls.good("GET", f"/v1/flows/{graph.id}")),
                     ("complete its member", lambda: graph.leases and graph.complete(calls)),
                     ("submit", lambda: calls.good("POST", "/v1/executions",
                                                   {"kind": "x", "lane": "x"}))):
        began = time.monotonic()
        try:
            do()
        except AssertionError as error:
            failed.append(error)
        hurt.setdefault(name, []).append(time.monotonic() - began)


def locked(tap):
    """A transaction from outside holds the row of a flow: only that flow waits."""
    cluster, stop, answers = Cluster(), threading.Event(), []
    hurt, failed = {}, []
    server = serve(cluster.store("locked"), tap=tap)
    calls = Calls(server, timeout=60)
    graph, quiet = Graph(calls, 20), Graph(calls, 1)
    lock = Lock(cluster, f"SELECT 1 FROM locked.flow WHERE id IN ('{graph.id}', '{quiet.id}') "
                         "FOR UPDATE \\g /dev/null\n")
    pressing = [threading.Thread(target=press, args=(server, graph, what, stop, answers),
                                 daemon=True)
                for what in ["cancel", "grow", "replay", "replay"] * 2]
    for thread in pressing:
        thread.start()
    began = time.monotonic()
    quiet.complete(calls)
    hurt["complete its member"] = [time.monotonic() - began]
    # Until all of them have been answered once, which takes weft's patience.
    end = time.monotonic() + 30
    while (len(answers) < len(pressing) or graph.leases) and time.monotonic() < end:
        beside(calls, graph, hurt, failed)
    for name, times in hurt.items():
        tap.ok(max(times) < APART_S, f"beside a locked flow: {name} goes on",
               f"{max(times):.2f} s of {len(times)}")
        tap.note(f"beside a locked flow: {name}: {len(times)} calls, "
                 f"median {at(sorted(times), 50) * 1e3:.0f} ms, max {max(times) * 1e3:.0f} ms")
    tap.ok(not failed, "beside a locked flow: nothing else fails", failed[:3])
    told = list(answers)
    good = [one for one in told if one[1] == 429 and one[2] and
            one[3]["error"]["code"] == "busy" and
            "locked by another transaction" in one[3]["error"]["message"]]
    tap.ok(told and len(good) == len(told),
           "every change of the locked flow is answered 429 with the reason",
           [one for one in told if one not in good][:3])
    lock.let_go()
    for what in ("replay", "cancel"):  # a cancelled flow does not grow
        went = until(lambda w=what: any(one[0] == w and one[1] < 300 for one in answers), 30)
        tap.ok(went, f"the lock is gone: {what} goes on", answers[-3:])
    stop.set()
    for thread in pressing:
        thread.join(60)
    odd = [one for one in answers if one[1] not in (200, 202, 409, 429)]
    tap.ok(not odd, "no call gets another answer", odd[:3])
    lasts = []

    def comes_last():
        items = calls.good("POST", "/v1/claims",
                           {"worker": "w", "lanes": ["last"], "max": 10})["items"]
        lasts.extend(item["id"] for item in items)
        return quiet.node["last"] in lasts
    tap.ok(until(comes_last, 30),
           "the node behind the work that ended meanwhile can be claimed", lasts)
    tap.equal(server.stop(), 0, "the server stops by itself")
    cluster.remove()


def main():
    tap = Tap()
    if STORE == "pg":
        held(tap)
        locked(tap)
    unread(tap)
    flooded(tap, f"{FLOWS} flows of {NODES} nodes", FLOWS, "/v1/flows",
            json.dumps(chains(NODES)).encode())
    flooded(tap, f"{WRITERS} clients of {ITEMS} items", WRITERS, "/v1/executions",
            json.dumps({"items": [{"kind": "flood"}] * ITEMS}).encode())
    tap.done()


if __name__ == "__main__":
    main()
