"""SINGLE queues: one consumer at a time, all deliveries in the order of the log."""

from __future__ import annotations

from disqued.orderedqueue import effects as codes
from disqued.orderedqueue.add import Add
from orderedqueue.scenes import RETRY_S, TTL_S, Scene, claim_of, given, returned

A = b"consumer a"
B = b"consumer b"
TIMEOUT_MS = 60_000


def scene_of_two(*, prefetch: int = 0, named: bool = False) -> Scene:
    """A queue whose consumer a is active while b waits."""
    scene = Scene(single=True, prefetch=prefetch)
    scene.join(A, b"node 1", named=named)
    scene.join(B, b"node 2", named=named)
    return scene


def test_first_consumer_is_active_and_the_others_get_nothing() -> None:
    scene = scene_of_two()
    assert scene.machine.active() == A
    assert {given(scene.add_effects())[0][1] for _ in range(4)} == {A}


def test_jobs_of_a_consumer_that_leaves_return_in_order_before_the_next_one_gets_any() -> None:
    scene = scene_of_two(prefetch=3)
    jobs = [scene.add() for _ in range(5)]
    effects = scene.part(A)
    assert effects.parted == [A]
    assert effects.activated == [B]
    assert returned(effects) == jobs[:3]
    assert given(effects) == [(job, B) for job in jobs[:3]]


def test_repeated_job_comes_before_any_later_one_with_prefetch_1() -> None:
    scene = scene_of_two(prefetch=1)
    first, second = scene.add(), scene.add()
    assert given(scene.nack(first)) == [(first, A)]
    assert given(scene.wait(RETRY_S * 1000)) == [(first, A)]
    assert given(scene.ack(first)) == [(second, A)]


def test_delayed_nack_holds_back_all_later_jobs() -> None:
    scene = scene_of_two(prefetch=1)
    first, second = scene.add(), scene.add()
    assert given(scene.nack(first, delay_ms=5000)) == []
    assert given(scene.add_effects()) == []
    assert given(scene.wait(4999)) == []
    assert given(scene.wait(1)) == [(first, A)]
    assert given(scene.ack(first)) == [(second, A)]


def test_job_that_is_held_back_is_free_when_the_delayed_one_ends() -> None:
    scene = scene_of_two(prefetch=1)
    first, second = scene.add(), scene.add()
    scene.nack(first, delay_ms=5000)
    assert given(scene.ack(first)) == [(second, A)]


def test_earlier_job_is_not_held_back_by_a_later_one() -> None:
    scene = scene_of_two(prefetch=2)
    first, second, third = scene.add(), scene.add(), scene.add()
    assert given(scene.nack(second, delay_ms=5000)) == []
    assert given(scene.nack(first)) == [(first, A)]
    assert given(scene.ack(first)) == []
    assert given(scene.run_now(second)) == [(second, A), (third, A)]


def test_consumer_must_join_before_it_asks() -> None:
    scene = Scene(single=True)
    assert scene.credit(A, 1).code == codes.NO_CONSUMER


def test_consumers_of_a_node_that_is_down_leave() -> None:
    scene = scene_of_two()
    job = scene.add()
    effects = scene.node(b"node 1", up=False)
    assert effects.parted == [A]
    assert given(effects) == [(job, B)]


def test_named_consumer_that_comes_back_in_time_is_still_active() -> None:
    scene = scene_of_two(named=True)
    job = scene.add()
    assert returned(scene.part(A, away=True)) == []
    assert given(scene.add_effects()) == []
    scene.wait(TIMEOUT_MS // 4)
    scene.join(A, b"node 3", named=True)
    assert scene.machine.active() == A
    assert next(one.index for one in scene.machine.leases(A)) == job


def test_named_consumer_that_stays_away_is_replaced_after_the_timeout() -> None:
    scene = Scene(single=True)
    scene.join(A, named=True)
    scene.join(B, named=True)
    scene.settings.consumer_timeout_ms = 5000
    scene.conf()
    job = scene.add()
    scene.part(A, away=True)
    assert scene.machine.due_ms() == scene.now_ms + 5000
    effects = scene.wait(5000)
    assert (effects.parted, effects.activated) == ([A], [B])
    assert given(effects) == [(job, B)]


def test_named_consumer_of_a_node_that_is_down_may_join_at_another_node() -> None:
    scene = scene_of_two(named=True)
    scene.add()
    assert scene.node(b"node 1", up=False).parted == []
    scene.join(A, b"node 2", named=True)
    assert scene.machine.active() == A


def test_active_consumer_that_asks_for_nothing_is_replaced_after_the_timeout() -> None:
    scene = scene_of_two()
    job = scene.add()
    scene.credit(A, 0)
    scene.ack(job)
    scene.wait(TIMEOUT_MS - 1)
    assert scene.machine.active() == A
    effects = scene.wait(1)
    assert (effects.parted, effects.activated) == ([A], [B])


def test_active_consumer_that_waits_for_jobs_stays_active() -> None:
    scene = scene_of_two()
    scene.wait(100 * TIMEOUT_MS)
    assert scene.machine.active() == A
    assert scene.machine.due_ms() == 0


def test_waiting_consumer_stays_active_when_a_leader_begins_after_the_timeout() -> None:
    scene = scene_of_two()
    scene.wait(2 * TIMEOUT_MS)
    scene.new_leader()
    scene.credit(B, 1)
    assert scene.machine.active() == A
    assert given(scene.credit(A, 1)) == []
    assert given(scene.add_effects())[0][1] == A


def test_consumer_that_takes_jobs_ahead_gets_the_next_one_with_its_acknowledgement() -> None:
    scene = scene_of_two(prefetch=1)
    first, second = scene.add(), scene.add()
    scene.credit(A, 0, ahead=True)
    assert given(scene.ack(first)) == [(second, A)]
    scene.credit(A, 0)
    scene.add()
    assert given(scene.ack(second)) == []


def test_job_that_ends_when_it_is_assigned_is_not_assigned_ahead() -> None:
    scene = Scene(single=True, prefetch=1)
    scene.join(A, credit=0)
    scene.credit(A, 0, ahead=True)
    at_most_once = scene.add(Add(0, TTL_S))
    later = scene.add()
    assert given(scene.wait(1)) == []
    assert given(scene.credit(A, 1, ahead=True)) == [(at_most_once, A), (later, A)]


def test_job_is_assigned_ahead_in_a_single_queue_only() -> None:
    scene = Scene(prefetch=1)
    scene.credit(A, 0, ahead=True)
    assert given(scene.add_effects()) == []


def test_claim_of_the_former_consumer_is_stale() -> None:
    scene = scene_of_two()
    job = scene.add_effects()
    old = claim_of(job)
    scene.part(A)
    assert scene.ack(int(job.value), old).code == codes.STALE


def test_claims_of_the_former_consumer_are_stale_also_for_jobs_that_nobody_got_since() -> None:
    scene = Scene(single=True, prefetch=3)
    scene.join(A)
    scene.join(B, credit=1)
    first, second, third = (scene.add_effects() for _ in range(3))
    scene.nack(int(third.value), claim_of(third), delay_ms=60_000)
    assert given(scene.part(A)) == [(int(first.value), B)]
    for job in (first, second, third):
        assert scene.ack(int(job.value), claim_of(job)).code == codes.STALE
        assert scene.nack(int(job.value), claim_of(job)).code == codes.STALE
    assert scene.ack(int(second.value)).code == codes.OK


def test_a_claim_counts_until_another_consumer_is_active() -> None:
    scene = Scene(single=True, prefetch=1)
    scene.join(A)
    job = scene.add_effects()
    scene.part(A)
    assert scene.ack(int(job.value), claim_of(job)).code == codes.OK


def test_jobs_of_a_consumer_that_leaves_are_counted_as_delivered() -> None:
    scene = scene_of_two()
    scene.add()
    (one,) = scene.part(A).assigned
    assert one.additional == 1
