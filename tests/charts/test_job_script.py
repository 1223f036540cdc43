"""What `helm test` runs in its pod, against real brokers."""

from __future__ import annotations

import os
import subprocess
import sys

from charts.helm import CLUSTER
from disqued.client import Client
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess


def run(endpoint: str, *, timeout_s: float = 20, password: str | None = None) -> subprocess.CompletedProcess[str]:
    """The script as the pod has it: as an argument, with nothing but its environment."""
    environ = {"PATH": os.environ["PATH"], "ENDPOINT": endpoint, "TIMEOUT_S": str(timeout_s)}
    if password is not None:
        environ["DISQUE_PASSWORD"] = password
    script = (CLUSTER / "files" / "jobs.py").read_text()
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_a_job_goes_through_and_nothing_is_left(server: ServerProcess) -> None:
    done = run(f"127.0.0.1:{server.port}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "was added, fetched and acknowledged" in done.stdout
    with Client([f"127.0.0.1:{server.port}"]) as client:
        assert client.info("jobs")["registered_jobs"] == "0"


def test_the_password_is_used(server: ServerProcess) -> None:
    endpoint = f"127.0.0.1:{server.port}"
    with Client([endpoint]) as client:
        client.execute("CONFIG", "SET", "requirepass", "right")
    wrong = run(endpoint, timeout_s=0, password="wrong")
    assert wrong.returncode == 1
    assert "password" in wrong.stdout
    assert run(endpoint, password="right").returncode == 0


def test_what_is_wrong_is_told_when_the_time_is_over() -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    done = run(endpoint, timeout_s=0)
    assert done.returncode == 1
    assert f"No job went through {endpoint} in 0 s. Look at: kubectl get disqueclusters" in done.stdout
