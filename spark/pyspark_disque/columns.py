r"""Converts jobs to Arrow batches of bounded size, with the columns in the order that Spark asks for.

A queue name may contain any bytes, but a text column may not. Each byte that is not valid UTF-8 is shown as `\xff`, so
different queues keep different names. A replacement character would make them equal.

Leased jobs become columns without an object for each job. The driver of a stream sends them to its tasks as the bytes
of an Arrow stream (`pack`), which a task only passes on.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from disqued.client.wire import to_text
from pyspark_disque.offsets import JobGroup
from pyspark_disque.optionvalues import BadOption

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ROWS: Final = 10_000
MAX_BYTES: Final = 4 << 20
"""A batch ends with the row that reaches one of the limits, so the memory of a task does not grow with its jobs."""

NAMES: Final = (
    *("queue", "id", "body", "ctime", "nacks", "additional_deliveries", "node", "state", "priority", "meta"),
    *("attempts", "attempts_before", "reason", "origin_queue", "dead_since"),
)
LEASED_COLUMNS: Final = frozenset({"queue", "id", "body", "node"})
"""The columns that a GETJOB reply contains. The others need SHOW."""


class Row(NamedTuple):
    """One job, in the order of `NAMES`. `ctime_us` and `dead_since_us` are in microseconds since the Unix epoch."""

    queue: str
    id: str
    body: bytes
    ctime_us: int | None = None
    nacks: int | None = None
    additional_deliveries: int | None = None
    node: str | None = None
    state: str | None = None
    priority: int | None = None
    meta: bytes | None = None
    attempts: int | None = None
    attempts_before: int | None = None
    reason: str | None = None
    origin_queue: str | None = None
    dead_since_us: int | None = None

    @classmethod
    def of(cls, queue: str, job_id: str, node: str, fields: dict[bytes, Any], state: str | None = None) -> Row:
        """Return the row of a job that a node describes (SHOW). A node of the original knows no attributes."""
        reason, origin, dead_ms = (fields.get(name) for name in (b"reason", b"origin-queue", b"dead-since"))
        nacks, deliveries = fields[b"nacks"], fields[b"additional-deliveries"]
        return cls(
            queue=queue,
            id=job_id,
            body=fields[b"body"],
            ctime_us=fields[b"ctime"] // 1000,
            nacks=nacks,
            additional_deliveries=deliveries,
            node=node,
            state=state,
            priority=fields.get(b"priority", 0),
            meta=fields.get(b"meta"),
            attempts=nacks + deliveries,
            attempts_before=fields.get(b"attempts"),
            reason=None if reason is None else display_name(to_text(reason)),
            origin_queue=None if origin is None else display_name(to_text(origin)),
            dead_since_us=None if dead_ms is None else dead_ms * 1000,
        )


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


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """Return the schema of the batches."""
    import pyarrow as pa  # noqa: PLC0415 - only the processes that Spark starts need it

    types = {
        "queue": pa.string(), "id": pa.string(), "body": pa.binary(), "ctime": pa.timestamp("us", tz="UTC"),
        "nacks": pa.int32(), "additional_deliveries": pa.int32(), "node": pa.string(), "state": pa.string(),
        "priority": pa.int32(), "meta": pa.binary(), "attempts": pa.int32(), "attempts_before": pa.int32(),
        "reason": pa.string(), "origin_queue": pa.string(), "dead_since": pa.timestamp("us", tz="UTC"),
    }  # fmt: skip
    return pa.schema([(name, types[name]) for name in columns])


def batches(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in Arrow batches of bounded size."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    schema = arrow_schema(columns)

    def batch(collected: Sequence[Row]) -> pa.RecordBatch:
        table: dict[str, Sequence[object]] = dict(zip(NAMES, zip(*collected, strict=True), strict=True))
        table["queue"] = [names[row.queue] for row in collected]
        return pa.RecordBatch.from_arrays([pa.array(table[field.name], field.type) for field in schema], schema=schema)

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


def leased_batches(
    groups: Iterable[JobGroup], bodies: Sequence[bytes], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield leased jobs in Arrow batches of bounded size; `bodies` are those of all groups in their order."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    schema = arrow_schema(columns)
    start = 0
    for group in groups:
        sizes = list(accumulate(map(len, bodies[start : start + len(group.ids)]), initial=0))
        first = 0
        while first < len(group.ids):
            end = min(first + MAX_ROWS, bisect_left(sizes, sizes[first] + MAX_BYTES), len(group.ids))
            arrays = {
                "queue": pa.repeat(display_name(group.queue), end - first),
                "id": pa.array(group.ids[first:end], pa.binary()).view(pa.string()),  # ASCII, so without a check
                "body": pa.array(bodies[start + first : start + end], pa.binary()),
                "node": pa.repeat(group.node, end - first),
            }
            yield pa.RecordBatch.from_arrays([arrays[name] for name in columns], schema=schema)
            first = end
        start += len(group.ids)


def pack(collected: Iterable[pa.RecordBatch], columns: Sequence[str]) -> bytes:
    """Return batches as the bytes of an Arrow stream.

    It is compressed, because Spark copies it several times on its way to a task, which takes longer than LZ4 does.
    """
    import pyarrow as pa  # noqa: PLC0415 - as above

    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_stream(sink, arrow_schema(columns), options=options) as writer:
        for batch in collected:
            writer.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpack(packed: bytes) -> Iterator[pa.RecordBatch]:
    """Yield the batches in the bytes of an Arrow stream."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    with pa.ipc.open_stream(packed) as reader:
        yield from reader
