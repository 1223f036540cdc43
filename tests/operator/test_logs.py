"""Log lines as JSON and as text."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from disque_operator import logs


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in logs.QUIET:
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_json_line_names_the_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json", "info")
    logs.about("ns", "c").info("replace Pod %s", "c-2", extra={"why": "of its template"})
    line = json.loads(capsys.readouterr().err)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "disque_operator",
        "message": "replace Pod c-2",
        "namespace": "ns",
        "cluster": "c",
        "why": "of its template",
    }


def test_traceback_is_part_of_the_json_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("json", "info")
    try:
        json.loads("{")
    except ValueError:
        logging.getLogger("disque_operator").exception("unexpected")
    [text] = capsys.readouterr().err.splitlines()
    assert "Traceback" in json.loads(text)["exception"]


def test_text_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("text", "info")
    logs.about("ns", "c").warning("hm")
    assert capsys.readouterr().err.endswith("Z WARNING [ns/c] hm\n")


def test_lines_below_the_level_are_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("text", "warning")
    logging.getLogger("disque_operator").info("no")
    logging.getLogger("kopf.objects").info("no")
    assert not capsys.readouterr().err
