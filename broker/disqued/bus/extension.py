"""What disqued nodes announce in header bytes that the original sends as zeros and ignores.

34 bytes from offset 102 of every frame: marker `dq` (2), features (2), bus port (2), digest of the cluster's name (8),
incarnation (8), clock (8), TLS port for clients (2), more features (2). The clock is the sender's unix time in
milliseconds and set in PING, PONG and MEET only.
"""

from __future__ import annotations

import hashlib
from typing import Final

from mypy_extensions import i64

from disqued.bus.bigendian import u16

EXTENSION_BYTES: Final = 34
MARKER: Final = b"dq"
NOBODY: Final = bytes(8)
"""The digest without a name, and the incarnation of nodes that send none."""

CLOCK_AT: Final = 22
"""The offset of the clock in the extension."""
TLS_PORT_AT: Final = 30
"""The offset of the TLS port in the extension."""
MORE_FEATURES_AT: Final = 32
"""The offset of the features from 65536 on, which release 0.1 sends as zeros."""


def cluster_digest(name: bytes) -> bytes:
    """The eight-byte digest of a cluster's name; NOBODY without a name."""
    return hashlib.sha256(name).digest()[:8] if name else NOBODY


def extension(features: i64, bus_port: i64, cluster: bytes, incarnation: bytes, tls_port: i64 = 0) -> bytes:
    """The bytes that a node sends, with a zero clock. `cluster` and `incarnation` are eight bytes each."""
    low, high = u16(features & 0xFFFF), u16(features >> 16)
    return MARKER + low + u16(bus_port) + cluster + incarnation + bytes(8) + u16(tls_port) + high
