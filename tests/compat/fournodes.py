"""Replays what was recorded on several nodes against several of ours, in virtual time.

The nodes of a `ReplayCluster` stand for the recorded ones: `n1` of the recording is the first member, and so on.
Requests are asked at the pace of the recording, of the node that was asked then; replies are compared as in `replay`,
and no reply may arrive later than the recorded one.

Random decisions, such as which nodes get copies and which one requeues a job, are repeated until they match the
recording: `until_as_recorded` replays a few exchanges, compares, and discards them if they differ.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compat.differences import Difference, expected, read_table
from compat.normalise import Comparison, Names, asked
from compat.recording import FILES, VECTORS, load
from compat.replay import PAUSE_WORTH_KEEPING_MS
from compat.wire import Status, decode, decode_all
from disqued.config import Config
from disqued.testing.cluster import Cluster, Member

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat.recording import Step
    from compat.wire import Reply
    from disqued.testing.local import LocalClient

HOME = b"127.0.0.1"
FIRST_PORT = 17711
DIRECTORY = "/var/lib/disque"
TIMEOUT_S = 10
ATTEMPTS = 500
LATER_MS = 20
"""How much later than in the recording a reply may come: messages take time here, and timers are in steps of 16 ms."""

SEVERAL_NODES = {
    FILES[3]: ((1, 132),),
    FILES[4]: ((1, 39),),
    FILES[7]: ((1, 8),),
}
"""What is replayed here."""

States = dict[str, str | None]
"""Which node has a job in which state; None where it is unknown."""


def node_ids(file: str) -> dict[str, bytes]:
    """The IDs of the recorded nodes, as far as the recorder noted them."""
    entries = map(json.loads, (VECTORS / "commands" / file).read_text().splitlines())
    return {name: node_id.encode() for entry in entries for name, node_id in entry.get("node_ids", {}).items()}


def recorded_states(file: str) -> dict[int, States]:
    """What the recorder saw after some exchanges of the job they were about, by the number of the exchange."""
    found: dict[int, States] = {}
    number = 0
    for line in (VECTORS / "commands" / file).read_text().splitlines():
        entry = json.loads(line)
        number = entry.get("n", number)
        if "states" in entry:
            found[number] = entry["states"]
    return found


@dataclass(frozen=True, slots=True)
class Question:
    """A request that waits for its reply."""

    client: LocalClient
    start: int
    """The offset of the reply in everything that the client received."""

    def is_answered(self) -> bool:
        """Whether the whole reply is there."""
        return decode(self.client.received, self.start) is not None

    def reply(self) -> Reply:
        """The reply, read off the client."""
        self.client.replies()
        (reply,) = decode_all(self.client.received[self.start :])
        return reply


@dataclass
class ReplayCluster:
    """Our nodes in the roles of the recorded ones."""

    file: str
    count: int
    seed: int = 0
    """The seed of the nodes' random numbers."""
    options: dict[str, object] = field(default_factory=dict)
    """Directives of all nodes, by attribute."""
    rows: tuple[Difference, ...] = field(default_factory=read_table)
    names: Names = field(default_factory=Names)
    faults: list[str] = field(default_factory=list)
    played: list[int] = field(default_factory=list)
    before: dict[int, Callable[[], None]] = field(default_factory=dict)
    """Actions before an exchange, each time it is replayed."""
    steps: dict[int, Step] = field(init=False)
    nodes: dict[str, Member] = field(init=False)

    def __post_init__(self) -> None:
        """Start the nodes; they do not know each other."""
        self.steps = load(self.file)
        ports = iter(range(FIRST_PORT, FIRST_PORT + self.count))
        self.cluster = Cluster(self.count, meet=False, config=lambda: _listening(next(ports), self.options))
        self.nodes = {f"n{member.number}": member for member in self.cluster.members}
        for member in self.cluster.members:
            member.host.chance.seed(self.seed * self.count + member.number)
            member.restart(HOME)
        for name, node_id in node_ids(self.file).items():
            self.names.bind(node_id, self[name].id)
            self.names.bind(node_id[:8], self[name].id[:8])

    def __getitem__(self, name: str) -> Member:
        return self.nodes[name]

    # --- exchanges ----------------------------------------------------------------------------------------------------

    def play(self, first: int, last: int | None = None) -> None:
        """Replay a range of exchanges one after the other, at the pace of the recording."""
        for number in range(first, (last or first) + 1):
            self.before.get(number, _nothing)()
            self._keep_pace(number)
            now_ms = self.cluster.network.now_ms
            self.hear(number, self.ask(number), now_ms)

    def ask(self, number: int) -> Question:
        """Ask what was recorded, the IDs replaced by ours; the reply is not awaited."""
        step = self.steps[number]
        client = self[step.node].admin
        question = Question(client, len(client.received))
        client.send(*map(self.names.to_ours, step.words))
        return question

    def hear(self, number: int, question: Question, since_ms: int) -> None:
        """Await the reply and compare it; it may take as long as the recorded one, counted from `since_ms`."""
        step = self.steps[number]
        self.played.append(number)
        (recorded,) = decode_all(expected(step, self.rows))
        self.cluster.until(question.is_answered, within_s=TIMEOUT_S)
        took_ms = self.cluster.network.now_ms - since_ms
        if took_ms > step.answered_at_ms - step.asked_at_ms + LATER_MS:
            self.faults.append(f"{step.name} {asked(step.words)}: answered after {took_ms} ms")
        self._compare(step, recorded, question.reply())

    def _compare(self, step: Step, recorded: Reply, ours: Reply) -> None:
        comparison = Comparison(self.names, FIRST_PORT, DIRECTORY)
        self.faults += [f"{step.name} {line}" for line in comparison.differences(asked(step.words), recorded, ours)]

    def _keep_pace(self, number: int) -> None:
        """Wait as long as the recorder did since the exchange before, which may have let something happen."""
        if number - 1 in self.played[-1:]:
            gap_ms = self.steps[number].asked_at_ms - self.steps[number - 1].answered_at_ms
            if gap_ms >= PAUSE_WORTH_KEEPING_MS:
                self.cluster.run(milliseconds=gap_ms)

    def chance(self, first: int, last: int, states: States, after_ms: int = 0) -> None:
        """Replay exchanges, the first of which adds a job, until it is in the recorded states, `after_ms` later."""
        self.until_as_recorded(first, last, lambda job_id: self.states(job_id) == states, after_ms)

    def until_as_recorded(
        self, first: int, last: int, is_as_recorded: Callable[[bytes], bool], after_ms: int = 0
    ) -> None:
        """Replay exchanges, the first of which adds a job, until chance has it as it was, seen `after_ms` later."""
        before = self.names, len(self.faults), len(self.played)
        for _ in range(ATTEMPTS):
            self.names = before[0].copy()
            self.play(first, last)
            self.cluster.run(milliseconds=after_ms)
            job_id = self.job(first)
            if is_as_recorded(job_id):
                return
            assert self.nodes[self.steps[first].node].admin.call("FASTACK", job_id) in {0, 1}
            self.cluster.run(milliseconds=LATER_MS)
            del self.faults[before[1] :], self.played[before[2] :]
        raise AssertionError(f"{self.steps[first].name}: chance never had it as it was recorded")

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def job(self, number: int) -> bytes:
        """Our ID of the job that a recorded exchange added."""
        (reply,) = self.steps[number].replies()
        assert isinstance(reply, Status)
        return self.names.to_ours(reply.text)

    def states(self, job_id: bytes) -> States:
        """Which node has a job in which state."""
        return {name: _state(member, job_id) for name, member in self.nodes.items()}

    def flush(self) -> None:
        """Have all nodes forget all jobs, as the recorder did between some steps."""
        for member in self.nodes.values():
            assert member.admin.call("DEBUG", "FLUSHALL") == b"OK"

    def sees(self, number: int, job_number: int, within_ms: int) -> None:
        """The job soon is in the states that the recorder saw after an exchange."""
        job_id, wanted = self.job(job_number), recorded_states(self.file)[number]
        self.cluster.until(lambda: self.states(job_id) == wanted, within_s=within_ms / 1000)

    def check(self) -> None:
        """AssertionError with all differences, if there are any."""
        assert not self.faults, f"{len(self.faults)} differences\n" + "\n".join(self.faults)


def _nothing() -> None:
    """An action before most exchanges."""


def _listening(port: int, options: dict[str, object]) -> Config:
    config = Config()
    for attribute, value in {"port": port, **options}.items():
        config.assign(attribute, value)
    return config


def _state(member: Member, job_id: bytes) -> str | None:
    if not member.running:
        return None
    state = member.admin.show(job_id).get("state")
    return state.decode() if isinstance(state, bytes) else None
