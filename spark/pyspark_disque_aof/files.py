"""Finds append only files and walks through them, wherever pyarrow can read: this machine, S3, HDFS, Google, Azure.

Both happen in Python processes of Spark without a way to the JVM, so its file systems are out of reach; those of
pyarrow take the same addresses. `s3a:` and `s3n:`, as Hadoop calls them, are `s3:`. Credentials come from where pyarrow
looks for them: the environment, or the role of the machine. Files are read in chunks: their size does not matter.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyarrow import fs

from disqued.persistence.check import fault_of
from disqued.persistence.reader import TORN, Damage, Entry, EntryReader

CHUNK_BYTES: Final = 1 << 20
SUFFIXES: Final = (".aof", ".aof.gz")
"""What a directory is searched for."""
_TEMPORARY: Final = ("temp-", ".", "_")
"""What nodes and Spark have not finished begins so."""
_SAME: Final = {"s3a": "s3", "s3n": "s3", "wasbs": "abfss"}
_WILD: Final = re.compile(r"[*?\[]")


class AofDamaged(ValueError):
    """A file that is not sound, with the place, and what to do."""


@dataclass(frozen=True, slots=True)
class AofFile:
    """A file: its address, and how long it was when it was found."""

    address: str
    size: int


def _place(path: str) -> tuple[fs.FileSystem, str, str]:
    """The file system of a path, the path there, and what stands before it in the address."""
    scheme, colon, rest = path.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]+", scheme):
        return fs.LocalFileSystem(), str(Path(path).absolute()), ""
    if scheme.lower() == "file":
        return fs.LocalFileSystem(), "/" + rest.lstrip("/"), ""
    scheme = _SAME.get(scheme.lower(), scheme.lower())
    wild = _WILD.search(rest)
    fixed = rest if wild is None else rest[: wild.start()].rpartition("/")[0] + "/"
    system, inside = fs.FileSystem.from_uri(f"{scheme}:{fixed}")
    tail = "" if wild is None else rest[len(fixed) :]
    whole = f"{inside.rstrip('/')}/{tail}" if tail else inside
    prefix = path[: len(path) - len(whole)] if path.endswith(whole) else f"{scheme}://"
    return system, whole, prefix


def find(paths: Iterable[str]) -> list[AofFile]:
    """The files that are meant, each once, in the order of their addresses.

    Raises:
        FileNotFoundError: a path or a pattern names none.
    """
    found: dict[str, AofFile] = {}
    for path in paths:
        system, inside, prefix = _place(path)
        infos = list(_matches(system, inside))
        if not infos:
            raise FileNotFoundError(
                f"{path} is no append only file, and no directory with any ({' or '.join(SUFFIXES)} below it)"
            )
        found.update((prefix + info.path, AofFile(prefix + info.path, info.size or 0)) for info in infos)
    return [found[address] for address in sorted(found)]


def _matches(system: fs.FileSystem, path: str) -> Iterator[fs.FileInfo]:
    """A file itself, what is in a directory, or what a pattern fits."""
    wild = _WILD.search(path)
    if wild is None:
        info = system.get_file_info(path)
        if info.type == fs.FileType.File:
            yield info
        elif info.type == fs.FileType.Directory:
            yield from _below(system, path)
        return
    parts = path.split("/")
    first = next(number for number, part in enumerate(parts) if _WILD.search(part))
    level = ["/".join(parts[:first]) or "/"]
    for number, part in enumerate(parts[first:], start=first):
        infos = [
            info
            for base in level
            for info in system.get_file_info(fs.FileSelector(base, allow_not_found=True))
            if fnmatch.fnmatchcase(info.base_name, part)
        ]
        if number == len(parts) - 1:
            yield from (info for info in infos if info.type == fs.FileType.File)
            for info in infos:
                if info.type == fs.FileType.Directory:
                    yield from _below(system, info.path)
        level = [info.path for info in infos if info.type == fs.FileType.Directory]


def _below(system: fs.FileSystem, directory: str) -> Iterator[fs.FileInfo]:
    for info in system.get_file_info(fs.FileSelector(directory, recursive=True)):
        name = info.base_name
        if info.type == fs.FileType.File and name.endswith(SUFFIXES) and not name.startswith(_TEMPORARY):
            yield info


def items(address: str, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Entry | Damage]:
    """All that stands in a file: records, and stretches that are none; records that make no sense count as such."""
    system, path, _ = _place(address)
    reader = EntryReader()
    with system.open_input_stream(path) as stream:
        while chunk := stream.read(chunk_bytes):
            reader.feed(chunk)
            yield from _taken(reader)
    reader.end()
    yield from _taken(reader)


def _taken(reader: EntryReader) -> Iterator[Entry | Damage]:
    while (item := reader.next()) is not None:
        yield fault_of(item) or item


def damaged(address: str, damage: Damage) -> AofDamaged:
    """The error for a place in a file, which says what to do."""
    hint = (
        "A node that writes to it just now, or that was killed, leaves such an end, and cuts it off itself"
        if damage.kind == TORN
        else f"`disque-check-aof {address}` shows all such places, with --fix it mends a copy"
    )
    return AofDamaged(
        f"{address} is damaged from byte {damage.offset} to {damage.end}: {damage.why}. {hint}. "
        'To read what is sound: .option("failOnDamage", "false")'
    )
