"""The console marks queues whose clients wait because of a rate or a cap."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from console.conftest import Look, OpenNode


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "value", "mark"),
    [("rate", "1/h", "held back: rate"), ("inflight", "1", "held back: in flight")],
)
def test_queue_is_marked_while_its_limit_holds_back_jobs(
    open_node: OpenNode, look: Look, setting: str, value: str, mark: str
) -> None:
    node = open_node()
    node.call("QCONF", "mail", "SET", setting, value)
    with node.client() as worker, node.client() as producer:
        producer.call("ADDJOB", "mail", "first", 0)
        worker.call("GETJOB", "FROM", "mail")
        page = look(node)
        chips = page.locator("#queues tbody tr", has_text="mail").locator(".chip")
        expect(page.locator("#queues a")).to_have_text(["mail"])
        expect(chips).to_have_count(0)
        worker.send("GETJOB", "FROM", "mail")
        producer.call("ADDJOB", "mail", "second", 0)
        expect(chips).to_have_text([mark])
        page.locator("#queues a").click()
        expect(page.locator("#queue-title .chip")).to_have_text(mark)
        expect(page.locator("#queue-members tbody tr")).to_contain_text(mark)
        producer.call("QCONF", "mail", "UNSET", setting)
        expect(page.locator("#queue-title .chip")).to_have_count(0)
        assert worker.read()[0][2] == b"second"
