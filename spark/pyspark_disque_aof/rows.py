r"""The columns, and records as rows of Arrow batches that stay small, whatever the file holds.

| column | type | jobs | records | what |
| --- | --- | --- | --- | --- |
| `file` | string | yes | yes | the address of the file |
| `offset` | bigint | yes | yes | where the record begins |
| `length` | bigint | | yes | how many bytes it has |
| `command` | string | | yes | `LOADJOB`, `DELJOB`, `PAUSE`; null for a damaged place |
| `id`, `queue`, `body` | string, string, binary | yes | yes | of the job; bytes in names that are no UTF-8: `\xff` |
| `body_size` | int | yes | yes | bytes; also when `includeBody` is false |
| `ctime`, `expires` | timestamp | yes | yes | when the job was created, when its time is over |
| `delay`, `retry`, `ttl` | bigint | yes | yes | seconds; `ttl` is from `ctime` to `expires` |
| `replicate`, `nacks`, `additional_deliveries` | int | yes | yes | copies asked for, counters when it was written |
| `delivered` | boolean | yes | yes | whether this node had handed it out when it was written |
| `nodes` | array of string | yes | yes | nodes that may have a copy |
| `state` | string | yes | yes | `queued` or `active` as written; of jobs that ended `finished` |
| `finished` | boolean | yes | | whether a DELJOB stands behind |
| `finished_offset` | bigint | yes | | where |
| `finished_after`, `finished_before` | timestamp | yes | | about when: see the page on the format |
| `checksum` | string | | yes | `none` or `right` |
| `pause` | string | | yes | of a PAUSE |
| `damage` | string | | yes | why a place is none of them |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from disqued.bus.frame import NODE_ID_BYTES
from disqued.core.jobs.job import DELIVERED, STATE_NAMES
from disqued.persistence.reader import DELJOB, LOADJOB, Damage, Entry, job_of
from pyspark_disque_aof.fold import NANOSECONDS_PER_US, Life

_JOB: Final = (
    "id string, queue string, body binary, body_size int, ctime timestamp, expires timestamp, delay bigint, "
    "retry bigint, ttl bigint, replicate int, nacks int, additional_deliveries int, delivered boolean, "
    "nodes array<string>, state string"
)
SCHEMAS: Final = {
    "jobs": (
        f"file string, offset bigint, {_JOB}, finished boolean, finished_offset bigint, finished_after timestamp, "
        "finished_before timestamp"
    ),
    "records": (
        f"file string, offset bigint, length bigint, command string, {_JOB}, checksum string, pause string, "
        "damage string"
    ),
}
MAX_BATCH_ROWS: Final = 4096
MAX_BATCH_BYTES: Final = 8 << 20
"""A batch is full with so many rows, or so many bytes of bodies."""
_CHECKSUMS: Final = ("none", "right", "wrong")
_US_PER_S: Final = 1_000_000

Row = dict[str, Any]
"""Values by column; what is missing is null."""


def columns(kind: str) -> dict[str, str]:
    """The columns of `jobs` or `records`, and their types."""
    pairs = (column.partition(" ") for column in SCHEMAS[kind].split(", "))
    return {name: type_name for name, _, type_name in pairs}


def text(data: bytes) -> str:
    """A name as text."""
    return data.decode("utf-8", "backslashreplace")


def of_job(address: str, entry: Entry, life: Life | None, *, body: bool) -> Row:
    """The row of a LOADJOB, with what came of the job if that is known."""
    unpacked = job_of(entry)
    job = unpacked.job
    holders = unpacked.holders
    created_us = int(job.ctime) // NANOSECONDS_PER_US
    expires_us = int(job.expire_at_s) * _US_PER_S
    finished = life is not None and life.end_offset is not None
    row: Row = {
        "file": address,
        "offset": int(entry.offset),
        "id": text(job.id),
        "queue": text(job.queue),
        "body": job.body if body else None,
        "body_size": len(job.body),
        "ctime": created_us,
        "expires": expires_us,
        "delay": int(job.delay_s),
        "retry": int(job.retry_s),
        "ttl": (expires_us - created_us) // _US_PER_S,
        "replicate": int(job.repl),
        "nacks": int(job.nacks),
        "additional_deliveries": int(job.additional_deliveries),
        "delivered": bool(job.flags & DELIVERED),
        "nodes": [text(holders[at : at + NODE_ID_BYTES]) for at in range(0, len(holders), NODE_ID_BYTES)],
        "state": "finished" if finished else STATE_NAMES[unpacked.state].decode(),
    }
    if life is not None:
        row |= {
            "finished": finished,
            "finished_offset": life.end_offset,
            "finished_after": life.ended_after_us,
            "finished_before": life.ended_before_us,
        }
    return row


def of_item(address: str, item: Entry | Damage, *, body: bool) -> Row:
    """The row of a record, or of a damaged place."""
    if isinstance(item, Damage):
        row: Row = {"file": address, "offset": int(item.offset), "damage": item.why}
    elif item.words[0] == LOADJOB:
        row = of_job(address, item, None, body=body) | {"checksum": _CHECKSUMS[int(item.checksum)]}
    elif item.words[0] == DELJOB:
        row = {"file": address, "offset": int(item.offset), "id": text(item.words[1])}
    else:
        row = {"file": address, "offset": int(item.offset), "queue": text(item.words[1]), "pause": text(item.words[2])}
    row["length"] = int(item.end - item.offset)
    if isinstance(item, Entry):
        row["command"] = text(item.words[0])
    return row


def batches(rows: Iterator[Row], schema: pa.Schema, max_rows: int = MAX_BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow batches of these columns."""
    gathered: list[Row] = []
    size = 0
    for row in rows:
        gathered.append(row)
        size += len(row.get("body") or b"")
        if len(gathered) == max_rows or size >= MAX_BATCH_BYTES:
            yield _batch(gathered, schema)
            gathered = []
            size = 0
    if gathered:
        yield _batch(gathered, schema)


def _batch(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)
