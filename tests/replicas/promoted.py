#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A COMMIT that waits for a synchronous standby, and what ends that wait. Prints TAP.

The process that feeds the standby is stopped, so that a submission hangs in its COMMIT with WAL that
the standby does not have. Then step by step:

- The standby is promoted, other sessions of the new primary take the number of the transaction and
  commit, the old primary dies. The number is committed there, and means another transaction.
- The wait is cancelled: the server answers COMMIT with a warning, and has the commit alone.
- The session is ended: the commit is there, without its standby, and the client gets no answer.

At last a standby is promoted that commits did not wait for: names and queues that the server knows
are not there, and it must not write their numbers.
"""
import os
import signal
import threading

import fleet  # noqa: F401 (finds the harness)
from harness import FAULTS, At, Calls, Tap, serve, until
from pair import Pair, programs

BOUND_S = 90


class Hanging:
    """A submission that hangs in its COMMIT, because the standby gets nothing."""

    def __init__(self, pair, server):
        self.pair, self.answer = pair, None
        self.calls = Calls(server, timeout=BOUND_S)
        self.feeder = pair.walsender()
        os.kill(self.feeder, signal.SIGSTOP)
        self.thread = threading.Thread(target=self.submit, daemon=True)
        self.thread.start()
        found = until(lambda: pair.primary.sql(
            "SELECT pid, backend_xid FROM pg_stat_activity"
            " WHERE wait_event = 'SyncRep' AND backend_xid IS NOT NULL"), 30)
        if not found:
            raise AssertionError("no COMMIT waits for the standby")
        self.pid, self.xid = (int(word) for word in found.splitlines()[0].split("|"))

    def submit(self):
        try:
            self.answer = self.calls("POST", "/v1/executions", {"kind": "hanging"})
        except FAULTS as error:
            self.answer = (0, None, repr(error))

    def feed(self):
        os.kill(self.feeder, signal.SIGCONT)

    def result(self):
        self.thread.join(BOUND_S)
        self.calls.close()
        return self.answer or (0, None, "no answer")


def warm(server):
    """Everything but the execution itself is known and committed."""
    calls = Calls(server)
    calls.good("POST", "/v1/executions", {"kind": "hanging"})
    calls.close()


def is_unknown(status, answer):
    return status == 503 and "outcome_unknown" in str(answer)


def serves_again(tap, server, what):
    calls = Calls(server, timeout=BOUND_S)

    def submits():
        try:
            return calls("POST", "/v1/executions", {"kind": "after"})[0] == 201
        except FAULTS:
            return False
    tap.ok(until(submits, BOUND_S), f"{what}: the server serves again, without a restart")
    calls.close()


def spend(node, xid):
    """Other applications take numbers up to this one, and commit."""
    node.sql("CREATE TABLE IF NOT EXISTS other (n int)")
    node.sql("DO $$ BEGIN WHILE pg_snapshot_xmax(pg_current_snapshot())::text::bigint <= "
             f"{xid} LOOP INSERT INTO other VALUES (1); COMMIT; END LOOP; END $$")
    return node.sql(f"SELECT pg_xact_status('{xid}'::xid8)")


def promoted(tap, pair, server):
    warm(server)
    hanging = Hanging(pair, server)
    pair.fail_over()
    status = spend(pair.primary, hanging.xid)
    tap.equal(status, "committed", "the number is that of another transaction, which is committed")
    pair.standby.kill()
    status, _, answer = hanging.result()
    tap.ok(is_unknown(status, answer), "promoted: the answer is outcome_unknown", (status, answer))
    if status == 201:
        calls = Calls(server, timeout=BOUND_S)
        there = calls("GET", f"/v1/executions/{answer['id']}")[0]
        tap.equal(there, 200, "promoted: the acknowledged execution exists")
        calls.close()
    serves_again(tap, server, "promoted")


def is_asked(pair):
    """Whether the server's question for the outcome waits for the standby."""
    return pair.primary.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                            " AND query LIKE '%pg_xact_status%'") == "1"


def fed_later(tap, pair, server, name, function):
    """The wait of COMMIT is ended by an SQL function; the standby gets the WAL after that."""
    warm(server)
    hanging = Hanging(pair, server)
    pair.primary.sql(f"SELECT {function}({hanging.pid})")
    asked = until(lambda: is_asked(pair) or hanging.answer, 30)
    tap.ok(asked and not hanging.answer,
           f"{name}: a commit that the standby does not have is not acknowledged", hanging.answer)
    hanging.feed()
    status, _, _ = hanging.result()
    tap.equal(status, 201, f"{name}: the commit is acknowledged when the standby has it")


def cancelled_and_promoted(tap, pair, server):
    warm(server)
    hanging = Hanging(pair, server)
    pair.primary.sql(f"SELECT pg_cancel_backend({hanging.pid})")
    until(lambda: hanging.answer or is_asked(pair), 30)
    pair.fail_over()
    pair.standby.kill()
    status, _, answer = hanging.result()
    tap.ok(is_unknown(status, answer), "cancelled, then promoted: the answer is outcome_unknown",
           (status, answer))
    serves_again(tap, server, "cancelled, then promoted")


def behind(tap, pair, server):
    """What the standby never had is lost, and nothing else is damaged."""
    pair.primary.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
    pair.primary.sql("SELECT pg_reload_conf()")
    os.kill(pair.walsender(), signal.SIGSTOP)
    calls = Calls(server, timeout=BOUND_S)
    until(lambda: calls.good("POST", "/v1/executions", {"kind": "new", "lane": "new",
                                                        "tenant": "new", "policy": {
                                                            "max_attempts": 7}}), 30)
    pair.fail_over()
    pair.standby.kill()
    spec = {"kind": "new", "lane": "new", "tenant": "new", "policy": {"max_attempts": 7}}
    found = {}

    def submits():
        try:
            status, _, found["answer"] = calls("POST", "/v1/executions",
                                               {"kind": "other", "lane": "other"})
            return status == 201
        except FAULTS:
            return False
    tap.ok(until(submits, BOUND_S), "behind: the server serves again", found)
    made = calls.good("POST", "/v1/executions", spec)["id"]
    shown = calls.good("GET", f"/v1/executions/{made}")
    tap.equal((shown["kind"], shown["lane"], shown["tenant"]), ("new", "new", "new"),
              "behind: names that the standby never had are added again")
    claimed = calls.good("POST", "/v1/claims", {"worker": "w", "lanes": ["new"],
                                                "wait_ms": 20000})["items"]
    tap.equal([item["id"] for item in claimed], [made], "behind: a claim on the new lane gets the execution")
    tap.equal(pair.primary.sql("SELECT count(*) FROM promoted.execution e WHERE NOT EXISTS (SELECT"
                               " FROM promoted.queue q WHERE q.id = e.queue)"), "0",
              "behind: every execution has its queue")
    calls.close()


def main():
    tap = Tap()
    if not programs():
        tap.skip("pg_basebackup is not installed")
        tap.done()
    pair = Pair()
    try:
        server = serve(At(pair.url("promoted")), tap=tap)
        fed_later(tap, pair, server, "cancelled", "pg_cancel_backend")
        fed_later(tap, pair, server, "ended", "pg_terminate_backend")
        promoted(tap, pair, server)
        pair.attach()
        cancelled_and_promoted(tap, pair, server)
        pair.attach()
        behind(tap, pair, server)
        tap.equal(server.stop(), 0, "the server stops by itself")
    finally:
        pair.remove()
    tap.done()


if __name__ == "__main__":
    main()
