"""A node in virtual time that logs to its disk in memory, and what that file says, for tests that read as scenarios."""

from __future__ import annotations

from typing import Final

from disqued.config import Config
from disqued.core.host import disk
from disqued.testing.local import LocalClient, LocalNode, encode

AOF: Final = "disque.aof"
REFUSAL: Final = "MISCONF Errors writing to the AOF file: "


def config(policy: str = "everysec", **options: object) -> Config:
    """A configuration with the append only file on."""
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


def info(client: LocalClient) -> dict[str, str]:
    """The fields of INFO persistence."""
    reply = client.call("INFO", "persistence")
    assert isinstance(reply, bytes)
    lines = reply.decode().splitlines()[1:]
    return dict(line.split(":", 1) for line in lines if line)


def written(local: LocalNode) -> bytes:
    """The file, as a process finds it that starts after this one was killed."""
    return bytes(local.host.disk.files[AOF])


def synced(local: LocalNode) -> bytes:
    """What a loss of power leaves of it for certain."""
    return written(local)[: local.host.disk.synced_bytes(AOF)]


def keeps(data: bytes, job_id: bytes) -> bool:
    """Whether a file has a record of that job, and none that it is gone."""
    return job_id in data and not forgets(data, job_id)


def forgets(data: bytes, job_id: bytes) -> bool:
    """Whether a file says that a job is gone."""
    return encode("DELJOB", job_id) in data


def finish_all(local: LocalNode) -> None:
    """Let the disk finish all that it has under way, and what follows from that."""
    while local.host.disk.pending:
        local.finish()


def syncing(local: LocalNode) -> bool:
    """Whether the disk is at a sync of the file."""
    return any(work.verb == disk.SYNC for work in local.host.disk.pending)


def told(local: LocalNode, level: str) -> list[str]:
    """What the log was told."""
    return [text for at, text in local.host.log_lines if at == level]


def refused(client: LocalClient) -> str:
    """The error that answers a new job now; empty if it is taken."""
    client.replies()
    reply = client.call("ADDJOB", "probe", "body", 0)
    return "" if isinstance(reply, bytes) else str(reply)
