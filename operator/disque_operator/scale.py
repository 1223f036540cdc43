"""Scaling: how many replicas the StatefulSet should have now.

| observed | `replicas` becomes |
|---|---|
| no StatefulSet | the number in the spec, or more if there are pods or claims with jobs, which are then drained |
| `hibernate` | 0, with the number of members in an annotation; all pods shut down in order |
| hibernated, or set to 0 by somebody | the number of members; a smaller number in the spec is a scale-down after that |
| fewer than the spec | the number in the spec, up to the first pod whose claim is being deleted |
| more than the spec | one less, after the highest pod is drained (`drain`); then the next |

A scale-down never goes below `minReplicas`. A pod that never was a member (it could not be scheduled, or its image
could not be pulled) is removed without a drain. No state is kept between rounds: the highest pod and its broker show
how far a scale-down is. So the spec may change at any time, and the next round acts on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from disque_operator import claims, drain, names
from disque_operator.apivalues import Json
from disque_operator.decisions import NOTHING, Decision, Note, progress
from disque_operator.members import ClusterView, Member


@dataclass(frozen=True)
class Size:
    """The number of replicas, and what to do for it."""

    replicas: int
    hibernated_members: int = 0
    decision: Decision = NOTHING
    victim: int | None = None
    """The ordinal that a scale-down removes next."""
    drained: int | None = None
    """The same ordinal, if its broker has transferred all jobs."""
    entry: Json | None = None
    """The field `drain` of the status."""


def decide(view: ClusterView) -> Size:
    """Decide the number of replicas."""
    spec = view.spec
    stateful_set = view.stateful_set
    if spec.hibernate:
        return _hibernate(view)
    if stateful_set is None:
        return Size(_found(view), decision=Decision(notes=(progress("Creating", "creating the cluster", "Creating"),)))
    if stateful_set.replicas == 0:
        resumed = stateful_set.hibernated_members or _found(view)
        return Size(resumed, decision=Decision(notes=(progress("Waking", f"starting {resumed} members", "Creating"),)))
    if stateful_set.replicas < spec.replicas:
        return _scale_up(view)
    if stateful_set.replicas > spec.replicas:
        return _scale_down(view)
    return Size(stateful_set.replicas, decision=Decision(notes=tuple(_stopping(view))))


def _stopping(view: ClusterView) -> Iterator[Note]:
    """Report pods above the replicas, which the controller removes."""
    if view.surplus:
        gone = ", ".join(one.name for one in view.surplus)
        yield Note("Draining", "PodStopping", f"{gone} is stopping", "Draining")


def _found(view: ClusterView) -> int:
    """Return the members of a cluster without a StatefulSet, by its pods and claims."""
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
            Decision(notes=(progress("Hibernating", "all members are stopping", "Hibernating"),)),
        )
    text = (
        f"{hibernated_members} members are stopped, their jobs are on their volumes; unset spec.hibernate to start them"
    )
    return Size(
        0, hibernated_members, Decision(notes=(Note("Progressing", "Hibernated", text, "Hibernated", holds=False),))
    )


def _scale_up(view: ClusterView) -> Size:
    """Add pods, but none whose claim is being deleted, because it would use that claim."""
    deleting = [volume.ordinal for volume in view.observed.volumes if volume.terminating]
    blocked = min((ordinal for ordinal in deleting if ordinal >= view.expected), default=view.spec.replicas)
    replicas = min(view.spec.replicas, blocked)
    text = f"scaling up to {view.spec.replicas} members"
    if replicas == view.expected:
        text = f"waiting until claim {names.volume_claim(view.spec.name, replicas)} is deleted before creating its pod"
    return Size(replicas, decision=Decision(notes=(progress("Growing", text, "Growing"),)))


def _scale_down(view: ClusterView) -> Size:
    """Remove the highest pod, if possible."""
    here = view.expected
    if here <= max(view.spec.min_replicas, 1):
        text = f"spec.minReplicas is {view.spec.min_replicas}: lower it, or raise spec.replicas to it"
        return Size(here, decision=Decision(notes=(Note("Draining", "BelowMinimum", text, "Running", holds=False),)))
    victim = here - 1
    member = view.by_ordinal.get(victim)
    if view.surplus:
        return Size(here, decision=Decision(notes=tuple(_stopping(view)), disrupts=True), victim=victim)
    if _is_unused(view, victim, member):
        return _lowered(victim, "it never was a member")
    if member is None or member.pod.terminating:
        text = f"waiting for {names.pod(view.spec.name, victim)} to be ready, so that it can transfer its jobs"
        return Size(
            here, decision=Decision(notes=(Note("Draining", "Waiting", text, "Healing", holds=False),)), victim=victim
        )
    return _drain(view, victim, member)


def _drain(view: ClusterView, victim: int, member: Member) -> Size:
    outcome = drain.advance(view, member, keeps_volume=_keeps_volume(view, victim))
    if outcome.ended == "no":
        return Size(view.expected, decision=outcome.decision, victim=victim, entry=outcome.entry)
    if outcome.ended == "retained":
        return _lowered(victim, "its volume keeps the remaining jobs", outcome.entry)
    broker = member.loaded
    marks = claims.marking(view, victim, broker.node_id if broker else "forced")
    if marks:
        note = Note("Draining", "Drained", f"{member.name} has no jobs left and will be stopped", "Draining")
        return Size(view.expected, 0, Decision(marks, (note,), disrupts=True), victim, victim, outcome.entry)
    return _lowered(victim, "it has no jobs left", outcome.entry)


def _lowered(victim: int, why: str, entry: Json | None = None) -> Size:
    note = Note("Draining", "PodStopping", f"removing pod {victim}: {why}", "Draining")
    return Size(victim, decision=Decision(notes=(note,), disrupts=True), victim=victim, drained=victim, entry=entry)


def _keeps_volume(view: ClusterView, ordinal: int) -> bool:
    volume = view.volumes.get(ordinal)
    return not view.spec.storage.ephemeral and volume is not None and not volume.terminating


def _is_unused(view: ClusterView, ordinal: int, member: Member | None) -> bool:
    """Return whether the pod never was a member: it does not run, and has no volume or no broker lists it."""
    if member is not None and (member.broker is not None or member.pod.phase != "Pending"):
        return False
    if any(known.ordinals & {ordinal, None} and known.node_id not in view.ids for known in view.known):
        return False
    volume = view.volumes.get(ordinal)
    if not view.spec.storage.ephemeral and (volume is None or not volume.bound):
        return True
    others = [one for one in view.members if one.pod.ordinal != ordinal]
    return bool(others) and all(one.loaded is not None for one in others)
