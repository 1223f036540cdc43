"""Dramatiq's own tests, from its source distribution, with this broker: three nodes and no test double."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from suites.dramatiq_suite import install
from suites.dramatiq_suite.brokers import NODES
from suites.excluded import DRAMATIQ as LEFT_OUT
from suites.sources import DRAMATIQ
from support.cluster import RealCluster

TESTS: Final = Path(__file__).parents[1]
RUN_S: Final = 800


def leave_out(test: str) -> str:
    return f"--ignore={test}" if test.endswith(".py") else f"--deselect={test}"


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(RUN_S + 60)
def test_dramatiqs_own_tests_pass_on_three_nodes(tmp_path: Path) -> None:
    try:
        unpacked = DRAMATIQ.unpack()
    except subprocess.CalledProcessError:
        pytest.skip(f"pip cannot download {DRAMATIQ.name} {DRAMATIQ.version}")
    directory = tmp_path / "run"
    shutil.copytree(unpacked / "tests", directory / "tests")
    install(directory / "tests")
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=120", "--rootdir=.")
    with RealCluster(directory, 3) as cluster:
        environment = {
            NODES: ",".join(node.address for node in cluster.nodes),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH")))),
            "dramatiq_restart_delay": "100",
        }
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *map(leave_out, LEFT_OUT), "tests"],
            cwd=directory,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_S,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-20_000:]
    assert "146 passed" in done.stdout
