"""The messages on the page about running a node exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations" / "running.md").read_text()
MESSAGES = re.findall(r"^\| `([^`]*[A-Z][^`]* [^`]*)` \|", PAGE.partition("## Log")[2], re.MULTILINE)
REASONS = {": Address already in use", ": Cannot assign requested address", ": Permission denied"}
"""Error texts of the operating system."""


@pytest.fixture(scope="module")
def sources() -> str:
    """The source code, with multi-line strings joined."""
    files = (ROOT / "broker" / "disqued").rglob("*.py")
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text() for path in files))


def test_the_page_has_messages() -> None:
    assert len(MESSAGES) > 20


@pytest.mark.parametrize("message", MESSAGES)
def test_every_message_on_the_page_exists_in_the_program(message: str, sources: str) -> None:
    parts = [part for part in re.split(r"<\w+>", message) if part.strip(" :.,'") and part not in REASONS]
    assert parts
    assert [part for part in parts if part.strip() not in sources] == []


def test_every_start_error_is_on_the_page(sources: str) -> None:
    told = re.findall(r'raise Fatal\(\s*f?"([^"{.(:]+)', sources)
    assert len(told) > 10
    assert [text for text in told if text.strip() not in PAGE] == []
