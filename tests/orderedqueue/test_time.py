"""Time: when the leader must propose TIME, and how much one entry does."""

from __future__ import annotations

from disqued.orderedqueue.add import Add
from disqued.orderedqueue.state import MOST_ASSIGNED, MOST_EVENTS
from orderedqueue.scenes import RETRY_S, TTL_S, Scene

C = b"consumer"


def test_empty_queue_needs_no_time() -> None:
    scene = Scene()
    assert scene.machine.due_ms() == 0
    job = scene.add()
    scene.join(C)
    scene.ack(job)
    assert scene.machine.due_ms() == 0


def test_time_is_due_at_the_next_end_of_a_lease_a_delay_or_a_life() -> None:
    scene = Scene()
    scene.add()
    assert scene.machine.due_ms() == scene.now_ms + TTL_S * 1000
    scene.join(C, credit=1)
    assert scene.machine.due_ms() == scene.now_ms + RETRY_S * 1000
    scene.add(Add(RETRY_S, 20))
    assert scene.machine.due_ms() == scene.now_ms + 20_000
    delayed = Add(RETRY_S, TTL_S)
    delayed.delay_ms = 50
    scene.add(delayed)
    assert scene.machine.due_ms() == scene.now_ms + 50


def test_any_entry_does_what_is_due() -> None:
    scene = Scene()
    scene.add()
    scene.join(C, credit=1)
    scene.now_ms += RETRY_S * 1000
    assert len(scene.add_effects().returned) == 1


def test_one_entry_ends_a_bounded_number_of_lives_and_the_next_one_continues() -> None:
    scene = Scene()
    count = 2 * MOST_EVENTS + 100
    for _ in range(count):
        scene.add(Add(RETRY_S, 10))
    numbers = [len(scene.wait(10_000).ended)]
    while 0 < scene.machine.due_ms() <= scene.now_ms:
        numbers.append(len(scene.wait(0).ended))
    assert numbers == [MOST_EVENTS, MOST_EVENTS, 100]
    assert scene.machine.due_ms() == 0


def test_one_entry_assigns_a_bounded_number_of_jobs_and_the_next_one_continues() -> None:
    scene = Scene()
    for _ in range(MOST_ASSIGNED + 5):
        scene.add()
    assert len(scene.join(C, credit=5000).assigned) == MOST_ASSIGNED
    assert scene.machine.due_ms() <= scene.now_ms
    assert len(scene.wait(0).assigned) == 5
    assert scene.machine.due_ms() > scene.now_ms


def test_timers_of_jobs_that_end_in_time_take_no_memory() -> None:
    scene = Scene()
    scene.join(C, credit=100_000)
    for _ in range(2000):
        scene.ack(int(scene.add_effects().value))
    assert len(scene.machine._state.timers._heap) < 200
