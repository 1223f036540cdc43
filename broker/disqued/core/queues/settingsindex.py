"""The settings of all names and patterns, and which of them hold for a queue.

Each setting of a queue comes from the best name that sets it: the name of the queue itself, then the longest pattern
that matches it; of two patterns of the same length, the greater one. So a name that sets one setting does not hide the
others of a pattern.

Patterns are found by their beginning up to the first special character, so that a name is only matched with those that
begin like it.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.config.glob import Glob
from disqued.core.queues.settings import MOST_NAME_BYTES, SETTINGS, QueueSettings

_LIMIT: Final = b"limit"
_LIMITS: Final = (b"rate", b"burst", b"inflight")
_SPECIAL: Final = frozenset(b"*?[")
_KEPT: Final = 1000
"""For how many names the result is kept. Queues keep their own."""


def is_pattern(name: bytes) -> bool:
    """Whether a name of settings stands for many queues."""
    return b"*" in name or b"?" in name or b"[" in name


def _beginning(pattern: bytes) -> bytes:
    """What every name begins with that the pattern matches."""
    for index in range(len(pattern)):
        byte = pattern[index]
        if byte in _SPECIAL or byte == 92:  # a backslash
            return pattern[:index]
    return pattern


class _Pattern:
    def __init__(self, name: bytes) -> None:
        self.name = name
        self.glob = Glob(name)


def _rank(name: bytes) -> tuple[int, bytes]:
    return (len(name), name)


class SettingsIndex:
    """The settings in effect on one node."""

    def __init__(self) -> None:
        self.some: bool = False
        """Whether anything is set."""
        self.changes: i64 = 0
        """How often something was set or removed."""
        self._rows: dict[bytes, dict[bytes, bytes]] = {}
        """The values by setting, by the name or pattern for which they are set."""
        self.pattern_bytes: i64 = 0
        """The memory that the patterns take."""
        self._patterns: dict[bytes, list[_Pattern]] = {}
        """By their beginning."""
        self._lengths: dict[int, int] = {}
        """How many beginnings have each length."""
        self._combinations: dict[tuple[bytes, ...], QueueSettings] = {}
        """The settings of queues by the names that hold for them."""
        self._known: dict[bytes, QueueSettings | None] = {}
        self._limits_ms: dict[bytes, int] = {}
        """When limits of deliveries were last set for a name or pattern."""

    def set(self, name: bytes, setting: bytes, value: bytes, now_ms: i64 = 0) -> None:
        """Set a setting for a name or pattern. The value must be valid."""
        if setting in _LIMITS:
            self._limits_ms[name] = int(now_ms)
        row = self._rows.get(name)
        if row is None:
            row = {}
            self._rows[name] = row
            self._add_pattern(name)
        row[setting] = value
        self._changed()

    def unset(self, name: bytes, setting: bytes) -> None:
        """Remove a setting of a name or pattern, if there is one."""
        row = self._rows.get(name)
        if row is None or setting not in row:
            return
        del row[setting]
        if not row:
            del self._rows[name]
            self._limits_ms.pop(name, None)
            self._remove_pattern(name)
        self._changed()

    def _changed(self) -> None:
        self.changes += 1
        self.some = bool(self._rows)
        self._combinations.clear()
        self._known.clear()

    def _add_pattern(self, name: bytes) -> None:
        if not is_pattern(name):
            return
        beginning = _beginning(name)
        found = self._patterns.get(beginning)
        if found is None:
            found = []
            self._patterns[beginning] = found
            self._lengths[len(beginning)] = self._lengths.get(len(beginning), 0) + 1
        pattern = _Pattern(name)
        self.pattern_bytes += pattern.glob.used_bytes
        found.append(pattern)

    def _remove_pattern(self, name: bytes) -> None:
        if not is_pattern(name):
            return
        beginning = _beginning(name)
        found = self._patterns[beginning]
        at = [pattern.name for pattern in found].index(name)
        self.pattern_bytes -= found.pop(at).glob.used_bytes
        if found:
            return
        del self._patterns[beginning]
        count = self._lengths[len(beginning)] - 1
        if count > 0:
            self._lengths[len(beginning)] = count
        else:
            del self._lengths[len(beginning)]

    def names_for(self, queue: bytes) -> list[bytes]:
        """The names and patterns whose settings hold for a queue, the best one first."""
        if not self.some or len(queue) > MOST_NAME_BYTES:
            return []
        found: list[bytes] = []
        for length in self._lengths:
            if length > len(queue):
                continue
            patterns = self._patterns.get(queue[:length], [])
            found += [pattern.name for pattern in patterns if pattern.glob.matches(queue)]
        found.sort(key=_rank, reverse=True)
        if queue in self._rows and not is_pattern(queue):
            found.insert(0, queue)
        return found

    def resolve(self, queue: bytes) -> QueueSettings | None:
        """The settings of the queue of that name, whether it exists or not; None if there are none."""
        if not self.some:
            return None
        if queue in self._known:
            return self._known[queue]
        settings = self._combine(self.names_for(queue), queue)
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[queue] = settings
        return settings

    def _combine(self, names: list[bytes], queue: bytes) -> QueueSettings | None:
        if not names:
            return None
        key = tuple(names)
        settings = self._combinations.get(key)
        if settings is not None:
            return settings
        settings = QueueSettings()
        for index in range(len(names) - 1, -1, -1):
            name = names[index]
            for setting, value in self._rows[name].items():
                SETTINGS[setting].take(settings, value)
                if setting == _LIMIT:
                    settings.limit_is_exact = name == queue
            settings.limited_ms = max(settings.limited_ms, self._limits_ms.get(name, 0))
        self._combinations[key] = settings
        return settings

    def sources(self, queue: bytes) -> list[tuple[bytes, bytes, bytes]]:
        """All settings of a queue: the name, the value, and the name or pattern it comes from, empty for a default."""
        names = self.names_for(queue)
        found: list[tuple[bytes, bytes, bytes]] = []
        for row in SETTINGS.values():
            value = row.default.replace(b"<queue>", queue)
            source = b""
            for name in names:
                if row.name in self._rows[name]:
                    value = self._rows[name][row.name]
                    source = name
                    break
            found.append((row.name, value, source))
        return found

    @property
    def count(self) -> i64:
        """The number of names and patterns."""
        return len(self._rows)
