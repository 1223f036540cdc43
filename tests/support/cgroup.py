"""A cgroup with a memory limit, like that of a container: the kernel kills processes that exceed it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_MOUNT: Final = Path("/sys/fs/cgroup")
_SHELL: Final = 'echo $$ > "$1/cgroup.procs" && shift && exec "$@"'


def unavailable() -> str:
    """Why no cgroup can be created here; empty if one can."""
    try:
        with LimitedGroup(64 << 20):
            return ""
    except OSError as error:
        return f"no cgroup with a memory limit can be made here: {error}"


class LimitedGroup:
    """A cgroup, version 1 or 2, while the context lasts. All its processes must end before."""

    def __init__(self, limit_bytes: int) -> None:
        self._old = (_MOUNT / "memory" / "memory.limit_in_bytes").exists()
        self._parent = _MOUNT / "memory" if self._old else _MOUNT
        self.path = self._parent / f"disqued-test-{os.getpid()}-{time.monotonic_ns()}"
        self._limit_bytes = limit_bytes

    def __enter__(self) -> Self:
        if not self._old:
            (self._parent / "cgroup.subtree_control").write_text("+memory")
        self.path.mkdir()
        try:
            limit = str(self._limit_bytes)
            if self._old:
                (self.path / "memory.limit_in_bytes").write_text(limit)
            else:
                (self.path / "memory.max").write_text(limit)
                with contextlib.suppress(OSError):  # no swap at all is as good
                    (self.path / "memory.swap.max").write_text("0")
        except OSError:
            self.path.rmdir()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        deadline = time.monotonic() + 10
        while True:
            try:
                self.path.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)  # the kernel needs a moment to forget processes that were reaped
            else:
                return

    @property
    def launcher(self) -> list[str]:
        """A command that starts another one inside the cgroup."""
        return ["sh", "-c", _SHELL, sys.executable, str(self.path)]

    def kills(self) -> int:
        """How many processes the kernel OOM-killed."""
        file = "memory.oom_control" if self._old else "memory.events"
        words = (self.path / file).read_text().split()
        return int(words[words.index("oom_kill") + 1])

    def most_bytes(self) -> int:
        """The peak memory usage, including caches."""
        return int((self.path / ("memory.max_usage_in_bytes" if self._old else "memory.peak")).read_text())
