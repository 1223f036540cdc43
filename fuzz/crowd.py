"""Thousands of slow and silent clients against a real server, while one good client adds jobs.

The crowd has clients that send nothing, that send half of a request, one byte at a time, or that request much and read
nothing. The good client must get every reply, and the silent clients must stay connected. The processor time that the
server spends for an add is compared with the one without the crowd, in turns: other processes change it little.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from disqued.client import Client
from disqued.client.wire import encode
from disqued.testing.processes import ServerProcess

ADDS_PER_ROUND: Final = 2000
MAX_RATIO: Final = 6.0
"""How much more processor time an add may take beside the crowd. About three is usual: the crowd sends `_DROPS_PER_ADD`
bytes for each add, which are read one by one. Work for every connection in each turn of the loop made it eleven."""
_BIG_JOBS: Final = 20
_BIG_BYTES: Final = 60_000
_HALF: Final = encode(["ADDJOB", "mail", b"x" * _BIG_BYTES, 0])[: _BIG_BYTES // 2]
_MUCH: Final = encode(["QPEEK", "big", _BIG_JOBS])
"""Its reply has more than a megabyte."""
_SPARE_FILES: Final = 200
_DROPS_PER_ADD: Final = 3


class Crowd:
    """Connections to a server, in four equal parts."""

    def __init__(self, port: int, count: int) -> None:
        self._sockets: list[socket.socket] = []
        self._dripping: list[socket.socket] = []
        self._port = port
        for number in range(count):
            self._add(number)

    def _add(self, number: int) -> None:
        sock = socket.create_connection(("127.0.0.1", self._port))
        self._sockets.append(sock)
        sock.setblocking(False)
        with contextlib.suppress(BlockingIOError, ConnectionError):
            match number % 4:
                case 1:
                    sock.send(_HALF)
                case 2:
                    self._dripping.append(sock)
                case 3:
                    sock.send(_MUCH)

    def drip(self, turn: int) -> None:
        """Send one byte more of some slow requests."""
        for number in range(_DROPS_PER_ADD):
            sock = self._dripping[(turn * _DROPS_PER_ADD + number) % len(self._dripping)]
            with contextlib.suppress(OSError):
                sock.send(_HALF[turn % len(_HALF) :][:1])

    def leave(self) -> None:
        """Close all connections."""
        for sock in self._sockets:
            sock.close()


def run(clients: int, rounds: int) -> str:
    """Measure so many rounds without and with the crowd. Returns what was measured, as a line for people.

    Raises:
        AssertionError: an add failed, silent clients were disconnected, or the median ratio is above `MAX_RATIO`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, clients + _SPARE_FILES)), hard))
    options = ("--maxclients", str(clients + _SPARE_FILES), "--maxmemory", "256mb")
    with tempfile.TemporaryDirectory() as directory, ServerProcess(Path(directory), *options) as server:
        ratios = [_ratio(server, clients) for _ in range(rounds)]
    ratio = statistics.median(ratios)
    assert ratio <= MAX_RATIO, f"an add takes {ratio:.1f} times the processor time beside {clients} hostile clients"
    shown = ", ".join(f"{one:.1f}" for one in sorted(ratios))
    return f"{clients} clients; an add takes {ratio:.1f} times the processor time beside them ({shown})"


def _ratio(server: ServerProcess, clients: int) -> float:
    """How many times as much processor time an add takes beside the crowd."""
    with Client([f"127.0.0.1:{server.port}"], discover=False) as good:
        good.add_many("big", [b"x" * _BIG_BYTES] * (_BIG_JOBS - good.qlen("big")))
        alone_s = _adds_s(good, lambda _turn: None)
        with _crowd(server.port, clients) as crowd:
            _adds_s(good, crowd.drip)  # the server reads and answers what the crowd sent first
            beside_s = _adds_s(good, crowd.drip)
            connected = int(good.info("clients")["connected_clients"])
            assert connected > clients // 4, f"only {connected} of {clients} clients are connected"
    return beside_s / alone_s


@contextlib.contextmanager
def _crowd(port: int, clients: int) -> Iterator[Crowd]:
    crowd = Crowd(port, clients)
    try:
        yield crowd
    finally:
        crowd.leave()


def _adds_s(good: Client, between: Callable[[int], None]) -> float:
    """The processor time in seconds that the server spends for the adds of a round, with something done before each."""
    began_s = _spent_s(good)
    ids = set()
    for turn in range(ADDS_PER_ROUND):
        between(turn)
        ids.add(good.add("mail", b"body", ttl_s=1))
    assert len(ids) == ADDS_PER_ROUND, f"{ADDS_PER_ROUND} adds got {len(ids)} IDs"
    return _spent_s(good) - began_s


def _spent_s(good: Client) -> float:
    """The processor time that the server has spent, in seconds."""
    spent = good.info("cpu")
    return float(spent["used_cpu_user"]) + float(spent["used_cpu_sys"])
