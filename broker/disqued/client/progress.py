"""The calls for progress logs of jobs: LOGJOB and SHOWLOG. `calls` describes what a call is.

LOGJOB with a claim and a number may be repeated: the same entry again changes nothing. Without, a second attempt would
add a second entry.
"""

from __future__ import annotations

from disqued.client import replies
from disqued.client.calls import Call, seconds
from disqued.client.values import LogEntry
from disqued.client.wire import Argument, option_words


def logjob(
    job_id: str,
    entry: str | bytes,
    *,
    claim: int | None = None,
    seq: int | None = None,
    copies: int | None = None,
    timeout_ms: int = 5000,
) -> Call[int]:
    """Add an entry to the progress log of a job (Disque command LOGJOB). Returns how many holders have it.

    Args:
        job_id: The job.
        entry: What the next worker of the job should know, for example a checkpoint.
        claim: The claim with which `get` returned the job; together with `seq`.
        seq: The number of the entry, from 0 on for each claim. Without claim and number the node chooses both, and the
            call is not repeated when the connection breaks.
        copies: How many holders must have the entry; the majority by default.
        timeout_ms: How long to wait for them; 0 means no timeout.

    Raises:
        StaleClaim: the job was delivered again since the delivery of `claim`.
        SequenceConflict: another entry of the claim has the number.
        LogFull: the log takes no more.
        NotReplicated: fewer holders have the entry; it stays there, and can be sent again.
        NoSuchJob: the node does not know the job.
    """
    if (claim is None) != (seq is None):
        raise ValueError("logjob() takes claim and seq together")
    numbers: tuple[Argument, ...] = () if claim is None or seq is None else ("CLAIM", claim, "SEQ", seq)
    options = option_words(COPIES=copies, TIMEOUT=timeout_ms)
    words = ("LOGJOB", job_id, *numbers, entry, *options)
    return Call(words, replies.integer, repeat=claim is not None, wait_s=seconds(timeout_ms))


def showlog(
    job_id: str, *, claim: int | None = None, from_seq: int | None = None, count: int | None = None
) -> Call[list[LogEntry]]:
    """Return the progress log of a job, by claims and numbers, as far as no entry is missing (SHOWLOG).

    The node asks the other holders, and waits half a second for them at most.

    Raises:
        NoSuchJob: the node does not know the job.
    """
    options = option_words(CLAIM=claim, FROM=from_seq, COUNT=count)
    return Call(("SHOWLOG", job_id, *options), replies.log_entries, repeat=True, wait_s=1.0)
