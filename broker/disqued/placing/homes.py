"""The homes of a job with a given ID: the nodes that get its copies, whichever node adds the job.

Two nodes may add the same job, because its ID was given by a client or derived from another job. They send it to the
same nodes, so it stays one job. The homes are as many reachable nodes as the job has copies, in the order of their
scores for the ID; nodes that know attributes come before those of the original.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.cluster.rendezvous import ranked, score
from disqued.core.jobs.job import Job, NodeIds
from disqued.core.runtime.state import NodeState


def homes(state: NodeState, job_id: bytes, copies: i64, needs: i64 = 0) -> list[bytes]:
    """The IDs of the homes of a job with this many copies, best first; this node may be one.

    `needs`: the features that a node must have to keep the job.
    """
    knowing = [state.view.node_id]
    others: list[bytes] = []
    for peer in state.view.reachable:
        if peer.features & needs != needs:
            continue
        (knowing if peer.features & kinds.FEATURE_ATTRIBUTES else others).append(peer.id)
    found = ranked(job_id, knowing) + ranked(job_id, others)
    return found[:copies]


def keeps_copies(state: NodeState) -> bool:
    """Whether this node keeps new jobs now: not while it leaves, is short of memory, or cannot write its file."""
    return not state.view.leaving and not state.write_refusal and state.lifecycle.memory.level() == 0


def needs_of(job: Job) -> i64:
    """The features that a node must have to keep the job; 0 for one that waits for no parents."""
    extra = job.extra
    return extra.needs if extra is not None and extra.held else 0


def is_home(state: NodeState, job_id: bytes, copies: i64, needs: i64 = 0) -> bool:
    """Whether this node is a home of the job and keeps new jobs."""
    if not keeps_copies(state):
        return False
    return i64(len(state.view.reachable)) < copies or state.view.node_id in homes(state, job_id, copies, needs)


def by_score(job_id: bytes, peers: list[Peer]) -> list[Peer]:
    """The nodes in the order in which they become homes."""
    return sorted(
        peers,
        key=lambda peer: (peer.features & kinds.FEATURE_ATTRIBUTES != 0, score(job_id, peer.id), peer.id),
        reverse=True,
    )


def best(job_id: bytes, peers: list[Peer], count: i64) -> list[Peer]:
    """The first `count` of the nodes in that order; if there are no more, all of them as they are."""
    return peers if i64(len(peers)) <= count else by_score(job_id, peers)[:count]


def live_holders(state: NodeState, job: Job) -> list[bytes]:
    """The nodes that have a copy of a job, know attributes and can be reached, best first; this node is one."""
    listed: NodeIds = job.delivered or ()
    others = [
        peer.id for peer in state.view.reachable if peer.features & kinds.FEATURE_ATTRIBUTES and peer.id in listed
    ]
    return ranked(job.id, [state.view.node_id, *others])
