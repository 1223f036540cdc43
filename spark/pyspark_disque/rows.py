"""Converts Arrow record batches to ADDJOB commands, from the columns of each row and the options for all rows.

The driver makes one `Layout` from the columns and the options, which fails if a column is missing, unknown or of the
wrong type. In the tasks, the layout cuts batches into slices with a limited number of rows and bytes, so the memory of
a task does not grow with its partition. It processes whole columns, which is fast in Python. This module knows Arrow,
but no sockets.
"""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from pyspark_disque.options import DEFAULT_WINDOW_S, Options
from pyspark_disque.optionvalues import BadOption
from pyspark_disque.schema import IGNORED, SINK

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

SLICE_ROWS: Final = 512
"""The number of commands sent at once: enough to hide the round trip."""
SLICE_BYTES: Final = 4 << 20
"""The size limit of a slice with more than one row."""
SLOTS: Final = 1024
"""The number of slots that the keys of a column are hashed to; each slot has a home node."""

Command: TypeAlias = tuple[bytes | int, ...]
"""The arguments of one ADDJOB, including its name."""


class BadRow(ValueError):
    """A row that cannot become a job; a retry cannot help."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Consecutive rows: the number of the first one in its partition, and the command and the slot of each row.

    If rows have keys, all rows of a slot must go to the same node.
    """

    first: int
    commands: Sequence[Command]
    slots: Sequence[int]


_ARGUMENTS: Final[tuple[tuple[str, bytes, Callable[[Options], int | None]], ...]] = (
    ("delay", b"DELAY", lambda options: options.delay_s),
    ("retry", b"RETRY", lambda options: options.retry_s),
    ("ttl", b"TTL", lambda options: options.ttl_s),
    ("replicate", b"REPLICATE", lambda options: options.replicate),
    ("maxlen", b"MAXLEN", lambda options: options.maxlen),
    ("priority", b"PRIORITY", lambda options: options.priority),
    ("meta", b"META", lambda _: None),
    ("retain", b"RETAIN", lambda options: options.retain_s),
)
"""The column, the ADDJOB argument, and the option that overrides the column: numbers, and bytes without an option."""

_FOREIGN_COLUMNS: Final = {"value": "body", "payload": "body", "message": "body", "topic": "queue"}
"""Column names of other connectors."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of the columns in a batch. Made by `of`.

    `fixed` are the arguments that are the same for all rows; `varying` are pairs of a column index and its argument.
    """

    body: int
    queue: int | bytes
    key: int | None
    timeout_ms: int
    fixed: Command
    varying: tuple[tuple[int, bytes], ...]
    job_id: int | None = None
    after: int | None = None
    otherwise: int | bytes | None = None

    @classmethod
    def of(cls, schema: StructType, options: Options) -> Layout:
        """Return the layout of a DataFrame.

        Raises:
            BadOption: a column is missing, unknown or of the wrong type, or conflicts with an option.
        """
        at = _columns(schema)
        if "body" not in at:
            raise BadOption("the column body is missing; add it as string or binary")
        if options.queue is None and "queue" not in at:
            raise BadOption("no queue to write to; set the option queue, or add a column queue")
        if "key" in at and not options.deduplicated:
            raise BadOption(
                'the column key requires the mode deduplicated; add .option("mode", "deduplicated"), or drop the column'
            )
        if "key" in at and options.write_id is not None:
            raise BadOption("the option writeId and the column key conflict; remove one of them")
        if "job_id" in at and options.deduplicated:
            raise BadOption(
                "the column job_id and the mode deduplicated conflict; remove one of them: a row with an ID is one job "
                "anyway"
            )
        if "after" not in at and (options.otherwise is not None or "otherwise" in at):
            raise BadOption("otherwise is for jobs that wait for others; add a column after with their IDs")
        return cls(
            body=at["body"],
            queue=at["queue"] if options.queue is None else options.queue.encode(),
            key=at.get("key"),
            timeout_ms=options.replicate_timeout_s * 1000,
            fixed=tuple(_fixed(options)),
            varying=tuple(
                (at[name], word) for name, word, option in _ARGUMENTS if name in at and option(options) is None
            ),
            job_id=at.get("job_id"),
            after=at.get("after"),
            otherwise=at.get("otherwise") if options.otherwise is None else options.otherwise.encode(),
        )

    def slices(self, batches: Iterable[pa.RecordBatch], partition: int, prefix: bytes = b"") -> Iterator[Slice]:
        """Yield the rows of one partition as commands.

        With a `prefix`, the key of a row is the prefix and its number in the partition. A column `key` overrides that.

        Raises:
            BadRow: a row has no body, queue, key or ID, or a parent without one.
        """
        first = 0
        for batch in batches:
            for piece in _cut(batch):
                yield self._slice(piece, first, partition, prefix)
                first += piece.num_rows

    def _slice(self, piece: pa.RecordBatch, first: int, partition: int, prefix: bytes) -> Slice:
        count = piece.num_rows
        where = _Position(first, partition)
        bodies = where.required("body", _bytes(piece.column(self.body)))
        if isinstance(self.queue, bytes):
            queues = [self.queue] * count
        else:
            queues = where.required("queue", _bytes(piece.column(self.queue)), shortest=1)
        tails: list[Command] = [self.fixed] * count
        for index, word in self.varying:
            column = piece.column(index)
            values = column.to_pylist() if pa.types.is_integer(column.type) else _bytes(column)
            tails = [tail if value is None else (*tail, word, value) for tail, value in zip(tails, values, strict=True)]
        if self.after is not None:
            parents = self._parents(piece, where, self.after)
            tails = [(*tail, *words) for tail, words in zip(tails, parents, strict=True)]
        if self.job_id is not None:
            ids = where.required("job_id", _bytes(piece.column(self.job_id)), shortest=1)
            tails = [(*tail, b"ID", job_id) for tail, job_id in zip(tails, ids, strict=True)]
        slots = [partition] * count
        keys: list[bytes] = []
        if self.key is not None:
            keys = where.required("key", _bytes(piece.column(self.key)), shortest=1)
            slots = [zlib.crc32(key) % SLOTS for key in keys]
        elif prefix:
            keys = [b"%b/%d" % (prefix, row) for row in range(first, first + count)]
        if keys:
            tails = [(*tail, b"KEY", key) for tail, key in zip(tails, keys, strict=True)]
        timeout_ms = self.timeout_ms
        commands = [
            (b"ADDJOB", queue, body, timeout_ms, *tail) for queue, body, tail in zip(queues, bodies, tails, strict=True)
        ]
        return Slice(first, commands, slots)

    def _parents(self, piece: pa.RecordBatch, where: _Position, after: int) -> list[Command]:
        """Return the arguments of each row that name its parents."""
        parents = _lists(piece.column(after))
        where.required("after", [None if None in ids else b"" for ids in parents])
        if isinstance(self.otherwise, int):
            actions = _bytes(piece.column(self.otherwise))
        else:
            actions = [self.otherwise] * len(parents)
        return [
            (*(word for parent in ids if parent is not None for word in (b"AFTER", parent)), *_otherwise(ids, action))
            for ids, action in zip(parents, actions, strict=True)
        ]


def _otherwise(parents: list[bytes | None], action: bytes | None) -> Command:
    """Return the arguments for a parent that can no longer be done; none for a job without parents."""
    return (b"ELSE", action) if parents and action is not None else ()


def _lists(column: pa.Array) -> list[list[bytes | None]]:
    """Return a column of arrays, or of single values, as lists of bytes; null is an empty list."""
    if not pa.types.is_list(column.type) and not pa.types.is_large_list(column.type):
        return [[] if value is None else [value] for value in _bytes(column)]
    rows: list[list[str | None] | None] = column.to_pylist()
    return [[None if value is None else value.encode() for value in row or ()] for row in rows]


@dataclass(frozen=True, slots=True)
class _Position:
    """The position of a slice, for messages."""

    first: int
    partition: int

    def required(self, column: str, values: list[bytes | None], shortest: int = 0) -> list[bytes]:
        """Return the values if none is null or shorter than `shortest` bytes."""
        found = [value for value in values if value is not None and len(value) >= shortest]
        if len(found) == len(values):
            return found
        row = next(row for row, value in enumerate(values) if value is None or len(value) < shortest)
        state = "null" if values[row] is None else "empty"
        raise BadRow(f"the column {column} must not be {state}: row {self.first + row} of partition {self.partition}")


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch in slices of bounded size, as views without copying."""
    start = 0
    while start < batch.num_rows:
        piece = batch.slice(start, SLICE_ROWS)
        while piece.num_rows > 1 and piece.nbytes > SLICE_BYTES:
            piece = piece.slice(0, piece.num_rows // 2)
        yield piece
        start += piece.num_rows


def _bytes(column: pa.Array) -> list[bytes | None]:
    """Return strings or bytes as bytes; Arrow stores strings as UTF-8, so this only changes the type."""
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    values: list[bytes | None] = column.to_pylist()
    return values


def _fixed(options: Options) -> Iterator[bytes | int]:
    """Yield the arguments that the options set for all rows."""
    for _, word, option in _ARGUMENTS:
        value = option(options)
        if value is not None:
            yield word
            yield value
    if options.deduplicated:
        yield b"WINDOW"
        yield options.window_s or DEFAULT_WINDOW_S
    if options.asynchronous:
        yield b"ASYNC"


def _columns(schema: StructType) -> dict[str, int]:
    """Return the index of each column of a job by its name."""
    found: dict[str, int] = {}
    for index, column in enumerate(schema.fields):
        name = column.name.lower()
        if name in IGNORED:
            continue
        if name not in SINK:
            raise BadOption(_unknown(column.name))
        if name in found:
            raise BadOption(f"duplicate column {name}; drop one")
        kind = column.dataType.simpleString()
        if kind.split("(")[0].split(" ")[0].replace("varchar", "string").replace("char", "string") not in SINK[name]:
            raise BadOption(f"the column {column.name} must be {' or '.join(SINK[name])}, not {kind}")
        found[name] = index
    return found


def _unknown(name: str) -> str:
    right = _FOREIGN_COLUMNS.get(name.lower())
    if right is None:
        right = next(iter(difflib.get_close_matches(name.lower(), SINK, n=1, cutoff=0.6)), None)
    if right is not None:
        return f"unknown column {name}; rename it to {right}"
    return (
        f"unknown column {name}; drop it, or make it part of the body; the columns are {', '.join(SINK)}, and those of "
        "the source, which are ignored"
    )
