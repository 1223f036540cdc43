"""What the progress room keeps for one node: its logs, and the clients that wait for other holders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.clients.session import Blocked, Session
from disqued.core.runtime.room import Room
from disqued.core.runtime.waiting import release, suspend
from disqued.progress.logs import Logs

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.jobs.joblog import LogLine
    from disqued.core.runtime.state import NodeState
    from disqued.progress.payload import Got

NAME: Final = "progress"


class LogWait(Blocked):
    """A client that waits for other holders of a job."""

    def __init__(self, session: Session, state: NodeState, job_id: bytes) -> None:
        super().__init__(session)
        self.state = state
        self.job_id = job_id

    def begin(self, at_ms: int) -> None:
        """Wait, and be woken at this time."""
        progress_of(self.state).waits.setdefault(self.job_id, []).append(self)
        self.state.lifecycle.timers.arm(self, at_ms)
        suspend(self.state, self)

    def stop(self) -> None:
        """Hear no more of other holders."""
        waits = progress_of(self.state).waits
        left = [wait for wait in waits.get(self.job_id, []) if wait is not self]
        if left:
            waits[self.job_id] = left
        else:
            waits.pop(self.job_id, None)

    def finish(self, reply: bytes) -> None:
        """End the wait with a reply."""
        self.stop()
        release(self.state, self, reply)

    def collect(self, line: LogLine) -> None:
        """Take an entry of a job that has ended, or that this node does not have."""

    def hear(self, peer: Peer, got: Got) -> None:
        """Take the answer of a holder."""
        raise NotImplementedError


class Progress(Room):
    """The state of the progress room, which `progress.room` completes with the events that it hears."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.logs = Logs(state)
        self.waits: dict[bytes, list[LogWait]] = {}
        """Clients that wait for something about the log of a job, by job ID."""


def progress_of(state: NodeState) -> Progress:
    """The progress room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, Progress)
    return room
