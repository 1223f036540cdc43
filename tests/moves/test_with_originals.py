"""Jobs that fail at nodes of the original, which know no limit of attempts: our nodes make their dead letters."""

from __future__ import annotations

from disqued.bus import kinds
from disqued.moves.successor import successor_id
from disqued.testing.local import LocalNode
from membership.stories import ScriptedNode
from moves.test_dead_letters import DEAD, limited

LIMIT = 3


class Mixed:
    """A node of ours, and one of the original that has a copy of its only job."""

    def __init__(self) -> None:
        self.local = LocalNode()
        self.original = ScriptedNode(self.local, b"10.0.0.9")
        self.original.join()
        client = self.local.client()
        limited(client, "limit", LIMIT)
        client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 2, "RETRY", 300)
        self.local.run(milliseconds=100)
        (job,) = self.local.node.state.lifecycle.table.jobs()
        self.job_id = job.id
        self.send(kinds.GOTJOB, self.job_id)
        assert client.next_reply() == self.job_id

    def send(self, kind: int, job_id: bytes, flags: int = 0) -> None:
        self.original.deliver(self.original.link, self.original.writer.about_job(kind, job_id, 0, flags))

    def fail(self) -> None:
        """A worker gives the job back to the original."""
        self.send(kinds.QUEUED, self.job_id, kinds.INCR_NACKS)

    def knows(self, job_id: bytes) -> bool:
        return self.local.node.state.lifecycle.table.get(job_id) is not None

    def sent(self, kind: int) -> int:
        """How many messages of a kind our node has sent."""
        return int(self.local.node.state.traffic[kind].sent.value)


def test_a_job_that_a_node_of_the_original_queued_once_too_often_becomes_a_dead_letter() -> None:
    mixed = Mixed()
    dead = successor_id(mixed.job_id, DEAD, 0)
    for _ in range(LIMIT - 1):
        mixed.fail()
    mixed.local.run(seconds=1)
    assert not mixed.knows(dead)
    working = mixed.sent(kinds.WORKING)
    mixed.fail()
    mixed.local.run(seconds=1)
    assert mixed.knows(dead)
    assert mixed.sent(kinds.WORKING) > working, "it takes the job out of the queue of the original"
    mixed.send(kinds.GOTJOB, dead)
    client = mixed.local.client()
    assert client.show(mixed.job_id)["state"] == b"acked"
    assert client.show(dead)["attempts"] == LIMIT


def test_it_stays_a_job_without_a_limit() -> None:
    mixed = Mixed()
    mixed.local.client().call("QCONF", "mail", "UNSET", "limit")
    for _ in range(LIMIT + 1):
        mixed.fail()
    mixed.local.run(seconds=1)
    assert not mixed.knows(successor_id(mixed.job_id, DEAD, 0))
