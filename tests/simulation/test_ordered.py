"""Simulated clusters with ordered queues: they keep their promises under all injected faults."""

from __future__ import annotations

import pytest

from disqued.ordered.applier import Applier
from disqued.testing.orderedsim import Result, simulate
from disqued.testing.orderedtruth import WatchedApplier


def run(seed: int, mix: str | None = None) -> Result:
    """Run one seed; it must not violate any promise."""
    result = simulate(seed, mix, 4)
    command = f"python -m disqued.testing.orderedsim --seed {seed} --mix '{result.mix}' --seconds 4"
    assert result.violations == [], "\n".join([command, *result.violations[:10], *result.trace[-40:]])
    return result


@pytest.mark.parametrize("seed", [2, 5])
def test_ordered_queues_keep_their_promises(seed: int) -> None:
    result = run(seed)
    assert result.jobs > 20
    assert result.deliveries > 20


@pytest.mark.parametrize("seed", [21, 108])
def test_damaged_replicas_come_back(seed: int) -> None:
    """In seed 108, a replica of the catalog began from nothing while it was a voter."""
    result = run(seed, "rot")
    assert result.rare["replica damaged"] > 0
    assert result.rare["damaged replica began again"] > 0


def test_a_follower_catches_up_although_a_snapshot_replaces_entries_that_are_read_for_it() -> None:
    """The leader waited without end for the entries that were missing in what was read."""
    assert run(399).restores > 0


def test_a_segment_may_begin_while_the_log_says_which_entries_of_another_one_were_released() -> None:
    assert run(266).jobs > 20


def test_a_replica_is_deleted_when_its_removal_is_committed() -> None:
    """The leader that had removed it was lost, and the group kept a voter that was gone."""
    assert run(718).deliveries > 20


def test_a_queue_that_moves_to_a_node_whose_disk_is_lost_moves_to_its_new_log() -> None:
    assert run(778, "empty").faults["lost_disk"] == 1


def test_a_seed_repeats_exactly() -> None:
    assert simulate(5, seconds=1).digest == simulate(5, seconds=1).digest


def test_everything_that_replicas_ask_of_their_machines_is_passed_on() -> None:
    asked = {name for name in vars(Applier) if not name.startswith("_") and callable(getattr(Applier, name))}
    assert asked <= set(vars(WatchedApplier))
