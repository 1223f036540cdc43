r"""Defines the columns, and converts records to Arrow batches of bounded size.

| column | type | jobs | records | description |
| --- | --- | --- | --- | --- |
| `file` | string | yes | yes | the address of the file |
| `offset` | bigint | yes | yes | the offset of the record in bytes |
| `length` | bigint | | yes | the length of the record in bytes |
| `command` | string | | yes | `LOADJOB`, `DELJOB`, `PAUSE`; null for a damaged range |
| `id`, `queue`, `body` | string, string, binary | yes | yes | bytes in names that are not UTF-8 look like `\xff` |
| `body_size` | int | yes | yes | bytes; also if `includeBody` is false |
| `ctime`, `expires` | timestamp | yes | yes | creation and expiry |
| `delay`, `retry`, `ttl` | bigint | yes | yes | seconds; `ttl` is from `ctime` to `expires` |
| `replicate`, `nacks`, `additional_deliveries` | int | yes | yes | requested copies, and counters as of the record |
| `delivered` | boolean | yes | yes | whether this node had delivered the job, as of the record |
| `nodes` | array of string | yes | yes | nodes that may have a copy |
| `state` | string | yes | yes | `queued` or `active` as of the record; `finished` after a DELJOB |
| `finished` | boolean | yes | | whether a DELJOB follows |
| `finished_offset` | bigint | yes | | the offset of the DELJOB |
| `finished_after`, `finished_before` | timestamp | yes | | bounds of the end: see the page on the format |
| `checksum` | string | | yes | `none` or `right` |
| `pause` | string | | yes | the state in a PAUSE |
| `damage` | string | | yes | why the range is damaged |
| `priority`, `attempts`, `attempts_before` | int | yes | yes | `attempts_before` is of the job before a move |
| `reason`, `origin_queue` | string | yes | yes | why the job failed last; the queue of the job before a move |
| `dead_since` | timestamp | yes | yes | since when the job is a dead letter |
| `meta` | binary | yes | yes | the metadata of the job |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from disqued.bus.frame import NODE_ID_BYTES
from disqued.core.jobs.attributes import described
from disqued.core.jobs.job import DELIVERED, STATE_NAMES
from disqued.persistence.parse import DELJOB, LOADJOB, Damage, Entry, job_of
from pyspark_disque_aof.outcomes import NANOSECONDS_PER_US, Latest, Outcome, delay_of

_JOB: Final = (
    "id string, queue string, body binary, body_size int, ctime timestamp, expires timestamp, delay bigint, "
    "retry bigint, ttl bigint, replicate int, nacks int, additional_deliveries int, delivered boolean, "
    "nodes array<string>, state string"
)
_ATTRIBUTES: Final = (
    "priority int, meta binary, attempts int, attempts_before int, reason string, origin_queue string, "
    "dead_since timestamp"
)
SCHEMAS: Final = {
    "jobs": (
        f"file string, offset bigint, {_JOB}, finished boolean, finished_offset bigint, finished_after timestamp, "
        f"finished_before timestamp, {_ATTRIBUTES}"
    ),
    "records": (
        f"file string, offset bigint, length bigint, command string, {_JOB}, checksum string, pause string, "
        f"damage string, {_ATTRIBUTES}"
    ),
}
MAX_BATCH_ROWS: Final = 4096
MAX_BATCH_BYTES: Final = 8 << 20
"""A batch ends at this number of rows, or of bytes of bodies."""
_CHECKSUMS: Final = ("none", "right", "wrong")
_US_PER_S: Final = 1_000_000
_US_PER_MS: Final = 1000

Row = dict[str, Any]
"""Values by column; a missing column is null."""


def columns(kind: str) -> dict[str, str]:
    """Return the columns of `jobs` or `records`, with their types."""
    pairs = (column.partition(" ") for column in SCHEMAS[kind].split(", "))
    return {name: type_name for name, _, type_name in pairs}


def text(data: bytes) -> str:
    """Return a name as text."""
    return data.decode("utf-8", "backslashreplace")


def of_job(address: str, entry: Entry, outcome: Outcome | None, *, body: bool) -> Row:
    """Return the row of a LOADJOB, with the outcome of the job if it is known."""
    unpacked = job_of(entry)
    job = unpacked.job
    holders = unpacked.holders
    created_us = int(job.ctime) // NANOSECONDS_PER_US
    expires_us = int(job.expire_at_s) * _US_PER_S
    finished = outcome is not None and outcome.end_offset is not None
    latest = Latest.of(job)
    if outcome is not None and outcome.latest is not None:
        latest = outcome.latest.joined(latest)
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
        "nacks": latest.nacks,
        "additional_deliveries": latest.deliveries,
        "delivered": bool(job.flags & DELIVERED),
        "nodes": [text(holders[at : at + NODE_ID_BYTES]) for at in range(0, len(holders), NODE_ID_BYTES)],
        "state": "finished" if finished else STATE_NAMES[unpacked.state].decode(),
        **_attributes(latest),
    }
    if outcome is not None:
        row |= {
            "finished": finished,
            "finished_offset": outcome.end_offset,
            "finished_after": outcome.ended_after_us,
            "finished_before": outcome.ended_before_us,
        }
    return row


def _attributes(latest: Latest) -> Row:
    """Return the columns that follow from the attributes of a job."""
    values = {} if latest.extra is None else dict(described(latest.extra))
    reason, origin, dead_ms = (values.get(name) for name in ("reason", "origin-queue", "dead-since"))
    return {
        "priority": values.get("priority", 0),
        "meta": values.get("meta"),
        "attempts": latest.nacks + latest.deliveries,
        "attempts_before": values.get("attempts"),
        "reason": text(reason) if isinstance(reason, bytes) else None,
        "origin_queue": text(origin) if isinstance(origin, bytes) else None,
        "dead_since": dead_ms * _US_PER_MS if isinstance(dead_ms, int) else None,
    }


def of_item(address: str, item: Entry | Damage, *, body: bool) -> Row:
    """Return the row of a record, or of a damaged range."""
    if isinstance(item, Damage):
        row: Row = {"file": address, "offset": int(item.offset), "damage": item.why}
    elif item.words[0] == LOADJOB:
        row = of_job(address, item, None, body=body) | {"checksum": _CHECKSUMS[int(item.checksum)]}
    elif item.words[0] == DELJOB:
        row = {"file": address, "offset": int(item.offset), "id": text(item.words[1])}
    else:
        row = {"file": address, "offset": int(item.offset)}
        delay = delay_of(item)
        if delay is not None:
            row |= {"id": text(delay[0]), "nacks": delay[1]}
        elif item.words[0] == b"PAUSE":
            row |= {"queue": text(item.words[1]), "pause": text(item.words[2])}
    row["length"] = int(item.end - item.offset)
    if isinstance(item, Entry):
        row["command"] = text(item.words[0])
    return row


def batches(rows: Iterator[Row], schema: pa.Schema, max_rows: int = MAX_BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Yield the rows as Arrow batches with the columns of `schema`."""
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
