"""The recorded frames of `tests/vectors/bus` as values, and the conversion between bytes and fields."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from disqued.bus import kinds
from disqued.bus.frame import Frame, FrameReader
from disqued.bus.gossip import GossipEntry, gossip_of
from disqued.bus.writer import FrameWriter
from disqued.core.cluster.holders import Holders
from disqued.core.jobs.codec import Unpacked, pack, unpack
from disqued.core.jobs.job import Job
from disqued.node import ROOMS

VECTORS = Path(__file__).parent.parent / "vectors" / "bus"
FILES = ("fake-peer", "four-nodes", "one-per-type")

_FLAGS = {
    kinds.NODE_PFAIL: "fail?",
    kinds.NODE_FAIL: "fail",
    kinds.NODE_MYSELF: "myself",
    kinds.NODE_HANDSHAKE: "handshake",
    kinds.NODE_NOADDR: "noaddr",
    kinds.NODE_MEET: "meet",
    kinds.NODE_DELETED: "deleted",
    kinds.NODE_LEAVING: "leaving",
}

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One line of a file that holds a frame."""

    name: str
    """File and number of the line."""
    data: bytes
    fields: Fields | None
    """None if the frame is invalid."""


@cache
def lines(file: str) -> list[dict[str, Any]]:
    """All lines of a file."""
    return [json.loads(line) for line in (VECTORS / f"{file}.jsonl").read_text().splitlines()]


@cache
def frames() -> list[Recorded]:
    """Every recorded frame."""
    return [
        Recorded(f"{file}:{number}", bytes.fromhex(line["hex"]), line.get("fields"))
        for file in FILES
        for number, line in enumerate(lines(file), 1)
        if "hex" in line
    ]


def cut(data: bytes) -> list[Frame]:
    """The complete frames in some bytes."""
    reader = FrameReader(table=ROOMS.message_table)
    reader.feed(data)
    found = []
    while (frame := reader.next()) is not None:
        found.append(frame)
    return found


def jobs_of(frame: Frame) -> list[Unpacked]:
    """The jobs of REPLJOB or YOURJOBS, as far as they can be read."""
    found: list[Unpacked] = []
    at: int = frame.jobs_at
    while at < frame.end:
        found.append(unpack(frame.data, at, frame.end))
        at = found[-1].end
    return found


def decoded(frame: Frame) -> Fields:
    """The fields of a frame under the names that the recordings use."""
    payload = frame.data[frame.start : frame.end]
    fields: Fields = {
        "sig": payload[:4].decode(),
        "totlen": frame.length,
        "ver": frame.version,
        "notused0": int.from_bytes(payload[10:12], "big"),
        "type": frame.kind,
        "count": frame.count,
        "sender": frame.sender.decode(),
        "myip_zero": frame.announced_ip == b"",
        "notused1_zero": not any(payload[102:136]),
        "port": frame.port,
        "flags": frame.node_flags,
        "flag_names": _flag_names(frame.node_flags),
        "state": payload[140],
        "mflags": [frame.message_flags, payload[142], payload[143]],
    }
    of = ROOMS.message_table.payloads[frame.kind] if frame.kind < kinds.KINDS else kinds.OF_UNKNOWN
    if of == kinds.OF_GOSSIP:
        fields["gossip"] = [_entry(entry) for entry in gossip_of(frame)]
    elif of == kinds.OF_NODE_ID:
        fields["about"] = frame.about.decode()
    elif of == kinds.OF_JOB_ID:
        fields |= {"jobid": frame.job_id.decode(), "aux": frame.aux}
    elif of == kinds.OF_JOBS:
        jobs = [_job(job, frame.data) for job in jobs_of(frame)]
        fields |= {"numjobs": frame.jobs_count, "datasize": frame.length - 152, "jobs": jobs}
    elif of == kinds.OF_QUEUE:
        name = frame.queue
        fields |= {"aux": frame.aux, "qnamelen": len(name), "qname": name.decode("latin-1")}
    return fields


def encoded(fields: Fields, bodies: list[bytes]) -> bytes:
    """The frame with these fields; `bodies` are those of its jobs, which the recordings shorten."""
    leaving = bool(fields["flags"] & kinds.NODE_LEAVING)
    writer = FrameWriter(fields["sender"].encode(), fields["port"], leaving=leaving)
    kind, flags = fields["type"], fields["mflags"][0]
    of = ROOMS.message_table.payloads[kind]
    if of == kinds.OF_GOSSIP:
        return writer.gossip(kind, [_packed_entry(entry) for entry in fields["gossip"]], 0)
    if of == kinds.OF_NODE_ID:
        return writer.fail(fields["about"].encode())
    if of == kinds.OF_JOB_ID:
        return writer.about_job(kind, fields["jobid"].encode(), fields["aux"], flags)
    if of == kinds.OF_JOBS:
        jobs = [packed(job, body) for job, body in zip(fields["jobs"], bodies, strict=True)]
        return writer.jobs(kind, jobs, flags)
    if of == kinds.OF_QUEUE:
        return writer.about_queue(kind, fields["qname"].encode("latin-1"), fields["aux"])
    return writer.other(kind, b"")


def packed(fields: Fields, body: bytes) -> bytes:
    """The job with these fields."""
    job = Job(
        fields["id"].encode(),
        fields["queue"].encode("latin-1"),
        body,
        fields["ctime"],
        fields["etime"],
        fields["delay"],
        fields["retry"],
        fields["repl"],
    )
    job.nacks = fields["num_nacks"]
    job.additional_deliveries = fields["num_deliv"]
    holders = Holders().pack(tuple(node.encode() for node in fields["nodes"]))
    return pack(job, fields["state_byte"], fields["flags"], fields["etime"], holders)


def _flag_names(flags: int) -> list[str]:
    return [name for flag, name in _FLAGS.items() if flags & flag]


def _entry(entry: GossipEntry) -> Fields:
    return {
        "name": entry.node_id.decode(),
        "ping_sent": entry.ping_sent,
        "pong_received": entry.pong_received,
        "ip": entry.ip.decode(),
        "port": entry.port,
        "flags": entry.flags,
        "flag_names": _flag_names(entry.flags),
        "notused1": entry.bus_port,
        "notused2": 0,
    }


def _packed_entry(fields: Fields) -> bytes:
    return GossipEntry(
        fields["name"].encode(),
        fields["ping_sent"],
        fields["pong_received"],
        fields["ip"].encode(),
        fields["port"],
        fields["flags"],
    ).encode()


def _job(found: Unpacked, data: bytes) -> Fields:
    job = found.job
    size = 84 + len(job.queue) + len(job.body) + len(found.holders)
    state_byte = data[found.end - size + 44]
    nodes = [found.holders[at : at + 40].decode() for at in range(0, len(found.holders), 40)]
    return {
        "len": size - 4,
        "id": job.id.decode(),
        "state_byte": state_byte,
        "state": found.state,
        "gc_retry": state_byte >> 4,
        "flags": job.flags,
        "repl": job.repl,
        "etime": job.expire_at_s,
        "ctime": job.ctime,
        "delay": job.delay_s,
        "retry": job.retry_s,
        "num_nacks": job.nacks,
        "num_deliv": job.additional_deliveries,
        "queue": job.queue.decode("latin-1"),
        "body_len": len(job.body),
        "body": job.body.decode("latin-1"),
        "nodes": nodes,
        "consumed": size,
    }
