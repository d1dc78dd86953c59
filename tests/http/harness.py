# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests that run servers: TAP, bounded waits, process figures, sockets, PostgreSQL."""
import glob
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from serving import Server, Store

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("WEFT_BUILD", os.path.join(ROOT, "build"))
BINARY = os.path.join(BUILD, "weft")
STORE = os.environ.get("WEFT_TEST_STORE") or "sqlite"
SANITIZED = os.environ.get("WEFT_SANITIZED", "0") == "1"
PAUSE_S = 0.02
# What a sanitizer keeps of freed memory, to catch who uses it.
QUARANTINE_KB = (400 << 10) if SANITIZED else 0


class Tap:
    """Numbered lines; notes of a point that failed come after it."""

    def __init__(self):
        self.count, self.failed, self.lock = 0, 0, threading.Lock()

    def ok(self, good, name, note=""):
        with self.lock:
            self.count += 1
            self.failed += not good
            print(f"{'' if good else 'not '}ok {self.count} - {name}", flush=True)
            if not good and note != "":
                self.note(note)
        return bool(good)

    def equal(self, got, wanted, name):
        return self.ok(got == wanted, name, f"got {got!r}, wanted {wanted!r}")

    @staticmethod
    def note(text):
        for line in str(text).splitlines():
            print(f"# {line}", flush=True)

    def skip(self, why):
        self.count += 1
        print(f"ok {self.count} # SKIP {why}", flush=True)

    def done(self):
        print(f"1..{self.count}", flush=True)
        sys.exit(1 if self.failed or not self.count else 0)


def pause(seconds=PAUSE_S):
    """Between two looks at something that has no other way to tell."""
    threading.Event().wait(seconds)


def until(truth, seconds):
    """Looks until it is true, at most so long; what it was at last."""
    end = time.monotonic() + seconds
    while True:
        found = truth()
        if found or time.monotonic() > end:
            return found
        pause()


# ---- Servers ------------------------------------------------------------------------------------

def serve(store, *options, tap=None, env=None):
    server = Server(BINARY, store, options, env)
    if tap:
        tap.note(f"a server at {server.url} over {store.kind}")
    return server


def doctor(store, seconds=60):
    """Whether every row is whole, and all that it said; the rest is about the machine."""
    done = subprocess.run([BINARY, "doctor", "--json", "--store", store.url],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          timeout=seconds,  # it reads every row
                          check=False)
    found = {item["what"]: item["level"] for item in json.loads(done.stdout)["items"]}
    return found.get("invariants") == "ok", done.stdout


def scratch(kind, name):
    """A store of its own in the PostgreSQL of the tests, or in a file."""
    return Store(kind, name)


class At:
    """A store at a URL of the caller's, as serving.Store is one."""

    def __init__(self, url, kind="pg"):
        self.url, self.kind = url, kind


class Calls:
    """One kept connection; every call has a bound, and a broken connection is replaced."""

    def __init__(self, server, timeout=30, namespace=None):
        self.host, self.port, self.timeout = server.host, int(server.port), timeout
        self.headers = {"X-Weft-Namespace": namespace} if namespace else {}
        self.connection = None

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def __call__(self, method, path, body=None):
        """The status, the headers and the JSON (or the bytes); OSError and HTTPException pass."""
        if not self.connection:
            self.connection = http.client.HTTPConnection(self.host, self.port,
                                                         timeout=self.timeout)
        data = None if body is None else json.dumps(body).encode()
        try:
            self.connection.request(method, path, data, self.headers)
            answer = self.connection.getresponse()
            got = answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if answer.will_close:
            self.close()
        kind = answer.getheader("Content-Type") or ""
        return answer.status, answer.headers, json.loads(got) if "json" in kind and got else got

    def good(self, method, path, body=None):
        status, _, answer = self(method, path, body)
        if status >= 300:
            raise AssertionError(f"{method} {path}: {status} {answer}")
        return answer


FAULTS = (OSError, http.client.HTTPException)


def metrics(server):
    """Every number of /metrics by its name with labels."""
    calls = Calls(server)
    _, _, text = calls("GET", "/metrics")
    calls.close()
    found = {}
    for line in text.decode().splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


def metric_sum(numbers, name, label=""):
    return sum(value for key, value in numbers.items()
               if re.match(re.escape(name) + r"(\{|$)", key) and label in key)


def waiters(server, kind="claim"):
    """How many requests of a kind wait at the server."""
    return metric_sum(metrics(server), "weft_waiters", kind)


def is_socket(name):
    """Whether a name under /proc/PID/fd is a socket; a descriptor closed meanwhile is none."""
    try:
        return os.readlink(name).startswith("socket:")
    except FileNotFoundError:
        return False


class Figures:
    """What a process takes."""

    def __init__(self, pid):
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            status = file.read()
        self.rss_kb = int(re.search(r"VmRSS:\s+(\d+)", status).group(1))
        # Without the pages of files, which come as code is first used and go as the kernel likes.
        self.anon_kb = int(re.search(r"RssAnon:\s+(\d+)", status).group(1))
        self.threads = int(re.search(r"Threads:\s+(\d+)", status).group(1))
        self.files = len(os.listdir(f"/proc/{pid}/fd"))
        self.sockets = sum(1 for name in glob.glob(f"/proc/{pid}/fd/*") if is_socket(name))
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        self.cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __str__(self):
        return (f"{self.rss_kb / 1024:.1f} MB resident, {self.anon_kb / 1024:.1f} without files, "
                f"{self.files} descriptors, {self.sockets} sockets, "
                f"{self.threads} threads, {self.cpu_s:.2f} s CPU")


# ---- Raw sockets --------------------------------------------------------------------------------

class Raw:
    """A connection on which anything may be sent."""

    def __init__(self, server, timeout=15, receive_buffer=None, source=None):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if source:
            self.socket.bind((source, 0))
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(timeout)
        self.socket.connect((server.host, int(server.port)))
        self.pending = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """False when the other side has closed."""
        try:
            self.socket.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def half_close(self):
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def more(self):
        """Reads on; False at the end. A timeout passes to the caller."""
        try:
            got = self.socket.recv(65536)
        except ConnectionResetError:
            return False
        self.pending += got
        return bool(got)

    def until(self, mark):
        while mark not in self.pending:
            if not self.more():
                return None
        head, _, self.pending = self.pending.partition(mark)
        return head

    def exactly(self, size):
        while len(self.pending) < size:
            if not self.more():
                return None
        got, self.pending = self.pending[:size], self.pending[size:]
        return got

    def answer(self, head_only=False):
        """(status, headers, body) of the next answer; None when the connection ended instead."""
        head = self.until(b"\r\n\r\n")
        if head is None:
            return None
        lines = head.decode("latin-1").split("\r\n")
        found = re.match(r"HTTP/1\.[01] (\d{3})", lines[0])
        if not found:
            raise AssertionError(f"not an answer: {lines[0][:200]!r}")
        status = int(found.group(1))
        headers = {name.lower(): value.strip() for name, _, value in
                   (line.partition(":") for line in lines[1:])}
        if status == 100 or head_only:
            return status, headers, b""
        if headers.get("transfer-encoding") == "chunked":
            body = self.chunks()
        else:
            body = self.exactly(int(headers.get("content-length", 0)))
        return None if body is None else (status, headers, body)

    def chunks(self):
        body = b""
        while True:
            size = self.until(b"\r\n")
            piece = None if size is None else self.exactly(int(size, 16) + 2)
            if piece is None:
                return None
            if len(piece) == 2:
                return body
            body += piece[:-2]

    def ended(self, seconds):
        """True when the other side closes within that time; what it says before is kept."""
        end, usual = time.monotonic() + seconds, self.socket.gettimeout()
        try:
            while time.monotonic() < end:
                self.socket.settimeout(max(0.01, end - time.monotonic()))
                if not self.more():
                    return True
        except (socket.timeout, TimeoutError):
            pass
        finally:
            self.socket.settimeout(usual)
        return False


# ---- PostgreSQL ---------------------------------------------------------------------------------

class Cluster:
    """A PostgreSQL of the test's own, which may be restarted."""

    def __init__(self, durable=False):
        self.folder = tempfile.mkdtemp(prefix="weft-cluster.")
        self.run("start", durable=durable)
        self.url = self.run("url")
        self.socket = re.search(r"host=([^&]+)", self.url).group(1)

    def run(self, command, *arguments, durable=False):
        done = subprocess.run([os.path.join(ROOT, "tools", "pg"), command,
                               *(["--durable"] if durable else []), self.folder, *arguments],
                              stdout=subprocess.PIPE, text=True, check=True,
                              stdin=subprocess.DEVNULL)
        return done.stdout.strip()

    def restart(self, mode):
        self.run("restart", mode)

    def sql(self, text):
        done = subprocess.run(["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", self.url, "-c", text],
                              stdout=subprocess.PIPE, text=True, check=True,
                              stdin=subprocess.DEVNULL)
        return done.stdout.strip()

    def store(self, name, extra=""):
        return At(f"{self.url}&weft_schema={name}{extra}")

    def remove(self):
        self.run("stop")
        shutil.rmtree(self.folder, ignore_errors=True)
