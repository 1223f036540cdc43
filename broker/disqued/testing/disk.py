"""A disk in memory: what is written there outlives the node, not the process of the test."""

from __future__ import annotations

from disqued.core import disk
from disqued.core.disk import DiskWork


class MemoryDisk:
    """Implements `disqued.core.disk.Disk`; files can be read from `files`."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}

    def start(self, work: DiskWork) -> None:
        """Done at once."""
        self.perform(work)

    def perform(self, work: DiskWork) -> None:
        """Do it."""
        files = self.files
        match work.verb:
            case disk.OPEN:
                work.size = len(files.setdefault(work.name, bytearray()))
            case disk.APPEND:
                files[work.name] += b"".join(work.data)
            case disk.REPLACE:
                files[work.other] = files.pop(work.name)
            case disk.REMOVE:
                files.pop(work.name, None)
            case disk.READ:
                work.data = [bytes(files[work.name][work.offset : work.offset + work.size])]
            case disk.TRUNCATE:
                del files[work.name][work.size :]
            case disk.KEEP:
                files[work.other] = bytearray(files[work.name])
        work.finished = True
