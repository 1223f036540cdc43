"""Scale: how many pods the StatefulSet is to have now.

| what is seen | `replicas` becomes |
|---|---|
| no StatefulSet | what the spec says; more when pods or claims with jobs are there: these are drained then |
| `hibernate` | 0, with the number of members as an annotation; all pods end by a controlled shutdown |
| asleep, or lowered to 0 by somebody | the number of members at once; a smaller spec is a shrink after that |
| fewer than the spec says | that number, as far as no claim of these pods is being deleted |
| more than the spec says | one less, when the highest pod has nothing to lose (`drain`); then the next |

Never fewer by a shrink than `minReplicas`. A pod that never was a member (it could not be scheduled, or its image not
be pulled) goes without a drain. Nothing is remembered: the highest pod and the state of its node say how far it is, so
another number at any moment, also a larger one, only changes what the next round does.
"""

from __future__ import annotations

from dataclasses import dataclass

from disque_operator import claims, drain, names
from disque_operator.apivalues import Json
from disque_operator.decisions import NOTHING, Decision, Note, progress
from disque_operator.members import ClusterView, Member


@dataclass(frozen=True)
class Size:
    """How many, and what has to be done for it."""

    replicas: int
    hibernated_members: int = 0
    decision: Decision = NOTHING
    victim: int | None = None
    """The ordinal that a shrink is to take away now."""
    drained: int | None = None
    """The same, when its node has nothing left."""
    entry: Json | None = None
    """`drain` of the status."""


def decide(view: ClusterView) -> Size:
    """How many pods there are to be."""
    spec = view.spec
    stateful_set = view.stateful_set
    if spec.hibernate:
        return _hibernate(view)
    if stateful_set is None:
        return Size(_found(view), decision=Decision(notes=(progress("Creating", "the cluster is made", "Creating"),)))
    if stateful_set.replicas == 0:
        woken = stateful_set.hibernated_members or _found(view)
        return Size(woken, decision=Decision(notes=(progress("Waking", f"{woken} members are started", "Creating"),)))
    if stateful_set.replicas < spec.replicas:
        return _grow(view)
    if stateful_set.replicas > spec.replicas:
        return _shrink(view)
    return Size(stateful_set.replicas)


def _found(view: ClusterView) -> int:
    """The members of a cluster without a StatefulSet: pods and claims that are there count."""
    pods = (member.pod.ordinal + 1 for member in view.members)
    volumes = (volume.ordinal + 1 for volume in view.observed.volumes if not volume.terminating and not volume.drained)
    return max(view.spec.replicas, *pods, *volumes, 1)


def _hibernate(view: ClusterView) -> Size:
    stateful_set = view.stateful_set
    hibernated_members = _found(view)
    if stateful_set is not None:
        hibernated_members = stateful_set.replicas or stateful_set.hibernated_members or hibernated_members
    if view.members:
        return Size(
            0,
            hibernated_members,
            Decision(notes=(progress("Hibernating", "all members are being stopped", "Hibernating"),)),
        )
    text = (
        f"{hibernated_members} members rest with their jobs on their volumes; set spec.hibernate to false to wake them"
    )
    return Size(
        0, hibernated_members, Decision(notes=(Note("Progressing", "Hibernated", text, "Hibernated", holds=False),))
    )


def _grow(view: ClusterView) -> Size:
    """Pods whose claim is being deleted would be given it."""
    going = [volume.ordinal for volume in view.observed.volumes if volume.terminating]
    blocked = min((ordinal for ordinal in going if ordinal >= view.expected), default=view.spec.replicas)
    replicas = min(view.spec.replicas, blocked)
    text = f"pods are added until there are {view.spec.replicas}"
    if replicas == view.expected:
        text = f"the claim {names.volume_claim(view.spec.name, replicas)} has to be gone before its pod is made"
    return Size(replicas, decision=Decision(notes=(progress("Growing", text, "Growing"),)))


def _shrink(view: ClusterView) -> Size:
    """One less, if that may be."""
    here = view.expected
    if here <= max(view.spec.min_replicas, 1):
        text = f"spec.minReplicas is {view.spec.min_replicas}: lower it, or set spec.replicas to it"
        return Size(here, decision=Decision(notes=(Note("Draining", "BelowMinimum", text, "Running", holds=False),)))
    victim = here - 1
    member = view.by_ordinal.get(victim)
    if view.surplus:
        gone = ", ".join(one.name for one in view.surplus)
        note = Note("Draining", "PodStopping", f"{gone} is being stopped", "Draining")
        return Size(here, decision=Decision(notes=(note,), disrupts=True), victim=victim)
    if _is_unused(view, victim, member):
        return _lowered(victim, "it never was a member")
    if member is None or member.pod.terminating:
        text = f"{names.pod(view.spec.name, victim)} is to hand its jobs over when it is back"
        return Size(
            here, decision=Decision(notes=(Note("Draining", "Waiting", text, "Healing", holds=False),)), victim=victim
        )
    return _drain(view, victim, member)


def _drain(view: ClusterView, victim: int, member: Member) -> Size:
    outcome = drain.advance(view, member, keeps_volume=_keeps_volume(view, victim))
    if outcome.ended == "no":
        return Size(view.expected, decision=outcome.decision, victim=victim, entry=outcome.entry)
    if outcome.ended == "handoff":
        return _lowered(victim, "its volume keeps the jobs that are left", outcome.entry)
    broker = member.loaded
    marks = claims.marking(view, victim, broker.node_id if broker else "forced")
    if marks:
        note = Note("Draining", "Drained", f"{member.name} has no jobs left and is to be stopped", "Draining")
        return Size(view.expected, 0, Decision(marks, (note,), disrupts=True), victim, victim, outcome.entry)
    return _lowered(victim, "it has no jobs left", outcome.entry)


def _lowered(victim: int, why: str, entry: Json | None = None) -> Size:
    note = Note("Draining", "PodStopping", f"pod {victim} goes: {why}", "Draining")
    return Size(victim, decision=Decision(notes=(note,), disrupts=True), victim=victim, drained=victim, entry=entry)


def _keeps_volume(view: ClusterView, ordinal: int) -> bool:
    volume = view.volumes.get(ordinal)
    return not view.spec.storage.ephemeral and volume is not None and not volume.terminating


def _is_unused(view: ClusterView, ordinal: int, member: Member | None) -> bool:
    """Whether the pod never was a member: it does not run, and there is no volume or nobody knows of it."""
    if member is not None and (member.broker is not None or member.pod.phase != "Pending"):
        return False
    if any(known.ordinals & {ordinal, None} and known.node_id not in view.ids for known in view.known):
        return False
    volume = view.volumes.get(ordinal)
    if not view.spec.storage.ephemeral and (volume is None or not volume.bound):
        return True
    others = [one for one in view.members if one.pod.ordinal != ordinal]
    return bool(others) and all(one.loaded is not None for one in others)
