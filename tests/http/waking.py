#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of claims that wait, and which of them are woken. Prints TAP and figures.

A PostgreSQL of the test's own counts every statement. Claims that wait cost nothing while nothing
happens; one execution wakes one waiter per replica; an idle server is idle. When a worker says
goodbye, its work runs elsewhere at once. A replica that notifies hears others that do so at once.
A worker that watches its leases hears of a cancel at once, at the replica that cancelled and at
another one, with 1,000 executions running; and its watch costs nothing while it waits.

What comes by news (of this replica or another one) wakes one waiter, always. The poll, once a
second, can fall between a commit and the news of it, or between a look in vain and the commit of
a quicker claim (wait.c): then it wakes one more. That is seen in the metric, so such turns are
told from the others, and are made again.
"""
import json
import os
import resource
import signal
import statistics
import threading
import time

from harness import (SANITIZED, Calls, Cluster, Figures, Raw, Tap, metric_sum, metrics, pause,
                     serve, until, waiters)

CROWD = 1000
WINDOW_S = 10  # heartbeats come every 5 s, the clock is measured every 10 s: each has its share
QUERIES_MAX, CPU_MAX, RSS_MAX_MB = 5, 0.01, 40
GOODBYES, GOODBYE_MAX_MS = 9, 100
TURNS, TURNS_MAX = 3, 8  # without the poll, and with
NOTICES, TRIES_MAX = 5, 30  # a poll once a second may be the first to see something
LONG_MS = 3600000
RUNNING, WATCHERS, AT_ONCE = 1000, 10, 20  # executions, workers that hold them, in one cancel
NOTIFIED_HERE_S, NOTIFIED_THERE_S = 1.0, 2.0  # p99 at the same replica, and at another


def allow_many_files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))


def counting_cluster():
    cluster = Cluster()
    cluster.sql("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
    cluster.restart("fast")
    cluster.sql("CREATE EXTENSION pg_stat_statements")
    return cluster


def statements(cluster):
    """How many statements weft has sent so far, without the statements of this test."""
    return int(cluster.sql("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements "
                           "WHERE query !~ 'pg_stat_statements'"))


def wait_for_work(server, count, lane):
    """Claims that wait, each on a connection of its own."""
    crowd = [Raw(server, timeout=90) for _ in range(count)]
    for i, raw in enumerate(crowd):
        body = json.dumps({"worker": f"w{i}", "lanes": [lane], "wait_ms": 60000,
                           "lease_ms": LONG_MS}).encode()
        raw.send(b"POST /v1/claims HTTP/1.1\r\nHost: [::1]\r\nContent-Length: %d\r\n\r\n" % len(body)
                 + body)
    until(lambda: waiters(server) >= count, 20)
    return crowd


def wait_for_leases(server, count):
    """Watches that wait, of workers that hold nothing."""
    crowd = [Raw(server, timeout=90) for _ in range(count)]
    for i, raw in enumerate(crowd):
        body = json.dumps({"worker": f"w{i}", "wait_ms": 60000}).encode()
        raw.send(b"POST /v1/leases/watch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                 % len(body) + body)
    until(lambda: watches(server) >= count, 20)
    return crowd


def watches(server):
    return waiters(server, "watch")


class Wakes:
    """How many were woken so far, by news and by the poll."""

    def __init__(self, server):
        numbers = metrics(server)
        self.poll = metric_sum(numbers, "weft_wakes_total", "poll")
        self.news = metric_sum(numbers, "weft_wakes_total") - self.poll


def close_all(crowd):
    for raw in crowd:
        raw.socket.close()


def is_quiet(cluster):
    """What the claims wrote about themselves and their workers is over."""
    count = statements(cluster)
    pause(1)
    return statements(cluster) - count <= 2 * QUERIES_MAX


def observe(cluster, server):
    """Statements a second, the share of a core, and the figures, while nothing happens."""
    until(lambda: is_quiet(cluster), 10)
    count, began, before = statements(cluster), time.monotonic(), Figures(server.process.pid)
    pause(WINDOW_S)
    took = time.monotonic() - began
    after = Figures(server.process.pid)
    return (statements(cluster) - count) / took, (after.cpu_s - before.cpu_s) / took, after


def idle(tap, cluster):
    server = serve(cluster.store("idle"), tap=tap)
    crowd = wait_for_work(server, 100, "default") + wait_for_leases(server, 100)
    rate, cpu, figures = observe(cluster, server)
    tap.note(f"idle with 100 waiting workers that watch: {rate:.1f} statements/s, {cpu * 100:.2f} % CPU, "
             f"{figures.rss_kb / 1024:.1f} MB resident, {figures.threads} threads")
    tap.ok(rate <= QUERIES_MAX, f"idle workers cost at most {QUERIES_MAX} statements/s", rate)
    if SANITIZED:
        tap.skip("CPU and memory of a build with sanitizers say nothing")
    else:
        tap.ok(cpu < CPU_MAX, "less than 1 % CPU", cpu)
        tap.ok(figures.rss_kb < RSS_MAX_MB << 10, f"less than {RSS_MAX_MB} MB resident", figures)
    tap.equal(waiters(server), 100, "all claims still wait")
    tap.equal(watches(server), 100, "all watches still wait")
    close_all(crowd)
    tap.equal(server.stop(), 0, "the server stops by itself")


def one_wakes_one(tap, servers, calls, turn):
    """Submits one execution to two crowds. True when the poll woke no claim."""
    before = [Wakes(server) for server in servers]
    calls.good("POST", "/v1/executions", {"kind": "wake", "lane": "busy"})
    until(lambda: sum(waiters(s) for s in servers) == 2 * CROWD - turn, 20)
    pause(1.2)  # the poll might wake one more claim
    tap.equal(sum(waiters(s) for s in servers), 2 * CROWD - turn,
              f"execution {turn}: one claim is answered")
    after = [Wakes(server) for server in servers]
    news = [a.news - b.news for a, b in zip(after, before)]
    poll = [a.poll - b.poll for a, b in zip(after, before)]
    wakes = f"by news {news}, by the poll {poll}"
    tap.ok(max(news) <= 1 and max(poll) <= 1 and sum(news + poll) >= 1,
           f"execution {turn}: one waiter is woken per replica, not all", wakes)
    if any(poll):
        tap.note(f"execution {turn}: {wakes}")
    return not any(poll)


def crowds(tap, cluster):
    servers = [serve(cluster.store("crowd"), tap=tap) for _ in range(2)]
    calls = Calls(servers[0])
    # Once round, so that both know the queue.
    calls.good("POST", "/v1/executions", {"kind": "wake", "lane": "busy"})
    calls.good("POST", "/v1/claims", {"worker": "first", "lanes": ["busy"], "wait_ms": 5000,
                                      "lease_ms": LONG_MS})
    crowd = [wait_for_work(server, CROWD, "busy") for server in servers]
    rate, cpu, figures = observe(cluster, servers[0])
    tap.note(f"two replicas, {CROWD} waiting claims each: {rate:.1f} statements/s for both, "
             f"{cpu * 100:.2f} % CPU and {figures.rss_kb / 1024:.1f} MB for one")
    tap.ok(rate <= 2 * QUERIES_MAX, f"{CROWD} waiting claims cost no statements", rate)
    quiet = turn = 0
    while quiet < TURNS and turn < TURNS_MAX:
        turn += 1
        quiet += one_wakes_one(tap, servers, calls, turn)
    tap.ok(quiet == TURNS, "the poll is seldom in the way", f"{quiet} of {turn} turns without it")
    for some in crowd:
        close_all(some)
    calls.close()
    for server in servers:
        tap.equal(server.stop(), 0, "the server stops by itself")


def goodbye_once(servers, calls, turn):
    """One worker leaves while another waits on the given server: ms until that one has the work."""
    lane, gone = f"leave{turn}", f"gone{turn}"
    there = servers[turn % len(servers)]
    submitted = calls.good("POST", "/v1/executions", {"kind": "wake", "lane": lane})
    held = calls.good("POST", "/v1/claims", {"worker": gone, "lanes": [lane], "wait_ms": 5000})
    waiting = wait_for_work(there, 1, lane)[0]
    began = time.monotonic()
    left = calls.good("POST", f"/v1/workers/{gone}/goodbye", {})
    status, _, body = waiting.answer()
    took_ms = (time.monotonic() - began) * 1000
    waiting.socket.close()
    taken = json.loads(body)["items"] if status == 200 else []
    same = (left["released"] == 1 and len(taken) == 1 and taken[0]["id"] == submitted["id"]
            and held["items"][0]["id"] == submitted["id"] and taken[0]["epoch"] == 2)
    return took_ms, same


def goodbyes(tap, cluster):
    """Leases of a worker that leaves run elsewhere at once, also on another replica."""
    servers = [serve(cluster.store("leave"), tap=tap) for _ in range(2)]
    calls = Calls(servers[0])
    runs = [goodbye_once(servers, calls, turn) for turn in range(2 * GOODBYES)]
    tap.ok(all(same for _, same in runs), "each goodbye gives its lease to the waiting claim")
    for place, where in enumerate(("the same replica", "another replica")):
        took = sorted(ms for ms, _ in runs[place::2])
        middle = statistics.median(took)
        tap.note(f"running on {where} after a goodbye: {middle:.1f} ms (median of {len(took)}), "
                 f"{took[-1]:.1f} ms at most")
        if SANITIZED:
            tap.skip("times of a build with sanitizers say nothing")
        else:
            tap.ok(middle < GOODBYE_MAX_MS,
                   f"work of a goodbye on {where} is claimed within {GOODBYE_MAX_MS} ms", took)
    calls.close()
    for server in servers:
        tap.equal(server.stop(), 0, "the server stops by itself")


def listeners(cluster):
    """The processes of PostgreSQL that serve the bells of this test's replicas."""
    rows = cluster.sql("SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN \"talk\"%'")
    return {int(row) for row in rows.split()}


def submit_while_ringing(servers, calls, listener):
    """Both replicas ring; the first one's notice arrives while the second waits for its answer."""
    waiting = wait_for_work(servers[1], 1, "watched")[0]
    os.kill(listener, signal.SIGSTOP)
    try:
        calls[1].good("POST", "/v1/executions", {"kind": "wake", "lane": "unwatched"})
        pause(0.05)  # it rings after the commit; nothing shows that it has
        calls[0].good("POST", "/v1/executions", {"kind": "wake", "lane": "watched"})
    finally:
        os.kill(listener, signal.SIGCONT)
    status, _, body = waiting.answer()
    waiting.socket.close()
    return status == 200 and len(json.loads(body)["items"]) == 1


def talking(tap, cluster):
    """Ringing takes notices off the socket as well: they must be heard all the same."""
    servers = [serve(cluster.store("talk"), tap=tap)]
    until(lambda: len(listeners(cluster)) == 1, 10)
    others = listeners(cluster)
    servers.append(serve(cluster.store("talk"), tap=tap))
    until(lambda: len(listeners(cluster) - others) == 1, 10)
    listener = (listeners(cluster) - others).pop()
    calls = [Calls(server) for server in servers]
    for lane in ("watched", "unwatched"):  # so that both replicas know the queues
        calls[0].good("POST", "/v1/executions", {"kind": "wake", "lane": lane})
        calls[1].good("POST", "/v1/claims", {"worker": "w", "lanes": [lane], "wait_ms": 5000})
    before, answered = Wakes(servers[1]), []
    noticed = 0
    while noticed < NOTICES and len(answered) < TRIES_MAX:
        answered.append(submit_while_ringing(servers, calls, listener))
        after = Wakes(servers[1])
        noticed = after.news - before.news
    tap.note(f"woken while ringing: {noticed:.0f} times by notices, "
             f"{after.poll - before.poll:.0f} times by the poll")
    tap.ok(all(answered), "a claim at a replica that rings gets what the other one submits",
           answered)
    # A notice that is not read in time would leave all wakes to the poll.
    tap.ok(noticed >= NOTICES, "claims are woken by notices, not by the poll",
           f"{noticed} notices of {len(answered)}")
    for some in calls:
        some.close()
    for server in servers:
        tap.equal(server.stop(), 0, "the server stops by itself")


class Watcher:
    """A worker that holds leases and watches them at a server, and when it heard of each."""

    def __init__(self, server, name):
        self.server, self.name, self.heard, self.failed = server, name, {}, []
        self.calls = Calls(server, timeout=90)
        self.held = {item["id"] for item in self.calls.good(
            "POST", "/v1/claims", {"worker": name, "lanes": ["long"], "max": RUNNING // WATCHERS,
                                   "lease_ms": LONG_MS})["items"]}
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        try:
            while len(self.heard) < len(self.held):
                items = self.calls.good("POST", "/v1/leases/watch",
                                        {"worker": self.name, "wait_ms": 60000})["items"]
                for item in items:
                    if item["id"] in self.heard or item["reason"] != "cancelled":
                        self.failed.append(item)
                    self.heard[item["id"]] = time.monotonic()
        except (AssertionError, OSError) as error:
            self.failed.append(error)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def cancel_all(calls, watchers):
    """Cancels all that runs, some at a time; says when each was cancelled."""
    when = {}
    ids = [an_id for some in zip(*(sorted(w.held) for w in watchers)) for an_id in some]
    for at in range(0, len(ids), AT_ONCE):
        began = time.monotonic()
        when.update((an_id, began) for an_id in ids[at:at + AT_ONCE])
        calls.good("POST", "/v1/executions/cancel", {"ids": ids[at:at + AT_ONCE]})
        pause(0.02)
    return when


def cancels(tap, cluster):
    """1,000 run, held by workers that watch at the replica which cancels, and at another one."""
    servers = [serve(cluster.store("cancel"), tap=tap) for _ in range(2)]
    calls = Calls(servers[0])
    calls.good("POST", "/v1/executions", {"items": [{"kind": "k", "lane": "long"}] * RUNNING})
    watchers = [Watcher(servers[i % 2], f"holder{i}") for i in range(WATCHERS)]
    tap.equal(sum(len(w.held) for w in watchers), RUNNING, f"{RUNNING} executions run")
    tap.ok(until(lambda: all(watches(s) == WATCHERS // 2 for s in servers), 20),
           "all workers watch their leases")
    when = cancel_all(calls, watchers)
    for watcher in watchers:
        watcher.thread.join(30)
    tap.equal([w.failed for w in watchers if w.failed], [],
              "each lease is reported once, as cancelled")
    tap.equal(sum(len(w.heard) for w in watchers), RUNNING, "every cancelled lease is reported")
    for place, (where, most) in enumerate((("the same replica", NOTIFIED_HERE_S),
                                           ("another replica", NOTIFIED_THERE_S))):
        took = [w.heard[i] - when[i] for w in watchers[place::2] for i in w.heard]
        if not took:
            continue
        p99 = percentile(took, 0.99)
        tap.note(f"cancel to notice on {where}: p50 {percentile(took, 0.5) * 1000:.1f} ms, "
                 f"p99 {p99 * 1000:.1f} ms, at most {max(took) * 1000:.1f} ms")
        if SANITIZED:
            tap.skip("times of a build with sanitizers say nothing")
        else:
            tap.ok(p99 < most, f"a worker on {where} is notified within {most:.0f} s (p99)", p99)
    calls.close()
    for watcher in watchers:
        watcher.calls.close()
    for server in servers:
        tap.equal(server.stop(), 0, "the server stops by itself")


def main():
    allow_many_files()
    tap, cluster = Tap(), counting_cluster()
    try:
        idle(tap, cluster)
        crowds(tap, cluster)
        goodbyes(tap, cluster)
        talking(tap, cluster)
        cancels(tap, cluster)
    finally:
        cluster.remove()
    tap.done()


if __name__ == "__main__":
    main()
