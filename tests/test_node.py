"""What the node does around the commands: which clients may run one, when, with which reply, and which are closed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from disqued.config import Config
from disqued.config.kinds import MAX_NUMBER
from disqued.core.host.host import ProcessFacts
from disqued.core.memory.accounting import BASE_BYTES, CLIENT_BYTES
from disqued.core.timers.alarm import Alarm
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalClient, LocalNode, encode


def guarded(password: bytes = b"secret") -> LocalNode:
    """A node with a password."""
    config = Config()
    config.requirepass = password
    return LocalNode(config)


def set_memory(client: LocalClient, used_percent: float) -> None:
    """Choose `maxmemory` so that the node uses this part of it."""
    used_bytes = int(client.local.node.state.lifecycle.memory.used_bytes)
    assert client.call("CONFIG", "SET", "maxmemory", int(used_bytes / used_percent * 100)) == b"OK"


# --- requests that do not run -----------------------------------------------------------------------------------------


def test_an_unknown_command_is_named_as_it_was_sent(client: LocalClient) -> None:
    assert client.raw("Frobnicate\r\nnow", 1) == b"-ERR unknown command 'Frobnicate  now'\r\n"
    assert client.raw("") == b"-ERR unknown command ''\r\n"


@pytest.mark.parametrize("words", [["QLEN"], ["qpeek", "a", "1", "b"], ["ADDJOB", "a", "b"], ["TIME", "now"]])
def test_a_wrong_number_of_words_is_refused(client: LocalClient, words: list[str]) -> None:
    expected = f"ERR wrong number of arguments for '{words[0].lower()}' command"
    assert str(client.call(*words)) == expected


def test_names_of_commands_may_be_written_in_any_case(client: LocalClient) -> None:
    assert [client.call(name, "x") for name in ("ping", "PING", "PinG")] == [b"x"] * 3


def test_requests_after_a_refused_one_run(client: LocalClient) -> None:
    client.send_bytes(encode("PING", 1) + encode("NOSUCH") + encode("QLEN") + encode("PING", 2))
    first, unknown, arity, second = client.replies()
    assert (first, second) == (b"1", b"2")
    assert "unknown command" in str(unknown)
    assert "wrong number" in str(arity)


def test_invalid_request_closes_the_connection_with_one_error(local: LocalNode, client: LocalClient) -> None:
    other = local.client()
    client.send_bytes(encode("PING") + b"*1\r\nPING\r\n" + encode("PING"))
    assert client.received == b"+PONG\r\n-ERR Protocol error: expected '$', got 'P'\r\n"
    assert client.closed
    assert other.call("PING") == b"PONG"


def test_quit_replies_ok_and_later_requests_do_not_run(client: LocalClient) -> None:
    client.send_bytes(encode("quit", "whatever") + encode("ADDJOB", "mail", "body", 0))
    assert client.replies() == [b"OK"]
    assert client.closed
    assert client.local.node.state.lifecycle.table.count == 0


def test_while_loading_only_a_few_commands_run(local: LocalNode, client: LocalClient) -> None:
    local.node.state.loading = True
    assert str(client.call("ADDJOB", "mail", "body", 0)) == "LOADING Disque is loading the dataset in memory"
    assert isinstance(client.call("INFO"), bytes)


# --- passwords --------------------------------------------------------------------------------------------------------


def test_without_the_password_only_auth_quit_and_the_handshake_run() -> None:
    client = guarded().client()
    for words in (["PING"], ["ADDJOB", "q", "b", "0"], ["HELLO"], ["CONFIG", "GET", "requirepass"]):
        assert str(client.call(*words)).startswith("NOAUTH Authentication required")
    assert str(client.call("NOSUCH")).startswith("ERR unknown command"), "checked before the password"
    assert str(client.call("QLEN")).startswith("ERR wrong number"), "checked before the password"
    assert client.call("QUIT") == b"OK"


def test_the_password_opens_the_connection_and_a_wrong_one_closes_it_again() -> None:
    client = guarded().client()
    assert str(client.call("AUTH", "guess")) == "ERR invalid password"
    assert client.call("AUTH", "secret") == b"OK"
    assert client.call("PING") == b"PONG"
    assert str(client.call("AUTH", "guess")) == "ERR invalid password"
    assert str(client.call("PING")).startswith("NOAUTH")


def test_requests_are_limited_in_size_until_the_client_authenticates() -> None:
    local = guarded()
    hostile, friend = local.client(), local.client()
    hostile.send("DELJOB", *range(10))
    assert str(hostile.next_reply()) == "ERR Protocol error: invalid multibulk length"
    assert hostile.closed
    assert friend.call("AUTH", "secret") == b"OK"
    assert str(friend.call("DELJOB", *range(10))).startswith("BADID")


def test_password_set_at_run_time_applies_to_connected_clients(local: LocalNode) -> None:
    admin, other = local.client(), local.client()
    assert str(admin.call("AUTH", "secret")) == "ERR Client sent AUTH, but no password is set"
    assert admin.call("CONFIG", "SET", "requirepass", "secret") == b"OK"
    assert str(other.call("PING")).startswith("NOAUTH")
    assert admin.call("AUTH", "secret") == b"OK"
    assert admin.call("PING") == b"PONG"


def test_clients_need_no_password_after_it_is_removed() -> None:
    local = guarded()
    admin, other = local.client(), local.client()
    admin.call("AUTH", "secret")
    assert admin.call("CONFIG", "SET", "requirepass", "") == b"OK"
    assert str(other.call("DELJOB", *range(20))).startswith("BADID"), "requests of any length are read again"


def test_password_set_at_run_time_limits_requests_of_connected_clients(local: LocalNode) -> None:
    admin, other = local.client(), local.client()
    admin.call("CONFIG", "SET", "requirepass", "secret")
    assert str(other.call("DELJOB", *range(20))) == "ERR Protocol error: invalid multibulk length"


# --- renamed commands -------------------------------------------------------------------------------------------------


def test_renamed_command_has_only_its_new_name_and_a_removed_one_none() -> None:
    config = Config()
    config.rename_command = ((b"QLEN", b"Length"), (b"DEBUG", b""))
    client = LocalNode(config).client()
    assert [client.call(name, "mail") for name in ("length", "LENGTH", "Length")] == [0, 0, 0]
    assert str(client.call("QLEN", "mail")) == "ERR unknown command 'QLEN'"
    assert str(client.call("DEBUG", "FLUSHALL")) == "ERR unknown command 'DEBUG'"
    assert str(client.call("length")) == "ERR wrong number of arguments for 'qlen' command"


# --- replies ----------------------------------------------------------------------------------------------------------


def test_the_third_protocol_version_has_one_null_and_maps(client: LocalClient) -> None:
    assert client.raw("GETJOB", "NOHANG", "FROM", "mail") == b"*-1\r\n"
    assert client.raw("SHOW", b"D-" + b"-" * 38) == b"$-1\r\n"
    hello = client.call("HELLO", 3)
    assert isinstance(hello, dict)
    assert hello[b"proto"] == 3
    assert client.raw("GETJOB", "NOHANG", "FROM", "mail") == b"_\r\n"
    assert client.raw("SHOW", b"D-" + b"-" * 38) == b"_\r\n"
    client.send("GETJOB", "TIMEOUT", 100, "FROM", "mail")
    client.local.run(seconds=1)
    assert client.received.endswith(b"_\r\n")
    assert client.next_reply() is None


def test_the_second_protocol_version_gets_the_handshake_as_a_flat_array(client: LocalClient) -> None:
    hello = client.call("HELLO", 2)
    assert isinstance(hello, list)
    assert hello[hello.index(b"proto") + 1] == 2


def test_client_reply_off_silences_everything_until_on(client: LocalClient) -> None:
    client.send_bytes(encode("CLIENT", "REPLY", "OFF") + encode("PING") + encode("NOSUCH") + encode("QLEN"))
    client.send("ADDJOB", "mail", "body", 0)
    assert client.received == b""
    assert client.call("CLIENT", "REPLY", "ON") == b"OK"
    assert client.call("QLEN", "mail") == 1


def test_client_reply_skip_leaves_out_one_reply(client: LocalClient) -> None:
    client.send_bytes(encode("CLIENT", "REPLY", "SKIP") + encode("PING", 1) + encode("PING", 2))
    assert client.replies() == [b"2"]
    client.send_bytes(encode("CLIENT", "REPLY", "OFF") + encode("CLIENT", "REPLY", "SKIP") + encode("PING") * 3)
    assert client.replies() == [], "SKIP does not end OFF"


def test_a_skipped_reply_stays_skipped_when_the_client_has_to_wait_for_it() -> None:
    local = LocalNode()
    worker, producer = local.client(), local.client()
    worker.send_bytes(encode("CLIENT", "REPLY", "SKIP") + encode("GETJOB", "FROM", "q") + encode("PING", "next"))
    producer.call("ADDJOB", "q", "body", 0)
    assert worker.replies() == [b"next"]
    worker.send_bytes(encode("CLIENT", "REPLY", "SKIP") + encode("GETJOB", "TIMEOUT", 50, "FROM", "q"))
    local.run(milliseconds=200)
    assert worker.replies() == []
    assert worker.call("PING", "again") == b"again"


def test_client_without_replies_gets_no_job_either(local: LocalNode, client: LocalClient) -> None:
    client.send_bytes(encode("CLIENT", "REPLY", "OFF") + encode("GETJOB", "FROM", "mail"))
    job = local.client().add("mail")
    assert client.received == b""
    assert client.call("CLIENT", "REPLY", "ON") == b"OK"
    assert client.show(job)["state"] == b"active"


# --- memory -----------------------------------------------------------------------------------------------------------


def test_above_75_percent_only_other_nodes_can_store_new_jobs(client: LocalClient) -> None:
    set_memory(client, used_percent=74)
    client.add("mail", "fits")
    set_memory(client, used_percent=76)
    refused = client.call("ADDJOB", "mail", "body", 0)
    assert str(refused).endswith("for the following reason: I'm out of memory")
    assert str(refused).startswith("NOREPL")


@pytest.mark.parametrize("command", ["ADDJOB", "ENQUEUE", "NACK"])
def test_above_100_percent_commands_that_need_memory_are_refused(client: LocalClient, command: str) -> None:
    job = client.add("mail")
    words = ["mail", "body", 0] if command == "ADDJOB" else [job]
    set_memory(client, used_percent=98)
    assert not str(client.call(command, *words)).startswith("OOM")
    set_memory(client, used_percent=101)
    refused = str(client.call(command, *words))
    assert refused.startswith("OOM command not allowed when used memory > 'maxmemory'. Acknowledge jobs, add nodes")
    assert client.take("mail") == [job], "commands that free memory are accepted"
    assert client.call("ACKJOB", job) == 1


def test_above_95_percent_delivered_at_most_once_jobs_are_evicted_oldest_first(client: LocalClient) -> None:
    delivered = [client.add("mail", b"x" * 100_000, "RETRY", 0) for _ in range(10)]
    waiting = client.add("mail", b"x" * 100_000, "RETRY", 0)
    again = client.add("other", b"x" * 100_000)
    assert client.take("mail", count=10) == delivered
    assert client.take("other") == [again]
    set_memory(client, used_percent=105)
    left = [job for job in delivered if client.show(job)]
    assert left == delivered[10 - len(left) :]
    assert 0 < len(left) < 10
    assert client.show(waiting)["state"] == b"queued"
    assert client.show(again)["state"] == b"active"
    info = client.call("INFO", "all")
    assert isinstance(info, bytes)
    assert b"evicted_jobs:%d\r\n" % (10 - len(left)) in info


def test_policy_noeviction_evicts_nothing(client: LocalClient) -> None:
    job = client.add("mail", b"x" * 100_000, "RETRY", 0)
    assert client.take("mail") == [job]
    assert client.call("CONFIG", "SET", "maxmemory-policy", "noeviction") == b"OK"
    set_memory(client, used_percent=105)
    assert str(client.call("ADDJOB", "mail", "body", 0)).startswith("OOM")
    assert client.show(job)["id"] == job


def test_without_a_limit_there_is_always_room(client: LocalClient) -> None:
    assert client.call("CONFIG", "SET", "maxmemory", 0) == b"OK"
    client.add("mail", b"x" * 1_000_000)


@pytest.mark.parametrize(("used_percent", "stays_s"), [(50, 300), (80, 10), (97, 2)])
def test_idle_queue_is_removed_earlier_when_memory_is_short(
    local: LocalNode, client: LocalClient, used_percent: int, stays_s: int
) -> None:
    client.call("PAUSE", "mail", "in")
    client.call("PAUSE", "mail", "none")
    set_memory(client, used_percent)
    local.run(milliseconds=stays_s * 1000 - 100)
    assert client.stat("mail")["len"] == 0
    local.run(milliseconds=300)
    assert client.stat("mail") == {}


def test_queue_with_jobs_or_clients_or_recent_use_is_not_removed(local: LocalNode, client: LocalClient) -> None:
    client.add("full", "body", "TTL", 10_000)
    local.client().send("GETJOB", "FROM", "awaited")
    client.take("unused")
    for _ in range(4):
        client.call("ACKJOB", client.add("used"))
        local.run(seconds=100)
    assert [bool(client.stat(queue)) for queue in ("full", "awaited", "used", "unused")] == [True, True, True, False]


def test_any_number_of_idle_queues_is_removed_in_time(local: LocalNode, client: LocalClient) -> None:
    for number in range(1000):
        client.take(f"queue {number}")
    local.run(seconds=301)
    assert len(local.node.state.lifecycle.queues) == 0


def test_many_idle_queues_are_removed_in_small_steps(local: LocalNode, client: LocalClient) -> None:
    for number in range(5000):
        client.take(f"queue {number}")
    queues = local.node.state.lifecycle.queues
    left = [len(queues)]
    for _ in range(3020):
        local.run(milliseconds=100)
        left.append(len(queues))
    assert left[-1] == 0
    assert max(before - after for before, after in pairwise(left)) <= 1000


# --- connections ------------------------------------------------------------------------------------------------------


def test_connection_beyond_maxclients_gets_an_error_and_is_closed(local: LocalNode) -> None:
    admin = local.client()
    assert admin.call("CONFIG", "SET", "maxclients", 2) == b"OK"
    second, third = local.client(), local.client()
    assert third.received == b"-ERR max number of clients reached\r\n"
    assert third.closed
    second.disconnect()
    assert local.client().call("PING") == b"PONG"
    stats = admin.call("INFO", "stats")
    assert isinstance(stats, bytes)
    assert b"rejected_connections:1\r\n" in stats
    assert b"total_connections_received:3\r\n" in stats


def test_idle_client_is_disconnected_after_the_timeout(local: LocalNode, client: LocalClient) -> None:
    assert client.call("CONFIG", "SET", "timeout", 10) == b"OK"
    active = local.client()
    for _ in range(3):
        local.run(seconds=4)
        active.call("PING")
    assert client.closed
    assert not active.closed


def test_waiting_and_monitoring_clients_are_not_idle(local: LocalNode, client: LocalClient) -> None:
    watcher = local.client()
    watcher.send("MONITOR")
    client.call("CONFIG", "SET", "timeout", 10)
    client.send("GETJOB", "FROM", "mail")
    local.run(seconds=60)
    assert not client.closed
    assert not watcher.closed


def test_a_client_that_waited_long_for_its_job_has_its_full_time_afterwards(
    local: LocalNode, client: LocalClient
) -> None:
    client.call("CONFIG", "SET", "timeout", 10)
    client.send("GETJOB", "FROM", "mail")
    local.run(seconds=60)
    local.client().add("mail")
    local.run(seconds=9)
    assert not client.closed
    local.run(seconds=3)
    assert client.closed


def test_idle_clients_stay_connected_without_a_timeout(local: LocalNode, client: LocalClient) -> None:
    local.run(seconds=3600)
    assert client.call("PING") == b"PONG"


def test_a_connection_takes_memory_only_while_it_is_there(local: LocalNode) -> None:
    memory = local.node.state.lifecycle.memory
    clients = [local.client() for _ in range(3)]
    assert memory.used_bytes == BASE_BYTES + 3 * CLIENT_BYTES
    clients[0].disconnect()
    clients[1].call("QUIT")
    clients[2].call("CLIENT", "KILL", clients[2].session.address)
    assert memory.used_bytes == BASE_BYTES
    assert local.node.state.sessions == {}


# --- CLIENT PAUSE -----------------------------------------------------------------------------------------------------


def test_client_pause_delays_every_command_of_every_client(local: LocalNode, client: LocalClient) -> None:
    other = local.client()
    client.send_bytes(encode("CLIENT", "PAUSE", 1000) + encode("PING", "behind"))
    other.send("ADDJOB", "mail", "body", 0)
    assert client.replies() == [b"OK"]
    local.run(milliseconds=999)
    assert client.silent
    assert other.received == b""
    local.run(milliseconds=1)
    assert client.replies() == [b"behind"]
    assert len(other.replies()) == 1


def test_paused_requests_run_once_and_in_order(local: LocalNode, client: LocalClient) -> None:
    client.call("CLIENT", "PAUSE", 100)
    for number in range(50):
        client.send("PING", number)
    assert len(local.node.state.client_pause.held) == 1, "a client is held once, however often it writes"
    local.run(seconds=1)
    assert client.replies() == [b"%d" % number for number in range(50)]
    assert not local.node.state.client_pause.held


def test_a_pause_can_be_made_longer_but_not_shorter(local: LocalNode, client: LocalClient) -> None:
    client.call("CLIENT", "PAUSE", 0)
    other = local.client()
    assert other.call("PING") == b"PONG"
    local.node.state.client_pause.until_ms = local.now_ms  # ends now
    client.call("CLIENT", "PAUSE", 500)
    local.run(milliseconds=400)
    other.send("CLIENT", "PAUSE", 50)
    local.run(milliseconds=100)
    assert other.next_reply() == b"OK"


def test_timers_continue_during_a_pause(local: LocalNode, client: LocalClient) -> None:
    job = client.add("mail", "later", "DELAY", 1)
    worker = local.client()
    worker.send("GETJOB", "FROM", "mail")
    client.call("CLIENT", "PAUSE", 5000)
    local.run(seconds=2)
    assert worker.next_reply() == [[b"mail", job, b"later"]]


def test_requests_of_a_client_that_disconnects_during_a_pause_do_not_run(local: LocalNode, client: LocalClient) -> None:
    gone = local.client()
    client.call("CLIENT", "PAUSE", 100)
    gone.send("ADDJOB", "mail", "body", 0)
    gone.disconnect()
    local.run(seconds=1)
    assert client.call("QLEN", "mail") == 0


# --- MONITOR ----------------------------------------------------------------------------------------------------------


def test_a_monitor_sees_every_command_before_it_runs(local: LocalNode, client: LocalClient) -> None:
    monitor = local.client()
    assert monitor.call("MONITOR") == b"OK"
    client.send_bytes(encode("ping", b'a "b"\\\r\n\t\a\b\x00\xff'))
    address = client.session.address.decode()
    line = f'{local.now_ms // 1000}.000000 [{address}] "ping" "a \\"b\\"\\\\\\r\\n\\t\\a\\b\\x00\\xff"'
    assert monitor.next_reply() == line.encode()


def test_a_monitor_sees_no_refused_requests_and_its_own_commands_first(local: LocalNode) -> None:
    local = guarded()
    client, monitor = local.client(), local.client()
    monitor.call("AUTH", "secret")
    monitor.call("MONITOR")
    for words in (["NOSUCH"], ["QLEN"], ["PING"], ["AUTH", "guess"]):
        client.call(*words)
    (line,) = monitor.replies()
    assert isinstance(line, bytes)
    assert line.endswith(b'"AUTH" "(redacted)"')
    monitor.send("PING")
    own, pong = monitor.replies()
    assert (own.endswith(b'"PING"'), pong) == (True, b"PONG")  # type: ignore[union-attr, arg-type]


def test_clients_of_a_unix_socket_are_shown_by_its_path(local: LocalNode, client: LocalClient) -> None:
    monitor = local.client()
    monitor.call("MONITOR")
    client.session.unix_socket = True
    client.session.address = b"/run/disque.sock:0"
    client.call("PING")
    line = monitor.next_reply()
    assert isinstance(line, bytes)
    assert b"[unix:/run/disque.sock]" in line


def test_disconnected_monitor_gets_no_more_output(local: LocalNode, client: LocalClient) -> None:
    monitor = local.client()
    monitor.call("MONITOR")
    monitor.disconnect()
    client.call("PING")
    assert local.node.state.monitoring.sessions == []
    assert monitor.received == b"+OK\r\n"


# --- time and faults --------------------------------------------------------------------------------------------------


def test_an_idle_node_asks_to_be_woken_hz_times_a_second(local: LocalNode) -> None:
    assert local.node.next_deadline_ms() - local.now_ms == 100
    config = Config()
    config.hz = 50
    faster = LocalNode(config)
    assert faster.node.next_deadline_ms() - faster.now_ms == 20


def test_the_node_asks_to_be_woken_for_the_next_job_and_not_over_and_over_before(
    local: LocalNode, client: LocalClient
) -> None:
    for number in range(100):
        client.add("mail", "later", "DELAY", 1000 + number)
    ticks = 0
    end_ms = local.now_ms + 990_000
    while local.now_ms < end_ms:
        local.host.now_ms = max(local.node.next_deadline_ms(), local.now_ms + 1)
        local.node.tick(local.now_ms)
        ticks += 1
    assert ticks <= 10_000, "hz times a second, and once in a while to bring wake-ups near"


def test_a_node_that_was_stopped_for_hours_catches_up_in_bounded_steps(local: LocalNode, client: LocalClient) -> None:
    for _ in range(5000):
        client.send("ADDJOB", "mail", "b", 0, "DELAY", 60)
    client.replies()
    local.host.now_ms += 3 * 3_600_000
    local.node.tick(local.now_ms)
    first = client.call("QLEN", "mail")
    assert isinstance(first, int)
    assert first <= 2000, "one step does not stall the node"
    local.run(milliseconds=10)
    assert client.call("QLEN", "mail") == 5000


def test_unexpected_exception_of_a_command_closes_only_its_connection() -> None:
    class BrokenHost(FakeHost):
        def facts(self) -> ProcessFacts:
            raise RuntimeError("nothing is known")

    local = LocalNode(host=BrokenHost())
    client, unlucky = local.client(), local.client()
    job = client.add("mail")
    assert str(unlucky.call("INFO")) == "ERR internal error, the server's log has the details"
    assert unlucky.closed
    texts = [text for _, text in local.host.log_lines]
    assert any("BUG: INFO" in text for text in texts)
    assert any("nothing is known" in text for text in texts)
    assert client.take("mail") == [job]


def test_two_nodes_with_one_seed_behave_identically() -> None:
    def life() -> bytes:
        client = LocalNode(host=FakeHost(seed=5)).client()
        for number in range(50):
            client.send("ADDJOB", f"q{number % 3}", number, 0, "RETRY", 1)
        client.send("GETJOB", "COUNT", 40, "FROM", "q0", "q1", "q2")
        client.local.run(seconds=30)
        client.send("GETJOB", "WITHCOUNTERS", "COUNT", 40, "FROM", "q0", "q1", "q2")
        return client.received

    assert life() == life()


def test_failure_of_one_timer_does_not_stop_the_others(local: LocalNode, client: LocalClient) -> None:
    lifecycle = local.node.state.lifecycle
    lifecycle.timers.arm(Alarm(), local.now_ms + 100)  # an alarm of its own kind only: it does not know what to do
    client.send("GETJOB", "TIMEOUT", 100, "FROM", "mail")
    local.run(milliseconds=200)
    assert client.next_reply() is None
    assert [text for level, text in local.host.log_lines if level == "warning" and "BUG" in text] == [
        "BUG: a timer could not be handled, please report it:"
    ]
    assert any("NotImplementedError" in text for _, text in local.host.log_lines)


def test_an_error_repeats_at_most_128_bytes_of_the_request(client: LocalClient) -> None:
    long = "x" * 16_000
    assert client.raw(long) == b"-ERR unknown command '" + b"x" * 128 + b"...'\r\n"
    for words in (
        ("CONFIG", long),
        ("CONFIG", "SET", long, "1"),
        ("CONFIG", "SET", "hz", long),
        ("CLIENT", "KILL", "TYPE", long, "ID", 1),
        ("HELLO", 2, long),
        ("CLUSTER", "MEET", long, long),
        ("DEBUG", long),
        ("LATENCY", "GRAPH", long),
        ("SHUTDOWN", long),
        ("INFO", long),
    ):
        assert len(client.raw(*words)) < 400, words


@pytest.mark.parametrize("words", ["PAUSE mail", "JSCAN", "ADDJOB mail body 0", "HELLO 2"])
def test_a_request_has_no_more_words_than_its_command_can_need(client: LocalClient, words: str) -> None:
    assert client.raw(*words.split(), *["none"] * 1000).startswith(b"-ERR ")
    assert client.call("PING") == b"PONG"
    entry = client.local.node.state.commands[words.split(maxsplit=1)[0].lower().encode()]
    assert (entry.calls, entry.failed) == (0, 1), "it is refused before the command runs"


@pytest.mark.parametrize("name", ["timeout", "cluster-node-timeout", "auto-aof-rewrite-percentage", "tcp-keepalive"])
def test_the_greatest_value_of_a_directive_stops_nothing(local: LocalNode, client: LocalClient, name: str) -> None:
    assert client.call("CONFIG", "SET", name, MAX_NUMBER) == b"OK"
    local.run(seconds=5)
    assert client.call("PING") == b"PONG"
