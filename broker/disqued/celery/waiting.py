"""Waiting for results: which threads wait for which tasks, and how results reach those who asked.

Celery's drainer calls `drain_events` as long as a result is awaited, in each thread that waits, or under gevent and
eventlet in one of their own. Each task is waited for by one thread, with all others that no thread waits for yet, in
one command over one connection.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from celery.backends.asynchronous import BaseResultConsumer, greenletDrainer

from disqued.client.resultjobs import MOST_KEYS, ResultJobs

INTERVAL_S: Final = 1.0
"""The longest wait in one command: how often Celery looks after its own time-outs."""
_GREEN_INTERVAL_S: Final = 0.05
"""The same where a single greenlet waits for all others, which cannot tell it about another task meanwhile."""
_COLLECT_AFTER_S: Final = 1e-4
"""For each task that is awaited: how long to wait for more results before they are read together."""
_MOST_COLLECT_S: Final = 0.1
_FEW: Final = 20
"""So few tasks need not be collected."""
_LOST_FOR_S: Final = 30.0
"""How often to ask for a task whose result was forgotten or has expired."""
_MOST_REPORTS: Final = 100
"""The most tasks whose progress is read for an `on_message` in each interval."""


class Results(Protocol):
    """The result backend, as the consumer sees it."""

    @property
    def results(self) -> ResultJobs:
        """Where results are kept."""

    def meta_of(self, task_id: str, payload: bytes) -> dict[str, Any]:
        """Return what a payload says."""


class ResultConsumer(BaseResultConsumer):
    """The tasks that the program waits for."""

    backend: Results
    on_message: Callable[[dict[str, Any]], object] | None

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._is_green = isinstance(self.drainer, greenletDrainer)
        self.on_after_fork()

    def on_after_fork(self) -> None:
        """Begin with nothing: the threads of the parent do not exist here."""
        self._process_id = os.getpid()
        self._changed = threading.Condition()
        self._pending: dict[str, None] = {}
        self._claimed: set[str] = set()
        self._lost_until_s: dict[str, float] = {}
        self._reported: dict[str, bytes] = {}

    def consume_from(self, task_id: str) -> None:
        """Wait for a task as well."""
        if self._process_id != os.getpid():
            self.on_after_fork()
        with self._changed:
            self._pending[task_id] = None
            self._changed.notify_all()

    def cancel_for(self, task_id: str) -> None:
        """Wait for a task no longer. It takes no lock: garbage collection calls it at any time."""
        self._pending.pop(task_id, None)
        self._lost_until_s.pop(task_id, None)
        self._reported.pop(task_id, None)

    def stop(self) -> None:
        """Do nothing: connections belong to the backend."""

    def on_wait_for_pending(self, result: Any, timeout: float | None = None, **_: Any) -> None:
        """Read results that are there: a time-out of 0 asks for them only."""
        del result
        if timeout is not None and timeout < INTERVAL_S:
            with self._claim() as names:
                self._deliver(self.backend.results.read(names))

    def drain_events_until(
        self, p: Any, timeout: float | None = None, on_interval: Callable[[], object] | None = None
    ) -> Iterator[None]:
        """Wait until the promise is fulfilled; the last wait ends with the time-out."""
        ends_s = None if timeout is None else time.monotonic() + timeout

        def wait(timeout: float) -> None:
            left_s = timeout if ends_s is None else min(timeout, max(ends_s - time.monotonic(), 0.001))
            self.drain_events(left_s)

        interval_s = INTERVAL_S if timeout is None else min(INTERVAL_S, max(timeout, 0.001))
        events: Iterator[None] = self.drainer.drain_events_until(
            p, timeout=timeout, interval=interval_s, on_interval=on_interval, wait=wait
        )
        return events

    def drain_events(self, timeout: float | None = None) -> None:
        """Wait until a task has a result, or the time is over, and hand out all results that are there."""
        timeout_s = INTERVAL_S if timeout is None else timeout
        if self._is_green:
            timeout_s = min(timeout_s, _GREEN_INTERVAL_S)
        with self._claim() as names:
            if not names:
                with self._changed:
                    self._changed.wait(timeout_s)
                return
            self._report_progress(names)
            self._deliver(self._wait(names, timeout_s))

    # One wait.

    def _wait(self, names: Sequence[str], timeout_s: float) -> dict[str, bytes]:
        results = self.backend.results
        if len(names) > MOST_KEYS:  # one command is about fewer: read those of the others in between
            time.sleep(min(_MOST_COLLECT_S, timeout_s))
            found = results.read(names)
            if found:
                return found
            timeout_s = min(timeout_s, _MOST_COLLECT_S)
        ended = results.wait(names[:MOST_KEYS], timeout_s=timeout_s)
        lost_until_s = time.monotonic() + _LOST_FOR_S
        self._lost_until_s |= {name: lost_until_s for name, payload in ended.items() if payload is None}
        found = {name: payload for name, payload in ended.items() if payload is not None}
        others = [name for name in names if name not in ended]
        if found and len(others) > _FEW:
            time.sleep(min(_MOST_COLLECT_S, len(others) * _COLLECT_AFTER_S))
            found |= results.read(others)
        return found

    def _deliver(self, found: dict[str, bytes]) -> None:
        for task_id, payload in found.items():
            if task_id in self._pending:  # otherwise another thread has delivered it
                self.cancel_for(task_id)
                self.on_state_change(self.backend.meta_of(task_id, payload), None)

    def _report_progress(self, names: Sequence[str]) -> None:
        """Tell an `on_message` about states on the way."""
        for task_id in names[:_MOST_REPORTS] if self.on_message is not None else ():
            found = self.backend.results.latest(task_id)
            if found is not None and not found[1] and self._reported.get(task_id) != found[0]:
                self._reported[task_id] = found[0]
                self.on_state_change(self.backend.meta_of(task_id, found[0]), None)

    @contextmanager
    def _claim(self) -> Iterator[list[str]]:
        """Give the tasks that no other thread waits for to this thread, until the block ends."""
        now_s = time.monotonic()
        with self._changed:
            names = [
                task_id
                for task_id in list(self._pending)
                if task_id not in self._claimed and self._lost_until_s.get(task_id, 0.0) <= now_s
            ]
            self._claimed.update(names)
        try:
            yield names
        finally:
            with self._changed:
                self._claimed.difference_update(names)
                self._changed.notify_all()
