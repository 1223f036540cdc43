"""Each test runs with both clients: `connect` makes a blocking client, or an asyncio client with a blocking wrapper."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Protocol, Self

import pytest

from disqued.client import AsyncClient, AsyncConsumer, AsyncTask, Client
from disqued.client.tasks import BaseTask
from disqued.testing.processes import ServerProcess


class LoopThread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def collect(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


class Awaited:
    """An asyncio client, consumer or task whose methods block until they have a result."""

    def __init__(self, loop: LoopThread, target: AsyncClient | AsyncConsumer | AsyncTask) -> None:
        self._loop = loop
        self._target = target

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        return self._waiting(attribute) if callable(attribute) else attribute

    def _waiting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            outcome = method(*args, **kwargs)
            if isinstance(outcome, AsyncConsumer):
                return Awaited(self._loop, outcome)
            if isinstance(outcome, AsyncIterator):
                return await collect(outcome)
            if asyncio.iscoroutine(outcome):
                outcome = await outcome
            return AwaitedTask(self._loop, outcome) if isinstance(outcome, AsyncTask) else outcome

        return lambda *args, **kwargs: self._loop.run(call(*args, **kwargs))

    def __enter__(self) -> Self:
        assert not isinstance(self._target, AsyncTask)
        self._loop.run(self._target.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert not isinstance(self._target, AsyncTask)
        self._loop.run(self._target.__aexit__(kind, error, traceback))


class AwaitedTask(Awaited, BaseTask):
    """An asyncio task whose methods block; another job can wait for it."""

    def __init__(self, loop: LoopThread, task: AsyncTask) -> None:
        Awaited.__init__(self, loop, task)
        self.id = task.id


class Connect(Protocol):
    """Makes a client of the kind under test; it is closed at the end of the test."""

    def __call__(self, nodes: Sequence[str], **options: Any) -> Any: ...


@pytest.fixture(params=["blocking", "asyncio"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    with ExitStack() as stack:
        if request.param == "blocking":
            yield lambda nodes, **options: stack.enter_context(Client(nodes, **options))
            return
        loop = LoopThread()
        stack.callback(loop.stop)

        async def make(nodes: Sequence[str], options: dict[str, Any]) -> AsyncClient:
            return AsyncClient(nodes, **options)

        yield lambda nodes, **options: stack.enter_context(Awaited(loop, loop.run(make(nodes, options))))


@pytest.fixture
def client(connect: Connect, server: ServerProcess) -> Any:
    """A client of the kind under test, connected to a new node."""
    return connect([f"127.0.0.1:{server.port}"])
