"""Workers and nodes that die: the command `dramatiq` in processes of its own, and nodes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from disqued.client import Backoff, NotReplicated
from disqued.dramatiq import DisqueBroker
from disqued.testing.ports import free_port
from disqued.testing.processes import wait_until
from dramatiq_adapter.conftest import MakeBroker
from dramatiq_adapter.workers import LONG_MS, LONG_S, Calls, actor, worker
from support.cluster import RealCluster
from support.proxies import LosesAReply

TESTS: Final = Path(__file__).parents[1]


@contextmanager
def command(broker: DisqueBroker, nodes: RealCluster, metrics: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The command `dramatiq` with one process and two threads, in the namespace of a broker. `port` has its metrics."""
    environment = {
        "dramatiq_prom_db": str(metrics),
        "dramatiq_prom_host": "127.0.0.1",
        "dramatiq_prom_port": str(port),
        "NODES": ",".join(node.address for node in nodes.nodes),
        "NAMESPACE": broker.namespace,
        "PYTHONPATH": os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", ""))),
    }
    words = [sys.executable, "-m", "dramatiq", "-p", "1", "-t", "2", "dramatiq_adapter.application"]
    with subprocess.Popen(words, env=os.environ | environment) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)


def told(broker: DisqueBroker) -> tuple[str, int]:
    """What an actor says next, and in which process it runs."""
    (job,) = broker.client.get(broker.job_queue("told"), timeout_ms=LONG_MS)
    broker.client.ack(job.id)
    what, pid = job.body.decode().split()
    return what, int(pid)


def metrics_of(port: int) -> str:
    """What Dramatiq's middleware for Prometheus serves; nothing if it does not serve yet."""
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/") as reply:
        return str(reply.read().decode())
    return ""


def test_killed_worker_loses_no_message_and_a_slow_actor_runs_once(
    make_broker: MakeBroker, nodes: RealCluster, tmp_path: Path
) -> None:
    broker, port = make_broker(heartbeat_timeout=3000), free_port()
    ended = Calls()
    task = actor(broker, ended.add, actor_name="work")
    task.send(7)  # longer than two leases
    with command(broker, nodes, tmp_path, free_port()):
        what, killed = told(broker)
        assert what == "began"
        os.kill(killed, signal.SIGKILL)
    with command(broker, nodes, tmp_path, port) as process:
        what, pid = told(broker)
        assert (what, pid != killed) == ("began", True)
        assert told(broker) == ("ended", pid)
        done = 'dramatiq_messages_total{actor_name="work",queue_name="default"} 1.0'
        wait_until(lambda: done in metrics_of(port), "the first message is in the metrics", lambda: metrics_of(port))
        broker.client.qconf_set(broker.job_queue("default"), {"limit": 1})
        for _ in range(6):
            task.send(4)  # longer than a signal takes to reach a busy worker
        assert [told(broker) for _ in range(2)] == [("began", pid)] * 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONG_S) == 0
    assert [told(broker) for _ in range(2)] == [("ended", pid)] * 2
    with worker(broker):
        broker.join("default", timeout=LONG_MS)
    assert ended.seen == [4] * 4
    assert broker.get_queue_message_counts("default")[2] == 0


def test_messages_are_added_and_processed_while_a_node_dies(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3) as cluster:
        calls = Calls()
        broker = DisqueBroker(nodes=[cluster.nodes[0].address], heartbeat_timeout=2000)
        task = actor(broker, calls.add, actor_name="add")
        with closing(broker), worker(broker):
            task.send(0)
            calls.wait_for(1)
            for number in range(1, 300):
                if number == 100:
                    cluster.nodes[0].kill()
                task.send(number)
            # `join` does not see a message of the dead node before another one delivers it
            wait_until(lambda: set(calls.seen) == set(range(300)), "all are processed", lambda: str(calls.seen), LONG_S)
        wanting = DisqueBroker(nodes=[cluster.nodes[1].address], replicate=3, sync=3, add_timeout=500)
        with closing(wanting), pytest.raises(NotReplicated):
            actor(wanting, calls.add).send(300)


def test_acknowledgement_waits_until_a_node_is_back(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 1, "--appendonly", "yes", "--appendfsync", "always") as cluster:
        (node,) = cluster.nodes
        began, may_end, calls = threading.Event(), threading.Event(), Calls()

        def work() -> None:
            began.set()
            assert may_end.wait(LONG_S)
            calls.add("done")

        broker = DisqueBroker(nodes=[node.address], backoff=Backoff(attempts=1))
        task = actor(broker, work)
        with closing(broker), worker(broker):
            task.send()
            assert began.wait(LONG_S)
            node.kill()
            may_end.set()
            calls.wait_for(1)
            node.start()
            node.server.wait_loaded()
            broker.join("default", timeout=LONG_MS // 2)  # half of the time after which it would be delivered again
        assert calls.seen == ["done"]


def test_message_is_added_once_although_a_reply_was_lost(make_broker: MakeBroker, nodes: RealCluster) -> None:
    with LosesAReply("ADDJOB", nodes.nodes[0].port) as proxy:
        broker = make_broker(nodes=[proxy.address])
        calls = Calls()
        task = actor(broker, calls.add, actor_name="add")
        task.send("once")
        assert proxy.lost.is_set()
        with worker(broker):
            broker.join("default", timeout=LONG_MS)
        assert calls.seen == ["once"]
