"""Connections to brokers in pods, through the API server, so no route to pod addresses is needed.

with Broker(kube, "e2e-1", "shop-0", password) as broker:
    broker.info("jobs")["registered_jobs"]
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import hiredis
import urllib3
from kubernetes.client.exceptions import ApiException

from disqued.client.values import JobId
from e2e.support.kube import Kube, WaitFailedError

T = TypeVar("T")
Word = bytes | str | int

PORT: Final = 7711
REPLY_S: Final = 20.0
POLL_S: Final = 0.25

UNREACHABLE: Final = (OSError, EOFError, ApiException, urllib3.exceptions.HTTPError, hiredis.ReplyError)
"""Errors of a call to a broker whose pod starts or stops. A broker that loads its AOF replies with an error."""


class Broker:
    """A connection to the broker of one pod, opened by the first call."""

    def __init__(self, kube: Kube, namespace: str, pod: str, password: str | None = None, *, port: int = PORT) -> None:
        self.pod = pod
        self._port = port
        self._kube = kube
        self._namespace = namespace
        self._password = password
        self._socket: Any = None
        self._reader = hiredis.Reader()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._reader = hiredis.Reader()

    def call(self, *words: Word) -> Any:
        """Run a command and return its reply; raises an error reply."""
        [reply] = self.pipeline([words])
        if isinstance(reply, hiredis.ReplyError):
            raise reply
        return reply

    def pipeline(self, commands: list[tuple[Word, ...]]) -> list[Any]:
        """Run many commands and return their replies; error replies are returned too."""
        try:
            if self._socket is None:
                self._connect()
            return self._exchange(commands)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        self._socket = self._kube.forward(self.pod, self._namespace, self._port)
        self._socket.settimeout(REPLY_S)
        if self._password is not None:
            [reply] = self._exchange([("AUTH", self._password)])
            if isinstance(reply, hiredis.ReplyError):
                raise reply

    def _exchange(self, commands: list[tuple[Word, ...]]) -> list[Any]:
        self._socket.sendall(b"".join(hiredis.pack_command(words) for words in commands))  # type: ignore[arg-type]  # its tuple is meant to be of any length
        return [self._read() for _ in commands]

    def _read(self) -> Any:
        while (reply := self._reader.gets()) is False:
            data = self._socket.recv(1 << 16)
            if not data:
                raise EOFError(f"{self.pod} closed the connection")
            self._reader.feed(data)
        return reply

    # --- state of the node --------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The node's ID."""
        return str(self.call("CLUSTER", "MYID").decode())

    def info(self, section: str = "all") -> dict[str, str]:
        """Return the fields of INFO."""
        lines = self.call("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def jobs(self) -> int:
        """Return the number of jobs on the node, in any state."""
        return int(self.info("jobs")["registered_jobs"])

    def has_work(self) -> bool:
        """Return whether the node has a job that can still be delivered.

        A delivered at-most-once job that was acknowledged on another node stays here until it expires.
        """
        if self.info("jobs")["queued_jobs"] != "0":
            return True
        return any(not JobId(job_id).at_most_once for job_id in self.job_ids())

    def has_all_copies(self) -> bool:
        """Return whether no job of the node lacks a copy that another node could keep."""
        words = self.call("CLUSTER", "REPAIR", "STATUS")
        return bool(words[words.index(b"done") + 1] == b"yes")

    def view(self) -> dict[str, set[str]]:
        """Return the flags of each known node, by ID; includes `disconnected` if there is no connection to it."""
        lines = [line.split() for line in self.call("CLUSTER", "NODES").decode().splitlines()]
        return {words[0]: set(words[2].split(",")) | ({words[5]} - {"connected"}) for words in lines if words}

    def directive(self, name: str) -> str:
        """Return the value of a directive, from CONFIG GET."""
        return str(self.call("CONFIG", "GET", name)[1].decode())

    def members(self) -> set[str]:
        """Return `host:port` of all nodes, as HELLO shows them to clients of this port."""
        return {f"{row[1].decode()}:{row[2].decode()}" for row in self.call("HELLO")[2:]}

    def job_ids(self) -> set[str]:
        """Return the IDs of all jobs on the node."""
        cursor, ids = self.call("JSCAN", "COUNT", 10_000_000)
        assert cursor == b"0", cursor
        return {job_id.decode() for job_id in ids}


def poll(condition: Callable[[], T | None], what: str, within_s: float) -> T:
    """Call the condition until it returns something true, and return that; brokers have no watch.

    Errors of unreachable brokers are ignored until the deadline.
    """
    deadline_s = time.monotonic() + within_s
    last: BaseException | T | None = None
    while True:
        try:
            last = condition()
            if last:
                return last
        except UNREACHABLE as error:
            last = error
        if time.monotonic() > deadline_s:
            raise WaitFailedError(f"timed out after {within_s:.0f} s: {what}; last result: {last!r}")
        time.sleep(POLL_S)


@contextlib.contextmanager
def connected(kube: Kube, namespace: str, pods: list[str], password: str | None) -> Iterator[list[Broker]]:
    """Open connections to the brokers of these pods."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Broker(kube, namespace, pod, password)) for pod in pods]
