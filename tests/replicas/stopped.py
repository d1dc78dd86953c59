#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers that stand still and wake too late: tests/replicas/stopped.py (WEFT_TEST_STORE: sqlite or
pg). Prints TAP.

A worker process holds a lease of one second and is stopped with SIGSTOP. While it stands still,
something ends its lease; what it would say is already in its pipe. When it is woken with SIGCONT it
says all of it, as a machine does that comes back from a pause: it renews, completes, fails, delays.
On PostgreSQL it talks to one server and the others to a second one.

What is proven, for each way to lose a lease (it ran out and no worker or another has it, or another
has already finished; cancelled; past the deadline; timed out; revoked; said goodbye in its name):

  - the execution goes on without the sleeper, and what ended the lease is seen by a call, not
    assumed after a time;
  - every call of the sleeper is `fenced`, with the reason why the lease ended;
  - nothing has changed by it: the execution, its attempts and its result are the same before and
    after, and another's lease is still good;
  - the sleeper itself is well and may take other work.

The last one is `weft work` itself: it is stopped while its command runs, and when it wakes it
reports the execution as lost and ends the command.
"""
import json
import os
import signal
import subprocess
import tempfile

from fleet import BOUND_S, Puppet, attempts, close_all, moment, show, stamp, submit
from harness import BINARY, STORE, Calls, Tap, scratch, serve, until

LEASE_MS, LONG_MS = 1000, 600000
SAID = {"renew": {"lease_ms": LONG_MS, "progress": {"percent": 99, "note": "asleep"}},
        "complete": {"result": {"by": "sleeper"}},
        "fail": {"class": "late", "message": "from a sleeper", "retryable": False},
        "delay": {"delay_ms": 1000}}


def state_is(calls, an_id, word):
    return until(lambda: show(calls, an_id)["state"] == word, BOUND_S)


class Case:
    """A sleeper, its execution, and what happens meanwhile."""

    def __init__(self, scene, reason, happens, lease_ms=LEASE_MS, **spec):
        self.scene, self.reason, self.happens = scene, reason, happens
        self.lane, self.lease_ms, self.spec = scene.replace(" ", "-"), lease_ms, spec
        self.sleeper = self.heir = self.lease = self.id = None

    def fall_asleep(self, calls, servers):
        self.sleeper = Puppet(servers[0], f"sleeper-{self.lane}")
        self.sleeper.claim(self.lane, self.lease_ms, wait_ms=0)  # it is up, before its time runs
        spec = {key: value() if callable(value) else value for key, value in self.spec.items()}
        self.id, = submit(calls, self.lane, **spec)
        item, = self.sleeper.claim(self.lane, self.lease_ms)
        self.lease = {"id": item["id"], "epoch": item["epoch"]}
        self.sleeper.freeze()
        for what, more in SAID.items():
            self.sleeper.tell(f"/v1/leases/{what}", {"items": [{**self.lease, **more}]})

    def picture(self, calls):
        """All that can be seen of the execution."""
        status, _, result = calls("GET", f"/v1/executions/{self.id}/result")
        return (show(calls, self.id), attempts(calls, self.id),
                result if status == 200 else status)

    def wake(self, tap, calls):
        before = self.picture(calls)
        self.sleeper.thaw()
        seen = {what: self.sleeper.hear() for what in SAID}
        after = self.picture(calls)
        wrong = [f"{self.id} epoch {self.lease['epoch']}: {what}: expected fenced/{self.reason}, "
                 f"seen {status} {answer}" for what, (status, answer) in seen.items()
                 if status != 200 or len(answer["items"]) != 1 or
                 (answer["items"][0].get("error", {}).get("code"),
                  answer["items"][0].get("error", {}).get("reason")) != ("fenced", self.reason)]
        tap.ok(not wrong, f"{self.scene}: every call of the sleeper is fenced: {self.reason}",
               "\n".join(wrong))
        tap.ok(after == before, f"{self.scene}: calls of the sleeper change nothing",
               f"{self.id}: before {before}\nafter {after}")


# ---- What happens while it sleeps; each returns whether it was seen -----------------------------

def taken(case, calls, servers):
    case.heir = Puppet(servers[-1], f"heir-{case.lane}")
    got = case.heir.claim(case.lane, LONG_MS, wait_ms=30000)
    return [item["id"] for item in got] == [case.id] and got[0]["epoch"] > case.lease["epoch"] and \
        show(calls, case.id)["worker"] == case.heir.name


def finished(case, calls, servers):
    if not taken(case, calls, servers):
        return False
    case.heir.ask("/v1/leases/complete", {"items": [{"id": case.id, "epoch": 2,
                                                     "result": {"by": "heir"}}]})
    return show(calls, case.id)["state"] == "succeeded"


def lapsed(case, calls, _):
    return state_is(calls, case.id, "ready")


def cancelled(case, calls, _):
    return calls.good("POST", f"/v1/executions/{case.id}/cancel", {"reason": "not needed"})[
        "state"] == "cancelled"


def expired(case, calls, _):
    return state_is(calls, case.id, "expired")


def timed_out(case, calls, _):
    """And its next attempt waits for nothing but a worker: its state changes no more by itself."""
    return until(lambda: [show(calls, case.id)[f] for f in ("attempt", "state")] == [2, "ready"],
                 BOUND_S)


def revoked(case, calls, _):
    return calls.good("POST", f"/v1/executions/{case.id}/revoke")["state"] == "ready"


def goodbye(case, calls, _):
    return calls.good("POST", f"/v1/workers/{case.sleeper.name}/goodbye")["released"] == 1


def cases(calls):
    def soon():
        return stamp(moment(calls.good("GET", "/v1/counts")["as_of"]) + 8)
    return [
        Case("no worker has the lease yet", "lost", lapsed),
        Case("another worker has the lease", "reclaimed", taken),
        Case("another worker finished", "reclaimed", finished),
        Case("the deadline passed", "expired", expired, LONG_MS, deadline_at=soon),
        Case("the attempt took too long", "timed_out", timed_out, LONG_MS,
             policy={"attempt_timeout_ms": 1000, "max_attempts": 3}),
        Case("the execution was cancelled", "cancelled", cancelled, LONG_MS),
        Case("the lease was revoked", "revoked", revoked, LONG_MS),
        Case("another process said goodbye", "released", goodbye, LONG_MS),
    ]


def check_heirs(tap, calls, all_cases):
    """What the others held is theirs to the end."""
    case = all_cases[1]
    answer = case.heir.ask("/v1/leases/complete", {"items": [{"id": case.id, "epoch": 2,
                                                              "result": {"by": "heir"}}]})
    tap.equal(answer["items"][0].get("state"), "succeeded", "the lease of the other worker is still good")
    results = [calls.good("GET", f"/v1/executions/{c.id}/result") for c in all_cases[1:3]]
    tap.equal(results, [{"by": "heir"}] * 2, "the results are from the other workers")
    renewed = []
    for case in all_cases:
        fresh, = submit(calls, f"fresh-{case.lane}")
        item, = case.sleeper.claim(f"fresh-{case.lane}", LONG_MS)
        done = case.sleeper.ask("/v1/leases/complete", {"items": [
            {"id": item["id"], "epoch": item["epoch"], "result": 1}]})
        renewed.append((item["id"], done["items"][0].get("state")) == (fresh, "succeeded"))
    tap.ok(all(renewed), "every sleeper goes on to work on something else", renewed)


# ---- The worker that comes with weft ------------------------------------------------------------

def command_sleeps(tap, calls, servers):
    lane, folder = "command", tempfile.mkdtemp(prefix="weft-stopped.")
    mark, output = os.path.join(folder, "pid"), os.path.join(folder, "out")
    an_id, = submit(calls, lane)
    # The command says that it runs, and goes on until it is killed.
    script = f"echo $$ >{mark}.new; mv {mark}.new {mark}; exec tail -f /dev/null"
    with open(output, "wb") as out:
        work = subprocess.Popen([BINARY, "work", "--server", servers[0].url, "--lane", lane,
                                 "--lease", f"{LEASE_MS}ms", "--json", "--max", "1", "--", "sh",
                                 "-c", script],
                                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    heir, command = Puppet(servers[-1], "heir-command"), 0
    try:
        until(lambda: os.path.exists(mark), BOUND_S)
        with open(mark, encoding="utf-8") as file:
            command = int(file.read())
        work.send_signal(signal.SIGSTOP)
        item, = heir.claim(lane, LONG_MS, wait_ms=30000)
        before = show(calls, an_id)
        tap.equal((item["id"], before["worker"]), (an_id, heir.name),
                  "weft work: another worker runs the execution that it held")
        work.send_signal(signal.SIGCONT)
        gone = until(lambda: not os.path.exists(f"/proc/{command}"), BOUND_S)
        tap.ok(gone, "weft work: the command of a lost lease is ended")
        tap.equal(work.wait(BOUND_S), 0, "weft work: the exit code is 0")
    finally:
        work.kill()
        work.wait()
        if os.path.exists(f"/proc/{command}") and command:
            os.kill(command, signal.SIGKILL)
    with open(output, encoding="utf-8") as file:
        said = [json.loads(line) for line in file if line.startswith("{")]
    tap.ok(any(line.get("id") == an_id and "reclaimed" in json.dumps(line) for line in said),
           "weft work: the output says that the lease was reclaimed", f"{an_id}: seen {said}")
    tap.equal(show(calls, an_id), before, "weft work: the lost lease changes nothing")
    close_all(heir)


def main():
    tap, store = Tap(), scratch(STORE, "stopped")
    servers = [serve(store, tap=tap) for _ in range(2 if STORE == "pg" else 1)]
    calls = Calls(servers[-1])
    all_cases = cases(calls)
    for case in all_cases:
        case.fall_asleep(calls, servers)
    for case in all_cases:
        tap.ok(case.happens(case, calls, servers), f"{case.scene}: while its worker stands still",
               f"{case.id}: seen {show(calls, case.id)}")
    for case in all_cases:
        case.wake(tap, calls)
    check_heirs(tap, calls, all_cases)
    command_sleeps(tap, calls, servers)
    close_all(calls, *[p for c in all_cases for p in (c.sleeper, c.heir) if p])
    tap.equal([server.stop() for server in servers], [0] * len(servers),
              "the servers stop by themselves")
    store.remove()
    tap.done()


if __name__ == "__main__":
    main()
