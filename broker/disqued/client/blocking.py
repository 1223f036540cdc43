"""The blocking client. Threads can share one client."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar, Unpack

from disqued.client import adding, calls, failing, fates, ordered, progress, repairs, schedules, tasks
from disqued.client.base import BaseClient, Method
from disqued.client.calls import Call, Scan
from disqued.client.consumer import Consumer
from disqued.client.consuming import ConsumerOptions
from disqued.client.errors import DisqueError
from disqued.client.sockets import SocketTransport
from disqued.client.tasks import Task
from disqued.client.transport import run_now
from disqued.client.values import Job, JobId

T = TypeVar("T")


class Client(BaseClient):
    """A blocking client of a cluster; `AsyncClient` has the same methods for asyncio.

    Use it in a `with` block, or call `close()`. The documentation of a method is on the class: `help(Client.add)`.
    """

    make_transport = SocketTransport

    def _one(self, call: Call[T]) -> T:
        return run_now(self._session.perform(call))

    def _many(self, many: Iterable[Call[T]]) -> list[T | DisqueError]:
        return run_now(self._session.perform_many(many))

    def _ahead(self, many: Iterable[Call[T]]) -> Generator[T | DisqueError, None, None]:
        answers = self._session.perform_ahead(many)
        try:
            with suppress(StopAsyncIteration):
                while True:
                    yield run_now(answers.__anext__())
        finally:
            run_now(answers.aclose())

    def _scan(self, scan: Scan[T]) -> Iterator[T]:
        cursor = 0
        while True:
            cursor, items = self._one(scan.page(cursor))
            yield from items
            if cursor == 0:
                return

    def _submit(self, call: Call[JobId]) -> Task:
        return Task(self._session, self._one(call))

    execute = Method(_one, calls.execute)
    execute_many = Method(_many, calls.execute_many)
    execute_ahead = Method(_ahead, calls.execute_ahead)
    add = Method(_one, adding.add)
    submit = Method(_submit, tasks.submit)
    add_with_copies = Method(_one, adding.add_with_copies)
    new_id = Method(_one, adding.new_id)
    add_many = Method(_many, adding.add_many)
    add_jobs = Method(_many, adding.add_jobs)
    add_to = Method(_one, adding.add_to)
    get = Method(_one, calls.get)
    get_matching = Method(_one, calls.get_matching)
    ack = Method(_one, calls.ack)
    fast_ack = Method(_one, calls.fast_ack)
    logjob = Method(_one, progress.logjob)
    showlog = Method(_one, progress.showlog)
    nack = Method(_one, failing.nack)
    movejob = Method(_one, failing.movejob)
    redrive = Method(_one, failing.redrive)
    redrive_status = Method(_one, failing.redrive_status)
    redrive_cancel = Method(_one, failing.redrive_cancel)
    enqueue = Method(_one, calls.enqueue)
    dequeue = Method(_one, calls.dequeue)
    delete = Method(_one, calls.delete)
    working = Method(_one, calls.working)
    working_many = Method(_many, calls.working_many)
    result = Method(_one, fates.result)
    results = Method(_one, fates.results)
    wait = Method(_one, fates.wait)
    show = Method(_one, calls.show)
    qlen = Method(_one, calls.qlen)
    qpeek = Method(_one, calls.qpeek)
    qstat = Method(_one, calls.qstat)
    qcount = Method(_one, calls.qcount)
    qpurge = Method(_one, calls.qpurge)
    qscan = Method(_scan, calls.qscan)
    jscan = Method(_scan, calls.jscan)
    jscan_details = Method(_scan, calls.jscan_details)
    pause = Method(_one, calls.pause)
    qconf_set = Method(_one, calls.qconf_set)
    qconf_unset = Method(_one, calls.qconf_unset)
    qconf_get = Method(_one, calls.qconf_get)
    qconf_show = Method(_one, calls.qconf_show)
    qnew = Method(_one, ordered.qnew)
    qdrop = Method(_one, ordered.qdrop)
    qtype = Method(_one, ordered.qtype)
    ordered_init = Method(_one, ordered.ordered_init)
    ordered_status = Method(_one, ordered.ordered_status)
    schedule_set = Method(_one, schedules.schedule_set)
    schedule_delete = Method(_one, schedules.schedule_delete)
    schedule_pause = Method(_one, schedules.schedule_pause)
    schedule_resume = Method(_one, schedules.schedule_resume)
    schedule_run = Method(_one, schedules.schedule_run)
    schedule_show = Method(_one, schedules.schedule_show)
    schedules = Method(_one, schedules.schedules)
    repair_status = Method(_one, repairs.repair_status)
    repair_now = Method(_one, repairs.repair_now)
    hello = Method(_one, calls.hello)
    info = Method(_one, calls.info)
    ping = Method(_one, calls.ping)

    def consumer(
        self,
        queues: str | Sequence[str],
        handler: Callable[[Job], object],
        **options: Unpack[ConsumerOptions],
    ) -> Consumer:
        """Return a consumer that runs `handler` in threads for each job of the queues; see `Consumer`."""
        return Consumer(self._session, queues, handler, **options)

    def close(self) -> None:
        """Close idle connections now and the others when their calls end."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
