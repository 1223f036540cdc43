"""`disque-report`: its numbers match the files and nodes, and its page is self-contained."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from disqued.core.jobs.job import QUEUED
from disqued.persistence.records import forget
from persistence.samples import VECTORS, kept, make_job
from pipelines import report
from pipelines.charts import duration, number, ranges, size
from support.cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # a busy machine may take a minute to start Spark

Run = Callable[..., tuple[int, str, str]]
BORN_MS = 1_800_000_000_000


@pytest.fixture
def run(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command with these arguments; returns exit code, output and errors."""
    assert spark.version

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        capsys.readouterr()
        status = report.main([*map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def job_record(
    rng: random.Random, queue: bytes, at_s: float, ttl_s: int = 86_400, tries: int = 0
) -> tuple[bytes, bytes]:
    """Return the ID of a job that was created `at_s` seconds after the start, and its LOADJOB record."""
    job = make_job(rng, b"x" * 100)
    job.queue = queue
    job.state = QUEUED
    job.ctime = (BORN_MS + int(at_s * 1000)) * 10**6
    job.expire_at_s = BORN_MS // 1000 + int(at_s) + ttl_s
    job.nacks = tries
    job.additional_deliveries = 0
    return job.id, kept(job)


def write_story(path: Path, others: int = 0) -> None:
    """Write a log: in `mail`, job 1 took 10 to 20 s and job 2 has waited 80 s with 3 tries; in `old`, a job expired."""
    rng = random.Random(5)
    first, record = job_record(rng, b"mail", 0)
    _, waiting = job_record(rng, b"mail", 20, tries=3)
    _, old = job_record(rng, b"old", 10, ttl_s=5)
    last = [job_record(rng, b"q%02d" % n, 100)[1] for n in range(others or 1)]
    path.write_bytes(b"".join((record, old, forget(first), waiting, *last)))


def table(page: str) -> dict[str, dict[str, str]]:
    """Return the table of queues in the page."""
    heads = re.findall(r"<th>(.*?)</th>", page)
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr><td.*?</tr>", page, re.DOTALL)]
    return {row[0]: dict(zip(heads, row, strict=True)) for row in rows}


def test_ages_times_and_outcomes_match_the_log(run: Run, tmp_path: Path) -> None:
    write_story(tmp_path / "disque.aof")
    status, out, err = run("--aof", tmp_path / "disque.aof", "--output", tmp_path / "out")
    assert status == 0, err
    assert out.startswith("queues: 3, jobs: 4, waiting: 2, finished: 1, expired: 1, retried: 1")
    mail = table((tmp_path / "out" / "report.html").read_text())["mail"]
    assert (mail["oldest"], mail["took p50"], mail["p95 at most"]) == ("1.3 min", "10 s", "20 s")
    assert (mail["retried"], mail["most tries"], mail["body max"]) == ("1", "3", "100 B")


@pytest.mark.long
def test_as_of_sets_the_time_of_ages(run: Run, tmp_path: Path) -> None:
    write_story(tmp_path / "disque.aof")
    arguments = ("--aof", tmp_path / "disque.aof", "--output", tmp_path / "out", "--as-of", "2027-01-15T08:10:20")
    assert run(*arguments)[0] == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "As of 2027-01-15 08:10:20 UTC" in page
    assert table(page)["mail"]["oldest"] == "10 min"


@pytest.mark.long
def test_copies_in_several_files_are_one_job_finished_if_any_copy_is(
    run: Run, tmp_path: Path, spark: SparkSession
) -> None:
    """The original's files 03 and 04 belong to two nodes with copies of the same jobs."""
    names = ("03-full-life.aof", "04-full-life-replica.aof")
    status, _, err = run("--aof", *(VECTORS / name for name in names), "--output", tmp_path / "out")
    assert status == 0, err
    jobs = spark.read.parquet(str(tmp_path / "out" / "jobs"))
    files = spark.read.format("disque-aof").load([str(VECTORS / name) for name in names])
    assert jobs.count() == files.select("id").distinct().count() < files.count()
    ended = {row["id"] for row in files.where("finished").collect()}
    assert {row["id"] for row in jobs.where("state = 'finished'").collect()} == ended


@pytest.mark.long
def test_page_combines_many_queues_and_stays_small(run: Run, tmp_path: Path, spark: SparkSession) -> None:
    write_story(tmp_path / "disque.aof", others=90)
    assert run("--aof", tmp_path, "--output", tmp_path / "out")[0] == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert len(table(page)) == 50
    assert "42 queues with fewer jobs are only in the Parquet output" in page
    assert page.count("80 other queues") >= 3
    assert len(page) < 500_000
    assert spark.read.parquet(str(tmp_path / "out" / "queues")).count() == 92


class _Sources(HTMLParser):
    """Collects the resources that a page would load, and the tags that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [
            value or "" for name, value in attrs if name in {"src", "href"} and not (value or "").startswith("#")
        ]
        self.loaded += [tag] * (tag in {"script", "link", "iframe", "img"})
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.long
def test_page_is_self_contained_and_escapes_queue_names(run: Run, tmp_path: Path) -> None:
    rng = random.Random(6)
    names = (b"<script>alert(1)</script>", b"$^{\\frac", b"\xff\x00", "\N{SNOWMAN}".encode(), b"n" * 200)
    records = [job_record(rng, name, 1)[1] for name in names]
    (tmp_path / "disque.aof").write_bytes(b"".join(records))
    status, _, err = run("--aof", tmp_path / "disque.aof", "--output", tmp_path / "out", "--title", "<b>me</b>")
    assert status == 0, err
    page = (tmp_path / "out" / "report.html").read_text()
    sources = _Sources()
    sources.feed(page)
    assert (sources.loaded, sources.open) == ([], [])
    assert "<b>me" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\N{SNOWMAN}" in page


@pytest.mark.long
def test_empty_log_gives_a_report_without_jobs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "disque.aof").write_bytes(b"")
    status, out, err = run("--aof", tmp_path / "disque.aof", "--output", tmp_path / "out")
    assert status == 0, err
    assert out.startswith("queues: 0, jobs: 0, waiting: 0")
    assert "No jobs." in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.long
def test_report_on_live_nodes_has_waiting_jobs_and_current_retries(
    run: Run, cluster: RealCluster, nodes: str, tmp_path: Path
) -> None:
    node = cluster.nodes[0]
    ids = [node.call("ADDJOB", "live", "body", 5000, "RETRY", 300) for _ in range(4)]
    taken = node.call("GETJOB", "COUNT", 1, "FROM", "live")
    node.call("NACK", taken[0][1])
    summary = tmp_path / "summary.json"
    arguments = ("--nodes", nodes, "--queues", "live", "--output", tmp_path / "out", "--summary", summary)
    status, _, err = run(*arguments)
    assert status == 0, err
    numbers = json.loads(summary.read_text())
    assert (numbers["jobs"], numbers["waiting"], numbers["retried"]) == (len(ids), 4, 1)
    page = (tmp_path / "out" / "report.html").read_text()
    assert table(page)["live"]["most tries"] == "1"
    assert "live nodes forget finished jobs" in page


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ("", 2, "set exactly one source"),
        ("--aof x --nodes y:1", 2, "set exactly one source"),
        ("--aof /nowhere.aof", 2, "no append-only file at /nowhere.aof"),
        ("--nodes y:1 --queues a --queue-pattern b", 2, "the options queues and queuePattern conflict"),
        (f"--aof {VECTORS}/08-garbage.aof", 1, "disque-check-aof"),
    ],
)
def test_unreadable_input_exits_with_the_reason(
    run: Run, tmp_path: Path, arguments: str, status: int, message: str
) -> None:
    ended, _, err = run(*arguments.split(), "--output", tmp_path / "out")
    assert (ended, message in err.splitlines()[-1]) == (status, True), err


@pytest.mark.long
def test_skip_damage_reports_on_the_valid_records_of_damaged_files(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("--aof", VECTORS / "08-garbage.aof", "--skip-damage", "--output", tmp_path / "out")
    assert (status, out.split(", w")[0]) == (0, "queues: 3, jobs: 3")


def test_numbers_are_formatted_with_units() -> None:
    assert [duration(value) for value in (None, 0.0, 0.004, 0.25, 59.0, 90.0, 7200.0, 200_000.0)] == [
        "-", "0 s", "4 ms", "0.2 s", "59 s", "1.5 min", "2 h", "2.3 d",
    ]  # fmt: skip
    assert [size(value) for value in (None, 0, 999, 1536, 20 << 20, 3 << 30)] == [
        "-", "0 B", "999 B", "1.5 kB", "20 MB", "3 GB",
    ]  # fmt: skip
    assert [number(value) for value in (0, 9999, 12_500, 3_400_000)] == ["0", "9999", "12k", "3.4M"]
    assert ranges((1.0, 2.0, 4.0), number, whole=True) == ["0", "1", "2 to 3", "4+"]
    assert ranges((1.0, 60.0), duration) == ["< 1 s", "≥ 1 s", "≥ 1 min"]
