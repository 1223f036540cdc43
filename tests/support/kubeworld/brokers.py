"""A model of brokers: their disks, their processes, how members find each other, and how a broker leaves.

It has only what matters for the operator: a node ID and state on disk, known and connected members, members that are
forgotten for a minute, jobs with copies that are transferred when a broker leaves, and directives and passwords that
are read at the start and can be set later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from disque_operator.busmode import PLAIN, BusMode
from disque_operator.observed import password_hash

BLACKLIST_S: Final = 60.0
SEEDS_EVERY_S: Final = 5
COMPLETE_EVERY_S: Final = 30
SEEDS_DELAY_S: Final = 10.0
"""How long a broker that knows no member does not use its seeds."""
TRANSFERRED_PER_STEP: Final = 1
"""Jobs transferred per second: few, so that the spec can change during a drain."""
REPAIRED_PER_STEP: Final = 1
"""Lost copies made again per second."""


@dataclass
class Disk:
    """What remains when a process ends."""

    node_id: str = ""
    leaving: bool = False
    known: dict[str, str] = field(default_factory=dict)
    """Host names of other members, by node ID."""
    file_format: int = 0
    """The format of the append-only file."""
    pauses: dict[str, str] = field(default_factory=dict)
    schedules: dict[str, dict[str, str]] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    """Queues that were paused or resumed."""
    catalog: str = ""
    """The identity of the catalog of ordered queues; empty while it knows none."""
    jobs: dict[str, int] = field(default_factory=dict)
    """REPLICATE of each job, by job ID."""


@dataclass
class BrokerProcess:
    """A broker process."""

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
    """Whether its Kubernetes node is unreachable."""
    users: dict[str, str] = field(default_factory=dict)
    """The rules of its users; those of ACL SETUSER are lost when the process ends."""
    left_s: float = 0.0
    """When it started to leave, since its last start."""
    forgotten: dict[str, float] = field(default_factory=dict)
    contact_s: dict[str, float] = field(default_factory=dict)
    connected: set[str] = field(default_factory=set)
    bus: BusMode = PLAIN
    """How it protects the bus: it connects only to brokers whose mode fits."""
    bus_secrets: frozenset[str] = frozenset()
    """The cluster secrets that it read."""
    leaving_members: set[str] = field(default_factory=set)
    """Members that announced that they are leaving."""

    @property
    def node_id(self) -> str:
        """Return the node ID."""
        return self.disk.node_id

    def connects_to(self, other: BrokerProcess) -> bool:
        """Return whether both accept a connection between them."""
        shares = not (self.bus_secrets and other.bus_secrets) or bool(self.bus_secrets & other.bus_secrets)
        return self.bus.connects(other.bus) and shares

    @property
    def accepted_passwords(self) -> set[str]:
        """Return the passwords that it accepts; none if it needs none."""
        return {self.password, self.former} - {""} if self.password else set()

    def accepts(self, password: str) -> bool:
        """Return whether clients with this password are served."""
        return not self.password or password in self.accepted_passwords

    def set_password(self, directive: str, value: str) -> None:
        """Execute CONFIG SET with `requirepass` or `requirepass-former`."""
        if directive == "requirepass":
            self.password = value
        else:
            self.former = value

    @property
    def password_hashes(self) -> frozenset[str]:
        """Return what ACL GETUSER shows of them."""
        return frozenset(map(password_hash, self.accepted_passwords))

    def loaded(self, now_s: float) -> bool:
        """Return whether it has loaded its jobs."""
        return now_s >= self.started_s + self.loading_s

    def talks(self, now_s: float) -> bool:
        """Return whether other brokers can reach it."""
        return self.loaded(now_s) and not self.cut_off

    def uses_seeds(self, now_s: float) -> bool:
        """Return whether it looks for members in this second."""
        if not self.disk.known:
            return now_s >= self.started_s + SEEDS_DELAY_S and int(now_s) % SEEDS_EVERY_S == 0
        return int(now_s) % (SEEDS_EVERY_S if self.disk.known.keys() - self.connected else COMPLETE_EVERY_S) == 0

    def learn(self, other: BrokerProcess, now_s: float, *, asked: bool = False) -> None:
        """Learn of another broker by a direct connection."""
        if asked:
            self.forgotten.pop(other.node_id, None)
        if other.node_id != self.node_id and self.forgotten.get(other.node_id, 0.0) <= now_s:
            self.disk.known[other.node_id] = other.host
            self.contact_s.setdefault(other.node_id, now_s)

    def forget(self, node_id: str, now_s: float) -> None:
        """Execute CLUSTER FORGET."""
        if node_id in self.disk.known:
            del self.disk.known[node_id]
            self.forgotten[node_id] = now_s + BLACKLIST_S


class Bus:
    """All processes and their communication."""

    def __init__(self) -> None:
        self.running: dict[str, BrokerProcess] = {}
        """Processes by pod."""
        self.no_seeds_until_s = 0.0
        """Until when the seeds do not resolve."""
        self.acknowledged: set[str] = set()

    def step(self, now_s: float, published: Mapping[str, bool]) -> None:
        """Advance by a second. `published` says which pods have a host name that resolves."""
        talking = [broker for broker in self.running.values() if broker.talks(now_s)]
        if now_s >= self.no_seeds_until_s:
            found = [broker for pod, broker in self.running.items() if published.get(pod) and broker in talking]
            for broker in talking:
                for other in found if broker.uses_seeds(now_s) else ():
                    if other is not broker and broker.connects_to(other):
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
                self._transfer(broker, by_id)
        self._repair(talking)
        for broker in self.running.values():
            if broker not in talking:
                broker.connected = set()

    def _repair(self, talking: list[BrokerProcess]) -> None:
        """Make lost copies again, a few per second."""
        staying = [broker for broker in talking if not broker.disk.leaving]
        for broker in staying:
            for job in self.short(broker)[:REPAIRED_PER_STEP]:
                for taker in [one for one in staying if job not in one.disk.jobs][:1]:
                    taker.disk.jobs[job] = broker.disk.jobs[job]

    def short(self, broker: BrokerProcess) -> list[str]:
        """Return the jobs of a broker that have too few copies, if other brokers could keep them."""
        reached = [one for one in self.running.values() if not one.cut_off]
        staying = sum(not one.disk.leaving for one in reached)
        held = {job: sum(job in one.disk.jobs for one in reached) for job in broker.disk.jobs}
        return [job for job, count in held.items() if count < min(broker.disk.jobs[job], staying)]

    @staticmethod
    def _links(broker: BrokerProcess, by_id: Mapping[str, BrokerProcess], now_s: float) -> None:
        broker.connected = {
            node_id for node_id in broker.disk.known if node_id in by_id and broker.connects_to(by_id[node_id])
        }
        for node_id in sorted(broker.connected):
            other = by_id[node_id]
            broker.contact_s[node_id] = now_s
            broker.disk.known[node_id] = other.host
            (broker.leaving_members.add if other.disk.leaving else broker.leaving_members.discard)(node_id)
            if broker.node_id not in other.disk.known:
                other.learn(broker, now_s)

    @staticmethod
    def _gossip(broker: BrokerProcess, by_id: Mapping[str, BrokerProcess], now_s: float) -> None:
        for node_id in sorted(broker.connected):
            for known, host in list(by_id[node_id].disk.known.items()):
                is_news = known != broker.node_id and known not in broker.disk.known
                if is_news and broker.forgotten.get(known, 0.0) <= now_s:
                    broker.disk.known[known] = host
                    broker.contact_s.setdefault(known, now_s)
                    if known in by_id[node_id].leaving_members:
                        broker.leaving_members.add(known)

    def _transfer(self, broker: BrokerProcess, by_id: Mapping[str, BrokerProcess]) -> None:
        receivers = [by_id[node_id] for node_id in sorted(broker.connected) if not by_id[node_id].disk.leaving]
        for number, job in enumerate(list(broker.disk.jobs)[:TRANSFERRED_PER_STEP]):
            others = [receiver for receiver in receivers if job not in receiver.disk.jobs]
            if not receivers:
                return
            if others:
                others[number % len(others)].disk.jobs[job] = broker.disk.jobs[job]
            del broker.disk.jobs[job]

    # --- clients ------------------------------------------------------------------------------------------------------

    def add(self, job: str, replicate: int, now_s: float, turn: int) -> bool:
        """Execute ADDJOB; return whether all copies were made."""
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
        """Execute ACKJOB on all reachable brokers. Other copies are deleted when their brokers are reachable again."""
        self.acknowledged.add(job)
        for broker in self.running.values():
            if broker.talks(now_s):
                broker.disk.jobs.pop(job, None)
