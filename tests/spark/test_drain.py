"""`disque-drain`: every job ID is in the Parquet once, also when it is killed in the middle, or jobs come again."""

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

pytestmark = pytest.mark.timeout(400)  # a busy machine may take a minute to start Spark

Say = Callable[..., tuple[int, str, str]]
PATIENCE_S = 300.0
"""For a Spark of its own to start and to get somewhere, on a machine with much to do."""


@pytest.fixture
def say(spark: SparkSession, nodes: str, capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs the command with these words; its exit code and what it said."""
    assert spark.version

    def run(*words: str | Path) -> tuple[int, str, str]:
        capsys.readouterr()
        status = drain.main(["--nodes", nodes, *map(str, words)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def add(cluster: RealCluster, queue: str, count: int, first: int = 0) -> set[str]:
    """Jobs on all nodes; their IDs."""
    ids = []
    for number, node in enumerate(cluster.nodes):
        bodies = range(first + number, first + count, len(cluster.nodes))
        with contextlib.closing(node.connect()) as client:
            ids += client.pipeline([("ADDJOB", queue, f"job {body}", 5000, "RETRY", 300) for body in bodies])
    return {job_id.decode() for job_id in ids}


def written(output: Path) -> dict[str, bytes]:
    """Body by ID, as any reader of Parquet finds them; no ID is there twice."""
    table = ds.dataset(output, format="parquet", partitioning="hive").to_table(columns=["id", "body"])
    rows = dict(zip(table["id"].to_pylist(), table["body"].to_pylist(), strict=True))
    assert len(rows) == table.num_rows, "an ID is there twice"
    return rows


def left(cluster: RealCluster, queue: str) -> int:
    """Jobs that no node knows to be done."""
    return sum(
        len(node.call("JSCAN", 0, "BUSYLOOP", "QUEUE", queue, "STATE", "queued", "STATE", "active")[1])
        for node in cluster.nodes
    )


def test_a_queue_becomes_parquet_and_is_empty_then(say: Say, cluster: RealCluster, tmp_path: Path) -> None:
    ids = add(cluster, "plain", 50)
    summary = tmp_path / "summary.json"
    status, _, err = say(
        "--queue", "plain", "--output", tmp_path / "out", "--max-jobs-per-batch", "20", "--metadata",
        "--summary", summary,
    )  # fmt: skip
    assert status == 0, err
    assert set(written(tmp_path / "out")) == ids
    assert set(written(tmp_path / "out").values()) == {b"job %d" % n for n in range(50)}
    numbers = json.loads(summary.read_text())
    assert (numbers["jobs"], numbers["batches"] >= 3) == (50, True)
    cluster.wait_until(lambda: left(cluster, "plain") == 0)


def test_the_next_run_adds_what_came_since(say: Say, cluster: RealCluster, tmp_path: Path) -> None:
    ids = add(cluster, "more", 9)
    words = ("--queue", "more", "--output", tmp_path / "out")
    assert say(*words)[0] == 0
    ids |= add(cluster, "more", 9, first=9)
    status, out, _ = say(*words)
    assert (status, out.split(",")[0]) == (0, "jobs: 9")
    assert set(written(tmp_path / "out")) == ids
    status, out, _ = say(*words)
    assert (status, out.split(",")[0]) == (0, "jobs: 0")


def test_jobs_that_come_again_after_they_were_written_are_not_written_again(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node comes back with a log from before the acknowledgements: the same IDs are delivered once more."""
    assert spark.version
    with RealCluster(tmp_path, 1, "--appendonly", "yes", meet=False) as cluster:
        (node,) = cluster.nodes
        node.server.wait_ready()
        ids = {node.call("ADDJOB", "again", f"job {n}", 0, "RETRY", 1).decode() for n in range(6)}
        shutil.copy(node.directory / "disque.aof", tmp_path / "before.aof")
        words = ["--nodes", node.address, "--queue", "again", "--output", str(tmp_path / "out")]
        assert drain.main(words) == 0
        cluster.wait_until(lambda: left(cluster, "again") == 0)
        node.kill()
        shutil.copy(tmp_path / "before.aof", node.directory / "disque.aof")
        node.restart()
        cluster.wait_until(lambda: node.info("persistence")["loading"] == "0")
        new = node.call("ADDJOB", "again", "new", 0, "RETRY", 1).decode()
        cluster.wait_until(lambda: node.call("QLEN", "again") == 7)
        capsys.readouterr()
        assert drain.main(words) == 0
        assert capsys.readouterr().out.startswith("jobs: 1,")
        assert set(written(tmp_path / "out")) == ids | {new}
        cluster.wait_until(lambda: left(cluster, "again") == 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--output {out}", "say what to read with one of the options queue, queues and queuePattern"),
        ("--queue a --queues b --output {out}", "the options queue and queues clash"),
        ("--queue a --output {out} --parts 0", "--parts is a whole number from 1 on"),
        ("--queue a --output {out} --max-jobs-per-batch many", "the option maxJobsPerTrigger is a whole number"),
        ("--queue a --output {out} --option state=x", "there is no option state"),
    ],
)
def test_what_can_not_be_meant_ends_with_2_and_says_why(say: Say, tmp_path: Path, words: str, said: str) -> None:
    status, _, err = say(*words.format(out=tmp_path / "out").split())
    assert status == 2
    assert said in err


def test_output_without_its_checkpoint_is_not_written_over(say: Say, cluster: RealCluster, tmp_path: Path) -> None:
    output = tmp_path / "out"
    ids = add(cluster, "apart", 3)
    assert say("--queue", "apart", "--output", output)[0] == 0
    shutil.rmtree(output / "_checkpoint")
    add(cluster, "apart", 3)
    status, _, err = say("--queue", "apart", "--output", output)
    assert (status, "is not their checkpoint" in err) == (2, True)
    assert set(written(output)) == ids


# --- killed -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def process(*words: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command in a process of its own, with a Spark of its own; all of it is killed at the end."""
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    started = subprocess.Popen(
        [sys.executable, "-m", "pipelines.drain", *map(str, words), "--conf", "spark.ui.enabled=false"],
        env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def kill_when(cluster: RealCluster, moment: Callable[[], bool], *words: str | Path) -> None:
    """Run the command, and kill it as soon as that is so."""
    with process(*words) as started:
        cluster.wait_until(lambda: moment() or started.poll() is not None, within_s=PATIENCE_S)
        assert started.poll() is None, "it ended before it could be killed"


MOMENTS = {
    "the first batch is taken": "_checkpoint/offsets/0",
    "it is being written": "batch=0/_temporary",
    "it is committed": "_checkpoint/commits/0",
    "a later batch is written": "batch=2/_SUCCESS",
}
"""What a run brings about in this order, and the file that shows it."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_at_one_moment_after_the_other_every_id_is_there_once(
    say: Say, cluster: RealCluster, nodes: str, tmp_path: Path
) -> None:
    ids = add(cluster, "mortal", 400)
    output = tmp_path / "out"
    words = ("--queue", "mortal", "--output", output, "--max-jobs-per-batch", "50")
    for shown in MOMENTS.values():
        kill_when(cluster, (output / shown).exists, "--nodes", nodes, *words)
        ids |= add(cluster, "mortal", 10)
    status, _, err = say(*words)
    assert status == 0, err
    assert set(written(output)) == ids
    cluster.wait_until(lambda: left(cluster, "mortal") == 0)
