"""The files of the working directory, for the append only file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from disqued.core import disk
from disqued.core.disk import DiskWork


class FileDisk:
    """Implements `disqued.core.disk.Disk` with system calls."""

    def __init__(self) -> None:
        self._descriptors: dict[str, int] = {}
        self.done: Callable[[DiskWork], None] | None = None

    def start(self, work: DiskWork) -> None:
        """Begin."""
        self.perform(work)

    def perform(self, work: DiskWork) -> None:
        """Do it now."""
        try:
            if work.verb == disk.OPEN:
                descriptor = os.open(Path(work.name).absolute(), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
                self._descriptors[work.name] = descriptor
                work.size = os.fstat(descriptor).st_size
            elif work.verb == disk.APPEND:
                os.writev(self._descriptors[work.name], work.data)
            elif work.verb == disk.SYNC:
                os.fdatasync(self._descriptors[work.name])
        except OSError as error:
            work.error = error.strerror or str(error)
        work.finished = True
