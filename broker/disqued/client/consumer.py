"""The threaded consumer: one thread fetches jobs, some run handlers, one renews jobs, one sends results.

The rules are in `consuming`.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, Unpack

from disqued.client import calls
from disqued.client.consuming import (
    FLUSH_JOBS,
    FLUSH_WITHIN_S,
    RECONNECT,
    ConsumerOptions,
    Ending,
    Plan,
    log,
)
from disqued.client.errors import DisqueError, ResponseError
from disqued.client.session import ONE_ATTEMPT, Session
from disqued.client.transport import run_now
from disqued.client.values import Job


class Consumer:
    """Runs a handler, in threads, for each job of some queues.

    Call `run()`, which returns when the consumer is stopped, or use a `with` block, which runs the consumer in a thread
    and stops it at the end. At a stop, handlers that do not end in time cannot be interrupted: their jobs return to the
    queue, their threads continue, and their results are ignored.
    """

    def __init__(
        self,
        session: Session,
        queues: str | Sequence[str],
        handler: Callable[[Job], object],
        **options: Unpack[ConsumerOptions],
    ) -> None:
        self._session = session
        self._plan = Plan(session, queues, **options)
        self._handler = handler
        self._inbox: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._settled = threading.Condition()
        self._unsent = threading.Event()
        self._batch_done = threading.Event()
        self._renewing = threading.Lock()
        self._running: threading.Thread | None = None
        self._failure: BaseException | None = None

    def run(self) -> None:
        """Consume jobs until the consumer is stopped. Can be called once.

        Raises:
            ResponseError: the node refuses GETJOB, for example because it requires a password.
        """
        helpers = [threading.Thread(target=self._work, daemon=True) for _ in range(self._plan.concurrency)]
        renewer = threading.Thread(target=self._keep_renewing, daemon=True)
        finisher = threading.Thread(target=self._keep_finishing, daemon=True)
        for thread in (*helpers, renewer, finisher):
            thread.start()
        try:
            try:
                self._fetch_until_stopped()
            finally:
                self._return_unstarted_jobs()
            self._wait_for_running()
        finally:
            self._stopping.set()
            self._plan.give_all_back()
            self._ended.set()
            self._flush()
            for _ in helpers:
                self._inbox.put(None)
            renewer.join()
            finisher.join()
            self._plan.drop_idle()

    def request_stop(self) -> None:
        """Ask `run()` to end, without waiting. Safe to call from a signal handler."""
        self._stopping.set()

    def stop(self) -> None:
        """Stop a consumer that runs in the background, and wait until it has ended. Raises what `run()` raises.

        A handler must not call this, because it would wait for itself. It calls `request_stop()` instead.
        """
        self.request_stop()
        if self._running is not None:
            self._running.join()
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        self._running = threading.Thread(target=self._run_in_background, daemon=True)
        self._running.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _run_in_background(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001 (`stop` raises it)
            self._failure = error

    # Fetching.

    def _fetch_until_stopped(self) -> None:
        failures = 0
        while self._has_room():
            source, fetch = self._plan.fetch()
            try:
                jobs = run_now(source.perform(fetch, ONE_ATTEMPT))
            except RECONNECT as error:
                self._plan.disconnected(source)
                self._wait_after(error, failures)
                failures += 1
                continue
            except ResponseError as error:
                if self._plan.is_unknown_option(error, source, fetch):
                    continue
                raise
            failures = 0
            self._take(jobs, source)

    def _has_room(self) -> bool:
        """Wait until another job can be fetched; False when the consumer is stopping."""
        with self._settled:
            while not self._stopping.is_set() and not self._plan.has_room:
                self._settled.wait(self._plan.tick_s)  # bounded, because a signal handler can only set the flag
        return not self._stopping.is_set()

    def _wait_after(self, error: DisqueError, failures: int) -> None:
        wait_s = self._session.settings.backoff.wait_s(failures, self._session.settings.rng)
        log.warning("fetching jobs failed retry_in_s=%.2f error=%r", wait_s, str(error))
        self._stopping.wait(wait_s)

    def _take(self, jobs: list[Job], source: Session) -> None:
        creator = self._plan.fetched(jobs, source, time.monotonic())
        if self._plan.working_after_s == 0:
            self._renew()
        for job in jobs:
            self._inbox.put(job)
        if creator is not None:
            self._plan.moved(creator, run_now(self._plan.source.session_at(creator)), time.monotonic())

    # Working.

    def _work(self) -> None:
        while (job := self._inbox.get()) is not None:
            self._handle(job)

    def _handle(self, job: Job) -> None:
        try:
            returned = self._handler(job)
        except Exception as error:  # noqa: BLE001 (any error of a handler returns its job to the queue)
            self._plan.settle(job, error)
        else:
            self._plan.settle(job, None, returned)
        if not self._unsent.is_set():
            self._unsent.set()
        if self._inbox.empty() or self._plan.unsent >= FLUSH_JOBS:
            self._batch_done.set()
        if self._plan.has_room or self._stopping.is_set():
            with self._settled:
                self._settled.notify_all()

    # Sending results.

    def _keep_finishing(self) -> None:
        while True:
            self._unsent.wait()
            self._batch_done.wait(FLUSH_WITHIN_S)
            self._unsent.clear()
            self._batch_done.clear()
            ended = (
                self._ended.is_set()
            )  # read after the clearing, so that a stop is either seen here or wakes the next round
            self._finish()
            if ended:
                return

    def _finish(self) -> None:
        with self._renewing:  # a renewal in flight may concern a job that was finished meanwhile
            endings = self._plan.endings()
        for source, finishing in endings:
            self._send(source, finishing)

    def _send(self, source: Session, endings: Sequence[Ending]) -> None:
        while endings:
            results: Sequence[int | DisqueError]
            try:
                results = run_now(source.perform_many([ending.call for ending in endings]))
            except DisqueError as error:
                results = [error] * len(endings)
            endings = self._plan.ended(source, endings, results)
        self._plan.release(source)

    def _flush(self) -> None:
        self._batch_done.set()
        self._unsent.set()

    # Renewing.

    def _keep_renewing(self) -> None:
        while not self._ended.wait(self._plan.schedule.wait_s(time.monotonic(), self._plan.tick_s)):
            self._renew()

    def _renew(self) -> None:
        with self._renewing:
            for source, ids in self._plan.due(time.monotonic()):
                results = run_now(source.perform_many(calls.working_many(ids)))
                self._plan.renewed(ids, results, time.monotonic())

    # Stopping.

    def _return_unstarted_jobs(self) -> None:
        ids = []
        while not self._inbox.empty():
            try:
                job = self._inbox.get_nowait()
            except queue.Empty:  # a handler took it first
                break
            if job is not None:
                ids.append(job.id)
        self._plan.give_back_unstarted(ids)
        self._flush()

    def _wait_for_running(self) -> None:
        with self._settled:
            if not self._settled.wait_for(lambda: len(self._plan.schedule) == 0, self._plan.stop_within_s):
                log.warning("stop timed out, unfinished jobs return to their queues jobs=%d", len(self._plan.schedule))
