"""The program of `helm test`, against real brokers."""

from __future__ import annotations

import os
import subprocess
import sys

from charts.helm import CLUSTER
from disqued.client import Client
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess


def run(endpoint: str, *, timeout_s: float = 20, password: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the script as the test pod does: as an argument, with only its environment variables."""
    environ = {"PATH": os.environ["PATH"], "ENDPOINT": endpoint, "TIMEOUT_S": str(timeout_s)}
    if password is not None:
        environ["DISQUE_PASSWORD"] = password
    script = (CLUSTER / "files" / "jobs.py").read_text()
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_job_passes_and_leaves_nothing_behind(server: ServerProcess) -> None:
    done = run(f"127.0.0.1:{server.port}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "was added, fetched and acknowledged" in done.stdout
    with Client([f"127.0.0.1:{server.port}"]) as client:
        assert client.info("jobs")["registered_jobs"] == "0"


def test_password_is_used(server: ServerProcess) -> None:
    endpoint = f"127.0.0.1:{server.port}"
    with Client([endpoint]) as client:
        client.execute("CONFIG", "SET", "requirepass", "right")
    wrong = run(endpoint, timeout_s=0, password="wrong")
    assert wrong.returncode == 1
    assert "password" in wrong.stdout
    assert run(endpoint, password="right").returncode == 0


def test_timeout_is_reported() -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    done = run(endpoint, timeout_s=0)
    assert done.returncode == 1
    assert f"timed out after 0 s at {endpoint}; see: kubectl get disqueclusters" in done.stdout
