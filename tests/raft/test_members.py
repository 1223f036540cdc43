"""Members of a group and their encoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.raft.members import MalformedMembersError, Members

A, B, C, D = b"a", b"b", b"c", b"d"
identities = st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=9, unique=True)


@pytest.mark.parametrize(("voters", "quorum"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_quorum_is_a_majority_of_the_voters(voters: int, quorum: int) -> None:
    assert Members((A, B, C, D, b"e")[:voters], (b"learner",)).quorum == quorum


def test_learner_becomes_a_voter_and_is_removed() -> None:
    members = Members((B, A)).with_learner(C)
    assert members == Members((A, B), (C,))
    assert members.with_voter(C) == Members((A, B, C))
    assert members.with_voter(C).without(A) == Members((B, C))
    assert members.without(C) == Members((A, B))


def test_difference_counts_the_voters_that_only_one_side_has() -> None:
    members = Members((A, B, C))
    assert members.differs_by(members.with_learner(D)) == 0
    assert members.differs_by(members.with_voter(D)) == 1
    assert members.differs_by(members.without(A)) == 1
    assert members.differs_by(members.without(A).with_voter(D)) == 2


@given(identities, st.integers(0, 4))
def test_members_are_the_same_after_decoding(found: list[bytes], learners: int) -> None:
    learners = min(learners, len(found) - 1)
    members = Members(tuple(found[learners:]), tuple(found[:learners]))
    assert Members.decode(members.encode()) == members


@given(st.binary(max_size=40))
def test_hostile_bytes_give_the_one_error_or_members_with_these_bytes(data: bytes) -> None:
    try:
        members = Members.decode(data)
    except MalformedMembersError:
        return
    assert members.encode() == data


@pytest.mark.parametrize(
    "data",
    [b"", b"\x01", b"\x01\x00", b"\x21\x00", b"\x00\x21", b"\x01\x00\x02a", b"\x02\x00\x01b\x01a",
     b"\x02\x00\x01a\x01a", b"\x01\x01\x01a\x01a", b"\x01\x00\x01a!", b"\x01\x00\x00"],
)  # fmt: skip
def test_malformed_members_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedMembersError):
        Members.decode(data)


def test_no_members_are_encoded_as_two_zeros() -> None:
    assert Members(()).encode() == b"\x00\x00"
    assert Members.decode(b"\x00\x00") == Members(())
