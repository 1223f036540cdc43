"""A broker in a pod, asked by way of the API server: no route to pod addresses is needed.

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
LOOK_S: Final = 0.25

UNREACHABLE: Final = (OSError, EOFError, ApiException, urllib3.exceptions.HTTPError, hiredis.ReplyError)
"""What asking a broker can fail with while its pod comes and goes; one that loads answers with an error."""


class Broker:
    """A connection to the broker of one pod, made when it is first used."""

    def __init__(self, kube: Kube, namespace: str, pod: str, password: str | None = None) -> None:
        self.pod = pod
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
        """Hang up."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._reader = hiredis.Reader()

    def call(self, *words: Word) -> Any:
        """The reply to a command; an error is raised."""
        [reply] = self.pipeline([words])
        if isinstance(reply, hiredis.ReplyError):
            raise reply
        return reply

    def pipeline(self, commands: list[tuple[Word, ...]]) -> list[Any]:
        """The replies to many commands; errors are among them."""
        try:
            if self._socket is None:
                self._connect()
            return self._exchange(commands)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        self._socket = self._kube.forward(self.pod, self._namespace, PORT)
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
                raise EOFError(f"{self.pod} hung up")
            self._reader.feed(data)
        return reply

    # --- what it says -------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The node's ID."""
        return str(self.call("CLUSTER", "MYID").decode())

    def info(self, section: str = "all") -> dict[str, str]:
        """The fields of INFO."""
        lines = self.call("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def jobs(self) -> int:
        """How many jobs it has, whatever their state."""
        return int(self.info("jobs")["registered_jobs"])

    def has_work(self) -> bool:
        """Whether it has a job that will be delivered.

        An at-most-once job that was delivered stays until it expires if it was acknowledged at another node.
        """
        if self.info("jobs")["queued_jobs"] != "0":
            return True
        return any(not JobId(job_id).at_most_once for job_id in self.job_ids())

    def view(self) -> dict[str, set[str]]:
        """The nodes it knows by their IDs, with their flags, `disconnected` among them where there is no connection."""
        lines = [line.split() for line in self.call("CLUSTER", "NODES").decode().splitlines()]
        return {words[0]: set(words[2].split(",")) | ({words[5]} - {"connected"}) for words in lines if words}

    def directive(self, name: str) -> str:
        """CONFIG GET of one directive."""
        return str(self.call("CONFIG", "GET", name)[1].decode())

    def job_ids(self) -> set[str]:
        """The IDs of all jobs it has."""
        cursor, ids = self.call("JSCAN", "COUNT", 10_000_000)
        assert cursor == b"0", cursor
        return {job_id.decode() for job_id in ids}


def poll(condition: Callable[[], T | None], what: str, within_s: float) -> T:
    """Ask brokers until the condition returns something true; they have no watch. Unreachable ones are asked again."""
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
            raise WaitFailedError(f"not within {within_s:.0f} s: {what}. At the end: {last!r}")
        time.sleep(LOOK_S)


@contextlib.contextmanager
def connected(kube: Kube, namespace: str, pods: list[str], password: str | None) -> Iterator[list[Broker]]:
    """Brokers of some pods."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Broker(kube, namespace, pod, password)) for pod in pods]
