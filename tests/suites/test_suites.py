"""The integration tests of kombu and Celery pass with this broker, also when a node is killed meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from disqued.testing.ports import free_port
from disqued.testing.processes import LocalProcess, ServerProcess, form_cluster, wait_until
from suites.excluded import CELERY as NOT_OF_CELERY
from suites.excluded import KOMBU as NOT_OF_KOMBU
from suites.sources import CELERY, KOMBU, Source

HERE = Path(__file__).parent
RUN_S = 1500
FILES = {"tasks": ("test_tasks.py", "test_inspect.py", "test_worker.py"), "canvas": ("test_canvas.py",)}

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(RUN_S + 60)]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[ServerProcess]]:
    """Three nodes."""
    with ExitStack() as stack:
        servers = []
        for number in range(3):
            directory = tmp_path / f"node{number}"
            directory.mkdir()
            servers.append(stack.enter_context(ServerProcess(directory)))
        form_cluster(servers)
        yield servers


def copy_of_tests(source: Source, directory: Path) -> Path:
    """Copy the integration tests of a source distribution, without the code that they test; skips without a network."""
    try:
        unpacked = source.unpack()
    except subprocess.CalledProcessError:
        pytest.skip(f"pip cannot download {source.name} {source.version}")
    shutil.copytree(unpacked / "t", directory / "t", ignore=shutil.ignore_patterns("unit", "smoke"))
    return directory


class Suite:
    """A run of pytest in a directory with tests of others, for the installed package; it prints into `suite.log`."""

    def __init__(self, directory: Path, files: Iterable[str], left_out: Iterable[str], **environment: str) -> None:
        self.log = directory / "suite.log"
        plugins = ("-p", "celery.contrib.pytest", "-p", "no:cacheprovider", "-p", "no:xdist")
        settings = ("-o", "python_classes=test_*", "--timeout=120", "--rootdir=.")
        deselected = [f"--deselect=t/integration/{name}" for name in left_out]
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-v", "--tb=short", *plugins, *settings, *deselected, *files],
                cwd=directory,
                env={**os.environ, "PATH": path, "PYTHONPATH": str(directory), **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_for(self, text: str) -> None:
        """Wait until the run has printed a text, or has ended."""
        wait_until(lambda: text in self.output or self._process.poll() is not None, text, lambda: self.output, RUN_S)

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def passes(self) -> bool:
        """Wait for the end; whether all tests passed."""
        try:
            return self._process.wait(RUN_S) == 0
        finally:
            self._process.kill()


def url_of(nodes: Iterable[ServerProcess]) -> str:
    return "disque://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)


def test_kombu_runs_its_tests_of_transports(nodes: list[ServerProcess], tmp_path: Path) -> None:
    directory = copy_of_tests(KOMBU, tmp_path)
    shutil.copy(HERE / "kombucases.py", directory / "t" / "integration" / "test_disque.py")
    left_out = [f"test_disque.py::{name}" for name in NOT_OF_KOMBU]
    suite = Suite(directory, ["t/integration/test_disque.py"], left_out, TEST_BROKER=url_of(nodes))
    assert suite.passes(), suite.output
    assert "46 passed" in suite.output


@pytest.mark.parametrize("part", FILES)
def test_celery_runs_its_tests_while_a_node_is_killed(nodes: list[ServerProcess], tmp_path: Path, part: str) -> None:
    directory = copy_of_tests(CELERY, tmp_path)
    soon: Mapping[str, object] = {"broker_transport_options": {"retry": 5}}
    (directory / "integration-tests-config.json").write_text(json.dumps(soon))
    (tmp_path / "redis").mkdir()
    port = free_port()
    redis = ("redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1")
    with LocalProcess(redis, tmp_path / "redis", port) as notes:
        suite = Suite(
            directory,
            [f"t/integration/{file}" for file in FILES[part]],
            NOT_OF_CELERY,
            TEST_BROKER=url_of(nodes),
            TEST_BACKEND=f"redis://127.0.0.1:{notes.port}/0",  # most tests ask for it, one for its database 0
            REDIS_HOST="127.0.0.1",
            REDIS_PORT=str(notes.port),
        )
        suite.wait_for("[ 20%]")
        nodes[0].kill()
        assert suite.passes(), suite.output
