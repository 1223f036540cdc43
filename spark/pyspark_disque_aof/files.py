"""Finds and reads append-only files wherever pyarrow can read: local disks, S3, HDFS, Google Cloud and Azure.

Spark's Python processes have no access to the JVM and its file systems, so this module uses those of pyarrow, which
accept the same addresses. Hadoop's `s3a:` and `s3n:` become `s3:`. pyarrow takes credentials from the environment, or
from the role of the host. Files are read in chunks, so memory does not depend on their size.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyarrow import fs

from disqued.node import ROOMS
from disqued.persistence.check import fault_of, unknown_format
from disqued.persistence.parse import TORN, Damage, Entry
from disqued.persistence.reader import EntryReader

CHUNK_BYTES: Final = 1 << 20
SUFFIXES: Final = (".aof", ".aof.gz")
"""The names of the files to read in a directory."""
_TEMPORARY: Final = ("temp-", ".", "_")
"""The prefixes of files that a node or Spark is still writing."""
_SAME: Final = {"s3a": "s3", "s3n": "s3", "wasbs": "abfss"}
_WILD: Final = re.compile(r"[*?\[]")


class AofDamaged(ValueError):
    """A file is damaged; the message has the position, and what to do."""


class AofUnknown(ValueError):
    """A file has a format of a later release, which no option skips."""


@dataclass(frozen=True, slots=True)
class AofFile:
    """A file: its address, and its size when it was found."""

    address: str
    size: int


def _resolve(path: str) -> tuple[fs.FileSystem, str, str]:
    """Return the file system of a path, the path in it, and the prefix that makes it an address."""
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
    """Return the files that the paths match, without duplicates, ordered by address.

    Raises:
        FileNotFoundError: a path or a pattern matches no file.
    """
    found: dict[str, AofFile] = {}
    for path in paths:
        system, inside, prefix = _resolve(path)
        infos = list(_matches(system, inside))
        if not infos:
            raise FileNotFoundError(
                f"no append-only file at {path}: expected a file, or a directory with {' or '.join(SUFFIXES)} files"
            )
        found.update((prefix + info.path, AofFile(prefix + info.path, info.size or 0)) for info in infos)
    return [found[address] for address in sorted(found)]


def _matches(system: fs.FileSystem, path: str) -> Iterator[fs.FileInfo]:
    """Yield a file itself, the files in a directory, or the files that match a pattern."""
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


def read_items(address: str, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Entry | Damage]:
    """Yield the records of a file and its damaged ranges; an invalid record is a damaged range, too."""
    system, path, _ = _resolve(address)
    reader = EntryReader(ROOMS.record_table)
    with system.open_input_stream(path) as stream:
        while chunk := stream.read(chunk_bytes):
            reader.feed(chunk)
            yield from _parsed(address, reader)
    reader.end()
    yield from _parsed(address, reader)


def _parsed(address: str, reader: EntryReader) -> Iterator[Entry | Damage]:
    while (item := reader.next()) is not None:
        if why := unknown_format(item):
            raise AofUnknown(f"{address} cannot be read: {why}. Use the connector of the release that wrote it")
        yield fault_of(item) or item


def damage_error(address: str, damage: Damage) -> AofDamaged:
    """Return the error for a damaged range of a file, which says what to do."""
    hint = (
        "A node that is writing the file, or was killed, leaves such an end and truncates it on its next start"
        if damage.kind == TORN
        else f"`disque-check-aof {address}` lists all damaged ranges, and `--fix` repairs a copy"
    )
    return AofDamaged(
        f"{address} is damaged from byte {damage.offset} to {damage.end}: {damage.why}. {hint}. "
        'To skip damaged ranges, set .option("failOnDamage", "false")'
    )
