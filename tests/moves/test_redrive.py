"""REDRIVE: dead letters return to where they come from, on all nodes, at a rate that holds for the cluster."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.bus import kinds
from disqued.moves.redrivetask import MalformedError, RedriveMessage, Task, unpack
from disqued.moves.redriving import MOST_TASKS
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode
from moves.test_dead_letters import DEAD, MAIL, fail, jobs_in, limited
from replication.adding import adding, id_of


def dead_letters(client: LocalClient, count: int, reason: str = "poison", queue: bytes = MAIL) -> list[bytes]:
    """Make dead letters, and return the IDs of the jobs that they come from."""
    limited(client, "limit", 1, name="*")
    origins = []
    for _ in range(count):
        client.add(queue.decode(), "body", "PRIORITY", 3)
        origins.append(fail(client, "REASON", reason, queue=queue))
    return origins


def status(client: LocalClient, queue: bytes = DEAD) -> dict[str, object]:
    reply = client.call("REDRIVE", queue, "STATUS")
    assert isinstance(reply, list)
    return {str(name, "ascii"): value for name, value in zip(reply[::2], reply[1::2], strict=True)}  # type: ignore[arg-type]


def test_dead_letters_return_and_have_their_full_limit_again(local: LocalNode, client: LocalClient) -> None:
    origins = dead_letters(client, 5)
    assert client.call("REDRIVE", DEAD) == b"started"
    local.run(seconds=2)
    back = jobs_in(client, MAIL)
    assert (len(back), jobs_in(client, DEAD)) == (5, [])
    shown = client.show(back[0])
    assert shown["origin-id"] in origins
    assert ("dead-since" in shown, shown["nacks"], shown["priority"], shown["reason"]) == (False, 0, 3, b"poison")
    assert {name: status(client)[name] for name in ("state", "moved", "left", "failed")} == {
        "state": b"done",
        "moved": 5,
        "left": 0,
        "failed": 0,
    }


def test_jobs_that_fail_again_are_left_alone_until_the_next_redrive(local: LocalNode, client: LocalClient) -> None:
    dead_letters(client, 2)
    local.run(seconds=1)
    client.call("REDRIVE", DEAD, "RATE", 1)
    local.run(milliseconds=1100)
    fail(client)
    local.run(seconds=4)
    assert status(client)["state"] == b"done"
    assert len(jobs_in(client, DEAD)) == 1


@pytest.mark.parametrize(
    ("options", "moved"),
    [
        (("REASON", "time*"), 2),
        (("COUNT", 3), 3),
        (("TO", "other"), 6),
        (("OLDER", 5), 4),
        (("REASON", "none"), 0),
    ],
)
def test_options_choose_the_jobs(
    local: LocalNode, client: LocalClient, options: tuple[str | int, ...], moved: int
) -> None:
    dead_letters(client, 4)
    local.run(seconds=10)
    dead_letters(client, 2, reason="timeout")
    client.call("REDRIVE", DEAD, *options)
    local.run(seconds=3)
    target = b"other" if options[0] == "TO" else MAIL
    assert (len(jobs_in(client, target)), status(client)["state"]) == (moved, b"done")


def test_the_rate_bounds_how_fast_jobs_move(local: LocalNode, client: LocalClient) -> None:
    dead_letters(client, 60)
    client.call("REDRIVE", DEAD, "RATE", 10)
    local.run(seconds=3)
    assert 25 <= len(jobs_in(client, MAIL)) <= 42
    assert client.call("REDRIVE", DEAD, "CANCEL") == b"OK"
    moved = len(jobs_in(client, MAIL))
    local.run(seconds=3)
    assert (len(jobs_in(client, MAIL)), status(client)["state"]) == (moved, b"cancelled")


def test_jobs_without_an_origin_stay_and_are_counted(local: LocalNode, client: LocalClient) -> None:
    client.add("mail.dead")
    dead_letters(client, 1)
    client.call("REDRIVE", DEAD)
    local.run(seconds=2)
    assert (status(client)["failed"], len(jobs_in(client, DEAD))) == (1, 1)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("RATE", 0), "ERR RATE must be between 1 and"),
        (("COUNT", "x"), "ERR COUNT must be between 1 and"),
        (("TO", "mail.dead"), "ERR The jobs are in that queue already"),
        (("FAST",), "ERR syntax error"),
        (("CANCEL",), "ERR no REDRIVE of that queue is running"),
        (("REASON", "x" * 257), "ERR the pattern of REASON must have at most 256 bytes"),
    ],
)
def test_wrong_requests_are_refused(client: LocalClient, words: tuple[str | int, ...], error: str) -> None:
    assert str(client.call("REDRIVE", DEAD, *words)).startswith(error)
    assert client.call("REDRIVE", DEAD, "STATUS") is None


def test_a_second_redrive_of_the_queue_is_refused_while_one_runs(local: LocalNode, client: LocalClient) -> None:
    dead_letters(client, 50)
    client.call("REDRIVE", DEAD, "RATE", 1)
    local.run(seconds=1)
    assert str(client.call("REDRIVE", DEAD)).startswith("ERR a REDRIVE of that queue is running")


# --- in a cluster -----------------------------------------------------------------------------------------------------


def spread(cluster: Cluster, count: int) -> None:
    """Make dead letters on all nodes."""
    limited(cluster.members[0].admin, "limit", 1, name="*")
    cluster.run(seconds=1)
    for number in range(count):
        id_of(cluster, adding(cluster, "REPLICATE", 2, by=number % 3 + 1))
        fail(cluster.members[number % 3].client())
    cluster.run(seconds=2)


def waiting(cluster: Cluster, queue: bytes) -> int:
    return sum(len(jobs_in(member.client(), queue)) for member in cluster.members if member.running)


def test_all_nodes_move_theirs_and_every_node_knows_how_far_it_is(cluster: Cluster) -> None:
    spread(cluster, 30)
    assert waiting(cluster, DEAD) == 30
    cluster.members[1].admin.call("REDRIVE", DEAD)
    cluster.run(seconds=3)
    assert (waiting(cluster, DEAD), waiting(cluster, MAIL)) == (0, 30)
    assert [status(member.admin)["moved"] for member in cluster.members] == [30, 30, 30]


def test_any_node_ends_a_redrive_and_the_rate_holds_for_all_together(cluster: Cluster) -> None:
    spread(cluster, 30)
    cluster.members[1].admin.call("REDRIVE", DEAD, "RATE", 5)
    cluster.run(seconds=2)
    assert 5 <= waiting(cluster, MAIL) <= 17
    assert cluster.members[2].admin.call("REDRIVE", DEAD, "CANCEL") == b"OK"
    cluster.run(milliseconds=50)
    moved = waiting(cluster, MAIL)
    cluster.run(seconds=5)
    assert waiting(cluster, MAIL) == moved
    assert status(cluster.members[1].admin)["state"] == b"cancelled"


def test_a_redrive_ends_with_the_node_that_runs_it_and_can_be_started_again(cluster: Cluster) -> None:
    spread(cluster, 30)
    runner, other, _ = cluster.members
    runner.admin.call("REDRIVE", DEAD, "RATE", 5)
    cluster.run(seconds=2)
    runner.crash()
    cluster.run(seconds=15)
    left = waiting(cluster, DEAD)
    assert left > 0
    assert other.admin.call("REDRIVE", DEAD) == b"started"
    cluster.run(seconds=15)
    assert waiting(cluster, DEAD) == 0


@pytest.mark.parametrize("by", [0, 1])
def test_jobs_that_a_node_with_a_fast_clock_created_return_as_well(cluster: Cluster, by: int) -> None:
    """Seed 210: its dead letters seemed to have arrived after the task began, by the clock of the node that ran it."""
    fast = cluster.members[0]
    fast.skew_ms = 600_000
    fast.jump()
    cluster.run(seconds=1)
    spread(cluster, 9)
    cluster.members[by].admin.call("REDRIVE", DEAD)
    cluster.run(seconds=3)
    assert (waiting(cluster, DEAD), waiting(cluster, MAIL)) == (0, 9)


def test_jobs_that_fail_again_on_a_node_with_a_fast_clock_are_redriven_once(cluster: Cluster) -> None:
    fast, slow, _ = cluster.members
    fast.skew_ms = 600_000
    fast.jump()
    cluster.run(seconds=1)
    spread(cluster, 9)
    slow.admin.call("REDRIVE", DEAD)
    failed = 0
    for _ in range(40):
        worker = fast.client()
        worker.send("GETJOB", "NOHANG", "FROM", MAIL)
        cluster.run(milliseconds=100)
        reply = worker.next_reply()
        if isinstance(reply, list):
            assert isinstance(reply[0], list)
            worker.call("NACK", reply[0][1])  # type: ignore[arg-type]
            failed += 1
    assert failed > 0
    assert waiting(cluster, DEAD) == failed
    assert status(slow.admin)["state"] == b"done"


def test_bad_frames_are_ignored(cluster: Cluster) -> None:
    sender, receiver, _ = cluster.members
    link = sender.node.state.view.peers[receiver.id].link
    assert link is not None
    good = RedriveMessage(b"grant", Task(DEAD, b"", b"", 0, 1), 5).pack()
    unacceptable = [
        RedriveMessage(b"report", Task(DEAD, b"", b"", 0, 1), left=1 << 31),
        RedriveMessage(b"grant", Task(b"q" * 70_000, b"", b"", 0, 1), 5),
        RedriveMessage(b"grant", Task(DEAD, b"", b"*" * 300, 0, 1), 5),
    ]
    malformed = [b"", b"\xff\xff\xff\xff", good[:-1], good + good, good.replace(b"grant", b"giant")]
    for payload in (*malformed, *[message.pack() for message in unacceptable]):
        sender.node.ready.put(link, sender.node.state.bus.other(kinds.REDRIVE, payload))
    sender.flush()
    cluster.run(seconds=1)
    assert sum("Ignoring a REDRIVE" in text for _, text in receiver.host.log_lines) == 8


def test_names_that_no_frame_can_have_are_refused(client: LocalClient) -> None:
    for words in (["x" * 70_000], ["mail.dead", "TO", "x" * 70_000]):
        assert client.raw("REDRIVE", *words) == b"-ERR REDRIVE takes names of at most 65536 bytes\r\n"


def test_a_task_that_runs_can_be_ended_however_many_others_are_started(client: LocalClient) -> None:
    for number in range(MOST_TASKS):
        assert client.call("REDRIVE", f"q{number}") == b"started"
    assert client.raw("REDRIVE", "another").startswith(b"-ERR 256 REDRIVEs run on this node")
    assert client.call("REDRIVE", "q0", "CANCEL") == b"OK"
    assert client.call("REDRIVE", "another") == b"started"
    assert client.call("REDRIVE", "q0", "STATUS") is None
    assert client.call("REDRIVE", "q1", "CANCEL") == b"OK"


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader_of_frames(payload: bytes) -> None:
    try:
        unpack(payload)
    except MalformedError:
        return
    raise AssertionError(payload)
