"""Several nodes in one process and in virtual time, for tests that read as stories about a cluster."""

from __future__ import annotations

from collections.abc import Callable

from disqued.config import Config
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalClient, LocalNode
from disqued.testing.network import Network

START_MS = 1_800_000_000_000
PORT = 7711
BUS_PORT = PORT + 10000


class Member(LocalNode):
    """A node of a `Cluster` and a client that is connected to it."""

    def __init__(self, number: int, network: Network, config: Config | None = None) -> None:
        host = FakeHost(seed=number, now_ms=network.now_ms)
        ip = b"10.0.0.%d" % number
        super().__init__(config, host, node_id=host.random_bytes(20).hex().encode(), ip=ip, network=network)
        network.listen(self, BUS_PORT)
        self.admin: LocalClient = self.client()

    @property
    def id(self) -> bytes:
        """Its node ID."""
        return self.node.state.view.node_id

    @property
    def sees(self) -> int:
        """How many other nodes it could send jobs to."""
        return len(self.node.state.view.reachable)


class Cluster:
    """Nodes that can reach each other, numbered from 1 on; they meet when told."""

    def __init__(self, count: int, *, meet: bool = True, config: Callable[[], Config] = Config) -> None:
        self.network = Network(START_MS)
        self.members: list[Member] = []
        self._config = config
        for _ in range(count):
            self.add()
        if meet:
            self.meet()

    def add(self) -> Member:
        """One more node, which knows nobody."""
        member = Member(len(self.members) + 1, self.network, self._config())
        self.members.append(member)
        return member

    def meet(self) -> None:
        """Make all nodes one cluster: the first meets every other one."""
        first = self.members[0]
        for member in self.members[1:]:
            assert first.admin.call("CLUSTER", "MEET", member.ip.decode(), PORT) == b"OK"
        self.until(
            lambda: all(len(member.node.state.view.reachable) == len(self.members) - 1 for member in self.members)
        )

    def run(self, *, seconds: float = 0, milliseconds: int = 0) -> None:
        """Let virtual time pass for everybody."""
        end_ms = self.network.now_ms + int(seconds * 1000) + milliseconds
        while self.network.now_ms < end_ms:
            self._step(end_ms)

    def until(self, condition: Callable[[], bool], *, within_s: float = 30) -> None:
        """Let virtual time pass until something holds; AssertionError when it does not in time."""
        end_ms = self.network.now_ms + int(within_s * 1000)
        while not condition():
            assert self.network.now_ms < end_ms, f"not within {within_s} s"
            self._step(end_ms)

    def _step(self, end_ms: int) -> None:
        """Go on to when something happens next, at most to `end_ms`."""
        network = self.network
        times = [member.node.next_deadline_ms() for member in self.members]
        next_ms = network.next_ms()
        if next_ms is not None:
            times.append(next_ms)
        network.now_ms = min(max(min(times), network.now_ms + 1), end_ms)
        for member in self.members:
            member.host.now_ms = network.now_ms
        network.deliver()
        for member in self.members:
            if member.node.next_deadline_ms() <= network.now_ms:
                member.node.tick(network.now_ms)
                member.flush()

    def copies(self, job_id: bytes, state: str | None = None) -> list[Member]:
        """The members that know a job, in a state if one is given."""
        wanted = {member: member.admin.show(job_id).get("state") for member in self.members}
        return [
            member
            for member, found in wanted.items()
            if found is not None and (state is None or found == state.encode())
        ]
