"""Statistics of the process, read in short steps."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from prometheus_client import ProcessCollector

from disqued.metrics import process
from disqued.metrics.process import AT_A_TIME, PROC, Process, list_files


def look(one: Process) -> int:
    """Run all steps; return their number."""
    return len(list(one.steps()))


@pytest.fixture(params=["counted", "listed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to count open files: older systems do not know their number."""
    if request.param == "listed":
        monkeypatch.setattr(process, "open_files", lambda _folder: 0)
    elif (PROC / "self" / "fd").stat().st_size == 0:
        pytest.skip("the system does not know the number of open files")
    return str(request.param)


@pytest.mark.usefixtures("way")
def test_statistics_match_prometheus_client() -> None:
    theirs = {
        sample.name: sample.value for family in ProcessCollector(registry=None).collect() for sample in family.samples
    }
    ours = Process()
    look(ours)
    assert ours.figures.keys() == theirs.keys()
    assert ours.figures["process_open_fds"] == theirs["process_open_fds"] - 1, (
        "ProcessCollector counts the open directory, too"
    )
    for same in ("process_max_fds", "process_start_time_seconds"):
        assert ours.figures[same] == pytest.approx(theirs[same])
    for near in ("process_cpu_seconds_total", "process_resident_memory_bytes", "process_virtual_memory_bytes"):
        assert ours.figures[near] == pytest.approx(theirs[near], rel=0.5)


@pytest.mark.usefixtures("way")
def test_open_files_are_counted() -> None:
    one = Process()
    look(one)
    before = one.figures["process_open_fds"]
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(100)]
    try:
        look(one)
        assert one.figures["process_open_fds"] == before + 100
    finally:
        for file in files:
            os.close(file)


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    for number in range(2 * AT_A_TIME + 5):
        (tmp_path / str(number)).touch()
    return tmp_path


def test_many_open_files_are_listed_in_steps(crowd: Path) -> None:
    steps = list(list_files(crowd))
    assert steps[-1] == 2 * AT_A_TIME + 5 - 1, "one of them is the directory"
    assert max(after - before for before, after in itertools.pairwise(steps)) == AT_A_TIME


def test_open_files_are_not_listed_when_the_system_knows_their_number(way: str) -> None:
    assert (look(Process()) == 0) == (way == "counted")


def test_system_without_proc_has_no_statistics(tmp_path: Path) -> None:
    one = Process(tmp_path)
    look(one)
    assert one.figures == {}
