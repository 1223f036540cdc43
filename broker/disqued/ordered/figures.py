"""Figures about the groups with a replica on this node: what metrics, INFO and CLUSTER ORDERED STATUS show."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.ordered.exchange import GroupReplica
from disqued.ordered.queuemachine import QueueMachine
from disqued.ordered.replica import Replica
from disqued.ordered.room import OrderedRoom
from disqued.orderedqueue.machine import Machine


class LedQueue:
    """An ordered queue whose leader is on this node."""

    def __init__(self, name: bytes, group: i64, machine: Machine, lag: i64) -> None:
        self.name = name
        self.group: i64 = group
        self.machine: Machine = machine
        self.lag: i64 = lag
        """How many entries the replica that is furthest behind has not confirmed."""

    @property
    def credit(self) -> i64:
        """How many more jobs the clients that wait for this queue would take."""
        credit: i64 = 0
        for consumer in self.machine.consumers():
            credit += consumer.credit
        return credit

    def overdue_ms(self, now_ms: i64) -> i64:
        """For how long the end of a lease or of a delay has been overdue; 0 if nothing is."""
        due_ms = self.machine.due_ms()
        return max(now_ms - due_ms, 0) if due_ms > 0 else 0


class GroupSums:
    """Sums over the groups of one node."""

    def __init__(self) -> None:
        self.count: i64 = 0
        """How many groups have a replica here, group 0 included."""
        self.led: i64 = 0
        """How many of them this node leads."""
        self.without_leader: i64 = 0
        """How many of them have no leader as far as this node knows."""
        self.behind: i64 = 0
        """How many replicas on other nodes have not confirmed all entries of groups led here."""
        self.lag: i64 = 0
        """How many entries the replica that is furthest behind has not confirmed."""
        self.overdue_ms: i64 = 0
        """For how long the end of a lease or of a delay has been overdue."""

    def add(self, replica: GroupReplica, now_ms: i64) -> LedQueue | None:
        """Add a group. Returns its queue if this node leads one."""
        assert isinstance(replica, Replica)
        self.count += 1
        if not replica.raft.leader:
            self.without_leader += 1
        if not replica.raft.is_leader:
            return None
        self.led += 1
        most: i64 = 0
        for behind in replica.lags().values():
            most = max(most, behind)
            if behind > 0:
                self.behind += 1
        self.lag = max(self.lag, most)
        applier = replica.applier
        if not isinstance(applier, QueueMachine):
            return None
        led = LedQueue(applier.queue.name, replica.group, applier.machine, most)
        self.overdue_ms = max(self.overdue_ms, led.overdue_ms(now_ms))
        return led


def numbers_of(replica: GroupReplica) -> tuple[tuple[bytes, int], ...]:
    """The numbers of jobs of an ordered queue, with their names; none if this node does not lead it."""
    assert isinstance(replica, Replica)
    applier = replica.applier
    if not replica.raft.is_leader or not isinstance(applier, QueueMachine):
        return ()
    machine = applier.machine
    return (
        (b"ready", int(machine.length)),
        (b"leased", int(machine.leased)),
        (b"delayed", int(machine.delayed)),
        (b"dead", int(machine.dead)),
        (b"consumers", len(machine.consumers())),
    )


def led_queue(room: OrderedRoom, name: bytes) -> LedQueue | None:
    """An ordered queue by its name, if this node leads it."""
    queue = room.catalog.by_name.get(name)
    replica = None if queue is None else room.exchange.replicas.get(int(queue.group))
    return None if replica is None else GroupSums().add(replica, room.state.now_ms)
