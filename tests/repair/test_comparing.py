"""Comparisons of two nodes find copies that were lost unnoticed, and jobs that only one of them knows to be done."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.config import Config
from disqued.repair.digest import CELLS, Cell, packed_cell, packed_digest, read_cell, read_digest
from disqued.testing.cluster import Cluster, Member
from repair.losing import add, copies, lists_of, rebuilt
from support.fixtures import settled
from support.stories import tell

ID = b"D-12345678-" + b"A" * 24 + b"-05a1"


def compare(cluster: Cluster, member: Member) -> None:
    """Have a member compare its jobs with the others, jobs that were just added included."""
    cluster.run(seconds=12)
    assert member.admin.call("CLUSTER", "REPAIR", "NOW") == b"OK"
    cluster.run(seconds=15)


def deleted(member: Member, jobs: list[bytes]) -> None:
    """Delete jobs on one member only."""
    assert member.admin.call("DELJOB", *jobs) == len(jobs)


@pytest.mark.parametrize("asking", [0, 1, 2])
def test_copies_that_were_deleted_on_one_node_are_made_again(asking: int) -> None:
    cluster = settled(3)
    jobs = add(cluster, cluster.members[0], 100, "REPLICATE", 3)
    deleted(cluster.members[1], jobs[:30])
    compare(cluster, cluster.members[asking])
    assert copies(cluster, jobs) == {3}
    assert rebuilt(cluster) == {"compared": 30}


def test_nodes_compare_by_themselves() -> None:
    cluster = settled(3)
    for member in cluster.members:
        member.admin.call("CONFIG", "SET", "repair-interval", "60")
    jobs = add(cluster, cluster.members[0], 20, "REPLICATE", 3)
    deleted(cluster.members[1], jobs)
    cluster.run(seconds=700)
    assert copies(cluster, jobs) == {3}


def test_more_losses_than_one_comparison_handles_are_found_by_the_next_ones() -> None:
    cluster = settled(2)
    jobs = add(cluster, cluster.members[0], 900, "REPLICATE", 2)
    deleted(cluster.members[1], jobs)
    compare(cluster, cluster.members[0])
    assert copies(cluster, jobs) == {1, 2}
    cluster.run(seconds=60)
    assert copies(cluster, jobs) == {2}


def test_nodes_with_the_same_jobs_exchange_only_digests() -> None:
    cluster = settled(3)
    add(cluster, cluster.members[0], 100, "REPLICATE", 3)
    compare(cluster, cluster.members[0])
    assert len(cluster.sent("DIGEST")) == 2
    assert not cluster.sent("CELL")


def test_a_job_that_is_done_elsewhere_is_settled() -> None:
    cluster = settled(3)
    first, behind, _ = cluster.members
    jobs = add(cluster, first, 10, "REPLICATE", 3, "RETRY", 3000)
    cluster.lose("SETACK", to=behind)
    assert first.admin.call("ACKJOB", *jobs) == 10
    cluster.run(seconds=400)
    cluster.heal()
    cluster.run(seconds=20)
    assert copies(cluster, jobs) == {3}, "the next attempt to collect the jobs is in three minutes"
    assert behind.admin.call("CLUSTER", "REPAIR", "NOW") == b"OK"
    cluster.run(seconds=5)
    assert copies(cluster, jobs) == {0}


def test_a_holder_that_is_not_listed_is_listed() -> None:
    cluster = settled(3)
    first, second, third = cluster.members
    (job_id,) = add(cluster, first, 1, "REPLICATE", 3)
    job = first.node.state.lifecycle.table.get(job_id)
    assert job is not None
    job.delivered = first.node.state.holders.keep((first.id, second.id))
    compare(cluster, third)
    assert set(lists_of(first, job_id)) == {first.id, second.id, third.id}
    assert copies(cluster, [job_id]) == {3}


def test_a_node_that_starts_with_its_file_compares_soon() -> None:
    def with_file() -> Config:
        config = Config()
        config.appendonly = True
        return config

    cluster = Cluster(3, config=with_file)
    first, restarted, _ = cluster.members
    jobs = add(cluster, first, 20, "REPLICATE", 3)
    cluster.run(seconds=5)
    restarted.crash()
    file = restarted.host.disk.files["disque.aof"]
    restarted.host.disk.put("disque.aof", bytes(file[: len(file) // 2]))
    restarted.config.aof_load_truncated = True
    restarted.restart()
    cluster.run(seconds=3)
    assert copies(cluster, jobs) == {2, 3}
    cluster.run(seconds=40)
    assert copies(cluster, jobs) == {3}
    assert rebuilt(cluster).keys() == {"compared"}


def test_nothing_is_compared_with_repair_no() -> None:
    cluster = settled(3)
    for member in cluster.members:
        member.admin.call("CONFIG", "SET", "repair", "no")
    jobs = add(cluster, cluster.members[0], 10, "REPLICATE", 3)
    deleted(cluster.members[1], jobs)
    compare(cluster, cluster.members[0])
    assert copies(cluster, jobs) == {2}
    assert not cluster.sent("DIGEST")


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (kinds.DIGEST, b""),
        (kinds.DIGEST, packed_digest(1, [0] * CELLS)[:-1]),
        (kinds.DIGEST, packed_digest(1, [0] * CELLS) + b"x"),
        (kinds.CELL, b""),
        (kinds.CELL, packed_cell(Cell(1, 7, [ID], is_answer=False))[:-1]),
        (kinds.CELL, packed_cell(Cell(1, CELLS, [ID], is_answer=False))),
        (kinds.CELL, packed_cell(Cell(1, 7, [b"x" * 40], is_answer=False))),
        (kinds.CELL, packed_cell(Cell(1, 7, [ID], is_answer=False))[:10] + b"\x02" + ID),
    ],
)
def test_malformed_messages_are_ignored(kind: int, payload: bytes) -> None:
    cluster = settled(2)
    one, other = cluster.members
    tell(one, other.node.state.bus.other(kind, payload))
    cluster.run(seconds=2)
    assert not cluster.sent("CELL")


def test_messages_are_read_as_they_were_written() -> None:
    cells = [number * number for number in range(CELLS)]
    assert read_digest(packed_digest(1_800_000_000_000, cells)) == (1_800_000_000_000, cells)
    cell = read_cell(packed_cell(Cell(5, 4095, [ID, ID], is_answer=True)))
    assert cell is not None
    assert (cell.before_ms, cell.number, cell.ids, cell.is_answer) == (5, 4095, [ID, ID], True)
