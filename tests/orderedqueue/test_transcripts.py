"""The service queue, step by step: which consumer gets which job, so that every replica knows without a message."""

from __future__ import annotations

from orderedqueue.scenes import Scene, given, returned

C1 = b"consumer 1, at node A"
C2 = b"consumer 2, at node C"


def order(scene: Scene) -> list[bytes]:
    return [consumer.name for consumer in scene.machine.consumers()]


def first_scene() -> tuple[Scene, int, int]:
    """Steps 1 to 3: consumer 1 has m1 and m2, then consumer 2 joins."""
    scene = Scene()
    m1 = scene.add()
    assert order(scene) == []
    assert given(scene.join(C1, b"A")) == [(m1, C1)]
    assert order(scene) == [C1]
    effects = scene.add_effects()
    m2 = int(effects.value)
    assert given(effects) == [(m2, C1)]
    assert given(scene.join(C2, b"C")) == []
    assert order(scene) == [C2, C1]
    return scene, m1, m2


def test_consumer_that_joins_comes_before_those_already_served() -> None:
    scene, m1, _ = first_scene()
    assert given(scene.ack(m1)) == []
    assert order(scene) == [C2, C1]
    effects = scene.add_effects()
    assert given(effects) == [(effects.value, C2)]


def test_order_of_the_service_queue_survives_the_loss_of_the_leader() -> None:
    scene, m1, _ = first_scene()
    scene.ack(m1)
    scene.new_leader()
    assert order(scene) == [C2, C1]
    scene.credit(C1, 10)
    scene.credit(C2, 10)
    effects = scene.add_effects()
    assert given(effects) == [(effects.value, C2)]


def test_jobs_of_a_consumer_that_dies_go_to_the_other_one_in_order() -> None:
    scene, m1, m2 = first_scene()
    effects = scene.part(C1)
    assert returned(effects) == [m1, m2]
    assert given(effects) == [(m1, C2), (m2, C2)]
    assert effects.parted == [C1]
    assert order(scene) == [C2]


def test_consumers_take_turns() -> None:
    scene = Scene()
    for name in (b"a", b"b", b"c"):
        scene.join(name)
    got = [given(scene.add_effects())[0][1] for _ in range(7)]
    assert got == [b"a", b"b", b"c", b"a", b"b", b"c", b"a"]


def test_consumer_without_credit_is_skipped_and_keeps_its_place() -> None:
    scene = Scene()
    scene.join(b"a", credit=1)
    scene.join(b"b")
    first, second, third = (given(scene.add_effects())[0][1] for _ in range(3))
    assert (first, second, third) == (b"a", b"b", b"b")
    scene.credit(b"a", 5)
    assert given(scene.add_effects())[0][1] == b"a"


def test_consumers_that_join_without_being_served_keep_their_order() -> None:
    scene = Scene()
    for name in (b"x", b"y", b"z"):
        scene.join(name)
    assert order(scene) == [b"x", b"y", b"z"]
