"""Sending frames to other nodes.

A frame for a node without a link is dropped: a sender that needs an answer repeats it. Frames are
collected per link and written once per turn of the event loop, which is what makes replication cheap. The messages that
confirm a copy (GOTJOB) or end a job (SETACK, GOTACK, DELJOB) are collected by type as well, and those of one turn leave
as one list. Consecutive copies of new jobs (REPLJOB) become one frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.frame import MAX_LISTED
from disqued.bus.writer import number

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Link, Peer
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState


def send(state: NodeState, peer: Peer, frame: bytes) -> bool:
    """Send a frame to a node; False if there is no link to it."""
    link = peer.link
    if link is None or link.closed:
        return False
    state.ready.put(link, frame)
    return True


def send_copy(state: NodeState, peers: list[Peer], frame: bytes) -> None:
    """Send a REPLJOB with one job to nodes. Nodes with the feature get the job in one message with those before it."""
    ready = state.ready
    for peer in peers:
        link = peer.link
        if link is None or link.closed:
            continue
        if peer.features & kinds.FEATURE_COPIES:
            ready.put_copy(link, frame)
        else:
            ready.put(link, frame)


def send_when_logged(state: NodeState, peer: Peer, frame: bytes) -> None:
    """Send a frame to a node when all changes of this node so far are logged; the frame says that they are."""
    link = peer.link
    if link is not None and not link.closed:
        _put_when_logged(state, link, frame)


def _put_when_logged(state: NodeState, link: Link, frame: bytes) -> None:
    if state.lifecycle.journal.on:
        state.ready.put_when_logged(link, frame)
    else:
        state.ready.put(link, frame)


def confirm_copy(state: NodeState, peer: Peer, job_id: bytes, had: i64 = 0) -> None:
    """Send GOTJOB for a job when all changes so far are logged, in one list with those of this turn if possible."""
    link = peer.link
    if link is None or link.closed:
        return
    if peer.features & kinds.FEATURE_COPIES:
        link.gathered_waits = False
        _gather(state, link, kinds.GOTJOB, job_id, had)
    else:
        _put_when_logged(state, link, state.bus.about_job(kinds.GOTJOB, job_id, had))


def tell_end(state: NodeState, peer: Peer, kind: i64, job_id: bytes, aux: i64 = 0) -> None:
    """Send SETACK, GOTACK or DELJOB for a job to a node, in one list with those of this turn if the node knows lists.

    It leaves when all changes so far are logged: each of them tells the receiver that the job has ended here, and a
    node forgets an acknowledgement when the job has ended at all holders. Nothing depends on when a GOTACK with DROPPED
    arrives, so it waits for other output of the link, at most until the next visit of the cron.

    While the disk cannot be written, a SETACK leaves at once, as one of a node that only has the acknowledgement: no
    holder delivers the job any more, and the receiver, which asks this node too, does not forget it.
    """
    link = peer.link
    if link is None or link.closed:
        return
    if kind == kinds.SETACK and state.write_refusal:
        state.ready.put(link, state.bus.about_job(kind, job_id))
        return
    if not peer.features & kinds.FEATURE_LISTS:
        _put_when_logged(state, link, state.bus.about_job(kind, job_id, aux))
        return
    if kind != kinds.GOTACK or aux != kinds.DROPPED:
        link.gathered_waits = False
    _gather(state, link, kind, job_id, aux)


def _gather(state: NodeState, link: Link, kind: i64, job_id: bytes, aux: i64) -> None:
    """Add a message about one job to the list of its type."""
    parts = link.gathered.get(kind)
    if parts is None:
        parts = []
        link.gathered[kind] = parts
    parts.append(job_id)
    parts.append(number(aux))
    if len(parts) == MAX_LISTED * 2:
        del link.gathered[kind]
        _put_when_logged(state, link, state.bus.about_jobs(kind, parts))
    elif not link.gathering:
        link.gathering = True
        state.ready.gathering.append(link)


def send_gathered(state: NodeState, *, everything: bool = False) -> None:
    """Send the lists of this turn, `everything` also those that can wait."""
    links = state.ready.gathering
    waiting: list[Link] = []
    for link in links:
        if link.closed:
            link.gathered.clear()
        elif not everything and link.gathered_waits and not link.flushing:
            waiting.append(link)
            continue
        link.gathering = False
        link.gathered_waits = True
        for kind, parts in link.gathered.items():
            _put_when_logged(state, link, state.bus.about_jobs(kind, parts))
        link.gathered.clear()
    state.ready.gathering = waiting


def tell_holders(state: NodeState, job: Job, frame: bytes, of_repair: bytes = b"") -> None:
    """Send a frame to every other node that may hold the job, or another one to those with FEATURE_REPAIR."""
    state.holders.complete(job, state.view)
    delivered = job.delivered
    if delivered is None:
        return
    peers = state.view.peers
    for node_id in delivered:
        peer = peers.get(node_id)
        if peer is not None:
            send(state, peer, of_repair if of_repair and peer.features & kinds.FEATURE_REPAIR else frame)


def delete_at_holders(state: NodeState, job: Job, why: i64 = 0) -> None:
    """Send DELJOB to every other node that may hold the job; `why` is 0 if it is done, or `kinds.NOT_DONE`."""
    state.holders.complete(job, state.view)
    delivered = job.delivered
    if delivered is None:
        return
    peers = state.view.peers
    for node_id in delivered:
        peer = peers.get(node_id)
        if peer is not None:
            tell_end(state, peer, kinds.DELJOB, job.id, why if peer.features & kinds.FEATURE_FATES else 0)


def delete_everywhere(state: NodeState, job_id: bytes) -> None:
    """Send DELJOB to every other member of the cluster."""
    for peer in state.view.peers.values():
        if not peer.in_handshake:
            tell_end(state, peer, kinds.DELJOB, job_id)


def tell_all(state: NodeState, frame: bytes) -> None:
    """Send a frame to every other member of the cluster."""
    for peer in state.view.peers.values():
        if not peer.in_handshake:
            send(state, peer, frame)
