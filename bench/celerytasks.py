"""The Celery tasks of `frameworks.py`. The environment names broker and results, and in BENCH_OUT the output file."""

from __future__ import annotations

import os
import struct
import time

from celery import Celery

app = Celery("bench")
app.conf.update(task_ignore_result=True, worker_hijack_root_logger=False, broker_connection_retry_on_startup=True)


@app.task(name="note")  # type: ignore[untyped-decorator]
def note(sent_s: float) -> None:
    """Append how long this task was on its way: eight bytes, seconds as a double."""
    with open(os.environ["BENCH_OUT"], "ab", buffering=0) as out:  # noqa: PTH123 - opened for every task
        out.write(struct.pack(">d", time.time() - sent_s))


@app.task(name="double", ignore_result=False)  # type: ignore[untyped-decorator]
def double(number: int) -> int:
    """Twice the number: for the time until a result is there."""
    return 2 * number
