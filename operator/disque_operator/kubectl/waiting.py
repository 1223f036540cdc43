"""Waiting for the operator, with what it says shown meanwhile.

The object is looked at once a second: that outlives an API server that is away for a while, and says the same in a
terminal and in a log. Waiting changes nothing; who stops waiting has not stopped the operator.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from typing import TypeAlias

from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl, RefusedError, UnreachableError
from disque_operator.kubectl.resource import drain_line, headline

LOOK_EVERY_S = 1.0
DEFAULT_TIMEOUT_S = 1800.0

Done: TypeAlias = Callable[[Json], bool]
"""Whether what was waited for is there. Raises RefusedError when it will not come."""


class NotInTimeError(RefusedError):
    """What was waited for did not come in time; it goes on."""


def wait_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that wait."""
    parser.add_argument("--no-wait", dest="wait", action="store_false", help="ask for it, and do not wait")
    parser.add_argument(
        "--timeout",
        dest="timeout_s",
        type=float,
        default=DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
        help=f"wait so long at most (default {DEFAULT_TIMEOUT_S:.0f}); what goes on goes on all the same",
    )


def wait(kubectl: Kubectl, name: str, done: Done, timeout_s: float) -> Json:
    """The object when `done` says so; what it says until then is shown on standard error.

    Raises:
        NotInTimeError: it did not come in time.
        RefusedError: `done` says that it will not come.
    """
    deadline = time.monotonic() + timeout_s
    progress = Progress()
    try:
        while True:
            try:
                cluster = kubectl.cluster(name)
                if done(cluster):
                    return cluster
                progress.show(drain_line(cluster) or headline(cluster))
            except UnreachableError as error:
                progress.show(f"No answer from Kubernetes, trying again: {error}")
            if time.monotonic() > deadline:
                raise NotInTimeError(f"Not done after {timeout_s:.0f} s, and it goes on: {progress.text}")
            time.sleep(LOOK_EVERY_S)
    finally:
        progress.end()


class Progress:
    """A line that is rewritten on a terminal, and written anew when it has changed elsewhere."""

    def __init__(self) -> None:
        self.text = ""
        self._terminal = sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Show that this is how far it is."""
        text = " ".join(text.split())
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
        elif text != self.text:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
        self.text = text

    def end(self) -> None:
        """Leave the line as it is, or take it away from a terminal."""
        if self._terminal and self.text:
            sys.stderr.write("\r\x1b[K")
