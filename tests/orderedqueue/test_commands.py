"""Commands as bytes: what is written is read, and bytes that are no command change nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.orderedqueue import commands, effects
from disqued.orderedqueue.add import Add, add_head
from disqued.orderedqueue.encoding import MOST_TIME_MS, Malformed, Reader, Writer
from disqued.orderedqueue.options import Settings
from orderedqueue.scenes import RETRY_S, TTL_S, Scene

NUMBERS = st.integers(0, (1 << 63) - 1)


def full_add() -> Add:
    add = Add(RETRY_S, TTL_S)
    add.delay_ms = 1500
    add.group = b"customer 7"
    add.key = b"order 17"
    add.window_s = 600
    add.until_done = True
    add.meta = b"meta"
    add.retain_s = 60
    add.max_length = 1000
    add.origin_id = b"D-" + b"0" * 38
    add.origin_queue = b"first"
    add.moves = 3
    add.attempts = 20
    add.reason = b"no paper"
    add.dead_since_ms = 1_800_000_000_000
    add.claim = 99
    add.nacks = 2
    add.additional = 1
    add.extra = b"extra"
    return add


def all_commands() -> list[bytes]:
    """One command of each kind with all its fields."""
    ack = commands.Ack([5], [7])
    ack.result = b"result"
    ack.keep_s = 600
    nack = commands.Nack([5, 6], [7, 8])
    nack.delay_ms = 100
    nack.reason = b"reason"
    return [
        full_add().encode(b"the body"),
        commands.Credit(b"consumer", 10, 3).encode(),
        ack.encode(),
        nack.encode(),
        commands.Renew(5, 7, 1000, b"note").encode(),
        commands.Join(b"consumer", b"node", named=True).encode(),
        commands.Part(b"consumer", away=True).encode(),
        commands.Node(b"node", up=False).encode(),
        commands.encode_conf(Settings()),
        commands.encode_pause(3),
        commands.Purge(15, 1000, 2, 9).encode(),
        commands.encode_time(),
        commands.DeadSent(5, b"D-1").encode(),
        commands.Remove([5, 6]).encode(),
        commands.MoveJobs([5], b"other", keeps_counters=True, redrives=True).encode(),
    ]


def test_add_is_read_as_it_was_written() -> None:
    add = full_add()
    data = add.encode(b"the body")
    read = add_head(data)
    assert data[read.body_at :] == b"the body"
    names = [name for name in dir(add) if not name.startswith("_") and not callable(getattr(add, name))]
    assert len(names) > 20
    for name in names:
        if name not in {"size", "body_at"}:
            assert getattr(read, name) == getattr(add, name), name


def test_plain_add_has_few_bytes_before_its_body() -> None:
    assert len(Add(300, 86_400).encode(b"")) <= 10


def test_every_kind_is_tried() -> None:
    assert [data[0] for data in all_commands()] == list(range(1, 16))


@pytest.mark.parametrize("data", all_commands(), ids=lambda data: f"kind {data[0]}")
def test_command_is_accepted_whole_and_refused_with_any_byte_missing_or_added(data: bytes) -> None:
    assert Scene().apply(data).code != effects.MALFORMED
    for size in range(len(data)):
        scene = Scene()
        before = scene.wait(0)
        assert before.code == effects.OK
        assert scene.apply(data[:size]).code == effects.MALFORMED
    assert Scene().apply(data + b"\x00").code == effects.MALFORMED


@given(data=st.binary(max_size=60))
def test_bytes_that_are_no_command_change_nothing_but_the_index(data: bytes) -> None:
    scene, other = Scene(), Scene()
    for one in (scene, other):
        one.add()
        one.join(b"consumer")
    effects_of_data = scene.apply(data)
    other.wait(0)
    if effects_of_data.code == effects.MALFORMED:
        assert scene.machine.digest() == other.machine.digest()


@given(value=NUMBERS, text=st.binary(max_size=20), flag=st.booleans())
def test_values_are_read_as_they_were_written(value: int, text: bytes, flag: bool) -> None:
    out = Writer()
    out.number(value)
    out.text(text)
    out.flag(flag)
    reader = Reader(out.done())
    assert (reader.number(), reader.text(), reader.flag()) == (value, text, flag)
    reader.finish()


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"\x80\x00", b"\xff" * 9 + b"\x01", b"\x80" * 9 + b"\x01"], ids=lambda data: data.hex()
)
def test_numbers_have_one_form_and_63_bits(data: bytes) -> None:
    with pytest.raises(Malformed):
        Reader(data).number()


def test_times_that_would_overflow_are_refused() -> None:
    scene = Scene()
    scene.add()
    scene.join(b"consumer")
    assert scene.renew(1, 0, MOST_TIME_MS + 1).code == effects.MALFORMED
    assert scene.nack(1, delay_ms=MOST_TIME_MS + 1).code == effects.MALFORMED
    assert scene.apply(Add(1 << 33, TTL_S).encode(b"")).code == effects.MALFORMED
    assert scene.apply(Add(RETRY_S, 0).encode(b"")).code == effects.MALFORMED
