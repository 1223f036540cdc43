"""Healing: reports lost members, makes members forget removed ones, and connects members that do not know each other.

| observed | decision |
|---|---|
| a pod is missing | nothing: the controller creates it, with its volume; the status shows why it cannot |
| a node ID without a pod (`members`), of a member that was leaving | FORGET on all brokers that list it, in one round |
| the same, not leaving, but silent for a minute | the same |
| a new member answers, and no member lists it | CLUSTER MEET with the address of its pod, at once |
| two brokers list each other or had 15 s for it, and are not connected | the same |
| two pods have the same node ID | report it: a volume was copied, and only an administrator knows which one is right |
| a pod on a lost node | report it: only an administrator knows whether its processes still run |

One MEET is enough for a new member, because members tell each other about it. None is sent while another one to that
address is not answered yet. A new broker gives the operator some seconds before it uses `cluster-seeds` itself.

MEET is safe even if an address was reused: the executor checks that the broker there still has the observed node ID,
and `cluster-name` makes brokers of other clusters refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Final

from disque_operator import names
from disque_operator.actions import Command
from disque_operator.apivalues import condition_of, seconds
from disque_operator.decisions import Decision, Note, problem, progress
from disque_operator.disruption import repair_stuck
from disque_operator.members import ClusterView, Member
from disque_operator.observed import Broker

FORGET_AFTER_S: Final = 60.0
"""How long a member that was not leaving must be silent before it is forgotten, because it may return."""
MEET_AFTER_S: Final = 15.0
"""How long members that know each other, or should by now, have to connect."""
SILENT_S: Final = 15.0
"""How long a member may be silent before it is a problem: it may just be busy. The status remembers since when."""
LOST_AFTER_S: Final = 60.0
"""How long a running pod may be silent after its start; until then it counts as starting."""
MOST_MEETINGS: Final = 8
"""How many pairs are connected in one round."""


def decide(view: ClusterView) -> Decision:
    """Decide what to do, and report what is wrong with pods."""
    forgets = tuple(_forget(view))
    groups = _acquainted(view)
    meetings = (*_introduce(groups), *_meet(view, groups))[:MOST_MEETINGS]
    notes = tuple(_problems(view)) + tuple(_absences(view))
    if forgets:
        notes += (progress("Forgetting", "all members forget a removed member", "Healing"),)
    if meetings:
        notes += (progress("Meeting", "members are connected by CLUSTER MEET", "Healing"),)
    if not notes and not view.surplus and not view.formed:
        notes = (_joining(view),)
    return Decision(forgets + meetings, notes)


def _joining(view: ClusterView) -> Note:
    """Return what is missing for one cluster although all brokers answer."""
    if view.disconnected:
        one, other = view.disconnected[0]
        return progress("Joining", f"{one.name} is not connected to {other.name} yet", "Healing")
    return progress("Forgetting", "members list a node without a pod; they forget it after a minute", "Healing")


def _forget(view: ClusterView) -> Iterator[Command]:
    """Yield FORGET for all brokers that list a stale ID, or gossip would bring it back."""
    listing = {member.name: broker for member, broker in view.loaded}
    for known in view.stale:
        if known.leaving or known.silent_s >= FORGET_AFTER_S:
            for pod in known.known_by:
                words = ("CLUSTER", "FORGET", known.node_id)
                yield Command(pod, listing[pod].node_id, words, "no pod has this node ID")


def _introduce(groups: Sequence[Sequence[Member]]) -> Iterator[Command]:
    """Yield MEET for each group of members that no other member lists, from the lowest ordinal of the largest group."""
    first, *others = sorted(groups, key=lambda group: (-len(group), group[0].pod.ordinal)) or [()]
    for group in others:
        command = _meeting(first[0], group[0], f"{group[0].name} is a new member")
        if command is not None:
            yield command


def _acquainted(view: ClusterView) -> list[list[Member]]:
    """Return the members that answer in groups that know each other, directly or through others."""
    groups: list[list[Member]] = []
    for member, broker in view.loaded:
        if member in view.surplus:
            continue
        listed = {peer.node_id for peer in broker.peers}
        known = [group for group in groups if any(_know(broker, listed, one.loaded) for one in group)]
        joined = [member, *(one for group in known for one in group)]
        groups = [joined, *(group for group in groups if group not in known)]
    return [sorted(group, key=lambda one: one.pod.ordinal) for group in groups]


def _know(broker: Broker, listed: Container[str], other: Broker | None) -> bool:
    return other is not None and (
        other.node_id in listed or any(peer.node_id == broker.node_id for peer in other.peers)
    )


def _meeting(one: Member, other: Member, why: str) -> Command | None:
    """Return MEET; None if it would be too early, or was sent already."""
    broker, target = one.loaded, other.loaded
    if broker is None or target is None or broker.node_id == target.node_id:
        return None
    if one.pod.terminating or other.pod.terminating or not other.pod.ip or other.pod.ip in broker.meeting:
        return None
    words = ("CLUSTER", "MEET", other.pod.ip, str(names.CLIENT_PORT))
    return Command(one.name, broker.node_id, words, why, met=(other.name, target.node_id))


def _meet(view: ClusterView, groups: Sequence[Sequence[Member]]) -> Iterator[Command]:
    """Yield MEET for the lower ordinal of each pair of disconnected members that know each other."""
    brokers = {member.pod.ordinal: broker for member, broker in view.loaded}
    group_of = {member.name: number for number, group in enumerate(groups) for member in group}
    pairs = {
        tuple(sorted((one.pod.ordinal, other.pod.ordinal)))
        for one, other in view.disconnected
        if group_of.get(one.name) == group_of.get(other.name)
    }
    for low, high in sorted(pairs):
        one, other = view.by_ordinal[low], view.by_ordinal[high]
        if _is_settled(one, brokers[low], brokers[high]) and _is_settled(other, brokers[high], brokers[low]):
            command = _meeting(one, other, f"{one.name} and {other.name} have not found each other")
            if command is not None:
                yield command


def _is_settled(member: Member, broker: Broker, other: Broker) -> bool:
    """Return whether a member had enough time to find the other one."""
    if member.pod.terminating or not member.pod.ip or broker.uptime_s < MEET_AFTER_S or broker.node_id == other.node_id:
        return False
    line = next((peer for peer in broker.peers if peer.node_id == other.node_id), None)
    return line is None or line.connected or line.silent_s >= MEET_AFTER_S


def _absences(view: ClusterView) -> Iterator[Note]:
    """Yield notes about members that are absent and expected to return."""
    overdue = _silent_s(view) >= SILENT_S
    if view.missing and not view.observed.quota:
        pods = ", ".join(names.pod(view.spec.name, ordinal) for ordinal in view.missing)
        yield progress("PodsMissing", f"waiting for the StatefulSet controller to create {pods}", "Healing")
    for member in view.members:
        if member.pod.trouble or member.pod.ordinal >= view.expected:
            continue
        if member.pod.terminating:
            yield progress("PodStopping", f"{member.name} is stopping", "Healing")
        elif member.loaded is None and not member.locked and not (overdue and _is_lost(member)):
            what = "does not answer" if member.pod.ready else "is starting"
            yield progress("PodStarting", f"{member.name} {what}", "Healing")
        elif member.loaded is not None and not member.pod.ready and member.loaded.leaving is None:
            yield progress("PodStarting", f"{member.name} has loaded its jobs and is not ready yet", "Healing")


def _silent_s(view: ClusterView) -> float:
    """Return how long some member has been unreachable, by the condition AllMembersReachable."""
    entry = condition_of(view.observed.status, "AllMembersReachable")
    return view.now_s - seconds(entry["lastTransitionTime"]) if entry.get("status") == "False" else 0.0


def _is_lost(member: Member) -> bool:
    """Return whether a pod that does not answer has had enough time to start."""
    pod = member.pod
    return (
        member.broker is None and pod.phase == "Running" and (pod.ready or pod.restarts > 0 or pod.age_s > LOST_AFTER_S)
    )


def _problems(view: ClusterView) -> Iterator[Note]:
    """Yield problems that an administrator must solve."""
    overdue = _silent_s(view) >= SILENT_S
    if view.observed.quota:
        yield problem(
            "PodsRefused",
            f"pods cannot be created: {view.observed.quota}. Raise the quota of the namespace, or lower spec.replicas "
            "or spec.resources",
        )
    for pods in view.ids.values():
        if len(pods) > 1:
            yield problem(
                "DuplicateNode",
                f"{' and '.join(pods)} have the same node ID, so a volume was copied. Delete nodes.conf on one of the "
                "volumes, then its pod",
            )
    for member in view.members:
        if member.pod.trouble:
            yield _trouble(member, view)
        elif overdue and _is_lost(member) and not member.locked and not member.pod.terminating:
            yield problem("MemberUnreachable", f"{member.name} is unreachable: {member.unreachable}")
        if member.broker is not None and member.broker.refusing:
            yield problem(
                "DiskTrouble",
                f"{member.name} accepts no new jobs: {member.broker.refusing}. Increase spec.storage.size, or repair "
                "the volume",
            )
        if repair_stuck(member):
            yield problem(
                "RepairStuck",
                f"{member.name} has jobs with too few copies, and no other member takes any: see CLUSTER REPAIR STATUS "
                "there, and the memory of the others. Rollouts do not wait for it any more",
            )
        if member.broker is not None and member.broker.clock_ahead_ms:
            yield problem(
                "ClockAhead",
                f"{member.name} accepts no new jobs: its clock is {member.broker.clock_ahead_ms} ms ahead of the other "
                f"members. Set the clock of node {member.pod.node} by NTP, then delete the pod",
            )


def _image(member: Member, view: ClusterView) -> str:
    return f"cannot pull image {member.pod.image}: check spec.image and spec.imagePullSecrets{_former(view)}"


def _former(view: ClusterView) -> str:
    former = view.observed.status.get("formerImage")
    return f"; the previous image was {former}" if former else ""


def _unschedulable(_member: Member, _view: ClusterView) -> str:
    return (
        "no node can run it: check spec.resources, spec.nodeSelector, spec.affinity, spec.tolerations and the zone of "
        "its volume, or add nodes"
    )


def _config(_member: Member, _view: ClusterView) -> str:
    return "it needs a Secret or ConfigMap that does not exist: check spec.podTemplate and spec.auth.secretName"


def _crash(member: Member, view: ClusterView) -> str:
    return f"crash-looping: see kubectl logs {member.name} --previous{_former(view)}"


def _memory(_member: Member, _view: ClusterView) -> str:
    return "OOM-killed: raise spec.resources.limits.memory, or lower spec.maxmemory"


def _node_lost(_member: Member, _view: ClusterView) -> str:
    return (
        "its node does not answer. The pod returns with the node. If the node is lost permanently, make sure that its "
        "processes have stopped, then delete the Node object, or the pod with --force"
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
    "NodeLost": ("NodeLost", _node_lost),
    "OOMKilled": ("OutOfMemory", _memory),
    "Unreachable": ("NodeLost", _node_lost),
    "Unschedulable": ("Unschedulable", _unschedulable),
}


def _trouble(member: Member, view: ClusterView) -> Note:
    pod = member.pod
    reason, advice = _ADVICE.get(pod.trouble, ("PodFailed", None))
    details = f": {pod.trouble_text}" if pod.trouble_text and advice is None else ""
    text = advice(member, view) if advice else f"see kubectl describe pod {pod.name}"
    return problem(reason, f"{member.name} is not running ({pod.trouble}{details}): {text}")
