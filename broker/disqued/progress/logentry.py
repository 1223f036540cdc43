"""LOGENTRY, GOTENTRY and LOGASK: entries of progress logs travel between the holders of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.jobs.claims import refusal
from disqued.core.jobs.job import ACKED
from disqued.core.jobs.jobid import is_job_id
from disqued.core.jobs.joblog import FULL, OTHER
from disqued.core.runtime.claiming import learn_claim
from disqued.core.runtime.joblogs import log_of
from disqued.core.runtime.message import Message
from disqued.core.runtime.outbox import send, send_when_logged
from disqued.progress.kept import progress_of
from disqued.progress.logs import key_of, send_log
from disqued.progress.payload import (
    ALL,
    HAS_IT,
    HAS_NO_ROOM,
    HAS_OTHER,
    IS_STALE,
    NEW,
    NO_JOB,
    PAST,
    Got,
    MalformedError,
    SentEntry,
    pack_got,
    unpack_entry,
    unpack_got,
)

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState

_ASK_EVERY_MS: Final = 1000
"""A log with a gap is asked for no more often."""


def handle_logentry(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Keep the entry, and say so when it is logged."""
    try:
        sent = unpack_entry(frame.payload)
    except MalformedError:
        return
    outcome = _take(state, peer, sent)
    if sent.purpose != PAST:
        got = Got(sent.job_id, sent.line[0], sent.line[1], outcome)
        send_when_logged(state, peer, state.bus.other(kinds.GOTENTRY, pack_got(got)))


def _take(state: NodeState, peer: Peer, sent: SentEntry) -> int:
    job = state.lifecycle.table.get(sent.job_id)
    if job is None or job.state == ACKED:
        if sent.purpose == NEW:  # another node looks for holders: nobody has the entry yet
            return NO_JOB
        for wait in progress_of(state).waits.get(sent.job_id, []):
            wait.collect(sent.line)
        return NO_JOB
    claim = sent.line[0]
    if claim and sent.purpose == NEW:
        if refusal(job, claim) is not None:
            return IS_STALE
        learn_claim(state, job, claim)
    logs = progress_of(state).logs
    outcome = logs.add(job, sent.line)
    if outcome == OTHER:
        return HAS_OTHER
    if outcome == FULL:
        return HAS_NO_ROOM
    log = logs.get(job.id)
    assert log is not None
    if log.has_gap(claim) and state.now_ms - log.asked_ms >= _ASK_EVERY_MS:
        log.asked_ms = state.now_ms
        send(state, peer, state.bus.other(kinds.LOGASK, job.id))
    return HAS_IT


def handle_gotentry(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Note that the holder has the log, and tell the clients that wait."""
    try:
        got = unpack_got(frame.payload)
    except MalformedError:
        return
    log = progress_of(state).logs.get(got.job_id)
    if log is not None and got.outcome in {HAS_IT, HAS_OTHER, HAS_NO_ROOM}:
        log.told.add(key_of(peer))
    for wait in list(progress_of(state).waits.get(got.job_id, [])):
        wait.hear(peer, got)


def handle_logask(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Send all entries of a job, and say that this was all."""
    job_id = frame.payload
    if not is_job_id(job_id):
        return
    log = log_of(state, job_id)
    if log is not None:
        send_log(state, peer, job_id, log)
    send(state, peer, state.bus.other(kinds.GOTENTRY, pack_got(Got(job_id, 0, 0, ALL))))


MESSAGES: Final = (
    Message(
        kinds.LOGENTRY,
        "LOGENTRY",
        kinds.OF_UNKNOWN,
        "a node that got LOGJOB, to the other holders with the feature, or to all nodes if it does not have the job; "
        "and as the answer to LOGASK",
        "the receiver keeps the entry; GOTENTRY if the sender wants it; LOGASK if an entry before it is missing",
        handle_logentry,
        feature=kinds.FEATURE_LOGS,
    ),
    Message(
        kinds.GOTENTRY,
        "GOTENTRY",
        kinds.OF_UNKNOWN,
        "the receiver of LOGENTRY, when the entry is logged; the receiver of LOGASK, behind all entries",
        "the sender of LOGENTRY counts a copy",
        handle_gotentry,
        feature=kinds.FEATURE_LOGS,
    ),
    Message(
        kinds.LOGASK,
        "LOGASK",
        kinds.OF_UNKNOWN,
        "a node that misses an entry, or got SHOWLOG, to holders with the feature",
        "LOGENTRY for each entry of the job, then GOTENTRY",
        handle_logask,
        feature=kinds.FEATURE_LOGS,
    ),
)
