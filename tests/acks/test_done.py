"""RecentlyDone: how long, and how many, IDs of finished jobs are remembered."""

from __future__ import annotations

import pytest

from disqued.acks.done import ID_BYTES, LEAST_BYTES, MOST_BYTES, SHARDS, SPAN_MS, TURNS_PER_VISIT, RecentlyDone, limit
from disqued.acks.room import acks_of
from disqued.testing.local import LocalNode

VISIT_MS = 100
ROUND_MS = VISIT_MS * SHARDS // TURNS_PER_VISIT


def visit_all(done: RecentlyDone, from_ms: int, until_ms: int) -> None:
    """Let time pass on an idle node."""
    for now_ms in range(from_ms, until_ms, VISIT_MS):
        done.visit(now_ms)


def test_an_id_is_known_for_one_span_at_least_and_forgotten_on_an_idle_node() -> None:
    done = RecentlyDone()
    done.note(b"job", SPAN_MS)
    assert done.used_bytes == ID_BYTES
    visit_all(done, SPAN_MS, 2 * SPAN_MS - VISIT_MS)
    assert done.has(b"job")
    assert not done.has(b"other")
    visit_all(done, 2 * SPAN_MS, 3 * SPAN_MS + 3 * ROUND_MS)
    assert not done.has(b"job")
    assert done.count == 0


def test_half_a_minute_of_acknowledgements_is_remembered_under_load() -> None:
    done = RecentlyDone()
    began_ms = SPAN_MS
    per_ms = 10
    for now_ms in range(began_ms, began_ms + SPAN_MS):
        for number in range(per_ms):
            done.note(b"%d %d" % (now_ms, number), now_ms)
        if now_ms % VISIT_MS == 0:
            done.visit(now_ms)
    assert all(done.has(b"%d %d" % (now_ms, 0)) for now_ms in range(began_ms, began_ms + SPAN_MS))
    assert done.forgotten_early == 0
    assert done.used_bytes <= MOST_BYTES


def test_a_flood_of_ids_takes_bounded_memory_and_the_latest_are_known() -> None:
    done = RecentlyDone()
    done.most = limit(LEAST_BYTES)
    total = 5 * done.most
    for number in range(total):
        done.note(b"%d" % number, 1)
    assert done.count <= done.most + 2 * SHARDS
    assert all(done.has(b"%d" % number) for number in range(total - done.most // 4, total))
    assert done.forgotten_early > 0


def test_an_id_that_comes_twice_is_counted_once() -> None:
    done = RecentlyDone()
    for _ in range(3):
        done.note(b"job", 1)
    assert done.count == 1


@pytest.mark.parametrize(
    ("maxmemory", "bytes_allowed"),
    [(0, MOST_BYTES), (1 << 20, LEAST_BYTES), (1 << 30, 32 << 20), (1 << 40, MOST_BYTES)],
)
def test_the_memory_for_ids_follows_maxmemory(maxmemory: int, bytes_allowed: int) -> None:
    assert limit(maxmemory) == bytes_allowed // ID_BYTES


def test_more_ids_than_fit_are_forgotten_early_counted_and_logged() -> None:
    node = LocalNode()
    node.client().call("CONFIG", "SET", "maxmemory", "16mb")
    node.run(seconds=1)
    done = acks_of(node.node.state).done
    for number in range(3 * done.most):
        done.note(b"%d" % number, node.host.now_ms)
    assert node.node.state.lifecycle.memory.buffer_bytes < done.used_bytes
    node.run(seconds=1)
    assert node.node.state.lifecycle.memory.buffer_bytes >= done.used_bytes > 0
    info = node.client().call("INFO", "acks")
    assert isinstance(info, bytes)
    counted = int(info.split(b"finished_jobs_forgotten_early:")[1].split()[0])
    assert counted > done.most
    assert sum("finished within a minute" in text for _, text in node.host.log_lines) == 1
