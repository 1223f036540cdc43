"""SHOWLOG: the progress log of a job, as far as this node and the other holders that answer in time have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.commands.command import Command
from disqued.core.jobs.claims import parse_claim
from disqued.core.jobs.jobid import is_job_id
from disqued.core.runtime.manyjobs import queues_of_jobs
from disqued.core.runtime.outbox import send
from disqued.errors import BadJobId, CommandSyntaxError, NoJob, ReplyError
from disqued.progress.kept import progress_of
from disqued.progress.logjob import parse_seq
from disqued.progress.logs import holders_with_logs
from disqued.progress.waiting import ASK_MS, EntriesWait
from disqued.resp import writer
from disqued.resp.integers import parse_integer

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
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

    def reply(self, state: NodeState, job_id: bytes) -> bytes:
        """The entries, each an array of claim, number, time and entry. An error if the job has ended meanwhile."""
        if state.lifecycle.table.get(job_id) is None:
            return NoJob().encode()
        log = progress_of(state).logs.get(job_id)
        lines = [] if log is None else log.visible()
        wanted = [line for line in lines if line[1] >= self._first and self._claim in {None, line[0]}][: self._count]
        parts = [writer.array_header(len(wanted))]
        for claim, seq, at_ms, entry in wanted:
            numbers = writer.integer(claim) + writer.integer(seq) + writer.integer(at_ms)
            parts.append(writer.array_header(4) + numbers + writer.bulk(entry))
        return b"".join(parts)


def showlog(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Ask the other holders for their entries, and reply."""
    if not is_job_id(args[1]):
        raise BadJobId
    selection = Selection(args[2:])
    job = state.lifecycle.table.get(args[1])
    if job is None:
        raise NoJob
    job_id = job.id
    frame = state.bus.other(kinds.LOGASK, job_id)
    holders = [peer for peer in holders_with_logs(state, job) if peer.reachable and peer.connected]
    asked = {peer.id for peer in holders if send(state, peer, frame)}
    if not asked:
        session.out.append(selection.reply(state, job_id))
        return
    EntriesWait(session, state, job_id, asked, lambda: selection.reply(state, job_id)).begin(int(state.now_ms) + ASK_MS)


COMMAND: Final[Command] = Command(
    "showlog",
    -2,
    ("readonly",),
    showlog,
    "jobs",
    "Shows the progress log of a job: arrays of claim, sequence number, unix milliseconds and entry.",
    "job-id [CLAIM claim] [FROM seq] [COUNT n]",
    "O(entries)",
    queues=queues_of_jobs,
    categories=("consumer",),
)
