"""Replies of the node become what the page is told."""

from __future__ import annotations

import errno
from typing import Any

from disqued.console.figures import node_figures
from disqued.core.host import disk
from disqued.testing.local import LocalNode
from support.logging_node import logging_node


def figures_of(local: LocalNode) -> dict[str, Any]:
    """What the page is told of the node."""
    reply: Any = local.client().call("INFO")
    return node_figures(reply)


def test_why_the_disk_fails_is_told() -> None:
    local = logging_node()
    assert figures_of(local)["aof_refusing"] == ""
    local.host.disk.fail(disk.APPEND, error=errno.ENOSPC)
    local.client().send("ADDJOB", "mail", "body", 0, "REPLICATE", 1)
    assert "No space left on device" in figures_of(local)["aof_refusing"]
    local.host.disk.mend()
    local.run(seconds=2)
    assert figures_of(local)["aof_refusing"] == ""


def test_a_node_without_a_disk_has_no_figures_of_it() -> None:
    figures = figures_of(LocalNode())
    assert figures["aof_enabled"] == 0
    assert "aof_refusing" not in figures
    assert "aof_current_size" not in figures
