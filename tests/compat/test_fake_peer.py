"""The recorded conversation of a scripted peer with a node of the original is the same with our node.

Each line of `tests/vectors/bus/fake-peer.jsonl` is fed, compared, or listed here with the reason
why not; a test counts.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest

from bus.recorded import Fields, lines
from compat.fakepeer import NODE_TIMEOUT_MS, ScriptedPeer, SentFrame, Stage, comparable
from disqued.bus import kinds
from disqued.bus.gossip import GossipEntry
from disqued.node import ROOMS

FILE = lines("fake-peer")
FAKE, FAKE2, UNKNOWN_NODE = b"f00dfeed" * 5, b"beef" * 10, b"cafe" * 10

COMMANDS: dict[str, list[tuple[bytes | str | int, ...]]] = {
    "dummy": [("ACKJOB", "D-f00dfeed-FakePeerJobFakePeerJob0k-05a1")],
    "dummy-unknown": [("ACKJOB", "D-f00dfeed-FakePeerJobFakePeerJob0k-05a1")],
    "fastack-unknown": [("FASTACK", "D-f00dfeed-FakePeerJobFakePeerJob0k-05a1")],
    "addjob-from-real": [("ADDJOB", "rq", "from-real", 3000, "REPLICATE", 2, "RETRY", 40)],
    "addjob-ack-before-gotjob": [("ADDJOB", "rq", "early-ack", 3000, "REPLICATE", 2, "RETRY", 300)],
    "addjob-timeout": [("ADDJOB", "rq", "silent", 700, "REPLICATE", 2, "RETRY", 300)],
    "needjobs-adhoc": [("GETJOB", "FROM", "fq")],
    "needjobs-waiting": [("GETJOB", "TIMEOUT", 3000, "FROM", "fq")],
    "needjobs-5": [
        ("GETJOB", "NOHANG", "FROM", "nq"),
        *(("ADDJOB", "nq", f"j{number}", 0, "REPLICATE", 1, "RETRY", number % 2 * -300 + 300) for number in range(20)),
    ],
    "pause-bcast": [("PAUSE", "bq", "all", "bcast")],
}
"""What clients ask our node at the beginning of a step, as the recorder did; replies are compared when observed."""

CLEANUPS = {
    "enqueue": ["D-f00dfeed-FakePeerJobFakePeerJob0d-05a1"],
    "addjob-from-real": ["D-f00dfeed-FakePeerJobFakePeerJob0g-05a1"],
    "addjob-ack-before-gotjob": ["D-d72cb83f-5IrAQImDQ7VHxzr09GSSkqiR-05a1"],
    "needjobs-5": ["D-f00dfeed-FakePeerJobFakePeerJob0n-05a1", "D-f00dfeed-FakePeerJobFakePeerJob0o-05a0"],
}
"""Jobs that the recorder deleted unseen between two steps: INFO counts without them later."""

BEFORE: dict[tuple[str, int], Callable[[Stage], None]] = {}
"""Unrecorded actions before the n-th observation of a step."""

PAUSES_MS = {("fail", 1): 2100}
"""How long the recorder waited before the n-th observation of a step."""


def before(step: str, observation: int) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    def note(action: Callable[[Stage], None]) -> Callable[[Stage], None]:
        BEFORE[step, observation] = action
        return action

    return note


def gossip(kind: int, peer: ScriptedPeer, about: ScriptedPeer | None = None, flags: int = 0, port: int = 0) -> bytes:
    entries = [GossipEntry(about.node_id, 0, 0, b"127.0.0.1", about.port, flags).encode()] if about else []
    return peer.writer(port).gossip(kind, entries, 0)


def until(stage: Stage, within_ms: int, condition: Callable[[bytes], bool]) -> None:
    """Let time pass until CLUSTER NODES says something."""
    began_ms = stage.elapsed_ms
    while True:
        nodes = stage.admin.call("CLUSTER", "NODES")
        assert isinstance(nodes, bytes)
        if condition(nodes):
            return
        assert stage.elapsed_ms - began_ms < within_ms, nodes
        stage.run(100)


@before("pfail", 0)
def fake2_falls_silent(stage: Stage) -> None:
    stage.fake2.answering = False
    until(stage, NODE_TIMEOUT_MS * 3 // 2 + 200, lambda nodes: b"fail?" in nodes)


@before("fail-quorum", 0)
def fake_reports_fake2(stage: Stage) -> None:
    stage.receives(stage.fake, gossip(kinds.PING, stage.fake, stage.fake2, kinds.NODE_PFAIL))


@before("fail-cleared", 0)
def fake2_answers_again(stage: Stage) -> None:
    stage.fake2.answering = True
    until(stage, NODE_TIMEOUT_MS + 1000, lambda nodes: b"fail" not in nodes)


@before("address-change", 0)
def fake2_says_another_port(stage: Stage) -> None:
    stage.receives(stage.fake2, gossip(kinds.PING, stage.fake2, port=17799))
    stage.run(150)


@before("address-change", 1)
def fake2_says_its_port(stage: Stage) -> None:
    stage.receives(stage.fake2, gossip(kinds.PING, stage.fake2))
    stage.run(300)


@before("forget", 2)
def forgotten_node_is_gossiped_and_connects(stage: Stage) -> None:
    stage.receives(stage.fake, gossip(kinds.PING, stage.fake, stage.fake2))
    stage.receives(stage.fake2, gossip(kinds.PING, stage.fake2))
    stage.run(300)


@before("forget", 3)
def a_forgotten_node_wants_to_meet(stage: Stage) -> None:
    stage.receives(stage.fake2, gossip(kinds.MEET, stage.fake2))
    stage.run(500)


@before("wrong-id", 0)
def fake2_has_another_id(stage: Stage) -> None:
    stage.fake2.answers_as = UNKNOWN_NODE
    stage.run(3000)


# --- intended differences ---------------------------------------------------------------------------------------------

SURE = "a SETACK says that its sender has the job acknowledged, which the original learns from a GOTACK only"
TRANSFERS = "a node that leaves transfers its jobs"

UNHEARD: dict[str, dict[str, str]] = {
    "gc-retry": {"SETACK": SURE},
    "gotack": {"DELJOB": SURE},
    "setack-less": {"SETACK": SURE},
    "gotack-0": {"DELJOB": SURE},
    "needjobs-waiting": {"NEEDJOBS": "repeated at pauses of its own while clients wait"},
}
"""Types of frames that the original sends in a step and our node does not, or not so often."""

EXTRA: dict[str, dict[str, str]] = {
    "gc-retry": {"DELJOB": SURE},
    "setack-less": {"DELJOB": SURE},
    "setack-zero": {"WILLQUEUE": "differences 65: an owner that lists only itself lists us before it is told"},
    "yourjobs": {"WILLQUEUE": "differences 1 and 65: an importer makes itself known to those who have the job"},
    "paused-in": {"WILLQUEUE": "as above"},
    "leaving-real": {"REPLJOB": TRANSFERS, "YOURJOBS": TRANSFERS},
    "needjobs-5": {"NEEDJOBS": "a client comes for jobs, otherwise our node would not keep half of them"},
    "fail-quorum": {"PONG": "the answer to our own PING, which was not recorded"},
    "forget": {"PONG": "as above"},
}
"""Types of frames that our node sends in a step and the original does not."""

ALWAYS_OTHERWISE = {"YOURJOBS": ("nodes", "len", "consumed", "datasize")}
"""Fields that differ in all frames of a type: a YOURJOBS lists the receiver as one who has the job (differences 1)."""

BOTH, SELF = (
    sorted((FAKE.decode(), "d72cb83f543b931538cae0886ed63e0c867e3560")),
    ["d72cb83f543b931538cae0886ed63e0c867e3560"],
)
OBSERVED: dict[tuple[str, int], tuple[Any, str]] = {
    ("repljob-unknown-nodes", 0): ({"nodes-delivered": SELF}, "differences 68: a node that has a job lists itself"),
    ("setack-equal", 0): ({"nodes-confirmed": BOTH}, SURE),
    ("setack-less", 0): (None, SURE),
    ("addjob-ack-before-gotjob", 1): ({"nodes-confirmed": BOTH}, SURE),
    ("setack-zero", 0): ({"nodes-confirmed": []}, "a sender with an empty list does not keep the job itself"),
    ("yourjobs", 0): ({"nodes-delivered": BOTH}, "differences 1: both ends of an import have the job"),
    ("yourjobs", 1): ({"nodes-delivered": SELF}, "differences 1: its former owner forgets an at-most-once job"),
    ("paused-in", 2): ({"nodes-delivered": BOTH}, "differences 1"),
}
"""Deviating replies of our node: (step, observation) to the expected fields or value, and the reason."""


REMARKS = {
    "(the PONG above carries flags 0x84)",
    "frames seen by fake2 follow",
    "seconds until fail?",
    "gossip entries are chosen at random; the last PONG above gossips fake2 with flag 1 (fail?)",
}
"""Observations that are only documentation."""


# --- the player -------------------------------------------------------------------------------------------------------


class Player:
    """Plays the file; `faults` are the differences found."""

    def __init__(self, seed: int = 1) -> None:
        self.stage = Stage(ScriptedPeer("fake", FAKE, 17720), ScriptedPeer("fake2", FAKE2, 17721), seed)
        self.client = self.stage.real.client()
        self.faults: list[str] = []
        self.played: list[int] = []
        self.step = ""
        self.observations = 0
        self.frames_before = 0
        self.latest_ms = 0
        self.expected: list[SentFrame] = []

    def play(self) -> None:
        for number, line in enumerate(FILE):
            if "description" in line:
                self.begin(line["step"])
            elif "hex" in line:
                self.frame(line)
            elif "observe" in line:
                self.observe(line)
            self.played.append(number)
        self.end()

    def begin(self, step: str) -> None:
        self.end()
        self.frames_before = len(self.stage.network.frames)
        frames = [line for line in FILE if line.get("step") == step and "hex" in line]
        if frames:
            first = min(frames, key=lambda line: line["t_ms"])
            self.stage.run_to(first["t_ms"] - (first["direction"] == "fake->real"))
        self.step, self.observations, self.expected = step, 0, []
        self.client.replies()
        for job_id in CLEANUPS.get(step, []):
            assert self.stage.admin.call("DELJOB", self.stage.to_ours(job_id.encode())) == 1
        for words in COMMANDS.get(step, []):
            self.client.send(*words)

    def frame(self, line: dict[str, Any]) -> None:
        """Feed a frame of the fake, or expect one of ours."""
        stage = self.stage
        self.latest_ms = line["t_ms"]
        if line["direction"] == "real->fake":
            stage.note_mentioned(line["fields"])
            to = "fake2" if self.about_fake2(line) else "fake"
            self.expected.append(SentFrame(to, line["connection"], line["fields"]))
        elif line["connection"] == "fake opened":
            stage.run_to(line["t_ms"])
            stage.fake.leaving = bool(line.get("fields", {}).get("flags", 0) & kinds.NODE_LEAVING)
            stage.receives(stage.fake, stage.to_ours(bytes.fromhex(line["hex"])))
            if line["type"] == kinds.NEEDJOBS:  # our node remembers who asked; the original, which we play, does not
                stage.receives(stage.fake, stage.fake.writer().about_queue(kinds.ENOUGH, cut_queue(line), 0))
        else:  # the peers answer by themselves, with the recorded bytes
            peer = stage.fake2 if self.about_fake2(line) else stage.fake
            assert peer.pong().hex() == line["hex"]
            assert peer.answering

    def about_fake2(self, line: dict[str, Any]) -> bool:
        """Whether a frame was on a connection with fake2: two were recorded, both with its MEET."""
        return self.step == "gossip-new" and (line["type"] == kinds.MEET or line["fields"]["sender"].startswith("beef"))

    def observe(self, line: dict[str, Any]) -> None:
        """Compare what a client is told."""
        stage, index = self.stage, self.observations
        self.observations += 1
        stage.run_to(self.latest_ms)
        if (self.step, index) in BEFORE:
            BEFORE[self.step, index](stage)
        stage.run(PAUSES_MS.get((self.step, index), 0))
        what, value = line["observe"], line["value"]
        if (self.step, index) in OBSERVED:
            instead = OBSERVED[self.step, index][0]
            value = value | instead if isinstance(instead, dict) else instead
        if what.startswith("client: "):
            words = what.removeprefix("client: ")
            started = any(words.split()[0] == command[0] for command in COMMANDS.get(self.step, []))
            ours = self.client.next_reply() if started else stage.admin.call(*stage.to_ours(words.encode()).split())
            self.compare(f"{self.step} {index}: {words}", shape(words, value), shape(words, ours, stage))
        elif what == "connections closed by the real node":
            self.compare(f"{self.step}: {what}", expected=True, ours=stage.closed(stage.fake))
        else:
            assert what in REMARKS

    def end(self) -> None:
        """Compare the frames of the step."""
        if not self.step:
            return
        self.stage.run_to(self.latest_ms)
        sent = self.stage.network.frames[self.frames_before :]
        skipped = UNHEARD.get(self.step, {})
        wanted = told([frame for frame in self.expected if name(frame) not in skipped], None)
        extra = EXTRA.get(self.step, {})
        kept = [frame for frame in sent if name(frame) not in skipped and name(frame) not in extra]
        got = told([frame for frame in kept if frame.peer == "fake" or self.step == "gossip-new"], self.stage)
        self.compare(f"{self.step}: frames", wanted, got)
        missing = [kind for kind in extra if kind not in {name(frame) for frame in sent}]
        self.compare(f"{self.step}: frames of ours that are missing", [], missing)

    def compare(self, what: str, expected: object, ours: object) -> None:
        if expected != ours:
            self.faults.append(f"{what}\n  recorded {expected}\n  ours     {ours}")


def cut_queue(line: dict[str, Any]) -> bytes:
    """The name of the queue in a frame."""
    queue: str = line["fields"]["qname"]
    return queue.encode()


def name(sent: SentFrame) -> str:
    return ROOMS.message_table.names[sent.fields["type"]]


def told(frames: list[SentFrame], stage: Stage | None) -> list[str]:
    """Frames as they are compared: without the PINGs of our own rounds, repetitions counted as one."""
    shown = [
        f"{name(frame)} to {frame.peer} on {frame.connection}: {the_same(frame, stage)}"
        for frame in frames
        if not (frame.fields["type"] == kinds.PING and frame.connection == "real opened")
    ]
    return [line for line, _ in groupby(shown)]


def the_same(frame: SentFrame, stage: Stage | None) -> Fields:
    """The fields that have to be the same."""
    fields = comparable(frame.fields, stage)
    for key in ALWAYS_OTHERWISE.get(name(frame), ()):
        for part in [fields, *fields.get("jobs", [])]:
            part.pop(key, None)
    return fields


CLOSE = {"ttl": 2, "next-requeue-within": 1500, "next-awake-within": 1500, "age": 2, "idle": 2, "import-rate": 1}
"""Figures that depend on chance and pace, and how far they may be off."""


def shape(words: str, value: Any, stage: Stage | None = None) -> object:
    """A recorded value or a reply of ours, in the form in which they are compared."""
    command = words.split(maxsplit=1)[0]
    if stage is not None:
        value = plain(value, stage)
    if words == "CLUSTER NODES":
        return sorted(node_line(line) for line in value.splitlines())
    if command in {"INFO", "CLUSTER"} and ":" in value:
        return [
            line for line in value.splitlines() if re.match(r"registered_jobs|cluster_(state|known|reach|size)", line)
        ]
    if command in {"SHOW", "QSTAT"} and value is not None:
        if isinstance(value, list):
            pairs = list(zip(value[::2], value[1::2], strict=True))
            value = dict(pairs[:10] if command == "QSTAT" else pairs)  # fields of ours follow
        value = {key: rounded(key, field) for key, field in value.items() if key not in {"id", "queue", "body"}}
        return {key: sorted(field) if isinstance(field, list) else field for key, field in value.items()}
    return value


def rounded(key: str, value: Any) -> Any:
    """Figures close to each other become the same."""
    return round(value / (CLOSE[key] * 4)) if key in CLOSE and isinstance(value, int) else value


def plain(value: Any, stage: Stage) -> Any:
    """A reply of ours as the recorder wrote replies down."""
    if isinstance(value, list):
        return [plain(item, stage) for item in value]
    if isinstance(value, bytes):
        return stage.to_recorded(value.decode("latin-1"))
    return f"-{value}" if isinstance(value, Exception) else value


def node_line(line: str) -> str:
    """A line of CLUSTER NODES without times, without the ID that stands in during a handshake, and without the state
    of the link to a node that does not answer: it is dropped and opened again."""
    node_id, address, flags, ping, pong, link = line.split()
    ping, pong = ("0" if time == "0" else "<ms>" for time in (ping, pong))
    shown = "<temporary>" if flags == "handshake" else node_id
    return " ".join((shown, address, flags, ping, pong, "<any>" if "fail" in flags else link))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_recorded_conversation_comes_out_the_same(seed: int) -> None:
    player = Player(seed)

    player.play()

    assert player.faults == [], "\n" + "\n".join(player.faults)
    assert player.played == list(range(len(FILE)))
    assert not [text for _, text in player.stage.real.host.log_lines if "BUG" in text]


def test_every_row_of_the_tables_is_about_something_recorded() -> None:
    observed = {
        step: [line for line in FILE[FILE.index(title) :] if "observe" in line][: observations(title)]
        for title in FILE
        if (step := title.get("step")) and "description" in title
    }

    for step in [*COMMANDS, *CLEANUPS, *UNHEARD, *EXTRA]:
        assert step in observed
    for step, index in [*BEFORE, *PAUSES_MS, *OBSERVED]:
        assert index < len(observed[step])
    for (step, index), (instead, reason) in OBSERVED.items():
        recorded = observed[step][index]["value"]
        assert recorded != (recorded | instead if isinstance(instead, dict) else instead)
        assert reason


def observations(title: dict[str, Any]) -> int:
    """How many observations a step has."""
    rest = FILE[FILE.index(title) + 1 :]
    step = next((rest[:index] for index, line in enumerate(rest) if "description" in line), rest)
    return len([line for line in step if "observe" in line])


@pytest.mark.parametrize("kind", range(kinds.PAUSE + 1), ids=ROOMS.message_table.names.get)
def test_node_that_ignores_a_message_type_is_detected(kind: int) -> None:
    player = Player()
    player.stage.real.node.frames.messages[kind] = None

    with contextlib.suppress(AssertionError):  # what has to happen next never does
        player.play()
        assert player.faults == []
        pytest.fail("nothing was noticed")
