"""Processes that are killed or stand still: nothing that was acknowledged may be lost."""

import signal
import time


def _faults(trial, most, pause, devices=6, **judging):
    """Yields the cluster for each fault, behind devices that write; judges fleet after fleet."""
    cluster = trial.cluster()
    for number, faults in enumerate(trial.faults(most)):
        is_compacted = trial.new_fleet(cluster.url, number)
        trial.start_devices(devices)
        for _ in faults:
            time.sleep(trial.rng.uniform(*pause))
            yield cluster
        for server in trial.servers:
            server.await_ready()
        trial.judge(cluster, is_compacted=is_compacted, **judging)


def servers(trial):
    """Kills one of three servers, behind devices that call any of them."""
    for _ in _faults(trial, 40, (0.05, 0.5)):
        victim = trial.rng.choice(trial.servers)
        victim.check()
        if trial.rng.random() < 0.8:
            victim.kill()
            trial.count("servers killed")
        else:
            victim.kill(signal.SIGTERM)
            trial.count("servers ended")
        time.sleep(trial.rng.uniform(0, 0.3))
        victim.start()
        if trial.rng.random() < 0.7:
            victim.await_ready()


def postgres(trial):
    """Kills all of PostgreSQL's processes, or stops it at once, and starts it again."""
    for cluster in _faults(trial, 10, (0.3, 1.5)):
        if trial.rng.random() < 0.5:
            cluster.kill()
            trial.count("killed")
        else:
            cluster.stop("immediate")
            trial.count("stopped at once")
        time.sleep(trial.rng.choice((0, 0, 0.5, 2)))
        cluster.start()


def sessions(trial):
    """Ends or cancels what sessions of the servers do, as operators do."""
    for cluster in _faults(trial, 60, (0, 0.15), devices=10):
        what = trial.rng.choice(("terminate", "cancel"))
        found = cluster.sql(
            f"SELECT pg_{what}_backend(pid) FROM pg_stat_activity WHERE"
            " application_name='tidemark' AND (state<>'idle' OR random()<0.1)")
        trial.count("sessions ended" if what == "terminate" else "sessions cancelled", len(found))


def freezes(trial):
    """Lets all of PostgreSQL's processes stand still, and go on with what they were sent."""
    for cluster in _faults(trial, 5, (0.5, 2), seconds=40):
        cluster.signal(signal.SIGSTOP)
        try:
            time.sleep(trial.rng.choice((1, 9.9, 11, 14)))
        finally:
            cluster.signal(signal.SIGCONT)
        trial.count("frozen")


def epochs(trial):
    """Begins more epochs than a server lists, while devices go on."""
    cluster = trial.cluster()
    trial.new_fleet(cluster.url, 0)
    trial.start_devices()
    for _ in range(trial.options.count):
        time.sleep(trial.rng.uniform(0.2, 0.4))
        cluster.stop("immediate")
        cluster.start()
        trial.count("epochs")
    trial.judge(cluster)
