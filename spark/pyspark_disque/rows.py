"""From Arrow record batches to ADDJOB commands: what a row says, and what the options say for all rows.

`Layout` is made once, on the driver, from the columns and the options, and fails there when a column is missing,
unknown or of a wrong type. In the tasks it cuts batches into slices that are bounded by rows and by bytes, so that
what it holds beside Spark's own batch does not grow with the partition, and works column by column, which is what
Python is quick at. The module knows Arrow and no sockets.
"""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from pyspark_disque.options import DEFAULT_WINDOW_S, BadOption, Options
from pyspark_disque.schema import IGNORED, SINK

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

SLICE_ROWS: Final = 512
"""Commands on their way at once: enough to hide the round trip."""
SLICE_BYTES: Final = 4 << 20
"""Fewer rows at once when they are large; a single row may be larger."""
SLOTS: Final = 1024
"""Keys of a column fall into so many slots, each with a home of its own."""

Command: TypeAlias = tuple[bytes | int, ...]
"""The words of one ADDJOB."""


class BadRow(ValueError):
    """A row that can not be made a job; no other attempt will change that."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Some rows that follow each other: the first one's number in the partition, and for each its words and its slot.

    Rows of one slot have to go to the same node where keys are in use.
    """

    first: int
    commands: Sequence[Command]
    slots: Sequence[int]


_WORDS: Final[tuple[tuple[str, bytes, Callable[[Options], int | None]], ...]] = (
    ("delay", b"DELAY", lambda options: options.delay_s),
    ("retry", b"RETRY", lambda options: options.retry_s),
    ("ttl", b"TTL", lambda options: options.ttl_s),
    ("replicate", b"REPLICATE", lambda options: options.replicate),
    ("maxlen", b"MAXLEN", lambda options: options.maxlen),
)
"""Column, word of ADDJOB, and the option that wins over the column."""

_COUSINS: Final = {"value": "body", "payload": "body", "message": "body", "topic": "queue"}
"""Columns of other connectors' sinks."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where in a batch what is found. Made with `of`.

    `fixed` are the words that are the same for all rows; `varying` are a column's index and its word.
    """

    body: int
    queue: int | bytes
    key: int | None
    timeout_ms: int
    fixed: Command
    varying: tuple[tuple[int, bytes], ...]

    @classmethod
    def of(cls, schema: StructType, options: Options) -> Layout:
        """The layout of a data frame.

        Raises:
            BadOption: a column is missing, unknown, or of a type that it can not have, or clashes with an option.
        """
        at = _columns(schema)
        if "body" not in at:
            raise BadOption("the column body is missing: it is what the worker gets, a string or binary")
        if options.queue is None and "queue" not in at:
            raise BadOption("say where to write: with the option queue, or with a column queue")
        if "key" in at and not options.deduplicated:
            raise BadOption(
                'the column key is for the mode deduplicated: add .option("mode", "deduplicated"), or drop the column'
            )
        if "key" in at and options.write_id is not None:
            raise BadOption("the option writeId and the column key clash: rows have one key, give one of them")
        return cls(
            body=at["body"],
            queue=at["queue"] if options.queue is None else options.queue.encode(),
            key=at.get("key"),
            timeout_ms=options.replicate_timeout_s * 1000,
            fixed=tuple(_fixed(options)),
            varying=tuple((at[name], word) for name, word, option in _WORDS if name in at and option(options) is None),
        )

    def slices(self, batches: Iterable[pa.RecordBatch], partition: int, prefix: bytes = b"") -> Iterator[Slice]:
        """The rows of one partition as commands.

        With a `prefix` a row's key is the prefix and its number in the partition; a column `key` goes before that.

        Raises:
            BadRow: a row has no body, queue or key.
        """
        first = 0
        for batch in batches:
            for piece in _cut(batch):
                yield self._slice(piece, first, partition, prefix)
                first += piece.num_rows

    def _slice(self, piece: pa.RecordBatch, first: int, partition: int, prefix: bytes) -> Slice:
        count = piece.num_rows
        where = _Where(first, partition)
        bodies = where.required("body", _bytes(piece.column(self.body)))
        if isinstance(self.queue, bytes):
            queues = [self.queue] * count
        else:
            queues = where.required("queue", _bytes(piece.column(self.queue)), shortest=1)
        tails: list[Command] = [self.fixed] * count
        for index, word in self.varying:
            numbers = piece.column(index).to_pylist()
            tails = [
                tail if number is None else (*tail, word, number) for tail, number in zip(tails, numbers, strict=True)
            ]
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


@dataclass(frozen=True, slots=True)
class _Where:
    """Where a slice begins, for messages."""

    first: int
    partition: int

    def required(self, column: str, values: list[bytes | None], shortest: int = 0) -> list[bytes]:
        """The values, when all are there and have so many bytes."""
        found = [value for value in values if value is not None and len(value) >= shortest]
        if len(found) == len(values):
            return found
        row = next(row for row, value in enumerate(values) if value is None or len(value) < shortest)
        state = "null" if values[row] is None else "empty"
        raise BadRow(f"the column {column} is {state} in row {self.first + row} of partition {self.partition}")


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in pieces of a bounded size; views, not copies."""
    start = 0
    while start < batch.num_rows:
        piece = batch.slice(start, SLICE_ROWS)
        while piece.num_rows > 1 and piece.nbytes > SLICE_BYTES:
            piece = piece.slice(0, piece.num_rows // 2)
        yield piece
        start += piece.num_rows


def _bytes(column: pa.Array) -> list[bytes | None]:
    """Strings or bytes as bytes; strings are kept as UTF-8, so that is a matter of names."""
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    values: list[bytes | None] = column.to_pylist()
    return values


def _fixed(options: Options) -> Iterator[bytes | int]:
    """The words that the options say for all rows."""
    for _, word, option in _WORDS:
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
    """The index of each column that is of use, by its name."""
    found: dict[str, int] = {}
    for index, column in enumerate(schema.fields):
        name = column.name.lower()
        if name in IGNORED:
            continue
        if name not in SINK:
            raise BadOption(_unknown(column.name))
        if name in found:
            raise BadOption(f"there are two columns {name}: drop one")
        kind = column.dataType.simpleString()
        if kind.split("(")[0].split(" ")[0].replace("varchar", "string").replace("char", "string") not in SINK[name]:
            raise BadOption(f"the column {column.name} is {' or '.join(SINK[name])}, not {kind}")
        found[name] = index
    return found


def _unknown(name: str) -> str:
    right = _COUSINS.get(name.lower())
    if right is None:
        right = next(iter(difflib.get_close_matches(name.lower(), SINK, n=1, cutoff=0.6)), None)
    if right is not None:
        return f"a job has no column {name}: it is called {right} here"
    return (
        f"a job has no column {name}: drop it, or put it into the body; the columns are {', '.join(SINK)}, and those "
        "of the source, which are passed over"
    )
