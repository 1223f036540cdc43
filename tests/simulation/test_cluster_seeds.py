"""Hundreds of simulated clusters: whatever befalls them, they keep their promises, and repeat exactly."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from disqued.testing.faults import MIXES, mix_of
from disqued.testing.rare import RARE
from disqued.testing.sim import Result, simulate

SEEDS = range(240)
CHUNKS = 24
RARE_SEEDS = range(1000, 1060)


def explain(result: Result) -> str:
    """How to see it again."""
    head = f"make sim SEED={result.seed}: {result.mix}, faults {result.faults}"
    return "\n".join([head, *result.violations[:10], *result.trace[-40:]])


def run(seed: int) -> Result:
    result = simulate(seed)
    assert result.violations == [], explain(result)
    return result


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_clusters_keep_their_promises(chunk: int, record_property: pytest.FixtureRequest) -> None:
    results = [run(seed) for seed in SEEDS[chunk::CHUNKS]]
    events = sum(result.events for result in results)
    record_property("events per second", int(events / sum(result.real_s for result in results)))  # type: ignore[operator]


def test_a_quarter_of_the_runs_is_calm_and_every_mix_is_there() -> None:
    mixes = Counter(mix_of(seed) for seed in SEEDS)
    assert mixes["calm"] == len(SEEDS) // 4
    assert set(mixes) == set(MIXES)


def test_rare_states_are_reached() -> None:
    reached: Counter[str] = Counter()
    for seed in RARE_SEEDS:
        reached.update(run(seed).rare)
        if all(reached[name] for name in RARE):
            return
    assert [name for name in RARE if not reached[name]] == []


@pytest.mark.parametrize("seed", [3, 10])
def test_a_seed_repeats_exactly(seed: int) -> None:
    assert simulate(seed).digest == simulate(seed).digest


def test_a_seed_repeats_in_another_process_whatever_its_hashes_are() -> None:
    code = "from disqued.testing.sim import simulate; print(simulate(10).digest)"
    digests = [
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    assert digests[0] == digests[1] == simulate(10).digest.encode()
