"""Sync server processes over one PostgreSQL."""

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request

from . import Violation
from .cluster import free_port

# No limit of a single caller's: all devices of a campaign are one.
_OPTIONS = [
    "--rate", "0", "--max-search-percent", "0", "--max-new-databases", "0", "--compact-interval",
    "0", "--log-level", "notice"]

COMPACTING = [
    "--compact-interval", "1", "--compact-bytes", "1", "--compact-percent", "1",
    "--keep-history-days", "0"]


class Server:
    """One process, at a port that stays the same when it is started again."""

    def __init__(self, program, directory, name, url, options=()):
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.url, self.options = url, list(options)
        self._program, self._name = program, name
        self._log = os.path.join(directory, f"server-{name}.log")
        self._process = None

    def start(self, *options):
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                [self._program, "--port", str(self.port), *_OPTIONS, *self.options, *options],
                env={**os.environ, "TIDEMARK_POSTGRES": self.url}, stdout=log, stderr=log)

    def kill(self, number=signal.SIGKILL, seconds=30):
        """Sends a signal, and waits until the process has ended by it."""
        self._process.send_signal(number)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Violation(f"server {self._name} does not end; see {self._log}") from None
        self._process = None

    def stop(self):
        if self._process:
            self.kill()

    def check(self):
        """Throws if the process has ended by itself."""
        if self._process and self._process.poll() is not None:
            status, self._process = self._process.returncode, None
            raise Violation(f"server {self._name} ended with {status}; see {self._log}")

    def is_ready(self):
        try:
            with urllib.request.urlopen(self.address + "/ready", timeout=2) as answer:
                return answer.status == 200
        except (OSError, urllib.error.HTTPError):
            return False

    def await_ready(self, seconds=30):
        """Waits until it answers; starts it again where it found no PostgreSQL at its start."""
        end = time.monotonic() + seconds
        while not self.is_ready():
            if time.monotonic() > end:
                raise Violation(f"server {self._name} is not ready after {seconds} s")
            if self._process is None or self._process.poll() is not None:
                self.start()
            time.sleep(0.1)
