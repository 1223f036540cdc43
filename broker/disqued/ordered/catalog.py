"""The catalog: which ordered queues there are, and which replicas their groups have.

It is the machine of group 0. Every replica of that group applies the same entries; all other nodes copy the result
(`sharing`). Its version is the index of the entry that changed it last, so of two versions the greater one is newer.
The queues stand in the order of their groups, and groups are numbered from 1 in the order of the entries, so replicas
that applied the same entries have the same bytes (`encode`).

Entries, versions and messages are JSON: they are few and rare. Names and identities are bytes; in JSON each byte is the
character of its number (Latin-1).
"""

from __future__ import annotations

import json
from typing import Any, Final

from mypy_extensions import i64

from disqued.ordered.jobids import SALT_BYTES, GroupIds, group_word
from disqued.ordered.payload import CATALOG_BYTES, NO_CATALOG

CREATE: Final = "create"
DROP: Final = "drop"
REPLICAS: Final = "replicas"
SETTLED: Final = "settled"
RECOVER: Final = "recover"
MEMBERS: Final = "members"
CATALOG_GROUP: Final = 0
"""The number of the group that holds the catalog."""
GROUPS_AHEAD: Final = 1 << 16
"""How many numbers of groups are left out when the catalog is recovered."""
MAX_REPLICAS: Final = 5
DONE: Final = b"done"
EXISTS: Final = b"exists"
MISSING: Final = b"missing"


class MalformedCatalogError(ValueError):
    """The bytes are no catalog, or no change of one; the text says why."""


class QueueOptions:
    """What QNEW said about a queue; it never changes."""

    def __init__(self, *, single: bool = False, prefetch: int = 0) -> None:
        self.single = single
        """Only one consumer gets jobs at a time."""
        self.prefetch = prefetch
        """How many jobs a consumer may have at a time; 0 for any number."""

    def fields(self) -> dict[str, Any]:
        """The options as JSON shows them."""
        return {"single": self.single, "prefetch": self.prefetch}


class OrderedQueue:
    """One ordered queue in the catalog."""

    def __init__(
        self, name: bytes, group: i64, options: QueueOptions, replicas: tuple[bytes, ...], lead: bytes, salt: bytes
    ) -> None:
        self.name = name
        self.group: i64 = group
        self.word = group_word(group)
        """How the IDs of its jobs name the group."""
        self.options = options
        self.replicas = replicas
        """The identities of the voting replicas that the group must have. Its leader changes the members until it has
        these (`changing`)."""
        self.settled: bool = True
        """Whether the group has them."""
        self.moved: bool = False
        """Whether the replicas were changed since the queue was made."""
        self.lead = lead
        """The node that should lead the group."""
        self.salt = salt
        """Random bytes from which the IDs of its jobs are derived."""
        self.count = len(replicas)
        """How many replicas it must have; there are fewer after it was recovered."""
        self.epoch: i64 = 0
        """The version of the catalog at which it was recovered from one replica (`recovering`); 0 if it never was."""
        self.kept = b""
        """That replica; empty if it never was."""
        self._ids = GroupIds(self.word, salt)

    def job_id(self, index: i64, ttl_s: i64, at_least_once: bool) -> bytes:
        """The ID of the job that the entry at this index added."""
        return self._ids.make(index, ttl_s, at_least_once)

    def fields(self) -> dict[str, Any]:
        """The queue as JSON shows it."""
        return {
            "name": self.name.decode("latin-1"),
            "group": int(self.group),
            **self.options.fields(),
            "replicas": [replica.decode("latin-1") for replica in self.replicas],
            "settled": self.settled,
            "moved": self.moved,
            "lead": self.lead.decode("latin-1"),
            "salt": self.salt.decode("latin-1"),
            "count": self.count,
            "epoch": int(self.epoch),
            "kept": self.kept.decode("latin-1"),
        }

    def encode(self) -> bytes:
        """The queue as bytes."""
        return _pack(self.fields())


class Catalog:
    """The ordered queues that a node knows."""

    def __init__(self, identity: bytes = NO_CATALOG) -> None:
        self.identity = identity
        """Drawn when the catalog was founded: two catalogs of one cluster are never merged."""
        self.ancestors: tuple[bytes, ...] = ()
        """The identities that it had before it was recovered (`recovering`), the oldest first."""
        self.born: i64 = 0
        """The version at which it was recovered last; 0 if it never was."""
        self.seats = 0
        """How many members group 0 had when it was recovered, and must have again; 0 if it never was."""
        self.version: i64 = 0
        """The index of the last change; 0 while there was none."""
        self.members: tuple[bytes, ...] = ()
        """The identities of the voting replicas that group 0 must have; empty for those with which it was founded."""
        self.by_name: dict[bytes, OrderedQueue] = {}
        self.by_group: dict[int, OrderedQueue] = {}
        self.by_word: dict[bytes, OrderedQueue] = {}
        """By the word in IDs."""
        self.last_group: i64 = 0

    def apply(self, index: i64, data: bytes) -> bytes:
        """Apply an entry of group 0; returns DONE, EXISTS or MISSING. Bytes that are no change change nothing."""
        try:
            change = _object(data)
            action = change["do"]
            if action == MEMBERS:
                self.members = _replicas(change)
                self.version = index
                return DONE
            name = _bytes(change, "name")
            if action == CREATE:
                return self._create(index, name, change)
            if action == DROP:
                return self._drop(index, name)
            if action == REPLICAS:
                return self._set_replicas(index, name, change)
            if action == SETTLED:
                return self._settle(index, name, change)
            if action == RECOVER:
                return self._recover(index, name, change)
        except (KeyError, TypeError, ValueError):
            pass
        return MISSING

    def _create(self, index: i64, name: bytes, change: dict[str, Any]) -> bytes:
        before = self.by_name.get(name)
        if before is not None:
            return EXISTS
        queue = _queue(change | {"group": int(self.last_group) + 1})
        self.last_group = queue.group
        self._add(queue)
        self.version = index
        return DONE

    def _drop(self, index: i64, name: bytes) -> bytes:
        queue = self.by_name.pop(name, None)
        if queue is None:
            return MISSING
        del self.by_group[int(queue.group)]
        del self.by_word[queue.word]
        self.version = index
        return DONE

    def _set_replicas(self, index: i64, name: bytes, change: dict[str, Any]) -> bytes:
        queue = self.by_name.get(name)
        if queue is None or int(change["group"]) != queue.group:
            return MISSING
        replicas = _replicas(change)
        if sorted(replicas) != sorted(queue.replicas):
            queue.replicas = replicas
            queue.settled = False
            queue.moved = True
        queue.lead = _bytes(change, "lead")
        self.version = index
        return DONE

    def _settle(self, index: i64, name: bytes, change: dict[str, Any]) -> bytes:
        queue = self.by_name.get(name)
        if queue is None or int(change["group"]) != queue.group:
            return MISSING
        if sorted(_replicas(change)) == sorted(queue.replicas) and not queue.settled:
            queue.settled = True
            self.version = index
        return DONE

    def _recover(self, index: i64, name: bytes, change: dict[str, Any]) -> bytes:
        queue = self.by_name.get(name)
        if queue is None or int(change["group"]) != queue.group:
            return MISSING
        kept = _bytes(change, "kept")
        alone = {"replicas": [change["kept"]], "lead": change["lead"], "settled": True, "moved": True}
        # Another object: the replica of this node knows its epoch by the one that it began with.
        self._add(_queue(queue.fields() | alone | {"epoch": int(index), "kept": kept.decode("latin-1")}))
        self.version = index
        return DONE

    def _add(self, queue: OrderedQueue) -> None:
        self.by_name[queue.name] = queue
        self.by_group[int(queue.group)] = queue
        self.by_word[queue.word] = queue

    def take(self, other: Catalog) -> None:
        """Become equal to another catalog."""
        self.identity = other.identity
        self.ancestors = other.ancestors
        self.born = other.born
        self.seats = other.seats
        self.version = other.version
        self.last_group = other.last_group
        self.members = other.members
        self.by_name = other.by_name
        self.by_group = other.by_group
        self.by_word = other.by_word

    def recovered(self, identity: bytes, member: bytes, seats: int, index: i64) -> bytes:
        """The catalog as bytes when a replica of group 0 continues alone, under a new identity.

        Groups that other replicas of group 0 made afterwards have numbers that are not used again.
        """
        catalog = decode(self.encode())
        catalog.ancestors = (*self.ancestors, self.identity)
        catalog.identity = identity
        catalog.version = catalog.born = index
        catalog.seats = max(seats, self.seats)
        catalog.members = (member,)
        catalog.last_group += GROUPS_AHEAD
        return catalog.encode()

    # --- as bytes -----------------------------------------------------------------------------------------------------

    def encode(self) -> bytes:
        """The whole catalog; equal catalogs have equal bytes."""
        queues = [self.by_group[group].fields() for group in sorted(self.by_group)]
        return _pack(
            {
                "identity": self.identity.decode("latin-1"),
                "ancestors": [one.decode("latin-1") for one in self.ancestors],
                "born": int(self.born),
                "seats": self.seats,
                "version": int(self.version),
                "last_group": int(self.last_group),
                "members": [one.decode("latin-1") for one in self.members],
                "queues": queues,
            }
        )


def decode(data: bytes) -> Catalog:
    """The catalog in bytes. Raises MalformedCatalogError."""
    catalog = Catalog()
    try:
        whole = _object(data)
        catalog.identity = _bytes(whole, "identity")
        if len(catalog.identity) != CATALOG_BYTES:
            raise MalformedCatalogError(f"an identity of {len(catalog.identity)} bytes")
        catalog.ancestors = tuple([str(one).encode("latin-1") for one in whole["ancestors"]])
        catalog.born = int(whole["born"])
        catalog.seats = int(whole["seats"])
        catalog.version = int(whole["version"])
        catalog.last_group = int(whole["last_group"])
        catalog.members = tuple([str(one).encode("latin-1") for one in whole["members"]])
        for fields in whole["queues"]:
            catalog._add(_queue(fields))  # noqa: SLF001 - it is one of this module
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedCatalogError(f"no catalog: {error}") from None
    return catalog


def decode_queue(data: bytes) -> OrderedQueue:
    """The queue in bytes. Raises MalformedCatalogError."""
    try:
        return _queue(_object(data))
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedCatalogError(f"no queue: {error}") from None


def pack_create(name: bytes, options: QueueOptions, replicas: tuple[bytes, ...], lead: bytes, salt: bytes) -> bytes:
    """The entry that makes a queue. Its group is the next one when the entry is applied."""
    return _pack({"do": CREATE, **OrderedQueue(name, 0, options, replicas, lead, salt).fields()})


def pack_drop(name: bytes) -> bytes:
    """The entry that removes a queue."""
    return _pack({"do": DROP, "name": name.decode("latin-1")})


def pack_replicas(queue: OrderedQueue, replicas: tuple[bytes, ...], lead: bytes) -> bytes:
    """The entry that says which replicas a group must have, and which node should lead it."""
    fields = {"do": REPLICAS, "replicas": [one.decode("latin-1") for one in replicas], "lead": lead.decode("latin-1")}
    return _pack({**queue.fields(), **fields})


def pack_settled(queue: OrderedQueue) -> bytes:
    """The entry that says that a group has the replicas that it must have."""
    return _pack({**queue.fields(), "do": SETTLED})


def pack_recover(queue: OrderedQueue, kept: bytes, lead: bytes) -> bytes:
    """The entry that makes one replica the only one of a group."""
    fields = {"do": RECOVER, "kept": kept.decode("latin-1"), "lead": lead.decode("latin-1")}
    return _pack({**queue.fields(), **fields})


def pack_members(members: tuple[bytes, ...]) -> bytes:
    """The entry that says which replicas group 0 must have."""
    return _pack({"do": MEMBERS, "name": "", "replicas": [one.decode("latin-1") for one in members]})


def _pack(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except RecursionError:
        raise MalformedCatalogError("too many levels") from None
    if not isinstance(found, dict):
        raise MalformedCatalogError("no object")
    return found


def _bytes(fields: dict[str, Any], key: str) -> bytes:
    text = fields[key]
    if not isinstance(text, str):
        raise MalformedCatalogError(f"{key} is no text")
    return text.encode("latin-1")


def _replicas(fields: dict[str, Any]) -> tuple[bytes, ...]:
    replicas = fields["replicas"]
    if not isinstance(replicas, list) or not 0 < len(replicas) <= MAX_REPLICAS:
        raise MalformedCatalogError("no list of replicas")
    return tuple([str(one).encode("latin-1") for one in replicas])


def _queue(fields: dict[str, Any]) -> OrderedQueue:
    salt = _bytes(fields, "salt")
    if len(salt) != SALT_BYTES:
        raise MalformedCatalogError(f"a salt of {len(salt)} bytes")
    options = QueueOptions(single=bool(fields["single"]), prefetch=int(fields["prefetch"]))
    replicas = _replicas(fields)
    queue = OrderedQueue(_bytes(fields, "name"), int(fields["group"]), options, replicas, _bytes(fields, "lead"), salt)
    queue.settled = bool(fields["settled"])
    queue.moved = bool(fields["moved"])
    queue.count = int(fields["count"])
    queue.epoch = int(fields["epoch"])
    queue.kept = _bytes(fields, "kept")
    return queue
