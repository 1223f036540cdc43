"""Brokers: what stands on a disk, what a process knows, how members find each other and how a node leaves.

As little of the real broker as decides what the operator may and may not do: an ID and a state on a disk, members that
are known and connected, members that were forgotten for a minute, jobs with copies that are handed over when a node
leaves, directives and passwords that are read at the start and set afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

BLACKLIST_S: Final = 60.0
SEEDS_EVERY_S: Final = 5
HAND_OVER: Final = 1
"""Jobs in a second: drains take as long as people need to change their minds."""


@dataclass
class Disk:
    """What outlives a process."""

    node_id: str = ""
    leaving: bool = False
    known: dict[str, str] = field(default_factory=dict)
    """Hosts of other members, by ID."""
    jobs: dict[str, int] = field(default_factory=dict)
    """REPLICATE, by ID."""


@dataclass
class BrokerProcess:
    """A process."""

    host: str
    ip: str
    disk: Disk
    started_s: float
    loading_s: float
    version: str
    config: dict[str, str]
    password: str = ""
    former: str = ""
    cut_off: bool = False
    """Its machine is not reached by anybody."""
    left_s: float = 0.0
    """Since when it leaves, in this life."""
    forgotten: dict[str, float] = field(default_factory=dict)
    heard_s: dict[str, float] = field(default_factory=dict)
    connected: set[str] = field(default_factory=set)
    leavers: set[str] = field(default_factory=set)
    """Members that said that they leave."""

    @property
    def node_id(self) -> str:
        """Who it is."""
        return self.disk.node_id

    def loaded(self, now_s: float) -> bool:
        """Whether it has its jobs and talks to others."""
        return now_s >= self.started_s + self.loading_s

    def talks(self, now_s: float) -> bool:
        """Whether others reach it."""
        return self.loaded(now_s) and not self.cut_off

    def learn(self, other: BrokerProcess, now_s: float, *, asked: bool = False) -> None:
        """Get to know a node at first hand."""
        if asked:
            self.forgotten.pop(other.node_id, None)
        if other.node_id != self.node_id and self.forgotten.get(other.node_id, 0.0) <= now_s:
            self.disk.known[other.node_id] = other.host
            self.heard_s.setdefault(other.node_id, now_s)

    def forget(self, node_id: str, now_s: float) -> None:
        """CLUSTER FORGET."""
        if node_id in self.disk.known:
            del self.disk.known[node_id]
            self.forgotten[node_id] = now_s + BLACKLIST_S


class Bus:
    """All processes, and what goes between them in a second."""

    def __init__(self) -> None:
        self.running: dict[str, BrokerProcess] = {}
        """By pod."""
        self.no_seeds_until_s = 0.0
        """Names lead nowhere."""
        self.acknowledged: set[str] = set()

    def step(self, now_s: float, published: Mapping[str, bool]) -> None:
        """A second passes. `entitled` says of each pod whether its name leads to it."""
        talking = [broker for broker in self.running.values() if broker.talks(now_s)]
        if int(now_s) % SEEDS_EVERY_S == 0 and now_s >= self.no_seeds_until_s:
            found = [broker for pod, broker in self.running.items() if published.get(pod) and broker in talking]
            for broker in talking:
                for other in found:
                    if other is not broker:
                        broker.learn(other, now_s)
                        other.learn(broker, now_s)
        by_id = {broker.node_id: broker for broker in talking}
        for broker in talking:
            for job in self.acknowledged & broker.disk.jobs.keys():
                del broker.disk.jobs[job]
            self._links(broker, by_id, now_s)
        for broker in talking:
            self._gossip(broker, by_id, now_s)
        for broker in talking:
            if broker.disk.leaving:
                self._hand_over(broker, by_id)
        for broker in self.running.values():
            if broker not in talking:
                broker.connected = set()

    @staticmethod
    def _links(broker: BrokerProcess, by_id: Mapping[str, BrokerProcess], now_s: float) -> None:
        broker.connected = {node_id for node_id in broker.disk.known if node_id in by_id}
        for node_id in sorted(broker.connected):
            other = by_id[node_id]
            broker.heard_s[node_id] = now_s
            broker.disk.known[node_id] = other.host
            (broker.leavers.add if other.disk.leaving else broker.leavers.discard)(node_id)
            if broker.node_id not in other.disk.known:
                other.learn(broker, now_s)

    @staticmethod
    def _gossip(broker: BrokerProcess, by_id: Mapping[str, BrokerProcess], now_s: float) -> None:
        for node_id in sorted(broker.connected):
            for known, host in list(by_id[node_id].disk.known.items()):
                is_news = known != broker.node_id and known not in broker.disk.known
                if is_news and broker.forgotten.get(known, 0.0) <= now_s:
                    broker.disk.known[known] = host
                    broker.heard_s.setdefault(known, now_s)
                    if known in by_id[node_id].leavers:
                        broker.leavers.add(known)

    def _hand_over(self, broker: BrokerProcess, by_id: Mapping[str, BrokerProcess]) -> None:
        receivers = [by_id[node_id] for node_id in sorted(broker.connected) if not by_id[node_id].disk.leaving]
        for number, job in enumerate(list(broker.disk.jobs)[:HAND_OVER]):
            others = [receiver for receiver in receivers if job not in receiver.disk.jobs]
            if not receivers:
                return
            if others:
                others[number % len(others)].disk.jobs[job] = broker.disk.jobs[job]
            del broker.disk.jobs[job]

    # --- clients ------------------------------------------------------------------------------------------------------

    def add(self, job: str, replicate: int, now_s: float, turn: int) -> bool:
        """ADDJOB: whether the copies were made."""
        takers = [one for one in self.running.values() if one.talks(now_s) and not one.disk.leaving]
        if not takers:
            return False
        first = takers[turn % len(takers)]
        others = [one for one in takers if one is not first and one.node_id in first.connected]
        if len(others) + 1 < replicate:
            return False
        for broker in (first, *others[: replicate - 1]):
            broker.disk.jobs[job] = replicate
        return True

    def acknowledge(self, job: str, now_s: float) -> None:
        """ACKJOB, at everybody who can be reached; copies elsewhere are done as well."""
        self.acknowledged.add(job)
        for broker in self.running.values():
            if broker.talks(now_s):
                broker.disk.jobs.pop(job, None)
