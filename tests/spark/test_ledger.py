"""Offsets: what is written into Spark's checkpoint is what is read from it again."""

from __future__ import annotations

import json
import random
import string

import pytest

from pyspark_disque.ledger import BEGINNING, Lease, Manifest, cut, pack, unpack
from pyspark_disque.options import BadOption

ALPHABET = string.ascii_letters + string.digits + "+/"
NODES = ("a" * 40, "b" * 40, "c" * 40)


def job_id(rng: random.Random, node: str, ttl: str = "05a1") -> str:
    return f"D-{node[:8]}-{''.join(rng.choices(ALPHABET, k=24))}-{ttl}"


def jobs(count: int, *, queues: tuple[str, ...] = ("q",), ttls: tuple[str, ...] = ("05a1",)) -> tuple[Lease, ...]:
    rng = random.Random(7)
    return tuple(
        Lease(job_id(rng, rng.choice(NODES), rng.choice(ttls)), rng.choice(queues), rng.choice(NODES))
        for _ in range(count)
    )


@pytest.mark.parametrize(
    "manifest",
    [
        BEGINNING,
        Manifest(1, jobs(1)),
        Manifest(7, jobs(500, queues=("mail", "", 'a "quoted" one', "ü", "not \udcff utf-8"), ttls=("05a1", "0000"))),
    ],
    ids=["nothing", "one job", "many of each kind"],
)
def test_an_offset_holds_the_jobs_through_json(manifest: Manifest) -> None:
    text = json.dumps(pack(manifest))
    again = unpack(json.loads(text))
    assert again.number == manifest.number
    assert sorted(again.jobs) == sorted(manifest.jobs)
    assert text.isascii()


def test_an_offset_is_the_same_text_whoever_writes_it_again() -> None:
    text = json.dumps(pack(Manifest(3, jobs(100, queues=("a", "b")))))
    assert json.dumps(json.loads(text)) == text
    assert pack(unpack(json.loads(text))) == json.loads(text)


def test_ten_thousand_jobs_make_a_quarter_of_a_megabyte() -> None:
    assert len(json.dumps(pack(Manifest(1, jobs(10_000))))) < 245_000


def test_no_text_of_an_offset_is_longer_than_json_readers_allow() -> None:
    ids = (f"D-{NODES[0][:8]}-{number:024}-05a1" for number in range(250_001))
    manifest = Manifest(1, tuple(Lease(job_id, "q", NODES[0]) for job_id in ids))
    offset = pack(manifest)
    texts = offset["jobs"][NODES[0]]["q"]
    assert [len(text) for text in texts.values()] == [2_400_000, 2_400_000, 24 * 50_001]
    assert unpack(offset) == manifest


@pytest.mark.parametrize("offset", [{}, {"format": 2, "batch": 1, "jobs": {}}, {"partition-0": 3}])
def test_a_checkpoint_of_somebody_else_is_refused(offset: dict[str, object]) -> None:
    with pytest.raises(BadOption, match="checkpointLocation"):
        unpack(offset)


@pytest.mark.parametrize(("count", "parts", "sizes"), [(10, 4, [2, 2, 3, 3]), (2, 6, [1, 1]), (0, 3, []), (5, 1, [5])])
def test_tasks_differ_by_one_job_at_most(count: int, parts: int, sizes: list[int]) -> None:
    assert sorted(len(part) for part in cut(jobs(count), parts)) == sizes


def test_tasks_together_have_every_job_once_and_mostly_of_one_node() -> None:
    leases = jobs(900)
    parts = cut(leases, 6)
    assert sorted(job for part in parts for job in part) == sorted(leases)
    assert sum(len({job.node for job in part}) for part in parts) <= 6 + 2
    assert cut(leases, 6) == parts
