#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many HTTP calls one server makes: bench/http_calls/run.py [sqlite] [pg] [--calls N] [--slow N] [--bulk]

The upstream is the web server of tests/upstream, on loopback. All calls are submitted while no server carries them out;
then one is started, and the time until the last has succeeded is taken. With --slow, so many calls are under way for
some seconds: memory and time on a processor of the server meanwhile. With --bulk, `weft bench` runs beside it, on the
same store, before the calls. Durable: every commit waits for the disk.
"""
import argparse
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "http"))
from executor import Upstream  # noqa: E402
from harness import BINARY, Calls, Cluster, Figures, metric_sum, metrics, pause, scratch, serve  # noqa: E402


def submit(calls, count, path):
    left = count
    while left > 0:
        batch = min(1000, left)
        items = [{"kind": "http", "payload": {"endpoint": "mock", "path": path}}] * batch
        calls.good("POST", "/v1/executions", {"items": items})
        left -= batch


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def start(store, carries, in_flight):
    server = serve(store, "--access-log=no", "--executor", "on" if carries else "off", "--http-in-flight", str(in_flight))
    return server, Calls(server)


def put(calls, upstream, in_flight):
    calls.good("PUT", "/v1/endpoints/mock", {"url": upstream.url, "private": True, "max_in_flight": in_flight})


def bulk(store):
    server, calls = start(store, False, 1)
    done = subprocess.run([BINARY, "bench", "--server", server.url, "--mode", "bulk", "--seconds", "8", "--json"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    calls.close()
    server.stop()
    print("bulk:", done.stdout.strip()[:600])


def many(store, upstream, count):
    server, calls = start(store, False, 1000)
    put(calls, upstream, 1000)
    submit(calls, count, "/ok")
    calls.close()
    server.stop()
    began = time.monotonic()
    server, calls = start(store, True, 1000)
    found = 0
    while found < count and time.monotonic() - began < 120:
        pause(0.02)
        found = calls.good("GET", "/v1/endpoints/mock")["answers"]["2xx"]
        if found < count / 50:
            first, at_first = time.monotonic(), found
    took = time.monotonic() - first
    numbers = metrics(server)
    cycles = metric_sum(numbers, "weft_call_cycle_items_count")
    print(f"{store.kind}: {found} calls, {(found - at_first) / took:.0f} a second after the first {at_first};"
          f" {cycles:.0f} cycles, cpu {cpu_s(server.process.pid):.1f} s of {time.monotonic() - began:.1f},"
          f" rss {rss_mb(server.process.pid):.0f} MB")
    calls.close()
    server.stop()


def slow(store, upstream, count):
    server, calls = start(store, True, count)
    put(calls, upstream, count)
    submit(calls, count, "/delay/60000")
    while calls.good("GET", "/v1/endpoints/mock")["in_flight"] < count:
        pause(0.05)
    pause(1)
    began, used = time.monotonic(), cpu_s(server.process.pid)
    pause(15)
    share = (cpu_s(server.process.pid) - used) / (time.monotonic() - began)
    print(f"{store.kind}: {count} slow calls under way: rss {rss_mb(server.process.pid):.0f} MB, cpu {share * 100:.1f} %")
    calls.close()
    server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("stores", nargs="*", default=["sqlite", "pg"])
    parser.add_argument("--calls", type=int, default=50000)
    parser.add_argument("--slow", type=int, default=0)
    parser.add_argument("--bulk", action="store_true")
    args = parser.parse_args()
    for kind in args.stores:
        cluster = Cluster(durable=True) if kind == "pg" else None
        upstream = Upstream()
        store = cluster.store("calls") if cluster else scratch(kind, "calls")
        try:
            if args.bulk:
                bulk(store)
            if args.calls:
                many(store, upstream, args.calls)
            if args.slow:
                slow(store, upstream, args.slow)
        finally:
            upstream.stop()
            if cluster:
                cluster.remove()
            else:
                store.remove()


if __name__ == "__main__":
    main()
