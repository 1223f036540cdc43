"""The benchmark of the metrics page runs, on a node with few queues."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_pages_are_made_and_measured() -> None:
    command = [sys.executable, str(ROOT / "bench" / "metrics.py"), "--queues", "50"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^ +50 (\S+) +(\d+) +[\d.]+ +\d+ +[\d.]+$", done.stdout, re.MULTILINE)
    assert [query for query, _ in rows] == ["(default)", "queues=all", "queue=*-7*&queues=all"]
    assert int(rows[0][1]) > 30
    assert "a value of the first bucket: " in done.stdout
