"""A cluster in virtual time whose nodes have ordered queues, for tests that read as stories."""

from __future__ import annotations

from typing import Any

from disqued.config import Config
from disqued.ordered.replica import Replica
from disqued.ordered.room import OrderedRoom, ordered_of
from disqued.raftlog.tuning import LogTuning
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient, Reply


class Waiting:
    """A request whose reply is awaited later."""

    def __init__(self, story: Story, client: LocalClient) -> None:
        self._story = story
        self.client = client

    def reply(self, *, within_s: float = 15) -> Any:
        """The reply."""
        self._story.cluster.until(lambda: not self.client.silent, within_s=within_s)
        return self.client.next_reply()

    @property
    def waits(self) -> bool:
        """Whether there is none yet."""
        return self.client.silent


class Story:
    """A cluster, with the catalog founded on its first nodes (`founders`, 0 for none)."""

    def __init__(self, nodes: int = 3, *, founders: int = 3, log_tuning: LogTuning | None = None) -> None:
        self.cluster = Cluster(nodes, config=Config)
        self.nodes = self.cluster.members
        for node in self.nodes:
            self.room(node).hosting.log_tuning = log_tuning
        if founders:
            members = [node.id for node in self.nodes[:founders]]
            assert self.call(self.nodes[0], "CLUSTER", "ORDERED", "INIT", *members) == b"OK"
            self.cluster.until(lambda: all(self.room(node).has_catalog for node in self.nodes))
            self.cluster.run(milliseconds=300)

    def send(self, node: Member, *words: bytes | str | int) -> Waiting:
        """Send a command of a new client."""
        client = node.client()
        client.send(*words)
        return Waiting(self, client)

    def call(self, node: Member, *words: bytes | str | int, within_s: float = 15) -> Any:
        """Send a command, and return the reply."""
        return self.send(node, *words).reply(within_s=within_s)

    def new(self, queue: str = "q", *options: bytes | str | int) -> None:
        """Make an ordered queue."""
        assert self.call(self.nodes[0], "QNEW", queue, "ORDERED", *options) == b"OK"

    def add(self, node: Member, body: str, *options: bytes | str | int, queue: str = "q") -> bytes:
        """Add a job; returns its ID."""
        job_id = self.call(node, "ADDJOB", queue, body, 0, *options)
        assert isinstance(job_id, bytes), job_id
        return job_id

    def take(self, node: Member, count: int = 1, *, queue: str = "q") -> list[bytes]:
        """The bodies of up to so many jobs that there are now."""
        return bodies(self.call(node, "GETJOB", "NOHANG", "COUNT", count, "FROM", queue))

    def stat(self, node: Member, queue: str = "q") -> dict[bytes, Reply]:
        """QSTAT by name."""
        fields = self.call(node, "QSTAT", queue)
        return dict(zip(fields[::2], fields[1::2], strict=True))

    @staticmethod
    def room(node: Member) -> OrderedRoom:
        """The ordered room of a node."""
        return ordered_of(node.node.state)

    def replica(self, node: Member, queue: str = "q") -> Replica:
        """The replica of a queue on a node."""
        replica = self.replicas(node)[int(self.room(node).catalog.by_name[queue.encode()].group)]
        assert isinstance(replica, Replica)
        return replica

    def replicas(self, node: Member) -> dict[int, Any]:
        """All replicas of a node, by group."""
        return dict(self.room(node).exchange.replicas)

    def leader(self, queue: str = "q", *, within_s: float = 10) -> Member:
        """The running node that leads the group of a queue, with an entry of its term committed."""
        found: list[Member] = []

        def look() -> bool:
            group = self._group(queue)
            for node in self.nodes:
                replica = self.replicas(node).get(group) if node.running else None
                if replica is not None and replica.raft.is_confirmed:
                    found.append(node)
            return bool(found)

        self.cluster.until(look, within_s=within_s)
        return found[0]

    def _group(self, queue: str) -> int:
        for node in self.nodes:
            known = self.room(node).catalog.by_name.get(queue.encode())
            if known is not None:
                return int(known.group)
        raise AssertionError(f"nobody knows {queue}")

    def followers(self, queue: str = "q") -> list[Member]:
        """The running nodes with a replica that does not lead."""
        leader = self.leader(queue)
        group = self._group(queue)
        return [node for node in self.nodes if node is not leader and node.running and group in self.replicas(node)]

    def settle(self, queue: str = "q", *, within_s: float = 20) -> None:
        """Wait until all replicas on running nodes have applied the same entries, and check that they are equal."""
        group = self._group(queue)
        replicas: list[Any] = []

        def look() -> bool:
            replicas[:] = [
                self.replicas(node)[group] for node in self.nodes if node.running and group in self.replicas(node)
            ]
            last = {int(replica.raft.last) for replica in replicas}
            return len(last) == 1 and {int(replica.applied) for replica in replicas} == last

        self.cluster.until(look, within_s=within_s)
        assert len({replica.applier.machine.digest() for replica in replicas}) == 1

    def assert_served_at_once(self, node: Member) -> None:
        """A worker at a node gets a job without having to ask what became of it (`agents.CHECK_MS`)."""
        worker = self.send(node, "GETJOB", "FROM", "q")
        self.cluster.run(milliseconds=300)
        assert worker.waits
        self.add(node, "next")
        assert bodies(worker.reply(within_s=0.5)) == [b"next"]


def bodies(jobs: Any) -> list[bytes]:
    """The bodies in the reply of GETJOB."""
    return [job[2] for job in jobs or []]


def ids(jobs: Any) -> list[bytes]:
    """The IDs in the reply of GETJOB."""
    return [job[1] for job in jobs or []]
