"""An image installs the entries of requirements.lock that it needs, with their hashes."""

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


def test_part_has_all_entries_of_a_package_with_hashes() -> None:
    assert locked.part(SMALL, {"big-name"}) == SMALL.partition("small")[0]


def test_package_missing_in_the_lock_is_an_error() -> None:
    with pytest.raises(SystemExit, match=r"^packages missing in requirements\.lock: more, other; run `make lock`"):
        locked.part(SMALL, {"small", "other", "more"})


def test_constraints_are_the_lock_without_hashes() -> None:
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
