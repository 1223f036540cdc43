"""A node with an append-only file is killed (SIGKILL) at random points: every confirmed change survives.

This holds with each policy, because written data outlives the process. The runs with many points are marked long.
"""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections import Counter
from typing import Final

import pytest

from durability.conftest import LONG, POLICIES, Make
from support.durable import DurableNode, StoredJobs, fill, load, sleep_up_to

LIVES: Final = 10
"""How many processes use one file before a new one is started."""
TEMPORARY: Final = "temp-rewriteaof*"


@pytest.mark.parametrize("points", [30, pytest.param(100, marks=LONG)])
@pytest.mark.parametrize("policy", POLICIES)
def test_no_answered_job_is_lost_when_killed_during_adds(make: Make, policy: str, points: int) -> None:
    chance = random.Random(f"adds {policy} {points}")
    for number in range(points // LIVES):
        node, stored = make(str(number), policy), StoredJobs()
        node.start()
        for life in range(LIVES):
            with load(node, stored, seed=(policy, number, life)):
                sleep_up_to(chance, 60)
                node.kill()
            node.start()
            stored.check(node.jobs(stored.bodies))
        stored.check(node.jobs())
        assert len(stored.added) > 10 * LIVES, "there was enough at stake"
        node.kill()


def rewritten(node: DurableNode) -> int:
    """How many rewrites succeeded in all processes of the node."""
    return node.log.count("The append only file was rewritten")


@pytest.mark.slow
@pytest.mark.parametrize("points", [20, pytest.param(100, marks=LONG)])
@pytest.mark.parametrize("policy", POLICIES)
def test_no_answered_job_is_lost_when_killed_during_rewrites(make: Make, policy: str, points: int) -> None:
    """A rewrite is requested, or starts automatically as the file grows."""
    chance = random.Random(f"rewrites {policy} {points}")
    begun = 0
    growing = ("--auto-aof-rewrite-min-size", "1", "--auto-aof-rewrite-percentage", "5", "--hz", "500")
    for number in range(points // LIVES):
        by_itself = number % 2 == 1
        node, stored = make(str(number), policy, *growing if by_itself else ()), StoredJobs()
        node.start()
        fill(node, stored, 300)
        before, began_s = rewritten(node), time.monotonic()
        with load(node, stored, seed=(policy, number)):
            if not by_itself:
                node.call("BGREWRITEAOF")
            node.until(lambda node=node, before=before: rewritten(node) > before, "the file is rewritten")
        took_ms = min((time.monotonic() - began_s) * 1000, 150)
        for life in range(LIVES):
            with load(node, stored, seed=(policy, number, life)):
                if not by_itself:
                    node.call("BGREWRITEAOF")
                sleep_up_to(chance, took_ms * 1.5)
                node.kill()
            begun += bool(list(node.directory.glob(TEMPORARY)))
            node.start()
            node.until(lambda node=node: not list(node.directory.glob(TEMPORARY)), "nobody needs it any more")
            stored.check(node.jobs(stored.bodies))
        stored.check(node.jobs())
        node.kill()
    assert begun > 0, "some were killed in the middle of a rewrite"


@pytest.mark.parametrize("points", [30, pytest.param(100, marks=LONG)])
def test_no_answered_job_is_lost_when_killed_during_loading(make: Make, points: int) -> None:
    chance = random.Random(f"load {points}")
    node, stored = make("node", "everysec"), StoredJobs()
    node.start()
    fill(node, stored, 4000)
    with load(node, stored):
        sleep_up_to(chance, 100)
        node.kill()
    loaded, loading = node.log.count("DB loaded"), node.log.count("Loading the append only file")
    for _ in range(points):
        node.begin()
        sleep_up_to(chance, 150)
        number = chance.choice((signal.SIGKILL, signal.SIGTERM))
        assert node.end(number) in {0, -number}, "a signal that comes before it listens to any ends it as well"
    assert node.log.count("DB loaded") - loaded < points, "some were killed before they had loaded all"
    assert node.log.count("Loading the append only file") > loading, "some when they had begun to"
    node.start()
    stored.check(node.jobs())


@pytest.mark.parametrize("points", [20, pytest.param(100, marks=LONG)])
@pytest.mark.parametrize("command", [("SHUTDOWN", "REWRITE-AOF"), ("SHUTDOWN",)], ids=" ".join)
def test_no_answered_job_is_lost_when_killed_during_shutdown(make: Make, command: tuple[str, ...], points: int) -> None:
    chance = random.Random(f"end {command} {points}")
    ends: Counter[int] = Counter()
    for number in range(points // LIVES):
        node, stored = make(str(number), POLICIES[number % len(POLICIES)]), StoredJobs()
        node.start()
        fill(node, stored, 300)
        began_s = time.monotonic()
        with contextlib.closing(node.connect()) as ending:
            ending.send(*command)
        assert node.process is not None
        ends[node.process.wait()] += 1
        took_ms = (time.monotonic() - began_s) * 1000
        node.start()
        for life in range(LIVES):
            with load(node, stored, seed=(command, number, life)), contextlib.closing(node.connect()) as ending:
                sleep_up_to(chance, 20)
                ending.send(*command)
                sleep_up_to(chance, took_ms * 1.5)
                ends[node.kill()] += 1
            node.start()
            stored.check(node.jobs(stored.bodies))
        stored.check(node.jobs())
        node.kill()
    assert set(ends) == {0, -signal.SIGKILL}, "some ended before they were killed, some did not"
