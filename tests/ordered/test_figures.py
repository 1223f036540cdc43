"""Metrics, INFO and CLUSTER ORDERED STATUS of a cluster with ordered queues."""

from __future__ import annotations

from typing import Any

import pytest

from disqued.core.host import disk
from disqued.metrics.exposition import Encoder, page_of_queue
from disqued.testing.cluster import Member
from metrics.pages import Page, scrape
from ordered.story import Story, ids

GROUPS = "disque_ordered_groups"
LAG = "disque_queue_replica_lag_entries"


@pytest.fixture
def story() -> Story:
    story = Story()
    story.new()
    return story


def total(story: Story, name: str, **labels: str) -> float:
    """The sum of a metric over the running nodes."""
    return sum(scrape(node).value(name, **labels) for node in story.nodes if node.running)


def status_of(story: Story, node: Member, queue: bytes = b"q") -> dict[bytes, Any]:
    """What a node says about a queue."""
    fields = story.call(node, "CLUSTER", "ORDERED", "STATUS")
    groups = [dict(zip(row[::2], row[1::2], strict=True)) for row in fields[fields.index(b"queues") + 1]]
    (found,) = [group for group in groups if group[b"queue"] == queue]
    return found


def test_each_group_has_one_leader_and_three_replicas(story: Story) -> None:
    story.settle()
    assert [scrape(node).value(GROUPS) for node in story.nodes] == [2, 2, 2]
    assert total(story, "disque_ordered_leaders") == 2
    assert total(story, "disque_ordered_groups_without_leader") == 0
    assert total(story, "disque_ordered_elections_total") >= 2


def test_a_queue_has_its_series_at_its_leader_only(story: Story) -> None:
    leader = story.leader()
    for number in range(5):
        story.add(story.nodes[0], f"{number}")
    story.add(story.nodes[0], "later", "DELAY", 60)
    story.take(story.nodes[1], 2)
    story.settle()
    story.cluster.run(seconds=9)
    page = scrape(leader)
    shown = {
        name: page.value(f"disque_queue_{name}", queue="q")
        for name in ("jobs", "leased_jobs", "delayed_jobs", "dead_jobs", "jobs_in_total", "jobs_out_total")
    }
    assert shown == {
        "jobs": 3, "leased_jobs": 2, "delayed_jobs": 1, "dead_jobs": 0, "jobs_in_total": 6, "jobs_out_total": 2,
    }  # fmt: skip
    assert 8 < page.value("disque_queue_oldest_job_age_seconds", queue="q") < 11
    assert 8 < page.value("disque_oldest_waiting_job_age_seconds") < 11
    assert page.value(LAG, queue="q") == 0
    for node in story.followers():
        assert LAG not in scrape(node).names
        assert "disque_queue_jobs" not in scrape(node).names


def test_a_paused_queue_and_its_waiting_clients_are_shown(story: Story) -> None:
    story.send(story.nodes[0], "GETJOB", "FROM", "q")
    story.call(story.nodes[1], "PAUSE", "q", "in")
    story.settle()
    page = scrape(story.leader())
    assert page.by("direction", "disque_queue_paused", queue="q") == {"in": 1, "out": 0}
    assert page.value("disque_queue_blocked_clients", queue="q") == 1


def test_a_replica_that_is_gone_is_behind(story: Story) -> None:
    leader = story.leader()
    story.followers()[0].crash()
    for number in range(7):
        story.add(leader, f"{number}")
    page = scrape(leader)
    assert page.value(LAG, queue="q") >= 7
    assert page.value("disque_ordered_replica_lag_entries") >= 7
    assert page.value("disque_ordered_replicas_behind") >= 1


def test_a_minority_has_groups_without_leader_and_counts_what_it_refuses(story: Story) -> None:
    a, b, c = story.nodes
    story.cluster.partition([a], [b, c])
    story.cluster.run(seconds=5)
    story.call(a, "ADDJOB", "q", "job", 500)
    page = scrape(a)
    assert page.value("disque_ordered_groups_without_leader") == 2
    assert page.value("disque_ordered_requests_without_leader_total") == 1


def test_requests_and_commits_are_measured(story: Story) -> None:
    for number in range(20):
        story.add(story.nodes[number % 3], "job")
    assert total(story, "disque_ordered_request_seconds_count") >= 20
    assert total(story, "disque_ordered_commit_seconds_count") >= 20
    assert total(story, "disque_ordered_proposals_total") >= 20
    assert all(scrape(node).value("disque_ordered_log_syncs_total") > 0 for node in story.nodes)
    for node in story.nodes:
        page = scrape(node)
        assert page.value("disque_ordered_log_bytes") >= page.value("disque_ordered_log_live_bytes") > 0


def test_deliveries_by_the_nearest_replica_are_local_ones() -> None:
    story = Story(4)
    story.new("q", "ON", *[node.id for node in story.nodes[:3]])
    other = story.nodes[3]
    for node, local, remote in ((story.nodes[1], 1, 0), (other, 1, 1)):
        story.add(node, "job")
        assert story.take(node) == [b"job"]
        assert total(story, "disque_ordered_deliveries_total", path="local") == local
        assert total(story, "disque_ordered_deliveries_total", path="remote") == remote


def test_stale_claims_are_counted_once(story: Story) -> None:
    story.add(story.nodes[0], "job", "RETRY", 1)
    job = story.call(story.nodes[0], "GETJOB", "WITHCLAIM", "FROM", "q")[0]
    assert ids(story.call(story.nodes[1], "GETJOB", "FROM", "q")) == [job[1]]
    story.call(story.nodes[2], "ACKJOB", job[1], "CLAIM", job[4])
    story.settle()
    assert total(story, "disque_ordered_stale_claims_total") == 1


def test_leases_that_cannot_end_are_overdue(story: Story) -> None:
    story.add(story.nodes[0], "job", "RETRY", 5)
    story.take(story.nodes[0])
    leader = story.leader()
    for node in story.nodes:
        node.host.disk.hold(disk.SYNC)
    story.cluster.run(seconds=9)
    assert scrape(leader).value("disque_ordered_overdue_seconds") > 3
    for node in story.nodes:
        node.host.disk.repair()
        node.host.disk.finish()
    story.cluster.run(seconds=2)
    assert total(story, "disque_ordered_overdue_seconds") == 0


def test_ordered_queues_are_selected_like_others(story: Story) -> None:
    leader = story.leader()
    story.call(leader, "ADDJOB", "plain", "job", 0)
    for _ in range(3):
        story.add(leader, "job")
    assert set(scrape(leader).by("queue", "disque_queue_jobs")) == {"q", "plain"}
    assert set(scrape(leader, "queues=1").by("queue", "disque_queue_jobs")) == {"q"}
    assert set(scrape(leader, "queue=p*").by("queue", "disque_queue_jobs")) == {"plain"}
    assert scrape(leader, "queues=1").value("disque_queues_left_out") == 1
    assert scrape(leader, "queues=none&name=q").by("queue", "disque_queue_jobs") == {"q": 3}
    alone = Page(page_of_queue(leader.node, b"q", Encoder("")).decode())
    assert alone.value("disque_queue_jobs", queue="q") == 3


def test_jobs_that_an_ordered_queue_found_under_its_name_do_not_double_its_series(story: Story) -> None:
    leader = story.leader()
    leader.node.state.lifecycle.queues.get_or_make(b"q", leader.node.state.now_ms)
    assert scrape(leader).by("queue", "disque_queue_jobs") == {"q": 0}
    assert scrape(leader).value("disque_queues_left_out") == 0


def test_info_shows_the_groups_of_the_node(story: Story) -> None:
    story.settle()
    text = story.call(story.leader(), "INFO", "ordered").decode()
    shown = dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)
    assert shown["ordered_queues"] == "1"
    assert shown["ordered_groups"] == "2"
    assert int(shown["ordered_leaders"]) >= 1
    assert shown["ordered_groups_without_leader"] == "0"
    assert int(shown["ordered_log_bytes"]) > 0


def test_status_of_the_leader_has_the_jobs_and_how_far_replicas_are_behind(story: Story) -> None:
    leader = story.leader()
    gone = story.followers()[0]
    gone.crash()
    for number in range(4):
        story.add(leader, f"{number}")
    story.take(leader)
    shown = status_of(story, leader)
    assert {name: shown[name] for name in (b"ready", b"leased", b"delayed", b"dead")} == {
        b"ready": 3, b"leased": 1, b"delayed": 0, b"dead": 0,
    }  # fmt: skip
    lags = dict(zip(shown[b"lags"][::2], shown[b"lags"][1::2], strict=True))
    assert lags[gone.id] >= 4
    follower = story.followers()[0]
    assert b"ready" not in status_of(story, follower)
    assert lags[follower.id] == 0
