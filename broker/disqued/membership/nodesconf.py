"""The cluster configuration file (nodes.conf): who this node is, as text.

One line per node of six words, `id ip:port flags ping-sent pong-received link`, the same as CLUSTER NODES shows. A node
without peers writes one line, its own, and reads its ID and whether it is leaving; its address follows from the
configuration. Unknown flags and lines of other nodes are passed over.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from disqued.core.view import ClusterView

MYSELF: Final = "myself"
LEAVING: Final = "leaving"

_WORDS: Final = 6
_NODE_ID: Final = re.compile(r"[0-9a-f]{40}")
_VARIABLES: Final = "vars"
"""First word of lines that hold no node."""


def encode(view: ClusterView) -> str:
    """The text that stands for this node."""
    flags = f"{MYSELF},{LEAVING}" if view.leaving else MYSELF
    return f"{view.node_id.decode()} {view.ip.decode()}:{view.port} {flags} 0 0 connected\n"


def decode(text: str) -> tuple[bytes, bool]:
    """The ID of this node and whether it is leaving; ValueError says which line is wrong and why."""
    myself: tuple[bytes, bool] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0] == _VARIABLES:
            continue
        try:
            node_id, flags = _decode_node(words)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if MYSELF in flags:
            myself = (node_id.encode(), LEAVING in flags)
    if myself is None:
        raise ValueError("no line has the flag 'myself': the file does not say which node this is")
    return myself


def _decode_node(words: list[str]) -> tuple[str, set[str]]:
    """The ID and the flags of one node's line."""
    if len(words) != _WORDS:
        raise ValueError(f"expected {_WORDS} words for a node, found {len(words)}")
    if not _NODE_ID.fullmatch(words[0]):
        raise ValueError(f"'{words[0]}' is no node ID: 40 hexadecimal digits in lower case are expected")
    if ":" not in words[1]:
        raise ValueError(f"'{words[1]}' is no address: ip:port is expected")
    return words[0], set(words[2].lower().split(","))
