"""The disruption check: what must be healthy before a member may be taken out of service.

The check is a table that is evaluated in order; the first failure is the result. It runs before every disruption, that
is, before the drain of a member and the replacement of a pod. `safeToStop` of a member uses the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from disque_operator.members import ClusterView, Member

MOST_IN_FLIGHT: Final = 100
"""Jobs waiting for copies on a healthy member: each of many clients may have one in flight, without a reply so far.
More jobs than this wait for a slow member or link."""

REPAIR_STUCK_S: Final = 600.0
"""How long a repair may make no progress before disruptions stop to wait for it: it may be impossible, for example for
lack of memory, and a rollout may be what helps. `heal` reports it."""


@dataclass(frozen=True)
class Disruption:
    """A disruption that is about to happen."""

    view: ClusterView
    pod: str = ""
    """The pod that would go out of service; it may already be leaving."""
    soak_s: float = 0.0
    copies: bool = False
    """Whether jobs that wait for copies matter, as they do if the broker stops without transferring its jobs."""
    evicts: bool = False
    """Whether budgets of others matter, as they do if the pod is evicted."""
    locked: bool = False
    """Whether brokers that reject all passwords are tolerated. What they know about other members is then unknown."""

    @property
    def others(self) -> Iterator[Member]:
        """Return all members except the one that would go out of service."""
        return (member for member in self.view.members if member.name != self.pod)


def _named(members: Iterator[Member], what: str) -> str:
    found = [member.name for member in members]
    return f"{', '.join(found)} {what}" if found else ""


def _controller(disruption: Disruption) -> str:
    stateful_set = disruption.view.stateful_set
    if stateful_set is None:
        return "there is no StatefulSet"
    return "" if stateful_set.up_to_date else "the StatefulSet controller has not processed the last change yet"


def _missing(disruption: Disruption) -> str:
    missing = disruption.view.missing
    return f"{len(missing)} pods do not exist yet" if missing else ""


def _surplus(disruption: Disruption) -> str:
    return _named(iter(disruption.view.surplus), "is not removed yet")


def _terminating(disruption: Disruption) -> str:
    return _named((member for member in disruption.view.members if member.pod.terminating), "is stopping")


def _not_ready(disruption: Disruption) -> str:
    return _named(
        (member for member in disruption.others if not member.pod.ready and not _leaves(member)), "is not ready"
    )


def _leaves(member: Member) -> bool:
    return member.broker is not None and member.broker.leaving is not None


def _unreachable(disruption: Disruption) -> str:
    unreachable = (member for member in disruption.view.members if member.broker is None)
    return _named((member for member in unreachable if not (disruption.locked and member.locked)), "does not answer")


def _loading(disruption: Disruption) -> str:
    return _named(
        (member for member in disruption.view.members if member.broker is not None and member.loaded is None),
        "is loading its jobs",
    )


def _leaving(disruption: Disruption) -> str:
    return _named((member for member in disruption.others if _leaves(member)), "is transferring its jobs")


def _refusing(disruption: Disruption) -> str:
    return _named(
        (member for member in disruption.others if member.broker is not None and member.broker.refusing),
        "accepts no new jobs because of its disk",
    )


def _duplicate_ids(disruption: Disruption) -> str:
    duplicates = [pods for pods in disruption.view.ids.values() if len(pods) > 1]
    return f"{' and '.join(duplicates[0])} have the same node ID: was a volume copied?" if duplicates else ""


def _links(disruption: Disruption) -> str:
    disconnected = disruption.view.disconnected
    return (
        f"{disconnected[0][0].name} is not connected to {disconnected[0][1].name}"
        if disconnected and not disruption.locked
        else ""
    )


def _unknown_members(disruption: Disruption) -> str:
    view = disruption.view
    lost = any(known.node_id not in view.ids for known in view.known)
    return "a removed member is not forgotten yet" if lost and not disruption.locked else ""


def _copies(disruption: Disruption) -> str:
    waiting = (
        member
        for member in disruption.view.members
        if member.broker and member.broker.waiting_for_copies > MOST_IN_FLIGHT
    )
    return _named(waiting, "has jobs waiting for copies") if disruption.copies else ""


def _majorities(disruption: Disruption) -> str:
    """Return an ordered queue that would not be served without the member. One of fewer than 3 replicas never is.

    While a queue gets other replicas, the replicas that the catalog names are not those that vote.
    """
    view = disruption.view
    leaves = {broker.node_id for member, broker in view.loaded if member.name == disruption.pod}
    serving = {
        broker.node_id
        for member, broker in view.loaded
        if member.pod.ready and not member.pod.terminating and broker.ordered is not None and not broker.ordered.error
    }
    for group in () if disruption.locked else view.ordered.groups:
        affected = bool(leaves & set(group.replicas)) and len(group.replicas) > 2
        what = f"the ordered queue {group.queue}" if group.queue else "the catalog of ordered queues"
        if not group.settled:
            return f"{what} gets other replicas"
        if affected and not group.leader:
            return f"{what} has no leader"
        if affected and 2 * len((serving - leaves) & set(group.replicas)) <= len(group.replicas):
            return f"{what} would lose its majority"
    return ""


def _repairs(disruption: Disruption) -> str:
    return _named(
        (member for member in disruption.view.members if repairs(member) and not repair_stuck(member)),
        "is making lost copies of jobs again",
    )


def repairs(member: Member) -> bool:
    """Return whether jobs of a member have fewer copies than they should, and others could keep them."""
    broker = member.broker
    return broker is not None and broker.leaving is None and bool(broker.repairs)


def repair_stuck(member: Member) -> bool:
    """Return whether a member makes no progress with the copies of its jobs."""
    return repairs(member) and member.broker is not None and member.broker.repair_stuck_s >= REPAIR_STUCK_S


def _budgets(disruption: Disruption) -> str:
    """Return a budget of others that would refuse the eviction of a pod that serves."""
    served = any(member.name == disruption.pod and member.pod.ready for member in disruption.view.members)
    spent = [budget.name for budget in disruption.view.observed.foreign_budgets if budget.allowed < 1]
    return f"PodDisruptionBudget {spent[0]} allows no disruption" if disruption.evicts and served and spent else ""


def _soak(disruption: Disruption) -> str:
    soaking = (member for member in disruption.others if member.pod.ready_for_s < disruption.soak_s)
    return _named((member for member in soaking if not _leaves(member)), "has just become ready")


_CHECKS: Final[tuple[Callable[[Disruption], str], ...]] = (
    _controller,
    _missing,
    _surplus,
    _terminating,
    _duplicate_ids,
    _unreachable,
    _loading,
    _not_ready,
    _leaving,
    _refusing,
    _links,
    _unknown_members,
    _copies,
    _repairs,
    _majorities,
    _budgets,
    _soak,
)


def blocker(disruption: Disruption) -> str:
    """Return why the disruption must wait; empty if it may happen."""
    return next((reason for check in _CHECKS if (reason := check(disruption))), "")


def safe_to_stop(view: ClusterView, member: Member) -> bool:
    """Return whether this pod can restart without delaying any job, like `GET /stopz`."""
    broker = member.loaded
    if broker is None:
        return False
    if broker.leaving is not None and broker.leaving.done:
        return True
    return len(view.members) > 1 and not blocker(Disruption(view, member.name, copies=True))
