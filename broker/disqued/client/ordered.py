"""The calls about ordered queues: QNEW, QDROP, QTYPE and CLUSTER ORDERED. `calls` describes what a call is.

Jobs of ordered queues are added, fetched and acknowledged by the same calls as others.
"""

from __future__ import annotations

from collections.abc import Sequence

from disqued.client import replies
from disqued.client.calls import Call
from disqued.client.values import OrderedStatus, QueueKind
from disqued.client.wire import Argument, flag_words, option_words

_WAIT_S = 10.0
"""How long a node waits for the leader of a new queue, or of the catalog."""


def qnew(
    queue: str,
    *,
    replicas: int | None = None,
    single: bool = False,
    prefetch: int | None = None,
    nodes: Sequence[str] = (),
    force: bool = False,
) -> Call[str]:
    """Make an ordered queue (QNEW). Returns `OK` when it can be used, also if it exists with these options already.

    Args:
        queue: The queue's name, at most 256 bytes.
        replicas: On how many nodes it is, at most 5; by default 3, and 1 in a cluster of fewer nodes.
        single: Whether all jobs go to one worker, in order; the next worker takes over when that one is gone.
        prefetch: How many jobs a worker may have that it has not acknowledged.
        nodes: The IDs of the nodes; by default they are chosen, in different zones if possible.
        force: Make it although members of the cluster do not know ordered queues.

    Raises:
        QueueExists: there is an ordered queue with other options, or a queue of jobs, of that name.
        NoQuorum: the catalog of ordered queues has no leader. The queue was not made.
        ResponseError: the cluster has no catalog (`ordered_init`), or too few nodes.
    """
    words: tuple[Argument, ...] = option_words(REPLICAS=replicas)
    words += (*flag_words(SINGLE=single), *option_words(PREFETCH=prefetch), *flag_words(FORCE=force))
    if nodes:
        words += ("ON", *nodes)
    return Call(("QNEW", queue, "ORDERED", *words), replies.text, repeat=True, wait_s=_WAIT_S)


def qdrop(queue: str, *, force: bool = False) -> Call[str]:
    """Remove an ordered queue (QDROP), with its jobs only with `force`. Returns `OK`.

    Raises:
        NoQuorum: the queue, or the catalog, has no leader. The queue was not removed.
        ResponseError: the queue has jobs, or there is no such queue.
    """
    return Call(("QDROP", queue, *flag_words(FORCE=force)), replies.text, wait_s=_WAIT_S)


def qtype(queue: str) -> Call[QueueKind]:
    """Return `ordered` for an ordered queue, `jobs` for any other name (QTYPE)."""
    return Call(("QTYPE", queue), replies.queue_kind, repeat=True)


def ordered_init(nodes: Sequence[str]) -> Call[str]:
    """Found the catalog of ordered queues on the nodes with these IDs, once per cluster (CLUSTER ORDERED INIT).

    Use 3 or 5 nodes, in different zones if possible. All members must be reachable.

    Raises:
        QueueExists: the cluster has a catalog already.
        ResponseError: a member cannot be reached, or does not know ordered queues.
    """
    if isinstance(nodes, str) or not nodes:
        raise ValueError("ordered_init() needs a sequence of node IDs")
    return Call(("CLUSTER", "ORDERED", "INIT", *nodes), replies.text, wait_s=_WAIT_S)


def ordered_status() -> Call[OrderedStatus]:
    """Return the catalog and the ordered queues as the node knows them (CLUSTER ORDERED STATUS).

    Numbers of jobs, and how far replicas are behind, are known to the node that leads a queue only.
    """
    return Call(("CLUSTER", "ORDERED", "STATUS"), replies.ordered_status, repeat=True)
