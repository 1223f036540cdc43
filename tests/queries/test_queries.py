"""A member runs commands that only read for another member, under the rules that the user has there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from disqued.bus import kinds
from disqued.bus.bigendian import u32
from disqued.core.runtime.slices import MOST_PARTS
from disqued.queries.answering import MOST_BYTES, MOST_STRING_BYTES
from disqued.queries.room import Asker, queries_of
from disqued.resp.replies import Failure, Reply, read_replies
from disqued.resp.writer import request
from disqued.testing.cluster import Cluster, Member
from support.stories import tell

ANYBODY = Asker(b"default", logged_in=False)
OPS = Asker(b"ops", logged_in=True)


def send(one: Member, other: Member, requests: Sequence[Sequence[bytes]], asker: Asker) -> list[bytes]:
    """Have one member ask another; returns a list that its result is added to."""
    received: list[bytes] = []
    state = one.node.state

    def ask() -> None:
        queries_of(state).ask(state.view.peers[other.id], asker, requests, received.append)
        one.flush()

    one.on_input(ask)
    return received


def ask(pair: Cluster, *commands: str, asker: Asker = ANYBODY) -> list[Reply]:
    """The replies of the second member to commands that the first one has it run."""
    first, second = pair.members
    received = send(first, second, [command.encode().split() for command in commands], asker)
    pair.until(lambda: bool(received))
    return read_replies(received, 1 << 20)


def test_member_answers_for_itself(pair: Cluster) -> None:
    _, second = pair.members
    second.admin.add("mail", b"body", "REPLICATE", 1)
    info, queues, stat, none = ask(pair, "INFO", "QSCAN 0 COUNT 10", "qstat mail", "QSTAT gone")
    assert isinstance(info, bytes)
    assert b"queued_jobs:1\r\n" in info
    assert queues == [b"0", [b"mail"]]
    assert isinstance(stat, list)
    assert stat[:4] == [b"name", b"mail", b"len", 1]
    assert none is None


def test_jobs_are_listed_and_shown_with_the_beginning_of_their_bodies(pair: Cluster) -> None:
    _, second = pair.members
    short = second.admin.add("mail", b"x" * MOST_STRING_BYTES, "REPLICATE", 1)
    long = second.admin.add("mail", b"y" * 100_000, "REPLICATE", 1)
    (found,) = ask(pair, "JSCAN 0 COUNT 40 STATE queued")
    assert isinstance(found, list)
    assert (found[0], sorted(found[1])) == (b"0", sorted([short, long]))  # type: ignore[arg-type, type-var]
    for job, body in ((short, b"x" * MOST_STRING_BYTES), (long, [b"y" * MOST_STRING_BYTES, 100_000])):
        (show,) = ask(pair, f"SHOW {job.decode()}")
        assert isinstance(show, list)
        assert show[show.index(b"body") + 1] == body
    assert ask(pair, "SHOW D-00000000-000000000000000000000000-05a1") == [None]


def test_too_long_reply_is_refused(pair: Cluster) -> None:
    _, second = pair.members
    second.admin.add("mail", b"x" * MOST_BYTES, "REPLICATE", 1)
    replies = ask(pair, "JSCAN 0 STATE queued REPLY all", "QSTAT mail")
    assert replies[0] == Failure(b"ERR the reply is too long")
    assert isinstance(replies[1], list)


def test_user_sees_only_jobs_of_its_queues(pair: Cluster) -> None:
    _, second = pair.members
    second.admin.call("ACL", "SETUSER", "ops", "on", ">secret", "~mail", "+jscan", "+show")
    mine, other = (second.admin.add(queue, b"body", "REPLICATE", 1) for queue in ("mail", "billing"))
    found, shown, refused = ask(pair, "JSCAN 0", f"SHOW {mine.decode()}", f"SHOW {other.decode()}", asker=OPS)
    assert found == [b"0", [mine]]
    assert isinstance(shown, list)
    assert isinstance(refused, Failure)


@pytest.mark.parametrize("command", ["CONFIG GET *", "DELJOB x", "SHUTDOWN", "GETJOB FROM mail", "nothing"])
def test_other_commands_are_not_run(pair: Cluster, command: str) -> None:
    assert ask(pair, command) == [Failure(b"ERR this command cannot be run for another member")]


def test_invalid_command_is_refused(pair: Cluster) -> None:
    wrong, invalid, _ = ask(pair, "QSTAT", "QSCAN gone", "QSTAT q")
    assert wrong == Failure(b"ERR wrong number of arguments for 'qstat' command")
    assert invalid == Failure(b"ERR invalid cursor or option name")


def test_user_needs_permission_on_the_member_that_answers(pair: Cluster) -> None:
    first, second = pair.members
    first.admin.call("ACL", "SETUSER", "ops", "on", ">secret", "~*", "+@all")
    assert ask(pair, "INFO", asker=OPS) == [Failure(b"NOAUTH Authentication required.")]
    second.admin.call("ACL", "SETUSER", "ops", "on", ">secret", "~mail:*", "+qscan", "+qstat")
    for queue in ("mail:a", "billing"):
        second.admin.add(queue, b"body", "REPLICATE", 1)
    info, queues, allowed, refused = ask(pair, "INFO", "QSCAN 0", "QSTAT mail:a", "QSTAT billing", asker=OPS)
    assert isinstance(info, Failure)
    assert info.text.startswith(b"NOPERM")
    assert queues == [b"0", [b"mail:a"]]
    assert isinstance(allowed, list)
    assert isinstance(refused, Failure)
    second.admin.call("ACL", "SETUSER", "ops", "off")
    assert ask(pair, "QSCAN 0", asker=OPS) == [Failure(b"NOAUTH Authentication required.")]


def test_password_of_the_member_that_answers_is_not_bypassed(pair: Cluster) -> None:
    """A node without a password cannot have one with a password answer to anybody."""
    _, second = pair.members
    second.admin.call("CONFIG", "SET", "requirepass", "secret")
    assert ask(pair, "INFO") == [Failure(b"NOAUTH Authentication required.")]
    (info,) = ask(pair, "INFO", asker=ANYBODY._replace(logged_in=True))
    assert isinstance(info, bytes)


def test_command_that_takes_long_is_ended(pair: Cluster) -> None:
    """A slice of a command ends after MOST_PARTS parts of its reply, and nobody waits for the others."""
    _, second = pair.members
    for number in range(MOST_PARTS + 1000):
        second.admin.send("PAUSE", f"queue-{number}", "in")
    assert ask(pair, "QSCAN 0 COUNT 100000", "QSTAT queue-1")[0] == Failure(b"ERR the command takes too long")
    pair.run(seconds=1)
    assert second.node.state.long_commands == []
    assert second.node.state.blocked_clients == 0


def test_result_is_bounded(pair: Cluster) -> None:
    """A frame of the bus has at most a megabyte."""
    replies = ask(pair, *["INFO"] * 500)
    assert len(replies) == 500
    assert isinstance(replies[0], bytes)
    assert replies[-1] == Failure(b"ERR too many replies")


def test_member_without_the_feature_or_a_connection_is_not_asked(pair: Cluster) -> None:
    first, second = pair.members
    peer = first.node.state.view.peers[second.id]
    queries = queries_of(first.node.state)
    features, peer.features = peer.features, 0
    assert queries.ask(peer, ANYBODY, [[b"INFO"]], lambda _: None) == 0
    peer.features = features
    assert queries.ask(peer, ANYBODY, [[b"INFO"]], lambda _: None) > 0
    second.crash()
    pair.run(seconds=1)
    assert queries.ask(peer, ANYBODY, [[b"INFO"]], lambda _: None) == 0


def test_forgotten_or_invented_results_are_ignored(pair: Cluster) -> None:
    first, second = pair.members
    received = send(first, second, [[b"INFO"]], ANYBODY)
    queries_of(first.node.state).forget(1)
    writer = second.node.state.bus
    for payload in (b"", b"\0", u32(1) + b"+OK\r\n", u32(77) + b"+OK\r\n"):
        tell(first, writer.other(kinds.RESULT, payload))
    pair.run(seconds=1)
    assert received == []


def test_result_of_another_member_is_ignored() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=5)
    first, second, third = cluster.members
    second.pause()
    received = send(first, second, [[b"QSTAT", b"q"]], ANYBODY)
    tell(first, third.node.state.bus.other(kinds.RESULT, u32(1) + b"+forged\r\n"))
    assert received == []
    second.resume()
    cluster.until(lambda: received == [b"*-1\r\n"])


@pytest.mark.parametrize(
    "payload",
    [b"", b"\0\0\0\1", u32(1) + b"*1\r\n$4\r\nuser\r\n", u32(1) + b"*9999999999\r\n", u32(1) + request([b"a"] * 3)],
)
def test_garbage_is_ignored(pair: Cluster, payload: bytes) -> None:
    first, second = pair.members
    pair.forget_sent()
    tell(second, first.node.state.bus.other(kinds.QUERY, payload))
    pair.run(seconds=1)
    assert pair.sent("RESULT") == []
    assert ask(pair, "QSTAT q") == [None]
