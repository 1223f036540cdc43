"""The gate: what has to be well before a node may be taken out of service.

One table, looked through in order; the first thing that is not well is the answer. It is asked before each step that
disrupts: the drain of a node, the replacement of a pod. The same table is what `safeToStop` of a member says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from disque_operator.members import Member, View

UNDER_WAY: Final = 100
"""Jobs that wait for copies on a node that is well: each of many clients has one on its way at any moment. None of them
was answered yet. More than these wait for a node or a link that is slow."""


@dataclass(frozen=True)
class Question:
    """What is asked, of the cluster but for one pod."""

    view: View
    apart: str = ""
    """The pod that is to go: it may be leaving."""
    soak_s: float = 0.0
    copies: bool = False
    """Whether jobs that wait for copies matter: they do where a node stops without handing over."""
    locked: bool = False
    """Whether brokers may be locked: what they would say of others is not asked then."""

    @property
    def others(self) -> Iterator[Member]:
        """All pods but the one that is to go."""
        return (member for member in self.view.members if member.name != self.apart)


def _named(members: Iterator[Member], what: str) -> str:
    found = [member.name for member in members]
    return f"{', '.join(found)} {what}" if found else ""


def _controller(question: Question) -> str:
    stateful_set = question.view.stateful_set
    if stateful_set is None:
        return "there is no StatefulSet"
    return "" if stateful_set.up_to_date else "the StatefulSet's controller has not seen the last change yet"


def _missing(question: Question) -> str:
    missing = question.view.missing
    return f"{len(missing)} pods do not exist yet" if missing else ""


def _surplus(question: Question) -> str:
    return _named(iter(question.view.surplus), "has not gone yet")


def _terminating(question: Question) -> str:
    return _named((member for member in question.view.members if member.pod.terminating), "is being stopped")


def _not_ready(question: Question) -> str:
    return _named(
        (member for member in question.others if not member.pod.ready and not _leaves(member)), "is not ready"
    )


def _leaves(member: Member) -> bool:
    return member.node is not None and member.node.leaving is not None


def _silent(question: Question) -> str:
    silent = (member for member in question.view.members if member.node is None)
    return _named((member for member in silent if not (question.locked and member.locked)), "does not answer")


def _loading(question: Question) -> str:
    return _named(
        (member for member in question.view.members if member.node is not None and member.loaded is None),
        "is loading its jobs",
    )


def _leaving(question: Question) -> str:
    return _named((member for member in question.others if _leaves(member)), "is handing its jobs over")


def _refusing(question: Question) -> str:
    return _named(
        (member for member in question.others if member.node is not None and member.node.refusing),
        "takes no new jobs because of its disk",
    )


def _doubles(question: Question) -> str:
    doubles = [pods for pods in question.view.ids.values() if len(pods) > 1]
    return f"{' and '.join(doubles[0])} have the same node ID: was a volume copied?" if doubles else ""


def _links(question: Question) -> str:
    apart = question.view.apart
    return f"{apart[0][0].name} is not connected with {apart[0][1].name}" if apart and not question.locked else ""


def _strangers(question: Question) -> str:
    view = question.view
    lost = any(known.node_id not in view.ids for known in view.known)
    return "a node that is gone is not forgotten yet" if lost and not question.locked else ""


def _copies(question: Question) -> str:
    waiting = (member for member in question.view.members if member.node and member.node.waiting_for_copies > UNDER_WAY)
    return _named(waiting, "has jobs that wait for copies") if question.copies else ""


def _soak(question: Question) -> str:
    soaking = (member for member in question.others if member.pod.ready_for_s < question.soak_s)
    return _named((member for member in soaking if not _leaves(member)), "has just become ready")


_CHECKS: Final[tuple[Callable[[Question], str], ...]] = (
    _controller,
    _missing,
    _surplus,
    _terminating,
    _doubles,
    _silent,
    _loading,
    _not_ready,
    _leaving,
    _refusing,
    _links,
    _strangers,
    _copies,
    _soak,
)


def closed(question: Question) -> str:
    """Why no node may be taken out of service; empty when one may."""
    return next((said for check in _CHECKS if (said := check(question))), "")


def safe_to_stop(view: View, member: Member) -> bool:
    """Whether this pod can be stopped and come back without anybody waiting for its jobs, as `GET /stopz` says."""
    node = member.loaded
    if node is None:
        return False
    if node.leaving is not None and node.leaving.done:
        return True
    return len(view.members) > 1 and not closed(Question(view, member.name, copies=True))
