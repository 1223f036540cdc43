"""Links of all pages lead to files and headings that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("docs", "charts", "manifests", "e2e", "tests")
PAGES: Final = sorted([*ROOT.glob("*.md"), *(page for name in FOLDERS for page in (ROOT / name).rglob("*.md"))])
CODE_BLOCK: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")
"""A link within the repository: its file, and its heading."""


def prose(page: Path) -> str:
    """Return the text of a page without its code blocks."""
    return CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return the anchors of all headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_existing_files_and_headings(page: Path) -> None:
    broken = []
    for name, heading in LINK.findall(prose(page)):
        target = page.parent / name if name else page
        if not target.exists() or (heading and target.suffix == ".md" and heading not in anchors(target)):
            broken.append(f"{name}#{heading}" if heading else name)
    assert broken == []
