"""A snapshot: the jobs of all nodes as they are, by JSCAN. Nothing changes there, and nothing is taken.

A task reads one queue of one node, page by page, so that its memory is bounded. What changes meanwhile may be in it or
not, as with any scan. A cursor means nothing to another node, nor to the same one when it was started again: a task
whose node fails in the middle fails, and Spark does it from the beginning.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from disqued.client import Client, ConnectionFailed, DisqueError
from disqued.client.wire import to_text
from pyspark_disque.brokers import Brokers, Member, is_passing
from pyspark_disque.clock import Clock, Patience
from pyspark_disque.columns import Row, batches, shown
from pyspark_disque.intake import Look, answers
from pyspark_disque.options import Options

if TYPE_CHECKING:
    import pyarrow as pa

QUEUES_SCANNED_ALONE: Final = 8
"""A scan looks at all jobs of a node whatever the queue: many queues are looked for in one scan."""
FIRST_PAGE: Final = 64
MAX_PAGE: Final = 1000
MAX_PAGE_BYTES: Final = 8 << 20
WAITING: Final = frozenset({"queued"})


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What filters leave to look for: states, and queues by the names that are shown; None is all."""

    states: frozenset[str]
    queues: frozenset[str] | None = None

    def to_states(self, allowed: Collection[str]) -> Narrowed:
        """Only these states."""
        return dataclasses.replace(self, states=self.states & frozenset(allowed))

    def to_queues(self, allowed: Collection[str]) -> Narrowed:
        """Only these queues."""
        queues = frozenset(allowed) if self.queues is None else self.queues & frozenset(allowed)
        return dataclasses.replace(self, queues=queues)

    def has_queue(self, name: str) -> bool:
        """Whether a queue is looked for."""
        return self.queues is None or shown(name) in self.queues


@dataclass(frozen=True, slots=True)
class Scan:
    """One JSCAN: at which node, for which queues (None: those that match the pattern), at most how many jobs."""

    member: Member
    queues: tuple[str, ...] | None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class ScanPart:
    """One task: its scans, one after the other, and how many rows they may give together."""

    scans: tuple[Scan, ...]
    narrowed: Narrowed
    most: int | None = None


def plan_scans(look: Look, options: Options, narrowed: Narrowed) -> list[ScanPart]:
    """The tasks of a snapshot."""
    if not narrowed.states:
        return []
    only_waiting = narrowed.states == WAITING
    scans = [
        scan
        for member, lengths in look.lengths.items()
        for scan in _scans_of(member, _names(lengths, options, narrowed, only_waiting=only_waiting))
    ]
    if options.max_jobs is not None and not only_waiting:
        return [ScanPart(tuple(scans), narrowed, options.max_jobs)]  # nobody knows how many each will find
    if options.max_jobs is not None:
        scans = list(_with_bounds(scans, look, options.max_jobs))
    parts = min(options.num_partitions or len(scans), len(scans))
    return [ScanPart(tuple(scans[part::parts]), narrowed) for part in range(parts)]


def _names(
    lengths: Collection[str], options: Options, narrowed: Narrowed, *, only_waiting: bool
) -> tuple[str, ...] | None:
    """The queues to look for at a node; None when only the jobs themselves can tell."""
    names = lengths if only_waiting else options.queue_names()
    return None if names is None else tuple(name for name in names if narrowed.has_queue(name))


def _scans_of(member: Member, names: tuple[str, ...] | None) -> Iterator[Scan]:
    if names is not None and len(names) <= QUEUES_SCANNED_ALONE:
        yield from (Scan(member, (name,)) for name in names)
    else:
        yield Scan(member, names)


def _with_bounds(scans: Sequence[Scan], look: Look, most: int) -> Iterator[Scan]:
    """Give out the rows that may be read: to each scan as many as wait, as long as there are any."""
    for scan in scans:
        share = min(most, sum(look.lengths[scan.member][name] for name in scan.queues or ()))
        most -= share
        if share:
            yield dataclasses.replace(scan, most=share)


# --- in a task --------------------------------------------------------------------------------------------------------


def scanned(part: ScanPart, options: Options, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of one task."""
    with Brokers(options) as brokers:
        yield from batches(_rows(part, options, brokers), columns)


def _rows(part: ScanPart, options: Options, brokers: Brokers) -> Iterator[Row]:
    left = part.most
    for scan in part.scans:
        patience = Patience(options.give_up_after_s, Clock())
        rows = _scan(brokers.at(scan.member.address), scan, part.narrowed, options, patience)
        bounds = [bound for bound in (scan.most, left) if bound is not None]
        count = 0
        for row in rows:
            if bounds and count >= min(bounds):
                break
            count += 1
            yield row
        if left is not None:
            left -= count


def _scan(client: Client, scan: Scan, narrowed: Narrowed, options: Options, patience: Patience) -> Iterator[Row]:
    """The jobs of one scan."""
    filters: list[str] = [word for state in sorted(narrowed.states) for word in ("STATE", state)]
    if scan.queues is not None and len(scan.queues) == 1:
        filters += ["QUEUE", scan.queues[0]]
    wanted = _Wanted(scan.queues, options.queue_pattern, narrowed)
    cursor, size, is_first = 0, FIRST_PAGE, True
    while is_first or cursor:
        call: tuple[str | int, ...] = ("JSCAN", cursor, "COUNT", size, *filters, "REPLY", "all")
        try:
            [(raw_cursor, jobs)] = answers(client, [call])
        except DisqueError as error:
            if not is_passing(error):
                raise
            text = f"{scan.member.address} can not be read from: {error}"
            if not is_first:
                raise ConnectionFailed(f"{text}. The task has to be done again from its beginning") from error
            patience.bear(ConnectionFailed(text))
            continue
        cursor, is_first = int(raw_cursor), False
        rows = [_row(flat, scan.member.id) for flat in jobs]
        yield from (row for row in rows if row is not None and wanted.has(row.queue))
        average = sum(len(row.body) for row in rows if row is not None) // (len(rows) or 1) + 400
        size = max(1, min(size * 2, MAX_PAGE, MAX_PAGE_BYTES // average))


class _Wanted:
    """Which queues' jobs to show."""

    def __init__(self, queues: Collection[str] | None, pattern: str | None, narrowed: Narrowed) -> None:
        self._queues = None if queues is None else frozenset(queues)
        self._matches = re.compile(pattern or "").fullmatch
        self._narrowed = narrowed

    def has(self, queue: str) -> bool:
        """Whether it is one of them."""
        if self._queues is not None:
            return queue in self._queues
        return self._matches(queue) is not None and self._narrowed.has_queue(queue)


def _row(flat: Any, node: str) -> Row | None:
    """The row of a job; None for the mere memory of an acknowledgement."""
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    queue, body = fields[b"queue"], fields[b"body"]
    if queue is None or body is None:
        return None
    return Row(
        to_text(queue),
        to_text(fields[b"id"]),
        body,
        fields[b"ctime"] // 1000,
        fields[b"nacks"],
        fields[b"additional-deliveries"],
        node,
        to_text(fields[b"state"]),
    )
