"""The pages about the architecture name rooms, files and tests that exist, and all rooms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "broker" / "disqued"
README = (ROOT / "docs" / "architecture" / "README.md").read_text(encoding="utf-8")
CLUSTER = (ROOT / "docs" / "architecture" / "cluster.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PAGES = README + CLUSTER + CONTRIBUTING
TABLE = README.split("## Rooms")[1].split("##")[0]


@pytest.mark.parametrize("name", sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
def test_a_room_is_in_the_table(name: str) -> None:
    assert re.search(rf"^\| .*`{name}/`.* \|", TABLE, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:\w+/)+\w+\.py)`", PAGES))))
def test_a_file_that_is_named_exists(name: str) -> None:
    roots = (PACKAGE, ROOT, ROOT / "operator", ROOT / "operator" / "disque_operator")
    assert any((root / name).exists() for root in roots)


def test_pictures_have_no_semicolons() -> None:
    pictures = re.findall(r"```mermaid\n(.*?)```", PAGES, re.DOTALL)
    assert len(pictures) >= 5
    assert not any(";" in picture for picture in pictures), "they end a line of a sequence diagram"
