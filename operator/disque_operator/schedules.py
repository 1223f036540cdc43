"""Schedules: the DisqueSchedules of a cluster. Members share schedules, so one broker that differs is enough.

| observed | decision |
|---|---|
| a broker has another schedule than the resource, or none | SCHEDULE SET on the first one, then PAUSE or RESUME |
| a broker does not know SCHEDULE | not Ready: MembersTooOld |
| all members have the schedule | Ready |
| the resource is deleted | `declared`, with SCHEDULE DEL |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from disque_operator import declared
from disque_operator.actions import Action, Command
from disque_operator.decisions import Decision
from disque_operator.declared import Verdict
from disque_operator.members import ClusterView
from disque_operator.observed import Broker, Kept
from disque_operator.schedulespec import ScheduleFields


@dataclass(frozen=True)
class ScheduleDecision:
    """What the Secret of the cluster keeps about schedules, and what to do."""

    kept: dict[str, Kept]
    decision: Decision


def decide(view: ClusterView) -> ScheduleDecision:
    """Decide the next step for schedules."""
    counted, others = declared.named(view.observed.schedules, ScheduleFields, "schedule_name")
    commands: list[Action] = []
    statuses: list[Action] = []
    for schedule in counted:
        differing = _different(view, schedule.name, schedule.fields.shown)
        old = [member.name for member, broker in view.loaded if schedule.name not in broker.schedules]
        applied = int(schedule.status.get("appliedGeneration") or 0)
        if view.loaded and not differing and not old and not view.missing and len(view.loaded) == len(view.members):
            applied = schedule.generation
        for pod, broker in differing[:1]:
            commands += _set(pod, broker, schedule.name, schedule.fields)
        ready = _ready(view, old, is_applied=applied == schedule.generation and not differing)
        more = {"scheduleName": schedule.name, "appliedGeneration": applied}
        statuses += declared.status_of(view, schedule.declared, {"Ready": ready}, more)
    for other, verdict in others:
        statuses += declared.status_of(view, other, {"Ready": verdict}, {})
    present = {schedule.name: str(schedule.metadata["uid"]) for schedule in counted}
    somewhere = {name for _, broker in view.loaded for name, found in broker.schedules.items() if found}
    gone = dict(declared.without_resources(view, view.observed.kept_schedules, present, somewhere))
    for name in sorted(gone):
        if view.observed.kept_schedules[name].removed_at:
            for pod, broker in _different(view, name, {})[:1]:
                why = f"schedule {name}: its DisqueSchedule was deleted"
                commands.append(Command(pod, broker.node_id, ("SCHEDULE", name, "DEL"), why))
    kept = {
        schedule.name: Kept(str(schedule.metadata["uid"]), schedule.fields.deletion_policy == "Retain")
        for schedule in counted
    }
    return ScheduleDecision(kept | gone, Decision((*commands, *statuses)))


def _different(view: ClusterView, name: str, wanted: dict[str, str]) -> list[tuple[str, Broker]]:
    """Return the brokers that know schedules and have another one of this name."""
    return [
        (member.name, broker)
        for member, broker in view.loaded
        if not member.pod.terminating and broker.schedules.get(name, wanted) != wanted
    ]


def _set(pod: str, broker: Broker, name: str, fields: ScheduleFields) -> Iterator[Command]:
    """Yield the commands that make the schedule what the resource says; the broker tells the other members."""
    found, wanted = dict(broker.schedules[name]), fields.shown
    was_paused, paused = found.pop("paused", "no"), wanted.pop("paused")
    why = f"schedule {name}: it differs from its DisqueSchedule"
    if found != wanted:
        yield Command(pod, broker.node_id, ("SCHEDULE", name, "SET", *fields.set_words), why)
    if was_paused != paused:
        yield Command(pod, broker.node_id, ("SCHEDULE", name, "PAUSE" if fields.paused else "RESUME"), why)


def _ready(view: ClusterView, old: list[str], *, is_applied: bool) -> Verdict:
    if old:
        text = f"these members do not know SCHEDULE, and do not fire schedules: {', '.join(sorted(old))}"
        return Verdict(False, "MembersTooOld", text)
    if is_applied:
        return Verdict(True, "Applied", "all members have the schedule")
    if not view.loaded:
        return Verdict(False, "NoMembers", "no member of the cluster answers")
    return Verdict(False, "Applying", "the schedule is set on the members of the cluster")
