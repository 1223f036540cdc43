"""Rewriting the append-only file: its contents, when it starts, and that no job is lost or returns.

The node runs in virtual time with a disk in memory. At the end of most scenarios the node is killed or loses power and
starts again, and the test compares its jobs with the replies that clients got.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.core.host import disk
from disqued.persistence.room import aof_of
from support.aofcontent import Content, come_back, job_ids
from support.asking import ask
from support.logging_node import AOF, info, logging_node, told, written
from support.promises import Promises

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient, LocalNode

STARTED = b"Background append only file rewriting started"
TEMP = "temp-rewriteaof-bg-1.aof"
VERBS = (disk.OPEN, disk.APPEND, disk.SYNC, disk.REPLACE)


def rewrite(local: LocalNode, client: LocalClient) -> None:
    """Rewrite the file and wait until that is done."""
    before = local.host.disk.done["replace"]
    assert ask(client, "BGREWRITEAOF") == STARTED
    for _ in range(1000):
        if local.host.disk.done["replace"] > before:
            return
        local.run(milliseconds=20)
    pytest.fail("the rewrite does not end")


def duration_ms(local: LocalNode, client: LocalClient, commands_per_ms: int) -> int:
    """How long a rewrite takes while a client sends commands."""
    began_ms = local.now_ms
    assert ask(client, "BGREWRITEAOF") == STARTED
    while running(client):
        for _ in range(commands_per_ms):
            client.call("PING")
        local.run(milliseconds=1)
    return local.now_ms - began_ms


def running(client: LocalClient) -> bool:
    return info(client)["aof_rewrite_in_progress"] == "1"


def test_a_rewrite_takes_a_smaller_part_of_the_time_while_clients_are_active() -> None:
    local = logging_node()
    client = local.client()
    for number in range(3000):
        client.add("q", f"body {number}", "RETRY", 60)
    local.host.command_ns = 100_000
    at_rest_ms, busy_ms = duration_ms(local, client, 0), duration_ms(local, client, 10)
    assert 3 * at_rest_ms < busy_ms < 10 * at_rest_ms


# --- what is in the file ----------------------------------------------------------------------------------------------


def test_the_new_file_has_a_record_of_each_job() -> None:
    local = logging_node()
    client = local.client()
    ids = [client.add("q", f"body {number}", "RETRY", 60) for number in range(5000)]
    for job_id in ids[::2]:
        client.call("ACKJOB", job_id)
    before = written(local)
    rewrite(local, client)
    content = Content(written(local))
    assert set(content.jobs) == set(ids[1::2])
    assert content.records == len(ids[1::2])
    assert content.jobs[ids[1]].job.body == b"body 1"
    assert len(written(local)) < len(before)
    assert list(local.host.disk.files) == [AOF]


def test_pauses_of_queues_are_in_the_new_file() -> None:
    local = logging_node()
    client = local.client()
    for number in range(3000):
        client.call("PAUSE", f"q{number}", "in" if number % 2 else "all")
    client.call("PAUSE", "q7", "none")
    rewrite(local, client)
    content = Content(written(local))
    assert len(content.pauses) == content.records == 2999
    assert content.pauses[b"q8"] == b"all"
    come_back(local)
    assert ask(local.client(), "PAUSE", "q9", "state") == b"in"
    assert ask(local.client(), "PAUSE", "q7", "state") == b"none"


def test_a_delivered_at_most_once_job_is_not_in_the_new_file() -> None:
    local = logging_node()
    client = local.client()
    taken, waiting = client.add("q", "taken", "RETRY", 0), client.add("q", "waiting", "RETRY", 0)
    assert client.take("q") == [taken]
    rewrite(local, client)
    content = Content(written(local))
    assert list(content.jobs) == [waiting]
    assert content.jobs[waiting].state == 1  # active: a later reader cannot know whether it was delivered


def test_changes_during_a_rewrite_are_in_the_new_file() -> None:
    local = logging_node()
    client = local.client()
    ids = [client.add("q", "old", "RETRY", 60) for _ in range(5000)]
    assert ask(client, "BGREWRITEAOF") == STARTED
    later = []
    while running(client):
        later.append(client.add("q", "new", "RETRY", 60))
        client.call("ACKJOB", ids.pop())
        client.call("ACKJOB", ids.pop(0))
        client.call("PAUSE", "other", "in" if len(later) % 2 else "out")
        local.run(milliseconds=1)
    assert len(later) > 10
    pause = ask(client, "PAUSE", "other", "state")
    content = Content(written(local))
    assert set(content.jobs) == {*ids, *later}
    assert content.pauses == {b"other": pause}
    come_back(local)
    assert job_ids(local) == {*ids, *later}


def test_jobs_dropped_before_the_walk_reaches_them_are_not_in_the_new_file() -> None:
    local = logging_node()
    client = local.client()
    ids = [client.add("q", "body", "RETRY", 60) for _ in range(3000)]
    local.host.command_ns = 2_000_000  # a slice ends after a few jobs, in the middle of a dict of the table
    chance = random.Random(0)
    chance.shuffle(ids)
    assert ask(client, "BGREWRITEAOF") == STARTED
    local.run(milliseconds=4)
    while running(client):
        assert client.call("DELJOB", *[ids.pop() for _ in range(12)]) == 12
        local.run(milliseconds=4)
    assert set(Content(written(local)).jobs) == set(ids)


def test_changes_continue_in_the_new_file() -> None:
    local = logging_node()
    client = local.client()
    kept, done = client.add("q"), client.add("q")
    rewrite(local, client)
    size_bytes = len(written(local))
    later = client.add("q")
    client.call("ACKJOB", done)
    content = Content(written(local))
    assert set(content.jobs) == {kept, later}
    shown = info(client)
    assert int(shown["aof_base_size"]) == size_bytes
    assert int(shown["aof_current_size"]) == len(written(local))


def test_a_leftover_file_of_a_process_with_the_same_id_is_not_used() -> None:
    local = logging_node()
    client = local.client()
    local.host.disk.put(TEMP, b"*2\r\n$6\r\nDELJOB\r\n$40\r\nD-")
    job_id = client.add("q")
    rewrite(local, client)
    assert list(Content(written(local)).jobs) == [job_id]
    assert list(local.host.disk.files) == [AOF]


def test_a_rewrite_while_the_log_is_off_leaves_a_file_of_that_moment() -> None:
    local = logging_node()
    client = local.client()
    client.call("CONFIG", "SET", "appendonly", "no")
    ids = [client.add("q") for _ in range(3000)]
    assert ask(client, "BGREWRITEAOF") == STARTED
    ids.append(client.add("q"))
    while running(client):
        local.run(milliseconds=1)
    client.add("q")
    assert set(Content(written(local)).jobs) == set(ids)
    assert info(client)["aof_state"] == "off"
    assert not local.node.state.lifecycle.journal.on


# --- when it is rewritten ---------------------------------------------------------------------------------------------


def test_only_one_rewrite_runs_at_a_time() -> None:
    local = logging_node()
    client = local.client()
    assert client.raw("BGREWRITEAOF") == b"+" + STARTED + b"\r\n"
    assert client.raw("BGREWRITEAOF") == b"-ERR Background append only file rewriting already in progress\r\n"
    local.run(seconds=1)
    assert info(client)["aof_last_rewrite_time_sec"] == "0"
    assert ask(client, "BGREWRITEAOF") == STARTED


def test_file_that_has_grown_is_rewritten_automatically() -> None:
    local = logging_node(auto_aof_rewrite_min_size=100_000, auto_aof_rewrite_percentage=100)
    client = local.client()
    rewrites = local.host.disk.done
    for _ in range(90):
        client.call("ACKJOB", client.add("q", b"x" * 700))
    local.run(seconds=2)
    assert rewrites["replace"] == 0  # beyond double its size, not beyond the least
    for _ in range(40):
        client.add("q", b"x" * 700)
    local.run(seconds=2)
    assert rewrites["replace"] == 1
    base_bytes = int(info(client)["aof_base_size"])
    assert 30_000 < base_bytes < 60_000
    while int(info(client)["aof_current_size"]) < 100_000:
        client.call("ACKJOB", client.add("q", b"x" * 700))
    local.run(seconds=2)
    assert rewrites["replace"] == 2


def test_growth_is_counted_from_the_size_after_the_last_rewrite() -> None:
    local = logging_node(auto_aof_rewrite_min_size=1000, auto_aof_rewrite_percentage=50)
    client = local.client()
    for _ in range(100):
        client.add("q", b"x" * 900)
    local.run(seconds=1)
    done = local.host.disk.done["replace"]
    base_bytes = int(info(client)["aof_base_size"])
    while int(info(client)["aof_current_size"]) < base_bytes * 1.4:
        client.add("q", b"x" * 900)
    local.run(seconds=1)
    assert local.host.disk.done["replace"] == done
    while int(info(client)["aof_current_size"]) < base_bytes * 1.5:
        client.add("q", b"x" * 900)
    local.run(seconds=1)
    assert local.host.disk.done["replace"] == done + 1


def test_a_percentage_of_zero_means_never() -> None:
    local = logging_node(auto_aof_rewrite_min_size=1000, auto_aof_rewrite_percentage=0)
    client = local.client()
    for _ in range(100):
        client.add("q", b"x" * 900)
    local.run(seconds=3)
    assert local.host.disk.done["replace"] == 0


def test_a_new_directory_gets_a_complete_file() -> None:
    local = logging_node()
    client = local.client()
    client.add("q")
    assert ask(client, "CONFIG", "SET", "dir", "/tmp") == b"OK"
    assert running(client)
    local.run(seconds=1)
    assert local.host.disk.done["replace"] == 1


# --- slices -----------------------------------------------------------------------------------------------------------


def test_a_slice_ends_at_its_time_limit() -> None:
    local = logging_node()
    client = local.client()
    for _ in range(4000):
        client.add("q")
    local.host.command_ns = 500_000  # each look at the clock takes half a millisecond
    assert ask(client, "BGREWRITEAOF") == STARTED
    made_bytes = [0]
    while running(client):
        local.run(milliseconds=1)
        made_bytes.append(aof_of(local.node.state).rewrite.buffer_bytes + len(local.host.disk.files.get(TEMP, b"")))
    grown = [after - before for before, after in pairwise(made_bytes) if after > before]
    assert len(grown) > 20
    assert max(grown) < 4000 * 150 / 20


def test_the_second_file_is_not_written_once_per_slice() -> None:
    local = logging_node()
    client = local.client()
    for _ in range(4000):
        client.add("q")
    local.host.command_ns = 500_000
    local.host.disk.done.clear()
    assert ask(client, "BGREWRITEAOF") == STARTED
    while running(client):
        local.run(milliseconds=1)
    assert local.host.disk.done["write to"] < 10


def test_the_walk_waits_while_the_disk_is_behind() -> None:
    local = logging_node()
    client = local.client()
    ids = {client.add("q", b"x" * 200_000) for _ in range(150)}
    local.host.disk.hold(disk.APPEND)
    assert ask(client, "BGREWRITEAOF") == STARTED
    local.run(seconds=2)
    assert 4 << 20 <= int(info(client)["aof_rewrite_buffer_length"]) < 8 << 20
    local.host.disk.repair()
    local.finish()
    local.run(seconds=2)
    assert set(Content(written(local)).jobs) == ids


@pytest.mark.parametrize(("incremental", "syncs"), [(True, 3), (False, 1)])
def test_the_new_file_is_synced_in_steps(*, incremental: bool, syncs: int) -> None:
    local = logging_node("no", aof_rewrite_incremental_fsync=incremental)
    client = local.client()
    for _ in range(80):
        client.add("q", b"x" * 1_000_000)
    rewrite(local, client)
    assert local.host.disk.done["sync"] == syncs


# --- faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_a_failed_rewrite_keeps_the_old_file_and_removes_the_new_one(verb: int) -> None:
    local = logging_node("no")
    client = local.client()
    ids = {client.add("q") for _ in range(100)}
    before = written(local)
    local.host.disk.fail(verb, times=1)
    assert ask(client, "BGREWRITEAOF") == STARTED
    local.run(seconds=1)
    assert info(client)["aof_last_bgrewrite_status"] == "err"
    assert info(client)["aof_rewrite_in_progress"] == "0"
    assert written(local) == before
    assert list(local.host.disk.files) == [AOF]
    (why,) = [text for text in told(local, "warning") if "could not be rewritten" in text]
    assert disk.VERB_NAMES[verb] in why
    assert "Input/output error" in why
    ids.add(client.add("q"))
    rewrite(local, client)
    assert info(client)["aof_last_bgrewrite_status"] == "ok"
    assert set(Content(written(local)).jobs) == ids


def test_groups_that_waited_for_a_failed_replace_go_to_the_old_file() -> None:
    local = logging_node()
    client, other = local.client(), local.client()
    first = client.add("q")
    local.host.disk.hold(disk.REPLACE)
    assert ask(client, "BGREWRITEAOF") == STARTED
    local.run(seconds=1)
    other.send("ADDJOB", "q", "body", 0)
    assert other.silent
    local.host.disk.fail(disk.REPLACE, times=1)
    local.finish()
    second = other.next_reply()
    assert set(Content(written(local)).jobs) == {first, second}
    assert list(local.host.disk.files) == [AOF]


def test_a_failed_rewrite_is_retried_with_growing_delays() -> None:
    local = logging_node(auto_aof_rewrite_min_size=1000)
    client = local.client()
    for _ in range(20):
        client.add("q", b"x" * 100)
    local.host.disk.fail(disk.REPLACE)
    local.run(seconds=60)
    assert 8 <= local.host.disk.failed["replace"] <= 12
    local.host.disk.repair()
    local.run(seconds=9)
    assert local.host.disk.done["replace"] == 1


# --- on and off -------------------------------------------------------------------------------------------------------


def test_a_file_that_is_switched_on_counts_after_its_first_rewrite() -> None:
    local = logging_node("always")
    client = local.client()
    client.call("CONFIG", "SET", "appendonly", "no")
    ids = {client.add("q", f"{number}", "RETRY", 60) for number in range(5000)}
    assert ask(client, "CONFIG", "SET", "appendonly", "yes") == b"OK"
    assert info(client)["aof_state"] == "wait-rewrite"
    assert info(client)["aof_enabled"] == "1"
    while info(client)["aof_state"] == "wait-rewrite":
        ids.add(client.add("q", "while it is written", "RETRY", 60))
        local.run(milliseconds=1)
    assert info(client)["aof_state"] == "on"
    ids.add(client.add("q", "after it was written", "RETRY", 60))
    local.lose_power()
    come_back(local)
    assert job_ids(local) == ids


def test_switching_on_is_retried_until_it_succeeds() -> None:
    local = logging_node()
    client = local.client()
    client.call("CONFIG", "SET", "appendonly", "no")
    job_id = client.add("q")
    local.host.disk.fail(disk.SYNC)
    assert ask(client, "CONFIG", "SET", "appendonly", "yes") == b"OK"
    local.run(seconds=5)
    assert info(client)["aof_state"] == "wait-rewrite"
    assert info(client)["aof_last_bgrewrite_status"] == "err"
    local.host.disk.repair()
    local.run(seconds=9)
    assert info(client)["aof_state"] == "on"
    assert list(Content(written(local)).jobs) == [job_id]


def test_switching_off_stops_a_rewrite_and_keeps_confirmed_changes() -> None:
    local = logging_node("always")
    client = local.client()
    ids = {client.add("q") for _ in range(3000)}
    assert ask(client, "BGREWRITEAOF") == STARTED
    local.run(milliseconds=5)
    assert TEMP in local.host.disk.files
    ids.add(client.add("q"))
    assert ask(client, "CONFIG", "SET", "appendonly", "no") == b"OK"
    client.add("q", "not logged")
    local.run(seconds=1)
    assert list(local.host.disk.files) == [AOF]
    assert not running(client)
    local.lose_power()
    come_back(local)
    assert job_ids(local) == set()  # appendonly is no
    assert set(Content(written(local)).jobs) == ids


def test_a_file_switched_off_and_on_during_a_replace_is_complete() -> None:
    local = logging_node()
    client = local.client()
    ids = {client.add("q")}
    local.host.disk.hold(disk.REPLACE)
    assert ask(client, "BGREWRITEAOF") == STARTED
    local.run(seconds=1)
    assert ask(client, "CONFIG", "SET", "appendonly", "no") == b"OK"
    ids.add(client.add("q"))
    assert ask(client, "CONFIG", "SET", "appendonly", "yes") == b"OK"
    ids.add(client.add("q"))
    local.host.disk.repair()
    local.finish()
    local.run(seconds=3)
    assert info(client)["aof_state"] == "on"
    ids.add(client.add("q"))
    local.crash()
    come_back(local)
    assert job_ids(local) == ids


# --- everything dropped at once ---------------------------------------------------------------------------------------


def test_jobs_dropped_by_flushall_are_not_loaded() -> None:
    local = logging_node("always")
    client = local.client()
    for number in range(5000):
        client.add("q", f"{number}")
    client.call("PAUSE", "p", "in")
    size_bytes = len(written(local))
    client.send("DEBUG", "FLUSHALL")
    local.run(seconds=1)
    assert client.next_reply() == b"OK"
    later = client.add("q", "later")
    assert len(written(local)) < size_bytes
    local.lose_power()
    come_back(local)
    assert job_ids(local) == {later}
    assert ask(local.client(), "PAUSE", "p", "state") == b"none"


@pytest.mark.parametrize("works", range(12))
def test_flushall_is_answered_when_the_dropped_jobs_cannot_return(works: int) -> None:
    local = logging_node("always")
    client = local.client()
    ids = {client.add("q") for _ in range(50)}
    if works % 2:
        client.call("BGREWRITEAOF")
    local.host.disk.hold()
    client.send("DEBUG", "FLUSHALL")
    for _ in range(works):
        local.run(milliseconds=20)
        local.finish(1)
    answered = not client.silent
    local.lose_power()
    local.host.disk.repair()
    come_back(local)
    if answered:
        assert job_ids(local) == set()
    else:
        assert job_ids(local) in (set(), ids)
    assert works < 11 or answered


def test_a_repeated_pause_is_answered_when_it_is_logged() -> None:
    local = logging_node()
    client, other = local.client(), local.client()
    local.host.disk.hold(disk.APPEND)
    client.send("PAUSE", "q", "in")
    other.send("PAUSE", "q", "in")
    assert other.silent
    assert ask(local.client(), "PAUSE", "q", "state") == b"in"
    local.host.disk.repair()
    local.finish()
    assert other.next_reply() == b"in"


# --- ended at any step ------------------------------------------------------------------------------------------------

STEPS = 28


@pytest.mark.parametrize("step", range(STEPS))
@pytest.mark.parametrize(("policy", "end"), [("always", "power"), ("everysec", "kill"), ("no", "kill")])
def test_a_crash_at_any_time_loses_no_confirmed_change(policy: str, end: str, step: int) -> None:
    local = logging_node(policy)
    promises = Promises(local, random.Random(step))
    for _ in range(60):
        promises.act()
    client = local.client()
    local.host.disk.hold()
    assert ask(client, "BGREWRITEAOF") == STARTED
    for number in range(step):
        promises.act()
        if number % 2:
            local.run(milliseconds=20)
        local.finish(1)
    if step == STEPS - 1:
        assert local.host.disk.done["replace"] == 1
        local.finish()
        local.finish()
        assert int(info(client)["aof_current_size"]) == len(written(local))
    if end == "power":
        local.lose_power()
    else:
        local.crash()
    local.host.disk.repair()
    come_back(local)
    promises.check()


def test_a_rewrite_ends_despite_constant_changes_and_a_slow_disk() -> None:
    local = logging_node("always")
    promises = Promises(local, random.Random(0))
    local.host.disk.delay_ms = {disk.APPEND: 30, disk.SYNC: 100}
    assert ask(local.client(), "BGREWRITEAOF") == STARTED
    for _ in range(200):
        promises.act()
        local.run(milliseconds=10)
    assert local.host.disk.done["replace"] == 1


ACTIONS = (
    "act",
    "act",
    "act",
    "rewrite",
    "wait",
    "wait longer",
    "drop all",
    "slower",
    "faster",
    "fail",
    "kill",
    "power",
)


@given(st.lists(st.sampled_from(ACTIONS), min_size=5, max_size=60), st.integers(0, 2**32), st.booleans())
def test_random_histories_with_rewrites_keep_every_promise(actions: list[str], seed: int, always: bool) -> None:
    chance = random.Random(seed)
    local = logging_node("always" if always else "everysec")
    local.host.disk.chance.seed(seed)
    promises = Promises(local, chance)
    for action in [*actions, "kill"]:
        match action:
            case "act":
                for _ in range(chance.randrange(12)):
                    promises.act()
            case "rewrite":
                local.client().send("BGREWRITEAOF")
            case "wait" | "wait longer":
                local.run(milliseconds=chance.randrange(30 if action == "wait" else 3000))
            case "drop all":
                promises.drop_all()
            case "slower":
                local.host.disk.delay_ms[chance.choice(VERBS)] = chance.choice((1, 20, 300))
            case "faster":
                local.host.disk.delay_ms.clear()
            case "fail":
                local.host.disk.fail(chance.choice(VERBS), times=1)
            case "kill" | "power":
                if action == "power" and always:
                    local.lose_power()
                else:
                    local.crash()
                local.host.disk.repair()
                come_back(local)
                promises.check()
