"""The script takes all pictures of the guide, and the guide shows them all."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from support.chromium import find_chromium

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
GUIDE = ROOT / "docs" / "howto" / "console.md"


def size_of(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def test_guide_shows_all_pictures() -> None:
    shown = set(re.findall(r"\(\.\./images/(console-[\w-]+\.png)\)", GUIDE.read_text()))
    assert shown == {path.name for path in IMAGES.glob("console-*.png")}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)")
def test_script_takes_all_pictures(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "docs.generate.console_pictures", str(tmp_path), "3"]
    subprocess.run(command, cwd=ROOT, check=True, timeout=110)
    taken = {path.name: path for path in tmp_path.iterdir()}
    assert taken.keys() == {path.name for path in IMAGES.glob("console-*.png")}
    for name, path in taken.items():
        assert size_of(path) == size_of(IMAGES / name)
        assert path.stat().st_size > 10_000, "not an empty page"
