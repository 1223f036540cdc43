"""CONFIG GET and SET, against what was recorded from the original."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.config import OPTIONS, Config
from disqued.errors import SHOWN_BYTES, ReplyError
from disqued.testing.local import LocalClient

RECORDING = Path(__file__).parent.parent / "vectors" / "commands" / "02-server-commands.jsonl"

ACCEPTED_HERE = {
    ("tcp-keepalive", "60"),
    ("no-appendfsync-on-rewrite", "yes"),
    ("slowlog-log-slower-than", "-1"),
    ("auto-aof-rewrite-min-size", "1mb"),
    ("client-output-buffer-limit", "normal 1mb 0 0"),
}
"""CONFIG SET takes the syntax of the file, the original does not always."""

WITH_EFFECT = {"dir"}
"""Refused by the effect, not by the value."""


def recorded(subcommand: str) -> list[tuple[list[str], bytes]]:
    """Arguments behind the subcommand, and the reply."""
    exchanges = [json.loads(line) for line in RECORDING.read_text().splitlines()]
    return [
        (exchange["args"][2:], base64.b64decode(exchange["reply_b64"]))
        for exchange in exchanges
        if exchange.get("args", [])[:2] == ["CONFIG", subcommand]
    ]


def pairs(reply: bytes) -> list[tuple[bytes, bytes]]:
    """Names and values in a recorded CONFIG GET reply."""
    bulks = reply.split(b"\r\n")[2::2]
    return list(zip(bulks[::2], bulks[1::2], strict=True)) if reply != b"*0\r\n" else []


SETS = [arguments for arguments in recorded("SET") if len(arguments[0]) == 2 and arguments[0][0] not in WITH_EFFECT]


@pytest.mark.parametrize(("arguments", "reply"), SETS)
def test_config_set_has_the_recorded_reply(arguments: list[str], reply: bytes) -> None:
    name, value = arguments
    config = Config()
    if reply == b"+OK\r\n" or (name, value) in ACCEPTED_HERE:
        config.set(name.encode(), value.encode())
    else:
        with pytest.raises(ReplyError) as refused:
            config.set(name.encode(), value.encode())
        assert refused.value.encode() == reply
        assert vars(config) == vars(Config())


@pytest.mark.parametrize(("arguments", "reply"), [get for get in recorded("GET") if len(get[0]) == 1])
def test_config_get_has_the_recorded_reply(arguments: list[str], reply: bytes) -> None:
    config = Config()
    config.port = 17711
    config.logfile = "log.txt"
    config.bind = ("127.0.0.1",)
    config.dir = "<base-dir->/n1"
    added = {option.name.encode() for option in OPTIONS if option.added}
    shown = [pair for pair in config.get(arguments[0].encode()) if pair[0] not in added]
    assert shown == pairs(reply)


def value_of(name: bytes, config: Config) -> bytes:
    [(_, value)] = config.get(name)
    return value


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        (b"MaxMemory", b"2MB", b"2097152"),
        (b"maxmemory", b"3k", b"3000"),
        (b"maxmemory", b"60%", b"60%"),
        (b"hz", b"0", b"1"),
        (b"hz", b"9999", b"500"),
        (b"loglevel", b"VERBOSE", b"verbose"),
        (b"tcp-keepalive", b"60", b"yes"),
        (b"tcp-keepalive", b"yes", b"yes"),
        (b"tcp-keepalive", b"NO", b"no"),
        (b"slowlog-log-slower-than", b"-1", b"-1"),
        (b"client-output-buffer-limit", b"normal 1mb 2kb 3", b"normal 1048576 2048 3"),
        (b"client-output-buffer-limit", b"normal 1 2 3 normal 4 5 6", b"normal 4 5 6"),
        (b"requirepass", b"\xff secret", b"\xff secret"),
        (b"requirepass", b"", b""),
        (b"dir", b"/tmp/\xff", b"/tmp/\xff"),
        (b"timeout", b"+5", b"5"),
        (b"shutdown-on-sigterm", b"Rewrite-AOF", b"rewrite-aof"),
        (b"aof-restart-marker", b"YES", b"yes"),
        (b"requirepass-former", b"one before", b"one before"),
    ],
)
def test_a_changed_value_is_shown(name: bytes, value: bytes, shown: bytes) -> None:
    config = Config()
    config.set(name, value)
    assert value_of(name.lower(), config) == shown


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"maxmemory", b"1gx"),
        (b"maxmemory", b"1 gb"),
        (b"maxmemory", b"9999999999gb"),
        (b"maxmemory", b""),
        (b"shutdown-on-sigterm", b"nosave"),
        (b"aof-restart-marker", b"1"),
        (b"dir", b"/tmp/\0"),
        (b"timeout", b"1_000"),
        (b"timeout", b"9223372036854775808"),
        (b"timeout", b"1000000000001"),
        (b"client-output-buffer-limit", b""),
        (b"client-output-buffer-limit", b"normal 1 2 x"),
    ],
)
def test_a_wrong_value_is_refused_and_named_as_sent(name: bytes, value: bytes) -> None:
    with pytest.raises(ReplyError) as refused:
        Config().set(name.upper(), value)
    cut = value if len(value) <= SHOWN_BYTES else value[:SHOWN_BYTES] + b"..."
    assert refused.value.encode() == b"-ERR Invalid argument '%b' for CONFIG SET '%b'\r\n" % (cut, name.upper())


def test_parsing_a_change_changes_nothing() -> None:
    config = Config()
    attribute, value = config.parse(b"cluster-node-timeout", b"3000")
    assert (attribute, value) == ("cluster_node_timeout", 3000)
    assert config.cluster_node_timeout == 15000
    config.assign(attribute, value)
    assert config.cluster_node_timeout == 3000


NAMES = st.sampled_from([option.name.encode() for option in OPTIONS]) | st.binary(max_size=8)
VALUES = st.binary(max_size=12) | st.sampled_from(
    [b"0", b"-1", b"yes", b"1gb", b"normal 1 2 3", b"everysec", b"9" * 40]
)


@given(NAMES, VALUES)
def test_any_change_is_applied_and_shown_or_refused(name: bytes, value: bytes) -> None:
    config = Config()
    before: dict[str, Any] = dict(vars(config))
    refused = None
    try:
        config.set(name, value)
    except ReplyError as error:
        refused = error.code
    if refused:
        assert (refused, vars(config)) == ("ERR", before)
    else:
        assert len(config.get(name.lower())) == 1


def test_a_pattern_that_is_longer_than_any_name_is_refused(client: LocalClient) -> None:
    refused = client.call("CONFIG", "GET", "*" * 129)
    assert str(refused) == "ERR the pattern has 129 bytes, at most 128 are possible"
    assert client.call("CONFIG", "GET", "*" * 127 + "t") != []
