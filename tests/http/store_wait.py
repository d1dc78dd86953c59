#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft serve before its database is there: it waits, answers, and begins. Prints TAP.

The server waits for a database that cannot be reached or is starting up; for a wrong password,
database or schema it ends with an error.
"""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

from harness import BINARY, Cluster, Tap, until

PAGE = "https://app.example"
PROMPT_S = 5  # at once, on a machine that does other things as well


class Waiting:
    """A server that may have no store yet, and what it logged."""

    def __init__(self, url, *options):
        self.lines, self.began = [], time.monotonic()
        self.process = subprocess.Popen(
            [BINARY, "serve", "--listen", "127.0.0.1:0", "--store", url, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def said(self, text):
        return [line for line in self.lines if text in line]

    def address(self):
        """Where it listens, from the line that says that it waits."""
        until(lambda: self.said('msg="waiting for the store"'), 20)
        host, port = re.search(r"url=http://([0-9.]+):(\d+)", self.lines[0]).groups()
        return host, int(port)

    def end(self, number=None):
        """The exit status, and the seconds from the signal or the start to the end."""
        began = self.began
        if number:
            began = time.monotonic()
            self.process.send_signal(number)
        try:
            status = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.reader.join(10)
        return status, time.monotonic() - began


def ask(connection, method, path, body=None):
    connection.request(method, path, None if body is None else json.dumps(body))
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, answer.getheader("Retry-After"), text.decode()


def comes_later(tap, cluster):
    """Everything a client sees before and after the database comes up, on one connection."""
    cluster.run("pause")
    server = Waiting(cluster.url + "&weft_schema=later", "--cors-origin", PAGE)
    connection = http.client.HTTPConnection(*server.address(), timeout=30)
    status, _, _ = ask(connection, "GET", "/healthz")
    tap.equal(status, 200, "/healthz answers 200 while the server waits")
    status, retry, text = ask(connection, "GET", "/readyz")
    tap.ok(status == 503 and retry == "1" and json.loads(text)["status"] == "unavailable",
           "/readyz answers 503", (status, retry, text))
    status, retry, text = ask(connection, "POST", "/v1/executions", {"kind": "early"})
    tap.ok(status == 503 and retry == "1" and json.loads(text)["error"]["code"] == "unavailable",
           "a submission is answered 503 with Retry-After", (status, retry, text))
    status, retry, text = ask(connection, "POST", "/v1/claims", {"worker": "w", "wait_ms": 1000})
    tap.equal((status, retry), (503, "1"), "a claim is answered 503 with Retry-After")
    tap.equal(ask(connection, "GET", "/metrics")[0], 503, "the metrics are answered 503")
    tap.equal(ask(connection, "GET", "/nothing")[0], 404, "a path that does not exist is still 404")
    connection.request("OPTIONS", "/v1/claims", headers={
        "Origin": PAGE, "Access-Control-Request-Method": "POST"})
    preflight = connection.getresponse()
    preflight.read()
    tap.equal((preflight.status, preflight.getheader("Access-Control-Allow-Origin")), (204, PAGE),
              "a preflight of a listed page is answered while the server waits")
    hung_up = socket.create_connection((connection.host, connection.port))
    hung_up.sendall(b"POST /v1/claims HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\n\r\n"
                    b'{"worker":"w"}')
    hung_up.close()
    cluster.run("resume")
    tap.ok(until(lambda: server.said("msg=serving"), 30),
           "the server serves when the database is there",
           server.lines)
    status, _, text = ask(connection, "POST", "/v1/executions", {"kind": "late"})
    tap.equal(status, 201, "the same connection can submit now")
    tap.equal(ask(connection, "GET", "/readyz")[0], 200, "/readyz answers 200")
    connection.close()
    told = server.said("waiting for the store")
    tap.ok(len(told) == 1 and "at_most_s=60" in told[0] and "error=" in told[0],
           "one log line says that the server waits, why, and how long", told)
    tap.equal(len(server.said('msg="the store is there"')), 1,
              "one log line says that the store is there")
    tap.equal(server.end(signal.SIGTERM)[0], 0, "SIGTERM stops the server with 0")


def stopped(tap, cluster):
    cluster.run("pause")
    server = Waiting(cluster.url)
    server.address()
    status, took = server.end(signal.SIGTERM)
    tap.ok(status == 0 and took < PROMPT_S, "SIGTERM while it waits: it ends with 0",
           (status, took, server.lines))
    server = Waiting(cluster.url, "--store-wait", "1s")
    status, took = server.end()
    tap.ok(status == 4 and 1 <= took < 1 + PROMPT_S, "after --store-wait it ends with 4",
           (status, took, server.lines))
    tap.ok(server.said("cannot open database") and server.said("hint: check that the server runs"),
           "the log says which database could not be reached", server.lines)
    server = Waiting(cluster.url, "--store-wait", "0")
    status, took = server.end()
    tap.ok(status == 4 and took < PROMPT_S and not server.said("waiting for"),
           "--store-wait 0 does not wait", (status, took, server.lines))
    cluster.run("resume")


def silent(tap):
    """A host that takes connections and says nothing: libpq tries for 10 s."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = Waiting(f"postgres://u@127.0.0.1:{port}/d?sslmode=disable")
        first, _ = listener.accept()  # the attempt has begun
        server.address()
        tap.ok(server.said("does not answer yet"),
               "a log line soon says that the host does not answer", server.lines)
        status, took = server.end(signal.SIGTERM)
        first.close()
    tap.ok(status == 0 and took < PROMPT_S, "SIGTERM while a host does not answer: it ends with 0",
           (status, took, server.lines))


def field(kind, text):
    return kind + text.encode() + b"\0"


def refusing(listener, state, text):
    """Answers every connection with one error, as PostgreSQL does before it is ready."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(1024)
            body = (field(b"S", "FATAL") + field(b"V", "FATAL") + field(b"C", state)
                    + field(b"M", text) + b"\0")
            connection.sendall(b"E" + (len(body) + 4).to_bytes(4, "big") + body)


def starting_up(tap):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=refusing, daemon=True,
                         args=(listener, "57P03", "the database system is starting up")).start()
        port = listener.getsockname()[1]
        server = Waiting(f"postgres://u@127.0.0.1:{port}/d?sslmode=disable")
        server.address()
        tap.ok(server.said("the database system is starting up"),
               "a database that is starting up is waited for", server.lines)
        tap.equal(server.end(signal.SIGTERM)[0], 0,
                  "SIGTERM ends a server that waits for its database")
    server = Waiting("postgres://u@no-such-host.invalid/d")
    server.address()
    tap.equal(server.end(signal.SIGTERM)[0], 0, "a host name that is not known yet is waited for")


def at_once(tap, cluster):
    """What does not change by itself ends the server."""
    hba = cluster.sql("SHOW hba_file")
    with open(hba, encoding="utf-8") as file:
        rules = file.read()
    with open(hba, "w", encoding="utf-8") as file:
        file.write("local all locked scram-sha-256\n" + rules)
    cluster.sql("CREATE ROLE locked LOGIN PASSWORD 'right'; SELECT pg_reload_conf(); "
                "CREATE SCHEMA taken; CREATE TABLE taken.foreign_table (i int)")
    locked = cluster.url.replace("user=postgres", "user=locked")
    until(lambda: subprocess.run(["psql", "-qwX", locked, "-c", "SELECT 1"], check=False,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL).returncode != 0, 10)
    for name, url, wanted, text in (
            ("a wrong password", locked + "&password=wrong", 5, "password"),
            ("a missing password", locked, 5, "password"),
            ("an unknown role", cluster.url.replace("user=postgres", "user=missing"), 5, "missing"),
            ("an unknown database", cluster.url.replace("///postgres", "///nowhere"), 3, "nowhere"),
            ("a schema that is not weft's", cluster.url + "&weft_schema=taken", 1, "taken"),
            ("a bad URL", "postgres://u@h/d?colour=blue", 2, "URL")):
        server = Waiting(url)
        status, took = server.end()
        tap.ok(status == wanted and took < PROMPT_S and server.said(text)
               and not server.said("waiting for"), f"{name} ends it at once",
               (status, took, server.lines))


def main():
    os.environ.pop("PGPASSWORD", None)
    tap, cluster = Tap(), Cluster()
    try:
        comes_later(tap, cluster)
        stopped(tap, cluster)
        silent(tap)
        starting_up(tap)
        at_once(tap, cluster)
    finally:
        cluster.remove()
    tap.done()


if __name__ == "__main__":
    main()
