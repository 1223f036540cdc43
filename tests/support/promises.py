"""Clients of a node in virtual time, what they were told, and whether it is true after the node came back.

    promises = Promises(local, Random(1))
    promises.act()  # somebody adds, acknowledges, takes or pauses something, and is answered sooner or later
    local.crash()
    come_back(local)
    promises.check()

What was answered has to be true. What was not answered may have happened or not, and is not looked at.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

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
        """Who waits for an answer: what was wanted, and of which job or queue."""
        self._there: dict[bytes, None] = {}
        """Jobs that have to be there,"""
        self._once: dict[bytes, None] = {}
        """and those that may be taken once."""
        self._gone: set[bytes] = set()
        """Jobs that must not be there,"""
        self._dropping: list[bytes] = []
        """or soon must not."""
        self._pauses: dict[bytes, bytes] = {}
        """Of queues of which that is certain."""

    def act(self) -> None:
        """Somebody asks for something."""
        chance = self._chance
        luck = chance.random()
        if luck < 0.35 and self._there:
            job_id = chance.choice(list(self._there))
            del self._there[job_id]
            self._ask("ack", job_id, "ACKJOB", job_id)
        elif luck < 0.45:
            self._ask("take", b"", "GETJOB", "NOHANG", "FROM", "once")
        elif luck < 0.6:
            self._ask("add once", b"", "ADDJOB", "once", chance.randbytes(9), 0, "RETRY", 0)
        elif luck < 0.7:
            queue = chance.choice(QUEUES)
            self._ask("pause", queue, "PAUSE", queue, chance.choice(PAUSES))
        else:
            self._ask("add", b"", "ADDJOB", "q", chance.randbytes(9), 0, "RETRY", 60)

    def drop_all(self) -> None:
        """Somebody drops all jobs and queues."""
        self.hear()
        self._asked = []  # nobody can tell whether it was done before or after
        self._dropping += [*self._there, *self._once]
        self._there = {}
        self._once = {}
        self._pauses = {}
        self._ask("drop all", b"", "DEBUG", "FLUSHALL")

    def _ask(self, what: str, name: bytes, *words: bytes | str | int) -> None:
        client = self._local.client()
        client.send(*words)
        self._asked.append((client, what, name))
        self.hear()

    def hear(self) -> None:
        """Take the answers that came."""
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
        """Somebody was answered; who was refused has changed nothing."""
        match what, reply:
            case "add", bytes() as job_id:
                self._there[job_id] = None
            case "add once", bytes() as job_id:
                self._once[job_id] = None
            case "ack", 1:
                self._gone.add(name)
            case "take", [[_, bytes() as job_id, _]]:
                self._once.pop(job_id, None)
                self._gone.add(job_id)
            case "pause", bytes() as word:
                self._pauses[name] = word
            case "drop all", b"OK":
                self._gone.update(self._dropping)
                self._dropping = []
                self._pauses = dict.fromkeys(QUEUES, b"none")

    def check(self) -> None:
        """The node came back: is everything as clients were told?"""
        self.hear()
        takes = sum(what == "take" for _, what, _ in self._asked)  # each may have got one job, or none
        self._asked = []
        self._dropping = []
        found = job_ids(self._local)
        missing = self._there.keys() - found
        assert not missing, f"lost: {missing}"
        missing = self._once.keys() - found
        assert len(missing) <= takes, f"lost: {missing}, {takes} were to be delivered"
        assert not self._gone & found, f"came back: {self._gone & found}"
        client = self._local.client()
        for queue, word in self._pauses.items():
            assert ask(client, "PAUSE", queue, "state") == word, queue
        self._there.update({job_id: None for job_id in self._once if job_id in found})  # they are delivered no more
        self._once = {}
