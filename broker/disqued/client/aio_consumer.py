"""The asyncio consumer: one task fetches jobs, some run handlers, one renews jobs, one sends results.

The rules are in `consuming`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from disqued.client.values import Job


class AsyncConsumer:
    """Runs a handler for each job of some queues.

    Await `run()`, which returns when the consumer is stopped, or use an `async with` block, which runs the consumer in
    the background and stops it at the end. A handler is a coroutine function, or a plain function, which runs in a
    thread. At a stop, coroutines that do not end in time are cancelled. Threads cannot be cancelled: they continue, and
    their results are ignored.
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
        self._is_coroutine = inspect.iscoroutinefunction(handler)
        self._inbox: asyncio.Queue[Job] = asyncio.Queue()
        self._stopping = asyncio.Event()
        self._room = asyncio.Event()
        self._renewing = asyncio.Lock()
        self._ended = False
        self._unsent = asyncio.Event()
        self._batch_done = asyncio.Event()
        self._threads: ThreadPoolExecutor | None = None
        self._running: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Consume jobs until the consumer is stopped. Can be called once.

        Raises:
            ResponseError: the node refuses GETJOB, for example because it requires a password.
        """
        self._threads = ThreadPoolExecutor(self._plan.concurrency, "disque-handler")
        helpers = [asyncio.create_task(self._work()) for _ in range(self._plan.concurrency)]
        helpers.append(asyncio.create_task(self._keep_renewing()))
        finisher = asyncio.create_task(self._keep_finishing())
        try:
            try:
                await self._fetch_until_stopped()
            finally:
                self._return_unstarted_jobs()
            await self._wait_for_running()
        finally:
            self._stopping.set()
            async with self._renewing:
                for helper in helpers:
                    helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._plan.give_all_back()
            self._ended = True
            self._flush()
            await finisher
            self._plan.drop_idle()

    def request_stop(self) -> None:
        """Ask `run()` to end, without waiting. Safe to call from a signal handler of the event loop."""
        self._stopping.set()
        self._room.set()

    async def stop(self) -> None:
        """Stop a consumer that runs in the background, and wait until it has ended. Raises what `run()` raises.

        A handler must not call this, because it would wait for itself. It calls `request_stop()` instead.
        """
        self.request_stop()
        if self._running is not None:
            await self._running

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    # Fetching.

    async def _fetch_until_stopped(self) -> None:
        failures = 0
        while await self._has_room():
            source, fetch = self._plan.fetch()
            try:
                jobs = await source.perform(fetch, ONE_ATTEMPT)
            except RECONNECT as error:
                self._plan.disconnected(source)
                await self._wait_after(error, failures)
                failures += 1
                continue
            except ResponseError as error:
                if self._plan.is_unknown_option(error, source, fetch):
                    continue
                raise
            failures = 0
            await self._take(jobs, source)

    async def _has_room(self) -> bool:
        """Wait until another job can be fetched; False when the consumer is stopping."""
        while not self._stopping.is_set() and not self._plan.has_room:
            self._room.clear()
            await self._room.wait()
        return not self._stopping.is_set()

    async def _wait_after(self, error: DisqueError, failures: int) -> None:
        wait_s = self._session.settings.backoff.wait_s(failures, self._session.settings.rng)
        log.warning("fetching jobs failed retry_in_s=%.2f error=%r", wait_s, str(error))
        try:
            async with asyncio.timeout(wait_s):
                await self._stopping.wait()
        except TimeoutError:
            return

    async def _take(self, jobs: list[Job], source: Session) -> None:
        creator = self._plan.fetched(jobs, source, self._now_s())
        if self._plan.working_after_s == 0:
            await self._renew()
        for job in jobs:
            self._inbox.put_nowait(job)
        if creator is not None:
            self._plan.moved(creator, await self._plan.source.session_at(creator), self._now_s())

    # Working.

    async def _work(self) -> None:
        while True:
            job = await self._inbox.get()
            try:
                await self._handle(job)
            finally:
                self._inbox.task_done()

    async def _handle(self, job: Job) -> None:
        try:
            returned = await self._call_handler(job)
        except Exception as error:  # noqa: BLE001 (any error of a handler returns its job to the queue)
            self._plan.settle(job, error)
        else:
            self._plan.settle(job, None, returned)
        self._unsent.set()
        if self._inbox.empty() or self._plan.unsent >= FLUSH_JOBS:
            self._batch_done.set()
        self._room.set()

    async def _call_handler(self, job: Job) -> object:
        if self._is_coroutine:
            return await self._handler(job)  # type: ignore[misc]
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._handler, job)

    # Sending results.

    async def _keep_finishing(self) -> None:
        while True:
            await self._unsent.wait()
            await self._wait_for_batch()
            self._unsent.clear()
            self._batch_done.clear()
            ended = self._ended  # read after the clearing, so that a stop is either seen here or wakes the next round
            await self._finish()
            if ended:
                return

    async def _wait_for_batch(self) -> None:
        try:
            async with asyncio.timeout(FLUSH_WITHIN_S):
                await self._batch_done.wait()
        except TimeoutError:
            return

    async def _finish(self) -> None:
        async with self._renewing:  # a renewal in flight may concern a job that was finished meanwhile
            endings = self._plan.endings()
        for source, finishing in endings:
            await self._send(source, finishing)
        self._room.set()

    async def _send(self, source: Session, endings: Sequence[Ending]) -> None:
        while endings:
            results: Sequence[int | DisqueError]
            try:
                results = await source.perform_many([ending.call for ending in endings])
            except DisqueError as error:
                results = [error] * len(endings)
            endings = self._plan.ended(source, endings, results)
        self._plan.release(source)

    def _flush(self) -> None:
        self._unsent.set()
        self._batch_done.set()

    # Renewing.

    async def _keep_renewing(self) -> None:
        while True:
            await self._renew()
            await asyncio.sleep(self._plan.schedule.wait_s(self._now_s(), self._plan.tick_s))

    async def _renew(self) -> None:
        async with self._renewing:
            for source, ids in self._plan.due(self._now_s()):
                results = await source.perform_many(calls.working_many(ids))
                self._plan.renewed(ids, results, self._now_s())

    @staticmethod
    def _now_s() -> float:
        return asyncio.get_running_loop().time()

    # Stopping.

    def _return_unstarted_jobs(self) -> None:
        ids = []
        while not self._inbox.empty():
            job = self._inbox.get_nowait()
            self._inbox.task_done()
            ids.append(job.id)
        self._plan.give_back_unstarted(ids)
        self._flush()

    async def _wait_for_running(self) -> None:
        try:
            async with asyncio.timeout(self._plan.stop_within_s):
                await self._inbox.join()
        except TimeoutError:
            log.warning("stop timed out, unfinished jobs return to their queues jobs=%d", len(self._plan.schedule))
