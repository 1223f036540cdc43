"""Mistakes that the comparison with the model must notice: each is made in a copy of the sources, and must be found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "broker" / "disqued"
SCRIPT = """
import sys
from pathlib import Path
import disqued.orderedqueue.machine as machine
assert Path(machine.__file__).is_relative_to(sys.argv[1]), machine.__file__
from disqued.orderedqueue.options import QueueOptions
from orderedqueue.pair import Pair
from orderedqueue.test_against_model import random_steps
for seed in range(24):
    options = QueueOptions(b"q", single=seed % 2 == 1, prefetch=seed % 3)
    try:
        Pair(options, grouped=seed % 4 >= 2, snapshot_each=7).run(random_steps(seed, 300))
    except Exception as error:
        print("found", type(error).__name__)
        break
else:
    print("not found")
"""
MUTATIONS = {
    "none": ("state.py", "", ""),
    "a snapshot without leases": (
        "snapshot.py",
        "    _read_place(state, job, data.text())",
        "    data.text()\n    job.state = READY",
    ),
    "credit kept over a change of the leader": (
        "joining.py",
        "state.service.set_credit(consumer, 0)\n\n\ndef configure",
        "pass\n\n\ndef configure",
    ),
    "time from the local clock": (
        "machine.py",
        "state.now_ms = max(time_ms, state.now_ms)",
        "state.now_ms = __import__('time').time_ns() // 1_000_000",
    ),
    "a claim given twice": ("state.py", "claim = self.last_claim + 1", "claim = self.last_claim"),
    "a stale claim accepted": ("working.py", "elif _is_stale(state, job, claim):", "elif False:"),
    "a claim of a former active consumer accepted": ("state.py", "self.fence = self.last_claim\n", "pass\n"),
    "later jobs not held back": ("state.py", "            self.waiting.hold(job)\n", "            pass\n"),
    "a group key not in work": ("state.py", "        self.waiting.set_busy(job)\n", ""),
    "a consumer that joins behind those served": ("consumers.py", "self.joined - _FRESH", "self.joined + _FRESH // 2"),
    "no consumer activated after the active one": ("state.py", "        self.activate(effects)\n", ""),
    "a key forgotten with its job": (
        "keys.py",
        "        if self._of_jobs:\n",
        (
            "        for known in [key for key, entry in self.by_key.items() if entry.known.index == index]:\n"
            "            del self.by_key[known]\n"
            "        if False:\n"
        ),
    ),
    "an attempt not counted": ("state.py", "            job.additional += 1\n", "            pass\n"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_mistake_is_noticed(name: str, tmp_path: Path) -> None:
    file, right, wrong = MUTATIONS[name]
    copy = tmp_path / "disqued"
    copy.mkdir()
    for path in SOURCES.iterdir():
        if path.name != "orderedqueue":
            (copy / path.name).symlink_to(path)
    shutil.copytree(SOURCES / "orderedqueue", copy / "orderedqueue", ignore=shutil.ignore_patterns("__pycache__"))
    text = (copy / "orderedqueue" / file).read_text()
    assert right in text
    (copy / "orderedqueue" / file).write_text(text.replace(right, wrong) if right else text)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "tests")])}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("not found" if name == "none" else "found")
