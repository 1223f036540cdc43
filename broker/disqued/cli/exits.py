"""Exit statuses of the command line programs: one table each for code, `--help` and documentation.

The original exits with 0 even after an error reply, so a script has to compare texts to see that a job was refused.
Here the status distinguishes error replies, usage errors and connection errors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Self

EXTRAS = {
    "rich": "cli",
    "prompt_toolkit": "cli",
    "mypy_extensions": "server",
    "sortedcontainers": "server",
    "obstore": "backup",
}
"""Optional packages, and the extra that installs each. The command table is part of the server."""


class ExitStatus(IntEnum):
    """An exit status; `meaning` is its description in the help."""

    meaning: str

    def __new__(cls, status: int, meaning: str) -> Self:
        """Create an integer with a description."""
        member = int.__new__(cls, status)
        member._value_ = status
        member.meaning = meaning
        return member


class Exit(ExitStatus):
    """The exit statuses of `disque`."""

    OK = 0, "success"
    REFUSED = 1, "error reply from the server, or damaged file"
    USAGE = 2, "invalid option or argument"
    CONNECTION = 3, "cannot connect to the server, or connection lost"
    INTERRUPTED = 130, "interrupted by Ctrl-C"


def exit_table(statuses: Iterable[ExitStatus] = Exit) -> str:
    """Return the statuses as lines for `--help`."""
    return "\n".join(f"  {status.value:>3}  {status.meaning}" for status in statuses)


def guarded(work: Callable[[], ExitStatus], errors: Mapping[type[Exception], ExitStatus]) -> int:
    """Run `work` and return its exit status. An exception in `errors` is printed and ends with the given status."""
    try:
        return work()
    except tuple(errors) as error:
        return _fail(str(error), next(status for kind, status in errors.items() if isinstance(error, kind)))
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(error.name or "")
        if extra is None:
            raise
        return _fail(f"package '{error.name}' is not installed; run: pip install 'disqued[{extra}]'", Exit.USAGE)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has closed the pipe. The flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK


def _fail(text: str, status: ExitStatus) -> ExitStatus:
    sys.stderr.write(text + "\n")
    return status
