"""A model of ordered queues: a catalog that is founded once, groups with replicas on brokers, and their leaders.

All brokers agree on one state, as Raft makes them. A group is led by the first of its replicas that can be reached,
while a majority can. A broker that leaves hands over one replica per second. Replicas on nodes that nobody knows any
more move to other nodes. A disk knows the catalog when its broker has been told, so lost disks lose it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from disque_operator.brokers import CommandFailedError
from disque_operator.orderedstate import UNKNOWN_JOBS, OrderedGroup, OrderedStatus
from support.kubeworld.brokers import BrokerProcess, Bus
from support.kubeworld.objects import InvariantError

MOVE_S = 3.0
"""How long the move of a replica takes."""


@dataclass
class Group:
    """A group of replicas."""

    name: str
    replicas: list[str]
    single: bool = False
    prefetch: int = 0
    pause: str = "none"
    jobs: int = 0
    moves: list[tuple[float, str, str]] = field(default_factory=list)
    """Moves in progress: when they end, from which node, to which."""


class OrderedModel:
    """The ordered queues of a cluster."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.catalog = ""
        self.founded = 0
        """How often a catalog was founded."""
        self.members = Group("", [])
        self.queues: dict[str, Group] = {}
        self._version = 1

    @property
    def _groups(self) -> Iterator[Group]:
        yield self.members
        yield from self.queues.values()

    def _talking(self, now_s: float) -> dict[str, BrokerProcess]:
        return {broker.node_id: broker for broker in self._bus.running.values() if broker.talks(now_s)}

    def leader(self, group: Group, now_s: float) -> str:
        """Return the node ID of the leader of a group; empty without a majority."""
        there = [node_id for node_id in group.replicas if node_id in self._talking(now_s)]
        return there[0] if 2 * len(there) > len(group.replicas) else ""

    def replicas_on(self, node_id: str) -> list[Group]:
        """Return the groups that have a replica on a node."""
        return [group for group in self._groups if node_id in group.replicas]

    def step(self, now_s: float) -> None:
        """Advance by a second."""
        talking = self._talking(now_s)
        knowing = {node_id for node_id, broker in talking.items() if broker.disk.catalog}
        for broker in talking.values():
            if broker.connected & knowing:
                broker.disk.catalog = self.catalog
        known = set(talking).union(*(broker.disk.known for broker in self._bus.running.values()))
        for group in self._groups:
            self._repair(group, known, now_s)
        for broker in talking.values():
            if broker.disk.leaving:
                self._hand_over(broker.node_id, now_s)

    def _repair(self, group: Group, known: set[str], now_s: float) -> None:
        """Move replicas from nodes that are no members any more."""
        if not self.leader(group, now_s):
            return
        for ends_s, one, other in group.moves:
            if ends_s <= now_s:
                self._replace(group, one, other)
        group.moves = [move for move in group.moves if move[0] > now_s and move[2] in self._talking(now_s)]
        lost = [node_id for node_id in group.replicas if node_id not in known]
        free = [node_id for node_id in self._talking(now_s) if node_id not in group.replicas]
        if lost and free and not group.moves:
            group.moves.append((now_s + MOVE_S, lost[0], min(free, key=lambda one: len(self.replicas_on(one)))))

    def _replace(self, group: Group, one: str, other: str) -> None:
        if one in group.replicas and other not in group.replicas:
            group.replicas[group.replicas.index(one)] = other
            self._version += 1

    def _hand_over(self, node_id: str, now_s: float) -> None:
        for group in self.replicas_on(node_id)[:1]:
            if not self.leader(group, now_s):
                return
            staying = [one for one, broker in self._talking(now_s).items() if not broker.disk.leaving]
            free = [one for one in staying if one not in group.replicas]
            if free:
                self._replace(group, node_id, min(free, key=lambda one: len(self.replicas_on(one))))
            elif group is self.members:
                group.replicas.remove(node_id)
                self._version += 1

    def status_of(self, broker: BrokerProcess, now_s: float) -> OrderedStatus:
        """Return the reply of a broker to CLUSTER ORDERED STATUS."""
        if not broker.disk.catalog:
            return OrderedStatus()
        shown = {name: self._shown(group, broker.node_id, now_s) for name, group in self.queues.items()}
        members = self._shown(self.members, broker.node_id, now_s)
        return OrderedStatus(broker.disk.catalog, self._version, members=members, queues=shown)

    def _shown(self, group: Group, node_id: str, now_s: float) -> OrderedGroup:
        here = node_id in group.replicas
        return OrderedGroup(
            group.name,
            self.leader(group, now_s) if here else "",
            tuple(group.replicas),
            not group.moves,
            group.single,
            group.prefetch,
            group.pause if here else "",
            group.jobs if here else UNKNOWN_JOBS,
        )

    def check_stop(self, node_id: str, now_s: float) -> None:
        """Check that stopping a broker costs no group of three or more replicas its majority."""
        talking = self._talking(now_s).keys() - {node_id}
        for group in self.replicas_on(node_id):
            left = len(talking & set(group.replicas))
            if len(group.replicas) > 2 and self.leader(group, now_s) and 2 * left <= len(group.replicas):
                raise InvariantError(f"stopping {node_id} costs {group.name or 'the catalog'} its majority")

    # --- commands -----------------------------------------------------------------------------------------------------

    def execute(self, words: tuple[str, ...], now_s: float) -> bool:
        """Execute a command about ordered queues; return whether it is one."""
        match words:
            case ("CLUSTER", "ORDERED", "INIT", *nodes):
                self._found(nodes, now_s)
            case ("QNEW", name, "ORDERED", "REPLICAS", count, *options):
                self._new(name, int(count), options, now_s)
            case ("QDROP", name, *force):
                if self.queues[name].jobs and not force:
                    raise CommandFailedError(f"ERR queue {name} has unfinished jobs")
                del self.queues[name]
                self._version += 1
            case ("PAUSE", name, pause) if name in self.queues:
                self.queues[name].pause = pause
            case _:
                return False
        return True

    def _found(self, nodes: list[str], now_s: float) -> None:
        talking = self._talking(now_s)
        if any(broker.disk.catalog for broker in talking.values()):
            raise CommandFailedError("EXISTS the cluster has a catalog of ordered queues already")
        if self.founded:
            raise InvariantError("a second catalog is founded")
        self.founded += 1
        self.catalog = "c1"
        self.members.replicas = nodes
        for node_id in nodes:
            talking[node_id].disk.catalog = self.catalog

    def _new(self, name: str, count: int, options: list[str], now_s: float) -> None:
        free = sorted(one for one, broker in self._talking(now_s).items() if not broker.disk.leaving)
        if name in self.queues or len(free) < count or not self.leader(self.members, now_s):
            raise CommandFailedError(f"ERR queue {name} cannot be made")
        prefetch = int(options[options.index("PREFETCH") + 1]) if "PREFETCH" in options else 0
        chosen = sorted(free, key=lambda one: len(self.replicas_on(one)))[:count]
        self.queues[name] = Group(name, chosen, "SINGLE" in options, prefetch)
        self._version += 1
