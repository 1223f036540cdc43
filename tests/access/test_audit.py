"""The audit log: who changed what, as lines of JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from access.conftest import LogIn
from access.test_secrets import MISTAKES, SECRET
from disqued.config import Config
from disqued.core.host import disk
from disqued.core.runtime.auditlog import GATHERED_BYTES
from disqued.errors import ReplyError
from disqued.testing.host import FakeHost
from disqued.testing.local import NODE_ID, LocalClient, LocalNode

FILE = "audit.log"


@pytest.fixture
def local() -> LocalNode:
    """A node with an audit log."""
    config = Config()
    config.assign("audit_log_file", FILE)
    config.assign("protected_mode", False)
    return LocalNode(config)


def records(local: LocalNode, name: str = FILE) -> list[dict[str, Any]]:
    """All records of a file, the oldest first."""
    return [json.loads(line) for line in local.host.disk.files[name].splitlines()]


def commands(local: LocalNode) -> list[str]:
    """The commands of all records."""
    return [" ".join(record["command"]) for record in records(local)]


def test_the_file_in_use_can_be_set_again(local: LocalNode) -> None:
    client = local.client()
    for _ in range(2):
        assert client.call("CONFIG", "SET", "audit-log-file", FILE) == b"OK"
        assert client.call("CONFIG", "SET", "timeout", 5) == b"OK"
    assert commands(local)[-4:] == [f"CONFIG SET audit-log-file {FILE}", "CONFIG SET timeout 5"] * 2


@pytest.mark.parametrize("name", ["disque.aof", "./disque.aof", "{dir}/disque.aof", "x/../nodes.conf", "/run//users"])
def test_the_audit_log_is_not_appended_to_another_file_of_the_node(local: LocalNode, name: str) -> None:
    local.node.state.config.assign("aclfile", "/run/users")
    name = name.format(dir=local.host.working_directory())
    reply = local.client().raw("CONFIG", "SET", "audit-log-file", name)
    assert reply.startswith(b"-ERR audit-log-file '%b' is the name of another file of this node" % name.encode())
    assert list(local.host.disk.files) == [FILE]


@pytest.mark.parametrize("words", MISTAKES)
def test_a_password_in_a_mistyped_request_is_not_recorded(local: LocalNode, words: tuple[str, ...]) -> None:
    local.client().raw(*words)
    assert SECRET.encode() not in local.host.disk.files[FILE]


def test_a_record_says_who_changed_what_and_when(local: LocalNode, log_in: LogIn) -> None:
    ops = log_in("ops", "~* +config")
    ops.session.tls = True
    local.host.now_ms += 1500
    ops.call("CONFIG", "SET", "timeout", 77)
    assert records(local)[-1] == {
        "time": "2027-01-15T08:00:01.500Z",
        "node": NODE_ID.decode(),
        "user": "ops",
        "client": ops.session.address.decode(),
        "tls": True,
        "command": ["CONFIG", "SET", "timeout", "77"],
        "outcome": "ok",
    }


CHANGES = (
    ("CONFIG", "SET", "timeout", "77"),
    ("config", "resetstat"),
    ("ACL", "SETUSER", "mail", "on"),
    ("ACL", "DELUSER", "mail"),
    ("ACL", "LOG", "RESET"),
    ("CLUSTER", "MEET", "10.0.0.9", "7711"),
    ("CLUSTER", "LEAVING", "no"),
    ("CLUSTER", "RESET"),
    ("CLIENT", "KILL", "ID", "999"),
    ("CLIENT", "PAUSE", "0"),
    ("CLIENT", "UNPAUSE"),
    ("PAUSE", "mail", "in"),
    ("pause", "mail", "state", "bcast"),
    ("CLUSTER", "SAVECONFIG"),
    ("SLOWLOG", "RESET"),
    ("latency", "reset"),
    ("DEBUG", "FLUSHALL"),
    ("MONITOR",),
    ("BGREWRITEAOF",),
    ("ENQUEUE", "D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1"),
    ("DEQUEUE", "D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1"),
    ("DELJOB", "D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1"),
)


@pytest.mark.parametrize("words", CHANGES)
def test_changes_are_recorded(local: LocalNode, words: tuple[str, ...]) -> None:
    local.client().raw(*words)
    assert commands(local) == [" ".join(words)]
    assert records(local)[0]["outcome"] == "ok"


@pytest.mark.parametrize(
    "line",
    [
        *("PING", "INFO", "CONFIG GET *", "ACL LIST", "ACL LOG", "CLUSTER NODES", "CLUSTER LEAVING"),
        *("CLUSTER LEAVING STATUS", "CLIENT LIST", "CLIENT SETNAME x", "PAUSE mail state", "ADDJOB mail x 0"),
        *("GETJOB NOHANG FROM mail", "ACKJOB D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1", "CONFIG", "NOSUCH"),
    ],
)
def test_requests_that_change_nothing_or_are_work_of_clients_are_not_recorded(local: LocalNode, line: str) -> None:
    local.client().raw(*line.split())
    assert records(local) == []


def test_without_a_file_nothing_is_recorded() -> None:
    local = LocalNode()
    local.client().call("CONFIG", "SET", "timeout", 77)
    assert FILE not in local.host.disk.files


def test_a_refused_change_is_recorded_with_its_error(local: LocalNode, log_in: LogIn) -> None:
    mail = log_in("mail", "~* +@producer")
    mail.raw("CONFIG", "SET", "timeout", 0)
    local.client().raw("CONFIG", "SET", "timeout", "x")
    assert [(record["user"], record["outcome"]) for record in records(local)[-2:]] == [
        ("mail", "NOPERM User mail has no permissions to run the 'config|set' command"),
        ("default", "ERR Invalid argument 'x' for CONFIG SET 'timeout'"),
    ]


def test_clients_without_a_login_fill_no_disk(local: LocalNode) -> None:
    local.client().call("CONFIG", "SET", "requirepass", "secret")
    assert local.client().raw("CONFIG", "SET", "timeout", 0).startswith(b"-NOAUTH")
    assert commands(local) == ["CONFIG SET requirepass (redacted)"]


def test_no_record_shows_a_password(local: LocalNode, log_in: LogIn) -> None:
    log_in("mail", "+@producer")
    local.client().raw("AUTH", "mail", "wrong-hunter2")
    local.client().raw("CONFIG", "SET", "requirepass", "hunter2")
    text = bytes(local.host.disk.files[FILE])
    assert b"hunter2" not in text
    assert b">secret" not in text
    assert commands(local)[0] == "ACL SETUSER mail on (redacted) +@producer"


def test_long_requests_are_shortened_and_any_bytes_are_valid_json(local: LocalNode) -> None:
    local.client().raw("PAUSE", b'\xff\n"' + b"x" * 1000, "in")
    local.client().raw("ACL", "SETUSER", "mail", *[f"~q{number}" for number in range(99)])
    first, second = records(local)
    assert first["command"][1].startswith('\\xff\n"xxx')
    assert first["command"][1].endswith("... (747 more bytes)")
    assert second["command"][-1] == "... (39 more arguments)"


def test_the_user_of_a_record_is_that_before_the_command(local: LocalNode, log_in: LogIn) -> None:
    ops = log_in("ops", "~* +@all")
    assert ops.raw("ACL", "DELUSER", "ops") == b":1\r\n"
    assert records(local)[-1]["user"] == "ops"


def test_failed_logins_are_recorded_once_per_second_with_their_number(local: LocalNode) -> None:
    local.client().call("ACL", "SETUSER", "mail", "on", ">secret")
    for _ in range(4):
        local.client().raw("AUTH", "mail", "wrong")
    local.run(seconds=2)
    local.client(b"10.0.0.7:4711").raw("AUTH", "mail", "wrong")
    found = [record for record in records(local) if record["command"][0] == "AUTH"]
    assert [record["failures"] for record in found] == [1, 4]
    assert found[1]["command"] == ["AUTH", "mail", "(redacted)"]
    assert found[1]["user"] == "mail"
    assert found[1]["client"] == "10.0.0.7:4711"
    assert found[1]["outcome"].startswith("WRONGPASS")


def test_the_request_that_switches_the_log_off_or_over_is_recorded(local: LocalNode) -> None:
    client = local.client()
    assert client.raw("CONFIG", "SET", "audit-log-file", "other.log") == b"+OK\r\n"
    assert client.raw("CONFIG", "SET", "audit-log-file", "") == b"+OK\r\n"
    client.raw("CONFIG", "SET", "timeout", 5)
    assert commands(local) == ["CONFIG SET audit-log-file other.log"]
    assert [record["command"][-1] for record in records(local, "other.log")] == ["other.log", ""]


def test_a_file_that_is_used_again_before_its_records_are_written_has_all_of_them_in_order(local: LocalNode) -> None:
    client = local.client()
    local.host.disk.hold(disk.APPEND, disk.CLOSE)
    wanted: list[str] = []
    for name in ("", FILE, "other.log", FILE, "", FILE):
        client.call("CONFIG", "SET", "timeout", len(wanted))
        client.call("CONFIG", "SET", "audit-log-file", name)
        wanted += [f"CONFIG SET audit-log-file {name}"]
    client.call("CONFIG", "SET", "timeout", 9)
    local.host.disk.held.clear()
    local.finish()
    found = commands(local)
    assert [line for line in found if "audit-log-file" in line] == wanted
    assert [line for line in found if "timeout" in line] == [f"CONFIG SET timeout {number}" for number in (0, 2, 4, 9)]
    client.call("CONFIG", "SET", "timeout", 10)
    assert commands(local)[-1] == "CONFIG SET timeout 10"
    assert FILE in local.host.disk._opened
    assert "other.log" not in local.host.disk._opened


def test_records_of_a_former_file_are_written_before_the_process_ends(local: LocalNode) -> None:
    client = local.client()
    local.host.disk.hold(disk.APPEND)
    client.call("CONFIG", "SET", "timeout", 1)
    client.call("CONFIG", "SET", "timeout", 2)
    client.call("CONFIG", "SET", "audit-log-file", "other.log")
    local.node.flush_audit()
    assert commands(local) == ["CONFIG SET timeout 1", "CONFIG SET timeout 2", "CONFIG SET audit-log-file other.log"]


def test_a_file_that_cannot_be_opened_is_refused_and_the_log_continues(local: LocalNode) -> None:
    client = local.client()
    local.host.disk.fail(disk.OPEN, times=1)
    assert client.raw("CONFIG", "SET", "audit-log-file", "other.log") == (
        b"-ERR cannot open audit-log-file 'other.log': Input/output error\r\n"
    )
    assert client.raw("CONFIG", "SET", "audit-log-file", "disque.aof").startswith(
        b"-ERR audit-log-file 'disque.aof' is"
    )
    assert client.call("CONFIG", "GET", "audit-log-file") == [b"audit-log-file", FILE.encode()]
    assert [record["outcome"][:3] for record in records(local)] == ["ERR", "ERR"]


def test_a_node_does_not_start_without_its_audit_log() -> None:
    config = Config()
    config.assign("audit_log_file", FILE)
    host = FakeHost()
    host.disk.fail(disk.OPEN, times=1)
    with pytest.raises(ReplyError, match=r"cannot open audit-log-file 'audit\.log': Input/output error"):
        LocalNode(config, host)


def test_the_file_is_opened_again_on_sighup(local: LocalNode) -> None:
    client = local.client()
    client.call("CONFIG", "SET", "timeout", 1)
    local.host.disk._entries["audit.log.1"] = local.host.disk._entries.pop(FILE)  # as logrotate does
    local.node.files_changed(local.now_ms)
    client.call("CONFIG", "SET", "timeout", 2)
    assert [record["command"][-1] for record in records(local, "audit.log.1")] == ["1"]
    assert [record["command"][-1] for record in records(local)] == ["2"]


def lost(client: LocalClient) -> int:
    """How many records were lost."""
    shown = client.call("INFO", "access")
    assert isinstance(shown, bytes)
    return int(shown.split(b"audit_records_lost:")[1].split()[0])


def test_a_full_disk_stops_no_node_and_is_logged_once(local: LocalNode) -> None:
    client = local.client()
    local.host.disk.fill()
    for _ in range(3):
        assert client.raw("CONFIG", "SET", "timeout", 1) == b"+OK\r\n"
    assert lost(client) == 3
    lines = [text for _, text in local.host.log_lines if "audit log" in text]
    assert lines == ["Records of the audit log are lost: file=audit.log error=No space left on device"]
    local.host.disk.repair()
    client.call("CONFIG", "SET", "timeout", 2)
    assert [record["command"][-1] for record in records(local)] == ["2"]
    assert lost(client) == 3
    assert "The audit log is written again: file=audit.log" in [text for _, text in local.host.log_lines]


def test_records_wait_for_a_slow_disk_within_a_bound(local: LocalNode) -> None:
    client = local.client()
    local.host.disk.hold(disk.APPEND)
    word = "x" * 250
    many = GATHERED_BYTES // 300
    for number in range(many):
        assert client.raw("PAUSE", f"{number}{word}", "in") == b"+in\r\n"
    lost_records = lost(client)
    assert 0 < lost_records < many / 2
    local.host.disk.held.clear()
    local.finish()
    assert len(records(local)) == many - lost_records
    assert [record["command"][1] for record in records(local)[:2]] == [f"0{word}", f"1{word}"]


def test_a_log_that_was_lost_while_it_was_opened_again_is_opened_with_the_next_record(local: LocalNode) -> None:
    client = local.client()
    local.host.disk.fail(disk.OPEN, times=2)
    local.node.files_changed(local.now_ms)
    client.call("CONFIG", "SET", "timeout", 1)
    client.call("CONFIG", "SET", "timeout", 2)
    assert lost(client) == 1
    assert [record["command"][-1] for record in records(local)] == ["2"]


def test_a_backup_is_recorded_when_it_begins(local: LocalNode) -> None:
    local.client().send("BACKUP", "BEGIN")
    assert [(record["command"], record["outcome"]) for record in records(local)] == [(["BACKUP", "BEGIN"], "started")]


def test_shutdown_and_crashes_are_recorded_before_the_process_ends(local: LocalNode) -> None:
    local.host.disk.hold(disk.APPEND)
    local.client().send("DEBUG", "SEGFAULT")
    assert [(record["command"][1], record["outcome"]) for record in records(local)] == [("SEGFAULT", "started")]
    local.client().send("SHUTDOWN")
    local.node.flush_audit()
    assert (commands(local)[-1], records(local)[-1]["outcome"]) == ("SHUTDOWN", "ok")
