"""Simulated clusters, the other seeds; and every run is repeatable."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from disqued.testing.sim import simulate
from simulation.seeds import OTHERS, run_chunk

pytestmark = pytest.mark.slow


@pytest.mark.long
@pytest.mark.parametrize("chunk", OTHERS)
def test_more_simulated_clusters_keep_their_guarantees(
    chunk: int, record_property: Callable[[str, object], None]
) -> None:
    record_property("events per second", run_chunk(chunk))


@pytest.mark.parametrize(("seed", "mix"), [(3, "partitions"), (10, "all"), (1, "logged disks"), (2, "logged restarts")])
def test_a_seed_repeats_exactly(seed: int, mix: str) -> None:
    assert simulate(seed, mix).digest == simulate(seed, mix).digest


@pytest.mark.parametrize("mix", ["all", "logged all"])
def test_a_seed_repeats_in_another_process_whatever_its_hashes_are(mix: str) -> None:
    code = f"from disqued.testing.sim import simulate; print(simulate(10, {mix!r}).digest)"
    digests = [
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    assert digests[0] == digests[1] == simulate(10, mix).digest.encode()
