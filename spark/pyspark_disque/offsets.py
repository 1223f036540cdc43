"""The offset of a micro-batch: the list of its jobs, as a value that Spark writes to its checkpoint.

A queue has no offsets that can be read again, so the offset of a batch is its number and the IDs of its jobs, grouped
by the node that granted the lease and by queue. A replay finds the same jobs by their IDs. A job ID is
`D-<8 hex digits>-<24 characters>-<4 hex digits>`. The first and the last part are the same for many jobs, so the offset
stores them once, followed by the concatenated 24 random characters of each job: 24 bytes per job.

This module knows neither Spark nor the broker. A queue name that is not UTF-8 is text with surrogate escapes, as in the
client. JSON escapes those, so an offset is plain ASCII.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from pyspark_disque.options import BadOption

Offset: TypeAlias = dict[str, Any]
"""A dictionary of strings, integers and dictionaries, as Spark requires."""

FORMAT: Final = 1
_RANDOM: Final = 24
_JOBS_PER_TEXT: Final = 100_000
"""JSON readers limit the length of a string to 20 million characters, so longer lists are split."""


class JobRef(NamedTuple):
    """A job leased to this query: its ID, its queue, and the ID of the node that granted the lease."""

    id: str
    queue: str
    node: str


class Manifest(NamedTuple):
    """The jobs of one micro-batch. Number 0 is the state before the first batch."""

    number: int
    jobs: tuple[JobRef, ...]


BEGINNING: Final = Manifest(0, ())


def encode_offset(manifest: Manifest) -> Offset:
    """Return the offset of a batch."""
    texts: dict[str, dict[str, dict[str, list[str]]]] = {}
    for job_id, queue, node in manifest.jobs:
        kinds = texts.setdefault(node, {}).setdefault(queue, {})
        kinds.setdefault(job_id[2:10] + job_id[35:], []).append(job_id[11:35])
    jobs = {
        node: {queue: dict(_split_texts(kinds)) for queue, kinds in queues.items()} for node, queues in texts.items()
    }
    return {"format": FORMAT, "batch": manifest.number, "jobs": jobs}


def _split_texts(kinds: Mapping[str, Sequence[str]]) -> Iterable[tuple[str, str]]:
    for kind, randoms in kinds.items():
        for number, first in enumerate(range(0, len(randoms), _JOBS_PER_TEXT)):
            yield f"{kind}/{number}" if number else kind, "".join(randoms[first : first + _JOBS_PER_TEXT])


def decode_offset(offset: Mapping[str, Any]) -> Manifest:
    """Return the batch of an offset.

    Raises:
        BadOption: another source, or another version of this one, wrote the checkpoint.
    """
    if offset.get("format") != FORMAT:
        raise BadOption(
            "the checkpoint was not written by this version of the format disque: give the query its own "
            "checkpointLocation, or continue with the version that wrote it"
        )
    jobs: dict[str, dict[str, dict[str, str]]] = offset["jobs"]
    return Manifest(
        offset["batch"],
        tuple(
            JobRef(f"D-{kind[:8]}-{text[first : first + _RANDOM]}{kind[8:13]}", queue, node)
            for node, queues in jobs.items()
            for queue, kinds in queues.items()
            for kind, text in kinds.items()
            for first in range(0, len(text), _RANDOM)
        ),
    )


def split(jobs: Sequence[JobRef], parts: int) -> list[Sequence[JobRef]]:
    """Split jobs into up to `parts` parts whose sizes differ by at most one; jobs of one node stay together."""
    ordered = sorted(jobs, key=lambda job: job.node)
    parts = min(parts, len(ordered))
    bounds = [len(ordered) * part // parts for part in range(parts + 1)] if parts else [0]
    return [ordered[first:last] for first, last in itertools.pairwise(bounds)]
