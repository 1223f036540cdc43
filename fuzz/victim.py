"""What hostile input may not do to a node, and a node in virtual time that is held to it."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from disqued.client import wire
from disqued.config import Config
from disqued.config.kinds import MemoryShare
from disqued.core.clients.session import Session
from disqued.core.host.host import MemoryLimit
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalClient, LocalNode

MAX_TURN_MS: Final = 100
"""The longest time of the processor that one turn may take: every other client waits for that time."""
MAX_MEMORY_BYTES: Final = 64 << 20
"""`maxmemory` of the node."""
MAX_GROWTH_BYTES: Final = 3 * MAX_MEMORY_BYTES
"""How much the process may grow: the memory of the node, its buffers, and those of the fuzzer."""
_PAGE_BYTES: Final = resource.getpagesize()


class Violation(Exception):
    """The node did what no input may make it do."""


def resident_bytes() -> int:
    """The resident size of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES


def measure(act: Callable[[], object]) -> float:
    """Run one turn of a node with the garbage collector off, as in the server.

    Returns the time of the processor that it took, in milliseconds, which other processes do not lengthen.

    Raises:
        Violation: the turn took too long.
    """
    gc.disable()
    began_ns = time.thread_time_ns()
    act()
    spent_ms = (time.thread_time_ns() - began_ns) / 1e6
    gc.enable()
    if spent_ms > MAX_TURN_MS:
        raise Violation(f"one turn took {spent_ms:.0f} ms of the processor, more than {MAX_TURN_MS} ms")
    return spent_ms


def check_log(host: FakeHost) -> None:
    """Look for reports of bugs and for forged lines, and clear the log.

    Raises:
        Violation: there is one.
    """
    lines, host.log_lines = host.log_lines, []
    for _, text in lines:
        if text.startswith("BUG"):
            raise Violation(text)
        if not text.isprintable():
            raise Violation(f"a log line has control characters: {text!r}")


def make_config() -> Config:
    """The configuration of a node with little memory."""
    config = Config()
    config.maxmemory = MemoryShare(MAX_MEMORY_BYTES)
    config.protected_mode = False
    return config


class RealHost(FakeHost):
    """A host in memory with a real stopwatch, so that the node divides long work into slices as the server does."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.limit = MemoryLimit(1 << 30, "machine")

    def stopwatch_ns(self) -> int:
        """The time of the processor that this thread has used, which other processes do not lengthen."""
        return time.thread_time_ns()


class Collector(LocalClient):
    """A client that collects the bytes of replies and decodes them later, outside of the time that is measured."""

    def __init__(self, local: LocalNode, session: Session) -> None:
        super().__init__(local, session)
        self._pending: list[bytes] = []
        self._wire = wire.Decoder()

    def receive(self, data: bytes) -> None:
        """Keep the bytes."""
        self._pending.append(data)

    def decode(self) -> list[object]:
        """Decode the replies that were received since the last call.

        Raises:
            Violation: the node sent bytes that are no replies.
        """
        data, self._pending = b"".join(self._pending), []
        try:
            return list(self._wire.feed(data))
        except Exception as error:
            raise Violation(f"the reply is not valid: {error}") from error


class Victim(LocalNode):
    """One node that measures its turns."""

    def __init__(self, seed: int) -> None:
        self.longest_ms = 0.0
        """The longest turn so far."""
        super().__init__(make_config(), RealHost(seed))

    def collector(self) -> Collector:
        """A new connection whose replies are collected."""
        session = Session(b"192.0.2.1:%d" % (1024 + self.node.state.sessions_made % 60000), self.now_ms)
        client = Collector(self, session)
        self.admit(client)
        return client

    def forget(self, client: LocalClient) -> None:
        """Disconnect a client, and drop what this driver keeps about it."""
        client.disconnect()
        self._clients.pop(id(client.session), None)

    def measured(self, act: Callable[[], object]) -> None:
        """Run one turn of the node.

        Raises:
            Violation: the turn took too long, or the node reported a bug.
        """
        self.longest_ms = max(self.longest_ms, measure(act))
        check_log(self.host)
