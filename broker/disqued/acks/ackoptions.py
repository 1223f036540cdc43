"""The options of ACKJOB, which follow the job IDs: one row of a table for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.jobs.claims import parse_claim
from disqued.core.jobs.jobid import JOB_ID_BYTES, is_job_id
from disqued.errors import BadJobId, CommandSyntaxError, ReplyError

_MOST_WORDS: Final = 16
"""More words than all options have: only the last words of a request are searched for them."""


@mypyc_attr(acyclic=True)
class AckOptions:
    """The options of one ACKJOB."""

    def __init__(self) -> None:
        self.claim: i64 = 0
        """The claim of the worker; 0 if it names none."""


def _set_claim(options: AckOptions, value: bytes) -> None:
    options.claim = parse_claim(value)


_OPTIONS: Final[dict[bytes, Callable[[AckOptions, bytes], None]]] = {b"CLAIM": _set_claim}
"""How each option takes its value."""
_OF_ONE_JOB: Final = {b"CLAIM"}
"""Options that say something about one job, so that the request can have only one."""


def may_have_options(args: list[bytes]) -> bool:
    """Whether the words are more than job IDs. Options of one job follow it; the others end with a number."""
    return len(args) > 2 and (len(args[2]) != JOB_ID_BYTES or len(args[-1]) != JOB_ID_BYTES)


def ids_end(args: list[bytes]) -> int:
    """The index after the last job ID; the first word that is no ID must be an option."""
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
    return options
