"""The copies of a new job: to whom it is sent, who confirmed, and what its client is told.

A job that needs copies waits in wait-repl until enough nodes confirmed (GOTJOB). Every 50 ms without success one more
node is asked, and all that were asked get the longer list of holders; those that do not confirm are asked again. When
the client's time is over, or the client is gone, the copies are deleted wherever they may be (Disque README,
"Replication"). With ASYNC the client is told at once, unless the links to the chosen nodes can not take more: then it
waits for them.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.clients.blocked import WaitForCopies
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import NOBODY, Job, NodeIds
from disqued.core.runtime.counters import JOBS_ADDED
from disqued.core.runtime.outbox import send, tell_holders
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import release, suspend
from disqued.errors import NotReplicated
from disqued.replication.counters import ASYNC_COPIES_MISSING, ASYNC_HELD_BACK, DURATION, FAILURES, TIMEOUTS
from disqued.replication.external import hand_over
from disqued.replication.targets import choose, is_slow

ASK_MORE_MS: Final = 50
REPEAT_MS: Final = 100
"""How often nodes that do not confirm are asked again when there is nobody else to ask."""

_CODE: Final = NotReplicated().code
_TIMEOUT: Final = NotReplicated("Timeout reached before replicating to the requested number of nodes").encode()
_REMOVED: Final = NotReplicated("job removed (expired?) before the requested replication level was achieved").encode()


@mypyc_attr(acyclic=True)
class Replication(WaitForCopies):
    """A client that waits for copies, with the clock that asks for more of them."""

    def ring(self, state: NodeState) -> None:
        """Give up when it is time to; otherwise ask one more node, or again those that did not confirm."""
        job = self.job
        if 0 < self.deadline_ms <= state.now_ms:
            state.counters.add(TIMEOUTS)
            _take_back(state, job)
            _forget(state, job)
            _refuse(state, self, _TIMEOUT)
            return
        if self.held_back and not _is_held_back(state, job):
            _count_missing(state, job)
            _succeed(state, self)
            return
        if len(confirmed_by(job)) >= self.wanted and _succeed(state, self):
            return
        _ask_more(state, self)
        self.arm(state)

    def arm(self, state: NodeState) -> None:
        """Ring in 50 ms, or when the client's time is over."""
        at_ms: i64 = state.now_ms + ASK_MORE_MS
        if 0 < self.deadline_ms < at_ms:
            at_ms = self.deadline_ms
        state.lifecycle.timers.arm(self, at_ms)


def replicate(
    state: NodeState, session: Session, job: Job, timeout_ms: i64, *, asynchronous: bool, external: bool
) -> None:
    """Send a new job to other nodes; the client waits for them unless `asynchronous`.

    What this node can not keep itself (`external`) is never answered before one node confirmed it, ASYNC or not:
    otherwise nobody might have it.
    """
    needed: i64 = i64(job.repl) if external else i64(job.repl) - 1
    chosen = choose(state, job, needed)
    deadline_ms: i64 = state.now_ms + timeout_ms if timeout_ms > 0 else 0
    if external:
        if not chosen:
            raise NotReplicated
        wanted: i64 = 1 if asynchronous else needed
        _wait(state, Replication(session, job, deadline_ms, wanted, external=True), chosen)
    elif not asynchronous:
        _wait(state, Replication(session, job, deadline_ms, needed + 1), chosen)
    elif chosen and is_slow(chosen[-1]):
        state.counters.add(ASYNC_HELD_BACK)
        _wait(state, Replication(session, job, deadline_ms, needed + 1, held_back=True), chosen)
    else:
        _send_along(state, session, job, chosen)
        state.counters.add(ASYNC_COPIES_MISSING, needed - len(chosen))


def _send_along(state: NodeState, session: Session, job: Job, chosen: list[Peer]) -> None:
    """ASYNC: the job is placed here at once, and its copies may arrive or not."""
    if chosen:
        _list_holders(state, job, chosen, kept_here=True)
        _send(state, job, chosen, kinds.NOREPLY)
    state.lifecycle.admit(job, state.now_ms)
    state.counters.add(JOBS_ADDED)
    session.out.append(b"+" + job.id + b"\r\n")


def _wait(state: NodeState, wait: Replication, chosen: list[Peer]) -> None:
    """Register the job, send it to the chosen nodes and suspend its client."""
    job = wait.job
    _list_holders(state, job, chosen, kept_here=not wait.external)
    job.confirmed = NOBODY if wait.external else state.holders.keep((state.view.node_id,))
    _send(state, job, chosen, 0)
    state.lifecycle.await_copies(job, state.now_ms)
    state.waits_for_copies[job.id] = wait
    suspend(state, wait)
    wait.began_ms = state.now_ms
    wait.sent_ms = state.now_ms
    wait.arm(state)


def _list_holders(state: NodeState, job: Job, chosen: list[Peer], *, kept_here: bool) -> None:
    node_ids = [peer.id for peer in chosen]
    if kept_here:
        node_ids.insert(0, state.view.node_id)
    job.delivered = state.holders.keep(tuple(node_ids))


def _repljob(state: NodeState, job: Job, message_flags: i64) -> bytes:
    return state.job_frames.repljob(state.bus, job, state.now_ms, state.holders, message_flags)


def _send(state: NodeState, job: Job, chosen: list[Peer], message_flags: i64) -> None:
    """REPLJOB to nodes that were not sent the job before."""
    frame = _repljob(state, job, message_flags)
    for peer in chosen:
        send(state, peer, frame)


def _ask_more(state: NodeState, wait: Replication) -> None:
    """Send the job to one more node, and to those that were asked before: what changed, or the question again.

    A link that is congested carries the job already or its list of holders soon enough: nothing is added to it.
    """
    job = wait.job
    delivered = job.delivered
    assert delivered is not None
    added = choose(state, job, 1)
    if added:
        delivered = state.holders.plus(delivered, added[0].id)
        job.delivered = delivered
        _send(state, job, added, 0)
    elif state.now_ms - wait.sent_ms < REPEAT_MS:
        return
    wait.sent_ms = state.now_ms
    for node_id in delivered:
        peer = state.view.peers.get(node_id)
        if peer is None or (added and peer is added[0]):
            continue
        link = peer.link
        is_confirmed = node_id in confirmed_by(job)
        if link is None or link.closed or link.congested or (is_confirmed and not added):
            continue
        state.ready.put(link, _repljob(state, job, kinds.NOREPLY if is_confirmed else 0))


def confirm(state: NodeState, wait: WaitForCopies, peer: Peer) -> None:
    """A node that was asked has its copy."""
    job = wait.job
    confirmed = confirmed_by(job)
    if job.delivered is None or peer.id not in job.delivered or peer.id in confirmed:
        return
    confirmed = state.holders.plus(confirmed, peer.id)
    job.confirmed = confirmed
    if len(confirmed) >= wait.wanted:
        _succeed(state, wait)


def confirmed_by(job: Job) -> NodeIds:
    """The nodes that confirmed to have a copy of a job that waits for them."""
    confirmed = job.confirmed
    return NOBODY if confirmed is None else confirmed


def _succeed(state: NodeState, wait: WaitForCopies) -> bool:
    """The job has its copies: it is placed and its client gets the ID. False when nobody can be told to queue it."""
    job = wait.job
    if not wait.external:
        del state.waits_for_copies[job.id]
        state.lifecycle.place(job, state.now_ms)
    elif hand_over(state, job):
        _forget(state, job)
    else:
        return False
    _accept(state, wait)
    return True


def _accept(state: NodeState, wait: WaitForCopies) -> None:
    """Tell the client the ID of its job, whose key counts from now on."""
    state.lifecycle.keys.begin(wait.job.id, state.now_ms, state.now_ms)
    state.counters.add(JOBS_ADDED)
    state.counters.observe(DURATION, state.now_ms - wait.began_ms)
    release(state, wait, b"+" + wait.job.id + b"\r\n")


def _refuse(state: NodeState, wait: WaitForCopies, error: bytes) -> None:
    """Tell the client that its job does not have its copies."""
    state.errors.add(_CODE)
    state.counters.add(FAILURES)
    state.counters.observe(DURATION, state.now_ms - wait.began_ms)
    release(state, wait, error)


def _forget(state: NodeState, job: Job) -> None:
    """Drop a job that waits for copies without a word to its client: who calls this has one."""
    del state.waits_for_copies[job.id]
    state.lifecycle.drop(job)


def _delete_copies(state: NodeState, job: Job) -> None:
    tell_holders(state, job, state.bus.about_job(kinds.DELJOB, job.id))


def _take_back(state: NodeState, job: Job) -> None:
    """The job is not added after all: its copies are deleted, and the next one under its key is a new job."""
    _delete_copies(state, job)
    state.lifecycle.keys.forget(job.id)


def _is_held_back(state: NodeState, job: Job) -> bool:
    """Whether a link to a node that did not confirm yet can still not take more."""
    for node_id in job.delivered or NOBODY:
        peer = state.view.peers.get(node_id)
        if peer is not None and is_slow(peer) and node_id not in confirmed_by(job):
            return True
    return False


def _count_missing(state: NodeState, job: Job) -> None:
    """Count the copies of a job that was held back which are not even on their way."""
    missing: i64 = i64(job.repl) - 1
    for node_id in job.delivered or NOBODY:
        peer = state.view.peers.get(node_id)
        if peer is not None and (peer.link is not None or node_id in confirmed_by(job)):
            missing -= 1
    if missing > 0:
        state.counters.add(ASYNC_COPIES_MISSING, missing)


def complete(state: NodeState, job: Job) -> bool:
    """Answer who waits for the copies of a job as if all had confirmed; False when the job is not here any more.

    It was acknowledged, so what this node can not keep is not queued elsewhere either: its copies are deleted.
    """
    wait = state.waits_for_copies.get(job.id)
    if wait is None:
        return True
    if not wait.external:
        return _succeed(state, wait)
    _delete_copies(state, job)
    _forget(state, job)
    _accept(state, wait)
    return False


def lost(state: NodeState, job: Job) -> None:
    """The job is dropped before it had its copies: they are deleted and the client is told."""
    wait = state.waits_for_copies.pop(job.id, None)
    if wait is not None:
        _take_back(state, job)
        _refuse(state, wait, _REMOVED)


def client_gone(state: NodeState, wait: WaitForCopies) -> None:
    """The client that waited is gone: the job is deleted wherever it may be."""
    _take_back(state, wait.job)
    _forget(state, wait.job)
