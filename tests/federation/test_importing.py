"""NEEDJOBS and ENOUGH: whom a node asks, when, and how often."""

from __future__ import annotations

from itertools import pairwise

import pytest

from disqued.federation.interest import Imports, federation_of, imports_of
from disqued.testing.cluster import Cluster
from federation.moving import A_TIMER_MS, added, asked, moves, received, waiting


def gaps_s(times: list[tuple[int, int]]) -> list[float]:
    """The pauses between questions, rounded to tenths of a second: timers are late by a few milliseconds."""
    return [round((later - earlier) / 1000, 1) for (earlier, _), (later, _) in pairwise(times)]


def test_all_nodes_are_asked_at_once_and_then_with_growing_pauses_while_none_answers(cluster: Cluster) -> None:
    first, second, third = cluster.members
    began_ms = cluster.network.now_ms
    waiting(second)
    cluster.run(seconds=150)
    for other in (first, third):
        times = asked(cluster, by=second, to=other)
        assert gaps_s(times) == [4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]
        assert {count for _, count in times} == {1}
    assert cluster.sent("NEEDJOBS")[0].at_ms == began_ms
    assert asked(cluster, by=first) == asked(cluster, by=third) == []


def test_pauses_between_broadcasts_stay_at_their_bound_for_hours(pair: Cluster) -> None:
    _, second = pair.members
    waiting(second)
    pair.run(seconds=1200)
    pair.forget_sent()
    pair.run(seconds=600)
    assert set(gaps_s(asked(pair, by=second))) == {30.0}


def test_source_is_asked_repeatedly_with_growing_pauses_while_it_is_recent(pair: Cluster) -> None:
    first, second = pair.members
    added(first)
    worker = waiting(second)
    waiting(second)
    pair.run(milliseconds=10)
    assert len(received(worker)) == 1
    pair.forget_sent()
    pair.run(milliseconds=1990)
    times = asked(pair, by=second)
    assert times[0][1] >= 5
    pauses = [later - earlier for (earlier, _), (later, _) in pairwise(times)]
    expected = [50, 100, 200, 400, 800]
    assert len(pauses) >= 4
    for pause, least in zip(pauses, expected[-len(pauses) :], strict=True):
        assert least < pause <= least + 2 * A_TIMER_MS
    pair.run(seconds=10)
    pair.forget_sent()
    pair.run(seconds=1)
    assert asked(pair, by=second) == []


def test_import_rate_is_that_of_the_last_two_windows() -> None:
    needs = Imports(b"mail", 10_000)
    assert needs.rate(10_000) == 0
    for at_ms in range(10_000, 12_000, 100):
        needs.count_imports(at_ms, 1)
    assert needs.rate(12_000) == 10
    assert needs.rate(12_001) == 10
    for _ in range(1000):
        needs.count_imports(12_001, 1)
    assert needs.rate(12_001) == 510
    assert needs.rate(16_100) > 0
    assert needs.rate(16_101) == 0


def test_node_asks_for_jobs_when_a_client_only_polls(pair: Cluster) -> None:
    _, second = pair.members
    assert second.admin.take("mail") == []
    assert len(asked(pair, by=second)) == 1


def test_node_asks_once_for_a_thousand_polls(pair: Cluster) -> None:
    _, second = pair.members
    for _ in range(1000):
        second.admin.take("mail")
    assert len(asked(pair, by=second)) == 1


def test_node_does_not_ask_when_a_queue_without_imports_is_drained(pair: Cluster) -> None:
    _, second = pair.members
    job = added(second)
    assert second.admin.take("mail") == [job]
    assert asked(pair, by=second) == []


def test_single_node_keeps_no_interest_for_its_queues() -> None:
    alone = Cluster(1)
    worker = waiting(alone.members[0])
    queue = alone.members[0].node.state.lifecycle.queues.get(b"mail")
    assert queue is not None
    assert imports_of(queue) is None
    added(alone.members[0])
    assert len(received(worker)) == 1
    assert imports_of(queue) is None


def test_other_nodes_get_enough_one_second_after_the_last_client_gave_up(pair: Cluster) -> None:
    first, second = pair.members
    waiting(second, timeout_ms=60_000)
    pair.run(seconds=61.5)
    (message,) = pair.sent("ENOUGH")
    assert message.sender is second
    assert message.frame.queue == b"mail"
    pair.run(milliseconds=5)
    assert federation_of(first.node.state).requested_queues == 0
    assert federation_of(second.node.state).imported_queues == 0
    pair.forget_sent()
    pair.run(seconds=100)
    assert pair.sent("NEEDJOBS") == pair.sent("ENOUGH") == []


def test_node_asks_at_once_when_a_client_returns(pair: Cluster) -> None:
    _, second = pair.members
    waiting(second, timeout_ms=60_000)
    pair.run(seconds=70)
    pair.forget_sent()
    waiting(second)
    assert len(asked(pair, by=second)) == 1


def test_occasional_polls_do_not_send_messages_to_all_nodes_each_time(pair: Cluster) -> None:
    _, second = pair.members
    for _ in range(60):
        second.admin.take("mail")
        pair.run(seconds=2)
    assert len(pair.sent("NEEDJOBS")) + len(pair.sent("ENOUGH")) <= 16


@pytest.mark.parametrize(("queues", "members"), [(1, 3), (100, 3)])
def test_idle_cluster_with_a_thousand_waiting_clients_sends_few_messages(queues: int, members: int) -> None:
    cluster = Cluster(members)
    for number in range(1000):
        waiting(cluster.members[number % members], f"q{number % queues}")
    cluster.run(seconds=120)
    cluster.forget_sent()
    seconds = 600
    cluster.run(seconds=seconds)
    per_second = len(cluster.sent("NEEDJOBS")) / seconds
    # Each node asks each other one twice a minute for each queue, however many of its clients wait for it.
    assert per_second <= queues * members * (members - 1) / 30
    assert cluster.sent("YOURJOBS") == cluster.sent("ENOUGH") == []


def test_leaving_node_asks_for_no_jobs(pair: Cluster) -> None:
    _, second = pair.members
    second.node.state.view.leaving = True
    second.admin.take("mail")
    assert asked(pair, by=second) == []


def test_queue_paused_in_output_does_not_ask_until_it_is_resumed(pair: Cluster) -> None:
    first, second = pair.members
    second.admin.call("PAUSE", "mail", "out")
    worker = waiting(second)
    pair.run(seconds=5)
    assert asked(pair, by=second) == []
    second.admin.call("PAUSE", "mail", "none")
    waiting(second, timeout_ms=10)
    pair.run(milliseconds=5)
    assert len(asked(pair, by=second)) == 1
    job = added(first)
    pair.run(milliseconds=5)
    assert received(worker) == [job]


def test_pausing_a_queue_in_output_withdraws_its_requests(pair: Cluster) -> None:
    first, second = pair.members
    waiting(second)
    pair.run(seconds=1)
    second.admin.call("PAUSE", "mail", "out")
    pair.run(seconds=4)
    added(first)
    pair.run(seconds=1)
    assert moves(pair) == []


def test_node_that_returns_learns_which_queues_want_jobs(pair: Cluster) -> None:
    first, second = pair.members
    workers = [waiting(second, f"q{number}") for number in range(50)]
    pair.run(seconds=100)
    first.crash()
    pair.run(seconds=5)
    first.restart()
    pair.until(pair.is_whole)
    pair.run(seconds=2)
    jobs = [added(first, queue=f"q{number}") for number in range(50)]
    pair.run(milliseconds=100)
    assert [received(worker) for worker in workers] == [[job] for job in jobs]


def test_clients_that_waited_before_the_cluster_formed_are_served() -> None:
    cluster = Cluster(2, meet=False)
    first, second = cluster.members
    worker = waiting(second)
    cluster.run(seconds=60)
    cluster.meet()
    cluster.run(seconds=2)
    job = added(first)
    cluster.run(milliseconds=100)
    assert received(worker) == [job]


def test_a_node_with_a_congested_link_is_asked_when_it_is_free(pair: Cluster) -> None:
    """Clients can name hundreds of thousands of queues, and a message for each would overflow the link."""
    first, second = pair.members
    link = second.node.state.view.peers[first.id].link
    assert link is not None
    link.congested = True
    waiting(second)
    assert asked(pair, by=second) == []
    link.congested = False
    pair.run(seconds=1)
    assert len(asked(pair, by=second)) >= 1
    job = added(first)
    pair.run(milliseconds=100)
    assert second.admin.show(job)["state"] == b"active"
