"""The settings of names hold for ordered queues, whoever leads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from disqued.client import ResponseError
from disqued.core.queues.settingsindex import SettingsIndex
from disqued.ordered.settings import are_equal, machine_settings
from disqued.orderedqueue.options import Settings
from ordered.story import Story, bodies


@pytest.fixture
def story() -> Iterator[Story]:
    story = Story()
    story.new()
    yield story
    story.settle()


def configure(story: Story, *words: bytes | str | int, name: str = "q") -> None:
    """QCONF SET at a node that does not lead, and wait until the machines know."""
    assert story.call(story.followers()[0], "QCONF", name, "SET", *words) == b"OK"
    story.cluster.run(milliseconds=500)


def fail(story: Story, node: Any, *, times: int = 1, queue: str = "q") -> None:
    """Fetch one job, and give it back, so many times."""
    for _ in range(times):
        job = story.call(node, "GETJOB", "FROM", queue)[0]
        assert story.call(node, "NACK", job[1], "REASON", "no") == 1


def resolved(**values: str) -> Settings:
    """The settings of a machine whose name has these, set for a pattern."""
    index = SettingsIndex()
    for name, value in values.items():
        index.set(b"*", name.replace("_", "-").encode(), value.encode())
    return machine_settings(index.resolve(b"q"))


def test_a_queue_without_settings_has_the_defaults() -> None:
    assert are_equal(machine_settings(None), Settings())
    assert Settings().limit == 20
    assert Settings().consumer_timeout_ms == 60_000


def test_a_setting_of_something_else_leaves_the_limit_alone() -> None:
    assert resolved(dead_ttl="60").limit == 20
    assert resolved(limit="none").limit == 0
    assert resolved(limit="3").limit == 3


def test_all_settings_of_a_machine_come_from_the_name() -> None:
    settings = resolved(
        dead="graves",
        dead_ttl="77",
        dead_expired="yes",
        backoff="100 2000 1.5",
        maxlen="5",
        maxbytes="900",
        overflow="drop-oldest",
        pause="out",
        consumer_timeout="7",
    )
    assert (settings.dead, settings.dead_ttl_s, settings.dead_expired) == (b"graves", 77, True)
    assert (settings.backoff_min_ms, settings.backoff_max_ms, settings.backoff_permille) == (100, 2000, 1500)
    assert (settings.max_length, settings.max_bytes, settings.drops_oldest) == (5, 900, True)
    assert (settings.pause, settings.consumer_timeout_ms) == (2, 7000)
    assert resolved(dead="drop").drops_dead


def test_maxlen_refuses_jobs_at_every_node_until_it_is_unset(story: Story) -> None:
    configure(story, "maxlen", 2)
    for number in range(2):
        story.add(story.nodes[number], f"{number}")
    for node in story.nodes:
        refused = story.call(node, "ADDJOB", "q", "more", 0)
        assert isinstance(refused, ResponseError)
        assert str(refused).startswith("MAXLEN")
    assert story.call(story.nodes[0], "QCONF", "q", "UNSET", "maxlen") == 1
    story.cluster.run(milliseconds=500)
    story.add(story.nodes[1], "more")


def test_overflow_deletes_the_oldest_jobs(story: Story) -> None:
    configure(story, "maxlen", 2, "overflow", "drop-oldest")
    for number in range(5):
        story.add(story.nodes[0], f"{number}")
    assert story.take(story.nodes[1], 9) == [b"3", b"4"]


def test_pause_stops_the_queue_on_all_nodes(story: Story) -> None:
    story.add(story.nodes[0], "job")
    configure(story, "pause", "all")
    for node in story.nodes:
        assert story.take(node) == []
        assert str(story.call(node, "ADDJOB", "q", "more", 0)).startswith("PAUSED")
    configure(story, "pause", "none")
    assert story.take(story.nodes[2]) == [b"job"]


def test_backoff_delays_a_job_that_failed(story: Story) -> None:
    configure(story, "backoff", "3000 60000")
    story.add(story.nodes[0], "job")
    fail(story, story.nodes[0])
    story.cluster.run(seconds=2)
    assert story.take(story.nodes[1]) == []
    story.cluster.run(seconds=2)
    assert story.take(story.nodes[1]) == [b"job"]


def test_retry_ttl_and_retain_are_defaults_of_addjob(story: Story) -> None:
    configure(story, "retry", 7, "ttl", 99, "retain", 5)
    job_id = story.add(story.nodes[2], "job")
    fields = story.call(story.nodes[1], "SHOW", job_id)
    shown = dict(zip(fields[::2], fields[1::2], strict=True))
    assert shown[b"retry"] == 7
    assert 90 < shown[b"ttl"] <= 99


def test_settings_for_a_pattern_hold_from_the_first_job_of_a_new_queue(story: Story) -> None:
    configure(story, "maxlen", 1, name="orders:*")
    story.new("orders:eu")
    story.cluster.run(milliseconds=300)
    story.add(story.nodes[0], "one", queue="orders:eu")
    assert str(story.call(story.nodes[1], "ADDJOB", "orders:eu", "two", 0)).startswith("MAXLEN")


def test_a_new_leader_takes_settings_that_changed_while_there_was_none(story: Story) -> None:
    leader = story.leader()
    others = story.followers()
    leader.crash()
    assert story.call(others[0], "QCONF", "q", "SET", "maxlen", 1) == b"OK"
    assert story.leader() in others
    story.cluster.run(milliseconds=500)
    story.add(others[0], "one")
    assert str(story.call(others[1], "ADDJOB", "q", "two", 0)).startswith("MAXLEN")
    leader.restart()
    story.cluster.run(seconds=2)


def test_the_active_consumer_of_a_single_queue_makes_room_after_consumer_timeout() -> None:
    story = Story()
    story.new("q", "SINGLE")
    configure(story, "consumer-timeout", 5)
    first = story.nodes[0].client()
    first.send("GETJOB", "NOHANG", "FROM", "q")
    story.cluster.run(seconds=1)
    second = story.send(story.nodes[1], "GETJOB", "FROM", "q")
    story.cluster.run(seconds=1)
    story.add(story.nodes[2], "job")
    story.cluster.run(seconds=1)
    assert second.waits
    assert bodies(second.reply(within_s=8)) == [b"job"]
