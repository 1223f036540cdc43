"""Who is who: pods, the brokers in them, and the IDs that the brokers know of each other.

A pod's broker is the one that answered in it; its ID is certain then. The IDs that only peers speak of are given to
pods by the name that they announced. Rules for those, from which `heal` decides what may be forgotten:

| the ID's pod | the ID is |
|---|---|
| answers, with this ID | a member |
| answers, with another ID | stale: the volume is new |
| exists and does not answer, or loads | kept: a pod keeps its ID as long as its volume is the same |
| does not exist, but is to exist | kept: it comes back with its volume |
| does not exist and is not to | stale |
| can not be told from its name | kept while the ID of any pod is unknown, stale otherwise |

Whatever a table says: an ID that anybody is connected with is alive.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from disque_operator import names
from disque_operator.observed import LOCKED, Broker, Observed, Peer, Pod, StatefulSet, Volume
from disque_operator.spec import Spec


@dataclass(frozen=True)
class Member:
    """A pod, and what is known of the broker in it."""

    pod: Pod
    broker: Broker | None
    """None: it did not answer."""
    unreachable: str
    """Why not."""

    @property
    def name(self) -> str:
        """The pod's."""
        return self.pod.name

    @property
    def loaded(self) -> Broker | None:
        """The broker, when it has its jobs and knows who it is."""
        return self.broker if self.broker is not None and not self.broker.loading and self.broker.node_id else None

    @property
    def locked(self) -> bool:
        """Whether it runs, and takes no password that is known."""
        return self.unreachable == LOCKED


@dataclass(frozen=True)
class ListedMember:
    """An ID, and what all brokers together say of it."""

    node_id: str
    ordinals: frozenset[int | None]
    """Of the pods that its names lead to; None for a name that leads to none."""
    known_by: tuple[str, ...]
    """Pods of brokers that list it."""
    connected: bool
    leaving: bool
    silent_s: float
    """Since anybody heard of it."""


class ClusterView:
    """The cluster at one moment, with the questions that all concerns ask."""

    def __init__(self, spec: Spec, observed: Observed, now_s: float) -> None:
        self.spec = spec
        self.observed = observed
        self.now_s = now_s
        self.members: tuple[Member, ...] = tuple(
            Member(pod, observed.brokers.get(pod.name), observed.unreachable.get(pod.name, "it does not answer"))
            for pod in sorted(observed.pods, key=lambda pod: pod.ordinal)
        )
        self.by_ordinal: Mapping[int, Member] = {member.pod.ordinal: member for member in self.members}
        self.volumes: Mapping[int, Volume] = {volume.ordinal: volume for volume in observed.volumes}
        suffix = re.escape(f".{names.members_service(spec.name)}.{spec.namespace}.svc")
        self._pod_host = re.compile(rf"{re.escape(spec.name)}-(\d+){suffix}(\..*)?")

    @property
    def stateful_set(self) -> StatefulSet | None:
        """The StatefulSet, if there is one."""
        return self.observed.stateful_set

    @property
    def expected(self) -> int:
        """How many pods there are to be now, by the StatefulSet."""
        return self.stateful_set.replicas if self.stateful_set else 0

    @property
    def reserved(self) -> int:
        """Pods below this ordinal keep their IDs, whether they exist at the moment or not."""
        hibernated_members = self.stateful_set.hibernated_members if self.stateful_set else 0
        return max(self.expected, hibernated_members)

    @cached_property
    def loaded(self) -> tuple[tuple[Member, Broker], ...]:
        """Members whose broker answered and has its jobs."""
        return tuple((member, broker) for member in self.members if (broker := member.loaded) is not None)

    @cached_property
    def ids(self) -> Mapping[str, tuple[str, ...]]:
        """The pods that answered with each ID: one, but for copied volumes."""
        found: dict[str, tuple[str, ...]] = {}
        for member, broker in self.loaded:
            found[broker.node_id] = (*found.get(broker.node_id, ()), member.name)
        return found

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """Ordinals whose pod is to exist and does not."""
        return tuple(ordinal for ordinal in range(self.expected) if ordinal not in self.by_ordinal)

    @cached_property
    def surplus(self) -> tuple[Member, ...]:
        """Pods that are to go: the StatefulSet does not count them any more."""
        return tuple(member for member in self.members if member.pod.ordinal >= self.expected)

    def ordinal_of(self, host: str) -> int | None:
        """The ordinal in a pod's name; None for any other name and for addresses, which pods take over from others."""
        match = self._pod_host.fullmatch(host)
        return int(match[1]) if match else None

    @cached_property
    def known(self) -> tuple[ListedMember, ...]:
        """All IDs that brokers list as others', by ID."""
        lines: dict[str, list[tuple[str, Peer]]] = {}
        for member, broker in self.loaded:
            for peer in broker.peers:
                lines.setdefault(peer.node_id, []).append((member.name, peer))
        return tuple(
            ListedMember(
                node_id,
                frozenset(self.ordinal_of(peer.host) for _, peer in said),
                tuple(pod for pod, _ in said),
                any(peer.connected for _, peer in said),
                any(peer.leaving for _, peer in said),
                min(peer.silent_s for _, peer in said),
            )
            for node_id, said in sorted(lines.items())
        )

    @cached_property
    def remembered(self) -> Mapping[str, str]:
        """The IDs that the status has for pods that exist and do not tell theirs now."""
        told = {member.name for member, _ in self.loaded}
        exist = {member.name for member in self.members} - told
        return {
            str(entry["pod"]): str(entry["nodeId"])
            for entry in self.observed.status.get("members") or ()
            if entry.get("pod") in exist and entry.get("nodeId")
        }

    def is_stale(self, known: ListedMember) -> bool:
        """Whether no pod has the ID, or will come back with it: the table above."""
        if known.node_id in self.ids or known.connected or known.node_id in self.remembered.values():
            return False
        return all(self._has_no_pod(ordinal) for ordinal in known.ordinals)

    def _has_no_pod(self, ordinal: int | None) -> bool:
        if ordinal is None:
            return not self.missing and len(self.loaded) == len(self.members)
        member = self.by_ordinal.get(ordinal)
        if member is None:
            return ordinal >= self.reserved
        return member.loaded is not None

    @cached_property
    def stale(self) -> tuple[ListedMember, ...]:
        """IDs that are members by the brokers' word, and by nothing else."""
        return tuple(known for known in self.known if self.is_stale(known))

    @cached_property
    def disconnected(self) -> tuple[tuple[Member, Member], ...]:
        """Pairs of brokers that answer, of which the first has no connection to the second."""
        links = {
            member.name: {peer.node_id for peer in broker.peers if peer.connected} for member, broker in self.loaded
        }
        return tuple(
            (one, other)
            for one, _ in self.loaded
            for other, broker in self.loaded
            if one is not other and broker.node_id not in links[one.name]
        )

    @property
    def formed(self) -> bool:
        """Whether every pod is a member, and every member lists every member as connected and nobody else."""
        everybody = not self.missing and not self.surplus and len(self.loaded) == len(self.members)
        alone = all(known.node_id in self.ids for known in self.known)
        return (
            bool(self.members) and everybody and alone and not self.disconnected and len(self.ids) == len(self.members)
        )
