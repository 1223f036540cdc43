"""A small file that a node replaces as a whole, by disk work that the node does not wait for.

The new text is written to a file beside it, which then takes its place, so a reader finds the old text or the new one.
A write that fails is repeated every second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from disqued.core.host import disk
from disqued.core.host.disk import VERB_NAMES, DiskOwner, DiskWork

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

_RETRY_MS: Final = 1000


@mypyc_attr(allow_interpreted_subclasses=True)
class WholeFile(DiskOwner):
    """One such file. Subclasses say its name, what it is called in the log, and what must be in it."""

    def __init__(self, state: NodeState, what: str) -> None:
        super().__init__()
        self.state = state
        self._what = what
        self._steps: list[DiskWork] = []
        """The disk work that remains of a write."""
        self._retry_ms: int = 0
        self.failures: int = 0
        self.error: str = ""
        """Why the last write failed; empty if it did not."""

    @property
    def name(self) -> str:
        """The name of the file."""
        raise NotImplementedError

    def text(self) -> bytes:
        """What the next write writes; called when it begins."""
        raise NotImplementedError

    def replaced(self) -> None:
        """The text of the last `plan` is in the file. May plan the next write."""

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, most_bytes: int) -> DiskWork:
        """Read the file, and wait for it: the node starts. Removes what an interrupted write left beside it."""
        leftover = DiskWork(disk.READ, self._beside)
        self.state.host.disk.perform(leftover)
        if not leftover.missing:
            self.state.host.disk.perform(DiskWork(disk.REMOVE, self._beside))
        work = DiskWork(disk.READ, self.name)
        work.size = most_bytes
        self.state.host.disk.perform(work)
        return work

    # --- writing ------------------------------------------------------------------------------------------------------

    @property
    def _beside(self) -> str:
        return f"temp-{self.name}"

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being written, and no write failed a moment ago."""
        return not self._steps and self.state.now_ms >= self._retry_ms

    @property
    def is_writing(self) -> bool:
        """Whether a write is under way."""
        return bool(self._steps)

    def plan(self) -> None:
        """Begin a write; `proceed` starts it."""
        self._steps = self._work()

    def proceed(self) -> None:
        """Start the next step; those that are done at once need no further turn."""
        while self._steps:
            work = self._steps[0]
            self.state.host.disk.start(work)
            if not work.finished or not self._take(work):
                return

    def write_now(self) -> str:
        """Write the file, and wait for it. Returns the error, empty on success."""
        self._steps = []
        for work in self._work():
            self.state.host.disk.perform(work)
            if work.error:
                return _described(work)
        self.error = ""
        self.replaced()
        return ""

    def _work(self) -> list[DiskWork]:
        """The disk work that replaces the file, in order."""
        write = DiskWork(disk.APPEND, self._beside, self)
        write.data = [self.text()]
        replace = DiskWork(disk.REPLACE, self._beside, self)
        replace.other = self.name
        return [DiskWork(disk.REMOVE, self._beside, self), DiskWork(disk.OPEN, self._beside, self), write, replace]

    def disk_done(self, work: DiskWork) -> None:
        """Continue with the next step."""
        if self._steps and work is self._steps[0] and self._take(work):
            self.proceed()

    def _take(self, work: DiskWork) -> bool:
        """Take note of a step that is done; False if it failed."""
        if work.error:
            self.fail(_described(work))
            return False
        if work.verb == disk.OPEN and work.size > 0:  # left over, although it was removed: nothing may be appended
            self._steps = self._work()
            return True
        del self._steps[0]
        if not self._steps:
            self.error = ""
            self.replaced()
        return True

    def fail(self, error: str) -> None:
        """Give up a write for a second. The log has the first of several failures."""
        if not self.error:
            self.state.host.log("warning", f"{self._what} not saved, trying again every second: {error}")
        self.error = error
        self.failures += 1
        self._steps = []
        self._retry_ms = int(self.state.now_ms) + _RETRY_MS


def _described(work: DiskWork) -> str:
    return f"can't {VERB_NAMES[work.verb]} {work.name}: {work.error}"
