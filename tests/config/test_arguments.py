"""The command line of the server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.config import ServerArguments, load, parse_arguments


@pytest.mark.parametrize(
    ("argv", "meaning"),
    [
        ([], ServerArguments()),
        (["disque.conf"], ServerArguments(config_path="disque.conf")),
        (["-"], ServerArguments(config_path="-")),
        (["--port", "1"], ServerArguments(lines=('port "1"',))),
        (
            ["disque.conf", "--port", "1", "--bind", "a", "b", "--daemonize", "yes"],
            ServerArguments(config_path="disque.conf", lines=('port "1"', 'bind "a" "b"', 'daemonize "yes"')),
        ),
        (["disque.conf", "stray"], ServerArguments(config_path="disque.conf", lines=('"stray"',))),
        (["-v"], ServerArguments("version")),
        (["--version"], ServerArguments("version")),
        (["-h"], ServerArguments("help")),
        (["--help"], ServerArguments("help")),
        (["--test-memory", "64"], ServerArguments("test-memory", test_megabytes=64)),
        (["--nodes", "3", "disque.conf"], ServerArguments(config_path="disque.conf", nodes=3)),
        (["--nodes", "3", "--port", "1"], ServerArguments(lines=('port "1"',), nodes=3)),
        (["--nodes", "x"], ServerArguments(nodes=0)),
        (["--nodes"], ServerArguments(nodes=0)),
        (["--test-memory"], ServerArguments("test-memory")),
        (["--test-memory", "x"], ServerArguments("test-memory")),
    ],
)
def test_command_lines(argv: list[str], meaning: ServerArguments) -> None:
    assert parse_arguments(argv) == meaning


@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).filter(
        lambda word: not word.startswith("--")
    )
)
def test_a_value_is_used_as_it_is(value: str) -> None:
    arguments = parse_arguments(["--logfile", value])
    assert load("", arguments.lines, str).logfile == value
