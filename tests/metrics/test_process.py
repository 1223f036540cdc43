"""Statistics of the process, read in short steps."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from disqued.metrics.process import AT_A_TIME, PROC, Process, list_files

WAYS = ("counted", "listed")
"""Both ways to count open files: older systems do not know their number."""

MEASURE = """
import json, os, sys
from prometheus_client import ProcessCollector
from disqued.metrics import process

if sys.argv[1] == "listed":
    process.open_files = lambda folder: 0
ours = process.Process()

def look():
    steps = len(list(ours.steps()))
    return {"figures": dict(ours.figures), "steps": steps}

found = ProcessCollector(registry=None).collect()
theirs = {sample.name: sample.value for family in found for sample in family.samples}
first = look()
files = [os.open(os.devnull, os.O_RDONLY) for _ in range(100)]
print(json.dumps({"theirs": theirs, "ours": first, "more": look()}))
"""
"""A process in which nothing else opens or closes files meanwhile, as threads of the test runner do."""


def look(one: Process) -> int:
    """Run all steps; return their number."""
    return len(list(one.steps()))


@pytest.fixture(params=WAYS)
def measured(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a process reads about itself, before and after it opens 100 files."""
    if request.param == "counted" and (PROC / "self" / "fd").stat().st_size == 0:
        pytest.skip("the system does not know the number of open files")
    command = [sys.executable, "-c", MEASURE, request.param]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {"way": request.param, **json.loads(printed)}


def test_statistics_match_prometheus_client(measured: dict[str, Any]) -> None:
    ours, theirs = measured["ours"]["figures"], measured["theirs"]
    assert ours.keys() == theirs.keys()
    assert ours["process_open_fds"] == theirs["process_open_fds"] - 1, "ProcessCollector counts the open directory, too"
    for same in ("process_max_fds", "process_start_time_seconds"):
        assert ours[same] == pytest.approx(theirs[same])
    for near in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_virtual_memory_bytes"):
        assert ours[near] == pytest.approx(theirs[near], rel=0.5)


def test_open_files_are_counted(measured: dict[str, Any]) -> None:
    before = measured["ours"]["figures"]["process_open_fds"]
    assert measured["more"]["figures"]["process_open_fds"] == before + 100


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    for number in range(2 * AT_A_TIME + 5):
        (tmp_path / str(number)).touch()
    return tmp_path


def test_many_open_files_are_listed_in_steps(crowd: Path) -> None:
    steps = list(list_files(crowd))
    assert steps[-1] == 2 * AT_A_TIME + 5 - 1, "one of them is the directory"
    assert max(after - before for before, after in itertools.pairwise(steps)) == AT_A_TIME


def test_open_files_are_not_listed_when_the_system_knows_their_number(measured: dict[str, Any]) -> None:
    assert (measured["ours"]["steps"] == 0) == (measured["way"] == "counted")


def test_system_without_proc_has_no_statistics(tmp_path: Path) -> None:
    one = Process(tmp_path)
    look(one)
    assert one.figures == {}
