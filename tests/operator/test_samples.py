"""The programs in the samples. e2e/test_schema.py tests the samples with an API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from disqued.client import Client
from disqued.testing.processes import ServerProcess
from support.manifests import sample


def test_producer_sample_fills_its_queue(server: ServerProcess, tmp_path: Path) -> None:
    program = tmp_path / "producer.py"
    job, config_map = sample("spark-producer")
    program.write_text(config_map["data"]["producer.py"])
    (container,) = job["spec"]["template"]["spec"]["containers"]
    environment = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
    address = f"127.0.0.1:{server.port}"
    environment |= {"DISQUE": address, "EVENTS": "2500", "REPLICATE": "1"}
    done = subprocess.run(
        [sys.executable, program], env=os.environ | environment, capture_output=True, check=True, encoding="utf-8"
    )
    assert done.stdout == "2500 events are in the queue events\n"
    with Client([address]) as client:
        jobs = client.get("events", count=3000)
        assert len({json.loads(job.body)["key"] for job in jobs}) == 2500
