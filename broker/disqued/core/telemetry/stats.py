"""What a node counts about itself, as plain integers; INFO shows it and CONFIG RESETSTAT sets most of it to zero."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus.kinds import KINDS
from disqued.core.telemetry.histogram import PER_MS, Histogram
from disqued.errors import CODES

SAMPLES: Final = 16
"""Instantaneous rates are the mean of this many samples, one per 100 ms."""

OTHER_CODE: Final = "other"
"""Stands for all error codes that are not ours: DEBUG ERROR answers with any."""
_WAITS_MS: Final[tuple[int, ...]] = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)
_AGES_MS: Final[tuple[int, ...]] = (
    *(5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000),
    *(60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000),
)


class Rate:
    """Events per second over the last samples of a growing counter."""

    def __init__(self) -> None:
        self._last_count: i64 = 0
        self._last_ms: i64 = 0
        self._samples: list[float] = [0.0] * SAMPLES
        self._at: i64 = 0

    def sample(self, count: i64, now_ms: i64) -> None:
        """Note the counter's value; a value below the last one means it was reset."""
        elapsed_ms = now_ms - self._last_ms
        if elapsed_ms > 0 and self._last_ms > 0:
            self._samples[self._at] = float(max(count - self._last_count, 0)) * 1000.0 / float(elapsed_ms)
            self._at = (self._at + 1) % SAMPLES
        self._last_count = count
        self._last_ms = now_ms

    def per_second(self) -> float:
        """The mean rate."""
        return sum(self._samples) / SAMPLES


class Traffic:
    """The bus messages of one kind."""

    def __init__(self) -> None:
        self.sent: i64 = 0
        self.sent_bytes: i64 = 0
        self.received: i64 = 0


def _no_errors() -> dict[str, int]:
    """None of any code."""
    errors = dict.fromkeys(CODES, 0)
    errors[OTHER_CODE] = 0
    return errors


class Stats:
    """Counters of one node."""

    def __init__(self) -> None:
        self.connections: i64 = 0
        self.rejected_connections: i64 = 0
        self.commands: i64 = 0
        self.input_bytes: i64 = 0
        self.output_bytes: i64 = 0
        self.jobs_added: i64 = 0
        """Jobs whose clients were told their IDs."""
        self.jobs_deduplicated: i64 = 0
        """Adds that were answered with the ID of a job that was added before under the same key."""
        self.jobs_delivered: i64 = 0
        """Jobs that clients got, with those they got again."""
        self.delivery_age = Histogram(_AGES_MS, PER_MS)
        """How old they were, in milliseconds."""
        self.jobs_acked: i64 = 0
        """Jobs known here that clients said are done."""
        self.requeued_by_nack: i64 = 0
        self.requeued_by_enqueue: i64 = 0
        self.requeued_elsewhere: i64 = 0
        """Jobs queued here because another node asked for it (ENQUEUE)."""
        self.replication_ms = Histogram(_WAITS_MS, PER_MS)
        """How long clients waited for the copies of their jobs."""
        self.sync_ms = Histogram(_WAITS_MS, PER_MS)
        """How long it took to sync the append only file."""
        self.errors = _no_errors()
        """Errors that clients were answered with, by their code."""
        self.clients_closed_for_output: i64 = 0
        self.expired_jobs: i64 = 0
        self.expired_unfinished: i64 = 0
        """Those of them that nobody had acknowledged, nor got at most once."""
        self.evicted_jobs: i64 = 0
        self.requests_refused_unread: i64 = 0
        """Requests too big for the memory that was left, whose end was not even read."""
        self.clients_closed_for_memory: i64 = 0
        self.collections: i64 = 0
        """Attempts to find out whether all holders of an acknowledged job know."""
        self.dummy_acks_made: i64 = 0
        """Acknowledgements of jobs that are not known here."""
        self.dummy_acks_collected: i64 = 0
        self.acks_for_others: i64 = 0
        """Acknowledgements that a leaving node only passed on."""
        self.queued_ties_lost: i64 = 0
        """Jobs taken out of a queue because a node that goes first queued them too."""
        self.requeues_averted: i64 = 0
        """Nodes that were about to queue a job and heard that it is queued here."""
        self.replication_timeouts: i64 = 0
        self.external_replications: i64 = 0
        """Jobs that this node accepted and had others keep."""
        self.async_held_back: i64 = 0
        """ASYNC adds whose clients had to wait for slow links."""
        self.async_copies_missing: i64 = 0
        """Copies of ASYNC jobs for which there was no link."""
        self.copies_kept: i64 = 0
        """Jobs of other nodes that this one began to keep."""
        self.copies_refused: i64 = 0
        self.jobs_imported: i64 = 0
        """Queued jobs that came from other nodes because clients wait here (YOURJOBS)."""
        self.imported_at_most_once: i64 = 0
        """Those of them that exist here only from then on."""
        self.jobs_exported: i64 = 0
        self.bus: list[Traffic] = [Traffic() for _ in range(KINDS)]
        """By type of message."""
        self.bus_links_overflowed: i64 = 0
        """Links dropped because too much waited to be sent on them."""
        self.bus_lost_bytes: i64 = 0
        """Bytes written to links that were gone before the network took them."""
        self.command_rate = Rate()
        self.input_rate = Rate()
        self.output_rate = Rate()

    def reset(self) -> None:
        """Start counting anew."""
        self.connections = 0
        self.rejected_connections = 0
        self.commands = 0
        self.input_bytes = 0
        self.output_bytes = 0
        self.jobs_added = 0
        self.jobs_deduplicated = 0
        self.jobs_delivered = 0
        self.delivery_age.reset()
        self.jobs_acked = 0
        self.requeued_by_nack = 0
        self.requeued_by_enqueue = 0
        self.requeued_elsewhere = 0
        self.replication_ms.reset()
        self.sync_ms.reset()
        self.errors = _no_errors()
        self.clients_closed_for_output = 0
        self.expired_jobs = 0
        self.expired_unfinished = 0
        self.evicted_jobs = 0
        self.requests_refused_unread = 0
        self.clients_closed_for_memory = 0
        self.collections = 0
        self.dummy_acks_made = 0
        self.dummy_acks_collected = 0
        self.acks_for_others = 0
        self.queued_ties_lost = 0
        self.requeues_averted = 0
        self.replication_timeouts = 0
        self.external_replications = 0
        self.async_held_back = 0
        self.async_copies_missing = 0
        self.copies_kept = 0
        self.copies_refused = 0
        self.jobs_imported = 0
        self.imported_at_most_once = 0
        self.jobs_exported = 0

    def count_error(self, code: str) -> None:
        """Count an error reply."""
        errors = self.errors
        errors[code if code in errors else OTHER_CODE] += 1

    def count_expired(self, *, is_unfinished: bool) -> None:
        """A job was forgotten because its time to live was over."""
        self.expired_jobs += 1
        if is_unfinished:
            self.expired_unfinished += 1

    def count_delivery(self, ctime: i64, now_ms: i64) -> None:
        """A client got a job that was created at `ctime`."""
        self.jobs_delivered += 1
        self.delivery_age.observe(max(now_ms - ctime // 1_000_000, 0))

    def count_sent(self, kind: i64, size: i64) -> None:
        """Count a frame for another node."""
        traffic = self.bus[kind & (KINDS - 1)]
        traffic.sent += 1
        traffic.sent_bytes += size

    def sample(self, now_ms: i64) -> None:
        """Note the counters for the rates; called every 100 ms."""
        self.command_rate.sample(self.commands, now_ms)
        self.input_rate.sample(self.input_bytes, now_ms)
        self.output_rate.sample(self.output_bytes, now_ms)
