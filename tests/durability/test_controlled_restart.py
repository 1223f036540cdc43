"""Repeated controlled restarts of a node: all jobs are there in the same order, exactly once.

In some rounds the node is killed while it loads: until the option is off in the configuration file, the next process
loads the same file.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import pytest

from support.durable import DurableNode, sleep_up_to

OPTION: Final = "aof-enqueue-jobs-once"
ROUNDS: Final = 6
KILLS: Final = 4
"""How often the node is killed while it loads, by round."""
SHOWN: Final = (b"state", b"retry", b"nacks", b"additional-deliveries", b"body")


class Restarted:
    """The node, and the jobs that it must have."""

    def __init__(self, node: DurableNode) -> None:
        self.node = node
        self.file = node.directory / "disque.conf"
        self.node.start()

    def prepare(self, number: int) -> None:
        """Jobs in all conditions."""
        call = self.node.call
        for index in range(60):
            retry = 0 if index % 3 == 0 else 1000
            call("ADDJOB", "mail", f"{number} {index}", 0, "RETRY", retry)
        call("ADDJOB", "later", f"{number}", 0, "DELAY", 500, "RETRY", 0)
        for _, job_id, _ in call("GETJOB", "COUNT", 12, "FROM", "mail"):
            call("NACK", job_id)
        call("GETJOB", "COUNT", 5, "FROM", "mail")
        call("PAUSE", "mail", "in" if number % 2 else "none")

    def known(self) -> dict[str, Any]:
        """Everything that must be the same after the restart. At-most-once jobs that were delivered are done."""
        node = self.node
        jobs = [job for job_id in node.jobs() if (job := node.show(job_id)) is not None]
        return {
            "order": [job_id for _, job_id, _ in node.call("QPEEK", "mail", 100_000)],
            "jobs": {
                job[b"id"]: [job[name] for name in SHOWN]
                for job in jobs
                if (job[b"queue"], job[b"retry"], job[b"state"]) != (b"mail", 0, b"active")
            },
            "paused": node.call("PAUSE", "mail", "state"),
        }

    def is_wanted(self) -> bool:
        """Whether the next process must queue the jobs again."""
        return f"{OPTION} yes" in self.file.read_text()


@pytest.mark.parametrize("appendonly", ["yes", "no"])
def test_repeated_controlled_restarts_keep_jobs_and_order(
    configured: Callable[[str], DurableNode], appendonly: str
) -> None:
    chance = random.Random(appendonly)
    node = Restarted(configured(f"appendonly {appendonly}\n"))
    taken: list[bytes] = []
    killed = 0
    for number in range(ROUNDS):
        node.prepare(number)
        before = node.known()
        node.node.call("CONFIG", "SET", OPTION, "yes")
        node.node.call("CONFIG", "REWRITE")
        node.node.until(node.is_wanted, "the option is in the file")
        node.node.shut_down("REWRITE-AOF")
        for _ in range(KILLS):
            saved = {path: path.read_bytes() for path in (node.file, node.node.aof)}
            node.node.begin()
            sleep_up_to(chance, 80)
            node.node.kill()
            killed += node.is_wanted()
            if not node.is_wanted():  # it had loaded all: that was the restart, and this is another try
                for path, data in saved.items():
                    path.write_bytes(data)
        node.node.start()
        assert node.known() == before
        assert not node.is_wanted()
        assert node.node.call("CONFIG", "GET", OPTION)[1] == b"no"
        node.node.call("PAUSE", "mail", "none")
        taken += [job_id for _, job_id, _ in node.node.call("GETJOB", "NOHANG", "COUNT", 20, "FROM", "mail")]
    assert len(taken) == len(set(taken)) == 20 * ROUNDS, "each once"
    assert killed > 0, "some were killed before they had loaded all"
