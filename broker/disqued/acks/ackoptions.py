"""The options of ACKJOB, which follow the job IDs: one row of a table for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.fates.fate import MAX_RESULT_BYTES
from disqued.core.jobs.claims import parse_claim
from disqued.core.jobs.jobid import JOB_ID_BYTES, is_job_id
from disqued.errors import BadJobId, CommandSyntaxError, ReplyError
from disqued.resp.integers import parse_integer, require_timeout_ms

_MOST_WORDS: Final = 16
"""More words than all options have: only the last words of a request are searched for them."""
_MOST_COPIES: Final = 65535
_NO_TIMEOUT: Final = -1


@mypyc_attr(acyclic=True)
class AckOptions:
    """The options of one ACKJOB."""

    def __init__(self) -> None:
        self.claim: i64 = 0
        """The claim of the worker; 0 if it names none."""
        self.result: bytes | None = None
        self.copies: i64 = 0
        """How many holders must know of the end before the reply; 0 if the client does not wait for that."""
        self.timeout_ms: i64 = _NO_TIMEOUT
        self.seq: i64 = -1
        """How many entries of its progress log must be here; -1 if it does not say."""


def _set_claim(options: AckOptions, value: bytes) -> None:
    options.claim = parse_claim(value)


def _set_result(options: AckOptions, value: bytes) -> None:
    if len(value) > MAX_RESULT_BYTES:
        too_long = f"ERR RESULT must have at most {MAX_RESULT_BYTES} bytes, not {len(value)}"
        raise ReplyError(f"{too_long}: store it elsewhere, and give its address")
    options.result = value


def _set_copies(options: AckOptions, value: bytes) -> None:
    copies = parse_integer(value)
    if copies is None or not 1 <= copies <= _MOST_COPIES:
        raise ReplyError(f"ERR COPIES must be between 1 and {_MOST_COPIES}")
    options.copies = copies


def _set_timeout(options: AckOptions, value: bytes) -> None:
    options.timeout_ms = require_timeout_ms(value)


def _set_seq(options: AckOptions, value: bytes) -> None:
    seq = parse_integer(value)
    if seq is None or seq < 0:
        raise ReplyError("ERR SEQ must be a number of entries, 0 or more")
    options.seq = seq


_OPTIONS: Final[dict[bytes, Callable[[AckOptions, bytes], None]]] = {
    b"CLAIM": _set_claim,
    b"SEQ": _set_seq,
    b"RESULT": _set_result,
    b"COPIES": _set_copies,
    b"TIMEOUT": _set_timeout,
}
"""How each option takes its value."""
_OF_ONE_JOB: Final = {b"CLAIM", b"SEQ", b"RESULT", b"COPIES"}
"""Options that say something about one job, so that the request can have only one."""


def may_have_options(args: list[bytes]) -> bool:
    """Whether the words are more than job IDs. Options of one job follow it; the others end with a number."""
    return len(args) > 2 and (len(args[2]) != JOB_ID_BYTES or len(args[-1]) != JOB_ID_BYTES)


def ids_end(args: list[bytes]) -> int:
    """The index after the last job ID; the first word that is no ID must be an option, and stand behind one."""
    if not is_job_id(args[1]):
        raise BadJobId
    count = len(args)
    for index in range(2 if len(args[2]) != JOB_ID_BYTES else max(2, count - _MOST_WORDS), count):
        if not is_job_id(args[index]):
            if args[index].upper() not in _OPTIONS:
                raise BadJobId
            return index
    return count


def parse(args: list[bytes], first: int) -> AckOptions:
    """The options from index `first` on. Raises ReplyError."""
    options = AckOptions()
    count = len(args)
    if (count - first) % 2:
        raise CommandSyntaxError
    for index in range(first, count, 2):
        word = args[index].upper()
        option = _OPTIONS.get(word)
        if option is None:
            raise CommandSyntaxError
        if first > 2 and word in _OF_ONE_JOB:
            raise ReplyError(f"ERR {word.decode()} takes one job ID, {first - 1} were given")
        option(options, args[index + 1])
    if (options.copies > 0) != (options.timeout_ms != _NO_TIMEOUT):
        raise ReplyError("ERR COPIES needs a TIMEOUT, and TIMEOUT is of use with COPIES only")
    if options.seq >= 0 and not options.claim:
        raise ReplyError("ERR SEQ counts the entries of a claim, so it needs CLAIM")
    return options
