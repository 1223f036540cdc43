"""The guide about claims: its examples run, and what they write to refuses stale workers."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from obstore.store import MemoryStore

from disqued.testing.processes import ServerProcess, wait_until
from support.examples import run_python

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "fencing.md"
TEXT = PAGE.read_text(encoding="utf-8")
EARLY = 1_795_000_000_000 << 16 | 70
LATE = EARLY + 1
"""Claims that a floating-point number cannot tell apart."""


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL)


def check(write: Callable[[int, str], bool], read: Callable[[], str]) -> None:
    """A worker that is late is refused, and the last one can write as often as it likes."""
    assert write(EARLY, "first")
    assert write(LATE, "second")
    assert not write(EARLY, "late")
    assert read() == "second"
    assert write(LATE, "again")
    assert read() == "again"


def test_the_worker_runs(server: ServerProcess, tmp_path: Path) -> None:
    run_python(blocks("python")[0], server.port, tmp_path)


def test_sql_refuses_a_stale_worker() -> None:
    create, upsert = blocks("sql")
    database = sqlite3.connect(":memory:")
    database.execute(create)

    def write(claim: int, value: str) -> bool:
        return database.execute(upsert, {"item": "42", "claim": claim, "value": value}).rowcount == 1

    check(write, lambda: str(database.execute("SELECT value FROM results").fetchone()[0]))
    database.close()


def test_s3_refuses_a_stale_worker() -> None:
    """On a store in memory that has the conditional writes of S3."""
    names: dict[str, Any] = {}
    exec(blocks("python")[1], names)
    store = MemoryStore()
    check(
        lambda claim, value: names["write"](store, "42", value.encode(), claim),
        lambda: bytes(store.get("42").bytes()).decode(),
    )


def test_a_worker_that_writes_between_two_requests_is_not_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    exec(blocks("python")[1], names)
    store = MemoryStore()
    assert names["write"](store, "42", b"first", EARLY)
    get = names["obstore"].get
    asked = iter([True])

    def overtaken(*args: Any) -> Any:
        found = get(*args)
        if next(asked, False):
            store.put("42", b"second", attributes={"claim": str(LATE)})
        return found

    monkeypatch.setattr(names["obstore"], "get", overtaken)
    assert not names["write"](store, "42", b"late", EARLY)
    monkeypatch.undo()
    assert bytes(store.get("42").bytes()) == b"second"


@pytest.fixture
def redis_client(tmp_path: Path) -> Iterator[redis.Redis]:
    path = tmp_path / "redis.sock"
    process = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(tmp_path)],
        stdout=subprocess.DEVNULL,
    )
    client = redis.Redis(unix_socket_path=str(path), decode_responses=True)
    try:
        wait_until(path.exists, "Redis listens", str)
        yield client
    finally:
        client.close()
        process.terminate()
        process.wait()


def test_redis_refuses_a_stale_worker(redis_client: redis.Redis) -> None:
    (script,) = blocks("lua")

    def write(claim: int, value: str) -> bool:
        return bool(redis_client.eval(script, 1, "item:42", str(claim), value) == 1)

    check(write, lambda: str(redis_client.hget("item:42", "value")))
    assert not write(9, "a claim with fewer digits")
