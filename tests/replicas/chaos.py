#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every effect happens once, whichever process dies: tests/replicas/chaos.py. Prints TAP.

    WEFT_SEED=N     who is killed when, and what the workers do; else by chance, and printed
    WEFT_SOAK=1     two minutes and 300,000 executions instead of 20 s and 50,000
    WEFT_CHAOS_S=N  so many seconds

Three servers are processes on one PostgreSQL, six workers (chaos_worker.py) are processes too.
While executions are submitted in bulk under keys, workers and servers are killed with SIGKILL at
random and started again, each worker under a new name. Leases last 1 to 2 s, so the leases of
killed workers lapse all the time. Then the killing ends, and everything must come to its end.

What is proven, by comparing the store with what each worker wrote down from the answers:

  - what was submitted is there once, and all of it succeeded: no execution is lost, none is stuck,
    none given up;
  - there is one outcome per execution and nothing lives any more;
  - the result stored is the effect of the lease that finished: its worker, its epoch, its payload;
  - every complete that was acknowledged is the one stored, so no worker got "done" whose effect
    is not there, and no execution was acknowledged to two;
  - no worker whose effect is stored got a refusal;
  - no epoch of an execution was given out twice, over all workers;
  - every lease a worker was given is accounted for, to that worker, as an attempt that ended or as
    the outcome; and the attempts of an execution are exactly the epochs before the last;
  - the doctor finds every row whole, and PostgreSQL has seen no deadlock.

The kills follow from the seed; how processes interleave does not.
"""
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import fleet
from fleet import few
from harness import FAULTS, SANITIZED, Calls, Cluster, Tap, doctor, pause, serve, until
from load import states

LONG = os.environ.get("WEFT_SOAK", "0") not in ("", "0")
SECONDS = float(os.environ.get("WEFT_CHAOS_S") or (120 if LONG else 20))
SEED = int(os.environ.get("WEFT_SEED") or random.SystemRandom().randrange(10**6))
REPLICAS, WORKERS = 3, 6
BULK = 1000
COUNT = 50000 * max(1, round(SECONDS / 20))
FINISH_S = 60 + SECONDS * (4 if SANITIZED else 2)
LOST = 4  # in the store: the lease ran out. Whether it is counted depends on the grace after a start
POLICY = {"max_attempts": 1000, "max_lost": 1000,
          "backoff": {"kind": "fixed", "initial_ms": 20, "jitter": False}}


class Replica:
    """A place for a server, which is killed and started again."""

    def __init__(self, board, number):
        self.board, self.number, self.server = board, number, None
        self.start()

    def start(self):
        self.server = serve(self.board.store)
        self.board.publish()

    def kill(self):
        self.server.kill()
        self.server = None
        self.board.publish()


class Labourer:
    """A place for a worker; each process in it has a name of its own."""

    def __init__(self, board, number):
        self.board, self.number, self.turn, self.process = board, number, 0, None
        self.start()

    def start(self):
        self.turn += 1
        name = f"w{self.number}-{self.turn}"
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(fleet.HERE, "chaos_worker.py"), self.board.folder, name,
             str(SEED * 1000 + self.number * 100 + self.turn)], stdin=subprocess.DEVNULL,
            stdout=sys.stdout)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Board:
    """All that runs, and where the servers are."""

    def __init__(self, store):
        self.store, self.folder = store, tempfile.mkdtemp(prefix="weft-chaos.")
        self.lock, self.replicas, self.workers = threading.Lock(), [], []
        for i in range(REPLICAS):
            self.replicas.append(Replica(self, i))
        self.publish()
        for i in range(WORKERS):
            self.workers.append(Labourer(self, i))

    def publish(self):
        with self.lock:
            urls = [r.server.url for r in self.replicas if r.server]
            path = os.path.join(self.folder, "replicas")
            with open(path + ".new", "w", encoding="utf-8") as file:
                json.dump(urls, file)
            os.rename(path + ".new", path)

    def calls(self, timeout=10):
        with self.lock:
            servers = [r.server for r in self.replicas if r.server]
        return Calls(random.choice(servers), timeout) if servers else None

    def end(self):
        for place in self.workers:
            place.kill()
        for place in self.replicas:
            if place.server:
                place.server.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Submitter(threading.Thread):
    """Submits everything over four fifths of the time, each under a key, so that a call which was
    not answered is repeated. What was made, by number."""

    def __init__(self, board):
        super().__init__(daemon=True)
        self.board, self.random, self.ids, self.broken = board, random.Random(SEED + 1), {}, 0

    def spec(self, number):
        made = {"kind": f"k{number % 5}", "lane": ("default", "mail")[number % 2],
                "payload": {"n": number}, "key": f"n-{number}", "policy": POLICY,
                "priority": number % 3}
        if self.random.random() < 0.1:
            made["delay_ms"] = self.random.randrange(1, 2000)
        return made

    def put(self, specs):
        """Submits; returns the specs that are not yet acknowledged."""
        calls = self.board.calls()
        try:
            status, _, answer = calls("POST", "/v1/executions", {"items": list(specs.values())}) \
                if calls else (0, None, None)
        except FAULTS:
            status = 0
        finally:
            if calls:
                calls.close()
        if status != 200:
            self.broken += 1
            pause(0.05)
            return specs
        for number, item in zip(list(specs), answer["items"]):
            if "id" in item:
                self.ids[number] = item["id"]
        return {n: spec for n, spec in specs.items() if n not in self.ids}

    def run(self):
        began, calls = time.monotonic(), COUNT // BULK
        for i in range(calls):
            left = {n: self.spec(n) for n in range(i * BULK, (i + 1) * BULK)}
            due = began + SECONDS * 0.8 * i / calls
            until(lambda d=due: time.monotonic() >= d, SECONDS)
            while left and time.monotonic() < began + SECONDS + FINISH_S:
                left = self.put(left)


def kill_at_random(board):
    """For the time given; how many workers and servers were killed, and who did not come back."""
    pick, killed, returning = random.Random(SEED), {"worker": 0, "server": 0}, []
    # Some servers live long enough to take leases away, others hardly start.
    luck = pick.sample([1, 3, 6], REPLICAS)
    end, missing = time.monotonic() + SECONDS, []

    def come_back(place, after_s):
        pause(after_s)
        try:
            place.start()
        except (OSError, RuntimeError) as error:
            missing.append(str(error))
    while time.monotonic() < end:
        pause(0.1 + pick.random() * 0.6)
        what = "server" if pick.random() < 0.25 else "worker"
        place, after_s = pick.choice(board.workers), pick.random() * 0.5
        if what == "server":
            place = pick.choices(board.replicas, luck)[0]
        busy = [thread for thread in returning if thread.is_alive()]
        if any(thread.place is place for thread in busy):
            continue
        place.kill()
        killed[what] += 1
        thread = threading.Thread(target=come_back, args=(place, after_s), daemon=True)
        thread.place = place
        thread.start()
        returning.append(thread)
    for thread in returning:
        thread.join(fleet.BOUND_S)
    return killed, missing


def read_lines(board, what):
    """(worker, fields) of every whole line."""
    for path in sorted(glob.glob(os.path.join(board.folder, "*." + what))):
        worker = os.path.basename(path).rpartition(".")[0]
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.endswith("\n"):
                    an_id, epoch, *rest = line.split()
                    yield worker, an_id, int(epoch), rest


class Stored:
    """What the store says: outcomes by id, and the worker of every ended lease."""

    def __init__(self, cluster):
        self.cluster, self.outcome, self.ended = cluster, {}, {}
        self.results = {}
        for line in self.rows("SELECT o.id, o.epoch, n.text, convert_from(o.result, 'UTF8') "
                              "FROM chaos.outcome o LEFT JOIN chaos.name n ON n.id = o.worker"):
            an_id, epoch, worker, result = line.split("|", 3)
            self.outcome[an_id] = (worker, int(epoch))
            self.results[an_id] = result
        for line in self.rows("SELECT a.id, a.epoch, n.text FROM chaos.attempt a "
                              "LEFT JOIN chaos.name n ON n.id = a.worker"):
            an_id, epoch, worker = line.split("|")
            self.ended.setdefault(an_id, []).append((int(epoch), worker))

    def rows(self, text):
        return self.cluster.sql(text).splitlines()


def living(cluster):
    return int(cluster.sql("SELECT count(*) FROM chaos.live"))


def check_executions(tap, board, cluster, submitter, stored):
    ids = submitter.ids
    calls = board.calls(timeout=60)
    now = states(calls)
    calls.close()
    wrong = [f"{an_id}: number {n} is not there" for n, an_id in ids.items() if an_id not in now]
    tap.ok(len(set(ids.values())) == COUNT and len(now) == COUNT and not wrong,
           f"{COUNT} executions were submitted and are there, each once",
           f"{len(ids)} acknowledged, {len(now)} there\n{few(wrong)}")
    wrong = [f"{an_id}: expected succeeded, is {state}" for an_id, state in now.items()
             if state != "succeeded"]
    tap.ok(not wrong, "every execution succeeded", few(wrong))
    tap.equal((len(stored.outcome), living(cluster)), (COUNT, 0),
              "each execution has one outcome, no execution is live")


def check_effects(tap, submitter, stored):
    wrong = []
    for n, an_id in submitter.ids.items():
        worker, epoch = stored.outcome.get(an_id, (None, 0))
        expected = {"n": n, "worker": worker, "epoch": epoch}
        if json.loads(stored.results.get(an_id) or "null") != expected:
            wrong.append(f"{an_id}: expected {expected}, is {stored.results.get(an_id)}")
    tap.ok(not wrong, "every result is the effect of the lease that finished", few(wrong))


def check_told(tap, board, stored):
    wrong, answered = [], {}
    for worker, an_id, epoch, _ in read_lines(board, "acks"):
        if stored.outcome.get(an_id) != (worker, epoch):
            wrong.append(f"{an_id}: acknowledged to {worker} at epoch {epoch}, stored is "
                         f"{stored.outcome.get(an_id)}")
        answered.setdefault(an_id, set()).add((worker, epoch))
    wrong += [f"{an_id}: acknowledged to {who}" for an_id, who in answered.items() if len(who) > 1]
    tap.ok(answered and not wrong, "every acknowledged complete is the one stored", few(wrong))
    refused = list(read_lines(board, "fenced"))
    wrong = [f"{an_id}: refused to {worker} at epoch {epoch} ({rest[0]}), yet stored"
             for worker, an_id, epoch, rest in refused if stored.outcome.get(an_id) ==
             (worker, epoch)]
    tap.ok(not wrong, "no call whose effect is stored was refused", few(wrong))
    reasons = {}
    for _, _, _, rest in refused:
        reasons[rest[0]] = reasons.get(rest[0], 0) + 1
    tap.note(f"{len(answered)} of {len(stored.outcome)} outcomes were acknowledged to a worker; "
             f"completes refused: {reasons}")


def check_leases(tap, board, stored):
    given, twice, wrong = {}, [], []
    for worker, an_id, epoch, _ in read_lines(board, "claims"):
        if (an_id, epoch) in given:
            twice.append(f"{an_id}: epoch {epoch} given to {given[an_id, epoch]} and to {worker}")
        given[an_id, epoch] = worker
    tap.ok(given and not twice, "no epoch was given out twice", few(twice))
    ended = {(an_id, epoch): worker for an_id, some in stored.ended.items()
             for epoch, worker in some}
    ended.update(((an_id, epoch), worker) for an_id, (worker, epoch) in stored.outcome.items())
    wrong = [f"{an_id}: epoch {epoch} was given to {worker}, stored is {ended.get((an_id, epoch))}"
             for (an_id, epoch), worker in given.items() if ended.get((an_id, epoch)) != worker]
    tap.ok(not wrong, "every lease that was given is accounted for to its worker", few(wrong))
    wrong = []
    for an_id, (_, last) in stored.outcome.items():
        epochs = sorted(epoch for epoch, _ in stored.ended.get(an_id, []))
        if epochs != list(range(1, last)):
            wrong.append(f"{an_id}: ended at epoch {last}, attempts have {epochs}")
    tap.ok(not wrong, "the attempts of each are the epochs before its last", few(wrong))
    tap.note(f"{len(given)} leases were received, {len(ended)} were given")


def finish(tap, board, cluster, submitter):
    """After the killing the living workers do all that is left."""
    began = time.monotonic()
    until(lambda: not submitter.is_alive(), FINISH_S)
    done = until(lambda: not living(cluster) or pause(0.2), FINISH_S)
    tap.ok(done, "every execution ended", f"{living(cluster)} live after {FINISH_S:.0f} s")
    tap.note(f"the rest took {time.monotonic() - began:.1f} s")
    with open(os.path.join(board.folder, "stop"), "w", encoding="utf-8"):
        pass
    until(lambda: all(w.process.poll() is not None for w in board.workers), 30)
    tap.equal([w.process.poll() for w in board.workers], [0] * WORKERS,
              "the workers leave by themselves")


def main():
    tap, cluster = Tap(), Cluster()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    board = None
    tap.note(f"seed {SEED}; {COUNT} executions, {SECONDS:.0f} s (again: WEFT_SEED={SEED})")
    try:
        board = Board(cluster.store("chaos"))
        submitter = Submitter(board)
        submitter.start()
        killed, missing = kill_at_random(board)
        tap.note(f"killed {killed['worker']} workers and {killed['server']} servers; "
                 f"{submitter.broken} submits were repeated; {living(cluster)} live")
        tap.ok(killed["worker"] >= SECONDS / 4 and killed["server"] >= SECONDS / 10,
               "workers and servers were killed all the time", killed)
        tap.ok(not missing, "every process that was killed came back", few(missing))
        finish(tap, board, cluster, submitter)
        stored = Stored(cluster)
        lapsed = int(cluster.sql(f"SELECT count(*) FROM chaos.attempt WHERE ended = {LOST}"))
        counted = cluster.sql("SELECT coalesce(sum(lost), 0) FROM chaos.outcome")
        tap.ok(lapsed > 0, "leases of the dead lapsed", lapsed)
        tap.note(f"{lapsed} leases lapsed, {counted} of them outside of a grace")
        check_executions(tap, board, cluster, submitter, stored)
        check_effects(tap, submitter, stored)
        check_told(tap, board, stored)
        check_leases(tap, board, stored)
        whole, said = doctor(board.store, FINISH_S)
        tap.ok(whole, "the doctor finds every row whole", said)
        tap.equal(cluster.sql("SELECT sum(deadlocks) FROM pg_stat_database"), "0",
                  "PostgreSQL counted no deadlock")
        tap.equal([place.server and place.server.stop() for place in board.replicas],
                  [0] * REPLICAS, "the servers stop by themselves")
    finally:
        if board:
            board.end()
        cluster.remove()
    tap.done()


if __name__ == "__main__":
    main()
