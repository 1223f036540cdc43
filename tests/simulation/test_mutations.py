"""The simulator detects each mutation of the protocol."""

from __future__ import annotations

import pytest

from disqued.build import COMPILED
from disqued.testing.mutations import MUTATIONS
from disqued.testing.sim import simulate

pytestmark = pytest.mark.skipif(
    COMPILED, reason="compiled functions cannot be replaced; the interpreted build runs this"
)

SEEDS = range(100)
"""Most are detected by one of the first seeds; the test ends when a run detects it."""


@pytest.mark.timeout(900)  # up to a hundred runs, of which some mutations take a third
@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_is_detected(name: str) -> None:
    uses = MUTATIONS[name].uses
    seeds = [seed for seed in SEEDS if uses is None or uses(seed)]
    assert any(simulate(seed, mutation=name).violations for seed in seeds), MUTATIONS[name].why
