"""The planner: from spec and observed state to actions, status and events. Pure: time and random values are arguments.

Each concern is a module with a table of its cases, which depends only on the spec and the view. This module runs them
in order and connects them: at most one of them takes a member out of service at a time, and the replicas and passwords
that concerns decide become part of the children. Rounds share no state: whatever happens between two actions, the next
round observes again and continues from there.

1. `problems`: an invalid spec is not applied, but members are still healed
2. `passwords`: brokers that do not accept the password of the Secret yet, and the content of the Secret
3. `certificates`: that of the brokers, before any pod needs it
4. `bus`: how new pods protect the bus, so that they can connect to those that exist
5. `heal`: forget removed members, connect members that have not found each other
6. `claims`: unmark claims before a pod uses them again; delete claims that are not needed
7. `drain`: brokers that leave without a purpose stay
8. `scale` (with `drain`): how many pods to run now; then drains by annotation
9. `bootstrap`: restore a backup before a new cluster has members
10. `updates`: the image, and whether pods may be replaced that only the operator wants to replace
11. `children`: create and restore objects
12. `rollout`: replace pods, one at a time
13. `settings`: directives that change at run time
14. `users`, `queues`, `schedules`: DisqueUsers, DisqueQueues and DisqueSchedules of the cluster
    (`orderedqueues` for queues that are ordered)
15. `claims`: expand claims
16. `backups`, `ondemand`: the CronJob that makes backups, and DisqueBackups
17. `exposure`: the services for clients outside of Kubernetes
18. `ordered`, `orderedqueues`: founding the catalog of ordered queues, and queues that are made or dropped

The first action that fails ends the round. Actions that may fail for long because of a user's mistake, such as an
invalid template, a rejected directive or a StorageClass that cannot expand, therefore come after those that keep the
cluster healthy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from disque_operator import (
    backups,
    bootstrap,
    bus,
    certificates,
    children,
    claims,
    drain,
    exposure,
    heal,
    names,
    ondemand,
    ordered,
    passwords,
    queues,
    rollout,
    scale,
    schedules,
    settings,
    updates,
    users,
)
from disque_operator.actions import Apply, Create, DeleteChild, Issue
from disque_operator.apivalues import Json
from disque_operator.decisions import IDLE_S, NOTHING, SOON_S, Decision, Note, Plan, Turn, joined, problem, progress
from disque_operator.drain import Outcome
from disque_operator.events import events
from disque_operator.members import ClusterView
from disque_operator.observed import Observed
from disque_operator.problems import problems
from disque_operator.resources import Wanted
from disque_operator.resources.backups import Execution
from disque_operator.spec import Spec
from disque_operator.status import status

_DEGRADED_S: Final = 10.0
"""Seconds until the next round while an administrator must act."""


def plan(spec: Spec, observed: Observed, now_s: float, fresh_password: str) -> Plan:
    """Decide what to do next. `fresh_password` is a new random password, which is used if one is needed."""
    if spec.deleting:
        return Plan((), observed.status, (), IDLE_S)
    view = ClusterView(spec, observed, now_s)
    decided = _decide(view, fresh_password)
    decided = replace(decided, decision=joined((decided.decision, _applying(decided.decision))))
    if spec.paused:
        decided = _paused(view, decided)
    fresh_status = status(view, decided.decision.notes, decided.drain, decided.available_image)
    return Plan(
        decided.decision.actions,
        fresh_status,
        events(observed.status, fresh_status, decided.decision.actions),
        min(_again_s(decided.decision, paused=spec.paused), ordered.again_s(view)),
        decided.turn,
    )


def _applying(decision: Decision) -> Decision:
    """Return a note about objects that are written, unless another one reports the change that they are part of.

    Without it, a new spec would look complete in the round that only writes its objects.
    """
    written = [action for action in decision.actions if isinstance(action, Apply | Create | DeleteChild | Issue)]
    if not written or any(note.changes for note in decision.notes):
        return NOTHING
    objects = ", ".join(_object(action) for action in written)
    return Decision(notes=(progress("Applying", f"writing {objects}", "Applying"),))


def _object(action: Apply | Create | DeleteChild | Issue) -> str:
    if isinstance(action, DeleteChild):
        return f"{action.kind} {action.name}"
    return f"{action.manifest['kind']} {action.manifest['metadata']['name']}"


@dataclass(frozen=True)
class _Decided:
    """All actions in order with all notes, and what else the plan reports."""

    decision: Decision
    turn: Turn
    drain: Json | None = None
    """The field `drain` of the status."""
    available_image: str = ""


def _paused(view: ClusterView, decided: _Decided) -> _Decided:
    """Return the decision for a paused cluster: it reports what is wrong, and does nothing."""
    paused = Note("Progressing", "Paused", "reconciliation is paused by spec.paused", "Paused", holds=False)
    kept = (note for note in decided.decision.notes if note.topic in {"Degraded", "Updated", "SpecValid"})
    return _Decided(Decision(notes=(paused, *kept)), updates.turn_of(view), None, decided.available_image)


_MOVING: Final = ("Transferring", "PodStopping")
"""Reasons of a drain that makes progress."""


def _again_s(decision: Decision, *, paused: bool) -> float:
    """Return the seconds until the next round: few while something is in progress that watches do not report."""
    if paused or not decision.notes:
        return SOON_S if decision.actions else IDLE_S
    if decision.actions or any(note.reason in _MOVING for note in decision.notes):
        return SOON_S
    degraded = any(note.topic in {"Degraded", "SpecValid"} for note in decision.notes)
    moving = any(note.topic == "Progressing" and note.holds for note in decision.notes)
    if all(note.topic == "Updated" for note in decision.notes):
        return IDLE_S
    return SOON_S if moving and not degraded else _DEGRADED_S


def _decide(view: ClusterView, fresh: str) -> _Decided:
    wrong = tuple(_invalid(str(found)) for found in problems(view.spec, privileged=view.observed.privileged))
    if wrong:
        return _Decided(joined((Decision(notes=wrong), _healed(view))), updates.turn_of(view))
    password = passwords.decide(view, fresh)
    if not password.possible:
        return _Decided(joined((password.decision, _healed(view))), updates.turn_of(view))
    certificate = certificates.decide(view)
    if not certificate.possible:
        made = children.certificates(view, certificate.wanted)
        decision = joined((password.decision, certificate.decision, made, _healed(view)))
        return _Decided(decision, updates.turn_of(view))
    guard = bus.decide(view)
    if not guard.possible:
        made = children.bus(view, guard.files, guard.request)
        decision = joined((password.decision, certificate.decision, guard.decision, made, _healed(view)))
        return _Decided(decision, updates.turn_of(view))
    secured = (password.decision, certificate.decision, guard.decision)
    size = scale.decide(view)
    update = updates.decide(view, guard.mode)
    user = users.decide(view, fresh, certificate.wanted.trusted)
    queue = queues.decide(view)
    schedule = schedules.decide(view)
    run = Execution(update.image, view.observed.platform)
    restored = bootstrap.decide(view, run)
    wanted = Wanted(
        size.replicas,
        password.wanted,
        certificate.wanted,
        guard.mode,
        guard.files,
        size.hibernated_members,
        _claim_templates(view),
        update.image,
        update.state,
        bool(view.observed.foreign_budgets),
        view.observed.sees_nodes,
        view.observed.operator_namespace,
        users=user.kept,
        queues=queue.kept,
        schedules=schedule.kept,
        platform=view.observed.platform,
        waits_for_restore=restored.waits,
    )
    demanded = ondemand.decide(view, run)
    scheduled = joined((backups.decide(view, run), demanded))
    marks = claims.decide(view, size.replicas, size.drained)
    objects = children.decide(view, wanted)
    noted = Decision(notes=update.notes)
    declared = joined((user.decision, queue.decision, schedule.decision))
    exposed = _exposed(view, max(size.replicas, size.hibernated_members))
    if restored.waits:
        decision = joined((*secured, objects, declared, restored.decision, noted))
        return _Decided(decision, update.turn, None, update.available_image)
    if size.replicas == 0:
        others = (declared, scheduled, restored.decision, exposed, noted)
        decision = joined((*secured, marks, objects, size.decision, *others))
        return _Decided(decision, update.turn, None, update.available_image)
    replaced = rollout.drained_first(view)
    victim = names.pod(view.spec.name, size.victim) if size.victim is not None else ""
    annotated = {member.name for member in view.members if member.pod.drain}
    cancelled = tuple(drain.cancel(view, {victim, *replaced, *annotated}))
    by_annotation = drain.annotated(view, busy=size.decision.disrupts or bool(cancelled))
    busy = size.decision.disrupts or by_annotation.decision.disrupts or bool(cancelled)
    rolled = Outcome(Decision()) if _applies_template(objects) else rollout.decide(view, busy=busy)
    first = [*secured, heal.decide(view), marks, Decision(cancelled), size.decision, by_annotation.decision]
    last = [settings.decide(view), declared, claims.resize(view), scheduled, restored.decision, exposed, noted]
    last += [ordered.decide(view), queue.made]
    entry = size.entry or by_annotation.entry or rolled.entry
    return _Decided(joined([*first, objects, rolled.decision, *last]), update.turn, entry, update.available_image)


def _exposed(view: ClusterView, members: int) -> Decision:
    """Decide about the services for clients outside of Kubernetes."""
    outside = exposure.decide(view, members)
    return joined((children.services(view, outside.manifests), outside.decision))


def _applies_template(objects: Decision) -> bool:
    """Return whether the StatefulSet is applied in this round: only later is it known which pods are outdated."""
    return any(isinstance(action, Apply) and action.manifest["kind"] == "StatefulSet" for action in objects.actions)


def _invalid(text: str) -> Note:
    return Note("SpecValid", "Invalid", text, "Degraded", holds=False)


def _healed(view: ClusterView) -> Decision:
    """Heal the members of a cluster whose spec cannot be applied."""
    if not view.expected:
        return Decision(notes=(problem("NothingRuns", "no pods are created until this is corrected"),))
    return heal.decide(view)


def _claim_templates(view: ClusterView) -> tuple[Json, ...]:
    live = view.observed.children.get(("StatefulSet", names.stateful_set(view.spec.name)))
    return tuple(live["spec"].get("volumeClaimTemplates") or ()) if live else ()
