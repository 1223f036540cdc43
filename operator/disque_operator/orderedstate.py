"""The ordered queues of a cluster, as its brokers show them (CLUSTER ORDERED STATUS).

Each broker knows the catalog, which may be some seconds old, and the leaders of the groups of which it has a replica.
`merged` makes one view of all replies:

| what | is taken from |
|---|---|
| the queues and their replicas | the broker whose catalog has the highest version |
| the leader of a group | the broker that says so of itself, otherwise followers of a broker that does not answer here |
| pause and number of jobs | the leader, otherwise any replica |

A leader that answers and does not say that it leads is none: the others have not noticed yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

UNKNOWN_JOBS: Final = -1
"""Jobs of a group of which a broker has no replica."""


@dataclass(frozen=True)
class OrderedGroup:
    """An ordered queue, or the catalog, as one broker or the whole cluster knows it."""

    queue: str
    """Its name; empty for the catalog."""
    leader: str = ""
    """The node ID of the leader; empty while there is none, or none is known."""
    replicas: tuple[str, ...] = ()
    """The node IDs of its replicas."""
    settled: bool = True
    """Whether it has exactly these replicas; otherwise some are being added or removed."""
    single: bool = False
    prefetch: int = 0
    pause: str = ""
    """`none`, `in`, `out` or `all`; empty if the broker has no replica."""
    jobs: int = UNKNOWN_JOBS
    """Jobs that are not finished; UNKNOWN_JOBS if the broker has no replica."""


@dataclass(frozen=True)
class OrderedStatus:
    """The reply of one broker."""

    catalog: str = ""
    """The identity of the catalog; empty if it knows none."""
    version: int = 0
    conflict: str = ""
    """The identity of another catalog that it met."""
    error: str = ""
    """Why it can write nothing; empty if it can."""
    members: OrderedGroup = OrderedGroup("")
    """The group of the catalog."""
    queues: Mapping[str, OrderedGroup] = field(default_factory=dict)
    """By name."""


class Ordered:
    """The ordered queues of a cluster. `known` has the replies of the brokers that answer, by node ID."""

    def __init__(self, known: Mapping[str, OrderedStatus]) -> None:
        self._known = known

    @property
    def catalogs(self) -> tuple[str, ...]:
        """Return the identities of all catalogs that brokers know, sorted. There should be one at most."""
        found = {one.catalog for one in self._known.values()} | {one.conflict for one in self._known.values()}
        return tuple(sorted(found - {""}))

    @property
    def errors(self) -> tuple[str, ...]:
        """Return the node IDs of brokers that can write nothing."""
        return tuple(node_id for node_id, one in self._known.items() if one.error)

    @cached_property
    def _newest(self) -> OrderedStatus:
        with_catalog = (one for one in self._known.values() if one.catalog)
        return max(with_catalog, key=lambda one: one.version, default=OrderedStatus())

    @cached_property
    def queues(self) -> Mapping[str, OrderedGroup]:
        """Return the queues by name."""
        return {name: self._merged(group) for name, group in self._newest.queues.items()}

    @cached_property
    def members(self) -> OrderedGroup:
        """Return the group of the catalog."""
        return self._merged(self._newest.members)

    @property
    def groups(self) -> Iterator[OrderedGroup]:
        """Return the group of the catalog, if there is one, and those of all queues."""
        if self._newest.catalog:
            yield self.members
            yield from self.queues.values()

    @property
    def leaderless(self) -> tuple[str, ...]:
        """Return the queues without a leader, sorted."""
        return tuple(sorted(name for name, group in self.queues.items() if not group.leader))

    def _merged(self, group: OrderedGroup) -> OrderedGroup:
        said = {
            node_id: found
            for node_id, one in self._known.items()
            if one.catalog and (found := one.queues.get(group.queue) if group.queue else one.members) is not None
        }
        claims = (found.leader for found in said.values())
        leader = next((one for one in claims if one and (one not in said or said[one].leader == one)), "")
        replica = said.get(leader) or next((one for one in said.values() if one.jobs != UNKNOWN_JOBS), group)
        return OrderedGroup(
            group.queue,
            leader,
            group.replicas,
            group.settled,
            group.single,
            group.prefetch,
            replica.pause,
            replica.jobs,
        )


def parsed(reply: Sequence[object]) -> OrderedStatus:
    """Return the status in a reply. Raises ValueError or LookupError if it is none."""
    fields = _fields(reply)
    queues = [_queue(row) for row in _rows(fields["queues"])]
    return OrderedStatus(
        catalog=_word(fields["catalog"]),
        version=_number(fields["version"]),
        conflict=_word(fields["conflict"]),
        error=_word(fields["error"]),
        members=_group(_fields(fields["members"])),
        queues={one.queue: one for one in queues},
    )


def _group(fields: Mapping[str, object]) -> OrderedGroup:
    replicas = tuple(_word(one) for one in _rows(fields["replicas"]))
    settled = _number(fields["settled"]) > 0
    return OrderedGroup(_word(fields["queue"]), _word(fields["leader"]), replicas, settled)


def _queue(reply: object) -> OrderedGroup:
    fields = _fields(reply)
    return replace(
        _group(fields),
        single=_word(fields["single"]) == "yes",
        prefetch=_number(fields["prefetch"]),
        pause=_word(fields["pause"]),
        jobs=_number(fields["jobs"]),
    )


def _fields(reply: object) -> dict[str, object]:
    rows = _rows(reply)
    return {_word(name): value for name, value in zip(rows[::2], rows[1::2], strict=True)}


def _rows(reply: object) -> Sequence[object]:
    if not isinstance(reply, list):
        raise ValueError(f"unexpected reply {reply!r:.80} instead of a list")  # noqa: TRY004 - a wrong reply
    return reply


def _word(value: object) -> str:
    if not isinstance(value, bytes):
        raise ValueError(f"unexpected reply {value!r:.80} instead of a string")  # noqa: TRY004 - a wrong reply
    return value.decode(errors="replace")


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError(f"unexpected reply {value!r:.80} instead of a number")  # noqa: TRY004 - a wrong reply
    return value
