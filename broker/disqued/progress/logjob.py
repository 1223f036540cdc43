"""LOGJOB: a worker adds an entry to the progress log of its job.

The client is answered when as many holders have the entry as it wants, the majority unless it says so. With CLAIM and
SEQ the same request can be sent again, to any node; without, this node, which must be a holder, numbers the entries of
the last claim that it knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.commands.command import Command
from disqued.core.jobs.claims import claim_of, parse_claim
from disqued.core.jobs.job import ACKED
from disqued.core.jobs.jobid import is_job_id
from disqued.core.jobs.joblog import FULL, OTHER
from disqued.core.runtime.claiming import require_current
from disqued.core.runtime.manyjobs import queues_of_jobs
from disqued.core.runtime.outbox import send
from disqued.errors import BadJobId, CommandSyntaxError, JobAcknowledged, LogFull, NoJob, ReplyError, SequenceError
from disqued.progress.counters import LOG_ENTRIES
from disqued.progress.elsewhere import ElsewhereWait
from disqued.progress.kept import progress_of
from disqued.progress.logs import holders_with_logs
from disqued.progress.payload import MAX_SEQ, NEW, pack_entry
from disqued.progress.waiting import EntryWait
from disqued.resp.integers import parse_integer, require_timeout_ms

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState

DEFAULT_TIMEOUT_MS: Final = 5000
_LEAST_WITH_CLAIM: Final = 7
"""The words of `LOGJOB id CLAIM claim SEQ n entry`."""
_NUMBERED: Final = -1


@dataclass
class Entry:
    """The options of one LOGJOB."""

    entry: bytes
    claim: int = 0
    seq: int = _NUMBERED
    """-1 if the node must choose it."""
    copies: int = 0
    """0 for the majority of the holders."""
    timeout_ms: int = DEFAULT_TIMEOUT_MS


def parse_seq(word: bytes) -> int:
    """A sequence number. Raises ReplyError."""
    seq = parse_integer(word)
    if seq is None or not 0 <= seq <= MAX_SEQ:
        raise ReplyError(f"ERR SEQ must be a number between 0 and {MAX_SEQ}")
    return seq


def _parse(args: list[bytes]) -> Entry:
    if len(args) >= _LEAST_WITH_CLAIM and args[2].upper() == b"CLAIM":
        if args[4].upper() != b"SEQ":
            raise CommandSyntaxError
        options = Entry(args[6], int(parse_claim(args[3])), parse_seq(args[5]))
        rest = args[7:]
    else:
        options = Entry(args[2])
        rest = args[3:]
    if len(rest) % 2:
        raise CommandSyntaxError
    for word, value in zip(rest[::2], rest[1::2], strict=True):
        if word.upper() == b"TIMEOUT":
            options.timeout_ms = require_timeout_ms(value)
        elif word.upper() == b"COPIES":
            copies = parse_integer(value)
            if copies is None or copies < 1:
                raise ReplyError("ERR COPIES must be a number greater than zero")
            options.copies = copies
        else:
            raise CommandSyntaxError
    return options


def logjob(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Keep an entry, send it to the other holders, and reply with the number of holders that have it."""
    if not is_job_id(args[1]):
        raise BadJobId
    options = _parse(args)
    job = state.lifecycle.table.get(args[1])
    if job is None:
        _log_elsewhere(state, session, args[1], options)
        return
    if job.state == ACKED:
        raise JobAcknowledged
    logs = progress_of(state).logs
    claim, seq = options.claim, options.seq
    if claim:
        require_current(state, job, claim)
    else:
        claim = int(claim_of(job))
        log = logs.get(job.id)
        seq = 0 if log is None else log.next_seq(claim)
    line = (claim, seq, _unix_ms(state), options.entry)
    outcome = logs.add(job, line)
    if outcome == OTHER:
        raise SequenceError(f"another entry has the number {seq}; read the log, and continue behind it")
    if outcome == FULL:
        raise LogFull(state.config.job_log_entries, state.config.job_log_bytes)
    state.counters.add(LOG_ENTRIES)
    peers = holders_with_logs(state, job)
    frame = state.bus.other(kinds.LOGENTRY, pack_entry(job.id, line, NEW)) if peers else b""
    for peer in peers:
        send(state, peer, frame)
    copies = options.copies or (len(peers) + 1) // 2 + 1 if peers else options.copies or 1
    if copies == 1:
        session.reply_integer(1)
        state.ready.tell_again(session)
    else:
        EntryWait(session, state, job.id, line, copies).start(options.timeout_ms)


def _log_elsewhere(state: NodeState, session: Session, job_id: bytes, options: Entry) -> None:
    """Have other nodes keep the entry, if it is numbered and the job may be there."""
    if not options.claim or state.events.is_done(job_id):
        raise NoJob
    line = (options.claim, options.seq, _unix_ms(state), options.entry)
    ElsewhereWait(session, state, job_id, line, options.copies).start(options.timeout_ms)


def _unix_ms(state: NodeState) -> int:
    return int(state.now_ms + state.wall_ahead_s * 1000)


COMMAND: Final[Command] = Command(
    "logjob",
    -3,
    ("write", "denyoom"),
    logjob,
    "jobs",
    "Adds an entry to the progress log of a job, and replies with the number of holders that have it.",
    "job-id [CLAIM claim SEQ n] entry [COPIES n] [TIMEOUT ms]",
    queues=queues_of_jobs,
    categories=("consumer",),
)
