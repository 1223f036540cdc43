"""The measurement of the Spark connector runs, with few jobs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17 or newer, which is not here")
def test_every_workload_of_the_pipeline_is_measured() -> None:
    command = [sys.executable, str(ROOT / "bench" / "pipeline.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("foreachPartition, redis-py") == 3
    assert done.stdout.count("connector, ") == 5
    assert "200  " in done.stdout.partition("Peak memory of a task")[2]
