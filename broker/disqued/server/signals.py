"""Signals: SIGTERM and SIGINT shut the server down cleanly, a second one ends it at once, SIGHUP rereads files.

Plain signal handlers also run while the event loop is busy or waits for a disk that hangs, which is when an
administrator presses Ctrl-C twice. They are installed before the first socket is open, so that a server that accepts
connections can always be shut down cleanly.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

ECHO_S: Final = 2.0
"""A SIGTERM within this time of another signal is a duplicate: supervisors forward a signal that the whole process
group has already received."""


class Signals:
    """Handles the signals of this process, and sets `ended` when one requests a shutdown."""

    def __init__(self, ended: asyncio.Event) -> None:
        self._ended = ended
        self._loop: asyncio.AbstractEventLoop | None = None
        self.received: str | None = None
        """The name of the signal that requested the shutdown."""
        self._received_s = 0.0
        """When it was received, on the monotonic clock."""
        self.files_changed: list[Callable[[], None]] = []
        """Called on the event loop for SIGHUP."""
        signal.signal(signal.SIGHUP, self._read_files)
        signal.signal(signal.SIGTERM, self._shut_down)
        signal.signal(signal.SIGINT, self._shut_down)

    def wake(self, loop: asyncio.AbstractEventLoop) -> None:
        """Notify this event loop from now on."""
        self._loop = loop

    def _read_files(self, _number: int, _frame: FrameType | None) -> None:
        if self._loop is not None:
            for callback in self.files_changed:
                self._loop.call_soon_threadsafe(callback)

    def _shut_down(self, number: int, _frame: FrameType | None) -> None:
        now_s = time.monotonic()
        if self.received is None:
            self._received_s = now_s
        elif number == signal.SIGINT or now_s - self._received_s > ECHO_S:
            os._exit(1)
        self.received = signal.Signals(number).name
        if self._loop is None:
            self._ended.set()
        else:
            self._loop.call_soon_threadsafe(self._ended.set)
