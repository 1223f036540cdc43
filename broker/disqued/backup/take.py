"""Makes a backup: begins a copy on all members, ends all of them, and writes them to the store."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from disqued import __version__
from disqued.backup.checking import count_jobs
from disqued.backup.errors import BackupError
from disqued.backup.manifest import MANIFEST, SETTINGS, Manifest, MemberCopy, SettingsCopy
from disqued.cli.connection import CommandRefusedError, Connection, ConnectionFailedError, ConnectionLostError
from disqued.resp.replies import Reply, ReplyFormatError
from disqued.settings.entries import Entries, Entry
from disqued.settings.file import decode, encode

if TYPE_CHECKING:
    from disqued.backup.store import Store
    from disqued.cli.endpoint import Endpoint

MOST_MEMBERS: Final = 64
"""All copies are read at the same time, because a node removes one that nobody reads."""


class Member:
    """A member whose copy is made."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._address = str(connection.endpoint)
        self._copy_id = b""
        self._size_bytes = 0
        self._sha256 = hashlib.sha256()
        self._node_id = ""

    def begin(self) -> None:
        """Begin the copy; returns when it has all jobs and follows the changes."""
        match self._ask(b"BEGIN"):
            case [bytes(copy_id), bytes(node_id)]:
                self._copy_id, self._node_id = copy_id, node_id.decode()
            case other:
                raise self._unexpected(other)

    def end(self) -> None:
        """End the copy."""
        match self._ask(b"END", self._copy_id):
            case [int(size), int()]:
                self._size_bytes = size
            case other:
                raise self._unexpected(other)

    def parts(self) -> Iterator[bytes]:
        """Read the copy."""
        at = 0
        while at < self._size_bytes:
            match self._ask(b"READ", self._copy_id, b"%d" % at):
                case bytes(part) if part:
                    at += len(part)
                    self._sha256.update(part)
                    yield part
                case other:
                    raise self._unexpected(other)

    def settings(self) -> list[Entry]:
        """The settings of queues and the marks of purges that the member knows."""
        match self._ask(b"SETTINGS"):
            case bytes(data) if data:
                try:
                    return decode(data)
                except ValueError as error:
                    raise BackupError(f"node {self._address} sent malformed settings of queues: {error}") from error
            case other:
                raise self._unexpected(other)

    def close(self) -> None:
        """Have the node remove its copy, if it made one."""
        if self._copy_id:
            with contextlib.suppress(BackupError):  # it removes the copy by itself after a while
                self._ask(b"CLOSE", self._copy_id)

    def described(self) -> MemberCopy:
        """The entry of the manifest, after the copy was read."""
        name = f"{self._node_id}.aof"
        return MemberCopy(self._node_id, self._address, name, self._size_bytes, self._sha256.hexdigest())

    def _ask(self, *words: bytes) -> Reply:
        try:
            return self._connection.ask([b"BACKUP", *words])
        except (ConnectionLostError, CommandRefusedError, ReplyFormatError) as error:
            raise BackupError(f"node {self._address}: {error}") from error

    def _unexpected(self, reply: Reply) -> BackupError:
        return BackupError(f"node {self._address} sent an unexpected reply to BACKUP: {reply!r:.80}")


def take(endpoint: Endpoint, store: Store, name: str, cluster: str, schedule: str) -> Manifest:
    """Back up the cluster that a node belongs to, and read the backup back. All members must answer."""
    if any(path.startswith(f"{name}/") for path in store.objects()):
        raise BackupError(f"{store.url} has a backup {name} already, complete or not; choose another name")
    started_at = time.time()
    with ExitStack() as opened:
        members = _connect(endpoint, opened)
        opened.callback(_all, members, Member.close)
        _all(members, Member.begin)
        found = [entry for member in members for entry in member.settings()]
        _all(members, Member.end)  # no copy ends before all have begun: see disqued.persistence.backup
        _all(members, lambda member: store.write(f"{name}/{member.described().object}", member.parts()))
        settings = _write_settings(store, name, found)
    copies = tuple(member.described() for member in members)
    written = Manifest(name, cluster, schedule, started_at, 0.0, __version__, 0, copies, settings)
    jobs = count_jobs(store, written)
    store.settle([*map(written.path, copies), written.path(settings)])
    complete = replace(written, jobs=jobs, completed_at=time.time())
    store.write_small(f"{name}/{MANIFEST}", complete.encode())
    store.settle([f"{name}/{MANIFEST}"])
    return complete


def _write_settings(store: Store, name: str, found: Iterable[Entry]) -> SettingsCopy:
    """Write what all members together know of settings and purges: members differ for seconds after a change."""
    merged = Entries()
    for entry in found:
        merged.put(entry)
    data = encode(merged.all())
    store.write_small(f"{name}/{SETTINGS}", data)
    return SettingsCopy(SETTINGS, len(data), hashlib.sha256(data).hexdigest())


def _connect(endpoint: Endpoint, opened: ExitStack) -> list[Member]:
    """Connect to all members of the cluster."""
    try:
        first = opened.enter_context(Connection(endpoint))
        match first.ask([b"HELLO"]):
            case [int(), bytes(node_id), *nodes]:
                others = [node for node in nodes if isinstance(node, list) and node[0] != node_id]
            case other:
                raise BackupError(f"{endpoint} sent an unexpected reply to HELLO: {other!r:.80}")
        connections = [first]
        for node in others:
            match node:
                case [bytes(), bytes(host), bytes(port), *_]:
                    at = endpoint.at(host.decode(), int(port))
                    connections.append(opened.enter_context(Connection(at)))
    except (ConnectionFailedError, ConnectionLostError, CommandRefusedError) as error:
        raise BackupError(f"a backup needs all members of the cluster: {error}") from error
    if len(connections) > MOST_MEMBERS:
        raise BackupError(f"the cluster has {len(connections)} members; at most {MOST_MEMBERS} can be backed up")
    return [Member(connection) for connection in connections]


def _all(members: Sequence[Member], step: Callable[[Member], object]) -> None:
    """Do a step for all members at the same time; raise the first error after all are done."""
    with ThreadPoolExecutor(len(members)) as threads:
        results = [threads.submit(step, member) for member in members]
    for result in results:
        result.result()
