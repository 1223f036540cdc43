"""ADD: keys, limits of the queue, pauses; PURGE."""

from __future__ import annotations

import pytest

from disqued.core.fates.fate import DELETED
from disqued.orderedqueue import effects as codes
from disqued.orderedqueue.add import Add
from disqued.orderedqueue.commands import DEAD_PHASE, DELAYED_PHASE, LEASED_PHASE, QUEUED_PHASE
from disqued.orderedqueue.moving import MOST_PURGED
from disqued.orderedqueue.options import PAUSED_IN, PAUSED_OUT
from orderedqueue.scenes import RETRY_S, TTL_S, Scene, ended, given

C = b"consumer"


def keyed(window_s: int = 60, *, until_done: bool = False) -> Add:
    add = Add(RETRY_S, TTL_S)
    add.key = b"order 17"
    add.window_s = window_s
    add.until_done = until_done
    return add


def test_repeated_add_answers_with_the_first_job_and_adds_none() -> None:
    scene = Scene()
    job = scene.add(keyed())
    again = keyed()
    effects = scene.add_effects(again)
    assert effects.value == job
    assert effects.known is not None
    assert (effects.known.index, effects.known.ttl_s) == (job, TTL_S)
    assert scene.machine.length == 1


def test_key_is_remembered_for_its_window_also_after_the_job_has_ended() -> None:
    scene = Scene()
    job = scene.add(keyed(60))
    scene.ack(job)
    scene.now_ms += 59_999
    assert scene.add(keyed(60)) == job
    scene.now_ms += 1
    assert scene.add(keyed(60)) > job


def test_window_of_the_repeated_add_counts_too() -> None:
    scene = Scene()
    job = scene.add(keyed(60))
    scene.now_ms += 10_000
    assert scene.add(keyed(10)) > job


def test_key_until_done_is_free_when_the_job_ends() -> None:
    scene = Scene()
    job = scene.add(keyed(until_done=True))
    scene.now_ms += 3_000_000
    assert scene.add(keyed(until_done=True)) == job
    scene.ack(job)
    assert scene.add(keyed(until_done=True)) > job


def test_window_is_extended_until_done_by_a_repetition() -> None:
    scene = Scene()
    job = scene.add(keyed(1))
    assert scene.add(keyed(until_done=True)) == job
    scene.now_ms += 3_000_000
    assert scene.add(keyed(1)) == job


def test_repeated_add_is_answered_although_the_queue_is_full_or_paused() -> None:
    scene = Scene()
    scene.settings.max_length = 1
    scene.settings.pause = PAUSED_IN
    job = scene.add(keyed())
    scene.conf()
    assert scene.add(keyed()) == job


def test_full_queue_refuses_jobs_but_not_moved_ones() -> None:
    scene = Scene()
    scene.settings.max_length = 2
    scene.conf()
    scene.add()
    scene.add()
    assert scene.add_effects().code == codes.MAXLEN
    moved = Add(RETRY_S, TTL_S)
    moved.moves = 1
    scene.add(moved)
    assert scene.machine.length == 3


def test_bytes_of_bodies_are_bounded() -> None:
    scene = Scene()
    scene.settings.max_bytes = 10
    scene.conf()
    scene.add(body=b"123456")
    assert scene.add_effects(Add(RETRY_S, TTL_S)).code == codes.OK
    assert scene.machine.body_bytes == 10
    assert scene.add_effects(Add(RETRY_S, TTL_S)).code == codes.MAXLEN


def test_maxlen_of_the_command_refuses() -> None:
    scene = Scene()
    scene.add()
    add = Add(RETRY_S, TTL_S)
    add.max_length = 1
    assert scene.add_effects(add).code == codes.MAXLEN


def test_full_queue_can_drop_its_oldest_jobs_instead() -> None:
    scene = Scene()
    scene.settings.max_length = 2
    scene.settings.drops_oldest = True
    scene.conf()
    first, second = scene.add(), scene.add()
    effects = scene.add_effects()
    assert ended(effects) == [(first, DELETED)]
    assert scene.machine.peek(5) == [second, effects.value]


@pytest.mark.parametrize("by_setting", [False, True])
def test_paused_queue_takes_or_gives_no_jobs(by_setting: bool) -> None:
    scene = Scene()
    job = scene.add()

    def pause(flags: int) -> None:
        if by_setting:
            scene.settings.pause = flags
            scene.conf()
        else:
            scene.pause(flags)

    pause(PAUSED_IN)
    assert scene.add_effects().code == codes.PAUSED
    pause(PAUSED_OUT)
    assert given(scene.join(C)) == []
    assert scene.add_effects().code == codes.OK
    pause(0)
    assert [one.index for one in scene.machine.leases(C)][:1] == [job]


def test_purge_deletes_the_named_phases() -> None:
    scene = Scene()
    leased = scene.add()
    scene.credit(C, 1)
    waiting = scene.add()
    delay = Add(RETRY_S, TTL_S)
    delay.delay_ms = 1000
    delayed = scene.add(delay)
    letter = Add(RETRY_S, TTL_S)
    letter.dead_since_ms = 1
    dead = scene.add(letter)
    assert scene.machine.dead == 1
    assert ended(scene.purge(QUEUED_PHASE)) == [(waiting, DELETED)]
    assert ended(scene.purge(DELAYED_PHASE | DEAD_PHASE)) == [(delayed, DELETED), (dead, DELETED)]
    assert ended(scene.purge(LEASED_PHASE)) == [(leased, DELETED)]
    assert scene.machine.count == 0
    assert scene.machine.dead == 0


def test_purge_spares_jobs_added_later() -> None:
    scene = Scene()
    old = scene.add()
    scene.now_ms += 1
    scene.add()
    assert ended(scene.purge(QUEUED_PHASE, scene.now_ms)) == [(old, DELETED)]


def test_long_purge_continues_where_it_stopped() -> None:
    scene = Scene()
    for _ in range(MOST_PURGED + 10):
        scene.add()
    effects = scene.purge(QUEUED_PHASE)
    assert effects.value == MOST_PURGED
    effects = scene.purge(QUEUED_PHASE, first=int(effects.next_index))
    assert (effects.value, effects.next_index) == (10, 0)
    assert scene.machine.count == 0
