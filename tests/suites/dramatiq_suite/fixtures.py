"""The fixtures of Dramatiq's tests: each broker, and each backend, is the one for this broker.

Every test has queues of its own, because the tests share their names.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import dramatiq
import pytest
from dramatiq import Worker

from disqued.dramatiq.rate_limits import DisqueBackend as Limits
from disqued.dramatiq.results import DisqueBackend as Results
from suites.dramatiq_suite.brokers import SuiteBroker, nodes
from suites.dramatiq_suite.helpers import worker

_THREADS = 32
_TIMEOUT_MS = 100


def _own() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def stub_broker() -> Iterator[SuiteBroker]:
    """A broker for one test."""
    with closing(SuiteBroker(namespace=_own())) as broker:
        broker.emit_after("process_boot")
        dramatiq.set_broker(broker)
        yield broker


@pytest.fixture
def stub_worker(stub_broker: SuiteBroker) -> Iterator[Worker]:
    """A worker for that broker."""
    with worker(stub_broker, worker_timeout=_TIMEOUT_MS, worker_threads=_THREADS) as running:
        yield running


@pytest.fixture
def redis_broker(stub_broker: SuiteBroker) -> SuiteBroker:
    """The same, which raises no exceptions of actors."""
    stub_broker.fail_fast = False
    return stub_broker


@pytest.fixture
def redis_worker(redis_broker: SuiteBroker) -> Iterator[Worker]:
    """A worker for that broker."""
    with worker(redis_broker, worker_timeout=_TIMEOUT_MS, worker_threads=_THREADS) as running:
        yield running


@pytest.fixture
def result_backend() -> Results:
    """A result backend for one test."""
    return Results(nodes=nodes(), namespace=_own())


@pytest.fixture
def redis_result_backend(result_backend: Results) -> Results:
    """The same."""
    return result_backend


@pytest.fixture
def rate_limiter_backend() -> Limits:
    """A rate limiter backend for one test."""
    return Limits(nodes=nodes(), namespace=_own())


@pytest.fixture
def start_cli() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts the command `dramatiq`, once; it is stopped when the test ends."""
    started: list[subprocess.Popen[bytes]] = []

    def start(broker: str, *, extra_args: Sequence[str] = (), **options: Any) -> subprocess.Popen[bytes]:
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))  # it starts `python` to reload
        command = [sys.executable, "-m", "dramatiq", *extra_args, broker]
        process = subprocess.Popen(command, env=os.environ | {"PATH": path}, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()
