"""The sizing table follows from the measured costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent.parent / "bench"
COST = {"clients": 20.0, "other": 10.0, "file_bytes": 200.0, "jobs_per_s": 1.0}
HALF = {"clients": 60.0, "other": 20.0, "file_bytes": 200.0, "jobs_per_s": 1.0}
RESULTS = {
    "body_memory": {"64": 400.0, "1024": 1400.0},
    "copies": {"everysec": {"in batches": [COST], "one at a time": [COST], "one at a time, half load": [HALF]}},
}


def test_rate_is_divided_by_half_a_core_for_each_node_and_three_nodes_are_the_least() -> None:
    """40 us in batches and 100 us singly of all nodes: 12,500 and 5,000 jobs/s for each half core."""
    code = f"import json, capacity_report; print(json.dumps(capacity_report.tables({RESULTS!r})[-1].rows))"
    done = subprocess.run([sys.executable, "-c", code], cwd=BENCH, capture_output=True, text=True, check=True)
    rows = {row[0]: row[1:] for row in json.loads(done.stdout)}
    assert rows["1,000"] == ["3", "3", "0.6 MB/s", "0.7 GiB", "2.3 GiB"]
    assert rows["50,000"] == ["4", "10", "30.0 MB/s", "33.5 GiB", "117.3 GiB"]
