"""Settings in a cluster: they are the same on all nodes."""

from __future__ import annotations

from typing import cast

import pytest

from disqued.bus import kinds
from disqued.bus.extension import NOBODY, extension
from disqued.settings.entries import Entry, make
from disqued.settings.room import settings_of
from disqued.settings.sharing import FEATURE_SETTINGS
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalNode
from membership.stories import ScriptedNode

DAY_MS = 86_400_000


def shown(member: Member) -> list[list[bytes]]:
    """Name, setting and value of all settings that a member has."""
    return [row[:3] for row in cast("list[list[bytes]]", member.admin.call("QCONF", "*", "SHOW"))]


def set_one(member: Member, name: str, setting: str, value: object) -> None:
    assert member.admin.call("QCONF", name, "SET", setting, str(value)) == b"OK"


def agree(cluster: Cluster) -> bool:
    """Whether all members have the same set, removals included."""
    return len({settings_of(member.node.state).entries.digest for member in cluster.members}) == 1


def test_change_reaches_all_nodes_at_once(cluster: Cluster) -> None:
    first, second, third = cluster.members
    set_one(first, "mail:*", "ttl", 60)
    cluster.run(milliseconds=5)
    assert shown(second) == shown(third) == [[b"mail:*", b"ttl", b"60"]]
    second.admin.call("QCONF", "mail:*", "UNSET", "ttl")
    cluster.run(milliseconds=5)
    assert [shown(member) for member in cluster.members] == [[], [], []]


def test_nodes_without_settings_send_nothing_about_them(cluster: Cluster) -> None:
    cluster.run(seconds=30)
    assert not cluster.sent("SETTINGS")
    assert not cluster.sent("SETTINGSDIGEST")


def test_equal_nodes_exchange_only_digests(cluster: Cluster) -> None:
    set_one(cluster.members[0], "mail", "ttl", 60)
    cluster.run(seconds=1)
    cluster.forget_sent()
    cluster.run(seconds=60)
    assert not cluster.sent("SETTINGS")
    assert cluster.sent("SETTINGSDIGEST")


def test_changes_on_both_sides_of_a_partition_are_equal_five_seconds_after_healing(cluster: Cluster) -> None:
    first, second, third = cluster.members
    set_one(first, "mail", "ttl", 1)
    set_one(first, "mail", "retry", 9)
    cluster.run(seconds=1)
    cluster.partition([first], [second, third])
    cluster.run(seconds=60)
    set_one(first, "mail", "ttl", 60)
    cluster.run(seconds=1)
    set_one(third, "mail", "ttl", 61)
    set_one(first, "jobs", "limit", 5)
    third.admin.call("QCONF", "mail", "UNSET", "retry")
    cluster.heal()
    cluster.until(cluster.is_whole)
    cluster.run(seconds=5)
    expected = [[b"jobs", b"limit", b"5"], [b"mail", b"ttl", b"61"]]
    assert [shown(member) for member in cluster.members] == [expected] * 3
    assert agree(cluster)


def test_later_change_wins_in_whatever_order_changes_arrive(pair: Cluster) -> None:
    first, second = pair.members
    set_one(first, "mail", "ttl", 1)
    pair.run(milliseconds=5)
    old = settings_of(second.node.state).entries.all()
    set_one(first, "mail", "ttl", 2)
    pair.run(milliseconds=5)
    link = first.node.state.view.peers[second.id].link
    assert link is not None
    peer = second.node.state.view.peers[first.id]
    settings_of(second.node.state).receive(peer, old)
    assert shown(second) == [[b"mail", b"ttl", b"2"]]


def test_node_with_a_slow_clock_can_still_change_a_setting(pair: Cluster) -> None:
    first, second = pair.members
    second.skew_ms = -3_600_000
    second.jump()
    pair.until(pair.is_whole)
    pair.run(seconds=1)
    set_one(first, "mail", "ttl", 1)
    pair.run(milliseconds=5)
    set_one(second, "mail", "ttl", 2)
    pair.run(milliseconds=5)
    assert shown(first) == shown(second) == [[b"mail", b"ttl", b"2"]]


@pytest.mark.slow
def test_node_that_was_away_does_not_bring_back_a_removed_setting(cluster: Cluster) -> None:
    third = cluster.members[2]
    set_one(third, "mail", "ttl", 1)
    cluster.run(seconds=1)
    third.crash()
    cluster.run(seconds=5)
    cluster.members[0].admin.call("QCONF", "mail", "UNSET", "*")
    cluster.run(seconds=3600)
    third.restart()
    assert shown(third) == [[b"mail", b"ttl", b"1"]]
    cluster.until(cluster.is_whole)
    cluster.run(seconds=5)
    assert [shown(member) for member in cluster.members] == [[], [], []]


def test_node_that_joins_later_follows_the_settings(pair: Cluster) -> None:
    first, _ = pair.members
    set_one(first, "mail", "pause", "in")
    late = pair.add()
    first.admin.call("CLUSTER", "MEET", late.ip.decode(), 7711)
    pair.until(pair.is_whole)
    pair.run(seconds=5)
    assert shown(late) == [[b"mail", b"pause", b"in"]]


def test_restarted_nodes_without_files_get_the_settings_from_the_others(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    set_one(first, "mail", "ttl", 60)
    cluster.run(seconds=1)
    second.restart(keep_disk=False)
    cluster.until(cluster.is_whole)
    cluster.run(seconds=5)
    assert shown(second) == [[b"mail", b"ttl", b"60"]]


def test_large_sets_travel_in_several_frames(pair: Cluster) -> None:
    first, second = pair.members
    second.crash()
    for number in range(2000):
        settings_of(first.node.state).change(1, b"queue:%d" % number, {b"dead": b"x" * 100})
    pair.forget_sent()
    second.restart()
    pair.until(pair.is_whole)
    pair.run(seconds=5)
    frames = pair.sent("SETTINGS", by=first)
    assert 4 < len(frames) < 20
    assert agree(pair)


def test_removals_are_forgotten_after_a_week_on_all_nodes(cluster: Cluster) -> None:
    first = cluster.members[0]
    set_one(first, "mail", "ttl", 1)
    first.admin.call("QCONF", "mail", "UNSET", "*")
    cluster.run(seconds=1)
    assert [len(settings_of(member.node.state).entries) for member in cluster.members] == [1, 1, 1]
    for member in cluster.members:
        room = settings_of(member.node.state)
        room.entries.expire(int(member.now_ms) + 8 * DAY_MS)
    assert [len(settings_of(member.node.state).entries) for member in cluster.members] == [0, 0, 0]
    assert agree(cluster)


class Hostile:
    """A node with the feature that sends what it likes."""

    def __init__(self) -> None:
        self.local = LocalNode()
        extended = extension(FEATURE_SETTINGS, 17711, NOBODY, b"only-run")
        self.node = ScriptedNode(self.local, b"10.0.0.9", extension=extended)
        self.node.join()
        self.local.client().call("QCONF", "mine", "SET", "ttl", 1)

    def send(self, payload: bytes, kind: int = kinds.SETTINGS) -> None:
        self.node.deliver(self.node.link, self.node.writer.other(kind, payload))

    def entry(self, name: bytes, key: bytes = b"ttl", value: bytes = b"60", ahead_ms: int = 0) -> Entry:
        return make(1, name, key, value, int(self.local.now_ms) + ahead_ms, self.node.id)

    @property
    def rows(self) -> list[list[bytes]]:
        return [row[:3] for row in cast("list[list[bytes]]", self.local.client().call("QCONF", "*", "SHOW"))]

    @property
    def warnings(self) -> list[str]:
        return [text for level, text in self.local.host.log_lines if level == "warning" and "etting" in text]


MINE = [b"mine", b"ttl", b"1"]


@pytest.mark.parametrize("cut", [1, 40, 56, 60])
def test_nothing_is_taken_from_a_malformed_frame(cut: int) -> None:
    hostile = Hostile()
    good = hostile.entry(b"good").wire
    hostile.send(good + good[:cut])
    hostile.send(good[:1] + b"\x07" + good[2:])
    hostile.send(b"short", kinds.SETTINGSDIGEST)
    assert hostile.rows == [MINE]
    assert len(hostile.warnings) == 3
    assert hostile.node.link is not None
    assert not hostile.node.link.closed
    hostile.send(good)
    assert hostile.rows == [[b"good", b"ttl", b"60"], MINE]


def test_unacceptable_entries_are_refused_and_the_others_taken() -> None:
    hostile = Hostile()
    bad = [
        hostile.entry(b""),
        hostile.entry(b"x" * 1025),
        hostile.entry(b"q", b"k" * 256),
        hostile.entry(b"q", b"dead", b"v" * 1025),
        hostile.entry(b"q", ahead_ms=400 * DAY_MS),
        make(1, b"q", b"ttl", b"1", int(hostile.local.now_ms), b"\xff" * 40),
        make(0, b"q", b"ttl", b"1", int(hostile.local.now_ms), hostile.node.id),
    ]
    for entry in bad:
        hostile.send(entry.wire + hostile.entry(b"good").wire)
    assert hostile.rows == [[b"good", b"ttl", b"60"], MINE]
    assert hostile.warnings
    assert b"settings_refused:7" in hostile.local.client().raw("INFO", "settings")
    hostile.local.run(seconds=1)
    hostile.local.restart()
    assert len(settings_of(hostile.local.node.state).entries) == 2


def test_values_and_settings_of_another_release_are_kept_without_effect() -> None:
    hostile = Hostile()
    hostile.send(hostile.entry(b"q", b"ttl", b"forever").wire + hostile.entry(b"q", b"color", b"red").wire)
    hostile.send(make(200, b"q", b"key", b"value", int(hostile.local.now_ms), hostile.node.id).wire)
    client = hostile.local.client()
    assert [b"q", b"color", b"red"] in hostile.rows
    assert cast("list[bytes]", client.call("QCONF", "q", "GET"))[3:6] == [b"ttl", b"none", b""]
    assert len(hostile.warnings) == 1
    hostile.local.run(seconds=1)
    hostile.local.restart()
    assert len(settings_of(hostile.local.node.state).entries) == 4


def test_node_whose_digest_never_matches_is_sent_the_set_less_and_less_often() -> None:
    hostile = Hostile()
    hostile.send(b"\x01" * 8, kinds.SETTINGSDIGEST)
    hostile.local.run(seconds=8)
    state = hostile.local.node.state
    assert 1 <= state.traffic[kinds.SETTINGS].sent.value <= 3


def test_original_is_not_sent_settings() -> None:
    local = LocalNode()
    original = ScriptedNode(local, b"10.0.0.9")
    original.join()
    local.client().call("QCONF", "q", "SET", "ttl", 60)
    local.run(milliseconds=300)
    original.collect()
    link = original.dialed_link
    assert link is not None
    assert kinds.SETTINGSDIGEST not in link.told
    assert local.node.state.traffic[kinds.SETTINGS].sent.value == 0
