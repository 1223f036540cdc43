"""Every row of the table of deliberate differences is true.

`test_replay.py` checks rows about recorded exchanges, and permits no difference without a row. The tests here check
rows about requests that were not recorded, and the format of the table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from compat.differences import PAGE, Difference, expected, read_table
from compat.normalise import Comparison, Names, asked
from compat.recording import FILES, load, unescape
from compat.replay import Client
from compat.wire import decode_all
from disqued.testing.processes import ServerProcess

if TYPE_CHECKING:
    from pathlib import Path

ROOT = PAGE.parent.parent
TABLE = read_table()
SHOWN_BY = re.findall(r"\| `(tests/.*)` \|$", PAGE.read_text(), re.MULTILINE)
STEPS = {step.name: step for file in FILES for step in load(file).values()}


def test_there_is_a_table() -> None:
    assert SHOWN_BY
    assert any(row.recorded for row in TABLE)
    assert any(not row.recorded for row in TABLE)


@pytest.mark.parametrize("name", sorted({name for row in TABLE for name in row.recorded}))
def test_a_recorded_row_cites_an_exchange_and_quotes_it(name: str) -> None:
    step = STEPS[name]

    assert expected(step, TABLE) != step.answer
    for row in TABLE:
        if name in row.recorded:
            assert {b" ".join(step.words), step.payload.rstrip(b"\r\n")} & set(map(unquoted, row.requests))


@pytest.mark.parametrize("row", [row for row in TABLE if not row.recorded], ids=lambda row: b"; ".join(row.requests))
def test_an_unrecorded_row_is_what_a_fresh_node_answers(row: Difference, tmp_path: Path) -> None:
    *before, last = row.requests
    with ServerProcess(tmp_path) as server:
        client, comparison = Client(server), Comparison(Names(), server.port, str(tmp_path))
        for line in before:
            client.socket.sendall(line + b"\r\n")
            client.read()
        client.socket.sendall(last + b"\r\n")
        for wanted in decode_all(row.ours):
            assert comparison.differences(asked((last,)), wanted, client.read()) == []
        assert client.finish() == b""


@pytest.mark.parametrize("name", SHOWN_BY)
def test_a_behaviour_is_shown_by_a_test_that_exists(name: str) -> None:
    file, test = name.split("::")

    assert f"def {test}(" in (ROOT / file).read_text()


def test_escapes_are_read_as_in_the_recordings() -> None:
    assert unescape(r"a\\b\r\n\x00") == b"a\\b\r\n\x00"


def unquoted(request: bytes) -> bytes:
    """A request without the quotes that inline syntax needs."""
    return request.rstrip(b"\r\n").replace(b"'", b"")
