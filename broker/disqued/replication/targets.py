"""Who gets the copies of a job: reachable nodes by chance, those with a free link before slow ones."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import NOBODY, Job
from disqued.core.runtime.state import NodeState


def choose(state: NodeState, job: Job, count: i64) -> list[Peer]:
    """Up to `count` nodes that can be sent the job and were not yet, all of them with a link, slow ones last.

    At-most-once jobs go only to nodes of our own kind: they are only sent when this node keeps no copy, and the
    original never queues what it got in that way.
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
    """Leave `count` of the peers, any of them with the same chance."""
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
    """Whether so much waits on the link to it that no more should be added."""
    link = peer.link
    return link is not None and not link.closed and link.congested
