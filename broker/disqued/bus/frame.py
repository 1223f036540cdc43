"""Reading frames: splits a stream of bytes by the lengths in the headers; a frame decodes its fields on demand.

Layout and lengths follow the Disque cluster bus protocol, version 1: a header of 144 bytes, big-endian integers. A
frame refers to the received bytes and copies only what is used. The length is checked as early as possible, against the
type and the counts at the start of the frame, so that a link with an invalid length is closed before much is stored.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.bus.bigendian import read_u16, read_u32
from disqued.bus.errors import BusError
from disqued.bus.extension import CLOCK_AT, MARKER, MORE_FEATURES_AT, NOBODY, TLS_PORT_AT
from disqued.bus.messagetable import UNKNOWN_MESSAGES, MessageTable

HEADER_BYTES: Final = 144
SIGNATURE: Final = b"DbuZ"
VERSION: Final = 1
GOSSIP_ENTRY_BYTES: Final = 104
NODE_ID_BYTES: Final = 40
JOB_ID_BYTES: Final = 40
IP_BYTES: Final = 46
FAIL_BYTES: Final = HEADER_BYTES + NODE_ID_BYTES
JOB_ID_FRAME_BYTES: Final = HEADER_BYTES + 44
COUNTED_BYTES: Final = HEADER_BYTES + 8
"""Header and two integers, the second of which is the length of what follows."""
LISTED_BYTES: Final = 44
"""An entry of a list of job IDs: the ID and a number."""
MAX_LISTED: Final = 2000
"""The most entries of a list, so that one frame does not hold the loop for more than a few milliseconds."""
MAX_LIST_BYTES: Final = COUNTED_BYTES + MAX_LISTED * LISTED_BYTES
MAX_FRAME_BYTES: Final = (1 << 30) + (1 << 20)
"""One job with the longest queue name and the longest body that clients can send (512 MiB each), its fixed part and
its list of nodes. Longer frames are rejected; frames with several jobs are far shorter."""
MAX_UNKNOWN_BYTES: Final = 1 << 20
"""The longest frame of an unknown type or version, or on a link that does not belong to a member. Such frames are
ignored, so little is stored for them."""
MAX_NAME_BYTES: Final = 1 << 16
"""The longest name of a queue in messages of unknown content: names of clients may have more bytes than these take."""
MAX_UNPROVEN_BYTES: Final = 1 << 10
"""The longest frame from a node that must prove the secret of the cluster first."""
MAX_BATCH_BYTES: Final = 2 << 20
"""The longest YOURJOBS that is read even if memory is short. Jobs that move together take up to 1 MiB; only a single
long job takes more."""

_DBUZ: Final = 0x4462755A
"""The signature as a number."""
LENGTH_KNOWN_BYTES: Final = 8
"""After this many bytes the length of the frame is known."""
_KIND_KNOWN_BYTES: Final = 16
"""After this many bytes the type and the number of gossip entries are known."""
_SENDER_AT: Final = 16
_IP_AT: Final = 56
_EXTENSION_AT: Final = 102
_PORT_AT: Final = 136
_FLAGS_AT: Final = 138
MESSAGE_FLAGS_AT: Final = 141


_NO_FRAME: Final = "the bytes received do not begin like a frame of the cluster bus"


@mypyc_attr(acyclic=True, free_list_len=1)
class Frame:
    """One frame: `length` bytes of `data` from `start` on, of one of the types in `table`."""

    def __init__(self, data: bytes, start: i64, length: i64, table: MessageTable) -> None:
        self.data = data
        self.start: i64 = start
        self.length: i64 = length
        self.version: i64 = read_u16(data, start + 8)
        self.kind: i64 = read_u16(data, start + 12)
        self.payload_kind: i64 = kinds.OF_UNKNOWN
        """The kind of the payload (`kinds`). For another version only the length is known."""
        if self.version == VERSION and self.kind < kinds.KINDS:
            self.payload_kind = table.payloads[self.kind]

    @property
    def count(self) -> i64:
        """The number of gossip entries."""
        return read_u16(self.data, self.start + 14)

    @property
    def sender(self) -> bytes:
        """The ID of the node that sent it."""
        at = self.start + _SENDER_AT
        return self.data[at : at + NODE_ID_BYTES]

    @property
    def announced_ip(self) -> bytes:
        """The announced address of the sender; empty if it announces none."""
        at = self.start + _IP_AT
        return self.data[at : at + IP_BYTES].rstrip(b"\0")

    @property
    def port(self) -> i64:
        """The sender's port for clients."""
        return read_u16(self.data, self.start + _PORT_AT)

    @property
    def node_flags(self) -> i64:
        """The sender's flags about itself."""
        return read_u16(self.data, self.start + _FLAGS_AT)

    @property
    def message_flags(self) -> i64:
        """NOREPLY, INCR_NACKS, INCR_DELIVERIES."""
        flags: i64 = self.data[self.start + MESSAGE_FLAGS_AT]
        return flags

    # --- the extension: what our own nodes announce -------------------------------------------------------------------

    @property
    def extended(self) -> bool:
        """Whether the sender is a disqued node."""
        at = self.start + _EXTENSION_AT
        return self.data[at : at + 2] == MARKER

    @property
    def features(self) -> i64:
        """The features of the sender beyond the protocol of the original."""
        if not self.extended:
            return 0
        at = self.start + _EXTENSION_AT
        return read_u16(self.data, at + 2) | read_u16(self.data, at + MORE_FEATURES_AT) << 16

    @property
    def bus_port(self) -> i64:
        """The sender's bus port; 0 if not sent, which means its client port + 10000."""
        return read_u16(self.data, self.start + _EXTENSION_AT + 4) if self.extended else 0

    @property
    def cluster(self) -> bytes:
        """The digest of the name of the sender's cluster."""
        at = self.start + _EXTENSION_AT + 6
        return self.data[at : at + 8] if self.extended else NOBODY

    @property
    def incarnation(self) -> bytes:
        """Eight random bytes, new with each start of the sender."""
        at = self.start + _EXTENSION_AT + 14
        return self.data[at : at + 8] if self.extended else NOBODY

    @property
    def clock_ms(self) -> int:
        """The sender's unix time; 0 if not sent."""
        at = self.start + _EXTENSION_AT + CLOCK_AT
        return int.from_bytes(self.data[at : at + 8], "big") if self.extended else 0

    @property
    def tls_port(self) -> i64:
        """The sender's port for clients with TLS; 0 if it has none."""
        return read_u16(self.data, self.start + _EXTENSION_AT + TLS_PORT_AT) if self.extended else 0

    # --- payloads -----------------------------------------------------------------------------------------------------

    @property
    def about(self) -> bytes:
        """FAIL: the ID of the node that failed."""
        at = self.start + HEADER_BYTES
        return self.data[at : at + NODE_ID_BYTES]

    @property
    def job_id(self) -> bytes:
        """Job-ID messages: the job."""
        at = self.start + HEADER_BYTES
        return self.data[at : at + JOB_ID_BYTES]

    @property
    def aux(self) -> i64:
        """The number that comes with a job ID (delay, size, known) or with a queue name (how many, pause flags)."""
        at = self.start + HEADER_BYTES
        return read_u32(self.data, at + NODE_ID_BYTES if self.payload_kind == kinds.OF_JOB_ID else at)

    @property
    def queue(self) -> bytes:
        """NEEDJOBS, PAUSE and ENOUGH: the name of the queue."""
        return self.data[self.start + COUNTED_BYTES : self.start + self.length]

    @property
    def jobs_count(self) -> i64:
        """REPLJOB, YOURJOBS and lists of job IDs: how many jobs follow, says the sender."""
        return read_u32(self.data, self.start + HEADER_BYTES)

    @property
    def jobs_at(self) -> i64:
        """REPLJOB, YOURJOBS and lists of job IDs: where in `data` the first job begins."""
        return self.start + COUNTED_BYTES

    def listed(self, at: i64) -> bytes:
        """The job ID of the entry of a list that begins at `at`."""
        return self.data[at : at + JOB_ID_BYTES]

    def listed_aux(self, at: i64) -> i64:
        """The number of the entry of a list that begins at `at`."""
        return read_u32(self.data, at + JOB_ID_BYTES)

    @property
    def end(self) -> i64:
        """Where in `data` the frame ends."""
        return self.start + self.length

    @property
    def payload(self) -> bytes:
        """Everything after the header."""
        return self.data[self.start + HEADER_BYTES : self.start + self.length]

    @property
    def may_be_skipped(self) -> bool:
        """Whether the frame can be lost if there is no memory for it."""
        if self.kind == kinds.YOURJOBS:
            return self.length > MAX_BATCH_BYTES
        return self.payload_kind == kinds.OF_JOBS or self.payload_kind == kinds.OF_QUEUE

    def may_be_sound(self, have: i64) -> bool:
        """Whether the length matches type and counts, as far as the first `have` bytes show; at least 16 are needed."""
        payload = self.payload_kind
        length = self.length
        if payload == kinds.OF_JOB_ID:
            return length == JOB_ID_FRAME_BYTES
        if payload == kinds.OF_GOSSIP:
            return length == HEADER_BYTES + GOSSIP_ENTRY_BYTES * self.count
        if payload == kinds.OF_NODE_ID:
            return length == FAIL_BYTES
        if payload == kinds.OF_UNKNOWN:
            return length <= MAX_UNKNOWN_BYTES
        if length < COUNTED_BYTES or (payload == kinds.OF_JOB_IDS and length > MAX_LIST_BYTES):
            return False
        if have < COUNTED_BYTES:
            return True
        size: i64 = length - COUNTED_BYTES
        if payload == kinds.OF_JOB_IDS and size != self.jobs_count * LISTED_BYTES:
            return False
        return size == read_u32(self.data, self.start + HEADER_BYTES + 4)


class FrameReader:
    """Splits the bytes of one link into frames.

    After `feed`, call `next` until it returns None. A frame that arrives in many pieces is joined only twice: when its
    counts have arrived, and when it is complete.

    `limit_bytes` is the maximum length of frames. It is MAX_UNKNOWN_BYTES while the sender is unknown, so that not
    every client that reaches the port can make the node store a gigabyte.

    A frame with jobs or with a queue name that is longer than `room_bytes` is skipped while it arrives: there is no
    memory for it. Copies are refused without a reply anyway. Jobs that move are read up to MAX_BATCH_BYTES, because
    their sender keeps no copy of those that are delivered at most once.
    """

    def __init__(self, limit_bytes: i64 = MAX_FRAME_BYTES, table: MessageTable = UNKNOWN_MESSAGES) -> None:
        self.table = table
        """The types that the receiving node knows."""
        self.limit_bytes: i64 = limit_bytes
        self.room_bytes: i64 = MAX_FRAME_BYTES
        self.passed_over: i64 = 0
        """How many frames were skipped."""
        self._drop_bytes: i64 = 0
        """How many bytes of a skipped frame have not arrived yet."""
        self._data = b""
        self._at: i64 = 0
        self._parts: list[bytes] = []
        """Pieces of an incomplete frame, joined when `_wanted_bytes` have arrived."""
        self._parts_bytes: i64 = 0
        self._wanted_bytes: i64 = 0

    @property
    def buffered_bytes(self) -> int:
        """How many bytes of an incomplete frame are stored."""
        return len(self._data) - self._at + self._parts_bytes

    def feed(self, data: bytes) -> None:
        """Take bytes from the link."""
        if self._drop_bytes > 0:
            dropped: i64 = min(self._drop_bytes, len(data))
            self._drop_bytes -= dropped
            data = data[dropped:]
        if self._parts_bytes > 0:
            self._parts.append(data)
            self._parts_bytes += len(data)
            if self._parts_bytes < self._wanted_bytes:
                return
            self._data = b"".join(self._parts)
            self._parts = []
            self._parts_bytes = 0
        elif self._at < len(self._data):
            self._data = self._data[self._at :] + data
        else:
            self._data = data
        self._at = 0

    def next(self) -> Frame | None:
        """The next complete frame; None if more bytes are needed.

        Raises:
            BusError: the bytes are not a frame.
        """
        data = self._data
        at = self._at
        have: i64 = len(data) - at
        if have == 0:
            self._data = b""  # do not keep a large frame until the next one arrives
            self._at = 0
            return None
        if have < LENGTH_KNOWN_BYTES:
            if not SIGNATURE.startswith(data[at : at + min(have, 4)]):
                raise BusError(_NO_FRAME)
            return None
        if read_u32(data, at) != _DBUZ:
            raise BusError(_NO_FRAME)
        length = read_u32(data, at + 4)
        if length < HEADER_BYTES or length > self.limit_bytes:
            possible = f"{HEADER_BYTES} to {self.limit_bytes} are possible"
            raise BusError(f"a frame says it is {length} bytes long, {possible}")
        if have < _KIND_KNOWN_BYTES:
            return None
        frame = Frame(data, at, length, self.table)
        if not frame.may_be_sound(have):
            name = self.table.name(frame.kind) if frame.version == VERSION else f"version {frame.version}"
            raise BusError(f"a {name} frame says it is {length} bytes long, which is impossible")
        if have < length:
            if length > self.room_bytes and frame.may_be_skipped:
                self._data = b""
                self._at = 0
                self._drop_bytes = length - have
                self.passed_over += 1
                return None
            self._await(data[at:], COUNTED_BYTES if have < COUNTED_BYTES < length else length)
            return None
        self._at = at + length
        return frame

    def _await(self, begun: bytes, wanted_bytes: i64) -> None:
        """Collect the pieces of a frame until `wanted_bytes` have arrived."""
        self._parts = [begun]
        self._parts_bytes = len(begun)
        self._wanted_bytes = wanted_bytes
        self._data = b""
        self._at = 0
