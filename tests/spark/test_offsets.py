"""Offsets: an offset read from Spark's checkpoint gives the batch that was written."""

from __future__ import annotations

import json
import random
import string

import pytest

from pyspark_disque.offsets import BEGINNING, JobRef, Manifest, decode_offset, encode_offset, split
from pyspark_disque.options import BadOption

ALPHABET = string.ascii_letters + string.digits + "+/"
NODES = ("a" * 40, "b" * 40, "c" * 40)


def job_id(rng: random.Random, node: str, ttl: str = "05a1") -> str:
    return f"D-{node[:8]}-{''.join(rng.choices(ALPHABET, k=24))}-{ttl}"


def jobs(count: int, *, queues: tuple[str, ...] = ("q",), ttls: tuple[str, ...] = ("05a1",)) -> tuple[JobRef, ...]:
    rng = random.Random(7)
    return tuple(
        JobRef(job_id(rng, rng.choice(NODES), rng.choice(ttls)), rng.choice(queues), rng.choice(NODES))
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
def test_offset_keeps_the_jobs_through_json(manifest: Manifest) -> None:
    text = json.dumps(encode_offset(manifest))
    again = decode_offset(json.loads(text))
    assert again.number == manifest.number
    assert sorted(again.jobs) == sorted(manifest.jobs)
    assert text.isascii()


def test_offset_encoded_again_is_the_same_text() -> None:
    text = json.dumps(encode_offset(Manifest(3, jobs(100, queues=("a", "b")))))
    assert json.dumps(json.loads(text)) == text
    assert encode_offset(decode_offset(json.loads(text))) == json.loads(text)


def test_offset_of_ten_thousand_jobs_is_below_a_quarter_megabyte() -> None:
    assert len(json.dumps(encode_offset(Manifest(1, jobs(10_000))))) < 245_000


def test_strings_of_an_offset_are_within_the_limit_of_json_readers() -> None:
    ids = (f"D-{NODES[0][:8]}-{number:024}-05a1" for number in range(250_001))
    manifest = Manifest(1, tuple(JobRef(job_id, "q", NODES[0]) for job_id in ids))
    offset = encode_offset(manifest)
    texts = offset["jobs"][NODES[0]]["q"]
    assert [len(text) for text in texts.values()] == [2_400_000, 2_400_000, 24 * 50_001]
    assert decode_offset(offset) == manifest


@pytest.mark.parametrize("offset", [{}, {"format": 2, "batch": 1, "jobs": {}}, {"partition-0": 3}])
def test_checkpoint_of_another_source_is_rejected(offset: dict[str, object]) -> None:
    with pytest.raises(BadOption, match="checkpointLocation"):
        decode_offset(offset)


@pytest.mark.parametrize(("count", "parts", "sizes"), [(10, 4, [2, 2, 3, 3]), (2, 6, [1, 1]), (0, 3, []), (5, 1, [5])])
def test_split_parts_differ_by_one_job_at_most(count: int, parts: int, sizes: list[int]) -> None:
    assert sorted(len(part) for part in split(jobs(count), parts)) == sizes


def test_split_parts_have_every_job_once_and_mostly_of_one_node() -> None:
    refs = jobs(900)
    parts = split(refs, 6)
    assert sorted(job for part in parts for job in part) == sorted(refs)
    assert sum(len({job.node for job in part}) for part in parts) <= 6 + 2
    assert split(refs, 6) == parts
