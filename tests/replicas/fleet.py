# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of many processes: the harness of tests/http, workers that are processes of
their own, and the clock of the store.

Workers here are real processes, because what is tested is what becomes of their leases when they
are killed or stopped from outside.
"""
import datetime
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "http"))

from harness import Calls, until  # found in the folder above

GRACE_S = 10  # after a start alone no lease is taken away so long
BOUND_S = 60  # what takes longer than this has failed


def few(found):
    """The first lines of many."""
    return "\n".join(str(one) for one in found[:8]) + f"\n({len(found)} in all)"


class Points:
    """Points of a part that runs beside others, reported in order when all are done."""

    def __init__(self, name):
        self.name, self.said = name, []

    def point(self, wrong, what):
        """wrong: a line for each thing that is not as expected."""
        self.said.append((not wrong, f"{self.name}: {what}", few(wrong)))

    def note(self, text):
        self.said.append((None, f"{self.name}: {text}", ""))

    def report(self, tap):
        for good, what, note in self.said:
            if good is None:
                tap.note(what)
            else:
                tap.ok(good, what, note)


class Address:
    """The address of a server that another process started."""

    def __init__(self, url):
        self.host, self.port = url.rpartition("/")[2].rsplit(":", 1)


class Puppet:
    """A worker process that sends the calls of a test; see puppet.py. tell() and hear() are
    separate, so that a call can be handed over while the process stands still."""

    def __init__(self, server, name):
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "puppet.py"), server.url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.said = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.said.put(tuple(json.loads(line)))
        self.said.put(None)

    def tell(self, path, body):
        self.process.stdin.write(json.dumps([path, body]).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, seconds=BOUND_S):
        """What was answered to the oldest call not heard yet: (status, JSON)."""
        try:
            answer = self.said.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"{self.name} says nothing for {seconds} s") from None
        if answer is None:
            raise AssertionError(f"{self.name} is gone")
        return answer

    def ask(self, path, body, seconds=BOUND_S):
        self.tell(path, body)
        status, answer = self.hear(seconds)
        if status != 200:
            raise AssertionError(f"{self.name}: POST {path}: {status} {answer}")
        return answer

    def claim(self, lane, lease_ms, wait_ms=20000, most=1):
        return self.ask("/v1/claims", {"worker": self.name, "lanes": [lane], "max": most,
                                       "lease_ms": lease_ms, "wait_ms": wait_ms})["items"]

    def signal(self, number):
        self.process.send_signal(number)

    def freeze(self):
        """Stands still when this returns."""
        self.signal(signal.SIGSTOP)
        if not until(lambda: self.state() == "T", BOUND_S):
            raise AssertionError(f"{self.name} does not stop")

    def thaw(self):
        self.signal(signal.SIGCONT)

    def state(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()


def submit(calls, lane, count=1, **spec):
    """Executions of this kind; their ids in order."""
    items = [{"kind": "step", "lane": lane, **spec}] * count
    answer = calls.good("POST", "/v1/executions", {"items": items})
    if any("error" in item for item in answer["items"]):
        raise AssertionError(f"submit {spec}: {answer}")
    return [item["id"] for item in answer["items"]]


def show(calls, an_id):
    return calls.good("GET", f"/v1/executions/{an_id}")


def attempts(calls, an_id):
    return calls.good("GET", f"/v1/executions/{an_id}/attempts")["items"]


def moment(text):
    """Seconds since 1970 of a time that the server shows."""
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(
        tzinfo=datetime.timezone.utc).timestamp()


def stamp(seconds):
    when = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return when.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def outlast_grace(since, extra_s=0.5):
    """Waits until servers that started before that moment may take leases away."""
    until(lambda: time.monotonic() > since + GRACE_S + extra_s, GRACE_S + 5)


def close_all(*things):
    for thing in things:
        if isinstance(thing, Calls):
            thing.close()
        else:
            thing.kill()
