"""Restores a backup: writes the files with which one node of a new cluster starts.

They are those of a controlled restart, so that the node queues what was queued. Which node gets which jobs follows from
the IDs of the jobs and the number of nodes alone, so each node is restored without the others.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from disqued.backup.checking import settings_in, verified
from disqued.backup.errors import BackupError
from disqued.backup.merge import Merge, Merged, Outcome, entries
from disqued.config.endpoint import Endpoint as Address
from disqued.config.endpoint import is_address
from disqued.core.cluster.holders import Holders
from disqued.core.cluster.peer import Peer
from disqued.core.cluster.view import ClusterView
from disqued.core.jobs.job import ACTIVE, BCAST_QUEUED, BCAST_WILLQUEUE, QUEUED
from disqued.core.jobs.jobid import JobIds
from disqued.delivery.postpone import record_words
from disqued.membership.nodesconf import encode
from disqued.node import ROOMS
from disqued.persistence.marker import MARKER, UNFINISHED_RESTORE, text_of
from disqued.persistence.records import forget
from disqued.persistence.recordwriter import RecordWriter
from disqued.resp.writer import request

if TYPE_CHECKING:
    from disqued.backup.manifest import Manifest
    from disqued.backup.store import Store


@dataclass(frozen=True)
class NewCluster:
    """The cluster that is made of a backup."""

    nodes: tuple[Address, ...]
    """Where its nodes reach each other, in an order that is the same for each of them."""
    identity: str
    """What distinguishes it from other clusters that are made of the same backup."""

    def node_ids(self, manifest: Manifest) -> list[bytes]:
        """The IDs of its nodes."""
        texts = ["\0".join((manifest.name, self.identity, str(number))) for number in range(len(self.nodes))]
        return [hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest().encode() for text in texts]

    def holders(self, job_id: bytes, copies: int) -> list[int]:
        """The nodes that get a job: the owner, and those with the other copies."""
        count = len(self.nodes)
        owner = crc32(job_id) % count
        return [(owner + distance) % count for distance in range(min(max(copies, 1), count))]


@dataclass(frozen=True)
class Target:
    """The files of one new node."""

    directory: Path
    aof: str = "disque.aof"
    nodes: str = "nodes.conf"
    settings: str = "queues.conf"

    @property
    def occupied(self) -> bool:
        """Whether a node has used the directory, or it was restored completely. Another restore starts from scratch."""
        return not (self.directory / UNFINISHED_RESTORE).exists() and any(
            (self.directory / name).exists() for name in (self.aof, self.nodes)
        )


def restore(
    store: Store, manifest: Manifest, cluster: NewCluster, number: int, target: Target, *, queue_at_most_once: bool
) -> Counter[Outcome]:
    """Write the files of node `number`; returns what became of the jobs that it owns, so that each is counted once."""
    if target.occupied:
        raise BackupError(f"{target.directory} has the files of a node; restore to an empty directory")
    target.directory.mkdir(parents=True, exist_ok=True)
    unfinished = target.directory / UNFINISHED_RESTORE
    _write(unfinished, [])
    shared = settings_in(store, manifest)
    merge = Merge(int(time.time()), queue_at_most_once, partial(_concerns, cluster, number))
    for copy, member in enumerate(manifest.members):
        path = manifest.path(member)
        merge.take(copy, entries(verified(store, path, member), path), path)
    node_ids = cluster.node_ids(manifest)
    aof = target.directory / target.aof
    seal_id = JobIds(node_ids[number], os.urandom).make(0, at_least_once=False)
    settings = map(request, merge.settings)
    outcomes: Counter[Outcome] = Counter()
    jobs = _records(store, manifest, cluster, number, merge, outcomes)
    size_bytes = _write(aof, chain(settings, jobs, [forget(seal_id)]))
    _write(aof.with_name(target.aof + MARKER), [text_of(size_bytes, seal_id)])
    if shared:
        _write(target.directory / target.settings, [shared])
    _write(target.directory / target.nodes, [_nodes_file(cluster, number, node_ids).encode()])
    _sync(target.directory)
    unfinished.unlink()
    _sync(target.directory)
    return outcomes


def _concerns(cluster: NewCluster, number: int, job_id: bytes, copies: int) -> bool:
    """Whether a node gets a job, or a copy of it."""
    return number in cluster.holders(job_id, copies)


def _records(
    store: Store, manifest: Manifest, cluster: NewCluster, number: int, merge: Merge, outcomes: Counter[Outcome]
) -> Iterator[bytes]:
    """Yield the records of the jobs of a node, and count the outcomes."""
    writer = RecordWriter(Holders())
    node_ids = cluster.node_ids(manifest)
    for copy, member in enumerate(manifest.members):
        path = manifest.path(member)
        for entry in entries(verified(store, path, member), path):
            found = merge.job(copy, entry, path)
            if found is None:
                continue
            holders = cluster.holders(found.job.id, int(found.job.repl))
            outcomes[found.outcome] += holders[0] == number
            if found.outcome is Outcome.RESTORED:
                found.job.delivered = tuple(node_ids[holder] for holder in holders)
                yield b"".join(_record(writer, found, node_ids[number], owner=holders[0] == number))


def _record(writer: RecordWriter, found: Merged, node_id: bytes, *, owner: bool) -> list[bytes]:
    """The record of one job, in pieces. Holders other than the owner have it as if the owner had sent it to them."""
    job = found.job
    if not owner:
        job.flags = BCAST_QUEUED | BCAST_WILLQUEUE
    pieces: list[bytes] = []
    writer.keep(pieces, job, QUEUED if found.queued and owner else ACTIVE, node_id, with_sum=True)
    if found.until_ms:
        writer.note(pieces, record_words(job.id, found.until_ms, int(job.nacks), here=owner), ROOMS.record_table)
    return pieces


def _nodes_file(cluster: NewCluster, number: int, node_ids: list[bytes]) -> str:
    """The cluster configuration file of one node: it knows all others."""
    own = cluster.nodes[number]
    view = ClusterView(node_ids[number], own.port)
    for index, address in enumerate(cluster.nodes):
        if index != number:
            literal = is_address(address.host)
            peer = Peer(
                node_ids[index], address.host.encode() if literal else b"", address.port, 0, 0, address.bus_port
            )
            peer.host = b"" if literal else address.host.encode()
            view.peers[peer.id] = peer
    return encode(view)


def _write(path: Path, parts: Iterable[bytes]) -> int:
    """Write a file that only its user can read, and sync it; returns its size."""
    size = 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        for part in parts:
            size += file.write(part)
        file.flush()
        os.fsync(file.fileno())
    return size


def _sync(directory: Path) -> None:
    """Make sure that the names in a directory survive a power loss."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
