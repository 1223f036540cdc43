"""Tasks that run more than once: retried after a failure, or speculatively next to a slow one.

Each test has its own Spark process, because a JVM has one master and that of the other tests does not retry tasks.
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
from support.nodeclient import TIMEOUT_S
from support.sparkwrites import TWO_HOSTS

ROWS = 2_000
TESTS = Path(__file__).parents[1]
WRITES_WITHIN_S = 240

pytestmark = [pytest.mark.slow, pytest.mark.timeout(WRITES_WITHIN_S + 60)]


class Write:
    """A process that writes `ROWS` rows to `queue`; its log has the reason of a failure."""

    def __init__(self, directory: Path, cluster: RealCluster, queue: str, mode: str, fault: str, master: str) -> None:
        self._cluster = cluster
        self._queue = queue
        self.gate = directory / "gate"
        self._log = directory / "log"
        nodes = ",".join(node.address for node in cluster.nodes)
        arguments = [master, fault, str(self.gate), str(ROWS), nodes, queue, mode]
        paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.sparkwrites", *arguments],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def half_is_there(self) -> None:
        """Wait until the faulty task has yielded half of its rows, and the nodes have some rows."""
        self._cluster.wait_until(self._is_half, "half of the rows are sent", within_s=WRITES_WITHIN_S)
        self._cluster.wait_until(lambda: len(self.bodies()) > 0, "some rows have arrived", within_s=TIMEOUT_S)

    def _is_half(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        return Path(f"{self.gate}.0").exists()

    def end(self) -> None:
        """Let the faulty task continue, and wait for the end of the write."""
        self.gate.touch()
        self.succeed()

    def succeed(self) -> None:
        """Wait for the end of the write."""
        assert self._process.wait(WRITES_WITHIN_S) == 0, self._log.read_text()

    def bodies(self) -> list[bytes]:
        """Return the numbers of the rows that arrived."""
        return [body.rstrip() for body in bodies(self._cluster, self._queue)]

    def close(self) -> None:
        """Kill the process and all its child processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@pytest.fixture
def writes(cluster: RealCluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Write]:
    mode, fault, master = request.param
    write = Write(tmp_path, cluster, f"{mode}-{fault}", mode, fault, master)
    yield write
    write.close()


ALL = sorted(b"%d" % number for number in range(ROWS))
THREE_ATTEMPTS = "local[2,3]"


@pytest.mark.parametrize(
    "writes",
    [("deduplicated", "fail_once", THREE_ATTEMPTS), ("deduplicated", "exit_once", THREE_ATTEMPTS)],
    indirect=True,
    ids=str,
)
def test_retried_task_adds_each_row_once(writes: Write) -> None:
    writes.half_is_there()
    writes.end()
    assert writes.bodies() == ALL


@pytest.mark.long
@pytest.mark.parametrize("writes", [("atLeastOnce", "exit_once", THREE_ATTEMPTS)], indirect=True, ids=str)
def test_retried_at_least_once_task_loses_nothing_and_repeats_only_its_own_rows(writes: Write) -> None:
    writes.half_is_there()
    writes.end()
    found = writes.bodies()
    assert sorted(set(found)) == ALL
    assert ROWS < len(found) < ROWS + ROWS // 4 + 1


@pytest.mark.long
@pytest.mark.parametrize("writes", [("deduplicated", "be_slow_once", TWO_HOSTS)], indirect=True, ids=str)
def test_speculative_attempt_adds_each_row_once(writes: Write) -> None:
    writes.half_is_there()
    writes.succeed()
    assert writes.bodies() == ALL
