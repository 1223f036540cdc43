"""Running in the background.

The command that started the server ends when the server accepts clients, so that the next line of a script can connect.
Its exit status tells whether the start succeeded. Until then errors are written to the terminal.
"""

from __future__ import annotations

import contextlib
import os


def detach() -> int:
    """Continue as a child process in its own session; returns the argument of `leave_terminal`.

    The parent waits for that call and exits with status 0, or with 1 if the child ended without it.
    """
    waiting, ready = os.pipe()
    if os.fork() > 0:
        os.close(ready)
        os._exit(0 if os.read(waiting, 1) else 1)
    os.close(waiting)
    os.setsid()
    return ready


def leave_terminal(ready: int) -> None:
    """Redirect the standard streams to /dev/null and let the parent exit."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    if null > 2:
        os.close(null)
    with contextlib.suppress(BrokenPipeError):  # the parent was killed
        os.write(ready, b"\n")
    os.close(ready)
