"""The helpers that Dramatiq's tests import from `tests.common`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from dramatiq import Worker
from dramatiq.broker import Broker

T = TypeVar("T", bound=Callable[..., Any])

RABBITMQ_CREDENTIALS: Final = None
"""A test gives it to a broker, and expects nothing of it."""


def _run(test: T) -> T:
    return test


skip_in_ci = skip_on_pypy = skip_on_windows = _run


@contextmanager
def worker(broker: Broker, **options: Any) -> Iterator[Worker]:
    """A worker that runs in the block."""
    running = Worker(broker, **options)
    running.start()
    try:
        yield running
    finally:
        running.stop()
