"""The decisions of a consumer that moves to another node, with sessions that open no connection."""

from __future__ import annotations

import random

import pytest

from disqued.client.backoff import Backoff
from disqued.client.consuming import Plan
from disqued.client.errors import BadJobId, DelayTooLong, DisqueError, ResponseError
from disqued.client.locality import DRAIN_S, WINDOW_JOBS, WINDOW_S
from disqued.client.outcomes import INTERRUPTED, Reject, Retry
from disqued.client.session import Session, Settings
from disqued.client.sockets import SocketTransport
from disqued.client.values import Job, JobId

HERE, THERE = "aaaaaaaa", "bbbbbbbb"


def session(node_id: str) -> Session:
    settings = Settings(
        nodes=("10.0.0.1:7711",),
        password=None,
        discover=True,
        connect_timeout_s=1,
        timeout_s=1,
        backoff=Backoff(),
        rng=random.Random(1),
    )
    made = Session(settings, SocketTransport(1))
    made._nodes.connected(made._nodes.order()[0], node_id + "0" * 32)
    return made


def jobs(creator: str, count: int, first: int = 0) -> list[Job]:
    return [
        Job("q", JobId(f"D-{creator}-{first + number:024}-05a1"), b"", requeue_in_ms=10_000) for number in range(count)
    ]


@pytest.fixture
def plan() -> Plan:
    return Plan(session(HERE), "q", prefetch=2 * WINDOW_JOBS)


def test_consumer_is_told_to_move_by_the_jobs_of_its_node(plan: Plan) -> None:
    assert plan.fetched(jobs(THERE, WINDOW_JOBS), plan.source, 0.0) is None
    assert plan.fetched([], plan.source, WINDOW_S) == THERE


def test_results_and_renewals_go_to_the_node_that_delivered_the_job(plan: Plan) -> None:
    former, there = plan.source, session(THERE)
    old, new = jobs(THERE, 2), jobs(THERE, 2, first=10)
    plan.fetched(old, former, 0.0)
    plan.moved(THERE, there, 0.0)
    plan.fetched(new, there, 0.0)
    assert plan.due(6.0) == [(former, [job.id for job in old]), (there, [job.id for job in new])]
    plan.settle(old[0], None)
    plan.settle(new[0], None)
    plan.give_all_back()
    sent = [(source, [ending.call.arguments for ending in endings]) for source, endings in plan.endings()]
    assert sent == [
        (former, [("ACKJOB", old[0].id), ("NACK", old[1].id, "REASON", INTERRUPTED.reason)]),
        (there, [("ACKJOB", new[0].id), ("NACK", new[1].id, "REASON", INTERRUPTED.reason)]),
    ]
    assert plan.unsent == 0


def test_former_node_is_asked_between_fetches_until_it_has_no_jobs_left(plan: Plan) -> None:
    former, there = plan.source, session(THERE)
    plan.moved(THERE, there, 0.0)
    asked = [plan.fetch() for _ in range(4)]
    assert [source for source, _ in asked] == [former, there, former, there]
    assert ["NOHANG" in call.arguments for _, call in asked] == [True, False, True, False], "only the new node blocks"
    plan.fetched([], former, DRAIN_S - 0.1)
    plan.fetched(jobs(THERE, 1), former, DRAIN_S)
    assert plan.fetch()[0] is former, "jobs that it imported arrive late, or it had more"
    plan.fetched([], former, DRAIN_S)
    assert {plan.fetch()[0] for _ in range(4)} == {there}


def test_former_node_that_is_lost_is_not_asked_again(plan: Plan) -> None:
    former, there = plan.source, session(THERE)
    plan.moved(THERE, there, 0.0)
    assert plan.fetch()[0] is former
    plan.disconnected(former)
    assert {plan.fetch()[0] for _ in range(4)} == {there}


def test_consumer_stays_when_the_other_node_cannot_be_reached(plan: Plan) -> None:
    here = plan.source
    plan.moved(THERE, None, 0.0)
    assert plan.source is here
    plan.fetched(jobs(THERE, WINDOW_JOBS), here, 0.0)
    assert plan.fetched([], here, WINDOW_S) is None, "not at once again"


def sent(plan: Plan) -> list[tuple[object, ...]]:
    return [ending.call.arguments for _, endings in plan.endings() for ending in endings]


def settled(plan: Plan, *errors: Exception) -> list[Job]:
    held = jobs(HERE, len(errors))
    plan.fetched(held, plan.source, 0.0)
    for job, error in zip(held, errors, strict=True):
        plan.settle(job, error)
    return held


class SilentError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_jobs_that_failed_for_one_reason_are_given_back_together(plan: Plan) -> None:
    one, two, three = settled(plan, ValueError("bad row"), KeyError("x"), ValueError("bad row"))
    assert sent(plan) == [
        ("NACK", one.id, three.id, "REASON", b"ValueError: bad row"),
        ("NACK", two.id, "REASON", b"KeyError: 'x'"),
    ]


def test_reason_is_the_class_if_the_exception_says_nothing_else(plan: Plan) -> None:
    one, two = settled(plan, TimeoutError(), SilentError())
    assert sent(plan) == [
        ("NACK", one.id, "REASON", b"TimeoutError"),
        ("NACK", two.id, "REASON", b"SilentError: <exception str() failed>"),
    ]


def test_reason_is_cut_at_a_character(plan: Plan) -> None:
    [job] = settled(plan, ValueError("é" * 1000))
    [call] = sent(plan)
    assert call == ("NACK", job.id, "REASON", b"ValueError: " + "é".encode() * 506)


def test_handler_can_choose_when_the_job_is_delivered_again(plan: Plan) -> None:
    caused = Retry(0.0001)
    caused.__cause__ = TimeoutError("no answer")
    one, two, three, four = settled(plan, Retry(2.5), caused, Retry(), Retry(1, "busy"))
    assert sent(plan) == [
        ("NACK", one.id, "PDELAY", 2500),
        ("NACK", two.id, "PDELAY", 1, "REASON", b"TimeoutError: no answer"),
        ("NACK", three.id),
        ("NACK", four.id, "PDELAY", 1000, "REASON", b"busy"),
    ]
    with pytest.raises(ValueError, match="negative"):
        Retry(-1)


def test_handler_can_reject_a_job(plan: Plan) -> None:
    one, two = settled(plan, Reject("no such customer"), Reject())
    assert sent(plan) == [("NACK", one.id, "REASON", b"no such customer", "DEAD"), ("NACK", two.id, "DEAD")]


def test_jobs_that_were_not_started_are_given_back_uncounted(plan: Plan) -> None:
    held = jobs(HERE, 3)
    plan.fetched(held, plan.source, 0.0)
    plan.settle(held[0], None)
    plan.give_back_unstarted(job.id for job in held[:2])
    plan.give_all_back()
    assert sent(plan) == [
        ("ACKJOB", held[0].id),
        ("NACK", held[1].id, "UNCOUNTED"),
        ("NACK", held[2].id, "REASON", INTERRUPTED.reason),
    ]


def test_node_that_knows_no_options_gets_plain_nacks(plan: Plan, caplog: pytest.LogCaptureFixture) -> None:
    one, two, _ = settled(plan, ValueError("bad"), Reject(), Retry())
    [(source, endings)] = plan.endings()
    refused: list[int | DisqueError] = [BadJobId("BADID Invalid Job ID format."), BadJobId("BADID"), 1]
    instead = plan.ended(source, endings, refused)
    assert [ending.call.arguments for ending in instead] == [("NACK", one.id), ("NACK", two.id)]
    assert plan.ended(source, instead, [1, 1]) == []
    assert not [record for record in caplog.records if "NACK failed" in record.message]

    [four] = settled(plan, ValueError("bad"))
    assert sent(plan) == [("NACK", four.id)], "the next call has no options at once"

    plan.disconnected(source)
    [five] = settled(plan, ValueError("bad"))
    assert sent(plan) == [("NACK", five.id, "REASON", b"ValueError: bad")], "another version may run there now"


def test_what_a_handler_returns_is_the_result_if_that_is_wanted(plan: Plan) -> None:
    here = plan.source
    wanting = Plan(here, "q", prefetch=3, results=True)
    for made in (plan, wanting):
        held = jobs(HERE, 3)
        made.fetched(held, here, 0.0)
        for job, returned in zip(held, ("42", None, 7), strict=True):
            made.settle(job, None, returned)
    ids = [job.id for job in held]
    sent = [[ending.call.arguments for ending in endings] for made in (plan, wanting) for _, endings in made.endings()]
    assert sent == [[("ACKJOB", *ids)], [("ACKJOB", *ids[1:]), ("ACKJOB", ids[0], "RESULT", "42")]]


def test_job_is_acknowledged_without_its_result_if_the_node_keeps_none() -> None:
    plan = Plan(session(HERE), "q", results=True)
    (job,) = jobs(HERE, 1)
    plan.fetched([job], plan.source, 0.0)
    plan.settle(job, None, b"42")
    ((source, endings),) = plan.endings()
    (again,) = plan.ended(source, endings, [ResponseError("ERR nobody would keep it: add the job with RETAIN")])
    assert again.call.arguments == ("ACKJOB", job.id)


def test_plain_nack_that_is_refused_is_not_sent_again(plan: Plan, caplog: pytest.LogCaptureFixture) -> None:
    [job] = settled(plan, Retry())
    [(source, endings)] = plan.endings()
    assert plan.ended(source, endings, [BadJobId("BADID")]) == []
    assert f"NACK failed, the jobs are delivered again after their retry time jobs={job.id}" in caplog.text


def test_job_that_expires_before_its_delay_is_left_to_its_retry_time(
    plan: Plan, caplog: pytest.LogCaptureFixture
) -> None:
    settled(plan, Retry(3600))
    [(source, endings)] = plan.endings()
    assert plan.ended(source, endings, [DelayTooLong("TTL The job expires in 60 seconds")]) == []
    assert "TTL The job expires" in caplog.text
