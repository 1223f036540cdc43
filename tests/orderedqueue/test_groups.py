"""Group keys: jobs of one key one after the other, different keys in parallel."""

from __future__ import annotations

from disqued.orderedqueue.add import Add
from orderedqueue.scenes import RETRY_S, TTL_S, Scene, given

C = b"consumer"


def test_keys_are_worked_on_in_parallel_and_each_in_order() -> None:
    scene = Scene()
    a1, a2, b1 = scene.add(group=b"a"), scene.add(group=b"a"), scene.add(group=b"b")
    plain = scene.add()
    assert given(scene.join(C)) == [(a1, C), (b1, C), (plain, C)]
    assert given(scene.ack(a1)) == [(a2, C)]


def test_repeated_job_comes_before_later_ones_of_its_key() -> None:
    scene = Scene()
    first, _ = scene.add(group=b"a"), scene.add(group=b"a")
    scene.join(C)
    assert given(scene.nack(first)) == [(first, C)]
    assert given(scene.wait(RETRY_S * 1000)) == [(first, C)]


def test_delayed_nack_holds_back_its_key_alone() -> None:
    scene = Scene()
    first, second, other = scene.add(group=b"a"), scene.add(group=b"a"), scene.add(group=b"b")
    scene.join(C, credit=1)
    assert given(scene.nack(first, delay_ms=5000)) == []
    assert given(scene.credit(C, 5)) == [(other, C)]
    assert given(scene.wait(5000)) == [(first, C)]
    assert given(scene.ack(first)) == [(second, C)]


def test_key_is_free_when_its_job_is_deleted_moved_or_expires() -> None:
    scene = Scene()
    first = scene.add(Add(100, 10), group=b"a")
    second = scene.add(group=b"a")
    third = scene.add(group=b"a")
    scene.join(C)
    assert given(scene.wait(10_000)) == [(second, C)]
    assert given(scene.reject(second)) == [(third, C)]
    assert scene.machine.job(first) is None


def test_keys_of_a_node_that_is_down_stay_in_work_until_the_leases_end() -> None:
    scene = Scene()
    first, second = scene.add(group=b"a"), scene.add(group=b"a")
    scene.credit(b"node 1", 1)
    scene.node(b"node 1", up=False)
    assert given(scene.credit(b"node 2", 5)) == []
    assert given(scene.wait(RETRY_S * 1000)) == [(first, b"node 2")]
    assert given(scene.ack(first)) == [(second, b"node 2")]


def test_job_with_retry_0_does_not_keep_its_key() -> None:
    scene = Scene()
    first, second = scene.add(Add(0, TTL_S), group=b"a"), scene.add(Add(0, TTL_S), group=b"a")
    assert given(scene.join(C)) == [(first, C), (second, C)]


def test_finding_the_next_job_does_not_depend_on_how_many_wait_for_their_key() -> None:
    """The next job is found by its key: jobs before it whose key is in work are not looked at."""
    scene = Scene()
    for _ in range(5000):
        scene.add(group=b"busy")
    scene.join(C, credit=1)
    other = scene.add(group=b"other")
    assert scene.machine._state.waiting.groups.first == other
    assert given(scene.credit(C, 1)) == [(other, C)]


def test_nothing_of_a_key_is_left_when_its_jobs_have_ended() -> None:
    scene = Scene()
    jobs = [scene.add(group=b"key %d" % number) for number in range(10)]
    scene.join(C)
    for job in jobs:
        scene.ack(job)
    assert scene.machine._state.waiting.groups.by_key == {}
    assert scene.machine._state.waiting.profiles._by_values == {}


def test_job_deleted_from_the_middle_of_a_key_leaves_the_order() -> None:
    scene = Scene()
    jobs = [scene.add(group=b"a") for _ in range(100)]
    scene.join(C, credit=1)
    scene.ack(jobs[50])
    for before, after in zip(jobs[:50], jobs[1:50] + jobs[51:], strict=False):
        scene.credit(C, 1)
        assert given(scene.ack(before)) == [(after, C)]
