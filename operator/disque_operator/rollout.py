"""Rollouts: replaces pods one at a time, the highest ordinal first.

| the pod | is replaced |
|---|---|
| was created from an older template | when the disruption check passes; it restarts on its volume |
| the same, because the operator changed and not the spec | the same, once the update has started (`updates`) |
| the same, and it does not serve | at once: nothing is lost, and it may be why the check fails |
| has no volume (`ephemeral`), or its volume is being deleted | after a drain, because its replacement is a new member |
| has no volume, and its Kubernetes node is cordoned | the same: evictions are refused until it has no jobs left |
| rejects all known passwords | like the first, but only by what Kubernetes reports of the brokers |
| the same, and it is not ready after a minute | at once: it serves no client, and other pods wait until it is ready |

If a replaced pod does not become ready, the disruption check fails and the rollout stops. The other pods continue to
serve, and the condition shows why and the previous image. The rollout continues when the check passes again, or with
the new template when the spec changes.

A single member without a volume cannot transfer its jobs. It is replaced when it has none, or with the consent that
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
from disque_operator.updates import WAITING
from disque_operator.versions import is_older, refusal

LOCKED_S: Final = 60.0
"""How long a pod that rejects all passwords may take to become ready; then it needs a restart to read the Secret."""
_ADVICE: Final[Mapping[bool, str]] = {
    True: "the pod is restarted, so that it reads the Secret",
    False: "a restart would lose its jobs. Delete the pod if you accept that, or wait until their copies are processed",
}
"""Advice for pods that reject all passwords, by whether a restart keeps their jobs."""


@dataclass(frozen=True)
class Replacement:
    """A pod to replace."""

    member: Member
    why: str
    drained: bool
    """Whether it must transfer its jobs first."""


def due(view: ClusterView) -> tuple[Replacement, ...]:
    """Return all pods to replace, locked ones first because they block others, then by descending ordinal."""
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
        serves = pod.ready or member.broker is not None
        if pod.revision != stateful_set.revision and not (serves and stateful_set.update == WAITING):
            yield Replacement(member, "its template has changed", drained=not comes_back)
        elif member.locked and view.observed.passwords is not None:
            yield Replacement(member, "it rejects all known passwords", drained=False)
        elif view.spec.storage.ephemeral and pod.cordoned:
            yield Replacement(member, "its Kubernetes node is cordoned", drained=True)
        elif not comes_back and not view.spec.storage.ephemeral:
            yield Replacement(member, "its volume claim is being deleted", drained=True)


def _comes_back(view: ClusterView, member: Member) -> bool:
    """Return whether the replacement of a pod will have the same jobs."""
    volume = view.volumes.get(member.pod.ordinal)
    return not view.spec.storage.ephemeral and (volume is None or not volume.terminating)


def drained_first(view: ClusterView) -> frozenset[str]:
    """Return pods that are drained before their replacement."""
    return frozenset(due.member.name for due in due(view) if due.drained)


def decide(view: ClusterView, *, busy: bool) -> Outcome:
    """Decide the next step. `busy`: another concern takes a member out of service."""
    replacements = due(view)
    skips = tuple(_skips_releases(view, replacements))
    notes = (*_locked_members(view), *_failed(view, replacements), *_unprocessed(view), *skips)
    if not replacements:
        return Outcome(Decision(notes=notes))
    broken = next((due for due in replacements if _is_broken(view, due)), None)
    if broken is not None:
        done = progress("RollingOut", f"replacing {broken.member.name}, which does not serve", "Upgrading")
        return Outcome(Decision((_delete(view, broken),), (*notes, done), disrupts=True))
    if skips:
        return Outcome(Decision(notes=notes))
    outcome = _next(view, _chosen(replacements), len(replacements), busy=busy)
    return Outcome(
        Decision(outcome.decision.actions, (*notes, *outcome.decision.notes), outcome.decision.disrupts),
        "no",
        outcome.entry,
    )


def _unprocessed(view: ClusterView) -> Iterator[Note]:
    """Report that it is not known yet which pods must be replaced."""
    if view.stateful_set is not None and not view.stateful_set.up_to_date:
        yield progress("Applying", "waiting until the StatefulSet controller has processed the change", "Applying")


def _chosen(replacements: tuple[Replacement, ...]) -> Replacement:
    """Return the pod that is already leaving, or the highest ordinal."""
    leaving = (due for due in replacements if due.drained and due.member.broker and due.member.broker.leaving)
    return next(leaving, replacements[0])


def _next(view: ClusterView, due: Replacement, left: int, *, busy: bool) -> Outcome:
    """Decide the next step of replacing a pod that serves."""
    member = due.member
    remaining = f"{left} of {view.expected} pods to replace, next {member.name} ({due.why})"
    if busy:
        return Outcome(
            Decision(notes=(progress("RollingOut", f"{remaining}; waiting: another member is leaving", "Upgrading"),))
        )
    if due.drained and view.expected > 1:
        return _drained(view, due, remaining)
    if due.drained and _must_stay(view, due):
        text = f"cannot replace {member.name} ({due.why}): it has jobs, no volume, and no member to transfer them to"
        advice = "Set spec.replicas to 2 until the replacement is done, or finish the jobs"
        return Outcome(Decision(notes=(problem("SingleMember", f"{text}. {advice}"),)))
    reason = blocker(
        Disruption(view, member.name, soak_s=view.spec.upgrade.soak_s, copies=True, evicts=True, locked=member.locked)
    )
    if reason:
        return Outcome(Decision(notes=(progress("RollingOut", f"{remaining}; waiting: {reason}", "Upgrading"),)))
    return Outcome(Decision((_delete(view, due),), (progress("RollingOut", remaining, "Upgrading"),), disrupts=True))


def _drained(view: ClusterView, due: Replacement, remaining: str) -> Outcome:
    """Decide the next step of replacing a pod without a volume."""
    outcome = drain.advance(view, due.member, keeps_volume=False, permanent=False)
    notes = (progress("RollingOut", remaining, "Upgrading"), *outcome.decision.notes)
    if outcome.ended == "no":
        return Outcome(Decision(outcome.decision.actions, notes, outcome.decision.disrupts), "no", outcome.entry)
    reason = blocker(Disruption(view, due.member.name, soak_s=view.spec.upgrade.soak_s))
    if reason:
        waits = progress("RollingOut", f"{remaining}; waiting: {reason}", "Upgrading")
        return Outcome(Decision(notes=(waits,), disrupts=True), "no", outcome.entry)
    return Outcome(Decision((_delete(view, due),), notes, disrupts=True), "no", outcome.entry)


def _must_stay(view: ClusterView, due: Replacement) -> bool:
    """Return whether a single member without a volume must not be stopped."""
    broker = due.member.broker
    return (broker is None or broker.jobs > 0) and not drain.consents(view)


def _is_broken(view: ClusterView, due: Replacement) -> bool:
    """Return whether the pod does not serve, so that its replacement disrupts nothing."""
    member, pod = due.member, due.member.pod
    if pod.ready or member.broker is not None or any(one.pod.terminating for one in view.members):
        return False
    if member.locked:
        return pod.age_s >= LOCKED_S
    return not due.drained or pod.phase == "Pending" or (bool(pod.trouble) and pod.restarts > 0)


def _delete(view: ClusterView, due: Replacement) -> DeletePod:
    """Return the deletion of a pod: an eviction if it is ready and covered by a budget of others."""
    pod = due.member.pod
    return DeletePod(pod.name, pod.uid, due.why, evict=pod.ready and bool(view.observed.foreign_budgets))


def replaced_already(view: ClusterView) -> tuple[Member, ...]:
    """Return pods that were created from the present template."""
    stateful_set = view.stateful_set
    revision = stateful_set.revision if stateful_set else ""
    return tuple(member for member in view.members if member.pod.revision == revision)


def _failed(view: ClusterView, replacements: tuple[Replacement, ...]) -> Iterator[Note]:
    """Report replaced pods that did not become ready in time, while older pods wait for them."""
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


def _skips_releases(view: ClusterView, replacements: tuple[Replacement, ...]) -> Iterator[Note]:
    """Report replaced pods whose broker is too new for the others: a tag does not say which version an image has.

    Going back is not stopped here: a broker that cannot read its file does not start.
    """
    older = {due.member.broker.version for due in replacements if due.member.broker is not None}
    for member in replaced_already(view):
        version = member.broker.version if member.broker is not None else ""
        behind = [one for one in older if is_older(one, version)]
        if why := refusal(behind, version, 0):
            former = view.observed.status.get("formerImage") or "the previous image"
            yield problem(
                "VersionRefused",
                f"the rollout has stopped, because {member.name} has started version {version}: {why}. "
                f"Set spec.image to {former} first",
            )


def _locked_members(view: ClusterView) -> Iterator[Note]:
    for comes_back, advice in _ADVICE.items():
        locked = [one.name for one in view.members if one.locked and _comes_back(view, one) == comes_back]
        if locked:
            yield problem("PasswordUnknown", f"{', '.join(locked)} rejects all known passwords: {advice}")
