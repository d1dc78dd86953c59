#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The attacks of namespace a on the others: tenants_attacks.py HOST PORT NAME SIZES [DATABASE]

SIZES is a JSON object, the arguments of the function NAME below. Prepares what the attack needs,
prints `ready` when all of it is under way, goes on until its input ends, and says what it did.

In earnest the attacker has machines of its own. Here its process takes no processor from the
server, the store and the other client: the kernel runs it when these leave one idle (SCHED_IDLE).
"""
import gzip
import http.client
import json
import os
import select
import selectors
import subprocess
import sys
import time

from tenants_flood import Flood, connect, request

READY_S = 5  # an attack whose requests are not answered is under way all the same
BATCH = 1000


class Owner:
    """The client that prepares an attack, in namespace a."""

    def __init__(self, target):
        self.connection = http.client.HTTPConnection(*target, timeout=60,
                                                     source_address=("127.0.0.2", 0))

    def call(self, method, path, body=None):
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        self.connection.request(method, path, data, {"X-Weft-Namespace": "a"})
        answer = self.connection.getresponse()
        got = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {got[:300]}")
        return json.loads(got)

    def submit(self, count, spec):
        """`spec(number)` is one execution; their ids."""
        ids = []
        for at in range(0, count, BATCH):
            answer = self.call("POST", "/v1/executions", {"items": [
                spec(number) for number in range(at, min(at + BATCH, count))]})
            ids += [item["id"] for item in answer["items"] if "id" in item]
        return ids

    def claim(self, most, **more):
        return self.call("POST", "/v1/claims", {"worker": "a", "max": most, "lease_ms": 3600000,
                                                **more})["items"]


def fill(target, count, **more):
    """A backlog of ready executions."""
    return Owner(target).submit(count, lambda number: {"kind": "a", "payload": "x" * 100, **more})


def of_json(value):
    return json.dumps(value).encode()


# ---- Writes -------------------------------------------------------------------------------------

def bulk_submits(target, connections, items):
    body = of_json({"items": [{"kind": "a", "payload": "x" * 100}] * items})
    whole = request("POST", "/v1/executions", body)
    return Flood(target, connections, lambda _: whole)


def single_submits(target, connections):
    whole = request("POST", "/v1/executions", of_json({"kind": "a", "payload": 1}))
    return Flood(target, connections, lambda _: whole)


def same_key(target, connections):
    whole = request("POST", "/v1/executions", of_json({"kind": "a", "payload": 1, "key": "one"}))
    return Flood(target, connections, lambda _: whole)


def doubled_keys(target, connections):
    """Bulk calls with one key a thousand times: no transaction takes it twice."""
    body = of_json({"items": [{"kind": "a", "payload": 1, "key": "one"}] * BATCH})
    whole = request("POST", "/v1/executions", body)
    return Flood(target, connections, lambda _: whole)


def many_numbers(target, connections):
    """Bodies of 120 KB with as many JSON values as fit: they take long to read."""
    body = b'{"kind":"a","payload":[' + b"0," * 60000 + b"0]}"
    whole = request("POST", "/v1/executions", body)
    return Flood(target, connections, lambda _: whole)


def large_payloads(target, connections):
    whole = request("POST", "/v1/executions", of_json({"kind": "a", "payload": "x" * 1000000}))
    return Flood(target, connections, lambda _: whole)


def compressed(target, connections, unpacked):
    """Bodies of a few kilobytes that unpack to as much as a bulk call may have."""
    body = b'{"items":[{"kind":"a"}' + b" " * (unpacked - 24) + b"]}"
    whole = request("POST", "/v1/executions", gzip.compress(body),
                    headers=("Content-Encoding: gzip",))
    return Flood(target, connections, lambda _: whole)


def flow_body(nodes, width=50):
    """Layers of `width` nodes, each after one of the layer before."""
    return of_json({"name": "large", "nodes": [
        {"name": f"n{number}", "kind": "a",
         **({"after": [f"n{number - width}"]} if number >= width else {})}
        for number in range(nodes)]})


def flows(target, count, nodes):
    whole = request("POST", "/v1/flows", flow_body(nodes))
    return Flood(target, count, lambda _: whole)


def flow_cancels(target, count, nodes):
    """Flows that are submitted and cancelled in turns, so that their members end by themselves."""
    owner = Owner(target)
    body, made = flow_body(nodes), []
    for _ in range(count):
        made.append(owner.call("POST", "/v1/flows", body)["id"])
    cancels = [request("POST", f"/v1/flows/{one}/cancel", b'{"policy":"all"}') for one in made]
    again = request("POST", "/v1/flows", body)
    return Flood(target, count, lambda number: cancels[number] if number < count else again)


def inbox(_, rows, database):
    """Transactions of an application that submit by SQL, one after the other."""
    return Sql(database, "SELECT count({schema}.weft_submit('a', '1'::json, namespace => 'a')) "
                         f"FROM generate_series(1, {rows});\n")


# ---- Names --------------------------------------------------------------------------------------

def many_tenants(target, tenants, connections):
    """A backlog with one execution for each tenant, and claims that take it turn by turn."""
    Owner(target).submit(tenants, lambda number: {"kind": "a", "tenant": f"t{number}"})
    whole = request("POST", "/v1/claims", of_json({"worker": "a", "max": 1}))
    return Flood(target, connections, lambda _: whole)


def many_kinds(target, kinds, connections):
    Owner(target).submit(kinds, lambda number: {"kind": f"k{number}", "tenant": "one"})
    whole = request("POST", "/v1/claims", of_json({"worker": "a", "max": 1}))
    return Flood(target, connections, lambda _: whole)


def many_lanes(target, lanes, connections):
    Owner(target).submit(lanes, lambda number: {"kind": "a", "lane": f"l{number}"})
    whole = request("GET", "/v1/lanes?limit=1000")
    return Flood(target, connections, lambda _: whole)


def new_names(target, connections, items):
    """Submissions in which every name is new."""
    run = f"{time.time():.0f}"

    def make(number):
        return request("POST", "/v1/executions", of_json({"items": [
            {"kind": f"k{run}-{number}-{item}", "tenant": f"t{number}-{item}",
             "lane": f"l{number}-{item}", "capabilities": [f"c{number}-{item}"]}
            for item in range(items)]}))
    return Flood(target, connections, make)


def many_routes(target, routes, connections):
    """A backlog whose items each ask for other capabilities, and claims that bring many."""
    Owner(target).submit(routes, lambda number: {
        "kind": "a", "capabilities": [f"c{number % 200}", f"d{number}"]})
    whole = request("POST", "/v1/claims", of_json({
        "worker": "a", "max": 1, "capabilities": [f"c{number}" for number in range(200)]}))
    return Flood(target, connections, lambda _: whole)


def wide_claims(target, connections):
    """Claims with as many lanes, kinds and capabilities as one may name, that find nothing."""
    whole = request("POST", "/v1/claims", of_json({
        "worker": "a", "max": 1000, "lanes": [f"l{number}" for number in range(64)],
        "kinds": [f"k{number}" for number in range(256)],
        "capabilities": [f"c{number}" for number in range(250)]}))
    return Flood(target, connections, lambda _: whole)


def new_workers(target, connections):
    return Flood(target, connections, lambda number: request(
        "POST", "/v1/claims", of_json({"worker": f"w{number}-" + "x" * 100, "max": 1})))


def lane_settings(target, connections):
    return Flood(target, connections, lambda number: request(
        "PUT", f"/v1/lanes/l{number}", of_json({"paused": False, "max_running": 1,
                                                "weights": {f"t{number}": 2}})))


# ---- Reads --------------------------------------------------------------------------------------

def lists_of_nothing(target, backlog, connections):
    fill(target, backlog)
    whole = request("GET", "/v1/executions?tag=none:such&limit=1000")
    return Flood(target, connections, lambda _: whole)


def list_pages(target, backlog, connections):
    fill(target, backlog)
    whole = request("GET", "/v1/executions?limit=1000")
    return Flood(target, connections, lambda _: whole)


def streams(target, backlog, connections):
    fill(target, backlog)
    whole = request("GET", "/v1/executions", headers=("Accept: application/x-ndjson",))
    return Flood(target, connections, lambda _: whole)


def counts_of_lanes(target, backlog, connections):
    """Each question names a lane that no question named before."""
    Owner(target).submit(backlog, lambda number: {"kind": "a", "lane": f"l{number % 500}"})
    return Flood(target, connections,
                 lambda number: request("GET", f"/v1/counts?lane=l{number}"))


def slow_readers(target, backlog, connections):
    """Pages of 1,000 items with all the tags that an execution may have: 8 MB each."""
    tags = {f"tag{number}": "x" * 250 for number in range(32)}
    Owner(target).submit(backlog, lambda _: {"kind": "a", "tags": tags})
    whole = request("GET", "/v1/executions?limit=1000")
    return Flood(target, connections, lambda _: whole, reads=False, receive_buffer=2048)


def slow_streams(target, backlog, connections):
    fill(target, backlog)
    whole = request("GET", "/v1/executions", headers=("Accept: application/x-ndjson",))
    return Flood(target, connections, lambda _: whole, reads=False, receive_buffer=2048)


def slow_payloads(target, backlog, connections):
    """Claims whose answers of several megabytes are not read."""
    Owner(target).submit(backlog, lambda _: {"kind": "a", "payload": "x" * 10000})
    whole = request("POST", "/v1/claims", of_json({"worker": "a", "max": 500}))
    return Flood(target, connections, lambda _: whole, reads=False, receive_buffer=2048)


def waiting_gets(target, connections):
    ids = fill(target, connections)
    return Flood(target, connections, lambda number: request(
        "GET", f"/v1/executions/{ids[number % len(ids)]}?wait_ms=60000"))


def attempts(target, count, connections):
    """The history of one execution that was released many times."""
    owner = Owner(target)
    one, = owner.submit(1, lambda _: {"kind": "a"})
    for _ in range(count):
        item, = owner.claim(1, wait_ms=5000)
        owner.call("POST", "/v1/leases/release", {"items": [
            {"id": one, "epoch": item["epoch"], "delay_ms": 0}]})
    whole = request("GET", f"/v1/executions/{one}/attempts")
    return Flood(target, connections, lambda _: whole)


def flow_reads(target, nodes, connections):
    made = Owner(target).call("POST", "/v1/flows", flow_body(nodes))["id"]
    paths = (f"/v1/flows/{made}", f"/v1/flows/{made}/nodes?limit=1000",
             f"/v1/executions?flow={made}&limit=1000")
    wholes = [request("GET", path) for path in paths]
    return Flood(target, connections, lambda number: wholes[number % len(wholes)])


def public_pages(target, connections):
    """What needs no token: metrics, readiness and the description of the API."""
    wholes = [request("GET", path) for path in ("/metrics", "/openapi.json", "/readyz")]
    return Flood(target, connections, lambda number: wholes[number % len(wholes)])


# ---- Working ------------------------------------------------------------------------------------

def waiting_claims(target, connections):
    """Claims that wait, and single submissions that wake one of them each."""
    wait = request("POST", "/v1/claims", of_json({"worker": "a", "max": 1, "wait_ms": 60000}))
    wake = request("POST", "/v1/executions", of_json({"kind": "a"}))
    return Flood(target, connections,
                 lambda number: wake if number >= connections and number % 2 else wait)


def watches(target, connections):
    return Flood(target, connections, lambda number: request(
        "POST", "/v1/leases/watch", of_json({"worker": f"w{number}", "wait_ms": 60000})))


def doubled_leases(target, connections):
    """Completions that name one lease a thousand times, under an epoch that is over."""
    one, = Owner(target).submit(1, lambda _: {"kind": "a"})
    whole = request("POST", "/v1/leases/complete", of_json({
        "items": [{"id": one, "epoch": 7}] * BATCH}))
    return Flood(target, connections, lambda _: whole)


def same_lease(target, connections):
    """Completions of one lease, one in each request, which the server gathers into one call."""
    one, = Owner(target).submit(1, lambda _: {"kind": "a"})
    whole = request("POST", "/v1/leases/complete", of_json({"items": [{"id": one, "epoch": 7}]}))
    return Flood(target, connections, lambda _: whole)


def flow_completes(target, nodes, connections):
    """Members of one large flow end on many connections: each end has an effect on the flow."""
    owner = Owner(target)
    owner.call("POST", "/v1/flows", flow_body(nodes, width=nodes // 4))
    items = []
    while len(items) < nodes // 4:
        items += owner.claim(BATCH)
    wholes = [request("POST", "/v1/leases/complete", of_json({"items": [
        {"id": item["id"], "epoch": item["epoch"]}]})) for item in items]
    return Flood(target, connections, lambda number: wholes[number % len(wholes)])


def heartbeats(target, leases, connections):
    """Renewals that bring a progress report for every lease."""
    fill(target, leases)
    owner, items = Owner(target), []
    while len(items) < leases:
        items += owner.claim(BATCH)
    whole = request("POST", "/v1/leases/renew", of_json({"items": [
        {"id": item["id"], "epoch": item["epoch"], "lease_ms": 3600000,
         "progress": {"percent": 50, "note": "x" * 200}} for item in items[:BATCH]]}))
    return Flood(target, connections, lambda _: whole)


def steering(target, backlog, connections):
    """Cancels and replays by filters that match nothing."""
    fill(target, backlog)
    wholes = [request("POST", f"/v1/executions/{verb}", of_json({"filter": {"tag": "none:such"}}))
              for verb in ("cancel", "replay")]
    return Flood(target, connections, lambda number: wholes[number % 2])


def limited_lane(target, connections):
    """Claims of a lane with a limit: they take its row's lock one after the other."""
    Owner(target).call("PUT", "/v1/lanes/narrow", {"max_running": 1})
    fill(target, BATCH, lane="narrow")
    whole = request("POST", "/v1/claims", of_json({"worker": "a", "lanes": ["narrow"], "max": 1,
                                                   "lease_ms": 1000}))
    return Flood(target, connections, lambda _: whole)


def short_leases(target, leases, connections):
    """Leases by the thousand that run out together, again and again."""
    fill(target, leases)
    whole = request("POST", "/v1/claims", of_json({"worker": "a", "max": BATCH, "lease_ms": 1000}))
    return Flood(target, connections, lambda _: whole)


def due_together(target, backlog):
    """Delayed executions that are due at the same moment, while more of them come."""
    run_at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + 3))
    fill(target, backlog, run_at=run_at)
    body = of_json({"items": [{"kind": "a", "delay_ms": 1000}] * BATCH})
    whole = request("POST", "/v1/executions", body)
    return Flood(target, 2, lambda _: whole)


# ---- Connections --------------------------------------------------------------------------------

def silent(target, connections):
    """Connections that never send anything; a connection that is closed is made again."""
    return Silent(target, connections)


def idle_connections(target, connections):
    """Connections that were let in once, and rest since."""
    return Idle(target, connections)


def scanner_runs(target, connections):
    names = ("retention", "invariant_check", "lease_expiry", "worker_expiry", "dependency")
    wholes = [request("POST", f"/v1/scanners/{name}/run") for name in names]
    return Flood(target, connections, lambda number: wholes[number % len(wholes)])


def new_connections(target, connections):
    whole = request("GET", "/healthz")
    return Flood(target, connections, lambda _: whole, keeps_alive=False)


def half_requests(target, connections, size):
    """Requests whose bodies never come to their end, smaller and smaller: they fill all room."""
    def make(number):
        part = max(64, size >> number // 20 * 3)
        return request("POST", "/v1/executions", b" " * part)[:-1]
    return Flood(target, connections, make, pace_s=0.01)


def pipelined(target, connections):
    """Cheap requests as fast as the server reads them."""
    whole = request("GET", "/v1/executions/00000000-0000-7000-8000-000000000000") * 50
    return Pipeline(target, connections, whole)


class Silent(Flood):
    def __init__(self, target, connections):
        super().__init__(target, connections, lambda _: b"")

    def begin(self, line):
        self.asked += 1
        try:
            line.sock = connect(self.target)
        except OSError:
            self.break_off(line)
            return
        self.select.register(line.sock, selectors.EVENT_READ, line)

    def read(self, line):
        self.statuses["closed"] += 1
        self.break_off(line)


class Idle(Flood):
    """One request on each connection; a connection that is closed is made again."""

    def __init__(self, target, connections):
        whole = request("GET", "/v1/executions?limit=1")
        super().__init__(target, connections, lambda _: whole)

    def read(self, line):
        data = line.sock.recv(1 << 16)
        if not data:
            self.break_off(line)
        elif line.answer.take(data):
            self.statuses[line.answer.status] += 1


class Pipeline(Flood):
    """Sends without waiting for answers, which it reads and drops."""

    def __init__(self, target, connections, whole):
        super().__init__(target, connections, lambda _: whole)

    def begin(self, line):
        super().begin(line)
        if line.sock is not None:
            self.select.modify(line.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, line)

    def write(self, line):
        line.out = line.out[line.sock.send(line.out):]
        if not line.out:
            line.out = memoryview(self.make(0))
            self.asked += 1

    def read(self, line):
        got = line.sock.recv(1 << 18)
        if not got:
            self.break_off(line)
        self.statuses["answered"] += got.count(b"HTTP/1.1 ")


class Sql:
    """Statements of an application, each a transaction, as psql sends them."""

    def __init__(self, database, statement):
        url, _, schema = database.partition("weft_schema=")
        self.statement = statement.format(schema=schema).encode()
        self.process = subprocess.Popen(["psql", "-qAtX", url.rstrip("?&")], bufsize=0,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.asked = self.done = 0

    def turn(self):
        if self.asked == self.done:
            self.process.stdin.write(self.statement)
            self.asked += 1
        if select.select([self.process.stdout], [], [], 0.1)[0]:
            self.done += os.read(self.process.stdout.fileno(), 4096).count(b"\n")

    def is_ready(self):
        return self.done > 0

    def close(self):
        self.process.kill()
        self.process.wait()

    def answered(self):
        return self.done

    def __str__(self):
        return f"{self.done} transactions"


def main():
    host, port, name, sizes = sys.argv[1], int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
    if name == "inbox":
        sizes["database"] = sys.argv[5]
    attack = globals()[name]((host, port), **sizes)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    began, said = time.monotonic(), False
    while not select.select([sys.stdin], [], [], 0)[0]:
        attack.turn()
        if not said and (attack.is_ready() or time.monotonic() > began + READY_S):
            said = True
            print("ready", flush=True)
    print(f"{attack}, {attack.answered() / (time.monotonic() - began):.0f} a second", flush=True)
    attack.close()


if __name__ == "__main__":
    main()
