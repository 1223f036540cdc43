"""Events, posted once for each transition between the previous status and the new one.

| difference | event |
|---|---|
| the phase, except Degraded and Draining | its name, with the message |
| Degraded, SpecValid or ReconcileSuccess is bad and has a new reason | a warning with the reason |
| Degraded becomes False | Recovered |
| the pod that is drained | DrainStarted, and DrainFinished or DrainCancelled for the previous one |
| a drain is refused or has to wait | DrainRefused, DrainWaiting |
| the image | ImageChanged |
| an image is available for an update | UpdateAvailable |
| the time at which the certificate expires | CertificateRenewed |
| Exposed becomes True | Exposed |
| the time of the last backup, or of the last failure | BackupCompleted, or BackupFailed as a warning |

One event is not about the status: CLUSTER MEET, which the operator sends once for each new member, is MemberIntroduced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from disque_operator import names
from disque_operator.actions import Action, Command
from disque_operator.apivalues import Json, condition_of
from disque_operator.decisions import Event

_GOOD_STATUS: Final[Mapping[str, str]] = {"Degraded": "False", "SpecValid": "True", "ReconcileSuccess": "True"}
_REPORTED_OTHERWISE: Final = frozenset({"Degraded", "Draining"})
"""Phases with more specific events."""
_REFUSALS: Final[Mapping[str, str]] = {
    "BelowMinimum": "DrainRefused",
    "NotEnoughMembers": "DrainRefused",
    "Waiting": "DrainWaiting",
}


def events(before: Json, now: Json, actions: Sequence[Action] = ()) -> tuple[Event, ...]:
    """Return the events of a transition, and of the actions that are planned."""
    return (
        *_introductions(actions),
        *_phase(before, now),
        *_warnings(before, now),
        *_drain(before, now),
        *_refusals(before, now),
        *_image(before, now),
        *_certificate(before, now),
        *_exposure(before, now),
        *_backup(before, now),
    )


def _introductions(actions: Sequence[Action]) -> Iterator[Event]:
    for action in actions:
        if isinstance(action, Command) and action.met is not None:
            pod, node_id = action.met
            yield Event("Normal", "MemberIntroduced", f"{action.pod} meets {pod} (node {node_id}): {action.why}")


def _phase(before: Json, now: Json) -> Iterator[Event]:
    if before.get("phase") != now["phase"] and now["phase"] not in _REPORTED_OTHERWISE:
        text = condition_of(now, "Ready")["message"] if now["phase"] == "Running" else now["message"]
        yield Event("Normal", now["phase"], text)


def _warnings(before: Json, now: Json) -> Iterator[Event]:
    for kind, good in _GOOD_STATUS.items():
        one, other = condition_of(before, kind), condition_of(now, kind)
        if other and other["status"] != good and (one.get("status"), one.get("reason")) != _status_and_reason(other):
            yield Event("Warning", other["reason"], other["message"])
        elif kind == "Degraded" and one.get("status") == "True" and other.get("status") == good:
            yield Event("Normal", "Recovered", other["message"])


def _status_and_reason(condition: Json) -> tuple[str, str]:
    return condition["status"], condition["reason"]


def _drain(before: Json, now: Json) -> Iterator[Event]:
    one, other = (before.get("drain") or {}).get("pod"), (now.get("drain") or {}).get("pod")
    if one == other:
        return
    if one:
        states = {entry["pod"]: entry["state"] for entry in now["members"]}
        goes = names.ordinal(one) >= now["replicas"] or states.get(one, "stopping") == "stopping"
        finished = goes or condition_of(now, "Draining").get("reason") == "Drained"
        text = f"{one} has transferred its jobs" if finished else f"the drain of {one} was cancelled"
        yield Event("Normal", "DrainFinished" if finished else "DrainCancelled", text)
    if other:
        yield Event("Normal", "DrainStarted", f"{other} is transferring its jobs to the other members")


def _refusals(before: Json, now: Json) -> Iterator[Event]:
    one, other = condition_of(before, "Draining"), condition_of(now, "Draining")
    reason = _REFUSALS.get(other.get("reason", ""))
    if reason and one.get("reason") != other["reason"]:
        yield Event("Warning" if reason == "DrainRefused" else "Normal", reason, other["message"])


def _image(before: Json, now: Json) -> Iterator[Event]:
    if before.get("image") and before["image"] != now["image"]:
        yield Event("Normal", "ImageChanged", f"image changed from {before['image']} to {now['image']}")
    available = now.get("availableImage")
    if available and before.get("availableImage") != available:
        yield Event("Normal", "UpdateAvailable", condition_of(now, "Updated")["message"])


def _certificate(before: Json, now: Json) -> Iterator[Event]:
    one, other = ((status.get("certificate") or {}).get("expiresAt") for status in (before, now))
    if one and other and one != other:
        yield Event("Normal", "CertificateRenewed", f"the certificate of the brokers is renewed, until {other}")


def _exposure(before: Json, now: Json) -> Iterator[Event]:
    one, other = condition_of(before, "Exposed"), condition_of(now, "Exposed")
    if other.get("status") == "True" and one.get("status") != "True":
        yield Event("Normal", "Exposed", other["message"])


def _backup(before: Json, now: Json) -> Iterator[Event]:
    one, other = (status.get("backup") or {} for status in (before, now))
    if "lastSuccessTime" in other and one.get("lastSuccessTime") != other["lastSuccessTime"]:
        yield Event("Normal", "BackupCompleted", f"backup {other.get('lastName') or other['lastSuccessTime']} is made")
    if "lastFailureTime" in other and one.get("lastFailureTime") != other["lastFailureTime"]:
        yield Event("Warning", "BackupFailed", f"a scheduled backup failed: {other['lastFailureMessage']}")
