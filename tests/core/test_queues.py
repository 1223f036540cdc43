"""The queues of a node: found by name, and scanned while queues are made and removed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from disqued.core.queues.queue import Placement, Queue, QueueType, Release
from disqued.core.queues.queues import Queues

PLAIN = QueueType(b"plain", Placement(by_copies=False), Release())
"""Orders jobs by age; nothing can be placed in it or taken from it."""


def names(queues: list[Queue]) -> list[bytes]:
    return [queue.name for queue in queues]


def make(queues: Queues, *made: bytes) -> None:
    for name in made:
        queues.get_or_make(name, 0)


def remove(queues: Queues, name: bytes) -> None:
    queue = queues.get(name)
    assert queue is not None
    queues.remove(queue)


def test_a_queue_is_made_once_and_found_by_its_name() -> None:
    queues = Queues(PLAIN)
    queue = queues.get_or_make(b"mail", 5)
    assert queues.get_or_make(b"mail", 9) is queue
    assert queues.get(b"mail") is queue
    assert queues.get(b"other") is None
    assert (len(queues), queue.created_ms) == (1, 5)


def test_a_removed_queue_is_made_again_as_a_new_one() -> None:
    queues = Queues(PLAIN)
    old = queues.get_or_make(b"mail", 0)
    remove(queues, b"mail")
    assert queues.get(b"mail") is None
    assert queues.get_or_make(b"mail", 0) is not old
    assert names(queues.scan(0, 10)[1]) == [b"mail"]


def test_a_scan_returns_queues_in_the_order_in_which_they_were_made() -> None:
    queues = Queues(PLAIN)
    make(queues, b"c", b"a", b"b")
    cursor, page = queues.scan(0, 2)
    assert (names(page), cursor != 0) == ([b"c", b"a"], True)
    assert queues.scan(cursor, 2)[0] == 0
    assert names(queues.scan(cursor, 2)[1]) == [b"b"]


def test_a_scan_without_queues_or_with_an_unknown_cursor_ends_at_once() -> None:
    queues = Queues(PLAIN)
    assert queues.scan(0, 10) == (0, [])
    make(queues, b"a")
    assert queues.scan(1 << 63, 10) == (0, [])


def test_the_cost_of_a_scan_does_not_grow_with_removed_queues() -> None:
    queues = Queues(PLAIN)
    for number in range(10_000):
        make(queues, b"%d" % number)
        if number > 10:
            remove(queues, b"%d" % (number - 10))
    assert len(queues._blocks) <= 2


@given(
    stays=st.integers(0, 60),
    page=st.integers(1, 7),
    between=st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 60)), max_size=25), max_size=20),
)
def test_a_scan_returns_each_queue_that_stays_exactly_once(
    stays: int, page: int, between: list[list[tuple[bool, int]]]
) -> None:
    queues = Queues(PLAIN)
    for number in range(stays):
        make(queues, b"stays-%d" % number, b"guest-%d" % number)
    seen: list[bytes] = []
    cursor = 0
    changes = iter(between)
    while True:
        cursor, found = queues.scan(cursor, page)
        seen += names(found)
        if cursor == 0:
            break
        for comes, number in next(changes, []):
            name = b"guest-%d" % number
            if comes:
                make(queues, name)
            elif queues.get(name) is not None:
                remove(queues, name)
    lasting = [name for name in seen if name.startswith(b"stays")]
    assert lasting == [b"stays-%d" % number for number in range(stays)]
