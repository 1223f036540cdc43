"""Frames are read as written, in any pieces; invalid frames are refused before they are stored."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.recorded import cut
from disqued.bus import kinds
from disqued.bus.bigendian import u16, u32
from disqued.bus.errors import BusError
from disqued.bus.extension import cluster_digest, extension
from disqued.bus.frame import LISTED_BYTES, MAX_FRAME_BYTES, MAX_UNKNOWN_BYTES, Frame, FrameReader
from disqued.bus.gossip import GossipEntry, gossip_of
from disqued.bus.writer import FrameWriter, number
from disqued.core.runtime.message import table_of
from disqued.node import ROOMS

NODE = b"5ca1ab1e" * 5
JOB = b"D-5ca1ab1e-FakePeerJobFakePeerJob0a-05a1"
WRITER = FrameWriter(NODE, 7711)
GOSSIP = [message.number for message in ROOMS.messages if message.payload == kinds.OF_GOSSIP]
ABOUT_JOBS = [message.number for message in ROOMS.messages if message.payload == kinds.OF_JOB_ID]
WITH_JOBS = [message.number for message in ROOMS.messages if message.payload == kinds.OF_JOBS]
ABOUT_QUEUES = [message.number for message in ROOMS.messages if message.payload == kinds.OF_QUEUE]

LISTABLE = sorted(kinds.LISTS)
LISTS = sorted(kinds.LISTS.values())

node_ids = st.binary(min_size=40, max_size=40)
u16s = st.integers(0, 0xFFFF)
u32s = st.integers(0, 0xFFFFFFFF)
names = st.binary(max_size=300)
message_flags = st.integers(0, 15)
eight_bytes = st.binary(min_size=8, max_size=8)
ips = st.from_regex(rb"[0-9a-f.:]{0,46}", fullmatch=True)
entries = st.builds(GossipEntry, node_ids, u32s, u32s, ips, u16s, u16s, u16s)
writers = st.builds(FrameWriter, node_ids, u16s, leaving=st.booleans())


entry_parts = st.lists(st.tuples(node_ids, u32s.map(number)), min_size=1, max_size=5).map(
    lambda listed: [part for entry in listed for part in entry]
)
"""IDs of jobs, each followed by its number."""


def one(data: bytes) -> Frame:
    (frame,) = cut(data)
    assert frame.length == len(data)
    return frame


written = st.one_of(
    st.builds(WRITER.gossip, st.sampled_from(GOSSIP), st.just([]), u32s),
    st.builds(WRITER.fail, node_ids),
    st.builds(WRITER.about_job, st.sampled_from(ABOUT_JOBS), node_ids, u32s, message_flags),
    st.builds(WRITER.jobs, st.sampled_from(WITH_JOBS), st.lists(names, min_size=1, max_size=3), message_flags),
    st.builds(WRITER.about_queue, st.sampled_from(ABOUT_QUEUES), names, u32s),
    st.builds(WRITER.about_jobs, st.sampled_from(LISTABLE), entry_parts),
    st.builds(WRITER.other, st.just(kinds.HOST), names),
)
"""Frames of all types."""


@given(node_ids, u16s, st.booleans(), ips)
def test_header_has_the_sender(node_id: bytes, port: int, leaving: bool, ip: bytes) -> None:
    frame = one(FrameWriter(node_id, port, leaving=leaving, announced_ip=ip).fail(NODE))

    assert (frame.sender, frame.port, frame.announced_ip) == (node_id, port, ip)
    assert frame.node_flags == kinds.NODE_MYSELF | (kinds.NODE_LEAVING if leaving else 0)
    assert (frame.version, frame.count, frame.message_flags) == (1, 0, 0)
    assert not frame.extended
    assert (frame.features, frame.bus_port, frame.clock_ms) == (0, 0, 0)
    assert frame.cluster == frame.incarnation == bytes(8)


@given(st.integers(0, (1 << 32) - 1), u16s, eight_bytes, eight_bytes, st.integers(0, (1 << 64) - 1))
def test_disqued_nodes_announce_their_extension(
    features: int, bus_port: int, cluster: bytes, incarnation: bytes, clock: int
) -> None:
    writer = FrameWriter(NODE, 7711, extension=extension(features, bus_port, cluster, incarnation))
    ping, fail = one(writer.gossip(kinds.PING, [], clock)), one(writer.fail(NODE))

    for frame in (ping, fail):
        assert frame.extended
        assert (frame.features, frame.bus_port) == (features, bus_port)
        assert (frame.cluster, frame.incarnation) == (cluster, incarnation)
    assert (ping.clock_ms, fail.clock_ms) == (clock, 0)


def test_original_node_gets_no_clock() -> None:
    assert not any(WRITER.gossip(kinds.PING, [], 1_800_000_000_000)[102:136])


def test_a_cluster_without_name_has_no_digest() -> None:
    assert cluster_digest(b"") == bytes(8)
    assert len({cluster_digest(b""), cluster_digest(b"east"), cluster_digest(b"west")}) == 3


@given(st.sampled_from(GOSSIP), st.lists(entries, max_size=5))
def test_gossip_is_read_as_written(kind: int, told: list[GossipEntry]) -> None:
    frame = one(WRITER.gossip(kind, [entry.encode() for entry in told], 0))

    assert (frame.kind, frame.count) == (kind, len(told))
    assert [vars_of(entry) for entry in gossip_of(frame)] == [vars_of(entry) for entry in told]


def vars_of(entry: GossipEntry) -> tuple[object, ...]:
    return (
        entry.node_id,
        entry.ping_sent,
        entry.pong_received,
        entry.ip,
        entry.port,
        entry.flags,
        entry.bus_port,
    )


def test_times_in_gossip_are_cut_to_their_low_32_bits() -> None:
    entry = GossipEntry(NODE, 1_800_000_000_123, 1_800_000_000_456, b"10.0.0.1", 7711, 0)
    (found,) = gossip_of(one(WRITER.gossip(kinds.PONG, [entry.encode()], 0)))

    assert (found.ping_sent, found.pong_received) == (1_800_000_000_123 % 2**32, 1_800_000_000_456 % 2**32)


@given(node_ids)
def test_fail_names_a_node(node_id: bytes) -> None:
    frame = one(WRITER.fail(node_id))

    assert (frame.kind, frame.about) == (kinds.FAIL, node_id)


@given(st.sampled_from(ABOUT_JOBS), node_ids, u32s, message_flags)
def test_a_message_about_a_job_has_its_id_and_a_number(kind: int, job_id: bytes, aux: int, flags: int) -> None:
    frame = one(WRITER.about_job(kind, job_id, aux, flags))

    assert (frame.kind, frame.job_id, frame.aux, frame.message_flags) == (kind, job_id, aux, flags)


@given(st.sampled_from(LISTABLE), entry_parts)
def test_list_of_jobs_has_their_ids_and_numbers(kind: int, parts: list[bytes]) -> None:
    frame = one(WRITER.about_jobs(kind, parts))
    if len(parts) == 2:
        assert (frame.kind, frame.job_id, number(frame.aux)) == (kind, *parts)
        return
    found = []
    for at in range(frame.jobs_at, frame.end, LISTED_BYTES):
        found += [frame.listed(at), number(frame.listed_aux(at))]

    assert (frame.kind, frame.jobs_count * 2) == (kinds.LISTS[kind], len(parts))
    assert found == parts


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize(("count", "size"), [(2, 44), (1, 88), (0, 44), (1, 43), ((1 << 32) - 1, 44), (2001, 88044)])
def test_list_whose_size_does_not_match_its_number_of_jobs_is_refused(kind: int, count: int, size: int) -> None:
    reader = FrameReader(table=ROOMS.message_table)
    reader.feed(header(kind, 152 + size) + bytes(128) + u32(count) + u32(size))

    with pytest.raises(BusError, match="which is impossible"):
        reader.next()


@given(st.sampled_from(ABOUT_QUEUES), names, u32s)
def test_a_message_about_a_queue_has_its_name_and_a_number(kind: int, name: bytes, aux: int) -> None:
    frame = one(WRITER.about_queue(kind, name, aux))

    assert (frame.kind, frame.queue, frame.aux) == (kind, name, aux)


@given(st.sampled_from(WITH_JOBS), st.lists(names, min_size=1, max_size=4), message_flags)
def test_jobs_stand_back_to_back_behind_their_number(kind: int, jobs: list[bytes], flags: int) -> None:
    frame = one(WRITER.jobs(kind, jobs, flags))

    assert (frame.kind, frame.jobs_count, frame.message_flags) == (kind, len(jobs), flags)
    assert frame.data[frame.jobs_at : frame.end] == b"".join(jobs)


@given(names)
def test_messages_of_our_own_carry_any_payload(payload: bytes) -> None:
    frame = one(WRITER.other(kinds.HOST, payload))

    assert (frame.kind, frame.payload) == (kinds.HOST, payload)


@given(st.lists(written, max_size=8), st.data())
def test_frames_are_the_same_in_whatever_pieces_they_come(sent: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(sent)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=20).map(sorted))

    assert received(stream, cuts) == sent
    assert received(stream, list(range(len(stream)))) == sent


def received(stream: bytes, cuts: list[int]) -> list[bytes]:
    reader = FrameReader(table=ROOMS.message_table)
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        reader.feed(stream[start:end])
        while (frame := reader.next()) is not None:
            found.append(frame.data[frame.start : frame.end])
    assert reader.buffered_bytes == 0
    return found


def test_long_frame_is_joined_only_twice_from_any_number_of_pieces() -> None:
    body = random.Random(1).randbytes(1 << 20) * 100
    stream = WRITER.jobs(kinds.REPLJOB, [body])
    reader = FrameReader(table=ROOMS.message_table)
    joined: set[bytes] = set()
    for pieces, at in enumerate(range(0, len(stream), 1 << 16), 1):
        reader.feed(stream[at : at + (1 << 16)])
        frame = reader.next()
        assert frame is not None or reader._data == b"", "only the list of pieces grows"
        assert frame is not None or len(reader._parts) == pieces
        assert frame is not None or reader.buffered_bytes == at + (1 << 16)
        if frame is not None:
            joined.add(frame.data)

    assert joined == {stream}


def header(kind: int, length: int, count: int = 0, version: int = 1) -> bytes:
    return b"DbuZ" + u32(length) + u16(version) + b"\0\0" + u16(kind) + u16(count)


@pytest.mark.parametrize(
    ("kind", "length", "count"),
    [(kind, 500_000_000, 0) for kind in ROOMS.message_table.names if kind not in WITH_JOBS + ABOUT_QUEUES]
    + [(kind, 144, 1) for kind in GOSSIP]
    + [(kind, 248, 0) for kind in GOSSIP]
    + [(kind, length, 0) for kind in ABOUT_JOBS for length in (187, 189, 184, 144)]
    + [(kinds.FAIL, 183, 0), (kinds.FAIL, 185, 0)]
    + [(kind, 151, 0) for kind in WITH_JOBS + ABOUT_QUEUES]
    + [(77, MAX_UNKNOWN_BYTES + 1, 0)],
)
def test_length_impossible_for_its_type_is_refused_after_16_bytes(kind: int, length: int, count: int) -> None:
    reader = FrameReader(table=ROOMS.message_table)
    reader.feed(header(kind, length, count)[:15])
    assert reader.next() is None
    reader.feed(header(kind, length, count)[15:])

    with pytest.raises(BusError, match="which is impossible"):
        reader.next()


@pytest.mark.parametrize("kind", WITH_JOBS + ABOUT_QUEUES)
@pytest.mark.parametrize("chunk", [1, 7, 200])
def test_a_length_that_does_not_match_the_count_is_refused_before_the_contents_come(kind: int, chunk: int) -> None:
    lie = header(kind, 500_000_000) + bytes(128) + u32(1) + u32(3) + bytes(1000)
    reader = FrameReader(table=ROOMS.message_table)
    fed = 0
    while fed + chunk < 152:
        reader.feed(lie[fed : fed + chunk])
        fed += chunk
        assert reader.next() is None
    reader.feed(lie[fed : fed + chunk])

    with pytest.raises(BusError, match="which is impossible"):
        reader.next()


@pytest.mark.parametrize("length", [0, 8, 143, MAX_FRAME_BYTES + 1, 0xFFFFFFFF])
def test_an_impossible_length_is_refused_after_8_bytes(length: int) -> None:
    with pytest.raises(BusError, match=f"{length} bytes long"):
        cut(b"DbuZ" + u32(length))


@pytest.mark.parametrize(
    "garbage", [b"G", b"GET / HTTP/1.1\r\n", b"DbuX", b"dbuz", b"*1\r\n$4\r\nPING\r\n", b"Dbu\0DbuZ"]
)
def test_bytes_without_the_signature_are_refused_at_once(garbage: bytes) -> None:
    with pytest.raises(BusError, match="do not begin like a frame"):
        cut(garbage)


def test_frames_before_a_broken_one_are_read() -> None:
    reader = FrameReader(table=ROOMS.message_table)
    reader.feed(WRITER.fail(NODE) + b"garbage!")

    assert reader.next() is not None
    with pytest.raises(BusError):
        reader.next()


@pytest.mark.parametrize(
    ("kind", "version"), [(16, 1), (31, 1), (63, 1), (64, 1), (65535, 1), (5, 0), (5, 2), (4, 65535)]
)
def test_frames_of_unknown_types_and_versions_are_split_without_decoding(kind: int, version: int) -> None:
    strange = header(kind, 200, version=version) + bytes(184)
    first, second = cut(strange + WRITER.fail(NODE))

    assert (first.kind, first.version, first.payload_kind) == (kind, version, kinds.OF_UNKNOWN)
    assert second.kind == kinds.FAIL


@given(st.binary(max_size=400))
def test_any_bytes_are_frames_or_refused(data: bytes) -> None:
    for prefix in (b"", b"DbuZ", b"DbuZ\0\0\0\xbc\0\1\0\0\0"):
        with contextlib.suppress(BusError):
            assert sum(frame.length for frame in cut(prefix + data)) <= len(prefix + data)


def test_duplicate_message_number_or_name_is_refused() -> None:
    table = table_of(ROOMS.messages)
    with pytest.raises(ValueError, match="message OTHER: number 4 or the name is already used"):
        table.add(kinds.REPLJOB, "OTHER", kinds.OF_QUEUE)
    with pytest.raises(ValueError, match="message REPLJOB: number 127 or the name is already used"):
        table.add(127, "REPLJOB", kinds.OF_JOBS)
    with pytest.raises(ValueError, match="number 128 is not below 128"):
        table.add(128, "OTHER", kinds.OF_QUEUE)
