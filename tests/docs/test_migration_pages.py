"""The guides for those who come from another broker or framework: their files and commands, run from top to bottom."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from disqued.testing.ports import free_port
from support.guide import Guide

PAGES: Final = Path(__file__).parents[2] / "docs" / "migrate"
SHOWN: Final = ("7711", "7712", "7713", "6379", "5672", "9324")
"""The ports that pages use."""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "README"))
def test_the_guide_works(name: str, tmp_path: Path) -> None:
    with Guide(PAGES / f"{name}.md", tmp_path, {shown: free_port() for shown in SHOWN}) as guide:
        assert guide.run() > 2
