"""What an image gets of requirements.lock: the entries that it needs, with their hashes."""

from __future__ import annotations

from pathlib import Path

import pytest

import locked

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
SMALL = """\
Big_Name==2.0 ; python_version < '3.12' \\
    --hash=sha256:aa \\
    --hash=sha256:bb
big-name==3.0 ; python_version >= '3.12' \\
    --hash=sha256:cc
small==1.0 \\
    --hash=sha256:dd
"""


def test_an_entry_is_taken_with_its_hashes_for_every_marker() -> None:
    assert locked.part(SMALL, {"big-name"}) == SMALL.partition("small")[0]


def test_a_package_that_the_lock_lacks_is_told_of() -> None:
    with pytest.raises(SystemExit, match=r"^requirements\.lock lacks more, other: run `make lock`"):
        locked.part(SMALL, {"small", "other", "more"})


def test_constraints_are_the_lock_without_its_hashes() -> None:
    assert locked.pins(SMALL).splitlines() == [
        "Big_Name==2.0 ; python_version < '3.12'",
        "big-name==3.0 ; python_version >= '3.12'",
        "small==1.0",
    ]


def test_every_entry_of_the_lock_has_a_version_and_hashes() -> None:
    for name, blocks in locked.entries(LOCK).items():
        for block in blocks:
            first, *rest = block.splitlines()
            assert locked.canonical(first.partition("==")[0]) == name
            assert rest, block
            assert all(line.startswith("    --hash=sha256:") for line in rest), block
