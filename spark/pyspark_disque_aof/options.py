"""The options of `format("disque-aof")`: one table from which parsing, messages and the page of options follow.

Spark passes options as text and ignores their case. Invalid options fail before any file is read.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark_disque.optionvalues import BadOption, read_flag, read_names

ROWS: Final = ("jobs", "records")
DEFAULT_PARTITION_BYTES: Final = 256 << 20
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _bytes(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,12})\s*([kmg]?)b?", text.strip().lower())
    if match is None or int(match[1]) == 0:
        raise BadOption("must be a size such as 64m or 1g")
    return int(match[1]) * _UNITS[match[2]]


def _rows(text: str) -> str:
    if text.strip().lower() not in ROWS:
        raise BadOption(f"must be one of {', '.join(ROWS)}")
    return text.strip().lower()


def _path(text: str) -> tuple[str, ...]:
    if not text.strip():
        raise BadOption("must not be empty")
    return (text.strip(),)


def _paths(text: str) -> tuple[str, ...]:
    """Parse the JSON that Spark passes for `.load([one, other])`, or a comma-separated list."""
    if not text.lstrip().startswith("["):
        return read_names(text)
    try:
        paths = json.loads(text)
    except ValueError as error:
        raise BadOption(f"must be a JSON or comma-separated list: {error}") from None
    if not paths or not all(isinstance(path, str) and path for path in paths):
        raise BadOption("must name at least one file")
    return tuple(paths)


@dataclass(frozen=True, slots=True)
class AofOption:
    """One row of the table: the name, the field of `AofOptions`, the parser, and the default and meaning as text."""

    name: str
    field: str
    read: Callable[[str], Any]
    default: str
    text: str


OPTIONS: Final[tuple[AofOption, ...]] = (
    AofOption("path", "paths", _path, "required", "A file, a directory or a pattern. `.load(path)` sets it as well."),
    AofOption(
        "paths", "paths", _paths, "-",
        "Several paths, separated by commas. `.load([one, other])` sets it as well.",
    ),
    AofOption(
        "rows", "rows", _rows, "jobs",
        "`jobs`: one row for each job in the log, with its outcome. `records`: one row for each record, and one for "
        "each damaged range.",
    ),
    AofOption(
        "queues", "queues", read_names, "all",
        "A comma-separated list of queues. Rows of other queues are left out.",
    ),
    AofOption(
        "includeBody", "include_body", read_flag, "true",
        "Whether to read the column `body`. `false` leaves it null and transfers less data.",
    ),
    AofOption(
        "failOnDamage", "fail_on_damage", read_flag, "true",
        "Whether the query fails if a file is damaged, or truncated in its last record. `false` skips damaged ranges.",
    ),
    AofOption(
        "maxPartitionBytes", "max_partition_bytes", _bytes, "256m",
        "Several tasks share a longer file: each reads the whole file, but processes only a part of the jobs, which "
        "limits the memory of a task. Only for `rows` = `jobs`.",
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
    """Parse the options of one read.

    Raises:
        BadOption: an option is unknown, missing or invalid; the message says what to do.
    """
    values: dict[str, Any] = {}
    for name, text in given.items():
        option = _BY_NAME.get(name.lower())
        if option is None:
            raise BadOption(_unknown(name))
        if option.field in values:
            raise BadOption("the options path and paths conflict; set only one of them")
        try:
            values[option.field] = option.read(text)
        except BadOption as error:
            raise BadOption(f"the option {option.name} {error}, not {text!r}") from None
    if "paths" not in values:
        raise BadOption('no file to read; pass a path such as .load("/backup/disque.aof")')
    return AofOptions(**values)


def _unknown(name: str) -> str:
    if name.lower() in {"nodes", "queue", "states"}:
        other = "queues" if name.lower() == "queue" else 'format("disque"), which reads live nodes'
        return f"the option {name} does not apply to files; use {other}"
    close = difflib.get_close_matches(name.lower(), _BY_NAME, n=1, cutoff=0.6)
    if close:
        return f"unknown option {name}; use {_BY_NAME[close[0]].name}"
    return f"unknown option {name}; the options are {', '.join(option.name for option in OPTIONS)}"
