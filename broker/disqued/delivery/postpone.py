"""POSTPONE: a worker gave a job back for later, so no node must queue it before that time.

The message says in how many milliseconds. A node that did not get it asks before it queues the job (WILLQUEUE), and
gets it as the answer. Nodes of the original get WORKING instead, at once and whenever they ask: they wait for their
retry time again, and may queue the job early only while no node of ours that has it can be reached.

The record POSTPONE keeps the time in the append-only file; a delay is worth nothing if a restart ends it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import ACTIVE, DELAYED, MAX_COUNTER, NOBODY, POSTPONED, Job
from disqued.core.jobs.jobid import is_job_id
from disqued.core.lifecycle.lifecycle import COUNT_NACK, UNCOUNTED
from disqued.core.lifecycle.records import Words
from disqued.core.lifecycle.times import JITTER_MS, WILLQUEUE_LEAD_MS
from disqued.core.runtime.message import Message
from disqued.core.runtime.outbox import send
from disqued.core.runtime.recordkind import RecordKind
from disqued.core.runtime.state import NodeState
from disqued.delivery.lease import MAX_TOLD_MS, follow
from disqued.jobmessages import job_held_with

POSTPONE_RECORD: Final = b"POSTPONE"
_SOON_MS: Final = 2 * (WILLQUEUE_LEAD_MS + JITTER_MS)
_CONTENT: Final = re.compile(rb"(\S{40}) \d{1,18} \d{1,10} [01]")
"""The content of a record: ID, time in unix milliseconds, NACKs, and whether it waits here."""


def postpone(state: NodeState, job: Job, delay_ms: i64, counting: i64) -> bool:
    """Have a job queued again after a delay; False if it is never queued again."""
    if not state.lifecycle.postpone_until(job, state.now_ms, state.now_ms + delay_ms, counting, here=True):
        return False
    _note(state, job)
    state.holders.complete(job, state.view)
    for node_id in job.delivered or NOBODY:
        peer = state.view.peers.get(node_id)
        if peer is not None:
            tell(state, peer, job, kinds.INCR_NACKS if counting == COUNT_NACK else 0)
    return True


def is_postponed(state: NodeState, job: Job) -> bool:
    """Whether a job must not be queued yet, by any node, and its time does not come at once.

    The times of its holders differ a little. A node whose time has come must not be told to wait for a later one.
    """
    left_ms: i64 = job.requeue_at_ms - state.now_ms
    return job.state == ACTIVE and job.flags & POSTPONED != 0 and left_ms > _SOON_MS


def tell(state: NodeState, peer: Peer, job: Job, message_flags: i64 = 0) -> None:
    """Tell another holder how long the job must wait."""
    if peer.features & kinds.FEATURE_ATTRIBUTES:
        left_ms: i64 = min(max(job.requeue_at_ms - state.now_ms, 0), MAX_TOLD_MS)
        send(state, peer, state.bus.about_job(kinds.POSTPONE, job.id, left_ms, message_flags))
    else:
        send(state, peer, state.bus.about_job(kinds.WORKING, job.id))


def handle_postpone(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Wait as well, and count the NACK if the message says so. Or a worker has the job for this time (`lease`)."""
    job = job_held_with(state, peer, frame)
    if job is None:
        return
    if frame.message_flags & kinds.INCR_DELIVERIES:
        follow(state, job, frame.aux)
        return
    counting = COUNT_NACK if frame.message_flags & kinds.INCR_NACKS else UNCOUNTED
    if state.lifecycle.postpone_until(job, state.now_ms, state.now_ms + frame.aux, counting, here=False):
        _note(state, job)


# --- on disk ----------------------------------------------------------------------------------------------------------


def _note(state: NodeState, job: Job) -> None:
    state.lifecycle.journal.note(_record_of(state, job))


def _record_of(state: NodeState, job: Job) -> Words:
    at_ms: i64 = job.requeue_at_ms + state.wall_ahead_s * 1000
    return record_words(job.id, int(at_ms), int(job.nacks), here=job.flags & DELAYED != 0)


def record_words(job_id: bytes, at_ms: int, nacks: int, *, here: bool) -> Words:
    """The record of a job that waits until `at_ms`, in unix milliseconds. `here`: not for another node."""
    return (POSTPONE_RECORD, b"%b %d %d %d" % (job_id, at_ms, nacks, here))


def parse_record(content: bytes) -> tuple[bytes, int, int]:
    """The ID, the time in unix milliseconds and the NACKs in the content of a valid record."""
    parts = content.split(b" ")
    return parts[0], int(parts[1]), int(parts[2])


def record_fault(words: list[bytes]) -> str:
    """Return what is wrong with a POSTPONE record; empty if nothing is."""
    found = _CONTENT.fullmatch(words[1])
    if found is not None and is_job_id(found[1]):
        return ""
    return f"POSTPONE with {words[1][:80]!r} instead of a job ID and three numbers"


def load_record(state: NodeState, words: list[bytes]) -> None:
    """Have the job wait as a record says, unless its time has come."""
    parts = words[1].split(b" ")
    job = state.lifecycle.table.get(parts[0])
    if job is None:
        return
    job.nacks = min(max(int(parts[2]), int(job.nacks)), MAX_COUNTER)
    at_ms = min(int(parts[1]) - int(state.wall_ahead_s) * 1000, int(job.expire_at_s) * 1000)
    if at_ms > state.now_ms:
        state.lifecycle.postpone_until(job, state.now_ms, at_ms, UNCOUNTED, here=parts[3] != b"0")


def current_records(_state: NodeState) -> Iterator[list[Words]]:
    """Yield nothing: the records follow those of their jobs."""
    yield from ()


def record_of_job(state: NodeState, job: Job) -> Words | None:
    """The record of a job that waits; None if it does not."""
    return _record_of(state, job) if job.state == ACTIVE and job.flags & POSTPONED else None


RECORD: Final[RecordKind] = RecordKind(
    "POSTPONE", 2, record_fault, load_record, current_records, is_sealed=True, of_job=record_of_job
)

MESSAGE: Final[Message] = Message(
    kinds.POSTPONE,
    "POSTPONE",
    kinds.OF_JOB_ID,
    "a node to which a worker gave a job back for later, to the other holders; the number: for how many ms. "
    "With INCR_DELIV, a worker has the job for this time",
    "the receiver does not queue the job before",
    handle_postpone,
    feature=kinds.FEATURE_ATTRIBUTES,
)
