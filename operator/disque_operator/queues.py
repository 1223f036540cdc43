"""Queues: the settings of the DisqueQueues of a cluster, on all its brokers.

The pause is set on each broker with PAUSE. The settings that members share are set with QCONF, on one broker that
differs.

| observed | decision |
|---|---|
| a broker that answers has another pause, `onDrift: Restore` | set it |
| a broker that answers has other settings than the resource, if that has any | set and remove them on the first one |
| a broker does not know QCONF | not Ready: MembersTooOld |
| the queue is ordered | `orderedqueues`; its pause is set at its leader, for all members at once |
| the spec changed, and not all members have had the new settings at once | set them |
| a broker has another setting afterwards, `onDrift: Report` | say so in the condition Drifted |
| the resource is deleted | `declared`, with PAUSE none, and without its settings |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from disque_operator import declared, orderedqueues
from disque_operator.actions import Action, Command
from disque_operator.decisions import NOTHING, Decision
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
    made: Decision = NOTHING
    """Ordered queues that are made or dropped, which a mistake of a user can make fail for long."""


def decide(view: ClusterView) -> QueueDecision:
    """Decide the next step for queues."""
    counted, others = declared.named(view.observed.queues, QueueFields, "queue_name")
    commands: list[Action] = []
    statuses: list[Action] = []
    made: list[Action] = []
    for queue in counted:
        made += orderedqueues.creation(view, queue)
        obstacle = orderedqueues.obstacle(view, queue)
        there = queue.fields.type == "jobs" or queue.name in view.ordered.queues
        different = list(_different(view, queue.name, queue.fields.pause.lower())) if there else []
        applied = int(queue.status.get("appliedGeneration") or 0)
        is_applied = applied == queue.generation
        wanted = queue.fields.settings.values if queue.fields.settings is not None and there else None
        differing = _other_settings(view, queue.name, wanted)
        old = _without_settings(view, queue.name) if wanted else []
        if not different and not differing and not old and obstacle is None and _all_answer(view):
            applied, is_applied = queue.generation, True
        if not is_applied or queue.fields.on_drift == "Restore":
            commands += _set(differing[:1], queue.name, wanted or {})
            commands += [
                _pause(pod, broker, queue.name, queue.fields.pause.lower(), "it differs from its DisqueQueue")
                for pod, broker in different
            ]
        drifted = {pod for pod, _ in (*different, *differing)}
        ready = obstacle or _ready(view, old, is_applied=is_applied)
        verdicts = {"Ready": ready, "Drifted": _drifted(sorted(drifted))}
        more = {"queueName": queue.name, "appliedGeneration": applied, **orderedqueues.place(view, queue.name)}
        statuses += declared.status_of(view, queue.declared, verdicts, more)
    for other, verdict in others:
        statuses += declared.status_of(view, other, {"Ready": verdict}, {})
    present = {queue.name: str(queue.metadata["uid"]) for queue in counted}
    paused = {name for _, broker in view.loaded for name, pause in broker.pauses.items() if pause != _RUNNING}
    set_somewhere = paused | {name for _, broker in view.loaded for name, found in broker.settings.items() if found}
    set_somewhere |= {name for name, entry in view.observed.kept_queues.items() if _exists(view, name, entry)}
    gone = dict(declared.without_resources(view, view.observed.kept_queues, present, set_somewhere))
    for name in sorted(gone):
        if view.observed.kept_queues[name].removed_at:
            made += orderedqueues.removal(view, name, gone[name])
            if gone[name].has_settings:
                commands += _set(_other_settings(view, name, {})[:1], name, {})
            commands += [
                _pause(pod, broker, name, _RUNNING, "its DisqueQueue was deleted")
                for pod, broker in _different(view, name, _RUNNING)
            ]
    kept = {
        queue.name: Kept(
            str(queue.metadata["uid"]),
            queue.fields.deletion_policy == "Retain",
            has_settings=queue.fields.settings is not None,
            ordered=queue.fields.type == "ordered",
            drops_jobs=queue.fields.delete_jobs,
        )
        for queue in counted
    }
    return QueueDecision(kept | gone, Decision((*commands, *statuses)), Decision(tuple(made)))


def _exists(view: ClusterView, name: str, entry: Kept) -> bool:
    """Return whether an ordered queue is still in the catalog."""
    return entry.ordered and name in view.ordered.queues


def _different(view: ClusterView, queue: str, pause: str) -> Iterator[tuple[str, Broker]]:
    ordered = view.ordered.queues.get(queue)
    if ordered is not None:
        yield from orderedqueues.leading(view, queue) if ordered.pause != pause else ()
        return
    for member, broker in view.loaded:
        if not member.pod.terminating and broker.pauses.get(queue, pause) != pause:
            yield member.name, broker


def _other_settings(view: ClusterView, queue: str, wanted: Mapping[str, str] | None) -> list[tuple[str, Broker]]:
    """Return the brokers with other settings; none if the resource has no settings."""
    if wanted is None:
        return []
    return [
        (member.name, broker)
        for member, broker in view.loaded
        if not member.pod.terminating and broker.settings.get(queue, wanted) != wanted
    ]


def _without_settings(view: ClusterView, queue: str) -> list[str]:
    """Return the pods whose brokers do not know QCONF."""
    return [member.name for member, broker in view.loaded if queue not in broker.settings]


def _set(pods: Sequence[tuple[str, Broker]], queue: str, wanted: Mapping[str, str]) -> Iterator[Command]:
    """Yield the commands that give a queue exactly these settings; the broker tells the other members."""
    for pod, broker in pods:
        found = broker.settings[queue]
        changed = {name: value for name, value in wanted.items() if found.get(name) != value}
        removed = [name for name in found if name not in wanted]
        why = f"queue {queue}: its settings differ from its DisqueQueue"
        if changed:
            words = tuple(word for pair in changed.items() for word in pair)
            yield Command(pod, broker.node_id, ("QCONF", queue, "SET", *words), why)
        if removed:
            yield Command(pod, broker.node_id, ("QCONF", queue, "UNSET", *removed), why)


def _pause(pod: str, broker: Broker, queue: str, pause: str, why: str) -> Command:
    return Command(pod, broker.node_id, ("PAUSE", queue, pause), f"queue {queue}: {why}")


def _all_answer(view: ClusterView) -> bool:
    return bool(view.loaded) and not view.missing and len(view.loaded) == len(view.members)


def _ready(view: ClusterView, old: Sequence[str], *, is_applied: bool) -> Verdict:
    if old:
        text = f"these members do not know QCONF, and ignore the settings: {', '.join(sorted(old))}"
        return Verdict(False, "MembersTooOld", text)
    if is_applied:
        return Verdict(True, "Applied", "all members have had the settings")
    if not view.loaded:
        return Verdict(False, "NoMembers", "no member of the cluster answers")
    return Verdict(False, "Applying", "the settings are set on the members of the cluster")


def _drifted(pods: list[str]) -> Verdict:
    if not pods:
        return Verdict(False, "InSync", "every member that answers has the settings")
    return Verdict(True, "OtherSettings", f"other settings on {', '.join(sorted(pods))}")
