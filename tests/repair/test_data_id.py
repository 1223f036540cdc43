"""The data ID of a node: new when it starts without jobs, kept beside its file, and announced to the others."""

from __future__ import annotations

import errno

import pytest

from disqued.bus import kinds
from disqued.client import ResponseError
from disqued.config import Config
from disqued.core.host import disk
from disqued.repair.room import repair_of
from disqued.testing.cluster import Cluster, Member
from repair.losing import add, copies, five, rebuilt
from support.fixtures import settled
from support.stories import tell

FILE = "disque.aof.data-id"


def with_file() -> Config:
    config = Config()
    config.appendonly = True
    return config


@pytest.fixture
def logged() -> Cluster:
    """Three nodes with append-only files."""
    cluster = Cluster(3, config=with_file)
    cluster.run(seconds=3)
    return cluster


def data_id(member: Member) -> bytes:
    return repair_of(member.node.state).data.data_id


def on_disk(member: Member) -> str:
    return member.host.disk.files[FILE].decode() if FILE in member.host.disk.files else ""


def known_by(member: Member, other: Member) -> bytes:
    return member.node.state.view.peers[other.id].data_id


def test_every_node_knows_the_data_ids_of_the_others() -> None:
    cluster = five()
    for member in cluster.members:
        assert len(data_id(member)) == 20
        others = [other for other in cluster.members if other is not member]
        assert [known_by(member, other) for other in others] == [data_id(other) for other in others]


def test_a_node_without_a_file_has_a_new_data_id_after_a_restart() -> None:
    cluster = settled(2)
    one, other = cluster.members
    before = data_id(other)
    other.restart()
    cluster.run(seconds=2)
    assert data_id(other) != before
    assert known_by(one, other) == data_id(other)


def test_a_node_with_jobs_in_its_file_keeps_its_data_id(logged: Cluster) -> None:
    one, other, _ = logged.members
    add(logged, one, 5, "REPLICATE", 3)
    before = data_id(other)
    assert on_disk(other) == before.hex() + "\n"
    other.restart()
    logged.run(seconds=3)
    assert data_id(other) == before == known_by(one, other)


@pytest.mark.parametrize("appendonly", ["no", "yes"])
def test_a_controlled_shutdown_keeps_the_jobs_and_the_data_id(appendonly: str) -> None:
    cluster = settled(3)
    one, other, _ = cluster.members
    other.admin.call("CONFIG", "SET", "appendonly", appendonly)
    other.admin.call("CONFIG", "SET", "aof-restart-marker", "yes")
    cluster.run(seconds=2)
    jobs = add(cluster, one, 5, "REPLICATE", 3)
    before = data_id(other)
    other.admin.send("SHUTDOWN", "REWRITE-AOF")
    cluster.until(lambda: other.host.ended == "shutdown")
    other.restart()
    cluster.run(seconds=3)
    assert data_id(other) == before == known_by(one, other)
    assert copies(cluster, jobs) == {3}
    assert rebuilt(cluster) == {}


@pytest.mark.parametrize("lost", [("disque.aof",), ("disque.aof", FILE), (FILE,)], ids=["jobs", "both", "data-id"])
def test_a_node_that_lost_a_file_has_a_new_data_id(logged: Cluster, lost: tuple[str, ...]) -> None:
    one, other, _ = logged.members
    add(logged, one, 5, "REPLICATE", 3)
    before = data_id(other)
    other.crash()
    for name in lost:
        other.host.disk.put(name, b"")
    other.restart()
    assert data_id(other) != before
    assert on_disk(other) == data_id(other).hex() + "\n"


def test_a_node_whose_file_is_damaged_has_a_new_data_id(logged: Cluster) -> None:
    one, other, _ = logged.members
    add(logged, one, 5, "REPLICATE", 3)
    before = data_id(other)
    other.crash()
    other.host.disk.put(FILE, b"5ca1ab1e\n")
    other.restart()
    assert data_id(other) != before


def test_the_file_follows_appendonly(logged: Cluster) -> None:
    member = logged.members[0]
    before = data_id(member)
    assert member.admin.call("CONFIG", "SET", "appendonly", "no") == b"OK"
    logged.run(seconds=2)
    assert on_disk(member) == ""
    assert member.admin.call("CONFIG", "SET", "appendonly", "yes") == b"OK"
    logged.run(seconds=2)
    assert on_disk(member) == before.hex() + "\n"
    assert data_id(member) == before


def test_free_memory_is_announced_when_it_changed_much() -> None:
    cluster = settled(2)
    one, other = cluster.members
    assert other.admin.call("CONFIG", "SET", "maxmemory", "100mb") == b"OK"
    cluster.run(seconds=3)
    peer = one.node.state.view.peers[other.id]
    assert 90_000_000 < peer.free_bytes < 105_000_000
    cluster.forget_sent()
    for _ in range(5):
        other.admin.add("mail", b"x" * 1_000_000, "REPLICATE", 1)
    cluster.run(seconds=2)
    assert peer.free_bytes > 95_000_000
    for _ in range(20):
        other.admin.add("mail", b"x" * 1_000_000, "REPLICATE", 1)
    cluster.run(seconds=2)
    assert peer.free_bytes < 85_000_000


@pytest.mark.parametrize(
    "payload", [b"", b"x" * 27, b"x" * 20 + b"\xff" * 8, b"x" * 29], ids=["none", "short", "much", "long"]
)
def test_malformed_announcements_are_ignored(payload: bytes) -> None:
    cluster = settled(2)
    one, other = cluster.members
    before = known_by(one, other)
    tell(one, other.node.state.bus.other(kinds.DATAID, payload))
    assert known_by(one, other) == before


def test_nodes_of_the_original_get_no_announcement() -> None:
    cluster = Cluster(2)
    one, other = cluster.members
    cluster.run(seconds=2)
    one.node.state.view.peers[other.id].features = 0
    cluster.forget_sent()
    one.node.state.view.data = b"y" * 28
    cluster.run(milliseconds=300)
    assert not cluster.sent("DATAID", to=other)


def test_a_shutdown_that_could_not_write_the_file_leaves_nothing_beside_it(logged: Cluster) -> None:
    """Seed 4042, "logged all": the file was as it should be, so the write that had failed was not repeated."""
    first = logged.members[0]
    add(logged, first, 5, "REPLICATE", 3)
    before = on_disk(first)
    files = first.host.disk
    files.delay_ms = {disk.REMOVE: 5}  # the shutdown first removes what an earlier one left, and the data ID is written
    files.fail(disk.APPEND, error=errno.EIO)
    assert isinstance(first.shut_down("REWRITE-AOF"), ResponseError)
    assert f"temp-{FILE}" in files.files
    files.repair()
    logged.run(seconds=3)
    assert [name for name in files.files if name.startswith("temp-")] == []
    assert on_disk(first) == before


def test_what_an_interrupted_write_left_is_removed_when_the_node_starts(logged: Cluster) -> None:
    first = logged.members[0]
    add(logged, first, 5, "REPLICATE", 3)
    before = on_disk(first)
    first.host.disk.put(f"temp-{FILE}", b"half of an ol")
    first.crash()
    first.restart()
    logged.run(seconds=3)
    assert f"temp-{FILE}" not in first.host.disk.files
    assert on_disk(first) == before
