#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers whose clocks are wrong: tests/replicas/clocks.py. Prints TAP.

libfaketime shows a server a wall clock that is ten minutes fast or slow; PostgreSQL, this test and
the server beside it have the right one (they share a machine, so the time here is the store's). For
each offset one store is served by a wrong server beside a right one, and another store by a wrong
server alone. In each, one server takes the writes and another the reads: wrong and right,
right and wrong, wrong and wrong.

What is proven for every such pair:

  - times that are shown are the store's: created, started, finished, due, the end of a lease, the
    moment of the counts, when a worker or a server was last seen;
  - a delay and a deadline are kept to the moment, neither early nor late; a deadline or a start a
    minute ahead is ahead, one a minute ago is past, also for a clock ten minutes off;
  - a lease that is not renewed is taken away when it ends: not early, not late; one that is renewed
    stays, whichever server renews it; a time limit of an attempt is kept;
  - a wait lasts as long as asked.

That the wrong clock is really seen is proven by the Date header of its answers. Early means by more
than 10 ms (times are shown in whole milliseconds), late by more than 1.5 s.

With sanitizers it is skipped: libfaketime and their clock_gettime wait for each other for ever.
"""
import concurrent.futures
import email.utils
import glob
import time

from fleet import Points, attempts, moment, outlast_grace, show, stamp, submit
from harness import FAULTS, SANITIZED, Calls, Cluster, Tap, serve, until

LIBRARY = "/usr/lib/*/faketime/libfaketimeMT.so.1"
OFFSETS = {"+10m": 600, "-10m": -600}
EARLY_S, LATE_S = 0.01, 1.5
NEAR_S = 0.25  # two readings of one clock by two processes
LEASE_S = 1.5


def wrong_server(store, offset, tap):
    library, = glob.glob(LIBRARY)
    return serve(store, tap=tap, env={"LD_PRELOAD": library, "FAKETIME": offset,
                                      "FAKETIME_DONT_FAKE_MONOTONIC": "1"})


class Pair(Points):
    """Points about a server that takes writes and one that takes reads, on lanes of their own."""

    def __init__(self, name, writer, reader):
        super().__init__(name)
        self.lane = name.replace(" ", "-")
        self.writer, self.reader = Calls(writer, timeout=60), Calls(reader, timeout=60)
        self.second = Calls(reader, timeout=60)

    def claim(self, calls, lane, lease_s=60.0, wait_s=10.0):
        got = calls.good("POST", "/v1/claims", {
            "worker": f"w-{lane}", "lanes": [lane], "lease_ms": int(lease_s * 1000),
            "wait_ms": int(wait_s * 1000)})["items"]
        return got[0] if got else None

    # ---- Each of these is one point -------------------------------------------------------------

    def times(self):
        lane, wrong = self.lane + "-times", []

        def near(what, text, low, high):
            if not text or not low - NEAR_S <= moment(text) <= high + NEAR_S:
                wrong.append(f"{what} is {text}, expected {stamp(low)} to {stamp(high)}")
        began = time.time()
        an_id, = submit(self.writer, lane)
        made = time.time()
        item = self.claim(self.reader, lane)
        claimed = time.time()
        running = show(self.writer, an_id)
        self.writer.good("POST", "/v1/leases/complete",
                       {"items": [{"id": an_id, "epoch": item["epoch"], "result": 1}]})
        ended = time.time()
        over, counts = show(self.reader, an_id), self.writer.good("GET", "/v1/counts?lane=" + lane)
        near("created_at", over["created_at"], began, made)
        near("the claim's created_at", item["created_at"], began, made)
        near("started_at", over["started_at"], made, claimed)
        near("lease_expires_at", item["lease_expires_at"], made + 60, claimed + 60)
        near("lease_expires_at of the other", running["lease_expires_at"], made + 60, claimed + 60)
        near("finished_at", over["finished_at"], claimed, ended)
        near("as_of", counts["as_of"], ended - 1, time.time())
        later, = submit(self.writer, lane, delay_ms=60000)
        near("run_at", show(self.reader, later)["run_at"], ended + 60, time.time() + 60)
        self.point(wrong, "the times that are shown are the store's")

    def minute(self):
        """Deadlines and starts a minute ahead and a minute ago are judged by the store's clock."""
        lane, wrong, now = self.lane + "-minute", [], time.time()

        def expect(what, spec, wanted):
            _, _, answer = self.writer("POST", "/v1/executions",
                                     {"kind": "step", "lane": lane, **spec})
            seen = answer.get("state") or answer["error"]["code"]
            if seen != wanted:
                wrong.append(f"{what}: expected {wanted}, seen {answer}")
        expect("a deadline in a minute", {"deadline_at": stamp(now + 60)}, "ready")
        expect("a deadline a minute ago", {"deadline_at": stamp(now - 60)}, "invalid_value")
        expect("a start in a minute", {"run_at": stamp(now + 60)}, "delayed")
        expect("a start a minute ago", {"run_at": stamp(now - 60)}, "ready")
        self.point(wrong, "a minute ahead is accepted as future, a minute ago as past")

    def timely(self, an_id, what, due, at):
        """What is wrong with something that was due then and happened then."""
        if due - EARLY_S <= at <= due + LATE_S:
            return []
        return [f"{an_id}: {what} was due at {stamp(due)}, happened at {stamp(at)} "
                f"({at - due:+.3f} s)"]

    def delay(self):
        lane = self.lane + "-delay"
        an_id, = submit(self.writer, lane, delay_ms=1500)
        due = moment(show(self.writer, an_id)["run_at"])
        item = self.claim(self.reader, lane)
        wrong = self.timely(an_id, "its start", due, time.time())
        self.point(wrong if item else [f"{an_id} was not given out"], "a delay is kept")

    def deadline(self):
        due = moment(stamp(time.time() + 2))
        an_id, = submit(self.writer, self.lane + "-deadline", deadline_at=stamp(due))
        seen = self.reader.good("GET", f"/v1/executions/{an_id}?wait_ms=10000")
        wrong = self.timely(an_id, "its deadline", due, time.time())
        if seen["state"] != "expired":
            wrong.append(f"{an_id}: expected expired, seen {seen['state']}")
        else:
            wrong += self.timely(an_id, "finished_at", due, moment(seen["finished_at"]))
        self.point(wrong, "a deadline is kept")

    def lapse(self):
        lane, wrong = self.lane + "-lapse", []
        an_id, = submit(self.writer, lane)
        for holder, heir in ((self.writer, self.reader), (self.reader, self.writer)):
            first = self.claim(holder, lane, LEASE_S)
            due = moment(first["lease_expires_at"])
            second = self.claim(heir, lane, LEASE_S)
            at = time.time()
            wrong += self.timely(an_id, f"the end of lease {first['epoch']}", due, at)
            if not second or second["id"] != an_id:
                wrong.append(f"{an_id}: the heir got {second}")
                break
            heir.good("POST", "/v1/leases/release", {"items": [
                {"id": an_id, "epoch": second["epoch"], "delay_ms": 0}]})
        self.point(wrong, "a lease that is not renewed is taken when it ends")

    def kept(self):
        """Renewed by turns through both; another worker waits for it in vain."""
        lane, wrong = self.lane + "-kept", []
        an_id, = submit(self.writer, lane)
        item = self.claim(self.reader, lane, LEASE_S)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            envy = pool.submit(self.claim, self.second, lane, LEASE_S, 3 * LEASE_S)
            turn = 0
            while not envy.done():
                turn += 1
                calls = (self.writer, self.reader)[turn % 2]
                asked_at = time.time()
                answer = calls.good("POST", "/v1/leases/renew", {"items": [
                    {"id": an_id, "epoch": item["epoch"], "lease_ms": int(LEASE_S * 1000)}]})
                ends = answer["items"][0].get("lease_expires_at")
                if not ends or abs(moment(ends) - asked_at - LEASE_S) > NEAR_S + LATE_S:
                    wrong.append(f"{an_id}: renewal {turn}: {answer['items'][0]}")
                    break
                until(envy.done, LEASE_S / 4)
            if envy.result():
                wrong.append(f"{an_id}: given out at epoch {envy.result()['epoch']} though renewed")
        if attempts(self.writer, an_id):
            wrong.append(f"{an_id}: attempts {attempts(self.writer, an_id)}")
        self.point(wrong, "a lease that is renewed stays")

    def limit(self):
        lane = self.lane + "-limit"
        an_id, = submit(self.writer, lane, policy={"attempt_timeout_ms": 1500, "max_attempts": 2})
        self.claim(self.reader, lane)
        began = moment(show(self.writer, an_id)["started_at"])
        gone = until(lambda: attempts(self.writer, an_id), 10)
        wrong = self.timely(an_id, "its time limit", began + 1.5, time.time())
        wrong += self.timely(an_id, "ended_at", began + 1.5, moment(gone[0]["ended_at"])) \
            if gone else []
        self.point(wrong, "the time limit of an attempt is kept")

    def wait(self):
        began = time.monotonic()
        item = self.claim(self.writer, self.lane + "-nothing", wait_s=0.7)
        took = time.monotonic() - began
        self.point([] if not item and 0.69 <= took <= 0.7 + LATE_S else
                   [f"expected 0.7 s and nothing, seen {took:.2f} s and {item}"],
                   "a wait lasts as long as asked")

    def run(self):
        for part in (self.times, self.minute, self.delay, self.deadline, self.lapse, self.kept,
                     self.limit, self.wait):
            try:
                part()
            except (AssertionError, TypeError, *FAULTS) as error:
                self.point([repr(error)], f"{part.__name__} could not be seen")
        for calls in (self.writer, self.reader, self.second):
            calls.close()


def date_offset(server):
    """How far the clock of a server is off, by what it says itself."""
    calls = Calls(server)
    _, headers, _ = calls("GET", "/healthz")
    calls.close()
    return email.utils.parsedate_to_datetime(headers["Date"]).timestamp() - time.time()


def workers_seen(server):
    """Workers that were seen at any other time than lately."""
    calls, now = Calls(server), time.time()
    found = calls.good("GET", "/v1/workers?limit=1000")["items"]
    calls.close()
    return found, [worker for worker in found
                   if not now - 120 < moment(worker["last_seen_at"]) < now + NEAR_S]


def odd_replicas(cluster, schemas):
    """Servers that are registered with another time than the store's."""
    return [row for schema in schemas for row in cluster.sql(
        f"SELECT '{schema}', pid, to_timestamp(seen / 1e6) FROM {schema}.replica WHERE abs(seen - "
        "extract(epoch FROM clock_timestamp()) * 1e6) > 60 * 1e6").splitlines()]


def run_all(tap, cluster, servers):
    pairs, schemas = [], []
    for offset, seconds in OFFSETS.items():
        word = "fast" if seconds > 0 else "slow"
        schemas += [f"beside_{word}", f"alone_{word}"]
        beside, alone = (cluster.store(schema) for schema in schemas[-2:])
        wrong, right = wrong_server(beside, offset, tap), serve(beside, tap=tap)
        single = wrong_server(alone, offset, tap)
        servers += [wrong, right, single]
        off = [date_offset(server) for server in (wrong, right, single)]
        tap.ok(all(abs(seen - due) < 5 for seen, due in zip(off, (seconds, 0, seconds))),
               f"{word}: the clocks of the servers are ten minutes off, right, ten minutes off",
               off)
        pairs += [Pair(f"{word} and right", wrong, right), Pair(f"right and {word}", right, wrong),
                  Pair(f"{word} alone", single, single)]
    outlast_grace(time.monotonic())
    with concurrent.futures.ThreadPoolExecutor(len(pairs)) as pool:
        list(pool.map(Pair.run, pairs))
    for pair in pairs:
        pair.report(tap)
    # Workers are written every five seconds.
    until(lambda: all(workers_seen(server)[0] for server in servers), 10)
    seen = [workers_seen(server) for server in servers]
    tap.ok(all(found and not odd for found, odd in seen),
           "workers were seen lately, by every clock", [odd for _, odd in seen])
    tap.equal(odd_replicas(cluster, schemas), [], "servers are registered by the store's clock")
    tap.equal([server.stop() for server in servers], [0] * len(servers),
              "the servers stop by themselves")


def main():
    tap = Tap()
    if SANITIZED:
        tap.skip("libfaketime and the sanitizer's clock_gettime wait for each other")
        tap.done()
    cluster, servers = Cluster(), []
    try:
        run_all(tap, cluster, servers)
    finally:
        for server in servers:
            server.kill()
        cluster.remove()
    tap.done()


if __name__ == "__main__":
    main()
