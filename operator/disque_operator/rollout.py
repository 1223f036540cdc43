"""Roll-out: pods that are to be made anew, one at a time, the highest ordinal first.

| the pod | is replaced |
|---|---|
| was made from another template than the StatefulSet's | when the gate is open: a controlled restart on its volume |
| the same, and it does not serve (it was broken) | at once: nothing is lost by it, and it may be what closes the gate |
| has no volume (`ephemeral`), or one that is being deleted | after a drain: it comes back as another node |
| takes no password that is known | as the first, looking at what Kubernetes says: nobody can ask the nodes |
| the same, and it is not ready after a minute | at once: it serves nobody, and others wait for it to be ready |

A replaced pod that does not come back closes the gate, so nothing more happens: the others serve on, and the condition
says why and what the image before was. The roll-out goes on by itself as soon as the gate opens, or takes the new
template when the spec changes.

A node alone that has no volume can not hand its jobs over: it is replaced when it has none, or with the consent that
`onTimeout: Force` needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from disque_operator import drain
from disque_operator.actions import DeletePod
from disque_operator.decisions import Decision, Note, problem, progress
from disque_operator.disruption import Disruption, blocker
from disque_operator.drain import Outcome
from disque_operator.members import ClusterView, Member

LOCKED_S: Final = 60.0
"""One that takes no password may still become ready; a Secret as it was before wants another start."""
_ADVICE: Final[Mapping[bool, str]] = {
    True: "it is restarted and reads the one in the Secret then",
    False: "its jobs would be lost with it. Delete the pod if they may be, or wait for their copies to be done",
}
"""For pods that take no password, by whether they come back with their jobs."""


@dataclass(frozen=True)
class Replacement:
    """A pod that is to be made anew."""

    member: Member
    why: str
    drained: bool
    """It has to hand its jobs over first."""


def due(view: ClusterView) -> tuple[Replacement, ...]:
    """All of them, the highest ordinal first; before these the locked ones, of which others' gates would be closed."""
    return tuple(sorted(_due(view), key=lambda due: (due.member.locked, due.member.pod.ordinal), reverse=True))


def _due(view: ClusterView) -> Iterator[Replacement]:
    stateful_set = view.stateful_set
    if stateful_set is None or not stateful_set.up_to_date:
        return
    for member in view.members:
        pod = member.pod
        comes_back = _comes_back(view, member)
        if pod.terminating or pod.ordinal >= view.expected or (member.locked and not comes_back):
            continue
        if pod.revision != stateful_set.revision:
            yield Replacement(member, "it was made from another template", drained=not comes_back)
        elif member.locked and view.observed.passwords is not None:
            yield Replacement(member, "it takes no password that is known", drained=False)
        elif not comes_back and not view.spec.storage.ephemeral:
            yield Replacement(member, "its volume claim is being deleted", drained=True)


def _comes_back(view: ClusterView, member: Member) -> bool:
    """Whether the pod that takes its place has the same jobs. One that has not, and can not be told to, stays."""
    volume = view.volumes.get(member.pod.ordinal)
    return not view.spec.storage.ephemeral and (volume is None or not volume.terminating)


def drained_first(view: ClusterView) -> frozenset[str]:
    """Pods that have a purpose to leave."""
    return frozenset(due.member.name for due in due(view) if due.drained)


def decide(view: ClusterView, *, busy: bool) -> Outcome:
    """What comes next. `busy`: another concern takes a node out of service."""
    replacements = due(view)
    notes = tuple(_locked_out(view)) + tuple(_failed(view, replacements))
    if not replacements:
        return Outcome(Decision(notes=notes))
    broken = next((due for due in replacements if _is_broken(view, due)), None)
    if broken is not None:
        done = progress("RollingOut", f"{broken.member.name} does not serve and is replaced", "Upgrading")
        return Outcome(Decision((_delete(broken),), (*notes, done), disrupts=True))
    outcome = _next(view, _chosen(replacements), len(replacements), busy=busy)
    return Outcome(
        Decision(outcome.decision.actions, (*notes, *outcome.decision.notes), outcome.decision.disrupts),
        "no",
        outcome.entry,
    )


def _chosen(replacements: tuple[Replacement, ...]) -> Replacement:
    """The one that leaves already, or the highest."""
    leaving = (due for due in replacements if due.drained and due.member.broker and due.member.broker.leaving)
    return next(leaving, replacements[0])


def _next(view: ClusterView, due: Replacement, left: int, *, busy: bool) -> Outcome:
    """The replacement of a pod that serves."""
    member = due.member
    remaining = f"{left} of {view.expected} pods are to be replaced, next {member.name} ({due.why})"
    if busy:
        return Outcome(Decision(notes=(progress("RollingOut", f"{remaining}; another node is leaving", "Upgrading"),)))
    if due.drained and view.expected > 1:
        return _drained(view, due, remaining)
    if due.drained and _keeps_jobs(view, due):
        text = f"{member.name} is to be replaced ({due.why}) and has jobs, no volume, and no member to hand them to"
        advice = "Set spec.replicas to 2 for the time of this, or have the jobs done"
        return Outcome(Decision(notes=(problem("SingleMember", f"{text}. {advice}"),)))
    reason = blocker(Disruption(view, member.name, soak_s=view.spec.upgrade.soak_s, copies=True, locked=member.locked))
    if reason:
        return Outcome(Decision(notes=(progress("RollingOut", f"{remaining}; waits: {reason}", "Upgrading"),)))
    return Outcome(Decision((_delete(due),), (progress("RollingOut", remaining, "Upgrading"),), disrupts=True))


def _drained(view: ClusterView, due: Replacement, remaining: str) -> Outcome:
    """A pod that comes back as another node."""
    outcome = drain.advance(view, due.member, keeps_volume=False, for_good=False)
    notes = (progress("RollingOut", remaining, "Upgrading"), *outcome.decision.notes)
    if outcome.ended == "no":
        return Outcome(Decision(outcome.decision.actions, notes, outcome.decision.disrupts), "no", outcome.entry)
    reason = blocker(Disruption(view, due.member.name, soak_s=view.spec.upgrade.soak_s))
    if reason:
        waits = progress("RollingOut", f"{remaining}; waits: {reason}", "Upgrading")
        return Outcome(Decision(notes=(waits,), disrupts=True), "no", outcome.entry)
    return Outcome(Decision((_delete(due),), notes, disrupts=True), "no", outcome.entry)


def _keeps_jobs(view: ClusterView, due: Replacement) -> bool:
    """Whether a node alone without a volume may not be stopped."""
    broker = due.member.broker
    return (broker is None or broker.jobs > 0) and not drain.consents(view)


def _is_broken(view: ClusterView, due: Replacement) -> bool:
    """Whether the pod does not serve, so that its replacement takes nothing from anybody."""
    member, pod = due.member, due.member.pod
    if pod.ready or member.broker is not None or any(one.pod.terminating for one in view.members):
        return False
    if member.locked:
        return pod.age_s >= LOCKED_S
    return not due.drained or pod.phase == "Pending" or (bool(pod.trouble) and pod.restarts > 0)


def _delete(due: Replacement) -> DeletePod:
    return DeletePod(due.member.name, due.member.pod.uid, due.why)


def replaced_already(view: ClusterView) -> tuple[Member, ...]:
    """Pods that are as the StatefulSet would make them now."""
    stateful_set = view.stateful_set
    revision = stateful_set.revision if stateful_set else ""
    return tuple(member for member in view.members if member.pod.revision == revision)


def _failed(view: ClusterView, replacements: tuple[Replacement, ...]) -> Iterator[Note]:
    """New pods that are not well after their time, while there are older ones that wait for them."""
    if not replacements:
        return
    for member in replaced_already(view):
        pod = member.pod
        if pod.ready or pod.terminating or not (pod.trouble or pod.age_s > view.spec.upgrade.timeout_s):
            continue
        former = view.observed.status.get("formerImage")
        back = f", or set spec.image back to {former}" if former else ""
        yield problem(
            "UpgradeFailed",
            f"{member.name} was replaced and is not ready ({pod.trouble or member.unreachable}), so the rollout has "
            f"stopped. Correct the spec{back}",
        )


def _locked_out(view: ClusterView) -> Iterator[Note]:
    for comes_back, advice in _ADVICE.items():
        locked = [one.name for one in view.members if one.locked and _comes_back(view, one) == comes_back]
        if locked:
            yield problem("PasswordUnknown", f"{', '.join(locked)} takes no password that is known: {advice}")
