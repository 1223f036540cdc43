"""A node in virtual time with an append-only file on its disk in memory, and what that file contains."""

from __future__ import annotations

from typing import Final

from disqued.config import Config
from disqued.core.host import disk
from disqued.testing.local import LocalClient, LocalNode, encode

AOF: Final = "disque.aof"
REFUSAL: Final = "MISCONF Errors writing to the AOF file: "


def config(policy: str = "everysec", **options: object) -> Config:
    """A configuration with the append-only file on."""
    made = Config()
    made.assign("appendonly", True)
    made.assign("appendfsync", policy)
    for name, value in options.items():
        made.assign(name, value)
    return made


def logging_node(policy: str = "everysec", **options: object) -> LocalNode:
    """A node that has loaded its empty file."""
    local = LocalNode(config(policy, **options))
    while local.node.state.loading:
        local.run(milliseconds=1)
    return local


def hang(client: LocalClient) -> None:
    """Add a job whose record is not written, on a node whose disk hangs on writes."""
    client.send("ADDJOB", "mail", "body", 0)
    assert client.silent


def info(client: LocalClient) -> dict[str, str]:
    """The fields of INFO persistence."""
    reply = client.call("INFO", "persistence")
    assert isinstance(reply, bytes)
    lines = reply.decode().splitlines()[1:]
    return dict(line.split(":", 1) for line in lines if line)


def written(local: LocalNode) -> bytes:
    """The file as the next process finds it after a kill."""
    return bytes(local.host.disk.files[AOF])


def synced(local: LocalNode) -> bytes:
    """The part of the file that certainly survives a power loss."""
    return written(local)[: local.host.disk.synced_bytes(AOF)]


def keeps(data: bytes, job_id: bytes) -> bool:
    """Whether a file has a record of the job and none that deletes it."""
    return job_id in data and not forgets(data, job_id)


def forgets(data: bytes, job_id: bytes) -> bool:
    """Whether a file has a record that deletes the job."""
    return encode("DELJOB", job_id) in data


def finish_all(local: LocalNode) -> None:
    """Let the disk finish all pending work, and the work that follows from it."""
    while local.host.disk.pending:
        local.finish()


def syncing(local: LocalNode) -> bool:
    """Whether the disk is syncing the file."""
    return any(work.verb == disk.SYNC for work in local.host.disk.pending)


def told(local: LocalNode, level: str) -> list[str]:
    """The log lines."""
    return [text for at, text in local.host.log_lines if at == level]


def refused(client: LocalClient) -> str:
    """The error reply to a new job; empty if it is accepted."""
    client.replies()
    reply = client.call("ADDJOB", "probe", "body", 0)
    return "" if isinstance(reply, bytes) else str(reply)
