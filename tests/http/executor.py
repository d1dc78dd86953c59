#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HTTP calls that servers make themselves: tests/http/executor.py    WEFT_TEST_STORE: sqlite or pg; WEFT_SOAK=1

Over two servers (SQLite: one) and the web server of tests/upstream.

  - A flow of calls whose bodies take parts of earlier answers; a race of three, whose losers are hung up on.
  - Answers as JSON, text and bytes; streams folded; retries, and Retry-After; errors with their detail.
  - A cancel aborts the transfer: at once on the server that makes the call, through a notice elsewhere.
  - A breaker that is open claims nothing, and closes by itself.
  - A server that stops ends its calls, or gives them back.
  - Servers are killed at random while thousands of calls are made: each execution ends once, the upstream sees
    at most one call for each lease, and a call is made again only where its lease was lost.

Prints TAP and figures.
"""
import datetime
import json
import os
import random
import signal
import subprocess
import time

from harness import BUILD, FAULTS, SANITIZED, STORE, Calls, Tap, doctor, metric_sum, metrics, pause, scratch, serve, until

SOAK = os.environ.get("WEFT_SOAK") == "1"
CALLS, KILLS = (20000, 12) if SOAK else (1000, 3)
CANCEL_HERE_S, CANCEL_THERE_S = (0.3, 1.0) if SANITIZED else (0.05, 0.25)
LARGE = 8 << 20  # the default of response_max
SLACK_S = 5 if SANITIZED else 2


class Upstream:
    """The web server of the tests."""

    def __init__(self):
        self.process = subprocess.Popen([os.path.join(BUILD, "tests", "upstream")], stdout=subprocess.PIPE,
                                        stdin=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.host, self.url = "127.0.0.1", f"http://127.0.0.1:{self.port}"
        self.calls = Calls(self)

    def seen(self):
        return self.calls.good("GET", "/seen")

    def open(self):
        return self.calls.good("GET", "/open")

    def reset(self):
        self.calls.good("GET", "/reset")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def put(calls, name, url, **settings):
    calls.good("PUT", f"/v1/endpoints/{name}", {"url": url, "private": True, **settings})


def call(calls, endpoint, path, **rest):
    spec = {key: rest.pop(key) for key in ("lane", "policy", "key", "deadline_at") if key in rest}
    return calls.good("POST", "/v1/executions", {"kind": "http", **spec,
                                                 "payload": {"endpoint": endpoint, "path": path, **rest}})["id"]


def ended(calls, which, seconds=20):
    shown = {}

    def over():
        shown.update(calls.good("GET", f"/v1/executions/{which}"))
        return shown["state"] in ("succeeded", "failed", "cancelled", "expired", "skipped")
    until(over, seconds)
    return shown


def soon(ms):
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def result(calls, which):
    return calls.good("GET", f"/v1/executions/{which}/result")


# ---- Answers ------------------------------------------------------------------------------------

def answers(tap, calls, upstream):
    which = call(calls, "mock", "/echo", body={"n": 1})
    tap.equal(ended(calls, which)["state"], "succeeded", "a call succeeds")
    answer = result(calls, which)
    tap.equal(answer["status"], 200, "its result has the status")
    tap.equal(answer["body"]["body"], '{"n": 1}', "the body was sent byte for byte")
    tap.ok(f"x-weft-execution: {which}" in answer["body"]["head"], "the server is told which execution it is")
    tap.ok(f"traceparent: 00-{which.replace('-', '')}-" in answer["body"]["head"], "and has a trace to write into")
    which = call(calls, "mock", "/bytes/64")
    ended(calls, which)
    tap.ok(set(result(calls, which)) & {"body_text", "body_base64"}, "bytes that are not JSON are kept",
           str(result(calls, which)))
    which = call(calls, "mock", f"/bytes/{LARGE}")
    tap.equal(ended(calls, which)["state"], "succeeded", "an answer of 8 MiB is a result")
    shown = result(calls, which)
    size = len(shown.get("body_text", "")) or len(shown.get("body_base64", "")) // 4 * 3
    tap.ok(LARGE <= size <= LARGE + 2, "that is read whole", str(size))
    shown = ended(calls, call(calls, "mock", f"/bytes/{LARGE + 1}"))
    tap.equal(shown["error"]["class"], "http_too_large", "a byte more is too much")
    which = call(calls, "mock", "/v1/chat/completions", body={"model": "m", "stream": True, "messages": []},
                 stream=True)
    tap.equal(ended(calls, which)["state"], "succeeded", "a stream is folded")
    tap.ok("choices" in result(calls, which)["body"], "into the object of a call without streaming")
    which = call(calls, "mock", "/status/404")
    shown = ended(calls, which)
    tap.equal((shown["state"], shown["error"]["class"]), ("failed", "http_404"), "a status is an error class")
    tap.equal(shown["error"]["detail"].get("status"), 404, "with what was answered")
    which = call(calls, "mock", "/hang-up/body", method="POST", body={})
    shown = ended(calls, which)
    tap.equal(shown["state"], "failed", "a POST whose answer broke off is not made again")
    upstream.reset()


def retries(tap, calls, upstream):
    upstream.reset()
    which = call(calls, "mock", "/first/2/503/retry", policy={"backoff": {"kind": "fixed", "initial_ms": 10}})
    shown = ended(calls, which)
    tap.equal(shown["state"], "succeeded", "a GET is made again after 503")
    seen = [row for row in upstream.seen()["seen"] if row["execution"] == which]
    tap.equal([row["count"] for row in seen], [1] * len(seen), "once for each lease")
    tap.equal([row["epoch"] for row in seen], list(range(1, len(seen) + 1)), "and each lease is a new one")


def times(tap, calls, upstream):
    """A call is over before its attempt, whatever the endpoint allows."""
    before = upstream.open()["left"]
    limits = [(3000, None, "until the timeout of the attempt"), (0, 3000, "until the deadline"),
              (3000, 60000, "until the timeout of the attempt")]
    made = []
    for attempt_ms, left_ms, said in limits:
        policy = {"max_attempts": 1, "attempt_timeout_ms": attempt_ms}
        rest = {"deadline_at": soon(left_ms)} if left_ms else {}
        made.append((call(calls, "mock", "/delay/20000", policy=policy, **rest), said))
    for which, said in made:
        shown = ended(calls, which)
        tap.equal((shown["state"], (shown["error"] or {}).get("class")), ("failed", "http_timeout"),
                  f"a call that has not ended {said} fails by itself")
        tap.ok(said in shown["error"]["message"], "and says why", shown["error"]["message"])
        attempts = calls.good("GET", f"/v1/executions/{which}/attempts")["items"]
        tap.equal([one["ended"] for one in attempts], ["failed"], "its attempt did not time out")
    tap.ok(until(lambda: upstream.open()["left"] >= before + len(made), SLACK_S), "the upstream sees the hang-ups")


# ---- Flows --------------------------------------------------------------------------------------

def flows(tap, calls, upstream):
    nodes = [
        {"name": "draft", "kind": "http", "payload": {"endpoint": "mock", "path": "/echo", "body": {"text": "once"}}},
        {"name": "check", "kind": "http", "after": ["draft"],
         "payload": {"endpoint": "mock", "path": "/echo", "body": {"was": None, "size": 0},
                     "from": {"/body/was": "draft#/body/body", "/body/size": "draft#/body/size"}}},
        {"name": "wrong", "kind": "http", "after": ["draft"],
         "payload": {"endpoint": "mock", "path": "/echo", "body": {"x": 0},
                     "from": {"/body/x": "draft#/body/nothing"}}},
    ]
    answer = calls.good("POST", "/v1/flows", {"nodes": nodes})
    ids = answer["nodes"]
    ids = {name: node for name, node in (ids.items() if isinstance(ids, dict) else
                                         ((n["name"], n["id"]) for n in ids))}
    tap.equal(ended(calls, ids["check"])["state"], "succeeded", "a call takes parts of the answer before it")
    tap.equal(json.loads(result(calls, ids["check"])["body"]["body"]), {"was": '{"text": "once"}', "size": 16},
              "and its body has them")
    shown = ended(calls, ids["wrong"])
    tap.equal((shown["state"], shown["error"]["class"]), ("failed", "http_from"), "a missing pointer fails the node")
    tap.ok("nothing" in shown["error"]["message"], "and says which", shown["error"]["message"])
    before = upstream.open()["left"]
    race = [{"name": f"model{i}", "kind": "http",
             "payload": {"endpoint": "mock", "path": f"/delay/{50 if i == 0 else 20000}/race{i}"}} for i in range(3)]
    race.append({"name": "first", "kind": "job", "after": ["model0", "model1", "model2"],
                 "join": {"policy": "any", "on_satisfied": "cancel_remaining"}})
    answer = calls.good("POST", "/v1/flows", {"nodes": race})
    ids = answer["nodes"]
    ids = {name: node for name, node in (ids.items() if isinstance(ids, dict) else
                                         ((n["name"], n["id"]) for n in ids))}
    tap.equal(ended(calls, ids["model0"])["state"], "succeeded", "the quickest of three wins")
    tap.equal([ended(calls, ids[f"model{i}"])["state"] for i in (1, 2)], ["cancelled"] * 2, "the others are cancelled")
    tap.ok(until(lambda: upstream.open()["left"] >= before + 2, SLACK_S), "and the upstream sees the hang-up",
           str(upstream.open()))


# ---- Cancelling, breaking, stopping -------------------------------------------------------------

def abort_time(calls, upstream, server):
    """How long after a cancel at this server the upstream sees the hang-up, in seconds."""
    before = upstream.open()["left"]
    which = call(calls, "mock", "/delay/20000")
    until(lambda: calls.good("GET", f"/v1/executions/{which}")["state"] == "running", 5)
    pause(0.1)
    other = Calls(server)
    began = time.monotonic()
    other.good("POST", f"/v1/executions/{which}/cancel", {})
    while upstream.open()["left"] <= before and time.monotonic() < began + 10:
        pass  # a pause would be most of what is measured
    took = time.monotonic() - began
    other.close()
    return took, calls.good("GET", f"/v1/executions/{which}")["worker"]


def cancels(tap, servers, calls, upstream):
    names = {f"http-{row['id']}": row["url"] for row in calls.good("GET", "/v1/replicas")["items"]}
    here, there = [], []
    for i in range(20):
        server = servers[i % len(servers)]
        took, worker = abort_time(calls, upstream, server)
        (here if names.get(worker) == server.url else there).append(took)
    for found, bound, where in ((here, CANCEL_HERE_S, "the same"), (there, CANCEL_THERE_S, "another")):
        if found:
            found.sort()
            tap.ok(found[len(found) // 2] < bound, f"a cancel at {where} server aborts the transfer within {bound} s",
                   str(found))
            tap.note(f"cancel at {where} server to hang-up: median {found[len(found) // 2] * 1000:.1f} ms,"
                     f" at most {found[-1] * 1000:.1f} ms of {len(found)}")


def breaks(tap, servers, calls, upstream):
    """One server, so that its breaker alone decides."""
    put(calls, "broken", upstream.url)
    bad = [call(calls, "broken", "/status/500", method="POST", body={}, policy={"max_attempts": 1}) for _ in range(40)]
    owner = Calls(servers[0])

    def state():
        return [Calls(server).good("GET", "/v1/endpoints/broken")["breaker"] for server in servers]
    tap.ok(until(lambda: "open" in state(), 10), "failures open the breaker", str(state()))
    owner.close()
    for one in bad:
        calls("POST", f"/v1/executions/{one}/cancel", {})
    upstream.reset()
    which = [call(calls, "broken", "/ok") for _ in range(10)]
    if len(servers) == 1:
        pause(0.3)
        shown = [calls.good("GET", f"/v1/executions/{one}") for one in which]
        if state() == ["open"]:
            tap.equal({(one["state"], one["epoch"]) for one in shown}, {("ready", 0)}, "nothing is claimed meanwhile")
        why = calls.good("GET", f"/v1/executions/{which[0]}/why")
        tap.ok("breaker" in why["text"] or state() != ["open"], "weft why names the breaker", str(why))
    tap.ok(until(lambda: all(ended(calls, one, 0)["state"] == "succeeded" for one in which), 60),
           "the breaker closes by itself, and the calls are made")


def stops(tap, store, calls, upstream):
    put(calls, "slow", upstream.url)
    server = serve(store, "--grace", "2s")
    own = Calls(server)
    which = [call(own, "slow", "/delay/500") for _ in range(5)] + [call(own, "slow", "/delay/30000") for _ in range(5)]
    until(lambda: all(calls.good("GET", f"/v1/executions/{one}")["state"] == "running" for one in which), 10)
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(30)
    took = time.monotonic() - began
    tap.ok(took < 2 + SLACK_S, "a stop lasts no longer than the grace", f"{took:.1f} s")
    short = [calls.good("GET", f"/v1/executions/{one}") for one in which[:5]]
    tap.ok(all(one["state"] == "succeeded" for one in short if one["attempt"] == 1),
           "calls that end within it have their results", str([one["state"] for one in short]))
    for one in which[5:]:
        calls("POST", f"/v1/executions/{one}/cancel", {})
    tap.ok(until(lambda: all(ended(calls, one, 0)["state"] == "cancelled" for one in which[5:]), 15),
           "the others were given back, and can be cancelled")


# ---- Killing ------------------------------------------------------------------------------------

def kills(tap, store, upstream):
    upstream.reset()
    servers = [serve(store) for _ in range(3 if STORE == "pg" else 1)]
    calls = Calls(servers[0])
    put(calls, "mock", upstream.url, max_in_flight=200)
    ids = []
    while len(ids) < CALLS:
        items = [{"kind": "http", "lane": "kills", "payload": {"endpoint": "mock", "path": f"/delay/{n % 20}",
                                                               "method": "POST", "body": {"n": n}}}
                 for n in range(min(500, CALLS - len(ids)))]
        ids += [item["id"] for item in calls.good("POST", "/v1/executions", {"items": items})["items"]]
    calls.close()
    for _ in range(KILLS):
        pause(random.uniform(0.05, 0.6))
        victim = random.randrange(len(servers))
        servers[victim].kill()
        servers[victim] = serve(store)
    calls = Calls(servers[0])

    def left():
        for state in ("ready", "running", "delayed"):
            try:
                if calls.good("GET", f"/v1/executions?lane=kills&state={state}&limit=1")["items"]:
                    return True
            except FAULTS:
                return True
        return False
    tap.ok(until(lambda: not left(), 240), "every call ends")
    states = {}
    after = None
    while True:
        page = calls.good("GET", "/v1/executions?lane=kills&limit=1000" + (f"&after={after}" if after else ""))
        for item in page["items"]:
            states[item["id"]] = item
        after = page["next"]
        if not after:
            break
    tap.equal(sorted(states), sorted(ids), "each execution is there once")
    tap.equal({item["state"] for item in states.values()}, {"succeeded"}, "and succeeded")
    seen = upstream.seen()
    tap.equal(seen["repeated"], 0, "the upstream saw no lease twice")
    twice = {}
    for row in seen["seen"]:
        twice.setdefault(row["execution"], []).append(row["epoch"])
    tap.ok(set(states) <= set(twice), "and every execution")
    again = [which for which, epochs in twice.items() if len(epochs) > 1]
    tap.equal([which for which in again if states[which]["lost"] == 0], [], "a call is made again only where a lease was lost")
    tap.note(f"{CALLS} calls, {KILLS} kills: {len(again)} made again after their lease was lost")
    for server in servers:
        server.kill()


def main():
    tap = Tap()
    upstream = Upstream()
    store = scratch(STORE, "executor")
    servers = [serve(store) for _ in range(2 if STORE == "pg" else 1)]
    calls = Calls(servers[0])
    try:
        put(calls, "mock", upstream.url)
        pause(1.2)  # the other servers know it after their next poll
        answers(tap, calls, upstream)
        retries(tap, calls, upstream)
        times(tap, calls, upstream)
        flows(tap, calls, upstream)
        cancels(tap, servers, calls, upstream)
        breaks(tap, servers, calls, upstream)
        idle = [metric_sum(metrics(server), "weft_call_aborted_total") for server in servers]
        tap.ok(sum(idle) > 0, "aborted calls are counted")
        found = [metrics(server) for server in servers]
        for name, good in (('weft_calls_total{namespace="default",endpoint="mock",code="200"}', lambda n: sum(n) > 3),
                           ('weft_calls_total{namespace="default",endpoint="mock",code="404"}', lambda n: sum(n) == 1),
                           ('weft_calls_total{namespace="default",endpoint="mock",code="http_broken"}',
                            lambda n: sum(n) == 1),
                           ('weft_calls_total{namespace="default",endpoint="broken",code="500"}', lambda n: sum(n) > 4),
                           ('weft_calls_in_flight{namespace="default",endpoint="mock"}', lambda n: sum(n) == 0),
                           ('weft_call_breaker_state{namespace="default",endpoint="broken"}', lambda n: 0 in n)):
            numbers = [one[name] for one in found if name in one]
            tap.ok(numbers and good(numbers), f"the metrics have {name}", str(numbers))
        shown = [Calls(server).good("GET", "/v1/endpoints/mock") for server in servers]
        tap.ok(sum(one["answers"]["2xx"] for one in shown) > 0 and sum(one["answers"]["4xx"] for one in shown) == 1,
               "the endpoint has its answers by status", str(shown))
        tap.equal({(one["breaker"], one["in_flight"]) for one in shown}, {("closed", 0)},
                  "the state of its breaker, and its calls")
        for server in servers:
            server.kill()
        servers = [serve(store, "--executor", "off")]
        calls = Calls(servers[0])
        tap.ok(until(lambda: calls.good("GET", "/v1/replicas")["items"][0]["carries"] == [], 10),
               "a server with --executor=off carries nothing out", str(calls.good("GET", "/v1/replicas")))
        which = call(calls, "mock", "/ok")
        pause(1.5)
        tap.equal(calls.good("GET", f"/v1/executions/{which}")["state"], "ready", "with --executor=off it stays ready")
        # The rows of servers that were killed count for 15 s.
        tap.ok(until(lambda: calls.good("GET", f"/v1/executions/{which}/why")["why"] == "no_executor", 25),
               "weft why says that no server carries it out")
        stops(tap, store, calls, upstream)
        servers[0].kill()
        servers = []
        kills(tap, store, upstream)
        good, said = until(lambda: doctor(store), 30)
        tap.ok(good, "every row is whole", said)
    finally:
        for server in servers:
            server.kill()
        upstream.stop()
        store.remove()
    tap.done()


if __name__ == "__main__":
    main()
