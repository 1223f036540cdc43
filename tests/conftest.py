"""Fixtures for the tests of every room (see `support.fixtures`), and how much Hypothesis tries.

Every run tries the same examples, so that failures are reproducible; `--hypothesis-profile=explore` tries new ones.
Examples have no deadlines, because their duration depends on the machine.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling, Scheduling

from disqued.testing.processes import ServerProcess
from support.fixtures import client, cluster, local, pair

__all__ = ["client", "cluster", "local", "pair"]

settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("steady"), derandomize=False, max_examples=2000)
settings.load_profile("steady")

# A shell starts background jobs with SIGINT ignored, which child processes inherit. Those that the tests interrupt must
# handle it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A fresh broker node, alone in its cluster."""
    with ServerProcess(tmp_path) as process:
        yield process


FIRST: Final = (
    *("suites", "examples", "spark", "simulation", "kombu_transport", "docs", "monitoring", "tls", "console"),
    *("dramatiq_adapter", "memory", "demo"),
)
"""The folders of the files that take longest. They begin first, so that no process works on one when the others end."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of `FIRST` first."""
    places = {folder: place for place, folder in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.path.parent.name, len(places)))


class Shares(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """The tests of a file run in one process, and those of all files that share a Spark; each mutation is by itself.

    A JVM takes half a minute of processor time until it is warm: one for each process costs more than to take turns.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/simulation/test_mutations.py"):
            return nodeid
        return "tests/spark" if nodeid.startswith("tests/spark/") else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Slow tests mostly start a Spark themselves: they are only kept together by file."""
    return Shares(config, log) if config.option.markexpr == "not slow" else None
