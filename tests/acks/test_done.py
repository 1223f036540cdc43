"""RecentlyDone: how long, and how many, IDs of finished jobs are remembered."""

from __future__ import annotations

from disqued.acks.done import MAX_KEPT, SPAN_MS, RecentlyDone


def test_an_id_is_known_for_one_span_at_least_and_for_two_at_most() -> None:
    done = RecentlyDone()
    done.note(b"first", SPAN_MS)
    done.note(b"second", 2 * SPAN_MS)
    assert [done.has(b"first"), done.has(b"second"), done.has(b"third")] == [True, True, False]
    done.note(b"third", 3 * SPAN_MS)
    assert [done.has(b"first"), done.has(b"second"), done.has(b"third")] == [False, True, True]


def test_a_flood_of_ids_takes_bounded_memory_and_the_latest_are_known() -> None:
    done = RecentlyDone()
    for number in range(5 * MAX_KEPT):
        done.note(b"%d" % number, 1)
    known = [number for number in range(5 * MAX_KEPT) if done.has(b"%d" % number)]
    assert MAX_KEPT <= len(known) <= 2 * MAX_KEPT
    assert known[-1] == 5 * MAX_KEPT - 1
