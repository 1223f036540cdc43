"""Simulated clusters, a part of the seeds: they keep their guarantees under all injected faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from disqued.testing.mixes import MIXES, mix_of
from simulation.seeds import FEW, SEEDS, run_chunk


@pytest.mark.parametrize("chunk", FEW)
def test_simulated_clusters_keep_their_guarantees(chunk: int, record_property: Callable[[str, object], None]) -> None:
    record_property("events per second", run_chunk(chunk))


def test_an_eighth_of_the_runs_is_calm_and_every_mix_is_there() -> None:
    mixes = Counter(mix_of(seed) for seed in SEEDS)
    assert mixes["calm"] == pytest.approx(len(SEEDS) / 8, abs=1)
    assert set(mixes) == set(MIXES)
