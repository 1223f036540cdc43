"""Power loss: of what was written to a real file, only what was synced is certainly there.

The server records each sync (`support.faultydisk`) and is killed. Then its file is cut off at a random point behind
what was synced, or zeros replace the rest. With `always`, nothing that was answered is lost; with `everysec`, what was
answered in about the last second; with `no`, whatever the system had not yet written.
"""

from __future__ import annotations

import random
import signal
import time
from typing import Final

import pytest

from durability.conftest import LONG, POLICIES, Make
from support.durable import StoredJobs, load, sleep_up_to
from support.faultydisk import last_sync, lose_power

pytestmark = pytest.mark.slow

LIVES: Final = 10
LONG_LIVES: Final = 6
"""Long enough for `everysec` to sync."""
WINDOW_S: Final = 1.0
"""How often `everysec` syncs."""
REFUSAL_S: Final = 2.0
"""New jobs are refused if a sync takes longer."""
SPARE_S: Final = 1.0
"""Additional time on a busy machine."""


@pytest.mark.parametrize("points", [20, pytest.param(100, marks=LONG)])
def test_always_loses_no_answered_job_at_power_loss(make_faulty: Make, points: int) -> None:
    chance = random.Random(f"always {points}")
    unsynced = 0
    for number in range(points // LIVES):
        node, stored = make_faulty(str(number), "always"), StoredJobs()
        node.start()
        for life in range(LIVES):
            with load(node, stored, seed=(number, life)):
                sleep_up_to(chance, 60)
                if life % 2:
                    node.call("BGREWRITEAOF")
                sleep_up_to(chance, 60)
                node.kill()
            size = node.aof.stat().st_size
            unsynced += lose_power(node.aof, chance).size < size
            node.start()
            stored.check(node.jobs(stored.bodies))
        stored.check(node.jobs())
        assert len(stored.added) > 10 * LIVES, "there was enough at stake"
        node.kill()
    assert unsynced > 0, "there was something to take away"


@pytest.mark.parametrize("nodes", [1, pytest.param(6, marks=LONG)])
def test_everysec_loses_at_most_its_window_at_power_loss(make_faulty: Make, nodes: int) -> None:
    chance = random.Random(f"everysec {nodes}")
    lost = 0
    for number in range(nodes):
        node, stored = make_faulty(str(number), "everysec"), StoredJobs()
        node.start()
        for life in range(LONG_LIVES):
            began_s = time.monotonic()
            with load(node, stored, clients=1, seed=(number, life), pause_s=0.01):
                sleep_up_to(chance, 2500)
                node.kill()
            since_s = max(began_s, lose_power(node.aof, chance).began_s)
            node.start()
            found = node.jobs(stored.bodies)
            last_s = stored.drop_unsynced(found, since_s)
            lost += last_s > 0
            assert last_s - since_s < WINDOW_S + REFUSAL_S + SPARE_S
            stored.check(found)
        stored.check(node.jobs())
        node.kill()
    assert lost > 0, "not all of it was synced"


def test_no_loads_only_jobs_that_were_added_after_power_loss(make_faulty: Make) -> None:
    chance = random.Random("no")
    for life in range(5):
        node, stored = make_faulty(str(life), "no"), StoredJobs()
        node.start()
        with load(node, stored, seed=life):
            sleep_up_to(chance, 100)
            node.kill()
        assert lose_power(node.aof, chance).size == 0
        node.start()
        found = node.jobs()
        stored.drop_unsynced(found, 0.0)
        stored.check(found)
        node.kill()


@pytest.mark.parametrize("policy", POLICIES)
def test_clean_shutdown_syncs_everything(make_faulty: Make, policy: str) -> None:
    chance = random.Random(policy)
    node, stored = make_faulty("node", policy), StoredJobs()
    for life, number in enumerate((signal.SIGTERM, signal.SIGINT) * 2):
        node.start()
        stored.check(node.jobs(stored.bodies))
        with load(node, stored, seed=(policy, life)):
            sleep_up_to(chance, 60)
            assert node.end(number) == 0
        assert last_sync(node.aof).size == node.aof.stat().st_size
    node.start()
    stored.check(node.jobs())
