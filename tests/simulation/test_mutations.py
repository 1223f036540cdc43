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
RARE = {
    "copy-to-one",
    "else-at-once",
    "else-on-dead",
    "end-without-sync",
    "free-on-unknown",
    "ignore-cancel",
    "ignore-id-rule",
    "ignore-priorities",
    "ignore-purge-mark",
    "keep-wrong-times",
    "queue-at-any-load",
    "repair-by-all-holders",
    "repair-forgets-hard-attributes",
    "requeue-without-priority",
    "schedule-early",
    "schedule-granted-twice",
    "schedule-without-majority",
    "skip-postpone",
    "skip-queued",
    "skip-reunion",
    "successor-by-chance",
    "trust-after-failed-sync",
}
"""These need many seeds, or long ones: `make test-interpreted ARGS="-m slow"` runs them."""


@pytest.mark.timeout(900)  # up to a hundred runs, of which some mutations take a third
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in RARE else []) for name in MUTATIONS]
)
def test_mutation_is_detected(name: str) -> None:
    uses = MUTATIONS[name].uses
    seeds = [seed for seed in SEEDS if uses is None or uses(seed)]
    assert any(simulate(seed, mutation=name).violations for seed in seeds), MUTATIONS[name].why
