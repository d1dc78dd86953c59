# SPDX-License-Identifier: Apache-2.0
"""Many connections driven by one process: a request on each, and the next one when it is answered.

The answers are counted and thrown away, so that the generator costs little beside the server. It
speaks from another address than the client whose times are measured: 127.0.0.2.
"""
import collections
import errno
import selectors
import socket
import time

SOURCE = "127.0.0.2"
AGAIN_S = 0.02  # after a refusal (429, 503) or a broken connection the next request waits so long
TURN_S = 0.05


def request(method, path, body=None, namespace="a", headers=()):
    """The bytes of one request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"X-Weft-Namespace: {namespace}",
             *headers]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def connect(target, receive_buffer=None):
    """A socket that never blocks; the connection may still be under way."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A port is taken when the connection is made: several thousand from one address find room.
    sock.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
    sock.bind((SOURCE, 0))
    sock.setblocking(False)
    found = sock.connect_ex(target)
    if found not in (0, errno.EINPROGRESS):
        sock.close()
        raise OSError(found, "connect")
    return sock


class Answer:
    """Reads one answer and keeps nothing of it but the status."""

    def __init__(self):
        self.head, self.left, self.tail, self.status = b"", None, b"", 0

    def take(self, data):
        """True when the answer is whole."""
        if self.left is None and not self.tail:
            self.head += data
            head, mark, data = self.head.partition(b"\r\n\r\n")
            if not mark:
                return False
            self.status = int(head[9:12])
            low = head.lower()
            if b"transfer-encoding: chunked" in low:
                self.tail = b"\r\n"
            else:
                at = low.find(b"content-length:")
                self.left = int(low[at + 15:].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if self.left is not None:
            self.left -= len(data)
            return self.left <= 0
        self.tail = (self.tail + data)[-7:]
        return self.tail == b"\r\n0\r\n\r\n"


class Line:
    """One connection and the request on it."""

    def __init__(self, number):
        self.number, self.sock, self.out, self.answer = number, None, b"", None


class Flood:
    """`make(number)` gives the next request; `reads` is False for clients that never read, and
    `pace_s` passes between the beginnings of two connections."""

    def __init__(self, target, connections, make, reads=True, receive_buffer=None,
                 keeps_alive=True, pace_s=0.0):
        self.target, self.make, self.reads = target, make, reads
        self.receive_buffer, self.keeps_alive = receive_buffer, keeps_alive
        self.lines = [Line(number) for number in range(connections)]
        self.select = selectors.DefaultSelector()
        self.asked, self.statuses = 0, collections.Counter()
        self.later = collections.deque((time.monotonic() + pace_s * line.number, line)
                                       for line in self.lines)

    def begin(self, line):
        """The next request of a connection, which is made if there is none."""
        try:
            if line.sock is None:
                line.sock = connect(self.target, self.receive_buffer)
                self.select.register(line.sock, selectors.EVENT_WRITE, line)
            else:
                self.select.modify(line.sock, selectors.EVENT_WRITE, line)
        except OSError:
            self.break_off(line)
            return
        line.out, line.answer = memoryview(self.make(self.asked)), Answer()
        self.asked += 1

    def break_off(self, line):
        self.statuses["broken"] += 1
        self.hang_up(line)
        self.later.append((time.monotonic() + AGAIN_S, line))

    def hang_up(self, line):
        if line.sock is not None:
            try:
                self.select.unregister(line.sock)
            except KeyError:
                pass  # it does not read, and has sent all
            line.sock.close()
            line.sock = None

    def write(self, line):
        sent = line.sock.send(line.out[:1 << 18])
        line.out = line.out[sent:]
        if line.out:
            return
        if self.reads:
            self.select.modify(line.sock, selectors.EVENT_READ, line)
        else:
            self.select.unregister(line.sock)

    def read(self, line):
        data = line.sock.recv(1 << 18)
        if not data:
            self.break_off(line)
        elif line.answer.take(data):
            self.statuses[line.answer.status] += 1
            if not self.keeps_alive:
                self.hang_up(line)
            if line.answer.status >= 400:
                self.later.append((time.monotonic() + AGAIN_S, line))
            else:
                self.begin(line)

    def turn(self):
        """A bounded look at all connections."""
        now = time.monotonic()
        while self.later and self.later[0][0] <= now:
            self.begin(self.later.popleft()[1])
        for key, events in self.select.select(AGAIN_S if self.later else TURN_S):
            try:
                if events & selectors.EVENT_WRITE:
                    self.write(key.data)
                if events & selectors.EVENT_READ and key.data.sock is not None:
                    self.read(key.data)
            except BlockingIOError:
                pass
            except OSError:
                self.break_off(key.data)

    def is_ready(self):
        """Whether every connection has had a request."""
        return self.asked >= len(self.lines)

    def close(self):
        for line in self.lines:
            self.hang_up(line)

    def answered(self):
        return sum(self.statuses.values())

    def __str__(self):
        return f"{self.asked} requests on {len(self.lines)} connections, answers " + (
            ", ".join(f"{status}: {count}" for status, count in self.statuses.items()) or "none")
