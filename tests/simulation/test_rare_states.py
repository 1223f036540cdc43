"""The simulator reaches each rare state within a number of seeds."""

from __future__ import annotations

from collections import Counter

import pytest

from disqued.testing.rare import RARE
from simulation.seeds import run

RARE_SEEDS = range(1000, 2000)
"""Many more than are needed: the rarest states take about a hundred seeds, and the test ends when it has all."""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_rare_states_are_reached() -> None:
    reached: Counter[str] = Counter()
    for seed in RARE_SEEDS:
        reached.update(run(seed).rare)
        if all(reached[name] for name in RARE):
            return
    assert [name for name in RARE if not reached[name]] == []
