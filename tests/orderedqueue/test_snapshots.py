"""Snapshots and digests: equal on all replicas, whatever the hash seed, and exact."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.orderedqueue.encoding import Malformed
from disqued.orderedqueue.machine import restore
from disqued.orderedqueue.options import QueueOptions
from orderedqueue.pair import Pair
from orderedqueue.scenes import Scene
from orderedqueue.scenes import given as given_by
from orderedqueue.test_against_model import random_steps

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from orderedqueue.test_snapshots import digests
print(digests(int(sys.argv[1])))
"""


KNOWN = {1: "602e9eb127b04082373b3ea463ca807d", 2: "eccb11dbc14f62253ae7b35a9ede7d34"}
"""Digests of random entries by seed. If a change of the machine changes them, replicas of two versions differ, so the
version of the machine must be raised."""


def digests(seed: int) -> str:
    """A digest of the digests after each of many random entries."""
    pair = Pair(QueueOptions(b"q", single=seed % 2 == 1), grouped=True, snapshot_each=1 << 30)
    total = blake2b(digest_size=16)
    for step in random_steps(seed, 400):
        pair.step(step)
        total.update(pair.machine.digest())
    return total.hexdigest()


@pytest.mark.parametrize("seed", KNOWN)
def test_digests_are_the_same_on_every_build(seed: int) -> None:
    assert digests(seed) == KNOWN[seed]


@pytest.mark.parametrize("seed", KNOWN)
def test_digests_do_not_depend_on_the_hash_seed(seed: int) -> None:
    found = set()
    for hash_seed in ("0", "1", "4242"):
        environment = os.environ | {
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT / "tests")]),
        }
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(seed)], env=environment, capture_output=True, text=True, check=True
        )
        found.add(done.stdout.strip())
    assert found == {digests(seed)}


def test_digest_changes_with_every_entry() -> None:
    scene = Scene()
    seen = {scene.machine.digest()}
    scene.add()
    seen.add(scene.machine.digest())
    scene.wait(1)
    seen.add(scene.machine.digest())
    assert len(seen) == 3


def test_restored_machine_keeps_leases_and_the_service_queue() -> None:
    scene = Scene()
    first = scene.add()
    scene.join(b"a", credit=5)
    scene.join(b"b", credit=5)
    scene.machine = restore(scene.machine.snapshot())
    assert [job.index for job in scene.machine.leases(b"a")] == [first]
    assert given_by(scene.add_effects())[0][1] == b"b"


def test_snapshot_of_many_jobs_has_16_bytes_for_each() -> None:
    scene = Scene()
    for _ in range(20_000):
        scene.add()
    assert len(scene.machine.snapshot()) < 20_000 * 16 + 2000
    assert restore(scene.machine.snapshot()).digest() == scene.machine.digest()


@given(cut=st.integers(0, 10_000))
def test_snapshot_that_ends_early_is_refused(cut: int) -> None:
    data = Scene().machine.snapshot()
    with pytest.raises(Malformed):
        restore(data[: cut % len(data)])


def test_flipped_bytes_of_a_snapshot_are_refused_or_read_without_another_error() -> None:
    scene = Scene(single=True)
    scene.join(b"a", named=True)
    for number in range(5):
        scene.add(group=b"key %d" % (number % 2))
    data = scene.machine.snapshot()
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 0x55
        try:
            restore(bytes(flipped))
        except Malformed:
            continue
