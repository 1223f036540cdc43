"""The nodes that get the copies of a job: random reachable nodes, those with a slow link last."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import NOBODY, Job
from disqued.core.runtime.state import NodeState


def choose(state: NodeState, job: Job, count: i64) -> list[Peer]:
    """Choose up to `count` nodes that have a link and were not sent the job yet; nodes with a slow link come last.

    At-most-once jobs are only sent when this node keeps no copy. They are only sent to nodes of our own kind, because
    nodes of the original never queue such copies.
    """
    delivered = job.delivered
    if delivered is None:
        delivered = NOBODY
    free: list[Peer] = []
    slow: list[Peer] = []
    for peer in state.view.reachable:
        link = peer.link
        if link is None or link.closed or peer.id in delivered or (job.retry_s == 0 and peer.features == 0):
            continue
        if link.congested:
            slow.append(peer)
        else:
            free.append(peer)
    _sample(state, free, count)
    missing: i64 = count - len(free)
    if missing > 0 and slow:
        _sample(state, slow, missing)
        free.extend(slow)
    return free


def _sample(state: NodeState, peers: list[Peer], count: i64) -> None:
    """Reduce the list to `count` random peers."""
    have: i64 = len(peers)
    if have <= count:
        return
    at: i64 = 0
    while at < count:
        other: i64 = at + int(state.host.random() * float(have - at))
        peer = peers[at]
        peers[at] = peers[other]
        peers[other] = peer
        at += 1
    del peers[count:]


def is_slow(peer: Peer) -> bool:
    """Whether the link to the node is congested, so that nothing should be added to it."""
    link = peer.link
    return link is not None and not link.closed and link.congested
