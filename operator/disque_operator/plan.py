"""Plan: from what is asked for and what there is to what is done next and what is said. Pure: time and chance come in.

Each concern is a module with a table of its cases, and knows only the spec and the view. Here is their order, and what
they have to know of each other: at most one of them takes a node out of service at a time, and the number of pods and
the passwords that two of them decide on go into the children. A round is forgotten when it is over: whatever happens
between two of its actions, the next one looks again, and begins where things stand.

1. `problems`: what can not be done as it is written changes nothing, but nodes are looked after
2. `passwords`: nodes that do not know the one in the Secret yet, and what that is to say
3. `heal`: nodes that are gone are forgotten, strangers introduced
4. `claims`: marks of drained nodes, before these serve again; claims that nobody misses
5. `drain`: nodes that leave for no purpose stay
6. `scale` (with `drain`): how many pods there are to be now; then pods that somebody wants empty
7. `children`: the objects are made and put right
8. `rollout`: pods made anew, one at a time
9. `settings`: directives that change while nodes run
10. `claims`: larger ones

The first action that fails ends a round. So what people can get wrong for long, a template or a directive that is
refused, a StorageClass that can not expand, comes behind what keeps a cluster well.
"""

from __future__ import annotations

from typing import Final

from disque_operator import children, claims, drain, heal, names, passwords, rollout, scale, settings
from disque_operator.apivalues import Json
from disque_operator.decisions import IDLE_S, SOON_S, Decision, Note, Plan, joined, problem
from disque_operator.events import events
from disque_operator.members import ClusterView
from disque_operator.observed import Observed
from disque_operator.problems import problems
from disque_operator.resources import Wanted
from disque_operator.spec import Spec
from disque_operator.status import status

_TROUBLED_S: Final = 10.0
"""While something is wrong that a person has to put right."""


def plan(spec: Spec, observed: Observed, now_s: float, fresh_password: str) -> Plan:
    """What comes next. `fresh_password` is used if one is needed, and may be another one each time."""
    if spec.deleting:
        return Plan((), observed.status, (), IDLE_S)
    view = ClusterView(spec, observed, now_s)
    decision, entry = _decide(view, fresh_password)
    if spec.paused:
        text = "spec.paused is true: nothing is done but looking"
        decision, entry = (
            Decision(notes=(Note("Progressing", "Paused", text, "Paused", holds=False), *_seen(decision))),
            None,
        )
    told = status(view, decision.notes, entry)
    return Plan(decision.actions, told, events(observed.status, told), _again_s(decision, paused=spec.paused))


def _seen(decision: Decision) -> tuple[Note, ...]:
    """What a paused cluster says: what is wrong, not what would be done."""
    return tuple(note for note in decision.notes if note.topic in {"Degraded", "SpecValid"})


_LIVELY: Final = ("HandingOver", "PodStopping")
"""Reasons of a drain that gets on."""


def _again_s(decision: Decision, *, paused: bool) -> float:
    """Soon while something gets on by itself; watches tell of what changes in Kubernetes meanwhile."""
    if paused or not decision.notes:
        return SOON_S if decision.actions else IDLE_S
    if decision.actions or any(note.reason in _LIVELY for note in decision.notes):
        return SOON_S
    troubled = any(note.topic in {"Degraded", "SpecValid"} for note in decision.notes)
    moving = any(note.topic == "Progressing" and note.holds for note in decision.notes)
    return SOON_S if moving and not troubled else _TROUBLED_S


def _decide(view: ClusterView, fresh: str) -> tuple[Decision, Json | None]:
    """All actions in order, all notes, and `drain` of the status."""
    wrong = tuple(_invalid(str(found)) for found in problems(view.spec))
    if wrong:
        return joined((Decision(notes=wrong), _looked_after(view))), None
    password = passwords.decide(view, fresh)
    if not password.possible:
        return joined((password.decision, _looked_after(view))), None
    size = scale.decide(view)
    wanted = Wanted(
        size.replicas,
        password.wanted,
        size.hibernated_members,
        _claim_templates(view),
        view.observed.operator_namespace,
    )
    marks = claims.decide(view, size.replicas, size.drained)
    objects = children.decide(view, wanted)
    if size.replicas == 0:
        return joined((password.decision, marks, objects, size.decision)), None
    replaced = rollout.drained_first(view)
    victim = names.pod(view.spec.name, size.victim) if size.victim is not None else ""
    resting = {member.name for member in view.members if member.pod.drain}
    undone = tuple(drain.cancel(view, {victim, *replaced, *resting}))
    rested = drain.annotated(view, busy=size.decision.disrupts or bool(undone))
    busy = size.decision.disrupts or rested.decision.disrupts or bool(undone)
    rolled = rollout.decide(view, busy=busy)
    brokers = [password.decision, heal.decide(view), marks, Decision(undone), size.decision, rested.decision]
    decisions = [*brokers, objects, rolled.decision, settings.decide(view), claims.expand(view)]
    return joined(decisions), size.entry or rested.entry or rolled.entry


def _invalid(text: str) -> Note:
    return Note("SpecValid", "Invalid", text, "Degraded", holds=False)


def _looked_after(view: ClusterView) -> Decision:
    """What is done for a cluster whose spec says nothing that can be done: nodes that are gone are forgotten."""
    if not view.expected:
        return Decision(notes=(problem("NothingRuns", "no pods are made as long as this is so"),))
    return heal.decide(view)


def _claim_templates(view: ClusterView) -> tuple[Json, ...]:
    live = view.observed.children.get(("StatefulSet", names.stateful_set(view.spec.name)))
    return tuple(live["spec"].get("volumeClaimTemplates") or ()) if live else ()
