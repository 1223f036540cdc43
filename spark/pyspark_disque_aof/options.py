"""What can be said with `.option(...)` when append only files are read: one table for reading, messages and the page.

Spark hands options over as text and ignores their case. Bad ones fail before any file is read.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark_disque.options import BadOption, read_flag, read_names

ROWS: Final = ("jobs", "records")
DEFAULT_PARTITION_BYTES: Final = 256 << 20
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _bytes(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,12})\s*([kmg]?)b?", text.strip().lower())
    if match is None or int(match[1]) == 0:
        raise BadOption("is a size such as 64m or 1g")
    return int(match[1]) * _UNITS[match[2]]


def _rows(text: str) -> str:
    if text.strip().lower() not in ROWS:
        raise BadOption(f"is one of {', '.join(ROWS)}")
    return text.strip().lower()


def _path(text: str) -> tuple[str, ...]:
    if not text.strip():
        raise BadOption("is not empty")
    return (text.strip(),)


def _paths(text: str) -> tuple[str, ...]:
    """As Spark hands over `.load([one, other])`, or with commas between them."""
    if not text.lstrip().startswith("["):
        return read_names(text)
    try:
        paths = json.loads(text)
    except ValueError as error:
        raise BadOption(f"is a list in JSON, or names with commas between them: {error}") from None
    if not paths or not all(isinstance(path, str) and path for path in paths):
        raise BadOption("names at least one file")
    return tuple(paths)


@dataclass(frozen=True, slots=True)
class AofOption:
    """One row: the name, the field of `AofOptions`, how it is read, and for people the default and what it means."""

    name: str
    field: str
    read: Callable[[str], Any]
    default: str
    text: str


OPTIONS: Final[tuple[AofOption, ...]] = (
    AofOption("path", "paths", _path, "required", "A file, a directory, or a pattern. `.load(path)` says it too."),
    AofOption("paths", "paths", _paths, "-", "Several of them: `.load([one, other])`, or with commas between them."),
    AofOption(
        "rows", "rows", _rows, "jobs",
        "`jobs`: a row for each job that was in the log, with what became of it. `records`: a row for each record, as "
        "it stands there, and for each damaged place.",
    ),
    AofOption("queues", "queues", read_names, "all", "Only jobs of these queues, with commas between them."),
    AofOption(
        "includeBody", "include_body", read_flag, "true",
        "`false` leaves the column `body` null: less to hand over.",
    ),
    AofOption(
        "failOnDamage", "fail_on_damage", read_flag, "true",
        "Whether a file that is damaged, or cut off in its last record, ends the query. `false` reads what is sound.",
    ),
    AofOption(
        "maxPartitionBytes", "max_partition_bytes", _bytes, "256m",
        "Files that are longer are read by several tasks, each of which reads all of it and folds its share of the "
        "jobs: this bounds the memory of a task. Only for `rows` = `jobs`.",
    ),
)  # fmt: skip

_BY_NAME: Final = {option.name.lower(): option for option in OPTIONS}


@dataclass(frozen=True, slots=True)
class AofOptions:
    """The options as values."""

    paths: tuple[str, ...]
    rows: str = "jobs"
    queues: tuple[str, ...] | None = None
    include_body: bool = True
    fail_on_damage: bool = True
    max_partition_bytes: int = DEFAULT_PARTITION_BYTES


def parse(given: Mapping[str, str]) -> AofOptions:
    """The options of one read.

    Raises:
        BadOption: one is unknown, missing or wrong; the message says what to write.
    """
    values: dict[str, Any] = {}
    for name, text in given.items():
        option = _BY_NAME.get(name.lower())
        if option is None:
            raise BadOption(_unknown(name))
        if option.field in values:
            raise BadOption("the options path and paths clash: give one of them")
        try:
            values[option.field] = option.read(text)
        except BadOption as error:
            raise BadOption(f"the option {option.name} {error}, not {text!r}") from None
    if "paths" not in values:
        raise BadOption('no file is named: .load("/backup/disque.aof")')
    return AofOptions(**values)


def _unknown(name: str) -> str:
    if name.lower() in {"nodes", "queue", "states"}:
        other = "queues" if name.lower() == "queue" else 'format("disque"), which reads live nodes'
        return f"there is no option {name} for files: use {other}"
    close = difflib.get_close_matches(name.lower(), _BY_NAME, n=1, cutoff=0.6)
    if close:
        return f"there is no option {name}: it is called {_BY_NAME[close[0]].name} here"
    return f"there is no option {name}: the options are {', '.join(option.name for option in OPTIONS)}"
