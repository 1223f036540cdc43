"""The list of phrases to avoid: each has a text that it finds and one that it does not find."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("check_language", ROOT / "docs" / "language" / "check.py")
assert _SPEC is not None
assert _SPEC.loader is not None
check = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = check
_SPEC.loader.exec_module(check)

PHRASES, EXCEPTIONS = check.read_phrases()


def found(text: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.words) for finding in check.find("page.md", text, PHRASES, EXCEPTIONS)]


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase.finds[0])
def test_phrase_is_found_in_its_examples_only(phrase: Any) -> None:
    assert phrase.finds
    assert phrase.passes
    for text in phrase.finds:
        assert check.find("page.md", text, (phrase,), ()), text
    for text in phrase.passes:
        assert check.find("page.md", text, (phrase,), ()) == [], text


def test_wrapped_phrase_is_found_on_the_line_where_it_begins() -> None:
    assert found("One line.\n\nThis file can\nnot be read.\n") == [(3, "can not")]
    assert found("def f():\n    # written\n    # all the\n    # same\n") == [(3, "all the same")]


def test_wrapped_relative_clause_is_not_a_headless_one() -> None:
    assert found("It is the person\nwho reads the log.\n") == []
    assert found("It is logged.\n\nWho reads the log sees it.\n") == [(3, "Who reads")]
    assert found("    x = 1\n    # who reads the log\n") == [(2, "who reads")]


def test_names_are_read_as_words() -> None:
    assert found("def test_file_that_can_not_be_read() -> None:\n") == [(1, "can_not")]


def test_status_is_1_and_every_finding_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "texts", lambda paths: iter([(path, "It is written anew.\n") for path in paths]))
    assert check.main(["a.md", "b.py"]) == 1
    assert capsys.readouterr().out == "".join(f"{name}:1: anew → again, from scratch\n" for name in ("a.md", "b.py"))
    assert check.main([]) == 0


def test_text_of_another_program_is_an_exception() -> None:
    exceptions = (re.compile(re.escape("ERR can not be done")),)
    text = 'The server replies "ERR can not be done" if it can not do it.'
    assert [finding.words for finding in check.find("page.md", text, PHRASES, exceptions)] == ["can not"]


def test_every_exception_says_why() -> None:
    rows = tomllib.loads(check.PHRASES.read_text(encoding="utf-8")).get("exception", [])
    assert [row for row in rows if not row.get("why")] == []


def test_recorded_output_and_the_list_itself_are_not_read() -> None:
    names = [name for name, _ in check.texts([])]
    assert "Makefile" in names
    assert "docs/language/README.md" in names
    assert "docs/language/phrases.toml" not in names
    assert not [name for name in names if name.startswith("tests/vectors/")]
