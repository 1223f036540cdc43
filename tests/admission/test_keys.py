"""ADDJOB with a KEY on one node: what is added once, for how long, and what makes a node forget."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.core.host import disk
from disqued.core.memory.accounting import KEY_BYTES
from disqued.core.runtime.counters import JOBS_ADDED
from disqued.testing.local import LocalClient, LocalNode
from support.logging_node import logging_node

DEFAULT_WINDOW_S = 300


def used_bytes(local: LocalNode) -> int:
    return int(local.node.state.lifecycle.memory.used_bytes)


def remembered(local: LocalNode) -> int:
    return int(local.node.state.lifecycle.keys.count)


def set_memory(client: LocalClient, used_percent: int) -> None:
    """Limit the memory so that what is used now is that much of it."""
    used = int(client.local.node.state.lifecycle.memory.counted_bytes)
    assert client.call("CONFIG", "SET", "maxmemory", used * 100 // used_percent) == b"OK"


# --- the same key -----------------------------------------------------------------------------------------------------


def test_the_same_key_adds_nothing_and_is_answered_with_the_first_id(client: LocalClient) -> None:
    job_id = client.add("mail", "one", "KEY", "order-17")
    assert client.raw("ADDJOB", "mail", "two", 0, "KEY", "order-17") == b"+%b\r\n" % job_id
    assert client.call("GETJOB", "NOHANG", "COUNT", 9, "FROM", "mail") == [[b"mail", job_id, b"one"]]


def test_other_keys_other_queues_and_adds_without_a_key_are_other_jobs(client: LocalClient) -> None:
    jobs = {
        client.add("mail", "body", "KEY", "k"),
        client.add("mail", "body", "KEY", "K"),
        client.add("post", "body", "KEY", "k"),
        client.add("mail", "body"),
        client.add("mail", "body"),
    }
    assert len(jobs) == 5


def test_queue_and_key_are_not_confused_where_one_ends_and_the_other_begins(client: LocalClient) -> None:
    assert client.add("ab", "body", "KEY", "c") != client.add("a", "body", "KEY", "bc")


def test_keys_are_any_bytes_of_any_length_that_is_allowed(client: LocalClient) -> None:
    for key in (b"\0", b"\r\n", b"x" * 1024, b"x" * 1023):
        assert client.add("mail", "body", "KEY", key) == client.add("mail", "body", "KEY", key)
    assert client.call("QLEN", "mail") == 4


def test_the_id_looks_like_any_other_and_says_the_same_about_its_job(client: LocalClient) -> None:
    keyed, plain = client.add("mail", "b", "TTL", 3600, "KEY", "k"), client.add("mail", "b", "TTL", 3600)
    assert (len(keyed), keyed[:11], keyed[-5:]) == (len(plain), plain[:11], plain[-5:])


# --- for how long -----------------------------------------------------------------------------------------------------


def test_when_the_window_is_over_the_key_adds_a_new_job(local: LocalNode, client: LocalClient) -> None:
    first = client.add("mail", "body", "KEY", "k", "WINDOW", 10)
    local.run(seconds=9)
    assert client.add("mail", "body", "KEY", "k", "WINDOW", 10) == first
    local.run(seconds=1, milliseconds=20)
    assert remembered(local) == 0
    again = client.add("mail", "body", "KEY", "k", "WINDOW", 10)
    assert again != first
    assert again[:27] == first[:27], "the stamp is the same, the rest is not"


def test_default_window_is_five_minutes(local: LocalNode, client: LocalClient) -> None:
    first = client.add("mail", "body", "KEY", "k")
    local.run(seconds=DEFAULT_WINDOW_S - 1)
    assert client.add("mail", "body", "KEY", "k") == first
    local.run(seconds=1, milliseconds=20)
    assert client.add("mail", "body", "KEY", "k") != first


def test_an_add_that_was_repeated_does_not_prolong_the_window(local: LocalNode, client: LocalClient) -> None:
    first = client.add("mail", "body", "KEY", "k", "WINDOW", 10)
    for _ in range(4):
        local.run(seconds=2)
        assert client.add("mail", "body", "KEY", "k", "WINDOW", 10) == first
    local.run(seconds=2, milliseconds=20)
    assert client.add("mail", "body", "KEY", "k", "WINDOW", 10) != first


def test_of_two_windows_the_shorter_one_counts(local: LocalNode, client: LocalClient) -> None:
    first = client.add("mail", "body", "KEY", "k", "WINDOW", 100)
    local.run(seconds=20)
    assert client.add("mail", "body", "KEY", "k", "WINDOW", 21) == first
    second = client.add("mail", "body", "KEY", "k", "WINDOW", 20)
    assert second != first
    assert client.add("mail", "body", "KEY", "k", "WINDOW", 100) == second
    local.run(seconds=20, milliseconds=20)
    assert remembered(local) == 0, "the window of the second one"


@pytest.mark.parametrize("verb", ["ACKJOB", "FASTACK"])
def test_a_job_that_is_done_is_not_added_again(local: LocalNode, client: LocalClient, verb: str) -> None:
    job_id = client.add("mail", "body", "KEY", "k")
    assert client.take("mail") == [job_id]
    assert client.call(verb, job_id) == 1
    assert client.show(job_id) == {}
    assert client.add("mail", "body", "KEY", "k") == job_id
    assert client.take("mail") == []
    assert remembered(local) == 1


def test_an_expired_job_is_not_added_again_within_its_window(local: LocalNode, client: LocalClient) -> None:
    job_id = client.add("mail", "body", "TTL", 1, "KEY", "k")
    local.run(seconds=3)
    assert client.show(job_id) == {}
    assert client.add("mail", "body", "TTL", 1, "KEY", "k") == job_id


# --- what makes a node forget -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("delivered", [False, True])
def test_a_job_that_was_deleted_is_added_again(client: LocalClient, delivered: bool) -> None:
    first = client.add("mail", "body", "KEY", "k")
    if delivered:
        client.take("mail")
    assert client.call("DELJOB", first) == 1
    second = client.add("mail", "body", "KEY", "k")
    assert second != first
    assert client.take("mail") == [second]


def test_deleting_a_former_job_of_a_key_leaves_its_present_one_known(local: LocalNode, client: LocalClient) -> None:
    first = client.add("mail", "body", "KEY", "k", "WINDOW", 1)
    local.run(seconds=2)
    second = client.add("mail", "body", "KEY", "k", "WINDOW", 60)
    assert client.call("DELJOB", first) == 1
    assert client.add("mail", "body", "KEY", "k", "WINDOW", 60) == second


@pytest.mark.parametrize("words", [("DEBUG", "FLUSHALL"), ("CLUSTER", "RESET", "HARD")])
def test_forgetting_all_jobs_forgets_their_keys(local: LocalNode, client: LocalClient, words: tuple[str, ...]) -> None:
    first = client.add("mail", "body", "KEY", "k")
    assert client.call(*words) == b"OK"
    assert remembered(local) == 0
    assert client.add("mail", "body", "KEY", "k") != first
    local.run(seconds=DEFAULT_WINDOW_S + 1)
    assert remembered(local) == 0


ACTS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from("ab"), st.sampled_from((1, 3, 300))),
    st.tuples(st.sampled_from(("DELJOB", "ACKJOB")), st.integers(0, 30), st.just(0)),
    st.tuples(st.just("wait"), st.sampled_from((1, 2, 301)), st.just(0)),
    st.tuples(st.just("FLUSHALL"), st.just(0), st.just(0)),
)


@given(st.lists(ACTS, max_size=40))
def test_adds_with_keys_match_a_model_that_remembers_every_add(acts: list[tuple[str, Any, int]]) -> None:
    local = LocalNode()
    client = local.client()
    jobs: list[bytes] = []
    known: dict[str, tuple[bytes, int, int]] = {}
    for act, what, window_s in acts:
        if act == "add":
            expected, added_ms, first_s = known.get(what, (b"", 0, 0))
            job_id = client.add("mail", "body", "KEY", what, "WINDOW", window_s)
            if local.now_ms - added_ms < min(first_s, window_s) * 1000:
                assert job_id == expected
            else:
                assert job_id not in jobs
                jobs.append(job_id)
                known[what] = (job_id, local.now_ms, window_s)
        elif act == "wait":
            local.run(seconds=what, milliseconds=20)  # as late as a timer may be
        elif act == "FLUSHALL":
            client.call("DEBUG", "FLUSHALL")
            known.clear()
        elif what < len(jobs) and client.call(act, jobs[what]) == 1 and act == "DELJOB":
            known = {key: value for key, value in known.items() if value[0] != jobs[what]}
    local.run(seconds=301)
    assert remembered(local) == 0


# --- order of checks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["KEY"], "ERR syntax error"),
        (["KEY", "k", "WINDOW"], "ERR syntax error"),
        (["KEY", ""], "ERR KEY must have 1 to 1024 bytes"),
        (["KEY", "x" * 1025], "ERR KEY must have 1 to 1024 bytes"),
        (["KEY", "k", "WINDOW", 0], "ERR WINDOW must be between 1 and 86400 seconds"),
        (["KEY", "k", "WINDOW", 86401], "ERR WINDOW must be between 1 and 86400 seconds"),
        (["KEY", "k", "WINDOW", "1h"], "ERR WINDOW must be between 1 and 86400 seconds"),
        (["WINDOW", 60], "ERR WINDOW is of use with a KEY only"),
    ],
)
def test_invalid_options_are_refused_and_create_nothing(
    local: LocalNode, client: LocalClient, options: list[str | int], text: str
) -> None:
    assert str(client.call("ADDJOB", "mail", "body", 0, *options)) == text
    assert client.call("JSCAN") == [b"0", []]
    assert remembered(local) == 0


def test_an_invalid_option_is_an_error_although_the_job_was_added(client: LocalClient) -> None:
    client.add("mail", "body", "KEY", "k")
    assert str(client.call("ADDJOB", "mail", "body", 0, "KEY", "k", "TTL", 0)) == "ERR TTL must be a number > 0"
    assert str(client.call("ADDJOB", "mail", "body", -1, "KEY", "k")) == "ERR timeout is negative"


def test_a_repeated_add_returns_the_id_even_if_a_new_job_would_be_refused(client: LocalClient) -> None:
    job_id = client.add("mail", "body", "KEY", "k")
    client.call("PAUSE", "mail", "in")
    again = ("ADDJOB", "mail", "body", 0, "KEY", "k", "MAXLEN", 1, "REPLICATE", 2)
    assert client.call(*again) == job_id
    assert str(client.call("ADDJOB", "mail", "body", 0, "KEY", "other")).startswith("PAUSED")
    set_memory(client, used_percent=101)
    assert client.call(*again) == job_id
    for words in ((*again[:4],), (*again[:4], "KEY", "other"), (*again, "TTL", 0)):
        assert str(client.call(*words)).startswith("OOM"), words


def test_the_key_of_a_refused_add_is_not_remembered(local: LocalNode, client: LocalClient) -> None:
    client.add("mail", "body")
    assert str(client.call("ADDJOB", "mail", "body", 0, "KEY", "k", "MAXLEN", 1)).startswith("MAXLEN")
    assert str(client.call("ADDJOB", "mail", "body", 0, "KEY", "k", "REPLICATE", 2)).startswith("NOREPL")
    assert remembered(local) == 0
    client.add("mail", "body", "KEY", "k")


# --- memory, time and figures -----------------------------------------------------------------------------------------


def test_keys_are_counted_as_memory_and_given_back(local: LocalNode, client: LocalClient) -> None:
    client.add("mail")
    before = used_bytes(local)
    jobs = [client.add("mail", "body", "KEY", f"{number}", "WINDOW", 10) for number in range(100)]
    assert client.call("DELJOB", *jobs[:50]) == 50
    assert client.call("ACKJOB", *jobs[50:]) == 50
    assert (remembered(local), used_bytes(local) - before) == (50, 50 * KEY_BYTES)
    local.run(seconds=11)
    assert (remembered(local), used_bytes(local)) == (0, before)


def test_key_that_is_used_repeatedly_is_counted_once(local: LocalNode, client: LocalClient) -> None:
    client.add("mail", "body", "KEY", "k", "WINDOW", 100)
    for _ in range(5):
        local.run(seconds=2)
        client.call("ACKJOB", client.add("mail", "body", "KEY", "k", "WINDOW", 1))
    before = used_bytes(local)
    assert remembered(local) == 1
    client.call("DEBUG", "FLUSHALL")
    assert used_bytes(local) < before
    assert remembered(local) == 0


def test_many_keys_end_in_small_steps_and_all_of_them_soon(local: LocalNode, client: LocalClient) -> None:
    for number in range(10_000):
        client.send("ADDJOB", "mail", "", 0, "RETRY", 0, "KEY", f"{number}", "WINDOW", 10)
    local.run(seconds=9, milliseconds=900)
    steps = [remembered(local)]
    end_ms = local.now_ms + 300
    while local.now_ms < end_ms:
        local.step(end_ms)
        steps.append(remembered(local))
    gone = [before - after for before, after in itertools.pairwise(steps)]
    assert (steps[0], steps[-1]) == (10_000, 0)
    assert max(gone) <= 2000


def test_repeated_adds_are_counted(local: LocalNode, client: LocalClient) -> None:
    for key in ("a", "b", "a", "a"):
        client.add("mail", "body", "KEY", key)
    text = client.call("INFO", "admission")
    assert isinstance(text, bytes)
    assert text.split()[:4] == [b"#", b"Admission", b"keys_remembered:2", b"jobs_deduplicated:2"]
    assert local.node.state.counters.value(JOBS_ADDED) == 2
    client.call("CONFIG", "RESETSTAT")
    assert b"keys_remembered:2\r\njobs_deduplicated:0\r\n" in client.raw("INFO", "all")


# --- on disk ----------------------------------------------------------------------------------------------------------


def test_id_of_the_first_job_is_not_sent_before_it_is_on_disk() -> None:
    local = logging_node()
    one, other = local.client(), local.client()
    local.host.disk.hold(disk.APPEND)
    one.send("ADDJOB", "mail", "body", 0, "KEY", "k")
    other.send("ADDJOB", "mail", "body", 0, "KEY", "k")
    assert (one.silent, other.silent) == (True, True)
    local.finish()
    assert one.next_reply() == other.next_reply()
