"""The recorded sessions of the original client, replayed in order; the guide lists the differences."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.running import Disque
from disqued.testing.processes import ServerProcess

ROOT = Path(__file__).parents[2]
TRANSCRIPTS = ROOT / "tests" / "vectors" / "cli" / "transcripts.jsonl"
GUIDE = ROOT / "docs" / "howto" / "command-line.md"
RECORDED_PORT = "17711"
VARYING = (
    (re.compile(r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}"), "<job id>"),
    (re.compile(r"[0-9a-f]{40}"), "<node id>"),
    (re.compile(r'((?:age|idle)"?\n(?:[ 0-9]+\) \(integer\) )?)\d+'), r"\1<seconds>"),
)


@dataclass(frozen=True)
class Difference:
    """A row of the table: the exit statuses, and parts of our output where the text differs, too."""

    original_status: int
    status: int
    pieces: tuple[str, ...]


def read_differences() -> dict[str, Difference]:
    section = GUIDE.read_text().partition("<!-- recorded differences -->")[2].partition("<!-- end -->")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in section.strip().splitlines()[2:]]
    return {
        call.strip("`"): Difference(int(original), int(here), tuple(re.findall(r"`([^`]+)`", text)))
        for call, original, here, text, _ in rows
    }


def recorded_calls() -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in TRANSCRIPTS.read_text().splitlines()]
    return [line for line in lines if "argv" in line]


def call_of(record: dict[str, Any]) -> str:
    return " ".join(record["argv"][1:]).removeprefix(f"-p {RECORDED_PORT} ")


def normal(text: str, port: str) -> str:
    for pattern, name in VARYING:
        text = pattern.sub(name, text)
    return text.replace(port, "<port>")


@pytest.fixture(scope="module")
def outcomes(node: ServerProcess) -> list[tuple[int, str, str]]:
    """Repeat every recorded call in order on one node; return exit status, output and error output of each."""
    results = []
    for record in recorded_calls():
        argv = [str(node.port) if word == RECORDED_PORT else word for word in record["argv"][1:]]
        stdin = record.get("stdin", "").replace(RECORDED_PORT, str(node.port)).encode("latin-1")
        done = Disque(node.port, terminal=record.get("tty", False))(*argv, stdin=stdin)
        output, errors = (normal(data.decode("latin-1"), str(node.port)) for data in (done.stdout, done.stderr))
        results.append((done.returncode, output, errors))
    return results


@pytest.mark.parametrize("index", range(len(recorded_calls())), ids=[call_of(record) for record in recorded_calls()])
def test_recorded_call_matches_the_original_or_the_guide(index: int, outcomes: list[tuple[int, str, str]]) -> None:
    record = recorded_calls()[index]
    recorded = (normal(record["stdout"], RECORDED_PORT), normal(record["stderr"], RECORDED_PORT))
    status, *texts = outcomes[index]
    difference = read_differences().get(call_of(record), Difference(record["rc"], record["rc"], ()))
    assert record["rc"] == difference.original_status
    assert status == difference.status
    if difference.pieces:
        assert tuple(texts) != recorded
        assert all(piece in "".join(texts) for piece in difference.pieces)
    else:
        assert tuple(texts) == recorded


def test_every_difference_in_the_guide_is_real() -> None:
    recorded = {call_of(record) for record in recorded_calls()}
    for call, difference in read_differences().items():
        assert call in recorded
        assert difference.status != difference.original_status or difference.pieces
