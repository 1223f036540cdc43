"""The ordered queue whose leader is killed, and the account of its jobs: gaps, inversions, repeated deliveries."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from disqued.client import Client
from disqued.demo import ordered
from disqued.demo.cluster import NODES, choose_ports, running_cluster
from disqued.demo.ordered import Delivery, DeliveryOrder, OrderedJobs
from disqued.testing.ports import free_port
from support.proxies import LosesAReply


def delivered(*numbers: int) -> DeliveryOrder:
    """Deliveries of these jobs, in the order of their claims."""
    return DeliveryOrder([Delivery(claim, number, "worker 1", 0.0) for claim, number in enumerate(numbers, start=7)])


def test_job_that_is_repeated_before_later_ones_is_in_order() -> None:
    order = delivered(0, 1, 2, 2, 3)
    assert (order.gaps(), order.inversions(), order.repeated()) == ([], [], 1)


def test_job_that_is_repeated_after_a_later_one_is_an_inversion() -> None:
    assert delivered(0, 1, 2, 1, 2).inversions() == [1]


@pytest.mark.parametrize("numbers", [(1, 2), (0, 2)])
def test_job_that_is_delivered_without_the_one_before_is_a_gap(numbers: tuple[int, ...]) -> None:
    assert delivered(*numbers).gaps() == [numbers[0] or numbers[1]]


def test_deliveries_are_compared_in_the_order_of_their_claims() -> None:
    order = DeliveryOrder([Delivery(9, 1, "worker 2", 1.0), Delivery(8, 0, "worker 1", 2.0)])
    assert (order.gaps(), order.inversions()) == ([], [])
    assert list(order.by_worker()) == ["worker 1", "worker 2"]


@pytest.mark.slow
def test_jobs_keep_their_order_when_the_leader_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered, "JOBS", 60)
    lines: list[str] = []
    with running_cluster(choose_ports(free_port(behind=NODES - 1))) as cluster:
        scene = OrderedJobs(cluster, lines.append)
        scene.run()
    assert scene.problem() is None
    assert scene.done == set(range(60))
    assert len(scene.order.by_worker()) > 1, "another worker took over"
    assert len(lines) == 1
    assert scene.accepted_s > 0, "jobs were added after the leader was killed"


@pytest.mark.slow
def test_job_is_done_although_the_answer_to_its_acknowledgement_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the leader is killed between the two: nobody gets the job again."""
    monkeypatch.setattr(ordered, "JOBS", 60)
    with running_cluster(choose_ports(free_port(behind=NODES - 1))) as cluster, ExitStack() as opened:
        proxies = {
            node.address: opened.enter_context(LosesAReply("ACKJOB", node.port, down=20)) for node in cluster.nodes
        }

        def through_a_proxy(nodes: tuple[str, ...], **options: Any) -> Client:
            return Client([proxies[node].address for node in nodes], **options)

        monkeypatch.setattr(ordered, "Client", through_a_proxy)
        scene = OrderedJobs(cluster, lambda _: None)
        scene.run()
    assert any(proxy.lost.is_set() for proxy in proxies.values())
    assert scene.problem() is None
    assert scene.done == set(range(60))
