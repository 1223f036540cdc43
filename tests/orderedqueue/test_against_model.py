"""The machine does what a naive model says, over random entries, also after it was restored from snapshots."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.orderedqueue.options import QueueOptions
from orderedqueue.pair import Pair, Step

KINDS = 38
STEPS = st.lists(
    st.tuples(
        st.integers(0, KINDS), st.integers(0, 999), st.integers(0, 999), st.sampled_from((0, 1, 10, 400, 2500, 70_000))
    ),
    max_size=80,
)


@given(steps=STEPS, single=st.booleans(), prefetch=st.integers(0, 2), grouped=st.booleans(), each=st.integers(1, 5))
def test_machine_equals_model(steps: list[Step], single: bool, prefetch: int, grouped: bool, each: int) -> None:
    Pair(QueueOptions(b"q", single=single, prefetch=prefetch), grouped=grouped, snapshot_each=each).run(steps)


def random_steps(seed: int, count: int) -> list[Step]:
    chance = random.Random(seed)
    return [
        (
            chance.choices(range(KINDS + 1), [0.3] + [1] * 9 + [1] * 13 + [1] * 8 + [0.3] * 8)[0],
            chance.randrange(1000),
            chance.randrange(1000),
            chance.choice((0, 1, 1, 1, 10, 10, 300)),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_machine_equals_model_over_a_long_time(seed: int) -> None:
    options = QueueOptions(b"q", single=seed % 2 == 1, prefetch=seed % 3)
    Pair(options, grouped=seed % 4 >= 2, snapshot_each=7).run(random_steps(seed, 600))
