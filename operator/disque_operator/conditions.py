"""The conditions of the status: type, whether it holds, a reason for programs, a message for people, since when.

| condition | is true when |
|---|---|
| Ready | every pod is ready, all members are connected, and no change is in progress that the spec asks for |
| ClusterFormed | every member lists exactly the members, all of them connected |
| AllMembersReachable | every expected pod has a broker that answers and has loaded its jobs |
| Progressing | a change is in progress that will complete without help |
| Draining | a member transfers its jobs or is drained; false with a reason if a drain is refused or has to wait |
| Degraded | an administrator must act |
| Updated | all pods have the image and the template that this operator would give them |
| Exposed | every member has an address for clients outside of Kubernetes; absent without `spec.exposure` |
| OrderedReady | the catalog and all ordered queues have a leader (`ordered`); only where there are any |
| SpecValid | the spec can be applied |
| ReconcileSuccess | the last round succeeded |
| BackedUp | a scheduled backup is recent enough (`backups`); only with a schedule |

`lastTransitionTime` is the time when the status of a condition changed last, as everywhere in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from disque_operator.addresses import known, missing
from disque_operator.apivalues import Json, timestamp
from disque_operator.decisions import Note, Topic
from disque_operator.members import ClusterView
from disque_operator.pki import ip_of
from disque_operator.resources.encryption import secret_name

_MOST_MESSAGES: Final = 3
"""How many messages of one condition are joined."""
_QUIET: Final[Mapping[Topic, tuple[str, str]]] = {
    "Progressing": ("Settled", "no change is in progress"),
    "Draining": ("NotDraining", "no member is leaving"),
    "Degraded": ("Healthy", "nothing needs attention"),
    "Updated": ("Current", "all pods have the present image and pod template"),
}
"""Reason and message of a condition without a note."""
_TRUE_IF_QUIET: Final[Topic] = "Updated"


def conditions(view: ClusterView, notes: Sequence[Note]) -> list[Json]:
    """Return all conditions that are made from notes and members, in a fixed order."""
    found = [_ready(view, notes), _formed(view), _reachable(view), *(_of_notes(topic, notes) for topic in _QUIET)]
    if view.spec.exposure is not None:
        found.append(_exposed(view))
    return dated(found, view.observed.status.get("conditions") or (), view.spec.generation, view.now_s)


def condition(kind: str, holds: bool, reason: str, message: str) -> Json:
    """Return a condition without its times."""
    return {"type": kind, "status": str(holds), "reason": reason, "message": message}


def dated(found: Iterable[Json], before: Iterable[Json], generation: int, now_s: float) -> list[Json]:
    """Add times to conditions; a condition whose status did not change keeps its time."""
    former = {entry["type"]: entry for entry in before}
    return [
        entry
        | {"lastTransitionTime": _since(entry, former.get(entry["type"]), now_s)}
        | {"observedGeneration": generation}
        for entry in found
    ]


def _since(entry: Json, before: Json | None, now_s: float) -> str:
    if before is None or before.get("status") != entry["status"] or not before.get("lastTransitionTime"):
        return timestamp(now_s)
    return str(before["lastTransitionTime"])


def _of_notes(topic: Topic, notes: Sequence[Note]) -> Json:
    """Return a condition made from notes. A note that holds takes precedence over one that does not."""
    about = sorted((note for note in notes if note.topic == topic), key=lambda note: not note.holds)
    if not about:
        return condition(topic, topic == _TRUE_IF_QUIET, *_QUIET[topic])
    texts = list(dict.fromkeys(note.message for note in about))
    more = len(texts) - _MOST_MESSAGES
    text = "; ".join(texts[:_MOST_MESSAGES]) + (f"; and {more} more" if more > 0 else "")
    return condition(topic, about[0].holds, about[0].reason, text)


def _ready(view: ClusterView, notes: Sequence[Note]) -> Json:
    """Return Ready. While a change is in progress it is false, or scripts that wait for it would continue too early."""
    if view.stateful_set is None or not view.expected:
        return condition("Ready", False, "NoPods", "there are no pods")
    waiting = [member.name for member in view.members if not member.pod.ready]
    if view.missing or waiting:
        return condition("Ready", False, "PodsNotReady", _count(view) + (f": {', '.join(waiting)}" if waiting else ""))
    if not view.formed:
        return condition("Ready", False, "NotFormed", "all pods are ready, but they do not form one cluster")
    if any(note.changes for note in notes):
        return condition("Ready", False, "ChangePending", "all members are connected, and a change is in progress")
    return condition("Ready", True, "AllMembersConnected", f"all {view.expected} members are ready and connected")


def _count(view: ClusterView) -> str:
    ready = len([member for member in view.members if member.pod.ready and member.pod.ordinal < view.expected])
    return f"{ready} of {view.expected} pods are ready"


def _formed(view: ClusterView) -> Json:
    kind = "ClusterFormed"
    if view.formed:
        return condition(kind, True, "Formed", "every member lists exactly the members, all of them connected")
    if not view.loaded:
        return condition(kind, False, "NoMembers", "no member answers")
    if view.disconnected:
        one, other = view.disconnected[0]
        return condition(kind, False, "NotConnected", f"{one.name} is not connected to {other.name}")
    if len(view.loaded) < max(len(view.members), view.expected):
        return condition(kind, False, "MembersMissing", f"{len(view.loaded)} of {view.expected} members answer")
    return condition(kind, False, "UnknownMembers", "members list a node without a pod; it is forgotten after a minute")


def _reachable(view: ClusterView) -> Json:
    kind = "AllMembersReachable"
    absent = [member.name for member in view.members if member.loaded is None and member.pod.ordinal < view.expected]
    if not view.missing and not absent and view.expected:
        return condition(kind, True, "AllAnswer", "every member answers")
    text = f"no answer from {', '.join(absent)}" if absent else "pods are missing"
    return condition(kind, False, "MembersSilent" if absent else "PodsMissing", text)


def _exposed(view: ClusterView) -> Json:
    absent = missing(view)
    if absent:
        alike = [one.message for one in absent if one.reason == absent[0].reason]
        return condition("Exposed", False, absent[0].reason, "; ".join(alike[:_MOST_MESSAGES]))
    if not any(known(view)):
        return condition("Exposed", False, "NoPods", "there is no pod that clients could reach")
    if unverifiable := _unverifiable(view):
        return condition("Exposed", False, "NotInCertificate", unverifiable)
    text = "every member has an address for clients outside of Kubernetes"
    return condition("Exposed", True, "AddressesKnown", text)


def _unverifiable(view: ClusterView) -> str:
    """Return which hosts of members the certificate lacks; empty if none, and without TLS outside."""
    files, tls = view.observed.tls, view.spec.tls
    if files is None or files.facts is None:
        return ""
    hosts = [address.host for _, address in known(view) if address.tls_port and not files.facts.covers(address.host)]
    if not hosts:
        return ""
    what = f"the certificate in the Secret {secret_name(view.spec)} has no name for {', '.join(hosts[:_MOST_MESSAGES])}"
    if tls.secret_name is not None:
        return f"{what}: issue one with it"
    if tls.issuer_ref is not None and any(map(ip_of, hosts)):
        return f"{what}: issuers are asked only for names, so set exposure.host"
    return f"{what} yet: it is being issued again"
