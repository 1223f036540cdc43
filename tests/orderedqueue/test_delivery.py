"""Leases, claims and credit: which consumer has a job, for how long, and what an outdated worker is answered."""

from __future__ import annotations

from disqued.core.fates.fate import DELETED, DONE, EXPIRED
from disqued.orderedqueue import effects as codes
from disqued.orderedqueue.add import Add
from disqued.orderedqueue.commands import Ack, Remove
from orderedqueue.scenes import MANY, RETRY_S, TTL_S, Scene, claim_of, ended, given, returned

C = b"consumer"


def test_jobs_come_in_the_order_of_the_log() -> None:
    scene = Scene()
    jobs = [scene.add() for _ in range(5)]
    assert given(scene.join(C)) == [(index, C) for index in jobs]


def test_acknowledged_job_is_never_delivered_again() -> None:
    scene = Scene()
    job = scene.add()
    claim = claim_of(scene.join(C))
    assert ended(scene.ack(job, claim)) == [(job, DONE)]
    assert given(scene.wait(TTL_S * 1000)) == []
    assert scene.ack(job, claim).code == codes.NO_JOB
    assert scene.machine.count == 0


def test_claims_grow_although_one_entry_assigns_several_jobs() -> None:
    scene = Scene()
    for _ in range(4):
        scene.add()
    effects = scene.join(C)
    claims = [int(one.claim) for one in effects.assigned]
    assert claims[0] == scene.index
    assert claims == sorted(set(claims))
    job = scene.add_effects()
    assert claim_of(job) > claims[-1]


def test_claim_of_a_single_assignment_is_the_index_of_its_entry() -> None:
    scene = Scene()
    scene.join(C)
    for _ in range(3):
        assert claim_of(scene.add_effects()) == scene.index


def test_lease_that_ends_returns_the_job_as_an_additional_delivery() -> None:
    scene = Scene()
    job = scene.add()
    scene.join(C, credit=1)
    assert returned(scene.wait(RETRY_S * 1000 - 1)) == []
    assert returned(scene.wait(1)) == [job]
    (again,) = scene.credit(C, 1).assigned
    assert (again.index, again.nacks, again.additional) == (job, 0, 1)


def test_stale_claim_is_refused_everywhere() -> None:
    scene = Scene()
    job = scene.add()
    old = claim_of(scene.join(C, credit=1))
    scene.wait(RETRY_S * 1000)
    new = claim_of(scene.credit(C, 1))
    assert new > old
    assert scene.ack(job, old).code == codes.STALE
    assert scene.nack(job, old).code == codes.STALE
    assert scene.renew(job, old).code == codes.STALE
    assert scene.ack(job, new).code == codes.OK


def test_work_that_ended_after_its_lease_counts_while_nobody_else_got_the_job() -> None:
    scene = Scene()
    job = scene.add()
    claim = claim_of(scene.join(C, credit=1))
    scene.wait(RETRY_S * 1000)
    assert scene.renew(job, claim).code == codes.STALE
    assert scene.nack(job, claim).code == codes.STALE
    assert ended(scene.ack(job, claim)) == [(job, DONE)]


def test_nack_counts_and_uncounted_does_not() -> None:
    scene = Scene()
    job = scene.add()
    scene.join(C, credit=1)
    scene.nack(job, uncounted=True)
    (again,) = scene.credit(C, 1).assigned
    assert (again.nacks, again.additional) == (0, 0)
    scene.nack(job, reason=b"no paper")
    (again,) = scene.credit(C, 1).assigned
    assert (again.nacks, again.additional) == (1, 0)
    found = scene.machine.job(job)
    assert found is not None
    assert found.reason == b"no paper"


def test_returned_job_goes_back_to_its_place() -> None:
    scene = Scene()
    first, second, third = scene.add(), scene.add(), scene.add()
    scene.join(C, credit=2)
    scene.nack(second)
    scene.nack(first)
    assert scene.machine.peek(10) == [first, second, third]
    assert given(scene.credit(C, 3)) == [(first, C), (second, C), (third, C)]


def test_delayed_nack_is_not_early_and_does_not_hold_back_others() -> None:
    scene = Scene()
    first, second = scene.add(), scene.add()
    scene.join(C, credit=1)
    scene.nack(first, delay_ms=5000)
    assert given(scene.credit(C, 2)) == [(second, C)]
    assert scene.machine.due_ms() == scene.now_ms + 5000
    assert given(scene.wait(4999)) == []
    assert given(scene.wait(1)) == [(first, C)]


def test_delay_beyond_the_life_of_the_job_is_refused() -> None:
    scene = Scene()
    job = scene.add(Add(RETRY_S, 10))
    scene.join(C, credit=1)
    scene.now_ms += 4000
    effects = scene.nack(job, delay_ms=6000)
    assert (effects.code, effects.value) == (codes.TTL, 6000)
    assert scene.machine.leased == 1


def test_job_added_with_a_delay_waits_and_later_jobs_do_not() -> None:
    scene = Scene(single=True)
    delayed = Add(RETRY_S, TTL_S)
    delayed.delay_ms = 1000
    first = scene.add(delayed)
    second = scene.add()
    assert given(scene.join(C)) == [(second, C)]
    assert given(scene.wait(1000)) == [(first, C)]


def test_run_now_ends_a_delay_without_an_attempt() -> None:
    scene = Scene()
    delayed = Add(RETRY_S, TTL_S)
    delayed.delay_ms = 100_000
    job = scene.add(delayed)
    scene.join(C)
    (one,) = scene.run_now(job).assigned
    assert (one.index, one.nacks, one.additional) == (job, 0, 0)
    (one,) = scene.run_now(job).assigned
    assert (one.nacks, one.additional) == (0, 1)


def test_job_with_retry_0_ends_with_its_assignment() -> None:
    scene = Scene()
    job = scene.add(Add(0, TTL_S))
    effects = scene.join(C)
    assert given(effects) == [(job, C)]
    assert ended(effects) == [(job, DONE)]
    assert scene.machine.leased == 0


def test_renewed_lease_ends_later_and_keeps_the_note() -> None:
    scene = Scene()
    job = scene.add()
    claim = claim_of(scene.join(C))
    scene.now_ms += 20_000
    assert scene.renew(job, claim, 60_000, b"half done").value == 60_000
    assert returned(scene.wait(59_999)) == []
    found = scene.machine.job(job)
    assert found is not None
    assert found.note == b"half done"
    assert returned(scene.wait(1)) == [job]


def test_lease_is_renewed_for_retry_if_it_names_no_time() -> None:
    scene = Scene()
    job = scene.add()
    scene.join(C)
    assert scene.renew(job).value == RETRY_S * 1000


def test_lease_is_not_renewed_in_the_second_half_of_the_life() -> None:
    scene = Scene()
    job = scene.add(Add(1000, 100))
    scene.join(C)
    assert scene.renew(job, lease_ms=50_001).code == codes.TOO_LATE
    scene.now_ms += 50_001
    assert scene.renew(job).code == codes.TOO_LATE


def test_life_ends_for_waiting_leased_and_delayed_jobs() -> None:
    scene = Scene()
    leased = scene.add(Add(100, 10))
    scene.join(C, credit=1)
    waiting = scene.add(Add(100, 10))
    delay = Add(100, 10)
    delay.delay_ms = 60_000
    delayed = scene.add(delay)
    longer = scene.add(Add(100, 11))
    assert scene.machine.due_ms() == scene.now_ms + 10_000
    assert sorted(ended(scene.wait(10_000))) == [(job, EXPIRED) for job in (leased, waiting, delayed)]
    assert scene.machine.peek(9) == [longer]


def test_expired_job_is_not_assigned_by_the_entry_that_notices() -> None:
    scene = Scene()
    job = scene.add(Add(RETRY_S, 1))
    scene.now_ms += 1000
    effects = scene.credit(C, 1)
    assert given(effects) == []
    assert ended(effects) == [(job, EXPIRED)]


def test_earlier_time_counts_as_the_last_one() -> None:
    scene = Scene()
    scene.add(Add(RETRY_S, 5))
    scene.now_ms -= 10_000
    scene.wait(0)
    assert scene.machine.now_ms == scene.now_ms + 10_000


def test_credit_bounds_what_a_consumer_gets() -> None:
    scene = Scene()
    for _ in range(5):
        scene.add()
    assert len(given(scene.credit(C, 2))) == 2
    assert len(given(scene.credit(C, 1))) == 1
    assert len(given(scene.wait(1))) == 0


def test_credit_subtracts_assignments_that_the_consumer_did_not_see() -> None:
    scene = Scene()
    scene.credit(C, 2)
    scene.add()
    scene.add()
    consumer = scene.machine.consumer(C)
    assert consumer is not None
    assert consumer.assigned == 2
    scene.credit(C, 3, seen=1)  # sent before the second job was known there
    assert consumer.credit == 2


def test_new_leader_forgets_credit_and_nothing_else() -> None:
    scene = Scene()
    first = scene.add()
    scene.join(C, credit=MANY)
    scene.new_leader()
    second = scene.add_effects()
    assert given(second) == []
    assert [job.index for job in scene.machine.leases(C)] == [first]
    assert given(scene.credit(C, 1)) == [(second.value, C)]


def test_prefetch_bounds_the_jobs_that_a_consumer_has() -> None:
    scene = Scene(prefetch=2)
    jobs = [scene.add() for _ in range(3)]
    assert [index for index, _ in given(scene.join(C))] == jobs[:2]
    assert given(scene.ack(jobs[0])) == [(jobs[2], C)]


def test_jobs_of_a_node_that_is_down_stay_leased_and_it_gets_no_more() -> None:
    scene = Scene()
    job = scene.add()
    scene.credit(b"node", 5)
    assert scene.node(b"node", up=False).parted == [b"node"]
    assert scene.machine.leased == 1
    assert given(scene.add_effects()) == []
    assert scene.credit(b"node", 5).code == codes.NODE_DOWN
    assert ended(scene.ack(job)) == [(job, DONE)]
    scene.node(b"node", up=True)
    assert scene.credit(b"node", 5).code == codes.OK


def test_node_that_returns_finds_the_jobs_that_it_still_has() -> None:
    scene = Scene()
    job = scene.add()
    scene.credit(b"node", 5)
    scene.node(b"node", up=False)
    scene.node(b"node", up=True)
    scene.credit(b"node", 5)
    assert [one.index for one in scene.machine.leases(b"node")] == [job]


def test_one_ack_ends_several_jobs_and_names_those_it_did_not_end() -> None:
    scene = Scene()
    first, second = scene.add(), scene.add()
    scene.join(C)
    effects = scene.apply(Ack([first, 999, second], [0, 0, 1]).encode())
    assert effects.code == codes.OK
    assert effects.value == 1
    assert [(one.index, one.code) for one in effects.refused] == [(999, codes.NO_JOB), (second, codes.STALE)]


def test_deleted_job_ends_whatever_its_state() -> None:
    scene = Scene()
    leased, waiting = scene.add(), scene.add()
    scene.credit(C, 1)
    effects = scene.apply(Remove([leased, waiting, 999]).encode())
    assert ended(effects) == [(leased, DELETED), (waiting, DELETED)]
    assert effects.value == 2
    assert scene.machine.count == 0
