"""The disk of a running server fails, is full, slow or hangs: new jobs are refused with the reason, the rest works.

New jobs are accepted again when the disk is repaired, and nothing that was answered is lost.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from disqued.client import ResponseError
from disqued.testing.processes import POLL_S, ServerProcess
from durability.conftest import POLICIES, Make
from support.durable import DurableNode
from support.faultydisk import SYNC, WRITE, FaultyDisk
from support.nodeclient import TIMEOUT_S, NodeClient, Word

REFUSED: Final = "MISCONF Errors writing to the AOF file: "
KILOBYTE: Final = 1 << 10
ADD: Final = ("ADDJOB", "work", "x" * 500, 0)


def refusal(node: DurableNode, *words: Word) -> str:
    """The error reply to a command; empty if it succeeds."""
    try:
        node.call(*words)
    except ResponseError as refused:
        return str(refused)
    return ""


def check_without_disk(node: DurableNode, job_id: bytes) -> None:
    """Check everything that needs no disk."""
    assert node.call("QLEN", "work") > 0
    assert node.call("GETJOB", "FROM", "work")[0][1] == job_id
    assert node.show(job_id) is not None
    assert node.call("QPEEK", "work", 10) is not None
    assert node.call("ENQUEUE", job_id) == 1
    assert node.info()["aof_enabled"] == "1"


def answered_later(node: DurableNode, *words: Word) -> NodeClient:
    """A client that waits for the reply to a command that must be logged first."""
    client = node.connect()
    client.send(*words)
    return client


@pytest.fixture
def node(make_faulty: Make, request: pytest.FixtureRequest) -> DurableNode:
    """A running node with the `appendfsync` policy of the test."""
    policy = getattr(request, "param", "everysec")
    new = make_faulty("node", policy)
    new.start()
    return new


def restarted(node: DurableNode) -> set[bytes]:
    """Kill the node and restart it; returns its jobs."""
    node.kill()
    node.start()
    return set(node.jobs())


@pytest.mark.parametrize("node", POLICIES, indirect=True)
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EROFS], ids=os.strerror)
def test_new_jobs_are_refused_while_writes_fail(node: DurableNode, error: int) -> None:
    job = node.call(*ADD)
    disk = FaultyDisk(node.directory)
    disk.fail(WRITE, error=error)
    with contextlib.closing(answered_later(node, *ADD)) as adding:
        node.until(lambda: refusal(node, "PING"), "new jobs are refused")
        reason = refusal(node, *ADD)
        assert reason.startswith(REFUSED)
        assert os.strerror(error) in reason
        assert refusal(node, "PING") == reason
        assert node.info()["aof_last_write_status"] == "err"
        check_without_disk(node, job)
        with contextlib.closing(answered_later(node, "ACKJOB", job)) as acknowledging:
            node.until(lambda: node.show(job) is None, "the job is acknowledged")
            disk.repair()
            late = adding.read()
            assert acknowledging.read() == 1
    node.until(lambda: not refusal(node, "PING"), "it recovers by itself")
    assert node.info()["aof_last_write_status"] == "ok"
    assert restarted(node) == {late}


@pytest.mark.parametrize("node", ["always", "everysec"], indirect=True)
def test_new_jobs_are_refused_while_syncs_fail(node: DurableNode) -> None:
    """After a failed sync the file cannot be trusted: it is rewritten."""
    job = node.call(*ADD)
    disk = FaultyDisk(node.directory)
    disk.fail(SYNC)
    with contextlib.closing(answered_later(node, *ADD)) as adding:
        node.until(lambda: refusal(node, "PING"), "new jobs are refused")
        assert "Input/output error" in refusal(node, *ADD)
        check_without_disk(node, job)
        disk.repair()
        late = adding.read()
    node.until(lambda: not refusal(node, "PING"), "it recovers by itself")
    assert "The append only file was rewritten" in node.log
    assert {job, late} <= restarted(node)


@pytest.mark.parametrize("node", ["always", "everysec"], indirect=True)
def test_new_jobs_are_refused_while_a_sync_is_slow(node: DurableNode) -> None:
    job = node.call(*ADD)
    disk = FaultyDisk(node.directory)
    disk.slow(SYNC, seconds=4)
    with contextlib.closing(answered_later(node, *ADD)) as adding:
        node.until(lambda: node.info()["aof_pending_bio_fsync"] == "1", "it syncs")
        began_s = time.monotonic()
        for _ in range(20):
            check_without_disk(node, job)
        assert node.info()["aof_pending_bio_fsync"] == "1", f"all that during a sync ({time.monotonic() - began_s:g} s)"
        node.until(lambda: refusal(node, "PING"), "new jobs are refused after two seconds")
        disk.repair()
        late = adding.read()
    node.until(lambda: not refusal(node, "PING"), "it recovers by itself")
    assert int(node.info()["aof_delayed_fsync"]) >= 1
    assert {job, late} <= restarted(node)


def test_threads_write_after_a_slow_write(node: DurableNode) -> None:
    """The first slow write blocks all clients; later ones delay only those that wait for them."""
    job = node.call(*ADD)
    disk = FaultyDisk(node.directory)
    disk.slow(WRITE, seconds=0.1)
    slow = node.call(*ADD)
    disk.hang(WRITE)
    with contextlib.closing(answered_later(node, *ADD)) as adding:
        node.until(lambda: refusal(node, "PING"), "new jobs are refused after two seconds")
        check_without_disk(node, job)
        disk.repair()
        late = adding.read()
    node.until(lambda: not refusal(node, "PING"), "it recovers by itself")
    assert restarted(node) == {job, slow, late}


# --- shutdown with a bad disk -----------------------------------------------------------------------------------------


def test_server_with_a_hanging_disk_ends_at_the_second_sigint(node: DurableNode) -> None:
    assert node.process is not None
    FaultyDisk(node.directory).hang(SYNC)
    node.call(*ADD)
    node.signal(signal.SIGINT)
    node.until(lambda: "Received SIGINT, shutting down..." in node.log, "it heard the first one")
    assert not node.process.has_ended
    assert node.end(signal.SIGINT) == 1


def test_server_with_a_hanging_disk_ends_at_a_second_later_sigterm(node: DurableNode) -> None:
    assert node.process is not None
    FaultyDisk(node.directory).hang(SYNC)
    node.call(*ADD)
    while not node.process.has_ended:
        node.signal(signal.SIGTERM)
        time.sleep(0.5)
    assert node.process.wait() == 1


@pytest.mark.parametrize("node", ["always"], indirect=True)
def test_duplicate_sigterm_causes_a_clean_shutdown_with_all_replies(node: DurableNode) -> None:
    """As when a process group gets the signal, and its leader forwards it."""
    job = node.call(*ADD)
    disk = FaultyDisk(node.directory)
    disk.hang(SYNC)
    with contextlib.closing(answered_later(node, *ADD)) as adding:
        node.until(lambda: node.info()["aof_pending_bio_fsync"] == "1", "the job waits for a sync")
        node.signal(signal.SIGTERM)
        node.until(lambda: "Received SIGTERM, shutting down..." in node.log, "it heard the first one")
        node.signal(signal.SIGTERM)
        disk.repair()
        late = adding.read()
    assert node.process is not None
    assert node.process.wait() == 0
    assert set(node_after(node)) == {job, late}


@pytest.mark.slow
def test_server_that_cannot_write_retries_and_then_ends(node: DurableNode) -> None:
    job = node.call(*ADD)
    FaultyDisk(node.directory).fail(WRITE)
    with contextlib.closing(answered_later(node, *ADD)) as adding:
        assert node.end(signal.SIGTERM) == 1
        with pytest.raises(EOFError):
            adding.read()
    assert "Exiting without flushing the AOF" in node.log
    assert set(node_after(node)) == {job}


def node_after(node: DurableNode) -> dict[bytes, bytes]:
    """The jobs that the next process loads with a healthy disk."""
    FaultyDisk(node.directory).repair()
    node.start()
    return node.jobs()


def test_shutdown_is_clean_when_the_disk_recovers_in_time(node: DurableNode) -> None:
    job = node.call(*ADD)
    disk = FaultyDisk(node.directory)
    disk.fail(WRITE)
    with contextlib.closing(answered_later(node, *ADD)) as adding:
        node.signal(signal.SIGTERM)
        node.until(lambda: "could not be written" in node.log, "it tried")
        node.call("QLEN", "work")
        disk.repair()
        late = adding.read()
        assert node.end(signal.SIGCONT) == 0
    assert set(node_after(node)) == {job, late}


def test_shutdown_is_refused_while_the_disk_fails(node: DurableNode) -> None:
    job = node.call(*ADD)
    disk = FaultyDisk(node.directory)
    disk.fail(WRITE)
    with contextlib.closing(answered_later(node, *ADD)) as adding:
        node.until(lambda: refusal(node, "PING"), "there is something that cannot be written")
        assert refusal(node, "SHUTDOWN") == "ERR Errors trying to SHUTDOWN. Check logs."
        disk.repair()
        late = adding.read()
    node.until(lambda: not refusal(node, "PING"), "it recovers by itself")
    assert restarted(node) == {job, late}


# --- real limits ------------------------------------------------------------------------------------------------------

LIMIT: Final = 100 * KILOBYTE
SPACE: Final = 300 * KILOBYTE
BALLAST: Final = 100 * KILOBYTE
MOUNT: Final = (
    f"mkdir data && mount -t tmpfs -o size={SPACE} tmpfs data && head -c {BALLAST} </dev/zero >data/ballast && "
    'exec "$@"'
)
"""Runs a program with its own small file system, if user namespaces allow it."""


def fill_up(client: NodeClient) -> list[bytes]:
    """Add jobs until one is not answered; returns the IDs of the others. The last reply is still outstanding."""
    added: list[bytes] = []
    client.socket.settimeout(2)
    with contextlib.suppress(TimeoutError):
        while True:
            added.append(client.call(*ADD))
    client.socket.settimeout(TIMEOUT_S)
    return added


def refused_until(client: NodeClient, repair: Callable[[], object]) -> str:
    """Why new jobs are refused. Repairs the disk, and returns when the node accepts jobs again."""
    with pytest.raises(ResponseError) as refused:
        client.call(*ADD)
    assert client.call("QLEN", "work") > 0
    repair()
    deadline_s = time.monotonic() + TIMEOUT_S
    while True:
        try:
            client.call("PING")
        except ResponseError:
            assert time.monotonic() < deadline_s
            time.sleep(POLL_S)
        else:
            return str(refused.value)


def test_new_jobs_are_refused_at_the_file_size_limit(make: Make, tmp_path: Path) -> None:
    limited = tmp_path / "node"
    limited.mkdir()
    launcher = ("prlimit", f"--fsize={LIMIT}:unlimited")
    with ServerProcess(limited, "--appendonly", "yes", launcher=launcher) as server:
        with (
            contextlib.closing(NodeClient(server.port)) as filling,
            contextlib.closing(NodeClient(server.port)) as other,
        ):
            added = fill_up(filling)
            assert len(added) > 50
            unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            why = refused_until(other, lambda: resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, unlimited))
            assert why.startswith(REFUSED + "File too large")
            added += [filling.read(), other.call(*ADD)]
        server.process.kill()
        server.process.wait()
        node = make("node", "everysec")
        node.start()
        assert set(node.jobs()) == set(added)


@pytest.fixture(scope="module")
def own_mounts(tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """A launcher that mounts a small file system at `data`."""
    launcher = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh")
    tried = subprocess.run([*launcher, "true"], cwd=tmp_path_factory.mktemp("tried"), capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"no file systems of one's own here: {tried.stderr.decode()}")
    return launcher


def test_new_jobs_are_refused_when_the_disk_is_full(own_mounts: Sequence[str], make: Make, tmp_path: Path) -> None:
    arguments = ("--appendonly", "yes", "--dir", "data", "--auto-aof-rewrite-percentage", "0")
    with ServerProcess(tmp_path, *arguments, launcher=own_mounts) as server:
        data = Path(f"/proc/{server.process.pid}/root{tmp_path}/data")
        with (
            contextlib.closing(NodeClient(server.port)) as filling,
            contextlib.closing(NodeClient(server.port)) as other,
        ):
            added = fill_up(filling)
            assert len(added) > 100
            size = (data / "disque.aof").stat().st_size
            assert other.call("BGREWRITEAOF") is not None
            why = refused_until(other, (data / "ballast").unlink)
            assert why.startswith(REFUSED + "No space left on device")
            assert (data / "disque.aof").stat().st_size > size, "it grew where it was"
            added += [filling.read(), other.call(*ADD)]
        node = make("copy", "everysec")
        node.aof.write_bytes((data / "disque.aof").read_bytes())
        node.start()
        assert set(node.jobs()) == set(added)
