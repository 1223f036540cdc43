"""The exchange of a cluster is what the transcripts say. `make transcripts` rewrites them; review the difference."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from disqued import ordered
from disqued.node import ROOMS
from disqued.testing import transcript

FILES = sorted(Path(__file__).parent.glob("*.txt"))
MESSAGE = re.compile(r"^ +[\d.]+  \d -> \d  ([A-Z]+)", re.MULTILINE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_transcript_shows_what_happens(path: Path) -> None:
    assert transcript.run(path.read_text()) == path.read_text(), "make transcripts, then review the difference"


def test_every_message_of_the_bus_is_in_a_transcript() -> None:
    sent = {name for path in FILES for name in MESSAGE.findall(path.read_text())}
    without = {message.name for message in ordered.SUBSYSTEM.messages}  # elections wait by chance: see tests/ordered
    assert sent == set(ROOMS.message_table.names.values()) - without


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("1> QLEN mail", "the first line must start a cluster"),
        ("cluster 1\n2> QLEN mail", "there is no node 2"),
        ("cluster 1\nwait long", "long is not a time, for example 20ms or 5s"),
        ("cluster 1\nfly", "unknown line: fly"),
    ],
)
def test_script_line_that_cannot_run_is_reported(script: str, error: str) -> None:
    with pytest.raises(transcript.ScriptError, match=re.escape(error)):
        transcript.run(script)


def test_file_is_rewritten_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "story.txt"
    path.write_text("cluster 1\n1> QLEN mail\n----\n")
    assert transcript.main([str(path)]) == 1
    assert "+    0.000  1 -> 1.client  0" in capsys.readouterr().out
    assert path.read_text() == "cluster 1\n1> QLEN mail\n----\n"
    assert transcript.main(["--write", str(path)]) == 0
    assert path.read_text() == "cluster 1\n1> QLEN mail\n----\n    0.000  1 -> 1.client  0\n"
    assert transcript.main([str(path)]) == 0
