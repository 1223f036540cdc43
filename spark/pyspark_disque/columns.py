r"""Jobs to columns: bounded Arrow batches in the order of the columns that Spark asks for.

A queue's name may be any bytes, a column of text may not: what is no UTF-8 is shown as `\xff`, byte by byte. Two
queues stay two that way, which a replacement character for both would not give.
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
"""A batch ends with the row that passes one of the two: a task's memory does not depend on its number of jobs."""

NAMES: Final = ("queue", "id", "body", "ctime", "nacks", "additional_deliveries", "node", "state")
GIVEN: Final = frozenset({"queue", "id", "body", "node"})
"""What is known of a job that was taken. The others need SHOW."""


class Row(NamedTuple):
    """One job, in the order of `NAMES`. `ctime_us` is in unix microseconds."""

    queue: str
    id: str
    body: bytes
    ctime_us: int | None = None
    nacks: int | None = None
    additional_deliveries: int | None = None
    node: str | None = None
    state: str | None = None


def require_known(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns.

    Raises:
        BadOption: one is none of ours.
    """
    unknown = [name for name in columns if name not in NAMES]
    if unknown:
        raise BadOption(f"there is no column {', '.join(unknown)}: the columns are {', '.join(NAMES)}")
    return tuple(columns)


def shown(queue: str) -> str:
    """A queue's name as text that any column takes."""
    return re.sub("[\udc80-\udcff]", lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", queue)


def batches(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows in batches of bounded size."""
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
            names[row.queue] = shown(row.queue)
        collected.append(row)
        size += len(row.body)
        if len(collected) >= MAX_ROWS or size >= MAX_BYTES:
            yield batch(collected)
            collected, size = [], 0
    if collected:
        yield batch(collected)
