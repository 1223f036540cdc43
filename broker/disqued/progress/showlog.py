"""SHOWLOG: the progress log of a job, as far as this node and the other holders that answer in time have it.

The log of a job that ended is with its record. A node without that asks all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.commands.command import Command
from disqued.core.jobs.claims import parse_claim
from disqued.core.jobs.job import ACKED
from disqued.core.jobs.jobid import is_job_id
from disqued.core.jobs.joblog import JobLog
from disqued.core.runtime.joblogs import log_of
from disqued.core.runtime.manyjobs import queues_of_fates
from disqued.core.runtime.outbox import send
from disqued.errors import BadJobId, CommandSyntaxError, NoJob, ReplyError
from disqued.progress.logjob import parse_seq
from disqued.progress.logs import holders_with_logs
from disqued.progress.waiting import ASK_MS, EntriesWait
from disqued.resp import writer
from disqued.resp.integers import parse_integer

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState


class Selection:
    """Which entries of a log a client wants."""

    def __init__(self, options: list[bytes]) -> None:
        self._claim: int | None = None
        self._first = 0
        self._count: int | None = None
        if len(options) % 2:
            raise CommandSyntaxError
        for word, value in zip(options[::2], options[1::2], strict=True):
            self._set(word.upper(), value)

    def _set(self, word: bytes, value: bytes) -> None:
        if word == b"CLAIM":
            self._claim = 0 if value == b"0" else int(parse_claim(value))
        elif word == b"FROM":
            self._first = parse_seq(value)
        elif word == b"COUNT":
            self._count = parse_integer(value)
            if self._count is None or self._count < 1:
                raise ReplyError("ERR COUNT must be a number greater than zero")
        else:
            raise CommandSyntaxError

    def reply(self, state: NodeState, job_id: bytes, collected: JobLog) -> bytes:
        """The entries, each an array of claim, number, time and entry; `collected` are those of other nodes.

        An error if no node that answered knows the job.
        """
        log = log_of(state, job_id) or (collected if collected.count > 0 else None)
        job = state.lifecycle.table.get(job_id)
        if log is None and (job is None or job.is_dummy) and state.records.get(job_id) is None:
            return NoJob().encode()
        lines = [] if log is None else log.visible()
        wanted = [line for line in lines if line[1] >= self._first and self._claim in {None, line[0]}][: self._count]
        parts = [writer.array_header(len(wanted))]
        for claim, seq, at_ms, entry in wanted:
            numbers = writer.integer(claim) + writer.integer(seq) + writer.integer(at_ms)
            parts.append(writer.array_header(4) + numbers + writer.bulk(entry))
        return b"".join(parts)


def showlog(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Ask the nodes that may have entries, and reply."""
    if not is_job_id(args[1]):
        raise BadJobId
    selection = Selection(args[2:])
    job_id = args[1]
    frame = state.bus.other(kinds.LOGASK, job_id)
    asked = {peer.id for peer in _peers_with_entries(state, job_id) if peer.connected and send(state, peer, frame)}
    if not asked:
        session.out.append(selection.reply(state, job_id, JobLog()))
        return
    wait = EntriesWait(session, state, job_id, asked, lambda found: selection.reply(state, job_id, found))
    wait.begin(int(state.now_ms) + ASK_MS)


def _peers_with_entries(state: NodeState, job_id: bytes) -> list[Peer]:
    """The other nodes that may have entries which this node does not have."""
    job = state.lifecycle.table.get(job_id)
    if job is not None and job.state != ACKED:
        return [peer for peer in holders_with_logs(state, job) if peer.reachable]
    if log_of(state, job_id) is not None:
        return []
    return [peer for peer in state.view.reachable if peer.features & kinds.FEATURE_LOGS]


COMMAND: Final[Command] = Command(
    "showlog",
    -2,
    ("readonly",),
    showlog,
    "jobs",
    "Shows the progress log of a job: arrays of claim, sequence number, unix milliseconds and entry.",
    "job-id [CLAIM claim] [FROM seq] [COUNT n]",
    "O(entries)",
    queues=queues_of_fates,
    categories=("consumer",),
)
