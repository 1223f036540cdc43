"""DELJOB: drop jobs on this node only. As a bus message (DELJOBS for many): drop what all holders know to be done."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.acks.room import acks_of
from disqued.bus import kinds
from disqued.bus.frame import LISTED_BYTES, Frame
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Peer
from disqued.core.commands.command import Command
from disqued.core.fates.fate import DELETED, DONE
from disqued.core.jobs.job import ACKED
from disqued.core.runtime.audit import always
from disqued.core.runtime.manyjobs import for_each_job, queues_of_jobs
from disqued.core.runtime.message import Message
from disqued.core.runtime.state import NodeState
from disqued.resp.limits import MAX_ARGUMENTS


def deljob(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Drop the known jobs among the IDs and reply with their number."""
    for_each_job(state, session, args, drop)


def drop(state: NodeState, session: Session, args: list[bytes], first: int, end: int) -> int:
    """Drop the jobs whose IDs are in this part of the request; returns how many were known."""
    lifecycle = state.lifecycle
    deleted = 0
    for index in range(first, end):
        job = lifecycle.table.get(args[index])
        if job is None:
            state.ready.tell_again(session)
        else:
            if job.state != ACKED:
                lifecycle.keys.forget(job.id)  # a client that deletes an unfinished job may add it again under its key
            lifecycle.end(job, DELETED)
            deleted += 1
    return deleted


def handle_deljob(state: NodeState, peer: Peer, frame: Frame) -> None:  # noqa: ARG001 - whoever says so
    """Drop the job, whatever its state."""
    _drop_done(state, frame.job_id, frame.aux)


def handle_deljobs(state: NodeState, peer: Peer, frame: Frame) -> None:  # noqa: ARG001 - whoever says so
    """Drop the jobs, whatever their states."""
    at = frame.jobs_at
    while at < frame.end:
        _drop_done(state, frame.listed(at), frame.listed_aux(at))
        at += LISTED_BYTES


def _drop_done(state: NodeState, job_id: bytes, why: i64) -> None:
    """Drop a job. `why` says how it ended if this node does not know yet: 0 that it is done, or `kinds.NOT_DONE`."""
    job = state.lifecycle.table.get(job_id)
    if job is not None:
        if job.state == ACKED:
            acks_of(state).done.note(job.id, state.now_ms)
        state.lifecycle.end(job, DELETED if why == kinds.NOT_DONE else DONE)


MESSAGE: Final[Message] = Message(
    kinds.DELJOB,
    "DELJOB",
    kinds.OF_JOB_ID,
    "a node that has all confirmations, or got FASTACK, to the other holders; the number is 1 if the job was deleted "
    "or is not added after all, otherwise 0",
    "the receiver drops the job",
    handle_deljob,
)

LIST: Final[Message] = Message(
    kinds.DELJOBS,
    "DELJOBS",
    kinds.OF_JOB_IDS,
    "as DELJOB, for the jobs of one turn of the event loop, to nodes with the feature",
    "as DELJOB for each job",
    handle_deljobs,
    feature=kinds.FEATURE_LISTS,
)

COMMAND: Final[Command] = Command(
    "deljob",
    -1,
    ("write", "fast"),
    deljob,
    "jobs",
    "Deletes jobs from this node only.",
    "job-id [job-id ...]",
    "O(jobs)",
    most_words=MAX_ARGUMENTS,
    queues=queues_of_jobs,
    audited=always,
    categories=("queueadmin",),
)
