"""A room that is added by one line works like those of the broker: in the simulator and in a real server."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from disqued.client import ResponseError
from disqued.config import Config
from disqued.core.host.disk import APPEND
from disqued.core.runtime.subsystem import Subsystem
from disqued.node import ROOMS, Rooms
from disqued.persistence.check import fault_of
from disqued.persistence.parse import Damage, Entry
from disqued.persistence.reader import EntryReader
from disqued.resp.writer import request
from disqued.testing.cluster import Cluster, Member
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalNode
from disqued.testing.processes import ServerProcess, form_cluster, wait_until
from metrics.pages import scrape
from rooms.notes import FEATURE, FILE, MAX_NOTES, NOTES, notes_of

WITH_NOTES: Final = ROOMS.and_also(NOTES)
SERVER: Final = (sys.executable, str(Path(__file__).parent / "notes_server.py"))
TESTS: Final = Path(__file__).parents[1]
NOTE: Final = request([b"NOTE", b"colour", b"green"])
"""A record of the room."""


def config() -> Config:
    return Config(WITH_NOTES.directives)


@pytest.fixture
def local() -> LocalNode:
    return LocalNode(rooms=WITH_NOTES)


def notes_at(member: Member) -> dict[bytes, bytes]:
    return notes_of(member.node.state).notes


def test_command_and_message_reach_all_nodes_that_have_the_room() -> None:
    cluster = Cluster(2, rooms=WITH_NOTES, config=config)
    cluster.run(seconds=2)
    first, second = cluster.members
    assert first.admin.call("NOTE", "colour", "green") == b"OK"
    cluster.run(milliseconds=10)
    assert notes_at(second) == {b"colour": b"green"}
    assert second.admin.call("note", "colour") == b"green"
    assert [sent.kind for sent in cluster.sent("NOTE")] == ["NOTE"]


def test_message_is_not_sent_to_nodes_without_the_room() -> None:
    cluster = Cluster(1, rooms=WITH_NOTES, config=config, meet=False)
    plain = Member(2, cluster.network, Config(), None, cluster.hooks)
    cluster.members.append(plain)
    cluster.meet()
    cluster.run(seconds=2)
    first = cluster.members[0]
    assert first.admin.call("NOTE", "colour", "green") == b"OK"
    assert cluster.sent("NOTE") == []
    assert [peer.features & FEATURE for peer in plain.node.state.view.peers.values()] == [FEATURE]
    assert isinstance(plain.admin.call("NOTE", "colour"), ResponseError)


def test_counter_is_in_info_and_in_the_metrics_and_is_reset(local: LocalNode) -> None:
    client = local.client()
    client.call("NOTE", "colour", "green")
    assert client.call("INFO", "notes") == b"# Notes\r\nnotes:1\r\nnotes_taken:1\r\n"
    assert scrape(local).value("disque_notes_taken_total") == 1
    client.call("CONFIG", "RESETSTAT")
    assert client.call("INFO", "notes") == b"# Notes\r\nnotes:1\r\nnotes_taken:0\r\n"


def test_directive_is_shown_changed_refused_and_followed(local: LocalNode) -> None:
    client = local.client()
    assert client.call("CONFIG", "GET", "notes-max") == [b"notes-max", b"3"]
    assert client.call("CONFIG", "SET", "notes-max", 1) == b"OK"
    assert MAX_NOTES.of(local.config) == 1
    client.call("NOTE", "colour", "green")
    assert str(client.call("NOTE", "size", "small")) == "ERR too many notes, see notes-max"
    assert str(client.call("CONFIG", "SET", "notes-max", 0)) == "ERR 1 notes are kept, notes-max cannot be 0"


def test_command_is_in_the_table_of_commands(local: LocalNode) -> None:
    assert local.client().call("COMMAND", "INFO", "note") == [[b"note", -2, [b"write", b"fast"], 0, 0, 0]]


def test_disk_work_is_done_and_its_owner_is_told(local: LocalNode) -> None:
    local.host.disk.delay_ms[APPEND] = 5
    local.client().call("NOTE", "colour", "green")
    room = notes_of(local.node.state)
    assert room.file.written == 0
    local.run(milliseconds=20)
    assert room.file.written == 1
    assert bytes(local.host.disk.files[FILE]) == b"colour=green\n"


def test_room_hears_that_changes_are_on_disk() -> None:
    settings = config()
    settings.appendonly = True
    local = LocalNode(settings, rooms=WITH_NOTES)
    local.client().add("mail")
    assert notes_of(local.node.state).times_persisted == 1


def logging_node(*records: bytes) -> LocalNode:
    """A node with the room, whose append-only file has these records."""
    settings = config()
    settings.appendonly = True
    host = FakeHost()
    host.disk.put(settings.appendfilename, b"".join(records))
    return LocalNode(settings, host, rooms=WITH_NOTES)


def read(data: bytes, rooms: Rooms = WITH_NOTES) -> list[Entry | Damage]:
    """What a reader that knows these rooms finds."""
    reader = EntryReader(rooms.record_table)
    reader.feed(data)
    reader.end()
    found: list[Entry | Damage] = []
    while (item := reader.next()) is not None:
        found.append(item)
    return found


def logged(local: LocalNode) -> list[list[bytes]]:
    """The records in the append-only file of a node."""
    data = bytes(local.host.disk.files[local.config.appendfilename])
    return [item.words for item in read(data) if isinstance(item, Entry)]


def test_record_is_logged_and_loaded_after_a_crash() -> None:
    local = logging_node()
    client = local.client()
    client.call("NOTE", "colour", "green")
    client.call("NOTE", "colour", "blue")
    assert logged(local) == [[b"NOTE", b"colour", b"green"], [b"NOTE", b"colour", b"blue"]]
    local.restart()
    assert notes_of(local.node.state).notes == {b"colour": b"blue"}
    assert len(logged(local)) == 2


def test_rewritten_file_has_the_current_records_of_all_rooms() -> None:
    local = logging_node()
    client = local.client()
    client.call("PAUSE", "mail", "in")
    client.call("NOTE", "colour", "green")
    client.call("NOTE", "colour", "blue")
    client.add("print")
    client.call("BGREWRITEAOF")
    local.run(seconds=2)
    pause, note, job = logged(local)
    assert pause == [b"PAUSE", b"mail", b"in"]
    assert note == [b"NOTE", b"colour", b"blue"]
    assert job[0] == b"LOADJOB"
    local.restart()
    assert notes_of(local.node.state).notes == {b"colour": b"blue"}


def test_record_is_found_behind_damage() -> None:
    data = request([b"DELJOB", b"D-"]) + NOTE
    assert [type(item) for item in read(data)] == [Damage, Entry]
    assert [type(item) for item in read(data, ROOMS)] == [Damage]


def test_record_with_wrong_words_is_damage() -> None:
    record = request([b"NOTE", b"", b"green"])
    (entry,) = read(record)
    fault = fault_of(entry)
    assert fault is not None
    assert fault.why == "NOTE without a key"
    (damage,) = read(request([b"NOTE", b"colour"]))
    assert isinstance(damage, Damage)


def test_record_of_a_missing_room_is_reported() -> None:
    (entry,) = read(NOTE, ROOMS)
    fault = fault_of(entry)
    assert fault is not None
    assert fault.why == "NOTE is not a record of an append-only file"


def test_node_does_not_start_with_a_damaged_record() -> None:
    local = logging_node(NOTE, request([b"NOTE", b"", b"green"]))
    ended = local.host.ended or ""
    assert ended.startswith("failed: Bad file format")
    assert "NOTE without a key" in ended


def test_record_kinds_have_distinct_names() -> None:
    with pytest.raises(ValueError, match="record NOTE: the name is already used"):
        WITH_NOTES.and_also(Subsystem("again", records=NOTES.records))


def test_servers_with_the_room_form_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *sys.path]))
    with ExitStack() as running:
        servers = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            process = ServerProcess(tmp_path / name, "--appendonly", "yes", "--notes-max", "2", program=SERVER)
            servers.append(running.enter_context(process))
        form_cluster(servers)
        first, second = servers
        assert first.ask("NOTE size small") == "OK"
        assert "ERR 1 notes are kept" in first.ask("CONFIG SET notes-max 0")
        wait_until(lambda: first.ask("NOTE colour green") == "OK" and second.ask("NOTE colour") == "green", "note", str)
        assert first.info("notes")["notes"] == "2"
        assert int(first.info("notes")["notes_taken"]) >= 1
        wait_until(lambda: "colour=green\n" in (tmp_path / "two" / FILE).read_text(), "file", str)
