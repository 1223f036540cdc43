"""The order by age compared with a sorted list, in any sequence of insertions and removals."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from disqued.core.jobs.job import NOWHERE, Job
from disqued.core.queues.order import ByAge


def make_job(ctime: int, number: int = 0) -> Job:
    job_id = b"D-5ca1ab1e-%024d-05a1" % number
    return Job(job_id, b"queue", b"body", ctime, expire_at_s=2_000_000_000, delay_s=0, retry_s=60, repl=1)


def age(job: Job) -> tuple[int, bytes]:
    return (job.ctime, job.id)


def filled(*ctimes: int) -> tuple[ByAge, list[Job]]:
    order = ByAge()
    jobs = [make_job(ctime, number) for number, ctime in enumerate(ctimes)]
    for job in jobs:
        order.insert(job)
    return order, jobs


def drained(order: ByAge) -> list[Job]:
    jobs: list[Job] = []
    while (job := order.pop()) is not None:
        jobs.append(job)
    assert order.oldest() is None
    return jobs


def test_jobs_are_delivered_in_the_order_in_which_they_were_made() -> None:
    order, jobs = filled(1, 2, 3)
    assert drained(order) == jobs


def test_a_requeued_job_is_delivered_before_younger_ones() -> None:
    order, (old, *_) = filled(1, 2, 3)
    order.remove(old)
    order.insert(old)
    assert order.oldest() is old


def test_jobs_with_the_same_creation_time_are_ordered_by_id() -> None:
    order, (first, second, third) = filled(5, 5, 5)
    for job in (second, third, first):
        order.remove(job)
    for job in (third, first, second):
        order.insert(job)
    assert drained(order) == [first, second, third]


def test_an_empty_queue_has_no_oldest_job_and_nothing_to_peek() -> None:
    order, _ = filled()
    assert order.oldest() is None
    assert order.peek(10) == order.peek(-10) == []


def test_a_removed_job_has_no_links() -> None:
    order, jobs = filled(3, 1, 2, 5, 4)
    for job in jobs:
        order.remove(job)
        assert job.queue_previous is None
        assert job.queue_next is None
        assert job.place == NOWHERE


class OrderMachine(RuleBasedStateMachine):
    """Inserts and removes jobs of any age. Ages repeat, so IDs decide."""

    inside = Bundle("inside")
    outside = Bundle("outside")

    def __init__(self) -> None:
        super().__init__()
        self.order = ByAge()
        self.expected: list[Job] = []
        self.made = 0
        self.newest = 100

    def insert(self, job: Job) -> Job:
        self.order.insert(job)
        self.expected.append(job)
        self.expected.sort(key=age)
        return job

    @rule(target=inside, step=st.integers(0, 2))
    def add_a_new_job(self, step: int) -> Job:
        self.newest += step
        self.made += 1
        return self.insert(make_job(self.newest, self.made))

    @rule(target=inside, ctime=st.integers(1, 120))
    def add_a_job_of_any_age(self, ctime: int) -> Job:
        self.made += 1
        return self.insert(make_job(ctime, self.made))

    @rule(target=inside, job=consumes(outside))
    def put_back(self, job: Job) -> Job:
        return self.insert(job)

    @rule(target=outside, job=consumes(inside))
    def remove(self, job: Job) -> Job:
        self.order.remove(job)
        self.expected.remove(job)
        return job

    @rule(count=st.integers(-12, 12))
    def peek(self, count: int) -> None:
        wanted = self.expected[:count] if count >= 0 else self.expected[::-1][:-count]
        assert self.order.peek(count) == wanted

    @invariant()
    def the_oldest_job_is_next(self) -> None:
        assert self.order.oldest() is (self.expected[0] if self.expected else None)

    def teardown(self) -> None:
        assert drained(self.order) == self.expected


TestOrderMachine = OrderMachine.TestCase
TestOrderMachine.settings = settings(stateful_step_count=40)
