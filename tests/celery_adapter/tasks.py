"""The application of the tests. Unless `BROKER` says otherwise, its messages stay in this process."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, Final

from celery import Celery, signals
from celery.schedules import crontab

STEPS: Final = threading.Semaphore(0)
"""Lets `step_by_step` take its next step."""

IN_MEMORY: Final = "memory://"
BROKER: Final = os.environ.get("BROKER", IN_MEMORY)

app = Celery("tasks", broker=BROKER, backend=os.environ.get("BACKEND"))
app.conf.update(
    broker_transport_options={"polling_interval": 0.01} if BROKER == IN_MEMORY else {"retry": 2},
    task_track_started=True,
    result_extended=True,
    result_chord_retry_interval=0.05,
    beat_schedule={
        "nightly total": {
            "task": "celery_adapter.tasks.total",
            "schedule": crontab(minute="0", hour="3", day_of_week="mon-fri"),
            "args": ([1, 2],),
        },
    },
)


@app.task  # type: ignore[untyped-decorator]
def add(a: int, b: int) -> int:
    return a + b


@app.task  # type: ignore[untyped-decorator]
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task  # type: ignore[untyped-decorator]
def fail(text: str) -> None:
    raise ValueError(text)


@app.task(bind=True)  # type: ignore[untyped-decorator]
def step_by_step(self: Any, steps: int) -> str:
    """Report each step, and wait for the test before the next one."""
    for step in range(steps):
        self.update_state(state="PROGRESS", meta={"step": step})
        assert STEPS.acquire(timeout=60)
    return "arrived"


@app.task(bind=True, max_retries=1)  # type: ignore[untyped-decorator]
def second_time(self: Any) -> int:
    if self.request.retries == 0:
        assert STEPS.acquire(timeout=60)
        raise self.retry(countdown=0.01, exc=OSError("not yet"))
    assert STEPS.acquire(timeout=60)
    return int(self.request.retries)


_RETRY_IS_STORED: Final = threading.Event()


@signals.task_retry.connect(sender=second_time)  # type: ignore[untyped-decorator]
def note_retry(**_: object) -> None:
    """Celery has stored the state RETRY."""
    _RETRY_IS_STORED.set()


@signals.task_prerun.connect(sender=second_time)  # type: ignore[untyped-decorator]
def wait_for_retry(task: Any, **_: object) -> None:
    """Begin the second run, in another thread, after that: Celery publishes it before."""
    if task.request.retries:
        assert _RETRY_IS_STORED.wait(timeout=60)


@app.task  # type: ignore[untyped-decorator]
def noise(count: int) -> str:
    """Return text that does not compress."""
    return os.urandom(count).hex()


@app.task(bind=True)  # type: ignore[untyped-decorator]
def chatty(self: Any, reports: int, length: int) -> int:
    for number in range(reports):
        self.update_state(state="PROGRESS", meta={"number": number, "noise": os.urandom(length).hex()})
    return reports


@app.task  # type: ignore[untyped-decorator]
def fail_at_length(length: int) -> None:
    raise ValueError(os.urandom(length).hex())


@app.task(acks_late=True, reject_on_worker_lost=True)  # type: ignore[untyped-decorator]
def die_once(path: str) -> str:
    """End like a process that the kernel kills, the first time."""
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


@app.task(bind=True)  # type: ignore[untyped-decorator]
def run(self: Any, path: str | None = None) -> list[str]:
    """Return, and write down, what differs from run to run."""
    if path is not None:
        with Path(path).open("a") as file:
            file.write(f"{self.request.id}\n")
    return [self.request.id, self.request.root_id, self.request.correlation_id, str(self.request.expires)]


@app.task  # type: ignore[untyped-decorator]
def wait_for(path: str) -> int:
    """Wait for the test to make a file."""
    while not Path(path).exists():
        time.sleep(0.05)
    return 1
