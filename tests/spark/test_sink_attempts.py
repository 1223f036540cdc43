"""Tasks that run more than once: retried after a failure, or beside a slow one. Each with a Spark of its own.

A JVM has one master for its life, and that of the other tests tries nothing twice.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cluster import RealCluster
from support.jobs import bodies
from support.nodeclient import PATIENCE_S
from support.sparkwrites import TWO_MACHINES

ROWS = 2_000
TESTS = Path(__file__).parents[1]
WRITES_WITHIN_S = 240

pytestmark = [pytest.mark.slow, pytest.mark.timeout(WRITES_WITHIN_S + 60)]


class Write:
    """A process that writes `ROWS` rows into `queue`; its log tells why it failed."""

    def __init__(self, directory: Path, cluster: RealCluster, queue: str, mode: str, luck: str, master: str) -> None:
        self._cluster = cluster
        self._queue = queue
        self.gate = directory / "gate"
        self._log = directory / "log"
        nodes = ",".join(node.address for node in cluster.nodes)
        said = [master, luck, str(self.gate), str(ROWS), nodes, queue, mode]
        paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.sparkwrites", *said],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def half_is_there(self) -> None:
        """Until the unlucky task has given half of its rows, and the nodes have some of all."""
        self._cluster.wait_until(self._is_half, "half of the rows are on their way", within_s=WRITES_WITHIN_S)
        self._cluster.wait_until(lambda: len(self.bodies()) > 0, "some have arrived", within_s=PATIENCE_S)

    def _is_half(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        return Path(f"{self.gate}.0").exists()

    def end(self) -> None:
        """Let the unlucky task go on, and wait for the end of the write."""
        self.gate.touch()
        self.succeed()

    def succeed(self) -> None:
        """Wait for the end of the write."""
        assert self._process.wait(WRITES_WITHIN_S) == 0, self._log.read_text()

    def bodies(self) -> list[bytes]:
        """The numbers of the rows that are there."""
        return [body.rstrip() for body in bodies(self._cluster, self._queue)]

    def close(self) -> None:
        """End the process and all that it started, whatever they do."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@pytest.fixture
def writes(cluster: RealCluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Write]:
    mode, luck, master = request.param
    write = Write(tmp_path, cluster, f"{mode}-{luck}", mode, luck, master)
    yield write
    write.close()


ALL = sorted(b"%d" % number for number in range(ROWS))
THRICE = "local[2,3]"


@pytest.mark.parametrize(
    "writes", [("deduplicated", "fail_once", THRICE), ("deduplicated", "die_once", THRICE)], indirect=True, ids=str
)
def test_a_task_that_is_tried_again_adds_each_row_once(writes: Write) -> None:
    writes.half_is_there()
    writes.end()
    assert writes.bodies() == ALL


@pytest.mark.parametrize("writes", [("atLeastOnce", "die_once", THRICE)], indirect=True, ids=str)
def test_at_least_once_it_loses_none_and_repeats_no_more_than_its_own(writes: Write) -> None:
    writes.half_is_there()
    writes.end()
    found = writes.bodies()
    assert sorted(set(found)) == ALL
    assert ROWS < len(found) < ROWS + ROWS // 4 + 1


@pytest.mark.parametrize("writes", [("deduplicated", "be_slow_once", TWO_MACHINES)], indirect=True, ids=str)
def test_a_task_that_a_second_attempt_overtakes_adds_each_row_once(writes: Write) -> None:
    writes.half_is_there()
    writes.succeed()
    assert writes.bodies() == ALL
