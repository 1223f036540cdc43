r"""Converts jobs to Arrow batches of bounded size, with the columns in the order that Spark asks for.

A queue name may contain any bytes, but a text column may not. Each byte that is not valid UTF-8 is shown as `\xff`, so
different queues keep different names. A replacement character would make them equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark_disque.options import BadOption

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ROWS: Final = 1000
MAX_BYTES: Final = 4 << 20
"""A batch ends with the row that reaches one of the limits, so the memory of a task does not grow with its jobs."""

NAMES: Final = ("queue", "id", "body", "ctime", "nacks", "additional_deliveries", "node", "state")
LEASED_COLUMNS: Final = frozenset({"queue", "id", "body", "node"})
"""The columns that a GETJOB reply contains. The others need SHOW."""


class Row(NamedTuple):
    """One job, in the order of `NAMES`. `ctime_us` is in microseconds since the Unix epoch."""

    queue: str
    id: str
    body: bytes
    ctime_us: int | None = None
    nacks: int | None = None
    additional_deliveries: int | None = None
    node: str | None = None
    state: str | None = None


def check_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the column names.

    Raises:
        BadOption: a column is unknown.
    """
    unknown = [name for name in columns if name not in NAMES]
    if unknown:
        raise BadOption(f"unknown column {', '.join(unknown)}: the columns are {', '.join(NAMES)}")
    return tuple(columns)


def display_name(queue: str) -> str:
    """Return a queue name as valid text."""
    return re.sub("[\udc80-\udcff]", lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", queue)


def batches(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in Arrow batches of bounded size."""
    import pyarrow as pa  # noqa: PLC0415 - only tasks need it

    types = {
        "queue": pa.string(), "id": pa.string(), "body": pa.binary(), "ctime": pa.timestamp("us", tz="UTC"),
        "nacks": pa.int32(), "additional_deliveries": pa.int32(), "node": pa.string(), "state": pa.string(),
    }  # fmt: skip
    schema = pa.schema([(name, types[name]) for name in columns])

    def batch(collected: Sequence[Row]) -> pa.RecordBatch:
        table: dict[str, Sequence[object]] = dict(zip(NAMES, zip(*collected, strict=True), strict=True))
        table["queue"] = [names[row.queue] for row in collected]
        return pa.RecordBatch.from_arrays([pa.array(table[name], types[name]) for name in columns], schema=schema)

    names: dict[str, str] = {}
    collected: list[Row] = []
    size = 0
    for row in rows:
        if row.queue not in names:
            names[row.queue] = display_name(row.queue)
        collected.append(row)
        size += len(row.body)
        if len(collected) >= MAX_ROWS or size >= MAX_BYTES:
            yield batch(collected)
            collected, size = [], 0
    if collected:
        yield batch(collected)
