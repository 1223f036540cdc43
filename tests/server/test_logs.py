"""The format and the destinations of log lines."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from disqued.server import logs

LINE = re.compile(r"(\d+):P \d\d [A-Z][a-z]{2} \d\d:\d\d:\d\d\.\d{3} ([.\-*#]) (.*)")


@pytest.fixture(autouse=True)
def _own_handlers() -> Iterator[None]:
    """Restore the logging set up by pytest after each test."""
    root = logging.getLogger()
    raises = logging.raiseExceptions
    before = list(root.handlers)
    root.handlers.clear()
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = before
    logging.raiseExceptions = raises


def lines(text: str) -> list[tuple[str, str]]:
    """Mark and text of each line."""
    matches = [LINE.fullmatch(line) for line in text.splitlines()]
    assert all(match and match[1] == str(os.getpid()) for match in matches), text
    return [(match[2], match[3]) for match in matches if match]


def write_one_of_each() -> None:
    for level in ("debug", "verbose", "notice", "warning"):
        logs.write(level, f"a {level} line of 100 %s")


@pytest.mark.parametrize(
    ("level", "marks"), [("debug", ".-*#"), ("verbose", "-*#"), ("notice", "*#"), ("warning", "#")]
)
def test_lines_below_the_level_are_dropped(tmp_path: Path, level: str, marks: str) -> None:
    logs.configure(level, str(tmp_path / "log"))
    write_one_of_each()
    texts = {".": "debug", "-": "verbose", "*": "notice", "#": "warning"}
    assert lines((tmp_path / "log").read_text()) == [(mark, f"a {texts[mark]} line of 100 %s") for mark in marks]


def test_the_level_changes_while_the_server_runs(tmp_path: Path) -> None:
    logs.configure("warning", str(tmp_path / "log"))
    logs.write("verbose", "not yet")
    logs.set_level("verbose")
    logs.write("verbose", "now")
    assert lines((tmp_path / "log").read_text()) == [("-", "now")]


def test_without_a_file_lines_go_to_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("notice", "")
    logs.write("notice", "hello")
    assert lines(capfd.readouterr().out) == [("*", "hello")]


def test_a_log_file_is_continued(tmp_path: Path) -> None:
    for text in ("one", "two"):
        logs.configure("notice", str(tmp_path / "log"))
        logs.write("notice", text)
    assert lines((tmp_path / "log").read_text()) == [("*", "one"), ("*", "two")]


def test_moved_log_file_is_reopened(tmp_path: Path) -> None:
    logs.configure("notice", str(tmp_path / "log"))
    logs.write("notice", "one")
    (tmp_path / "log").rename(tmp_path / "log.1")
    logs.write("notice", "two")
    assert lines((tmp_path / "log.1").read_text()) == [("*", "one")]
    assert lines((tmp_path / "log").read_text()) == [("*", "two")]


def test_lines_are_dropped_while_the_log_file_cannot_be_opened(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    logs.configure("notice", str(place / "log"))
    place.rename(tmp_path / "moved")
    for _ in range(2):
        logs.write("notice", "lost")
    place.mkdir()
    logs.write("notice", "kept")
    assert lines((place / "log").read_text()) == [("*", "kept")]
    assert capfd.readouterr() == ("", "")


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        logs.configure("notice", str(tmp_path / "missing" / "log"))


def test_bytes_that_are_not_utf8_are_written_unchanged(tmp_path: Path) -> None:
    logs.configure("notice", str(tmp_path / "log"))
    logs.write("notice", "can't open gr\udcfcn")
    assert (tmp_path / "log").read_bytes().endswith(b" * can't open gr\xfcn\n")


def test_control_characters_cannot_forge_a_line(tmp_path: Path) -> None:
    logs.configure("notice", str(tmp_path / "log"))
    logs.write("notice", "Node a\r\n1:P 24 Nov 12:00:00.000 # forged\x1b[2J\x7f\x85\u2028b is refused")
    assert lines((tmp_path / "log").read_text()) == [
        ("*", r"Node a\r\n1:P 24 Nov 12:00:00.000 # forged\x1b[2J\x7f\x85\u2028b is refused")
    ]


def test_lines_of_libraries_have_the_same_form_and_show_the_error(tmp_path: Path) -> None:
    logs.configure("notice", str(tmp_path / "log"))
    library = logging.getLogger("some.library")
    try:
        int("x")
    except ValueError:
        library.exception("it failed")
    first, *rest = (tmp_path / "log").read_text().splitlines()
    assert lines(first) == [("#", "it failed")]
    assert rest[-1].startswith("ValueError: invalid literal")


def test_syslog_gets_priority_name_and_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "SYSLOG_ADDRESS", str(tmp_path / "syslog"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
        syslog.bind(str(tmp_path / "syslog"))
        syslog.settimeout(10)
        logs.configure("debug", str(tmp_path / "log"), ("broker", "local3"))
        write_one_of_each()
        received = [syslog.recv(1000).rstrip(b"\0").decode() for _ in range(4)]
    facility, levels = 19 << 3, {"debug": 7, "verbose": 6, "notice": 5, "warning": 4}
    assert received == [
        f"<{facility + priority}>broker[{os.getpid()}]: a {level} line of 100 %s" for level, priority in levels.items()
    ]
    assert len(lines((tmp_path / "log").read_text())) == 4


def test_missing_syslog_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    address = str(tmp_path / "missing")
    monkeypatch.setattr(logs, "SYSLOG_ADDRESS", address)
    logs.configure("notice", str(tmp_path / "log"), ("broker", "user"))
    logs.write("notice", "hello")
    told = ("#", f"There is no syslog at {address}: lines go only to the log")
    assert lines((tmp_path / "log").read_text()) == [told, ("*", "hello")]
    assert capfd.readouterr() == ("", "")
