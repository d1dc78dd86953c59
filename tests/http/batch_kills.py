#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batches whose servers are killed in every part of their life: tests/http/batch_kills.py
(WEFT_TEST_STORE: sqlite or pg; WEFT_SOAK=1: more lines and more kills).

A server is killed during the upload, while the lines are written, while they run, when the counts are made final,
and while a retry brings lines back; in the soak over PostgreSQL the database is restarted at once in these places, which
leaves no time for anything. The executor is played by workers. Afterwards every custom_id is in exactly one of the
two files, and the counts are those of the files. Prints TAP.
"""
import os
import random
import threading

from batches import BATCHES, OWN, check_files, claim, create, finish, line, upload, wait
from harness import FAULTS, STORE, Calls, Cluster, Tap, doctor, pause, scratch, serve, until

SOAK = os.environ.get("WEFT_SOAK") == "1"
LINES, KILLS = (50000, 25) if SOAK else (5000, 5)


class Life:
    """A server that is killed and started again, or whose database is restarted."""

    def __init__(self, tap, store, cluster=None):
        self.tap, self.store, self.cluster, self.kills = tap, store, cluster, 0
        self.rounds = KILLS if SOAK or not cluster else 1  # a restart takes seconds
        self.server = serve(store, tap=tap)
        self.calls = Calls(self.server)

    def again(self):
        self.calls.close()
        if not self.cluster:
            self.server.kill()
            self.server = serve(self.store, tap=self.tap)
        self.calls = Calls(self.server)

    def kill(self):
        self.kills += 1
        if self.cluster:
            self.cluster.restart("immediate")
        else:
            self.server.process.kill()

    def kill_soon(self, seconds):
        timer = threading.Timer(seconds, self.kill)
        timer.start()
        return timer

    def survive(self, dice, act, spans=(0.4, 0.15, 0.06, 0.02)):
        """Does it again, after a kill in the midst of it each time, and at last without one."""
        left = list(spans[-self.rounds:])
        while True:
            timer = self.kill_soon(left.pop() * dice.uniform(0.5, 1.5)) if left else None
            try:
                done = act(self.calls)
                if timer:
                    timer.cancel()
                    timer.join()
                if not self.dead():
                    return done
            except (*FAULTS, AssertionError):
                if timer:
                    timer.join()
            self.revive()

    def dead(self):
        return not self.cluster and self.server.process.poll() is not None

    def revive(self):
        """Goes on when a server answers again."""
        if self.dead() or self.cluster:
            self.again()
        until(self.answers, 60)

    def answers(self):
        try:
            return self.calls("GET", "/readyz")[0] == 200
        except FAULTS:
            self.again()
            return False


def work(life, batch, bad):
    """Workers that claim and end lines until the batch is over, whatever becomes of their server."""
    def step():
        try:
            items = claim(life.calls)
            finish(life.calls, items if bad else [{**item, "node": "good"} for item in items])
            return life.calls.good("GET", f"{BATCHES}/{batch}")["status"] == "completed"
        except (*FAULTS, AssertionError):
            life.revive()
            # Leases that a killed claim took run out by themselves; their workers are gone.
            life.survive(random.Random(1), lambda calls: calls.good("POST", "/v1/workers/w/goodbye"), ())
            return False
    until(step, 120)


def killed(tap, life, dice):
    life.survive(dice, lambda calls: calls.good("PUT", "/v1/models/m", {"endpoint": "e", "max_running": 5000}), (0.01,))
    content = "".join(line(n) for n in range(LINES))
    file = life.survive(dice, lambda calls: upload(calls, content))["id"]
    batch = life.survive(dice, lambda calls: create(calls, file), ())["id"]
    for _ in range(min(life.rounds, 3)):  # while it is written
        pause(dice.uniform(0.01, 0.15))
        life.kill()
        life.revive()
    life.survive(dice, lambda calls: wait(calls, batch, "in_progress"))
    for _ in range(life.rounds):  # while it runs
        timer = life.kill_soon(dice.uniform(0.05, 0.4))
        try:
            while not timer.finished.is_set():
                finish(life.calls, claim(life.calls, 200))
        except (*FAULTS, AssertionError):
            pass
        timer.join()
        life.revive()
    life.survive(dice, lambda calls: calls.good("POST", "/v1/workers/w/goodbye"), ())
    work(life, batch, True)
    final = wait(life.calls, batch, "completed", 90)
    check_files(tap, life.calls, final, LINES, f"after {life.kills} kills")
    tap.equal(final["request_counts"]["failed"], LINES // 10, "each failed line is counted once")
    return batch


def killed_at_the_end(tap, life, dice):
    """The kill comes just when the last line ends."""
    for number in range(life.rounds):
        file = life.survive(dice, lambda calls: upload(calls, "".join(line(n) for n in range(300))), ())["id"]
        batch = life.survive(dice, lambda calls, of=file: create(calls, of), ())["id"]
        life.survive(dice, lambda calls, of=batch: wait(calls, of, "in_progress"), ())
        items = []
        while len(items) < 300:
            items += claim(life.calls)
        timer = life.kill_soon(dice.uniform(0, 0.06))
        try:
            finish(life.calls, items)
        except (*FAULTS, AssertionError):
            pass
        timer.join()
        life.revive()
        life.survive(dice, lambda calls: calls.good("POST", "/v1/workers/w/goodbye"), ())
        work(life, batch, True)
        final = wait(life.calls, batch, "completed", 60)
        check_files(tap, life.calls, final, 300, f"killed at the end, {number}")


def killed_in_a_retry(tap, life, dice, batch):
    """A retry is asked for again until it is answered; the lines run once more, and all succeed."""
    def retry(calls):
        retried = calls.good("POST", f"{OWN}/{batch}/retry", {})
        return retried["retried"]
    life.survive(dice, retry, (0.1, 0.05, 0.02))
    work(life, batch, False)
    final = wait(life.calls, batch, "completed", 90)
    output, errors = check_files(tap, life.calls, final, LINES, "retried")
    tap.equal((len(output), errors), (LINES, []), "every line has succeeded")


def run(tap, store, dice, cluster=None):
    life = Life(tap, store, cluster)
    batch = killed(tap, life, dice)
    killed_in_a_retry(tap, life, dice, batch)
    killed_at_the_end(tap, life, dice)
    tap.note(f"{life.kills} kills")
    tap.equal(life.server.process.poll(), None, "the server runs")
    life.calls.close()
    tap.equal(life.server.stop(), 0, "the last server stops by itself")
    good, said = doctor(store)
    tap.ok(good, "every row is whole", said)


def main():
    tap = Tap()
    seed = int(os.environ.get("WEFT_TEST_SEED", "0")) or random.randrange(1 << 30)
    tap.note(f"WEFT_TEST_SEED={seed}")
    store = scratch(STORE, "batchkills")
    run(tap, store, random.Random(seed))
    store.remove()
    if STORE == "pg" and SOAK:
        cluster = Cluster(durable=True)
        try:
            run(tap, cluster.store("kills"), random.Random(seed), cluster)
        finally:
            cluster.remove()
    tap.done()


if __name__ == "__main__":
    main()
