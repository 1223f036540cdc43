"""YOURJOBS: jobs that were queued on another node and are wanted here.

They are queued here at once, silently and in the order of their creation. With a retry time this node becomes one more
holder: the node they come from listed it already if it is of our kind, other holders and nodes of the original learn it
from a WILLQUEUE each. Without that they would neither forward acknowledgements nor wait for ours, and could crash
a node of the original (Disque 1.0-rc1 deletes such a job twice).
"""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.fates.fate import DONE, UNKNOWN
from disqued.core.jobs.codec import CorruptJob, unpack
from disqued.core.jobs.job import ACKED, NOBODY, WAIT_REPL, Job, NodeIds
from disqued.core.lifecycle.lifecycle import SILENT
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState
from disqued.federation.counters import IMPORTED_AT_MOST_ONCE, JOBS_IMPORTED
from disqued.federation.importing import record_source
from disqued.jobmessages import members_of, note_holder, send_setack, take_expiry


def handle_yourjobs(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Queue the jobs; stop at one that cannot be read."""
    at = frame.jobs_at
    end = frame.end
    left = frame.jobs_count
    arrivals = Arrivals(peer)
    while left > 0 and at < end:
        try:
            unpacked = unpack(frame.data, at, end)
        except CorruptJob as error:
            who = peer.id.decode("ascii", "replace")
            state.host.log("warning", f"Ignoring the rest of a YOURJOBS from {who}: {error}")
            break
        at = unpacked.end
        left -= 1
        _import(state, peer, unpacked.job, unpacked.holders, arrivals)
    arrivals.record(state)


@mypyc_attr(acyclic=True)
class Arrivals:
    """Jobs that arrived together. What consecutive ones share is done once: their holders, source and import rate."""

    def __init__(self, source: Peer) -> None:
        self._source = source
        self._listed = b""
        self._holders: NodeIds = NOBODY
        self._queue = b""
        self._jobs: i64 = 0
        self._queued: i64 = 0

    def add(self, state: NodeState, queue: bytes, *, queued: bool) -> None:
        """Count a job; `queued` if it was queued here."""
        if queue is not self._queue and queue != self._queue:
            self.record(state)
            self._queue = queue
        self._jobs += 1
        if queued:
            self._queued += 1

    def holders(self, state: NodeState, listed: bytes) -> NodeIds:
        """The holders of a job from now on: those in its list that are members, its source, and this node."""
        if not self._holders or listed != self._listed:
            holders = state.holders
            others = holders.plus(members_of(state, holders.unpack(listed)), self._source.id)
            self._listed = listed
            self._holders = holders.plus(others, state.view.node_id)
        return self._holders

    def record(self, state: NodeState) -> None:
        """Update the source and the import rate of the queue."""
        if self._jobs > 0:
            queue = state.lifecycle.make_queue(self._queue, state.now_ms)
            imports = record_source(state, queue, self._source.id, self._jobs)
            if self._queued > 0:
                imports.count_imports(state.now_ms, self._queued)
                state.counters.add(JOBS_IMPORTED, self._queued)
            self._jobs = 0
            self._queued = 0


def _import(state: NodeState, peer: Peer, sent: Job, listed: bytes, arrivals: Arrivals) -> None:
    """Take over one job, known here or not."""
    lifecycle = state.lifecycle
    now_ms = state.now_ms
    job = lifecycle.table.get(sent.id)
    if job is not None and job.state == WAIT_REPL:
        # The source queued its copy because the retry time is shorter than the timeout of the client that adds the job.
        # Moving it makes no new copy, so the client still waits; the source keeps the job and requeues it.
        return
    if job is None or job.is_dummy:
        if sent.retry_s > 0:
            sent.delivered = arrivals.holders(state, listed)
        _register(state, peer, sent, job)
        if job is not None or state.events.is_done(sent.id):
            known = job is not None and job.is_known_as_done
            lifecycle.acknowledge(sent, now_ms, DONE if known else UNKNOWN)
        job = sent
    elif job.retry_s > 0:
        note_holder(state, job, peer)
        lifecycle.merge_attributes(job, sent.extra)
    if job.state == ACKED:
        _tell_acknowledged(state, peer, job)
        return
    if job.retry_s > 0 and lifecycle.is_leased(job, now_ms):
        return  # queued there and taken here at once: it is not to be delivered twice
    if job.is_held:
        lifecycle.free_elsewhere(job)  # its parents are done, as it was queued there
    if job.requeue_at_ms == 0:
        job.requeue_at_ms = now_ms
    queued = lifecycle.enqueue(job, now_ms, SILENT)
    arrivals.add(state, job.queue, queued=queued)
    if queued and job.retry_s == 0:
        state.counters.add(IMPORTED_AT_MOST_ONCE)


def _register(state: NodeState, peer: Peer, job: Job, dummy: Job | None) -> None:
    """Make a job known here, in place of its bare acknowledgement if there was one, and this node to its holders."""
    lifecycle = state.lifecycle
    if dummy is not None:
        lifecycle.drop(dummy)
    queue = lifecycle.queues.get(job.queue)
    if queue is not None:
        job.queue = queue.name
    if job.retry_s > 0:
        _introduce(state, peer, job)
    take_expiry(state, job, peer)
    lifecycle.keep_import(job, state.now_ms)


def _introduce(state: NodeState, source: Peer, job: Job) -> None:
    """Tell the holders that cannot know it that this node is a holder too, and has the job queued."""
    delivered = job.delivered
    assert delivered is not None
    for node_id in delivered:
        peer = state.view.peers.get(node_id)
        if peer is not None and (peer is not source or peer.features == 0):
            send(state, peer, state.bus.about_job(kinds.WILLQUEUE, job.id, 0, kinds.TRANSFER))


def _tell_acknowledged(state: NodeState, peer: Peer, job: Job) -> None:
    """Somebody queued a job that is done: let it know, or it would be delivered there again."""
    if job.retry_s == 0:
        return
    if peer.features == 0:
        send(state, peer, state.bus.about_job(kinds.WILLQUEUE, job.id))
    send_setack(state, job, peer)
