"""The page about leaving lists every value of the status and quotes the reasons that a node gives."""

from __future__ import annotations

import re
from pathlib import Path

from disqued.testing.cluster import Cluster
from support.asking import pairs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations" / "leaving.md").read_text(encoding="utf-8")
STATUS, _, REASONS = PAGE.partition("## CLUSTER LEAVING status")[2].partition("## When leaving makes no progress")


def test_every_value_of_the_status_is_explained() -> None:
    cluster = Cluster(2)
    admin = cluster.members[0].admin
    assert admin.call("CLUSTER", "LEAVING", "yes") == b"OK"
    names = list(pairs(admin, "CLUSTER", "LEAVING", "status"))
    assert re.findall(r"^\| `([a-z-]+)` \|", STATUS, re.MULTILINE) == [name.decode() for name in names]


def test_quoted_reasons_are_those_of_the_program() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "broker" / "disqued" / "leaving").glob("*.py"))
    cells = re.findall(r"^\| (`.*?`) \|", REASONS, re.MULTILINE)
    quoted = [reason for cell in cells for reason in re.findall(r"`([^`]+)`", cell)]
    assert len(quoted) > 3
    assert [reason for reason in quoted if f'"{reason}"' not in sources] == []
