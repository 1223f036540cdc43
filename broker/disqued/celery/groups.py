"""Saved groups: lists of the results of tasks, in as many result jobs as they need."""

from __future__ import annotations

import zlib
from typing import Final

from disqued.client.resultjobs import MOST_RESULT_BYTES, ResultJobs

_HEAD: Final = b"parts "


def store_group(results: ResultJobs, group_id: str, payload: bytes) -> None:
    """Store a group; a group that is stored again replaces the one before."""
    data = zlib.compress(payload)
    parts = [data[at : at + MOST_RESULT_BYTES] for at in range(0, len(data), MOST_RESULT_BYTES)]
    for number, part in enumerate(parts):
        results.store(_part_key(group_id, number), part, final=False)
    results.store(group_key(group_id), _HEAD + b"%d" % len(parts), final=False)


def read_group(results: ResultJobs, group_id: str) -> bytes | None:
    """Return a group as it was stored; None if it is unknown or was deleted."""
    head = results.latest(group_key(group_id))
    if head is None:
        return None
    keys = [_part_key(group_id, number) for number in range(int(head[0].removeprefix(_HEAD)))]
    found = results.read(keys)
    return zlib.decompress(b"".join(found[key] for key in keys)) if len(found) == len(keys) else None


def group_key(group_id: str) -> str:
    """Return the key of a group; keys of tasks are their IDs."""
    return f"group/{group_id}"


def _part_key(group_id: str, number: int) -> str:
    return f"{group_key(group_id)}/{number}"
