"""The seeds that the simulator runs, and the processes that share them."""

from __future__ import annotations

import subprocess
import sys
from datetime import date

import pytest

from disqued.testing import seeds
from disqued.testing.sim import Simulation


def test_seeds_are_a_number_or_the_first_and_the_last() -> None:
    assert list(seeds.parse("7")) == [7]
    assert list(seeds.parse("5..8")) == [5, 6, 7, 8]
    with pytest.raises(ValueError, match="seven"):
        seeds.parse("seven")


def test_each_day_has_seeds_of_its_own() -> None:
    today = seeds.of_day(date(2026, 3, 1), seeds.PER_DAY)
    assert len(today) == seeds.PER_DAY
    assert not set(today) & set(seeds.of_day(date(2026, 3, 2), seeds.PER_DAY))
    assert not set(today) & set(seeds.of_day(date(2026, 2, 28), seeds.PER_DAY))


def lines(*arguments: str) -> list[str]:
    """What the simulator prints, without the real time that each run took."""
    command = [sys.executable, "-m", "disqued.testing.sim", "--seconds", "2", *arguments]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return [" ".join(line.split()[:3] + line.split()[-1:]) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_several_processes_print_the_same_in_the_order_of_the_seeds() -> None:
    alone = lines("--seed", "1..4", "--processes", "1")
    assert [line.split()[:2] for line in alone[1:5]] == [["seed", str(number)] for number in range(1, 5)]
    assert lines("--seed", "1..4", "--processes", "3") == alone


def test_without_a_seed_it_runs_seeds_of_the_day_and_says_how_to_repeat_them() -> None:
    first = lines("--count", "1")[0].split()
    assert first[0] == "seeds"
    assert first[1].removesuffix(";") in first[-1]
    assert first[-1].startswith("SEED=")


def test_a_run_whose_messages_multiply_ends_and_has_failed() -> None:
    simulation = Simulation(1, seconds=2)
    simulation.cluster.network.most_events = 100
    result = simulation.run()
    assert result.events == 101
    assert any("messages multiply" in found for found in result.violations)
