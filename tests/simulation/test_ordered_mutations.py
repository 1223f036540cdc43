"""The simulator of ordered queues notices each mutation."""

from __future__ import annotations

import pytest

from disqued.build import COMPILED
from disqued.testing.orderedmutations import MUTATIONS
from disqued.testing.orderedsim import simulate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(COMPILED, reason="compiled functions cannot be replaced; the interpreted build runs this"),
]

SEEDS = range(20)
"""Most are noticed by one of the first seeds; the test ends when a run notices it."""


@pytest.mark.timeout(900)  # a run that notices nothing waits long for queues to become empty
@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_is_noticed(name: str) -> None:
    assert any(simulate(seed, seconds=5, mutation=name).violations for seed in SEEDS), MUTATIONS[name].why
