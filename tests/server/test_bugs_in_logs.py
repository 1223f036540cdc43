"""A node that logs an unexpected exception fails the test that runs it, whatever else the test asserts."""

from __future__ import annotations

from pathlib import Path

import pytest

from disqued.core.runtime.failures import report_bug
from disqued.testing.local import LocalNode
from disqued.testing.processes import ProcessFailedError, ServerProcess


def test_log_with_a_bug_fails_the_test_at_the_end(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailedError, match="KeyError"), ServerProcess(tmp_path) as node:
        log_bug(node)


def test_error_of_the_test_itself_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), ServerProcess(tmp_path) as node:
        assert 1 / log_bug(node)


def log_bug(node: ServerProcess) -> int:
    """Append what a node logs, as if the server had; returns 0."""
    local = LocalNode()
    report_bug(local.node.state, "a timer could not be handled", KeyError("job"))
    with node.log.open("a") as log:
        log.writelines(f"{text}\n" for _, text in local.host.log_lines)
    return 0
