"""What the server knows beyond its node: the process, how late its event loop is, and who asked what over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from disqued.core.telemetry.histogram import PER_NS, Histogram
from disqued.core.telemetry.metric import COUNTER, Metric, Sample, counter, gauge, histogram
from disqued.metrics.process import Process

_LAGS_NS: Final = (
    *(1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000),
    *(100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000),
)


class Surroundings:
    """One server around one node."""

    def __init__(self, why_not_ready: Callable[[], str]) -> None:
        self.why_not_ready = why_not_ready
        self.http_answers: dict[tuple[str, int], int] = {}
        """By page and status; kept by the HTTP port."""
        self.loop_lag = Histogram(_LAGS_NS, PER_NS)
        self.scrape_ns = 0
        """What the last page of metrics took."""
        self._process = Process()

    def look(self) -> Iterator[None]:
        """Ask the system about the process, in steps."""
        return self._process.steps()

    def process(self, name: str) -> float:
        """What it said; 0 where it says nothing."""
        return self._process.figures.get(name, 0.0)


def _answers(around: Surroundings) -> Iterator[Sample]:
    for (page, status), count in list(around.http_answers.items()):
        yield ((page, str(status)), count)


METRICS: Final[tuple[Metric[Surroundings], ...]] = (
    gauge(
        "disque_ready",
        "1 while clients are to be sent to this node, as `/readyz` says.",
        lambda around: int(not around.why_not_ready()),
    ),
    histogram(
        "disque_event_loop_lag_seconds",
        "How much later than due a timer of 100 milliseconds ran: so long everybody had to wait.",
        lambda around: around.loop_lag,
    ),
    Metric(
        "disque_http_requests_total",
        COUNTER,
        "Requests on the HTTP port by page (`other` for what is no page) and status.",
        _answers,
        ("page", "code"),
    ),
    gauge(
        "disque_scrape_duration_seconds",
        "How long the node worked on the last page of metrics.",
        lambda around: around.scrape_ns / PER_NS,
    ),
    counter(
        "process_cpu_seconds_total",
        "Time of processors that the process used.",
        lambda around: around.process("process_cpu_seconds_total"),
    ),
    gauge(
        "process_resident_memory_bytes",
        "Memory of the process that is in RAM.",
        lambda around: around.process("process_resident_memory_bytes"),
    ),
    gauge(
        "process_virtual_memory_bytes",
        "Addresses that the process has reserved.",
        lambda around: around.process("process_virtual_memory_bytes"),
    ),
    gauge(
        "process_start_time_seconds",
        "When the process started, as unix time.",
        lambda around: around.process("process_start_time_seconds"),
    ),
    gauge(
        "process_open_fds",
        "Files and connections that are open.",
        lambda around: around.process("process_open_fds"),
    ),
    gauge(
        "process_max_fds",
        "How many of them the system allows.",
        lambda around: around.process("process_max_fds"),
    ),
)
