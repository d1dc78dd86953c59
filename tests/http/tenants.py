#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No namespace harms another: tests/http/tenants.py [--binary FILE] [--once] [ROW...]

    WEFT_TEST_STORE            sqlite or pg
    WEFT_SOAK=1                the sizes of earnest, and long windows
    WEFT_TENANTS_WINDOWS=5,10  how many seconds a window takes in quiet and beside the attack

Prints TAP.

The rule: whatever namespace a does within its limits, the 99th percentile of the calls of namespace
b stays below 10 times of what it is in quiet, and below 250 ms. A call that takes less than 1 ms in
quiet (LEAST_US) may take 10 ms: server, store and both clients share two processors here, on which
a process that has work waits for those that run, 1.4 ms at each of them, and a call does so several
times, in the server and in the store. The ratio to quiet is printed for each call all the same.

Quiet means that the calls of b alone reach the server, and that the machine does nothing else.
Beside the attack the processors belong to the server, its store and b: in earnest the attacker
has a machine of its own, so here its process gets what they leave over (tenants_attacks.py). How
many requests it gets answered each second is printed: the attack must not become weaker by that.

Each row of ROWS is one attack. It gets a server and a store of its own. The client of b is a process
(tenants_probe.py) and works in windows: three in quiet, then the attack begins (tenants_attacks.py,
another process), and three more beside it. A figure is the median of the three windows, so that one
hiccup of the machine does not decide. All of them are printed, with the memory of the server.

Without WEFT_SOAK the windows are shorter than a second, and other tests run at the same time. This
form asks for the 250 ms alone.

Without arguments and without WEFT_SOAK the rows that are rare are left out. A row that is named runs
in any case, and `all` names every row.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import harness
from harness import SANITIZED, STORE, Figures, Tap, scratch, serve

SOAK = os.environ.get("WEFT_SOAK", "0") not in ("", "0")
WINDOWS = 3
QUIET_S, LOADED_S = (float(one) for one in os.environ.get(
    "WEFT_TENANTS_WINDOWS", "5,10" if SOAK else "0.3,0.4").split(","))
TRIES = 3
WARM_S = 0.6 * QUIET_S
FAILED_US = 10**9  # as tenants_probe.py says
CALL_S = 10.0 if SOAK else 3.0  # a call of b that takes longer has failed
RATIO, LEAST_US, MOST_US = 10, 1000, 250000
CALLS = ("submit", "claim", "complete", "read", "list", "readyz", "healthz", "bulk", "hop", "due")
# The last three are several calls or several hundred items: the 250 ms alone are asked of them, and of the
# last two (how soon the next node of a flow and delayed work become claimable) in a soak only.
LONG = ("bulk", "hop", "due")
JUDGED = len(CALLS) if SOAK else CALLS.index("hop")


class Row:
    """One attack: the function of tenants_attacks.py, its sizes, options of the server.

    The server may take `memory_mb`. A `rare` row runs in a soak only.
    """

    def __init__(self, name, short, soak, options=(), stores=("sqlite", "pg"), rare=False,
                 memory_mb=512):
        self.name, self.options, self.stores, self.rare = name, options, stores, rare
        self.memory_mb = memory_mb  # by default twice its budget of 256 MiB
        self.sizes = soak if SOAK else short

    def function(self):
        return self.name.replace("-", "_")


ROWS = [
    # Writes.
    Row("bulk-submits", {"connections": 100, "items": 1000}, {"connections": 400, "items": 1000}),
    Row("single-submits", {"connections": 100}, {"connections": 1000}, rare=True),
    Row("same-key", {"connections": 100}, {"connections": 1000}, rare=True),
    Row("doubled-keys", {"connections": 4}, {"connections": 50}),
    Row("many-numbers", {"connections": 50}, {"connections": 400}),
    Row("large-payloads", {"connections": 30}, {"connections": 200}, rare=True),
    Row("compressed", {"connections": 8, "unpacked": 16 << 20},
        {"connections": 100, "unpacked": 16 << 20}),
    Row("flows", {"count": 2, "nodes": 20000}, {"count": 8, "nodes": 100000}),
    Row("flow-cancels", {"count": 4, "nodes": 5000}, {"count": 8, "nodes": 100000}, rare=True),
    Row("inbox", {"rows": 1000}, {"rows": 10000}, stores=("pg",)),

    # Names.
    Row("many-tenants", {"tenants": 20000, "connections": 2},
        {"tenants": 200000, "connections": 8}, ("--namespace-queues", "1000000")),
    Row("many-kinds", {"kinds": 20000, "connections": 2}, {"kinds": 20000, "connections": 8}),
    Row("many-lanes", {"lanes": 5000, "connections": 4}, {"lanes": 50000, "connections": 16},
        rare=True),
    Row("new-names", {"connections": 4, "items": 100}, {"connections": 16, "items": 1000},
        rare=True),
    Row("many-routes", {"routes": 5000, "connections": 2}, {"routes": 20000, "connections": 8}),
    Row("wide-claims", {"connections": 16}, {"connections": 100}, rare=True),
    Row("new-workers", {"connections": 16}, {"connections": 64}),
    Row("lane-settings", {"connections": 16}, {"connections": 64}, rare=True),

    # Reads.
    Row("lists-of-nothing", {"backlog": 10000, "connections": 16},
        {"backlog": 200000, "connections": 64}),
    Row("list-pages", {"backlog": 5000, "connections": 16},
        {"backlog": 200000, "connections": 64}),
    Row("streams", {"backlog": 10000, "connections": 16}, {"backlog": 200000, "connections": 64},
        rare=True),
    Row("counts-of-lanes", {"backlog": 10000, "connections": 16},
        {"backlog": 200000, "connections": 64}),
    Row("slow-readers", {"backlog": 1000, "connections": 50},
        {"backlog": 5000, "connections": 300}),
    Row("slow-streams", {"backlog": 10000, "connections": 50},
        {"backlog": 100000, "connections": 300}, rare=True),
    Row("slow-payloads", {"backlog": 2000, "connections": 20},
        {"backlog": 100000, "connections": 300}, rare=True),
    Row("waiting-gets", {"connections": 1000}, {"connections": 3000}, memory_mb=120),
    Row("attempts", {"count": 500, "connections": 16}, {"count": 20000, "connections": 64}),
    Row("flow-reads", {"nodes": 5000, "connections": 16}, {"nodes": 100000, "connections": 64},
        rare=True),
    Row("public-pages", {"connections": 16}, {"connections": 64}, rare=True),

    # Working.
    Row("waiting-claims", {"connections": 1000}, {"connections": 3000}),
    Row("watches", {"connections": 1000}, {"connections": 3000}, rare=True),
    Row("doubled-leases", {"connections": 4}, {"connections": 50}),
    Row("same-lease", {"connections": 100}, {"connections": 1000}, rare=True),
    Row("flow-completes", {"nodes": 4000, "connections": 50},
        {"nodes": 100000, "connections": 400}, rare=True),
    Row("heartbeats", {"leases": 1000, "connections": 8}, {"leases": 1000, "connections": 64}),
    Row("steering", {"backlog": 10000, "connections": 8},
        {"backlog": 200000, "connections": 64}),
    Row("limited-lane", {"connections": 50}, {"connections": 400}, rare=True),
    Row("short-leases", {"leases": 5000, "connections": 2}, {"leases": 100000, "connections": 8},
        rare=True),
    Row("due-together", {"backlog": 10000}, {"backlog": 200000}, rare=True),

    # Connections.
    Row("silent", {"connections": 600}, {"connections": 5000}, ("--connections", "300")),
    Row("idle-connections", {"connections": 600}, {"connections": 5000}, ("--connections", "300")),
    Row("scanner-runs", {"connections": 8}, {"connections": 64}, rare=True),
    Row("new-connections", {"connections": 16}, {"connections": 64}, rare=True),
    Row("half-requests", {"connections": 120, "size": 1 << 20},
        {"connections": 200, "size": 16 << 20}, () if SOAK else ("--body-bytes", "16MiB")),
    Row("pipelined", {"connections": 4}, {"connections": 16}, rare=True),
]


# ---- Measuring ----------------------------------------------------------------------------------

def beside(script):
    """The path of another file of this folder."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), script)


class Part:
    """A Python process of the test; it ends when its input does."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([sys.executable, *arguments], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def stop(self):
        """What it said last."""
        self.process.stdin.close()
        said = self.process.stdout.read()
        self.process.wait()
        return said.strip()

    def wait(self):
        """Until all that it does is under way."""
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError("a process of the test could not begin")

    def kill(self):
        self.process.kill()
        self.process.wait()


class Probe(Part):
    def __init__(self, server):
        super().__init__(beside("tenants_probe.py"), server.host, server.port, str(CALL_S))

    def window(self, seconds):
        return json.loads(self.ask(str(seconds)))


def p99(times):
    """Nearest rank; of fewer than a hundred the worst."""
    ordered = sorted(times)
    return ordered[-(-len(ordered) * 99 // 100) - 1]


def figures(windows, call):
    """The 99th percentiles of the windows and how many calls they rest on; None: never called."""
    found = [p99(window["times"][call]) for window in windows if call in window["times"]]
    count = sum(len(window["times"].get(call, ())) for window in windows)
    return found, count


def milliseconds(microseconds):
    return "fails" if microseconds >= FAILED_US else f"{microseconds / 1000:.2f}"


def limit_of(call, quiet):
    """What the 99th percentile of a call must stay below, by what it is in quiet."""
    if call in LONG or not SOAK:
        return MOST_US
    return min(MOST_US, RATIO * max(quiet, LEAST_US))


def judge(tap, quiet, attacked):
    """Prints a line for each call; returns the calls that broke the rule, in words."""
    broken = []
    for call in CALLS:
        before, calls = figures(quiet, call)
        after, attacked_calls = figures(attacked, call)
        base = statistics.median(before)
        # A call that was never reached, because those before it failed, has failed as well.
        seen = statistics.median_low(after) if after else FAILED_US
        good = seen < limit_of(call, base)
        tap.note(f"  {call:<9} quiet p99 {milliseconds(base):>6} ms ({calls:>4})  attacked p99 "
                 f"{milliseconds(seen):>6} ms ({attacked_calls:>4})  x{seen / base:<5.1f} windows "
                 + " / ".join(" ".join(milliseconds(one) for one in found)
                              for found in (before, after)) + ("" if good else "   BROKEN"))
        if not good and CALLS.index(call) < JUDGED:
            broken.append(f"{call}: {milliseconds(base)} -> {milliseconds(seen)} ms")
    return broken


class Attack(Part):
    def __init__(self, row, server, store):
        super().__init__(beside("tenants_attacks.py"), server.host, server.port, row.function(),
                         json.dumps(row.sizes), store.url)


def measure(row, server, store, parts):
    """The windows (quiet, attacked), the largest that the server was, and a report."""
    parts.append(Probe(server))
    probe = parts[0]
    probe.window(WARM_S)
    quiet, attacked = [probe.window(QUIET_S) for _ in range(WINDOWS)], []
    before, began = Figures(server.process.pid).rss_kb, time.monotonic()
    parts.append(Attack(row, server, store))
    parts[1].wait()
    prepared, most = time.monotonic() - began, before
    for _ in range(WINDOWS):
        attacked.append(probe.window(LOADED_S))
        if server.process.poll() is None:
            most = max(most, Figures(server.process.pid).rss_kb)
    return (quiet, attacked), most, (f"prepared in {prepared:.1f} s; {parts[1].stop()}; "
                                     f"{before >> 10} -> {most >> 10} MB")


def attack(tap, row):
    """What was broken by one run of a row, in words; an empty list: nothing."""
    store, parts = scratch(STORE, "tenants"), []
    server = serve(store, "--access-log=no", *row.options)
    try:
        windows, most, did = measure(row, server, store, parts)
        alive = server.process.poll() is None
    finally:
        for part in parts:
            part.kill()
        server.kill()
        store.remove()
    tap.note(f"{row.name} over {STORE}: {row.sizes}; {did}")
    broken = judge(tap, *windows)
    for window in windows[-1]:
        for line in window["failed"][:2]:
            tap.note(f"  {line[:200]}")
    if most >> 10 > row.memory_mb:
        broken.append(f"{most >> 10} MB of memory, wanted {row.memory_mb} at most")
    return broken if alive else ["the server has died"]


def run(tap, row, tries):
    """A row that breaks the rule is run again: on a machine that does other things as well a run
    may fail by chance, three in a row do not."""
    broken = attack(tap, row)
    for _ in range(1, tries if broken else 1):
        tap.note(f"{row.name}: {'; '.join(broken)}; once more")
        broken = attack(tap, row)
        if not broken:
            break
    tap.ok(not broken, f"{row.name}: b is served as in quiet", "; ".join(broken))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", help="the server to attack")
    parser.add_argument("--once", action="store_true", help="do not run a row again that fails")
    parser.add_argument("rows", nargs="*")
    options = parser.parse_args()
    if options.binary:
        harness.BINARY = options.binary
    tap = Tap()
    for row in ROWS:
        named = row.name in options.rows or "all" in options.rows
        wanted = named or not options.rows and (SOAK or not row.rare)
        if not wanted or STORE not in row.stores:
            continue
        if SANITIZED:
            tap.skip(f"{row.name}: a sanitizer has times of its own")
        else:
            run(tap, row, 1 if options.once else TRIES)
    tap.done()


if __name__ == "__main__":
    main()
