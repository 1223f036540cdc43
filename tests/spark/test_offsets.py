"""Offsets: an offset read from Spark's checkpoint gives the batch that was written."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterable

import pytest

from pyspark_disque.offsets import BEGINNING, JobGroup, Manifest, decode_offset, encode_offset, split
from pyspark_disque.optionvalues import BadOption

ALPHABET = string.ascii_letters + string.digits + "+/"
NODES = ("a" * 40, "b" * 40, "c" * 40)


def job_id(rng: random.Random, node: str, ttl: str = "05a1") -> bytes:
    return f"D-{node[:8]}-{''.join(rng.choices(ALPHABET, k=24))}-{ttl}".encode()


def jobs(
    count: int, *, queues: tuple[str, ...] = ("q",), ttls: tuple[str, ...] = ("05a1",), nodes: tuple[str, ...] = NODES
) -> tuple[JobGroup, ...]:
    """Return so many jobs of each node, queue and TTL."""
    rng = random.Random(7)
    return tuple(
        JobGroup(node, queue, tuple(job_id(rng, node, ttl) for _ in range(count)))
        for node in nodes
        for queue in sorted(queues)
        for ttl in sorted(ttls)
    )


def ids_of(groups: Iterable[JobGroup]) -> list[bytes]:
    return [job_id for group in groups for job_id in group.ids]


@pytest.mark.parametrize(
    "manifest",
    [
        BEGINNING,
        Manifest(1, jobs(1)),
        Manifest(7, jobs(50, queues=("mail", "", 'a "quoted" one', "ü", "not \udcff utf-8"), ttls=("05a1", "0000"))),
    ],
    ids=["nothing", "one job", "many of each kind"],
)
def test_offset_keeps_the_jobs_through_json(manifest: Manifest) -> None:
    text = json.dumps(encode_offset(manifest))
    assert decode_offset(json.loads(text)) == manifest
    assert text.isascii()


def test_offset_encoded_again_is_the_same_text() -> None:
    text = json.dumps(encode_offset(Manifest(3, jobs(100, queues=("a", "b")))))
    assert json.dumps(json.loads(text)) == text
    assert encode_offset(decode_offset(json.loads(text))) == json.loads(text)


def test_offset_of_ten_thousand_jobs_is_below_a_quarter_megabyte() -> None:
    assert len(json.dumps(encode_offset(Manifest(1, jobs(3333))))) < 245_000


def test_strings_of_an_offset_are_within_the_limit_of_json_readers() -> None:
    ids = tuple(b"D-aaaaaaaa-%024d-05a1" % number for number in range(250_001))
    manifest = Manifest(1, (JobGroup(NODES[0], "q", ids),))
    offset = encode_offset(manifest)
    texts = offset["jobs"][NODES[0]]["q"]
    assert [len(text) for text in texts.values()] == [2_400_000, 2_400_000, 24 * 50_001]
    assert decode_offset(offset) == manifest


@pytest.mark.parametrize("offset", [{}, {"format": 2, "batch": 1, "jobs": {}}, {"partition-0": 3}])
def test_checkpoint_of_another_source_is_rejected(offset: dict[str, object]) -> None:
    with pytest.raises(BadOption, match="checkpointLocation"):
        decode_offset(offset)


def test_checkpoint_of_an_earlier_version_is_read() -> None:
    """Earlier versions wrote the jobs in the order of their leases, and so nodes, queues and kinds in any order."""
    first, second = "A" * 24, "B" * 24
    offset = {
        "format": 1,
        "batch": 4,
        "jobs": {
            NODES[1]: {"q": {"bbbbbbbb-05a1": first}},
            NODES[0]: {"r": {"aaaaaaaa-ffff": second, "aaaaaaaa-05a1": first}, "q": {"aaaaaaaa-05a1": second + first}},
        },
    }
    assert decode_offset(offset) == Manifest(
        4,
        (
            JobGroup(NODES[0], "q", (f"D-aaaaaaaa-{second}-05a1".encode(), f"D-aaaaaaaa-{first}-05a1".encode())),
            JobGroup(NODES[0], "r", (f"D-aaaaaaaa-{first}-05a1".encode(),)),
            JobGroup(NODES[0], "r", (f"D-aaaaaaaa-{second}-ffff".encode(),)),
            JobGroup(NODES[1], "q", (f"D-bbbbbbbb-{first}-05a1".encode(),)),
        ),
    )


@pytest.mark.parametrize(("count", "parts", "sizes"), [(10, 4, [2, 2, 3, 3]), (2, 6, [1, 1]), (0, 3, []), (5, 1, [5])])
def test_split_parts_differ_by_one_job_at_most(count: int, parts: int, sizes: list[int]) -> None:
    groups = jobs(count, nodes=NODES[:1])
    assert sorted(len(ids_of(part)) for part in split(groups, parts)) == sizes


def test_split_parts_have_every_job_once_in_order_and_mostly_of_one_node() -> None:
    groups = jobs(300)
    parts = split(groups, 6)
    assert ids_of(group for part in parts for group in part) == ids_of(groups)
    assert sum(len({group.node for group in part}) for part in parts) <= 6 + 2
    assert split(groups, 6) == parts
