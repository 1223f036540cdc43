"""Jobs that fail: the delivery limit, back-off, dead letters and moves to other queues."""

from __future__ import annotations

import pytest

from disqued.core.fates.fate import DEAD, EXPIRED, MOVED
from disqued.orderedqueue import effects as codes
from disqued.orderedqueue.add import Add
from disqued.orderedqueue.machine import restore
from orderedqueue.scenes import RETRY_S, TTL_S, Scene, claim_of, ended, given, moves

C = b"consumer"


def dead_letter() -> Add:
    add = Add(RETRY_S, TTL_S)
    add.dead_since_ms = 1
    add.moves = 1
    return add


def test_job_becomes_a_dead_letter_after_20_attempts_unless_the_limit_is_set() -> None:
    scene = Scene()
    job = scene.add()
    scene.join(C)
    for _ in range(9):
        assert moves(scene.nack(job)) == []
        assert moves(scene.wait(RETRY_S * 1000)) == []
    assert moves(scene.nack(job)) == []
    assert moves(scene.nack(job, reason=b"no paper")) == [(job, b"orders.dead")]
    (move,) = scene.machine.moves()
    assert (move.why, move.nacks, move.additional, move.reason) == (codes.LIMIT, 11, 9, b"no paper")
    assert move.dead_ttl_s == 604_800
    assert scene.machine.length == 0


def test_dead_letter_is_on_its_way_until_it_is_confirmed() -> None:
    scene = Scene()
    scene.settings.limit = 1
    scene.conf()
    job, later = scene.add(), scene.add()
    scene.join(C)
    scene.nack(job)
    assert [move.index for move in restore(scene.machine.snapshot()).moves()] == [job]
    assert scene.machine.has(job)
    scene.wait(TTL_S * 1000 * 2)
    assert scene.machine.has(job)
    assert not scene.machine.has(later)
    assert ended(scene.dead_sent(job, b"D-successor")) == [(job, DEAD)]
    assert scene.dead_sent(job).code == codes.NO_JOB
    record = scene.machine.record(job)
    assert record is not None
    assert (record.outcome, record.successor) == (DEAD, b"D-successor")


def test_job_on_its_way_out_does_not_hold_back_later_ones() -> None:
    scene = Scene(single=True, prefetch=1)
    scene.settings.limit = 1
    scene.conf()
    job, later = scene.add(), scene.add()
    scene.join(C)
    assert given(scene.nack(job)) == [(later, C)]


def test_uncounted_never_makes_a_dead_letter() -> None:
    scene = Scene()
    scene.settings.limit = 1
    scene.conf()
    job = scene.add()
    scene.join(C)
    for _ in range(5):
        assert moves(scene.nack(job, uncounted=True)) == []


def test_dead_queue_can_be_another_one_or_none() -> None:
    scene = Scene()
    scene.settings.limit = 1
    scene.settings.dead = b"hospital"
    scene.conf()
    job = scene.add()
    scene.join(C)
    assert moves(scene.nack(job)) == [(job, b"hospital")]
    scene.settings.drops_dead = True
    scene.conf()
    job = scene.add()
    effects = scene.nack(job)
    assert moves(effects) == []
    assert ended(effects) == [(job, DEAD)]


def test_queue_that_is_its_own_dead_queue_delivers_the_job_again() -> None:
    scene = Scene()
    scene.settings.limit = 1
    scene.settings.dead = b"orders"
    scene.conf()
    job = scene.add()
    scene.join(C)
    assert given(scene.nack(job)) == [(job, C)]
    assert scene.reject(job).code == codes.SAME_QUEUE


@pytest.mark.parametrize("exact", [False, True])
def test_limit_holds_for_dead_letters_only_if_it_is_set_by_name(exact: bool) -> None:
    scene = Scene(name=b"orders.dead")
    scene.settings.limit = 1
    scene.settings.limit_is_exact = exact
    scene.conf()
    job = scene.add(dead_letter())
    scene.join(C)
    assert moves(scene.nack(job)) == ([(job, b"orders.dead.dead")] if exact else [])


def test_rejected_job_becomes_a_dead_letter_also_while_it_waits() -> None:
    scene = Scene()
    leased, waiting = scene.add(), scene.add()
    scene.join(C, credit=1)
    assert moves(scene.reject(leased, b"bad address")) == [(leased, b"orders.dead")]
    assert moves(scene.reject(waiting)) == [(waiting, b"orders.dead")]
    assert [(move.why, move.nacks, move.reason, move.consumer) for move in scene.machine.moves()] == [
        (codes.REJECTED, 1, b"bad address", C),
        (codes.REJECTED, 1, b"", b""),
    ]
    assert (scene.machine.length, scene.machine.leased) == (0, 0)


@pytest.mark.parametrize("leased", [False, True])
def test_expired_job_becomes_a_dead_letter_if_the_queue_wants_that(leased: bool) -> None:
    scene = Scene()
    scene.settings.dead_expired = True
    scene.conf()
    job = scene.add(Add(1000, 10))
    scene.join(C, credit=int(leased))
    assert moves(scene.wait(10_000)) == [(job, b"orders.dead")]


def test_expired_dead_letter_ends() -> None:
    scene = Scene(name=b"orders.dead")
    scene.settings.dead_expired = True
    scene.conf()
    add = dead_letter()
    add.ttl_s = 10
    job = scene.add(add)
    assert ended(scene.wait(10_000)) == [(job, EXPIRED)]


def test_backoff_grows_up_to_its_maximum_and_differs_little() -> None:
    scene = Scene()
    scene.settings.backoff_min_ms = 1000
    scene.settings.backoff_max_ms = 5000
    scene.conf()
    job = scene.add()
    scene.join(C)
    for expected_ms in (1000, 2000, 4000, 5000, 5000):
        scene.nack(job)
        waits_ms = scene.machine.due_ms() - scene.now_ms
        assert expected_ms * 9 // 10 <= waits_ms <= expected_ms * 11 // 10
        assert given(scene.wait(waits_ms)) == [(job, C)]


def test_backoff_with_a_fraction_as_factor_and_never_beyond_the_life() -> None:
    scene = Scene()
    scene.settings.backoff_min_ms = 8000
    scene.settings.backoff_max_ms = 1_000_000
    scene.settings.backoff_permille = 1500
    scene.conf()
    job = scene.add(Add(RETRY_S, 40))
    scene.join(C)
    scene.nack(job)
    waits_ms = scene.machine.due_ms() - scene.now_ms
    assert 7200 <= waits_ms <= 8800
    scene.wait(waits_ms)
    left_ms = 40_000 - waits_ms
    scene.nack(job)
    assert scene.machine.due_ms() - scene.now_ms <= left_ms // 4 * 3


def test_explicit_delay_and_run_now_do_not_back_off() -> None:
    scene = Scene()
    scene.settings.backoff_min_ms = 1000
    scene.settings.backoff_max_ms = 5000
    scene.conf()
    job = scene.add()
    scene.join(C)
    scene.nack(job, delay_ms=10)
    assert scene.machine.due_ms() == scene.now_ms + 10
    assert given(scene.run_now(job)) == [(job, C)]
    assert given(scene.run_now(job)) == [(job, C)]


def test_moved_job_leaves_when_its_successor_is_confirmed() -> None:
    scene = Scene()
    job = scene.add()
    assert moves(scene.move(job)) == [(job, b"other")]
    assert given(scene.join(C)) == []
    assert scene.move(job).code == codes.STALE
    assert ended(scene.dead_sent(job)) == [(job, MOVED)]


def test_job_that_a_consumer_has_or_that_is_there_already_is_not_moved() -> None:
    scene = Scene()
    job = scene.add()
    scene.join(C)
    assert scene.move(job).code == codes.LEASED_NOW
    assert scene.move(job, b"orders").code == codes.SAME_QUEUE
    assert scene.move(999).code == codes.NO_JOB


def test_move_that_is_cancelled_gives_the_job_back_uncounted() -> None:
    scene = Scene()
    job = scene.add()
    scene.join(C)
    scene.nack(job, uncounted=True, delay_ms=60_000)
    scene.move(job)
    (one,) = scene.nack(job).assigned
    assert (one.index, one.nacks) == (job, 0)
    assert scene.machine.moves() == []


def test_successor_keeps_counters_and_has_greater_claims_than_the_job_before() -> None:
    scene = Scene()
    add = Add(RETRY_S, TTL_S)
    add.moves = 1
    add.claim = 5_000_000
    add.nacks = 2
    add.additional = 3
    job = scene.add(add)
    effects = scene.join(C)
    assert claim_of(effects) == 5_000_001
    assert [(one.index, one.nacks, one.additional) for one in effects.assigned] == [(job, 2, 3)]
    assert claim_of(scene.add_effects()) == 5_000_002


def test_acknowledgement_of_the_last_worker_ends_a_job_on_its_way_out() -> None:
    scene = Scene()
    scene.settings.limit = 1
    scene.conf()
    job = scene.add()
    claim = claim_of(scene.join(C))
    scene.wait(RETRY_S * 1000)
    assert scene.ack(job, claim).code == codes.OK
    assert scene.machine.moves() == []
