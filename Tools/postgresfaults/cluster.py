"""PostgreSQL servers of their own, on a Unix socket and, where asked for, on loopback."""

import glob
import os
import shutil
import signal
import socket
import subprocess
import time

from . import Skipped, Violation

_SETTINGS = """
max_connections = 150
shared_buffers = 32MB
wal_log_hints = on
wal_keep_size = 256MB
hot_standby = on
hot_standby_feedback = off
"""


def programs():
    """The directory of PostgreSQL's programs, the newest version's."""
    found = [
        place for place in glob.glob("/usr/lib/postgresql/*/bin") + os.environ["PATH"].split(":")
        if all(os.access(os.path.join(place, name), os.X_OK) for name in ("initdb", "pg_ctl"))]
    if not found:
        raise Skipped("PostgreSQL is not installed")
    return max(found, key=lambda place: [int(n) for n in place.split("/") if n.isdigit()])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def as_user(command):
    """A command as PostgreSQL's own user where this is root, as which PostgreSQL does not run."""
    if os.getuid():
        return command
    return ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups", *command]


class Cluster:
    """One PostgreSQL server in a directory."""

    def __init__(self, directory, name, listens=False, settings=""):
        self.name, self.home, self.port = name, directory, free_port()
        self.data = os.path.join(directory, name)
        self._bin, self._settings = programs(), settings
        self._address = "127.0.0.1" if listens else ""

    @property
    def url(self):
        return f"postgresql:///postgres?host={self.home}&port={self.port}&user=tidemark"

    def run(self, program, *arguments, check=True):
        """Runs a program of PostgreSQL's."""
        with open(os.path.join(self.home, "programs.log"), "a", encoding="utf-8") as log:
            ended = subprocess.run(
                as_user([os.path.join(self._bin, program), *arguments]), stdout=log, stderr=log,
                cwd=self.home, check=False)
        if check and ended.returncode:
            raise Violation(f"{program} {' '.join(arguments)} failed; see {log.name}")
        return ended.returncode

    def create(self, *options):
        self.run(
            "initdb", "-D", self.data, "-U", "tidemark", "-A", "trust", "-E", "UTF8",
            "--no-locale", *options)
        self.configure(_SETTINGS + self._settings)

    def configure(self, text):
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as file:
            file.write(text)

    def start(self, seconds=60):
        """Starts it, again as long as processes of an earlier life are ending."""
        options = f"-k {self.home} -p {self.port} -c listen_addresses={self._address}"
        log = os.path.join(self.home, self.name + ".log")
        end = time.monotonic() + seconds
        while self.run(
                "pg_ctl", "-D", self.data, "-l", log, "-w", "-o", options, "start", check=False):
            if time.monotonic() > end:
                raise Violation(f"PostgreSQL does not start; see {log}")
            time.sleep(0.2)

    def stop(self, mode="fast"):
        self.run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop", check=False)

    def reload(self):
        self.run("pg_ctl", "-D", self.data, "reload")

    def processes(self):
        """The ids of its processes, the first one's first."""
        try:
            with open(os.path.join(self.data, "postmaster.pid"), encoding="utf-8") as file:
                first = int(file.readline())
        except (FileNotFoundError, ValueError):
            return []
        found = []
        for place in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(place, encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == first:
                found.append(int(place.split("/")[2]))
        return [first, *found]

    def signal(self, number):
        processes = self.processes()
        if not processes:
            raise Violation(f"PostgreSQL {self.name} does not run")
        for process in processes:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                pass
        return processes

    def kill(self):
        """Kills all of its processes at once, and returns when they are gone."""
        processes = self.signal(signal.SIGKILL)
        end = time.monotonic() + 20
        while any(os.path.exists(f"/proc/{process}") for process in processes):
            if time.monotonic() > end:
                raise Violation(f"processes of PostgreSQL {self.name} do not end")
            time.sleep(0.01)

    def copy_to(self, other):
        """Copies the directory as it is: a snapshot of the disk."""
        shutil.copytree(self.data, other.data, symlinks=True, copy_function=_copy)
        for name in ("postmaster.pid", "postmaster.opts"):
            path = os.path.join(other.data, name)
            if os.path.exists(path):
                os.remove(path)
        if not os.getuid():
            subprocess.run(["chown", "-R", "postgres:", other.data], check=True)

    # SQL

    def _psql(self, *arguments):
        return [
            os.path.join(self._bin, "psql"), "-X", "-q", "-A", "-t", "-F", "\t", "-v",
            "ON_ERROR_STOP=1", "-d", self.url, *arguments]

    def sql(self, text):
        """Runs SQL.

        - Returns: the rows, each a list of texts.
        """
        ended = subprocess.run(
            self._psql("-c", text), capture_output=True, encoding="utf-8", check=False)
        if ended.returncode:
            raise Violation(f"SQL failed: {ended.stderr.strip()}: {text[:200]}")
        return [line.split("\t") for line in ended.stdout.splitlines() if line]

    def session(self):
        """A session that takes SQL from its standard input, for locks that stay."""
        return subprocess.Popen(
            self._psql(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding="utf-8")

    def load(self, path, before="SELECT 1"):
        """Runs a file of SQL, all or nothing; again where it meets the locks of others."""
        for _ in range(20):
            ended = subprocess.run(
                self._psql("-1", "-c", before, "-f", path), capture_output=True, encoding="utf-8",
                check=False)
            if not ended.returncode:
                return
        raise Violation(f"{path} cannot be loaded: {ended.stderr.strip()[:300]}")

    # Standbys

    def follow(self, primary):
        """Becomes a standby of another one, from a new copy of it."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.run("pg_basebackup", "-D", self.data, "-X", "stream", "-c", "fast", "-d", primary.url)
        self.stand_by(primary)

    def rewind(self, primary):
        """Becomes a standby of the one that took its place, and drops what that one lacks."""
        self.run("pg_rewind", "-D", self.data, "--source-server", primary.url)
        self.stand_by(primary)

    def stand_by(self, primary):
        with open(os.path.join(self.data, "standby.signal"), "w", encoding="utf-8"):
            pass
        link = f"host={primary.home} port={primary.port} user=tidemark"
        self.configure(f"\nprimary_conninfo = '{link}'\nrecovery_target_timeline = 'latest'\n")

    def cut_off(self):
        """Takes no more of what the primary streams."""
        self.configure("\nprimary_conninfo = ''\n")
        self.reload()

    def promote(self):
        self.run("pg_ctl", "-D", self.data, "-w", "promote")


def _copy(source, target):
    """Copies a file that a running server may delete meanwhile."""
    try:
        return shutil.copy2(source, target)
    except FileNotFoundError:
        return target
