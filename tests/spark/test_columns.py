"""Leased jobs as Arrow batches: bounded, in order, and the same after their way to a task."""

from __future__ import annotations

import pytest

from pyspark_disque.columns import MAX_BYTES, leased_batches, pack, unpack
from pyspark_disque.offsets import JobGroup

COLUMNS = ("body", "id", "queue", "node")
MEGABYTE = 1 << 20


def group(queue: str, count: int) -> JobGroup:
    return JobGroup("node-1", queue, tuple(b"id-%d" % number for number in range(count)))


@pytest.mark.parametrize(
    ("body", "count", "sizes"),
    [
        (b"x", 25_000, [10_000, 10_000, 5000]),
        (b"x" * MEGABYTE, 10, [4, 4, 2]),
        (b"x" * (MAX_BYTES + 1), 2, [1, 1]),
        (b"", 3, [3]),
    ],
    ids=["rows", "bytes", "bodies above the limit", "empty bodies"],
)
def test_batch_ends_with_the_row_that_reaches_a_limit(body: bytes, count: int, sizes: list[int]) -> None:
    batches = leased_batches([group("q", count)], [body] * count, ("id", "body"))
    assert [batch.num_rows for batch in batches] == sizes


def test_rows_of_several_groups_have_their_own_bodies_after_pack_and_unpack() -> None:
    groups = [group("a", 2), group("not \udcff utf-8", 1)]
    packed = pack(leased_batches(groups, [b"1", b"2", b"3"], COLUMNS), COLUMNS)
    rows = [row for batch in unpack(packed) for row in batch.to_pylist()]
    assert rows == [
        {"body": b"1", "id": "id-0", "queue": "a", "node": "node-1"},
        {"body": b"2", "id": "id-1", "queue": "a", "node": "node-1"},
        {"body": b"3", "id": "id-0", "queue": r"not \xff utf-8", "node": "node-1"},
    ]
