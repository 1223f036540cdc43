"""Going into the background.

The command that started the server ends when the server accepts clients, so that the next line of a script can connect,
and its exit status says whether it does. Until then errors reach the terminal.
"""

from __future__ import annotations

import contextlib
import os


def detach() -> int:
    """Go on as a child in a session of its own; returns what `leave_terminal` needs.

    The parent waits for that call and ends with 0, or with 1 when the child ended without it.
    """
    waiting, ready = os.pipe()
    if os.fork() > 0:
        os.close(ready)
        os._exit(0 if os.read(waiting, 1) else 1)
    os.close(waiting)
    os.setsid()
    return ready


def leave_terminal(ready: int) -> None:
    """Turn the standard streams to nowhere and let the parent end."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    if null > 2:
        os.close(null)
    with contextlib.suppress(BrokenPipeError):  # the parent was killed
        os.write(ready, b"\n")
    os.close(ready)
