"""A room that only the tests have: short notes, which all nodes of a cluster keep.

It adds one of everything that a room can add: a command, a bus message with a feature bit, a kind of record in the
append-only file, a directive, a counter, events and work on a file of its own. It is added to a node by one line,
`ROOMS.and_also(NOTES)`, and by no other change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.config.kinds import Integer
from disqued.config.option import Option
from disqued.core.commands.command import Command
from disqued.core.host import disk
from disqued.core.host.disk import DiskOwner, DiskWork
from disqued.core.runtime.message import Message
from disqued.core.runtime.outbox import send
from disqued.core.runtime.recordkind import RecordKind
from disqued.core.runtime.room import Room
from disqued.core.runtime.subsystem import Subsystem
from disqued.core.telemetry.counter import Counter
from disqued.errors import ReplyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from disqued.bus.frame import Frame
    from disqued.core.clients.session import Session
    from disqued.core.cluster.peer import Peer
    from disqued.core.lifecycle.records import Words
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields

NAME: Final = "notes"
NUMBER: Final = 99
FEATURE: Final = 1 << 30
FILE: Final = "notes.txt"

NOTES_TAKEN: Final = Counter("notes_taken", "Notes that clients of this node took.")
MAX_NOTES: Final[Option[int]] = Option("notes-max", Integer(), 3, "none", "How many notes a node keeps.", settable=True)


class NotesFile(DiskOwner):
    """Appends each note to a file."""

    def __init__(self, state: NodeState) -> None:
        super().__init__()
        self._disk = state.host.disk
        self.written = 0
        """Notes that are in the file."""

    def append(self, line: bytes) -> None:
        """Write a line."""
        work = DiskWork(disk.APPEND, FILE, self)
        work.data = [line]
        self._disk.start(work)
        if work.finished:
            self.disk_done(work)

    def disk_done(self, work: DiskWork) -> None:
        """A line was written."""
        self.written += not work.error


class NotesRoom(Room):
    """Keeps the notes of one node."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.notes: dict[bytes, bytes] = {}
        self.file = NotesFile(state)
        self.times_persisted = 0

    def start(self) -> None:
        """Create the file."""
        self.state.host.disk.start(DiskWork(disk.OPEN, FILE))

    def persisted(self) -> None:
        """The append-only file has more changes."""
        self.times_persisted += 1

    def config_changing(self, attribute: str, value: object) -> None:
        """Refuse a limit that is below the number of notes."""
        if attribute == MAX_NOTES.attribute and isinstance(value, int) and value < len(self.notes):
            raise ReplyError(f"ERR {len(self.notes)} notes are kept, notes-max cannot be {value}")

    def keep(self, key: bytes, text: bytes) -> None:
        """Keep a note, have it logged, and write it to the file."""
        if key not in self.notes and len(self.notes) >= MAX_NOTES.of(self.state.config):
            raise ReplyError("ERR too many notes, see notes-max")
        self.notes[key] = text
        self.state.lifecycle.journal.note((b"NOTE", key, text))
        self.file.append(key + b"=" + text + b"\n")


def notes_of(state: NodeState) -> NotesRoom:
    """The notes room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, NotesRoom)
    return room


def note(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Show a note, or take one and tell all nodes that know the message."""
    room = notes_of(state)
    if len(args) == 2:
        session.reply_bulk(room.notes.get(args[1], b""))
        return
    room.keep(args[1], args[2])
    state.counters.add(NOTES_TAKEN)
    frame = state.bus.other(NUMBER, args[1] + b"\0" + args[2])
    for peer in state.view.peers.values():
        if peer.features & FEATURE:
            send(state, peer, frame)
    session.reply_ok()


def handle_note(state: NodeState, _peer: Peer, frame: Frame) -> None:
    """Another node took a note."""
    key, _, text = frame.payload.partition(b"\0")
    notes_of(state).keep(key, text)


def record_fault(words: list[bytes]) -> str:
    """Return what is wrong with a NOTE record."""
    return "" if words[1] else "NOTE without a key"


def load_record(state: NodeState, words: list[bytes]) -> None:
    """Keep a note that a record has."""
    notes_of(state).notes[words[1]] = words[2]


def current_records(state: NodeState) -> Iterator[list[Words]]:
    """Yield the records of all notes, one at a time."""
    notes = notes_of(state).notes
    for key in list(notes):
        yield [(b"NOTE", key, notes[key])]


def info(state: NodeState) -> Fields:
    """The section of INFO, before the counters."""
    return [("notes", len(notes_of(state).notes))]


NOTES: Final = Subsystem(
    NAME,
    NotesRoom,
    commands=(Command("note", -2, ("write", "fast"), note, "jobs", "Shows or takes a note.", "key [text]"),),
    messages=(
        Message(
            NUMBER,
            "NOTE",
            kinds.OF_UNKNOWN,
            "the node that took a note, to all that know the message",
            "the receiver keeps the note",
            handle_note,
            feature=FEATURE,
        ),
    ),
    records=(RecordKind("NOTE", 3, record_fault, load_record, current_records),),
    counters=(NOTES_TAKEN,),
    directives=(MAX_NOTES,),
    info=info,
)
