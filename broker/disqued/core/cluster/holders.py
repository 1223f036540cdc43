"""Lists of nodes that may hold a job, or that confirmed something about it; jobs share equal lists.

A cluster of a few nodes has only a few such lists. Because jobs share them, a replicated job costs no more memory than
another job, and a list is sent without serialising it again. A list is a tuple of node IDs of 40 bytes, in the order in
which the nodes were added.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from mypy_extensions import i64

from disqued.bus.frame import NODE_ID_BYTES
from disqued.core.cluster.view import ClusterView
from disqued.core.jobs.job import INCOMPLETE, NOBODY, Job, NodeIds

MAX_KEPT: Final = 4096
MAX_KEPT_IDS: Final = 1 << 17
"""Bounds that no real cluster reaches, so that forged lists cannot fill the memory."""


def lists(node_ids: NodeIds, node_id: bytes) -> bool:
    """Whether a node is in a list. Cheaper than `in`, as the IDs in lists are mostly the same objects."""
    for listed in node_ids:  # noqa: SIM110 - a generator costs more than the loop
        if listed is node_id or listed == node_id:
            return True
    return False


class Holders:
    """The lists that one node keeps."""

    def __init__(self) -> None:
        self._kept: dict[NodeIds, NodeIds] = {}
        self._packed: dict[NodeIds, bytes] = {}
        self._hashes: dict[NodeIds, int] = {}
        self._unpacked: dict[bytes, NodeIds] = {}
        self._kept_ids: i64 = 0
        """IDs in `_kept`."""
        self._unpacked_ids: i64 = 0
        """IDs in the keys of `_unpacked`."""
        self._last_data = b""
        self._last_unpacked: NodeIds = NOBODY
        self._last_checked: NodeIds = NOBODY
        self._last_members: NodeIds = NOBODY
        self._last_generation: i64 = -1
        self._everybody: NodeIds = NOBODY
        self._everybody_generation: i64 = -1
        self._last_list: NodeIds = NOBODY
        self._last_id = b""
        self._last_plus: NodeIds = NOBODY
        """The last results: consecutive jobs mostly have the same holders."""

    def keep(self, node_ids: NodeIds) -> NodeIds:
        """The shared copy of a list."""
        kept = self._kept.get(node_ids)
        if kept is None:
            if len(self._kept) >= MAX_KEPT or self._kept_ids >= MAX_KEPT_IDS:
                self._kept.clear()
                self._packed.clear()
                self._hashes.clear()
                self._kept_ids = 0
            self._kept[node_ids] = node_ids
            self._kept_ids += len(node_ids)
            kept = node_ids
        return kept

    def plus(self, node_ids: NodeIds, node_id: bytes) -> NodeIds:
        """The list with one more node; the same list if the node is in it."""
        if node_ids is not self._last_list or node_id is not self._last_id:
            self._last_list = node_ids
            self._last_id = node_id
            self._last_plus = node_ids if node_id in node_ids else self.keep((*node_ids, node_id))
        return self._last_plus

    def union(self, node_ids: NodeIds, more: NodeIds) -> NodeIds:
        """The list with the nodes of another list added."""
        if node_ids == more:
            return node_ids
        return self.keep(tuple(dict.fromkeys(node_ids + more)))

    def without(self, node_ids: NodeIds, removed: NodeIds) -> NodeIds:
        """The list without the nodes of another list; the same object if it has none of them."""
        for node_id in removed:
            if lists(node_ids, node_id):
                return self.keep(tuple([listed for listed in node_ids if listed not in removed]))
        return node_ids

    def complete(self, job: Job, view: ClusterView) -> None:
        """Add all members to the holders of a job whose list may be incomplete. Does nothing to any other job.

        Call it before the list decides which nodes learn something about the job. Members may have joined since the
        last call.
        """
        if not job.flags & INCOMPLETE or view.size == 1:
            return
        if view.generation != self._everybody_generation:
            members = [peer.id for peer in view.peers.values() if not peer.in_handshake]
            self._everybody = self.keep((view.node_id, *members))
            self._everybody_generation = view.generation
        delivered = job.delivered
        job.delivered = self._everybody if delivered is None else self.union(delivered, self._everybody)

    def pack(self, node_ids: NodeIds) -> bytes:
        """The list as in a serialised job: the number of IDs, little endian, and the IDs."""
        packed = self._packed.get(node_ids)
        if packed is None:
            packed = len(node_ids).to_bytes(4, "little") + b"".join(node_ids)
            self._packed[self.keep(node_ids)] = packed
        return packed

    def hash_of(self, node_ids: NodeIds) -> i64:
        """A number of 32 bits that is equal for equal lists, in whatever order, and never 0."""
        found = self._hashes.get(node_ids)
        if found is None:
            found = 0
            for node_id in node_ids:
                found ^= crc32(node_id)
            found = found or 1
            self._hashes[self.keep(node_ids)] = found
        return i64(found)

    def unpack(self, data: bytes) -> NodeIds:
        """The list of concatenated IDs; duplicates are removed."""
        if data == self._last_data:
            return self._last_unpacked
        node_ids = self._unpacked.get(data)
        if node_ids is None:
            if len(self._unpacked) >= MAX_KEPT or self._unpacked_ids >= MAX_KEPT_IDS:
                self._unpacked.clear()
                self._unpacked_ids = 0
            found: list[bytes] = []
            at: i64 = 0
            while at < len(data):
                found.append(data[at : at + NODE_ID_BYTES])
                at += NODE_ID_BYTES
            node_ids = self.keep(tuple(dict.fromkeys(found)))
            self._unpacked[data] = node_ids
            self._unpacked_ids += len(found)
        self._last_data = data
        self._last_unpacked = node_ids
        return node_ids

    def members(self, node_ids: NodeIds, view: ClusterView) -> NodeIds:
        """The nodes of a list that are members of the cluster; the same object if all are."""
        if node_ids is self._last_checked and view.generation == self._last_generation:
            return self._last_members
        members = node_ids
        for node_id in node_ids:
            if not view.knows(node_id):
                members = self.keep(tuple([member for member in node_ids if view.knows(member)]))
                break
        self._last_checked = node_ids
        self._last_members = members
        self._last_generation = view.generation
        return members
