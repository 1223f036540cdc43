"""A queue type that only this test knows, served by the commands of a node as they are."""

from __future__ import annotations

import pytest
from mypy_extensions import i64

from disqued.core.clients.session import Session
from disqued.core.jobs.job import IN_LINE, NOWHERE, Job
from disqued.core.lifecycle.lifecycle import Lifecycle
from disqued.core.queues.order import Order
from disqued.core.queues.queue import Placement, Queue, QueueType, Release
from disqued.core.runtime.state import NodeState
from disqued.testing.local import LocalNode


class Stack(Order):
    """The youngest job first."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []

    def insert(self, job: Job) -> None:
        job.place = IN_LINE
        self._jobs.append(job)

    def remove(self, job: Job) -> None:
        job.place = NOWHERE
        self._jobs.remove(job)

    def first(self) -> Job | None:
        return self._jobs[-1] if self._jobs else None

    def peek(self, count: i64, after: Job | None = None) -> list[Job]:
        jobs = self._jobs[::-1] if count > 0 else self._jobs
        first = 0 if after is None else jobs.index(after) + 1
        return jobs[first : first + abs(int(count))]


class ByApproval(Placement):
    """Calls a job safe when the test says so."""

    def __init__(self) -> None:
        super().__init__(by_copies=False)
        self._waiting: list[tuple[Session, Job]] = []

    def place(
        self,
        session: Session,
        job: Job,
        timeout_ms: i64,
        now_ms: i64,
        *,
        confirmed: i64,
        external: bool,
        with_copies: bool = False,
    ) -> bool:
        del timeout_ms, now_ms, confirmed, with_copies
        assert not external
        self._waiting.append((session, job))
        return False

    def approve(self, state: NodeState) -> None:
        """Admit the jobs that wait, and answer their clients."""
        for session, job in self._waiting:
            state.lifecycle.admit(job, state.now_ms)
            session.out.append(b"+" + job.id + b"\r\n")
            state.ready.flush(session)
        self._waiting.clear()


class OneNack(Release):
    """Gives a job up when it comes back, and notes how jobs end."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle
        self.ends: list[str] = []

    def take(self, queue: Queue, now_ms: i64) -> Job | None:
        return self._lifecycle.take(queue, now_ms)

    def acknowledge(self, job: Job, now_ms: i64) -> bool:
        self.ends.append("acknowledged")
        return self._lifecycle.acknowledge(job, now_ms)

    def give_back(self, job: Job, now_ms: i64, counting: i64) -> bool:
        del now_ms, counting
        self.ends.append("given back")
        self._lifecycle.drop(job)
        return False

    def expire(self, job: Job) -> None:
        self.ends.append("expired")
        self._lifecycle.drop(job)


class StackNode(LocalNode):
    """A node with a queue "stack" of this type."""

    def __init__(self) -> None:
        super().__init__()
        lifecycle = self.node.state.lifecycle
        self.placement = ByApproval()
        self.release = OneNack(lifecycle)
        lifecycle.queues.declare(b"stack", QueueType(b"stack", self.placement, self.release, Stack))

    def add(self, *bodies: str, ttl_s: int = 600) -> list[bytes]:
        """The IDs of jobs that were added in this order, each when the one before was safe."""
        job_ids = []
        for body in bodies:
            client = self.client()
            client.send("ADDJOB", "stack", body, 5000, "TTL", ttl_s, "RETRY", 1)
            assert client.silent, "the job is not safe yet"
            self.placement.approve(self.node.state)
            self.run(milliseconds=1)
            job_id = client.next_reply()
            assert isinstance(job_id, bytes)
            job_ids.append(job_id)
        return job_ids


@pytest.fixture
def node() -> StackNode:
    return StackNode()


def test_jobs_are_safe_when_the_placement_says_so_and_leave_in_the_order_of_the_type(node: StackNode) -> None:
    client = node.client()
    first, second, third = node.add("1", "2", "3")
    assert client.call("QLEN", "stack") == 3
    assert client.call("QPEEK", "stack", 2) == [[b"stack", third, b"3"], [b"stack", second, b"2"]]
    assert client.take("stack") == [third]
    assert client.take("stack", count=2) == [second, first]


def test_a_client_that_waits_is_served_when_the_job_is_safe(node: StackNode) -> None:
    consumer = node.client()
    consumer.send("GETJOB", "FROM", "stack")
    [job_id] = node.add("1")
    assert consumer.next_reply() == [[b"stack", job_id, b"1"]]


def test_the_release_of_the_type_hears_how_jobs_end(node: StackNode) -> None:
    client = node.client()
    node.add("expires", ttl_s=5)
    node.add("times out", "fails", "is done")
    done, failed, late = client.take("stack", count=3)
    assert client.call("ACKJOB", done) == 1
    assert client.call("NACK", failed) == 0
    node.run(seconds=8)
    assert node.release.ends == ["acknowledged", "given back", "given back", "expired"]
    assert client.call("SHOW", late) is None


def test_other_queues_are_disque_queues(node: StackNode) -> None:
    client = node.client()
    first = client.add("mail", "1")
    client.add("mail", "2")
    assert client.take("mail") == [first]
    assert client.call("NACK", first) == 1
    assert client.take("mail") == [first]
