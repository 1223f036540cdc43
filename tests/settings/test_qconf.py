"""QCONF on one node."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import cast

import pytest

from disqued.client import ResponseError
from disqued.core.cluster.entrykinds import SETTING
from disqued.core.host import disk
from disqued.settings.room import settings_of
from disqued.testing.local import LocalClient, LocalNode, Reply


def source(client: LocalClient, queue: str, setting: str) -> tuple[bytes, bytes]:
    """The value of a setting and the name it comes from, as QCONF GET shows them."""
    words = cast("list[bytes]", client.call("QCONF", queue, "GET"))
    rows = dict(zip(words[::3], zip(words[1::3], words[2::3], strict=True), strict=True))
    return rows[setting.encode()]


def error(reply: Reply) -> str:
    assert isinstance(reply, ResponseError), reply
    return str(reply)


def test_settings_are_set_shown_and_removed(client: LocalClient, local: LocalNode) -> None:
    assert client.call("QCONF", "mail:*", "SET", "retry", 30, "TTL", 3600) == b"OK"
    assert client.call("QCONF", "mail:eu", "SET", "retry", 10) == b"OK"
    assert source(client, "mail:eu", "retry") == (b"10", b"mail:eu")
    assert source(client, "mail:eu", "ttl") == (b"3600", b"mail:*")
    assert source(client, "jobs", "ttl") == (b"none", b"")
    node_id = local.node.state.view.node_id
    rows = cast("list[list[bytes]]", client.call("QCONF", "mail:*", "SHOW"))
    assert [row[:3] for row in rows] == [
        [b"mail:*", b"retry", b"30"],
        [b"mail:*", b"ttl", b"3600"],
        [b"mail:eu", b"retry", b"10"],
    ]
    assert {row[4] for row in rows} == {node_id}
    assert client.call("QCONF", "mail:eu", "UNSET", "retry", "ttl") == 1
    assert source(client, "mail:eu", "retry") == (b"30", b"mail:*")
    assert client.call("QCONF", "mail:*", "UNSET", "*") == 2
    assert client.call("QCONF", "*", "SHOW") == []
    assert client.call("QCONF", "mail:*", "UNSET", "*") == 0


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("q", "SET"), "syntax error"),
        (("q", "SET", "retry"), "syntax error"),
        (("q", "SET", "retry", "1", "ttl"), "syntax error"),
        (("q", "UNSET"), "syntax error"),
        (("q", "GET", "retry"), "syntax error"),
        (("q", "CHANGE"), "syntax error"),
        (("q", "SET", "color", "red"), "unknown setting 'color'"),
        (("q", "UNSET", "color"), "unknown setting 'color'"),
        (("q", "SET", "retry", "soon"), "retry must be 0 to 4294967295 seconds, or none, not 'soon'"),
        (("q", "SET", "ttl", "1", "retry", "so\r\non"), "not 'so  on'"),
        (("", "GET"), "1 to 1024 bytes"),
        (("x" * 1025, "SET", "retry", "1"), "1 to 1024 bytes"),
    ],
)
def test_wrong_requests_change_nothing(client: LocalClient, words: tuple[str, ...], part: str) -> None:
    assert part in error(client.call("QCONF", *words))
    assert client.call("QCONF", "*", "SHOW") == []


def test_settings_survive_a_restart_without_an_append_only_file(local: LocalNode) -> None:
    client = local.client()
    client.call("QCONF", "mail", "SET", "copy-to", 'a "b \x00c"', "ttl", 3600)
    client.call("QCONF", "mail", "UNSET", "ttl")
    local.restart()
    assert source(local.client(), "mail", "copy-to") == (b'a "b \x00c"', b"mail")
    assert source(local.client(), "mail", "ttl") == (b"none", b"")


def test_reply_waits_for_the_disk_and_other_clients_do_not(local: LocalNode, client: LocalClient) -> None:
    local.host.disk.hold(disk.REPLACE)
    client.send("QCONF", "mail", "SET", "ttl", 3600)
    other = local.client()
    assert client.silent
    assert source(other, "mail", "ttl") == (b"3600", b"mail")
    local.finish()
    local.run(milliseconds=10)
    assert client.next_reply() == b"OK"


def test_what_is_left_over_of_an_older_write_is_never_part_of_the_file(local: LocalNode, client: LocalClient) -> None:
    client.call("QCONF", "mail", "SET", "ttl", 60)
    whole = bytes(local.host.disk.files["queues.conf"])
    local.host.disk.hold(disk.OPEN)
    client.send("QCONF", "mail", "SET", "retry", 5)
    local.host.disk.put("temp-queues.conf", whole)
    local.host.disk.held.clear()
    local.finish()
    local.run(seconds=2)
    local.restart()
    assert local.client().call("QCONF", "mail", "GET") is not None
    assert bytes(local.host.disk.files["queues.conf"]).count(b"end") == 1


def test_what_an_interrupted_write_left_is_removed_when_the_node_starts(local: LocalNode, client: LocalClient) -> None:
    client.call("QCONF", "mail", "SET", "ttl", 60)
    local.host.disk.put("temp-queues.conf", b"half of a fi")
    local.restart()
    assert "temp-queues.conf" not in local.host.disk.files
    assert source(local.client(), "mail", "ttl")[0] == b"60"


def test_changes_during_a_write_are_appended_once_when_it_ends(local: LocalNode) -> None:
    """Seed 492: the first step of the next write that took time was started twice, and it can be the append."""
    files = local.host.disk
    files.hold(disk.REPLACE)
    for name in ("one", "two"):
        local.client().send("QCONF", name, "SET", "ttl", 60)
    files.held = {disk.APPEND}
    for _ in range(4):
        local.finish()
    files.held.clear()
    local.finish()
    local.run(seconds=2)
    assert bytes(files.files["queues.conf"]).count(b"end") == 1
    local.restart()
    assert source(local.client(), "two", "ttl") == (b"60", b"two")


def test_disk_that_fails_is_reported_and_written_later(local: LocalNode, client: LocalClient) -> None:
    local.host.disk.fail(disk.REPLACE)
    reply = error(client.call("QCONF", "mail", "SET", "ttl", 3600))
    assert "in effect on all nodes, but not saved on this one" in reply
    local.host.disk.repair()
    local.run(seconds=2)
    local.restart()
    assert source(local.client(), "mail", "ttl") == (b"3600", b"mail")


def test_no_more_than_ten_thousand_settings_can_be_set(local: LocalNode, client: LocalClient) -> None:
    local.host.disk.hold(disk.REPLACE)  # one file for all
    words = ("retry", 1, "ttl", 2, "replicate", 1, "priority", 1, "retain", 1)
    for number in range(2000):
        client.send("QCONF", f"q{number}", "SET", *words)
        client.disconnect()
        client = local.client()
    assert "10000 settings of 10000" in error(client.call("QCONF", "more", "SET", "retry", 1))
    client.send("QCONF", "q0", "SET", "retry", 7)  # replaces one
    assert client.silent
    assert source(local.client(), "q0", "retry") == (b"7", b"q0")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda text: text[:-10], "incomplete"),
        (lambda text: text.replace(b'"30"', b'"31"'), "wrong checksum"),
        (lambda text: text.replace(b"disqued-settings 1", b"disqued-settings 9"), "line 1"),
        (lambda text: text.replace(b"setting ", b"option "), "line 2: 'option' is no kind of entry"),
        (lambda text: text[:0], "line 1"),
    ],
)
def test_damaged_file_stops_the_start_with_a_reason(
    local: LocalNode, damage: Callable[[bytes], bytes], why: str
) -> None:
    local.client().call("QCONF", "mail", "SET", "retry", 30)
    files = local.host.disk.files
    local.host.disk.put("queues.conf", damage(bytes(files["queues.conf"])))
    local.restart()
    assert local.host.ended is not None
    assert "corrupted settings file queues.conf" in local.host.ended
    assert why in local.host.ended


def test_changed_settings_reach_all_queues_in_slices(local: LocalNode, client: LocalClient) -> None:
    for number in range(1200):
        client.call("ADDJOB", f"q{number}", "body", 0, "TTL", 1000)
    client.call("QCONF", "q*", "SET", "pause", "out")
    client.call("QCONF", "q1199", "SET", "pause", "none")
    local.run(milliseconds=10)
    queues = [local.node.state.lifecycle.queues.get(b"q%d" % number) for number in range(1200)]
    assert [queue.pause for queue in queues if queue is not None] == [2] * 1199 + [0]
    client.call("QCONF", "q*", "UNSET", "*")
    local.run(milliseconds=10)
    assert {queue.pause for queue in queues if queue is not None} == {0}
    assert {queue.settings is None for queue in queues[:-1] if queue is not None} == {True}


def test_reset_of_the_cluster_forgets_the_settings(local: LocalNode, client: LocalClient) -> None:
    client.call("QCONF", "q*", "SET", "retry", 1)
    client.call("CLUSTER", "RESET")
    assert client.call("QCONF", "*", "SHOW") == []
    assert source(client, "q", "retry") == (b"none", b"")
    local.run(seconds=1)
    local.restart()
    assert local.client().call("QCONF", "*", "SHOW") == []


@pytest.mark.parametrize("pattern", [b"*" + b"q" * 1000, b"[abcdefgh]" * 90])
def test_the_memory_of_long_patterns_counts(local: LocalNode, pattern: bytes) -> None:
    room = settings_of(local.node.state)
    counted = room.buffered_bytes()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(50):
            room.change(SETTING, pattern + b"%d" % number, {b"limit": b"3"})
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < room.buffered_bytes() - counted
    for number in range(50):
        room.change(SETTING, pattern + b"%d" % number, {b"limit": None})
    assert local.node.state.lifecycle.queues.index.pattern_bytes == 0
