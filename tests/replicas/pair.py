# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL primary with a synchronous standby, which can be promoted, stopped and rebuilt."""
import glob
import os
import shutil
import signal
import subprocess
import tempfile

from harness import until

START_S = 60

SETTINGS = """
listen_addresses = ''
max_connections = 60
logging_collector = off
jit = off
fsync = off
synchronous_commit = on
wal_keep_size = 512MB
wal_sender_timeout = 0
wal_receiver_timeout = 0
wal_retrieve_retry_interval = 200ms
wal_receiver_status_interval = 1s
"""


def programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_basebackup"),
                   key=lambda path: int(path.split("/")[4]))
    return os.path.dirname(found[-1]) if found else None


class Node:
    """One server: a data folder, and a socket in a folder of its own."""

    def __init__(self, folder, name):
        self.name, self.bin = name, programs()
        self.socket = os.path.join(folder, name)
        self.data = os.path.join(self.socket, "data")
        self.log = os.path.join(self.socket, "log")
        self.user = "postgres" if os.getuid() == 0 else None
        self.frozen = []
        os.mkdir(self.socket)
        if self.user:
            shutil.chown(self.socket, self.user)

    def run(self, program, *arguments, check=True):
        return subprocess.run([os.path.join(self.bin, program), *arguments], cwd="/",
                              user=self.user, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=check,
                              timeout=START_S * 2)

    def create(self):
        self.run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                 "--locale=C.UTF-8", "--no-sync")
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as file:
            file.write(SETTINGS)

    def copy(self, source):
        """Begins as a standby of the source."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.run("pg_basebackup", "-D", self.data, "-h", source.socket, "-U", "postgres", "-R",
                 "-X", "stream", "-c", "fast", "--no-sync")

    def start(self):
        done = self.run("pg_ctl", "start", "-s", "-w", "-t", str(START_S), "-D", self.data,
                        "-l", self.log, "-o", f"-k {self.socket} -c cluster_name={self.name}",
                        check=False)
        if done.returncode:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                raise AssertionError(f"{self.name} does not start:\n{file.read()[-2000:]}")

    def stop(self, mode):
        self.run("pg_ctl", "stop", "-s", "-w", "-t", str(START_S), "-m", mode, "-D", self.data,
                 check=False)

    def processes(self):
        """The server and its children; the server alone first."""
        try:
            with open(os.path.join(self.data, "postmaster.pid"), encoding="utf-8") as file:
                parent = int(file.readline())
            with open(f"/proc/{parent}/task/{parent}/children", encoding="utf-8") as file:
                return [parent] + [int(pid) for pid in file.read().split()]
        except (OSError, ValueError):
            return []

    def signal(self, number, pids=None):
        for pid in self.processes() if pids is None else pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def freeze(self):
        """As a machine that is cut off: connections stay, and nothing comes from it."""
        self.frozen = self.processes()
        self.signal(signal.SIGSTOP, self.frozen)

    def kill(self):
        """At once and for good, also what is frozen: as a machine that is switched off."""
        pids = list(dict.fromkeys(self.frozen + self.processes()))
        self.signal(signal.SIGKILL, pids)
        self.frozen = []
        if not until(lambda: not any(os.path.exists(f"/proc/{pid}") and not is_zombie(pid)
                                     for pid in pids), 20):
            raise AssertionError(f"{self.name} does not die")
        # They name a process that init may not have waited for yet, which then counts as alive.
        for path in (os.path.join(self.data, "postmaster.pid"),
                     *glob.glob(os.path.join(self.socket, ".s.PGSQL.*"))):
            if os.path.exists(path):
                os.unlink(path)

    def sql(self, text, seconds=30):
        return subprocess.run(["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", self.socket, "-U",
                               "postgres", "-c", text, "postgres"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=True, timeout=seconds,
                              stdin=subprocess.DEVNULL).stdout.strip()

    def wait_for_standby(self, standby):
        """Commits wait for it from now on."""
        self.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{standby.name}'")
        self.sql("SELECT pg_reload_conf()")
        if not until(lambda: self.sql("SELECT count(*) FROM pg_stat_replication"
                                      " WHERE sync_state = 'sync' AND state = 'streaming'") == "1",
                     START_S):
            raise AssertionError("the standby is not synchronous")
        # What was committed before it was has arrived when this has.
        self.sql("SELECT pg_logical_emit_message(true, 'pair', '')")

    def promote(self, alone=True):
        """alone: its commits wait for no standby."""
        if alone:
            with open(os.path.join(self.data, "postgresql.auto.conf"), "a",
                      encoding="utf-8") as file:
                file.write("synchronous_standby_names = ''\n")
            self.sql("SELECT pg_reload_conf()")
        # Not pg_promote(): its snapshot may conflict with what is left to replay, and then replay
        # waits max_standby_streaming_delay (30 s) for it, while it waits for the end of replay.
        self.run("pg_ctl", "promote", "-s", "-w", "-t", str(START_S), "-D", self.data)


def is_zombie(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Pair:
    def __init__(self):
        # Not in TMPDIR, which the server's user may not enter, and whose path may be too long.
        self.folder = tempfile.mkdtemp(prefix="weft-pair.", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.nodes = [Node(self.folder, "a"), Node(self.folder, "b")]
        self.primary, self.standby = self.nodes
        self.primary.create()
        self.primary.start()
        self.attach()

    def attach(self):
        """Makes the other node a new, synchronous standby."""
        self.standby.copy(self.primary)
        self.standby.start()
        self.primary.wait_for_standby(self.standby)

    def fail_over(self):
        """The standby becomes the primary, and waits for no standby until there is one again."""
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def walsender(self):
        """The process of the primary that feeds the standby."""
        return int(self.primary.sql("SELECT pid FROM pg_stat_replication"))

    def url(self, schema, *nodes):
        nodes = nodes or self.nodes
        hosts = ",".join(node.socket for node in nodes)
        return f"postgres:///postgres?host={hosts}&user=postgres&weft_schema={schema}"

    def remove(self):
        for node in self.nodes:
            node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
