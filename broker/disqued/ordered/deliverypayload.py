"""The payload of DELIVER: jobs for consumers of a node that has no replica of their group.

For each job: the group (4 bytes), the number of the assignment since the consumer joined (8), the index (8), the claim
(8), when the lease ends (8) and the time of the assignment (8) on the clock of the leader, the counters of the job (8,
8), the length of the name of the consumer (2) and of the entry that added the job (4), then both.

A part without an entry says that the consumers of the receiver must join again: a new leader does not know their
credit, or the node was taken for gone.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from disqued.ordered.delivered import Delivered
from disqued.ordered.payload import MalformedPayloadError
from disqued.orderedqueue.effects import Assigned

_JOB: Final = struct.Struct(">IqqqqqqqHI")


class Delivery(NamedTuple):
    """One part of a DELIVER."""

    group: int
    consumer: bytes
    number: int
    assigned: Assigned
    time_ms: int
    data: bytes


def pack_delivery(group: int, consumer: bytes, number: int, job: Delivered, time_ms: int, data: bytes) -> bytes:
    """The part for one job."""
    head = _JOB.pack(
        group,
        number,
        job.index,
        job.claim,
        job.until_ms,
        time_ms,
        job.nacks,
        job.additional,
        len(consumer),
        len(data),
    )
    return head + consumer + data


def pack_wake(group: int, node_id: bytes) -> bytes:
    """The part that says that the consumers of a node must join again."""
    return _JOB.pack(group, 0, 0, 0, 0, 0, 0, 0, len(node_id), 0) + node_id


def unpack_deliveries(payload: bytes) -> list[Delivery]:
    """The jobs in a DELIVER. Raises MalformedPayloadError."""
    found: list[Delivery] = []
    at = 0
    end = len(payload)
    while at < end:
        if end - at < _JOB.size:
            raise MalformedPayloadError("a DELIVER that ends within a job")
        group, number, index, claim, until_ms, time_ms, nacks, additional, name, size = _JOB.unpack_from(payload, at)
        at += _JOB.size
        if end - at < name + size:
            raise MalformedPayloadError("a DELIVER that ends within a job")
        consumer = payload[at : at + name]
        at += name
        assigned = Assigned(index, claim, consumer, until_ms, nacks, additional)
        found.append(Delivery(group, consumer, number, assigned, time_ms, payload[at : at + size]))
        at += size
    return found
