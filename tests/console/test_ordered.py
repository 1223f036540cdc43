"""The page of ordered queues: what the node sends, and what the browser shows."""

from __future__ import annotations

from playwright.sync_api import expect

from console.conftest import ConsoleNode, Look, OpenNode
from disqued.console.ordered import MAX_SHOWN


def found(node: ConsoleNode, *queues: str) -> None:
    """Found the catalog on a node, and make queues."""
    own = node.call("HELLO")[1]
    assert node.call("CLUSTER", "ORDERED", "INIT", own) == b"OK"
    for queue in queues:
        assert node.call("QNEW", queue, "ORDERED", "SINGLE") == b"OK"


def test_queues_have_their_leader_and_jobs(open_node: OpenNode) -> None:
    node = open_node()
    found(node, "steps", "<b>other")
    for number in range(3):
        node.call("ADDJOB", "steps", f"{number}", 0)
    node.call("ADDJOB", "steps", "later", 0, "DELAY", 60)
    node.call("PAUSE", "<b>other", "in")
    content = node.ask("/console/ordered").json
    assert (len(content["catalog"]), content["conflict"], content["error"], content["count"]) == (32, "", "", 2)
    other, steps = content["queues"]
    assert (other["shown"], other["pause"], steps["single"], steps["settled"]) == ("<b>other", "in", True, True)
    assert steps["leader_address"] == steps["replicas"][0]
    assert steps["leader_address"].endswith(f":{node.server.port}")
    numbers = {name: steps[name] for name in ("ready", "leased", "delayed", "dead", "lag", "consumers")}
    assert numbers == {"ready": 3, "leased": 0, "delayed": 1, "dead": 0, "lag": 0, "consumers": 0}


def test_a_cluster_without_catalog_has_no_ordered_queues(open_node: OpenNode) -> None:
    content = open_node().ask("/console/ordered").json
    assert content == {"catalog": "", "conflict": "", "error": "", "count": 0, "queues": []}


def test_many_queues_are_counted_and_the_first_are_sent(open_node: OpenNode) -> None:
    node = open_node()
    found(node, *[f"queue-{number:03}" for number in range(MAX_SHOWN + 5)])
    content = node.ask("/console/ordered").json
    assert (content["count"], len(content["queues"])) == (MAX_SHOWN + 5, MAX_SHOWN)
    assert content["queues"][-1]["shown"] == f"queue-{MAX_SHOWN - 1:03}"


def test_a_user_who_may_not_see_the_cluster_gets_the_reason(open_node: OpenNode) -> None:
    node = open_node()
    node.call("ACL", "SETUSER", "default", "-cluster")
    refused = node.ask("/console/ordered")
    assert (refused.status, "cluster" in refused.text.lower()) == (503, True)


def test_the_browser_shows_queues_and_follows_them(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    found(node, "steps")
    node.call("ADDJOB", "steps", "one", 0)
    page = look(node)
    page.get_by_role("link", name="Ordered queues").click()
    expect(page.locator("#ordered-note")).to_have_text("1 ordered queue.")
    row = page.locator("#ordered-table tbody tr", has_text="steps")
    expect(row.locator(".chip")).to_have_text("single")
    expect(row.locator("[data-label=Leader]")).to_contain_text(f":{node.server.port}")
    expect(row.locator("[data-label=Ready]")).to_have_text("1")
    node.call("ADDJOB", "steps", "two", 0)
    expect(row.locator("[data-label=Ready]")).to_have_text("2")
    page.get_by_role("link", name="All queues").last.click()
    expect(page.locator("#overview")).to_be_visible()


def test_the_browser_says_that_there_is_no_catalog(open_node: OpenNode, look: Look) -> None:
    page = look(open_node(), "#ordered")
    expect(page.locator("#ordered-note")).to_contain_text("CLUSTER ORDERED INIT")
