"""The decisions of a consumer that moves to another node, with sessions that open no connection."""

from __future__ import annotations

import random

import pytest

from disqued.client.backoff import Backoff
from disqued.client.consuming import Plan
from disqued.client.locality import DRAIN_S, WINDOW_JOBS, WINDOW_S
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
    sent = [(source, [call.arguments for call in endings]) for source, endings in plan.endings()]
    assert sent == [
        (former, [("ACKJOB", old[0].id), ("NACK", old[1].id)]),
        (there, [("ACKJOB", new[0].id), ("NACK", new[1].id)]),
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
