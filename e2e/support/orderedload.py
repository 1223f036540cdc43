"""Load on an ordered queue with a single consumer, with an account of every job and of the order of deliveries.

The producer has several tasks. Each adds a job only when the one before is answered, so its jobs are in the queue in
the order of their numbers. The consumer has one job at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from e2e.support.account import Account
from e2e.support.brokers import Broker, poll
from e2e.support.cluster import API_VERSION, DisqueCluster, condition
from e2e.support.kube import Json, Kube
from e2e.support.load import SETTLE_S, Load
from e2e.support.loadpod import ORDERED

MADE_S: Final = 60
MOVED_S: Final = 60
LED_S: Final = 60
_UNFINISHED: Final = (b"len", b"leased", b"delayed")
"""Fields of QSTAT that count jobs which are not finished."""


@dataclass
class OrderedAccount(Account):
    """Jobs by key, which is the name of a task of the producer and a number: `producer.2.17`."""

    sequence: list[str] = field(default_factory=list)
    """The keys of all deliveries, in their order."""
    acked: set[str] = field(default_factory=set)
    """The IDs of the jobs whose acknowledgement was answered."""
    resurrected: list[str] = field(default_factory=list)
    """The IDs of jobs that were delivered although their acknowledgement had been answered."""

    def read(self, lines: Iterable[str]) -> None:
        """Add the records of a log."""
        kept = list(lines)
        super().read(kept)
        for line in kept:
            match line.split(" "):
                case ["got", *pairs]:
                    self.sequence += pairs[1::2]
                    self.resurrected += [job_id for job_id in pairs[::2] if job_id in self.acked]
                case ["acked", *ids]:
                    self.acked |= set(ids)

    @property
    def inversions(self) -> list[str]:
        """Deliveries of a job before which a later one of the same task was delivered."""
        last: dict[str, int] = {}
        found: list[str] = []
        for key in self.sequence:
            task, _, number = key.rpartition(".")
            if int(number) < last.get(task, -1):
                found.append(f"{key} after {last[task]}")
            last[task] = max(int(number), last.get(task, -1))
        return found

    def check_ordered(self, at_least: int) -> None:
        """Assert that no job is lost or unexpected, that each was added once, and that the order was kept.

        A job may be delivered again only if its acknowledgement was not answered.
        """
        self.check(at_least, calls_may_fail=True)
        assert not self.inversions, f"{self}: out of order {self.inversions[:20]}"
        assert not self.resurrected, f"{self}: delivered after their acknowledgement {self.resurrected[:20]}"
        assert not self.repeated, f"{self}: some keys have two jobs"


class OrderedLoad(Load):
    """Pods that add jobs to the ordered queue and consume them until the context ends."""

    def __init__(self, kube: Kube, cluster: DisqueCluster, image: str, *, rate: int = 40, avoid: str = "") -> None:
        super().__init__(kube, cluster, image, rate=rate, avoid=avoid)
        self.account: OrderedAccount = OrderedAccount()

    def produce(self) -> None:
        """Start the producer and wait until it has added some jobs."""
        self._start("producer", "order", {"rate": self._rate})
        self._wait_added()

    def consume(self) -> None:
        """Start the consumer."""
        self._start("consumer", "follow", {})

    def wait_empty(self, within_s: float = SETTLE_S) -> None:
        """Wait until the ordered queue has no unfinished job."""
        with self._cluster.brokers() as brokers:
            poll(lambda: unfinished(brokers[0].call("QSTAT", ORDERED)) == 0, "the ordered queue is empty", within_s)

    def settle(self) -> OrderedAccount:
        """Stop the producer after it has added enough, wait until all jobs are done, and return the account."""
        super().settle()
        return self.account


def unfinished(stats: list[Any]) -> int:
    """Return the unfinished jobs in a reply to QSTAT."""
    fields = dict(zip(stats[::2], stats[1::2], strict=True))
    return sum(int(fields[name]) for name in _UNFINISHED)


def declare_queue(cluster: DisqueCluster, **spec: Any) -> None:
    """Declare the ordered queue, with a single consumer, and wait until it is ready."""
    body = {"clusterRef": {"name": cluster.name}, "type": "ordered", "ordered": {"single": True, "prefetch": 1}, **spec}
    cluster.kube.apply(
        {
            "apiVersion": API_VERSION,
            "kind": "DisqueQueue",
            "metadata": {"name": ORDERED, "namespace": cluster.namespace},
            "spec": body,
        }
    )
    cluster.kube.wait("DisqueQueue", cluster.namespace, _is_ready, f"{ORDERED} is ready", within_s=MADE_S, name=ORDERED)


def _is_ready(queues: list[Json]) -> bool:
    return any(condition(queue.get("status") or {}, "Ready").get("status") == "True" for queue in queues)


def move_to(cluster: DisqueCluster, pods: list[str]) -> None:
    """Move the replicas of the ordered queue to these pods, and the leader to the first of them."""
    ids = cluster.ids()
    wanted = [ids[pod] for pod in pods]
    with cluster.broker(0) as broker:
        while spare := [node_id for node_id in _queue(broker)["replicas"] if node_id not in wanted]:
            missing = next(node_id for node_id in wanted if node_id not in _queue(broker)["replicas"])
            broker.call("CLUSTER", "ORDERED", "MOVE", ORDERED, "FROM", spare[0], "TO", missing)
            _wait_settled_with(broker, missing)
        broker.call("CLUSTER", "ORDERED", "LEAD", ORDERED, wanted[0])
    with cluster.broker(cluster.pod_names().index(pods[0])) as broker:
        poll(lambda: _queue(broker)["leader"] == wanted[0], f"{pods[0]} leads", LED_S)


def _wait_settled_with(broker: Broker, node_id: str) -> None:
    def is_settled() -> bool:
        queue = _queue(broker)
        return node_id in queue["replicas"] and queue["settled"]

    poll(is_settled, f"{ORDERED} has a replica on {node_id} and its replicas are settled", MOVED_S)


def _queue(broker: Broker) -> dict[str, Any]:
    """Return what a broker knows about the ordered queue: `replicas`, `settled` and `leader`."""
    status = _named(broker.call("CLUSTER", "ORDERED", "STATUS"))
    found: dict[str, Any] = next(queue for queue in map(_named, status["queues"]) if queue["queue"] == ORDERED.encode())
    return {
        "replicas": [node_id.decode() for node_id in found["replicas"]],
        "settled": bool(found["settled"]),
        "leader": found["leader"].decode(),
    }


def _named(reply: list[Any]) -> dict[str, Any]:
    return {name.decode(): value for name, value in zip(reply[::2], reply[1::2], strict=True)}


def place(cluster: DisqueCluster) -> Json:
    """Return where the ordered queue is: the pods of its leader and of its replicas."""
    found: Json = cluster.kube.get("DisqueQueue", ORDERED, cluster.namespace)["status"]["ordered"]
    return found
