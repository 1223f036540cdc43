"""Queues: the settings of the DisqueQueues of a cluster, on all its brokers.

The only setting of a queue is its pause. A further one is a field of `queuespec` and a row of the differences here.

| observed | decision |
|---|---|
| a broker that answers has another setting, `onDrift: Restore` | set it |
| the spec changed, and not all members have had the new settings at once | set them |
| a broker has another setting afterwards, `onDrift: Report` | say so in the condition Drifted |
| the resource is deleted | `declared`, with PAUSE none |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from disque_operator import declared
from disque_operator.actions import Action, Command
from disque_operator.decisions import Decision
from disque_operator.declared import Verdict
from disque_operator.members import ClusterView
from disque_operator.observed import Broker, Kept
from disque_operator.queuespec import QueueFields

_RUNNING: Final = "none"


@dataclass(frozen=True)
class QueueDecision:
    """What the Secret of the cluster keeps about queues, and what to do."""

    kept: dict[str, Kept]
    decision: Decision


def decide(view: ClusterView) -> QueueDecision:
    """Decide the next step for queues."""
    counted, others = declared.named(view.observed.queues, QueueFields, "queue_name")
    commands: list[Action] = []
    statuses: list[Action] = []
    for queue in counted:
        different = list(_different(view, queue.name, queue.fields.pause.lower()))
        applied = int(queue.status.get("appliedGeneration") or 0)
        is_applied = applied == queue.generation
        if not different and _all_answer(view):
            applied, is_applied = queue.generation, True
        if not is_applied or queue.fields.on_drift == "Restore":
            commands += [
                _pause(pod, broker, queue.name, queue.fields.pause.lower(), "it differs from its DisqueQueue")
                for pod, broker in different
            ]
        verdicts = {"Ready": _ready(view, is_applied=is_applied), "Drifted": _drifted([pod for pod, _ in different])}
        more = {"queueName": queue.name, "appliedGeneration": applied}
        statuses += declared.status_of(view, queue.declared, verdicts, more)
    for other, verdict in others:
        statuses += declared.status_of(view, other, {"Ready": verdict}, {})
    present = {queue.name: str(queue.metadata["uid"]) for queue in counted}
    paused = {name for _, broker in view.loaded for name, pause in broker.pauses.items() if pause != _RUNNING}
    gone = dict(declared.without_resources(view, view.observed.kept_queues, present, paused))
    for name in sorted(gone):
        if view.observed.kept_queues[name].removed_at:
            commands += [
                _pause(pod, broker, name, _RUNNING, "its DisqueQueue was deleted")
                for pod, broker in _different(view, name, _RUNNING)
            ]
    kept = {queue.name: Kept(str(queue.metadata["uid"]), queue.fields.deletion_policy == "Retain") for queue in counted}
    return QueueDecision(kept | gone, Decision((*commands, *statuses)))


def _different(view: ClusterView, queue: str, pause: str) -> Iterator[tuple[str, Broker]]:
    for member, broker in view.loaded:
        if not member.pod.terminating and broker.pauses.get(queue, pause) != pause:
            yield member.name, broker


def _pause(pod: str, broker: Broker, queue: str, pause: str, why: str) -> Command:
    return Command(pod, broker.node_id, ("PAUSE", queue, pause), f"queue {queue}: {why}")


def _all_answer(view: ClusterView) -> bool:
    return bool(view.loaded) and not view.missing and len(view.loaded) == len(view.members)


def _ready(view: ClusterView, *, is_applied: bool) -> Verdict:
    if is_applied:
        return Verdict(True, "Applied", "all members have had the settings")
    if not view.loaded:
        return Verdict(False, "NoMembers", "no member of the cluster answers")
    return Verdict(False, "Applying", "the settings are set on the members of the cluster")


def _drifted(pods: list[str]) -> Verdict:
    if not pods:
        return Verdict(False, "InSync", "every member that answers has the settings")
    return Verdict(True, "OtherSettings", f"other settings on {', '.join(sorted(pods))}")
