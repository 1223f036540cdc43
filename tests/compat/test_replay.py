"""Every recorded exchange with one node, repeated with our node and compared byte for byte.

Each scenario replays the ranges it names with the concurrency in the notes of the recording: blocked clients, closed
connections, requests out of order. `test_replay_cluster.py` replays exchanges with several nodes, `test_replay_aof.py`
those with an append-only file. Together they cover every exchange of every file, which is also tested.
"""

from __future__ import annotations

import re
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.fournodes import SEVERAL_NODES
from compat.normalise import anonymous
from compat.recording import FILES, load, numbers
from compat.replay import TIMEOUT_S, Client, Session
from compat.wire import Status
from disqued.testing.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from compat.wire import Reply

BASICS, SERVER, PROTOCOL, _, _, SCAN, BLOCKING, _ = FILES


@dataclass(frozen=True, slots=True)
class Scenario:
    """A node, the exchanges replayed against it, and how."""

    file: str
    ranges: tuple[tuple[int, int], ...]
    play: Callable[[Session], None]
    config: str | None = None


def basics(session: Session) -> None:
    """All job and queue commands, every argument error, on one connection."""
    main, aside = session.client(), session.client()
    session.play(main, 1, 104)
    aside.call(b"PAUSE", b"q", b"in")  # or a job with a retry time of one second may come back between two requests
    session.play(main, 105, 161)
    aside.call(b"PAUSE", b"q", b"none")
    session.play(main, 162, 191)


A_MINUTE_US = b"60000000"


def log_slower_than(client: Client, microseconds: bytes) -> None:
    """What SLOWLOG keeps, between two recorded exchanges."""
    assert client.call(b"CONFIG", b"SET", b"slowlog-log-slower-than", microseconds) == Status(b"OK")


def server_commands(session: Session) -> None:
    """Administration; some requests concern other connections, some end this one."""
    main = session.client()
    main.call(b"PING")  # INFO shows it among the commands called
    session.play(main, 1, 132)

    victim = session.client()
    victim.call(b"PING")
    session.ask(main, 133, b"CLIENT", b"KILL", victim.address)
    session.hear(main, 133)
    assert victim.rest() == b""

    victim = session.client()
    victim.call(b"PING")
    session.play(main, 134)
    assert victim.rest() == b""
    session.play(main, 135)
    assert main.rest() == b""

    main = session.client()
    session.play(main, 136, 143)
    # A busy machine is slow where the recorded one was quick: in the logs are only commands that have to be there.
    assert main.call(b"SLOWLOG", b"RESET") == Status(b"OK")
    log_slower_than(main, b"0")
    log_slower_than(main, A_MINUTE_US)
    session.play(main, 144, 150)
    session.ask(main, 151, b"CONFIG", b"SET", b"slowlog-log-slower-than", A_MINUTE_US)
    session.hear(main, 151)
    session.play(main, 152, 164)
    for number, *words in (
        (165, b"CONFIG", b"SET", b"latency-monitor-threshold", b"800"),
        (166, b"DEBUG", b"SLEEP", b"1.4"),
        (167, b"DEBUG", b"SLEEP", b"1.1"),
    ):
        session.ask(main, number, *words)
        session.hear(main, number)
    session.play(main, 168, 173)
    log_slower_than(main, b"10000")
    session.play(main, 174, 215)
    session.ask(main, 216)
    session.ask(main, 217)  # together, so that the rewrite still runs
    session.hear(main, 216)
    session.hear(main, 217)
    session.play(main, 218, 222)
    leaver = session.client()
    session.play(leaver, 223)
    assert leaver.rest() == b""
    session.play(main, 224, 225)
    assert session.server.process.wait(TIMEOUT_S) == 0


def authentication(session: Session) -> None:
    """A password is set and DEBUG has another name."""
    unknown = session.client()
    session.play(unknown, 1, 4)
    session.play_alone(5)
    known = session.client()
    session.play(known, 6, 14)
    session.play_alone(15)
    session.play(known, 16)


def requests(session: Session) -> None:
    """Inline and malformed requests, each on a connection of its own."""
    session.play_alone(17, 48)


def monitor(session: Session) -> None:
    """The lines of a monitoring connection about another one and about itself."""
    watcher, other = session.client(), session.client()
    session.ask(watcher, 49)
    other.call(b"ADDJOB", b"q", b'bo"dy\x01\r\n', b"0")
    other.call(b"NOSUCH")
    other.call(b"PING")
    other.call(b"AUTH", b"pw")
    session.hear(watcher, 49)
    session.play(watcher, 50)


def too_many_clients(session: Session) -> None:
    """The connection after the last allowed one."""
    main = session.client()
    assert main.call(b"CONFIG", b"SET", b"maxclients", b"5") is not None
    seated = [main, *(session.client() for _ in range(4))]
    for client in seated:
        client.call(b"PING")
    rejected = session.client()
    session.hear(rejected, 51)
    session.play(main, 52)


def pause(session: Session) -> None:
    """CLIENT PAUSE holds every request back."""
    main = session.client()
    session.play(main, 53)
    started = time.monotonic()
    session.play(main, 54)
    assert time.monotonic() - started > 0.35


def idle(session: Session) -> None:
    """A silent connection is closed after more than `timeout` seconds."""
    session.play_alone(55)
    started = time.monotonic()
    silent = session.client()
    session.hear(silent, 56)
    assert time.monotonic() - started > 1
    session.play_alone(57)


def output_limit(session: Session) -> None:
    """A reply beyond the limit costs the connection; what was written before may arrive."""
    main = session.client()
    for _ in range(40):
        main.call(b"ADDJOB", b"big", b"x" * 2000, b"0")
    session.play(main, 58)
    reader = session.client()
    session.ask(reader, 59)
    session.played.append(59)
    shown = re.sub(rb"D-.{38}", b"<id>", session.steps[59].answer)
    assert shown.startswith(re.sub(rb"D-.{38}", b"<id>", reader.rest()[:100]))
    assert main.call(b"QLEN", b"big") == 40


@contextmanager
def a_neighbour(main: Client) -> Iterator[None]:
    """Another node that the one under test knows temporarily."""
    with tempfile.TemporaryDirectory() as directory, ServerProcess(Path(directory)) as other:
        assert main.call(b"CLUSTER", b"MEET", b"127.0.0.1", b"%d" % other.port) == Status(b"OK")
        until(main, lambda: b"cluster_reachable_nodes:1" in text(main.call(b"CLUSTER", b"INFO")))
        yield
        client = Client(other)
        node_id = text(client.call(b"CLUSTER", b"MYID"))
        client.finish()
        assert main.call(b"CLUSTER", b"FORGET", node_id) == Status(b"OK")


def text(reply: Reply) -> bytes:
    """A reply that is a text."""
    assert isinstance(reply, bytes)
    return reply


def scan(session: Session) -> None:
    """QSCAN and JSCAN; cursors and the order of elements are each server's own business."""
    main = session.client()
    for number in range(300):
        main.call(b"ADDJOB", b"scan-%03d" % number, b"b%d" % number, b"0", b"RETRY", b"0")
    main.call(b"ADDJOB", b"scan-000", b"x", b"0")
    main.call(b"ADDJOB", b"scan-000", b"y", b"0")
    main.call(b"GETJOB", b"FROM", b"scan-299")

    for first, last in ((1, 1), (3, 8), (10, 10), (12, 17), (19, 25), (32, 34), (37, 37), (42, 45)):
        session.play(main, first, last)
    for number, at_least in ((2, 0), (9, 100), (11, 0), (18, 100), (35, 1), (36, 0), (38, 0), (46, 3)):
        a_page(session, main, number, at_least)
    whole_loop(session, main, range(26, 32), b"QSCAN", b"COUNT", b"50")
    whole_loop(session, main, range(39, 42), b"JSCAN")


def a_page(session: Session, client: Client, number: int, at_least: int) -> None:
    """A part of a loop that began anywhere: a cursor, and enough elements unless it was the last part."""
    session.ask(client, number)
    session.played.append(number)
    cursor, elements = page(client.read())
    assert cursor == b"0" or len(elements) >= at_least, session.steps[number].name
    (recorded,) = session.steps[number].replies()
    kinds = {type(element) for element in page(recorded)[1] + elements}
    assert len(kinds) <= 1, session.steps[number].name


def whole_loop(session: Session, client: Client, numbers: range, *words: bytes) -> None:
    """From cursor 0 to cursor 0: the recorded loop and ours collect the same elements."""
    recorded = [element for n in numbers for reply in session.steps[n].replies() for element in page(reply)[1]]
    collected: list[Reply] = []
    cursor = b"0"
    while True:
        cursor, elements = page(client.call(words[0], cursor, *words[1:]))
        collected += elements
        if cursor == b"0":
            break
    session.played += numbers
    assert sorted(map(anonymous, collected)) == sorted(map(anonymous, recorded))
    assert {type(element) for element in collected} == {type(element) for element in recorded}


def page(reply: Reply) -> tuple[bytes, list[Reply]]:
    """The two parts of a SCAN reply."""
    assert isinstance(reply, list)
    cursor, elements = reply
    assert isinstance(cursor, bytes)
    assert isinstance(elements, list)
    assert cursor.isdigit()
    return cursor, elements


def blocking(session: Session) -> None:
    """Several clients wait for jobs; the notes of the recording tell who."""
    main, c1, c2, c3 = (session.client() for _ in range(4))
    until(main, lambda: b"connected_clients:4" in info(main))
    c1.send(b"GETJOB", b"FROM", b"bq")
    until_blocked(main, b"bq", 1)
    c2.send(b"GETJOB", b"COUNT", b"5", b"FROM", b"bq")
    until_blocked(main, b"bq", 2)
    session.play(main, 1, 4)
    session.hear(c1, 5)
    session.play(main, 6)
    session.hear(c2, 7)

    session.ask(c3, 10)
    until_blocked(main, b"y", 1)
    session.play(main, 8, 9)
    session.hear(c3, 10)
    session.play(main, 11)

    session.ask(c1, 13)
    session.ask(c1, 14)
    until_blocked(main, b"pq", 1)
    session.play(main, 12)
    session.hear(c1, 13)
    session.hear(c1, 14)

    session.play(main, 15)
    session.ask(c2, 19)
    until_blocked(main, b"pout", 1)
    session.play(main, 16, 18)
    session.hear(c2, 19)

    session.play(c1, 20)
    for order, waiter in ((21, 22), (23, 24)):
        session.ask(c1, waiter)
        until_blocked(main, b"t", 1)
        session.play(main, order)
        session.hear(c1, waiter)
    with a_neighbour(main):
        session.ask(c1, 26)
        until_blocked(main, b"t", 1)
        session.play(main, 25)
        session.hear(c1, 26)
        session.play(main, 27)

    c4 = session.client()
    c4.send(b"GETJOB", b"FROM", b"gone")
    until_blocked(main, b"gone", 1)
    assert c4.finish() == b""
    until_blocked(main, b"gone", 0)
    session.play(main, 28, 30)

    for queue, body in ((b"a", b"a0"), (b"b", b"b1"), (b"a", b"a2"), (b"b", b"b3")):
        main.call(b"ADDJOB", queue, body, b"0")
    session.play(main, 31, 33)
    started = time.monotonic()
    session.play(main, 34)
    assert time.monotonic() - started > 0.5


def info(client: Client) -> bytes:
    """The text of INFO clients."""
    return text(client.call(b"INFO", b"clients"))


def until_blocked(client: Client, queue: bytes, count: int) -> None:
    """Return when `count` clients wait for `queue`."""

    def blocked() -> bool:
        stat = client.call(b"QSTAT", queue)
        return isinstance(stat, list) and stat[9] == count

    until(client, blocked)


def until(client: Client, condition: Callable[[], bool]) -> None:
    """Poll until a condition holds; every poll is a round trip to the server under test."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"nothing of the kind happened, {info(client)!r}"


LOCAL = "port 17711\nbind 127.0.0.1\ndir ./\nlogfile log.txt\n"
LOCKED = LOCAL + "requirepass s3cret\nrename-command DEBUG MYDEBUG\n"

SCENARIOS = (
    Scenario(BASICS, ((1, 191),), basics),
    Scenario(SERVER, ((1, 225),), server_commands, LOCAL),
    Scenario(PROTOCOL, ((1, 16),), authentication, LOCKED),
    Scenario(PROTOCOL, ((17, 48),), requests),
    Scenario(PROTOCOL, ((49, 50),), monitor),
    Scenario(PROTOCOL, ((51, 52),), too_many_clients),
    Scenario(PROTOCOL, ((53, 54),), pause),
    Scenario(PROTOCOL, ((55, 57),), idle),
    Scenario(PROTOCOL, ((58, 59),), output_limit),
    Scenario(SCAN, ((1, 46),), scan),
    Scenario(BLOCKING, ((1, 34),), blocking),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: f"{scenario.file[:2]}-{scenario.play.__name__}")
def test_our_node_answers_as_recorded(scenario: Scenario, tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path, config=scenario.config) as server,
        Session(server, load(scenario.file)) as session,
    ):
        scenario.play(session)
        assert sorted(session.played) == list(numbers(scenario.ranges))


@pytest.mark.parametrize("file", FILES)
def test_every_recorded_exchange_has_one_place_where_it_is_replayed(file: str) -> None:
    here = [n for scenario in SCENARIOS if scenario.file == file for n in numbers(scenario.ranges)]
    several = list(numbers(SEVERAL_NODES.get(file, ())))

    assert sorted(here + several) == sorted(load(file))
