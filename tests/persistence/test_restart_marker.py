"""The restart marker: whenever and however the node stops, queued jobs are queued again once, and never twice."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from disqued.core.host import disk
from disqued.core.host.disk import DiskWork
from disqued.persistence.records import forget
from disqued.testing.disk import MemoryDisk
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalNode
from support.aofcontent import come_back
from support.logging_node import config

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient

FILE = "disque.aof"
MARKER = "disque.aof.restart"
NEVER = 1 << 62


class Killed(BaseException):
    """The process was killed during a disk operation."""


class DeadlyDisk(MemoryDisk):
    """Kills the process after a number of disk operations, or fails one of them."""

    works_left = NEVER
    fails_at: tuple[int, str] | None = None
    """A verb, and a part of the name of the file or of the file that it replaces."""

    def _count(self, work: DiskWork) -> None:
        if self.fails_at is not None and work.verb == self.fails_at[0] and self.fails_at[1] in work.name + work.other:
            self.fail(self.fails_at[0], times=1)
        self.works_left -= 1
        if self.works_left < 0:
            self.works_left = NEVER
            raise Killed

    def start(self, work: DiskWork) -> None:
        self._count(work)
        super().start(work)

    def perform(self, work: DiskWork) -> None:
        self._count(work)
        super().perform(work)


class DeadlyHost(FakeHost):
    def new_disk(self) -> DeadlyDisk:
        return DeadlyDisk(lambda: self.now_ms, self._seed)


def marking_node(*, appendonly: bool = True, seed: int = 0) -> LocalNode:
    """Return a node that has loaded an empty file, and writes a marker when it stops."""
    local = LocalNode(config(appendonly=appendonly, aof_restart_marker=True), DeadlyHost(seed))
    while local.node.state.loading:
        local.run(milliseconds=1)
    return local


def deadly(local: LocalNode) -> DeadlyDisk:
    made = local.host.disk
    assert isinstance(made, DeadlyDisk)
    return made


def end(local: LocalNode) -> None:
    assert local.shut_down("REWRITE-AOF") is None


def log_of(local: LocalNode) -> str:
    return "\n".join(text for _, text in local.host.log_lines)


def delivered(local: LocalNode) -> list[bytes]:
    """Return the jobs that a worker gets now."""
    return local.client().take("mail", count=100)


def filled(local: LocalNode) -> tuple[list[bytes], list[bytes]]:
    """Add at-most-once and at-least-once jobs, deliver one of each, and sync; return the IDs of the queued ones."""
    client: LocalClient = local.client()
    for retry in (0, 300):
        client.add("mail", "taken", "RETRY", retry)
    local.client().take("mail", count=2)
    once, again = ([client.add("mail", "waits", "RETRY", retry) for _ in range(3)] for retry in (0, 300))
    local.run(seconds=3)
    return once, again


# --- what it does -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("appendonly", [True, False])
def test_a_marker_makes_the_next_start_queue_the_jobs_again(appendonly: bool) -> None:
    local = marking_node(appendonly=appendonly)
    once, again = filled(local)
    end(local)
    assert MARKER in local.host.disk.files
    come_back(local)
    assert MARKER not in local.host.disk.files
    assert "The queues are as the last run left them; disque.aof.restart said so, and is used up" in log_of(local)
    assert sorted(delivered(local)) == sorted(once + again)


def test_a_sealed_file_is_loaded_by_any_node() -> None:
    local = marking_node()
    filled(local)
    end(local)
    text = bytes(local.host.disk.files[MARKER])
    seal = forget(text.split()[-1])
    content = bytes(local.host.disk.files[FILE])
    assert text == b"controlled shutdown: %d bytes, sealed by %b\n" % (len(content), text.split()[-1])
    assert content.endswith(seal)


@pytest.mark.parametrize("appendonly", [True, False])
def test_without_the_directive_there_is_no_marker_and_no_seal(appendonly: bool) -> None:
    local = marking_node(appendonly=appendonly)
    assert local.client().call("CONFIG", "SET", "aof-restart-marker", "no") == b"OK"
    end(local)
    assert set(local.host.disk.files) == {FILE}
    assert not local.host.disk.files[FILE]


def test_a_marker_is_used_by_a_node_that_writes_none() -> None:
    local = marking_node()
    once, again = filled(local)
    end(local)
    local.config.assign("aof_restart_marker", False)
    come_back(local)
    assert sorted(delivered(local)) == sorted(once + again)


def test_a_plain_shutdown_leaves_no_marker() -> None:
    local = marking_node()
    filled(local)
    assert local.shut_down() is None
    assert MARKER not in local.host.disk.files


# --- a marker that does not belong to the file ------------------------------------------------------------------------


def left_behind(local: LocalNode) -> bytes:
    """Return a marker that was not removed, as by an older version or by an administrator who restores files."""
    end(local)
    return bytes(local.host.disk.files[MARKER])


def changed_by_a_record(local: LocalNode) -> None:
    local.host.disk.files[FILE].extend(forget(b"D-5ca1ab1e-MTIzNDU2Nzg5MDEyMzQ1Njc4-05a1"))


def rewritten_with_the_same_size(local: LocalNode) -> None:
    content = local.host.disk.files[FILE]
    content[-20:-10] = b"0123456789"


def cut_off(local: LocalNode) -> None:
    del local.host.disk.files[FILE][-1:]


def gone(local: LocalNode) -> None:
    local.host.disk.perform(DiskWork(disk.REMOVE, FILE))


@pytest.mark.parametrize("change", [changed_by_a_record, rewritten_with_the_same_size, cut_off, gone])
@pytest.mark.parametrize("appendonly", [True, False])
def test_a_marker_of_another_file_is_ignored_and_removed(appendonly: bool, change: object) -> None:
    local = marking_node(appendonly=appendonly)
    once, _ = filled(local)
    left_behind(local)
    assert callable(change)
    change(local)
    come_back(local)
    assert MARKER not in local.host.disk.files
    assert "disque.aof.restart does not belong to disque.aof as it is now, and is removed" in log_of(local)
    assert not set(delivered(local)) & set(once)


def test_a_used_marker_that_reappears_is_ignored() -> None:
    local = marking_node()
    once, again = filled(local)
    text = left_behind(local)
    come_back(local)
    assert sorted(delivered(local)) == sorted(once + again)
    local.run(seconds=3)
    local.crash()
    local.host.disk.put(MARKER, text)
    come_back(local)
    assert delivered(local) == []


@pytest.mark.parametrize(
    "text", [b"", b"controlled shutdown", b"controlled shutdown: x bytes, sealed by y\n", b"\0" * 300]
)
def test_an_invalid_marker_is_ignored(text: bytes) -> None:
    local = marking_node()
    once, _ = filled(local)
    end(local)
    local.host.disk.put(MARKER, text)
    come_back(local)
    assert MARKER not in local.host.disk.files
    assert not set(delivered(local)) & set(once)


# --- an end at each point ---------------------------------------------------------------------------------------------


def lives(local: LocalNode, *, power: bool) -> list[bytes]:
    """Return what the next two processes deliver. The first one is killed or loses power right after its deliveries."""
    local.restart()
    while local.node.state.loading:
        local.run(milliseconds=1)
    found = delivered(local)
    if power:
        local.lose_power()
    else:
        local.crash()
    come_back(local)
    return found + delivered(local)


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power"])
@pytest.mark.parametrize("appendonly", [True, False])
@pytest.mark.parametrize("works", range(13))
def test_a_crash_at_any_step_of_the_shutdown_repeats_no_delivery(works: int, appendonly: bool, power: bool) -> None:
    for seed in range(4):
        local = marking_node(appendonly=appendonly, seed=seed)
        once, again = filled(local)
        deadly(local).works_left = works
        with contextlib.suppress(Killed):
            local.client().send("SHUTDOWN", "REWRITE-AOF")
        deadly(local).works_left = NEVER
        if power:
            local.lose_power()
        whole = MARKER in local.host.disk.files
        found = lives(local, power=power)
        at_most_once = [job_id for job_id in found if job_id in once]
        assert len(at_most_once) == len(set(at_most_once)), "delivered twice"
        if whole:
            assert set(once + again) <= set(found)
        elif appendonly and seed == 0:
            local.run(seconds=400)
            assert set(again) <= {*found, *delivered(local)}, "nothing is lost that comes back"


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power"])
@pytest.mark.parametrize("appendonly", [True, False])
@pytest.mark.parametrize("works", range(10))
def test_a_crash_at_any_step_of_the_start_repeats_no_delivery(works: int, appendonly: bool, power: bool) -> None:
    for seed in range(4):
        local = marking_node(appendonly=appendonly, seed=seed)
        once, again = filled(local)
        end(local)
        deadly(local).works_left = works
        with contextlib.suppress(Killed):
            come_back(local)
        deadly(local).works_left = NEVER
        if power:
            local.lose_power()
        kept = MARKER in local.host.disk.files and len(local.host.disk.files[MARKER]) > 0
        found = lives(local, power=power)
        at_most_once = [job_id for job_id in found if job_id in once]
        assert len(at_most_once) == len(set(at_most_once)), "delivered twice"
        if kept and FILE in local.host.disk.files:
            assert set(once + again) <= set(found), "not used up, so all is queued"


def test_a_used_marker_is_ignored_if_a_power_loss_undoes_its_removal() -> None:
    for seed in range(30):
        local = marking_node(seed=seed)
        once, _ = filled(local)
        end(local)
        come_back(local)
        found = delivered(local)
        assert set(once) <= set(found)
        local.lose_power()
        come_back(local)
        assert not set(delivered(local)) & set(once), seed


# --- a disk that fails ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "at", [(disk.OPEN, "marker"), (disk.APPEND, "marker"), (disk.SYNC, "marker"), (disk.REPLACE, MARKER)]
)
@pytest.mark.parametrize("appendonly", [True, False])
def test_restart_marker_that_cannot_be_made_leaves_no_sealed_file(appendonly: bool, at: tuple[int, str]) -> None:
    local = marking_node(appendonly=appendonly)
    once, _ = filled(local)
    deadly(local).fails_at = at
    assert "ERR Errors trying to SHUTDOWN" in str(local.shut_down("REWRITE-AOF"))
    local.run(seconds=3)
    assert set(local.host.disk.files) == ({FILE} if appendonly else set())
    assert set(once) <= set(delivered(local))
    deadly(local).fails_at = None
    if appendonly:
        local.crash()
        come_back(local)
        assert not set(delivered(local)) & set(once)


def test_node_that_cannot_truncate_the_restart_marker_does_not_serve() -> None:
    local = marking_node()
    once, again = filled(local)
    end(local)
    local.host.disk.fail(disk.TRUNCATE)
    local.restart()
    local.run(seconds=1)
    assert local.host.ended is not None
    assert "The restart marker must not be found again, and can't truncate disque.aof.restart" in local.host.ended
    local.host.disk.repair()
    come_back(local)
    assert sorted(delivered(local)) == sorted(once + again)


def test_a_node_without_a_log_serves_when_its_file_is_renamed() -> None:
    local = marking_node(appendonly=False)
    once, again = filled(local)
    end(local)
    local.host.disk.fail(disk.TRUNCATE)
    come_back(local)
    assert sorted(delivered(local)) == sorted(once + again)
    local.host.disk.repair()
    come_back(local)
    assert delivered(local) == []


@pytest.mark.parametrize("appendonly", [True, False])
def test_node_that_cannot_read_the_restart_marker_does_not_serve(appendonly: bool) -> None:
    local = marking_node(appendonly=appendonly)
    filled(local)
    end(local)
    local.host.disk.fail(disk.READ)
    local.restart()
    local.run(seconds=1)
    assert local.host.ended is not None
    assert (
        "Can't tell whether the last shutdown was a controlled one: can't read disque.aof.restart" in local.host.ended
    )
