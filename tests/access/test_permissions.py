"""What a user may run: its commands, and the queues that its requests touch."""

from __future__ import annotations

import pytest

from access.conftest import PASSWORD, LogIn
from disqued.client import ResponseError
from disqued.testing.local import LocalClient

UNKNOWN = "D-0123abcd-gFAZ2WBhIXXmJnyQ0BhCAkj5-05a1"
JOB_COMMANDS = ["ACKJOB", "FASTACK", "NACK", "WORKING", "DEQUEUE", "ENQUEUE", "DELJOB", "SHOW"]


def test_a_producer_adds_jobs_to_its_queues_and_does_nothing_else(admin: LocalClient, log_in: LogIn) -> None:
    mail = log_in("mail", "~mail:* +@producer")
    assert isinstance(mail.add("mail:out"), bytes)
    assert mail.raw("ADDJOB", "other", "b", 0) == (
        b"-NOPERM User mail has no permissions to access the queue 'other'\r\n"
    )
    assert mail.raw("PAUSE", "mail:out", "in") == b"-NOPERM User mail has no permissions to run the 'pause' command\r\n"
    assert mail.raw("CONFIG", "GET", "*") == (
        b"-NOPERM User mail has no permissions to run the 'config|get' command\r\n"
    )
    assert admin.call("QLEN", "other") == 0


def test_a_role_includes_what_clients_send_when_they_connect(log_in: LogIn) -> None:
    mail = log_in("mail", "~mail:* +@producer")
    assert mail.raw("PING") == b"+PONG\r\n"
    assert mail.raw("CLIENT", "SETINFO", "LIB-NAME", "x") == b"+OK\r\n"
    assert mail.raw("HELLO").startswith(b"*3\r\n:1\r\n")
    assert mail.call("ACL", "WHOAMI") == b"mail"
    assert mail.raw("CLIENT", "LIST").startswith(b"-NOPERM ")
    assert mail.raw("CLIENT", "NOSUCH").startswith(b"-NOPERM ")


def test_getjob_needs_a_pattern_for_each_queue(log_in: LogIn) -> None:
    worker = log_in("worker", "~a ~b +@consumer")
    assert worker.call("GETJOB", "NOHANG", "FROM", "a", "b") is None
    assert worker.raw("GETJOB", "NOHANG", "FROM", "a", "c") == (
        b"-NOPERM User worker has no permissions to access the queue 'c'\r\n"
    )
    assert worker.raw("GETJOB", "a") == b"-ERR syntax error\r\n"


@pytest.mark.parametrize("command", JOB_COMMANDS)
def test_a_command_with_a_job_is_judged_by_the_queue_of_the_job(
    admin: LocalClient, log_in: LogIn, command: str
) -> None:
    user = log_in("user", "~mine +@consumer +@queueadmin +@inspect")
    mine, other = admin.add("mine"), admin.add("other")
    assert user.raw(command, other) == b"-NOPERM User user has no permissions to access the queue 'other'\r\n"
    assert not isinstance(user.call(command, mine), ResponseError)
    assert admin.show(other)["state"] == b"queued"


def test_several_jobs_are_all_refused_when_one_is_not_allowed(admin: LocalClient, log_in: LogIn) -> None:
    user = log_in("user", "~mine +@consumer")
    mine, other = admin.add("mine"), admin.add("other")
    assert user.raw("ACKJOB", mine, other).startswith(b"-NOPERM ")
    assert admin.show(mine)["state"] == b"queued"


def test_jobs_that_this_node_does_not_know_can_be_acknowledged(log_in: LogIn) -> None:
    user = log_in("user", "~mine +@consumer")
    assert user.call("ACKJOB", UNKNOWN) == 0


@pytest.mark.parametrize("command", JOB_COMMANDS)
@pytest.mark.parametrize("word", ["", "x", "D-", UNKNOWN[:-1], UNKNOWN + "1", "é" * 40])
def test_a_restricted_user_is_told_that_a_word_is_no_job_id(log_in: LogIn, command: str, word: str) -> None:
    user = log_in("user", "~mine +@consumer +@queueadmin +@inspect")
    assert user.raw(command, word) == b"-BADID Invalid Job ID format.\r\n"
    assert user.raw("PING") == b"+PONG\r\n"


def test_a_restricted_user_cannot_name_more_jobs_than_are_looked_up_at_once(log_in: LogIn) -> None:
    user = log_in("user", "~mine +@consumer")
    assert user.raw("ACKJOB", *[UNKNOWN] * 10_001).startswith(b"-ERR a user who may not access all queues can name")


@pytest.mark.parametrize("words", ["QLEN q", "QPEEK q 1", "QSTAT q", "PAUSE q none"])
def test_commands_about_a_queue_need_its_pattern(log_in: LogIn, words: str) -> None:
    user = log_in("user", "~mine +@inspect +@queueadmin")
    assert user.raw(*words.split()) == b"-NOPERM User user has no permissions to access the queue 'q'\r\n"
    assert not isinstance(user.call(*words.replace(" q", " mine", 1).split()), ResponseError)


def test_scans_show_only_what_the_patterns_allow(admin: LocalClient, log_in: LogIn) -> None:
    mine, _ = admin.add("mine"), admin.add("other")
    user = log_in("user", "~mine +@inspect")
    assert user.call("QSCAN") == [b"0", [b"mine"]]
    assert user.raw("JSCAN") == b"*2\r\n$1\r\n0\r\n*1\r\n+%b\r\n" % mine
    assert user.call("JSCAN", "QUEUE", "other") == [b"0", []]
    assert len(admin.call("QSCAN")[1]) == 2  # type: ignore[index, arg-type]


def test_inspection_shows_the_configuration_without_passwords(admin: LocalClient, log_in: LogIn) -> None:
    admin.call("CONFIG", "SET", "requirepass-former", "hidden")
    user = log_in("user", "~* +@inspect")
    assert user.call("CONFIG", "GET", "requirepass-former") == [b"requirepass-former", b"(redacted)"]
    assert user.call("CONFIG", "GET", "timeout") == [b"timeout", b"0"]
    assert user.raw("CONFIG", "SET", "timeout", 5).startswith(b"-NOPERM ")
    assert admin.call("CONFIG", "GET", "requirepass-former") == [b"requirepass-former", b"hidden"]


@pytest.mark.parametrize(
    "words", ["MONITOR", "SLOWLOG GET", "DEBUG FLUSHALL", "SHUTDOWN", "ACL LIST", "CLUSTER RESET", "CLIENT KILL ID 1"]
)
def test_no_role_includes_dangerous_commands(log_in: LogIn, words: str) -> None:
    user = log_in("user", "~* +@producer +@consumer +@inspect +@queueadmin")
    assert user.raw(*words.split()).startswith(b"-NOPERM ")


def test_a_limit_of_commands_per_second_refuses_the_rest(admin: LocalClient, log_in: LogIn) -> None:
    user = log_in("user", "~* +@all %r=10")
    admin.local.run(seconds=5)
    replies = [user.raw("PING") for _ in range(12)]
    assert replies.count(b"+PONG\r\n") == 10
    assert replies[-1] == b"-RATELIMIT User user may send 10 commands per second to this node, try later\r\n"
    admin.local.run(milliseconds=500)
    assert [user.raw("PING") for _ in range(6)].count(b"+PONG\r\n") == 5


def test_logins_do_not_count_for_the_limit_of_commands_so_that_clients_can_connect(
    admin: LocalClient, log_in: LogIn
) -> None:
    user = log_in("user", "~* +@all %r=1")
    assert [user.raw("PING") for _ in range(2)][1].startswith(b"-RATELIMIT")
    assert admin.local.client().raw("AUTH", "user", PASSWORD) == b"+OK\r\n"
    assert not user.raw("HELLO").startswith(b"-")


def test_a_cap_on_connections_refuses_further_logins(admin: LocalClient, log_in: LogIn) -> None:
    first = log_in("user", "~* +@all %c=1")
    second = admin.local.client()
    assert b"its rules allow no more (%c=1)" in second.raw("AUTH", "user", PASSWORD)
    assert second.call("ACL", "WHOAMI") == b"default"
    assert first.raw("AUTH", "user", PASSWORD) == b"+OK\r\n"
    first.disconnect()
    assert second.raw("AUTH", "user", PASSWORD) == b"+OK\r\n"


def test_no_pattern_matches_a_name_of_more_than_1024_bytes(admin: LocalClient, log_in: LogIn) -> None:
    user = log_in("user", "~mine* +@all")
    assert user.call("QLEN", b"mine" + b"x" * 1020) == 0
    assert user.raw("QLEN", b"mine" + b"x" * 1021).startswith(b"-NOPERM ")
    assert admin.call("QLEN", b"mine" + b"x" * 1021) == 0
