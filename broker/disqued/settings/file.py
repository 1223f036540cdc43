"""The file with the settings (`cluster-settings-file`): one line per entry, and a last line that proves it whole.

    disqued-settings 1
    setting "mail:*" "retry" "30" 1800000000000 5ca1ab1e…
    removed 1 "mail:*" "ttl" 1800000000000 5ca1ab1e…
    entry 2 "mail" "queued" "1800000000000000000 86400000" 1800000000000 5ca1ab1e…
    end 3 1c291ca3

Words in quotes have the escapes of configuration files. `entry` has the number of a kind: 2 for the mark of a purge, or
one that this release does not know. The last line has the number of entries and the CRC-32 of all bytes before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

from disqued.core.cluster.entrykinds import SETTING
from disqued.resp.integers import parse_integer
from disqued.resp.words import quote_word, split_words
from disqued.settings.entries import Entry, fault_of, make

if TYPE_CHECKING:
    from collections.abc import Iterable

_TITLE: Final = b"disqued-settings 1"
_MOST_KIND: Final = 255
_MOST_VERSION: Final = 1 << 62


def encode(entries: Iterable[Entry]) -> bytes:
    """The file."""
    lines = [_line(entry) for entry in entries]
    text = _TITLE + b"\n" + b"".join(lines)
    return text + b"end %d %08x\n" % (len(lines), crc32(text))


def _line(entry: Entry) -> bytes:
    words = [quote_word(entry.name), quote_word(entry.key)]
    if entry.removed:
        words = [b"removed %d" % entry.kind, *words]
    elif entry.kind == SETTING:
        words = [b"setting", *words, quote_word(entry.value)]
    else:
        words = [b"entry %d" % entry.kind, *words, quote_word(entry.value)]
    return b" ".join(words) + b" %d %b\n" % (entry.version, entry.node_id)


def decode(data: bytes) -> list[Entry]:
    """The entries of a file. Raises ValueError with the line that is wrong and the reason."""
    lines = data.split(b"\n")
    if lines[0] != _TITLE:
        raise ValueError(f"line 1: '{_TITLE.decode()}' is expected")
    if len(lines) < 3 or lines[-1] or not lines[-2].startswith(b"end "):
        raise ValueError(f"line {len(lines)}: the file is incomplete, its last line is not 'end'")
    found: list[Entry] = []
    for number, line in enumerate(lines[1:-2], start=2):
        try:
            found.append(_entry(split_words(line)))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    whole = data[: len(data) - len(lines[-2]) - 1]
    if lines[-2] != b"end %d %08x" % (len(found), crc32(whole)):
        raise ValueError(f"line {len(lines) - 1}: the lines above are not those that were written (wrong checksum)")
    return found


def _entry(words: list[bytes] | None) -> Entry:
    """Parse a line."""
    if not words:
        raise ValueError("no entry")
    sort, rest = words[0], words[1:]
    removed = sort == b"removed"
    kind: int | None = SETTING
    if sort in {b"removed", b"entry"} and rest:
        kind, rest = parse_integer(rest[0]), rest[1:]
    elif sort != b"setting":
        raise ValueError(f"'{sort[:40].decode('latin-1')}' is no kind of entry")
    if removed:
        rest = [*rest[:2], b"", *rest[2:]]
    if len(rest) != 5 or kind is None or not 1 <= kind <= _MOST_KIND:
        raise ValueError("an entry has a name, a key, a value, a version and a node ID")
    name, key, value, digits, node_id = rest
    version = parse_integer(digits)
    if version is None or not 0 <= version < _MOST_VERSION or len(node_id) != 40:
        raise ValueError("an entry ends with a version and a node ID")
    entry = make(kind, name, key, value, version, node_id, removed=removed)
    fault = fault_of(entry, version)
    if fault:
        raise ValueError(fault)
    return entry
