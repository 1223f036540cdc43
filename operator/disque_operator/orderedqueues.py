"""Ordered queues of DisqueQueues: making them, dropping them, and where they are.

| observed | decision |
|---|---|
| the queue is not in the catalog, and all members are connected | QNEW |
| it is there with other options | not Ready: OtherOptions. They cannot be changed |
| it is there, and the resource says `type: jobs` | not Ready: OtherType |
| its resource is deleted, `deletionPolicy: Delete`, no jobs are left or `deleteJobs` | QDROP |
| the same, and jobs are left | wait until they are finished; the DisqueCluster names the queue |

Commands about a queue without a leader would wait for it, so they are not sent.
"""

from __future__ import annotations

from collections.abc import Iterator

from disque_operator.actions import Command
from disque_operator.apivalues import Json
from disque_operator.declared import Named, Verdict
from disque_operator.members import ClusterView
from disque_operator.observed import Broker, Kept
from disque_operator.orderedspec import OrderedQueue
from disque_operator.queuespec import QueueFields


def obstacle(view: ClusterView, queue: Named[QueueFields]) -> Verdict | None:
    """Return why a queue is not what its resource says, or cannot be used; None if it is and can."""
    group = view.ordered.queues.get(queue.name)
    if queue.fields.type == "jobs":
        text = "the cluster has an ordered queue of this name: delete this, and create a DisqueQueue with type: ordered"
        return Verdict(False, "OtherType", text) if group is not None else None
    if not view.loaded:
        return Verdict(False, "NoMembers", "no member of the cluster answers")
    if group is None:
        return _missing(view, queue.fields)
    options = queue.fields.ordered or OrderedQueue()
    if (group.single, group.prefetch) != (options.single, options.prefetch or 0):
        text = "the queue has another value of ordered.single or ordered.prefetch, which cannot be changed"
        return Verdict(False, "OtherOptions", text)
    if not group.leader:
        return Verdict(False, "NoLeader", "the queue has no leader, so it is not served")
    return None


def _missing(view: ClusterView, fields: QueueFields) -> Verdict:
    """Return why a queue is not in the catalog."""
    old = [member.name for member, broker in view.loaded if broker.ordered is None]
    if old:
        return Verdict(False, "MembersTooOld", f"these members do not know ordered queues: {', '.join(old)}")
    if not view.ordered.catalogs and not view.spec.ordered.enabled:
        text = "the cluster has no catalog of ordered queues: set ordered.enabled in the DisqueCluster"
        return Verdict(False, "NoCatalog", text)
    if len(view.ordered.catalogs) != 1 or not view.ordered.members.leader:
        text = "the catalog of ordered queues is not available: see the condition OrderedReady of the DisqueCluster"
        return Verdict(False, "NoCatalog", text)
    replicas = _replicas(view, fields)
    if replicas > view.expected:
        text = f"{replicas} members must keep the queue, and the cluster has {view.expected}: add members"
        return Verdict(False, "TooFewMembers", text)
    if not view.formed or any(broker.leaving is not None for _, broker in view.loaded):
        return Verdict(False, "Waiting", "the queue is made when all members are connected and none leaves")
    return Verdict(False, "Creating", "the queue is being made")


def _replicas(view: ClusterView, fields: QueueFields) -> int:
    options = fields.ordered or OrderedQueue()
    return options.replicas or view.spec.ordered.replicas


def creation(view: ClusterView, queue: Named[QueueFields]) -> Iterator[Command]:
    """Yield the command that makes a queue, if it can be made now."""
    found = obstacle(view, queue)
    if found is None or found.reason != "Creating":
        return
    options = queue.fields.ordered or OrderedQueue()
    words = ["QNEW", queue.name, "ORDERED", "REPLICAS", str(_replicas(view, queue.fields))]
    words += ["SINGLE"] if options.single else []
    words += ["PREFETCH", str(options.prefetch)] if options.prefetch else []
    member, broker = view.loaded[0]
    yield Command(member.name, broker.node_id, tuple(words), f"queue {queue.name}: it has a DisqueQueue")


def removal(view: ClusterView, name: str, entry: Kept) -> Iterator[Command]:
    """Yield the command that drops a queue whose resource is gone, if it can be dropped now."""
    group = view.ordered.queues.get(name)
    if group is None or not entry.ordered or not view.ordered.members.leader:
        return
    why = f"queue {name}: its DisqueQueue was deleted"
    for pod, broker in leading(view, name):
        if entry.drops_jobs:
            yield Command(pod, broker.node_id, ("QDROP", name, "FORCE"), why)
        elif not group.jobs:
            yield Command(pod, broker.node_id, ("QDROP", name), why)


def leading(view: ClusterView, name: str) -> list[tuple[str, Broker]]:
    """Return the leader of an ordered queue, as a list of one if it answers."""
    leader = view.ordered.queues[name].leader
    return [(member.name, broker) for member, broker in view.loaded if broker.node_id == leader]


def place(view: ClusterView, name: str) -> Json:
    """Return the field `ordered` of the status of a DisqueQueue, if the queue is in the catalog."""
    group = view.ordered.queues.get(name)
    if group is None:
        return {}
    pods = sorted(view.pod_of(node_id) for node_id in group.replicas)
    return {"ordered": {"leader": view.pod_of(group.leader), "replicas": pods}}
