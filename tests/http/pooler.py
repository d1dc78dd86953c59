#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two replicas that reach PostgreSQL through PgBouncer in transaction mode. Prints TAP.

Once with LISTEN past the pooler (--listen-url), once without: then notices are lost and work of the
other replica is seen by the slow poll. Nothing but the time to wake may differ.
"""
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time

from harness import Calls, Cluster, Tap, metric_sum, metrics, serve, until
from load import Load, check_kept

PORT = 6432  # of a unix socket
POOL = 6
POLL_S, LATE_S = 1, 10


class Pooler:
    """A PgBouncer of the test's own, on a unix socket in front of a cluster."""

    def __init__(self, cluster):
        # Not in TMPDIR, which its user may not enter, and whose path may be too long for a socket.
        self.folder = tempfile.mkdtemp(prefix="weft-pooler.", dir="/tmp")
        config = os.path.join(self.folder, "pgbouncer.ini")
        binary = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        version = subprocess.run([binary, "-V"], stdout=subprocess.PIPE, text=True, check=True)
        self.version = version.stdout.split("\n")[0]
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"""[databases]
* = host={cluster.socket} user=postgres
[pgbouncer]
listen_addr =
listen_port = {PORT}
unix_socket_dir = {self.folder}
auth_type = any
pool_mode = transaction
default_pool_size = {POOL}
max_client_conn = 200
""")
        user = None
        if os.getuid() == 0:  # which it refuses to run as
            user = "postgres"
            shutil.chown(self.folder, user)
        self.process = subprocess.Popen([binary, "-q", config], stdin=subprocess.DEVNULL, cwd="/",
                                        user=user)
        if not until(lambda: os.path.exists(f"{self.folder}/.s.PGSQL.{PORT}"), 10):
            raise AssertionError("PgBouncer did not start")

    def url(self, schema, extra=""):
        return (f"postgres:///postgres?host={self.folder}&port={PORT}&user=postgres"
                f"&weft_schema={schema}{extra}")

    def stop(self):
        self.process.terminate()
        self.process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)


class Where:
    def __init__(self, url):
        self.url, self.kind = url, "pg"


def wake_times(first, second, tries):
    """How long a claim that waits at one replica takes to get what is submitted at the other."""
    times, here, there = [], Calls(first), Calls(second)
    for i in range(tries):
        got = {}

        def wait(lane=f"wake-{i}", got=got):
            answer = there.good("POST", "/v1/claims", {"worker": "w", "lanes": [lane],
                                                       "wait_ms": 20000})
            got["at"], got["items"] = time.monotonic(), answer["items"]
        # The lane must have been seen before: the first wake of a new one is another matter.
        here.good("POST", "/v1/executions", {"kind": "k", "lane": f"wake-{i}"})
        there.good("POST", "/v1/claims", {"worker": "w", "lanes": [f"wake-{i}"], "wait_ms": 5000})
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        until(lambda: metric_sum(metrics(second), "weft_waiters", "claim") >= 1, 10)
        began = time.monotonic()
        here.good("POST", "/v1/executions", {"kind": "k", "lane": f"wake-{i}"})
        thread.join(30)
        times.append(got["at"] - began if got.get("items") else 99.0)
    here.close()
    there.close()
    return sorted(times)


def lifecycles(tap, servers, name):
    load = Load(servers, 6)
    until(lambda: len(load.ledger.completed) > 500, 30)
    tap.ok(load.stop(), f"{name}: every client came to an end")
    ledger = load.ledger
    tap.ok(set(ledger.statuses) <= {200, 201}, f"{name}: every request is answered",
           ledger.statuses)
    check_kept(tap, servers[0], ledger)


def through(tap, cluster, pooler, direct):
    """With LISTEN past the pooler the URL says weft_prepare=off, without it weft finds out itself."""
    name = "LISTEN past the pooler" if direct else "no way past the pooler"
    schema = "direct" if direct else "pooled"
    options = ["--listen-url", cluster.url + f"&weft_schema={schema}"] if direct else []
    where = Where(pooler.url(schema, "&weft_prepare=off" if direct else ""))
    servers = [serve(where, *options, tap=tap) for _ in range(2)]
    if not direct and not keeps_statements(pooler):
        for server in servers:
            warned = [line for line in server.lines if "keeps no prepared statements" in line]
            tap.equal(len(warned), 1, f"{name}: one log line names the missing statements")
    lifecycles(tap, servers, name)
    times = wake_times(*servers, 10 if direct else 3)
    tap.note(f"{name}: woken after " + " ".join(f"{t * 1000:.1f}" for t in times) + " ms")
    if direct:
        tap.ok(times[len(times) // 2] < 0.2, f"{name}: the other replica wakes at once", times)
    # One that is late says more about the machine than about the poll; none is early by chance.
    tap.ok(times[0] < POLL_S + 2 and times[-1] < LATE_S,
           f"{name}: the poll finds what notices do not tell", times)
    for server in servers:
        tap.equal(server.stop(), 0, f"{name}: the server stops by itself")


def nothing_sticks(tap, pooler):
    """No setting of a session of ours is left on the connections that others get."""
    steps = ("BEGIN", "SHOW synchronous_commit", "SELECT pg_sleep(0.5)", "COMMIT")
    asked = [subprocess.Popen(["psql", "-qAtX", pooler.url("x").split("&weft_")[0],
                               *(word for step in steps for word in ("-c", step))],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
             for _ in range(POOL)]
    said = [process.communicate(timeout=30)[0].split() for process in asked]
    tap.equal(said, [["on"]] * POOL, "commits wait for the disk on every connection of the pool")


def keeps_statements(pooler):
    """PgBouncer keeps track of prepared statements from 1.21 on."""
    number = re.search(r"(\d+)\.(\d+)", pooler.version)
    return (int(number[1]), int(number[2])) >= (1, 21)


def left_behind(pooler):
    """Prepared statements of weft's on the connections of the pool, each asked at the same time."""
    steps = ("BEGIN", "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'weft%'",
             "SELECT pg_sleep(0.3)", "COMMIT")
    asked = [subprocess.Popen(["psql", "-qAtX", pooler.url("x").split("&weft_")[0],
                               *(word for step in steps for word in ("-c", step))],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
             for _ in range(POOL)]
    return [process.communicate(timeout=30)[0].split() for process in asked]


def forced(tap, pooler):
    """Prepared statements through a pooler that loses them, because the URL says so."""
    try:
        server = serve(Where(pooler.url("forced", "&weft_prepare=on")), "--store-wait", "0")
        lifecycles(tap, [server], "prepared statements through the pooler")
        server.stop()
    except RuntimeError as error:
        tap.ok("remove weft_prepare=on" in str(error), "a wrong weft_prepare=on is named", error)


def main():
    tap, cluster = Tap(), Cluster()
    cluster.sql("ALTER DATABASE postgres SET synchronous_commit = on")
    pooler = Pooler(cluster)
    tap.note(pooler.version)
    try:
        through(tap, cluster, pooler, True)
        through(tap, cluster, pooler, False)
        nothing_sticks(tap, pooler)
        if not keeps_statements(pooler):
            left = left_behind(pooler)
            tap.equal(left, [["0"]] * POOL, "no prepared statement is left on the connections")
        forced(tap, pooler)
    finally:
        pooler.stop()
        cluster.remove()
    tap.done()


if __name__ == "__main__":
    main()
