"""Nodes with an append only file that are killed again and again, and the account of what they promised.

    with ForkServer() as fork_server:
        node = DurableNode(fork_server, tmp_path / "node", "--appendonly", "yes")
        ledger = Ledger()
        for _ in range(10):
            node.start()
            with load(node, ledger, clients=3):
                ...
                node.kill()
            node.start()
            ledger.check(node.jobs())

The clients pipeline adds, acknowledgements and fetches, and write down what was answered: a job that was added has to
be there after each restart, one that was acknowledged, or taken at most once, must not. What was not answered may have
happened or not; `check` finds out which, and from then on it stays so.
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
from disqued.testing.ports import LOOPBACK, free_port
from disqued.testing.processes import wait_until
from support.forkserver import ForkedProcess, ForkServer
from support.nodeclient import PATIENCE_S, NodeAccess, Word

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
        """Wait until something holds."""
        wait_until(condition, what, lambda: self.log, PATIENCE_S)

    @property
    def log(self) -> str:
        """All lines of all its processes."""
        path = self.directory / "server.log"
        return path.read_text() if path.exists() else ""

    def jobs(self, known: Mapping[bytes, bytes] | None = None) -> dict[bytes, bytes]:
        """The bodies of all jobs that are not acknowledged, by ID; those that are `known` are not asked for again."""
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
                if flat is not None:  # the rest of an add that nobody was told of: deleted since the scan
                    found[job_id] = flat[flat.index(b"body") + 1]
            if cursor == b"0":
                return found

    def shut_down(self, *words: Word) -> None:
        """SHUTDOWN, which has to end well."""
        with contextlib.closing(self.connect()) as connection:
            connection.send("SHUTDOWN", *words)
            assert self.process is not None
            assert self.process.wait() == 0, self.log
        self.hang_up()

    def kill(self) -> int:
        """SIGKILL; how it ended: it may have been over before."""
        return self.end(signal.SIGKILL)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait; the exit status."""
        self.hang_up()
        self.signal(number)
        return 0 if self.process is None else self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it was not waited for yet."""
        if self.process is not None and self.process.status is None:
            self.process.send_signal(number)


class Ledger:
    """What clients were told, and what was checked, over all the lives of a node."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.attempted: set[bytes] = set()
        """Bodies that were given to an ADDJOB; each one is given to one only."""
        self.added: dict[bytes, bytes] = {}
        """Bodies by the IDs that were answered,"""
        self.added_s: dict[bytes, float] = {}
        """and when they were, by the monotonic clock."""
        self.doubtful: set[bytes] = set()
        """IDs of jobs that may be done: somebody asked for that and had no answer."""
        self.done: set[bytes] = set()
        """IDs of jobs that are done: acknowledged, or delivered at most once;"""
        self.done_s: dict[bytes, float] = {}
        """when that was answered."""
        self.numbers = iter(range(1 << 62))

    @property
    def pending(self) -> set[bytes]:
        """IDs of jobs that have to be there."""
        return self.added.keys() - self.done - self.doubtful

    def lost(self, found: dict[bytes, bytes]) -> set[bytes]:
        """The jobs that had to be found and were not."""
        return self.pending - found.keys()

    def check(self, found: dict[bytes, bytes], *, revives: bool = False) -> None:
        """Compare with the jobs of the node, and take over what was in doubt.

        Acknowledged jobs may be there again where a node that was not told yet `revives` them; those that are delivered
        at most once may not.
        """
        lost = self.lost(found)
        assert not lost, f"{len(lost)} of {len(self.pending)} jobs are lost: {sorted(lost)[:5]}"
        revived = {job_id for job_id in self.done & found.keys() if self.is_once(job_id) or not revives}
        assert not revived, f"{len(revived)} jobs are there again: {sorted(revived)[:5]}"
        self.check_origin(found)
        self.done |= self.doubtful - found.keys()
        self.added.update(found)
        self.doubtful &= found.keys() if revives else set()
        self.doubtful |= {job_id for job_id in found if self.is_once(job_id)}  # somebody may take it at any time

    def end(self, job_id: bytes) -> None:
        """Somebody was told that a job is done."""
        self.done.add(job_id)
        self.done_s[job_id] = time.monotonic()

    def forgive(self, found: dict[bytes, bytes], since_s: float) -> float:
        """Forget what was answered since some time and is not so; when the last of it was answered, 0 if there is none.

        Jobs that were added then may be gone, and those that were done then may be there.
        """
        gone = {job_id for job_id in self.lost(found) if self.added_s[job_id] >= since_s}
        back = {job_id for job_id in self.done & found.keys() if self.done_s[job_id] >= since_s}
        last_s = max([*[self.added_s[job_id] for job_id in gone], *[self.done_s[job_id] for job_id in back]], default=0)
        for job_id in gone:
            del self.added[job_id]
        self.done -= back
        return last_s

    def check_origin(self, found: dict[bytes, bytes]) -> None:
        """Each job that was found was added by somebody, as it is, and once."""
        unanswered = self.attempted - set(self.added.values())
        for job_id, body in found.items():
            if job_id in self.added:
                assert body == self.added[job_id], "a job has another body"
            else:
                assert body in unanswered, f"nobody added {body!r}"
                unanswered.remove(body)

    def is_once(self, job_id: bytes) -> bool:
        """Whether it is a job that is delivered at most once; one that nobody took may be done all the same."""
        return self.added.get(job_id, b"").startswith(AT_MOST_ONCE)


class Client(threading.Thread):
    """Pipelines commands until the node is gone."""

    def __init__(
        self, node: DurableNode, ledger: Ledger, seed: object, options: Sequence[Word], pause_s: float
    ) -> None:
        super().__init__(daemon=True)
        self._pause_s = pause_s
        self._node = node
        self._ledger = ledger
        self._chance = random.Random(f"{seed}")
        self._options = options
        self._mine: list[bytes] = []
        self.ending = threading.Event()
        self.refused: list[str] = []
        """The errors that were answered."""

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
        """The next thing to ask for, written down as a thing that may happen."""
        ledger = self._ledger
        luck = self._chance.random()
        if luck < 0.25 and self._mine:
            job_id = self._mine.pop(self._chance.randrange(len(self._mine)))
            with ledger.lock:
                ledger.doubtful.add(job_id)
            return [self._chance.choice(("ACKJOB", "FASTACK", "DELJOB")), job_id]
        if luck < 0.3:
            return ["GETJOB", "NOHANG", "COUNT", 3, "FROM", AT_MOST_ONCE]
        once = luck < 0.4
        with ledger.lock:
            number = next(ledger.numbers)
            body = b"%b %d %b" % (AT_MOST_ONCE if once else b"work", number, b"x" * self._chance.randrange(200))
            ledger.attempted.add(body)
        if once:
            return ["ADDJOB", AT_MOST_ONCE, body, 0, "RETRY", 0]
        delay: list[Word] = ["DELAY", 1000] if luck < 0.5 else []
        return ["ADDJOB", "work", body, 0, "RETRY", 2000, *delay, *self._options]

    def _note(self, words: list[Word], reply: Any) -> None:
        """Write down what was answered."""
        ledger = self._ledger
        with ledger.lock:
            match words[0]:
                case "ADDJOB":
                    body = words[2]
                    assert isinstance(body, bytes)
                    ledger.added[reply] = body
                    ledger.added_s[reply] = time.monotonic()
                    if words[1] == AT_MOST_ONCE:
                        ledger.doubtful.add(reply)  # somebody may be taking it
                    else:
                        self._mine.append(reply)
                case "GETJOB":
                    for _, job_id, _ in reply or []:
                        ledger.end(job_id)
                case _:
                    job_id = words[1]
                    assert isinstance(job_id, bytes)
                    ledger.end(job_id)


@contextlib.contextmanager
def load(
    node: DurableNode, ledger: Ledger, *options: Word, clients: int = 3, seed: object = 0, pause_s: float = 0.0
) -> Iterator[list[Client]]:
    """Clients that work while the context lasts, or until the node is gone, with pauses if they shall do less."""
    threads = [Client(node, ledger, f"{seed} {number}", options, pause_s) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        for thread in threads:
            thread.ending.set()
        for thread in threads:
            thread.join()


def fill(node: DurableNode, ledger: Ledger, jobs: int) -> None:
    """Add jobs to a node, which are all answered."""
    bodies = [b"work %d" % next(ledger.numbers) for _ in range(jobs)]
    ledger.attempted.update(bodies)
    added = node.pipeline([["ADDJOB", "work", body, 0, "RETRY", 2000] for body in bodies])
    ledger.added.update(zip(added, bodies, strict=True))


def nap(chance: random.Random, most_ms: float) -> None:
    """Let some time pass, up to so many milliseconds, so that what follows comes at a point nobody chose."""
    time.sleep(chance.random() * most_ms / 1000)
