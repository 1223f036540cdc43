"""Celery workers against three real nodes, as their users run them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.celeryworker import CeleryWorker


@pytest.fixture(scope="module")
def tasks(url: str) -> Iterator[Any]:
    """The module of the application in this process, which publishes the tasks."""
    os.environ["BROKER"] = url
    from support import celeryapp  # noqa: PLC0415 - it reads the environment

    celeryapp.app.conf.broker_url = url
    yield celeryapp
    celeryapp.app.close()


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_tasks_retries_and_delays_run_once_each(tasks: Any, url: str, tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    with CeleryWorker(tmp_path, url) as worker:
        results = [tasks.add.delay(number, number) for number in range(100)]
        retried = tasks.retried.delay(str(noted), 10)
        began_s = time.time()
        delayed = tasks.record.apply_async((str(tmp_path / "delayed"), "x"), countdown=2)

        assert [result.get(timeout=60) for result in results] == [2 * number for number in range(100)]
        assert retried.get(timeout=60) == 10
        assert lines_of(noted) == [str(number) for number in range(11)]
        delayed.get(timeout=60)
        assert float(lines_of(tmp_path / "delayed")[1].split()[-1]) >= began_s + 2
        assert worker.stop() == 0
