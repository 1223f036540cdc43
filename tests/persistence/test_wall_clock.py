"""The wall clock is set while the node runs: no timer moves, and no job is gone after a restart with the new clock."""

from __future__ import annotations

import pytest

from disqued.config import Config
from disqued.core.jobs.job import Job
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalClient, LocalNode
from disqued.testing.logged import LOG_NAME, Contents

DAY_MS = 86_400_000


def logging_node() -> LocalNode:
    config = Config()
    config.assign("appendonly", True)
    config.assign("appendfilename", LOG_NAME)
    return LocalNode(config, FakeHost())


def set_clock(node: LocalNode, step_ms: int) -> None:
    """Set the wall clock, and give the node time to notice and to rewrite its file."""
    node.host.wall_ahead_us += step_ms * 1000
    node.run(seconds=3)


def back(node: LocalNode) -> LocalClient:
    """Kill the node, and start it with the time of its wall clock."""
    node.crash()
    node.host.now_ms += node.host.wall_ahead_us // 1000
    node.host.wall_ahead_us = 0
    node.restart()
    return node.client()


def on_disk(node: LocalNode, job_id: bytes) -> Job:
    return Contents(bytes(node.host.disk.files[LOG_NAME])).jobs[job_id]


def shown(client: LocalClient, name: str) -> int:
    """A field of INFO PERSISTENCE."""
    text = client.call("INFO", "persistence")
    assert isinstance(text, bytes)
    return int(dict(line.split(":", 1) for line in text.decode().split("\r\n") if ":" in line)[name])


def ttl_of(client: LocalClient, job_id: bytes) -> int:
    ttl = client.show(job_id)["ttl"]
    assert isinstance(ttl, int)
    return ttl


def test_no_job_is_gone_after_the_clock_was_days_behind_at_the_start() -> None:
    node = logging_node()
    client = node.client()
    before = client.add("mail", "body", "TTL", 3600)
    set_clock(node, 3 * DAY_MS)
    after = client.add("mail", "body", "TTL", 3600)
    node.run(seconds=1)

    client = back(node)
    assert client.show(before)["state"] == client.show(after)["state"] == b"active"
    assert 3550 <= ttl_of(client, before) <= 3600
    assert 3550 <= ttl_of(client, after) <= 3600


@pytest.mark.parametrize("checksums", [True, False])
def test_times_on_disk_are_those_of_the_wall_clock(checksums: bool) -> None:
    node = logging_node()
    node.config.assign("aof_checksums", checksums)
    set_clock(node, DAY_MS)
    client = node.client()
    for _ in range(4):  # the third one and those after it are written from a template
        job_id = client.add("mail", "body", "TTL", 3600)
        node.run(seconds=1)
        wall_s = node.host.wall_us() // 1_000_000
        assert 3597 <= on_disk(node, job_id).expire_at_s - wall_s <= 3601
        assert -2 <= on_disk(node, job_id).ctime // 1_000_000_000 - wall_s <= 0


def test_a_delay_continues_after_a_restart_with_the_corrected_clock() -> None:
    node = logging_node()
    job_id = node.client().add("mail", "body", "DELAY", 60, "TTL", 3600)
    set_clock(node, DAY_MS)
    client = back(node)
    node.run(seconds=50)
    assert client.take("mail") == []
    node.run(seconds=10)
    assert client.take("mail") == [job_id]


def test_no_timer_moves_when_the_clock_is_set() -> None:
    node = logging_node()
    client = node.client()
    short = client.add("mail", "body", "TTL", 20, "RETRY", 0, "REPLICATE", 1)
    delayed = client.add("other", "body", "DELAY", 10, "TTL", 3600)
    for step_ms in (DAY_MS, -2 * DAY_MS):
        set_clock(node, step_ms)
        assert client.show(short)["state"] == b"queued"
        assert client.show(delayed)["state"] == b"active"
    node.run(seconds=5)
    assert client.take("other") == [delayed]
    node.run(seconds=15)
    assert client.show(short) == {}


def test_no_job_is_gone_after_the_clock_was_set_back_and_corrected() -> None:
    node = logging_node()
    client = node.client()
    set_clock(node, -DAY_MS)
    job_id = client.add("mail", "body", "TTL", 3600)
    node.run(seconds=1)
    set_clock(node, DAY_MS)
    assert back(node).show(job_id)["state"] == b"active"


def test_a_file_that_is_loaded_again_has_the_times_of_the_node() -> None:
    node = logging_node()
    client = node.client()
    set_clock(node, DAY_MS)
    job_id = client.add("mail", "body", "TTL", 3600, "DELAY", 60)
    ctime = client.show(job_id)["ctime"]
    node.run(seconds=1)
    client.send("DEBUG", "LOADAOF")
    node.run(seconds=1)
    assert client.next_reply() == b"OK"
    assert client.show(job_id)["ctime"] == ctime
    assert 3590 <= ttl_of(client, job_id) <= 3600


def test_a_step_is_logged_counted_and_shown_and_a_small_change_is_not() -> None:
    node = logging_node()
    client = node.client()
    set_clock(node, 30_000)
    assert (shown(client, "clock_offset_ms"), shown(client, "clock_steps")) == (30_000, 0)
    set_clock(node, DAY_MS)
    assert (shown(client, "clock_offset_ms"), shown(client, "clock_steps")) == (DAY_MS + 30_000, 1)
    set_clock(node, -DAY_MS)
    assert (shown(client, "clock_offset_ms"), shown(client, "clock_steps")) == (30_000, 2)
    lines = [text for level, text in node.host.log_lines if level == "warning" and "wall clock was set" in text]
    assert [line.split()[5] for line in lines] == ["forward", "back"]
    assert "step_ms=86430000" in lines[0]


def test_dead_letters_return_on_a_node_that_started_before_its_clock_was_set() -> None:
    """Seed 1148: what it loaded from its file seemed to have arrived after the REDRIVE began."""
    node = logging_node()
    client = node.client()
    client.call("QCONF", "mail", "SET", "limit", 1)
    client.add("mail", "body", "RETRY", 60)
    (job_id,) = client.take("mail")
    client.call("NACK", job_id)
    node.crash()
    node.host.now_ms -= 3 * DAY_MS
    node.restart()
    node.run(seconds=70)
    client = node.client()
    assert client.call("QLEN", "mail.dead") == 1
    client.call("REDRIVE", "mail.dead")
    node.run(seconds=2)
    assert (client.call("QLEN", "mail.dead"), client.call("QLEN", "mail")) == (0, 1)
