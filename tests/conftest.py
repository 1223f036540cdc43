"""Fixtures for the tests of every room (see `support.fixtures`), and how much Hypothesis tries.

Every run tries the same examples, so that failures are reproducible; `--hypothesis-profile=explore` tries new ones.
Examples have no deadlines, because their duration depends on the machine.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

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


class OneSpark(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """The tests of a file run in one process, and those of all files that share a Spark.

    A JVM takes half a minute of processor time until it is warm: one for each process costs more than to take turns.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "tests/spark" if nodeid.startswith("tests/spark/") else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Those that are slow mostly start a Spark themselves: they are only kept together by file."""
    return None if config.option.markexpr == "slow" else OneSpark(config, log)
