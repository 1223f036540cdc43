"""The durability barrier: replies that depend on a change wait until it is safe, all other output does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disqued.core.host import disk
from disqued.testing.local import LocalClient, LocalNode, encode
from support.logging_node import finish_all, forgets, hang, keeps, logging_node, synced, written

POLICIES = ("everysec", "always", "no")


@pytest.fixture
def local() -> LocalNode:
    """A node whose disk hangs on writes."""
    local = logging_node()
    local.host.disk.hold(disk.APPEND)
    return local


def send_together(local: LocalNode, *sent: tuple[LocalClient, tuple[bytes | str | int, ...]]) -> None:
    """Send the requests of several clients in one turn of the event loop."""
    for client, words in sent:
        local.node.client_bytes(client.session, encode(*words), local.now_ms, 0)
    local.flush()


# --- replies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_an_added_job_is_confirmed_when_it_is_written(policy: str) -> None:
    local = logging_node(policy)
    client = local.client()
    local.host.disk.hold(disk.APPEND)
    client.send("ADDJOB", "mail", "body", 0)
    assert client.silent
    local.finish()
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    assert keeps(written(local), job_id)


def test_with_always_it_is_confirmed_when_it_is_synced() -> None:
    local = logging_node("always")
    client = local.client()
    local.host.disk.hold(disk.SYNC)
    client.send("ADDJOB", "mail", "body", 0)
    assert len(written(local)) > 0
    assert client.silent
    local.finish()
    job_id = client.next_reply()
    assert isinstance(job_id, bytes)
    assert keeps(synced(local), job_id)


@pytest.mark.parametrize("command", ["ACKJOB", "FASTACK", "DELJOB"])
def test_the_end_of_a_job_is_confirmed_when_it_is_written(command: str) -> None:
    local = logging_node()
    client = local.client()
    job_id = client.add("mail")
    local.host.disk.hold(disk.APPEND)
    client.send(command, job_id)
    assert client.silent
    local.finish()
    assert client.next_reply() == 1
    assert forgets(written(local), job_id)


@pytest.mark.parametrize("command", ["ACKJOB", "FASTACK", "DELJOB"])
@pytest.mark.parametrize("when", ["in the same turn", "later"])
def test_a_repeated_command_waits_until_the_first_change_is_safe(command: str, when: str) -> None:
    local = logging_node()
    first, second = local.client(), local.client()
    job_id = first.add("mail")
    local.host.disk.hold(disk.APPEND)
    if when == "later":
        first.send(command, job_id)
        second.send(command, job_id)
    else:
        send_together(local, (first, (command, job_id)), (second, (command, job_id)))
    assert first.silent
    assert second.silent
    local.finish()
    assert [first.next_reply(), second.next_reply()] == [1, 0]


def test_a_pause_is_confirmed_when_it_is_written(local: LocalNode) -> None:
    client = local.client()
    client.send("PAUSE", "mail", "in")
    assert client.silent
    local.finish()
    assert client.next_reply() == b"in"
    assert encode("PAUSE", "mail", "in") in written(local)


def test_replies_of_one_client_keep_their_order(local: LocalNode) -> None:
    client = local.client()
    hang(client)
    client.send("QLEN", "mail")
    client.send("ADDJOB", "mail", "second", 0)
    client.send("QLEN", "mail")
    assert client.silent
    local.host.disk.finish(1)
    local.deliver_disk_work()
    first, length = client.replies()
    assert isinstance(first, bytes)
    assert length == 1
    local.finish()
    second, length = client.replies()
    assert isinstance(second, bytes)
    assert length == 2


def test_a_request_in_the_turn_in_which_the_disk_finishes_is_answered_after_held_replies(local: LocalNode) -> None:
    client = local.client()
    hang(client)
    local.host.disk.finish()
    for work in local.host.disk.take_finished():
        local.node.disk_done(work, local.now_ms)
    send_together(local, (client, ("QLEN", "mail")))
    job_id, length = client.replies()
    assert isinstance(job_id, bytes)
    assert length == 1


def test_a_held_client_does_not_wait_for_the_changes_of_other_clients(local: LocalNode) -> None:
    client, other = local.client(), local.client()
    hang(client)
    hang(other)
    client.send("QLEN", "mail")
    local.host.disk.finish(1)
    local.deliver_disk_work()
    assert len(client.replies()) == 2
    assert other.silent


def test_a_client_that_only_reads_is_served_while_the_disk_hangs(local: LocalNode) -> None:
    adder, reader = local.client(), local.client()
    hang(adder)
    assert reader.call("QLEN", "mail") == 1
    assert reader.call("PING") == b"PONG"
    assert len(reader.take("mail")) == 1


def test_a_client_that_only_reads_is_served_in_the_turn_of_a_change(local: LocalNode) -> None:
    adder, reader = local.client(), local.client()
    send_together(local, (adder, ("ADDJOB", "mail", "body", 0)), (reader, ("QLEN", "mail")))
    assert adder.silent
    assert reader.next_reply() == 1


def test_a_monitor_sees_commands_while_the_disk_hangs(local: LocalNode) -> None:
    monitor, adder = local.client(), local.client()
    assert monitor.call("MONITOR") == b"OK"
    hang(adder)
    assert b'"ADDJOB" "mail"' in monitor.received


def test_a_change_of_a_client_without_replies_holds_nothing_back(local: LocalNode) -> None:
    client = local.client()
    client.send("CLIENT", "REPLY", "OFF")
    client.send("ADDJOB", "mail", "body", 0)
    assert client.call("CLIENT", "REPLY", "ON") == b"OK"


# --- clients that wait for jobs ---------------------------------------------------------------------------------------


def test_a_worker_that_waits_gets_the_job_with_the_confirmation(local: LocalNode) -> None:
    worker, adder = local.client(), local.client()
    worker.send("GETJOB", "FROM", "mail")
    hang(adder)
    assert worker.replies() == []
    local.finish()
    job_id = adder.next_reply()
    assert worker.next_reply() == [[b"mail", job_id, b"body"]]


@pytest.mark.parametrize("waits", [True, False])
def test_an_at_most_once_job_is_delivered_when_its_end_is_logged(waits: bool) -> None:
    local = logging_node()
    worker, adder = local.client(), local.client()
    disk_in_memory = local.host.disk
    if waits:
        worker.send("GETJOB", "FROM", "mail")
        disk_in_memory.hold(disk.APPEND)
        adder.send("ADDJOB", "mail", "body", 0, "RETRY", 0)
    else:
        adder.add("mail", "body", "RETRY", 0)
        disk_in_memory.hold(disk.APPEND)
        worker.send("GETJOB", "FROM", "mail")
    assert worker.silent
    local.finish()
    ((_queue, job_id, _body),) = worker.next_reply()  # type: ignore[misc, str-unpack]
    assert isinstance(job_id, bytes)
    assert forgets(written(local), job_id)


def test_a_getjob_times_out_while_the_disk_hangs(local: LocalNode) -> None:
    worker, adder = local.client(), local.client()
    worker.send("GETJOB", "TIMEOUT", 50, "FROM", "news")
    hang(adder)
    local.run(milliseconds=200)
    assert worker.next_reply() is None


# --- clients that disconnect -----------------------------------------------------------------------------------------


def test_quit_waits_for_the_replies_before_it(local: LocalNode) -> None:
    client = local.client()
    hang(client)
    client.send("ACKJOB", "D-5ca1ab1e-AAAAAAAAAAAAAAAAAAAAAAAA-05a1")
    client.send("QUIT")
    local.host.disk.finish(1)
    local.deliver_disk_work()
    assert isinstance(client.next_reply(), bytes)
    local.finish()
    assert client.replies() == [0, b"OK"]
    assert client.closed


def test_a_client_that_quits_between_two_groups_loses_no_reply(local: LocalNode) -> None:
    client = local.client()
    hang(client)
    client.send("ADDJOB", "mail", "second", 0)
    client.send("QUIT")
    local.host.disk.finish(1)
    local.deliver_disk_work()
    assert len(client.replies()) == 1
    assert not client.closed
    local.finish()
    assert len(client.replies()) == 2
    assert client.closed


def test_held_output_of_a_client_that_disconnected_is_dropped(local: LocalNode) -> None:
    client, other = local.client(), local.client()
    hang(client)
    hang(other)
    assert client.session.output_bytes() > 0
    client.disconnect()
    assert client.session.output_bytes() == 0
    finish_all(local)
    assert client.received == b""
    assert isinstance(other.next_reply(), bytes)
    assert local.barrier_empty


def test_a_client_that_is_killed_while_it_waits_gets_no_reply(local: LocalNode) -> None:
    client, admin = local.client(), local.client()
    hang(client)
    assert admin.call("CLIENT", "KILL", "ID", int(client.session.number)) == 1
    assert client.closed
    local.finish()
    assert client.received == b""


def test_held_output_counts_as_output_of_the_client(local: LocalNode) -> None:
    client, admin = local.client(), local.client()
    hang(client)
    before = client.session.output_bytes()
    for _ in range(100):
        client.send("QLEN", "mail")
    assert client.session.output_bytes() == before + 100 * len(b":1\r\n")
    clients = admin.call("CLIENT", "LIST")
    assert isinstance(clients, bytes)
    assert b" omem=%d " % client.session.output_bytes() in clients
    local.finish()
    assert client.session.output_bytes() == 0


def test_much_held_output_counts_as_memory_until_it_is_released(local: LocalNode) -> None:
    clients = [local.client() for _ in range(3)]
    for client in clients:
        hang(client)
    memory = local.node.state.lifecycle.memory
    local.run(milliseconds=200)
    before = memory.buffer_bytes
    text = "X" * 1000
    for client in clients:
        client.send_bytes(100 * encode("PING", text))
    local.run(milliseconds=200)
    assert memory.buffer_bytes - before > 3 * 100 * 1000
    clients[0].disconnect()
    local.run(milliseconds=200)
    assert 2 * 100 * 1000 < memory.buffer_bytes - before < 3 * 100 * 1000
    finish_all(local)
    local.run(milliseconds=200)
    assert memory.buffer_bytes <= before
    assert local.node.state.ready.slow == {}


def test_unwritten_records_count_as_memory(local: LocalNode) -> None:
    memory = local.node.state.lifecycle.memory
    local.run(milliseconds=200)
    before = memory.buffer_bytes
    client = local.client()
    client.send("ADDJOB", "mail", "body" * 100_000, 0)
    local.run(milliseconds=300)
    assert memory.buffer_bytes - before > 400_000
    finish_all(local)
    local.run(milliseconds=300)
    assert memory.buffer_bytes <= before + 4096  # wake times


def test_a_group_without_bytes_is_safe_when_the_groups_before_it_are(local: LocalNode) -> None:
    """The job was added and acknowledged in one turn, which leaves no record."""
    client = local.client()
    local.node.client_bytes(client.session, encode("ADDJOB", "mail", "body", 0), local.now_ms, 0)
    (job,) = local.node.state.lifecycle.table.jobs()
    local.node.client_bytes(client.session, encode("ACKJOB", job.id), local.now_ms, 0)
    local.flush()
    assert client.silent
    local.finish()
    assert client.replies() == [job.id, 1]


# --- random histories -------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 2)),
        st.tuples(st.just("read"), st.integers(0, 2)),
        st.tuples(st.just("acknowledge"), st.integers(0, 2)),
        st.tuples(st.just("finish"), st.integers(1, 3)),
        st.tuples(st.just("pass"), st.integers(1, 1500)),
        st.tuples(st.just("policy"), st.sampled_from(POLICIES)),
    ),
    max_size=40,
)


class Expecting:
    """A client, with its requests and the replies to them."""

    def __init__(self, local: LocalNode) -> None:
        self.local = local
        self.client = local.client()
        self.asked: list[tuple[str, bytes]] = []
        self.answered = 0
        self.changes_asked = 0

    def ask(self, kind: str, what: bytes, *words: bytes | str | int) -> None:
        self.asked.append((kind, what))
        self.client.send(*words)

    def check(self, *, strict: bool) -> list[bytes]:
        """Match new replies with requests, and find their changes on disk. Returns the IDs of added jobs."""
        data = synced(self.local) if strict else written(self.local)
        added = []
        for reply in self.client.replies():
            kind, what = self.asked[self.answered]
            self.answered += 1
            match kind:
                case "add":
                    assert isinstance(reply, bytes)
                    assert reply in data
                    added.append(reply)
                case "acknowledge":
                    assert reply in {0, 1}
                    assert forgets(data, what)
                case "read":
                    assert what.decode() in str(reply)
        return added

    @property
    def waits_for_a_change(self) -> bool:
        return any(kind != "read" for kind, _ in self.asked[self.answered :])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(POLICIES), STEPS)
def test_in_random_histories_each_reply_comes_in_order_and_when_its_change_is_safe(
    policy: str, steps: list[tuple[str, int | str]]
) -> None:
    local = logging_node(policy)
    local.host.disk.hold(disk.APPEND, disk.SYNC)
    clients = [Expecting(local) for _ in range(3)]
    known: list[bytes] = []
    ready = local.node.state.ready
    tightened = False  # since a change to always, confirmed changes may be unsafe again: their clients wait for a sync
    for number, (step, value) in enumerate(steps):
        # Replies that are released now follow the policy of now or the one before: the stricter one is checked below.
        strict = local.config.appendfsync == "always"
        if step == "policy":
            tightened = tightened or (value == "always" and not strict)
            strict = strict and value == "always"
            local.client().call("CONFIG", "SET", "appendfsync", value)
        elif step == "pass":
            local.run(milliseconds=int(value))
        elif step == "finish":
            local.finish(int(value))
        else:
            client = clients[int(value)]
            if step == "add":
                if not local.node.state.write_refusal:
                    client.ask("add", b"", "ADDJOB", "mail", "body", 0)
            elif step == "read":
                client.ask("read", b"nonsense%d" % number, b"nonsense%d" % number)
            elif known:
                job_id = known[number % len(known)]
                client.ask("acknowledge", job_id, "ACKJOB", job_id)
        tightened = tightened and ready.safe < ready.logged
        for client in clients:
            known += client.check(strict=strict)
            assert tightened or client.waits_for_a_change or client.answered == len(client.asked)
    local.host.disk.repair()
    local.finish()
    local.run(seconds=3)
    for client in clients:
        client.check(strict=local.config.appendfsync == "always")
        assert client.answered == len(client.asked)
