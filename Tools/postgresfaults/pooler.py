"""pgbouncer in transaction mode before PostgreSQL, and the tests of the package through it."""

import os
import shutil
import signal
import subprocess
import time

from . import Skipped, Violation
from .cluster import as_user, free_port

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_SUITES = ("FeedTests", "ConformanceTests", "PostgresFeedTests")


class Pooler:
    """One pgbouncer process, at a port that stays the same."""

    def __init__(self, cluster):
        self._program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
        if not self._program:
            raise Skipped("pgbouncer is not installed")
        self.port, self._process = free_port(), None
        self._log = os.path.join(cluster.home, "pgbouncer.log")
        self._settings = os.path.join(cluster.home, "pgbouncer.ini")
        with open(self._settings, "w", encoding="utf-8") as file:
            file.write(
                f"[databases]\n* = host={cluster.home} port={cluster.port} user=tidemark\n"
                f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\n"
                "unix_socket_dir =\nauth_type = any\npool_mode = transaction\n"
                "default_pool_size = 8\nmax_client_conn = 200\n"
                "server_login_retry = 1\nquery_wait_timeout = 5\n")

    @property
    def url(self):
        return f"postgresql://tidemark@127.0.0.1:{self.port}/postgres?sslmode=disable"

    def start(self):
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                as_user([self._program, self._settings]), stdout=log, stderr=log)

    def kill(self):
        if self._process:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


def pooler(trial):
    """Kills the pooler, or PostgreSQL behind it."""
    cluster = trial.cluster()
    before = Pooler(cluster)
    trial.closers.append(before.kill)
    before.start()
    time.sleep(0.5)
    trial.start_servers(3, before.url, "--postgres-pooler")
    for faults in trial.faults(10):
        trial.start_devices()
        for _ in faults:
            time.sleep(trial.rng.uniform(0.3, 1.5))
            if trial.rng.random() < 0.7:
                before.kill()
                before.start()
                trial.count("poolers killed")
            else:
                cluster.kill()
                cluster.start()
                trial.count("killed behind it")
        trial.judge(cluster)


def suite(trial):
    """Runs the tests of feeds over a pooler, and where isolation is stricter."""
    cluster = trial.cluster()
    before = Pooler(cluster)
    trial.closers.append(before.kill)
    before.start()
    _test(trial, "a pooler", before.url, TIDEMARK_TEST_POOLER="1")
    for isolation in ("repeatable read", "serializable"):
        cluster.configure(f"\ndefault_transaction_isolation = '{isolation}'\n")
        cluster.reload()
        _test(trial, isolation, cluster.url)


def _test(trial, name, url, **more):
    filters = [word for suite in _SUITES for word in ("--filter", suite)]
    # The build that Tools/test makes as well.
    command = [
        "swift", "test", "--package-path", _ROOT, "--traits", "default,Encryption,PostgreSQL",
        "--scratch-path", os.path.join(_ROOT, ".build-tests"), *filters]
    ended = subprocess.run(
        command, env={
            **os.environ, "TIDEMARK_OPTIMIZED": "1", "TIDEMARK_TEST_POSTGRES": url, **more},
        check=False)
    if ended.returncode:
        raise Violation(f"the tests fail over {name}")
    trial.count(f"suite over {name}")
