# SPDX-License-Identifier: Apache-2.0
"""A server that belongs to the tests, and a client that shows its answers as they came."""
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

PATIENCE_S = 30
LARGE = 512 << 10  # bodies from here on are announced before they are sent


class Store:
    """A scratch store: a file in TMPDIR, or a schema of its own in the PostgreSQL of the tests."""

    def __init__(self, kind, name):
        self.kind, self.name = kind, f"http_{name}_{os.getpid()}"
        if kind == "sqlite":
            self.file = os.path.join(os.environ.get("TMPDIR", "/tmp"), self.name + ".db")
            self.url = "sqlite:" + self.file
        else:
            base = os.environ["WEFT_TEST_PG"]
            self.url = f"{base}{'&' if '?' in base else '?'}weft_schema={self.name}"

    def remove(self):
        if self.kind == "sqlite":
            for suffix in ("", "-wal", "-shm"):
                if os.path.exists(self.file + suffix):
                    os.unlink(self.file + suffix)
        elif shutil.which("psql"):
            subprocess.run(["psql", "-qX", os.environ["WEFT_TEST_PG"], "-c",
                            f"SET client_min_messages = error; DROP SCHEMA {self.name} CASCADE"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


class Server:
    def __init__(self, binary, store, options=(), env=None):
        self.binary, self.store, self.lines, self.answered = binary, store, [], []
        self.url_known = threading.Event()
        self.url = None
        self.process = subprocess.Popen(
            [binary, "serve", "--hello", "--listen", "127.0.0.1:0", "--store", store.url, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", env=None if env is None else {**os.environ, **env})
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if not self.url_known.wait(PATIENCE_S) or not self.url:
            self.stop()
            raise RuntimeError("the server did not say where it listens:\n" + "".join(self.lines[-50:]))
        self.host, self.port = re.match(r"https?://(.+):(\d+)$", self.url).groups()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            found = re.search(r"listens at (https?://\S+:\d+)", line)
            if found and not self.url:
                self.url = found.group(1)
                self.url_known.set()
        self.url_known.set()

    def client(self):
        return Client(self.host, int(self.port), self.answered)

    def run(self, *arguments):
        """Runs a command of weft on the store of the server; what it printed."""
        done = subprocess.run([self.binary, *arguments, "--store", self.store.url],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode:
            raise RuntimeError(f"weft {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def make_token(self, scopes, namespace=None, lifetime=None):
        arguments = ["token", "create", "--json", "--name", "tests", "--scopes", scopes]
        if namespace:
            arguments += ["--namespace", namespace]
        if lifetime:
            arguments += ["--expires", f"+{lifetime:g}s"]
        return json.loads(self.run(*arguments))

    def kill(self):
        """As a machine that loses its power."""
        self.process.kill()
        self.process.wait()
        self.reader.join(PATIENCE_S)

    def stop(self):
        """The exit status, None when it had to be killed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = None
        self.reader.join(PATIENCE_S)
        return status


class Answer:
    def __init__(self, response, body, sent, begun):
        self.status, self.headers, self.body = response.status, response.getheaders(), body
        self.sent, self.received = sent, time.time()
        self.took = time.monotonic() - begun

    def header(self, name):
        for key, value in self.headers:
            if key.lower() == name.lower():
                return value
        return None

    def json(self):
        return json.loads(self.body)

    def __str__(self):
        headers = "".join(f"\n{name}: {value}" for name, value in self.headers)
        shown = self.body[:2000].decode(errors="replace")
        return f"--> {self.status} after {self.took * 1000:.0f} ms{headers}\n{shown}"


class Client:
    """One connection, kept alive. Notes the answers that came in `answered`, if there is one."""

    def __init__(self, host, port, answered=None):
        self.answered = [] if answered is None else answered
        self.connection = http.client.HTTPConnection(host, port, timeout=90)

    def close(self):
        self.connection.close()

    def local_port(self):
        return self.connection.sock.getsockname()[1] if self.connection.sock else None

    def send(self, method, path, headers=(), body=None, on_sent=None):
        if isinstance(body, str):
            body = body.encode()
        sent, begun = time.time(), time.monotonic()
        self.put(method, path, list(headers), body)
        if on_sent:
            on_sent()
        response = self.connection.getresponse()
        answer = Answer(response, response.read(), sent, begun)
        self.answered.append((method, path.split("?")[0], answer.status))
        return answer

    def put(self, method, path, headers, body):
        connection = self.connection
        chunked = any(name.lower() == "transfer-encoding" for name, _ in headers)
        large = body is not None and len(body) >= LARGE
        named = any(name.lower() == "host" for name, _ in headers)
        connection.putrequest(method, path, skip_accept_encoding=True, skip_host=named)
        if body is not None and not chunked:
            connection.putheader("Content-Length", str(len(body)))
        if body is not None and not any(name.lower() == "content-type" for name, _ in headers):
            connection.putheader("Content-Type", "application/json")
        if large:
            connection.putheader("Expect", "100-continue")
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()
        if body is None or large and not self.may_go_on():
            return
        for piece in self.pieces(body) if chunked else [body]:
            connection.send(piece)

    @staticmethod
    def pieces(body):
        for at in range(0, len(body), 1000):
            piece = body[at:at + 1000]
            yield b"%x\r\n%s\r\n" % (len(piece), piece)
        yield b"0\r\n\r\n"

    def may_go_on(self):
        """Whether the server wants the body that was announced."""
        sock = self.connection.sock
        select.select([sock], [], [], PATIENCE_S)
        return sock.recv(12, socket.MSG_PEEK).startswith(b"HTTP/1.1 100")
