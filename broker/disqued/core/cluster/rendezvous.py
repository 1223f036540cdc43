"""Rendezvous hashing: every node ranks the nodes of the cluster in the same way for a key, without asking anybody.

Each node has a score for a key, and the nodes with the highest scores are chosen (Thaler and Ravishankar, "Using
name-based mappings to increase hit rates", 1998). When a node joins or leaves, only what it has or had moves.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

_SCORE_BYTES: Final = 8


def score(key: bytes, node_id: bytes) -> bytes:
    """The score of a node for a key: 8 bytes, which compare as they are."""
    return blake2b(key + node_id, digest_size=_SCORE_BYTES).digest()


def ranked(key: bytes, node_ids: list[bytes]) -> list[bytes]:
    """The nodes, the one with the highest score first."""
    scores = [(score(key, node_id), node_id) for node_id in node_ids]
    scores.sort(reverse=True)
    return [node_id for _, node_id in scores]
