"""`disque-drain`: the Parquet has every job ID once, even if the command is killed or jobs are delivered again."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from pipelines import drain
from support.cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # a busy machine may take a minute to start Spark

Run = Callable[..., tuple[int, str, str]]
TIMEOUT_S = 300.0
"""For a separate Spark process to start and to reach a stage, on a busy machine."""


@pytest.fixture
def run(spark: SparkSession, nodes: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command with these arguments; returns exit code, output and errors."""
    assert spark.version

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        capsys.readouterr()
        status = drain.main(["--nodes", nodes, *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def add(cluster: RealCluster, queue: str, count: int, first: int = 0) -> set[str]:
    """Add jobs on all nodes and return their IDs."""
    ids = []
    for number, node in enumerate(cluster.nodes):
        bodies = range(first + number, first + count, len(cluster.nodes))
        with contextlib.closing(node.connect()) as client:
            ids += client.pipeline([("ADDJOB", queue, f"job {body}", 5000, "RETRY", 300) for body in bodies])
    return {job_id.decode() for job_id in ids}


def written(output: Path) -> dict[str, bytes]:
    """Return the bodies by job ID, read as plain Parquet, and check that no ID is duplicated."""
    table = ds.dataset(output, format="parquet", partitioning="hive").to_table(columns=["id", "body"])
    rows = dict(zip(table["id"].to_pylist(), table["body"].to_pylist(), strict=True))
    assert len(rows) == table.num_rows, "duplicate IDs"
    return rows


def left(cluster: RealCluster, queue: str) -> int:
    """Return the number of copies that are not acknowledged."""
    return sum(
        len(node.call("JSCAN", 0, "BUSYLOOP", "QUEUE", queue, "STATE", "queued", "STATE", "active")[1])
        for node in cluster.nodes
    )


def test_drain_writes_the_queue_to_parquet_and_empties_it(run: Run, cluster: RealCluster, tmp_path: Path) -> None:
    ids = add(cluster, "plain", 50)
    summary = tmp_path / "summary.json"
    status, _, err = run(
        "--queue", "plain", "--output", tmp_path / "out", "--max-jobs-per-batch", "20", "--metadata",
        "--summary", summary,
    )  # fmt: skip
    assert status == 0, err
    assert set(written(tmp_path / "out")) == ids
    assert set(written(tmp_path / "out").values()) == {b"job %d" % n for n in range(50)}
    numbers = json.loads(summary.read_text())
    assert (numbers["jobs"], numbers["batches"] >= 3) == (50, True)
    cluster.wait_until(lambda: left(cluster, "plain") == 0)


@pytest.mark.long
def test_next_run_writes_only_new_jobs(run: Run, cluster: RealCluster, tmp_path: Path) -> None:
    ids = add(cluster, "more", 9)
    arguments = ("--queue", "more", "--output", tmp_path / "out")
    assert run(*arguments)[0] == 0
    ids |= add(cluster, "more", 9, first=9)
    status, out, _ = run(*arguments)
    assert (status, out.split(",")[0]) == (0, "jobs: 9")
    assert set(written(tmp_path / "out")) == ids
    status, out, _ = run(*arguments)
    assert (status, out.split(",")[0]) == (0, "jobs: 0")


@pytest.mark.long
def test_jobs_delivered_again_after_they_were_written_are_not_written_again(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node restarts with a log from before the acknowledgements, so it delivers the same IDs again."""
    assert spark.version
    with RealCluster(tmp_path, 1, "--appendonly", "yes", meet=False) as cluster:
        (node,) = cluster.nodes
        node.server.wait_ready()
        ids = {node.call("ADDJOB", "again", f"job {n}", 0, "RETRY", 1).decode() for n in range(6)}
        shutil.copy(node.directory / "disque.aof", tmp_path / "before.aof")
        arguments = ["--nodes", node.address, "--queue", "again", "--output", str(tmp_path / "out")]
        assert drain.main(arguments) == 0
        cluster.wait_until(lambda: left(cluster, "again") == 0)
        node.kill()
        shutil.copy(tmp_path / "before.aof", node.directory / "disque.aof")
        node.restart()
        cluster.wait_until(lambda: node.info("persistence")["loading"] == "0")
        new = node.call("ADDJOB", "again", "new", 0, "RETRY", 1).decode()
        cluster.wait_until(lambda: node.call("QLEN", "again") == 7)
        capsys.readouterr()
        assert drain.main(arguments) == 0
        assert capsys.readouterr().out.startswith("jobs: 1,")
        assert set(written(tmp_path / "out")) == ids | {new}
        cluster.wait_until(lambda: left(cluster, "again") == 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--output {out}", "no queue to read; set one of the options queue, queues and queuePattern"),
        ("--queue a --queues b --output {out}", "the options queue and queues conflict"),
        ("--queue a --output {out} --parts 0", "--parts must be at least 1"),
        ("--queue a --output {out} --max-jobs-per-batch many", "the option maxJobsPerTrigger must be an integer"),
        ("--queue a --output {out} --option state=x", "unknown option state"),
    ],
)
def test_invalid_input_exits_with_2_and_the_reason(run: Run, tmp_path: Path, arguments: str, message: str) -> None:
    status, _, err = run(*arguments.format(out=tmp_path / "out").split())
    assert status == 2
    assert message in err


@pytest.mark.long
def test_output_without_its_checkpoint_is_not_overwritten(run: Run, cluster: RealCluster, tmp_path: Path) -> None:
    output = tmp_path / "out"
    ids = add(cluster, "apart", 3)
    assert run("--queue", "apart", "--output", output)[0] == 0
    shutil.rmtree(output / "_checkpoint")
    add(cluster, "apart", 3)
    status, _, err = run("--queue", "apart", "--output", output)
    assert (status, "is not their checkpoint" in err) == (2, True)
    assert set(written(output)) == ids


# --- killed -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def process(*arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command in a separate process with its own Spark, and kill both at the end."""
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    started = subprocess.Popen(
        [sys.executable, "-m", "pipelines.drain", *map(str, arguments), "--conf", "spark.ui.enabled=false"],
        env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def kill_when(cluster: RealCluster, is_reached: Callable[[], bool], *arguments: str | Path) -> None:
    """Run the command, and kill it as soon as it has reached a stage."""
    with process(*arguments) as started:
        cluster.wait_until(lambda: is_reached() or started.poll() is not None, within_s=TIMEOUT_S)
        assert started.poll() is None, "the command ended before it could be killed"


STAGES = {
    "the first batch is leased": "_checkpoint/offsets/0",
    "it is being written": "batch=0/_temporary",
    "it is committed": "_checkpoint/commits/0",
    "a later batch is written": "batch=2/_SUCCESS",
}
"""The stages of a run in order, each with the file that shows that the run has reached it."""


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_id_is_written_once_when_drains_are_killed_at_each_stage(
    run: Run, cluster: RealCluster, nodes: str, tmp_path: Path
) -> None:
    ids = add(cluster, "killed", 400)
    output = tmp_path / "out"
    arguments = ("--queue", "killed", "--output", output, "--max-jobs-per-batch", "50")
    for shown in STAGES.values():
        kill_when(cluster, (output / shown).exists, "--nodes", nodes, *arguments)
        ids |= add(cluster, "killed", 10)
    status, _, err = run(*arguments)
    assert status == 0, err
    assert set(written(output)) == ids
    cluster.wait_until(lambda: left(cluster, "killed") == 0)
