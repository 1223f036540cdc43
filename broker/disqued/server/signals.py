"""Signals: SIGTERM and SIGINT end the server cleanly, a second one ends it at once, SIGHUP is no reason to end.

Plain signal handlers, which run even while the event loop is kept busy, or waits for a disk that hangs: that is when
one presses Ctrl-C twice. They are in place before the first socket is open, so that whoever can connect can also end
the server cleanly.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from types import FrameType
from typing import Final

ECHO_S: Final = 2.0
"""A SIGTERM that comes so soon after another signal is the same wish once more: supervisors pass it on to a process
that their process group got it with already."""


class Signals:
    """Receives the signals of this process from now on, and sets `ended` when one asks to end."""

    def __init__(self, ended: asyncio.Event) -> None:
        self._ended = ended
        self._loop: asyncio.AbstractEventLoop | None = None
        self.received: str | None = None
        """The name of the signal that asked to end,"""
        self._received_s = 0.0
        """and when, by the monotonic clock."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._asked_to_end)
        signal.signal(signal.SIGINT, self._asked_to_end)

    def wake(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell this loop, which runs from now on."""
        self._loop = loop

    def _asked_to_end(self, number: int, _frame: FrameType | None) -> None:
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
