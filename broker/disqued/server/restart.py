"""DEBUG RESTART and CRASH-AND-RECOVER: the process becomes a new server with the same command line.

It keeps its process ID, unless it is a daemon, which forks into the background again. The system closes the sockets and
locks of the old server, so this also works if that server crashes.
"""

from __future__ import annotations

import os
import sys
import time
from typing import NoReturn


def start_again(directory: str, delay_s: float) -> NoReturn:
    """Wait, then start again in `directory`, to which the paths of the command line are relative."""
    time.sleep(delay_s)
    os.chdir(directory)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - our own command line
