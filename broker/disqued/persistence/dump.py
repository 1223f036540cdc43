"""What stands in an append-only file, as objects for JSON: what `disque aof dump` prints."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus.frame import NODE_ID_BYTES
from disqued.core.jobs.attributes import described
from disqued.core.jobs.codec import ID_AT, CorruptJob, Unpacked
from disqued.core.jobs.job import BCAST_QUEUED, BCAST_WILLQUEUE, DELIVERED, STATE_NAMES, Job
from disqued.core.jobs.jobid import JOB_ID_BYTES, is_job_id
from disqued.persistence.check import fault_of
from disqued.persistence.parse import DELJOB, GARBAGE, LOADJOB, SKIPPED, TORN, Damage, Entry, job_of

CHECKSUMS: Final = ("none", "right", "wrong")
KINDS: Final[dict[int, str]] = {int(SKIPPED): "skipped", int(TORN): "torn", int(GARBAGE): "garbage"}
FLAGS: Final[dict[int, str]] = {
    int(BCAST_QUEUED): "bcast-queued",
    int(BCAST_WILLQUEUE): "bcast-willqueue",
    int(DELIVERED): "delivered",
}
"""Bits and their names; a bit that has none is shown as its number."""


class Wanted:
    """Which parts of the file are wanted: all, or the jobs that pass. Damage always is."""

    def __init__(self, queue: bytes | None = None, states: frozenset[str] = frozenset(), *, jobs: bool = False) -> None:
        self._queue = queue
        self._states = states
        self._jobs: bool = jobs or queue is not None or len(states) > 0

    def describe(self, item: Entry | Damage) -> dict[str, object] | None:
        """An object for this part of the file; None if it is not wanted. Bytes are text with surrogate escapes."""
        fault = fault_of(item)
        fields: dict[str, object] = {"offset": int(item.offset), "length": int(item.end - item.offset)}
        if isinstance(item, Entry):
            if fault is None and not self._is_wanted(item):
                return None
            fields |= _of_record(item)
        if fault is not None:
            fields |= {"damage": fault.why, "kind": KINDS[int(fault.kind)]}
        return fields

    def _is_wanted(self, entry: Entry) -> bool:
        if not self._jobs:
            return True
        if entry.words[0] != LOADJOB:
            return False
        unpacked = job_of(entry)
        if self._queue is not None and unpacked.job.queue != self._queue:
            return False
        return not self._states or state_name(unpacked.state) in self._states


def _of_record(entry: Entry) -> dict[str, object]:
    words = entry.words
    fields: dict[str, object] = {"command": text(words[0])}
    if words[0] == LOADJOB:
        fields["checksum"] = CHECKSUMS[int(entry.checksum)]
        try:
            fields["job"] = _of_job(job_of(entry))
        except CorruptJob:  # the reason is told as damage
            job_id = words[1][ID_AT : ID_AT + JOB_ID_BYTES]
            if is_job_id(job_id):
                fields["id"] = text(job_id)
    elif words[0] == DELJOB:
        fields["id"] = text(words[1])
    else:
        opened = None if entry.format is None else entry.format.opened(words)
        fields["args"] = [text(word) for word in (opened or words)[1:]]
    return fields


def _of_job(unpacked: Unpacked) -> dict[str, object]:
    """The fields of a job, by the names they have in the format."""
    job: Job = unpacked.job
    holders = unpacked.holders
    nodes = [text(holders[at : at + NODE_ID_BYTES]) for at in range(0, len(holders), NODE_ID_BYTES)]
    fields: dict[str, object] = {
        "id": text(job.id),
        "queue": text(job.queue),
        "state": state_name(unpacked.state),
        "flags": _flag_names(i64(job.flags)),
        "repl": int(job.repl),
        "etime": int(job.expire_at_s),
        "ctime": int(job.ctime),
        "delay": int(job.delay_s),
        "retry": int(job.retry_s),
        "num_nacks": int(job.nacks),
        "num_deliv": int(job.additional_deliveries),
        "nodes": nodes,
        "body_len": len(job.body),
        "body": text(job.body),
    }
    if job.extra is not None:
        named = described(job.extra)
        fields["attributes"] = {name: text(value) if isinstance(value, bytes) else value for name, value in named}
    return fields


def state_name(state: i64) -> str:
    """The name of a stored state; its number if it has none."""
    return STATE_NAMES[state].decode() if state < len(STATE_NAMES) else str(int(state))


def _flag_names(flags: i64) -> list[str]:
    return [FLAGS.get(1 << bit, str(1 << bit)) for bit in range(8) if int(flags) & 1 << bit]


def text(data: bytes) -> str:
    """Bytes as text: UTF-8, what is none as lone surrogates, from which the bytes can be made again."""
    return data.decode("utf-8", "surrogateescape")
