"""The offset of a micro-batch: the list of its jobs, as a value that Spark writes to its checkpoint.

A queue has no offsets that can be read again, so the offset of a batch is its number and the IDs of its jobs, grouped
by the node that granted the lease, by queue, and by kind. A replay finds the same jobs by their IDs, in the same order.
A job ID is `D-<8 hex digits>-<24 characters>-<4 hex digits>`. The first and the last part, the *kind*, are the same for
many jobs, so the offset stores them once, followed by the concatenated 24 characters of each job. These are 144 random
bits in base64, so no compression makes them shorter: 24 bytes per job.

The jobs of a group are a tuple of IDs, as bytes, as the nodes send and read them. An object for each job, or a
conversion of each ID to text, would cost as much as all other work for it.

This module knows neither Spark nor the broker. A queue name that is not UTF-8 is text with surrogate escapes, as in the
client. JSON escapes those, so an offset is plain ASCII.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

from pyspark_disque.optionvalues import BadOption

Offset: TypeAlias = dict[str, Any]
"""A dictionary of strings, integers and dictionaries, as Spark requires."""

FORMAT: Final = 1
ID_HEAD: Final = len("D-01234567-")
_RANDOM: Final = 24
ID_TAIL: Final = ID_HEAD + _RANDOM
"""Between these two positions, an ID is random."""
_JOBS_PER_TEXT: Final = 100_000
"""JSON readers limit the length of a string to 20 million characters, so longer lists are split."""


class JobGroup(NamedTuple):
    """Jobs leased to this query: the ID of the node that granted the lease, the queue, and the IDs, all of one kind."""

    node: str
    queue: str
    ids: tuple[bytes, ...]

    @property
    def kind(self) -> str:
        """The parts that all IDs have in common."""
        return kind_of(self.ids[0])


class Manifest(NamedTuple):
    """The jobs of one micro-batch, ordered by node, queue and kind. Number 0 is the state before the first batch."""

    number: int
    groups: tuple[JobGroup, ...]

    @property
    def ids(self) -> Iterator[bytes]:
        """The IDs of all jobs."""
        return chain.from_iterable(group.ids for group in self.groups)


BEGINNING: Final = Manifest(0, ())


def kind_of(job_id: bytes) -> str:
    """Return the parts of an ID that many jobs have in common."""
    return (job_id[2 : ID_HEAD - 1] + job_id[ID_TAIL:]).decode("ascii")


def encode_offset(manifest: Manifest) -> Offset:
    """Return the offset of a batch."""
    jobs: dict[str, dict[str, dict[str, str]]] = {}
    for group in manifest.groups:
        jobs.setdefault(group.node, {}).setdefault(group.queue, {}).update(_texts(group))
    return {"format": FORMAT, "batch": manifest.number, "jobs": jobs}


def _texts(group: JobGroup) -> Iterable[tuple[str, str]]:
    for number, first in enumerate(range(0, len(group.ids), _JOBS_PER_TEXT)):
        randoms = [job_id[ID_HEAD:ID_TAIL] for job_id in group.ids[first : first + _JOBS_PER_TEXT]]
        yield f"{group.kind}/{number}" if number else group.kind, b"".join(randoms).decode("ascii")


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
            JobGroup(node, queue, ids)
            for node, queues in sorted(jobs.items())
            for queue, texts in sorted(queues.items())
            for ids in _ids(texts)
        ),
    )


def _ids(texts: Mapping[str, str]) -> Iterator[tuple[bytes, ...]]:
    """Yield the IDs of each kind."""
    joined: dict[str, str] = {}
    for name, text in texts.items():
        kind = name.partition("/")[0]
        joined[kind] = joined.get(kind, "") + text
    for kind, text in sorted(joined.items()):
        head, tail, randoms = f"D-{kind[:8]}-".encode("ascii"), kind[8:].encode("ascii"), text.encode("ascii")
        yield tuple([head + randoms[first : first + _RANDOM] + tail for first in range(0, len(randoms), _RANDOM)])


def split(groups: Sequence[JobGroup], parts: int) -> list[tuple[JobGroup, ...]]:
    """Split jobs into up to `parts` parts whose sizes differ by at most one, in the given order."""
    total = sum(len(group.ids) for group in groups)
    parts = min(parts, total)
    return [_between(groups, total * part // parts, total * (part + 1) // parts) for part in range(parts)]


def _between(groups: Sequence[JobGroup], first: int, end: int) -> tuple[JobGroup, ...]:
    """Return the jobs from position `first` up to `end`."""
    found: list[JobGroup] = []
    start = 0
    for group in groups:
        ids = group.ids[max(0, first - start) : max(0, end - start)]
        if ids:
            found.append(group._replace(ids=ids))
        start += len(group.ids)
    return tuple(found)
