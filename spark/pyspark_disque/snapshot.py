"""The snapshot read: the current jobs of all nodes, by JSCAN, without changing or leasing them.

A task reads one queue of one node in pages, so its memory is bounded. As with any scan, jobs that are added or removed
meanwhile may be included or not. A cursor is valid only for its node, and only until that node restarts. So a task
whose node fails during the scan fails as well, and Spark runs it again from the beginning.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from disqued.client import Client, ConnectionFailed, DisqueError
from disqued.client.wire import to_text
from pyspark_disque.brokers import Brokers, Member, is_retryable
from pyspark_disque.clock import Clock, RetryDeadline
from pyspark_disque.columns import Row, batches, display_name
from pyspark_disque.jobreader import Backlog, execute_all
from pyspark_disque.options import Options

if TYPE_CHECKING:
    import pyarrow as pa

QUEUES_SCANNED_ALONE: Final = 8
"""A node scans all its jobs, whatever the queue filter, so more queues than this share one scan."""
FIRST_PAGE: Final = 64
MAX_PAGE: Final = 1000
MAX_PAGE_BYTES: Final = 8 << 20
WAITING: Final = frozenset({"queued"})


@dataclass(frozen=True, slots=True)
class ScanFilter:
    """The states to scan for, and the display names of the queues; None means all queues."""

    states: frozenset[str]
    queues: frozenset[str] | None = None

    def only_states(self, allowed: Collection[str]) -> ScanFilter:
        """Return the filter restricted to these states."""
        return dataclasses.replace(self, states=self.states & frozenset(allowed))

    def only_queues(self, allowed: Collection[str]) -> ScanFilter:
        """Return the filter restricted to these queues."""
        queues = frozenset(allowed) if self.queues is None else self.queues & frozenset(allowed)
        return dataclasses.replace(self, queues=queues)

    def allows_queue(self, name: str) -> bool:
        """Return whether the filter includes a queue."""
        return self.queues is None or display_name(name) in self.queues


@dataclass(frozen=True, slots=True)
class Scan:
    """One JSCAN: its node, its queues (None: those that match the pattern), and the maximum number of jobs."""

    member: Member
    queues: tuple[str, ...] | None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ScanTask:
    """One task: its scans, to be run one after another, and the maximum number of rows in total."""

    scans: tuple[Scan, ...]
    scan_filter: ScanFilter
    limit: int | None = None


def plan_scan(backlog: Backlog, options: Options, scan_filter: ScanFilter) -> list[ScanTask]:
    """Plan the tasks of a snapshot."""
    if not scan_filter.states:
        return []
    only_waiting = scan_filter.states == WAITING
    scans = [
        scan
        for member, lengths in backlog.lengths.items()
        for scan in _scans_of(member, _names(lengths, options, scan_filter, only_waiting=only_waiting))
    ]
    if options.max_jobs is not None and not only_waiting:
        return [ScanTask(tuple(scans), scan_filter, options.max_jobs)]  # the result size of each scan is unknown
    if options.max_jobs is not None:
        scans = list(_with_bounds(scans, backlog, options.max_jobs))
    parts = min(options.num_partitions or len(scans), len(scans))
    return [ScanTask(tuple(scans[part::parts]), scan_filter) for part in range(parts)]


def _names(
    lengths: Collection[str], options: Options, scan_filter: ScanFilter, *, only_waiting: bool
) -> tuple[str, ...] | None:
    """Return the queues to scan for at a node; None if the pattern must be matched against each job."""
    names = lengths if only_waiting else options.queue_names()
    return None if names is None else tuple(name for name in names if scan_filter.allows_queue(name))


def _scans_of(member: Member, names: tuple[str, ...] | None) -> Iterator[Scan]:
    if names is not None and len(names) <= QUEUES_SCANNED_ALONE:
        yield from (Scan(member, (name,)) for name in names)
    else:
        yield Scan(member, names)


def _with_bounds(scans: Sequence[Scan], backlog: Backlog, limit: int) -> Iterator[Scan]:
    """Distribute `limit` rows over the scans: each gets as many as are queued there, until none is left."""
    for scan in scans:
        share = min(limit, sum(backlog.lengths[scan.member][name] for name in scan.queues or ()))
        limit -= share
        if share:
            yield dataclasses.replace(scan, limit=share)


# --- in a task --------------------------------------------------------------------------------------------------------


def run_scan(task: ScanTask, options: Options, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one task."""
    with Brokers(options) as brokers:
        yield from batches(_rows(task, options, brokers), columns)


def _rows(task: ScanTask, options: Options, brokers: Brokers) -> Iterator[Row]:
    left = task.limit
    for scan in task.scans:
        deadline = RetryDeadline(options.give_up_after_s, Clock())
        rows = _scan(brokers.at(scan.member.address), scan, task.scan_filter, options, deadline)
        bounds = [bound for bound in (scan.limit, left) if bound is not None]
        count = 0
        for row in rows:
            if bounds and count >= min(bounds):
                break
            count += 1
            yield row
        if left is not None:
            left -= count


def _scan(
    client: Client, scan: Scan, scan_filter: ScanFilter, options: Options, deadline: RetryDeadline
) -> Iterator[Row]:
    """Yield the jobs of one scan."""
    filters: list[str] = [word for state in sorted(scan_filter.states) for word in ("STATE", state)]
    if scan.queues is not None and len(scan.queues) == 1:
        filters += ["QUEUE", scan.queues[0]]
    queue_filter = _QueueFilter(scan.queues, options.queue_pattern, scan_filter)
    cursor, size, is_first = 0, FIRST_PAGE, True
    while is_first or cursor:
        call: tuple[str | int, ...] = ("JSCAN", cursor, "COUNT", size, *filters, "REPLY", "all")
        try:
            [(raw_cursor, jobs)] = execute_all(client, [call])
        except DisqueError as error:
            if not is_retryable(error):
                raise
            text = f"cannot read from {scan.member.address}: {error}"
            if not is_first:
                raise ConnectionFailed(f"{text}; the task must start from the beginning") from error
            deadline.retry_or_raise(ConnectionFailed(text))
            continue
        cursor, is_first = int(raw_cursor), False
        rows = [_row(flat, scan.member.id) for flat in jobs]
        yield from (row for row in rows if row is not None and queue_filter.allows(row.queue))
        average = sum(len(row.body) for row in rows if row is not None) // (len(rows) or 1) + 400
        size = max(1, min(size * 2, MAX_PAGE, MAX_PAGE_BYTES // average))


class _QueueFilter:
    """Selects jobs by their queue."""

    def __init__(self, queues: Collection[str] | None, pattern: str | None, scan_filter: ScanFilter) -> None:
        self._queues = None if queues is None else frozenset(queues)
        self._matches = re.compile(pattern or "").fullmatch
        self._scan_filter = scan_filter

    def allows(self, queue: str) -> bool:
        """Return whether to include the jobs of a queue."""
        if self._queues is not None:
            return queue in self._queues
        return self._matches(queue) is not None and self._scan_filter.allows_queue(queue)


def _row(flat: Any, node: str) -> Row | None:
    """Return the row of a job; None if the node knows only its acknowledgement."""
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    queue = fields[b"queue"]
    if queue is None or fields[b"body"] is None:
        return None
    return Row.of(to_text(queue), to_text(fields[b"id"]), node, fields, to_text(fields[b"state"]))
