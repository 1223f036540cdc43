"""Error handling of the session, on a scripted network with a virtual clock."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import suppress

import pytest

from disqued.client import adding, calls
from disqued.client.backoff import Backoff
from disqued.client.errors import (
    AuthenticationRequired,
    ClientClosed,
    ClockError,
    ConnectionFailed,
    ConnectionLost,
    NodeLeaving,
    ResponseError,
    response_error,
)
from disqued.client.nodes import Address, parse_address
from disqued.client.session import PIPELINE_REQUESTS, Session, Settings
from disqued.client.transport import BrokenConnectionError, run_now
from disqued.client.wire import Reply

A, B = "10.0.0.1:7711", "10.0.0.2:7711"
ID = b"D-01234567-abcdefghijklmnopqrstuvwx-05a1"
CUT = ConnectionResetError("cut")
LEAVING = response_error("LEAVING This node is leaving the cluster, please connect to a different one")
CLOCK = response_error("CLOCK The clock of this node is 5000 ms ahead of the clocks of the other nodes")
LOADING = response_error("LOADING Disque is loading the dataset in memory")


class ScriptedLink:
    """Replies to each exchange with the next entry of its node's script: a list of replies, or an error after some."""

    def __init__(self, network: Network, address: Address) -> None:
        self._network = network
        self.address = address
        self.node_id = ""
        self.closed = False
        self.usable = True

    def is_usable(self) -> bool:
        return self.usable

    async def exchange(self, request: bytes, replies: int, read_timeout_s: float | None) -> list[Reply]:
        assert read_timeout_s is None or read_timeout_s >= 1, (
            "the client's timeout plus the time that the command may block"
        )
        if request:
            self._network.sent.append((str(self.address), request.split(b"\r\n")[2].decode()))
        answers: list[Reply] = []
        while len(answers) < replies:
            answer = self._network.scripts[str(self.address)].popleft()
            if isinstance(answer, OSError):
                raise BrokenConnectionError(answer, answers)
            answers.append(answer)
        return answers

    def close(self) -> None:
        self.closed = True


class Network:
    """A transport whose nodes follow scripts; a node without a script refuses connections."""

    def __init__(self, **scripts: Sequence[Reply | OSError]) -> None:
        names = {"a": A, "b": B}
        self.scripts = {names[name]: deque(script) for name, script in scripts.items()}
        self.sent: list[tuple[str, str]] = []
        self.waits_s: list[float] = []
        self.links: list[ScriptedLink] = []
        self.in_use = 0

    async def dial(self, address: Address, timeout_s: float | None) -> ScriptedLink:
        assert timeout_s == 1
        if str(address) not in self.scripts:
            raise ConnectionRefusedError("connection refused")
        self.links.append(ScriptedLink(self, address))
        return self.links[-1]

    async def sleep(self, seconds: float) -> None:
        self.waits_s.append(seconds)

    async def acquire(self) -> None:
        self.in_use += 1

    def release(self) -> None:
        self.in_use -= 1


def session(
    network: Network, *nodes: str, attempts: int = 3, discover: bool = False, password: str | None = None
) -> Session:
    settings = Settings(
        nodes=nodes,
        password=password,
        discover=discover,
        connect_timeout_s=1,
        timeout_s=1,
        backoff=Backoff(attempts=attempts),
        rng=random.Random(4),
    )
    return Session(settings, network)


def test_add_is_not_repeated_when_its_reply_is_lost() -> None:
    network = Network(a=[CUT, ID])
    with pytest.raises(ConnectionLost, match=r"ADDJOB.*may have been executed"):
        run_now(session(network, A).perform(adding.add("q", "x")))
    assert network.sent == [(A, "ADDJOB")]
    assert network.in_use == 0


def test_add_is_repeated_on_request() -> None:
    network = Network(a=[CUT, ID])
    assert run_now(session(network, A).perform(adding.add("q", "x", repeat=True))) == ID.decode()
    assert network.sent == [(A, "ADDJOB"), (A, "ADDJOB")]


def test_read_is_repeated_on_a_new_connection() -> None:
    network = Network(a=[CUT, CUT, 7])
    assert run_now(session(network, A).perform(calls.qlen("q"))) == 7
    assert [link.closed for link in network.links] == [True, True, False]


def test_attempts_are_limited() -> None:
    network = Network(a=[CUT] * 5)
    with pytest.raises(ConnectionLost):
        run_now(session(network, A, attempts=3).perform(calls.qlen("q")))
    assert len(network.sent) == 3


def test_connection_failed_names_each_node_when_none_listens() -> None:
    network = Network()
    with pytest.raises(ConnectionFailed, match=r"10\.0\.0\.1:7711: connection refused"):
        run_now(session(network, A, B, attempts=4).perform(adding.add("q", "x")))
    assert network.sent == []
    assert len(network.waits_s) == 3
    assert network.waits_s == sorted(network.waits_s)


def test_dead_node_is_skipped_without_waiting() -> None:
    network = Network(b=[ID])
    assert run_now(session(network, A, B).perform(adding.add("q", "x"))) == ID.decode()
    assert network.waits_s == []


def test_connection_closed_while_idle_is_replaced_before_sending() -> None:
    network = Network(a=[1, ID])
    client = session(network, A)
    run_now(client.perform(calls.qlen("q")))
    network.links[0].usable = False
    assert run_now(client.perform(adding.add("q", "x"))) == ID.decode()
    assert len(network.links) == 2


def test_get_switches_nodes_when_the_node_is_leaving() -> None:
    network = Network(a=[LEAVING], b=[[[b"q", ID, b"x"]]])
    client = session(network, A, B)
    client._nodes.connected(parse_address(A))
    [job] = run_now(client.perform(calls.get("q")))
    assert job.body == b"x"
    assert network.sent == [(A, "GETJOB"), (B, "GETJOB")]
    assert str(client.node) == B


def test_add_on_a_leaving_node_is_not_repeated_but_the_next_uses_another_node() -> None:
    network = Network(a=[LEAVING], b=[ID])
    client = session(network, A, B)
    client._nodes.connected(parse_address(A))
    with pytest.raises(NodeLeaving):
        run_now(client.perform(adding.add("q", "x")))
    assert run_now(client.perform(adding.add("q", "x"))) == ID.decode()
    assert network.sent == [(A, "ADDJOB"), (B, "ADDJOB")]


def test_any_command_is_repeated_at_another_node_when_the_clock_of_the_node_is_ahead() -> None:
    network = Network(a=[CLOCK], b=[ID, ID])
    client = session(network, A, B)
    client._nodes.connected(parse_address(A))
    assert run_now(client.perform(adding.add("q", "x"))) == ID.decode()
    assert run_now(client.perform(adding.add("q", "x"))) == ID.decode()
    assert network.sent == [(A, "ADDJOB"), (B, "ADDJOB"), (B, "ADDJOB")]
    assert str(client.node) == B


def test_error_is_raised_when_the_clocks_of_all_nodes_are_ahead() -> None:
    network = Network(a=[CLOCK] * 3, b=[CLOCK] * 3)
    with pytest.raises(ClockError, match="5000 ms ahead"):
        run_now(session(network, A, B, attempts=4).perform(adding.add("q", "x")))
    assert len(network.sent) == 4


def test_any_command_is_repeated_when_the_node_is_loading() -> None:
    network = Network(a=[LOADING, ID])
    assert run_now(session(network, A).perform(adding.add("q", "x"))) == ID.decode()
    assert len(network.waits_s) == 1


def hello_reply(me: str, **priorities: int) -> Reply:
    hosts = {"a": b"10.0.0.1", "b": b"10.0.0.2"}
    rows: list[Reply] = [
        [name.encode() * 40, b"" if name == me else hosts[name], b"7711", b"%d" % priority]
        for name, priority in priorities.items()
    ]
    return [1, me.encode() * 40, *rows]


def test_nodes_are_learned_and_a_leaving_node_is_avoided() -> None:
    network = Network(a=[hello_reply("a", a=100, b=1)], b=[hello_reply("b", a=100, b=1), 5])
    client = session(network, A, discover=True)
    assert run_now(client.perform(calls.qlen("q"))) == 5
    assert network.sent == [(A, "HELLO"), (B, "HELLO"), (B, "QLEN")]
    assert network.links[0].closed


def test_leaving_node_is_used_when_there_is_no_other() -> None:
    leaving = hello_reply("a", a=100, b=1)
    network = Network(a=[leaving, leaving, 5])
    assert run_now(session(network, A, discover=True).perform(calls.qlen("q"))) == 5


def test_wrong_password_is_raised_at_once() -> None:
    network = Network(a=[response_error("ERR invalid password")])
    with pytest.raises(ResponseError, match="invalid password"):
        run_now(session(network, A, password="wrong").perform(calls.qlen("q")))
    assert network.links[0].closed
    assert network.waits_s == []


def test_missing_password_is_raised_at_once() -> None:
    network = Network(a=[response_error("NOAUTH Authentication required.")])
    with pytest.raises(AuthenticationRequired):
        run_now(session(network, A, discover=True).perform(calls.qlen("q")))


@pytest.mark.parametrize("busy", [LOADING, response_error("ERR max number of clients reached"), CUT])
def test_connection_is_retried_when_the_node_cannot_serve_yet(busy: Reply | OSError) -> None:
    network = Network(a=[busy, hello_reply("a", a=1), 5])
    assert run_now(session(network, A, discover=True).perform(calls.qlen("q"))) == 5
    assert len(network.waits_s) == 1


def test_in_a_pipeline_only_jobs_without_a_reply_are_unknown() -> None:
    network = Network(a=[ID, response_error("PAUSED Queue paused in input, try later"), CUT])
    first, paused, lost, last = run_now(session(network, A).perform_many(adding.add_many("q", "wxyz")))
    assert first == ID.decode()
    assert [type(error).__name__ for error in (paused, lost, last)] == [
        "QueuePaused",
        "ConnectionLost",
        "ConnectionLost",
    ]


def test_in_a_pipeline_idempotent_calls_without_a_reply_are_repeated() -> None:
    network = Network(a=[1, CUT, 2, 3])
    assert run_now(session(network, A).perform_many([calls.qlen("q")] * 3)) == [1, 2, 3]


def test_pipeline_without_nodes_returns_an_error_for_each_call() -> None:
    results = run_now(session(Network(), A, attempts=1).perform_many(adding.add_many("q", "xy")))
    assert [type(result) for result in results] == [ConnectionFailed, ConnectionFailed]


def test_long_pipeline_is_sent_in_batches() -> None:
    count = 2 * PIPELINE_REQUESTS + 1
    network = Network(a=[ID] * count)
    assert len(run_now(session(network, A).perform_many(adding.add_many("q", ["x"] * count)))) == count
    assert len(network.sent) == 3
    assert len(network.links) == 1


def test_closed_session_raises_client_closed() -> None:
    network = Network(a=[1])
    client = session(network, A)
    run_now(client.perform(calls.qlen("q")))
    client.close()
    assert network.links[0].closed
    with pytest.raises(ClientClosed):
        run_now(client.perform(calls.qlen("q")))


def test_session_moves_to_a_node_that_is_known_and_in_order() -> None:
    network = Network(a=[hello_reply("a", a=1, b=1), hello_reply("a", a=1, b=1)], b=[hello_reply("b", a=1, b=1), 5])
    client = session(network, A, discover=True)
    moved = run_now(client.session_at("b" * 8))
    assert moved is not None
    assert run_now(moved.perform(calls.qlen("q"))) == 5
    assert network.sent == [(A, "HELLO"), (A, "HELLO"), (B, "HELLO"), (B, "QLEN")]
    assert (str(moved.node), str(client.node)) == (B, A), "other calls of the client stay where they are"
    assert network.in_use == 0
    client.close()
    with pytest.raises(ClientClosed):
        run_now(moved.perform(calls.qlen("q")))


@pytest.mark.parametrize(
    ("answer_of_a", "script_of_b"),
    [
        (hello_reply("a", a=1), []),
        (hello_reply("a", a=1, b=10), []),
        (hello_reply("a", a=1, b=100), []),
        (hello_reply("a", a=1, b=1), None),
        (hello_reply("a", a=1, b=1), [CUT]),
        (hello_reply("a", a=1, b=1), [LOADING]),
        (hello_reply("a", a=1, b=1), [hello_reply("b", a=1, b=100)]),
        (hello_reply("a", a=1, b=1), [hello_reply("c", c=1)]),
        (CUT, []),
    ],
    ids=["unknown", "suspected", "leaving", "down", "lost", "loading", "says leaving", "another node", "no answer"],
)
def test_session_does_not_move_to_a_node_that_is_not_in_order(
    answer_of_a: Reply | OSError, script_of_b: list[Reply | OSError] | None
) -> None:
    known = hello_reply("a", a=1)
    network = Network(a=[known, answer_of_a], **({} if script_of_b is None else {"b": script_of_b}))
    client = session(network, A, discover=True)
    assert run_now(client.session_at("b" * 8)) is None
    assert all(link.closed for link in network.links if str(link.address) == B)
    assert network.in_use == 0


def shared_hello(me: str, ports: dict[str, int]) -> Reply:
    rows: list[Reply] = [
        [name.encode() * 40, b"" if name == me else b"127.0.0.1", b"%d" % port, b"1"] for name, port in ports.items()
    ]
    return [1, me.encode() * 40, *rows]


def test_session_stays_with_its_node_when_several_nodes_share_an_address() -> None:
    ports = {"x": 7712, "y": 7713}
    network = Network(a=[shared_hello("x", ports), 1, shared_hello("y", ports)])
    network.scripts["10.0.0.1:7712"] = deque([shared_hello("x", ports), 2, 3])
    client = session(network, A, discover=True)
    assert run_now(client.perform(calls.qlen("q"))) == 1
    network.links[0].usable = False  # stands for a connection that is in use: the next call needs a further one
    assert run_now(client.perform(calls.qlen("q"))) == 2
    assert str(client.node) == "10.0.0.1:7712"
    assert client.node_id == "x" * 40
    assert network.links[1].closed, "the connection to the other node"
    assert run_now(client.perform(calls.qlen("q"))) == 3


def test_session_uses_the_shared_address_when_the_own_one_leads_elsewhere() -> None:
    ports = {"x": 7712, "y": 7713}
    network = Network(a=[shared_hello("x", ports), 1, shared_hello("y", ports), 2])
    network.scripts["10.0.0.1:7712"] = deque([shared_hello("z", ports)])
    client = session(network, A, discover=True)
    assert run_now(client.perform(calls.qlen("q"))) == 1
    network.links[0].usable = False
    assert run_now(client.perform(calls.qlen("q"))) == 2
    assert str(client.node) == A


# --- calls ahead of their replies -------------------------------------------------------------------------------------


def in_turn(answers: AsyncGenerator[object, None]) -> Iterator[object]:
    with suppress(StopAsyncIteration):
        while True:
            yield run_now(answers.__anext__())


def test_next_call_is_sent_before_the_reply_to_the_previous_one_is_seen() -> None:
    network = Network(a=[1, response_error("ERR bad"), 3])
    sent_so_far = []
    answers = []
    for answer in in_turn(session(network, A).perform_ahead([calls.qlen("q")] * 3)):
        sent_so_far.append(len(network.sent))
        answers.append(answer)
    assert sent_so_far == [1, 2, 2], "two at first, one more for each reply"
    assert [type(answer) for answer in answers] == [int, ResponseError, int]
    assert not network.links[0].closed
    assert network.in_use == 0


def test_calls_ahead_of_a_lost_reply_are_not_repeated() -> None:
    network = Network(a=[1, CUT])
    answers = in_turn(session(network, A).perform_ahead([calls.qlen("q")] * 3))
    assert next(answers) == 1
    with pytest.raises(ConnectionLost, match="QLEN"):
        next(answers)
    assert len(network.sent) == 2
    assert network.links[0].closed
    assert network.in_use == 0


def test_connection_with_replies_on_their_way_is_closed_when_the_caller_stops() -> None:
    network = Network(a=[1, 2])
    client = session(network, A)
    answers = client.perform_ahead([calls.qlen("q")] * 2)
    assert run_now(answers.__anext__()) == 1
    run_now(answers.aclose())
    assert network.links[0].closed
    assert network.in_use == 0


def test_another_node_is_used_after_calls_ahead_to_a_leaving_node() -> None:
    network = Network(a=[LEAVING, LEAVING], b=[1])
    client = session(network, A, B)
    client._nodes.connected(parse_address(A))
    answers = list(in_turn(client.perform_ahead([adding.add("q", "x")] * 2)))
    assert [type(answer) for answer in answers] == [NodeLeaving, NodeLeaving]
    assert run_now(client.perform(calls.qlen("q"))) == 1
