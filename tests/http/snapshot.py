#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An open snapshot in PostgreSQL does not stop the work. Prints TAP and figures.

While a transaction in another session keeps a snapshot open, PostgreSQL cannot remove the index
entries of claimed rows. Claims must not walk over all of them: the rate of lifecycles stays above
0.7 of what it is without the snapshot (WEFT_SOAK=1: for two minutes; otherwise for some seconds,
which shows no more than that nothing breaks, so half of the rate is enough).
"""
import os
import re
import statistics
import subprocess

from harness import BINARY, SANITIZED, Calls, Cluster, Tap, serve

SOAK = os.environ.get("WEFT_SOAK", "0") not in ("", "0")
SECONDS, WINDOWS = (10, 12) if SOAK else (2, 2)
LEAST = 0.7 if SOAK else 0.5
IDLE = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"


class Snapshot:
    """A session that has begun a transaction and does nothing more."""

    def __init__(self, cluster):
        self.process = subprocess.Popen(["psql", "-qX", cluster.url], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.process.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT 'open';\n")
        self.process.stdin.flush()
        if not any("open" in line for line in iter(self.process.stdout.readline, "")):
            raise RuntimeError("psql ended without a snapshot")

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def rate(server):
    """Lifecycles per second; the benchmark fails when its numbers do not add up."""
    done = subprocess.run([BINARY, "bench", "--server", server.url, "--mode", "bulk", "--seconds",
                           f"{SECONDS}s", "--warmup", "500ms"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = re.search(r"(\d+) lifecycles/s", done.stdout)
    if done.returncode or not found:
        raise AssertionError(f"weft bench: {done.returncode} {done.stdout}")
    return int(found.group(1))


def main():
    tap, cluster = Tap(), Cluster()
    server = serve(cluster.store("snapshot"), "--access-log=no", tap=tap)
    try:
        before = rate(server)
        snapshot = Snapshot(cluster)
        try:
            rates = [rate(server) for _ in range(WINDOWS)]
            tap.equal(cluster.sql(IDLE).strip(), "1", "the snapshot was open all the time")
        finally:
            snapshot.close()
        before = statistics.mean((before, rate(server)))
        tap.note(f"{before:.0f} lifecycles/s without a snapshot, with one {rates}")
        last = statistics.median(rates[-3:])
        tap.ok(last > LEAST * before or SANITIZED,
               f"with a snapshot open the rate stays above {LEAST} of before",
               f"{last:.0f} of {before:.0f}")
        calls = Calls(server)
        left = calls.good("POST", "/v1/claims", {"worker": "w", "lanes": ["bench"]})["items"]
        tap.equal(len(left), 0, "no execution is left to claim")
    finally:
        server.stop()
        cluster.remove()
    tap.done()


if __name__ == "__main__":
    main()
