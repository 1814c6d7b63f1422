"""One campaign's PostgreSQL, servers and devices, and how a round of faults ends."""

import os
import random
import shutil
import subprocess
import tempfile
import threading
import time

from . import Skipped, Violation
from .cluster import Cluster
from .device import Device, Router
from .oracle import Oracle
from .servers import COMPACTING, Server

# A call is answered, or refused, within its time at PostgreSQL and what is done after it.
_CALL_SECONDS = 25


class Trial:
    """The processes of a campaign, in a directory of its own, which stays after a failure."""

    def __init__(self, options, kind):
        self.options, self.kind = options, kind
        self.rng = random.Random(f"{options.seed}/{kind}")
        self.directory = tempfile.mkdtemp(prefix="pgfaults-", dir=options.directory)
        if not os.getuid():
            shutil.chown(self.directory, "postgres", "postgres")
        self.clusters, self.servers, self.devices, self.closers = [], [], [], []
        self.end = time.monotonic() + options.seconds
        self.counts, self._round, self.database = {}, 0, ""

    def __enter__(self):
        return self

    def __exit__(self, kind, fault, trace):
        for device in self.devices:
            device.ends.set()
            device.router.gives_up.set()
        self.stop_servers()
        for cluster in self.clusters:
            cluster.stop("immediate")
        for close in reversed(self.closers):
            close()
        if kind is None or kind is Skipped:
            shutil.rmtree(self.directory, ignore_errors=True)
        else:
            print(f"  what is left lies in {self.directory}", flush=True)

    @property
    def is_late(self):
        return time.monotonic() > self.end

    def count(self, what, more=1):
        self.counts[what] = self.counts.get(what, 0) + more

    # Processes

    def cluster(self, name="a", create=(), **settings):
        cluster = Cluster(self.directory, name, **settings)
        if create is not None:
            cluster.create(*create)
            cluster.start()
        self.clusters.append(cluster)
        return cluster

    def start_servers(self, count, url, *options):
        """Adds servers; the first one of all makes the tables."""
        added = []
        for _ in range(count):
            server = Server(
                self.options.server, self.directory, len(self.servers), url, options)
            server.start(*([] if self.servers else ["--apply-schema"]))
            server.await_ready()
            self.servers.append(server)
            added.append(server)
        return added

    def stop_servers(self):
        for server in self.servers:
            server.stop()
        self.servers = []

    def router(self, seed, kind=Router):
        addresses = [server.address for server in self.servers]
        return kind(addresses, self.database, random.Random(f"{self.options.seed}/{seed}"))

    def new_database(self):
        self._round += 1
        self.database = f"round{self._round}"

    def new_fleet(self, url, number):
        """Starts three servers in the place of those before; every other time they compact.

        - Returns: whether they do.
        """
        self.stop_servers()
        self.start_servers(3, url, *(COMPACTING if number % 2 else []))
        return number % 2 == 1

    def files(self):
        """A directory for the contents of a round's attachments."""
        place = os.path.join(self.directory, f"files{self._round}")
        os.makedirs(place, exist_ok=True)
        return place

    def start_devices(self, count=6, shared=8, router=Router, **settings):
        """Makes devices that write into a new database."""
        self.new_database()
        keys = [f"shared/{index}" for index in range(shared)]
        seed = f"{self.options.seed}/{self.kind}/{self._round}"
        self.devices = [
            Device(
                number, self.router(f"{self._round}/{number}", router), seed, keys,
                self.files(), **settings)
            for number in range(count)]
        for device in self.devices:
            device.start()

    # The end of a round

    def rest(self, seconds=90):
        """Lets the devices finish what they have begun, and read everything."""
        for device in self.devices:
            device.ends.set()
        for device in self.devices:
            device.join(seconds)
            if device.is_alive():
                raise Violation(f"device {device.number} hangs")
            if device.fault:
                raise Violation(f"device {device.number}: {device.fault}")
        faults = []

        def settle(device):
            try:
                device.settle(seconds)
            except Exception as fault:
                faults.append(fault)

        # One after the other they would read what those before them have written; at once, and
        # then once more, all have everything.
        for _ in range(2):
            threads = [threading.Thread(target=settle, args=(d,)) for d in self.devices]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if faults:
                raise Violation(f"at rest: {faults[0]}")

    def examine(self, cluster, is_lossy=False, may_begin_anew=False, **settings):
        """Compares tables, answers and devices, while nobody writes.

        - Parameter may_begin_anew: whether servers may drop deletes that devices have not read.
        - Returns: what the oracle found.
        """
        oracle = Oracle(cluster, self.database, **settings)
        oracle.check_tables()
        oracle.check_contents()
        for server in self.servers:
            oracle.check_digest(server.address)
        for device in self.devices:
            oracle.check_device(device)
        restarts = sum(device.restarts for device in self.devices)
        if is_lossy:
            self.count("deletions lost", oracle.check_own(self.devices))
            oracle.expect(restarts > 0, "no device has noticed that anything is lost")
        else:
            oracle.check_ledgers(self.devices)
            oracle.expect(
                restarts == 0 or may_begin_anew,
                f"{restarts} devices had to begin anew, with nothing lost")
        return oracle

    def judge(self, cluster, seconds=_CALL_SECONDS, **settings):
        """Ends a round: all comes to rest, and everything must be true.

        - Returns: what the oracle has read.
        """
        self.rest()
        for server in self.servers:
            server.check()
        oracle = self.examine(cluster, **settings)
        slowest = max(device.router.slowest for device in self.devices)
        oracle.expect(slowest < seconds, f"a call took {slowest:.1f} s")
        oracle.verdict()
        self.count("entries", len(oracle.rows.entries))
        self.count("attachments", len(oracle.rows.named))
        shutil.rmtree(self.files())
        self.count("begun anew", sum(device.restarts for device in self.devices))
        self.count("refused calls", sum(device.router.refused for device in self.devices))
        self.counts["slowest call s"] = max(self.counts.get("slowest call s", 0), round(slowest, 1))
        return oracle

    def faults(self, most=20):
        """Numbers the faults, in rounds of some each: the tables stay small enough to check."""
        left = self.options.count
        while left > 0 and not self.is_late:
            yield range(min(most, left))
            left -= most


def mount(trial, name, megabytes):
    """A file system in memory that is soon full."""
    place = os.path.join(trial.directory, name)
    os.makedirs(place)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", place], check=False,
        stderr=subprocess.DEVNULL)
    if mounted.returncode:
        raise Skipped("a file system cannot be mounted here")
    trial.closers.append(lambda: subprocess.run(["umount", "-l", place], check=False))
    shutil.chown(place, "postgres", "postgres")
    return place
