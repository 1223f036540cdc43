"""Going into the background: detach from the terminal and leave a PID file."""

from __future__ import annotations

import os
from pathlib import Path


def detach() -> None:
    """Go on as a child in a session of its own, with standard streams to nowhere; the parent ends with success."""
    if os.fork() > 0:
        os._exit(0)
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    if null > 2:
        os.close(null)


def write_pid_file(path: Path) -> None:
    """Leave the process ID, as far as the place allows it."""
    path.write_text(f"{os.getpid()}\n")
