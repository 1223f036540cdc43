"""DEBUG RESTART and CRASH-AND-RECOVER: the process becomes a new server with the same command line.

It keeps its process ID, unless it is a daemon, which goes into the background once more. Sockets and locks of the old
one are closed by the system; so it needs no help from a server that ends badly.
"""

from __future__ import annotations

import os
import sys
import time
from typing import NoReturn


def start_anew(directory: str, delay_s: float) -> NoReturn:
    """Wait, then start from `directory`, where the relative paths of the command line begin."""
    time.sleep(delay_s)
    os.chdir(directory)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - our own command line
