"""The bytes of messages."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.raft.codec import MalformedError, decode, encode
from disqued.raft.entry import EMPTY, MEMBERS, NORMAL, Entry
from disqued.raft.members import Members
from disqued.raft.message import APPEND, APPEND_REPLY, NAMES, PREVOTE, ROUND, ROUND_REPLY, SNAPSHOT, VOTE, Message
from disqued.raft.snapshotmeta import SnapshotMeta

numbers = st.integers(0, 1 << 62)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    message = Message(draw(st.integers(1, len(NAMES) - 1)), b"from", b"to", draw(numbers))
    message.flag = draw(st.booleans())
    if message.kind in {PREVOTE, VOTE, APPEND_REPLY}:
        message.index, message.log_term = draw(numbers), draw(numbers)
    if message.kind == APPEND_REPLY:
        message.commit, message.hint = draw(numbers), draw(numbers)
    if message.kind in {ROUND, ROUND_REPLY}:
        message.round = draw(numbers)
    if message.kind == APPEND:
        message.index, message.commit = draw(st.integers(0, 1 << 40)), draw(numbers)
        message.log_term = draw(st.integers(0, message.term))
        contents = draw(st.lists(st.binary(max_size=30), max_size=4))
        message.entries = [
            Entry(message.term, message.index + 1 + at, 77 + at, EMPTY if not data else NORMAL, data)
            for at, data in enumerate(contents)
        ]
    if message.kind == SNAPSHOT:
        members = Members((b"a", b"b"), (b"c",))
        message.snapshot = SnapshotMeta(draw(numbers), draw(st.integers(0, message.term)), draw(numbers), members)
        message.commit = draw(numbers)
    return message


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.lists(messages(), max_size=3)), max_size=3))
def test_messages_are_the_same_after_decoding(records: list[tuple[int, list[Message]]]) -> None:
    data = b"".join(encode(group, found) for group, found in records)
    decoded = decode(data, b"from", b"to")
    assert [(group, [vars_of(message) for message in found]) for group, found in decoded] == [
        (group, [vars_of(message) for message in found]) for group, found in records
    ]


def vars_of(message: Message) -> tuple[object, ...]:
    return (
        message.kind, message.sender, message.to, message.term, message.index, message.log_term, message.commit,
        message.hint, message.round, message.flag, message.entries, message.snapshot,
    )  # fmt: skip


@given(st.binary(max_size=80))
def test_hostile_bytes_give_the_one_error_or_messages(data: bytes) -> None:
    try:
        found = decode(data, b"from", b"to")
    except MalformedError:
        return
    assert b"".join(encode(group, messages) for group, messages in found) == data


@given(messages(), st.data())
def test_bytes_that_are_cut_or_changed_give_the_one_error_or_messages(message: Message, data: st.DataObject) -> None:
    whole = encode(3, [message])
    at = data.draw(st.integers(0, len(whole) - 1))
    for hostile in (whole[:at], whole[:at] + bytes((whole[at] ^ data.draw(st.integers(1, 255)),)) + whole[at + 1 :]):
        with contextlib.suppress(MalformedError):
            decode(hostile, b"from", b"to")


def test_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="end within"):
        decode(b"\0", b"from", b"to")


def append(*entries: Entry) -> Message:
    message = Message(APPEND, b"from", b"to", 5)
    message.index, message.log_term = 9, 3
    message.entries = list(entries)
    return message


@pytest.mark.parametrize(
    "entry",
    [Entry(2, 10, 0, NORMAL, b""), Entry(6, 10, 0, NORMAL, b""), Entry(5, 10, 0, 3, b""), Entry(5, 10, -1, NORMAL, b""),
     Entry(5, 10, 0, MEMBERS, b"?")],
    ids=["term falls", "term of the future", "kind", "time", "members"],
)  # fmt: skip
def test_impossible_entry_is_refused(entry: Entry) -> None:
    with pytest.raises(MalformedError):
        decode(encode(1, [append(entry)]), b"from", b"to")


def test_append_of_one_entry_is_small() -> None:
    assert len(encode(1, [append(Entry(5, 10, 0, NORMAL, b""))])) <= 70
