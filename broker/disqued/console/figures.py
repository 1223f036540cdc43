"""Converts replies for the page: statistics of INFO, members of the cluster, queues of QSTAT."""

from __future__ import annotations

from typing import Any, Final

from disqued.console.text import key_of, shown
from disqued.resp.replies import Reply

MAX_MEMBERS: Final = 200

NUMBERS: Final = (
    "registered_jobs",
    "queued_jobs",
    "registered_queues",
    "connected_clients",
    "blocked_clients",
    "used_memory",
    "used_memory_rss",
    "maxmemory",
    "memory_level",
    "total_commands_processed",
    "total_net_input_bytes",
    "total_net_output_bytes",
    "uptime_in_seconds",
    "expired_jobs",
    "evicted_jobs",
    "acked_jobs",
    "jobs_imported",
    "jobs_exported",
    "jobs_waiting_for_copies",
    "loading",
    "aof_enabled",
    "aof_current_size",
    "cluster_max_skew_ms",
    "leaving_jobs_left",
    "leaving_jobs_transferred",
    "leaving_rate",
    "leaving_seconds_left",
)
"""INFO fields that the page shows; missing fields are omitted."""
TEXTS: Final = (
    "disqued_version",
    "build",
    "aof_last_write_status",
    "aof_refusing",
    "tcp_port",
    "leaving_done",
    "leaving_waits_for",
)


def node_figures(info: Reply) -> dict[str, Any]:
    """Convert the reply of INFO."""
    lines = text_of(info).splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    figures: dict[str, Any] = {name: int(fields[name]) for name in NUMBERS if fields.get(name, "").isdigit()}
    return figures | {name: fields[name] for name in TEXTS if name in fields}


def members(nodes: Reply, hello: Reply) -> list[dict[str, Any]]:
    """Convert the replies of CLUSTER NODES and HELLO: at most MAX_MEMBERS, this node first, then failed ones."""
    addresses = _announced(hello)
    rows = []
    for line in text_of(nodes).splitlines():
        words = line.split()
        if len(words) != _WORDS:
            continue
        flags = [flag for flag in words[2].split(",") if flag not in {"myself", "noflags"}]
        rows.append(
            {
                "id": words[0],
                "address": addresses.get(words[0], words[1]),
                "myself": "myself" in words[2].split(","),
                "flags": flags,
                "connected": words[5] == "connected",
            }
        )
    rows.sort(key=lambda row: (not row["myself"], not row["flags"] and row["connected"], row["address"], row["id"]))
    return rows[:MAX_MEMBERS]


_WORDS: Final = 6
_REDRIVE: Final = ("moved", "left", "failed", "started", "rate")


def _announced(hello: Reply) -> dict[str, str]:
    """Return the client addresses of the nodes, by ID."""
    found = {}
    for node in hello[2:] if isinstance(hello, list) else ():
        if isinstance(node, list) and len(node) == 4:
            node_id, host, port = map(text_of, node[:3])
            if host:
                found[node_id] = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return found


def queue_figures(qstat: Reply) -> dict[str, Any] | None:
    """Convert the reply of QSTAT; None if there is no such queue."""
    if not isinstance(qstat, list):
        return None
    fields = pairs(qstat)
    name = bytes_of(fields.get("name"))
    return {
        "queue": key_of(name),
        "shown": shown(name),
        "len": fields.get("len"),
        "ordered": text_of(fields.get("type")) == "ordered",
        "age_s": fields.get("age", 0),
        "idle_s": fields.get("idle"),
        "blocked": fields.get("blocked"),
        "imports": fields.get("import-rate"),
        "jobs_in": fields.get("jobs-in"),
        "jobs_out": fields.get("jobs-out"),
        "pause": text_of(fields.get("pause")),
        "dead": fields.get("dead", 0),
        "leased": fields.get("leased", 0),
        "delayed": fields.get("delayed", 0),
        "held": fields.get("held", 0),
        "limited": text_of(fields.get("limited", b"no")),
    }


def settings_set(qconf: Reply) -> list[dict[str, str]]:
    """Convert the reply of QCONF GET: the settings that are not defaults, with the name that each comes from."""
    words = [shown(bytes_of(word)) for word in qconf] if isinstance(qconf, list) else []
    rows = zip(words[::3], words[1::3], words[2::3], strict=False)
    return [{"setting": name, "value": value, "source": source} for name, value, source in rows if source]


def redrive_status(status: Reply) -> dict[str, Any] | None:
    """Convert the reply of REDRIVE STATUS; None if the node knows of no REDRIVE of the queue."""
    if not isinstance(status, list):
        return None
    fields = pairs(status)
    return {"state": text_of(fields.get("state")), **{name: fields.get(name) for name in _REDRIVE}}


def pairs(flat: list[Reply]) -> dict[str, Reply]:
    """Convert alternating names and values."""
    return {text_of(name): value for name, value in zip(flat[::2], flat[1::2], strict=False)}


def bytes_of(reply: Reply) -> bytes:
    """Return a string, possibly truncated; empty for other replies."""
    return reply if isinstance(reply, bytes) else b""


def text_of(reply: Reply) -> str:
    """Return a string as text."""
    return bytes_of(reply).decode("utf-8", "replace")
