"""The Celery application of the tests; workers and the tests import it. `BROKER` and `BACKEND` are in the environment.

Tasks that must be counted append a line to the file that they are given: one write, so lines of processes do not mix.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from celery import Celery

app = Celery("celeryapp", broker=os.environ.get("BROKER"), backend=os.environ.get("BACKEND", "rpc://"))
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_transport_options={"retry": int(os.environ.get("RETRY", "60"))},
    task_acks_late=os.environ.get("ACKS") == "late",
    task_reject_on_worker_lost=os.environ.get("ACKS") == "late",
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_prefetch_multiplier=int(os.environ.get("PREFETCH", "4")),
    worker_soft_shutdown_timeout=float(os.environ.get("SOFT_SHUTDOWN", "0")),
)


@app.task  # type: ignore[untyped-decorator]
def add(a: int, b: int) -> int:
    return a + b


def note(path: str, line: object) -> None:
    with Path(path).open("a") as file:
        file.write(f"{line}\n")


@app.task  # type: ignore[untyped-decorator]
def record(path: str, line: object, seconds: float = 0) -> None:
    """Write that it began, and after some time that it ended."""
    note(path, f"begin {line}")
    time.sleep(seconds)
    note(path, f"end {line} {time.time()}")


@app.task(bind=True, max_retries=10)  # type: ignore[untyped-decorator]
def retried(self: Any, path: str, times: int, countdown: float = 0) -> int:
    note(path, self.request.retries)
    if self.request.retries < times:
        raise self.retry(countdown=countdown)
    return int(self.request.retries)


@app.task  # type: ignore[untyped-decorator]
def kill_worker_process() -> None:
    """End like a process that the kernel kills."""
    os.kill(os.getpid(), 9)
