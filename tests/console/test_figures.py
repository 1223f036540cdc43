"""Replies of the node are converted for the page."""

from __future__ import annotations

import errno
from typing import Any

from disqued.console.figures import node_figures
from disqued.core.host import disk
from disqued.testing.local import LocalNode
from support.logging_node import logging_node


def figures_of(local: LocalNode) -> dict[str, Any]:
    """The statistics of the node for the page."""
    reply: Any = local.client().call("INFO")
    return node_figures(reply)


def test_reason_of_disk_errors_is_included() -> None:
    local = logging_node()
    assert figures_of(local)["aof_refusing"] == ""
    local.host.disk.fail(disk.APPEND, error=errno.ENOSPC)
    local.client().send("ADDJOB", "mail", "body", 0, "REPLICATE", 1)
    assert "No space left on device" in figures_of(local)["aof_refusing"]
    local.host.disk.repair()
    local.run(seconds=2)
    assert figures_of(local)["aof_refusing"] == ""


def test_node_without_persistence_has_no_disk_figures() -> None:
    figures = figures_of(LocalNode())
    assert figures["aof_enabled"] == 0
    assert "aof_refusing" not in figures
    assert "aof_current_size" not in figures
