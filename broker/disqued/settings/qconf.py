"""QCONF: shows and changes the settings of queues, on all nodes.

SET and UNSET are answered when the change is on the disk of this node.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from disqued.config.glob import Glob
from disqued.core.cluster.entrykinds import SETTING
from disqued.core.commands.command import Command
from disqued.core.commands.longcommand import LongWork
from disqued.core.commands.longreply import LongReply
from disqued.core.queues.settings import MOST_NAME_BYTES, SETTINGS, copied_to, fault
from disqued.core.queues.settingsindex import is_pattern
from disqued.core.runtime.slices import run_long
from disqued.errors import CommandSyntaxError, ReplyError
from disqued.resp.writer import OK, array_header, bulk, integer
from disqued.settings.counters import CHANGED
from disqued.settings.entries import MOST_ENTRIES, MOST_KEPT
from disqued.settings.room import settings_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState
    from disqued.settings.entries import Entry
    from disqued.settings.saving import SettingsFile

_ALL: Final = b"*"
_PART: Final = 200
"""How many settings SHOW looks at in one step."""


class _Saved(LongWork):
    """Waits until a change is on disk, and then replies."""

    def __init__(self, file: SettingsFile, reply: bytes) -> None:
        super().__init__()
        self._file = file
        self._reply = reply
        self._change = file.changes
        self._failures = file.failures

    def waits(self) -> bool:
        """Whether the disk writes."""
        return self._file.saved < self._change and self._file.failures == self._failures

    def step(self, state: NodeState, session: Session) -> bool:  # noqa: ARG002 - any long command gets it
        """Reply."""
        if self.waits():
            return True
        if self._file.saved < self._change:
            raise ReplyError(
                f"ERR the settings are in effect on all nodes, but not saved on this one: {self._file.error}; it "
                "tries again every second"
            )
        session.out.append(self._reply)
        return False


class _Show(LongReply):
    """Replies with all settings whose name matches a pattern."""

    def __init__(self, entries: list[Entry], pattern: bytes) -> None:
        super().__init__()
        self._left = deque(entries)
        self._pattern = pattern
        self._glob = Glob(pattern)

    def look(self, state: NodeState, session: Session) -> bool:  # noqa: ARG002 - the entries are a copy
        """Take the next part."""
        for _ in range(min(_PART, len(self._left))):
            entry = self._left.popleft()
            if entry.kind == SETTING and not entry.removed and self._matches(entry.name):
                self.add(1, (_row(entry),))
        return bool(self._left)

    def _matches(self, name: bytes) -> bool:
        return name == self._pattern or self._glob.matches(name)


def _row(entry: Entry) -> bytes:
    words = bulk(entry.name) + bulk(entry.key) + bulk(entry.value)
    return array_header(5) + words + integer(entry.version) + bulk(entry.node_id)


def qconf(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Run the subcommand, which is the word after the name."""
    handler = _SUBCOMMANDS.get(args[2].upper())
    if handler is None:
        raise CommandSyntaxError
    if not 1 <= len(args[1]) <= MOST_NAME_BYTES:
        raise ReplyError(f"ERR a name of settings has 1 to {MOST_NAME_BYTES} bytes")
    handler(state, session, args)


def _set(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Set settings of a name, all or none of them."""
    values = _values(args)
    room = settings_of(state)
    name = args[1]
    found = [room.entries.get(SETTING, name, key) for key in values]
    new = sum(entry is None or entry.removed for entry in found)
    if room.entries.set_count + new > MOST_ENTRIES:
        raise ReplyError(f"ERR there are {room.entries.set_count} settings of {MOST_ENTRIES} that are possible")
    if len(room.entries) + found.count(None) > MOST_KEPT:
        raise ReplyError("ERR too many settings were removed in the last 7 days: use patterns instead of many names")
    _change(state, session, name, dict(values), OK)


def _values(args: list[bytes]) -> dict[bytes, bytes]:
    """The settings and their values in a SET."""
    words = args[3:]
    if not words or len(words) % 2:
        raise CommandSyntaxError
    values: dict[bytes, bytes] = {}
    for word, value in zip(words[::2], words[1::2], strict=True):
        key = _known(word)
        why = fault(SETTINGS[key], value)
        if why:
            shown = value[:100].decode("utf-8", "backslashreplace").replace("\r", " ").replace("\n", " ")
            raise ReplyError(f"ERR {key.decode()} {why}, not '{shown}'")
        values[key] = value
    return values


def _known(word: bytes) -> bytes:
    """The name of a setting in lower case."""
    key = word.lower()
    if key not in SETTINGS:
        shown = word[:100].decode("utf-8", "backslashreplace").replace("\r", " ").replace("\n", " ")
        raise ReplyError(f"ERR unknown setting '{shown}', there are: {', '.join(one.decode() for one in SETTINGS)}")
    return key


def _unset(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Remove settings of a name; reply with how many there were."""
    if len(args) < 4:
        raise CommandSyntaxError
    room = settings_of(state)
    name = args[1]
    wanted = room.entries.keys_of(SETTING, name) if args[3:] == [_ALL] else [_known(word) for word in args[3:]]
    values: dict[bytes, bytes | None] = {}
    for key in wanted:
        entry = room.entries.get(SETTING, name, key)
        if entry is not None and not entry.removed:
            values[key] = None
    _change(state, session, name, values, integer(len(values)))


def _change(state: NodeState, session: Session, name: bytes, values: dict[bytes, bytes | None], reply: bytes) -> None:
    """Change settings, and reply when that is on disk."""
    room = settings_of(state)
    room.change(SETTING, name, values)
    state.counters.add(CHANGED, len(values))
    saved = _Saved(room.file, reply)
    room.file.save()
    run_long(state, session, saved)


def _get(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with all settings of a queue: setting, value, and the name it comes from, empty for a default."""
    if len(args) != 3:
        raise CommandSyntaxError
    found = state.lifecycle.queues.index.sources(args[1])
    session.reply_array(3 * len(found))
    for row in found:
        for word in row:
            session.reply_bulk(word)


def _show(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with what is set, for names that match a pattern."""
    if len(args) != 3:
        raise CommandSyntaxError
    run_long(state, session, _Show(settings_of(state).entries.all(), args[1]))


_SUBCOMMANDS: Final[dict[bytes, Callable[[NodeState, Session, list[bytes]], None]]] = {
    b"SET": _set,
    b"UNSET": _unset,
    b"GET": _get,
    b"SHOW": _show,
}
_CHANGES: Final = frozenset((b"SET", b"UNSET"))


def _is_change(args: list[bytes]) -> bool:
    """Whether a request changes settings."""
    return args[2].upper() in _CHANGES


def _stands_for_many(args: list[bytes]) -> bool:
    """Whether the name in a request is a pattern. The name in GET is always that of a queue."""
    return args[2].upper() != b"GET" and is_pattern(args[1])


def _queues(_state: NodeState, args: list[bytes]) -> list[bytes]:
    """The queues that a request touches: its name, and the queues to which a setting sends jobs."""
    found = [] if _stands_for_many(args) else [args[1]]
    if args[2].upper() == b"SET":
        for word, value in zip(args[3::2], args[4::2], strict=False):
            found += _targets(word.lower(), value)
    return found


def _targets(key: bytes, value: bytes) -> tuple[bytes, ...]:
    """The queues that a value of `dead` or `copy-to` names."""
    if key == b"dead":
        return () if value.lower() == b"drop" else (value,)
    if key != b"copy-to" or value.lower() == b"none":
        return ()
    try:
        return copied_to(value)
    except ValueError:
        return ()


def _patterns(_state: NodeState, args: list[bytes]) -> list[bytes]:
    """The patterns of queues that a request touches."""
    return [args[1]] if _stands_for_many(args) else []


COMMAND: Final[Command] = Command(
    "qconf",
    -3,
    ("write",),
    qconf,
    "queues",
    "Shows and changes the settings of queues, by name or pattern, on all nodes.",
    "name SET setting value [setting value ...] | name UNSET setting|* [setting ...] | queue GET | pattern SHOW",
    "O(settings)",
    queues=_queues,
    patterns=_patterns,
    audited=_is_change,
    categories=("queueadmin",),
)
