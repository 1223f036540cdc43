"""COMMAND: the command table as the original shows it, and its documentation as Redis clients read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from redis._parsers.helpers import parse_command, parse_command_resp3

from disqued.admin.syntax import Argument, read_syntax
from disqued.config import Config
from disqued.node import ROOMS
from disqued.testing.local import LocalNode
from support.asking import ask, pairs

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient

TABLE = """
auth -2 readonly loading fast | ping -1 readonly fast | info -1 readonly loading | shutdown -1 readonly admin loading
monitor 1 readonly admin | debug -2 admin | config -2 readonly admin | cluster -2 readonly admin
client -2 readonly admin | slowlog -2 readonly | time 1 readonly fast | command 0 readonly loading
latency -2 readonly admin loading | hello -1 readonly fast | addjob -4 write denyoom fast | getjob -2 write fast
ackjob -1 write fast | fastack -1 write fast | deljob -1 write fast | show 2 readonly fast | loadjob 2 write
bgrewriteaof 1 readonly admin | qlen -2 readonly fast | qpeek 3 readonly | qstat 2 readonly fast | qscan -1 readonly
jscan -1 readonly | enqueue -1 write denyoom fast | nack -1 write denyoom fast | dequeue -1 write fast
working -2 write fast | pause -3 readonly fast | acl -2 admin loading | backup -2 readonly admin
qconf -3 write | addto -5 write denyoom fast | newid -1 readonly fast | movejob -4 write denyoom
logjob -3 write denyoom | showlog -2 readonly
redrive -2 write denyoom fast | qcount -2 readonly | qpurge -2 write | result -2 readonly fast | waitjob -4 readonly
schedule -3 write
qnew -3 write denyoom
qdrop -2 write
qtype 2 readonly fast
"""
"""Of the original, and those that are ours; AUTH, HELLO, QLEN and WORKING take more words here."""
ROWS = [row.split() for line in TABLE.strip().splitlines() for row in line.split("|")]


def test_the_table_is_that_of_the_original(client: LocalClient) -> None:
    wanted = [[row[0].encode(), int(row[1]), [flag.encode() for flag in row[2:]], 0, 0, 0] for row in ROWS]
    assert sorted(ask(client, "COMMAND")) == sorted(wanted)
    assert ask(client, "COMMAND", "COUNT") == len(ROWS)


def test_command_info_returns_the_commands_that_are_named(client: LocalClient) -> None:
    found = client.raw("COMMAND", "INFO", "QPEEK", "nosuch")
    assert found == b"*2\r\n*6\r\n$5\r\nqpeek\r\n:3\r\n*1\r\n+readonly\r\n:0\r\n:0\r\n:0\r\n$-1\r\n"
    assert client.raw("COMMAND", "INFO") == b"*0\r\n"


def test_renamed_commands_keep_their_name_and_removed_ones_are_gone() -> None:
    config = Config()
    config.assign("rename_command", ((b"debug", b"mydebug"), (b"shutdown", b"")))
    client = LocalNode(config).client()
    renamed, old, removed = ask(client, "COMMAND", "INFO", "mydebug", "debug", "shutdown")
    assert (renamed[0], old, removed) == (b"debug", None, None)
    assert ask(client, "COMMAND", "COUNT") == len(ROWS) - 1
    names = ask(client, "COMMAND", "LIST")
    assert b"debug" in names
    assert b"shutdown" not in names


@pytest.mark.parametrize(("protocol", "parse"), [(2, parse_command), (3, parse_command_resp3)])
def test_redis_py_reads_the_table(client: LocalClient, protocol: int, parse: Any) -> None:
    ask(client, "HELLO", protocol)
    parsed = parse(ask(client, "COMMAND"))
    assert len(parsed) == len(ROWS)
    assert parsed["addjob"]["arity"] == -4


def test_documentation_covers_every_command(client: LocalClient) -> None:
    ask(client, "HELLO", 3)
    documented = ask(client, "COMMAND", "DOCS")
    assert [name.decode() for name in documented] == [command.name for command in ROOMS.commands]
    for fields in documented.values():
        assert fields[b"summary"].endswith(b".")
        assert fields[b"since"] == b"1.0.0"
        assert fields[b"complexity"].startswith(b"O(")
        assert fields[b"group"] in {b"jobs", b"queues", b"server", b"connection", b"cluster"}


def test_documentation_describes_arguments(client: LocalClient) -> None:
    ask(client, "HELLO", 3)
    documented = ask(client, "COMMAND", "DOCS", "addjob", "nosuch", "TIME")
    assert list(documented) == [b"addjob", b"time"]
    assert b"arguments" not in documented[b"time"]
    queue, *_, asynchronous, _ = documented[b"addjob"][b"arguments"]
    assert queue == {b"name": b"queue", b"type": b"string"}
    assert asynchronous == {b"name": b"async", b"type": b"pure-token", b"token": b"ASYNC", b"flags": [b"optional"]}


def test_documentation_is_flat_in_the_second_protocol(client: LocalClient) -> None:
    (docs,) = pairs(client, "COMMAND", "DOCS", "ping").values()
    assert docs[::2] == [b"summary", b"since", b"group", b"complexity", b"arguments"]


@pytest.mark.parametrize("words", ["FOO", "COUNT x", "LIST x", "GETKEYS addjob"])
def test_unknown_subcommands_are_refused(client: LocalClient, words: str) -> None:
    refused = client.raw("COMMAND", *words.split())
    assert refused == b"-ERR Unknown subcommand or wrong number of arguments.\r\n"


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("", ()),
        ("queue count", (Argument("queue", "string"), Argument("count", "string"))),
        ("[RETRY sec]", (Argument("sec", "string", token="RETRY", optional=True),)),
        ("[ASYNC]", (Argument("async", "pure-token", token="ASYNC", optional=True),)),
        ("job-id [job-id ...]", (Argument("job-id", "string", repeated=True),)),
        ("[name ...]", (Argument("name", "string", optional=True, repeated=True),)),
        ("[STATE s] ...", (Argument("s", "string", token="STATE", optional=True, repeated=True),)),
        (
            "ON|OFF",
            (
                Argument(
                    "on",
                    "oneof",
                    parts=(Argument("on", "pure-token", token="ON"), Argument("off", "pure-token", token="OFF")),
                ),
            ),
        ),
        (
            "LEN | GET [count]",
            (
                Argument(
                    "len",
                    "oneof",
                    parts=(
                        Argument("len", "pure-token", token="LEN"),
                        Argument(
                            "get",
                            "block",
                            parts=(
                                Argument("get", "pure-token", token="GET"),
                                Argument("count", "string", optional=True),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ],
    ids=str,
)
def test_a_syntax_line_is_read_into_arguments(line: str, arguments: tuple[Argument, ...]) -> None:
    assert read_syntax(line) == arguments


@pytest.mark.parametrize("subcommand", ["DOCS", "INFO"])
def test_the_number_of_names_is_bounded(client: LocalClient, subcommand: str) -> None:
    assert len(ask(client, "COMMAND", subcommand, *["ping"] * 256)) >= 256
    assert "wrong number of arguments" in str(client.call("COMMAND", subcommand, *["ping"] * 257))
