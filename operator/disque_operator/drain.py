"""Drains: a broker transfers its jobs before its pod is removed. CLUSTER LEAVING does the work; this decides when.

A drain has one of three purposes: a scale-down (`scale`), an annotation on the pod, or the replacement of a pod without
a volume (`rollout`). The broker itself reports how far it is, so every round can continue where the last one stopped:

| the broker | decision |
|---|---|
| stays, and too few members would remain for the highest REPLICATE | the drain is refused, with what to do |
| stays, and too few members would remain for the replicas of an ordered queue | the same |
| stays, and the disruption check fails | wait, with the reason |
| stays | CLUSTER LEAVING yes |
| is leaving | show the progress; after `drain.timeoutSeconds` apply the policy below |
| is leaving and done, without jobs and without replicas of ordered queues | the pod may be removed |
| does not answer | wait: it restarts with its file and continues to leave; the timeout includes this time |

When the timeout expires, `Wait` continues to wait and reports it, `Retain` removes the pod if its volume keeps the
jobs, and `Force` removes the pod if the annotation allows it.

A broker that leaves without a purpose (the spec changed, the annotation was removed, the pod was recreated) gets
CLUSTER LEAVING no, no matter who told it to leave.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from disque_operator import names
from disque_operator.actions import Command
from disque_operator.apivalues import Json, seconds, timestamp
from disque_operator.decisions import Decision, Note, problem
from disque_operator.disruption import Disruption, blocker
from disque_operator.members import ClusterView, Member
from disque_operator.observed import Leaving
from disque_operator.orderedstate import OrderedGroup

Ended = Literal["no", "done", "retained", "forced"]
_UNKNOWN: Final = -1


@dataclass(frozen=True)
class Outcome:
    """The state of the drain of a pod."""

    decision: Decision
    ended: Ended = "no"
    entry: Json | None = None
    """The field `drain` of the status."""


def advance(view: ClusterView, member: Member, *, keeps_volume: bool, permanent: bool = True) -> Outcome:
    """Decide the next step of a drain.

    Args:
        view: The cluster.
        member: The member to drain.
        keeps_volume: Whether a volume keeps the jobs that are not transferred.
        permanent: Whether the cluster will have one member less, so all copies must fit on the others.
    """
    broker = member.loaded
    leaving = broker.leaving if broker else None
    entry = _entry(view, member, leaving)
    begun = leaving is not None or _before(view, member) is not None
    if permanent and not begun and (refused := _refusal(view, member)):
        return Outcome(Decision(notes=(refused,)))
    if broker is not None and leaving is None:
        return _begin(view, member, broker.node_id, entry)
    if leaving is not None and leaving.done:
        return Outcome(Decision(disrupts=True), "done", entry)
    ended, late = _policy(view, member, entry, keeps_volume=keeps_volume)
    if ended != "no":
        return Outcome(Decision(disrupts=True), ended, entry)
    # A broker that does not answer must not block a replacement: it may need one. The disruption check sees it.
    return Outcome(Decision(notes=(_progress(member, leaving), *late), disrupts=leaving is not None), "no", entry)


def _refusal(view: ClusterView, member: Member) -> Note | None:
    """Return why a member must not leave, regardless of its state: too few would remain."""
    remaining = view.expected - 1
    replicate = max((broker.max_replicate for _, broker in view.loaded), default=1)
    minimum = max(view.spec.min_replicas, 1)
    if remaining < minimum:
        text = f"{member.name} is not drained: {remaining} members would remain, but spec.minReplicas is {minimum}"
    elif remaining < replicate:
        text = (
            f"{member.name} is not drained: jobs with REPLICATE {replicate} need as many members, {remaining} remain. "
            f"Finish or delete these jobs (kubectl disque jobs), or set spec.replicas to {replicate} or more"
        )
    elif most := max((one for one in view.ordered.queues.values() if _size(one) > remaining), default=None, key=_size):
        text = (
            f"{member.name} is not drained: ordered queue {most.queue} has {_size(most)} replicas and needs as many "
            f"members, {remaining} remain. Set spec.replicas to {_size(most)} or more"
        )
    else:
        return None
    return Note("Draining", "NotEnoughMembers", text, "Running", holds=False)


def _size(group: OrderedGroup) -> int:
    return len(group.replicas)


def _begin(view: ClusterView, member: Member, node_id: str, entry: Json) -> Outcome:
    reason = blocker(Disruption(view, member.name))
    if reason:
        text = f"the drain of {member.name} has to wait: {reason}"
        return Outcome(Decision(notes=(Note("Draining", "Waiting", text, "Healing", holds=False),)))
    command = Command(member.name, node_id, ("CLUSTER", "LEAVING", "yes"), "it is drained")
    return Outcome(Decision((command,), (_progress(member, None),), disrupts=True), "no", entry)


def _progress(member: Member, leaving: Leaving | None) -> Note:
    if leaving is not None and leaving.waits_for:
        return Note("Draining", "Stalled", f"{member.name} cannot transfer its jobs: {leaving.waits_for}", "Draining")
    if member.loaded is None:
        why = member.pod.trouble or ("it is loading its jobs" if member.broker is not None else member.unreachable)
        text = f"{member.name} cannot transfer its jobs: {why}"
        return Note("Draining", "MemberUnreachable", text, "Draining")
    return Note("Draining", "Transferring", f"{member.name} is transferring its jobs to the other members", "Draining")


def _policy(view: ClusterView, member: Member, entry: Json, *, keeps_volume: bool) -> tuple[Ended, tuple[Note, ...]]:
    """Apply `drain.onTimeout` if the timeout has expired."""
    policy = view.spec.drain
    if view.now_s - seconds(entry["startedAt"]) <= policy.timeout_s:
        return "no", ()
    if policy.on_timeout == "Retain" and keeps_volume:
        return "retained", ()
    if consents(view):
        return "forced", ()
    advice = {
        "Wait": "set spec.drain.onTimeout to Retain to stop the pod and keep these jobs on its volume",
        "Retain": "no volume would keep them, so the drain continues",
        "Force": f'the annotation {names.ALLOW_JOB_LOSS}: "true" is missing, so the drain continues',
    }
    text = f"{member.name} still has jobs after spec.drain.timeoutSeconds: {advice[policy.on_timeout]}"
    return "no", (problem("DrainOverdue", text),)


def consents(view: ClusterView) -> bool:
    """Return whether jobs may be lost: both the policy and the annotation allow it."""
    return view.spec.drain.on_timeout == "Force" and view.spec.annotations.get(names.ALLOW_JOB_LOSS) == "true"


def _before(view: ClusterView, member: Member) -> Json | None:
    """Return what the status says about this drain."""
    entry: Json | None = view.observed.status.get("drain")
    if not entry or entry.get("pod") != member.name:
        return None
    broker = member.loaded
    return entry if broker is None or entry.get("nodeId") in {broker.node_id, ""} else None


def _entry(view: ClusterView, member: Member, leaving: Leaving | None) -> Json:
    """Return `drain` of the status. It keeps the start time: a broker that restarts would count from zero."""
    before = _before(view, member)
    broker = member.loaded
    began_s = view.now_s - (leaving.seconds_elapsed if leaving else 0.0)
    if before is not None:
        began_s = min(began_s, seconds(before["startedAt"]))
    return {
        "pod": member.name,
        "nodeId": broker.node_id if broker else (before or {}).get("nodeId", ""),
        "jobsLeft": leaving.jobs_left if leaving else (before or {}).get("jobsLeft", _UNKNOWN),
        "orderedReplicasLeft": leaving.replicas_left if leaving else (before or {}).get("orderedReplicasLeft", 0),
        "rate": round(leaving.rate) if leaving else 0,
        "secondsLeft": round(leaving.seconds_left) if leaving else _UNKNOWN,
        "secondsElapsed": max(0, int(view.now_s - began_s)),
        "waitsFor": leaving.waits_for if leaving else "",
        "startedAt": timestamp(began_s),
    }


def annotated(view: ClusterView, *, busy: bool) -> Outcome:
    """Drain pods with the annotation names.DRAIN, one at a time. These pods are not removed."""
    waiting: Outcome | None = None
    for member in view.members:
        if not member.pod.drain or member.pod.terminating or member in view.surplus:
            continue
        broker = member.loaded
        if broker is not None and broker.leaving is not None and broker.leaving.done:
            text = f"{member.name} is drained, as requested by its annotation {names.DRAIN}"
            return Outcome(Decision(notes=(Note("Draining", "Drained", text, "Draining"),), disrupts=True))
        if broker is not None and (broker.leaving is not None or not busy):
            outcome = advance(view, member, keeps_volume=False)
            if outcome.decision.disrupts:
                return Outcome(outcome.decision, "no", outcome.entry)
            waiting = waiting or outcome
    return waiting or Outcome(Decision())


def cancel(view: ClusterView, purposes: Container[str]) -> Iterator[Command]:
    """Tell brokers to stay that are leaving without one of these purposes."""
    for member, broker in view.loaded:
        stays = member.pod.ordinal < view.expected and not member.pod.terminating
        if broker.leaving is not None and stays and member.name not in purposes:
            yield Command(member.name, broker.node_id, ("CLUSTER", "LEAVING", "no"), "its drain is cancelled")
