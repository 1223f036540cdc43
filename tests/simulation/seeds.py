"""Runs seeds of the simulator for two test files: a few in each run of the tests, and the others with `-m slow`."""

from __future__ import annotations

from disqued.testing.sim import Result, simulate

SEEDS = range(120)
CHUNKS = 10
FEW = [0]
OTHERS = [chunk for chunk in range(CHUNKS) if chunk not in FEW]


def explain(result: Result) -> str:
    """The command that repeats a run."""
    head = f"make sim SEED={result.seed} ARGS=\"--mix '{result.mix}'\"; faults {result.faults}"
    return "\n".join([head, *result.violations[:10], *result.trace[-40:]])


def run(seed: int, mix: str | None = None) -> Result:
    """Run one seed, with its mix of faults unless one is given; it must not violate any guarantee."""
    result = simulate(seed, mix)
    assert result.violations == [], explain(result)
    return result


def run_chunk(chunk: int) -> int:
    """Run every tenth seed; returns the events per second."""
    results = [run(seed) for seed in SEEDS[chunk::CHUNKS]]
    return int(sum(result.events for result in results) / sum(result.real_s for result in results))
