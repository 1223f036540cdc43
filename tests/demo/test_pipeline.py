"""The scene of dependent tasks: what its workers do when two of them had one task."""

from __future__ import annotations

import threading

import pytest

from disqued.client import Client, JobId
from disqued.demo import pipeline
from disqued.demo.pipeline import result_of
from disqued.testing.processes import ServerProcess


def ended_by_a_stale_worker(client: Client) -> JobId:
    """A task that is done, and whose result is still to come: nodes ignore that of a lower claim than they know."""
    job_id: JobId = client.add("demo:tasks", "count-650", replicate=1, retry_s=3, retain_s=60)
    client.ack(job_id, claim=7)
    return job_id


def test_sum_waits_for_the_result_of_the_last_worker_of_a_task(server: ServerProcess) -> None:
    with Client([f"127.0.0.1:{server.port}"]) as client, Client([f"127.0.0.1:{server.port}"]) as last:
        job_id = ended_by_a_stale_worker(client)
        late = threading.Timer(0.3, last.ack, [job_id], {"claim": 9, "result": "12"})
        late.start()
        assert result_of(client, job_id) == 12
        late.join()


def test_result_that_does_not_come_fails_the_scene(server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "DEADLINE_S", 0.2)
    with Client([f"127.0.0.1:{server.port}"]) as client:
        job_id = ended_by_a_stale_worker(client)
        with pytest.raises(ValueError, match="no node knows the result"):
            result_of(client, job_id)
