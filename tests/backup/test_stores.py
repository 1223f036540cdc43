"""Backups in an S3 server and in a directory: made, listed, checked, deleted; what is incomplete or was changed."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backup.conftest import MakeCluster, backup, create, restore, start
from disqued.backup.errors import BackupError
from disqued.backup.main import main
from disqued.backup.manifest import Manifest
from disqued.backup.retention import DAY_S, Retention
from disqued.backup.store import Store
from disqued.testing.ports import LOOPBACK, free_port
from disqued.testing.processes import LocalProcess
from support.durable import DurableNode

BUCKET = "jobs"
KEY = "made-for-the-tests"


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a prefix in a bucket of an S3 server that checks signatures."""
    port, data = free_port(), tmp_path / "s3"
    (data / BUCKET).mkdir(parents=True)
    command = (sys.executable, "-m", "nanio", "serve", "--host", LOOPBACK, "--port", str(port), "--data-dir", str(data))
    environment = {**os.environ, "NANIO_ACCESS_KEY": KEY, "NANIO_SECRET_KEY": KEY}
    for name, value in (
        ("AWS_ACCESS_KEY_ID", KEY),
        ("AWS_SECRET_ACCESS_KEY", KEY),
        ("AWS_ENDPOINT_URL", f"http://{LOOPBACK}:{port}"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    directory = tmp_path / "s3-server"
    directory.mkdir()
    with LocalProcess(command, directory, port, environment=environment) as server:
        server.wait_until(server.accepts, "the S3 server accepts connections")
        yield f"s3://{BUCKET}/backups"


@pytest.fixture(params=["s3", "directory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for backups."""
    if request.param == "directory":
        return str(tmp_path / "backups")
    url: str = request.getfixturevalue("s3")
    return url


@pytest.fixture
def old(nodes_of: MakeCluster) -> list[DurableNode]:
    """A cluster with jobs, some of which are larger than a part of an upload."""
    nodes = start(nodes_of("old", 2))
    for body in ("small", b"x" * (9 << 20)):
        nodes[0].call("ADDJOB", "mail", body, 10_000, "REPLICATE", 2, "RETRY", 600)
    return nodes


def listed(capsys: pytest.CaptureFixture[str], store: str) -> list[dict[str, object]]:
    capsys.readouterr()
    backup("list", store, "--json")
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """The error of a command that fails."""
    assert main([str(word) for word in words]) == 1
    return capsys.readouterr().err


def object_of(store: str, tmp_path: Path, name: str, suffix: str) -> Path:
    """The file in which a store keeps an object."""
    root = tmp_path / "s3" / BUCKET / "backups" if store.startswith("s3") else Path(store)
    [found] = [path for path in (root / name).glob(f"*{suffix}") if path.is_file()]
    return found


def test_a_backup_is_listed_checked_and_restored(
    store: str, old: list[DurableNode], nodes_of: MakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    create(old[0], store, "--name", "first", "--cluster", "mails")
    [found] = listed(capsys, store)
    assert (found["name"], found["cluster"], found["jobs"], found["members"]) == ("first", "mails", 2, 2)
    backup("verify", store, "first")
    assert "first is complete: 2 jobs" in capsys.readouterr().out
    [new] = restore(store, nodes_of("new", 1))
    assert sorted(map(len, new.jobs().values())) == [5, 9 << 20]


def test_result_is_written_for_scripts(store: str, old: list[DurableNode], tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    create(old[0], store, "--result", str(result))
    assert json.loads(result.read_text())["jobs"] == 2


def test_a_backup_is_not_replaced(
    store: str, old: list[DurableNode], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    create(old[0], store, "--name", "first")
    words = ("create", store, "-h", LOOPBACK, "-p", str(old[0].port), "--name", "first")
    assert "has a backup first already" in refused(capsys, *words, "--result", tmp_path / "result")
    assert "has a backup first already" in json.loads((tmp_path / "result").read_text())["error"]


def test_a_backup_without_a_member_fails_and_is_incomplete(
    store: str, old: list[DurableNode], capsys: pytest.CaptureFixture[str]
) -> None:
    old[1].kill()
    error = refused(capsys, "create", store, "-h", LOOPBACK, "-p", str(old[0].port))
    assert "a backup needs all members of the cluster" in error
    assert f"{LOOPBACK}:{old[1].port}" in error
    assert listed(capsys, store) == []


def test_a_changed_copy_is_found(old: list[DurableNode], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    store = tmp_path / "backups"
    create(old[0], store, "--name", "first")
    copy = store / "first" / f"{old[0].call('CLUSTER', 'NODES')[:40].decode()}.aof"
    data = copy.read_bytes()
    copy.write_bytes(data[: data.index(b"*2\r\n$7\r\nLOADJOB", 1)])
    assert "is not what was written" in refused(capsys, "verify", store, "first")


def test_changed_settings_are_found(old: list[DurableNode], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    store = tmp_path / "backups"
    old[0].call("QCONF", "mail", "SET", "limit", 5)
    create(old[0], store, "--name", "first")
    settings = store / "first" / "queues.conf"
    settings.write_bytes(settings.read_bytes().replace(b'"5"', b'"6"'))
    assert "queues.conf in" in refused(capsys, "verify", store, "first")
    words = ("--nodes", f"{LOOPBACK}:1", "--node", "0", "--into", tmp_path / "node")
    assert "is not what was written" in refused(capsys, "restore", store, "first", *words)


def test_incomplete_backups_are_shown_and_not_restored(
    store: str, old: list[DurableNode], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    create(old[0], store, "--name", "first")
    object_of(store, tmp_path, "first", "manifest.json").unlink()
    backup("list", store)
    assert "first" in capsys.readouterr().out
    words = ("--nodes", f"{LOOPBACK}:1", "--node", "0", "--into", tmp_path / "node")
    assert "has no complete backup" in refused(capsys, "restore", store, "latest", *words)
    backup("prune", store, "--keep", "1")
    assert "first" not in capsys.readouterr().out, "it may still be written"


def test_old_backups_of_one_schedule_are_deleted(
    store: str, old: list[DurableNode], capsys: pytest.CaptureFixture[str]
) -> None:
    for name, words in (
        ("a", ("--schedule", "nightly")),
        ("b", ()),
        ("c", ("--schedule", "nightly")),
        ("d", ("--schedule", "nightly", "--cluster", "other")),
        ("e", ("--schedule", "nightly")),
    ):
        create(old[0], store, "--name", name, *words)
    backup("prune", store, "--schedule", "nightly", "--keep", 2)
    assert [found["name"] for found in listed(capsys, store)] == ["b", "c", "d", "e"]
    backup("verify", store, "c")


def test_a_directory_of_a_node_is_not_overwritten(
    old: list[DurableNode], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    store = tmp_path / "backups"
    create(old[0], store)
    words = ("restore", store, "latest", "--nodes", f"{LOOPBACK}:1", "--node", "0", "--into", old[0].directory)
    assert "has the files of a node" in refused(capsys, *words)
    backup(*words, "--once")
    assert "nothing is restored" in capsys.readouterr().out


def test_an_interrupted_restore_starts_again(old: list[DurableNode], tmp_path: Path) -> None:
    store, into = tmp_path / "backups", tmp_path / "node"
    create(old[0], store)
    into.mkdir()
    (into / "restore.unfinished").touch()
    (into / "disque.aof").write_bytes(b"*2\r\n$7\r\nLOAD")
    backup("restore", store, "latest", "--nodes", f"{LOOPBACK}:1", "--node", "0", "--into", into, "--once")
    assert sorted(path.name for path in into.iterdir()) == [
        "disque.aof",
        "disque.aof.restart",
        "nodes.conf",
        "queues.conf",
    ]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("nothing",),
        ("create", "x", "--name", "../x"),
        ("prune", "x"),
        ("restore", "x", "latest", "--nodes", "one", "--node", "0", "--into", "y"),
        ("restore", "x", "latest", "--nodes", "one:7711", "--node", "1", "--into", "y"),
    ],
)
def test_wrong_arguments_are_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err


def test_a_store_that_does_not_answer_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, s3: str
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    assert f"cannot list {s3}" in refused(capsys, "list", s3)


def made_at(name: str, days_ago: float) -> Manifest:
    return Manifest(name, "mails", "nightly", 100 * DAY_S - days_ago * DAY_S, 0.0, "1", 0)


@pytest.mark.parametrize(
    ("retention", "deleted"),
    [
        (Retention(count=2), ["two", "nine"]),
        (Retention(days=5), ["nine"]),
        (Retention(count=3, days=1), ["two", "nine"]),
        (Retention(count=9, days=99), []),
    ],
)
def test_retention_counts_from_the_latest_backup(retention: Retention, deleted: list[str]) -> None:
    backups = [made_at("nine", 9), made_at("now", 0), made_at("one", 0.9), made_at("two", 2)]
    assert retention.expired(backups, 100 * DAY_S) == deleted


def test_the_latest_backup_is_kept_however_old_it_is() -> None:
    assert Retention(count=1, days=1).expired([made_at("only", 50)], 100 * DAY_S) == []


def test_a_new_backup_deletes_old_ones_of_its_schedule(
    store: str, old: list[DurableNode], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--schedule", "nightly", "--prune-days", "1")
    create(old[0], store, "--name", "old", *words)
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s + 2 * DAY_S)
    create(old[0], store, "--name", "new", *words)
    assert [found["name"] for found in listed(capsys, store)] == ["new"]


def test_backup_is_good_although_old_ones_cannot_be_deleted(
    old: list[DurableNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_store: Store, _paths: list[str]) -> None:
        raise BackupError("access denied")

    store, result = tmp_path / "backups", tmp_path / "result"
    create(old[0], store, "--name", "old")
    monkeypatch.setattr(Store, "delete", refuse)
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s + 2 * DAY_S)
    create(old[0], store, "--name", "new", "--prune-days", "1", "--result", str(result))
    reported = json.loads(result.read_text())
    assert (reported["name"], reported["prune_error"]) == ("new", "access denied")


def test_the_latest_backup_is_found_by_name(
    store: str, old: list[DurableNode], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    result = tmp_path / "result"
    assert "has no complete backup" in refused(capsys, "find", store, "latest", "--result", result)
    assert "has no complete backup" in json.loads(result.read_text())["error"]
    create(old[0], store, "--name", "first")
    backup("find", store, "latest", "--result", result)
    assert json.loads(result.read_text())["name"] == "first"


def test_restore_reports_what_became_of_the_jobs(old: list[DurableNode], tmp_path: Path) -> None:
    store, result = tmp_path / "backups", tmp_path / "result"
    create(old[0], store, "--name", "first")
    words = ("--nodes", f"{LOOPBACK}:1", "--node", "0", "--into", tmp_path / "node", "--result", result)
    backup("restore", store, "first", *words)
    assert json.loads(result.read_text()) == {"name": "first", "node": 0, "owns": {"restored": 2}}
