"""Several nodes in one process and in virtual time, for tests that read as stories about a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from disqued.config import Config
from disqued.core.cluster.peer import BUS_PORT_DISTANCE
from disqued.core.telemetry.counter import Counters
from disqued.membership.nodesconf import decode, restore
from disqued.node import Node
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalClient, LocalNode
from disqued.testing.network import Network, Sent

START_MS: Final = 1_800_000_000_000
PORT: Final = 7711
BUS_PORT: Final = PORT + BUS_PORT_DISTANCE


@dataclass(frozen=True)
class Hooks:
    """What is called when members start."""

    on_boot: Callable[[Node], None] | None = None
    """Called with every new node."""
    on_start: Callable[[Member], None] | None = None
    """Called with every member before it restarts."""
    on_serve: Callable[[Member], None] | None = None
    """Called with every member that has loaded its jobs, before it sends anything."""


NO_HOOKS: Final = Hooks()


class Member(LocalNode):
    """A node of a `Cluster` and a client that is connected to it."""

    def __init__(self, number: int, network: Network, config: Config, seed: int | None, hooks: Hooks) -> None:
        self.number = number
        self._hooks = hooks
        self.skew_ms = 0
        """How far its clock is ahead."""
        self.drift_ppm = 0
        """By how many millionths its clock is too fast."""
        self.past_counters: list[Counters] = []
        """What it counted in its former lives."""
        host = FakeHost(seed=number if seed is None else seed, now_ms=network.now_ms)
        ip = b"10.0.0.%d" % number
        super().__init__(config, host, node_id=host.random_bytes(20).hex().encode(), ip=ip, network=network)
        self.net = network
        self._boot()
        self._listens = False
        self.flush()
        self.admin: LocalClient = self.client()

    @property
    def id(self) -> bytes:
        """Its node ID."""
        return self.node.state.view.node_id

    @property
    def bus_port(self) -> int:
        """Where other nodes reach it."""
        return self.config.cluster_port or self.config.port + BUS_PORT_DISTANCE

    @property
    def sees(self) -> int:
        """How many other nodes it could send jobs to."""
        return len(self.node.state.view.reachable)

    @property
    def running(self) -> bool:
        """Neither crashed nor paused."""
        return self.alive and not self.paused

    @property
    def serving(self) -> bool:
        """Running, and done with loading its jobs."""
        return self.alive and not self.paused and not self.node.state.loading

    def flush(self) -> None:
        """Carry its output; once its jobs are loaded, let other nodes connect before."""
        if not self._listens and self.alive and not self.node.state.loading:
            self._listens = True
            self.net.listen(self, self.bus_port)
            if self._hooks.on_serve is not None:
                self._hooks.on_serve(self)
        super().flush()

    def tell(self, *words: bytes | str | int) -> None:
        """Have a command run, whatever it replies, and whenever."""
        client = self.client()
        client.send(*words)
        client.disconnect()

    # --- its clock ----------------------------------------------------------------------------------------------------

    def clock_ms(self, network_ms: int) -> int:
        """What its clock shows at a time of the network."""
        return network_ms + self.skew_ms + (network_ms - START_MS) * self.drift_ppm // 1_000_000

    def jump(self) -> None:
        """Take over at once what `skew_ms` and `drift_ppm` say: only before anything happened."""
        self.host.now_ms = self.clock_ms(self.net.now_ms)
        self.restart()

    def due_ms(self) -> int:
        """The time of the network at which it wants to be woken, or its disk is done with something."""
        deadline_ms = self.node.next_deadline_ms()
        disk_ms = self.host.disk.next_ms
        if disk_ms < deadline_ms:
            deadline_ms = disk_ms
        if not (self.skew_ms or self.drift_ppm):
            return deadline_ms
        at_ms = START_MS + (deadline_ms - self.skew_ms - START_MS) * 1_000_000 // (1_000_000 + self.drift_ppm)
        while self.clock_ms(at_ms) < deadline_ms:
            at_ms += 1
        return at_ms

    # --- what befalls it ----------------------------------------------------------------------------------------------

    def crash(self, *, silent: bool = False) -> None:
        """Its memory is gone, its connections break; `silent`: the others do not hear of that (the machine is off)."""
        self.alive = False
        self.past_counters.append(self.node.state.counters)
        self._listens = False
        self.net.unlisten(self, self.bus_port)
        for end in self.net.ends_of(self):
            if silent:
                end.vanish()
            else:
                end.close()
        super().crash()

    def lose_power(self) -> None:
        """The machine is off, which the others are not told: of what was written, only what was synced is there."""
        self.crash(silent=True)
        self.host.disk.lose_power()

    def restart(self, ip: bytes | None = None, *, keep_nodes: bool = True, keep_disk: bool = True) -> None:
        """It starts again: under a new address if given, as a new node unless `keep_nodes`.

        It has the jobs of its append only file, if it keeps one and `keep_disk`.
        """
        if self.alive:
            self.crash()
        self.ip = ip or self.ip
        self.host.now_ms = self.clock_ms(self.net.now_ms)
        if not keep_nodes:
            self.host.nodes_text = ""
        self._prepare(keep_disk=keep_disk)
        if self._hooks.on_start is not None:
            self._hooks.on_start(self)
        self.node = self._load()
        self._boot()
        self._listens = False
        self.node.start(self.now_ms)
        self.admin = self.client()
        self.node.tick(self.now_ms)
        self.flush()

    def _boot(self) -> None:
        if self._hooks.on_boot is not None:
            self._hooks.on_boot(self.node)

    def _load(self) -> Node:
        """The node that its cluster configuration file speaks of, or a new one."""
        text = self.host.nodes_text
        if not text.strip():
            return Node(self.config, self.host, self.host.random_bytes(20).hex().encode(), self.host.now_ms)
        saved = decode(text)
        node = Node(self.config, self.host, saved.node_id, self.host.now_ms)
        restore(node.state, saved)
        return node


class Cluster:
    """Nodes that can reach each other, numbered from 1 on; they meet when told."""

    def __init__(
        self,
        count: int,
        *,
        meet: bool = True,
        config: Callable[[], Config] = Config,
        network: Network | None = None,
        hooks: Hooks = NO_HOOKS,
    ) -> None:
        self.network = network or Network(START_MS)
        self.members: list[Member] = []
        self._config = config
        self._hooks = hooks
        for _ in range(count):
            self.add()
        if meet:
            self.meet()

    def add(self, seed: int | None = None) -> Member:
        """One more node, which knows nobody."""
        member = Member(len(self.members) + 1, self.network, self._config(), seed, self._hooks)
        self.members.append(member)
        return member

    def meet(self) -> None:
        """Make all nodes one cluster: the first meets every other one."""
        first = self.members[0]
        for member in self.members[1:]:
            assert first.admin.call("CLUSTER", "MEET", member.ip.decode(), PORT) == b"OK"
        self.until(self.is_whole)

    def is_whole(self) -> bool:
        """Whether all nodes that run can send jobs to all others."""
        running = [member for member in self.members if member.running]
        return all(member.serving and len(member.node.state.view.reachable) == len(running) - 1 for member in running)

    # --- time ---------------------------------------------------------------------------------------------------------

    def run(self, *, seconds: float = 0, milliseconds: int = 0) -> None:
        """Let virtual time pass for everybody."""
        end_ms = self.network.now_ms + int(seconds * 1000) + milliseconds
        while self.network.now_ms < end_ms:
            self.step(end_ms)

    def until(self, condition: Callable[[], bool], *, within_s: float = 30) -> None:
        """Let virtual time pass until something holds; AssertionError when it does not in time."""
        end_ms = self.network.now_ms + int(within_s * 1000)
        while not condition():
            assert self.network.now_ms < end_ms, f"not within {within_s} s"
            self.step(end_ms)

    def step(self, end_ms: int) -> None:
        """Go on to when something happens next, at most to `end_ms`."""
        network = self.network
        next_ms = network.next_ms() or end_ms
        for member in self.members:
            if member.running:
                next_ms = min(next_ms, member.due_ms())
        network.now_ms = min(max(next_ms, network.now_ms + 1), end_ms)
        for member in self.members:
            member.host.now_ms = member.clock_ms(network.now_ms)
        network.deliver()
        for member in self.members:
            if not member.running:
                continue
            now_ms = member.host.now_ms
            if member.host.disk.next_ms <= now_ms:
                member.hear_disk()
            if member.node.next_deadline_ms() <= now_ms:
                member.node.tick(now_ms)
                member.flush()

    # --- the network --------------------------------------------------------------------------------------------------

    def cut(self, sender: Member, receiver: Member) -> None:
        """Let nothing through from one node to another; the other direction is not touched."""
        self.network.cut(sender, receiver)

    def mend(self, sender: Member, receiver: Member) -> None:
        """Let through again, first what waited."""
        self.network.mend(sender, receiver)

    def partition(self, *groups: Sequence[Member]) -> None:
        """Let nothing through between members of different groups; who is in none is a group of its own."""
        group_of = {member: number for number, group in enumerate(groups) for member in group}
        for sender in self.members:
            for receiver in self.members:
                if sender is not receiver and group_of.get(sender, sender) != group_of.get(receiver, receiver):
                    self.cut(sender, receiver)

    def heal(self) -> None:
        """Take back all cuts, losses and delays."""
        self.network.filters.clear()
        for sender in self.members:
            for receiver in self.members:
                if sender is not receiver:
                    self.mend(sender, receiver)
                    self.network.path(sender, receiver).reset()

    def lose(self, kind: str, *, by: Member | None = None, to: Member | None = None) -> None:
        """Lose all frames of a kind until `heal`, only those by one node or to one node if given."""
        self.network.filters.append(
            lambda sent: sent.kind == kind and by in {None, sent.sender} and to in {None, sent.receiver}
        )

    def sent(self, kind: str | None = None, *, by: Member | None = None, to: Member | None = None) -> list[Sent]:
        """The frames sent since the beginning or `forget_sent`, all or those of a kind, by a node, to a node."""
        return [
            sent
            for sent in self.network.sent
            if kind in {None, sent.kind} and by in {None, sent.sender} and to in {None, sent.receiver}
        ]

    def forget_sent(self) -> None:
        """Begin a new record of the frames sent."""
        self.network.sent.clear()

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def copies(self, job_id: bytes, state: str | None = None) -> list[Member]:
        """The members that know a job, in a state if one is given; those that do not run are not asked."""
        wanted = {member: member.admin.show(job_id).get("state") for member in self.members if member.running}
        return [
            member
            for member, found in wanted.items()
            if found is not None and (state is None or found == state.encode())
        ]
