"""What the tests in the browser share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from console.conftest import ConsoleNode


def add(node: ConsoleNode, queue: bytes | str, count: int = 1, body: str = "body") -> list[str]:
    """Add jobs and return their IDs."""
    with node.client() as client:
        return [reply.decode() for reply in client.pipeline([("ADDJOB", queue, body, 0) for _ in range(count)])]


def row(page: Page, text: str) -> Any:
    return page.locator("#queues tbody tr", has_text=text)
