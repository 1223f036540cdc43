"""Heal: what is lost is told of, what is gone for good is forgotten, who should know each other is introduced.

| what is seen | what is done |
|---|---|
| a pod is missing | nothing: its controller makes it, on the volume it had; why it can not is in the status |
| an ID that no pod has (`members`), of a node that was leaving | FORGET on all who list it, in one round |
| the same of a node that was not leaving, silent for a minute | the same |
| two that answer for 15 s and are not connected | CLUSTER MEET by the address of the pod, which answered just now |
| two pods answer with one ID | told of: a copied volume; nothing is guessed |
| a pod on a machine that is gone | told of: only people know whether its processes run on |

MEET is safe beyond the address: a node of another cluster refuses by `cluster-name`, and both that are to meet have
answered in this round as members of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from disque_operator import names
from disque_operator.actions import Command
from disque_operator.apivalues import Json, seconds
from disque_operator.decisions import Decision, Note, problem, progress
from disque_operator.members import ClusterView, Member
from disque_operator.observed import Broker

FORGET_AFTER_S: Final = 60.0
"""A node that was not leaving may come back; so long nobody heard of it."""
MEET_AFTER_S: Final = 15.0
"""So long members have to find each other by themselves, as `cluster-seeds` has them do."""
SILENT_S: Final = 15.0
"""A member that did not answer once may be busy. By the status, nobody remembers otherwise."""
LOST_AFTER_S: Final = 60.0
"""A pod that runs and does not answer for so long is a problem, before it is starting."""
MOST_MEETINGS: Final = 8
"""In one round."""


def decide(view: ClusterView) -> Decision:
    """What comes next, and what is wrong with pods."""
    forgets = tuple(_forget(view))
    meetings = tuple(_meet(view))[:MOST_MEETINGS]
    notes = tuple(_problems(view)) + tuple(_absences(view))
    if forgets:
        notes += (progress("Forgetting", "a node that is gone is forgotten by all others", "Healing"),)
    if meetings:
        notes += (progress("Meeting", "members that do not know each other are introduced", "Healing"),)
    if not notes and not view.surplus and not view.formed:
        notes = (_joining(view),)
    return Decision(forgets + meetings, notes)


def _joining(view: ClusterView) -> Note:
    """All answer, and are not one cluster."""
    if view.disconnected:
        one, other = view.disconnected[0]
        return progress("Joining", f"{one.name} is not connected with {other.name} yet", "Healing")
    return progress("Forgetting", "members list a node that no pod has, and forget it after a minute", "Healing")


def _forget(view: ClusterView) -> Iterator[Command]:
    """All who list it, so that nobody tells the others of it again."""
    listing = {member.name: broker for member, broker in view.loaded}
    for known in view.stale:
        if known.leaving or known.silent_s >= FORGET_AFTER_S:
            for pod in known.known_by:
                words = ("CLUSTER", "FORGET", known.node_id)
                yield Command(pod, listing[pod].node_id, words, "no pod has this node ID any more")


def _meet(view: ClusterView) -> Iterator[Command]:
    """One of each pair, the lower ordinal, is sent to the other."""
    brokers = {member.pod.ordinal: broker for member, broker in view.loaded}
    pairs = {tuple(sorted((one.pod.ordinal, other.pod.ordinal))) for one, other in view.disconnected}
    for low, high in sorted(pairs):
        one, other = view.by_ordinal[low], view.by_ordinal[high]
        if _is_settled(one, brokers[low], brokers[high]) and _is_settled(other, brokers[high], brokers[low]):
            words = ("CLUSTER", "MEET", other.pod.ip, str(names.CLIENT_PORT))
            yield Command(
                one.name, brokers[low].node_id, words, f"{one.name} and {other.name} have not found each other"
            )


def _is_settled(member: Member, broker: Broker, other: Broker) -> bool:
    """Whether a member had its time to find the other one."""
    if member.pod.terminating or not member.pod.ip or broker.uptime_s < MEET_AFTER_S or broker.node_id == other.node_id:
        return False
    line = next((peer for peer in broker.peers if peer.node_id == other.node_id), None)
    return line is None or line.connected or line.silent_s >= MEET_AFTER_S


def _absences(view: ClusterView) -> Iterator[Note]:
    """Members that are not there, and will be by themselves."""
    patience_over = _silent_s(view) >= SILENT_S
    if view.missing and not view.observed.quota:
        pods = ", ".join(names.pod(view.spec.name, ordinal) for ordinal in view.missing)
        yield progress("PodsMissing", f"{pods} is to be made by the StatefulSet's controller", "Healing")
    for member in view.members:
        if member.pod.trouble or member.pod.ordinal >= view.expected:
            continue
        if member.pod.terminating:
            yield progress("PodStopping", f"{member.name} is being stopped", "Healing")
        elif member.loaded is None and not member.locked and not (patience_over and _is_lost(member)):
            what = "does not answer at the moment" if member.pod.ready else "is starting"
            yield progress("PodStarting", f"{member.name} {what}", "Healing")
        elif member.loaded is not None and not member.pod.ready and member.loaded.leaving is None:
            yield progress("PodStarting", f"{member.name} has its jobs and is not ready yet", "Healing")


def _silent_s(view: ClusterView) -> float:
    """How long some member has not answered, by the condition AllMembersReachable."""
    conditions = view.observed.status.get("conditions") or ()
    entry: Json = next((entry for entry in conditions if entry["type"] == "AllMembersReachable"), {})
    return view.now_s - seconds(entry["lastTransitionTime"]) if entry.get("status") == "False" else 0.0


def _is_lost(member: Member) -> bool:
    """Whether a pod that does not answer should have by now."""
    pod = member.pod
    return (
        member.broker is None and pod.phase == "Running" and (pod.ready or pod.restarts > 0 or pod.age_s > LOST_AFTER_S)
    )


def _problems(view: ClusterView) -> Iterator[Note]:
    """What people have to look at."""
    patience_over = _silent_s(view) >= SILENT_S
    if view.observed.quota:
        yield problem(
            "PodsRefused",
            f"pods can not be made: {view.observed.quota}. Raise the quota of the namespace, or lower spec.replicas or "
            "spec.resources",
        )
    for pods in view.ids.values():
        if len(pods) > 1:
            yield problem(
                "DuplicateNode",
                f"{' and '.join(pods)} have the same node ID: a volume was copied. Delete nodes.conf on one of them, "
                "and its pod",
            )
    for member in view.members:
        if member.pod.trouble:
            yield _trouble(member, view)
        elif patience_over and _is_lost(member) and not member.locked and not member.pod.terminating:
            yield problem("MemberUnreachable", f"{member.name} does not answer: {member.unreachable}")
        if member.broker is not None and member.broker.refusing:
            yield problem(
                "DiskTrouble",
                f"{member.name} takes no new jobs: {member.broker.refusing}. Enlarge spec.storage.size, or see what "
                "is wrong with the volume",
            )


def _image(member: Member, view: ClusterView) -> str:
    return f"its image {member.pod.image} can not be had: see spec.image and spec.imagePullSecrets{_former(view)}"


def _former(view: ClusterView) -> str:
    former = view.observed.status.get("formerImage")
    return f"; the image before was {former}" if former else ""


def _unschedulable(_member: Member, _view: ClusterView) -> str:
    return (
        "no machine can take it: see spec.resources, spec.nodeSelector, spec.affinity, spec.tolerations and the "
        "volume's zone, or add machines"
    )


def _config(_member: Member, _view: ClusterView) -> str:
    return "a Secret or ConfigMap that it needs is missing: see spec.podTemplate and spec.auth.secretName"


def _crash(member: Member, view: ClusterView) -> str:
    return f"it ends again and again: see kubectl logs {member.name} --previous{_former(view)}"


def _memory(_member: Member, _view: ClusterView) -> str:
    return "it was ended for want of memory: raise spec.resources.limits.memory, or lower spec.maxmemory"


def _machine(_member: Member, _view: ClusterView) -> str:
    return (
        "its machine does not answer. It comes back with the machine; if that never will, delete the machine's Node "
        "object, or the pod with --force, when you are sure that its processes have ended"
    )


_ADVICE: Final[Mapping[str, tuple[str, Callable[[Member, ClusterView], str]]]] = {
    "CrashLoopBackOff": ("CrashLooping", _crash),
    "CreateContainerConfigError": ("ConfigurationMissing", _config),
    "CreateContainerError": ("ConfigurationMissing", _config),
    "ErrImageNeverPull": ("ImageMissing", _image),
    "ErrImagePull": ("ImageMissing", _image),
    "ImageInspectError": ("ImageMissing", _image),
    "ImagePullBackOff": ("ImageMissing", _image),
    "InvalidImageName": ("ImageMissing", _image),
    "NodeLost": ("NodeLost", _machine),
    "OOMKilled": ("OutOfMemory", _memory),
    "Unreachable": ("NodeLost", _machine),
    "Unschedulable": ("Unschedulable", _unschedulable),
}


def _trouble(member: Member, view: ClusterView) -> Note:
    pod = member.pod
    reason, advice = _ADVICE.get(pod.trouble, ("PodFailed", None))
    said = f" ({pod.trouble_text})" if pod.trouble_text and advice is None else ""
    text = advice(member, view) if advice else f"see kubectl describe pod {pod.name}"
    return problem(reason, f"{member.name} does not run, {pod.trouble}{said}: {text}")
