"""Clients of a node in virtual time, and the account of what they were told, checked after the node came back.

    promises = Promises(local, Random(1))
    promises.act()  # a client adds, acknowledges, takes or pauses something, and is answered sooner or later
    local.crash()
    come_back(local)
    promises.check()

What was answered must be true. What was not answered may have taken effect or not, and is not checked.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from disqued.testing.account import JobAccount
from support.aofcontent import job_ids
from support.asking import ask

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient, LocalNode, Reply

PAUSES: Final = ("in", "out", "none")
QUEUES: Final = (b"p0", b"p1")


class Promises:
    """The account of all clients of one node."""

    def __init__(self, local: LocalNode, chance: Random) -> None:
        self._local = local
        self._chance = chance
        self._asked: list[tuple[LocalClient, str, bytes]] = []
        """Clients that wait for a reply, with what they asked for and the job or queue."""
        self._jobs = JobAccount[bytes]()
        """By job IDs."""
        self._once: dict[bytes, None] = {}
        """Jobs that are delivered at most once and can still be taken."""
        self._dropped: list[bytes] = []
        """Jobs that must not be there once all are dropped."""
        self._pauses: dict[bytes, bytes] = {}
        """The states of the queues whose state is certain."""

    def act(self) -> None:
        """Have a client ask for something."""
        chance = self._chance
        draw = chance.random()
        kept = self._kept()
        if draw < 0.35 and kept:
            job_id = chance.choice(kept)
            self._jobs.doubtful.add(job_id)
            self._ask("ack", job_id, "ACKJOB", job_id)
        elif draw < 0.45:
            self._ask("take", b"", "GETJOB", "NOHANG", "FROM", "once")
        elif draw < 0.6:
            self._ask("add once", b"", "ADDJOB", "once", chance.randbytes(9), 0, "RETRY", 0)
        elif draw < 0.7:
            queue = chance.choice(QUEUES)
            self._ask("pause", queue, "PAUSE", queue, chance.choice(PAUSES))
        else:
            self._ask("add", b"", "ADDJOB", "q", chance.randbytes(9), 0, "RETRY", 60)

    def _kept(self) -> list[bytes]:
        """Jobs that must be there until they are acknowledged, in the order in which they were added."""
        uncompleted = self._jobs.uncompleted
        return [job_id for job_id in self._jobs.added if job_id in uncompleted and job_id not in self._once]

    def drop_all(self) -> None:
        """Have a client drop all jobs and queues."""
        self.receive()
        self._asked = []  # whether these took effect before or after is unknown
        self._dropped += self._jobs.uncompleted
        self._jobs.doubtful |= self._jobs.uncompleted
        self._once = {}
        self._pauses = {}
        self._ask("drop all", b"", "DEBUG", "FLUSHALL")

    def _ask(self, what: str, name: bytes, *words: bytes | str | int) -> None:
        client = self._local.client()
        client.send(*words)
        self._asked.append((client, what, name))
        self.receive()

    def receive(self) -> None:
        """Take the replies that have arrived."""
        waiting = []
        for client, what, name in self._asked:
            if not client.silent:
                self._take(what, name, client.next_reply())
            else:
                waiting.append((client, what, name))
        for _, what, name in waiting:
            if what == "pause":
                self._pauses.pop(name, None)
        self._asked = waiting

    def _take(self, what: str, name: bytes, reply: Reply) -> None:
        """Record a reply; a refused command has changed nothing."""
        match what, reply:
            case "add", bytes() as job_id:
                self._jobs.add(job_id)
            case "add once", bytes() as job_id:
                self._jobs.add(job_id)
                self._once[job_id] = None
            case "ack", 1:
                self._jobs.complete(name)
            case "take", [[_, bytes() as job_id, _]]:
                self._once.pop(job_id, None)
                self._jobs.complete(job_id)
            case "pause", bytes() as word:
                self._pauses[name] = word
            case "drop all", b"OK":
                for job_id in self._dropped:
                    self._jobs.complete(job_id)
                self._dropped = []
                self._pauses = dict.fromkeys(QUEUES, b"none")

    def check(self) -> None:
        """Assert that everything is as the clients were told, after the node came back."""
        self.receive()
        takes = sum(what == "take" for _, what, _ in self._asked)  # each may have taken one job, or none
        self._asked = []
        self._dropped = []
        found = job_ids(self._local)
        missing = self._jobs.missing(found)
        lost = missing - self._once.keys()
        assert not lost, f"lost: {lost}"
        assert len(missing) <= takes, f"lost: {missing}, {takes} were being delivered"
        assert not self._jobs.revived(found), f"came back: {self._jobs.revived(found)}"
        client = self._local.client()
        for queue, word in self._pauses.items():
            assert ask(client, "PAUSE", queue, "state") == word, queue
        self._jobs.doubtful |= missing
        self._once = {}  # a restart delivers none of these: those that are left are kept
