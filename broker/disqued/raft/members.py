"""The members of a group: replicas that vote, and learners, which receive the log but do not vote or count.

Members change by one replica at a time, so the quorums before and after a change always share a replica. `differs_by`
tells how many voters a change adds and removes.

A replica that has not received any members yet has none: no voters and no learners.

Encoding: the number of voters (1 byte), the number of learners (1), then each replica, voters first: length (1),
bytes. The replicas are in order, and none is there twice, so equal members have equal bytes.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

MOST_REPLICAS: Final = 32
"""The most voters and the most learners that a group may have."""
MOST_IDENTITY_BYTES: Final = 255


class MalformedMembersError(ValueError):
    """The bytes are not the encoding of members; the text says why."""


class Members:
    """Voters and learners, each in order. Members never change: a change makes new ones."""

    def __init__(self, voters: tuple[bytes, ...], learners: tuple[bytes, ...] = ()) -> None:
        self.voters: tuple[bytes, ...] = tuple(sorted(voters))
        self.learners: tuple[bytes, ...] = tuple(sorted(learners))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Members) and self.voters == other.voters and self.learners == other.learners

    def __repr__(self) -> str:
        return f"Members({self.voters!r}, {self.learners!r})"

    @property
    def quorum(self) -> i64:
        """How many voters are a majority."""
        return len(self.voters) // 2 + 1

    @property
    def all(self) -> tuple[bytes, ...]:
        """The voters, then the learners."""
        return self.voters + self.learners

    def is_voter(self, replica: bytes) -> bool:
        """Whether a replica votes."""
        return replica in self.voters

    def is_learner(self, replica: bytes) -> bool:
        """Whether a replica is a learner."""
        return replica in self.learners

    def has(self, replica: bytes) -> bool:
        """Whether a replica is a member."""
        return replica in self.voters or replica in self.learners

    def with_learner(self, replica: bytes) -> Members:
        """Return these members with a replica as a learner, also if it is a voter now."""
        other = self.without(replica)
        return Members(other.voters, (*other.learners, replica))

    def with_voter(self, replica: bytes) -> Members:
        """Return these members with a replica as a voter."""
        other = self.without(replica)
        return Members((*other.voters, replica), other.learners)

    def without(self, replica: bytes) -> Members:
        """Return these members without a replica."""
        return Members(
            tuple([one for one in self.voters if one != replica]),
            tuple([one for one in self.learners if one != replica]),
        )

    def differs_by(self, other: Members) -> i64:
        """How many voters only one of the two has: 0 or 1 if one step leads from these members to the others."""
        count: i64 = 0
        for one in self.voters:
            if one not in other.voters:
                count += 1
        for one in other.voters:
            if one not in self.voters:
                count += 1
        return count

    def encode(self) -> bytes:
        """Return the bytes of the members. Raises ValueError if there are too many or an identity is too long."""
        if len(self.voters) > MOST_REPLICAS or len(self.learners) > MOST_REPLICAS:
            raise ValueError(f"{len(self.voters)} voters and {len(self.learners)} learners")
        parts = [bytes((len(self.voters), len(self.learners)))]
        for one in self.all:
            if not 0 < len(one) <= MOST_IDENTITY_BYTES:
                raise ValueError(f"an identity of {len(one)} bytes")
            parts.append(bytes((len(one),)))
            parts.append(one)
        return b"".join(parts)

    @staticmethod
    def decode(data: bytes) -> Members:
        """Return the members in bytes. Raises MalformedMembersError, a ValueError."""
        if len(data) < 2:
            raise MalformedMembersError(f"members of {len(data)} bytes")
        voters: i64 = data[0]
        learners: i64 = data[1]
        if voters > MOST_REPLICAS or learners > MOST_REPLICAS:
            raise MalformedMembersError(f"{voters} voters and {learners} learners")
        found: list[bytes] = []
        at: i64 = 2
        for _ in range(voters + learners):
            if at >= len(data):
                raise MalformedMembersError("members end within an identity")
            size: i64 = data[at]
            one = data[at + 1 : at + 1 + size]
            if size == 0 or len(one) != size:
                raise MalformedMembersError("members end within an identity")
            found.append(one)
            at += 1 + size
        if at != len(data):
            raise MalformedMembersError(f"{len(data) - at} bytes after the members")
        members = Members(tuple(found[:voters]), tuple(found[voters:]))
        if list(members.all) != found or len(frozenset(found)) != len(found):
            raise MalformedMembersError("members out of order or twice")
        return members
