"""Every row of docs/guarantees.md and docs/security.md names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
SECURITY = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
TABLES = re.findall(r"^\| guarantee \| test \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
ROWS = [row for table in TABLES for row in table.splitlines()]


def test_every_guarantee_names_a_test() -> None:
    assert len(ROWS) > 40
    assert [row for row in ROWS if not re.search(r" \| `tests/[\w/]+\.py::test_\w+` \|$", row)] == []


def test_every_threat_names_a_test() -> None:
    tables = re.findall(r"^\| threat \| .*\n\|---.*\n((?:\|.*\n)+)", SECURITY, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 20
    assert [row for row in rows if not re.search(r" \| `tests/[\w/]+\.py::test_\w+`(?:, `make fuzz`)? \|$", row)] == []


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tests/[^`]+)`", PAGE + SECURITY))))
def test_the_named_test_exists(name: str) -> None:
    path, _, function = name.partition("::")
    assert f"\ndef {function}(" in (ROOT / path).read_text(encoding="utf-8")
