"""The persistence room of one node: passes events to the append-only file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.clients.session import Session
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.persistence.aof import Aof
from disqued.persistence.status import status_fields
from disqued.persistence.wallclock import WallClock

if TYPE_CHECKING:
    from disqued.core.telemetry.fields import Fields

NAME: Final = "persistence"
_AT_ONCE_MS: Final = 1


class PersistenceRoom(Room):
    """Keeps the append-only file."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.aof = Aof(state)
        self.clock = WallClock(state)

    def start(self) -> None:
        """Load the file."""
        self.aof.start()

    def log_changes(self) -> None:
        """Give the changes of the turn to the disk."""
        self.aof.turn()

    def deadline_ms(self) -> i64:
        """When the next slice of loading or rewriting is due."""
        if self.state.loading:
            loader = self.aof.loader
            return _AT_ONCE_MS if loader is not None and loader.ready else 0
        rewrite_ms, backup_ms = self.aof.rewrite.slice_at_ms, self.aof.backup.slice_at_ms
        return min(rewrite_ms, backup_ms) if rewrite_ms > 0 and backup_ms > 0 else max(rewrite_ms, backup_ms)

    def due(self) -> None:
        """Load or rewrite one slice."""
        if self.state.loading:
            self.aof.load_slice()
            return
        if 0 < self.aof.rewrite.slice_at_ms <= self.state.now_ms:
            self.aof.rewrite_slice()
        if 0 < self.aof.backup.slice_at_ms <= self.state.now_ms:
            self.aof.backup.slice()

    def cron(self) -> None:
        """Follow the wall clock, retry what failed, and rewrite the file if it has grown enough."""
        if self.clock.follow():
            self.aof.correct_times()
        self.aof.cron()

    def config_changed(self, attribute: str) -> None:
        """Begin or stop logging, change what counts as safe, or move the file."""
        if attribute in ("appendonly", "appendfsync"):
            self.aof.switch()
        elif attribute == "dir":
            self.aof.move()

    def buffered_bytes(self) -> i64:
        """The size of the records that wait for the disk."""
        return self.aof.buffer_bytes

    def all_dropped(self) -> None:
        """Rewrite the file, since no record says so."""
        self.aof.drop_all()

    def last_records(self) -> str:
        """Write and sync everything."""
        return self.aof.end()

    def last_rewrite(self, session: Session) -> None:
        """Rewrite the file, then end the node."""
        self.aof.end_controlled(session)

    def reload(self, session: Session) -> str:
        """Load the file again."""
        return self.aof.reload(session)

    def persistence_status(self) -> Fields:
        """The state of the file."""
        return [*status_fields(self.state, self.aof), *self.clock.fields()]


def clock_of(state: NodeState) -> WallClock:
    """The wall clock of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, PersistenceRoom)
    return room.clock


def aof_of(state: NodeState) -> Aof:
    """The append-only file of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, PersistenceRoom)
    return room.aof
