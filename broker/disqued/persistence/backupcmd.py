"""BACKUP: copy the jobs of this node to a client; `disque-backup` makes the backup of a cluster of the copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from disqued.core.commands.command import Command
from disqued.core.commands.longcommand import LongWork
from disqued.core.commands.subcommand import Subcommand, choose
from disqued.core.runtime.audit import always
from disqued.core.runtime.slices import run_long
from disqued.errors import CommandSyntaxError, ReplyError
from disqued.persistence.backup import Backup
from disqued.persistence.room import aof_of
from disqued.resp.integers import require_integer

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.host.disk import DiskWork
    from disqued.core.runtime.state import NodeState


def backup(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Run the subcommand."""
    handler = choose(_SUBCOMMANDS, args)
    if handler is None:
        raise CommandSyntaxError
    handler(state, session, args)


def _begin(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Begin a copy; reply with its ID when it has all jobs and follows the changes."""
    made = aof_of(state).backup
    if made.in_use:
        raise ReplyError("ERR a backup of this node is being made; BACKUP CLOSE ends it")
    made.begin()
    run_long(state, session, _Begin(made))


def _end(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Complete the copy; reply with its size in bytes and the number of jobs when the walk passed them."""
    made = _made(state, args[2])
    if not made.walked:
        raise ReplyError("ERR BACKUP END comes once, after the reply to BACKUP BEGIN")
    state.events.log_changes()
    made.end()
    run_long(state, session, _End(made))


def _read(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with up to 1 MiB of the copy; with an empty string at its end."""
    made = _made(state, args[2])
    if not made.complete:
        raise ReplyError("ERR the backup can be read after BACKUP END")
    offset = require_integer(args[3])
    if not 0 <= offset <= made.size_bytes:
        raise ReplyError(f"ERR offset {offset} is not in the backup, which has {made.size_bytes} bytes")
    run_long(state, session, _Read(made.read(offset)))


def _close(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Remove the copy."""
    _made(state, args[2]).close()
    session.reply_ok()


def _settings(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Reply with the file of the settings that all members share."""
    session.reply_bulk(state.events.settings_file())


def _made(state: NodeState, backup_id: bytes) -> Backup:
    """The copy with this ID; its client still wants it."""
    made = aof_of(state).backup
    if not made.in_use or made.id != backup_id:
        raise _gone(made)
    made.touch()
    return made


def _gone(made: Backup) -> ReplyError:
    return ReplyError(f"ERR there is no such backup{': ' if made.failure else ''}{made.failure}")


@mypyc_attr(acyclic=True)
class _Begin(LongWork):
    """Waits until the copy has all jobs."""

    def __init__(self, made: Backup) -> None:
        super().__init__()
        self._made = made
        self._id = made.id

    def waits(self) -> bool:
        """Whether the walk is not over."""
        return self._made.in_use and self._made.id == self._id and not self._made.walked

    def step(self, state: NodeState, session: Session) -> bool:
        """Reply."""
        if self.waits():
            return True
        made = self._made
        if not made.in_use or made.id != self._id:
            raise _gone(made)
        session.reply_array(2)
        session.reply_bulk(self._id)
        session.reply_bulk(state.view.node_id)
        return False


@mypyc_attr(acyclic=True)
class _End(LongWork):
    """Waits until the copy is written."""

    def __init__(self, made: Backup) -> None:
        super().__init__()
        self._made = made
        self._id = made.id

    def waits(self) -> bool:
        """Whether the disk writes."""
        return self._made.in_use and self._made.id == self._id and not self._made.complete

    def step(self, state: NodeState, session: Session) -> bool:
        """Reply."""
        del state
        if self.waits():
            return True
        made = self._made
        if not made.in_use or made.id != self._id:
            raise _gone(made)
        session.reply_array(2)
        session.reply_integer(int(made.size_bytes))
        session.reply_integer(int(made.jobs))
        return False


@mypyc_attr(acyclic=True)
class _Read(LongWork):
    """Waits until the disk has read a part of the copy."""

    def __init__(self, work: DiskWork) -> None:
        super().__init__()
        self._work = work

    def waits(self) -> bool:
        """Whether the disk reads."""
        return not self._work.finished

    def step(self, state: NodeState, session: Session) -> bool:
        """Reply with what was read."""
        del state
        if self.waits():
            return True
        if self._work.error:
            raise ReplyError(f"ERR can't read the backup: {self._work.error}")
        session.reply_bulk(b"".join(self._work.data))
        return False


_SUBCOMMANDS: Final = {
    b"BEGIN": Subcommand(_begin, audited=always),
    b"END": Subcommand(_end, 3, 3),
    b"READ": Subcommand(_read, 4, 4),
    b"CLOSE": Subcommand(_close, 3, 3),
    b"SETTINGS": Subcommand(_settings, audited=always),
}

COMMAND: Final[Command] = Command(
    "backup",
    -2,
    ("readonly", "admin"),
    backup,
    "server",
    "Copies all jobs of this node to the client; disque-backup makes a backup of a cluster with it.",
    "BEGIN | END id | READ id offset | CLOSE id | SETTINGS",
    "O(jobs)",
    categories=("admin", "dangerous"),
    subcommands=_SUBCOMMANDS,
)
