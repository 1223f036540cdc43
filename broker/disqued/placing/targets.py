"""The nodes that get the copies of a job: random reachable nodes, those with a slow link last.

If nodes have zones, zones with the fewest copies of the job come first (`core.cluster.zones`). The ID of a job decides
which nodes get it if two nodes may add it (`homes`).
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.cluster.peer import Peer
from disqued.core.cluster.zones import ZoneSpread
from disqued.core.jobs.job import Job, NodeIds
from disqued.core.runtime.state import NodeState
from disqued.placing.homes import best


def choose(state: NodeState, job: Job, holders: NodeIds, count: i64) -> list[Peer]:
    """Choose up to `count` nodes that have a link and are not `holders`; nodes with a slow link come last.

    At-most-once jobs are only sent when this node keeps no copy. They are only sent to nodes of our own kind, because
    nodes of the original never queue such copies. A job that waits for its parents is only sent to nodes that know
    that it must wait.
    """
    free: list[Peer] = []
    slow: list[Peer] = []
    for peer in state.view.reachable:
        link = peer.link
        if link is None or link.closed or peer.id in holders or (job.retry_s == 0 and peer.features == 0):
            continue
        if job.extra is not None and not link.answered:
            continue  # whether it understands attributes is not known yet; it is asked later
        if job.is_held and not job.is_whole_with(peer.features):
            continue
        if link.congested:
            slow.append(peer)
        else:
            free.append(peer)
    if job.is_named:
        return best(job.id, free + slow, count)
    if state.view.zoned:
        return _spread(state, free, slow, holders, count)
    _sample(state, free, count)
    missing: i64 = count - len(free)
    if missing > 0 and slow:
        _sample(state, slow, missing)
        free.extend(slow)
    return free


def _spread(state: NodeState, free: list[Peer], slow: list[Peer], holders: NodeIds, count: i64) -> list[Peer]:
    """Choose as `choose` does, random nodes of the zones that have the fewest copies."""
    spread = ZoneSpread(state.view, holders)
    _shuffle(state, free, len(free))
    chosen = spread.take(free, count)
    missing: i64 = count - len(chosen)
    if missing > 0 and slow:
        _shuffle(state, slow, len(slow))
        chosen.extend(spread.take(slow, missing))
    return chosen


def _sample(state: NodeState, peers: list[Peer], count: i64) -> None:
    """Reduce the list to `count` random peers."""
    if len(peers) > count:
        _shuffle(state, peers, count)
        del peers[count:]


def _shuffle(state: NodeState, peers: list[Peer], count: i64) -> None:
    """Move `count` random peers to the front, in random order."""
    have: i64 = len(peers)
    at: i64 = 0
    while at < count:
        other: i64 = at + int(state.host.random() * float(have - at))
        peer = peers[at]
        peers[at] = peers[other]
        peers[other] = peer
        at += 1


def is_slow(peer: Peer) -> bool:
    """Whether the link to the node is congested, so that nothing should be added to it."""
    link = peer.link
    return link is not None and not link.closed and link.congested
