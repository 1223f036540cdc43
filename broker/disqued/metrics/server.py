"""Metrics of the server process: the process, the lag of its event loop, and HTTP requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from disqued.core.telemetry.histogram import PER_NS, Histogram
from disqued.core.telemetry.metric import COUNTER, GAUGE, Metric, Sample, counter, gauge, histogram
from disqued.metrics.process import Process

_LAGS_NS: Final = (
    *(1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000),
    *(100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000),
)


class Certificates(Protocol):
    """What the metrics show about the TLS certificates of the node."""

    @property
    def expires_s(self) -> int:
        """When the certificate in use expires, in unix seconds; 0 without TLS."""

    @property
    def refused(self) -> bool:
        """Whether the newest files do not work, and older ones are in use."""


class ServerFigures:
    """The statistics of a server."""

    def __init__(self, why_not_ready: Callable[[], str]) -> None:
        self.why_not_ready = why_not_ready
        self.http_answers: dict[tuple[str, int], int] = {}
        """Number of replies by page and status; the HTTP port updates it."""
        self.loop_lag = Histogram(_LAGS_NS, PER_NS)
        self.scrape_ns = 0
        """Time that the last metrics page took."""
        self.certificates: Certificates | None = None
        """The TLS certificates of the node; the server sets it."""
        self.handshakes_failed = 0
        self._process = Process()

    def handshake_failed(self) -> None:
        """Count a TLS handshake that failed."""
        self.handshakes_failed += 1

    def look(self) -> Iterator[None]:
        """Read the statistics of the process, in steps."""
        return self._process.steps()

    def process(self, name: str) -> float:
        """Return a statistic of the process; 0 if it is unknown."""
        return self._process.figures.get(name, 0.0)


def _answers(figures: ServerFigures) -> Iterator[Sample]:
    for (page, status), count in list(figures.http_answers.items()):
        yield ((page, str(status)), count)


def _expiry(figures: ServerFigures) -> Iterator[Sample]:
    if figures.certificates is not None and figures.certificates.expires_s:
        yield ((), figures.certificates.expires_s)


def _refused(figures: ServerFigures) -> Iterator[Sample]:
    if figures.certificates is not None and figures.certificates.expires_s:
        yield ((), int(figures.certificates.refused))


METRICS: Final[tuple[Metric[ServerFigures], ...]] = (
    gauge(
        "disque_ready",
        "1 while the node accepts clients, like `/readyz`.",
        lambda figures: int(not figures.why_not_ready()),
    ),
    histogram(
        "disque_event_loop_lag_seconds",
        "Delay of a timer that runs every 100 milliseconds, which is how long requests had to wait for the event loop.",
        lambda figures: figures.loop_lag,
    ),
    Metric(
        "disque_http_requests_total",
        COUNTER,
        "Requests on the HTTP port by page (`other` for unknown pages) and status.",
        _answers,
        ("page", "code"),
    ),
    Metric(
        "disque_tls_certificate_expiry_timestamp_seconds",
        GAUGE,
        "When the first certificate of `tls-cert-file` expires, as Unix time; missing without TLS.",
        _expiry,
    ),
    Metric(
        "disque_tls_certificate_refused",
        GAUGE,
        "1 while the newest certificate files do not work and the previous certificate is in use; missing without TLS.",
        _refused,
    ),
    counter(
        "disque_tls_handshakes_failed_total",
        "TLS handshakes on the client and HTTP ports that failed or timed out.",
        lambda figures: figures.handshakes_failed,
    ),
    gauge(
        "disque_scrape_duration_seconds",
        "Time that the node took to generate the last metrics page.",
        lambda figures: figures.scrape_ns / PER_NS,
    ),
    counter(
        "process_cpu_seconds_total",
        "CPU time of the process.",
        lambda figures: figures.process("process_cpu_seconds_total"),
    ),
    gauge(
        "process_resident_memory_bytes",
        "Resident memory of the process.",
        lambda figures: figures.process("process_resident_memory_bytes"),
    ),
    gauge(
        "process_virtual_memory_bytes",
        "Virtual memory of the process.",
        lambda figures: figures.process("process_virtual_memory_bytes"),
    ),
    gauge(
        "process_start_time_seconds",
        "Start time of the process, as Unix time.",
        lambda figures: figures.process("process_start_time_seconds"),
    ),
    gauge(
        "process_open_fds",
        "Number of open files and connections.",
        lambda figures: figures.process("process_open_fds"),
    ),
    gauge(
        "process_max_fds",
        "Maximum number of open files and connections.",
        lambda figures: figures.process("process_max_fds"),
    ),
)
