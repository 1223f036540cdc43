"""Offsets: which jobs a micro-batch has, as a value that Spark writes into its checkpoint.

A queue has no offsets that could be read again, so the offset of a batch is the batch itself: its number and the IDs of
its jobs, by the node that leased them to us and by queue. With the IDs a replay finds the same jobs. An ID is
`D-<8 hex digits>-<24 characters>-<4 hex digits>`, of which the first and the last part are the same for many jobs: they
stand once, and the 24 random characters of all of them in a row, which makes 24 bytes for a job.

Pure: nothing here knows Spark or a broker. A queue's name of any bytes is text with surrogate escapes, as in the
client; JSON escapes those, so that an offset is plain ASCII.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from pyspark_disque.options import BadOption

Offset: TypeAlias = dict[str, Any]
"""A dictionary of text, whole numbers and dictionaries, as Spark wants it."""

FORMAT: Final = 1
_RANDOM: Final = 24
_JOBS_PER_TEXT: Final = 100_000
"""JSON readers bound the length of one text (20 million characters): longer lists are cut."""


class Lease(NamedTuple):
    """A job that was handed to us: its ID, its queue, and the ID of the node that keeps our lease."""

    id: str
    queue: str
    node: str


class Manifest(NamedTuple):
    """The jobs of one micro-batch. Number 0 is the beginning, before any batch."""

    number: int
    jobs: tuple[Lease, ...]


BEGINNING: Final = Manifest(0, ())


def pack(manifest: Manifest) -> Offset:
    """The offset that says which jobs a batch has."""
    texts: dict[str, dict[str, dict[str, list[str]]]] = {}
    for job_id, queue, node in manifest.jobs:
        kinds = texts.setdefault(node, {}).setdefault(queue, {})
        kinds.setdefault(job_id[2:10] + job_id[35:], []).append(job_id[11:35])
    jobs = {node: {queue: dict(_cut_texts(kinds)) for queue, kinds in queues.items()} for node, queues in texts.items()}
    return {"format": FORMAT, "batch": manifest.number, "jobs": jobs}


def _cut_texts(kinds: Mapping[str, Sequence[str]]) -> Iterable[tuple[str, str]]:
    for kind, randoms in kinds.items():
        for number, first in enumerate(range(0, len(randoms), _JOBS_PER_TEXT)):
            yield f"{kind}/{number}" if number else kind, "".join(randoms[first : first + _JOBS_PER_TEXT])


def unpack(offset: Mapping[str, Any]) -> Manifest:
    """The jobs of a batch.

    Raises:
        BadOption: the checkpoint belongs to another source, or to another version of this one.
    """
    if offset.get("format") != FORMAT:
        raise BadOption(
            "the checkpoint was not written by this version of the format disque: give the query a checkpointLocation "
            "of its own, or go on with the version that wrote it"
        )
    jobs: dict[str, dict[str, dict[str, str]]] = offset["jobs"]
    return Manifest(
        offset["batch"],
        tuple(
            Lease(f"D-{kind[:8]}-{text[first : first + _RANDOM]}{kind[8:13]}", queue, node)
            for node, queues in jobs.items()
            for queue, kinds in queues.items()
            for kind, text in kinds.items()
            for first in range(0, len(text), _RANDOM)
        ),
    )


def cut(jobs: Sequence[Lease], parts: int) -> list[Sequence[Lease]]:
    """The jobs in at most so many parts that differ by one job at most; the jobs of a node stay side by side."""
    ordered = sorted(jobs, key=lambda job: job.node)
    parts = min(parts, len(ordered))
    bounds = [len(ordered) * part // parts for part in range(parts + 1)] if parts else [0]
    return [ordered[first:last] for first, last in itertools.pairwise(bounds)]
