"""Members: pods, the brokers in them, and the node IDs that the brokers list.

If the broker of a pod answers, its node ID is certain. An ID that only other brokers list is assigned to a pod by its
announced host name. From this follows which IDs members may forget (`heal`):

| the pod of the ID | the ID |
|---|---|
| answers with this ID | is a member |
| answers with another ID | is stale: the volume is new |
| exists, but does not answer or is loading | is kept: a pod keeps its ID as long as its volume is the same |
| does not exist, but is expected | is kept: the pod returns with its volume |
| does not exist and is not expected | is stale |
| is unknown, because the host name is no pod's | is kept while the ID of any pod is unknown, otherwise stale |

An ID to which any broker is connected is alive, whatever the table says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from disque_operator import names
from disque_operator.observed import LOCKED, Broker, Observed, Peer, Pod, StatefulSet, Volume
from disque_operator.orderedstate import Ordered
from disque_operator.spec import Spec


@dataclass(frozen=True)
class Member:
    """A pod, and what is known about its broker."""

    pod: Pod
    broker: Broker | None
    """None if it did not answer."""
    unreachable: str
    """Why it did not answer."""

    @property
    def name(self) -> str:
        """Return the name of the pod."""
        return self.pod.name

    @property
    def loaded(self) -> Broker | None:
        """Return the broker if it has loaded its jobs and its node ID is known."""
        return self.broker if self.broker is not None and not self.broker.loading and self.broker.node_id else None

    @property
    def locked(self) -> bool:
        """Return whether the broker runs, but rejects all known passwords."""
        return self.unreachable == LOCKED


@dataclass(frozen=True)
class ListedMember:
    """A node ID, and what all brokers together report about it."""

    node_id: str
    ordinals: frozenset[int | None]
    """Ordinals of the pods with its host names; None for a host name that is no pod's."""
    known_by: tuple[str, ...]
    """Pods of the brokers that list it."""
    connected: bool
    leaving: bool
    silent_s: float
    """Seconds since any broker heard from it."""


class ClusterView:
    """A cluster at one moment, with the queries that all concerns share."""

    def __init__(self, spec: Spec, observed: Observed, now_s: float) -> None:
        self.spec = spec
        self.observed = observed
        self.now_s = now_s
        self.members: tuple[Member, ...] = tuple(
            Member(pod, observed.brokers.get(pod.name), observed.unreachable.get(pod.name, "no answer"))
            for pod in sorted(observed.pods, key=lambda pod: pod.ordinal)
        )
        self.by_ordinal: Mapping[int, Member] = {member.pod.ordinal: member for member in self.members}
        self.volumes: Mapping[int, Volume] = {volume.ordinal: volume for volume in observed.volumes}
        suffix = re.escape(f".{names.members_service(spec.name)}.{spec.namespace}.svc")
        self._pod_host = re.compile(rf"{re.escape(spec.name)}-(\d+){suffix}(\..*)?")

    @property
    def stateful_set(self) -> StatefulSet | None:
        """Return the StatefulSet; None if there is none."""
        return self.observed.stateful_set

    @property
    def expected(self) -> int:
        """Return the replicas of the StatefulSet."""
        return self.stateful_set.replicas if self.stateful_set else 0

    @property
    def reserved(self) -> int:
        """Return below which ordinal pods keep their node IDs, whether they exist at present or not."""
        hibernated_members = self.stateful_set.hibernated_members if self.stateful_set else 0
        return max(self.expected, hibernated_members)

    @cached_property
    def loaded(self) -> tuple[tuple[Member, Broker], ...]:
        """Return members whose broker answered and has loaded its jobs."""
        return tuple((member, broker) for member in self.members if (broker := member.loaded) is not None)

    @cached_property
    def ids(self) -> Mapping[str, tuple[str, ...]]:
        """Return the pods that answered with each node ID: one, unless a volume was copied."""
        found: dict[str, tuple[str, ...]] = {}
        for member, broker in self.loaded:
            found[broker.node_id] = (*found.get(broker.node_id, ()), member.name)
        return found

    @cached_property
    def ordered(self) -> Ordered:
        """Return the ordered queues, as the brokers that answer know them."""
        return Ordered({broker.node_id: broker.ordered for _, broker in self.loaded if broker.ordered is not None})

    def pod_of(self, node_id: str) -> str:
        """Return the pod of a member; the node ID itself if no pod has it, empty for an empty one."""
        silent = (pod for pod, remembered in self.remembered.items() if remembered == node_id)
        return next(iter(self.ids.get(node_id, ())), "") or next(silent, node_id)

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """Return the ordinals of expected pods that do not exist."""
        return tuple(ordinal for ordinal in range(self.expected) if ordinal not in self.by_ordinal)

    @cached_property
    def surplus(self) -> tuple[Member, ...]:
        """Return pods above the replicas of the StatefulSet, which its controller removes."""
        return tuple(member for member in self.members if member.pod.ordinal >= self.expected)

    def ordinal_of(self, host: str) -> int | None:
        """Return the ordinal in the host name of a pod; None for other names, and for addresses, which are reused."""
        match = self._pod_host.fullmatch(host)
        return int(match[1]) if match else None

    @cached_property
    def known(self) -> tuple[ListedMember, ...]:
        """Return all node IDs that brokers list for other members, sorted."""
        lines: dict[str, list[tuple[str, Peer]]] = {}
        for member, broker in self.loaded:
            for peer in broker.peers:
                lines.setdefault(peer.node_id, []).append((member.name, peer))
        return tuple(
            ListedMember(
                node_id,
                frozenset(self.ordinal_of(peer.host) for _, peer in entries),
                tuple(pod for pod, _ in entries),
                any(peer.connected for _, peer in entries),
                any(peer.leaving for _, peer in entries),
                min(peer.silent_s for _, peer in entries),
            )
            for node_id, entries in sorted(lines.items())
        )

    @cached_property
    def remembered(self) -> Mapping[str, str]:
        """Return the node IDs in the status for pods that exist but do not report theirs now."""
        reporting = {member.name for member, _ in self.loaded}
        silent = {member.name for member in self.members} - reporting
        return {
            str(entry["pod"]): str(entry["nodeId"])
            for entry in self.observed.status.get("members") or ()
            if entry.get("pod") in silent and entry.get("nodeId")
        }

    def is_stale(self, known: ListedMember) -> bool:
        """Return whether no pod has the ID or will return with it, by the table above."""
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
        """Return the IDs that brokers list and no pod has."""
        return tuple(known for known in self.known if self.is_stale(known))

    @cached_property
    def disconnected(self) -> tuple[tuple[Member, Member], ...]:
        """Return pairs of brokers that answer, the first of which has no connection to the second."""
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
        """Return whether every pod is a member, and every member lists exactly the members, all of them connected."""
        complete = not self.missing and not self.surplus and len(self.loaded) == len(self.members)
        no_others = all(known.node_id in self.ids for known in self.known)
        return (
            bool(self.members)
            and complete
            and no_others
            and not self.disconnected
            and len(self.ids) == len(self.members)
        )
