"""Several nodes in one process and in virtual time, for tests that read as stories about a cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from disqued.config import Config
from disqued.core.cluster.peer import BUS_PORT_DISTANCE
from disqued.core.telemetry.counter import Counters
from disqued.membership.nodesconf import decode, restore
from disqued.node import ROOMS, Node, Rooms
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

    def __init__(
        self, number: int, network: Network, config: Config, seed: int | None, hooks: Hooks, rooms: Rooms = ROOMS
    ) -> None:
        self.number = number
        self.hooks = hooks
        self.skew_ms = 0
        """How far its clock is fast."""
        self.drift_ppm = 0
        """How much its clock gains, in millionths."""
        self.past_counters: list[Counters] = []
        """The counters of its earlier processes."""
        host = FakeHost(seed=number if seed is None else seed, now_ms=network.now_ms)
        ip = b"10.0.0.%d" % number
        super().__init__(
            config, host, node_id=host.random_bytes(20).hex().encode(), ip=ip, network=network, rooms=rooms
        )
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
        """How many other nodes it can send jobs to."""
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
        """Carry its output. Once its jobs are loaded, it first starts to listen for other nodes."""
        if not self._listens and self.alive and not self.node.state.loading:
            self._listens = True
            self.net.listen(self, self.bus_port)
            if self.hooks.on_serve is not None:
                self.hooks.on_serve(self)
        super().flush()

    def tell(self, *words: bytes | str | int) -> None:
        """Send a command without waiting for its reply."""
        client = self.client()
        client.send(*words)
        client.disconnect()

    # --- its clock ----------------------------------------------------------------------------------------------------

    def clock_ms(self, network_ms: int) -> int:
        """What its clock shows at a time of the network."""
        return network_ms + self.skew_ms + (network_ms - START_MS) * self.drift_ppm // 1_000_000

    def jump(self) -> None:
        """Apply `skew_ms` and `drift_ppm` at once. Call it only before anything has happened."""
        self.host.now_ms = self.clock_ms(self.net.now_ms)
        self.restart()

    def take_wall_time(self) -> None:
        """Start next with the time of the wall clock, unless that is behind the files, as the server does."""
        ahead_ms = self.host.wall_ahead_us // 1000
        if ahead_ms > 0:
            self.skew_ms += ahead_ms
            self.host.wall_ahead_us = 0

    def due_ms(self) -> int:
        """The time of the network at which its next deadline or disk work is due."""
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

    # --- faults -------------------------------------------------------------------------------------------------------

    def crash(self, *, silent: bool = False) -> None:
        """Kill the process: it loses its memory, and its connections break, unnoticed by its peers if `silent`."""
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
        """Cut the power of the machine, unnoticed by its peers: of what was written, only synced data survives."""
        self.crash(silent=True)
        self.host.disk.lose_power()

    def restart(self, ip: bytes | None = None, *, keep_nodes: bool = True, keep_disk: bool = True) -> None:
        """Start it again, under a new address if one is given, and as a new node unless `keep_nodes`.

        It loads its append-only file, if it keeps one, unless its disk is replaced (`keep_disk=False`).
        """
        if self.alive:
            self.crash()
        self.ip = ip or self.ip
        self.host.now_ms = self.clock_ms(self.net.now_ms)
        if not keep_nodes:
            self.host.nodes_text = ""
        self._prepare(keep_disk=keep_disk)
        if self.hooks.on_start is not None:
            self.hooks.on_start(self)
        self.node = self._load()
        self._boot()
        self._listens = False
        self.node.start(self.now_ms)
        self.admin = self.client()
        self.node.tick(self.now_ms)
        self.flush()

    def _boot(self) -> None:
        if self.hooks.on_boot is not None:
            self.hooks.on_boot(self.node)

    def _load(self) -> Node:
        """The node described by its cluster configuration file, or a new one."""
        text = self.host.nodes_text
        if not text.strip():
            return Node(self.config, self.host, self.host.random_bytes(20).hex().encode(), self.host.now_ms, self.rooms)
        saved = decode(text)
        node = Node(self.config, self.host, saved.node_id, self.host.now_ms, self.rooms)
        restore(node.state, saved)
        return node


class Cluster:
    """Nodes that can reach each other, numbered from 1; they form a cluster unless `meet=False`."""

    def __init__(
        self,
        count: int,
        *,
        meet: bool = True,
        config: Callable[[], Config] = Config,
        network: Network | None = None,
        hooks: Hooks = NO_HOOKS,
        rooms: Rooms = ROOMS,
    ) -> None:
        self.network = network or Network(START_MS)
        self.members: list[Member] = []
        self._config = config
        self.hooks = hooks
        self._rooms = rooms
        for _ in range(count):
            self.add()
        if meet:
            self.meet()

    def add(self, seed: int | None = None) -> Member:
        """Add a node that knows no other node."""
        member = Member(len(self.members) + 1, self.network, self._config(), seed, self.hooks, self._rooms)
        self.members.append(member)
        return member

    def meet(self) -> None:
        """Form one cluster: the first node meets every other one."""
        first = self.members[0]
        for member in self.members[1:]:
            assert first.admin.call("CLUSTER", "MEET", member.ip.decode(), PORT) == b"OK"
        self.until(self.is_whole)

    def is_whole(self) -> bool:
        """Whether every running node can send jobs to all other running nodes."""
        running = [member for member in self.members if member.running]
        return all(member.serving and len(member.node.state.view.reachable) == len(running) - 1 for member in running)

    # --- time ---------------------------------------------------------------------------------------------------------

    def run(self, *, seconds: float = 0, milliseconds: int = 0) -> None:
        """Let virtual time pass for all nodes."""
        end_ms = self.network.now_ms + int(seconds * 1000) + milliseconds
        while self.network.now_ms < end_ms:
            self.step(end_ms)

    def until(self, condition: Callable[[], bool], *, within_s: float = 30) -> None:
        """Let virtual time pass until a condition holds; AssertionError if it does not in time."""
        end_ms = self.network.now_ms + int(within_s * 1000)
        while not condition():
            assert self.network.now_ms < end_ms, f"not within {within_s} s"
            self.step(end_ms)

    def step(self, end_ms: int) -> None:
        """Advance to the next event, at most to `end_ms`."""
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
                member.deliver_disk_work()
            if member.node.next_deadline_ms() <= now_ms:
                member.node.tick(now_ms)
                member.flush()

    # --- the network --------------------------------------------------------------------------------------------------

    def cut(self, sender: Member, receiver: Member) -> None:
        """Block the direction from one node to another; the opposite direction stays open."""
        self.network.cut(sender, receiver)

    def repair(self, sender: Member, receiver: Member) -> None:
        """Unblock a direction; data that waited arrives first."""
        self.network.repair(sender, receiver)

    def partition(self, *groups: Sequence[Member]) -> None:
        """Block everything between members of different groups; a member in no group is isolated."""
        group_of = {member: number for number, group in enumerate(groups) for member in group}
        for sender in self.members:
            for receiver in self.members:
                if sender is not receiver and group_of.get(sender, sender) != group_of.get(receiver, receiver):
                    self.cut(sender, receiver)

    def heal(self) -> None:
        """Undo all cuts, losses and delays."""
        self.network.filters.clear()
        for sender in self.members:
            for receiver in self.members:
                if sender is not receiver:
                    self.repair(sender, receiver)
                    self.network.path(sender, receiver).reset()

    def lose(self, kind: str, *, by: Member | None = None, to: Member | None = None, count: int = sys.maxsize) -> None:
        """Lose all frames of a kind until `heal`, or only those sent `by` or `to` a node, or the first `count`.

        The lists of a message about one job are of its kind as well.
        """
        left = iter(range(count))
        self.network.filters.append(
            lambda sent: (
                sent.kind in {kind, f"{kind}S"}
                and by in {None, sent.sender}
                and to in {None, sent.receiver}
                and next(left, None) is not None
            )
        )

    def sent(self, kind: str | None = None, *, by: Member | None = None, to: Member | None = None) -> list[Sent]:
        """The frames sent since the start or `forget_sent`, filtered by kind, sender and receiver."""
        return [
            sent
            for sent in self.network.sent
            if kind in {None, sent.kind} and by in {None, sent.sender} and to in {None, sent.receiver}
        ]

    def forget_sent(self) -> None:
        """Forget the frames that were recorded."""
        self.network.sent.clear()

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def copies(self, job_id: bytes, state: str | None = None) -> list[Member]:
        """The running members that know a job, only those that have it in `state` if one is given."""
        wanted = {member: member.admin.show(job_id).get("state") for member in self.members if member.running}
        return [
            member
            for member, found in wanted.items()
            if found is not None and (state is None or found == state.encode())
        ]
