"""The client of a broker or a backend: how it is given, made again after a fork, and what its errors become."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import dramatiq.errors

from disqued.client import Client, ClientClosed, ConnectionFailed, ConnectionLost

T = TypeVar("T")

DEFAULT_NODES: Final = ("localhost:7711",)


class Closing:
    """What is closed at the end of a `with` block."""

    def close(self) -> None:
        """Close the connections."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class PerProcess(Generic[T]):
    """A value with connections. A process that was forked makes its own, because two cannot share a connection."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._value = make()
        self._pid = os.getpid()

    @property
    def here(self) -> T:
        """The value of this process."""
        if self._pid != os.getpid():
            self._value = self._make()
            self._pid = os.getpid()
        return self._value


def client_maker(url: str | Sequence[str] | None, options: dict[str, Any]) -> Callable[[], Client]:
    """Return what makes a client for the nodes of a URL, or for `nodes` of the options, the arguments of `Client`.

    Raises:
        TypeError: both are given.
    """
    if url is not None and "nodes" in options:
        raise TypeError("give either url or nodes")
    named = options.pop("nodes", DEFAULT_NODES) if url is None else url
    nodes = [named] if isinstance(named, str) else list(named)

    def make() -> Client:
        return Client(nodes, **options)

    return make


@contextmanager
def connection_errors() -> Iterator[None]:
    """Raise errors of the connection as those of Dramatiq, which its workers and its users handle."""
    try:
        yield
    except ConnectionFailed as error:
        raise dramatiq.errors.ConnectionFailed(str(error)) from error
    except (ConnectionLost, ClientClosed) as error:
        raise dramatiq.errors.ConnectionClosed(str(error)) from error
