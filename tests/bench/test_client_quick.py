"""The measurement of the Python client runs, with few jobs."""

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
@pytest.mark.skipif(shutil.which("cc") is None, reason="the load generator needs a C compiler")
def test_client_is_measured_beside_code_by_hand_and_consumers_move_or_stay() -> None:
    command = [sys.executable, str(ROOT / "bench" / "client.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("x1.00 [1.00-1.00]") == 2, "code by hand beside itself"
    for row in ("add_many", "get and ack", "get + ack, consumer", "consumer stays", "consumer moves"):
        assert row in done.stdout
