"""A whole node compared with a naive model: random commands of random clients, and time in steps.

Queues must have the same jobs in the same order, blocked clients are served in turn, states and counters agree, an
at-most-once job is never delivered twice, every other job is requeued until it is acknowledged or expires, expired jobs
are deleted in their last second, and in the end no job is left in memory.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule

from disqued.core.memory.accounting import BASE_BYTES, CLIENT_BYTES, JOB_BYTES, WAIT_BYTES, body_bytes, queue_bytes
from disqued.testing.local import LocalNode
from simulation.model import JITTER_MS, LATENESS_MS, Model, ModelJob, ModelWait

BODY = b"the body of a job"
QUEUE_NAMES = ["mail", "print", "bill"]
QUEUES = st.sampled_from(QUEUE_NAMES)
SEVERAL_QUEUES = st.lists(QUEUES, min_size=1, max_size=3)
MAX_TTL_S = 120
MAX_WAITING = 4


class OneNode(RuleBasedStateMachine):
    """One node without peers."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.local = LocalNode()
        self.admin = self.local.client()
        self.model = Model(self.admin)
        self.made = 0

    def job(self, job_id: bytes) -> ModelJob | None:
        return self.model.jobs.get(job_id)

    # --- jobs come and go ---------------------------------------------------------------------------------------------

    @rule(
        target=ids,
        queue=QUEUES,
        retry_s=st.sampled_from([0, 1, 3, 30]),
        delay_s=st.sampled_from([0, 0, 0, 1, 4]),
        ttl_s=st.sampled_from([5, 20, MAX_TTL_S]),
        copies=st.integers(1, 3),
    )
    def add(self, queue: str, retry_s: int, delay_s: int, ttl_s: int, copies: int) -> object:
        made: list[bytes] = []
        for _ in range(copies):
            options = ("RETRY", retry_s, "DELAY", delay_s, "TTL", ttl_s)
            if self.model.paused_in(queue):
                assert str(self.admin.call("ADDJOB", queue, BODY, 0, *options)).startswith("PAUSED")
                continue
            job_id = self.admin.add(queue, BODY, *options)
            now_ms = self.local.now_ms
            self.made += 1
            job = ModelJob(
                id=job_id,
                number=self.made,
                queue=queue,
                retry_s=retry_s,
                created_ms=now_ms,
                expire_ms=(now_ms // 1000 + ttl_s) * 1000,
                requeue_ms=now_ms + delay_s * 1000,
            )
            self.model.jobs[job_id] = job
            if delay_s == 0:
                self.model.enqueue(job)
            self.model.follow()
            made.append(job_id)
        return multiple(*made)

    @rule(queues=SEVERAL_QUEUES, count=st.integers(1, 5))
    def get(self, queues: list[str], count: int) -> None:
        expected: list[bytes] = []
        taken_jobs: list[ModelJob] = []
        round_taken = True
        while round_taken and len(expected) < count:
            round_taken = False
            for queue in queues:
                job = self.model.take(queue) if len(expected) < count else None
                if job is not None:
                    expected.append(job.id)
                    taken_jobs.append(job)
                    round_taken = True
        assert self.admin.take(*queues, count=count) == expected
        for job in taken_jobs:
            self.model.look_at_requeue(job)

    @rule(job_id=consumes(ids), command=st.sampled_from(["ACKJOB", "FASTACK", "DELJOB"]))
    def finish(self, job_id: bytes, command: str) -> None:
        known = self.model.jobs.pop(job_id, None) is not None
        assert self.admin.call(command, job_id) == known

    # --- workers and administrators -----------------------------------------------------------------------------------

    @rule(job_id=ids, command=st.sampled_from(["NACK", "ENQUEUE"]))
    def requeue(self, job_id: bytes, command: str) -> None:
        job = self.job(job_id)
        possible = job is not None and self.model.can_enqueue(job)
        assert self.admin.call(command, job_id) == possible
        if job is not None and possible:
            self.model.enqueue(job, nack=command == "NACK")
            self.model.follow()

    @rule(job_id=ids)
    def dequeue(self, job_id: bytes) -> None:
        job = self.job(job_id)
        assert self.admin.call("DEQUEUE", job_id) == (job is not None and job.queued)
        if job is not None and job.queued:
            job.queued = False
            self.model.look_at_requeue(job)

    @rule(job_id=ids)
    def work_on(self, job_id: bytes) -> None:
        job = self.job(job_id)
        reply = self.admin.call("WORKING", job_id)
        if job is None:
            assert str(reply).startswith("NOJOB")
        elif self.local.now_ms - job.created_ms > (job.expire_ms - job.created_ms) // 2:
            assert str(reply).startswith("TOOLATE")
        else:
            assert reply == job.retry_s
            job.queued = False
            if job.requeue_ms is not None and job.retry_s > 0:
                self.model.note_requeue(job)

    @rule(queue=QUEUES, state=st.sampled_from(["in", "out", "all", "none", "none"]))
    def pause(self, queue: str, state: str) -> None:
        assert self.admin.call("PAUSE", queue, state) == state.encode()
        self.model.pauses[queue] = state
        self.model.follow()

    # --- clients that wait --------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.model.waits) < MAX_WAITING)
    @rule(queues=SEVERAL_QUEUES, timeout_ms=st.sampled_from([0, 500, 5000]))
    def wait(self, queues: list[str], timeout_ms: int) -> None:
        client = self.local.client()
        client.send("GETJOB", "TIMEOUT", timeout_ms, "FROM", *queues)
        for queue in queues:
            job = self.model.take(queue)
            if job is not None:
                assert client.next_reply() == [[queue.encode(), job.id, BODY]]
                self.model.look_at_requeue(job)
                return
        deadline_ms = self.local.now_ms + timeout_ms if timeout_ms > 0 else None
        self.model.waits.append(ModelWait(client, queues, deadline_ms))
        self.model.follow()

    @precondition(lambda self: self.model.waits)
    @rule(which=st.integers(0, 2))
    def leave(self, which: int) -> None:
        wait = self.model.waits.pop(which % len(self.model.waits))
        wait.client.disconnect()

    # --- time ---------------------------------------------------------------------------------------------------------

    @rule(passed_ms=st.one_of(st.integers(1, 50), st.integers(50, 2000), st.integers(2000, 20_000)))
    def let_time_pass(self, passed_ms: int) -> None:
        end_ms = self.local.now_ms + passed_ms
        while self.local.now_ms < end_ms:
            self.local.step(end_ms)
            self.model.follow()

    # --- invariants ---------------------------------------------------------------------------------------------------

    @invariant()
    def queues_have_the_expected_jobs_in_order(self) -> None:
        for queue in QUEUE_NAMES:
            expected = [job.id for job in self.model.waiting_jobs(queue)]
            assert self.admin.call("QLEN", queue) == len(expected)
            peeked = self.admin.call("QPEEK", queue, 1000)
            assert isinstance(peeked, list)
            assert [job[1] for job in peeked if isinstance(job, list)] == expected

    @invariant()
    def jobs_are_what_they_should_be(self) -> None:
        for job in self.model.jobs.values():
            shown = self.admin.show(job.id)
            assert shown["state"] == (b"queued" if job.queued else b"active")
            assert (shown["nacks"], shown["additional-deliveries"]) == (job.nacks, job.additional)
            assert shown["next-awake-within"] is not None

    @invariant()
    def lines_are_as_long_as_they_should_be(self) -> None:
        for queue in QUEUE_NAMES:
            blocked = sum(queue in wait.queues for wait in self.model.waits)
            assert self.admin.stat(queue).get("blocked", 0) == blocked
        assert self.local.node.state.blocked_clients == len(self.model.waits)

    @invariant()
    def memory_is_counted_exactly(self) -> None:
        state = self.local.node.state
        _, queues = state.lifecycle.queues.scan(0, 1000)
        expected = BASE_BYTES + CLIENT_BYTES * len(state.sessions)
        expected += len(self.model.jobs) * (JOB_BYTES + body_bytes(len(BODY)))
        expected += sum(queue_bytes(queue.name) + WAIT_BYTES * int(queue.waiting) for queue in queues)
        assert state.lifecycle.memory.used_bytes == expected
        assert state.lifecycle.table.count == len(self.model.jobs)

    def teardown(self) -> None:
        """Every job comes back until it expires, and then there is nothing left."""
        for queue in QUEUE_NAMES:
            self.pause(queue, "none")
        due_ms = [job.requeue_ms for job in self.model.jobs.values() if job.requeue_ms is not None]
        if due_ms:
            self.let_time_pass(max(1, max(due_ms) - self.local.now_ms + JITTER_MS + LATENESS_MS))
        assert all(job.queued or job.deliveries or job.requeue_ms is None for job in self.model.jobs.values())
        for wait in list(self.model.waits):
            wait.client.disconnect()
        self.model.waits = []
        self.let_time_pass((MAX_TTL_S + 1) * 1000 + LATENESS_MS)
        assert self.model.jobs == {}
        assert self.admin.call("JSCAN") == [b"0", []]
        self.local.run(seconds=301)
        assert len(self.local.node.state.lifecycle.queues) == 0
        assert self.local.node.state.lifecycle.timers.next_ms() == 0
        self.memory_is_counted_exactly()
        assert not self.local.host.log_lines, "the node reported a bug"


TestOneNode = OneNode.TestCase
TestOneNode.settings = settings(stateful_step_count=40)
