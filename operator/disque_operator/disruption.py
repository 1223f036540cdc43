"""The gate: what has to be well before a node may be taken out of service.

One table, looked through in order; the first thing that is not well is the answer. It is asked before each step that
disrupts: the drain of a node, the replacement of a pod. The same table is what `safeToStop` of a member says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from disque_operator.members import ClusterView, Member

MOST_IN_FLIGHT: Final = 100
"""Jobs that wait for copies on a node that is well: each of many clients has one on its way at any moment. None of them
was answered yet. More than these wait for a node or a link that is slow."""


@dataclass(frozen=True)
class Disruption:
    """What is asked, of the cluster but for one pod."""

    view: ClusterView
    disconnected: str = ""
    """The pod that is to go: it may be leaving."""
    soak_s: float = 0.0
    copies: bool = False
    """Whether jobs that wait for copies matter: they do where a node stops without handing over."""
    locked: bool = False
    """Whether brokers may be locked: what they would say of others is not asked then."""

    @property
    def others(self) -> Iterator[Member]:
        """All pods but the one that is to go."""
        return (member for member in self.view.members if member.name != self.disconnected)


def _named(members: Iterator[Member], what: str) -> str:
    found = [member.name for member in members]
    return f"{', '.join(found)} {what}" if found else ""


def _controller(disruption: Disruption) -> str:
    stateful_set = disruption.view.stateful_set
    if stateful_set is None:
        return "there is no StatefulSet"
    return "" if stateful_set.up_to_date else "the StatefulSet's controller has not seen the last change yet"


def _missing(disruption: Disruption) -> str:
    missing = disruption.view.missing
    return f"{len(missing)} pods do not exist yet" if missing else ""


def _surplus(disruption: Disruption) -> str:
    return _named(iter(disruption.view.surplus), "has not gone yet")


def _terminating(disruption: Disruption) -> str:
    return _named((member for member in disruption.view.members if member.pod.terminating), "is being stopped")


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
    return _named((member for member in disruption.others if _leaves(member)), "is handing its jobs over")


def _refusing(disruption: Disruption) -> str:
    return _named(
        (member for member in disruption.others if member.broker is not None and member.broker.refusing),
        "takes no new jobs because of its disk",
    )


def _doubles(disruption: Disruption) -> str:
    doubles = [pods for pods in disruption.view.ids.values() if len(pods) > 1]
    return f"{' and '.join(doubles[0])} have the same node ID: was a volume copied?" if doubles else ""


def _links(disruption: Disruption) -> str:
    disconnected = disruption.view.disconnected
    return (
        f"{disconnected[0][0].name} is not connected with {disconnected[0][1].name}"
        if disconnected and not disruption.locked
        else ""
    )


def _unknown_members(disruption: Disruption) -> str:
    view = disruption.view
    lost = any(known.node_id not in view.ids for known in view.known)
    return "a node that is gone is not forgotten yet" if lost and not disruption.locked else ""


def _copies(disruption: Disruption) -> str:
    waiting = (
        member
        for member in disruption.view.members
        if member.broker and member.broker.waiting_for_copies > MOST_IN_FLIGHT
    )
    return _named(waiting, "has jobs that wait for copies") if disruption.copies else ""


def _soak(disruption: Disruption) -> str:
    soaking = (member for member in disruption.others if member.pod.ready_for_s < disruption.soak_s)
    return _named((member for member in soaking if not _leaves(member)), "has just become ready")


_CHECKS: Final[tuple[Callable[[Disruption], str], ...]] = (
    _controller,
    _missing,
    _surplus,
    _terminating,
    _doubles,
    _unreachable,
    _loading,
    _not_ready,
    _leaving,
    _refusing,
    _links,
    _unknown_members,
    _copies,
    _soak,
)


def blocker(disruption: Disruption) -> str:
    """Why no node may be taken out of service; empty when one may."""
    return next((said for check in _CHECKS if (said := check(disruption))), "")


def safe_to_stop(view: ClusterView, member: Member) -> bool:
    """Whether this pod can be stopped and come back without anybody waiting for its jobs, as `GET /stopz` says."""
    broker = member.loaded
    if broker is None:
        return False
    if broker.leaving is not None and broker.leaving.done:
        return True
    return len(view.members) > 1 and not blocker(Disruption(view, member.name, copies=True))
