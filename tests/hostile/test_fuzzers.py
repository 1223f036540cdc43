"""The fuzzers of `make fuzz` reach what they should reach, and notice what no input may do."""

from __future__ import annotations

import time
from dataclasses import replace
from random import Random

import pytest

from disqued.bus import kinds
from disqued.core.clients.session import Session
from disqued.core.runtime.state import NodeState
from disqued.node import ROOMS
from disqued.persistence.parse import Entry, job_of
from disqued.persistence.reader import EntryReader
from disqued.testing.local import NODE_ID
from fuzz import bytestreams, commands, samples
from fuzz.grammar import EXCLUDED, Grammar
from fuzz.ports import TARGETS, Target
from fuzz.victim import MAX_TURN_MS, Victim, Violation


def test_the_grammar_makes_requests_of_every_command_and_option() -> None:
    grammar = Grammar(ROOMS.commands, Random(1), [b"D-job"])
    words = {word.lower() for _ in range(20_000) for word in grammar.request()[:50]}

    assert {command.name.encode() for command in ROOMS.commands} - words == {name.encode() for name in EXCLUDED}
    assert {b"replicate", b"maxlen", b"withcounters", b"setname", b"d-job"} <= words


def test_a_run_can_be_repeated() -> None:
    first, second = (Grammar(ROOMS.commands, Random(7), [b"D-job"]) for _ in range(2))

    assert [first.request() for _ in range(1000)] == [second.request() for _ in range(1000)]


def _loop(_state: NodeState, session: Session, _args: list[bytes]) -> None:
    session.reply_ok()
    began_ns = time.thread_time_ns()
    while time.thread_time_ns() - began_ns < 2e6 * MAX_TURN_MS:
        pass


def _raise(_state: NodeState, _session: Session, _args: list[bytes]) -> None:
    raise ZeroDivisionError


def _garble(_state: NodeState, session: Session, _args: list[bytes]) -> None:
    session.out.append(b"?\r\n")


@pytest.mark.parametrize(
    ("handler", "notice"), [(_loop, "one turn took"), (_raise, "BUG"), (_garble, "the reply is not valid")]
)
def test_a_fault_in_a_command_is_noticed(handler: object, notice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start = Victim.__init__

    def start_with_fault(self: Victim, seed: int) -> None:
        start(self, seed)
        entry = self.node.state.commands[b"ping"]
        entry.handler = handler  # type: ignore[assignment]

    monkeypatch.setattr(Victim, "__init__", start_with_fault)
    with pytest.raises(Violation, match=notice):
        commands.run(400, 1)


def test_commands_of_restricted_users_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Victim.__init__

    def fail(_state: NodeState, _args: list[bytes]) -> list[bytes]:
        raise ZeroDivisionError

    def start_with_fault(self: Victim, seed: int) -> None:
        start(self, seed)
        entry = self.node.state.commands[b"qlen"]
        entry.command = replace(entry.command, queues=fail)

    monkeypatch.setattr(Victim, "__init__", start_with_fault)
    with pytest.raises(Violation, match="BUG"):
        commands.run(400, 1)


@pytest.mark.parametrize("name", TARGETS)
def test_an_exception_that_escapes_is_reported_with_its_input(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: Target, _data: bytes) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(TARGETS[name], "take", fail)
    with pytest.raises(Violation, match=rf"{name}, target 3/0: ZeroDivisionError\(\) after the input b'"):
        bytestreams.run(name, 1, 3)


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_of_valid_input_do_no_harm(name: str) -> None:
    assert bytestreams.run(name, 500, 1) == "500 inputs"


def test_the_sample_file_has_every_kind_of_record_and_attributes() -> None:
    reader = EntryReader(ROOMS.record_table)
    reader.feed(samples.append_only_file())
    reader.end()
    found: list[Entry] = []
    while (item := reader.next()) is not None:
        assert isinstance(item, Entry)
        found.append(item)

    names = {entry.words[0] for entry in found}
    assert names == {b"LOADJOB", b"DELJOB", b"FORMAT", *(known.name for known in ROOMS.record_table.formats)}
    assert any(job_of(entry).job.extra is not None for entry in found if entry.words[0] == b"LOADJOB")


def test_there_is_a_sample_frame_of_each_message_of_ours() -> None:
    job_id = b"D-5ca1ab1e-MTIzNDU2Nzg5MDEyMzQ1Njc4-05a1"
    numbers = {int.from_bytes(frame[12:14], "big") for frame in samples.frames(NODE_ID, job_id)}

    assert numbers >= {message.number for message in ROOMS.messages if message.number >= kinds.HOST}
