"""Nodes with an append-only file that are killed repeatedly, and the account of what clients were told.

    with ForkServer() as fork_server:
        node = DurableNode(fork_server, tmp_path / "node", "--appendonly", "yes")
        stored = StoredJobs()
        for _ in range(10):
            node.start()
            with load(node, stored, clients=3):
                ...
                node.kill()
            node.start()
            stored.check(node.jobs())

The clients pipeline adds, acknowledgements and fetches, and record the replies. After each restart a job that was added
must be stored; one that was acknowledged, or delivered at most once, must not. A command without a reply may have taken
effect or not: `check` finds out which, and from then on it must stay so.
"""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from disqued.client import ResponseError
from disqued.client.wire import encode
from disqued.testing.account import JobAccount
from disqued.testing.ports import LOOPBACK, free_port
from disqued.testing.processes import wait_until
from support.forkserver import ForkedProcess, ForkServer
from support.nodeclient import TIMEOUT_S, NodeAccess, Word

AOF: Final = "disque.aof"
AT_MOST_ONCE: Final = b"once"
"""The queue of jobs with RETRY 0; all other jobs are in the queue `work`."""
SCAN_COUNT: Final = 1_000_000


class DurableNode(NodeAccess):
    """One node in its own directory, whose processes are killed one after the other.

    `arguments` are those of `disque-server` besides its address; a configuration file comes first.
    """

    def __init__(self, fork_server: ForkServer, directory: Path, *arguments: str) -> None:
        super().__init__(free_port())
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.aof = directory / AOF
        self.arguments = arguments
        self.process: ForkedProcess | None = None
        self._fork_server = fork_server

    def begin(self) -> None:
        """Start a process without waiting for it."""
        address = ("--port", str(self.port), "--bind", LOOPBACK)
        self.process = self._fork_server.start(self.directory, *self.arguments, *address)

    def start(self) -> None:
        """Start a process, and wait until it has loaded its jobs."""
        self.begin()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until clients are served."""
        self.until(self._serves, "it serves clients")

    def _serves(self) -> bool:
        assert self.process is not None
        try:
            return bool(self.call("QLEN", "none") == 0)
        except (OSError, EOFError):
            assert not self.process.has_ended, f"it ended with {self.process.status}:\n{self.log}"
        except ResponseError as refused:
            if not str(refused).startswith("LOADING"):
                raise
        return False

    def until(self, condition: Any, what: str) -> None:
        """Wait until a condition holds."""
        wait_until(condition, what, lambda: self.log, TIMEOUT_S)

    @property
    def log(self) -> str:
        """The log lines of all its processes."""
        path = self.directory / "server.log"
        return path.read_text() if path.exists() else ""

    def jobs(self, known: Mapping[bytes, bytes] | None = None) -> dict[bytes, bytes]:
        """The bodies of all jobs that are not acknowledged, by ID; those in `known` are not requested again."""
        found: dict[bytes, bytes] = {}
        cursor = b"0"
        while True:
            states = [word for state in ("active", "queued", "wait-repl") for word in ("STATE", state)]
            cursor, ids = self.call("JSCAN", cursor, "COUNT", SCAN_COUNT, *states)
            assert not found.keys() & set(ids), "a job is there twice"
            known = known or {}
            unknown = [job_id for job_id in ids if job_id not in known]
            shown = self.pipeline([["SHOW", job_id] for job_id in unknown])
            found.update({job_id: known[job_id] for job_id in ids if job_id in known})
            for job_id, flat in zip(unknown, shown, strict=True):
                if flat is not None:  # a job whose add was not answered, deleted since the scan
                    found[job_id] = flat[flat.index(b"body") + 1]
            if cursor == b"0":
                return found

    def shut_down(self, *words: Word) -> None:
        """SHUTDOWN, which must succeed."""
        with contextlib.closing(self.connect()) as connection:
            connection.send("SHUTDOWN", *words)
            assert self.process is not None
            assert self.process.wait() == 0, self.log
        self.hang_up()

    def kill(self) -> int:
        """SIGKILL; returns the exit status, which is another one if the process had already ended."""
        return self.end(signal.SIGKILL)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait; returns the exit status."""
        self.hang_up()
        self.signal(number)
        return 0 if self.process is None else self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, unless it was already reaped."""
        if self.process is not None and self.process.status is None:
            self.process.send_signal(number)


class StoredJobs(JobAccount[bytes]):
    """The account of the clients of a node, by bodies, to compare with the jobs that the node has stored."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.bodies: dict[bytes, bytes] = {}
        """The bodies of added jobs by their IDs."""
        self.numbers = iter(range(1 << 62))

    def check(self, found: Mapping[bytes, bytes], *, revives: bool = False) -> None:  # type: ignore[override]
        """Assert that the jobs of the node, bodies by IDs, are as clients were told; then they decide what was in
        doubt.

        With `revives`, acknowledged jobs may be stored again by a node that has not been told yet. Jobs that are
        delivered at most once may not.
        """
        stored = set(found.values())
        missing = self.missing(stored)
        assert not missing, f"{len(missing)} of {len(self.uncompleted)} jobs are lost: {sorted(missing)[:5]}"
        revived = {body for body in self.revived(stored) if is_once(body) or not revives}
        assert not revived, f"{len(revived)} jobs are stored again: {sorted(revived)[:5]}"
        self._check_origin(found)
        for body in self.doubtful - stored:
            self.complete(body)
        for job_id, body in found.items():
            self.bodies[job_id] = body
            self.added.setdefault(body, 0.0)
        self.doubtful = self.doubtful & stored if revives else set()
        self.doubtful |= {body for body in stored if is_once(body)}  # a client may fetch it at any time

    def _check_origin(self, found: Mapping[bytes, bytes]) -> None:
        """Assert that each stored job was sent by a client, has its ID, and is stored once."""
        assert len(set(found.values())) == len(found), "a job is stored under two IDs"
        for job_id, body in found.items():
            assert body in self.attempted, f"nobody added {body!r}"
            known = self.bodies.get(job_id, body)
            assert known == body, f"{job_id!r} has another body: {body!r}, not {known!r}"
            assert job_id in self.bodies or body not in self.added, f"{body!r} is stored under another ID"

    def drop_unsynced(self, found: Mapping[bytes, bytes], since_s: float) -> float:
        """Forget what was answered since a time and is not true; returns when the last of it was answered, 0 if none.

        Jobs that were added since then may be missing, and those that were completed may be stored.
        """
        stored = set(found.values())
        gone = {body for body in self.missing(stored) if self.added[body] >= since_s}
        back = {body for body in self.revived(stored) if self.completed[body] >= since_s}
        last_s = max([*[self.added[body] for body in gone], *[self.completed[body] for body in back]], default=0.0)
        for body in gone:
            del self.added[body]
        for body in back:
            del self.completed[body]
        self.bodies = {job_id: body for job_id, body in self.bodies.items() if body not in gone}
        return last_s


def is_once(body: bytes) -> bool:
    """Whether a job is delivered at most once; one that nobody fetched may be completed nevertheless."""
    return body.startswith(AT_MOST_ONCE)


class Client(threading.Thread):
    """Pipelines commands until the node ends."""

    def __init__(
        self, node: DurableNode, stored: StoredJobs, seed: object, options: Sequence[Word], pause_s: float
    ) -> None:
        super().__init__(daemon=True)
        self._pause_s = pause_s
        self._node = node
        self._stored = stored
        self._chance = random.Random(f"{seed}")
        self._options = options
        self._mine: list[tuple[bytes, bytes]] = []
        """IDs and bodies of jobs to acknowledge."""
        self.ending = threading.Event()
        self.refused: list[str] = []
        """The error replies."""

    def run(self) -> None:
        with contextlib.suppress(OSError, EOFError), contextlib.closing(self._node.connect()) as connection:
            while not self.ending.is_set():
                batch = [self._command() for _ in range(self._chance.randint(1, 16))]
                connection.socket.sendall(b"".join([encode(words) for words in batch]))
                for words in batch:
                    try:
                        self._note(words, connection.read())
                    except ResponseError as refused:
                        self.refused.append(str(refused))
                if self._pause_s:
                    self.ending.wait(self._pause_s)

    def _command(self) -> list[Word]:
        """The next command, recorded as one that may take effect."""
        stored = self._stored
        draw = self._chance.random()
        if draw < 0.25 and self._mine:
            job_id, body = self._mine.pop(self._chance.randrange(len(self._mine)))
            with stored.lock:
                stored.doubtful.add(body)
            return [self._chance.choice(("ACKJOB", "FASTACK", "DELJOB")), job_id]
        if draw < 0.3:
            return ["GETJOB", "NOHANG", "COUNT", 3, "FROM", AT_MOST_ONCE]
        once = draw < 0.4
        with stored.lock:
            number = next(stored.numbers)
            body = b"%b %d %b" % (AT_MOST_ONCE if once else b"work", number, b"x" * self._chance.randrange(200))
            stored.attempted.add(body)
        if once:
            return ["ADDJOB", AT_MOST_ONCE, body, 0, "RETRY", 0]
        delay: list[Word] = ["DELAY", 1000] if draw < 0.5 else []
        return ["ADDJOB", "work", body, 0, "RETRY", 2000, *delay, *self._options]

    def _note(self, words: list[Word], reply: Any) -> None:
        """Record a reply."""
        stored = self._stored
        with stored.lock:
            match words[0]:
                case "ADDJOB":
                    body = words[2]
                    assert isinstance(body, bytes)
                    stored.add(body, time.monotonic())
                    stored.bodies[reply] = body
                    if is_once(body):
                        stored.doubtful.add(body)  # a client may be fetching it
                    else:
                        self._mine.append((reply, body))
                case "GETJOB":
                    for _, _, body in reply or []:
                        stored.complete(body, time.monotonic())
                case _:
                    job_id = words[1]
                    assert isinstance(job_id, bytes)
                    stored.complete(stored.bodies[job_id], time.monotonic())


@contextlib.contextmanager
def load(
    node: DurableNode, stored: StoredJobs, *options: Word, clients: int = 3, seed: object = 0, pause_s: float = 0.0
) -> Iterator[list[Client]]:
    """Clients that work while the context lasts or until the node ends, with pauses of `pause_s`."""
    threads = [Client(node, stored, f"{seed} {number}", options, pause_s) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        for thread in threads:
            thread.ending.set()
        for thread in threads:
            thread.join()


def fill(node: DurableNode, stored: StoredJobs, jobs: int) -> None:
    """Add jobs, all of which are answered."""
    bodies = [b"work %d" % next(stored.numbers) for _ in range(jobs)]
    stored.attempted.update(bodies)
    added = node.pipeline([["ADDJOB", "work", body, 0, "RETRY", 2000] for body in bodies])
    for job_id, body in zip(added, bodies, strict=True):
        stored.add(body)
        stored.bodies[job_id] = body


def sleep_up_to(chance: random.Random, most_ms: float) -> None:
    """Sleep for a random time, so that what follows happens at a random point."""
    time.sleep(chance.random() * most_ms / 1000)
