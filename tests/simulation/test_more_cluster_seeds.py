"""Simulated clusters, another hundred, and that each repeats exactly."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from disqued.testing.sim import simulate
from simulation.seeds import CHUNKS, run_chunk


@pytest.mark.parametrize("chunk", range(1, CHUNKS, 2))
def test_more_clusters_keep_their_promises(chunk: int, record_property: Callable[[str, object], None]) -> None:
    record_property("events per second", run_chunk(chunk))


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
