"""The order by priority compared with a sorted list, in any sequence of insertions and removals."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from disqued.core.jobs.attributes import PRIORITY, i32_value
from disqued.core.jobs.attributes import of as attributes_of
from disqued.core.jobs.job import NOWHERE, Job
from disqued.core.queues.bypriority import _KEPT_LINES, _OLDEST_LINES, ByPriority
from disqued.core.queues.order import BANDS

PRIORITIES = st.sampled_from((-(1 << 31), -3, -1, 0, 0, 0, 1, 4, 9, 10, (1 << 31) - 1)) | st.integers(-20, 20)


def make_job(priority: int, ctime: int, number: int = 0) -> Job:
    job_id = b"D-5ca1ab1e-%024d-05a1" % number
    job = Job(job_id, b"queue", b"body", ctime, expire_at_s=2_000_000_000, delay_s=0, retry_s=60, repl=1)
    set_priority(job, priority)
    return job


def set_priority(job: Job, priority: int) -> None:
    """As ADDJOB does: the default is not stored."""
    job.extra = attributes_of({PRIORITY: i32_value(priority)} if priority else {})


def priority_of(job: Job) -> int:
    return int(job.extra.priority) if job.extra is not None else 0


def rank(job: Job) -> tuple[int, int, bytes]:
    return (-priority_of(job), int(job.ctime), job.id)


def filled(*priorities: int) -> tuple[ByPriority, list[Job]]:
    """An order with one job of each priority, added in this order."""
    order = ByPriority()
    jobs = [make_job(priority, number, number) for number, priority in enumerate(priorities)]
    for job in jobs:
        order.insert(job)
    return order, jobs


def drained(order: ByPriority) -> list[int]:
    """The priorities of the jobs, as they leave."""
    priorities: list[int] = []
    while (job := order.pop()) is not None:
        assert job.place == NOWHERE
        priorities.append(priority_of(job))
    return priorities


def test_higher_priorities_are_delivered_first_and_equal_ones_by_age() -> None:
    order, jobs = filled(0, -1, 5, 0, 5, 100, -7)
    assert order.peek(10) == [jobs[index] for index in (5, 2, 4, 0, 3, 1, 6)]
    assert drained(order) == [100, 5, 5, 0, 0, -1, -7]


def test_a_requeued_job_keeps_its_place_among_the_jobs_of_its_priority() -> None:
    order, (_plain, first, second) = filled(0, 3, 3)
    assert order.pop() is first
    order.insert(first)
    assert order.peek(2) == [first, second]


def test_the_oldest_job_is_found_behind_jobs_that_are_delivered_before_it() -> None:
    order, jobs = filled(-5, 0, 9)
    assert order.first() is jobs[2]
    assert order.oldest() is jobs[0]
    order.remove(jobs[0])
    assert order.oldest() is jobs[1]


def test_with_very_many_priorities_the_oldest_job_of_the_lowest_ones_is_found() -> None:
    order, jobs = filled(*range(1, 10 * _OLDEST_LINES))
    assert order.oldest() is jobs[0]


def test_the_number_of_lines_without_jobs_is_bounded() -> None:
    order, jobs = filled(*range(1, 1000))
    for job in jobs:
        order.remove(job)
    assert order._others is not None
    assert len(order._others._lines) <= _KEPT_LINES
    assert order.first() is None


def test_jobs_are_counted_by_band_of_their_priority() -> None:
    order, _ = filled(-4, 0, 0, 1, 9, 10, 500)
    assert dict(zip(BANDS, order.bands(7), strict=True)) == {"below-0": 1, "0": 2, "1-to-9": 2, "from-10": 2}


def test_an_order_whose_jobs_all_have_priority_0_keeps_no_lines() -> None:
    order, _ = filled(0, 0)
    assert order._others is None
    assert order.bands(2) == [0, 2, 0, 0]


class OrderMachine(RuleBasedStateMachine):
    """Inserts and removes jobs of any age and priority. Both repeat, so IDs decide."""

    inside = Bundle("inside")
    outside = Bundle("outside")

    def __init__(self) -> None:
        super().__init__()
        self.order = ByPriority()
        self.expected: list[Job] = []
        self.made = 0
        self.newest = 100

    def insert(self, job: Job) -> Job:
        self.order.insert(job)
        self.expected.append(job)
        self.expected.sort(key=rank)
        return job

    @rule(target=inside, priority=PRIORITIES, step=st.integers(0, 2))
    def add_a_new_job(self, priority: int, step: int) -> Job:
        self.newest += step
        self.made += 1
        return self.insert(make_job(priority, self.newest, self.made))

    @rule(target=inside, priority=PRIORITIES, ctime=st.integers(1, 120))
    def add_a_job_of_any_age(self, priority: int, ctime: int) -> Job:
        self.made += 1
        return self.insert(make_job(priority, ctime, self.made))

    @rule(target=inside, job=consumes(outside))
    def put_back(self, job: Job) -> Job:
        return self.insert(job)

    @rule(target=inside, job=consumes(outside), priority=PRIORITIES)
    def put_back_with_another_priority(self, job: Job, priority: int) -> Job:
        set_priority(job, priority)
        return self.insert(job)

    @rule(target=outside, job=consumes(inside))
    def remove(self, job: Job) -> Job:
        self.order.remove(job)
        self.expected.remove(job)
        assert job.place == NOWHERE
        return job

    @rule(count=st.integers(-12, 12))
    def peek(self, count: int) -> None:
        wanted = self.expected[:count] if count >= 0 else self.expected[::-1][:-count]
        assert self.order.peek(count) == wanted

    @rule(count=st.integers(-5, 5), after=inside)
    def peek_on(self, count: int, after: Job) -> None:
        jobs = self.expected if count >= 0 else self.expected[::-1]
        at = jobs.index(after) + 1
        assert self.order.peek(count, after) == jobs[at : at + abs(count)]

    @rule(count=st.integers(-5, 5), gone=outside)
    def peek_on_behind_a_job_that_left(self, count: int, gone: Job) -> None:
        if count >= 0:
            wanted = [job for job in self.expected if rank(job) > rank(gone)]
        else:
            wanted = [job for job in self.expected[::-1] if rank(job) < rank(gone)]
        assert self.order.peek(count, gone) == wanted[: abs(count)]

    @invariant()
    def the_first_job_is_next(self) -> None:
        assert self.order.first() is (self.expected[0] if self.expected else None)

    @invariant()
    def the_oldest_job_is_known(self) -> None:
        oldest = min(self.expected, key=lambda job: (job.ctime, job.id), default=None)
        assert self.order.oldest() is oldest

    @invariant()
    def every_job_is_counted_once(self) -> None:
        bands = self.order.bands(len(self.expected))
        assert sum(bands) == len(self.expected)
        assert bands[0] == sum(1 for job in self.expected if priority_of(job) < 0)
        assert bands[3] == sum(1 for job in self.expected if priority_of(job) >= 10)

    def teardown(self) -> None:
        assert drained(self.order) == [priority_of(job) for job in self.expected]


TestOrderMachine = OrderMachine.TestCase
TestOrderMachine.settings = settings(stateful_step_count=40)
