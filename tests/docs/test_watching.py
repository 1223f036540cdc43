"""The page about watching a cluster names figures that INFO shows, and all that the rooms show."""

from __future__ import annotations

import re
from pathlib import Path

from disqued.testing.cluster import Cluster

PAGE = (Path(__file__).parents[2] / "docs" / "operations" / "watching.md").read_text(encoding="utf-8")
ROOMS = ("replication", "delivery", "acks", "federation")


def figures_of(cluster: Cluster, section: str) -> set[str]:
    text = cluster.members[0].admin.call("INFO", section)
    assert isinstance(text, bytes)
    return set(re.findall(r"^(\w+):", text.decode(), re.MULTILINE))


def test_the_figures_of_the_page_are_shown() -> None:
    named = {name for line in PAGE.splitlines() if line.startswith("|") for name in re.findall(r"`(\w+_\w+)`", line)}
    assert named - figures_of(Cluster(3), "all") == set()


def test_every_figure_of_the_rooms_is_on_the_page() -> None:
    cluster = Cluster(3)
    shown = {name for room in ROOMS for name in figures_of(cluster, room)}
    assert len(shown) > 15
    assert {name for name in shown if f"`{name}`" not in PAGE} == set()
