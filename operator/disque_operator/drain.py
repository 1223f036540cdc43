"""Drain: a node hands its jobs over before its pod goes. CLUSTER LEAVING does the work; here is when, and what if not.

A drain serves one of three purposes: a shrink (`scale`), an annotation on the pod, or the replacement of a pod that has
no volume to come back with (`rollout`). What a node is doing is asked of the node, so whoever looks next goes on:

| the node | the answer |
|---|---|
| stays, and too few would remain for the highest REPLICATE | refused, with what to do |
| stays, and the gate is closed | waits, with the reason |
| stays | CLUSTER LEAVING yes |
| leaves | its progress; after `drain.timeoutSeconds` the policy below |
| leaves and is done | the pod may go |
| does not answer | waits: it comes back with its file and goes on leaving; the time runs |

When the time is over: `Wait` waits on and says so. `Handoff` lets the pod go with its jobs on its volume, if it has one
that stays. `Force` lets it go, with the annotation that consents.

A node that leaves for no purpose any more (the spec changed, the annotation went, it came back from a former life) is
told CLUSTER LEAVING no, whoever told it to leave.
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

Ended = Literal["no", "done", "handoff", "forced"]
_UNKNOWN: Final = -1


@dataclass(frozen=True)
class Outcome:
    """How the drain of a pod stands."""

    decision: Decision
    ended: Ended = "no"
    entry: Json | None = None
    """`drain` of the status."""


def advance(view: ClusterView, member: Member, *, keeps_volume: bool, for_good: bool = True) -> Outcome:
    """Bring a drain on by one step.

    Args:
        view: The cluster.
        member: Who is to have no jobs.
        keeps_volume: What is not handed over would stay on a volume.
        for_good: There will be one member less, so that all jobs have to find their copies without it.
    """
    broker = member.loaded
    leaving = broker.leaving if broker else None
    entry = _entry(view, member, leaving)
    begun = leaving is not None or _before(view, member) is not None
    if for_good and not begun and (refused := _refusal(view, member)):
        return Outcome(Decision(notes=(refused,)))
    if broker is not None and leaving is None:
        return _begin(view, member, broker.node_id, entry)
    if leaving is not None and leaving.done:
        return Outcome(Decision(disrupts=True), "done", entry)
    ended, late = _policy(view, member, entry, keeps_volume=keeps_volume)
    if ended != "no":
        return Outcome(Decision(disrupts=True), ended, entry)
    # One that does not answer keeps nobody back: it may need a replacement itself, and the gate sees it anyway.
    return Outcome(Decision(notes=(_progress(member, leaving), *late), disrupts=leaving is not None), "no", entry)


def _refusal(view: ClusterView, member: Member) -> Note | None:
    """Why a node may not leave, whatever its state: too few would remain."""
    remaining = view.expected - 1
    replicate = max((broker.max_replicate for _, broker in view.loaded), default=1)
    minimum = max(view.spec.min_replicas, 1)
    if remaining < minimum:
        text = f"{member.name} stays: {remaining} members would remain, and spec.minReplicas is {minimum}"
    elif remaining < replicate:
        text = (
            f"{member.name} stays: jobs with REPLICATE {replicate} need as many members, {remaining} would remain. "
            f"Have these jobs done or deleted first (kubectl disque jobs), or set spec.replicas to {replicate} or more"
        )
    else:
        return None
    return Note("Draining", "NotEnoughMembers", text, "Running", holds=False)


def _begin(view: ClusterView, member: Member, node_id: str, entry: Json) -> Outcome:
    reason = blocker(Disruption(view, member.name))
    if reason:
        text = f"{member.name} is to hand its jobs over, and waits: {reason}"
        return Outcome(Decision(notes=(Note("Draining", "Waiting", text, "Healing", holds=False),)))
    command = Command(member.name, node_id, ("CLUSTER", "LEAVING", "yes"), "its pod is to go")
    return Outcome(Decision((command,), (_progress(member, None),), disrupts=True), "no", entry)


def _progress(member: Member, leaving: Leaving | None) -> Note:
    if leaving is not None and leaving.waits_for:
        return Note("Draining", "Stalled", f"{member.name} keeps jobs: {leaving.waits_for}", "Draining")
    if member.loaded is None:
        why = member.pod.trouble or ("it loads its jobs" if member.broker is not None else member.unreachable)
        text = f"{member.name} is to hand its jobs over and can not: {why}"
        return Note("Draining", "MemberUnreachable", text, "Draining")
    return Note("Draining", "HandingOver", f"{member.name} hands its jobs over to the others", "Draining")


def _policy(view: ClusterView, member: Member, entry: Json, *, keeps_volume: bool) -> tuple[Ended, tuple[Note, ...]]:
    """What `drain.onTimeout` says when the time is over."""
    policy = view.spec.drain
    if view.now_s - seconds(entry["startedAt"]) <= policy.timeout_s:
        return "no", ()
    if policy.on_timeout == "Handoff" and keeps_volume:
        return "handoff", ()
    if consents(view):
        return "forced", ()
    advice = {
        "Wait": "set spec.drain.onTimeout to Handoff to have it stopped with these jobs on its volume",
        "Handoff": "there is no volume that would keep them, so it goes on",
        "Force": f'the annotation {names.ALLOW_JOB_LOSS}: "true" is missing, so it goes on',
    }
    text = f"{member.name} still has jobs after spec.drain.timeoutSeconds: {advice[policy.on_timeout]}"
    return "no", (problem("DrainOverdue", text),)


def consents(view: ClusterView) -> bool:
    """Whether jobs may be lost: the policy says so, and the annotation."""
    return view.spec.drain.on_timeout == "Force" and view.spec.annotations.get(names.ALLOW_JOB_LOSS) == "true"


def _before(view: ClusterView, member: Member) -> Json | None:
    """What the status has of this drain."""
    entry: Json | None = view.observed.status.get("drain")
    if not entry or entry.get("pod") != member.name:
        return None
    broker = member.loaded
    return entry if broker is None or entry.get("nodeId") in {broker.node_id, ""} else None


def _entry(view: ClusterView, member: Member, leaving: Leaving | None) -> Json:
    """`drain` of the status. When it began stays: a node that restarts counts anew."""
    before = _before(view, member)
    broker = member.loaded
    began_s = view.now_s - (leaving.seconds_elapsed if leaving else 0.0)
    if before is not None:
        began_s = min(began_s, seconds(before["startedAt"]))
    return {
        "pod": member.name,
        "nodeId": broker.node_id if broker else (before or {}).get("nodeId", ""),
        "jobsLeft": leaving.jobs_left if leaving else (before or {}).get("jobsLeft", _UNKNOWN),
        "rate": round(leaving.rate) if leaving else 0,
        "secondsLeft": round(leaving.seconds_left) if leaving else _UNKNOWN,
        "secondsElapsed": max(0, int(view.now_s - began_s)),
        "waitsFor": leaving.waits_for if leaving else "",
        "startedAt": timestamp(began_s),
    }


def annotated(view: ClusterView, *, busy: bool) -> Outcome:
    """Pods that somebody wants empty for a while; they are not deleted on that account. One at a time."""
    waiting: Outcome | None = None
    for member in view.members:
        if not member.pod.drain or member.pod.terminating or member in view.surplus:
            continue
        broker = member.loaded
        if broker is not None and broker.leaving is not None and broker.leaving.done:
            text = f"{member.name} has handed all its jobs over and rests, as its annotation {names.DRAIN} says"
            return Outcome(Decision(notes=(Note("Draining", "Drained", text, "Draining"),), disrupts=True))
        if broker is not None and (broker.leaving is not None or not busy):
            outcome = advance(view, member, keeps_volume=False)
            if outcome.decision.disrupts:
                return Outcome(outcome.decision, "no", outcome.entry)
            waiting = waiting or outcome
    return waiting or Outcome(Decision())


def cancel(view: ClusterView, purposes: Container[str]) -> Iterator[Command]:
    """Nodes that leave and are not among the pods that are to."""
    for member, broker in view.loaded:
        stays = member.pod.ordinal < view.expected and not member.pod.terminating
        if broker.leaving is not None and stays and member.name not in purposes:
            yield Command(member.name, broker.node_id, ("CLUSTER", "LEAVING", "no"), "its pod is to stay")
