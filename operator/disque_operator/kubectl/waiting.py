"""Waiting for the operator, with progress shown on standard error.

The object is polled once per second. Unlike a watch, polling survives an API server that is unavailable for a while.
Waiting changes nothing: if the user interrupts it, the operator continues.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from typing import TypeAlias

from disque_operator.apivalues import Json
from disque_operator.kubectl.api import Kubectl, RequestRefusedError, UnreachableError, retrying
from disque_operator.kubectl.resource import drain_line, headline

POLL_EVERY_S = 1.0
DEFAULT_TIMEOUT_S = 1800.0

Done: TypeAlias = Callable[[Json], bool]
"""Whether the change is complete. Raises RequestRefusedError if it will never complete."""


class WaitTimeoutError(RequestRefusedError):
    """The change did not complete in time; it continues in the background."""


def wait_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that wait."""
    parser.add_argument("--no-wait", dest="wait", action="store_false", help="return without waiting for completion")
    parser.add_argument(
        "--timeout",
        dest="timeout_s",
        type=float,
        default=DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
        help=f"maximum time to wait (default {DEFAULT_TIMEOUT_S:.0f}); the change continues in the background",
    )


def wait(kubectl: Kubectl, name: str, done: Done, timeout_s: float) -> Json:
    """Poll the cluster until `done` is true, then return it; show its progress on standard error.

    Raises:
        WaitTimeoutError: the change did not complete in time.
        RequestRefusedError: `done` found that the change will never complete.
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
                progress.show(retrying(error))
            if time.monotonic() > deadline:
                raise WaitTimeoutError(f"timed out after {timeout_s:.0f} s; still in progress: {progress.text}")
            time.sleep(POLL_EVERY_S)
    finally:
        progress.end()


class Progress:
    """A progress line: overwritten in place on a terminal, printed again after each change otherwise."""

    def __init__(self) -> None:
        self.text = ""
        self._terminal = sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Show the current progress."""
        text = " ".join(text.split())
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
        elif text != self.text:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
        self.text = text

    def end(self) -> None:
        """Erase the line on a terminal."""
        if self._terminal and self.text:
            sys.stderr.write("\r\x1b[K")
